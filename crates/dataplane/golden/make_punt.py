"""Golden cases of what ports give the kernel. Run by make.py. Here each port has an interface there, and may give it one packet of
each urgency at once."""
from scapy.contrib.isis import ISIS_CommonHdr, ISIS_P2P_Hello
from scapy.contrib.lldp import LLDPDU
from scapy.contrib.ospf import OSPF_Hdr, OSPF_Hello, OSPFv3_Hdr, OSPFv3_Hello
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6MLQuery, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6NDOptDstLLAddr
from scapy.layers.l2 import LLC, Dot3

from make import *
from make6 import INPUT, N6_LINK, ROUTER_IP6, ROUTER_LINK, group

FRAME, IP4 = "usual_input ethernet_input", "usual_input ethernet_input ip4_input"


def punted(name, why, frame, path, port="n6", seen=None):
    """A case that ends in the kernel, which gets the frame as it came."""
    case(f"punt/{name}", why, (port, frame, f"{path} punt punted", [(f"kernel:{port}", seen or frame)]))


def to_us(payload, **ip):
    """A packet of the router for our address on N6."""
    return Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP, **ip) / payload


def to_us6(payload, us=N6_IP6, them=ROUTER_IP6):
    """The same over IPv6."""
    return Ether(dst=N6, src=ROUTER) / IPv6(src=them, dst=us) / payload


def unicast():
    """What is for the port's own addresses."""
    bgp = TCP(sport=40000, dport=179, flags="S")
    punted("bgp", "A neighbour opens BGP.", to_us(bgp, ttl=1), IP4)
    punted("bgp_from_the_radio_side", "A port of N3 has an interface of its own.",
           Ether(dst=N3, src=GNB) / IP(src=GNB_IP, dst=N3_IP) / bgp, IP4, "n3")
    punted("bgp_over_ipv6", "As over IPv4.", to_us6(bgp), INPUT)
    punted("bgp_on_the_link", "Between link-local addresses.", to_us6(bgp, N6_LINK, ROUTER_LINK), INPUT)
    punted("bfd", "UDP that is not GTP-U.", to_us(UDP(sport=49152, dport=3784) / Raw(bytes(24)), ttl=255), f"{IP4} gtpu_input")
    punted("ospf_to_us", "A description of the database goes to one neighbour.", to_us(OSPF_Hdr(type=2) / Raw(bytes(8)), ttl=1), IP4)
    punted("echo_reply", "The kernel has asked.", to_us(ICMP(type=0, id=3) / PAYLOAD), f"{IP4} icmp_echo")
    punted("echo_reply_over_ipv6", "As over IPv4.", to_us6(ICMPv6EchoReply(id=3, data=b"anchorline")), f"{INPUT} icmp6_echo")
    punted("unreachable", "The kernel may have sent what did not arrive.", to_us(ICMP(type=3, code=4) / IP() / UDP()), f"{IP4} icmp_echo")
    punted("fragment", "Of anything but UDP the kernel puts fragments together.", to_us(ICMP() / Raw(bytes(8)), flags="MF"), IP4)
    punted("fragment_over_ipv6", "As over IPv4.", to_us6(IPv6ExtHdrFragment(nh=6, m=1) / Raw(bytes(16))), INPUT)
    punted("unknown_ethertype", "A protocol of some program's own.", Ether(dst=N6, src=ROUTER, type=0x88B5) / Raw(bytes(46)), FRAME)
    padded = to_us(bgp, ttl=1)
    punted("padded", "What stands behind a packet is no part of it.", padded / Raw(b""), IP4)
    tagged = Ether(dst=N6, src=ROUTER) / Dot1Q(vlan=0, prio=6) / padded[IP]
    punted("priority_tag", "The kernel gets no tags.", tagged, IP4, seen=padded)


def fragments():
    """A datagram in fragments is put together first, as nobody knows before what port it is for."""
    whole = to_us(UDP(sport=40000, dport=5000, chksum=0) / Raw(bytes(range(64))), id=9)
    parts = [bytes(whole[UDP])[at:at + 48] for at in (0, 48)]
    first = Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP, id=9, flags="MF", proto=17) / Raw(parts[0])
    last = Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP, id=9, frag=6, proto=17) / Raw(parts[1])
    ours = Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP, id=0, flags="DF", ttl=64, proto=17) / Raw(bytes(whole[UDP]))
    case("punt/fragments_of_udp", "Whole, with a header of ours.", ("n6", first, f"{IP4} reassembly gather", []),
         ("n6", last, f"{IP4} reassembly gtpu_input punt punted", [("kernel:n6", ours)]))


def groups():
    """Routers of a link speak to groups."""
    hello = OSPF_Hdr() / OSPF_Hello()
    punted("ospf", "To all routers of OSPF.", Ether(dst="01:00:5e:00:00:05", src=ROUTER) / IP(src=ROUTER_IP, dst="224.0.0.5", ttl=1) / hello,
           FRAME)
    punted("ospf_version_3", "The same over IPv6.", Ether(dst="33:33:00:00:00:05", src=ROUTER)
           / IPv6(src=ROUTER_LINK, dst="ff02::5", hlim=1) / OSPFv3_Hdr() / OSPFv3_Hello(), INPUT)
    punted("group_query", "Or switches do not lead groups to the kernel.", Ether(dst="33:33:00:00:00:01", src=ROUTER)
           / IPv6(src=ROUTER_LINK, dst="ff02::1", hlim=1) / ICMPv6MLQuery(), f"{INPUT} icmp6_echo")
    punted("lldp", "A switch says who it is.", Ether(dst="01:80:c2:00:00:0e", src=ROUTER, type=0x88CC) / Raw(bytes(46)), FRAME)
    punted("isis", "No EtherType but a length.", Dot3(dst="09:00:2b:00:00:05", src=ROUTER) / LLC(dsap=0xFE, ssap=0xFE, ctrl=3)
           / ISIS_CommonHdr() / ISIS_P2P_Hello(), FRAME)


def paces():
    """What must not be kept from the kernel by others has a pace of its own."""
    ssh, bfd = to_us(TCP(dport=22)), to_us(UDP(sport=49152, dport=3784) / Raw(bytes(24)), ttl=255, tos=0xC0)
    bfd6 = Ether(dst=N6, src=ROUTER) / IPv6(src=ROUTER_IP6, dst=N6_IP6, tc=0xC0) / UDP(sport=49152, dport=3784) / Raw(bytes(24))
    lldp = Ether(dst="01:80:c2:00:00:0e", src=ROUTER, type=0x88CC) / Raw(bytes(46))
    first = ("n6", ssh, f"{IP4} punt punted", [("kernel:n6", ssh)])
    none = ("n6", ssh, f"{IP4} punt drop:punt_rate", [])
    for name, why, frame, path in [("bfd", "By its class, which is that of routing.", bfd, f"{IP4} gtpu_input"),
                                   ("bfd_over_ipv6", "As over IPv4.", bfd6, f"{INPUT} gtpu_input"),
                                   ("lldp", "It has no class.", lldp, FRAME)]:
        case(f"punt/pace_of_{name}", why, first, none, ("n6", frame, f"{path} punt punted", [("kernel:n6", frame)]),
             ("n6", frame, f"{path} punt drop:punt_rate", []))


def neighbours():
    """The kernel looks for its neighbours by itself, and we for ours; both hear the answers."""
    reply = Ether(dst=N6, src=ROUTER) / ARP(op=2, hwsrc=ROUTER, psrc=ROUTER_IP, hwdst=N6, pdst=N6_IP)
    punted("arp_reply", "Heard by us, and by the kernel.", reply, f"{FRAME} arp")
    case("punt/arp_replies", "They have a pace of their own.",
         *[("n6", to_us(TCP(dport=22)), f"{IP4} punt {end}", out) for end, out in
           [("punted", [("kernel:n6", to_us(TCP(dport=22)))]), ("drop:punt_rate", [])]],
         ("n6", reply, f"{FRAME} arp punt punted", [("kernel:n6", reply)]), ("n6", reply, f"{FRAME} arp punt drop:punt_rate", []))
    told = (Ether(dst=N6, src=ROUTER) / IPv6(src=ROUTER_IP6, dst=N6_IP6) / ICMPv6ND_NA(tgt=ROUTER_IP6, R=1, S=1, O=1)
            / ICMPv6NDOptDstLLAddr(lladdr=ROUTER))
    punted("advertisement", "As of ARP.", told, f"{INPUT} ndp")
    asked = Ether(dst="ff:ff:ff:ff:ff:ff", src=ROUTER) / ARP(op=1, hwsrc=ROUTER, psrc=ROUTER_IP, hwdst="00:00:00:00:00:00", pdst=N6_IP)
    answer = Ether(dst=ROUTER, src=N6) / ARP(op=2, hwsrc=N6, psrc=N6_IP, hwdst=ROUTER, pdst=ROUTER_IP)
    case("punt/arp_request", "Answered here; the kernel does not hear it.", ("n6", asked, f"{FRAME} arp send:n6", [("n6", answer)]),
         ("n6", reply, f"{FRAME} arp punt punted", [("kernel:n6", reply)]))


def not_punted():
    """What stays as it is where the kernel has an interface."""
    def stays(name, why, frame, path, reason, port="n6"):
        case(f"punt/not_{name}", why, (port, frame, f"{path} drop:{reason}", []), *witness)

    seen = to_us(TCP(dport=22))
    witness = [("n6", seen, f"{IP4} punt punted", [("kernel:n6", seen)])]
    stays("of_another_station", "A flooded frame.", Ether(dst="02:00:00:00:00:99", src=ROUTER) / IP(src=ROUTER_IP, dst=N6_IP) / TCP(),
          FRAME, "not_our_mac")
    stays("of_another_group", "A stream that some host of the link hears.", Ether(dst="01:00:5e:01:00:05", src=ROUTER)
          / IP(src=ROUTER_IP, dst="239.1.0.5") / UDP() / PAYLOAD, FRAME, "not_our_mac")
    stays("of_a_group_that_is_not_its_stations", "The station's is no group of the link.", Ether(dst="01:00:5e:00:00:05", src=ROUTER)
          / IP(src=ROUTER_IP, dst="239.1.0.5") / UDP() / PAYLOAD, FRAME, "not_our_mac")
    to, mac = group("2001:db8:6::55")
    stays("a_question_for_another", "Stations ask each other.", Ether(dst=mac, src=ROUTER) / IPv6(src=ROUTER_IP6, dst=to)
          / ICMPv6ND_NS(tgt="2001:db8:6::55"), INPUT, "ip_not_for_us")
    stays("a_routers_advertisement", "Routes are configured, the kernel's too.", Ether(dst="33:33:00:00:00:01", src=ROUTER)
          / IPv6(src=ROUTER_LINK, dst="ff02::1", hlim=255) / ICMPv6ND_RA(), f"{INPUT} ndp", "ndp_not_for_us")
    stays("damaged", "A wrong checksum.", damaged(to_us(TCP()), 24, 0xEE), IP4, "ip4_checksum")
    stays("broken_gtpu", "GTP-U is ours, sound or not.", to_us(UDP(sport=2152, dport=2152) / Raw(bytes(8))), f"{IP4} gtpu_input", "gtpu_version")
    stays("a_users", "A user may not talk to the node, nor to its kernel.",
          up_frame(IP(src=UE, dst=N6_IP, id=7) / TCP(dport=22)), f"{UP} classify far", "to_ourselves", "n3")
    stays("for_another_port", "Only the port's own addresses count: what is for N3 comes by N3.",
          Ether(dst=N6, src=ROUTER) / IP(src=ROUTER_IP, dst=N3_IP) / TCP(dport=22), "usual_input flow session", "no_session")
    stays("for_nobody", "An address that no user has is not the node's.", Ether(dst=N3, src=GNB) / IP(src=GNB_IP, dst="10.30.0.77") / TCP(),
          IP4, "ip_not_for_us", "n3")


def cases():
    unicast(), fragments(), groups(), paces(), neighbours(), not_punted()
