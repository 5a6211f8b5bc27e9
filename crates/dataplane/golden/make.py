#!/usr/bin/env python3
"""Writes the golden files: frames in, the way they take, frames out, all built by scapy and none by our own code.

Run it after adding a case: `python3 crates/dataplane/golden/make.py`. The fixture (ports, sessions, neighbours) is
that of src/fixture.rs.
"""
import pathlib
import struct

from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

HERE = pathlib.Path(__file__).parent

N3, N6 = "02:00:00:00:03:02", "02:00:00:00:06:02"
GNB, ROUTER = "02:00:00:00:03:01", "02:00:00:00:06:01"
N3_IP, N6_IP, GNB_IP, ROUTER_IP = "10.30.0.2", "10.50.0.2", "10.30.0.1", "10.50.0.1"
UE, UE_4G, UE_SHUT, SERVER = "10.60.0.1", "10.60.0.2", "10.60.0.3", "203.0.113.80"
UE_METERED, UE_ASLEEP, N6_IP6 = "10.60.0.40", "10.60.0.50", "2001:db8:6::2"
UE_SERVED, UE_REDIRECTED = "10.60.0.90", "10.60.0.100"
UE_ENRICHED, UE_CHAINED = "10.60.0.110", "10.60.0.131"
UE_READDRESSED, ELSEWHERE = "10.60.0.115", "203.0.113.99"
PAYLOAD = Raw(b"anchorline golden payload")

# The way of a usual packet of a flow not seen before, and of one that has to be looked at closely.
UP, DOWN = "usual_input flow session", "usual_input flow session classify far"
CLOSELY_UP = "usual_input ethernet_input ip4_input gtpu_input user_input"
CLOSELY_DOWN = "usual_input ethernet_input ip4_input user_input flow session classify far"


def up_frame(inner, teid=0x100, qfi=9, source=GNB_IP):
    """A frame from the gNB with a user's packet in a tunnel."""
    header = GTP_U_Header(teid=teid, gtp_type=255)
    if qfi is not None:
        header = GTP_U_Header(teid=teid, gtp_type=255, E=1, next_ex=0x85)
        header = header / GTPPDUSessionContainer(type=1, QFI=qfi)
    return Ether(dst=N3, src=GNB) / IP(src=source, dst=N3_IP) / UDP(sport=2152, dport=2152) / header / inner


def tunnelled(inner, teid, qfi):
    """The frame we send to the gNB: no UDP checksum, not to be fragmented, IP identification 0."""
    header = GTP_U_Header(teid=teid, gtp_type=255)
    if qfi is not None:
        header = GTP_U_Header(teid=teid, gtp_type=255, E=1, next_ex=0x85) / GTPPDUSessionContainer(type=0, QFI=qfi)
    outer = IP(src=N3_IP, dst=GNB_IP, ttl=64, flags="DF", id=0) / UDP(sport=2152, dport=2152, chksum=0)
    return Ether(dst=GNB, src=N3) / outer / header / inner


def signal(message, source=GNB_IP, port=2152):
    """A frame from the gNB with a GTP-U message given as bytes."""
    return Ether(dst=N3, src=GNB) / IP(src=source, dst=N3_IP) / UDP(sport=port, dport=2152) / Raw(message)


def answer(message, port=2152):
    """The frame with a GTP-U message of ours."""
    outer = IP(src=N3_IP, dst=GNB_IP, ttl=64, flags="DF", id=0) / UDP(sport=2152, dport=port, chksum=0)
    return Ether(dst=GNB, src=N3) / outer / Raw(message)


def user(ttl, source=UE, destination=SERVER):
    """A user's packet."""
    return IP(src=source, dst=destination, ttl=ttl, id=7) / UDP(sport=40000, dport=53) / PAYLOAD


def damaged(packet, at, value):
    """The packet with one byte changed."""
    data = bytearray(bytes(packet))
    data[at] = value
    return Raw(bytes(data))


def case(name, why, *steps):
    """Writes golden/<node>/<case>.golden. A step is (port in, frame in, path, [(port out, frame out)...])."""
    lines = [f"# {why}"]
    for port, frame, path, out in steps:
        lines += [f"in {port} {bytes(frame).hex()}", f"path {path}"]
        lines += [f"out {where} {bytes(what).hex()}" for where, what in out]
    target = HERE / f"{name}.golden"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(lines) + "\n")


def dropped(name, why, port, frame, path, reason):
    """A case that ends in a drop."""
    case(name, why, (port, frame, f"{path} drop:{reason}", []))


def ethernet():
    """usual_input ethernet_input and ethernet_output."""
    ping = IP(src=ROUTER_IP, dst=N6_IP) / ICMP()
    dropped("ethernet_input/truncated", "Half a header.", "n6", Raw(bytes(13)), "usual_input ethernet_input", "ethernet_truncated")
    dropped("ethernet_input/other_station", "A flooded frame.", "n6",
            Ether(dst="02:00:00:00:00:99", src=ROUTER) / ping, "usual_input ethernet_input", "not_our_mac")
    dropped("ethernet_input/broadcast_to_one", "A packet to one station in a frame to all.", "n6",
            Ether(dst="ff:ff:ff:ff:ff:ff", src=ROUTER) / ping, "usual_input ethernet_input", "not_our_mac")
    tag = Ether(dst=N6, src=ROUTER) / Dot1Q(vlan=0, prio=5)
    dropped("ethernet_input/other_vlan", "The port is on no VLAN.", "n6",
            Ether(dst=N6, src=ROUTER) / Dot1Q(vlan=5) / ping, "usual_input ethernet_input", "other_vlan")
    dropped("ethernet_input/two_tags", "One priority is enough.", "n6", tag / Dot1Q(vlan=0) / ping,
            "usual_input ethernet_input", "other_vlan")
    dropped("ethernet_input/cut_in_its_tag", "Half a tag.", "n6", Raw(bytes(tag)[:15]), "usual_input ethernet_input",
            "ethernet_truncated")
    dropped("ethernet_input/unknown_ethertype", "LLDP, and the like.", "n6",
            Ether(dst=N6, src=ROUTER, type=0x88CC) / Raw(bytes(46)), "usual_input ethernet_input", "unknown_ethertype")
    pong = Ether(dst=ROUTER, src=N6) / IP(src=N6_IP, dst=ROUTER_IP, ttl=64) / ICMP(type=0, id=3)
    case("ethernet_input/priority_tag", "VLAN 0 is no VLAN; the answer has no tag.",
         ("n6", tag / IP(src=ROUTER_IP, dst=N6_IP) / ICMP(id=3), "usual_input ethernet_input ip4_input icmp_echo ip_output ethernet_output send:n6", [("n6", pong)]))
    stranger, mac = "10.50.0.77", "02:00:00:00:06:77"
    first, second = user(64, destination=stranger), user(64, destination=stranger) / Raw(b"2")
    ask = Ether(dst="ff:ff:ff:ff:ff:ff", src=N6) / ARP(op=1, hwsrc=N6, psrc=N6_IP, hwdst="00:00:00:00:00:00",
                                                       pdst=stranger)
    tell = Ether(dst=N6, src=mac) / ARP(op=2, hwsrc=mac, psrc=stranger, hwdst=N6, pdst=N6_IP)
    sent = [("n6", Ether(dst=mac, src=N6) / routed(packet)) for packet in (first, second)]
    held = f"{UP} classify far ip_output ethernet_output hold"
    case("ethernet_output/held_until_the_neighbour_answers",
         "Two packets to an unknown station wait for its answer and leave in order.",
         ("n3", up_frame(first), held, [("n6", ask)]),
         ("n3", up_frame(second), "usual_input flow verdict hold", []),
         ("n6", tell, "usual_input ethernet_input arp consumed", sent))


    up = user(64, UE_CHAINED)
    frame, out = up_frame(up, teid=0x181, qfi=None), [("n6", Ether(dst=ROUTER, src=N6) / routed(up))]
    down = IP(src=SERVER, dst=UE_CHAINED, ttl=64, id=7) / TCP(sport=80, dport=40000) / PAYLOAD
    case("ethernet_output/looped", "SGW-U and PGW-U of one user: out of a tunnel, into one of our own, and in again. What the PGW-U "
         "knows of the flow is not the SGW-U's.",
         ("n3", frame, f"{UP} classify far gtpu_encap ethernet_output loop:n3", out),
         ("n3", frame, "usual_input flow verdict session far gtpu_encap ethernet_output loop:n3", out),
         ("n6", Ether(dst=N6, src=ROUTER) / down, f"{DOWN} gtpu_encap ethernet_output loop:n6",
          [("n3", tunnelled(routed(down), 0x281, None))]))


def routed(packet):
    """A user's packet one hop later."""
    later = packet.copy()
    later.ttl -= 1
    del later.chksum
    return later


def arp():
    """arp."""
    asked = ARP(op=1, hwsrc=GNB, psrc=GNB_IP, hwdst="00:00:00:00:00:00", pdst=N3_IP)
    reply = ARP(op=2, hwsrc=N3, psrc=N3_IP, hwdst=GNB, pdst=GNB_IP)
    broadcast = Ether(dst="ff:ff:ff:ff:ff:ff", src=GNB)
    case("arp/request_for_us", "Padded to the shortest frame, as networks deliver it.",
         ("n3", broadcast / asked / Raw(bytes(18)), "usual_input ethernet_input arp send:n3", [("n3", Ether(dst=GNB, src=N3) / reply)]))
    other = ARP(op=1, hwsrc=GNB, psrc=GNB_IP, hwdst="00:00:00:00:00:00", pdst="10.30.0.55")
    dropped("arp/request_for_another", "Not our address.", "n3", broadcast / other, "usual_input ethernet_input arp", "arp_not_for_us")
    for name, said, mac, address, reason in [
            ("of_nobody", "A station without an address of its own.", "00:00:00:00:00:00", GNB_IP, "arp_malformed"),
            ("of_all", "Packets would go to all stations.", "ff:ff:ff:ff:ff:ff", GNB_IP, "arp_malformed"),
            ("of_our_own", "Packets for the gNB would come back.", N3, GNB_IP, "arp_not_for_us"),
            ("of_our_address", "Another station has our address.", GNB, N3_IP, "address_conflict")]:
        told = ARP(op=2, hwsrc=mac, psrc=address, hwdst=N3, pdst=N3_IP)
        dropped(f"arp/{name}", said, "n3", Ether(dst=N3, src=GNB) / told, "usual_input ethernet_input arp", reason)
    new = "02:00:00:00:03:aa"
    announced = ARP(op=1, hwsrc=new, psrc=GNB_IP, hwdst="00:00:00:00:00:00", pdst=GNB_IP)
    down = IP(src=SERVER, dst=UE, ttl=64, id=7) / UDP() / PAYLOAD
    moved = tunnelled(routed(down), 0x200, 9)
    moved[Ether].dst = new
    case("arp/announcement_moves_a_neighbour", "A standby gNB takes the address over.",
         ("n3", Ether(dst="ff:ff:ff:ff:ff:ff", src=new) / announced, "usual_input ethernet_input arp consumed", []),
         ("n6", Ether(dst=N6, src=ROUTER) / down, f"{DOWN} gtpu_encap ethernet_output send:n3", [("n3", moved)]))
    dropped("arp/truncated", "Cut short.", "n3", Raw(bytes(broadcast / asked)[:40]), "usual_input ethernet_input arp", "arp_malformed")
    dropped("arp/reverse", "An operation nobody uses any more.", "n3",
            broadcast / ARP(op=3, hwsrc=GNB, psrc=GNB_IP, pdst=N3_IP), "usual_input ethernet_input arp", "arp_malformed")


def ip4():
    """ip4_input and ip_output."""
    good = Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP) / ICMP()
    node = "usual_input ethernet_input ip4_input"
    for name, at, value, reason in [("checksum", 24, 0xEE, "ip4_checksum"), ("version", 14, 0x65, "ip4_version"),
                                    ("header_length", 14, 0x44, "ip4_header_length"),
                                    ("total_length", 16, 0xFF, "ip4_truncated")]:
        dropped(f"ip4_input/bad_{name}", f"A damaged {name.replace('_', ' ')}.", "n6", damaged(good, at, value), node, reason)
    dropped("ip4_input/fragment_to_us", "Of fragments to us, only GTP-U's are put together.", "n6",
            Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP, flags="MF") / ICMP(), node, "ip4_fragment")
    dropped("ip4_input/tcp_to_us", "Nobody listens.", "n6",
            Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP) / TCP(), node, "no_listener")
    dropped("ip4_input/plain_from_the_radio_side", "Users come in tunnels only.", "n3",
            Ether(dst=N3, src=GNB) / IP(src=UE, dst=SERVER) / UDP(), node, "ip_not_for_us")
    up, down = user(64), routed(user(64))
    case("ip_output/default_route", "To the router, one hop later.",
         ("n3", up_frame(up), f"{UP} classify far ip_output ethernet_output send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / down)]))
    stranger = Ether(dst=N3, src=GNB) / IP(src="192.0.2.9", dst=N3_IP) / ICMP()
    dropped("ip_output/no_way_back", "A ping from beyond every route of the radio side.", "n3", stranger,
            "usual_input ethernet_input ip4_input icmp_echo ip_output", "no_route")


def icmp():
    """icmp_echo."""
    ask = IP(src=ROUTER_IP, dst=N6_IP, id=5) / ICMP(type=8, id=3, seq=1) / PAYLOAD
    tell = IP(src=N6_IP, dst=ROUTER_IP, id=5, ttl=64) / ICMP(type=0, id=3, seq=1) / PAYLOAD
    frame = Ether(dst=N6, src=ROUTER) / ask
    case("icmp_echo/ping", "A ping to our address.",
         ("n6", frame, "usual_input ethernet_input ip4_input icmp_echo ip_output ethernet_output send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / tell)]))
    node = "usual_input ethernet_input ip4_input icmp_echo"
    dropped("icmp_echo/damaged", "A flipped bit.", "n6", damaged(frame, 45, 0), node, "icmp_malformed")
    dropped("icmp_echo/unreachable", "Not a question.", "n6",
            Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP) / ICMP(type=3, code=1), node, "icmp_not_echo")


def gtpu():
    """gtpu_input, gtpu_path, gtpu_encap and gtpu_error_indication."""
    node = "usual_input ethernet_input ip4_input gtpu_input"
    frame = up_frame(user(64))
    first = len(Ether()) + len(IP()) + len(UDP())
    for name, at, value, reason in [("version", first, 0x54, "gtpu_version"), ("length", first + 2, 0xFF, "gtpu_truncated"),
                                    ("extension_length", first + 12, 0, "gtpu_extension"),
                                    ("udp_length", first - 3, 0xFF, "udp_malformed")]:
        broken = damaged(Ether(dst=N3, src=GNB) / IP(src=GNB_IP, dst=N3_IP) / UDP(sport=2152, dport=2152, chksum=0)
                         / Raw(bytes(frame[UDP].payload)), at, value)
        dropped(f"gtpu_input/bad_{name}", f"A damaged {name.replace('_', ' ')}.", "n3", broken, node, reason)
    unknown = damaged(Ether(dst=N3, src=GNB) / IP(src=GNB_IP, dst=N3_IP) / UDP(sport=2152, dport=2152, chksum=0)
                      / Raw(bytes(frame[UDP].payload)), first + 11, 0xC1)
    known = struct.pack("!BBHIHBBBB", 0x32, 31, 10, 0, 0, 0, 0, 141, 4) + bytes([0x85, 0x40, 0x82, 0xC0])
    told = ("n3", unknown, f"{node} ip_output ethernet_output send:n3", [("n3", answer(known))])
    case("gtpu_input/bad_extension_type", "An extension header to be understood that is not: the gNB is told which ones are, "
         "twice in a second and no more.", told, told, ("n3", unknown, f"{node} drop:gtpu_unknown_extension", []))
    about_path = damaged(unknown, first + 1, 1)
    dropped("gtpu_input/bad_extension_type_of_an_echo", "A message that is no user's packet is not answered.", "n3", about_path,
            node, "gtpu_unknown_extension")
    dropped("gtpu_input/other_port", "Nobody listens.", "n3",
            Ether(dst=N3, src=GNB) / IP(src=GNB_IP, dst=N3_IP) / UDP(dport=2153) / PAYLOAD, node, "no_listener")
    case("gtpu_input/sequence_number_and_padding", "A 4G eNB that numbers its packets, in a padded frame.",
         ("n3", Ether(dst=N3, src=GNB) / IP(src=GNB_IP, dst=N3_IP) / UDP(sport=2152, dport=2152)
          / GTP_U_Header(teid=0x101, S=1, seq=77, gtp_type=255) / user(64, UE_4G) / Raw(b""),
          f"{CLOSELY_UP} flow session classify far ip_output ethernet_output send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / routed(user(64, UE_4G)))]))

    path = f"{node} gtpu_path"
    echo = struct.pack("!BBHIHBB", 0x32, 1, 4, 0, 0x1234, 0, 0)
    back = struct.pack("!BBHIHBBBB", 0x32, 2, 6, 0, 0x1234, 0, 0, 14, 0)
    case("gtpu_path/echo", "Answered to the port it came from, with its number.",
         ("n3", signal(echo, port=40001), f"{path} ip_output ethernet_output send:n3", [("n3", answer(back, 40001))]))
    dropped("gtpu_path/echo_without_number", "An answer could not be told apart.", "n3",
            signal(struct.pack("!BBHI", 0x30, 1, 0, 0)), path, "gtpu_incomplete")
    error = struct.pack("!BBHIHBBBIBH4s", 0x32, 26, 16, 0, 0, 0, 0, 16, 0x200, 133, 4, bytes([10, 30, 0, 1]))
    case("gtpu_path/error_indication", "Told to the control side.", ("n3", signal(error), f"{path} consumed", []))
    dropped("gtpu_path/error_indication_without_address", "Half of it.", "n3",
            signal(struct.pack("!BBHIHBBBI", 0x32, 26, 9, 0, 0, 0, 0, 16, 0x200)), path, "gtpu_incomplete")
    case("gtpu_path/end_marker", "It ends where its tunnel does: at a plain network.",
         ("n3", signal(struct.pack("!BBHI", 0x30, 254, 0, 0x100)), f"{path} consumed", []))
    dropped("gtpu_path/unknown_type", "A message of another age.", "n3",
            signal(struct.pack("!BBHI", 0x30, 200, 0, 0)), path, "gtpu_unknown_type")

    indication = struct.pack("!BBHIHBBBIBH4s", 0x32, 26, 16, 0, 0, 0, 0, 16, 0xDEAD, 133, 4, bytes([10, 30, 0, 2]))
    lost = up_frame(user(64), teid=0xDEAD)
    case("gtpu_error_indication/unknown_tunnel", "The gNB is told, twice in a second and no more.",
         *[("n3", lost, f"{UP} gtpu_error_indication ip_output ethernet_output send:n3", [("n3", answer(indication))])] * 2,
         ("n3", lost, f"{UP} gtpu_error_indication drop:no_tunnel", []))

    down = IP(src=SERVER, dst=UE, ttl=64, id=7) / TCP(sport=80, dport=40000) / PAYLOAD
    down_4g = IP(src=SERVER, dst=UE_4G, ttl=64, id=7) / TCP(sport=80, dport=40000) / PAYLOAD
    encap = f"{DOWN} gtpu_encap ethernet_output send:n3"
    case("gtpu_encap/with_qfi", "5G: a PDU session container.",
         ("n6", Ether(dst=N6, src=ROUTER) / down, encap, [("n3", tunnelled(routed(down), 0x200, 9))]))
    case("gtpu_encap/without_qfi", "4G: a bare header.",
         ("n6", Ether(dst=N6, src=ROUTER) / down_4g, encap, [("n3", tunnelled(routed(down_4g), 0x201, None))]))


def udp():
    """udp_encap."""
    way = "usual_input flow session classify far gtpu_encap udp_encap ethernet_output send:n6"
    for name, ue, teid, outer in [
        ("ipv4", "10.60.0.140", 0x18B, IP(src=N6_IP, dst="203.0.113.99", ttl=64, flags="DF", id=0)
         / UDP(sport=49152, dport=5000, chksum=0)),
        ("ipv6_marked", "10.60.0.141", 0x18C, IPv6(src=N6_IP6, dst="2001:db8:ffff::9", hlim=64, tc=46 << 2)
         / UDP(sport=49152, dport=5000))]:
        inner = user(64, ue)
        case(f"udp_encap/{name}", "Behind UDP and IP alone, and no hop later: from tunnel to tunnel.",
             ("n3", up_frame(inner, teid=teid, qfi=None), way, [("n6", Ether(dst=ROUTER, src=N6) / outer / inner)]))


def sessions():
    """user_input, flow, verdict, session, classify and far."""
    out = f"{UP} classify far ip_output ethernet_output send:n6"
    case("session/found", "By TEID.",
         ("n3", up_frame(user(9)), out, [("n6", Ether(dst=ROUTER, src=N6) / routed(user(9)))]))
    dropped("session/nobody", "An address no session has.", "n6",
            Ether(dst=N6, src=ROUTER) / IP(src=SERVER, dst="10.60.0.99") / UDP(),
            "usual_input flow session", "no_session")
    down = IP(src=SERVER, dst=UE, ttl=2, id=7) / ICMP()
    case("session/user_found", "By the user's address.",
         ("n6", Ether(dst=N6, src=ROUTER) / down, f"{CLOSELY_DOWN} gtpu_encap ethernet_output send:n3",
          [("n3", tunnelled(routed(down), 0x200, 9))]))
    at = f"{UP} classify"
    dropped("classify/spoofed_source", "A user's device with another's address.", "n3",
            up_frame(user(64, source="10.60.0.66")), at, "no_pdr")
    dropped("classify/other_flow", "The PDR wants QFI 9.", "n3", up_frame(user(64), qfi=5), at, "no_pdr")
    dropped("classify/no_container", "The PDR wants QFI 9.", "n3", up_frame(user(64), qfi=None), at, "no_pdr")
    inside = IP(bytes(user(64)))
    inside.chksum ^= 1
    dropped("user_input/damaged", "A wrong checksum inside.", "n3", up_frame(inside), CLOSELY_UP, "user_packet_malformed")
    dropped("user_input/empty", "A tunnel header and nothing in it.", "n3", up_frame(Raw(b"")), CLOSELY_UP,
            "user_packet_malformed")
    indication = struct.pack("!BBHIHBBBIBH4s", 0x32, 26, 16, 0, 0, 0, 0, 16, 0xBEEF, 133, 4, bytes([10, 30, 0, 2]))
    case("user_input/empty_in_no_tunnel", "A peer is told that its tunnel leads nowhere, whatever it sends.",
         ("n3", up_frame(Raw(b""), teid=0xBEEF), f"{CLOSELY_UP} gtpu_error_indication ip_output ethernet_output send:n3",
          [("n3", answer(indication))]))
    again = [("n6", Ether(dst=ROUTER, src=N6) / routed(user(64)))]
    case("verdict/second_packet", "What was found for the first packet of a flow holds for the second.",
         ("n3", up_frame(user(64)), f"{UP} classify far ip_output ethernet_output send:n6", again),
         ("n3", up_frame(user(64)), "usual_input flow verdict send:n6", again))
    case("flow/other_tunnel", "Another user's tunnel does not profit from a flow that is known.",
         ("n3", up_frame(user(64)), f"{UP} classify far ip_output ethernet_output send:n6", again),
         ("n3", up_frame(user(64), teid=0x101, qfi=None), f"{UP} classify drop:no_pdr", []))
    case("usual_input/tcp_without_container", "A 4G user's TCP packet, the smallest there is.",
         ("n3", up_frame(IP(src=UE_4G, dst=SERVER, id=7) / TCP(), teid=0x101, qfi=None),
          f"{UP} classify far ip_output ethernet_output send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / routed(IP(src=UE_4G, dst=SERVER, id=7) / TCP()))]))
    far = f"{UP} classify far"
    dropped("far/drop", "The FAR says DROP.", "n3", up_frame(user(64, UE_SHUT), teid=0x102, qfi=None), far, "far_drop")
    dropped("far/gate_closed", "The QER's downlink gate is closed.", "n6",
            Ether(dst=N6, src=ROUTER) / IP(src=SERVER, dst=UE_SHUT) / UDP(), DOWN, "gate_closed")
    dropped("far/to_ourselves", "A user may not talk to the node.", "n3", up_frame(user(64, destination=N6_IP)), far,
            "to_ourselves")


def steer():
    """Two workers: each frame comes to the one that does not have the user, and its way goes on at the other."""
    out = "usual_input steer hand_off flow session classify far ip_output ethernet_output send:n6"
    again = "usual_input steer hand_off flow verdict send:n6"
    sent = [("n6", Ether(dst=ROUTER, src=N6) / routed(user(9)))]
    case("steer/from_user", "The user's address says who has it, and the second packet of a flow is no different.",
         ("n3", up_frame(user(9)), out, sent), ("n3", up_frame(user(9)), again, sent))
    down = IP(src=SERVER, dst=UE, ttl=9, id=7) / UDP(sport=53, dport=4000) / PAYLOAD
    case("steer/to_user", "From the data network, not read further where it came in.",
         ("n6", Ether(dst=N6, src=ROUTER) / down,
          "usual_input steer hand_off flow session classify far gtpu_encap ethernet_output send:n3",
          [("n3", tunnelled(routed(down), 0x200, 9))]))
    ping = IP(src=SERVER, dst=UE, ttl=9, id=7) / ICMP()
    case("steer/looked_at_closely", "What is not usual is read to the user's address first.",
         ("n6", Ether(dst=N6, src=ROUTER) / ping,
          "usual_input ethernet_input ip4_input user_input steer hand_off flow session classify far gtpu_encap "
          "ethernet_output send:n3", [("n3", tunnelled(routed(ping), 0x200, 9))]))


def enforcement():
    """qer, urr, and packets kept for a sleeping user."""
    def up():
        return IP(src=UE_METERED, dst=SERVER, ttl=64, id=7) / UDP(sport=40000, dport=53) / PAYLOAD

    def down():
        return IP(src=SERVER, dst=UE_METERED, ttl=64, id=7) / UDP(sport=53, dport=40000) / PAYLOAD

    out = [("n6", Ether(dst=ROUTER, src=N6) / routed(up()))]
    first, second = f"{UP} classify far qer urr ip_output ethernet_output send:n6", "usual_input flow verdict"
    case("qer/rate", "The second packet is 424 ms too early at 1 kbit/s, and 250 ms are allowed.",
         ("n3", up_frame(up(), 0x127, None), first, out), ("n3", up_frame(up(), 0x127, None), f"{second} far qer drop:rate_exceeded", []))
    back = [("n3", tunnelled(routed(down()), 0x227, None))]
    first = f"{DOWN} qer urr gtpu_encap ethernet_output send:n3"
    case("urr/quota", "Of 100 bytes, the packet that reaches the last passes, and no other.",
         ("n6", Ether(dst=N6, src=ROUTER) / down(), first, back),
         ("n6", Ether(dst=N6, src=ROUTER) / down(), "usual_input flow verdict far qer urr gtpu_encap ethernet_output send:n3", back),
         ("n6", Ether(dst=N6, src=ROUTER) / down(), "usual_input flow verdict far qer drop:quota_exhausted", []))
    asleep = Ether(dst=N6, src=ROUTER) / IP(src=SERVER, dst=UE_ASLEEP) / UDP() / PAYLOAD
    case("far/kept", "The user sleeps.", ("n6", asleep, f"{DOWN} keep", []), ("n6", asleep, "usual_input flow verdict far keep", []))


def content():
    """inspect."""
    def up(flags, seq, data=b""):
        ports = dict(sport=41000, dport=80, flags=flags, seq=seq)
        return IP(src=UE_SERVED, dst=SERVER, ttl=64, id=7) / TCP(**ports) / Raw(data)

    def asks(host):
        return up("PA", 1001, b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")

    opening, look = up("S", 1000), f"{UP} classify inspect far"
    passes = f"{look} urr ip_output ethernet_output send:n6"
    first = ("n3", up_frame(opening, 0x159, None), passes, [("n6", Ether(dst=ROUTER, src=N6) / routed(opening))])
    blocked, allowed = asks(b"www.blocked.example"), asks(b"www.example")
    case("inspect/blocked_once_it_is_known", "The handshake passes, as nobody knows; the request does not, nor what follows.",
         first, ("n3", up_frame(blocked, 0x159, None), f"{look} drop:far_drop", []),
         ("n3", up_frame(blocked, 0x159, None), f"{look} drop:far_drop", []))
    known = ("n3", up_frame(allowed, 0x159, None), f"{look} ip_output ethernet_output send:n6",
             [("n6", Ether(dst=ROUTER, src=N6) / routed(allowed))])
    case("inspect/of_no_application", "What is not blocked is looked at, and then known; whatever follows may be a request, too.",
         first, known, known)
    answer = IP(src=SERVER, dst=UE_SERVED, ttl=64, id=7) / TCP(sport=80, dport=41000, flags="A", seq=1) / PAYLOAD
    told = [("n3", tunnelled(routed(answer), 0x259, None))]
    back = ("n6", Ether(dst=N6, src=ROUTER) / answer, f"{DOWN} gtpu_encap ethernet_output send:n3", told)
    again = ("n6", Ether(dst=N6, src=ROUTER) / answer, "usual_input flow verdict send:n3", told)
    case("inspect/later_request", "Answers go the short way; but behind a request for something else, they are asked for anew.",
         first, known, back, again, ("n3", up_frame(blocked, 0x159, None), f"{look} drop:far_drop", []), back, again,
         known, back)


def redirect():
    """redirect."""
    def up(port, flags, data=b"", **more):
        ports = dict(sport=41000, dport=port, flags=flags, seq=1000)
        return up_frame(IP(src=UE_REDIRECTED, dst=SERVER, ttl=64, id=7) / TCP(**ports, **more) / Raw(data), 0x163, None)

    def back(port, flags, data=b"", **more):
        ports = dict(sport=port, dport=41000, flags=flags)
        inner = IP(src=SERVER, dst=UE_REDIRECTED, ttl=64, id=0, flags="DF") / TCP(**ports, **more) / Raw(data)
        return [("n3", tunnelled(inner, 0x263, None))]

    first, later = f"{UP} classify far redirect", "usual_input flow verdict far redirect"
    end = "gtpu_encap ethernet_output send:n3"
    hello = bytes([22, 3, 1, 0, 200, 1])
    answer = (b"HTTP/1.1 302 Found\r\nLocation: http://portal.example/more\r\nCache-Control: no-store\r\n"
              b"Content-Length: 0\r\nConnection: close\r\n\r\n")
    get = b"GET /x HTTP/1.1\r\nHost: www.example\r\n\r\n"
    stamps = lambda a, b: [("NOP", None), ("NOP", None), ("Timestamp", (a, b))]
    case("redirect/refused", "A connection to a port that no request of HTTP goes to.",
         ("n3", up(443, "S"), f"{first} {end}", back(443, "RA", seq=0, ack=1001, window=0)))
    case("redirect/reset", "What is no request; its server is to hear of it, too, but no rule leads there.",
         ("n3", up(443, "PA", hello, ack=2000), f"{first} answer", back(443, "RA", seq=2000, ack=1006, window=0)))
    case("redirect/portal", "A request, with timestamps, and the end of the connection.",
         ("n3", up(80, "PA", get, ack=2000, options=stamps(5, 9)), f"{first} answer",
          back(80, "FPA", answer, seq=2000, ack=1000 + len(get), window=65535, options=stamps(9, 5))),
         ("n3", up(80, "FA", ack=2000), f"{later} answer", back(80, "A", seq=2000, ack=1001, window=65535)))
    dropped("redirect/datagram", "QUIC, say.", "n3",
            up_frame(IP(src=UE_REDIRECTED, dst=SERVER, ttl=64) / UDP(sport=41000, dport=443) / PAYLOAD, 0x163, None),
            first, "redirected")


def readdress():
    """readdress."""
    other = "198.51.100.7"
    first, later = f"{UP} classify far readdress", "usual_input flow verdict far readdress"
    closely = f"{CLOSELY_UP} flow session classify far readdress"
    out, back = "ip_output ethernet_output send:n6", f"{DOWN} readdress gtpu_encap ethernet_output send:n3"

    def up(upper, path, to=SERVER, **more):
        packet = lambda to: IP(src=UE_READDRESSED, dst=to, ttl=64, id=7, **more) / upper
        return ("n3", up_frame(packet(to), 0x172, None), path, [("n6", Ether(dst=ROUTER, src=N6) / routed(packet(ELSEWHERE)))])

    def down(upper, path, seen_from=SERVER, **more):
        packet = lambda source: IP(src=source, dst=UE_READDRESSED, ttl=60, id=9, **more) / upper
        return ("n6", Ether(dst=N6, src=ROUTER) / packet(ELSEWHERE), path,
                [("n3", tunnelled(routed(packet(seen_from)), 0x272, None))])

    def stays(upper, path, reason, to=SERVER, **more):
        packet = IP(src=UE_READDRESSED, dst=to, ttl=64, id=7, **more) / upper
        return ("n3", up_frame(packet, 0x172, None), f"{path} drop:{reason}", [])

    syn = TCP(sport=41000, dport=80, flags="S", seq=1000)
    heard = TCP(sport=80, dport=41000, flags="SA", seq=500, ack=1001)
    case("readdress/connection", "What goes to the server goes elsewhere, and what comes back is from the server.",
         up(syn, f"{first} {out}"), down(heard, back),
         up(TCP(sport=41000, dport=80, flags="PA", seq=1001, ack=501) / Raw(b"odd"), f"{later} {out}"))
    query, answer_ = UDP(sport=5000, dport=53) / Raw(b"query"), UDP(sport=53, dport=5000) / Raw(b"answer")
    case("readdress/datagrams", "With checksums, and back without.",
         up(query, f"{first} {out}"), down(answer_, back),
         down(UDP(sport=53, dport=5000, chksum=0) / Raw(b"more"),
              "usual_input flow verdict far readdress gtpu_encap ethernet_output send:n3"))
    case("readdress/ping", "ICMP counts no addresses.",
         up(ICMP(id=3), f"{closely} {out}"),
         down(ICMP(type=0, id=3), f"{CLOSELY_DOWN} readdress gtpu_encap ethernet_output send:n3"))
    # Of the whole datagram, so it is told and not worked out; the address that replaces the other is greater by 0x13 (RFC 1624).
    part = lambda to, checksum: (IP(src=UE_READDRESSED, dst=to, ttl=64, id=7, proto=17, flags="MF")
                                 / bytes_of(UDP(sport=5000, dport=53, len=40, chksum=checksum) / Raw(bytes(24))))
    case("readdress/fragments", "Checksums are in the first one; the others are known by it.",
         ("n3", up_frame(part(SERVER, 0x1234), 0x172, None), f"{closely} {out}",
          [("n6", Ether(dst=ROUTER, src=N6) / routed(part(ELSEWHERE, 0x1221)))]),
         up(Raw(bytes(8)), f"{CLOSELY_UP} flow verdict far readdress {out}", proto=17, frag=4))
    case("readdress/fragment_alone", "Nobody knows whose it is.",
         stays(Raw(bytes(8)), closely, "redirected", proto=17, frag=4))
    case("readdress/other_protocol", "SCTP, whose ends tell each other their addresses.",
         stays(Raw(bytes([0, 80, 0, 80]) + bytes(8)), closely, "redirected", proto=132))
    case("readdress/taken", "Two servers from one port: the answers could not be told apart, until one is over.",
         up(syn, f"{first} {out}"), stays(syn, first, "redirect_taken", to=other),
         up(TCP(sport=41000, dport=80, flags="R", seq=1001), f"{later} {out}"),
         up(syn, f"{later} {out}", to=other), down(heard, back, seen_from=other))
    passer = IP(src=ELSEWHERE, dst=UE_READDRESSED, ttl=60, id=9) / UDP(sport=123, dport=5000) / Raw(b"tick")
    case("readdress/of_its_own", "What answers nothing that was redirected stays as it is.",
         ("n6", Ether(dst=N6, src=ROUTER) / passer, back, [("n3", tunnelled(routed(passer), 0x272, None))]))
    readdressed_errors(up, down, (f"{first} {out}", f"{closely} {out}"))


def readdressed_errors(up, down, ways):
    """readdress: ICMP errors, which quote a packet as it was on their side."""
    way, closely = ways
    back = f"{CLOSELY_DOWN} readdress gtpu_encap ethernet_output send:n3"
    query, syn = UDP(sport=5000, dport=53) / Raw(b"query"), TCP(sport=41000, dport=80, flags="S", seq=1000)
    sent = lambda upper, to: IP(src=UE_READDRESSED, dst=to, ttl=59, id=7) / upper
    told = lambda kind, quoted: ICMP(**kind) / Raw(bytes(quoted))

    def down_error(kind, upper, sources, path=back, quoted=None):
        frame = lambda source, to: (IP(src=source, dst=UE_READDRESSED, ttl=60, id=9)
                                    / told(kind, bytes(sent(upper, to))[:quoted]))
        return ("n6", Ether(dst=N6, src=ROUTER) / frame(sources[0], ELSEWHERE), path,
                [("n3", tunnelled(routed(frame(sources[1], SERVER)), 0x272, None))])

    port, too_long = dict(type=3, code=3), dict(type=3, code=4, nexthopmtu=1400)
    case("readdress/error_of_the_host", "The user hears from the server that nobody listens there.",
         up(query, way), down_error(port, query, (ELSEWHERE, SERVER)))
    case("readdress/error_on_the_way", "A router's, about a segment that is too long, of which it quotes eight octets.",
         up(syn, way), down_error(too_long, syn, (ROUTER_IP, ROUTER_IP), quoted=28))
    answer_ = lambda source, sport=53: IP(src=source, dst=UE_READDRESSED, ttl=59, id=9) / UDP(sport=sport, dport=5000) / Raw(b"answer")
    user_s = lambda to, quoted: IP(src=UE_READDRESSED, dst=to, ttl=64, id=8) / told(port, quoted)
    case("readdress/error_of_the_user", "The host hears about what it sent itself.", up(query, way),
         ("n3", up_frame(user_s(SERVER, answer_(SERVER)), 0x172, None), closely,
          [("n6", Ether(dst=ROUTER, src=N6) / routed(user_s(ELSEWHERE, answer_(ELSEWHERE))))]))
    dropped("readdress/error_about_nothing", "The host has sent no such packet.", "n3",
            up_frame(user_s(SERVER, answer_(SERVER, sport=54)), 0x172, None), closely.rsplit(" ip_output")[0], "redirected")
    passer = IP(src=ELSEWHERE, dst=UE_READDRESSED, ttl=60, id=9) / told(port, IP(src=UE_READDRESSED, dst=ELSEWHERE) / query)
    case("readdress/error_of_its_own", "The user pings the server and speaks with the host besides, of which this is.",
         up(ICMP(id=3), closely),
         ("n6", Ether(dst=N6, src=ROUTER) / passer, back, [("n3", tunnelled(routed(passer), 0x272, None))]))


def bytes_of(layers):
    """As they stand: the checksum is that of a whole datagram, of which this is a part."""
    return Raw(bytes(layers))


def enrich():
    """enrich."""
    def up(flags, seq, data=b""):
        return IP(src=UE_ENRICHED, dst=SERVER, ttl=64, id=7) / TCP(sport=41000, dport=80, flags=flags, seq=seq, ack=500) / Raw(data)

    def goes(inner, path):
        return ("n3", up_frame(inner, 0x16d, None), path, [("n6", Ether(dst=ROUTER, src=N6) / routed(inner))])

    def becomes(inner, other, path):
        return ("n3", up_frame(inner, 0x16d, None), path, [("n6", Ether(dst=ROUTER, src=N6) / routed(other))])

    def down(ack):
        return IP(src=SERVER, dst=UE_ENRICHED, ttl=60, id=9) / TCP(sport=80, dport=41000, flags="A", seq=500, ack=ack)

    field = b"X-MSISDN: 491701234567\r\n"
    line, rest = b"GET / HTTP/1.1\r\n", b"Host: www.example\r\n\r\n"
    first, later = f"{UP} classify far enrich ip_output ethernet_output send:n6", "usual_input flow verdict far enrich ip_output ethernet_output send:n6"
    opening = IP(src=UE_ENRICHED, dst=SERVER, ttl=64, id=7) / TCP(sport=41000, dport=80, flags="S", seq=999)
    back = "usual_input flow session classify far enrich gtpu_encap ethernet_output send:n3"
    size = len(line + rest)
    case("enrich/request", "The request gets its field, what follows other numbers, and the user its own back.",
         goes(opening, first), becomes(up("PA", 1000, line + rest), up("PA", 1000, line + field + rest), later),
         ("n6", Ether(dst=N6, src=ROUTER) / down(1000 + size + len(field)), back,
          [("n3", tunnelled(routed(down(1000 + size)), 0x26d, None))]),
         becomes(up("FA", 1000 + size), up("FA", 1000 + size + len(field)), later))
    case("enrich/no_request", "What is none passes as it is.", goes(opening, first), goes(up("PA", 1000, b"HELO"), later))

    def error_down(kind, quoted, told_kind, told_quoted, found="session classify"):
        packet = lambda kind, quoted: IP(src=ROUTER_IP, dst=UE_ENRICHED, ttl=60, id=9) / ICMP(type=3, **kind) / Raw(quoted)
        return ("n6", Ether(dst=N6, src=ROUTER) / packet(kind, quoted),
                f"usual_input ethernet_input ip4_input user_input flow {found} far enrich gtpu_encap ethernet_output send:n3",
                [("n3", tunnelled(routed(packet(told_kind, told_quoted)), 0x26d, None))])

    request, with_field = up("PA", 1000, line + rest), up("PA", 1000, line + field + rest)
    behind, shifted = (up("PA", 1000 + size + more, b"later") for more in (0, len(field)))
    begun = [goes(opening, first), becomes(request, with_field, later), becomes(behind, shifted, later)]
    on_the_way = bytes(routed(with_field))
    case("enrich/error_too_long", "The user is to send less by the field, where the packet had it.", *begun,
         error_down(dict(code=4, nexthopmtu=1400), on_the_way, dict(code=4, nexthopmtu=1400 - len(field)), on_the_way),
         error_down(dict(code=4, nexthopmtu=1400), bytes(routed(shifted)), dict(code=4, nexthopmtu=1400), bytes(routed(behind)),
                    "verdict"))
    case("enrich/error_of_eight_octets", "No more is quoted than the number, which is the user's.", *begun,
         error_down(dict(code=1), bytes(routed(shifted))[:28], dict(code=1), eight(shifted, behind)))
    of_user = lambda quoted: IP(src=UE_ENRICHED, dst=SERVER, ttl=64, id=8) / ICMP(type=3, code=3) / Raw(bytes(routed(quoted)))
    case("enrich/error_of_the_user", "The server hears of what it has acknowledged by its own number.", *begun,
         ("n3", up_frame(of_user(down(1000 + size)), 0x16d, None), f"{CLOSELY_UP} flow session classify far enrich ip_output ethernet_output send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / routed(of_user(down(1000 + size + len(field)))))]))


def eight(sent, meant):
    """The IP header of what was sent, and the first eight octets behind it of what was meant."""
    return bytes(routed(sent))[:20] + bytes(meant)[20:28]


def ip6():
    """ip6_input."""
    node = "usual_input ethernet_input ip6_input"
    packet = IPv6(src="2001:db8:ffff::1", dst="2001:db8:1::1") / UDP() / PAYLOAD
    frame = Ether(dst=N6, src=ROUTER) / packet
    dropped("ip6_input/nobody", "A prefix no session has.", "n6", frame, f"{node} user_input flow session", "no_session")
    dropped("ip6_input/bad_version", "A damaged version.", "n6", damaged(frame, 14, 0x45), node, "ip6_version")
    dropped("ip6_input/bad_length", "A damaged length.", "n6", damaged(frame, 18, 0xFF), node, "ip6_truncated")
    dropped("ip6_input/plain_from_the_radio_side", "Users come in tunnels only.", "n3",
            Ether(dst=N3, src=GNB) / packet, node, "ip_not_for_us")
    to_us = IPv6(src="2001:db8:6::1", dst=N6_IP6)
    dropped("ip6_input/fragment_to_us", "Of fragments to us, only GTP-U's are put together.", "n6",
            Ether(dst=N6, src=ROUTER) / to_us / IPv6ExtHdrFragment(m=1) / TCP() / PAYLOAD, node, "ip6_fragment")
    dropped("ip6_input/tcp_to_us", "Nobody listens.", "n6", Ether(dst=N6, src=ROUTER) / to_us / TCP(), node, "no_listener")
    dropped("ip6_input/endless_options", "More extension headers than anybody needs.", "n6",
            Ether(dst=N6, src=ROUTER) / IPv6(src="2001:db8:6::1", dst=N6_IP6, nh=60)
            / Raw(bytes([60, 0, 1, 4, 0, 0, 0, 0]) * 20), node, "ip6_extension")


if __name__ == "__main__":
    ethernet(), arp(), ip4(), icmp(), gtpu(), udp(), sessions(), steer(), enforcement(), content(), redirect(), readdress(), enrich(), ip6()
    import make6
    import make_ecn
    import make_errors
    import make_frames
    import make_punt
    make6.cases(), make_ecn.cases(), make_errors.errors(), make_frames.cases(), make_punt.cases()
