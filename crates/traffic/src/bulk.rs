//! Packets of flows that are well on their way: their payload is the same noise behind a short head, so that its sum
//! is known before.

use crate::opening::server_connection_id;
use crate::origin::Flow;
use crate::payload::{media, put_random, quic, tls};
use crate::profile::{Length, Transport};
use crate::segment::{Payload, TCP_HEADERS, UDP_HEADERS};
use arrayvec::ArrayVec;
use packet::checksum;

/// Most bytes of a user's packet: with tunnel and Ethernet header it fits an MTU of 1,500.
pub const PACKET_MAX: usize = 1_450;

/// The first bytes of a payload.
pub(crate) type Head = ArrayVec<u8, 12>;

/// The payload of all packets, from the byte after their head on.
#[derive(Clone, Debug)]
pub(crate) struct Noise(Vec<u8>);

/// Packets of one transport, direction and length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk {
    /// Bytes of the payload.
    length: usize,
    /// Ones' complement sum of it but for the head.
    sum: u16,
}

impl Noise {
    pub(crate) fn new() -> Self {
        let mut noise = vec![];
        put_random(&mut noise, PACKET_MAX, 0);
        Self(noise)
    }

    /// What stands behind a head in a payload of this length.
    pub(crate) fn behind(&self, head: usize, bulk: Bulk) -> Option<&[u8]> {
        self.0.get(head..bulk.length)
    }
}

impl Bulk {
    /// Packets of `length`; at least long enough for headers and head.
    pub(crate) fn new(noise: &Noise, (transport, uplink): (Transport, bool), length: &Length) -> Self {
        let headers = if transport.is_tcp() { TCP_HEADERS } else { UDP_HEADERS };
        let head = head_length(transport, uplink);
        let length = usize::from(length.bytes).saturating_sub(headers).max(head);
        let behind = noise.0.get(head..length).unwrap_or_default();
        let mut payload = vec![0; head];
        payload.extend(behind);
        Self { length, sum: checksum::sum(&payload) }
    }

    /// The payload behind `head`, summed up if asked.
    #[inline]
    pub(crate) fn payload(self, head: &Head, summed: bool) -> Payload {
        let sum = || {
            let mut padded = [0; 12];
            padded.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
            let sum = u32::from(checksum::sum(&padded)) + u32::from(self.sum);
            (sum & 0xffff) as u16 + (sum >> 16) as u16
        };
        Payload { length: self.length, sum: summed.then(sum) }
    }
}

fn head_length(transport: Transport, uplink: bool) -> usize {
    match transport {
        Transport::Http | Transport::Dns => 0,
        Transport::Tls => tls::RECORD_HEADER,
        Transport::Quic if uplink => 1 + quic::ID,
        Transport::Quic => 1,
        Transport::Udp => media::LENGTH,
    }
}

/// What makes the payload of a flow's next packet look like its transport's.
#[inline]
pub(crate) fn head((transport, uplink): (Transport, bool), flow: &Flow, bulk: Bulk) -> Head {
    let mut head = Head::new();
    match transport {
        Transport::Http | Transport::Dns => {}
        Transport::Tls => head.extend(tls::record_header(bulk.length.saturating_sub(tls::RECORD_HEADER))),
        Transport::Quic => {
            // A short header (RFC 9000 17.3.1). Clients here have empty connection IDs.
            head.push(quic::SHORT);
            if uplink {
                head.extend(server_connection_id(flow));
            }
        }
        Transport::Udp => {
            let progress = if uplink { flow.up } else { flow.down };
            let source = flow.serial.wrapping_mul(2) | u32::from(uplink);
            head.extend(media::header(progress.packets, source));
        }
    }
    head
}
