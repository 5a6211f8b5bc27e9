//! What a user says in another's name, or with addresses nobody has, changes nothing for others.

use super::content::content;
use super::redirect::{flow, made, tunnelled, up};
use crate::content::ContentRules;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};
use dplink::{Command, Notice, UsageCounts};
use packet::tcp::{Made, flag};
use packet::{FiveTuple, ipv4, udp};
use rules::{ApplicationId, ApplyAction, Far, FarId, Pdr, PdrId, Rules, Seid, Urr, UrrId};

const VICTIM: u64 = 4;
const LIAR: u64 = 5;
const BLOCKED: &str = "id=1 precedence=1 rating-group=1 application=blocked host=.blocked.example";
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: www.blocked.example\r\n\r\n";
const FREE: &[u8] = b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n";

/// The application "blocked" is, on its way up; all else is counted.
fn with_blocked(session: u64) -> Rules {
    let mut rules = rules(session);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)]);
    let mut blocked = Pdr { id: PdrId(3), precedence: 10, far: FarId(3), ..rules.pdrs[0].clone() };
    blocked.pdi.application = ApplicationId::new("blocked");
    rules.pdrs.push(blocked);
    rules.fars.push(Far { id: FarId(3), apply_action: ApplyAction::Drop, ..rules.fars[0].clone() });
    rules.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    rules
}

/// Two users with a blocked application.
fn bench() -> Bench {
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

/// Rules that name no address of the user, as a gateway's on the way to another: flows of the same addresses are two
/// users', and each pays for what is its own.
#[test]
fn flows_of_two_sessions_with_the_same_addresses_are_counted_by_themselves() {
    let mut bench = bench();
    for user in [VICTIM, LIAR] {
        let mut rules = with_blocked(user);
        rules.pdrs.iter_mut().for_each(|pdr| {
            pdr.pdi.ue_ipv4 = pdr.pdi.ue_ipv4.filter(|_| pdr.pdi.f_teid.is_none());
        });
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
fn datagram(session: u64, source: [u8; 4], source_port: u16, payload: &[u8]) -> Vec<u8> {
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
