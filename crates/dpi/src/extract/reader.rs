//! Reading forwards over bytes that anybody may have sent.

/// What is left to read. Every read gives `None`, and moves nothing, where the bytes end before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What is left.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u24(&mut self) -> Option<usize> {
        self.array().map(|[a, b, c]| usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Bytes behind their number in one byte.
    #[inline]
    pub(crate) fn counted8(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let length = ahead.u8()?;
        let bytes = ahead.take(length.into())?;
        *self = ahead;
        Some(bytes)
    }

    /// Bytes behind their number in two bytes.
    #[inline]
    pub(crate) fn counted16(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let length = ahead.u16()?;
        let bytes = ahead.take(length.into())?;
        *self = ahead;
        Some(bytes)
    }

    /// A variable-length integer of QUIC (RFC 9000 16).
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let value = bytes.iter().fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
        Some(value & (u64::MAX >> (64 - (8 * bytes.len() - 2))))
    }

    /// As [`Self::varint`]; `None` also where it is no length that memory could have.
    #[inline]
    pub(crate) fn length(&mut self) -> Option<usize> {
        self.varint().and_then(|value| usize::try_from(value).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_lengths_are_those_of_rfc_9000_a_1() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.varint(), Some(value));
            assert!(reader.rest().is_empty());
            assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).varint(), None);
        }
    }

    #[test]
    fn what_is_cut_short_moves_nothing() {
        let mut reader = Reader::new(&[0, 3, 1, 2]);
        assert_eq!((reader.counted16(), reader.u24(), reader.u8()), (None, Some(0x0301), Some(2)));
        assert_eq!(reader.counted8(), None);
    }
}
