//! What the two engines say to each other.

#[cfg(test)]
mod tests;

use crate::frame;
use crate::usage::{UsageCause, UsageCounts};
use crate::{
    Balancing, Destination, Explanation, Measure, PeerStatistics, Question, Statistics, Step, Trace,
    TraceFilter, Whose,
};
use rules::{BarId, Interface, OuterHeaderCreation, Pdr, PdrId, Qfi, Rules, SeenMac, Seid, Teid, UrrId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;

/// Of this contract: both sides must be of the same.
pub const VERSION: u16 = 33;

/// Rules of a kind.
const FEW: usize = 16;

/// What a connection to a DPE is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The CPE: sets state and receives events. A DPE has one; a newer one replaces it.
    Control,
    /// Reads statistics, traces packets and asks for explanations; changes nothing of what sessions are, but may say at
    /// which worker they are to be.
    Observer,
}

/// A session as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desired {
    /// The session.
    pub session: Seid,
    /// Grows with every change of the session; the same revision twice is the same rules.
    pub revision: u64,
    /// Its rules, whole.
    pub rules: Arc<Rules>,
    /// Tunnels that end with this revision and get an end marker, once, when it is applied (TS 29.281 7.3.2).
    pub end_markers: Vec<OuterHeaderCreation>,
    /// Packets kept for the session are dropped when this revision is applied (TS 29.244 8.2.29, DROBU).
    pub drop_buffered: bool,
    /// BARs whose extended buffering is over: packets kept by them are dropped when this revision is applied.
    pub buffering_over: Vec<BarId>,
}

impl Desired {
    /// Rules and nothing to do once.
    pub fn new(session: Seid, revision: u64, rules: impl Into<Arc<Rules>>) -> Self {
        let (end_markers, buffering_over) = (Vec::new(), Vec::new());
        Self { session, revision, rules: rules.into(), end_markers, drop_buffered: false, buffering_over }
    }

    /// Whether it fits a frame. Takes time linear in its size, unless it has as few rules as nearly all sessions have: those fit,
    /// whatever [`rules::limits`] lets them say.
    pub fn fits(&self) -> bool {
        let Rules { pdrs, fars, qers, urrs, bars } = &*self.rules;
        let most = [pdrs.len(), fars.len(), qers.len(), urrs.len(), bars.len(), self.end_markers.len()];
        let has_text = |pdr: &Pdr| pdr.pdi.application.is_some() || pdr.pdi.ethernet.is_some();
        most.iter().all(|count| *count <= FEW) && !pdrs.iter().any(has_text) || frame::fits(self)
    }
}

/// Why a data plane does not take a session's rules, as far as it matters to who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalCause {
    /// Another session has a tunnel, an address or a network that they name.
    Taken,
    /// There is no room for them.
    Full,
    /// They cannot be run as this data plane is set up.
    Unfit,
}

/// Some of the content rules: a file of lines may be longer than a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentPart {
    /// Names the rules, the same in all parts; the same revision twice is the same rules. Never 0.
    pub revision: u64,
    /// Which part, from 0; they come in order.
    pub part: u32,
    /// How many there are.
    pub parts: u32,
    /// Of the file.
    pub text: String,
}

impl ContentPart {
    /// Most bytes of a part.
    pub const BYTES: usize = 1 << 19;
    /// Most parts.
    pub const PARTS: u32 = 512;
}

/// To a DPE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// First on every connection.
    Hello {
        /// [`VERSION`] of the sender.
        version: u16,
        /// What the connection is for.
        role: Role,
    },
    /// Every session is about to be named; what is not named by [`Command::ResyncEnd`] goes.
    ResyncBegin {
        /// When the sessions began, in seconds since 1900: peers are told, for whom whatever came before is gone
        /// (TS 23.007 18A). As in PFCP, it stays as it is as long as sessions outlive restarts.
        recovery_time_stamp: u32,
    },
    /// All sessions have been named.
    ResyncEnd,
    /// Make a session so; answered by [`Notice::Applied`] or [`Notice::Refused`].
    Put(Desired),
    /// Remove a session; answered by [`Notice::Removed`] whether or not it was there.
    Delete {
        /// The session.
        session: Seid,
    },
    /// Answered by [`Notice::Usage`] of the same token, with no counts where there is nothing to tell.
    QueryUsage {
        /// The session.
        session: Seid,
        /// Its URRs; empty for all.
        urrs: Vec<UrrId>,
        /// Comes back in the answer.
        token: u64,
        /// What it tells is reported: volume thresholds begin anew from there. A look that is not leaves them alone.
        is_reported: bool,
    },
    /// Put content rules in force, in place of those before; answered by [`Notice::ContentLoaded`] or
    /// [`Notice::ContentRefused`] once all parts are there.
    PutContent(ContentPart),
    /// Answered by [`Notice::Statistics`].
    GetStatistics,
    /// Answered by [`Notice::Peers`].
    GetPeers {
        /// As of [`Command::Trace`].
        token: u64,
    },
    /// Watch packets; answered by [`Notice::Trace`] once it is over. One trace at a time.
    Trace {
        /// Comes back in the answer; a DPE of several connections puts its own in.
        token: u64,
        /// Which packets, and how many.
        filter: TraceFilter,
    },
    /// Say what would happen to a packet; answered by [`Notice::Explanation`].
    Explain {
        /// As of [`Command::Trace`].
        token: u64,
        /// The packet.
        question: Question,
    },
    /// Say at which worker a session is, or move it to another; answered by [`Notice::Placed`], once it is there.
    /// What the session is does not change, and none of its packets is lost.
    Locate {
        /// As of [`Command::Trace`].
        token: u64,
        /// The session.
        whose: Whose,
        /// Where to move it; `None`: only say where it is.
        to: Option<Destination>,
    },
    /// Say how sessions are spread over workers; answered by [`Notice::Balance`].
    GetBalance {
        /// As of [`Command::Trace`].
        token: u64,
    },
    /// Move some sessions, so that workers are more even; answered by [`Notice::Evening`] at once, before they have moved.
    Even {
        /// As of [`Command::Trace`].
        token: u64,
        /// What is to be even.
        by: Measure,
        /// Nothing moves: it is only said what would.
        is_dry: bool,
    },
    /// Answers [`Notice::Farewell`]: all that was told has been read.
    Farewell {
        /// It outlives the CPE. Where its disk takes nothing, it does not yet.
        is_kept: bool,
    },
}

/// At which worker a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// The session.
    pub session: Seid,
    /// The worker, by its number from 0.
    pub worker: u8,
    /// The worker where it was until now, if it has moved.
    pub came_from: Option<u8>,
}

/// From a DPE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// Answers [`Command::Hello`].
    Hello {
        /// [`VERSION`] of the DPE.
        version: u16,
        /// Sessions the DPE holds now.
        sessions: u64,
        /// Of this life of the DPE, unlike those before it: counts of usage begin at zero with each.
        epoch: u64,
        /// Revision of the content rules in force; 0 without.
        content: u64,
    },
    /// The session is as revision says, on every packet from now on.
    Applied {
        /// The session.
        session: Seid,
        /// The revision in force.
        revision: u64,
        /// The last counts of URRs that this revision no longer has.
        removed: Vec<UsageCounts>,
    },
    /// The session is as it was before the command.
    Refused {
        /// The session.
        session: Seid,
        /// The revision refused.
        revision: u64,
        /// What kind of reason it is.
        cause: RefusalCause,
        /// One sentence for people.
        reason: String,
    },
    /// The session is not there.
    Removed {
        /// The session.
        session: Seid,
        /// The last counts of all its URRs; empty if it was not there.
        usage: Vec<UsageCounts>,
    },
    /// What a session has used.
    Usage {
        /// The session.
        session: Seid,
        /// Why it is told.
        cause: UsageCause,
        /// Of the URRs the cause is about.
        counts: Vec<UsageCounts>,
    },
    /// What URRs of some sessions have used so far, each of which has counted since its counts were told last. Told without being
    /// asked for, so that little is lost with a DPE that dies.
    InterimUsage {
        /// Each with its session; those of a session one after the other, but not always in one notice.
        counts: Vec<(Seid, UsageCounts)>,
    },
    /// MAC addresses that frames of an Ethernet PDU session came from, all that are in use: told when they have changed,
    /// and after every resynchronisation, where a URR of the session asks for them.
    Macs {
        /// The session.
        session: Seid,
        /// In no order, each once, with the tags it was seen with.
        macs: Vec<SeenMac>,
    },
    /// [`Command::ResyncEnd`] is done.
    Resynced {
        /// Sessions removed because the CPE no longer named them.
        swept: u64,
    },
    /// Content rules are in force, for every flow that begins from now on.
    ContentLoaded {
        /// Which.
        revision: u64,
        /// How many.
        rules: u64,
    },
    /// Content rules are as they were before the command.
    ContentRefused {
        /// The revision refused.
        revision: u64,
        /// Sentences for people, a line each.
        reason: String,
    },
    /// Something happened on the wire.
    Event(Event),
    /// Answers [`Command::GetStatistics`].
    Statistics(Statistics),
    /// Answers [`Command::GetPeers`].
    Peers {
        /// Of the command.
        token: u64,
        /// Those that tunnels lead to, in no order.
        peers: Vec<PeerStatistics>,
    },
    /// Answers [`Command::Trace`].
    Trace {
        /// Of the command.
        token: u64,
        /// What was seen, or one sentence for people why there is no trace.
        outcome: Result<Trace, String>,
    },
    /// Answers [`Command::Explain`].
    Explanation {
        /// Of the command.
        token: u64,
        /// What would happen.
        explanation: Box<Explanation>,
    },
    /// Answers [`Command::Locate`].
    Placed {
        /// Of the command.
        token: u64,
        /// Where the session is, or one sentence for people why it is not known, or stays where it is.
        outcome: Result<Placed, String>,
    },
    /// Answers [`Command::GetBalance`].
    Balance {
        /// Of the command.
        token: u64,
        /// How they are spread.
        balancing: Box<Balancing>,
    },
    /// Answers [`Command::Even`].
    Evening {
        /// Of the command.
        token: u64,
        /// What is to move, or one sentence for people why nothing can. Empty: workers are as even as they can be made.
        outcome: Result<Vec<Step>, String>,
    },
    /// The DPE has been told to end, and is about to tell what all sessions have used ([`UsageCause::End`]). A CPE that is to end, too,
    /// waits for that.
    Leaving,
    /// All is told; the DPE ends once it has been answered by [`Command::Farewell`]. Before [`Notice::Hello`]: all is told of a former
    /// life, and the next, or the greeting, comes once that has been answered.
    Farewell,
    /// What sessions had used when a former life of the DPE ended without a farewell. It comes before [`Notice::Hello`].
    FormerUsage {
        /// Which life.
        epoch: u64,
        /// By session; those of one behind one another as a rule, and the same URR's perhaps twice, of which more is right.
        counts: Vec<(Seid, UsageCounts)>,
    },
}

/// What the data plane saw. Events are hints: they may be lost, counters may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A peer has no use for the packets we send into its tunnel (TS 29.281 7.3.1).
    ErrorIndication {
        /// The peer's tunnel.
        teid: Teid,
        /// The peer's address.
        peer: IpAddr,
        /// Only tunnels to this side are meant: it came from where no peer of the other one is. `None`: of either.
        towards: Option<Interface>,
    },
    /// The path to a peer has failed, or is there again (TS 29.281 7.2, TS 29.244 7.4.5.1.2). Told until it is noted, and of
    /// paths that have failed again after every resynchronisation.
    Path {
        /// The side the peer is on.
        side: Interface,
        /// The peer's address.
        remote: IpAddr,
        /// Whether it has failed.
        failed: bool,
    },
    /// A peer was restarted: it knows nothing of tunnels it had (TS 23.007 18A, TS 29.244 7.4.5.1.7). Told once.
    PeerRestarted {
        /// The side the peer is on.
        side: Interface,
        /// The peer's address.
        remote: IpAddr,
    },
    /// The first downlink packet is being kept for a user who sleeps (TS 29.244 7.5.8.2).
    DownlinkData {
        /// The session.
        session: Seid,
        /// The PDR it matched.
        pdr: PdrId,
        /// The QoS flow it would have gone in.
        qfi: Option<Qfi>,
        /// Type of service, or traffic class, of the packet.
        traffic_class: u8,
    },
}
