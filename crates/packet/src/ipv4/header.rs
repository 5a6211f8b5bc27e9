//! The header: its view and its builder.

use crate::checksum;
use crate::ipv6::Fragment;
use std::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a header without options.
pub const LENGTH: usize = size_of::<Header>();

pub(super) const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The fixed part of an IPv4 header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    version_ihl: u8,
    pub(crate) tos: u8,
    pub(crate) total_length: U16,
    pub(super) identification: U16,
    pub(super) flags_fragment: U16,
    pub(super) ttl: u8,
    pub(super) protocol: u8,
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

    /// Same for all fragments of a packet.
    #[inline]
    pub fn identification(&self) -> u16 {
        self.header.identification.get()
    }

    /// Whether routers may not fragment it.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.header.flags_fragment.get() & DONT_FRAGMENT != 0
    }

    /// Whether more fragments follow this one.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.header.flags_fragment.get() & MORE_FRAGMENTS != 0
    }

    /// Where this fragment's payload goes in that of the whole packet, in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.header.flags_fragment.get() & FRAGMENT_OFFSET) * 8
    }

    /// The options, padding included; not checked.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        self.bytes.get(LENGTH..self.header_length()).unwrap_or_default()
    }

    /// Sum of the pseudo header (RFC 768) of this packet's payload.
    #[inline]
    pub fn pseudo_sum(&self) -> u16 {
        self.header.pseudo_sum(self.total_length() - self.header_length())
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

    /// Which part of a larger packet this is, in the words of IPv6; `None` of a whole one.
    #[inline]
    pub fn part(&self) -> Option<Fragment> {
        self.is_fragment().then(|| Fragment {
            identification: self.identification().into(),
            offset: self.fragment_offset() as u16,
            more: self.more_fragments(),
        })
    }
}

impl Header {
    #[inline]
    pub(super) fn length(&self) -> usize {
        usize::from(self.version_ihl & 0x0f) * 4
    }

    #[inline]
    pub(super) fn total_length(&self) -> usize {
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

    /// The same with another type of service: DSCP and ECN.
    #[inline]
    #[must_use]
    pub fn with_tos(self, tos: u8) -> Self {
        Self { tos, ..self }.with_checksum()
    }

    /// The same with so many hops to go.
    #[inline]
    #[must_use]
    pub fn with_ttl(self, ttl: u8) -> Self {
        Self { ttl, ..self }.with_checksum()
    }

    /// The same as a packet that routers may fragment, with the identification that this takes: no two packets of
    /// the same addresses and protocol may have the same within two minutes (RFC 6864 4.2).
    #[inline]
    #[must_use]
    pub fn fragmentable(self, identification: u16) -> Self {
        Self { identification: U16::new(identification), flags_fragment: U16::ZERO, ..self }.with_checksum()
    }

    #[inline]
    fn with_checksum(mut self) -> Self {
        self.checksum = U16::ZERO;
        self.checksum = U16::new(checksum::of(self.as_bytes()));
        self
    }

    #[inline]
    fn pseudo_sum(&self, length: usize) -> u16 {
        let addresses = checksum::add(checksum::sum(&self.source), checksum::sum(&self.destination));
        checksum::add(addresses, checksum::length_and_protocol(self.protocol, length))
    }

    /// Writes the header to the front of `bytes`; `None`, and no change, where they are too short.
    #[inline]
    pub fn write(&self, bytes: &mut [u8]) -> Option<()> {
        self.write_to_prefix(bytes).ok()
    }
}

/// Sum of the pseudo header (RFC 768) of `length` bytes of an upper-layer `protocol`.
#[inline]
pub fn pseudo_sum(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: usize) -> u16 {
    Header::empty(source, destination, protocol).pseudo_sum(length)
}
