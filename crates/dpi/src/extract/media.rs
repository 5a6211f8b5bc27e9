//! Datagrams told by their shape: STUN (RFC 8489 5) and RTP (RFC 3550 5.1).

use super::reader::Reader;

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
        // 72 to 76 are RTCP's packet types without their upper bit (RFC 5761 4).
        let right =
            first >> 6 == 2 && !(72..=76).contains(&payload_type) && bytes.len() >= RTP_HEADER + contributing;
        right.then_some(Self { payload_type, source, sequence })
    }

    /// Whether it is from the same source as another, and soon after it.
    pub(super) fn follows(&self, before: &Self) -> bool {
        let ahead = self.sequence.wrapping_sub(before.sequence);
        (self.source, self.payload_type) == (before.source, before.payload_type)
            && (1..=LOST_MAX).contains(&ahead)
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
        bytes[1] = 200;
        assert_eq!(Rtp::parse(&bytes), None);
        assert_eq!(Rtp::parse(&[0x40; 16]), None);
    }
}
