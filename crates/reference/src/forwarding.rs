//! Sends users' packets on, plain or in a tunnel (TS 29.244 5.2.3, TS 29.281 5.1, TS 38.415 5.5.2).

use crate::Reference;
use crate::detection::Arrival;
use crate::enforcement::{Action, Marks, Verdict, may_leave};
use crate::gtpu::{self, Container};
use crate::ip::{self, UDP, UserPacket};
use crate::outcome::{Fate, Outcome};
use crate::reason::DropReason;
use rules::{Direction, ForwardingParameters};

const HOPS: u8 = 64;

impl Reference {
    /// Does what the rules decided.
    pub(crate) fn obey(&mut self, verdict: &Verdict, arrival: &Arrival) -> Outcome {
        let Action::Forward(to, copies) = &verdict.action else { return Outcome::of(Fate::Held) };
        let mut outcome = self.forward(arrival, to, verdict.marks);
        for to in copies {
            outcome.add_copy(self.forward(arrival, to, verdict.marks));
        }
        outcome
    }

    fn forward(&mut self, arrival: &Arrival, to: &ForwardingParameters, marks: Marks) -> Outcome {
        let to_us = self.setup.is_ours(arrival.packet.header.destination);
        let routed = may_leave(arrival, to, to_us).and_then(|()| match to.outer_header_creation {
            Some(_) => self.put_into_tunnel(arrival, to, marks),
            None => self.route(&arrival.packet, to),
        });
        routed.and_then(|(next_hop, packet)| self.transmit(next_hop, packet)).into()
    }

    fn route(&self, packet: &UserPacket, to: &ForwardingParameters) -> Result<Routed, DropReason> {
        let mut bytes = packet.bytes.clone();
        ip::take_hop(&mut bytes, &packet.header);
        if let Some(dscp) = to.dscp {
            ip::set_dscp(&mut bytes, &packet.header, dscp);
        }
        let (side, destination) = (to.destination_interface, packet.header.destination);
        let next_hop = self.setup.next_hop(side, destination).ok_or(DropReason::NoRoute)?;
        Ok((next_hop, bytes))
    }

    fn put_into_tunnel(
        &self,
        arrival: &Arrival,
        to: &ForwardingParameters,
        marks: Marks,
    ) -> Result<Routed, DropReason> {
        let tunnel = to.outer_header_creation.ok_or(DropReason::NoRoute)?;
        let mut bytes = arrival.packet.bytes.clone();
        if arrival.tunnel.is_none() {
            ip::take_hop(&mut bytes, &arrival.packet.header);
        }
        let side = to.destination_interface;
        let next_hop = self.setup.next_hop(side, tunnel.address).ok_or(DropReason::NoRoute)?;
        let ours = self.port(next_hop.port)?.address_like(tunnel.address).ok_or(DropReason::NoRoute)?;
        // Towards the radio a packet is a downlink one, towards the next user plane function an uplink one.
        let container = marks.qfi.map(|qfi| Container {
            downlink: side.direction() == Direction::Uplink,
            qfi: qfi.value(),
            reflective: marks.reflective,
        });
        let message = gtpu::g_pdu(tunnel.teid.0, container, &bytes);
        let datagram = ip::datagram((ours, gtpu::PORT), (tunnel.address, gtpu::PORT), &message);
        let traffic_class = to.dscp.unwrap_or(0) << 2;
        let new = ip::New { protocol: UDP, traffic_class, hops: HOPS };
        Ok((next_hop, ip::packet(ours, tunnel.address, new, &datagram)))
    }
}

/// A packet and its next hop.
type Routed = (crate::setup::NextHop, Vec<u8>);
