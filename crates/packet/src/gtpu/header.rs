//! The header and its chain of extension headers (TS 29.281 5.1 and 5.2).

use super::extension::{BrokenChain, EXTENSIONS_MAX, Extension, Extensions, extension_type};
use super::message_type::G_PDU;
use super::pdu_session::{self, PduSession};
use super::relay::is_relayed;
use crate::checksum;
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const VERSION_1_GTP: u8 = 0b0011_0000;
const VERSION_MASK: u8 = 0b1110_0000;
const PROTOCOL_TYPE: u8 = 0b0001_0000;
const EXTENSION: u8 = 0b0000_0100;
const SEQUENCE: u8 = 0b0000_0010;
const OPTIONAL_PRESENT: u8 = 0b0000_0111;

/// Bytes of the mandatory part.
pub(super) const MANDATORY: usize = size_of::<Head>();
/// Bytes of the part that any of the E, S and PN flags brings along.
const OPTIONAL: usize = size_of::<Optional>();
/// What every message begins with.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    flags: u8,
    message_type: u8,
    /// Bytes after the head.
    length: U16,
    teid: U32,
}

impl Head {
    /// Of a user's packet without extension headers.
    pub(super) const fn g_pdu() -> Self {
        Self { flags: VERSION_1_GTP, message_type: G_PDU, length: U16::ZERO, teid: U32::ZERO }
    }

    /// Fills in what differs from packet to packet; `after_head` counts all that follows.
    #[inline(always)]
    pub(super) fn patch(&mut self, teid: u32, after_head: u16) {
        self.length.set(after_head);
        self.teid.set(teid);
    }

    /// An extension header follows.
    #[inline(always)]
    pub(super) fn announce_extension(&mut self) {
        self.flags = VERSION_1_GTP | EXTENSION;
    }
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Optional {
    sequence: U16,
    n_pdu: u8,
    next_extension: u8,
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its header or its length says.
    Truncated,
    /// Not GTP version 1, or GTP'.
    Version,
    /// An extension header of length 0, beyond the message, or one too many.
    Extension,
    /// An extension header we must understand and do not.
    UnknownExtension,
}

/// A message whose lengths and extension headers were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// See [`super::message_type`].
    pub message_type: u8,
    /// The receiver's tunnel; 0 on path messages.
    pub teid: u32,
    /// Where the sender numbers its messages.
    pub sequence: Option<u16>,
    /// The PDU session container, if any.
    pub pdu_session: Option<PduSession>,
    /// There are extension headers that go on with the packet ([`super::Relayed`]).
    pub relays: bool,
    /// Bytes before the payload.
    pub header_length: usize,
    /// Bytes of header and payload.
    pub total_length: usize,
}

impl Message {
    /// Checks the message that starts at the front of `bytes`.
    ///
    /// # Errors
    /// What is wrong, the most basic first.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (mandatory, rest) = Head::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
        if mandatory.flags & (VERSION_MASK | PROTOCOL_TYPE) != VERSION_1_GTP {
            return Err(Malformed::Version);
        }
        let length = usize::from(mandatory.length.get());
        let body = rest.get(..length).ok_or(Malformed::Truncated)?;
        let mut message = Self {
            message_type: mandatory.message_type,
            teid: mandatory.teid.get(),
            sequence: None,
            pdu_session: None,
            relays: false,
            header_length: MANDATORY,
            total_length: MANDATORY + length,
        };
        match (mandatory.flags & OPTIONAL_PRESENT, body.first_chunk()) {
            (0, _) => {}
            // What radios send: a PDU session container without optional fields, and nothing else.
            (EXTENSION, Some([_, _, _, extension_type::PDU_SESSION_CONTAINER, 1, kind, flow, 0])) => {
                let pdu_session = PduSession::parse(&[*kind, *flow]).ok_or(Malformed::Extension)?;
                message.pdu_session = Some(pdu_session);
                message.header_length = MANDATORY + OPTIONAL + pdu_session::LENGTH;
            }
            (flags, _) => message.read_optional(flags, body)?,
        }
        Ok(message)
    }

    #[cold]
    fn read_optional(&mut self, flags: u8, body: &[u8]) -> Result<(), Malformed> {
        let (optional, extensions) = Optional::ref_from_prefix(body).map_err(|_| Malformed::Truncated)?;
        self.header_length += OPTIONAL;
        // A field whose flag is not set is there but not to be read (TS 29.281 5.1).
        self.sequence = (flags & SEQUENCE != 0).then_some(optional.sequence.get());
        if flags & EXTENSION != 0 {
            self.read_extensions(optional.next_extension, extensions)?;
        }
        Ok(())
    }

    fn read_extensions(&mut self, first: u8, bytes: &[u8]) -> Result<(), Malformed> {
        let mut extensions = Extensions::of(first, bytes);
        for extension in extensions.by_ref() {
            self.note_extension(extension?)?;
        }
        self.header_length += bytes.len() - extensions.rest().len();
        Ok(())
    }

    fn note_extension(&mut self, extension: Extension<'_>) -> Result<(), Malformed> {
        if extension.kind == extension_type::PDU_SESSION_CONTAINER {
            self.pdu_session = Some(PduSession::parse(extension.content).ok_or(Malformed::Extension)?);
        } else if extension.is_unknown_but_required() {
            return Err(Malformed::UnknownExtension);
        }
        self.relays |= is_relayed(extension.kind);
        Ok(())
    }

    /// The extension headers of this message, found in `bytes`.
    pub fn extensions<'a>(&self, bytes: &'a [u8]) -> Extensions<'a> {
        Extensions::in_front(bytes.get(..self.header_length).unwrap_or_default())
    }
}

impl<'a> Extensions<'a> {
    /// Those of a header, from its first octet to its last.
    pub(super) fn in_front(header: &'a [u8]) -> Self {
        match header.split_first_chunk::<{ MANDATORY + OPTIONAL }>() {
            Some(([flags, .., first], chain)) if flags & EXTENSION != 0 => Self::of(*first, chain),
            _ => Self::of(0, &[]),
        }
    }
}

impl From<BrokenChain> for Malformed {
    fn from(_: BrokenChain) -> Self {
        Self::Extension
    }
}

/// The header of a G-PDU, its length still 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct GPdu {
    head: Head,
    /// What a PDU session container brings along, but for the zeros at its end; 0 without.
    tail: U64,
    /// How many bytes follow the head: 0, 8 or 12.
    tail_length: u8,
}

impl GPdu {
    #[inline]
    pub(super) fn new(teid: u32, pdu_session: Option<PduSession>) -> Self {
        let flags = if pdu_session.is_some() { VERSION_1_GTP | EXTENSION } else { VERSION_1_GTP };
        let head = Head { flags, teid: U32::new(teid), ..Head::g_pdu() };
        // No sequence number and no N-PDU number before the type of the container.
        let optional = u64::from(extension_type::PDU_SESSION_CONTAINER) << 32;
        let tail = pdu_session.map_or(0, |container| optional | u64::from(container.word()));
        let tail_length = (encapsulated_length(pdu_session) - MANDATORY) as u8;
        Self { head, tail: U64::new(tail), tail_length }
    }

    /// The same for another QoS flow.
    #[inline]
    pub(super) fn with(&self, pdu_session: Option<PduSession>) -> Self {
        Self::new(self.head.teid.get(), pdu_session)
    }

    /// Bytes of the header.
    #[inline]
    pub(super) const fn length(&self) -> usize {
        MANDATORY + self.tail_length as usize
    }

    /// Sum of the header without its length.
    #[inline]
    pub(super) fn sum(&self) -> u16 {
        checksum::add(checksum::sum(self.head.as_bytes()), checksum::sum(self.tail.as_bytes()))
    }

    /// Writes the header to the front of `bytes`; `after_head` counts all that follows the head.
    #[inline]
    pub(super) fn write(&self, bytes: &mut [u8], after_head: u16) -> Option<()> {
        let mut head = self.head;
        head.length.set(after_head);
        head.write_to_prefix(bytes).ok()?;
        if self.tail_length == 0 {
            return Some(());
        }
        let rest = bytes.get_mut(MANDATORY..)?;
        self.tail.write_to_prefix(rest).ok()?;
        if usize::from(self.tail_length) > size_of::<U64>() {
            *rest.get_mut(size_of::<U64>()..)?.first_chunk_mut()? = [0; 4];
        }
        Some(())
    }
}

/// Bytes that the header of a G-PDU with such a container takes.
#[inline]
pub const fn encapsulated_length(pdu_session: Option<PduSession>) -> usize {
    match pdu_session {
        Some(pdu_session) => MANDATORY + OPTIONAL + pdu_session.length(),
        None => MANDATORY,
    }
}

/// Writes the header of a G-PDU for `payload` bytes to the front of `bytes`; `None` where they are too short or the
/// payload is too long.
#[inline]
pub fn write_g_pdu(
    bytes: &mut [u8],
    teid: u32,
    pdu_session: Option<PduSession>,
    payload: usize,
) -> Option<()> {
    let header = GPdu::new(teid, pdu_session);
    let after_head = u16::try_from(header.length() - MANDATORY + payload).ok()?;
    header.write(bytes, after_head)
}

/// Writes the header of a G-PDU with these extension headers, for a packet that is passed on as it came; returns the
/// header's length. `None` where `bytes` are too short, the payload is too long, or there are more extension headers
/// than [`super::EXTENSIONS_MAX`].
pub fn write_g_pdu_with(
    bytes: &mut [u8],
    teid: u32,
    extensions: &[Extension<'_>],
    payload: usize,
) -> Option<usize> {
    write_message(bytes, Start { kind: G_PDU, sequence: None, teid }, extensions, payload)
}

/// How a message begins.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) kind: u8,
    pub(super) sequence: Option<u16>,
    pub(super) teid: u32,
}

/// Bytes that the header of a G-PDU with these extension headers takes.
pub(super) fn length_with(extensions: &[Extension<'_>]) -> usize {
    let optional = if extensions.is_empty() { 0 } else { OPTIONAL };
    MANDATORY + optional + extensions.iter().map(Extension::length).sum::<usize>()
}

/// Writes a header with these extension headers, `body` counting the bytes after it; returns its length.
pub(super) fn write_message(
    bytes: &mut [u8],
    start: Start,
    extensions: &[Extension<'_>],
    body: usize,
) -> Option<usize> {
    let extended = extensions.iter().map(Extension::length).sum::<usize>();
    let sequence_flag = start.sequence.map_or(0, |_| SEQUENCE);
    let flags = sequence_flag | extensions.first().map_or(0, |_| EXTENSION);
    let optional = if flags == 0 { 0 } else { OPTIONAL };
    let length = u16::try_from(optional + extended + body).ok()?;
    let head = Head {
        flags: VERSION_1_GTP | flags,
        message_type: start.kind,
        length: U16::new(length),
        teid: U32::new(start.teid),
    };
    head.write_to_prefix(bytes).ok()?;
    if flags != 0 {
        write_optional(bytes.get_mut(MANDATORY..)?, start.sequence.unwrap_or(0), extensions)?;
    }
    Some(MANDATORY + optional + extended)
}

fn write_optional(bytes: &mut [u8], sequence: u16, extensions: &[Extension<'_>]) -> Option<()> {
    if extensions.len() > EXTENSIONS_MAX {
        return None;
    }
    let next_extension = extensions.first().map_or(0, |extension| extension.kind);
    let optional = Optional { sequence: U16::new(sequence), n_pdu: 0, next_extension };
    optional.write_to_prefix(bytes).ok()?;
    let mut rest = bytes.get_mut(OPTIONAL..)?;
    let nexts = extensions.iter().skip(1).map(|extension| extension.kind).chain([0]);
    for (extension, next) in extensions.iter().zip(nexts) {
        rest = extension.write(rest, next)?;
    }
    Some(())
}

#[cfg(test)]
mod tests;
