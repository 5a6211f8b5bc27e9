#!/usr/bin/env python3
"""Writes golden files for what the data plane's own do not show: IPv6, marking, tunnels on both sides, filters. All
frames are built by scapy and none by our own code.

Run it after adding a case: `python3 crates/reference/golden/make.py`. The fixture (ports, sessions, neighbours) is
that of src/golden/wide.rs, `wide_setup` and `wide_rules`.
"""
import pathlib
import struct

from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr,
                                ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

HERE = pathlib.Path(__file__).parent

N3, N6, N9 = "02:00:00:00:03:02", "02:00:00:00:06:02", "02:00:00:00:09:02"
GNB, ROUTER, PGW = "02:00:00:00:03:01", "02:00:00:00:06:01", "02:00:00:00:09:01"
N3_4, N3_6, GNB_4, GNB_6 = "10.30.0.2", "fd00:30::2", "10.30.0.1", "fd00:30::1"
N9_4, N9_6, PGW_4, PGW_6 = "10.40.0.2", "fd00:40::2", "10.40.0.1", "fd00:40::1"
N6_6, ROUTER_6 = "fd00:50::2", "fd00:50::1"
UE_4, UE_6, SERVER_4, SERVER_6 = "10.60.0.1", "2001:db8:60:1::77", "203.0.113.80", "2001:db8:ff::80"
PAYLOAD = Raw(b"anchorline golden payload")


def case(name, why, *steps):
    """Writes NAME.golden. A step is (port in, frame in, end, [(port out, frame out)...])."""
    lines = [f"# {why}"]
    for port, frame, end, out in steps:
        lines += [f"in {port} {bytes(frame).hex()}", f"path {end}"]
        lines += [f"out {where} {bytes(what).hex()}" for where, what in out]
    (HERE / f"{name}.golden").write_text("\n".join(lines) + "\n")


def later(packet):
    """A user's packet one hop later."""
    packet = packet.copy()
    if IP in packet:
        packet.ttl -= 1
        del packet.chksum
    else:
        packet.hlim -= 1
    return packet


def g_pdu(teid, inner, container=None):
    """A GTP-U message around a user's packet."""
    if container is None:
        return GTP_U_Header(teid=teid, gtp_type=255) / inner
    return GTP_U_Header(teid=teid, gtp_type=255, E=1, next_ex=0x85) / container / inner


def over_6(source, destination, message, tc=0):
    """An outer header of IPv6, with a UDP checksum."""
    return IPv6(src=source, dst=destination, hlim=64, tc=tc) / UDP(sport=2152, dport=2152) / message


def over_4(source, destination, message, tos=0):
    """An outer header of IPv4, without a UDP checksum."""
    return IP(src=source, dst=destination, ttl=64, flags="DF", id=0, tos=tos) / UDP(sport=2152, dport=2152, chksum=0) / message


def from_gnb(packet):
    return Ether(dst=N3, src=GNB) / packet


def from_router(packet):
    return Ether(dst=N6, src=ROUTER) / packet


def tunnels():
    """Tunnels over IPv6, users of both versions, marking."""
    down = IPv6(src=SERVER_6, dst=UE_6, hlim=60, tc=0x49, fl=0x12345) / TCP(sport=80, dport=40000) / PAYLOAD
    marked = GTPPDUSessionContainer(type=0, QFI=9, RQI=1)
    sent = Ether(dst=GNB, src=N3) / over_6(N3_6, GNB_6, g_pdu(0x200, later(down), marked), tc=46 << 2)
    case("ipv6_user_to_ipv6_tunnel", "A checksum outside, DSCP 46, QFI 9 and RQI; the user's own class stays.",
         ("n6", from_router(down), "send:n3", [("n3", sent)]))
    down = IP(src=SERVER_4, dst=UE_4, ttl=60, id=7) / UDP(sport=53, dport=40000) / PAYLOAD
    sent = Ether(dst=GNB, src=N3) / over_6(N3_6, GNB_6, g_pdu(0x200, later(down), marked), tc=46 << 2)
    case("ipv4_user_to_ipv6_tunnel", "The same tunnel for the user's other address.",
         ("n6", from_router(down), "send:n3", [("n3", sent)]))

    uplink = GTPPDUSessionContainer(type=1, QFI=9)
    up = IPv6(src=UE_6, dst=SERVER_6, hlim=64, tc=0x03) / UDP(sport=40000, dport=53) / PAYLOAD
    left = later(up)
    left.tc = 10 << 2 | 3
    case("ipv6_user_from_ipv6_tunnel", "DSCP 10 on the way out; ECN stays.",
         ("n3", from_gnb(over_6(GNB_6, N3_6, g_pdu(0x100, up, uplink))), "send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / left)]))
    up = IP(src=UE_4, dst=SERVER_4, ttl=64, id=7, tos=0xb9) / UDP(sport=40000, dport=53) / PAYLOAD
    left = later(up)
    left.tos = 10 << 2 | 1
    case("ipv4_user_from_ipv6_tunnel", "DSCP 10 on the way out, with a new header checksum.",
         ("n3", from_gnb(over_6(GNB_6, N3_6, g_pdu(0x100, up, uplink))), "send:n6",
          [("n6", Ether(dst=ROUTER, src=N6) / left)]))
    spoofed = IPv6(src="2001:db8:60:2::77", dst=SERVER_6) / UDP() / PAYLOAD
    case("ipv6_other_prefix", "An address outside the user's prefix.",
         ("n3", from_gnb(over_6(GNB_6, N3_6, g_pdu(0x100, spoofed, uplink))), "drop:no_pdr", []))
    last = IPv6(src=SERVER_6, dst=UE_6, hlim=1) / UDP() / PAYLOAD
    case("ipv6_last_hop", "No hop is left.", ("n6", from_router(last), "drop:ttl_expired", []))
    ours = IPv6(src=UE_6, dst=N6_6) / UDP(dport=2152) / PAYLOAD
    case("ipv6_to_ourselves", "A user may not talk to the node.",
         ("n3", from_gnb(over_6(GNB_6, N3_6, g_pdu(0x100, ours, uplink))), "drop:to_ourselves", []))
    whole = Raw(bytes(1500 - 40 - 8 - 16 - 40 - 8))
    fits = IPv6(src=SERVER_6, dst=UE_6, hlim=64) / UDP(sport=1, dport=2) / whole
    sent = Ether(dst=GNB, src=N3) / over_6(N3_6, GNB_6, g_pdu(0x200, later(fits), marked), tc=46 << 2)
    case("ipv6_tunnel_mtu", "The longest packet that fits, and one byte more.",
         ("n6", from_router(fits), "send:n3", [("n3", sent)]),
         ("n6", from_router(fits / Raw(b"x")), "drop:mtu_exceeded", []))


def relay():
    """From tunnel to tunnel, copies."""
    up = IP(src="10.60.0.2", dst=SERVER_4, ttl=1, id=7) / UDP(sport=1, dport=2) / PAYLOAD
    sent = Ether(dst=PGW, src=N9) / over_6(N9_6, PGW_6, g_pdu(0x300, up, GTPPDUSessionContainer(type=1, QFI=5)))
    case("relay_uplink", "To the next user plane function: an uplink container without RQI, no hop taken.",
         ("n3", from_gnb(over_4(GNB_4, N3_4, g_pdu(0x101, up))), "send:n9", [("n9", sent)]))
    down = IP(src=SERVER_4, dst="10.60.0.2", ttl=1, id=7) / UDP(sport=2, dport=1) / PAYLOAD
    frame = Ether(dst=N9, src=PGW) / over_4(PGW_4, N9_4, g_pdu(0x401, down))
    sent = Ether(dst=GNB, src=N3) / over_4(N3_4, GNB_4, g_pdu(0x201, down))
    copied = Ether(dst=PGW, src=N9) / over_4(N9_4, PGW_4, g_pdu(0x999, down), tos=63 << 2)
    case("relay_downlink_with_copy", "4G: no container; a copy with DSCP 63 into another tunnel.",
         ("n9", frame, "send:n3", [("n3", sent), ("n9", copied)]))


def filters():
    """SDF filters: who is remote depends on the direction; fragments have no ports."""
    def up(inner):
        return from_gnb(over_4(GNB_4, N3_4, g_pdu(0x102, inner)))

    def plain(packet):
        return [("n6", Ether(dst=ROUTER, src=N6) / later(packet))]

    query = IP(src="10.60.0.3", dst=SERVER_4, id=7) / UDP(sport=40000, dport=53) / PAYLOAD
    case("filter_uplink", "To the server's port 53: dropped; from the user's port 53: not.",
         ("n3", up(query), "drop:far_drop", []),
         *[("n3", up(other), "send:n6", plain(other)) for other in (
             IP(src="10.60.0.3", dst=SERVER_4, id=7) / UDP(sport=53, dport=40000) / PAYLOAD,
             IP(src="10.60.0.3", dst=SERVER_4, id=7) / TCP(sport=40000, dport=53) / PAYLOAD,
             IP(src="10.60.0.3", dst="203.0.113.90", id=7) / UDP(sport=40000, dport=53) / PAYLOAD)])
    answer = IP(src=SERVER_4, dst="10.60.0.3", id=7) / UDP(sport=53, dport=40000) / PAYLOAD
    other = IP(src=SERVER_4, dst="10.60.0.3", id=7) / UDP(sport=40000, dport=53) / PAYLOAD
    sent = Ether(dst=GNB, src=N3) / over_4(N3_4, GNB_4, g_pdu(0x202, later(other)))
    case("filter_downlink", "The same filter, by its ID: from the server's port 53 dropped; to the user's not.",
         ("n6", from_router(answer), "drop:far_drop", []), ("n6", from_router(other), "send:n3", [("n3", sent)]))
    first = IP(src="10.60.0.3", dst=SERVER_4, id=7, flags="MF") / UDP(sport=40000, dport=53, len=400) / PAYLOAD
    second = IP(src="10.60.0.3", dst=SERVER_4, id=7, frag=4, proto=17) / Raw(bytes(query[UDP]))
    case("filter_fragments", "The first fragment shows its ports; what looks like ports in the second is not.",
         ("n3", up(first), "drop:far_drop", []), ("n3", up(second), "send:n6", plain(second)))
    six = IPv6(src="2001:db8:60:3::9", dst=SERVER_6) / IPv6ExtHdrDestOpt() / UDP(sport=40000, dport=53) / PAYLOAD
    atomic = IPv6(src="2001:db8:60:3::9", dst=SERVER_6) / IPv6ExtHdrFragment(m=0) / UDP(sport=4, dport=53) / PAYLOAD
    part = IPv6(src="2001:db8:60:3::9", dst=SERVER_6) / IPv6ExtHdrFragment(offset=4, nh=17) / Raw(bytes(query[UDP]))
    case("filter_ipv6", "Behind extension headers, in an atomic fragment, and not in a later one.",
         ("n3", up(six), "drop:far_drop", []), ("n3", up(atomic), "drop:far_drop", []),
         ("n3", up(part), "send:n6", plain(part)))


def signals():
    """GTP-U signalling, pings and Neighbour Discovery over IPv6."""
    echo = struct.pack("!BBHIHBB", 0x32, 1, 4, 0, 0x1234, 0, 0)
    back = struct.pack("!BBHIHBBBB", 0x32, 2, 6, 0, 0x1234, 0, 0, 14, 0)
    ask = from_gnb(IPv6(src=GNB_6, dst=N3_6) / UDP(sport=40001, dport=2152) / Raw(echo))
    tell = Ether(dst=GNB, src=N3) / IPv6(src=N3_6, dst=GNB_6, hlim=64) / UDP(sport=2152, dport=40001) / Raw(back)
    case("echo_over_ipv6", "With a checksum.", ("n3", ask, "send:n3", [("n3", tell)]))
    body = struct.pack("!HBBBIBH", 0, 0, 0, 16, 0xDEAD, 133, 16) + bytes.fromhex("fd000030" + "0" * 22 + "02")
    indication = struct.pack("!BBHI", 0x32, 26, len(body), 0) + body
    lost = from_gnb(over_6(GNB_6, N3_6, g_pdu(0xDEAD, IP() / UDP())))
    told = Ether(dst=GNB, src=N3) / IPv6(src=N3_6, dst=GNB_6, hlim=64) / UDP(sport=2152, dport=2152) / Raw(indication)
    case("error_indication_over_ipv6", "It names our IPv6 address.", ("n3", lost, "send:n3", [("n3", told)]))
    ask = from_router(IPv6(src=ROUTER_6, dst=N6_6, tc=0x20) / ICMPv6EchoRequest(id=3, seq=1, data=b"ping"))
    tell = Ether(dst=ROUTER, src=N6) / IPv6(src=N6_6, dst=ROUTER_6, hlim=64, tc=0x20) / ICMPv6EchoReply(
        id=3, seq=1, data=b"ping")
    case("ping_over_ipv6", "Answered.", ("n6", ask, "send:n6", [("n6", tell)]))
    ask = from_router(IP(src="10.50.0.1", dst="10.50.0.2", id=5) / ICMP(type=8, id=0, seq=0))
    tell = Ether(dst=ROUTER, src=N6) / IP(src="10.50.0.2", dst="10.50.0.1", id=5) / ICMP(type=0, id=0, seq=0)
    case("ping_of_zeros", "All octets of the answer are 0, so its checksum must be ffff.",
         ("n6", ask, "send:n6", [("n6", tell)]))


def neighbours():
    """Neighbour Discovery."""
    group, ours_group = "33:33:ff:00:00:02", "ff02::1:ff00:2"
    ask = Ether(dst=group, src=ROUTER) / IPv6(src=ROUTER_6, dst=ours_group, hlim=255) / ICMPv6ND_NS(
        tgt=N6_6) / ICMPv6NDOptSrcLLAddr(lladdr=ROUTER)
    tell = Ether(dst=ROUTER, src=N6) / IPv6(src=N6_6, dst=ROUTER_6, hlim=255) / ICMPv6ND_NA(
        tgt=N6_6, R=1, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=N6)
    case("solicitation", "Who has our address?", ("n6", ask, "send:n6", [("n6", tell)]))
    probe = Ether(dst=group, src=ROUTER) / IPv6(src="::", dst=ours_group, hlim=255) / ICMPv6ND_NS(tgt=N6_6)
    tell = Ether(dst="33:33:00:00:00:01", src=N6) / IPv6(src=N6_6, dst="ff02::1", hlim=255) / ICMPv6ND_NA(
        tgt=N6_6, R=1, S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr=N6)
    case("solicitation_without_source", "Somebody wants our address for itself: all are told.",
         ("n6", probe, "send:n6", [("n6", tell)]))
    routed = ask.copy()
    routed[IPv6].hlim = 254
    case("solicitation_from_afar", "A router forwarded it.", ("n6", routed, "drop:ndp_malformed", []))
    stranger, mac = "fd00:50::77", "02:00:00:00:06:77"
    up = IPv6(src=UE_6, dst=stranger) / UDP(sport=1, dport=2) / PAYLOAD
    left = later(up)
    left.tc = 10 << 2
    frame = from_gnb(over_6(GNB_6, N3_6, g_pdu(0x100, up, GTPPDUSessionContainer(type=1, QFI=9))))
    ask = Ether(dst="33:33:ff:00:00:77", src=N6) / IPv6(src=N6_6, dst="ff02::1:ff00:77", hlim=255) / ICMPv6ND_NS(
        tgt=stranger) / ICMPv6NDOptSrcLLAddr(lladdr=N6)
    tell = Ether(dst=N6, src=mac) / IPv6(src=stranger, dst=N6_6, hlim=255) / ICMPv6ND_NA(
        tgt=stranger, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=mac)
    case("held_until_the_neighbour_answers", "A packet to an unknown station waits for its answer.",
         ("n3", frame, "hold", [("n6", ask)]),
         ("n6", tell, "consumed", [("n6", Ether(dst=mac, src=N6) / left)]))


if __name__ == "__main__":
    tunnels(), relay(), filters(), signals(), neighbours()
