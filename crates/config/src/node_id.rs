//! Names of nodes.

use serde::Deserialize;
use std::fmt::{Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A PFCP Node ID as an operator writes it (TS 29.244 8.2.38): an address or a host name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum NodeIdText {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A host name.
    Fqdn(String),
}

impl TryFrom<String> for NodeIdText {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.parse() {
            Ok(address) if !is_of_one(address) => {
                return Err("a Node ID is the address of one node, not of none, a group or everybody");
            }
            Ok(IpAddr::V4(address)) => return Ok(Self::Ipv4(address)),
            Ok(IpAddr::V6(address)) => return Ok(Self::Ipv6(address)),
            Err(_) => {}
        }
        // A name of digits and dots alone is a mistyped address.
        let mistyped = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        match !mistyped && text.len() <= 253 && text.split('.').all(is_label) {
            true => Ok(Self::Fqdn(text)),
            false => Err("a Node ID is an IPv6 address, an IPv4 address or a host name"),
        }
    }
}

impl Display for NodeIdText {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ipv4(address) => address.fmt(f),
            Self::Ipv6(address) => address.fmt(f),
            Self::Fqdn(name) => f.write_str(name),
        }
    }
}

/// Whether it is the address of one host: not 0.0.0.0 or ::, a group's or 255.255.255.255.
pub fn is_of_one(address: IpAddr) -> bool {
    let is_everybodys = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !is_everybodys && !address.is_unspecified() && !address.is_multicast()
}

/// RFC 1035 2.3.1, as loosely as RFC 1123 2.1 has it.
fn is_label(label: &str) -> bool {
    let plain = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    plain && (1..=63).contains(&label.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        assert_eq!(NodeIdText::try_from("10.0.0.1".to_owned()), Ok(NodeIdText::Ipv4([10, 0, 0, 1].into())));
        let ipv6 = NodeIdText::Ipv6("2001:db8::1".parse().unwrap());
        assert_eq!(NodeIdText::try_from("2001:db8::1".to_owned()), Ok(ipv6));
        assert_eq!(
            NodeIdText::try_from("upf-1.core".to_owned()),
            Ok(NodeIdText::Fqdn("upf-1.core".to_owned()))
        );
        for plain in ["10.0.0.1", "2001:db8::1", "upf-1.core"] {
            assert_eq!(NodeIdText::try_from(plain.to_owned()).unwrap().to_string(), plain);
        }
        for wrong in ["", "10.0.0", "a..b", "upf 1", "10.0.0.256", "2001:db8::g", "::1:8805:"] {
            assert!(NodeIdText::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        for nobodys in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "239.1.2.3", "::", "ff02::1", "ff0e::8"] {
            let refused = NodeIdText::try_from(nobodys.to_owned());
            assert!(refused.is_err_and(|why| why.contains("the address of one node")), "{nobodys}");
        }
    }
}
