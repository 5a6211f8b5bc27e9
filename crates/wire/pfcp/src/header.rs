//! The header every message starts with (TS 29.244 7.2.2).

use crate::ErrorKind;
use rs_pfcp::message::MsgType;
use rs_pfcp::message::header::Header as Wire;
use std::ops::Range;

/// Octets before those the length field counts.
const UNCOUNTED: usize = 4;
/// Where the length field is.
const LENGTH: Range<usize> = 2..4;
/// Octets of most answers: more room is made where it is needed.
const USUAL: usize = 128;

/// What a header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// 1 for what we speak.
    pub version: u8,
    /// By number, known or not (7.3).
    pub message_type: u8,
    /// The receiver's name for the session; absent in node related messages.
    pub seid: Option<u64>,
    /// 24 bits.
    pub sequence: u32,
    /// 0, the highest, to 15.
    pub priority: Option<u8>,
}

/// The header, and the octets after it that belong to the message.
///
/// Octets beyond the length the header tells are left alone: a sender bundles messages only for a peer that
/// advertised BUNDL, and we do not.
pub(crate) fn read(bytes: &[u8]) -> Result<(Header, &[u8]), ErrorKind> {
    let wire = Wire::unmarshal(bytes).map_err(|_| ErrorKind::Garbage)?;
    let end = UNCOUNTED + usize::from(wire.length);
    let body = bytes.get(usize::from(wire.len())..end).ok_or(ErrorKind::Garbage)?;
    Ok((summary(&wire), body))
}

/// The header, though the rest may be cut short.
pub fn peek(bytes: &[u8]) -> Option<Header> {
    Wire::unmarshal(bytes).ok().map(|wire| summary(&wire))
}

fn summary(wire: &Wire) -> Header {
    Header {
        version: wire.version,
        message_type: wire.message_type_code(),
        seid: wire.has_seid.then_some(wire.seid.0),
        sequence: wire.sequence_number.0,
        // The low four bits of the octet are spare (7.2.2.3).
        priority: wire.has_mp.then_some(wire.message_priority >> 4),
    }
}

/// Puts `header` before what `body` appends, whose length it tells.
pub(crate) fn write(header: &Header, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let message_type = MsgType::from(header.message_type);
    let has_seid = header.seid.is_some();
    let mut wire = Wire::new(message_type, has_seid, header.seid.unwrap_or(0), header.sequence & 0x00FF_FFFF);
    wire.has_mp = header.priority.is_some();
    wire.message_priority = header.priority.unwrap_or(0) << 4;
    let mut bytes = Vec::with_capacity(USUAL);
    wire.marshal_into(&mut bytes);
    body(&mut bytes);
    let length = u16::try_from(bytes.len() - UNCOUNTED).unwrap_or(u16::MAX);
    bytes.get_mut(LENGTH).into_iter().for_each(|field| field.copy_from_slice(&length.to_be_bytes()));
    bytes
}
