//! UDP (RFC 768).

use crate::{checksum, ipv4, ipv6, protocol};
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

    /// Whether the sender computed no checksum.
    #[inline]
    pub fn has_no_checksum(&self) -> bool {
        self.checksum == U16::ZERO
    }
}

/// What the checksum of a received datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It matches.
    Intact,
    /// There is none. Over IPv4 that is allowed; over IPv6 only where the tunnel's receiver was configured to take
    /// it (RFC 6935 5, RFC 6936 4).
    Absent,
    /// It does not match, or there is no whole header.
    Wrong,
}

/// Checks the datagram that fills `datagram`, given the sum of its pseudo header ([`crate::ipv4::pseudo_sum`] or
/// [`crate::ipv6::pseudo_sum`]).
#[inline]
pub fn verify(datagram: &[u8], pseudo_sum: u16) -> Checksum {
    match Header::ref_from_prefix(datagram) {
        Ok((header, _)) if header.has_no_checksum() => Checksum::Absent,
        Ok(_) if checksum::add(checksum::sum(datagram), pseudo_sum) == u16::MAX => Checksum::Intact,
        _ => Checksum::Wrong,
    }
}

/// Whether a receiver takes the datagram that begins `upper` bytes into the IP packet that fills `packet`, as far as its length
/// and checksum tell. Over IPv6 it needs one (RFC 8200 8.1).
pub fn is_sealed(packet: &[u8], upper: usize) -> bool {
    let Some(datagram) = packet.get(upper..).and_then(|rest| rest.get(..Header::parse(rest)?.length()))
    else {
        return false;
    };
    let length = datagram.len();
    match packet.first().map(|first| first >> 4) {
        Some(4) => ipv4::Packet::parse(packet).is_ok_and(|ip| {
            let sum = ipv4::pseudo_sum(ip.source(), ip.destination(), protocol::UDP, length);
            verify(datagram, sum) != Checksum::Wrong
        }),
        _ => ipv6::Packet::parse(packet)
            .is_ok_and(|ip| verify(datagram, ip.pseudo_sum(protocol::UDP, length)) == Checksum::Intact),
    }
}

/// Computes the checksum of the datagram that fills `datagram` and writes it; `None` where there is no whole header.
#[inline]
pub fn fill_checksum(datagram: &mut [u8], pseudo_sum: u16) -> Option<()> {
    Header::mut_from_prefix(datagram).ok()?.0.checksum = U16::ZERO;
    let sum = checksum::add(checksum::sum(datagram), pseudo_sum);
    Header::mut_from_prefix(datagram).ok()?.0.checksum.set(checksum::of_sum_not_zero(sum));
    Some(())
}

/// Renews the checksum of the datagram at the front of `bytes` after part of it or of its pseudo header, with sum
/// `old`, was replaced by something with sum `new`. Where there is none, there will be none. `None` where there is
/// no whole header.
#[inline]
pub fn update_checksum(bytes: &mut [u8], old: u16, new: u16) -> Option<()> {
    let (header, _) = Header::mut_from_prefix(bytes).ok()?;
    if !header.has_no_checksum() {
        let updated = checksum::update(header.checksum.get(), old, new);
        header.checksum.set(checksum::of_sum_not_zero(!updated));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ipv4, ipv6, protocol};
    use proptest::prelude::*;

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut bytes = [0; 12];
        Header::new(2152, 40_000, 4).unwrap().write(&mut bytes).unwrap();
        assert_eq!(Header::parse(&bytes).unwrap().length(), 12);
        assert!((0..12).all(|length| Header::parse(&bytes[..length]).is_none()));
        bytes[5] = 7;
        assert!(Header::parse(&bytes).is_none());
        assert!(Header::new(1, 1, 65_528).is_none());
    }

    #[test]
    fn without_a_whole_header_there_is_no_checksum() {
        for length in 0..LENGTH {
            let mut bytes = [0xff; LENGTH];
            let short = &mut bytes[..length];
            assert_eq!(verify(short, 0), Checksum::Wrong);
            assert_eq!((fill_checksum(short, 0), update_checksum(short, 0, 0)), (None, None));
        }
    }

    /// A sum of 0xffff makes a checksum of 0, which would say that there is none.
    #[test]
    fn a_computed_zero_is_sent_as_ones() {
        let mut bytes = [0; 10];
        Header::new(0, 0, 2).unwrap().write(&mut bytes).unwrap();
        bytes[8..].copy_from_slice(&(0xffffu16 - 10).to_be_bytes());
        fill_checksum(&mut bytes, 0).unwrap();
        assert_eq!(bytes[6..8], [0xff, 0xff]);
        assert_eq!(verify(&bytes, 0), Checksum::Intact);
    }

    proptest! {
        #[test]
        fn what_was_filled_in_is_intact_until_a_bit_flips(
            payload in proptest::collection::vec(any::<u8>(), 0..64),
            addresses: ([u8; 16], [u8; 16]),
            flip: (proptest::sample::Index, u8),
        ) {
            let mut bytes = vec![0; LENGTH + payload.len()];
            bytes[LENGTH..].copy_from_slice(&payload);
            Header::new(1, 2, payload.len()).unwrap().write(&mut bytes).unwrap();
            prop_assert_eq!(verify(&bytes, 77), Checksum::Absent);
            let (source, destination) = (addresses.0.into(), addresses.1.into());
            let pseudo = ipv6::pseudo_sum(source, destination, protocol::UDP, bytes.len());
            fill_checksum(&mut bytes, pseudo).unwrap();
            prop_assert_eq!(verify(&bytes, pseudo), Checksum::Intact);
            let at = flip.0.index(bytes.len());
            bytes[at] ^= 1 << (flip.1 % 8);
            prop_assert_ne!(verify(&bytes, pseudo), Checksum::Intact);
        }

        #[test]
        fn a_new_address_needs_no_new_sum(old: [u8; 4], new: [u8; 4], payload: [u8; 5]) {
            let mut bytes = [[0; 8].as_slice(), &payload].concat();
            Header::new(1, 2, 5).unwrap().write(&mut bytes).unwrap();
            let pseudo = |source: [u8; 4]| ipv4::pseudo_sum(source.into(), [1, 2, 3, 4].into(), protocol::UDP, 13);
            update_checksum(&mut bytes, checksum::sum(&old), checksum::sum(&new)).unwrap();
            prop_assert_eq!(verify(&bytes, pseudo(new)), Checksum::Absent);
            fill_checksum(&mut bytes, pseudo(old)).unwrap();
            update_checksum(&mut bytes, checksum::sum(&old), checksum::sum(&new)).unwrap();
            prop_assert_eq!(verify(&bytes, pseudo(new)), Checksum::Intact);
        }
    }
}
