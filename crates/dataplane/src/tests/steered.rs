//! Forwarding policies: packets go to the next hop that the policy of their FAR says, whatever the routes say.

use super::drops;
use super::rates::{downlink, uplink};
use crate::config::{Config, ConfigError, PolicyConfig, PortConfig};
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, config, rules};
use dplink::{Command, Desired, Notice, Outcome, Question, RefusalCause, TraceEnd, TraceFilter};
use rules::{ForwardingParameters, OuterHeaderCreation, Policy, Rules, Seid, Teid};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Beside the router that the routes lead to.
const SCRUBBER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 77);
const SCRUBBER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 0x77);
const USER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x65, 0, 0, 0, 0, 9);
const SCRUBBER_MAC: [u8; 6] = [2, 0, 0, 0, 6, 77];

fn policy(name: &str) -> PolicyConfig {
    PolicyConfig { name: name.to_owned(), ..PolicyConfig::default() }
}

fn scrubbing() -> Config {
    let mut config = config();
    config.policies = vec![
        policy("none"),
        PolicyConfig { via: Some(SCRUBBER), ..policy("scrub") },
        PolicyConfig { dscp: Some(46), ..policy("urgent") },
    ];
    config
}

fn bench(config: &Config) -> Bench {
    let mut bench = Bench::over(config);
    bench.meet_neighbours();
    bench.meet(N6, SCRUBBER_MAC, SCRUBBER);
    bench
}

/// What the user sends goes by this policy.
fn by(mut rules: Rules, name: &str) -> Rules {
    rules.fars[0].forwarding.as_mut().unwrap().policy = Some(Policy::of(name.as_bytes()));
    rules
}

fn destinations(frames: &[Vec<u8>]) -> Vec<[u8; 6]> {
    frames.iter().map(|frame| frame[..6].try_into().unwrap()).collect()
}

#[test]
fn packets_go_to_the_next_hop_of_their_policy_and_others_by_the_routes() {
    let mut bench = bench(&scrubbing());
    bench.put(5, 1, by(rules(5), "scrub"));
    bench.put(6, 1, by(rules(6), "none"));
    bench.put(7, 1, rules(7));
    bench.settle();
    // The first of a flow, and the next.
    for _ in 0..2 {
        [5, 6, 7].into_iter().for_each(|user| bench.receive(N3, &uplink(user, 80)));
        bench.settle();
        let sent = destinations(&bench.sent(N6));
        let router = sent[1];
        assert_ne!(router, SCRUBBER_MAC);
        assert_eq!(sent, [SCRUBBER_MAC, router, router]);
    }
    // The way to the user is as ever.
    bench.receive(N6, &downlink(5, 80));
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
    assert!(bench.worker.books().balanced());
}

/// A change takes effect for the next packet of a flow that is known, both ways.
#[test]
fn a_policy_comes_and_goes_with_the_rules() {
    let mut bench = bench(&scrubbing());
    let mut way = |revision, rules| {
        bench.put(5, revision, rules);
        bench.receive(N3, &uplink(5, 80));
        bench.settle();
        destinations(&bench.sent(N6)) == [SCRUBBER_MAC]
    };
    let seen =
        [way(1, rules(5)), way(2, by(rules(5), "scrub")), way(3, by(rules(5), "none")), way(4, rules(5))];
    assert_eq!(seen, [false, true, false, false]);
}

#[test]
fn a_policy_marks_what_the_far_does_not() {
    let mut bench = bench(&scrubbing());
    let mut tos = |revision, dscp| {
        let mut rules = by(rules(5), "urgent");
        rules.fars[0].forwarding.as_mut().unwrap().dscp = dscp;
        bench.put(5, revision, rules);
        bench.receive(N3, &uplink(5, 80));
        bench.settle();
        bench.sent(N6)[0][15]
    };
    assert_eq!([tos(1, None), tos(2, Some(10))], [46 << 2, 10 << 2]);
}

/// From a user of IPv6, in the tunnel of session 5.
fn uplink6() -> Vec<u8> {
    let mut inner = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    inner.extend(USER6.octets());
    inner.extend(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 9).octets());
    inner.extend([0, 7, 0, 7, 0, 8, 0, 0]);
    let ip4 = uplink(5, 80);
    let mut frame = ip4[..14 + 28 + 8].to_vec();
    let length = (8 + 8 + inner.len()) as u16;
    let ip = packet::ipv4::Header::new([10, 30, 0, 1].into(), [10, 30, 0, 2].into(), 17, length.into());
    ip.unwrap().write(&mut frame[14..]).unwrap();
    packet::udp::Header::new(2152, 2152, usize::from(length) - 8).unwrap().write(&mut frame[34..]).unwrap();
    frame[44..46].copy_from_slice(&(inner.len() as u16).to_be_bytes());
    frame.extend(inner);
    frame
}

fn of_ipv6() -> Rules {
    let mut rules = by(rules(5), "scrub");
    for pdr in &mut rules.pdrs {
        (pdr.pdi.ue_ipv4, pdr.pdi.ue_ipv6) = (None, Some("2001:db8:65::/64".parse().unwrap()));
    }
    rules
}

/// A policy that says where IPv4 goes says nothing of IPv6, which must not get past it.
#[test]
fn what_has_no_next_hop_of_its_ip_version_is_dropped() {
    for via6 in [None, Some(SCRUBBER6)] {
        let mut config = scrubbing();
        config.policies[1].via6 = via6;
        let mut bench = bench(&config);
        bench.meet(N6, SCRUBBER_MAC, SCRUBBER6);
        bench.put(5, 1, of_ipv6());
        bench.receive(N3, &uplink6());
        bench.settle();
        let sent = destinations(&bench.sent(N6));
        let expected = if via6.is_some() { (vec![SCRUBBER_MAC], 0) } else { (vec![], 1) };
        assert_eq!((sent, drops(&bench, DropReason::NoPolicyHop)), expected);
        assert!(bench.worker.books().balanced());
    }
}

/// The other end of a tunnel is where the tunnel says.
#[test]
fn into_a_tunnel_packets_go_as_without() {
    let mut bench = bench(&scrubbing());
    let mut rules = by(rules(5), "scrub");
    let into = rules.fars[0].forwarding.as_mut().unwrap();
    into.outer_header_creation = Some(OuterHeaderCreation::gtpu(Teid(9), Ipv4Addr::new(10, 50, 0, 1).into()));
    bench.put(5, 1, rules);
    bench.receive(N3, &uplink(5, 80));
    bench.settle();
    let sent = destinations(&bench.sent(N6));
    assert_eq!((sent.len(), sent.contains(&SCRUBBER_MAC)), (1, false));
}

#[test]
fn copies_have_policies_of_their_own() {
    let mut bench = bench(&scrubbing());
    let mut rules = rules(5);
    let far = &mut rules.fars[0];
    far.duplicating = true;
    far.duplicates =
        vec![ForwardingParameters { policy: Some(Policy::of(b"scrub")), ..far.forwarding.unwrap() }];
    bench.put(5, 1, rules);
    bench.receive(N3, &uplink(5, 80));
    bench.settle();
    let mut sent = destinations(&bench.sent(N6));
    sent.sort_unstable();
    assert_eq!((sent.len(), sent[1]), (2, SCRUBBER_MAC));
}

/// A field is put into requests, and connections are reset at their server, on the same way.
#[test]
fn what_is_done_to_requests_leaves_by_the_policy() {
    let mut bench = bench(&scrubbing());
    let mut rules = by(rules(5), "scrub");
    rules.fars[0].enrichment = rules::HeaderField::new("X-A", "1");
    bench.put(5, 1, rules);
    bench.receive(N3, &uplink(5, 80));
    bench.settle();
    assert_eq!(destinations(&bench.sent(N6)), [SCRUBBER_MAC]);
}

/// The ports of the way count, not those of the side.
#[test]
fn what_is_too_long_is_too_long_for_the_way_of_the_policy() {
    let mut config = scrubbing();
    let other = PortConfig {
        name: "lan".to_owned(),
        interface: rules::Interface::SgiLan,
        address: "10.51.0.2/24".parse().unwrap(),
        address6: None,
        mtu: 40,
        ..config.ports[N6].clone()
    };
    config.ports.push(other);
    let via = Ipv4Addr::new(10, 51, 0, 1);
    config.policies[1].via = Some(via);
    let mut bench = bench(&config);
    bench.meet(2, SCRUBBER_MAC, via);
    bench.put(5, 1, by(rules(5), "scrub"));
    bench.put(6, 1, rules(6));
    [5, 6].into_iter().for_each(|user| bench.receive(N3, &uplink(user, 80)));
    bench.settle();
    assert_eq!((bench.sent(N6).len(), bench.sent(2).iter().all(|frame| frame.len() <= 54)), (1, true));
}

/// The operator has taken it away, and the rules are of before.
#[test]
fn a_session_of_a_policy_that_is_not_there_is_refused() {
    let mut bench = bench(&scrubbing());
    let desired = Desired::new(Seid(5), 1, by(rules(5), "scrubs"));
    let refused = bench.engine.handle(Command::Put(desired)).unwrap();
    let Some(Notice::Refused { cause: RefusalCause::Unfit, reason, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(reason, "there is no forwarding policy of a name that the rules give");
}

#[test]
fn an_explanation_and_a_trace_name_the_policy() {
    let mut bench = bench(&scrubbing());
    bench.put(5, 1, by(rules(5), "scrub"));
    bench.put(6, 1, rules(6));
    bench.settle();
    for (user, policy, hop) in [(5, Some("scrub"), SCRUBBER), (6, None, Ipv4Addr::new(10, 50, 0, 1))] {
        let question = super::observe::question([10, 60, 0, user], false);
        let told = super::observe::explain(&mut bench, question);
        assert_eq!((told.policy.as_deref(), told.outcome), (policy, Outcome::Sent));
        assert_eq!(told.next_hop.unwrap().address, hop);
        let filter = TraceFilter { packets: 1, seconds: 1, port: None, ue: None, teid: None };
        bench.engine.handle(Command::Trace { token: 7, filter }).unwrap();
        bench.settle();
        bench.receive(N3, &uplink(user, 80));
        let notices = bench.settle();
        let Some(Notice::Trace { outcome: Ok(trace), .. }) = notices.first() else { panic!("{notices:?}") };
        assert_eq!(trace.packets[0].policy.as_deref(), policy);
        assert!(matches!(trace.packets[0].end, TraceEnd::Sent { .. }));
    }
    // What would be dropped is told so.
    bench.put(5, 2, of_ipv6());
    bench.settle();
    let question =
        Question { ue: USER6.into(), remote: SCRUBBER6.into(), ..super::observe::question([0; 4], false) };
    let told = super::observe::explain(&mut bench, question);
    assert_eq!(told.outcome, Outcome::Dropped { reason: "no_policy_hop".to_owned() });
}

/// In the access network, on no wire of ours, and the node itself.
#[test]
fn a_next_hop_is_beyond_a_port_of_the_core_side() {
    for via in [[10, 30, 0, 1], [192, 0, 2, 1], [10, 50, 0, 2]] {
        let mut config = config();
        config.policies = vec![PolicyConfig { via: Some(via.into()), ..policy("far") }];
        let wires = vec![crate::fixture::TestPort::default(), crate::fixture::TestPort::default()];
        let refused = crate::connect(&config, wires, || 0).err();
        assert_eq!(refused, Some(ConfigError::UnreachablePolicy("far".to_owned(), IpAddr::from(via))));
    }
}
