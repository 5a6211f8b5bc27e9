//! Users who are sent to another address: how long that is remembered, of whom and how much. What packets look like, goldens
//! show.

use super::drops;
use super::redirect::{self, made, tunnelled};
use crate::config::{PortConfig, Route};
use crate::counters::DropReason;
use crate::fixture::{Bench, ELSEWHERE, N3, N6, READDRESSED, config, readdressed, rules};
use packet::tcp::{Made, flag};
use packet::{FiveTuple, ipv4, udp};
use proptest::prelude::*;
use rules::{FTeid, FarId, Redirect, Rules, Seid, Teid, Urr, UrrId};
use std::net::Ipv4Addr;

const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
const OTHER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const SECOND_NS: u64 = 1_000_000_000;

fn elsewhere() -> Ipv4Addr {
    ELSEWHERE.parse().unwrap()
}

/// A datagram of nothing, between the user's port and 53 of the other end.
fn datagram(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    let mut packet = vec![0; 28];
    ipv4::Header::new(from.0, to.0, 17, 8).unwrap().write(&mut packet).unwrap();
    udp::Header::new(from.1, to.1, 0).unwrap().write(&mut packet[20..]).unwrap();
    packet
}

fn user(session: u64) -> Ipv4Addr {
    [10, 60, 0, session as u8].into()
}

pub(super) fn up(session: u64, port: u16, to: Ipv4Addr) -> Vec<u8> {
    tunnelled(session, &datagram((user(session), port), (to, 53)))
}

pub(super) fn down(session: u64, port: u16, from: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.extend(datagram((from, 53), (user(session), port)));
    frame
}

/// An address of a user's packet, which is without options, at the end of a frame.
pub(super) fn address(frame: &[u8], at: usize) -> Ipv4Addr {
    let packet = &frame[frame.len() - 28..];
    Ipv4Addr::from_octets(*packet[at..].first_chunk().unwrap())
}

/// Where a packet of the user goes; `None` where it does not.
pub(super) fn sent_to(bench: &mut Bench, session: u64, (port, to): (u16, Ipv4Addr)) -> Option<Ipv4Addr> {
    pass(bench, N3, &up(session, port, to));
    packet_of(bench.sent(N6)).map(|frame| address(&frame, 16))
}

/// Whom the user has a packet from; `None` where it has none.
pub(super) fn heard_from(bench: &mut Bench, session: u64, (port, from): (u16, Ipv4Addr)) -> Option<Ipv4Addr> {
    pass(bench, N6, &down(session, port, from));
    packet_of(bench.sent(N3)).map(|frame| address(&frame, 12))
}

/// Of frames that left: neighbours are asked now and then whether they are there.
fn packet_of(sent: Vec<Vec<u8>>) -> Option<Vec<u8>> {
    sent.into_iter().find(|frame| frame[12..14] == [8, 0])
}

fn pass(bench: &mut Bench, port: usize, frame: &[u8]) {
    bench.receive(port, frame);
    bench.worker.turn(bench.now_ns);
    assert!(bench.worker.books().balanced(), "{:?}", bench.worker.books());
}

/// Neighbours are still there afterwards.
fn pass_time(bench: &mut Bench, seconds: u64) {
    bench.now_ns += seconds * SECOND_NS;
    bench.settle();
    bench.meet_neighbours();
}

fn bench_with(session: u64, rules: Rules) -> Bench {
    let mut bench = Bench::bare();
    bench.put(session, 1, rules);
    bench.settle();
    bench
}

#[test]
fn a_flow_is_known_until_it_has_been_silent_for_five_minutes() {
    let mut bench = bench_with(5, readdressed(5));
    let flow = |port| (port, elsewhere());
    assert_eq!(sent_to(&mut bench, 5, (4_000, SERVER)), Some(elsewhere()));
    pass_time(&mut bench, 299);
    assert_eq!(heard_from(&mut bench, 5, flow(4_000)), Some(SERVER));
    assert_eq!(sent_to(&mut bench, 5, (4_000, OTHER)), None, "it is still the first one's");
    assert_eq!(drops(&bench, DropReason::RedirectTaken), 1);
    pass_time(&mut bench, 301);
    assert_eq!(heard_from(&mut bench, 5, flow(4_000)), Some(elsewhere()), "nobody is known any more");
    assert_eq!(sent_to(&mut bench, 5, (4_000, OTHER)), Some(elsewhere()));
    assert_eq!(heard_from(&mut bench, 5, flow(4_000)), Some(OTHER));
}

#[test]
fn what_has_begun_comes_back_right_when_the_rule_is_taken_away_and_not_to_another_session() {
    let mut bench = bench_with(5, readdressed(5));
    sent_to(&mut bench, 5, (4_000, SERVER));
    bench.put(5, 2, rules(5));
    bench.settle();
    assert_eq!(heard_from(&mut bench, 5, (4_000, elsewhere())), Some(SERVER));
    assert_eq!(sent_to(&mut bench, 5, (4_000, SERVER)), Some(SERVER));
    // One of the same name and address, that knows nothing of it.
    bench.engine.handle(dplink::Command::Delete { session: Seid(5) }).unwrap();
    bench.settle();
    bench.put(5, 1, readdressed(5));
    bench.settle();
    assert_eq!(heard_from(&mut bench, 5, (4_000, elsewhere())), Some(elsewhere()));
}

/// A rule that redirects what goes to the user lets pass what comes from where users are sent, and nothing else.
#[test]
fn what_comes_from_others_is_dropped_where_that_is_redirected_too() {
    let mut both = readdressed(5);
    both.fars[1].redirect = Redirect::new(ELSEWHERE);
    let mut bench = bench_with(5, both);
    assert_eq!(heard_from(&mut bench, 5, (4_000, SERVER)), None);
    assert_eq!(heard_from(&mut bench, 5, (4_000, elsewhere())), None);
    assert_eq!(drops(&bench, DropReason::Redirected), 2);
    sent_to(&mut bench, 5, (4_000, SERVER));
    assert_eq!(heard_from(&mut bench, 5, (4_000, elsewhere())), Some(SERVER));
}

#[test]
fn packets_of_a_version_without_an_address_and_those_to_ourselves_go_nowhere() {
    let mut bench = bench_with(5, rules(5));
    for (number, (to, reason)) in
        (2..).zip([("2001:db8::80", DropReason::Redirected), ("10.50.0.2", DropReason::ToOurselves)])
    {
        let mut rules = rules(5);
        rules.fars[0].redirect = Redirect::new(to);
        bench.put(5, number, rules);
        bench.settle();
        let before = drops(&bench, reason);
        assert_eq!(sent_to(&mut bench, 5, (4_000, SERVER)), None, "{to}");
        assert_eq!(drops(&bench, reason) - before, 1, "{to}");
    }
}

/// What fits is told by the way that is taken: the host may be behind another port than the server.
#[test]
fn a_packet_that_is_too_long_for_its_way_elsewhere_is_told_what_fits() {
    let mut config = config();
    let n9 = PortConfig {
        name: "n9".to_owned(),
        mac: packet::ethernet::MacAddress([2, 0, 0, 0, 9, 2]),
        address: "10.40.0.2/24".parse().unwrap(),
        address6: None,
        mtu: 1_300,
        ..config.ports[N6].clone()
    };
    config.ports.push(n9);
    let (prefix, via) = ("203.0.113.99/32".parse().unwrap(), [10, 40, 0, 1].into());
    config.routes.push(Route { prefix, via, instance: None });
    let mut bench = Bench::over(&config);
    bench.meet(2, [2, 0, 0, 0, 9, 1], Ipv4Addr::new(10, 40, 0, 1));
    bench.put(5, 1, readdressed(5));
    bench.settle();
    let mut long = vec![0; 1_400];
    ipv4::Header::new(user(5), SERVER, 17, 1_380).unwrap().write(&mut long).unwrap();
    udp::Header::new(4_000, 53, 1_372).unwrap().write(&mut long[20..]).unwrap();
    pass(&mut bench, N3, &tunnelled(5, &long));
    assert!(bench.sent(2).is_empty(), "longer than the port takes");
    let told = packet_of(bench.sent(N3)).unwrap();
    let error = &told[told.len() - 576 + 20..];
    assert_eq!((&error[..2], &error[6..8]), (&[3, 4][..], &1_300_u16.to_be_bytes()[..]));
    assert_eq!(error[8 + 16..8 + 20], SERVER.octets(), "as the user sent it");
}

/// Whoever the packets are for, they are the user's, by the PDR that they came by.
#[test]
fn what_goes_elsewhere_is_counted() {
    let mut counted = readdressed(5);
    counted.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    counted.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    assert_eq!(counted.fars[0].id, FarId(1));
    let mut bench = bench_with(5, counted);
    assert!((1..=3).all(|port| sent_to(&mut bench, 5, (port, SERVER)).is_some()));
    heard_from(&mut bench, 5, (1, elsewhere()));
    // One port, two servers: the second one's packet does not leave.
    assert_eq!(sent_to(&mut bench, 5, (1, OTHER)), None);
    let query = dplink::Command::QueryUsage { session: Seid(5), urrs: vec![], token: 1, is_reported: false };
    bench.engine.handle(query).unwrap();
    let told = bench.settle();
    let [dplink::Notice::Usage { counts, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!((counts[0].uplink_bytes, counts[0].downlink_bytes), (3 * 28, 28));
}

/// A user who opens flow after flow loses its own, and in memory of fixed size.
#[test]
fn a_flood_of_redirected_flows_displaces_its_session_s() {
    let mut config = config();
    config.limits.redirections = 16 * 512;
    let mut bench = Bench::over(&config);
    let quiet: Vec<u64> = (4..=18).collect();
    bench.put(30, 1, readdressed(30));
    quiet.iter().for_each(|user| drop(bench.put(*user, 1, readdressed(*user))));
    bench.settle();
    for user in &quiet {
        assert!(sent_to(&mut bench, *user, (9, SERVER)).is_some(), "{user}");
    }
    bench.now_ns += SECOND_NS;
    for port in 1_000..6_000 {
        sent_to(&mut bench, 30, (port, SERVER));
    }
    let known = |bench: &mut Bench, user, port| heard_from(bench, user, (port, elsewhere())) == Some(SERVER);
    let left = (1_000..6_000).filter(|port| known(&mut bench, 30, *port)).count();
    assert!((400..=512).contains(&left), "{left}");
    let losers: Vec<u64> = quiet.into_iter().filter(|user| !known(&mut bench, *user, 9)).collect();
    assert_eq!(losers, [14], "one of 16 groups is its and 30's");
}

/// Where a session's PDRs name no user, packets of any address are its own, and what is known of them ends with it.
#[test]
fn flows_of_whoever_uses_a_session_s_tunnel_end_with_it() {
    let mut open = readdressed(5);
    open.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv4 = None);
    // For packets to the user that come in by the port of the access side.
    open.pdrs[1].pdi.f_teid = Some(FTeid { teid: Teid(0x5000), address: Ipv4Addr::new(10, 30, 0, 2).into() });
    let mut bench = bench_with(5, open.clone());
    let sends = |bench: &mut Bench, to| {
        pass(bench, N3, &tunnelled(5, &datagram((user(9), 4_000), (to, 53))));
        packet_of(bench.sent(N6)).is_some()
    };
    assert!(sends(&mut bench, SERVER));
    assert!(!sends(&mut bench, OTHER), "the flow is one with the first");
    bench.engine.handle(dplink::Command::Delete { session: Seid(5) }).unwrap();
    bench.settle();
    bench.put(5, 1, open);
    bench.settle();
    assert!(sends(&mut bench, OTHER));
}

proptest! {
    /// Whatever a user sends to whom, an answer comes from whom the packet before it on that port was sent to and passed.
    #[test]
    fn an_answer_is_from_whom_was_asked(asked in proptest::collection::vec((1_u16..4, 1_u8..4), 1..40)) {
        let mut bench = bench_with(5, readdressed(5));
        let mut expected = std::collections::BTreeMap::new();
        for (port, server) in asked {
            let server = Ipv4Addr::new(203, 0, 113, server);
            let passed = sent_to(&mut bench, 5, (port, server));
            let owner = *expected.entry(port).or_insert(server);
            prop_assert_eq!(passed, (owner == server).then_some(elsewhere()));
            prop_assert_eq!(heard_from(&mut bench, 5, (port, elsewhere())), Some(owner));
        }
    }
}

/// What would become of packets, said beforehand.
#[test]
fn an_explanation_says_where_a_packet_goes_in_the_place_of_its_destination() {
    let mut bench = Bench::full();
    let ask = |bench: &mut Bench, is_down, remote: Ipv4Addr| {
        let question = dplink::Question {
            is_down,
            ue: user(READDRESSED).into(),
            instance: rules::Instance::DEFAULT,
            remote: remote.into(),
            protocol: 17,
            ports: Some((4_000, 53)),
            traffic_class: 0,
            spi: None,
            flow_label: 0,
            qfi: None,
            teid: None,
            is_verbose: false,
            application: None,
        };
        bench.engine.handle(dplink::Command::Explain { token: 5, question }).unwrap();
        match bench.settle().pop() {
            Some(dplink::Notice::Explanation { explanation, .. }) => *explanation,
            other => panic!("{other:?}"),
        }
    };
    let other_end = |said: dplink::Explanation| match said.action {
        Some(dplink::ExplainedAction::Forward { redirect, .. }) => (redirect, said.outcome),
        other => panic!("{other:?}"),
    };
    let said = ask(&mut bench, false, SERVER);
    assert_eq!(other_end(said), (Some(elsewhere().into()), dplink::Outcome::Sent));
    sent_to(&mut bench, READDRESSED, (4_000, SERVER));
    let taken = dplink::Outcome::Dropped { reason: "redirect_taken".to_owned() };
    assert_eq!(ask(&mut bench, false, OTHER).outcome, taken);
    let said = ask(&mut bench, true, elsewhere());
    assert_eq!(other_end(said), (Some(SERVER.into()), dplink::Outcome::Sent), "who was asked answers");
    let said = ask(&mut bench, true, OTHER);
    assert_eq!(other_end(said), (None, dplink::Outcome::Sent));
}

/// Whom the user has this segment from.
fn segment_from(bench: &mut Bench, flow: &FiveTuple, segment: &Made<'_>) -> Option<Ipv4Addr> {
    pass(bench, N6, &redirect::down(flow, segment));
    packet_of(bench.sent(N3)).map(|frame| {
        let packet = &frame[frame.len() - 40 - segment.payload.len()..];
        Ipv4Addr::from_octets(*packet[12..].first_chunk().unwrap())
    })
}

fn to(server: Ipv4Addr) -> FiveTuple {
    FiveTuple { destination: u128::from(server.to_bits()) << 96, ..redirect::flow(5) }
}

/// One that was sent elsewhere and has been closed by both ends, or none: what comes back from there is of the new one.
#[test]
fn a_connection_that_the_user_begins_with_that_address_itself_is_with_itself() {
    let mut bench = bench_with(5, readdressed(5));
    let syn = |number| made(flag::SYN, (number, 0), b"");
    let accept = |number: u32| made(flag::SYN | flag::ACK, (9_000, number + 1), b"");
    pass(&mut bench, N3, &redirect::up(5, &to(SERVER), &syn(5_000)));
    assert_eq!(segment_from(&mut bench, &to(elsewhere()), &accept(5_000)), Some(SERVER));
    bench.put(5, 2, rules(5));
    bench.settle();
    assert_eq!(
        segment_from(&mut bench, &to(elsewhere()), &made(flag::ACK, (9_001, 5_001), b"")),
        Some(SERVER)
    );
    pass(&mut bench, N3, &redirect::up(5, &to(elsewhere()), &syn(700_000)));
    assert_eq!(segment_from(&mut bench, &to(elsewhere()), &accept(700_000)), Some(elsewhere()));
}

/// Nobody else can end it: what comes in the server's name may be anybody's, and a user may be silent after he has said all.
#[test]
fn a_connection_that_one_end_has_closed_comes_back_right_however_long_the_other_thinks() {
    let ends = [(true, flag::FIN), (false, flag::FIN), (false, flag::RST)];
    for (of_user, end) in ends {
        let mut bench = bench_with(5, readdressed(5));
        pass(&mut bench, N3, &redirect::up(5, &to(SERVER), &made(flag::SYN, (5_000, 0), b"")));
        let closing = made(flag::ACK | end, (5_001, 9_001), b"");
        match of_user {
            true => pass(&mut bench, N3, &redirect::up(5, &to(SERVER), &closing)),
            false => pass(&mut bench, N6, &redirect::down(&to(elsewhere()), &closing)),
        }
        pass_time(&mut bench, 260);
        bench.sent(N3);
        let late = made(flag::ACK, (9_001, 5_002), b"");
        assert_eq!(segment_from(&mut bench, &to(elsewhere()), &late), Some(SERVER), "{of_user} {end}");
        // Both ends, or the user alone with a reset.
        let last = if of_user { made(flag::FIN, (9_001, 5_002), b"") } else { late };
        pass(&mut bench, N6, &redirect::down(&to(elsewhere()), &last));
        if !of_user {
            pass(&mut bench, N3, &redirect::up(5, &to(SERVER), &made(flag::RST, (5_002, 0), b"")));
        }
        pass_time(&mut bench, 260);
        bench.sent(N3);
        assert_eq!(segment_from(&mut bench, &to(elsewhere()), &late), Some(elsewhere()), "{of_user} {end}");
    }
}
