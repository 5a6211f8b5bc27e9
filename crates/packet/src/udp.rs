//! UDP (RFC 768).

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a [`Header`].
pub const LENGTH: usize = size_of::<Header>();

/// A UDP header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    source: U16,
    destination: U16,
    pub(crate) length: U16,
    pub(crate) checksum: U16,
}

impl Header {
    /// A header for `payload` bytes without a checksum, which over IPv4 is allowed (TS 29.281 4.4.2.0); `None` where
    /// the datagram would exceed 65,535 bytes.
    #[inline]
    pub fn new(source: u16, destination: u16, payload: usize) -> Option<Self> {
        let length = u16::try_from(LENGTH + payload).ok()?;
        Some(Self { length: U16::new(length), ..Self::empty(source, destination) })
    }

    /// A header whose length and checksum are still 0.
    #[inline]
    pub(crate) const fn empty(source: u16, destination: u16) -> Self {
        Self {
            source: U16::new(source),
            destination: U16::new(destination),
            length: U16::ZERO,
            checksum: U16::ZERO,
        }
    }

    /// The header at the front of `bytes`; `None` where the datagram is cut short or its length is impossible.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<&Self> {
        let (header, _) = Self::ref_from_prefix(bytes).ok()?;
        let length = usize::from(header.length.get());
        (LENGTH <= length && length <= bytes.len()).then_some(header)
    }

    /// Writes the header to the front of `bytes`; `None`, and no change, where they are too short.
    #[inline]
    pub fn write(&self, bytes: &mut [u8]) -> Option<()> {
        self.write_to_prefix(bytes).ok()
    }

    /// The sender's port.
    #[inline]
    pub const fn source(&self) -> u16 {
        self.source.get()
    }

    /// The receiver's port.
    #[inline]
    pub const fn destination(&self) -> u16 {
        self.destination.get()
    }

    /// Bytes of header and payload.
    #[inline]
    pub fn length(&self) -> usize {
        usize::from(self.length.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut bytes = [0; 12];
        Header::new(2152, 40_000, 4).unwrap().write(&mut bytes).unwrap();
        assert_eq!(Header::parse(&bytes).unwrap().length(), 12);
        assert!(Header::parse(&bytes[..11]).is_none());
        bytes[5] = 7;
        assert!(Header::parse(&bytes).is_none());
        assert!(Header::new(1, 1, 65_528).is_none());
    }
}
