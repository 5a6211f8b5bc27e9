//! Media packets: the fixed header of RTP (RFC 3550 5.1).

/// Bytes of the header.
pub(crate) const LENGTH: usize = 12;

const VERSION_2: u8 = 0x80;
/// A dynamic payload type (RFC 3551 6).
const PAYLOAD_TYPE: u8 = 96;
/// 20 ms of 16 kHz, as wideband voice has it.
const TIMESTAMP_STEP: u32 = 320;

/// The header of packet `number` of the source `source`.
#[inline]
pub(crate) fn header(number: u32, source: u32) -> [u8; LENGTH] {
    let [_, _, high, low] = number.to_be_bytes();
    let [a, b, c, d] = number.wrapping_mul(TIMESTAMP_STEP).to_be_bytes();
    let [e, f, g, h] = source.to_be_bytes();
    [VERSION_2, PAYLOAD_TYPE, high, low, a, b, c, d, e, f, g, h]
}
