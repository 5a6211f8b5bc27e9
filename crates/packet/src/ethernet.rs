//! Ethernet II frames.

use std::fmt;
use std::str::FromStr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// Bytes of a [`Header`].
pub const LENGTH: usize = size_of::<Header>();

/// An Ethernet address.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Sent to more than one station.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// That of one station: what it may say it has.
    pub const fn is_station(self) -> bool {
        !self.is_group() && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const SHAPE: &str = "an Ethernet address is six hexadecimal pairs with colons";
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(SHAPE)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| SHAPE)?;
        }
        if parts.next().is_some() { Err(SHAPE) } else { Ok(Self(octets)) }
    }
}

/// The header of a frame without VLAN tag.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// To whom.
    pub destination: MacAddress,
    /// From whom.
    pub source: MacAddress,
    ethertype: U16,
}

impl Header {
    /// A header of these values.
    pub const fn new(destination: MacAddress, source: MacAddress, ethertype: u16) -> Self {
        Self { destination, source, ethertype: U16::new(ethertype) }
    }

    /// The header at the front of a frame; `None` where the frame is too short.
    #[inline]
    pub fn parse(frame: &[u8]) -> Option<&Self> {
        Self::ref_from_prefix(frame).ok().map(|(header, _)| header)
    }

    /// Writes the header to the front of a frame; `None`, and no change, where the frame is too short.
    #[inline]
    pub fn write(&self, frame: &mut [u8]) -> Option<()> {
        self.write_to_prefix(frame).ok()
    }

    /// What the payload is.
    #[inline]
    pub const fn ethertype(&self) -> u16 {
        self.ethertype.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_as_it_prints() {
        let address = MacAddress([2, 0, 0xab, 0, 0, 0x10]);
        assert_eq!(address.to_string().parse(), Ok(address));
        assert!("2:0:ab:0:0:10".parse::<MacAddress>().is_err());
        assert!("02:00:ab:00:00:10:00".parse::<MacAddress>().is_err());
    }

    #[test]
    fn a_short_frame_has_no_header() {
        assert!(Header::parse(&[0; LENGTH - 1]).is_none());
        assert_eq!(Header::parse(&[0; LENGTH]).unwrap().ethertype(), 0);
    }
}
