//! The header and its chain of extension headers (TS 29.281 5.1 and 5.2).

use super::message_type::G_PDU;
use super::pdu_session::{self, PduSession};
use zerocopy::byteorder::network_endian::{U16, U32};
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
/// No sender needs more extension headers; a longer chain is an attack on the receiver's time.
const EXTENSIONS_MAX: usize = 8;
/// The two highest bits of an unknown type: the receiver must understand it (TS 29.281 figure 5.2.1-2).
const COMPREHENSION: u8 = 0b1100_0000;
/// Comprehension required by the endpoint receiver, or by receiver and intermediate nodes.
const REQUIRED_BY_ENDPOINT: u8 = 0b1000_0000;

/// What every message begins with.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    flags: u8,
    message_type: u8,
    /// Bytes after the head.
    pub(super) length: U16,
    teid: U32,
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
            header_length: MANDATORY,
            total_length: MANDATORY + length,
        };
        match (mandatory.flags & OPTIONAL_PRESENT, body.first_chunk()) {
            (0, _) => {}
            // What radios send: a PDU session container without optional fields, and nothing else.
            (EXTENSION, Some([_, _, _, pdu_session::EXTENSION_TYPE, 1, kind, flow, 0])) => {
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

    fn read_extensions(&mut self, first: u8, extensions: &[u8]) -> Result<(), Malformed> {
        let (mut next, mut rest) = (first, extensions);
        for _ in 0..EXTENSIONS_MAX {
            if next == 0 {
                return Ok(());
            }
            let (content, following, after) = split_extension(rest).ok_or(Malformed::Extension)?;
            self.note_extension(next, content)?;
            self.header_length += rest.len() - after.len();
            (next, rest) = (following, after);
        }
        if next == 0 { Ok(()) } else { Err(Malformed::Extension) }
    }

    fn note_extension(&mut self, kind: u8, content: &[u8]) -> Result<(), Malformed> {
        match kind {
            pdu_session::EXTENSION_TYPE => {
                self.pdu_session = Some(PduSession::parse(content).ok_or(Malformed::Extension)?);
                Ok(())
            }
            // PDCP PDU number and the like: for the radio side (TS 29.281 5.2.2).
            kind if kind & COMPREHENSION < REQUIRED_BY_ENDPOINT => Ok(()),
            _ => Err(Malformed::UnknownExtension),
        }
    }
}

/// The content of the first extension header, the type of the next, and what follows. Its first octet counts units
/// of four octets, itself and the next type included.
fn split_extension(bytes: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let length = usize::from(*bytes.first()?) * 4;
    let (extension, after) = bytes.split_at_checked(length)?;
    let (next, content) = extension.get(1..)?.split_last()?;
    Some((content, *next, after))
}

/// What follows the head of a G-PDU with a PDU session container: 0, 8 or 12 bytes, the unused ones 0.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Tail {
    optional: Optional,
    container: [u8; pdu_session::LENGTH_MAX],
}

impl Tail {
    /// Writes its first `length` bytes to the front of `bytes`.
    #[inline]
    pub(super) fn write(&self, bytes: &mut [u8], length: u8) -> Option<()> {
        const SHORT: usize = OPTIONAL + pdu_session::LENGTH;
        let tail = self.as_bytes();
        match usize::from(length) {
            0 => Some(()),
            SHORT => bytes.first_chunk_mut::<SHORT>().zip(tail.first_chunk()).map(|(to, from)| *to = *from),
            _ => self.write_to_prefix(bytes).ok(),
        }
    }
}

/// The head of a G-PDU, its length still 0, what follows it, and how many bytes of that count.
#[inline]
pub(super) fn g_pdu(teid: u32, pdu_session: Option<PduSession>) -> (Head, Tail, u8) {
    let flags = if pdu_session.is_some() { VERSION_1_GTP | EXTENSION } else { VERSION_1_GTP };
    let head = Head { flags, message_type: G_PDU, length: U16::ZERO, teid: U32::new(teid) };
    let next_extension = if pdu_session.is_some() { pdu_session::EXTENSION_TYPE } else { 0 };
    let optional = Optional { sequence: U16::ZERO, n_pdu: 0, next_extension };
    let container = pdu_session.map_or([0; pdu_session::LENGTH_MAX], PduSession::octets);
    let length = encapsulated_length(pdu_session) - MANDATORY;
    (head, Tail { optional, container }, length as u8)
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
    let (mut head, tail, tail_length) = g_pdu(teid, pdu_session);
    head.length.set(u16::try_from(payload + usize::from(tail_length)).ok()?);
    head.write_to_prefix(bytes).ok()?;
    tail.write(bytes.get_mut(MANDATORY..)?, tail_length)
}

/// Writes the header of a message other than G-PDU, with a sequence number; `body` counts the bytes after it.
pub(super) fn write_numbered(bytes: &mut [u8], kind: u8, sequence: u16, body: usize) -> Option<usize> {
    let length = U16::new(u16::try_from(OPTIONAL + body).ok()?);
    let mandatory = Head { flags: VERSION_1_GTP | SEQUENCE, message_type: kind, length, teid: U32::ZERO };
    mandatory.write_to_prefix(bytes).ok()?;
    write_optional(bytes.get_mut(MANDATORY..)?, sequence, 0)?;
    Some(MANDATORY + OPTIONAL)
}

/// Writes the header of an end marker: no sequence number, no payload (TS 29.281 7.3.2).
pub(super) fn write_bare(bytes: &mut [u8], kind: u8, teid: u32) -> Option<usize> {
    let mandatory =
        Head { flags: VERSION_1_GTP, message_type: kind, length: U16::ZERO, teid: U32::new(teid) };
    mandatory.write_to_prefix(bytes).ok()?;
    Some(MANDATORY)
}

fn write_optional(bytes: &mut [u8], sequence: u16, next_extension: u8) -> Option<()> {
    Optional { sequence: U16::new(sequence), n_pdu: 0, next_extension }.write_to_prefix(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::super::PduType;
    use super::*;
    use proptest::prelude::*;

    /// An uplink G-PDU of a real gNB: TEID 0x0000fa1f, PDU session container with QFI 1.
    const UPLINK: [u8; 16] =
        [0x34, 0xff, 0x00, 0x08, 0x00, 0x00, 0xfa, 0x1f, 0x00, 0x00, 0x00, 0x85, 0x01, 0x10, 0x01, 0x00];

    #[test]
    fn an_uplink_packet_of_a_gnb() {
        let message = Message::parse(&UPLINK).unwrap();
        assert_eq!((message.message_type, message.teid), (G_PDU, 0xfa1f));
        assert_eq!((message.header_length, message.total_length), (16, 16));
        let pdu_session = message.pdu_session.unwrap();
        assert_eq!((pdu_session.pdu_type, pdu_session.qfi), (PduType::Uplink, 1));
        assert_eq!(message.sequence, None);
    }

    #[test]
    fn each_fault_has_its_name() {
        let with = |at: usize, value: u8| [&UPLINK[..at], &[value], &UPLINK[at + 1..]].concat();
        assert_eq!(Message::parse(&UPLINK[..7]), Err(Malformed::Truncated));
        assert_eq!(Message::parse(&UPLINK[..15]), Err(Malformed::Truncated));
        assert_eq!(Message::parse(&with(0, 0x54)), Err(Malformed::Version));
        assert_eq!(Message::parse(&with(0, 0x24)), Err(Malformed::Version));
        assert_eq!(Message::parse(&with(12, 0)), Err(Malformed::Extension));
        assert_eq!(Message::parse(&with(12, 2)), Err(Malformed::Extension));
        assert_eq!(Message::parse(&with(15, 0x85)), Err(Malformed::Extension));
        assert_eq!(Message::parse(&with(11, 0xc1)), Err(Malformed::UnknownExtension));
    }

    #[test]
    fn an_unknown_extension_nobody_insists_on_is_skipped() {
        let mut bytes = UPLINK;
        bytes[11] = 0x03;
        let message = Message::parse(&bytes).unwrap();
        assert_eq!((message.header_length, message.pdu_session), (16, None));
    }

    #[test]
    fn an_endless_chain_of_extensions_ends() {
        let mut bytes = UPLINK[..12].to_vec();
        bytes.extend([0x01, 0x10, 0x01, 0x85].repeat(EXTENSIONS_MAX));
        bytes.extend([0x01, 0x10, 0x01, 0x00]);
        bytes[3] = (bytes.len() - MANDATORY) as u8;
        assert_eq!(Message::parse(&bytes), Err(Malformed::Extension));
    }

    proptest! {
        #[test]
        fn a_g_pdu_reads_as_it_was_written(teid: u32, qfi in proptest::option::of(0u8..64), payload in 0usize..1500) {
            let pdu_session = qfi.map(PduSession::downlink);
            let header = encapsulated_length(pdu_session);
            let mut bytes = vec![0; header + payload];
            write_g_pdu(&mut bytes, teid, pdu_session, payload).unwrap();
            let message = Message::parse(&bytes).unwrap();
            prop_assert_eq!((message.teid, message.pdu_session), (teid, pdu_session));
            prop_assert_eq!((message.header_length, message.total_length), (header, bytes.len()));
        }

        #[test]
        fn any_bytes_parse_or_fail_and_lengths_hold(mut bytes in proptest::collection::vec(any::<u8>(), 8..64)) {
            bytes[0] = VERSION_1_GTP | bytes[0] & 7;
            bytes[2] = 0;
            if let Ok(message) = Message::parse(&bytes) {
                prop_assert!(message.header_length <= message.total_length);
                prop_assert!(message.total_length <= bytes.len());
            }
        }
    }
}
