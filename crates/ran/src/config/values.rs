//! Values that are right by construction; each refusal says what is allowed.

use ipnet::Ipv4Net;
use serde::Deserialize;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A value with a text form, whose own parser does not say what it would take.
macro_rules! text {
    ($($(#[$doc:meta])* $name:ident($inner:ty): $allowed:literal,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
        #[serde(try_from = "String")]
        pub(super) struct $name(pub(super) $inner);

        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse().map(Self).map_err(|_| $allowed)
            }
        }
    )*};
}

text! {
    /// An address.
    AddressText(Ipv4Addr): "must be an IPv4 address such as 10.30.0.1",
    /// An address and a port.
    EndpointText(SocketAddrV4): "must be an IPv4 address and a UDP port such as 10.40.0.1:8805",
    /// A prefix.
    RouteText(Ipv4Net): "must be IPv4 prefixes such as 10.50.0.0/24",
}

/// The name of a network device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct TunName(String);

impl TunName {
    /// Linux: IFNAMSIZ, less the closing zero.
    const LONGEST: usize = 15;

    /// As the kernel knows it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TunName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        match plain && (1..=Self::LONGEST).contains(&text.len()) && !text.starts_with('.') {
            true => Ok(Self(text)),
            false => Err("a device name is 1 to 15 letters, digits, '-', '_' or '.', not beginning with '.'"),
        }
    }
}

impl fmt::Display for TunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The MTU of a UE's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct Mtu(u16);

impl Mtu {
    /// What every IPv4 host takes (RFC 791 3.1).
    pub const MIN: u16 = 576;
    /// A jumbo frame's.
    pub const MAX: u16 = 9_000;

    /// In bytes.
    pub const fn bytes(self) -> u16 {
        self.0
    }
}

impl Default for Mtu {
    /// Fits a tunnel in an Ethernet link's 1500 with room to spare.
    fn default() -> Self {
        Self(1_400)
    }
}

impl TryFrom<i64> for Mtu {
    type Error = &'static str;

    fn try_from(value: i64) -> Result<Self, Self::Error> {
        let bytes = u16::try_from(value).ok().filter(|bytes| (Self::MIN..=Self::MAX).contains(bytes));
        bytes.map(Self).ok_or("an MTU is 576 to 9000")
    }
}
