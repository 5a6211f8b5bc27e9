//! Datagrams told by their shape: STUN (RFC 8489 5), RTP (RFC 3550 5.1) and what controls it, RTCP (RFC 3550 6).

use super::reader::Reader;
use std::ops::RangeInclusive;

/// The port that STUN and TURN are served at; the shape tells, whatever the port.
const MAGIC_COOKIE: u32 = 0x2112_a442;
const STUN_HEADER: usize = 20;

/// A STUN message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stun {
    /// Class and method as they stand: 0x0001 is a Binding request, 0x0003 an Allocate request of TURN (RFC 8656).
    pub kind: u16,
}

impl Stun {
    /// The message that fills a datagram.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
        let right = kind >> 14 == 0
            && length.is_multiple_of(4)
            && reader.u32()? == MAGIC_COOKIE
            && bytes.len() == STUN_HEADER + length;
        right.then_some(Self { kind })
    }
}

/// What the fixed header of an RTP packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp {
    /// RFC 3551 6; 96 and above are dynamic.
    pub payload_type: u8,
    /// Who sends it.
    pub source: u32,
    sequence: u16,
}

/// Bytes of the fixed header.
const RTP_HEADER: usize = 12;
/// Packet types of RTCP without their upper bit, which RTP has for its marker. No RTP has one of these as its payload type (RFC 5761 4).
const RTCP_TYPES: RangeInclusive<u8> = 72..=79;
/// Most packets that may be lost between two for them to be one stream's.
const LOST_MAX: u16 = 100;

impl Rtp {
    /// A datagram that could be one. Two bits are little evidence: see [`Self::follows`].
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (first, second) = (reader.u8()?, reader.u8()?);
        let (sequence, _timestamp, source) = (reader.u16()?, reader.u32()?, reader.u32()?);
        let contributing = usize::from(first & 0xf) * 4;
        let payload_type = second & 0x7f;
        let right = first >> 6 == 2
            && !RTCP_TYPES.contains(&payload_type)
            && bytes.len() >= RTP_HEADER + contributing;
        right.then_some(Self { payload_type, source, sequence })
    }

    /// Whether it is from the same source as another, and soon after it.
    pub(super) fn follows(&self, before: &Self) -> bool {
        let ahead = self.sequence.wrapping_sub(before.sequence);
        (self.source, self.payload_type) == (before.source, before.payload_type)
            && (1..=LOST_MAX).contains(&ahead)
    }
}

/// What the first packet of RTCP in a datagram says; those behind it may be encrypted (RFC 3711 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtcp {
    /// Who sends it.
    pub source: u32,
}

impl Rtcp {
    /// A datagram that could begin with one, as its length is not beyond the end. Two of a source are evidence enough.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (first, kind, words) = (reader.u8()?, reader.u8()?, usize::from(reader.u16()?));
        let source = reader.u32()?;
        let is_kind = kind >> 7 == 1 && RTCP_TYPES.contains(&(kind & 0x7f));
        (first >> 6 == 2 && is_kind && (2..=bytes.len() / 4).contains(&(words + 1)))
            .then_some(Self { source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5769 2.1, without its attributes' end: header of a Binding request.
    const BINDING: [u8; 20] = [
        0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf,
        0xae,
    ];

    #[test]
    fn stun_is_told_by_cookie_and_length() {
        assert_eq!(Stun::parse(&BINDING), Some(Stun { kind: 1 }));
        for place in [0, 3, 4] {
            let mut wrong = BINDING;
            wrong[place] ^= 0xc1;
            assert_eq!(Stun::parse(&wrong), None, "{place}");
        }
        assert_eq!(Stun::parse(&[&BINDING[..], &[0; 4]].concat()), None);
        assert_eq!(Stun::parse(&BINDING[..19]), None);
    }

    #[test]
    fn packets_of_one_source_in_order_are_rtp() {
        let packet = |sequence: u16, source: u8| {
            let [high, low] = sequence.to_be_bytes();
            Rtp::parse(&[0x80, 96, high, low, 0, 0, 0, 0, 0, 0, 0, source, 1, 2]).unwrap()
        };
        assert!(packet(0, 1).follows(&packet(65_535, 1)) && packet(9, 1).follows(&packet(7, 1)));
        assert!(!packet(7, 1).follows(&packet(7, 1)) && !packet(8, 2).follows(&packet(7, 1)));
        assert!(!packet(6, 1).follows(&packet(7, 1)) && !packet(500, 1).follows(&packet(7, 1)));
    }

    #[test]
    fn rtcp_and_short_datagrams_are_not_rtp() {
        let mut bytes = [0_u8; 16];
        bytes[0] = 0x81;
        assert!(Rtp::parse(&bytes).is_some());
        assert_eq!(Rtp::parse(&bytes[..15]), None);
        for kind in 200..=207 {
            bytes[1] = kind;
            assert_eq!(Rtp::parse(&bytes), None, "{kind}");
        }
        assert_eq!(Rtp::parse(&[0x40; 16]), None);
    }

    /// Sender reports, transport feedback: 1 and 2 words behind the first.
    #[test]
    fn rtcp_is_told_by_type_and_length() {
        let mut bytes = [0x81, 200, 0, 1, 0, 0, 0, 7];
        assert_eq!(Rtcp::parse(&bytes), Some(Rtcp { source: 7 }));
        for (place, value) in [(0, 0x41), (1, 199), (1, 208), (1, 72), (3, 0), (3, 2)] {
            let mut wrong = bytes;
            wrong[place] = value;
            assert_eq!(Rtcp::parse(&wrong), None, "{place}: {value}");
        }
        bytes[1] = 205;
        assert_eq!(Rtcp::parse(&[&bytes[..2], &[0, 2, 0, 0, 0, 9, 1, 2, 3]].concat()), None);
        let whole = [&bytes[..2], &[0, 2, 0, 0, 0, 9, 1, 2, 3, 4]].concat();
        assert_eq!(Rtcp::parse(&whole), Some(Rtcp { source: 9 }));
        assert_eq!(Rtcp::parse(&bytes[..7]), None);
    }
}
