"""Golden cases of packets that cannot go on: no hop left, or too long for their way. Run by make.py."""
from scapy.layers.inet6 import ICMPv6PacketTooBig, ICMPv6TimeExceeded

from make6 import *


def told(about, kind, source, destination, **fields):
    """Our ICMP error about an IPv4 packet, which it quotes up to 576 bytes in all."""
    quoted = Raw(bytes(about)[:576 - 28])
    return IP(src=source, dst=destination, tos=0xC0, ttl=64, id=0, flags="DF") / ICMP(type=kind, **fields) / quoted


def long_packet(flags, length, ttl=64):
    """From the server to the user, so many bytes."""
    return IP(src=SERVER, dst=UE, id=7, ttl=ttl, flags=flags) / UDP(sport=53, dport=40000) / Raw(bytes(length - 28))


def hops():
    """icmp_error about packets without hops."""
    sent = [("n3", tunnelled(told(user(1), 11, N3_IP, UE, code=0), 0x200, 9))]
    again = "usual_input flow verdict icmp_error"
    case("icmp_error/ttl_expired_up", "The user is told through the tunnel, twice in a second and no more.",
         ("n3", up_frame(user(1)), f"{UP} classify far icmp_error gtpu_encap ethernet_output send:n3", sent),
         ("n3", up_frame(user(1)), f"{again} gtpu_encap ethernet_output send:n3", sent),
         ("n3", up_frame(user(1)), f"{again} drop:ttl_expired", []))
    down = IP(src=SERVER, dst=UE, id=7, ttl=1) / UDP(sport=53, dport=40000) / PAYLOAD
    case("icmp_error/ttl_expired_down", "The server is told.",
         ("n6", Ether(dst=N6, src=ROUTER) / down, f"{DOWN} icmp_error ip_output ethernet_output send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / told(down, 11, N6_IP, SERVER, code=0))]))
    error = IP(src=SERVER, dst=UE, id=7, ttl=1) / ICMP(type=3, code=1) / Raw(bytes(user(9)))
    dropped("icmp_error/about_an_error", "Errors about errors would never end.", "n6", Ether(dst=N6, src=ROUTER) / error,
            f"{CLOSELY_DOWN} icmp_error", "ttl_expired")
    six = user6(1)
    answer = IPv6(src=N3_IP6, dst=UE6, hlim=64) / ICMPv6TimeExceeded(code=0) / Raw(bytes(six))
    case("icmp_error/hop_limit_up", "An IPv6 user is told through the tunnel.",
         ("n3", up6(six), f"{UP6} icmp_error gtpu_encap ethernet_output send:n3",
          [("n3", ours6(GTP_U_Header(teid=0x23B, gtp_type=255) / answer))]))


def lengths():
    """path_mtu, and icmp_error about packets too long."""
    closely = f"{DOWN} path_mtu icmp_error"
    # 1500 bytes, less IPv4, UDP and GTP-U with a PDU session container.
    long = long_packet("DF", 1457)
    frame, out = Ether(dst=N6, src=ROUTER) / long, "ip_output ethernet_output send:n6"
    sent = [("n6", Ether(dst=ROUTER, src=N6) / told(long, 3, N6_IP, SERVER, code=4, nexthopmtu=1456))]
    again = "usual_input flow verdict path_mtu icmp_error"
    case("icmp_error/fragmentation_needed_down", "One byte too many for the tunnel: the server is told what passes, twice.",
         ("n6", frame, f"{closely} {out}", sent), ("n6", frame, f"{again} {out}", sent), ("n6", frame, f"{again} drop:mtu_exceeded", []))
    up = IP(src=UE, dst=SERVER, id=7, flags="DF") / UDP(sport=40000, dport=53) / Raw(bytes(1501 - 28))
    case("icmp_error/fragmentation_needed_up", "One byte too many for N6: the user is told.",
         ("n3", up_frame(up), f"{UP} classify far path_mtu icmp_error gtpu_encap ethernet_output send:n3",
          [("n3", tunnelled(told(up, 3, N3_IP, UE, code=4, nexthopmtu=1500), 0x200, 9))]))
    # 1500 bytes, less IPv6, UDP and GTP-U.
    six = user6(64, Raw(bytes(1445 - 48)), source=SERVER6, destination=UE6)
    answer = IPv6(src=N6_IP6, dst=SERVER6, hlim=64) / ICMPv6PacketTooBig(mtu=1444) / Raw(bytes(six)[:1280 - 48])
    case("icmp_error/packet_too_big", "Of IPv6 nothing is split on the way.",
         ("n6", Ether(dst=N6, src=ROUTER) / six, f"{DOWN6} path_mtu icmp_error ip_output ethernet_output send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / answer)]))
    fits = long_packet("DF", 1456)
    case("gtpu_encap/just_fits", "The longest packet that fits into the tunnel.",
         ("n6", Ether(dst=N6, src=ROUTER) / fits, f"{DOWN} gtpu_encap ethernet_output send:n3",
          [("n3", tunnelled(routed(fits), 0x200, 9))]))
    whole = long_packet(0, 1457)
    payload = bytes(whole[UDP])
    parts = [IP(src=SERVER, dst=UE, id=7, ttl=63, proto=17, flags=flags, frag=start // 8) / Raw(payload[start:end])
             for flags, start, end in [("MF", 0, 1432), (0, 1432, len(payload))]]
    case("path_mtu/split", "One byte too many, and the sender has nothing against splitting.",
         ("n6", Ether(dst=N6, src=ROUTER) / whole, f"{DOWN} path_mtu split", [("n3", tunnelled(part, 0x200, 9)) for part in parts]))


def copies():
    """Packets that a FAR has copied."""
    copied = "10.60.0.70"
    packet = user(64, copied)
    outer = IP(src=N6_IP, dst=ROUTER_IP, ttl=64, flags="DF", id=0) / UDP(sport=2152, dport=2152, chksum=0)
    copy = Ether(dst=ROUTER, src=N6) / outer / GTP_U_Header(teid=0x999, gtp_type=255) / packet
    case("far/duplicate_up", "The copy is of the packet as it came, and leaves first.",
         ("n3", up_frame(packet, 0x145, None), f"{UP} classify far duplicate",
          [("n6", copy), ("n6", Ether(dst=ROUTER, src=N6) / routed(packet))]))
    down = IP(src=SERVER, dst=copied, id=7) / UDP(sport=53, dport=40000) / PAYLOAD
    marked = down.copy()
    marked.tos = 10 << 2
    case("far/duplicate_down", "The copy is marked as its own parameters say, and takes a hop as what is routed.",
         ("n6", Ether(dst=N6, src=ROUTER) / down, f"{DOWN} duplicate",
          [("n3", tunnelled(routed(down), 0x245, None)), ("n6", Ether(dst=ROUTER, src=N6) / routed(marked))]))


def segments():
    """TCP connections agree on segments that fit: 1500 bytes, less the longest tunnel's 64, less IP and TCP."""
    def syn(mss, flags, ip):
        return ip / TCP(sport=40000, dport=443, flags=flags, options=[("NOP", None), ("MSS", mss), ("SAckOK", b"")])

    up, down = IP(src=UE, dst=SERVER, id=7), IP(src=SERVER, dst=UE, id=7)
    out = f"{UP} classify far ip_output ethernet_output send:n6"
    for name, mss, flags, left in [("lowered", 1460, "S", 1396), ("low_enough", 1300, "S", 1300), ("no_syn", 1460, "A", 1460)]:
        case(f"far/mss_{name}", "What the user announces is what the server may send.",
             ("n3", up_frame(syn(mss, flags, up)), out, [("n6", Ether(dst=ROUTER, src=N6) / routed(syn(left, flags, up)))]))
    case("far/mss_lowered_down", "What the server announces is what the user may send.",
         ("n6", Ether(dst=N6, src=ROUTER) / syn(1460, "SA", down), f"{DOWN} gtpu_encap ethernet_output send:n3",
          [("n3", tunnelled(routed(syn(1396, "SA", down)), 0x200, 9))]))
    six = IPv6(src=UE6, dst=SERVER6)
    case("far/mss_lowered_ipv6", "The header of IPv6 is longer.",
         ("n3", up6(syn(1440, "S", six)), f"{UP6} ip_output ethernet_output send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / routed6(syn(1376, "S", six)))]))


def fragments():
    """reassembly."""
    node = "usual_input ethernet_input ip4_input reassembly"
    way = "gtpu_input user_input flow session classify far ip_output ethernet_output send:n6"
    out = [("n6", Ether(dst=ROUTER, src=N6) / routed(user(64)))]

    def cut(checksum=None):
        whole = up_frame(user(64))
        whole[UDP].chksum = checksum
        datagram = bytes(Ether(bytes(whole))[UDP])
        def part(start, end, more):
            return (Ether(dst=N3, src=GNB) / IP(src=GNB_IP, dst=N3_IP, id=99, proto=17, flags="MF" if more else 0, frag=start // 8)
                    / Raw(datagram[start:end]))
        return part(0, 48, True), part(48, None, False), part(40, 56, True)

    first, last, overlap = cut()
    case("reassembly/in_order", "A gNB whose path is narrower than ours.",
         ("n3", first, f"{node} gather", []), ("n3", last, f"{node} {way}", out))
    case("reassembly/last_first", "In any order.", ("n3", last, f"{node} gather", []), ("n3", first, f"{node} {way}", out))
    case("reassembly/overlap", "Fragments that overlap are an attack: all of them are forgotten (RFC 5722).",
         ("n3", first, f"{node} gather", []), ("n3", overlap, f"{node} drop:bad_fragment", []),
         ("n3", last, f"{node} gather", []))
    first, last, _ = cut(0x1234)
    case("reassembly/of_two_datagrams", "The checksum tells that they do not belong together.",
         ("n3", first, f"{node} gather", []), ("n3", last, f"{node} drop:udp_checksum", []))
    datagram = bytes(up6(user6(64))[UDP])
    node = f"{INPUT} reassembly"

    def part6(start, end, more):
        return (Ether(dst=N3, src=GNB) / IPv6(src=GNB_IP6, dst=N3_IP6) / IPv6ExtHdrFragment(offset=start // 8, m=more, id=9, nh=17)
                / Raw(datagram[start:end]))

    case("reassembly/over_ipv6", "As over IPv4.", ("n3", part6(0, 48, 1), f"{node} gather", []),
         ("n3", part6(48, None, 0), f"{node} {way}", [("n6", Ether(dst=ROUTER, src=N6) / routed6(user6(64)))]))


def marks():
    """DSCP and reflective QoS."""
    marked = "10.60.0.80"
    up = user(64, marked)
    up.tos = 0x03
    out = routed(up)
    out.tos = 46 << 2 | 3
    case("ip_output/marked", "The FAR's DSCP; ECN stays the ends' own.",
         ("n3", up_frame(up, 0x14F, None), f"{UP} classify far ip_output ethernet_output send:n6", [("n6", Ether(dst=ROUTER, src=N6) / out)]))
    down = IP(src=SERVER, dst=marked, id=7) / UDP(sport=53, dport=40000) / PAYLOAD
    outer = IP(src=N3_IP, dst=GNB_IP, ttl=64, flags="DF", id=0, tos=34 << 2) / UDP(sport=2152, dport=2152, chksum=0)
    header = GTP_U_Header(teid=0x24F, gtp_type=255, E=1, next_ex=0x85) / GTPPDUSessionContainer(type=0, QFI=7, RQI=1)
    case("gtpu_encap/marked_and_reflective", "The outer header is marked, and the user is told to answer alike (RQI).",
         ("n6", Ether(dst=N6, src=ROUTER) / down, f"{DOWN} gtpu_encap ethernet_output send:n3",
          [("n3", Ether(dst=GNB, src=N3) / outer / header / routed(down))]))


def errors():
    """All of them."""
    hops(), lengths(), copies(), segments(), fragments(), marks()
