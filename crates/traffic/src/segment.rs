//! Users' packets: IPv4 with TCP or UDP, with checksums that cost no look at the payload when its sum is known.

use packet::{checksum, ipv4};
use std::net::{Ipv4Addr, SocketAddrV4};
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Protocol number of TCP.
pub(crate) const TCP: u8 = 6;

/// Bytes before the payload of a TCP segment without options.
pub(crate) const TCP_HEADERS: usize = ipv4::LENGTH + size_of::<TcpHeader>();
/// Bytes before the payload of a UDP datagram.
pub(crate) const UDP_HEADERS: usize = ipv4::LENGTH + size_of::<UdpHeader>();

/// Flags of TCP (RFC 9293 3.1).
pub(crate) mod flag {
    pub(crate) const FIN: u16 = 0x01;
    pub(crate) const SYN: u16 = 0x02;
    pub(crate) const PSH: u16 = 0x08;
    pub(crate) const ACK: u16 = 0x10;
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TcpHeader {
    source: U16,
    destination: U16,
    sequence: U32,
    acknowledged: U32,
    offset_flags: U16,
    window: U16,
    checksum: U16,
    urgent: U16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct UdpHeader {
    source: U16,
    destination: U16,
    length: U16,
    checksum: U16,
}

/// From whom to whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) source: SocketAddrV4,
    pub(crate) destination: SocketAddrV4,
}

/// What is known of a payload: how long it is, and its ones' complement sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Payload {
    pub(crate) length: usize,
    /// `None`: not known, and no checksum is to be sent where the protocol can do without.
    pub(crate) sum: Option<u16>,
}

impl Payload {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len(), sum: Some(checksum::sum(bytes)) }
    }
}

/// What a TCP segment says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) flags: u16,
    /// Padded to four bytes.
    pub(crate) options: &'a [u8],
}

const WINDOW: u16 = 0xffff;

impl Ends {
    /// Writes the headers of a datagram before its payload; returns the packet's length.
    #[inline]
    pub(crate) fn write_udp(&self, payload: Payload, packet: &mut [u8]) -> Option<usize> {
        let length = size_of::<UdpHeader>() + payload.length;
        self.write_ipv4(ipv4::UDP, length, packet)?;
        let mut header = UdpHeader {
            source: U16::new(self.source.port()),
            destination: U16::new(self.destination.port()),
            length: U16::new(u16::try_from(length).ok()?),
            checksum: U16::ZERO,
        };
        if let Some(payload) = payload.sum {
            let sum = self.pseudo_sum(ipv4::UDP, length) + u64::from(checksum::sum(header.as_bytes()));
            // Zero would say that there is none (RFC 768).
            let checksum = Some(folded(sum + u64::from(payload))).filter(|checksum| *checksum != 0);
            header.checksum = U16::new(checksum.unwrap_or(u16::MAX));
        }
        header.write_to_prefix(packet.get_mut(ipv4::LENGTH..)?).ok()?;
        Some(ipv4::LENGTH + length)
    }

    /// Writes the headers of a segment before its payload; returns the packet's length.
    #[inline]
    pub(crate) fn write_tcp(
        &self,
        segment: Segment<'_>,
        payload: Payload,
        packet: &mut [u8],
    ) -> Option<usize> {
        let headers = size_of::<TcpHeader>() + segment.options.len();
        let length = headers + payload.length;
        self.write_ipv4(TCP, length, packet)?;
        let mut header = TcpHeader {
            source: U16::new(self.source.port()),
            destination: U16::new(self.destination.port()),
            sequence: U32::new(segment.sequence),
            acknowledged: U32::new(segment.acknowledged),
            offset_flags: U16::new((headers as u16 / 4) << 12 | segment.flags),
            window: U16::new(WINDOW),
            checksum: U16::ZERO,
            urgent: U16::ZERO,
        };
        let sum = self.pseudo_sum(TCP, length)
            + u64::from(checksum::sum(header.as_bytes()))
            + u64::from(checksum::sum(segment.options))
            + u64::from(payload.sum.unwrap_or_default());
        header.checksum = U16::new(folded(sum));
        let packet = packet.get_mut(ipv4::LENGTH..)?;
        header.write_to_prefix(packet).ok()?;
        packet.get_mut(size_of::<TcpHeader>()..headers)?.copy_from_slice(segment.options);
        Some(ipv4::LENGTH + length)
    }

    #[inline]
    fn write_ipv4(&self, protocol: u8, length: usize, packet: &mut [u8]) -> Option<()> {
        ipv4::Header::new(*self.source.ip(), *self.destination.ip(), protocol, length)?.write(packet)
    }

    /// Of the pseudo header (RFC 9293 3.1).
    #[inline]
    fn pseudo_sum(&self, protocol: u8, length: usize) -> u64 {
        let address = |address: &Ipv4Addr| u64::from(u32::from(*address));
        address(self.source.ip()) + address(self.destination.ip()) + u64::from(protocol) + length as u64
    }
}

/// The checksum of a sum of 16-bit words, or of 32-bit words, which comes to the same (RFC 1071 2).
#[inline]
fn folded(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The receiver's sum: all ones where nothing was damaged.
    fn received(packet: &[u8]) -> u16 {
        let pseudo = [&packet[12..20], &[0, packet[9]], &(packet.len() as u16 - 20).to_be_bytes()].concat();
        checksum::sum(&[&pseudo, &packet[20..]].concat())
    }

    proptest! {
        #[test]
        fn checksums_are_right(
            (source, destination) in (any::<(u32, u16)>(), any::<(u32, u16)>()),
            (sequence, acknowledged) in any::<(u32, u32)>(),
            payload in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let end = |(address, port)| SocketAddrV4::new(Ipv4Addr::from_bits(address), port);
            let ends = Ends { source: end(source), destination: end(destination) };
            let mut packet = vec![0; UDP_HEADERS + payload.len()];
            packet[UDP_HEADERS..].copy_from_slice(&payload);
            prop_assert_eq!(ends.write_udp(Payload::of(&payload), &mut packet), Some(packet.len()));
            prop_assert_eq!(received(&packet), u16::MAX);
            let options = [2, 4, 5, 80];
            let mut packet = vec![0; TCP_HEADERS + options.len() + payload.len()];
            packet[TCP_HEADERS + options.len()..].copy_from_slice(&payload);
            let segment = Segment { sequence, acknowledged, flags: flag::SYN, options: &options };
            prop_assert_eq!(ends.write_tcp(segment, Payload::of(&payload), &mut packet), Some(packet.len()));
            prop_assert_eq!(received(&packet), u16::MAX);
            prop_assert!(ipv4::Packet::parse(&packet).is_ok());
        }
    }
}
