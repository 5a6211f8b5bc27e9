//! An application that is known by its name is reached where the rule for all else lets nothing pass: the handshake goes by the
//! application's rule, and what has a payload waits until it is known what it is.

use super::content::{content, query, used};
use super::drops;
use super::observe::{explain, question};
use super::redirect::{ANSWER, Heard, SERVER_FIRST, USER_FIRST, down, flow, made, pass, up};
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, PORTAL, config, rules};
use dplink::{Outcome, Question};
use packet::FiveTuple;
use packet::tcp::flag;
use rules::{
    ApplicationId, ApplyAction, Far, FarId, Gate, Pdr, PdrId, Qer, QerId, Redirect, Rules, Urr, UrrId, Volume,
};

const RULES: &str = "id=1 precedence=1 rating-group=1 application=free host=free.example\n";
/// The request for it, in two segments: the name is in the second.
const HEAD: [&[u8]; 2] = [b"GET / HTTP/1.1\r\n", b"Host: free.example\r\n\r\n"];
const PAID: &[u8] = b"GET / HTTP/1.1\r\nHost: paid.example\r\n\r\n";
/// Of 4G.
const SESSION: u64 = 2;
/// What is free is counted by the second, all else by the first.
const ALL: UrrId = UrrId(1);
const FREE: UrrId = UrrId(2);

/// What is not free ends like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Else {
    FarDrop,
    GateClosed,
    QuotaUsedUp,
    Portal,
    PortalBeyondQuota,
}

const EACH: [Else; 5] =
    [Else::FarDrop, Else::GateClosed, Else::QuotaUsedUp, Else::Portal, Else::PortalBeyondQuota];

impl Else {
    const fn reason(self) -> DropReason {
        match self {
            Self::FarDrop => DropReason::FarDrop,
            Self::GateClosed => DropReason::GateClosed,
            Self::QuotaUsedUp => DropReason::QuotaExhausted,
            Self::Portal | Self::PortalBeyondQuota => DropReason::Redirected,
        }
    }

    const fn is_answered(self) -> bool {
        matches!(self, Self::Portal | Self::PortalBeyondQuota)
    }
}

/// A rule up and down for what is free, and behind it one each for all else, which lets nothing pass.
fn session(other: Else) -> Rules {
    let mut rules = rules(SESSION);
    let free = |pdr: &Pdr| {
        let mut free =
            Pdr { id: PdrId(pdr.id.0 + 10), precedence: 10, urrs: vec![FREE].into(), ..pdr.clone() };
        free.pdi.application = ApplicationId::new("free");
        free
    };
    let named: Vec<Pdr> = rules.pdrs.iter().map(free).collect();
    for pdr in &mut rules.pdrs {
        (pdr.precedence, pdr.urrs, pdr.far) = (1_000, vec![ALL].into(), FarId(pdr.far.0 + 10));
    }
    let mut fars: Vec<Far> =
        rules.fars.iter().map(|far| Far { id: FarId(far.id.0 + 10), ..far.clone() }).collect();
    let mut all = Urr { id: ALL, ..Urr::default() };
    let quota = Some(Volume { total: Some(0), ..Volume::default() });
    match other {
        Else::FarDrop => fars.iter_mut().for_each(|far| far.apply_action = ApplyAction::Drop),
        Else::Portal => fars.iter_mut().for_each(|far| far.redirect = Redirect::new(PORTAL)),
        Else::GateClosed => {
            let (uplink_gate, downlink_gate) = (Gate::Closed, Gate::Closed);
            let qer = rules.qers[0].clone();
            rules.qers.push(Qer { id: QerId(9), uplink_gate, downlink_gate, ..qer });
            rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = vec![QerId(9)].into());
        }
        Else::QuotaUsedUp => (all.volume_quota, all.quota_grant) = (quota, 1),
        Else::PortalBeyondQuota => {
            (all.volume_quota, all.quota_grant, all.quota_far) = (quota, 1, Some(FarId(30)));
            fars.push(Far { id: FarId(30), redirect: Redirect::new(PORTAL), ..rules.fars[0].clone() });
        }
    }
    rules.pdrs.extend(named);
    rules.fars.extend(fars);
    rules.urrs = vec![all, Urr { id: FREE, ..Urr::default() }];
    rules
}

fn bench(other: Else) -> Bench {
    bench_with(session(other))
}

fn bench_with(rules: Rules) -> Bench {
    let mut bench = Bench::over(&config());
    bench.meet_neighbours();
    bench.put(SESSION, 1, rules);
    bench.settle();
    let content = content(RULES, 7, &bench);
    bench.engine.load(content);
    bench.settle();
    bench
}

fn say(bench: &mut Bench, flow: &FiveTuple, (flags, at, text): (u8, u32, &[u8])) -> (Vec<Heard>, Vec<Heard>) {
    pass(bench, N3, &up(SESSION, flow, &made(flags, (at, SERVER_FIRST), text)))
}

/// Bytes up and down.
fn shake_hands(bench: &mut Bench, flow: &FiveTuple) -> u64 {
    let (user, server) = pass(bench, N3, &up(SESSION, flow, &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    assert_eq!((user.len(), server.len()), (0, 1), "the SYN");
    let accepts = made(flag::SYN | flag::ACK, (SERVER_FIRST - 1, USER_FIRST), b"");
    let (user, server) = pass(bench, N6, &down(flow, &accepts));
    assert_eq!((user.len(), server.len()), (1, 0), "the answer");
    let (user, server) = say(bench, flow, (flag::ACK, USER_FIRST, b""));
    assert_eq!((user.len(), server.len()), (0, 1), "the acknowledgement");
    3 * 40
}

/// Bytes of what is free, and of all else.
fn counted(bench: &mut Bench) -> (u64, u64) {
    // What is told unasked, as a quota is used up, comes before.
    bench.settle();
    let told = used(&query(bench, SESSION as u32 - 1));
    let of = |urr: UrrId| told.get(&urr.0).copied().unwrap_or_default();
    (of(FREE), of(ALL))
}

#[test]
fn what_is_free_by_its_name_is_reached_whatever_stops_all_else() {
    for other in EACH {
        let mut bench = bench(other);
        let flow = flow(SESSION);
        let mut bytes = shake_hands(&mut bench, &flow);
        let [first, second] = HEAD;
        let data = flag::ACK | flag::PSH;
        // The first part says no name, and ends; the second completes it, and the user says the first one again.
        assert_eq!(say(&mut bench, &flow, (data, USER_FIRST, first)), (vec![], vec![]), "{other:?}");
        assert_eq!(drops(&bench, other.reason()), 1, "{other:?}");
        for (at, text) in [(USER_FIRST + first.len() as u32, second), (USER_FIRST, first)] {
            let (user, server) = say(&mut bench, &flow, (data, at, text));
            assert_eq!((user.len(), server.len()), (0, 1), "{other:?}");
            bytes += 40 + text.len() as u64;
        }
        let answer = made(data, (SERVER_FIRST, USER_FIRST), b"HTTP/1.1 204 No Content\r\n\r\n");
        let (user, _) = pass(&mut bench, N6, &down(&flow, &answer));
        bytes += 40 + user[0].4.len() as u64;
        assert_eq!(counted(&mut bench), (bytes, 0), "{other:?}: from the first byte on");
    }
}

/// What is asked about is how a connection begins.
#[test]
fn an_explanation_leads_a_handshake_by_the_application() {
    let asked = |protocol, remote_port| Question {
        protocol,
        ports: Some((41_000, remote_port)),
        ..question([10, 60, 0, SESSION as u8], false)
    };
    for other in EACH {
        let mut bench = bench(other);
        let tcp = explain(&mut bench, asked(packet::protocol::TCP, 80));
        assert_eq!((tcp.pdr, tcp.outcome), (Some(PdrId(11)), Outcome::Sent), "{other:?}");
        let udp = explain(&mut bench, asked(packet::protocol::UDP, 443));
        let reason = other.reason().name().to_owned();
        assert_eq!((udp.pdr, udp.outcome), (Some(PdrId(1)), Outcome::Dropped { reason }), "{other:?}");
    }
}

/// A rule for all else that stands before the application's takes that, too.
#[test]
fn rules_behind_the_one_for_all_else_let_nothing_pass() {
    let mut rules = session(Else::FarDrop);
    rules.pdrs.iter_mut().filter(|pdr| pdr.pdi.application.is_none()).for_each(|pdr| pdr.precedence = 1);
    let mut bench = bench_with(rules);
    let (user, server) = pass(&mut bench, N3, &up(SESSION, &flow(SESSION), &made(flag::SYN, (1, 0), b"")));
    assert_eq!((user.len(), server.len(), drops(&bench, DropReason::FarDrop)), (0, 0, 1));
}

#[test]
fn what_is_not_free_ends_behind_its_handshake() {
    for other in EACH {
        let mut bench = bench(other);
        let flow = flow(SESSION);
        let bytes = shake_hands(&mut bench, &flow);
        let (user, server) = say(&mut bench, &flow, (flag::ACK | flag::PSH, USER_FIRST, PAID));
        let flags = |heard: &[Heard]| heard.iter().map(|heard| heard.0).collect::<Vec<_>>();
        let expected = match other.is_answered() {
            true => (vec![ANSWER], vec![flag::RST | flag::ACK]),
            false => (vec![], vec![]),
        };
        assert_eq!((flags(&user), flags(&server)), expected, "{other:?}");
        // It is known now: not even what has no payload passes.
        let (_, server) = say(&mut bench, &flow, (flag::ACK, USER_FIRST, b""));
        assert!(server.is_empty(), "{other:?}: {server:?}");
        assert_eq!(counted(&mut bench), (0, bytes), "{other:?}: what has passed is counted");
    }
}
