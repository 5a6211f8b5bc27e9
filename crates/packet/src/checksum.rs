//! The Internet checksum (RFC 1071).

/// The ones' complement sum of `bytes`, folded to 16 bits but not inverted. An odd last byte counts as high byte.
///
/// Eight bytes at a time in the machine's own byte order: the sum of swapped words is the swapped sum (RFC 1071 2).
#[inline]
pub fn sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<8>();
    let halves = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        (word & 0xffff_ffff) + (word >> 32)
    };
    // 65,535 bytes are 8,192 words: the upper half of the sum has room for every carry.
    let sum = words.iter().map(halves).sum::<u64>() + sum_of_rest(rest);
    u16::from_be(fold(sum))
}

/// The sum of fewer than eight bytes, in the machine's byte order.
#[inline]
fn sum_of_rest(rest: &[u8]) -> u64 {
    let (quads, rest) = rest.as_chunks::<4>();
    let (pairs, rest) = rest.as_chunks::<2>();
    let quad = quads.first().map_or(0, |quad| u64::from(u32::from_ne_bytes(*quad)));
    let pair = pairs.first().map_or(0, |pair| u64::from(u16::from_ne_bytes(*pair)));
    let last = rest.first().map_or(0, |last| u64::from(u16::from_ne_bytes([*last, 0])));
    quad + pair + last
}

/// The sum of what two sums are of, one after the other; the first must be of an even number of bytes.
#[inline]
pub const fn add(a: u16, b: u16) -> u16 {
    fold_once(a as u32 + b as u32)
}

/// The same of three.
#[inline]
pub const fn add3(a: u16, b: u16, c: u16) -> u16 {
    fold_once(a as u32 + b as u32 + c as u32)
}

/// The checksum field of a header whose checksum field is 0.
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// Whether a header, its checksum field included, is intact.
#[inline]
pub fn is_intact(bytes: &[u8]) -> bool {
    sum(bytes) == u16::MAX
}

/// Whether an IPv4 header without options, its checksum field included, is intact; the same as [`is_intact`], in fewer steps.
///
/// A ones' complement sum of all ones is a multiple of 65,535 that is not 0, and so is the sum of the words before it is folded, as
/// 65,536 is 1 modulo that. What is a multiple of an odd number comes to a small one, the quotient, when multiplied by its
/// inverse modulo 2^64, and everything else to a larger one.
#[inline(always)]
pub fn is_intact_header(header: &[u8; 20]) -> bool {
    const INVERSE: u64 = 0xfffe_fffe_fffe_ffff;
    const _: () = assert!(65_535_u64.wrapping_mul(INVERSE) == 1);
    let (words, _) = header.as_chunks::<4>();
    let [a, b, c, d, e] = words else { return false };
    let word = |word: &[u8; 4]| u32::from_ne_bytes(*word) as u64;
    let sum = word(a) + word(b) + word(c) + word(d) + word(e);
    sum.wrapping_mul(INVERSE).wrapping_sub(1) < u64::MAX / 65_535
}

/// Sum of the part of a pseudo header that is not addresses; the same for IPv4 (RFC 768) and IPv6 (RFC 8200 8.1).
#[inline]
pub const fn length_and_protocol(protocol: u8, length: usize) -> u16 {
    let length = length as u32;
    fold_once((length >> 16) + (length & 0xffff) + protocol as u32)
}

/// The new checksum after one 16-bit word changed from `old` to `new` (RFC 1624, eqn. 3). Takes also the sums of
/// longer pieces that begin at an even place.
#[inline]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !add(add(!checksum, !old), new)
}

/// The new checksum after an even number of bytes, at an even place, changed from `old` to `new`.
#[inline]
pub fn update_bytes(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    update(checksum, sum(old), sum(new))
}

/// The checksum field of a UDP datagram with this sum: a computed 0 goes as 0xffff, for 0 says that there is none
/// (RFC 768).
#[inline]
pub const fn of_sum_not_zero(sum: u16) -> u16 {
    match !sum {
        0 => u16::MAX,
        checksum => checksum,
    }
}

/// Folds a sum of at most 65,537 words of 16 bits.
#[inline]
const fn fold_once(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    fold_once(sum as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 section 3.
    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[0x00, 0x01, 0xf2]), 0xf201);
    }

    /// Every word at its greatest: no carry may be lost.
    #[test]
    fn the_longest_packet_of_ones() {
        assert_eq!(sum(&[0xff; 65_534]), 0xffff);
        assert_eq!(sum(&[0xff; 65_535]), 0xff00);
        assert_eq!(sum(&[]), 0);
        assert_eq!((of_sum_not_zero(0xffff), of_sum_not_zero(1)), (0xffff, 0xfffe));
    }

    #[test]
    fn headers_at_the_limits() {
        assert!(!is_intact_header(&[0; 20]), "nothing sums up to 0, not to 65,535");
        assert!(is_intact_header(&[0xff; 20]));
    }

    fn word_by_word(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        words.fold(0u16, |sum, word| {
            let (sum, carry) = sum.overflowing_add(word);
            sum + u16::from(carry)
        })
    }

    proptest! {
        #[test]
        fn sums_like_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(sum(&bytes), word_by_word(&bytes));
        }

        #[test]
        fn a_header_is_intact_by_either_way_to_tell(mut header in any::<[u8; 20]>(), off in 0u16..3) {
            prop_assert_eq!(is_intact_header(&header), is_intact(&header));
            header[10..12].fill(0);
            let checksum = of(&header).wrapping_add(off);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            prop_assert_eq!(is_intact_header(&header), is_intact(&header));
            prop_assert!(off > 0 || is_intact_header(&header));
        }

        #[test]
        fn sums_of_three_add_up(a: u16, b: u16, c: u16) {
            prop_assert_eq!(add3(a, b, c), add(add(a, b), c));
        }

        #[test]
        fn sums_of_pieces_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..80), cut in 0usize..40) {
            let (front, back) = bytes.split_at((2 * cut).min(bytes.len() & !1));
            prop_assert_eq!(add(sum(front), sum(back)), sum(&bytes));
        }

        #[test]
        fn a_longer_piece_may_change_at_once(mut header in any::<[u8; 20]>(), at in 0usize..5, new in any::<[u8; 8]>()) {
            header[18..].fill(0);
            let checksum = of(&header);
            let updated = update_bytes(checksum, &header[2 * at..][..8], &new);
            header[2 * at..][..8].copy_from_slice(&new);
            header[18..].copy_from_slice(&updated.to_be_bytes());
            prop_assert!(is_intact(&header));
        }

        #[test]
        fn an_update_equals_a_new_checksum(mut header in any::<[u8; 20]>(), at in 0usize..9, new in any::<u16>()) {
            header[18..].fill(0);
            let checksum = of(&header);
            let old = u16::from_be_bytes([header[2 * at], header[2 * at + 1]]);
            header[2 * at..][..2].copy_from_slice(&new.to_be_bytes());
            let updated = update(checksum, old, new);
            header[18..].copy_from_slice(&updated.to_be_bytes());
            prop_assert!(is_intact(&header));
        }
    }
}
