//! Octets in network order, and the Internet checksum (RFC 1071).

/// The `N` octets at a place; `None` beyond the end.
pub(crate) fn octets<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    octets(bytes, at).map(u16::from_be_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    octets(bytes, at).map(u32::from_be_bytes)
}

/// Overwrites what stands at a place; beyond the end, nothing.
pub(crate) fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(old) = bytes.get_mut(at..at + new.len()) {
        old.copy_from_slice(new);
    }
}

/// The inverted ones' complement sum of the 16-bit words of all parts, each of which is padded to whole words. Over a
/// header whose checksum field is 0, what belongs there; over one that is intact, 0.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for word in part.chunks(2) {
            let high = word.first().copied().unwrap_or(0);
            let low = word.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([high, low]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 section 3: the words 0001 f203 f4f5 f6f7 sum up to ddf2.
    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(checksum(&[&[0x00, 0x01, 0xf2, 0x03], &[0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
        assert_eq!(checksum(&[&[0x00, 0x01, 0xf2]]), !0xf201);
    }

    #[test]
    fn there_is_nothing_beyond_the_end() {
        assert_eq!((u16_at(&[1, 2, 3], 1), u16_at(&[1, 2, 3], 2)), (Some(0x0203), None));
        let mut bytes = [1, 2, 3];
        put(&mut bytes, 2, &[9, 9]);
        assert_eq!(bytes, [1, 2, 3]);
    }
}
