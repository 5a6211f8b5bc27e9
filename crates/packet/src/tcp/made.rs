//! Segments made in the place of one of a connection's ends.

use super::segment::{Header, LENGTH, NO_OPERATION, Segment, TIMESTAMPS, flag};
use crate::{FiveTuple, checksum, ipv4, ipv6, protocol};
use std::net::IpAddr;
use zerocopy::IntoBytes;
use zerocopy::byteorder::network_endian::{U16, U32};

/// Bytes of the timestamps option, and of the two that align it (RFC 7323 appendix A).
const TIMESTAMPS_LENGTH: usize = 12;
/// Octets that are taken, unscaled.
const WINDOW: u16 = u16::MAX;

/// A segment to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made<'a> {
    /// Control bits, see [`flag`].
    pub flags: u8,
    /// Number of its first octet, or of SYN.
    pub sequence: u32,
    /// The next number expected; counts with [`flag::ACK`] only.
    pub acknowledgement: u32,
    /// TSval and TSecr: an end that agreed on them may ignore segments without (RFC 7323 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Made<'a> {
    /// What the receiver of `segment` would answer: the numbers it expects, and the timestamps turned round.
    pub fn answering(segment: &Segment<'_>, flags: u8, payload: &'a [u8]) -> Self {
        Self {
            flags,
            sequence: if segment.has(flag::ACK) { segment.acknowledgement() } else { 0 },
            acknowledgement: segment.sequence().wrapping_add(segment.sequence_length()),
            timestamps: segment.timestamps().map(|(value, echo)| (echo, value)),
            payload,
        }
    }

    /// Writes the whole IP packet with the segment, from the source of `flow` to its destination, to the front of
    /// `bytes`; returns its length. `None` where it does not fit.
    pub fn write(&self, flow: &FiveTuple, bytes: &mut [u8]) -> Option<usize> {
        let options = if self.timestamps.is_some() { TIMESTAMPS_LENGTH } else { 0 };
        let length = LENGTH + options + self.payload.len();
        let (ip, pseudo_sum) = write_ip(flow, length, bytes)?;
        let segment = bytes.get_mut(ip..ip + length)?;
        let (header, rest) = segment.split_at_mut_checked(LENGTH)?;
        header.copy_from_slice(self.header(flow, options).as_bytes());
        let (option, payload) = rest.split_at_mut_checked(options)?;
        if let Some((value, echo)) = self.timestamps {
            let (front, numbers) = option.split_at_mut_checked(4)?;
            front.copy_from_slice(&[NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10]);
            numbers.copy_from_slice(&(u64::from(value) << 32 | u64::from(echo)).to_be_bytes());
        }
        payload.copy_from_slice(self.payload);
        let sum = checksum::add(checksum::sum(segment), pseudo_sum);
        segment.get_mut(16..18)?.copy_from_slice(&(!sum).to_be_bytes());
        Some(ip + length)
    }

    fn header(&self, flow: &FiveTuple, options: usize) -> Header {
        Header {
            source: U16::new(flow.source_port),
            destination: U16::new(flow.destination_port),
            sequence: U32::new(self.sequence),
            acknowledgement: U32::new(if self.flags & flag::ACK != 0 { self.acknowledgement } else { 0 }),
            data_offset: (((LENGTH + options) / 4) as u8) << 4,
            flags: self.flags,
            window: U16::new(if self.flags & flag::RST != 0 { 0 } else { WINDOW }),
            checksum: U16::ZERO,
            urgent: U16::ZERO,
        }
    }
}

/// Writes the header of a packet with `length` bytes of TCP; how long it is, and the sum of the pseudo header.
fn write_ip(flow: &FiveTuple, length: usize, bytes: &mut [u8]) -> Option<(usize, u16)> {
    match (flow.source_address(), flow.destination_address()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ipv4::Header::new(source, destination, protocol::TCP, length)?.write(bytes)?;
            Some((ipv4::LENGTH, ipv4::pseudo_sum(source, destination, protocol::TCP, length)))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            ipv6::Header::new(source, destination, protocol::TCP, length)?.write(bytes)?;
            Some((ipv6::LENGTH, ipv6::pseudo_sum(source, destination, protocol::TCP, length)))
        }
        _ => None,
    }
}
