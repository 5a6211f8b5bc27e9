//! The view of a segment.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a header without options.
pub const LENGTH: usize = size_of::<Header>();

const END: u8 = 0;
pub(super) const NO_OPERATION: u8 = 1;
pub(super) const MAXIMUM_SEGMENT_SIZE: u8 = 2;
pub(super) const TIMESTAMPS: u8 = 8;

/// Control bits (RFC 9293 3.1).
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronises sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Resets the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// The fixed part of a header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) source: U16,
    pub(super) destination: U16,
    pub(super) sequence: U32,
    pub(super) acknowledgement: U32,
    /// Header length in units of four octets, in the upper half.
    pub(super) data_offset: u8,
    pub(super) flags: u8,
    pub(super) window: U16,
    pub(super) checksum: U16,
    pub(super) urgent: U16,
}

/// What is wrong with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its header.
    Truncated,
    /// A header length below 20.
    HeaderLength,
}

/// A segment whose header length was checked.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    header: &'a Header,
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Checks the segment that fills `bytes`. The checksum is not checked.
    ///
    /// # Errors
    /// What is wrong.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = Header::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
        let options = header.length().checked_sub(LENGTH).ok_or(Malformed::HeaderLength)?;
        let (options, payload) = rest.split_at_checked(options).ok_or(Malformed::Truncated)?;
        Ok(Self { header, options, payload })
    }

    /// The sender's port.
    #[inline]
    pub const fn source(&self) -> u16 {
        self.header.source.get()
    }

    /// The receiver's port.
    #[inline]
    pub const fn destination(&self) -> u16 {
        self.header.destination.get()
    }

    /// Number of the first octet of the payload, or of SYN.
    #[inline]
    pub const fn sequence(&self) -> u32 {
        self.header.sequence.get()
    }

    /// The next number the sender expects; counts with [`flag::ACK`] only.
    #[inline]
    pub const fn acknowledgement(&self) -> u32 {
        self.header.acknowledgement.get()
    }

    /// How far behind the first octet of the payload what is urgent ends, where it says that something is (RFC 9293 3.8.5).
    #[inline]
    pub fn urgent_pointer(&self) -> Option<u16> {
        self.has(flag::URG).then(|| self.header.urgent.get())
    }

    /// Control bits, see [`flag`].
    #[inline]
    pub const fn flags(&self) -> u8 {
        self.header.flags
    }

    /// Whether one of these control bits is set.
    #[inline]
    pub const fn has(&self, flags: u8) -> bool {
        self.header.flags & flags != 0
    }

    /// Octets the sender takes, before scaling.
    #[inline]
    pub const fn window(&self) -> u16 {
        self.header.window.get()
    }

    /// Bytes of the header, options included.
    #[inline]
    pub const fn header_length(&self) -> usize {
        LENGTH + self.options.len()
    }

    /// What follows the header.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// How far the segment moves the sequence number: its payload, SYN and FIN (RFC 9293 3.4).
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.has(flag::SYN)) + u32::from(self.has(flag::FIN))
    }

    /// The options one after the other, up to the end-of-options mark or one that is cut short.
    #[inline]
    pub const fn options(&self) -> OptionsIter<'a> {
        OptionsIter { bytes: self.options, at: 0 }
    }

    /// Largest segment the sender takes, where it says (RFC 9293 3.7.1).
    pub fn maximum_segment_size(&self) -> Option<u16> {
        let option = self.options().find(|option| option.kind == MAXIMUM_SEGMENT_SIZE)?;
        option.content.try_into().ok().map(u16::from_be_bytes)
    }

    /// TSval and TSecr, where it has them (RFC 7323 3.2).
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        let option = self.options().find(|option| option.kind == TIMESTAMPS)?;
        let both = u64::from_be_bytes(option.content.try_into().ok()?);
        Some(((both >> 32) as u32, both as u32))
    }
}

impl Header {
    #[inline]
    fn length(&self) -> usize {
        usize::from(self.data_offset >> 4) * 4
    }
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// Its type.
    pub kind: u8,
    /// What follows type and length.
    pub content: &'a [u8],
    /// Where it begins, in bytes from the end of the fixed header.
    pub at: usize,
}

/// The options of a segment. Each takes a byte at least, so there are at most 40.
#[derive(Clone, Copy, Debug)]
pub struct OptionsIter<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for OptionsIter<'a> {
    type Item = TcpOption<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (at, rest) = (self.at, self.bytes.get(self.at..)?);
        let (kind, length) = match rest {
            [NO_OPERATION, ..] => {
                self.at += 1;
                return Some(TcpOption { kind: NO_OPERATION, content: &[], at });
            }
            [kind, length, ..] if *kind != END => (*kind, usize::from(*length)),
            _ => return None,
        };
        let content = rest.get(2..length)?;
        self.at += length;
        Some(TcpOption { kind, content, at })
    }
}
