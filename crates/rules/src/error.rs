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
    /// A packet may leave its tunnel only if the PDR removes the tunnel's headers.
    #[error("{0} forwards a packet whose outer header it does not remove")]
    KeepsTunnel(RuleRef),
    /// More rules than [`limits`](crate::limits) allow.
    #[error("{0} is one more than a session may hold")]
    TooMany(RuleRef),
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
            | Self::KeepsTunnel(rule)
            | Self::TooMany(rule) => *rule,
        }
    }
}
