//! What operators say.

use super::pattern::{HostPattern, PathPattern};
use crate::extract::{Protocols, Seen};
use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// One content rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its identity; no two rules share it.
    pub id: u32,
    /// Of all rules that match, the one with the lowest value counts (as TS 29.244 8.2.11 has it for PDRs).
    pub precedence: u32,
    /// Rating group (TS 32.299 7.2.155).
    pub rating_group: u32,
    /// Service identifier (TS 32.299 7.2.167), where the rating group is not enough.
    pub service: Option<u32>,
    /// The application it is of: the Application ID of PDRs for its flows (TS 29.244 8.2.6).
    pub application: Option<Box<str>>,
    /// When it matches.
    pub when: Conditions,
}

/// What must be so: of each list that is not empty, one; and of the others, what is present. None at all is always so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The host; of lookups, where [`Conditions::layers`] has them, the name asked for. All else that asks for a host is
    /// not for lookups of it.
    pub hosts: Vec<HostPattern>,
    /// Path and query of a request in the clear.
    pub paths: Vec<PathPattern>,
    /// A regular expression found in the host, in lower case.
    pub host_regex: Option<String>,
    /// A regular expression found in the host, in lower case, and the path of a request in the clear, written together.
    pub url_regex: Option<String>,
    /// The server's network.
    pub networks: Vec<IpNet>,
    /// The server's port.
    pub ports: Vec<PortRange>,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// What the first packets were.
    pub layers: Vec<Layer>,
    /// Differentiated services code point, below 64.
    pub dscp: Option<u8>,
    /// The ClientHello has Encrypted ClientHello: its host is a provider's, not the server's.
    pub ech: bool,
    /// An application protocol that the ClientHello offers, as IANA writes it (RFC 7301 6).
    pub alpn: Vec<Box<str>>,
}

impl Conditions {
    /// Whether only a flow that begins with a ClientHello can be meant.
    pub const fn asks_for_hello(&self) -> bool {
        self.ech || !self.alpn.is_empty()
    }
}

/// Ports from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// Not above `last`.
    pub first: u16,
    /// Not below `first`.
    pub last: u16,
}

impl PortRange {
    /// Any port.
    pub const ANY: Self = Self { first: 0, last: u16::MAX };

    /// Whether a port is one of them.
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

/// What the first packets of a flow were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// HTTP/1.x in the clear.
    Http,
    /// HTTP/2 in the clear.
    Http2,
    /// TLS over TCP.
    Tls,
    /// QUIC.
    Quic,
    /// DNS.
    Dns,
    /// STUN.
    Stun,
    /// RTP, or RTCP.
    Rtp,
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Http, Self::Http2, Self::Tls, Self::Quic, Self::Dns, Self::Stun, Self::Rtp];

    /// Of what was seen.
    pub const fn of(seen: &Seen<'_>) -> Self {
        match seen {
            Seen::Http(_) => Self::Http,
            Seen::Http2 => Self::Http2,
            Seen::Tls(_) => Self::Tls,
            Seen::Quic { .. } => Self::Quic,
            Seen::Dns(_) => Self::Dns,
            Seen::Stun(_) => Self::Stun,
            Seen::Rtp(_) | Seen::Rtcp(_) => Self::Rtp,
        }
    }

    /// As rule files write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Http2 => "http2",
            Self::Tls => "tls",
            Self::Quic => "quic",
            Self::Dns => "dns",
            Self::Stun => "stun",
            Self::Rtp => "rtp",
        }
    }

    /// A bit of its own.
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Layer {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|layer| layer.name() == text).ok_or(())
    }
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The server's address: that of the end that is not the user.
    pub server: IpAddr,
    /// The server's port; 0 where the protocol has none.
    pub server_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Differentiated services code point: the upper six bits of the type of service.
    pub dscp: u8,
    /// What the first packets were, where they said.
    pub layer: Option<Layer>,
    /// The host, as the first packets named it or as it was learned from DNS, in any case of letters. Of a lookup the name
    /// asked for, by which it is found by rules alone that name lookups ([`Layer::Dns`]).
    pub host: Option<&'a [u8]>,
    /// Path and query of a request in the clear.
    pub path: Option<&'a [u8]>,
    /// The ClientHello has Encrypted ClientHello, or what looks like it (GREASE).
    pub ech: bool,
    /// The application protocols that the ClientHello offers.
    pub alpn: Protocols<'a>,
}

impl Default for Facts<'_> {
    fn default() -> Self {
        Self {
            server: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            server_port: 0,
            protocol: 0,
            dscp: 0,
            layer: None,
            host: None,
            path: None,
            ech: false,
            alpn: Protocols::default(),
        }
    }
}

impl<'a> Facts<'a> {
    /// The same with what the first packets said.
    #[must_use]
    pub fn with(self, seen: &Seen<'a>) -> Self {
        let (layer, alpn) = (Some(Layer::of(seen)), seen.protocols());
        Self { layer, host: seen.host(), path: seen.path(), ech: seen.is_encrypted(), alpn, ..self }
    }
}
