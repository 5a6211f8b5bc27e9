//! Path and tunnel management messages (TS 29.281 7.2 and 7.3).

use super::header::{MANDATORY, Message, write_bare, write_numbered};
use super::message_type::{ECHO_REQUEST, ECHO_RESPONSE, END_MARKER, ERROR_INDICATION};
use std::net::Ipv4Addr;

const RECOVERY: u8 = 14;
const TEID_DATA_I: u8 = 16;
const PEER_ADDRESS: u8 = 133;
/// Information elements below this type have a fixed length (TS 29.281 8.1).
const FIRST_WITH_LENGTH: u8 = 128;

/// Writes an echo request; returns its length, `None` where `bytes` are too short.
pub fn write_echo_request(bytes: &mut [u8], sequence: u16) -> Option<usize> {
    write_numbered(bytes, ECHO_REQUEST, sequence, 0)
}

/// Writes the answer to the echo request numbered `sequence`; returns its length. The restart counter is mandatory,
/// and always 0 (TS 29.281 8.2).
pub fn write_echo_response(bytes: &mut [u8], sequence: u16) -> Option<usize> {
    let body = [RECOVERY, 0];
    let at = write_numbered(bytes, ECHO_RESPONSE, sequence, body.len())?;
    bytes.get_mut(at..)?.first_chunk_mut().map(|to| *to = body)?;
    Some(at + body.len())
}

/// Writes an end marker for a peer's tunnel; returns its length.
pub fn write_end_marker(bytes: &mut [u8], teid: u32) -> Option<usize> {
    write_bare(bytes, END_MARKER, teid)
}

/// Tells a peer that its packets lead nowhere, or is told so by it (TS 29.281 7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorIndication {
    /// The tunnel of the packet that led nowhere.
    pub teid: u32,
    /// The address that packet was sent to.
    pub address: Ipv4Addr,
}

impl ErrorIndication {
    /// Bytes of the whole message.
    pub const LENGTH: usize = MANDATORY + 4 + 5 + 7;

    /// Writes the message; returns its length, `None` where `bytes` are too short.
    pub fn write(&self, bytes: &mut [u8]) -> Option<usize> {
        let at = write_numbered(bytes, ERROR_INDICATION, 0, 5 + 7)?;
        let [a, b, c, d] = self.teid.to_be_bytes();
        let [w, x, y, z] = self.address.octets();
        let body = [TEID_DATA_I, a, b, c, d, PEER_ADDRESS, 0, 4, w, x, y, z];
        bytes.get_mut(at..)?.first_chunk_mut().map(|to| *to = body)?;
        Some(at + body.len())
    }

    /// Reads the information elements of `message`, found in `bytes`; `None` where either of the two is missing.
    pub fn read(message: &Message, bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.get(message.header_length..message.total_length)?;
        let (mut teid, mut address) = (None, None);
        while let Some((kind, value, after)) = split_element(rest) {
            match kind {
                TEID_DATA_I => teid = value.first_chunk().map(|octets| u32::from_be_bytes(*octets)),
                PEER_ADDRESS => address = value.try_into().ok().map(<[u8; 4]>::into),
                _ => {}
            }
            rest = after;
        }
        Some(Self { teid: teid?, address: address? })
    }
}

/// The type and value of the first information element, and what follows.
fn split_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (length, rest) = match *kind {
        RECOVERY => (1, rest),
        TEID_DATA_I => (4, rest),
        FIRST_WITH_LENGTH.. => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let (value, after) = rest.split_at_checked(length)?;
    Some((*kind, value, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_echo_response_repeats_the_number_and_says_recovery_0() {
        let mut bytes = [0; 16];
        let length = write_echo_response(&mut bytes, 0xabcd).unwrap();
        assert_eq!(bytes[..length], [0x32, 2, 0, 6, 0, 0, 0, 0, 0xab, 0xcd, 0, 0, 14, 0]);
    }

    #[test]
    fn an_end_marker_is_a_bare_header() {
        let mut bytes = [0; 8];
        assert_eq!(write_end_marker(&mut bytes, 7), Some(8));
        assert_eq!(bytes, [0x30, 254, 0, 0, 0, 0, 0, 7]);
    }

    proptest! {
        #[test]
        fn an_error_indication_reads_as_it_was_written(teid: u32, address: [u8; 4]) {
            let sent = ErrorIndication { teid, address: address.into() };
            let mut bytes = [0; ErrorIndication::LENGTH];
            prop_assert_eq!(sent.write(&mut bytes), Some(ErrorIndication::LENGTH));
            let message = Message::parse(&bytes).unwrap();
            prop_assert_eq!(ErrorIndication::read(&message, &bytes), Some(sent));
        }

        #[test]
        fn elements_of_any_shape_end(body in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut bytes = vec![0; 12];
            write_numbered(&mut bytes, ERROR_INDICATION, 0, body.len()).unwrap();
            bytes.extend(&body);
            let message = Message::parse(&bytes).unwrap();
            let _ = ErrorIndication::read(&message, &bytes);
        }
    }
}
