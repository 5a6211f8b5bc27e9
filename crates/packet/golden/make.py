#!/usr/bin/env python3
"""Writes the golden files: packets built by scapy, and none of them by our own code.

Run it after adding a case: `python3 crates/packet/golden/make.py` (Debian: python3-scapy). A line is an operation, its
arguments, `=`, and what must come of it; bytes are in hexadecimal. src/golden.rs reads them.
"""
import pathlib
import random

from scapy.contrib.gtp import (GTP_PDCP_PDU_ExtensionHeader, GTP_U_Header, GTP_UDPPort_ExtensionHeader,
                               GTPEchoRequest, GTPEchoResponse, GTPErrorIndication, GTPPDUSessionContainer,
                               IE_GSNAddress, IE_Recovery, IE_TEIDI)
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert, IPOption_RR, fragment
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS,
                                ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptMTU,
                                ICMPv6NDOptPrefixInfo, ICMPv6NDOptRDNSS, ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig,
                                ICMPv6ParamProblem, ICMPv6TimeExceeded, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop, IPv6ExtHdrRouting)
from scapy.layers.ipsec import AH, ESP
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.layers.sctp import SCTP
from scapy.packet import Raw

HERE = pathlib.Path(__file__).parent
UE, SERVER, US, GNB = "10.60.0.1", "203.0.113.80", "10.50.0.2", "10.30.0.1"
UE6, SERVER6, US6, GNB6 = "2001:db8:60::1", "2001:db8:113::80", "2001:db8:50::2", "2001:db8:30::1"
LINK, OTHER_LINK = "fe80::1", "fe80::12:3456"
MAC = "02:00:00:00:03:01"
DICE = random.Random(29281)


def noise(length):
    """Bytes that are the same on every run."""
    return Raw(DICE.randbytes(length))


def text(value):
    """A value as it stands in a line."""
    if isinstance(value, (bytes, bytearray)):
        return value.hex() or "-"
    if hasattr(value, "build"):
        return bytes(value).hex() or "-"
    return "-" if value is None else str(value)


def golden(name, cases):
    """Writes a file of (operation, [arguments], [results])."""
    lines = [" ".join([operation, *map(text, given), "=", *map(text, expected)])
             for operation, given, expected in cases]
    (HERE / f"{name}.golden").write_text("\n".join(lines) + "\n")


def flow(packet, upper, sport=0, dport=0, protocol=17, spi=0, later=False):
    """One flow: addresses, ToS, flow label and length are read from scapy's packet."""
    ip = packet.__class__(bytes(packet))
    old = isinstance(ip, IP)
    given = [ip.src, ip.dst, sport, dport, protocol, spi, ip.tos if old else ip.tc, 0 if old else ip.fl]
    return "flow", [packet], given + [int(later), upper, len(bytes(packet))]


def flows():
    """Flow keys of packets of all sorts."""
    four, six = IP(src=UE, dst=SERVER, tos=0xB9), IPv6(src=UE6, dst=SERVER6, tc=0xB9, fl=0xABCDE)
    udp, tcp = UDP(sport=40000, dport=53) / noise(9), TCP(sport=40001, dport=443) / noise(4)
    options = IP(src=UE, dst=SERVER, options=[IPOption_Router_Alert()]) / udp
    signed = AH(spi=0x5678, seq=1, nh=6, payloadlen=4, icv=bytes(12))
    chain = IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting(addresses=[GNB6]) / IPv6ExtHdrDestOpt()
    golden("flows", [
        flow(four / udp, 20, 40000, 53), flow(four / tcp, 20, 40001, 443, 6), flow(options, 24, 40000, 53),
        flow(four / SCTP(sport=38412, dport=38413), 20, 38412, 38413, 132),
        flow(four / ICMP() / noise(8), 20, protocol=1),
        flow(four / ESP(spi=0x1234, seq=1) / noise(16), 20, protocol=50, spi=0x1234),
        flow(four / signed / tcp, 20, protocol=51, spi=0x5678),
        flow(IP(src=UE, dst=SERVER, flags="MF") / udp, 20, 40000, 53),
        flow(IP(src=UE, dst=SERVER, frag=8, proto=17) / noise(16), 20, later=True),
        flow(six / udp, 40, 40000, 53), flow(six / tcp, 40, 40001, 443, 6),
        flow(six / ICMPv6EchoRequest(id=1), 40, protocol=58), flow(six / chain / udp, 40 + 8 + 24 + 8, 40000, 53),
        flow(six / IPv6ExtHdrFragment(nh=17, offset=0, m=1, id=7) / udp, 48, 40000, 53),
        flow(six / IPv6ExtHdrFragment(nh=17, offset=99, m=0, id=7) / noise(20), 48, later=True),
        flow(IPv6(src=UE6, dst=SERVER6, nh=51) / signed / tcp, 64, 40001, 443, 6, 0x5678),
        flow(six / ESP(spi=0x9ABCDEF0, seq=1) / noise(16), 40, protocol=50, spi=0x9ABCDEF0),
        flow(IPv6(src=UE6, dst=SERVER6, nh=59), 40, protocol=59),
    ])


def container(kind, qfi, reflective=0, policy=None):
    """A PDU session container, last of its chain."""
    if kind == "ul":
        return GTPPDUSessionContainer(type=1, QFI=qfi)
    present = policy is not None
    return GTPPDUSessionContainer(type=0, QFI=qfi, RQI=reflective, PPP=int(present), PPI=policy or 0)


def tunnel(version, tos, teid, session, payload, checksum="computed"):
    """A G-PDU with all its headers. Over IPv4 without UDP checksum and not to be fragmented."""
    header = GTP_U_Header(teid=teid, gtp_type=255)
    words = None
    if session is not None:
        header = GTP_U_Header(teid=teid, gtp_type=255, E=1, next_ex=0x85) / container(*session)
        words = ",".join(str(text(word)) for word in (*session, *(0, None)[len(session) - 2:]))
    port = 2152 if tos else 40123
    udp = {} if checksum == "computed" and version == 6 else {"chksum": 0}
    inside = UDP(sport=port, dport=2152, **udp) / header / payload
    if version == 4:
        outer, ends, label = IP(src=US, dst=GNB, tos=tos, id=0, flags="DF", ttl=64), [US, GNB], 0
    else:
        label = 0x12345
        outer, ends = IPv6(src=US6, dst=GNB6, tc=tos, fl=label, hlim=64), [US6, GNB6]
    given = [*ends, label, checksum, tos, port, hex(teid)[2:], words, bytes(payload)]
    return "tunnel", given, [outer / inside]


def tunnels():
    """Whole outer headers."""
    sessions = [None, ("dl", 9), ("dl", 63, 1), ("dl", 5, 0, 5), ("dl", 5, 1, 7), ("ul", 1)]
    user = IP(src=SERVER, dst=UE, id=7) / UDP(sport=53, dport=40000)
    cases = [tunnel(4, 0xB8, 0x12345678 + n, one, user / noise(n)) for n, one in enumerate(sessions)]
    for length in (0, 1, 2, 7, 64, 1371):
        cases += [tunnel(4, 0, 1, ("dl", 9), noise(length)), tunnel(6, 0, 1, ("dl", 9), noise(length))]
    cases += [tunnel(6, 0x28, 0xFFFFFFFF, one, user / noise(n), how)
              for n, one in enumerate(sessions) for how in ("computed", "zero")]
    golden("tunnels", cases)


def renewed(packet, **values):
    """The packet with other values, all checksums computed anew."""
    other = packet.copy()
    for name, value in values.items():
        setattr(other, name, value)
    for layer in (IP, TCP, UDP):
        if layer in other:
            del other[layer].chksum
    return other.__class__(bytes(other))


def changes():
    """Changes in place."""
    cases = []
    for tos in (0, 1, 0xB8, 0xFF):
        route = IPOption_RR(length=7, routers=["0.0.0.0"])
        before = IP(bytes(IP(src=UE, dst=SERVER, tos=255 - tos, ttl=9, options=[route]) / UDP() / noise(5)))
        cases += [("tos", [tos, before], [renewed(before, tos=tos)]), ("ttl", [before], [renewed(before, ttl=8)])]
        six = IPv6(src=UE6, dst=SERVER6, tc=255 - tos, fl=0xFFFFF, hlim=tos % 250 + 2) / UDP() / noise(5)
        cases += [("class", [tos, six], [renewed(six, tc=tos)]), ("hops", [six], [renewed(six, hlim=tos % 250 + 1)])]
        cases += [("label", [tos, six], [renewed(six, fl=tos)])]
    for before in ([("MSS", 1460)], [("NOP", None), ("MSS", 9000), ("WScale", 7)], [("WScale", 7), ("MSS", 1401)]):
        after = [("MSS", 1400) if kind == "MSS" else (kind, value) for kind, value in before]
        syn, clamped = [bytes(IP(src=UE, dst=SERVER) / TCP(sport=1, dport=2, flags="S", options=options))[20:]
                        for options in (before, after)]
        cases.append(("mss", [1400, syn], [clamped]))
    for length in (0, 1, 2, 33, 1400):
        for outer in (IP(src=UE, dst=SERVER), IPv6(src=UE6, dst=SERVER6)):
            packet = outer / UDP(sport=9, dport=7, chksum=0) / noise(length)
            cases.append(("udp", [packet], [renewed(packet)]))
    frame = Ether(dst=MAC, src="02:00:00:00:06:01") / IP(src=UE, dst=SERVER) / UDP() / noise(4)
    inner = Dot1Q(vlan=100, prio=3, id=1)
    tagged = Ether(dst=MAC, src="02:00:00:00:06:01") / inner / frame.payload
    double = Ether(dst=MAC, src="02:00:00:00:06:01", type=0x88A8) / Dot1AD(vlan=4094, prio=7) / inner / frame.payload
    cases += [("push", ["8100", 100, 3, 1, frame], [tagged]), ("push", ["88a8", 4094, 7, 0, tagged], [double])]
    golden("changes", cases)


def answers():
    """What is sent back to the sender of a packet."""
    plain = IP(src=UE, dst=SERVER, id=5)
    six = IPv6(src=UE6, dst=SERVER6)
    back = IP(src=SERVER, dst=UE, id=0, flags="DF", ttl=64)
    back6 = IPv6(src=SERVER6, dst=UE6, hlim=64)
    cases = []
    for there, here in ((plain, back), (six, back6)):
        syn = TCP(sport=40000, dport=80, flags="S", seq=0xFFFFFFFF)
        data = TCP(sport=40000, dport=80, flags="PA", seq=5, ack=77)
        fin = TCP(sport=40000, dport=80, flags="F", seq=10)
        rst = TCP(sport=80, dport=40000, window=0)
        for segment, sequence, ack, flags in ((syn, 0, 0, "RA"), (data / noise(9), 77, 0, "R"),
                                              (fin / noise(9), 0, 20, "RA")):
            answer = rst.copy()
            answer.seq, answer.ack, answer.flags = sequence, ack, flags
            cases.append(("reset", [there / segment], [here / answer]))
    error = IP(src=US, dst=UE, id=0, flags="DF", ttl=64, tos=0xC0)
    for length in (0, 9, 1400):
        packet = plain / UDP(sport=1, dport=2) / noise(length)
        quoted = Raw(bytes(packet)[:576 - 28])
        # One long packet of each version shows where the quotation ends.
        for kind, code, mtu in ((11, 0, 0), (3, 1, 0), (3, 13, 0), (3, 4, 1400))[: 1 if length > 9 else 4]:
            icmp = ICMP(type=kind, code=code, nexthopmtu=mtu) if code == 4 else ICMP(type=kind, code=code)
            cases.append(("error4", [kind, code, mtu, US, packet], [error / icmp / quoted]))
        packet = six / UDP(sport=1, dport=2) / noise(length)
        quoted = Raw(bytes(packet)[:1280 - 48])
        error6 = IPv6(src=US6, dst=UE6, hlim=64, nh=58)
        for icmp, value in ((ICMPv6TimeExceeded(), 0), (ICMPv6DestUnreach(code=1), 0),
                            (ICMPv6PacketTooBig(mtu=1400), 1400),
                            (ICMPv6ParamProblem(code=1, ptr=6), 6))[: 1 if length > 9 else 4]:
            cases.append(("error6", [icmp.type, icmp.code, value, US6, packet], [error6 / icmp / quoted]))
    for length in (0, 1, 56):
        data = noise(length).load
        cases.append(("ping6", [six / ICMPv6EchoRequest(id=1, seq=length, data=data)],
                      [back6 / ICMPv6EchoReply(id=1, seq=length, data=data)]))
    golden("answers", cases)


def neighbours():
    """Neighbour discovery."""
    def on_link(dst, src=LINK):
        return IPv6(src=src, dst=dst, hlim=255)
    group = "ff02::1:ff12:3456"
    router = ICMPv6ND_RA(chlim=64, prf=0, M=0, O=1, routerlifetime=65535, reachabletime=7, retranstimer=9)
    prefix = ICMPv6NDOptPrefixInfo(prefixlen=64, L=0, A=1, validlifetime=0xFFFFFFFF, preferredlifetime=3600,
                                   prefix="2001:db8:60::")
    dns = ICMPv6NDOptRDNSS(lifetime=600, dns=["2001:db8::53", "2001:db8::54"])
    golden("neighbours", [
        ("rs", [LINK, "ff02::2", MAC], [on_link("ff02::2") / ICMPv6ND_RS() / ICMPv6NDOptSrcLLAddr(lladdr=MAC)]),
        ("rs", ["::", "ff02::2", None], [on_link("ff02::2", "::") / ICMPv6ND_RS()]),
        ("ns", [LINK, group, OTHER_LINK, MAC],
         [on_link(group) / ICMPv6ND_NS(tgt=OTHER_LINK) / ICMPv6NDOptSrcLLAddr(lladdr=MAC)]),
        ("ns", ["::", group, OTHER_LINK, None], [on_link(group, "::") / ICMPv6ND_NS(tgt=OTHER_LINK)]),
        ("na", [LINK, OTHER_LINK, LINK, "rso", MAC],
         [on_link(OTHER_LINK) / ICMPv6ND_NA(tgt=LINK, R=1, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=MAC)]),
        ("na", [LINK, "ff02::1", LINK, "o", MAC],
         [on_link("ff02::1") / ICMPv6ND_NA(tgt=LINK, R=0, S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr=MAC)]),
        ("ra", [LINK, "ff02::1", "bare", None], [on_link("ff02::1") / router]),
        ("ra", [LINK, "ff02::1", "full", MAC],
         [on_link("ff02::1") / router / ICMPv6NDOptSrcLLAddr(lladdr=MAC) / ICMPv6NDOptMTU(mtu=1400) / prefix / dns]),
    ])


def fragments():
    """IPv4 fragments. scapy gives every fragment all options: only one that goes along is used."""
    cases = []
    for length, mtu, options in ((1400, 576, []), (8, 28, []), (9, 28, []), (1000, 100, [IPOption_Router_Alert()])):
        packet = IP(src=UE, dst=SERVER, id=0xBEEF, proto=17, ttl=7, options=options) / noise(length)
        header = 20 + 4 * len(options)
        parts = fragment(IP(bytes(packet)), (mtu - header) // 8 * 8)
        if length > mtu - header:
            cases.append(("split", [mtu, packet], parts))
    golden("fragments", cases)


def messages():
    """GTP-U messages other than plain G-PDUs."""
    def error(address, port, teid):
        elements = GTPErrorIndication(IE_list=[IE_TEIDI(TEIDI=teid), address])
        if port is None:
            return GTP_U_Header(teid=0, gtp_type=26, S=1, seq=0) / elements
        header = GTP_U_Header(teid=0, gtp_type=26, S=1, seq=0, E=1, next_ex=0x40)
        return header / GTP_UDPPort_ExtensionHeader(udp_port=port) / elements
    four, six = IE_GSNAddress(length=4, ipv4_address=GNB), IE_GSNAddress(length=16, ipv6_address=GNB6)
    all_down = GTPPDUSessionContainer(type=0, QMP=1, SNP=1, PPP=1, PPI=6, RQI=1, QFI=9, dlSendTime=1 << 60,
                                      dlQFISeqNum=0x123456)
    all_up = GTPPDUSessionContainer(type=1, QMP=1, SNP=1, dlDelayInd=1, ulDelayInd=1, QFI=9, dlSendTimeRpt=1,
                                    dlRecvTime=2, ulSendTime=3, dlDelayRslt=4, ulDelayRslt=5, UlQFISeqNum=6)
    tunnelled = GTP_U_Header(teid=7, gtp_type=255, E=1, next_ex=0x85)
    payload = IP(src=UE, dst=SERVER) / UDP() / noise(3)
    number = GTP_PDCP_PDU_ExtensionHeader(pdcp_pdu=0x1234, next_ex=0)
    number = GTP_U_Header(teid=7, gtp_type=255, E=1, next_ex=0xC0) / number
    cases = [
        ("echo_request", [0x1234], [GTP_U_Header(teid=0, gtp_type=1, S=1, seq=0x1234) / GTPEchoRequest()]),
        ("echo_response", [0xFFFF], [GTP_U_Header(teid=0, gtp_type=2, S=1, seq=0xFFFF)
                                     / GTPEchoResponse(IE_list=[IE_Recovery(restart_counter=0)])]),
        ("end_marker", [7, None], [GTP_U_Header(teid=7, gtp_type=254)]),
        ("end_marker", [7, "dl,9"], [GTP_U_Header(teid=7, gtp_type=254, E=1, next_ex=0x85) / container("dl", 9)]),
        *(("error", [ip, hex(teid)[2:], port], [error(element, port, teid)])
          for ip, element in ((GNB, four), (GNB6, six))
          for teid, port in ((0xDEAD, None), (0xFFFFFFFF, 40123))),
    ]
    for message, words, header in ((tunnelled / all_down / payload, "dl,9,1,6", 12 + 16),
                                   (tunnelled / all_up / payload, "ul,9,0,-", 12 + 40),
                                   (tunnelled / container("dl", 9, 1, 2) / payload, "dl,9,1,2", 12 + 8),
                                   (number / payload, None, 12 + 4),
                                   (GTP_U_Header(teid=7, gtp_type=255, S=1, seq=9) / payload, None, 12),
                                   (GTP_U_Header(teid=7, gtp_type=255, PN=1, npdu=9) / payload, None, 12)):
        cases.append(("parse", [message], [words, header, len(message)]))
    golden("messages", cases)


if __name__ == "__main__":
    flows(), tunnels(), changes(), answers(), neighbours(), fragments(), messages()
