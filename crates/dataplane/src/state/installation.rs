//! A session on its way into force: what the control side made, and what it gets back.

use super::account::Account;
use super::apart::Apart;
use super::lists::WholeStep;
use super::peers::Name;
use super::session::{Key, Session, SessionIndex};
use crate::lasting::Inherited;
use dplink::{RefusalCause, UsageCounts};
use rules::{BarId, EthernetProgram, OuterHeaderCreation, Seid};

/// A session and what its cells are to hold.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) seid: Seid,
    pub(crate) revision: u64,
    /// Once it is in force, what it replaced.
    pub(crate) session: Option<Session>,
    /// By place.
    pub(crate) steps: Box<[WholeStep]>,
    /// By place, the peer of each step that needs one.
    pub(crate) peers: Box<[Option<Name>]>,
    /// By account.
    pub(crate) accounts: Box<[Account]>,
    /// Accounts whose meters are apart, and these.
    pub(crate) aparts: Box<[(u16, Apart)]>,
    /// It carries Ethernet frames. Once it is in force, what it did with frames before.
    pub(crate) ethernet: Option<Box<EthernetProgram>>,
    /// Packets kept for the session that are to be dropped.
    pub(crate) unwanted: Unwanted,
    /// Tunnels that end now.
    pub(crate) end_markers: Box<[OuterHeaderCreation]>,
    /// Takes the last counts of URRs that are no longer there; has room for them.
    pub(crate) removed: Vec<UsageCounts>,
    /// What a former life of the engine knew of its connections.
    pub(crate) inherited: Option<Box<Inherited>>,
}

/// Which of the packets kept for a session are to be dropped.
#[derive(Debug)]
pub(crate) enum Unwanted {
    All,
    /// Those of extended buffering by these BARs: its time is over.
    KeptBy(Box<[BarId]>),
}

impl Unwanted {
    pub(crate) const fn is_any(&self) -> bool {
        match self {
            Self::All => true,
            Self::KeptBy(bars) => !bars.is_empty(),
        }
    }
}

impl Default for Unwanted {
    /// None.
    fn default() -> Self {
        Self::KeptBy(Box::default())
    }
}

impl Installation {
    /// By what packets find the session.
    pub(crate) fn keys(&self) -> &[Key] {
        self.session.as_ref().map_or(&[], |session| &session.keys)
    }

    /// It goes on with what a former life of the engine knew, whatever has become of the rules by which that came about.
    pub(crate) fn inherit(&mut self, inherited: Box<Inherited>) {
        if !inherited.connections.is_empty() {
            self.steps.iter_mut().for_each(|step| step.enriches());
        }
        if !inherited.redirections.is_empty() {
            self.steps.iter_mut().for_each(|step| step.readdresses());
        }
        self.inherited = Some(inherited);
    }

    /// Bytes that the session takes while it is in force, beside the tables and without what the allocator adds.
    pub(crate) fn heap_bytes(&self) -> usize {
        let ethernet = self.ethernet.as_deref();
        let frames = ethernet.map_or(0, |program| size_of_val(program) + program.classifier.heap_bytes());
        self.session.as_ref().map_or(0, Session::heap_bytes) + frames
    }
}

/// What is to take a session out of force.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) seid: Seid,
    /// Takes its last counts; has room for them.
    pub(crate) usage: Vec<UsageCounts>,
    /// What is out of force, and what it did with frames.
    pub(crate) gone: Option<(Session, Option<Box<EthernetProgram>>)>,
}

impl Removal {
    /// Of a session of so many URRs.
    pub(crate) fn new(seid: Seid, urrs: usize) -> Self {
        Self { seid, usage: Vec::with_capacity(urrs), gone: None }
    }
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
    #[error("rules take as much memory beside the tables as the data plane is configured for (pdrs)")]
    Memory,
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
            | Self::Memory
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
    /// With what it replaced, and the last counts of URRs that are no longer there.
    pub(crate) spent: Box<Installation>,
}
