//! A session on its way into force: what the control side made, and what it gets back.

use super::account::Account;
use super::apart::Apart;
use super::peers::Name;
use super::session::{Key, Session, SessionIndex};
use super::step::HotStep;
use dplink::{RefusalCause, UsageCounts};
use rules::{EthernetProgram, OuterHeaderCreation};

/// A session and what its cells are to hold.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) session: Box<Session>,
    /// By place.
    pub(crate) steps: Box<[HotStep]>,
    /// By place, the peer of each step that needs one.
    pub(crate) peers: Box<[Option<Name>]>,
    /// By account.
    pub(crate) accounts: Box<[Account]>,
    /// Accounts whose meters are apart, and these.
    pub(crate) aparts: Box<[(u16, Apart)]>,
    /// It carries Ethernet frames.
    pub(crate) ethernet: Option<Box<EthernetProgram>>,
    /// Packets kept for the session are to be dropped.
    pub(crate) drop_kept: bool,
    /// Tunnels that end now.
    pub(crate) end_markers: Box<[OuterHeaderCreation]>,
    /// Takes the last counts of URRs that are no longer there; has room for them.
    pub(crate) removed: Vec<UsageCounts>,
}

/// Why a session cannot be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the data plane holds as many sessions as it is configured for")]
    Sessions,
    #[error("the data plane holds as many tunnels or user addresses as it is configured for")]
    Keys,
    #[error("the data plane holds as many rules as it is configured for")]
    Rules,
    #[error("the data plane knows as many peers as it is configured for")]
    Peers,
    #[error("the data plane holds as many shared meters and packet rates as it is configured for")]
    Meters,
    #[error("the session is not with the worker that has a meter it is to share")]
    MeterElsewhere,
    #[error("the data plane holds as many sessions of Ethernet frames as it is configured for")]
    EthernetSessions,
    #[error("the data plane holds as many framed routes as it is configured for")]
    FramedRoutes,
    #[error("a tunnel belongs to another session")]
    TunnelTaken,
    #[error("a user address belongs to another session")]
    AddressTaken,
    #[error("a framed route belongs to another session")]
    RouteTaken,
}

impl Refusal {
    pub(crate) const fn cause(self) -> RefusalCause {
        match self {
            Self::TunnelTaken | Self::AddressTaken | Self::RouteTaken => RefusalCause::Taken,
            Self::Sessions
            | Self::Keys
            | Self::Rules
            | Self::Peers
            | Self::Meters
            | Self::MeterElsewhere
            | Self::EthernetSessions
            | Self::FramedRoutes => RefusalCause::Full,
        }
    }

    /// Another session has the key.
    pub(crate) const fn taken(key: Key) -> Self {
        match key {
            Key::Tunnel(_) => Self::TunnelTaken,
            Key::User(..) => Self::AddressTaken,
            Key::Route(..) => Self::RouteTaken,
        }
    }
}

/// What came of an installation; dropped on the control side.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) index: SessionIndex,
    /// The last counts of URRs that are no longer there.
    pub(crate) removed: Vec<UsageCounts>,
    /// Tunnels that end now.
    pub(crate) end_markers: Box<[OuterHeaderCreation]>,
    /// What it replaced.
    pub(crate) old: Option<Box<Session>>,
    /// What it did with frames before.
    pub(crate) _ethernet: Option<Box<EthernetProgram>>,
    pub(super) _spent: Spent,
}

/// What the worker needs no longer.
pub(super) type Spent = (Box<[HotStep]>, Box<[Option<Name>]>, Box<[Account]>, Box<[(u16, Apart)]>);
