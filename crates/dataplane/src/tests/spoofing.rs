//! What a user says in another's name, or with addresses nobody has, changes nothing for others.

use super::content::content;
use super::redirect::{down, flow, made, tunnelled, up};
use crate::content::ContentRules;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};
use dplink::{Command, Notice, UsageCounts};
use packet::tcp::{Made, flag};
use packet::{FiveTuple, ipv4, udp};
use rules::{ApplicationId, ApplyAction, Far, FarId, Pdr, PdrId, Rules, Seid, Urr, UrrId};

const VICTIM: u64 = 4;
pub(super) const LIAR: u64 = 5;
const BLOCKED: &str = "id=1 precedence=1 rating-group=1 application=blocked host=.blocked.example";
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: www.blocked.example\r\n\r\n";
const FREE: &[u8] = b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n";

/// The application "blocked" is, on its way up; all else is counted.
fn with_blocked(session: u64) -> Rules {
    let mut rules = rules(session);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    let mut blocked = Pdr { id: PdrId(3), precedence: 10, far: FarId(3), ..rules.pdrs[0].clone() };
    blocked.pdi.application = ApplicationId::new("blocked");
    rules.pdrs.push(blocked);
    rules.fars.push(Far { id: FarId(3), apply_action: ApplyAction::Drop, ..rules.fars[0].clone() });
    rules.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    rules
}

/// Two users with a blocked application.
pub(super) fn bench() -> Bench {
    let mut bench = Bench::over(&config());
    for user in [VICTIM, LIAR] {
        bench.put(user, 1, with_blocked(user));
    }
    bench.settle();
    let rules: ContentRules = content(BLOCKED, 1, &bench);
    bench.engine.load(rules);
    bench.settle();
    bench
}

/// A tunnel of no number is no way to a user: least of all by the flow of a plain packet, which has none.
#[test]
fn nobody_comes_by_tunnel_0() {
    let mut bench = Bench::new();
    let plain = super::rates::downlink(1, 80);
    bench.receive(N6, &plain);
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
    let mut header = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    let inner = &plain[14..];
    let ip = ipv4::Header::new([10, 50, 0, 1].into(), [10, 50, 0, 2].into(), 17, 16 + inner.len()).unwrap();
    header.resize(14 + 28, 0);
    ip.write(&mut header[14..]).unwrap();
    udp::Header::new(2152, 2152, 8 + inner.len()).unwrap().write(&mut header[34..]).unwrap();
    let length = (inner.len() as u16).to_be_bytes();
    let frame = [&header[..], &[0x30, 255], &length, &[0; 4], inner].concat();
    bench.receive(N6, &frame);
    bench.settle();
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (0, 0));
    assert_eq!(bench.worker.counters().drops[DropReason::NoTunnel as usize], 1);
}

/// Packets for everybody, for a group or for this host go nowhere: their sender may be told so.
#[test]
fn no_router_forwards_to_groups_or_to_everybody() {
    for (to, left) in
        [([255; 4], 0), ([224, 0, 0, 251], 0), ([127, 0, 0, 1], 0), ([0; 4], 0), ([203, 0, 113, 81], 1)]
    {
        let mut bench = Bench::over(&config());
        bench.put(VICTIM, 1, rules(VICTIM));
        bench.settle();
        let flow = FiveTuple { destination: u128::from(u32::from_be_bytes(to)) << 96, ..flow(VICTIM) };
        bench.receive(N3, &up(VICTIM, &flow, &made(flag::SYN, (1, 0), &[])));
        bench.settle();
        assert_eq!(bench.sent(N6).len(), left, "{to:?}");
    }
}

/// A segment in the tunnel of a session; how many packets left for the core.
fn say(bench: &mut Bench, (session, flow): (u64, &FiveTuple), segment: &Made<'_>) -> usize {
    bench.receive(N3, &up(session, flow, segment));
    bench.worker.turn(bench.now_ns);
    bench.sent(N6).len()
}

fn used(bench: &mut Bench, session: u64) -> UsageCounts {
    let command = Command::QueryUsage { session: Seid(session), urrs: vec![], token: 7, is_reported: false };
    bench.engine.handle(command).unwrap();
    let told = bench.settle().into_iter().find_map(|notice| match notice {
        Notice::Usage { counts, .. } => counts.first().copied(),
        _ => None,
    });
    told.unwrap()
}

fn drops(bench: &Bench, reason: DropReason) -> u64 {
    bench.worker.counters().drops[reason as usize]
}

#[test]
fn what_somebody_else_s_flow_is_nobody_else_says() {
    let mut bench = bench();
    let flow = flow(VICTIM);
    assert_eq!(say(&mut bench, (LIAR, &flow), &made(flag::SYN, (1, 0), b"")), 0);
    assert_eq!(say(&mut bench, (LIAR, &flow), &made(flag::ACK, (2, 1), GET)), 0);
    assert_eq!(drops(&bench, DropReason::NoPdr), 2);
    assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flag::SYN, (1, 0), b"")), 1);
    assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flag::ACK, (2, 1), FREE)), 1, "it was not blocked");
}

#[test]
fn what_a_user_uses_is_counted_though_somebody_else_spoke_first() {
    let mut bench = bench();
    let flow = flow(VICTIM);
    say(&mut bench, (LIAR, &flow), &made(flag::SYN, (1, 0), b""));
    for segment in [made(flag::SYN, (1, 0), b""), made(flag::ACK, (2, 1), b"")] {
        assert_eq!(say(&mut bench, (VICTIM, &flow), &segment), 1);
    }
    // The flow has said nothing yet: what it used is counted when it is asked for.
    assert_eq!((used(&mut bench, VICTIM).uplink_packets, used(&mut bench, LIAR).uplink_packets), (2, 0));
}

/// Sessions that name no address of the user, as a gateway's on the way to another: flows of the same addresses are two
/// users', and each pays for what is its own.
#[test]
fn flows_of_two_sessions_with_the_same_addresses_are_counted_by_themselves() {
    let mut bench = bench();
    for user in [VICTIM, LIAR] {
        let mut rules = with_blocked(user);
        rules.pdrs.retain(|pdr| pdr.pdi.f_teid.is_some());
        rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv4 = None);
        bench.put(user, 2, rules);
    }
    bench.settle();
    let flow = flow(VICTIM);
    for session in [LIAR, VICTIM, VICTIM] {
        assert_eq!(say(&mut bench, (session, &flow), &made(flag::SYN, (1, 0), b"")), 1);
    }
    assert_eq!((used(&mut bench, LIAR).uplink_packets, used(&mut bench, VICTIM).uplink_packets), (1, 2));
    // The second one says what it is, which is no word about the first.
    assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flag::ACK, (2, 1), GET)), 1);
    assert_eq!(say(&mut bench, (LIAR, &flow), &made(flag::ACK, (2, 1), FREE)), 1);
}

/// Ethernet to GTP-U and a datagram in the tunnel of a session, whoever it says it is from.
pub(super) fn datagram(session: u64, source: [u8; 4], source_port: u16, payload: &[u8]) -> Vec<u8> {
    let mut inner = vec![0; 28];
    ipv4::Header::new(source.into(), [203, 0, 113, 9].into(), 17, 8 + payload.len())
        .unwrap()
        .write(&mut inner)
        .unwrap();
    udp::Header::new(source_port, 7_777, payload.len()).unwrap().write(&mut inner[20..]).unwrap();
    inner.extend(payload);
    tunnelled(session, &inner)
}

#[test]
fn packets_of_nobody_s_addresses_take_no_room_among_flows() {
    let mut bench = bench();
    for number in 0..40 {
        bench.receive(N3, &datagram(LIAR, [10, 77, 0, number], 4_000, b"nothing that is known"));
    }
    bench.settle();
    assert_eq!((bench.worker.flows(), bench.sent(N6).len()), (0, 0));
    assert_eq!(drops(&bench, DropReason::NoPdr), 40);
    bench.receive(N3, &datagram(LIAR, [10, 60, 0, LIAR as u8], 4_000, b"nothing that is known"));
    bench.settle();
    assert_eq!((bench.worker.flows(), bench.sent(N6).len()), (1, 1));
}

/// What the server never takes: a reset and a request with a wrong checksum, and a reset of no number that counts.
#[test]
fn what_the_server_does_not_take_says_nothing_of_a_flow() {
    for (flags, payload, spoiled) in [
        (flag::RST, &b""[..], true),
        (flag::ACK, FREE, true),
        (flag::RST, b"", false),
        (flag::SYN, FREE, true),
    ] {
        let mut bench = bench();
        let flow = flow(VICTIM);
        assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flag::SYN, (1, 0), b"")), 1);
        let mut decoy = up(VICTIM, &flow, &made(flags, (2, 1), payload));
        let checksum = super::redirect::TUNNEL + 20 + 16;
        decoy[checksum] ^= u8::from(spoiled);
        bench.receive(N3, &decoy);
        bench.worker.turn(bench.now_ns);
        assert_eq!(bench.sent(N6).len(), 1);
        assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flag::ACK, (2, 1), GET)), 0, "{flags} {spoiled}");
    }
}

/// The same behind a handshake: what acknowledges nothing, or what the server has not said.
#[test]
fn segments_that_no_server_takes_say_nothing_of_a_flow() {
    for (flags, acknowledged) in [(flag::PSH, 0), (flag::ACK, 1), (flag::ACK, 3), (flag::ACK | flag::RST, 2)]
    {
        let mut bench = bench();
        let flow = flow(VICTIM);
        assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flag::SYN, (1, 0), b"")), 1);
        bench.receive(N6, &down(&flow, &made(flag::SYN | flag::ACK, (1, 2), b"")));
        bench.worker.turn(bench.now_ns);
        assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flags, (2, acknowledged), FREE)), 1);
        let sent = say(&mut bench, (VICTIM, &flow), &made(flag::ACK, (2, 2), GET));
        assert_eq!(sent, 0, "{flags} {acknowledged}");
    }
}

/// The server takes no segment with a timestamp from before the last one it has taken (PAWS, RFC 7323 5.3), if it speaks of any.
#[test]
fn segments_with_old_timestamps_say_nothing_of_a_flow() {
    let stamped = |made: Made<'static>, value, echo| Made { timestamps: Some((value, echo)), ..made };
    for (speaks, value, passes) in [(true, 99, false), (true, 100, true), (false, 99, true)] {
        let mut bench = bench();
        let flow = flow(VICTIM);
        say(&mut bench, (VICTIM, &flow), &stamped(made(flag::SYN, (1, 0), b""), 100, 0));
        let accepts = made(flag::SYN | flag::ACK, (1, 2), b"");
        bench.receive(N6, &down(&flow, &if speaks { stamped(accepts, 7, 100) } else { accepts }));
        bench.worker.turn(bench.now_ns);
        assert_eq!(say(&mut bench, (VICTIM, &flow), &stamped(made(flag::ACK, (2, 2), FREE), value, 7)), 1);
        // In two, so that it counts as the first request alone.
        let (head, rest) = GET.split_at(8);
        say(&mut bench, (VICTIM, &flow), &stamped(made(flag::ACK, (2, 2), head), 101, 7));
        let sent = say(&mut bench, (VICTIM, &flow), &stamped(made(flag::ACK, (10, 2), rest), 101, 7));
        assert_eq!(sent == 1, passes, "{speaks} {value}");
    }
}

/// A datagram with a wrong checksum, and what stands behind one in its packet.
#[test]
fn datagrams_that_no_server_takes_say_nothing_of_a_flow() {
    let stun = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    let text = "id=1 precedence=1 rating-group=1 application=blocked any\n\
                id=2 precedence=0 rating-group=1 application=free layer=stun";
    let whole = datagram(VICTIM, [10, 60, 0, VICTIM as u8], 4_000, &stun);
    let udp = super::redirect::TUNNEL + 20;
    let mut wrong = whole.clone();
    wrong[udp + 7] = 1;
    let mut shorter = whole.clone();
    shorter[udp + 5] = 8 + 7;
    for (decoy, sent) in [(&whole, 1), (&wrong, 0), (&shorter, 0)] {
        let mut bench = bench();
        let rules: ContentRules = content(text, 2, &bench);
        bench.engine.load(rules);
        bench.settle();
        bench.receive(N3, decoy);
        bench.receive(N3, &datagram(VICTIM, [10, 60, 0, VICTIM as u8], 4_000, b"anything else"));
        bench.receive(N3, &whole);
        (0..3).for_each(|_| assert!(bench.worker.turn(bench.now_ns) < 4));
        let _ = bench.sent(N6);
        bench.receive(N3, &datagram(VICTIM, [10, 60, 0, VICTIM as u8], 4_000, b"anything else"));
        bench.worker.turn(bench.now_ns);
        assert_eq!(bench.sent(N6).len(), sent);
    }
}

/// What a SYN carries (RFC 7413) is the beginning of the stream if the server's SYN acknowledges it; most pass it over, and the
/// user says what it wants behind the handshake.
#[test]
fn what_a_syn_carries_counts_if_the_server_takes_it() {
    // What the SYN says, how much of it the server takes, what comes next; whether that passes.
    for (early, taken, next, passes) in [
        (FREE, 0, GET, false),
        (GET, 0, FREE, true),
        (GET, GET.len(), &b"more"[..], false),
        (FREE, FREE.len(), b"more", true),
        (FREE, FREE.len(), GET, false),
        (GET, 5, &GET[5..], false),
    ] {
        let mut bench = bench();
        let flow = flow(VICTIM);
        assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flag::SYN, (u32::MAX, 0), early)), 1);
        let taken = taken as u32;
        bench.receive(N6, &down(&flow, &made(flag::SYN | flag::ACK, (1, taken), b"")));
        bench.worker.turn(bench.now_ns);
        assert_eq!(bench.sent(N3).len(), 1);
        let next = made(flag::ACK, (taken, 2), next);
        let sent = say(&mut bench, (VICTIM, &flow), &next);
        assert_eq!(sent == 1, passes, "{} of {:?}", taken, String::from_utf8_lossy(early));
    }
}

/// A connection that is silent for longer than others are remembered is still what it said it is.
#[test]
fn a_block_holds_over_a_long_silence() {
    let mut bench = bench();
    let (flow, other) = (flow(VICTIM), FiveTuple { source_port: 9, ..flow(VICTIM) });
    for (flow, text) in [(&flow, GET), (&other, FREE)] {
        say(&mut bench, (VICTIM, flow), &made(flag::SYN, (1, 0), b""));
        say(&mut bench, (VICTIM, flow), &made(flag::ACK, (2, 1), text));
    }
    assert_eq!(bench.worker.flows(), 2);
    bench.now_ns += 1_800_000_000_000;
    bench.settle();
    assert_eq!(bench.worker.flows(), 1, "the one of no application is forgotten");
    bench.meet_neighbours();
    let record = &[0x17, 3, 3, 0, 2, 1, 2];
    assert_eq!(say(&mut bench, (VICTIM, &flow), &made(flag::ACK, (2 + GET.len() as u32, 1), record)), 0);
    bench.now_ns += 7_500_000_000_000;
    bench.settle();
    assert_eq!(bench.worker.flows(), 0);
}

/// A control plane that leaves the user's address out of uplink rules means the user's packets.
#[test]
fn a_tunnel_whose_rules_leave_the_address_out_is_nobody_else_s() {
    let mut bench = bench();
    let mut rules = with_blocked(LIAR);
    rules.pdrs.iter_mut().filter(|pdr| pdr.pdi.f_teid.is_some()).for_each(|pdr| pdr.pdi.ue_ipv4 = None);
    bench.put(LIAR, 2, rules);
    bench.settle();
    for (source, sent) in
        [([10, 60, 0, VICTIM as u8], 0), ([203, 0, 113, 7], 0), ([10, 60, 0, LIAR as u8], 1)]
    {
        bench.receive(N3, &datagram(LIAR, source, 4_000, b"hello"));
        bench.worker.turn(bench.now_ns);
        assert_eq!(bench.sent(N6).len(), sent, "{source:?}");
    }
    assert_eq!(drops(&bench, DropReason::NoPdr), 2);
}
