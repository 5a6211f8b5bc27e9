//! Values on the command line.

use packet::protocol;
use rules::{Seid, Teid};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Decimal, or hexadecimal after `0x`.
pub(super) fn teid(text: &str) -> Result<Teid, &'static str> {
    number(text).filter(|number| *number != 0).map(Teid).ok_or("a TEID is 1 to 0xffffffff")
}

/// Decimal, or hexadecimal after `0x`.
pub(super) fn seid(text: &str) -> Result<Seid, &'static str> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().filter(|number| *number != 0).map(Seid).ok_or("a SEID is 1 to 0xffffffffffffffff")
}

/// Decimal, or hexadecimal after `0x`.
pub(super) fn tos(text: &str) -> Result<u8, &'static str> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "a type of service is 0 to 255, or 0x00 to 0xff")
}

/// Decimal, or hexadecimal after `0x`.
pub(super) fn spi(text: &str) -> Result<u32, &'static str> {
    number(text).filter(|spi| *spi != 0).ok_or("a security parameter index is 1 to 0xffffffff")
}

/// Decimal, or hexadecimal after `0x`.
pub(super) fn flow_label(text: &str) -> Result<u32, &'static str> {
    number(text).filter(|label| *label <= 0xf_ffff).ok_or("a flow label is 0 to 0xfffff")
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// An IP address, with or without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) address: IpAddr,
    pub(super) port: Option<u16>,
}

impl FromStr for End {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Ok(Self { address: socket.ip(), port: Some(socket.port()) });
        }
        let address =
            text.parse().map_err(|_| "an address is like 8.8.8.8, 8.8.8.8:53 or [2001:db8::1]:53")?;
        Ok(Self { address, port: None })
    }
}

/// What an IP packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Of the packet's IP version.
    Icmp,
    /// By its number.
    Number(u8),
}

impl Protocol {
    pub(super) const fn number(self, is_ipv6: bool) -> u8 {
        match self {
            Self::Icmp if is_ipv6 => protocol::ICMPV6,
            Self::Icmp => protocol::ICMP,
            Self::Number(number) => number,
        }
    }
}

impl FromStr for Protocol {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "icmp" => Ok(Self::Icmp),
            "tcp" => Ok(Self::Number(protocol::TCP)),
            "udp" => Ok(Self::Number(protocol::UDP)),
            "sctp" => Ok(Self::Number(protocol::SCTP)),
            "esp" => Ok(Self::Number(protocol::ESP)),
            "ah" => Ok(Self::Number(protocol::AH)),
            number => number
                .parse()
                .map(Self::Number)
                .map_err(|_| "a protocol is udp, tcp, icmp, sctp, esp, ah or 0 to 255"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_people_write_them() {
        assert_eq!((teid("256"), teid("0x100")), (Ok(Teid(256)), Ok(Teid(256))));
        assert!(teid("0").is_err() && teid("0xx").is_err() && teid("").is_err());
        assert_eq!((spi("0xdeadbeef"), flow_label("0xfffff")), (Ok(0xdead_beef), Ok(0xf_ffff)));
        assert!(spi("0").is_err() && flow_label("0x100000").is_err());
        assert_eq!((tos("184"), tos("0xb8")), (Ok(184), Ok(184)));
        assert!(tos("256").is_err());
        let end = |text: &str| text.parse::<End>().map(|end| (end.address.to_string(), end.port));
        assert_eq!(end("8.8.8.8:53"), Ok(("8.8.8.8".to_owned(), Some(53))));
        assert_eq!(end("2001:db8::1"), Ok(("2001:db8::1".to_owned(), None)));
        assert_eq!(end("[2001:db8::1]:53"), Ok(("2001:db8::1".to_owned(), Some(53))));
        assert!(end("example.org").is_err());
        assert_eq!(
            "icmp".parse::<Protocol>().map(|icmp| (icmp.number(false), icmp.number(true))),
            Ok((1, 58))
        );
        assert!("300".parse::<Protocol>().is_err());
    }
}
