//! Finds the first PDR of the session that matches (TS 29.244 5.2.1).

use crate::counters::DropReason;
use crate::frame::{Ip, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::State;
use packet::{Buffer, ipv4};
use rules::{Arrival, Direction, Qfi, Teid};

pub(crate) struct Classify;

impl<B: Buffer> Node<B> for Classify {
    const ID: NodeId = NodeId::Classify;

    #[inline]
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        // What came in a tunnel has not been looked at yet.
        if packet.meta.tunnel.is_some() && read_user_packet(packet).is_none() {
            return Next::drop(DropReason::UserPacketMalformed);
        }
        let source = state.ports.get(packet.meta.port).interface;
        let ue = match source.direction() {
            Direction::Uplink => packet.meta.ip.source,
            Direction::Downlink => packet.meta.ip.destination,
        };
        let tunnel = packet.meta.tunnel;
        let arrival = Arrival {
            source,
            teid: tunnel.map(|tunnel| Teid(tunnel.teid)),
            ue,
            qfi: tunnel.and_then(|tunnel| tunnel.pdu_session).and_then(|container| Qfi::new(container.qfi)),
        };
        let steps = state.sessions.get(packet.meta.session).map_or(&[][..], |session| &session.program.steps);
        match steps.iter().find(|step| step.matches(&arrival)) {
            Some(step) => {
                packet.meta.action = step.action;
                Next::To(NodeId::Far)
            }
            None => Next::drop(DropReason::NoPdr),
        }
    }
}

fn read_user_packet<B: Buffer>(packet: &mut Packet<B>) -> Option<()> {
    let ip = ipv4::Packet::parse(packet.buffer.data()).ok()?;
    let length = ip.total_length();
    packet.meta.ip =
        Ip { source: ip.source(), destination: ip.destination(), header_length: ip.header_length() };
    packet.buffer.truncate(length)
}
