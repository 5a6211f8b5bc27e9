//! Traces and explanations: what is told is what happens, and nothing else changes.

use super::{drops, to_user};
use crate::counters::DropReason;
use crate::fixture::{ASLEEP, Bench, METERED, N3, N6, READDRESSED, SERVED, rules};
use crate::golden::{file, frames};
use crate::graph::{Hop, NodeId};
use dplink::{
    Command, ExplainedAction, ExplainedApplication, Explanation, Notice, Outcome, Question, Trace, TraceEnd,
    TraceFilter, TracedPacket,
};
use packet::gtpu::message_type;
use rules::*;
use std::net::IpAddr;

pub(super) const ANY: TraceFilter = TraceFilter { packets: 10, seconds: 1, port: None, ue: None, teid: None };

fn arm(bench: &mut Bench, token: u64, filter: TraceFilter) -> Option<Notice> {
    bench.engine.handle(Command::Trace { token, filter }).unwrap()
}

fn traces(notices: Vec<Notice>) -> Vec<(u64, Trace)> {
    let trace = |notice| match notice {
        Notice::Trace { token, outcome } => Some((token, outcome.unwrap())),
        _ => None,
    };
    notices.into_iter().filter_map(trace).collect()
}

/// Traces packets that come in on N6, to the end of the trace.
fn trace(bench: &mut Bench, filter: TraceFilter, frames: &[Vec<u8>]) -> Trace {
    let frames: Vec<_> = frames.iter().map(|frame| (N6, frame.clone())).collect();
    traced(bench, filter, &frames)
}

/// The same of packets that come in on ports.
pub(super) fn traced(bench: &mut Bench, filter: TraceFilter, frames: &[(usize, Vec<u8>)]) -> Trace {
    assert_eq!(arm(bench, 7, filter), None);
    bench.settle();
    frames.iter().for_each(|(port, frame)| bench.receive(*port, frame));
    let mut notices = bench.settle();
    bench.now_ns += 1_000_000_000;
    notices.extend(bench.settle());
    let [(7, trace)] = &traces(notices)[..] else { panic!("one trace of this token") };
    trace.clone()
}

#[test]
fn a_trace_tells_the_nodes_the_rule_and_the_end_of_each_packet() {
    let mut bench = Bench::new();
    let seen = trace(&mut bench, ANY, &[to_user(1), to_user(99), to_user(1)]);
    assert_eq!((seen.packets.len(), seen.looked_at, seen.lasted_ms), (3, 3, 1_000));
    let first = &seen.packets[0];
    assert_eq!(
        first.nodes.join(" "),
        "usual_input flow session classify far gtpu_encap ethernet_output",
        "{first:?}"
    );
    assert_eq!((first.session, first.pdr, first.port.as_str()), (Some(Seid(1)), Some(PdrId(2)), "n6"));
    assert_eq!(first.arrived.ip.unwrap().destination, IpAddr::from([10, 60, 0, 1]));
    let TraceEnd::Sent { port, packet } = &first.end else { panic!("{first:?}") };
    let tunnel = packet.tunnel.unwrap();
    assert_eq!((port.as_str(), tunnel.teid, tunnel.qfi), ("n3", Teid(0x200), Some(9)));
    assert_eq!(seen.packets[1].end, TraceEnd::Dropped { reason: "no_session".to_owned() });
    assert_eq!((seen.packets[1].session, seen.packets[1].pdr), (None, None));
    assert_eq!(bench.sent(N3).len(), 2);
    assert!(bench.worker.books().balanced());
}

#[test]
fn a_trace_names_the_pdr_where_several_lead_to_the_same() {
    let mut bench = Bench::new();
    let mut rules = rules(1);
    let server: ipnet::IpNet = "203.0.113.80/32".parse().unwrap();
    let filter = FlowDescription {
        protocol: Some(packet::protocol::UDP),
        remote: FlowEnd { addresses: Some(server.into()), ports: vec![] },
        user: FlowEnd::default(),
    };
    let filter = SdfFilter { flow: Some(filter), ..SdfFilter::default() };
    let mut narrow = rules.pdrs[1].clone();
    (narrow.id, narrow.precedence) = (PdrId(7), 50);
    narrow.pdi.sdf_filters = vec![filter];
    rules.pdrs.push(narrow);
    assert_eq!(bench.put(1, 2, rules), None);
    bench.settle();
    let mut other = to_user(1);
    let echo = packet::ipv4::Header::new([203, 0, 113, 80].into(), [10, 60, 0, 1].into(), 1, 8).unwrap();
    echo.write(&mut other[14..]).unwrap();
    // New flows, then known ones.
    for is_known in [false, true] {
        let seen = trace(&mut bench, ANY, &[to_user(1), other.clone()]);
        let pdrs: Vec<_> = seen.packets.iter().map(|packet| packet.pdr).collect();
        assert_eq!(pdrs, [7, 2].map(|pdr| Some(PdrId(pdr))));
        let was_known = |packet: &dplink::TracedPacket| packet.nodes.contains(&"verdict".to_owned());
        assert!(seen.packets.iter().all(|packet| was_known(packet) == is_known));
    }
    assert_eq!(bench.sent(N3).len(), 4);
}

#[test]
fn a_trace_holds_what_was_asked_for_and_no_more() {
    let mut bench = Bench::new();
    let sent = [to_user(1), to_user(2), to_user(3)];
    let count = |bench: &mut Bench, filter| trace(bench, filter, &sent).packets.len();
    assert_eq!(count(&mut bench, TraceFilter { packets: 2, ..ANY }), 2);
    assert_eq!(count(&mut bench, TraceFilter { port: Some("n3".to_owned()), ..ANY }), 0);
    assert_eq!(count(&mut bench, TraceFilter { port: Some("n6".to_owned()), ..ANY }), 3);
    let ue = Some(IpAddr::from([10, 60, 0, 2]));
    assert_eq!(count(&mut bench, TraceFilter { ue, ..ANY }), 1);
    // The tunnel the packet leaves in counts, too.
    assert_eq!(count(&mut bench, TraceFilter { teid: Some(Teid(0x201)), ..ANY }), 1);
    assert_eq!(count(&mut bench, TraceFilter { teid: Some(Teid(0x777)), ..ANY }), 0);
}

#[test]
fn a_trace_ends_with_its_last_packet_or_when_nobody_waits_for_it() {
    let mut bench = Bench::new();
    arm(&mut bench, 1, TraceFilter { packets: 1, seconds: 600, ..ANY });
    bench.receive(N6, &to_user(1));
    assert_eq!(traces(bench.settle()).len(), 1, "it was full");
    arm(&mut bench, 2, TraceFilter { seconds: 600, ..ANY });
    bench.settle();
    bench.engine.end_trace(1);
    assert_eq!(bench.settle(), [], "the first is over already");
    bench.engine.end_trace(2);
    assert_eq!(traces(bench.settle()).len(), 1);
    bench.engine.end_trace(2);
    assert_eq!(bench.settle(), []);
}

#[test]
fn what_cannot_be_traced_is_refused_in_a_sentence() {
    let mut bench = Bench::new();
    let refused = |bench: &mut Bench, filter| match arm(bench, 9, filter) {
        Some(Notice::Trace { token: 9, outcome: Err(reason) }) => reason,
        other => panic!("{other:?}"),
    };
    let port = Some("n9".to_owned());
    assert_eq!(refused(&mut bench, TraceFilter { port, ..ANY }), "there is no port n9, only n3, n6");
    assert!(refused(&mut bench, TraceFilter { packets: 1_001, ..ANY }).contains("1 to 1000"));
    assert!(refused(&mut bench, TraceFilter { packets: 0, ..ANY }).contains("1 to 1000"));
    assert!(refused(&mut bench, TraceFilter { seconds: 601, ..ANY }).contains("1 to 600"));
    assert_eq!(arm(&mut bench, 1, ANY), None);
    assert!(refused(&mut bench, ANY).contains("another trace"));
}

/// The way of a packet as the golden tests see it, and as a trace does, of every frame of the goldens; and nobody's, which may be
/// shorter.
#[test]
fn a_trace_agrees_with_the_goldens_hook_and_changes_nothing() {
    let mut traced = 0;
    for (port, frame) in [N3, N6].into_iter().flat_map(|port| frames().iter().map(move |frame| (port, frame)))
    {
        let (mut plain, mut watched, mut alone) = (Bench::full(), Bench::full(), Bench::full());
        let mut hops: Vec<Hop> = Vec::new();
        plain.receive(port, frame);
        plain.worker.turn_traced(plain.now_ns, Some(&mut hops));
        arm(&mut watched, 1, TraceFilter { packets: 1, ..ANY });
        watched.receive(port, frame);
        let seen = traces(watched.settle()).pop().map(|(_, trace)| trace);
        let expected: Vec<&str> = hops.iter().map(|hop: &Hop| NodeId::name(hop.node)).collect();
        alone.receive(port, frame);
        alone.settle();
        let drops = plain.worker.counters().drops;
        let sent = [plain.sent(N3), plain.sent(N6)];
        for mut other in [watched, alone] {
            assert_eq!([other.sent(N3), other.sent(N6)], sent);
            assert_eq!(other.worker.counters().drops, drops);
        }
        // What the port has in pieces enters no graph.
        let Some(packet) = seen.and_then(|trace| trace.packets.into_iter().next()) else { continue };
        assert_eq!(packet.nodes, expected);
        traced += 1;
    }
    assert!(traced > 100, "only {traced} packets were traced");
}

pub(super) fn question(ue: [u8; 4], is_down: bool) -> Question {
    Question {
        is_down,
        ue: ue.into(),
        instance: rules::Instance::DEFAULT,
        remote: [203, 0, 113, 80].into(),
        protocol: 17,
        ports: Some((40_000, 53)),
        traffic_class: 0,
        spi: None,
        flow_label: 0,
        qfi: None,
        teid: None,
        is_verbose: false,
        application: None,
    }
}

pub(super) fn explain(bench: &mut Bench, question: Question) -> Explanation {
    bench.engine.handle(Command::Explain { token: 5, question }).unwrap();
    match bench.settle().pop() {
        Some(Notice::Explanation { token: 5, explanation }) => *explanation,
        other => panic!("{other:?}"),
    }
}

fn dropped(reason: DropReason) -> Outcome {
    Outcome::Dropped { reason: reason.name().to_owned() }
}

#[test]
fn an_explanation_names_session_rule_tunnel_and_next_hop() {
    let mut bench = Bench::new();
    let up = explain(&mut bench, question([10, 60, 0, 1], false));
    assert_eq!((up.session, up.pdr, up.pdrs), (Some(Seid(1)), Some(PdrId(1)), 2));
    // Nobody said which tunnel and QoS flow: those of the session are taken.
    assert_eq!((up.teid, up.qfi), (Some(Teid(0x100)), Qfi::new(9)));
    let hop = up.next_hop.unwrap();
    assert_eq!((hop.port.as_str(), hop.address, hop.is_resolved), ("n6", [10, 50, 0, 1].into(), true));
    assert_eq!(up.outcome, Outcome::Sent);

    let down = explain(&mut bench, question([10, 60, 0, 1], true));
    assert_eq!((down.pdr, down.teid, &down.outcome), (Some(PdrId(2)), None, &Outcome::Sent));
    let Some(ExplainedAction::Forward { to: Interface::Access, tunnel: Some(tunnel), .. }) = down.action
    else {
        panic!("{down:?}")
    };
    assert_eq!((tunnel.header, tunnel.qfi), (OuterHeader::Gtpu(Teid(0x200)), Some(9)));
    assert_eq!(tunnel.ends, Some(([10, 30, 0, 2].into(), [10, 30, 0, 1].into())));
    assert_eq!(bench.sent(N3).len() + bench.sent(N6).len(), 0);
}

/// Of what application a flow is: as the question says, as its first packets said, or not known yet.
#[test]
fn an_explanation_goes_by_the_application() {
    let mut bench = Bench::full();
    let asked = Question {
        protocol: packet::protocol::TCP,
        ports: Some((41_000, 80)),
        ..question([10, 60, 0, SERVED as u8], false)
    };
    let told = |explanation: Explanation| (explanation.application, explanation.pdr, explanation.outcome);
    let unknown = (Some(ExplainedApplication::Unknown), Some(PdrId(1)), Outcome::Sent);
    assert_eq!(told(explain(&mut bench, asked.clone())), unknown);
    let blocked = Question { application: rules::ApplicationId::new("blocked"), ..asked.clone() };
    let expected = (Some(ExplainedApplication::Asked), Some(PdrId(3)), dropped(DropReason::FarDrop));
    assert_eq!(told(explain(&mut bench, blocked)), expected);
    for (name, application) in [
        ("inspect/blocked_once_it_is_known", ExplainedApplication::Known("blocked".to_owned())),
        ("inspect/of_no_application", ExplainedApplication::None),
    ] {
        let mut bench = Bench::full();
        file(name).iter().for_each(|frame| bench.receive(N3, frame));
        bench.settle();
        assert_eq!(explain(&mut bench, asked.clone()).application, Some(application), "{name}");
    }
    let plain = explain(&mut bench, question([10, 60, 0, 1], false));
    assert_eq!(plain.application, None, "its rules do not ask");
}

#[test]
fn an_explanation_names_the_reason_of_a_drop() {
    let mut bench = Bench::full();
    let mut reason = |ue, is_down| explain(&mut bench, question(ue, is_down)).outcome;
    assert_eq!(reason([10, 60, 0, 3], false), dropped(DropReason::FarDrop));
    assert_eq!(reason([10, 60, 0, 3], true), dropped(DropReason::GateClosed));
    assert_eq!(reason([10, 60, 0, 99], true), dropped(DropReason::NoSession));
    assert_eq!(reason([10, 60, 0, ASLEEP as u8], true), Outcome::Kept);
    let to_us = Question { remote: [10, 50, 0, 2].into(), ..question([10, 60, 0, 1], false) };
    assert_eq!(explain(&mut bench, to_us).outcome, dropped(DropReason::ToOurselves));
    for to in [[224, 0, 0, 5], [127, 0, 0, 1], [0; 4], [255; 4]] {
        let asked = question([10, 60, 0, 1], false);
        let up = explain(&mut bench, Question { remote: to.into(), ..asked.clone() });
        assert_eq!((up.pdr, up.outcome), (Some(PdrId(1)), dropped(DropReason::IpNotForUs)));
        let down = explain(&mut bench, Question { remote: to.into(), is_down: true, ..asked });
        assert_eq!((down.session, down.pdr), (Some(Seid(1)), None));
        assert_eq!(down.outcome, dropped(DropReason::IpNotForUs));
    }
    for to in ["ff02::1", "ff0e::1", "fe80::1", "::1"] {
        let ue: IpAddr = "2001:db8:60::1".parse().unwrap();
        let asked = Question { ue, remote: to.parse().unwrap(), ..question([0; 4], false) };
        assert_eq!(explain(&mut bench, asked).outcome, dropped(DropReason::IpNotForUs), "{to}");
    }
    let no_tunnel = Question { teid: Some(Teid(0x999)), ..question([10, 60, 0, 1], false) };
    assert_eq!(explain(&mut bench, no_tunnel).outcome, dropped(DropReason::NoTunnel));
    let other_flow = Question { qfi: Qfi::new(5), is_verbose: true, ..question([10, 60, 0, 1], false) };
    let other_flow = explain(&mut bench, other_flow);
    assert_eq!(other_flow.outcome, dropped(DropReason::NoPdr));
    let tried: Vec<(PdrId, String)> =
        other_flow.tried.iter().map(|(pdr, why)| (*pdr, why.to_string())).collect();
    let expected = [(PdrId(1), "is for QFI 9"), (PdrId(2), "is for packets from the core side")];
    assert_eq!(tried, expected.map(|(pdr, why)| (pdr, why.to_owned())));
}

#[test]
fn an_explanation_tells_rates_and_counts_as_they_stand_and_leaves_them_alone() {
    let mut bench = Bench::full();
    let ue = [10, 60, 0, METERED as u8];
    let fresh = explain(&mut bench, question(ue, false));
    assert_eq!(
        (fresh.qers[0].qer, fresh.qers[0].limit_kbps, fresh.qers[0].admits),
        (QerId(1), Some(1), true)
    );
    assert_eq!((fresh.urrs[0].urr, fresh.urrs[0].is_used_up), (UrrId(1), false));
    let down = explain(&mut bench, question(ue, true));
    assert_eq!(down.qers[0].limit_kbps, Some(1_000_000));
    (0..5).for_each(|_| bench.receive(N6, &to_user(METERED as u8)));
    bench.settle();
    let after = explain(&mut bench, question(ue, true));
    let used = after.urrs[0];
    assert!(used.is_used_up && used.downlink_bytes >= 100, "{used:?}");
    assert_eq!(after.outcome, dropped(DropReason::QuotaExhausted));
    assert_eq!(explain(&mut bench, question(ue, true)), after, "asking changes nothing");
    assert!(drops(&bench, DropReason::QuotaExhausted) > 0);
    assert!(bench.worker.books().balanced());
}

/// Quotas are asked before rates, of packets as of questions.
#[test]
fn an_explanation_tells_of_the_quota_where_the_rate_is_used_up_too() {
    let mut bench = Bench::full();
    let ue = [10, 60, 0, METERED as u8];
    let up = to_remote(ue, 17);
    (0..3).for_each(|_| bench.receive(N3, &super::redirect::tunnelled(METERED, &up)));
    bench.settle();
    assert_eq!(drops(&bench, DropReason::RateExceeded), 1);
    (0..5).for_each(|_| bench.receive(N6, &to_user(METERED as u8)));
    bench.settle();
    let before = drops(&bench, DropReason::QuotaExhausted);
    bench.receive(N3, &super::redirect::tunnelled(METERED, &up));
    bench.settle();
    assert_eq!(drops(&bench, DropReason::QuotaExhausted), before + 1);
    let said = explain(&mut bench, question(ue, false));
    assert!(!said.qers[0].admits && said.urrs[0].is_used_up, "{said:?}");
    assert_eq!(said.outcome, dropped(DropReason::QuotaExhausted));
}

/// 28 octets of a user's packet without a payload.
fn to_remote(ue: [u8; 4], protocol: u8) -> Vec<u8> {
    let mut packet = vec![0; 28];
    let header = packet::ipv4::Header::new(ue.into(), [203, 0, 113, 80].into(), protocol, 8).unwrap();
    header.write(&mut packet).unwrap();
    packet
}

/// What the packet itself is at fault for, or the header of its tunnel, is not asked.
fn is_own_fault(end: &TraceEnd) -> bool {
    let own_fault =
        ["ttl_expired", "mtu_exceeded", "user_packet_malformed", "not_our_mac", "ip_not_for_us", "not_ect"];
    matches!(end, TraceEnd::Dropped { reason } if own_fault.contains(&&**reason))
}

/// What is said of a packet that a FAR redirects.
fn redirected(protocol: u8) -> (Option<ExplainedAction>, Outcome) {
    let is_tcp = protocol == packet::protocol::TCP;
    let outcome = if is_tcp { Outcome::Answered } else { dropped(DropReason::Redirected) };
    (Some(ExplainedAction::Redirect), outcome)
}

fn is_user_packet(arrived: &dplink::PacketSummary) -> bool {
    arrived.tunnel.is_some_and(|tunnel| tunnel.message_type == message_type::G_PDU)
}

/// What no question says: that a packet is at fault itself, or an ICMP error, which goes elsewhere by another rule than a ping.
fn is_untold(packet: &TracedPacket, protocol: u8) -> bool {
    let is_of_pings = protocol == 1 && packet.session == Some(Seid(READDRESSED));
    is_own_fault(&packet.end) || is_of_pings && matches!(packet.end, TraceEnd::Dropped { .. })
}

/// What is said of a packet beforehand is what then happens, for every user's packet in the goldens.
#[test]
fn an_explanation_agrees_with_what_happens() {
    let mut compared = 0;
    for (port, frame) in [N3, N6].into_iter().flat_map(|port| frames().iter().map(move |frame| (port, frame)))
    {
        let mut bench = Bench::full();
        let arrived = crate::summary::summary(frame);
        let Some(ip) = arrived.ip else { continue };
        if is_user_packet(&arrived) != (port == N3) {
            continue;
        }
        let is_down = port == N6;
        let (ue, remote) = if is_down { (ip.destination, ip.source) } else { (ip.source, ip.destination) };
        // A question has no content, by which this user's packets go.
        if ue == std::net::IpAddr::from([10, 60, 0, SERVED as u8]) {
            continue;
        }
        let ports = ip.ports.map(|(from, to)| if is_down { (to, from) } else { (from, to) });
        let said = explain(
            &mut bench,
            Question {
                ue,
                remote,
                protocol: ip.protocol,
                ports,
                traffic_class: ip.traffic_class,
                qfi: arrived.tunnel.and_then(|tunnel| Qfi::new(tunnel.qfi?)),
                teid: arrived.tunnel.map(|tunnel| tunnel.teid),
                is_verbose: true,
                ..question([0; 4], is_down)
            },
        );
        arm(&mut bench, 1, TraceFilter { packets: 1, ..ANY });
        bench.receive(port, frame);
        let seen = traces(bench.settle()).pop();
        let Some(packet) = seen.and_then(|(_, trace)| trace.packets.into_iter().next()) else { continue };
        let Some(seid) = packet.session else { continue };
        if packet.nodes.iter().any(|node| node == "redirect") {
            assert_eq!((said.action, said.outcome), redirected(ip.protocol));
            compared += 1;
            continue;
        }
        // A packet without QFI is thought into the flows of the session; the real one has none.
        let is_without_flow = arrived.tunnel.is_some_and(|tunnel| tunnel.qfi.is_none());
        let is_answered =
            packet.nodes.iter().any(|node| node == "icmp_error" || node == "router_solicitation");
        if is_untold(&packet, ip.protocol) || is_answered || (is_without_flow && packet.pdr.is_none()) {
            continue;
        }
        assert_eq!((said.session, said.pdr), (Some(seid), packet.pdr), "{packet:?}");
        // Its parts are traced by nobody.
        let Some(expected) = outcome_of(packet.end) else { continue };
        assert_eq!(said.outcome, expected, "{said:?}");
        compared += 1;
    }
    assert!(compared > 15, "only {compared} packets were compared");
}

/// What an explanation says of a packet that ends so; `None` of one in parts.
fn outcome_of(end: TraceEnd) -> Option<Outcome> {
    Some(match end {
        TraceEnd::Sent { .. } | TraceEnd::Held | TraceEnd::Looped { .. } => Outcome::Sent,
        TraceEnd::Kept => Outcome::Kept,
        TraceEnd::Dropped { reason } => Outcome::Dropped { reason },
        TraceEnd::Parted { .. } => return None,
        TraceEnd::Consumed | TraceEnd::Gathered | TraceEnd::Punted => panic!("taken for one of ours"),
        TraceEnd::HandedOff { .. } | TraceEnd::Awaits => panic!("there is no other worker"),
    })
}

#[test]
fn a_user_without_an_address_of_its_own_is_found_by_its_tunnel() {
    let mut bench = Bench::new();
    let mut up_only = rules(4);
    up_only.pdrs.pop();
    bench.put(4, 1, up_only);
    bench.settle();
    let asked = question([10, 60, 0, 4], false);
    assert_eq!(explain(&mut bench, asked.clone()).outcome, dropped(DropReason::NoSession));
    let found = explain(&mut bench, Question { teid: Some(Teid(0x103)), ..asked });
    assert_eq!((found.session, found.pdr), (Some(Seid(4)), Some(PdrId(1))));
}
