//! IPv4 (RFC 791).

use crate::checksum;
use std::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a header without options.
pub const LENGTH: usize = size_of::<Header>();

pub use crate::protocol::{ICMP, UDP};

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The fixed part of an IPv4 header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    version_ihl: u8,
    pub(crate) tos: u8,
    pub(crate) total_length: U16,
    identification: U16,
    flags_fragment: U16,
    ttl: u8,
    protocol: u8,
    pub(crate) checksum: U16,
    pub(crate) source: [u8; 4],
    pub(crate) destination: [u8; 4],
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its header or its total length says.
    Truncated,
    /// Not version 4.
    Version,
    /// A header length below 20, or beyond the packet.
    HeaderLength,
    /// The checksum does not match.
    Checksum,
}

/// A header that was checked: its lengths fit the packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    header: &'a Header,
    /// Header and payload, without padding.
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks version, lengths and header checksum. Bytes beyond the total length (Ethernet padding) are allowed.
    ///
    /// # Errors
    /// What is wrong, the most basic first.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, _) = Header::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
        if header.version_ihl >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let (length, total) = (header.length(), header.total_length());
        if length < LENGTH || length > total {
            return Err(Malformed::HeaderLength);
        }
        let bytes = bytes.get(..total).ok_or(Malformed::Truncated)?;
        // Nearly every header has no options; its sum has a fixed length, so no loop.
        let intact = match bytes.first_chunk::<LENGTH>() {
            Some(fixed) if length == LENGTH => checksum::is_intact(fixed),
            _ => bytes.get(..length).is_some_and(checksum::is_intact),
        };
        if intact { Ok(Self { header, bytes }) } else { Err(Malformed::Checksum) }
    }

    /// Bytes of the header, options included.
    #[inline]
    pub fn header_length(&self) -> usize {
        self.header.length()
    }

    /// The fixed part of the header.
    #[inline]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// What follows the header and its options.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(self.header_length()..).unwrap_or_default()
    }

    /// Bytes of header and payload.
    #[inline]
    pub fn total_length(&self) -> usize {
        self.header.total_length()
    }

    /// The protocol of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.header.protocol
    }

    /// From whom.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.header.source)
    }

    /// To whom.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.header.destination)
    }

    /// Hops it may still go.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.header.ttl
    }

    /// Type of service: DSCP and ECN.
    #[inline]
    pub fn tos(&self) -> u8 {
        self.header.tos
    }

    /// Whether this is a fragment other than the first: there is no upper-layer header in it.
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        self.header.flags_fragment.get() & FRAGMENT_OFFSET != 0
    }

    /// Whether this is one fragment of a larger packet.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.header.flags_fragment.get() & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0
    }
}

impl Header {
    fn length(&self) -> usize {
        usize::from(self.version_ihl & 0x0f) * 4
    }

    fn total_length(&self) -> usize {
        usize::from(self.total_length.get())
    }

    /// A header without options for `payload` bytes of `protocol`; `None` where the packet would exceed 65,535
    /// bytes. Not to be fragmented, 64 hops, identification 0 (RFC 6864: allowed for atomic packets).
    #[inline]
    pub fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: usize) -> Option<Self> {
        let total_length = U16::new(u16::try_from(LENGTH + payload).ok()?);
        let header = Self { total_length, ..Self::empty(source, destination, protocol) };
        Some(header.with_checksum())
    }

    /// A header whose total length and checksum are still 0.
    #[inline]
    pub(crate) const fn empty(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> Self {
        Self {
            version_ihl: 0x45,
            tos: 0,
            total_length: U16::ZERO,
            identification: U16::ZERO,
            flags_fragment: U16::new(DONT_FRAGMENT),
            ttl: 64,
            protocol,
            checksum: U16::ZERO,
            source: source.octets(),
            destination: destination.octets(),
        }
    }

    #[inline]
    fn with_checksum(mut self) -> Self {
        self.checksum = U16::ZERO;
        self.checksum = U16::new(checksum::of(self.as_bytes()));
        self
    }

    /// Writes the header to the front of `bytes`; `None`, and no change, where they are too short.
    #[inline]
    pub fn write(&self, bytes: &mut [u8]) -> Option<()> {
        self.write_to_prefix(bytes).ok()
    }
}

/// Takes one hop off the packet at the front of `bytes`; `None`, and no change, where none is left.
#[inline]
pub fn decrement_ttl(bytes: &mut [u8]) -> Option<()> {
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    let hops = header.ttl.checked_sub(1).filter(|hops| *hops > 0)?;
    let word = |ttl: u8| u16::from_be_bytes([ttl, header.protocol]);
    let checksum = checksum::update(header.checksum.get(), word(header.ttl), word(hops));
    header.ttl = hops;
    header.checksum = U16::new(checksum);
    Some(())
}

/// Turns the packet at the front of `bytes` around: source and destination swapped, 64 hops, checksum renewed.
pub fn reverse(bytes: &mut [u8]) -> Option<()> {
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    std::mem::swap(&mut header.source, &mut header.destination);
    header.ttl = 64;
    header.checksum = U16::ZERO;
    let length = header.length();
    let checksum = checksum::of(bytes.get(..length)?);
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    header.checksum = U16::new(checksum);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 77);

    fn packet(payload: usize) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH + payload];
        Header::new(A, B, UDP, payload).unwrap().write(&mut bytes).unwrap();
        bytes
    }

    /// The header in RFC 1071's most quoted example: checksum 0xb861.
    #[test]
    fn a_known_header_is_intact_until_a_bit_flips() {
        let mut bytes = vec![
            0x45, 0x00, 0x00, 0x14, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00, 0x01, 0xc0,
            0xa8, 0x00, 0xc7,
        ];
        let checksum = checksum::of(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert!(Packet::parse(&bytes).is_ok());
        bytes[15] ^= 4;
        assert_eq!(Packet::parse(&bytes).unwrap_err(), Malformed::Checksum);
    }

    #[test]
    fn each_fault_has_its_name() {
        let good = packet(8);
        assert_eq!(Packet::parse(&good[..19]).unwrap_err(), Malformed::Truncated);
        assert_eq!(Packet::parse(&good[..27]).unwrap_err(), Malformed::Truncated);
        let with = |at: usize, value: u8| [&good[..at], &[value], &good[at + 1..]].concat();
        assert_eq!(Packet::parse(&with(0, 0x65)).unwrap_err(), Malformed::Version);
        assert_eq!(Packet::parse(&with(0, 0x44)).unwrap_err(), Malformed::HeaderLength);
        assert_eq!(Packet::parse(&with(0, 0x4f)).unwrap_err(), Malformed::HeaderLength);
        assert_eq!(Packet::parse(&with(3, 19)).unwrap_err(), Malformed::HeaderLength);
    }

    #[test]
    fn the_last_hop_is_not_taken() {
        let mut bytes = packet(0);
        for _ in 0..63 {
            decrement_ttl(&mut bytes).unwrap();
            assert!(Packet::parse(&bytes).is_ok());
        }
        assert!(decrement_ttl(&mut bytes).is_none());
        assert_eq!(Packet::parse(&bytes).unwrap().ttl(), 1);
    }

    #[test]
    fn a_reversed_packet_goes_back() {
        let mut bytes = packet(4);
        reverse(&mut bytes).unwrap();
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!((packet.source(), packet.destination()), (B, A));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_fail_and_lengths_hold(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(packet) = Packet::parse(&bytes) {
                prop_assert!(packet.header_length() <= packet.total_length());
                prop_assert!(packet.total_length() <= bytes.len());
            }
        }
    }
}
