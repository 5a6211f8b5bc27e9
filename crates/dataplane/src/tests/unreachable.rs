//! What users hear of packets that go nowhere (RFC 1812 4.3.3.1, RFC 4443 3.1).

use super::drops;
use super::nowhere::{OF_IPV4, OF_IPV6, USER, packet};
use super::redirect::tunnelled;
use crate::Config;
use crate::config::Limits;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};
use dplink::{Command, Notice};
use packet::protocol;
use rules::{HeaderField, Redirect, Rules, Seid, Urr, UrrId};
use std::net::IpAddr;

/// So few may be those of one user.
const ERRORS: u32 = 3;

/// A user of both versions, who is counted, in a network without a default route.
fn bench(change: impl Fn(&mut Rules)) -> Bench {
    let limits = Limits { icmp_errors_per_s: ERRORS, ..config().limits };
    let mut bench = Bench::over(&Config { routes: vec![], limits, ..config() });
    let mut rules = rules(USER);
    for pdr in &mut rules.pdrs {
        pdr.pdi.ue_ipv6 = Some("2001:db8:60::/64".parse().unwrap());
        pdr.urrs = vec![UrrId(1)].into();
    }
    rules.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    change(&mut rules);
    bench.put(USER, 1, rules);
    assert_eq!(bench.settle().len(), 1);
    bench
}

fn send(bench: &mut Bench, packet: &[u8]) {
    bench.receive(N3, &tunnelled(USER, packet));
    bench.settle();
}

/// The message that the user has, from its type on.
fn message(bench: &mut Bench, length: usize) -> Option<Vec<u8>> {
    let frame = bench.sent(N3).pop()?;
    Some(frame[frame.len() - 8 - length..].to_vec())
}

fn used(bench: &mut Bench) -> (u64, u64) {
    let command = Command::QueryUsage { session: Seid(USER), urrs: vec![], token: 7, is_reported: true };
    bench.engine.handle(command).unwrap();
    let counts = bench.settle().into_iter().find_map(|notice| match notice {
        Notice::Usage { counts, .. } => counts.first().copied(),
        _ => None,
    });
    counts.map(|counts| (counts.uplink_packets, counts.downlink_packets)).unwrap()
}

#[test]
fn a_user_hears_that_no_route_leads_on_and_pays_nothing() {
    let (far4, far6) = ([198, 51, 100, 9].into(), "2001:db8:99::9".parse().unwrap());
    for (from, to, said) in [(OF_IPV4.into(), far4, [3, 0]), (OF_IPV6.into(), far6, [1, 0])] {
        let mut bench = bench(|_| {});
        let sent = packet(protocol::UDP, from, to);
        for turn in 1..=5 {
            send(&mut bench, &sent);
            let heard = message(&mut bench, sent.len());
            // Not more often than others may hear.
            assert_eq!(heard.is_some(), turn <= 3, "{from} {turn}");
            let Some(heard) = heard else { continue };
            assert_eq!((&heard[..2], &heard[4..8]), (&said[..], &[0; 4][..]));
            let ends = if from.is_ipv4() { 12..20 } else { 8..40 };
            assert_eq!(heard[8..][ends.clone()], sent[ends], "what it is about");
            assert_eq!(heard[heard.len() - 8..], sent[sent.len() - 8..]);
        }
        assert_eq!((used(&mut bench), drops(&bench, DropReason::NoRoute)), ((0, 0), 2));
        assert!(bench.worker.books().balanced() && bench.sent(N6).is_empty());
    }
}

/// Stations of N6's own network are there without a route, and errors are not answered by errors.
#[test]
fn nobody_hears_of_what_leaves_or_of_errors() {
    let mut bench = bench(|_| {});
    let near = IpAddr::from([10, 50, 0, 1]);
    send(&mut bench, &packet(protocol::UDP, OF_IPV4.into(), near));
    assert_eq!((bench.sent(N3).len(), bench.sent(N6).len()), (0, 1));
    send(&mut bench, &packet(protocol::ICMP, OF_IPV4.into(), [198, 51, 100, 9].into()));
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::NoRoute)), (0, 1), "of type 3");
}

/// A user who is told a prefix, of a node without any IPv6 of its own.
#[test]
fn who_has_ipv6_that_leads_nowhere_hears_so() {
    let limits = Limits { icmp_errors_per_s: ERRORS, ..config().limits };
    let mut without = Config { routes: vec![], limits, ..config() };
    without.ports.iter_mut().for_each(|port| port.address6 = None);
    let mac = without.ports[0].mac;
    let mut bench = Bench::over(&without);
    let mut rules = rules(USER);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv6 = Some("2001:db8:60::/64".parse().unwrap()));
    bench.put(USER, 1, rules);
    bench.settle();
    let sent = packet(protocol::UDP, OF_IPV6.into(), "2001:db8:99::9".parse().unwrap());
    send(&mut bench, &sent);
    let frame = bench.sent(N3).pop().unwrap();
    let heard = &frame[frame.len() - 8 - sent.len()..];
    assert_eq!((&heard[..2], &heard[16..48]), (&[1, 0][..], &sent[8..40]));
    let source = &frame[frame.len() - 8 - sent.len() - 32..][..16];
    assert_eq!(source, crate::state::link_local(mac).octets());
}

/// Rules that put fields into requests change no other packet.
#[test]
fn a_user_of_enriched_requests_hears_of_packets_that_are_as_he_sent_them() {
    let (far4, far6) = ([198, 51, 100, 9].into(), "2001:db8:99::9".parse().unwrap());
    for (from, to) in [(OF_IPV4.into(), far4), (OF_IPV6.into(), far6)] {
        let mut bench = bench(|rules| rules.fars[0].enrichment = HeaderField::new("X-Field", "value"));
        for carried in [protocol::UDP, protocol::TCP] {
            send(&mut bench, &packet(carried, from, to));
            assert_eq!(bench.sent(N3).len(), 1, "{from} {carried}");
        }
        assert_eq!(drops(&bench, DropReason::NoRoute), 0);
    }
}

/// Whoever is sent to another address without knowing hears nothing of that one.
#[test]
fn a_user_hears_nothing_about_a_packet_that_he_did_not_send_so() {
    let mut bench = bench(|rules| rules.fars[0].redirect = Redirect::new("198.51.100.80"));
    send(&mut bench, &packet(protocol::UDP, OF_IPV4.into(), [198, 51, 100, 9].into()));
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::NoRoute)), (0, 1));
}

/// A host of a network that is attached, which never answers ARP or a solicitation: all that is known after three of them.
#[test]
fn a_user_hears_that_nobody_is_there_and_pays_nothing() {
    let (near4, near6) = ([10, 50, 0, 77].into(), "2001:db8:6::77".parse().unwrap());
    for (from, to, said) in [(OF_IPV4.into(), near4, [3, 1]), (OF_IPV6.into(), near6, [1, 3])] {
        let mut bench = bench(|_| {});
        let sent = packet(protocol::UDP, from, to);
        // Two wait for a neighbour here.
        (0..3).for_each(|_| send(&mut bench, &sent));
        assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::NeighbourUnresolved)), (0, 1));
        bench.now_ns += 3_100_000_000;
        bench.settle();
        let frames = bench.sent(N3);
        assert_eq!((frames.len(), bench.worker.books().held), (2, 0), "{from}");
        for frame in frames {
            let heard = &frame[frame.len() - 8 - sent.len()..];
            assert_eq!((&heard[..2], &heard[heard.len() - 8..]), (&said[..], &sent[sent.len() - 8..]));
        }
        assert_eq!((used(&mut bench), drops(&bench, DropReason::NeighbourUnresolved)), ((0, 0), 1));
        assert!(bench.worker.books().balanced());
    }
}

/// The place of a session that has gone may be another's by then.
#[test]
fn nobody_hears_of_packets_of_a_session_that_has_gone() {
    let mut bench = bench(|_| {});
    send(&mut bench, &packet(protocol::UDP, OF_IPV4.into(), [10, 50, 0, 77].into()));
    bench.engine.handle(Command::Delete { session: Seid(USER) }).unwrap();
    bench.settle();
    bench.put(5, 1, rules(5));
    bench.now_ns += 3_100_000_000;
    bench.settle();
    assert_eq!((bench.sent(N3).len(), drops(&bench, DropReason::NeighbourUnresolved)), (0, 1));
}
