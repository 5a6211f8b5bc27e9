//! Which rule is refused, and why.

use crate::ids::{BarId, FarId, PdrId, QerId, UrrId};
use std::fmt;

/// A rule by kind and identifier, as the Failed Rule ID IE names it (TS 29.244 8.2.80).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleRef {
    /// A packet detection rule.
    Pdr(PdrId),
    /// A forwarding action rule.
    Far(FarId),
    /// A QoS enforcement rule.
    Qer(QerId),
    /// A usage reporting rule.
    Urr(UrrId),
    /// A buffering action rule.
    Bar(BarId),
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pdr(id) => id.fmt(f),
            Self::Far(id) => id.fmt(f),
            Self::Qer(id) => id.fmt(f),
            Self::Urr(id) => id.fmt(f),
            Self::Bar(id) => id.fmt(f),
        }
    }
}

/// Why rules are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// An identifier stands twice.
    #[error("{0} is created twice")]
    Duplicate(RuleRef),
    /// An update or removal of a rule the session does not have.
    #[error("{0} does not exist")]
    Unknown(RuleRef),
    /// A rule names another that the session does not have.
    #[error("{0} names {1}, which does not exist")]
    Dangling(RuleRef, RuleRef),
    /// A FAR forwards but says not where.
    #[error("{0} forwards without forwarding parameters")]
    NoForwardingParameters(RuleRef),
    /// A PDR matches nothing a packet could be found by.
    #[error("{0} has neither an F-TEID nor a UE IP address")]
    Unreachable(RuleRef),
    /// TEID 0 is reserved (TS 29.281 5.1).
    #[error("{0} has TEID 0")]
    ZeroTeid(RuleRef),
    /// Port 0 of UDP is reserved (RFC 6335 6).
    #[error("{0} has UDP port 0")]
    ZeroPort(RuleRef),
    /// More rules than [`limits`](crate::limits) allow.
    #[error("{0} is one more than a session may hold")]
    TooMany(RuleRef),
    /// A list in a rule is longer than [`limits`](crate::limits) allow, or makes the session's longer than that.
    #[error("{0} has too many {1}")]
    TooManyOf(RuleRef, &'static str),
    /// A DSCP has six bits (RFC 2474 3).
    #[error("{0} has a DSCP above 63")]
    Dscp(RuleRef),
    /// A user has a prefix of 64 bits or an address.
    #[error("{0} has a UE IPv6 prefix of neither 64 nor 128 bits")]
    PrefixLength(RuleRef),
    /// The data path finds sessions by 64 bits of IPv6.
    #[error("{0} has a framed IPv6 route of more than 64 bits")]
    FramedRouteLength(RuleRef),
    /// A bit rate has 40 bits (TS 29.244 8.2.8 and 8.2.9).
    #[error("{0} has a bit rate of more than 40 bits")]
    BitRate(RuleRef),
    /// A packet rate is that of a time (TS 29.244 8.2.64).
    #[error("{0} has a packet rate of no time at all")]
    PacketRate(RuleRef),
    /// A flow has one end in IPv4, the other in IPv6.
    #[error("{0} has an SDF filter from IPv4 to IPv6 or the other way")]
    MixedFamilies(RuleRef),
    /// The protocol of an SDF filter has no ports.
    #[error("{0} has an SDF filter with ports of protocol {1}, which has none")]
    Portless(RuleRef, u8),
    /// A port range ends before it begins.
    #[error("{0} has an SDF filter with a port range that ends before it begins")]
    PortRange(RuleRef),
    /// A flow label has 20 bits (RFC 8200 3).
    #[error("{0} has an SDF filter with a flow label of more than 20 bits")]
    FlowLabel(RuleRef),
    /// An SDF filter is nothing but the ID of another, which the session does not have.
    #[error("{0} refers to SDF filter {1}, which does not exist")]
    UnknownFilter(RuleRef, u32),
    /// A session carries either Ethernet frames or IP packets.
    #[error("{0} is of Ethernet frames, or of IP packets, and other PDRs of the session are not")]
    MixedTypes(RuleRef),
    /// What only IP packets have, or what is not done to frames.
    #[error("{0} asks for {1}, which Ethernet frames do not get")]
    NotOfFrames(RuleRef, &'static str),
    /// A range of MAC addresses ends before it begins.
    #[error("{0} has an Ethernet filter with a range of MAC addresses that ends before it begins")]
    MacRange(RuleRef),
    /// An Ethernet filter is nothing but the ID of another, which is not there or not bidirectional.
    #[error("{0} refers to bidirectional Ethernet filter {1}, which does not exist")]
    UnknownEthernetFilter(RuleRef, u32),
    /// The plain PDRs of an Ethernet session are of one network.
    #[error("{0} is of another network than the session's other PDRs of frames outside tunnels")]
    SeveralNetworks(RuleRef),
}

impl RuleError {
    /// The rule to blame.
    pub const fn rule(&self) -> RuleRef {
        match self {
            Self::Duplicate(rule)
            | Self::Unknown(rule)
            | Self::Dangling(rule, _)
            | Self::NoForwardingParameters(rule)
            | Self::Unreachable(rule)
            | Self::ZeroTeid(rule)
            | Self::TooMany(rule)
            | Self::TooManyOf(rule, _)
            | Self::Dscp(rule)
            | Self::PrefixLength(rule)
            | Self::FramedRouteLength(rule)
            | Self::BitRate(rule)
            | Self::PacketRate(rule)
            | Self::MixedFamilies(rule)
            | Self::Portless(rule, _)
            | Self::PortRange(rule)
            | Self::FlowLabel(rule)
            | Self::UnknownFilter(rule, _)
            | Self::MixedTypes(rule)
            | Self::NotOfFrames(rule, _)
            | Self::MacRange(rule)
            | Self::UnknownEthernetFilter(rule, _)
            | Self::ZeroPort(rule)
            | Self::SeveralNetworks(rule) => *rule,
        }
    }
}
