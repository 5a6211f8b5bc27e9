//! Path and tunnel management messages (TS 29.281 7.2 and 7.3).

use super::element::{EXTENSION_HEADER_TYPES, Elements, RECOVERY, RECOVERY_TIME_STAMP, recovery_time_stamp};
use super::extension::{Extension, SUPPORTED};
use super::header::{Message, Start, write_message};
use super::message_type::{
    ECHO_REQUEST, ECHO_RESPONSE, END_MARKER, SUPPORTED_EXTENSION_HEADERS_NOTIFICATION,
};
use super::{PduSession, extension_type};

/// Most bytes of an echo request or its answer.
pub const ECHO_MAX: usize = 21;

/// Writes an echo request with the sender's Recovery Time Stamp, if it has one; returns its length, `None` where `bytes`
/// are too short.
pub fn write_echo_request(bytes: &mut [u8], sequence: u16, stamp: Option<u32>) -> Option<usize> {
    match stamp.map(recovery_time_stamp) {
        Some(stamp) => write_numbered(bytes, ECHO_REQUEST, sequence, &stamp),
        None => write_numbered(bytes, ECHO_REQUEST, sequence, &[]),
    }
}

/// Writes the answer to the echo request numbered `sequence`, with the Recovery Time Stamp as of
/// [`write_echo_request`]; returns its length. The restart counter is mandatory, and always 0 (TS 29.281 8.2).
pub fn write_echo_response(bytes: &mut [u8], sequence: u16, stamp: Option<u32>) -> Option<usize> {
    match stamp.map(recovery_time_stamp) {
        Some([a, b, c, d, e, f, g]) => {
            write_numbered(bytes, ECHO_RESPONSE, sequence, &[RECOVERY, 0, a, b, c, d, e, f, g])
        }
        None => write_numbered(bytes, ECHO_RESPONSE, sequence, &[RECOVERY, 0]),
    }
}

/// The Recovery Time Stamp of an echo request, its answer, or an Error Indication, found in `bytes`, in seconds since 1900
/// (TS 29.281 8.8); `None` where there is none, or it is too short.
pub fn read_recovery_time_stamp(message: &Message, bytes: &[u8]) -> Option<u32> {
    let body = bytes.get(message.header_length..message.total_length)?;
    let stamp = Elements::of(body).find(|element| element.kind == RECOVERY_TIME_STAMP)?;
    stamp.value.first_chunk().map(|octets| u32::from_be_bytes(*octets))
}

/// Writes an end marker for a peer's tunnel; returns its length.
pub fn write_end_marker(bytes: &mut [u8], teid: u32) -> Option<usize> {
    write_message(bytes, Start { kind: END_MARKER, sequence: None, teid }, &[], 0)
}

/// Writes an end marker for one QoS flow of a peer's tunnel (TS 29.281 5.2.2.7); returns its length.
pub fn write_end_marker_of_flow(bytes: &mut [u8], teid: u32, pdu_session: PduSession) -> Option<usize> {
    let [_, kind, flow, policy] = pdu_session.word().to_be_bytes();
    let octets = [kind, flow, policy, 0, 0, 0];
    let content = octets.get(..pdu_session.length() - 2)?;
    let container = Extension { kind: extension_type::PDU_SESSION_CONTAINER, content };
    write_message(bytes, Start { kind: END_MARKER, sequence: None, teid }, &[container], 0)
}

/// Writes the list of extension headers we know, for a peer that sent one we should know and do not
/// (TS 29.281 7.2.3); returns its length.
pub fn write_supported_extension_headers(bytes: &mut [u8], sequence: u16) -> Option<usize> {
    let [a, b, c, d] = SUPPORTED;
    let body = [EXTENSION_HEADER_TYPES, SUPPORTED.len() as u8, a, b, c, d];
    write_numbered(bytes, SUPPORTED_EXTENSION_HEADERS_NOTIFICATION, sequence, &body)
}

/// The types of extension headers that the sender of `message`, found in `bytes`, knows; `None` where the list is
/// missing.
pub fn read_supported_extension_headers<'a>(message: &Message, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let body = bytes.get(message.header_length..message.total_length)?;
    Elements::of(body).find(|element| element.kind == EXTENSION_HEADER_TYPES).map(|element| element.value)
}

fn write_numbered(bytes: &mut [u8], kind: u8, sequence: u16, body: &[u8]) -> Option<usize> {
    let start = Start { kind, sequence: Some(sequence), teid: 0 };
    let at = write_message(bytes, start, &[], body.len())?;
    bytes.get_mut(at..)?.get_mut(..body.len())?.copy_from_slice(body);
    Some(at + body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_response_repeats_the_number_and_says_recovery_0() {
        let mut bytes = [0; 16];
        let length = write_echo_response(&mut bytes, 0xabcd, None).unwrap();
        assert_eq!(bytes[..length], [0x32, 2, 0, 6, 0, 0, 0, 0, 0xab, 0xcd, 0, 0, 14, 0]);
    }

    #[test]
    fn a_recovery_time_stamp_is_read_as_it_was_written() {
        let mut bytes = [0; ECHO_MAX];
        let length = write_echo_request(&mut bytes, 1, Some(0xe900_0001)).unwrap();
        let expected = [0x32, 1, 0, 11, 0, 0, 0, 0, 0, 1, 0, 0, 231, 0, 4, 0xe9, 0, 0, 1];
        assert_eq!(bytes[..length], expected);
        let length = write_echo_response(&mut bytes, 1, Some(0xe900_0001)).unwrap();
        assert_eq!((length, &bytes[12..17]), (ECHO_MAX, &[14, 0, 231, 0, 4][..]));
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(read_recovery_time_stamp(&message, &bytes), Some(0xe900_0001));
        // Cut short, or none: the restart counter in front of it is no stamp.
        for body in [&[14, 77, 231, 0, 3, 1, 2, 3][..], &[14, 77], &[231, 0, 4, 1, 2, 3]] {
            let length = write_numbered(&mut bytes, ECHO_RESPONSE, 1, body).unwrap();
            let message = Message::parse(&bytes[..length]).unwrap();
            assert_eq!(read_recovery_time_stamp(&message, &bytes), None);
        }
    }

    #[test]
    fn an_end_marker_is_a_bare_header() {
        let mut bytes = [0; 8];
        assert_eq!(write_end_marker(&mut bytes, 7), Some(8));
        assert_eq!(bytes, [0x30, 254, 0, 0, 0, 0, 0, 7]);
    }

    #[test]
    fn an_end_marker_of_a_flow_carries_its_container() {
        let mut bytes = [0; 16];
        assert_eq!(write_end_marker_of_flow(&mut bytes, 7, PduSession::downlink(9)), Some(16));
        let message = Message::parse(&bytes).unwrap();
        assert_eq!((message.message_type, message.pdu_session), (END_MARKER, Some(PduSession::downlink(9))));
    }

    #[test]
    fn the_list_of_extension_headers_is_read_with_either_length() {
        let mut bytes = [0; 20];
        let length = write_supported_extension_headers(&mut bytes, 3).unwrap();
        assert_eq!(
            bytes[..length],
            [0x32, 31, 0, 10, 0, 0, 0, 0, 0, 3, 0, 0, 141, 4, 0x85, 0x40, 0x82, 0xc0]
        );
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(read_supported_extension_headers(&message, &bytes), Some(&SUPPORTED[..]));
        let long = [0x32, 31, 0, 9, 0, 0, 0, 0, 0, 3, 0, 0, 141, 0, 2, 0x85, 0xc0];
        let message = Message::parse(&long).unwrap();
        assert_eq!(read_supported_extension_headers(&message, &long), Some(&[0x85, 0xc0][..]));
        let none = [0x32, 31, 0, 4, 0, 0, 0, 0, 0, 3, 0, 0];
        assert_eq!(read_supported_extension_headers(&Message::parse(&none).unwrap(), &none), None);
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        for length in 0..18 {
            let mut bytes = vec![0; length];
            assert_eq!(write_echo_request(&mut bytes, 1, None).is_some(), length >= 12);
            assert_eq!(write_echo_response(&mut bytes, 1, None).is_some(), length >= 14);
            assert_eq!(write_end_marker(&mut bytes, 1).is_some(), length >= 8);
            assert_eq!(
                write_end_marker_of_flow(&mut bytes, 1, PduSession::uplink(1)).is_some(),
                length >= 16
            );
            assert_eq!(write_supported_extension_headers(&mut bytes, 1), None);
        }
    }
}
