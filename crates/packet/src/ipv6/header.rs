//! The fixed header.

use super::extensions::{self, Upper};
use crate::checksum;
use std::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the fixed header.
pub const LENGTH: usize = size_of::<Header>();

const VERSION: u32 = 6 << 28;
const CLASS_SHIFT: u32 = 20;
const FLOW_LABEL: u32 = 0x000f_ffff;
const HOPS: u8 = 64;

/// The fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Version, traffic class and flow label.
    version_class_flow: U32,
    pub(crate) payload_length: U16,
    next_header: u8,
    pub(super) hop_limit: u8,
    pub(super) source: [u8; 16],
    pub(super) destination: [u8; 16],
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its header or its payload length says.
    Truncated,
    /// Not version 6.
    Version,
    /// An extension header that is cut short, or in a place where it may not be.
    Extension,
    /// More extension headers than [`super::EXTENSIONS_MAX`].
    TooManyExtensions,
}

/// A packet that was checked: its length fits the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    header: &'a Header,
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks version and length. Bytes beyond the payload length (Ethernet padding) are allowed. Jumbograms
    /// (RFC 2675) are read as packets without payload.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] or [`Malformed::Version`].
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = Header::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
        if header.version_class_flow.get() >> 28 != 6 {
            return Err(Malformed::Version);
        }
        let payload = rest.get(..usize::from(header.payload_length.get())).ok_or(Malformed::Truncated)?;
        Ok(Self { header, payload })
    }

    /// Finds what the packet carries behind its extension headers.
    ///
    /// # Errors
    /// [`Malformed::Extension`] or [`Malformed::TooManyExtensions`].
    #[inline]
    pub fn upper(&self) -> Result<Upper, Malformed> {
        extensions::behind(self.header.next_header, self.payload)
    }

    /// Whether an extension header follows the fixed one.
    #[inline]
    pub const fn has_extensions(&self) -> bool {
        extensions::is_extension(self.header.next_header)
    }

    /// The fixed header.
    #[inline]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// What follows the fixed header, extension headers included.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Bytes of header and payload.
    #[inline]
    pub const fn total_length(&self) -> usize {
        LENGTH + self.payload.len()
    }

    /// From whom.
    #[inline]
    pub const fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.header.source)
    }

    /// To whom.
    #[inline]
    pub const fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.header.destination)
    }

    /// Hops it may still go.
    #[inline]
    pub const fn hop_limit(&self) -> u8 {
        self.header.hop_limit
    }

    /// The type of the first header behind the fixed one: an extension header or an upper-layer protocol.
    #[inline]
    pub const fn next_header(&self) -> u8 {
        self.header.next_header
    }

    /// Traffic class: DSCP and ECN.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        self.header.traffic_class()
    }

    /// Flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        self.header.version_class_flow.get() & FLOW_LABEL
    }

    /// Sum of the pseudo header (RFC 8200 8.1) of `length` bytes of an upper-layer `protocol`.
    #[inline]
    pub fn pseudo_sum(&self, protocol: u8, length: usize) -> u16 {
        let addresses =
            checksum::add(checksum::sum(&self.header.source), checksum::sum(&self.header.destination));
        checksum::add(addresses, checksum::length_and_protocol(protocol, length))
    }
}

/// Sum of the pseudo header (RFC 8200 8.1) of `length` bytes of an upper-layer `protocol`.
#[inline]
pub fn pseudo_sum(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: usize) -> u16 {
    let addresses = checksum::add(checksum::sum(&source.octets()), checksum::sum(&destination.octets()));
    checksum::add(addresses, checksum::length_and_protocol(protocol, length))
}

impl Header {
    /// The type of the first header behind this one: an extension header or an upper-layer protocol.
    pub(crate) const fn next_header(&self) -> u8 {
        self.next_header
    }

    /// A header for `payload` bytes that begin with a `next_header`; `None` where they exceed 65,535. 64 hops,
    /// traffic class and flow label 0.
    #[inline]
    pub fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: usize) -> Option<Self> {
        let payload_length = U16::new(u16::try_from(payload).ok()?);
        Some(Self { payload_length, ..Self::empty(source, destination, next_header) })
    }

    /// A header whose payload length is still 0.
    #[inline]
    pub(crate) const fn empty(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8) -> Self {
        Self {
            version_class_flow: U32::new(VERSION),
            payload_length: U16::ZERO,
            next_header,
            hop_limit: HOPS,
            source: source.octets(),
            destination: destination.octets(),
        }
    }

    /// The same with another traffic class (DSCP and ECN).
    #[inline]
    #[must_use]
    pub fn with_traffic_class(mut self, class: u8) -> Self {
        self.set_traffic_class(class);
        self
    }

    /// The same with another flow label, of which the lower 20 bits count.
    #[inline]
    #[must_use]
    pub fn with_flow_label(mut self, label: u32) -> Self {
        self.set_flow_label(label);
        self
    }

    /// The same with so many hops to go.
    #[inline]
    #[must_use]
    pub const fn with_hop_limit(mut self, hops: u8) -> Self {
        self.hop_limit = hops;
        self
    }

    /// Writes the header to the front of `bytes`; `None`, and no change, where they are too short.
    #[inline]
    pub fn write(&self, bytes: &mut [u8]) -> Option<()> {
        self.write_to_prefix(bytes).ok()
    }

    /// The header at the front of `bytes`, where they are long enough and of version 6.
    #[inline]
    pub(super) fn of(bytes: &mut [u8]) -> Option<&mut Self> {
        let (header, _) = Self::mut_from_prefix(bytes).ok()?;
        (header.version_class_flow.get() >> 28 == 6).then_some(header)
    }

    #[inline]
    pub(crate) fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> CLASS_SHIFT) as u8
    }

    #[inline]
    pub(super) fn set_traffic_class(&mut self, class: u8) {
        let others = self.version_class_flow.get() & !(0xff << CLASS_SHIFT);
        self.version_class_flow.set(others | u32::from(class) << CLASS_SHIFT);
    }

    #[inline]
    pub(super) fn set_flow_label(&mut self, label: u32) {
        let others = self.version_class_flow.get() & !FLOW_LABEL;
        self.version_class_flow.set(others | label & FLOW_LABEL);
    }

    /// Source and destination as they stand on the wire.
    #[inline]
    pub(crate) const fn addresses(&self) -> (&[u8; 16], &[u8; 16]) {
        (&self.source, &self.destination)
    }
}
