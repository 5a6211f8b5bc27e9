"""Golden files of sessions that carry Ethernet frames: two of one network, whose port is n6e."""
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

from make import PAYLOAD, case, dropped, tunnelled, up_frame

# Stations behind the two users, and in the network.
A, B, HOST = "02:00:00:00:0a:01", "02:00:00:00:0b:01", "02:00:00:00:0c:01"
TEID, PEER = {"a": 0x177, "b": 0x178}, {"a": 0x277, "b": 0x278}
ALL = "ff:ff:ff:ff:ff:ff"

ARRIVES = "usual_input ethernet_input ip4_input gtpu_input frame_user"
UP = f"{ARRIVES} frame_classify frame_forward frame_output"
DOWN = "frame_input frame_classify frame_forward gtpu_encap ethernet_output send:n3"


def frame(source, destination, **more):
    return Ether(src=source, dst=destination, **more) / IP(src="192.0.2.1", dst="192.0.2.2", id=7) / UDP() / PAYLOAD


def up(user, what, path=f"{UP} send:n6e", out=None):
    """A user's frame; as it is, it leaves into the network."""
    return ("n3", up_frame(what, TEID[user], None), path, [("n6e", what)] if out is None else out)


def down(user, what):
    """A frame of the network for a user, in the user's tunnel."""
    return ("n6e", what, DOWN, [("n3", tunnelled(what, PEER[user], None))])


def met(user, station):
    """The station is known to be behind the user."""
    return up(user, frame(station, HOST))


def users():
    case("frame_user/learns", "What a station sent once leads frames for it to its user.", met("a", A), down("a", frame(HOST, A)))
    looks_like_ipv6 = frame("60:00:00:00:0a:01", "64:00:6a:00:00:10")
    case("frame_user/addresses_that_begin_like_ipv6", "Nothing reads a frame as a packet, or cuts it to a packet's length.",
         up("a", looks_like_ipv6))
    case("frame_user/not_ip", "Whatever EtherType.", up("a", Ether(src=A, dst=HOST, type=0x8892) / Raw(bytes(46))))
    dropped("frame_user/truncated", "Half a header.", "n3", up_frame(Raw(bytes(13)), TEID["a"], None), ARRIVES, "ethernet_truncated")
    dropped("frame_user/sent_by_a_group", "Nobody's address.", "n3", up_frame(frame("03:00:00:00:00:01", HOST), TEID["a"], None),
            ARRIVES, "frame_source")
    packet = IP(src="192.0.2.1", dst="192.0.2.2", id=7) / TCP()
    dropped("frame_user/reads_as_a_packet", "For the group 45:00:00:28:00:07, and a sound IPv4 header.", "n3",
            up_frame(packet, TEID["a"], None), "usual_input flow session frame_user", "frame_like_packet")


def network():
    case("frame_input/moved", "A station that sends from the network is behind no user any more.", met("a", A),
         down("a", frame(HOST, A)),
         ("n6e", frame(A, B), "frame_input drop:frame_unknown_station", []),
         ("n6e", frame(HOST, A), "frame_input drop:frame_unknown_station", []))
    dropped("frame_input/unknown_station", "Not flooded to users.", "n6e", frame(HOST, A), "frame_input", "frame_unknown_station")
    dropped("frame_input/truncated", "Half a header.", "n6e", Raw(bytes(13)), "frame_input", "ethernet_truncated")
    dropped("frame_input/sent_by_a_group", "Nobody's address.", "n6e", frame(ALL, A), "frame_input", "frame_source")
    ask = Ether(src=HOST, dst=ALL) / ARP(hwsrc=HOST, psrc="192.0.2.9", pdst="192.0.2.1")
    copies = [("n3", tunnelled(ask, PEER[user], None)) for user in ("a", "b")]
    case("frame_input/for_all", "Every user of the network gets a copy.", ("n6e", ask, "frame_input switch", copies))


def rules():
    case("frame_classify/tags_stay", "One tag, and two.", up("a", Ether(src=A, dst=HOST) / Dot1Q(vlan=7, prio=3) / IP() / UDP()),
         up("a", Ether(src=A, dst=HOST) / Dot1AD(vlan=9) / Dot1Q(vlan=7) / IP() / UDP()))
    many = Ether(src=A, dst=HOST) / Dot1Q(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / IP() / UDP()
    classified = f"{ARRIVES} frame_classify"
    dropped("frame_classify/three_tags", "Nobody needs more than two.", "n3", up_frame(many, TEID["a"], None), classified, "frame_tags")
    experiment = Ether(src=A, dst=HOST, type=0x88B5) / Raw(bytes(46))
    dropped("frame_forward/filtered", "A filter for this EtherType leads to DROP.", "n3", up_frame(experiment, TEID["a"], None),
            f"{classified} frame_forward", "far_drop")
    hidden = Ether(src=A, dst=HOST) / Dot1Q(vlan=7, type=0x88B5) / Raw(bytes(46))
    dropped("frame_forward/filtered_behind_a_tag", "The EtherType is that behind the tags.", "n3",
            up_frame(hidden, TEID["a"], None), f"{classified} frame_forward", "far_drop")


def output():
    between = frame(A, B)
    case("frame_output/to_another_user", "Not by the network.", met("b", B),
         up("a", between, f"{UP} switch", [("n3", tunnelled(between, PEER["b"], None))]))
    ask = Ether(src=A, dst=ALL) / ARP(hwsrc=A, psrc="192.0.2.1", pdst="192.0.2.2")
    case("frame_output/for_all", "The network, and every other user of it.",
         up("a", ask, f"{UP} switch", [("n3", tunnelled(ask, PEER["b"], None)), ("n6e", ask)]))
    back = frame(A, "02:00:00:00:0a:02")
    case("frame_output/to_itself", "Two stations behind one user know each other without us.", met("a", "02:00:00:00:0a:02"),
         up("a", back, f"{UP} drop:frame_to_itself", []))
    long = Ether(src=A, dst=HOST) / Raw(bytes(1600))
    case("frame_output/too_long", "Frames are not split.", up("a", long, f"{UP} drop:mtu_exceeded", []))


def cases():
    users(), network(), rules(), output()
