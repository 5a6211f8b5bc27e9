//! One packet of a flow onto the wire.

use crate::frame::{Endpoints, Users};
use crate::origin::{Flow, Progress};
use crate::profile::Transport;
use crate::segment::{Ends, Payload, Segment, TCP_HEADERS, UDP_HEADERS, flag};
use std::net::SocketAddrV4;

/// Where frames go from and to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) endpoints: Endpoints,
    pub(crate) users: Users,
}

/// What a packet is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending<'a> {
    pub(crate) transport: Transport,
    pub(crate) uplink: bool,
    /// Of TCP.
    pub(crate) flags: u16,
    /// Of TCP.
    pub(crate) options: &'a [u8],
    pub(crate) payload: Payload,
    /// The beginning of the payload.
    pub(crate) head: &'a [u8],
    /// What of the rest is to be written.
    pub(crate) rest: &'a [u8],
}

impl Line {
    /// Writes the next packet of `flow` into `frame` and moves the flow on; returns the frame's length.
    #[inline]
    pub(crate) fn write(&self, flow: &mut Flow, sending: &Sending<'_>, frame: &mut [u8]) -> Option<usize> {
        let room = frame.len();
        let user = self.users.user(flow.user);
        let tcp = sending.transport.is_tcp();
        let headers = if tcp { TCP_HEADERS + sending.options.len() } else { UDP_HEADERS };
        let length = headers + sending.payload.length;
        let packet = if sending.uplink {
            self.endpoints.uplink(user, length, frame)?
        } else {
            self.endpoints.downlink(frame)?
        };
        let before = room - packet.len();
        let packet = packet.get_mut(..length)?;
        let (head, rest) = packet.get_mut(headers..)?.split_at_mut_checked(sending.head.len())?;
        head.copy_from_slice(sending.head);
        rest.get_mut(..sending.rest.len())?.copy_from_slice(sending.rest);
        let ends = self.ends(flow, sending);
        if tcp {
            ends.write_tcp(flow.segment(sending), sending.payload, packet)?;
        } else {
            ends.write_udp(sending.payload, packet)?;
        }
        flow.advance(sending);
        Some(before + length)
    }

    #[inline]
    fn ends(&self, flow: &Flow, sending: &Sending<'_>) -> Ends {
        let (address, port) = flow.server(sending.transport);
        let user = SocketAddrV4::new(self.users.user(flow.user).address, flow.port);
        let server = SocketAddrV4::new(address, port);
        let [source, destination] = if sending.uplink { [user, server] } else { [server, user] };
        Ends { source, destination }
    }
}

impl Flow {
    /// The sender has seen all that the other side sent.
    #[inline]
    fn segment<'a>(&self, sending: &Sending<'a>) -> Segment<'a> {
        let [own, other] = if sending.uplink { [self.up, self.down] } else { [self.down, self.up] };
        let acknowledged = if sending.flags & flag::ACK != 0 { other.sequence } else { 0 };
        Segment { sequence: own.sequence, acknowledged, flags: sending.flags, options: sending.options }
    }

    #[inline]
    fn advance(&mut self, sending: &Sending<'_>) {
        let Progress { packets, sequence } = if sending.uplink { &mut self.up } else { &mut self.down };
        *packets = packets.wrapping_add(1);
        if sending.transport.is_tcp() {
            // SYN and FIN take a number each (RFC 9293 3.4).
            let marks = u32::from(sending.flags & flag::SYN != 0) + u32::from(sending.flags & flag::FIN != 0);
            *sequence = sequence.wrapping_add(sending.payload.length as u32).wrapping_add(marks);
        }
    }
}
