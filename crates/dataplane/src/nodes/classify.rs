//! Finds the first PDR of the session that matches, and notes it for the flow (TS 29.244 5.2.1).

use crate::counters::DropReason;
use crate::frame::{Meta, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{State, Verdict, step_index};
use packet::Buffer;
use packet::five_tuple::FiveTuple;
use rules::{Arrival, Direction, Qfi, Teid};

pub(crate) struct Classify;

impl<B: Buffer> Node<B> for Classify {
    const ID: NodeId = NodeId::Classify;

    #[inline]
    fn ahead(state: &State, packet: &Packet<B>) {
        state.sessions.prefetch(packet.meta.session);
    }

    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Ok(found) = FiveTuple::parse(packet.buffer.data()) else {
            return Next::drop(DropReason::UserPacketMalformed);
        };
        let Some(session) = state.sessions.get(packet.meta.session) else {
            return Next::drop(DropReason::NoSession);
        };
        if super::router_solicitation::is_for_us(packet, &found.tuple, session) {
            return Next::To(NodeId::RouterSolicitation);
        }
        let meta = &mut packet.meta;
        let Some(number) = session.classifier.find(&arrival(meta, &found.tuple)) else {
            return Next::drop(DropReason::NoPdr);
        };
        meta.step = step_index(session.run.base, number);
        state.sessions.cells.prefetch(meta.step);
        let generation = state.sessions.cells.step(meta.step).generation;
        // Flow labels differ within a flow: there is nothing to remember.
        if !session.classifier.looks_at_flow_label() {
            let class_matters = session.classifier.looks_at_traffic_class();
            let verdict = Verdict { step: meta.step, generation, class_matters };
            state.flows.learn(meta.flow(), verdict, state.now_ns);
        }
        Next::To(NodeId::Far)
    }
}

/// A packet as classifiers see it.
pub(super) fn arrival(meta: &Meta, tuple: &FiveTuple) -> Arrival {
    let normal = match meta.direction() {
        Direction::Uplink => *tuple,
        Direction::Downlink => tuple.reversed(),
    };
    let has_ports = !tuple.fragment && packet::protocol::has_ports(tuple.protocol);
    // Over IPv6, AH is an extension header in front of the protocol.
    let is_ipsec = !tuple.fragment && tuple.spi != 0;
    Arrival {
        source: meta.source,
        teid: meta.tunnelled().then_some(Teid(meta.teid)),
        qfi: Qfi::new(meta.qfi),
        ue: normal.source_address(),
        remote: normal.destination_address(),
        protocol: tuple.protocol,
        ue_port: has_ports.then_some(normal.source_port),
        remote_port: has_ports.then_some(normal.destination_port),
        traffic_class: tuple.tos,
        spi: is_ipsec.then_some(tuple.spi),
        flow_label: (tuple.version == 6).then_some(tuple.flow_label),
    }
}
