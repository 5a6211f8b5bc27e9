//! What a trace says of packets that leave in parts, or in the place of which an answer leaves.

use super::drops;
use super::observe::{ANY, traced};
use crate::counters::DropReason;
use crate::fixture::{Bench, COPIED, N3, N6};
use crate::golden::file;
use dplink::{TraceEnd, TracePartEnd, TracedPacket, TracedParts};
use rules::{ApplyAction, PdrId, Seid};

/// What is traced of a frame that comes in on a port.
fn seen(bench: &mut Bench, port: usize, frame: &[u8]) -> TracedPacket {
    let mut trace = traced(bench, ANY, &[(port, frame.to_vec())]);
    assert_eq!(trace.packets.len(), 1, "{trace:?}");
    trace.packets.remove(0)
}

fn sent(count: u16, port: &str) -> TracedParts {
    TracedParts { count, end: TracePartEnd::Sent { port: port.to_owned() } }
}

fn dropped(count: u16, reason: DropReason) -> TracedParts {
    TracedParts { count, end: TracePartEnd::Dropped { reason: reason.name().to_owned() } }
}

fn parted<const N: usize>(parts: [TracedParts; N]) -> TraceEnd {
    TraceEnd::Parted { parts: parts.into() }
}

#[test]
fn of_a_packet_in_fragments_it_says_how_many_left_where() {
    let mut bench = Bench::new();
    // Known flows, too.
    for _ in 0..2 {
        let packet = seen(&mut bench, N6, &super::mtu::long(3_000));
        assert_eq!(packet.end, parted([sent(3, "n3")]));
        assert_eq!((packet.session, packet.pdr), (Some(Seid(1)), Some(PdrId(2))));
    }
    bench.wires[N3].0.borrow_mut().buffers = Some(2);
    let packet = seen(&mut bench, N6, &super::mtu::long(3_000));
    assert_eq!(packet.end, parted([dropped(1, DropReason::NotSplit)]));
}

#[test]
fn of_a_packet_that_is_copied_it_says_where_each_left() {
    let mut bench = Bench::new();
    let mut rules = crate::fixture::copied();
    bench.put(COPIED, 1, rules.clone());
    let to_user = super::to_user(COPIED as u8);
    assert_eq!(seen(&mut bench, N6, &to_user).end, parted([sent(1, "n6"), sent(1, "n3")]));
    rules.fars[1].apply_action = ApplyAction::Drop;
    bench.put(COPIED, 2, rules);
    let is_dropped = [sent(1, "n6"), dropped(1, DropReason::FarDrop)];
    assert_eq!(seen(&mut bench, N6, &to_user).end, parted(is_dropped.clone()));
    assert_eq!(drops(&bench, DropReason::FarDrop), 1);
    // Of each of a vector.
    let trace =
        traced(&mut bench, ANY, &[(N6, to_user.clone()), (N6, super::mtu::long(3_000)), (N6, to_user)]);
    let ends: Vec<TraceEnd> = trace.packets.into_iter().map(|packet| packet.end).collect();
    assert_eq!(ends, [parted(is_dropped.clone()), parted([sent(3, "n3")]), parted(is_dropped)]);
}

#[test]
fn of_a_frame_for_all_it_says_where_each_left() {
    let mut bench = Bench::full();
    let frames = file("frame_output/for_all");
    let packet = seen(&mut bench, N3, &frames[0]);
    assert_eq!(packet.end, parted([sent(1, "n6e"), sent(1, "n3")]), "{packet:?}");
}

#[test]
fn of_a_packet_that_is_answered_it_says_whose_it_was() {
    for (port, name, pdr) in [
        (N6, "ttl_expired_down", 2),
        (N3, "ttl_expired_up", 1),
        (N6, "fragmentation_needed_down", 2),
        (N3, "fragmentation_needed_up", 1),
    ] {
        let mut bench = Bench::new();
        let frames = file(&format!("icmp_error/{name}"));
        let packet = seen(&mut bench, port, &frames[0]);
        assert!(packet.nodes.iter().any(|node| node == "icmp_error"), "{name}: {packet:?}");
        assert!(matches!(packet.end, TraceEnd::Sent { .. }), "{name}: {packet:?}");
        assert_eq!((packet.session, packet.pdr), (Some(Seid(1)), Some(PdrId(pdr))), "{name}");
    }
}
