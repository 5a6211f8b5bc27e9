"""Golden cases of congestion that routers have marked on a tunnel's way (RFC 6040 4.2). Run by make.py."""
from make import *
from make6 import INPUT, routed6, up6, user6

# As figure 4 has them: inside by row, the tunnel's header by column.
NOT_ECT, ECT_0, ECT_1, CE = 0, 2, 1, 3
COLUMNS = [NOT_ECT, ECT_0, ECT_1, CE]
FIGURE_4 = {
    NOT_ECT: [NOT_ECT, NOT_ECT, NOT_ECT, None],
    ECT_0: [ECT_0, ECT_0, ECT_1, CE],
    ECT_1: [ECT_1, ECT_1, ECT_1, CE],
    CE: [CE, CE, CE, CE],
}
CELLS = [(inner, outer, now) for inner, row in FIGURE_4.items() for outer, now in zip(COLUMNS, row)]
# Both headers have a DSCP, which stays what it was.
OUTER, INNER = 46 << 2, 10 << 2
CLOSELY_UP6 = f"{INPUT} gtpu_input user_input"
NEW = "session classify far ip_output ethernet_output"


def v4(ecn):
    """A user's packet."""
    packet = user(64)
    packet.tos = INNER | ecn
    return packet


def v6(ecn):
    """A user's packet."""
    packet = user6(64)
    packet.tc = INNER | ecn
    return packet


def marked(frame, ecn):
    """The frame, whose tunnel's header is marked."""
    outer = frame[Ether].payload
    setattr(outer, "tos" if isinstance(outer, IP) else "tc", OUTER | ecn)
    return frame


def steps(frame, inside, onward, ways):
    """All cells one after the other; of a flow that is known behind the first. Where the marks need no look, the first way."""
    usual, closely = ways
    for number, (inner, outer, now) in enumerate(CELLS):
        way = closely if outer in (ECT_1, CE) else usual
        if now is None:
            drop = f"{way.removesuffix(' user_input')} drop:not_ect"
            yield ("n3", marked(frame(inner), outer), drop, [])
            continue
        end = f"flow {NEW} send:n6" if number == 0 else "flow verdict send:n6"
        yield ("n3", marked(frame(inner), outer), f"{way} {end}", [("n6", Ether(dst=ROUTER, src=N6) / onward(inside(now)))])


def cases():
    """gtpu_input, and reassembly."""
    case("gtpu_input/congestion", "Each cell of RFC 6040's figure 4: row by row what is inside, Not-ECT, ECT(0), ECT(1), CE.",
         *steps(lambda ecn: up_frame(v4(ecn)), v4, routed, ("usual_input", CLOSELY_UP)))
    case("gtpu_input/congestion_over_ipv6", "The same of IPv6 in IPv6.",
         *steps(lambda ecn: up6(v6(ecn)), v6, routed6, (CLOSELY_UP6, CLOSELY_UP6)))
    chained = v4(ECT_0)
    chained.src = UE_CHAINED
    becomes = v4(CE)
    becomes.src = UE_CHAINED
    case("gtpu_input/looped_with_congestion", "What goes from tunnel to tunnel bears the mark itself; our header is Not-ECT.",
         ("n3", marked(up_frame(chained, teid=0x181, qfi=None), CE),
          f"{CLOSELY_UP} flow session classify far gtpu_encap ethernet_output loop:n3",
          [("n6", Ether(dst=ROUTER, src=N6) / routed(becomes))]))
    broken = damaged(marked(up_frame(v4(NOT_ECT)), CE), len(Ether() / IP() / UDP()) + 16 + 8, 65)
    dropped("gtpu_input/congestion_of_no_packet", "What is not sound is dropped as that.", "n3", broken, CLOSELY_UP,
            "user_packet_malformed")

    node = "usual_input ethernet_input ip4_input reassembly"
    datagram = bytes(Ether(bytes(up_frame(v4(ECT_0))))[UDP])

    def part(start, end, ecn):
        flags = 0 if end is None else "MF"
        return (Ether(dst=N3, src=GNB) / IP(src=GNB_IP, dst=N3_IP, id=99, proto=17, flags=flags, frag=start // 8, tos=ecn)
                / Raw(datagram[start:end]))
    out = [("n6", Ether(dst=ROUTER, src=N6) / routed(v4(CE)))]
    case("reassembly/congestion", "One fragment's mark is the datagram's (RFC 3168 5.3).",
         ("n3", part(0, 48, CE), f"{node} gather", []),
         ("n3", part(48, None, ECT_0), f"{node} gtpu_input user_input flow {NEW} send:n6", out),
         ("n3", part(0, 48, CE), f"{node} gather", []),
         ("n3", part(48, None, NOT_ECT), f"{node} drop:not_ect", []))
