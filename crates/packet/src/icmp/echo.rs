//! Answers pings.

use crate::checksum;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

/// The first eight bytes of an echo message.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Echo {
    kind: u8,
    code: u8,
    checksum: U16,
    identifier: U16,
    sequence: U16,
}

/// Why a message cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// Cut short, or its checksum does not match.
    Malformed,
    /// Not an echo request.
    NotEchoRequest,
}

/// Turns the echo request that fills `message` into its reply. The IP header is left to [`crate::ipv4::reverse`].
///
/// # Errors
/// Why not; the message is then unchanged.
pub fn reply_to_echo(message: &mut [u8]) -> Result<(), NoReply> {
    if !checksum::is_intact(message) {
        return Err(NoReply::Malformed);
    }
    let (echo, _) = Echo::mut_from_prefix(message).map_err(|_| NoReply::Malformed)?;
    if (echo.kind, echo.code) != (ECHO_REQUEST, 0) {
        return Err(NoReply::NotEchoRequest);
    }
    echo.kind = ECHO_REPLY;
    // Computed anew: to update it would make a reply of nothing but zeros wrong (RFC 1624 3).
    echo.checksum.set(0);
    let sum = checksum::of(message);
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> [u8; 12] {
        let mut bytes = [ECHO_REQUEST, 0, 0, 0, 0x12, 0x34, 0, 1, b'p', b'i', b'n', b'g'];
        let checksum = checksum::of(&bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    #[test]
    fn a_reply_is_intact_and_carries_the_same_payload() {
        let mut bytes = request();
        reply_to_echo(&mut bytes).unwrap();
        assert!(checksum::is_intact(&bytes));
        assert_eq!((bytes[0], &bytes[4..]), (ECHO_REPLY, &request()[4..]));
    }

    #[test]
    fn only_intact_requests_are_answered() {
        let mut broken = request();
        broken[8] ^= 1;
        assert_eq!(reply_to_echo(&mut broken), Err(NoReply::Malformed));
        assert_eq!(reply_to_echo(&mut []), Err(NoReply::Malformed));
        let mut reply = request();
        reply_to_echo(&mut reply).unwrap();
        assert_eq!(reply_to_echo(&mut reply), Err(NoReply::NotEchoRequest));
    }
}
