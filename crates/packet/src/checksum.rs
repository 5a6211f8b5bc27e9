//! The Internet checksum (RFC 1071).

/// The ones' complement sum of `bytes`, folded to 16 bits but not inverted. An odd last byte counts as high byte.
pub fn sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    if let Some(rest) = rest.first_chunk::<2>() {
        sum += u64::from(u16::from_be_bytes(*rest));
    }
    if let (1 | 3, Some(last)) = (rest.len(), rest.last()) {
        sum += u64::from(*last) << 8;
    }
    fold(sum)
}

/// The checksum field of a header whose checksum field is 0.
pub fn of(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// Whether a header, its checksum field included, is intact.
pub fn is_intact(bytes: &[u8]) -> bool {
    sum(bytes) == u16::MAX
}

/// The new checksum after one 16-bit word changed from `old` to `new` (RFC 1624, eqn. 3).
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

const fn fold(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
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
