//! What goes into the machine and what comes out.

use charging::Cdr;
use dplink::{Desired, Notice};
use rules::{Interface, Seid, UrrId};
use session::{AssociationRecord, NodeRecord, Packed, PathRecord, PfdRecord, SessionRecord, ToldRecord};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What is known when a node starts: what the session database holds, and what time it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// This node.
    pub node: NodeRecord,
    /// Its peers.
    pub associations: Vec<AssociationRecord>,
    /// Where those are who were associated before a crash of the machine and may not know of it.
    pub forgotten: Vec<SocketAddr>,
    /// Their sessions.
    pub sessions: Vec<Packed>,
    /// What control planes told of applications.
    pub pfds: Vec<PfdRecord>,
    /// GTP-U peers that did not answer when it was known last.
    pub paths: Vec<PathRecord>,
    /// What names of predefined rules stood for when the data plane had been told last.
    pub told: Vec<ToldRecord>,
    /// The highest number of a charging data record.
    pub last_cdr: u64,
    /// Milliseconds since 1900 at [`machine::Time::ZERO`]: usage reports tell the time of day.
    pub since_1900_ms: u64,
}

impl Start {
    /// Of a node of whose past nothing is known.
    pub const fn new(node: NodeRecord, since_1900_ms: u64) -> Self {
        Self {
            node,
            associations: vec![],
            forgotten: vec![],
            sessions: vec![],
            pfds: vec![],
            paths: vec![],
            told: vec![],
            last_cdr: 0,
            since_1900_ms,
        }
    }
}

/// What came.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A UDP datagram.
    Datagram {
        /// Who sent it.
        from: SocketAddr,
        /// What it holds.
        bytes: &'a [u8],
    },
    /// The data plane says something.
    DataPath(&'a Notice),
    /// The data plane cannot be reached: what it has not confirmed it may never do.
    DataPathLost,
    /// A GTP-U peer no longer answers the data plane, or answers it again (TS 23.007 20.3.1): all control planes are told.
    UserPlanePath {
        /// The side the peer is on.
        side: Interface,
        /// The peer.
        peer: IpAddr,
        /// It answers.
        is_up: bool,
    },
    /// What time of day it is: told when the clock was changed, or may have been. Between two of these it goes as the time does
    /// that inputs come with.
    TimeOfDay {
        /// Milliseconds since 1900.
        since_1900_ms: u64,
    },
    /// How long the datagram that comes next has waited for us: how busy this engine is.
    Waited(Duration),
    /// Nothing; but something may be due.
    Tick,
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a datagram.
    Send {
        /// To whom.
        to: SocketAddr,
        /// What.
        bytes: Vec<u8>,
    },
    /// Tell the data plane how a session should be.
    Put(Desired),
    /// Tell the data plane to remove a session.
    Delete(Seid),
    /// Ask the data plane what a session has used.
    QueryUsage {
        /// The session.
        session: Seid,
        /// Its URRs.
        urrs: Vec<UrrId>,
        /// Comes back in the answer.
        token: u64,
        /// The answer goes into a report.
        is_reported: bool,
    },
    /// Keep a session in the database. Comes before all else.
    SaveSession(Seid, Packed),
    /// Drop a session from the database.
    EraseSession(Seid),
    /// Keep a charging data record in the database until it is in a file: in one transaction with the other changes
    /// that come with it.
    SaveCdr(Box<Cdr>),
    /// Keep what the node is to know of itself in the database.
    SaveNode(NodeRecord),
    /// Keep an association in the database.
    SaveAssociation(AssociationRecord),
    /// Drop the association with a Node ID from the database.
    EraseAssociation(String),
    /// Keep the PFDs of an application in the database.
    SavePfds(PfdRecord),
    /// Drop the PFDs of an application from the database.
    ErasePfds(String),
    /// Keep in the database what names of predefined rules stand for, now that the data plane has been told.
    SaveTold(Vec<ToldRecord>),
    /// Keep in the database that a GTP-U peer does not answer.
    SavePath(PathRecord),
    /// Drop that from the database.
    ErasePath(PathRecord),
    /// Content rules made of PFDs are others now: those of [`Node::content_rules`](crate::Node::content_rules).
    ContentRules,
    /// Tell people.
    Note(Note),
}

/// A record is kept that is no session's, or none's any more.
pub(crate) fn saved(record: &SessionRecord) -> Output {
    Output::SaveSession(record.seid, Packed::of(record))
}

/// One sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How bad it is.
    pub level: Level,
    /// The sentence.
    pub text: String,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Info,
    /// Someone should look.
    Warning,
}

/// What a node has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent, repetitions included.
    pub sent: u64,
    /// Datagrams dropped because they are no message, or none we handle.
    pub garbage: u64,
    /// Datagrams dropped because their senders are not among those who are allowed.
    pub not_allowed: u64,
    /// Responses dropped because nothing waits for them.
    pub unexpected: u64,
    /// Requests that came again.
    pub repeated: u64,
    /// Rules and traffic endpoints removed that were gone, and rules created that were there.
    pub restated: u64,
    /// Requests refused.
    pub refused: u64,
    /// Requests done.
    pub accepted: u64,
    /// Requests of ours nobody answered.
    pub unanswered: u64,
    /// Error Indications not reported: reported lately, or too many at once.
    pub reports_held_back: u64,
    /// Usage reports that wait for their turn (`usage_reports_per_s`).
    pub reports_delayed: u64,
    /// Usage reports made, in whatever message.
    pub usage_reports: u64,
    /// Charging data records closed.
    pub cdrs: u64,
    /// Downlink data reports sent.
    pub downlink_data_reports: u64,
}
