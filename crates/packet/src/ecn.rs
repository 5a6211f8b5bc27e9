//! Explicit Congestion Notification (RFC 3168): two bits in which routers mark what they would rather have dropped.

use crate::{ipv4, ipv6};

/// The sender does not heed marks: routers drop instead.
pub const NOT_ECT: u8 = 0b00;
/// It does.
pub const ECT_1: u8 = 0b01;
/// It does.
pub const ECT_0: u8 = 0b10;
/// A router was congested.
pub const CE: u8 = 0b11;

const MASK: u8 = 0b11;

/// That of the IP packet at the front of `bytes`; `None` where there is none.
pub fn of(bytes: &[u8]) -> Option<u8> {
    let [first, second] = *bytes.first_chunk()?;
    match first >> 4 {
        4 => Some(second & MASK),
        6 => Some(second >> 4 & MASK),
        _ => None,
    }
}

/// Sets that of the IP packet at the front of `bytes`, with the checksum of its header; `None` where there is none.
pub fn set(bytes: &mut [u8], ecn: u8) -> Option<()> {
    match bytes.first()? >> 4 {
        4 => ipv4::set_ecn(bytes, ecn),
        6 => ipv6::set_ecn(bytes, ecn),
        _ => None,
    }
}

/// Whether what a packet bears that comes out of a tunnel may not be what it bore inside: of a tunnel marked CE or ECT(1).
pub const fn matters(outer: u8) -> bool {
    outer & ECT_1 != 0
}

/// What a packet bears that comes out of a tunnel (RFC 6040 figure 4); `None` where it is to be dropped: a router would
/// have, had it seen that the sender heeds no marks.
pub const fn decapsulated(outer: u8, inner: u8) -> Option<u8> {
    match (outer & MASK, inner & MASK) {
        (CE, NOT_ECT) => None,
        (CE, _) => Some(CE),
        (ECT_1, ECT_0) => Some(ECT_1),
        (_, inner) => Some(inner),
    }
}

/// Which of the four fragments of one packet bore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfFragments(u8);

impl OfFragments {
    /// One more fragment.
    pub const fn add(&mut self, ecn: u8) {
        self.0 |= 1 << (ecn & MASK);
    }

    const fn has(self, ecn: u8) -> bool {
        self.0 & 1 << ecn != 0
    }

    /// What the whole packet bears (RFC 3168 5.3): what all of them do, and CE where one does; `None` where another is of a sender
    /// that heeds no marks, as if that one had been lost. Where they differ otherwise, which no router brings about, it says nothing.
    pub const fn whole(self) -> Option<u8> {
        match (self.has(CE), self.has(NOT_ECT), self.has(ECT_0), self.has(ECT_1)) {
            (true, true, ..) => None,
            (true, false, ..) => Some(CE),
            (false, false, true, false) => Some(ECT_0),
            (false, false, false, true) => Some(ECT_1),
            (false, ..) => Some(NOT_ECT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6040 figure 4: by row what is inside, by column the tunnel's header.
    const FIGURE_4: [(u8, [Option<u8>; 4]); 4] = [
        (NOT_ECT, [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None]),
        (ECT_0, [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)]),
        (ECT_1, [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)]),
        (CE, [Some(CE), Some(CE), Some(CE), Some(CE)]),
    ];

    #[test]
    fn what_comes_out_of_a_tunnel_is_as_the_figure_says() {
        for (inner, row) in FIGURE_4 {
            for (outer, expected) in [NOT_ECT, ECT_0, ECT_1, CE].into_iter().zip(row) {
                assert_eq!(decapsulated(outer, inner), expected, "{inner:02b} in {outer:02b}");
                assert!(matters(outer) || expected == Some(inner), "{inner:02b} in {outer:02b}");
            }
        }
    }

    #[test]
    fn it_is_read_and_set_in_both_versions() {
        let mut v4 = [0; ipv4::LENGTH];
        let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, 0).unwrap();
        header.with_tos(0xb8 | ECT_0).write(&mut v4).unwrap();
        set(&mut v4, CE).unwrap();
        assert_eq!((v4[1], of(&v4)), (0xbb, Some(CE)));
        assert!(crate::checksum::is_intact_header(&v4));
        let mut v6 = [0; ipv6::LENGTH];
        (v6[0], v6[1]) = (0x6b, 0xa7);
        set(&mut v6, CE).unwrap();
        assert_eq!((v6[0], v6[1], of(&v6)), (0x6b, 0xb7, Some(CE)));
        assert_eq!(
            (of(&[0x45]), of(&[0x15, 3]), set(&mut [0x45, 3], CE), set(&mut [], CE)),
            (None, None, None, None)
        );
    }

    #[test]
    fn a_packet_in_fragments_is_marked_where_one_is() {
        let whole = |all: &[u8]| {
            let mut seen = OfFragments::default();
            all.iter().for_each(|ecn| seen.add(*ecn));
            seen.whole()
        };
        for ecn in [NOT_ECT, ECT_0, ECT_1, CE] {
            assert_eq!(whole(&[ecn, ecn]), Some(ecn));
        }
        assert_eq!([whole(&[ECT_0, CE]), whole(&[CE, ECT_1, ECT_0])], [Some(CE); 2]);
        assert_eq!(whole(&[CE, ECT_0, NOT_ECT]), None);
        assert_eq!([whole(&[ECT_1, ECT_0]), whole(&[ECT_1, NOT_ECT])], [Some(NOT_ECT); 2]);
    }
}
