"""Golden cases of IPv6 on the wire: neighbour discovery, echo, tunnels over IPv6. Run by make.py."""
import socket
import struct

from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6MLQuery, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_RS,
                                ICMPv6NDOptDstLLAddr, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr)
from scapy.utils6 import in6_getnsma, in6_getnsmac

from make import *

N3_IP6, GNB_IP6, ROUTER_IP6 = "2001:db8:3::2", "2001:db8:3::1", "2001:db8:6::1"
# Our link-local address on N6, and the router's.
N6_LINK, ROUTER_LINK = "fe80::ff:fe00:602", "fe80::ff:fe00:601"
UE6, SERVER6 = "2001:db8:60::7", "2001:db8:ffff::1"
INPUT = "usual_input ethernet_input ip6_input"
UP6 = f"{INPUT} gtpu_input user_input flow session classify far"
DOWN6 = f"{INPUT} user_input flow session classify far"


def user6(hops, payload=PAYLOAD, source=UE6, destination=SERVER6):
    """A user's packet."""
    return IPv6(src=source, dst=destination, hlim=hops) / UDP(sport=40000, dport=53) / payload


def routed6(packet):
    """A user's packet one hop later."""
    later = packet.copy()
    later.hlim -= 1
    return later


def up6(inner, teid=0x13B, **udp):
    """A frame from the gNB with a user's packet in a tunnel over IPv6."""
    outer = IPv6(src=GNB_IP6, dst=N3_IP6) / UDP(sport=2152, dport=2152, **udp)
    return Ether(dst=N3, src=GNB) / outer / GTP_U_Header(teid=teid, gtp_type=255) / inner


def ours6(message, port=2152):
    """The frame with a GTP-U message of ours over IPv6, with its checksum."""
    outer = IPv6(src=N3_IP6, dst=GNB_IP6, hlim=64) / UDP(sport=2152, dport=port)
    return Ether(dst=GNB, src=N3) / outer / message


def signal6(message, port=2152):
    """A frame from the gNB with a GTP-U message given as bytes."""
    outer = IPv6(src=GNB_IP6, dst=N3_IP6) / UDP(sport=port, dport=2152)
    return Ether(dst=N3, src=GNB) / outer / Raw(message)


def group(address):
    """The solicited-node group of an address, and its Ethernet address."""
    of = in6_getnsma(socket.inet_pton(socket.AF_INET6, address))
    return socket.inet_ntop(socket.AF_INET6, of), in6_getnsmac(of)


def discovery():
    """ndp."""
    node = f"{INPUT} ndp"
    for name, target, asker in [("global", N6_IP6, ROUTER_IP6), ("link_local", N6_LINK, ROUTER_LINK)]:
        to, mac = group(target)
        ask = Ether(dst=mac, src=ROUTER) / IPv6(src=asker, dst=to) / ICMPv6ND_NS(tgt=target) / ICMPv6NDOptSrcLLAddr(lladdr=ROUTER)
        tell = (Ether(dst=ROUTER, src=N6) / IPv6(src=target, dst=asker) / ICMPv6ND_NA(tgt=target, R=1, S=1, O=1)
                / ICMPv6NDOptDstLLAddr(lladdr=N6))
        case(f"ndp/solicitation_of_our_{name}_address", "Who are you?", ("n6", ask, f"{node} send:n6", [("n6", tell)]))
    to, mac = group(N6_IP6)
    unsure = Ether(dst=mac, src=ROUTER) / IPv6(src="::", dst=to) / ICMPv6ND_NS(tgt=N6_IP6)
    taken = (Ether(dst="33:33:00:00:00:01", src=N6) / IPv6(src=N6_IP6, dst="ff02::1") / ICMPv6ND_NA(tgt=N6_IP6, R=1, S=0, O=1)
             / ICMPv6NDOptDstLLAddr(lladdr=N6))
    case("ndp/duplicate_address_detection", "A station that wants to take our address.", ("n6", unsure, f"{node} send:n6", [("n6", taken)]))
    probe = Ether(dst=N6, src=ROUTER) / IPv6(src=ROUTER_IP6, dst=N6_IP6) / ICMPv6ND_NS(tgt=N6_IP6)
    here = (Ether(dst=ROUTER, src=N6) / IPv6(src=N6_IP6, dst=ROUTER_IP6) / ICMPv6ND_NA(tgt=N6_IP6, R=1, S=1, O=1)
            / ICMPv6NDOptDstLLAddr(lladdr=N6))
    case("ndp/probe_without_link_address", "Are you still there?", ("n6", probe, f"{node} ethernet_output send:n6", [("n6", here)]))
    to, mac = group("2001:db8:6::55")
    other = Ether(dst="33:33:00:00:00:01", src=ROUTER) / IPv6(src=ROUTER_IP6, dst="ff02::1") / ICMPv6ND_NS(tgt="2001:db8:6::55")
    dropped("ndp/solicitation_of_another", "Not our address.", "n6", other, node, "ndp_not_for_us")
    for name, said, link, address, reason in [
            ("of_all", "Packets would go to all stations.", "33:33:00:00:00:01", ROUTER_IP6, "ndp_malformed"),
            ("of_our_own", "Packets for the router would come back.", N6, ROUTER_IP6, "ndp_not_for_us"),
            ("of_our_address", "Another station has our address.", ROUTER, N6_IP6, "address_conflict")]:
        told = ICMPv6ND_NA(tgt=address, R=0, S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr=link)
        dropped(f"ndp/{name}", said, "n6",
                Ether(dst="33:33:00:00:00:01", src=ROUTER) / IPv6(src=address, dst="ff02::1", hlim=255) / told, node, reason)
    dropped("ndp/router_solicitation", "We are no host's router by advertisement.", "n6",
            Ether(dst="33:33:00:00:00:02", src=ROUTER) / IPv6(src=ROUTER_LINK, dst="ff02::2") / ICMPv6ND_RS(), node, "ndp_not_for_us")
    far_off = Ether(dst=N6, src=ROUTER) / IPv6(src=ROUTER_IP6, dst=N6_IP6, hlim=254) / ICMPv6ND_NS(tgt=N6_IP6)
    dropped("ndp/from_beyond_the_link", "A router forwarded it.", "n6", far_off, node, "ndp_malformed")
    held()
    moved()


def held():
    """A user's packet to a station that is not known yet."""
    stranger, mac = "2001:db8:6::77", "02:00:00:00:06:77"
    to, to_mac = group(stranger)
    packet = user6(64, destination=stranger)
    ask = Ether(dst=to_mac, src=N6) / IPv6(src=N6_IP6, dst=to) / ICMPv6ND_NS(tgt=stranger) / ICMPv6NDOptSrcLLAddr(lladdr=N6)
    tell = (Ether(dst=N6, src=mac) / IPv6(src=stranger, dst=N6_IP6) / ICMPv6ND_NA(tgt=stranger, R=0, S=1, O=1)
            / ICMPv6NDOptDstLLAddr(lladdr=mac))
    case("ndp/held_until_the_neighbour_answers", "A packet to an unknown station waits for its answer.",
         ("n3", up6(packet), f"{UP6} ip_output ethernet_output hold", [("n6", ask)]),
         ("n6", tell, f"{INPUT} ndp consumed", [("n6", Ether(dst=mac, src=N6) / routed6(packet))]))


def moved():
    """Advertisements nobody asked for."""
    new = "02:00:00:00:06:aa"

    def told(overrides):
        return (Ether(dst="33:33:00:00:00:01", src=new) / IPv6(src=ROUTER_IP6, dst="ff02::1")
                / ICMPv6ND_NA(tgt=ROUTER_IP6, R=1, S=0, O=overrides) / ICMPv6NDOptDstLLAddr(lladdr=new))

    def sent(mac):
        return [("n6", Ether(dst=mac, src=N6) / routed6(user6(64)))]

    second = f"{INPUT} gtpu_input user_input flow verdict send:n6"
    case("ndp/override_moves_a_neighbour", "A standby router takes the address over; without the flag it may not.",
         ("n6", told(0), f"{INPUT} ndp consumed", []),
         ("n3", up6(user6(64)), f"{UP6} ip_output ethernet_output send:n6", sent(ROUTER)),
         ("n6", told(1), f"{INPUT} ndp consumed", []),
         ("n3", up6(user6(64)), second, sent(new)))


def echo():
    """icmp6_echo."""
    node = f"{INPUT} icmp6_echo"
    body = {"id": 3, "seq": 1, "data": b"anchorline"}
    for name, us, them, out in [("ping", N6_IP6, ROUTER_IP6, "ip_output ethernet_output send:n6"),
                                ("ping_on_the_link", N6_LINK, ROUTER_LINK, "ethernet_output")]:
        ask = Ether(dst=N6, src=ROUTER) / IPv6(src=them, dst=us, hlim=9) / ICMPv6EchoRequest(**body)
        tell = Ether(dst=ROUTER, src=N6) / IPv6(src=us, dst=them, hlim=64) / ICMPv6EchoReply(**body)
        if out.endswith("send:n6"):
            case(f"icmp6_echo/{name}", "A ping to our address.", ("n6", ask, f"{node} {out}", [("n6", tell)]))
            continue
        to, mac = group(them)
        seek = Ether(dst=mac, src=N6) / IPv6(src=us, dst=to) / ICMPv6ND_NS(tgt=them) / ICMPv6NDOptSrcLLAddr(lladdr=N6)
        found = (Ether(dst=N6, src=ROUTER) / IPv6(src=them, dst=us) / ICMPv6ND_NA(tgt=them, R=1, S=1, O=1)
                 / ICMPv6NDOptDstLLAddr(lladdr=ROUTER))
        case(f"icmp6_echo/{name}", "A ping to our link-local address: answered on the link it came from.",
             ("n6", ask, f"{node} {out} hold", [("n6", seek)]), ("n6", found, f"{INPUT} ndp consumed", [("n6", tell)]))
    ask = Ether(dst=N6, src=ROUTER) / IPv6(src=ROUTER_IP6, dst=N6_IP6) / ICMPv6EchoRequest(**body)
    dropped("icmp6_echo/damaged", "A flipped bit.", "n6", damaged(ask, 60, 0xEE), node, "icmp_malformed")
    dropped("icmp6_echo/query_of_a_group", "Not a question we answer.", "n6",
            Ether(dst="33:33:00:00:00:01", src=ROUTER) / IPv6(src=ROUTER_LINK, dst="ff02::1", hlim=1) / ICMPv6MLQuery(), node,
            "icmp_not_echo")
    dropped("ip6_input/udp_to_a_group", "Tunnels end at one address.", "n6",
            Ether(dst="33:33:00:00:00:01", src=ROUTER) / IPv6(src=ROUTER_LINK, dst="ff02::1") / UDP(dport=2152), INPUT, "no_listener")
    dropped("ip6_input/from_a_link_local_address", "Not to leave its link.", "n6",
            Ether(dst=N6, src=ROUTER) / IPv6(src=ROUTER_LINK, dst=UE6) / UDP(), INPUT, "ip_not_for_us")
    dropped("ip6_input/to_a_group", "Not a group of ours.", "n6",
            Ether(dst="33:33:00:00:00:fb", src=ROUTER) / IPv6(src=ROUTER_LINK, dst="ff02::fb") / UDP(), INPUT, "ip_not_for_us")


def tunnels():
    """gtpu_input, gtpu_path, gtpu_encap and gtpu_error_indication over IPv6."""
    out = [("n6", Ether(dst=ROUTER, src=N6) / routed6(user6(64)))]
    way = f"{UP6} ip_output ethernet_output send:n6"
    case("gtpu_input/over_ipv6", "An IPv6 user in a tunnel over IPv6.", ("n3", up6(user6(64)), way, out))
    case("gtpu_input/over_ipv6_without_checksum", "Tunnels may do without (TS 29.281 4.4.2.0).", ("n3", up6(user6(64), chksum=0), way, out))
    node = f"{INPUT} gtpu_input"
    dropped("gtpu_input/over_ipv6_wrong_checksum", "A damaged datagram.", "n3", up6(user6(64), chksum=0x1234), node, "udp_checksum")
    down = user6(64, source=SERVER6, destination=UE6)
    case("gtpu_encap/over_ipv6", "With a UDP checksum.",
         ("n6", Ether(dst=N6, src=ROUTER) / down, f"{DOWN6} gtpu_encap ethernet_output send:n3",
          [("n3", ours6(GTP_U_Header(teid=0x23B, gtp_type=255) / routed6(down)))]))
    ask = struct.pack("!BBHIHBB", 0x32, 1, 4, 0, 0x1234, 0, 0)
    tell = struct.pack("!BBHIHBBBB", 0x32, 2, 6, 0, 0x1234, 0, 0, 14, 0)
    case("gtpu_path/echo_over_ipv6", "Answered to the port it came from, with its number.",
         ("n3", signal6(ask, 40001), f"{node} gtpu_path ip_output ethernet_output send:n3", [("n3", ours6(Raw(tell), 40001))]))
    address = struct.pack("!IIII", 0x20010DB8, 0x30000, 0, 2)
    error = struct.pack("!BBHIHBBBIBH16s", 0x32, 26, 28, 0, 0, 0, 0, 16, 0xDEAD, 133, 16, address)
    case("gtpu_error_indication/over_ipv6", "The gNB is told.",
         ("n3", up6(user6(64), 0xDEAD), f"{INPUT} gtpu_input user_input flow session gtpu_error_indication ip_output ethernet_output send:n3",
          [("n3", ours6(Raw(error)))]))
    case("gtpu_path/error_indication_over_ipv6", "Told to the control side.", ("n3", signal6(error), f"{node} gtpu_path consumed", []))


def solicitations():
    """router_solicitation."""
    ask = IPv6(src="fe80::7", dst="ff02::2", hlim=255) / ICMPv6ND_RS()
    way = UP6.removesuffix(" far")
    for name, source, to in [("with_address", "fe80::7", "fe80::7"), ("without_address", "::", "ff02::1")]:
        asked = IPv6(src=source, dst="ff02::2", hlim=255) / ICMPv6ND_RS()
        told = (IPv6(src="fe80::ff:fe00:302", dst=to, hlim=255) / ICMPv6ND_RA(chlim=64, prf=0, routerlifetime=65535) / ICMPv6NDOptMTU(mtu=1444)
                / ICMPv6NDOptPrefixInfo(prefixlen=64, L=0, A=1, validlifetime=0xFFFFFFFF, preferredlifetime=0xFFFFFFFF, prefix="2001:db8:60::"))
        case(f"router_solicitation/{name}", "The user is told its prefix, and what fits into its tunnel.",
             ("n3", up6(asked), f"{way} router_solicitation gtpu_encap ethernet_output send:n3",
              [("n3", ours6(GTP_U_Header(teid=0x23B, gtp_type=255) / told))]))
    far_off = IPv6(src="fe80::7", dst="ff02::2", hlim=254) / ICMPv6ND_RS()
    dropped("router_solicitation/from_beyond_the_link", "A router forwarded it.", "n3", up6(far_off), f"{way} router_solicitation",
            "ndp_malformed")
    for name, destination in [("link_local", "fe80::9"), ("group_of_the_link", "ff02::fb")]:
        dropped(f"far/to_a_{name}", "A link's own traffic does not leave it.", "n3", up6(user6(64, destination=destination)), UP6,
                "ip_not_for_us")
    dropped("classify/solicitation_without_prefix", "A user who has no IPv6.", "n3", up_frame(ask),
            "usual_input ethernet_input ip4_input gtpu_input user_input flow session classify", "no_pdr")


def cases():
    """All of them."""
    discovery(), echo(), tunnels(), solicitations()
