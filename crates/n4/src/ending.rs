//! Very many sessions that end together: of a control plane that has restarted or leaves, of a set. A million of them take seconds, in
//! which others want to be heard. So they end by portions, and what waits for their end, an answer mostly, comes after the last one.
//! Nothing needs to be remembered over a restart: who was not answered asks again, and whoever told of a restart by heartbeats goes on
//! to.
//!
//! The data plane sets the pace. It lets a portion go before it is told of the next, or what is new would wait behind all of them.

use crate::exchange::Asked;
use crate::interface::Level;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sessions::Session;
use crate::sets::is_of_any;
use machine::Time;
use pfcp::{Cause, FqCsid};
use rules::Seid;
use session::{AssociationRecord, SessionRecord};
use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// The data plane is waited for no longer than this before the next ones.
const PATIENCE: Duration = Duration::from_millis(100);
/// Requests to end sets that are under way at once.
const SETS: usize = 64;

/// Whose sessions stay, by the addresses of their CP F-SEIDs; all of the peer's where there are none.
pub(crate) type Retained = Vec<IpAddr>;

/// Which sessions of a control plane end.
#[derive(Clone, Debug)]
pub(crate) enum Lost {
    All,
    /// It asks to retain the others.
    But(Retained),
    /// Those of this era and earlier.
    UpTo(u32),
    /// Those of any of these sets.
    OfSets(Vec<FqCsid>),
    /// All, when the data plane has told what they used.
    Parting,
}

impl Lost {
    fn has(&self, record: &SessionRecord) -> bool {
        match self {
            Self::All | Self::Parting => true,
            Self::But(retained) => !is_of_retained(record, retained),
            Self::UpTo(era) => record.era <= *era,
            Self::OfSets(fq_csids) => is_of_any(record, fq_csids),
        }
    }
}

pub(crate) fn is_of_retained(record: &SessionRecord, retained: &Retained) -> bool {
    retained.is_empty() || retained.contains(&record.cp_f_seid.address)
}

/// What comes after the last session.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    /// A set is gone: this is answered.
    SetIsGone(Asked),
    /// The control plane is associated.
    Associate(Box<Associating>),
    /// It has restarted, and this is its time stamp.
    Restarted(u32),
    /// What they used is told before the association is over.
    Told,
    /// The association is over; whoever asked for it is answered.
    Over(Option<Asked>),
}

impl Then {
    /// Who is answered after it.
    const fn asked(&self) -> Option<&Asked> {
        match self {
            Self::SetIsGone(asked) => Some(asked),
            Self::Associate(associating) => associating.asked.as_ref(),
            Self::Over(asked) => asked.as_ref(),
            Self::Restarted(_) | Self::Told => None,
        }
    }
}

/// An association that begins, or begins anew.
#[derive(Clone, Debug)]
pub(crate) struct Associating {
    pub(crate) record: AssociationRecord,
    pub(crate) has_restarted: bool,
    /// Whom it associates in answer to, if not to us.
    pub(crate) asked: Option<Asked>,
    pub(crate) retained: Option<Retained>,
}

/// Sessions that end, and what is next.
#[derive(Debug)]
struct Ending {
    owner: String,
    lost: Lost,
    /// Those that are not looked at yet.
    left: std::vec::IntoIter<Seid>,
    /// How many have ended.
    ended: usize,
    then: Then,
}

impl Ending {
    const fn is_of_sets(&self) -> bool {
        matches!(self.lost, Lost::OfSets(_))
    }
}

/// All that is ending, in turns; a control plane's sessions for one reason at a time, but for its sets.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    all: VecDeque<Ending>,
    /// What the data plane has yet to let go of the last portion: it is told of no more until then.
    going: BTreeSet<Seid>,
    /// When to go on.
    at: Time,
}

impl Endings {
    pub(crate) fn next_due(&self) -> Option<Time> {
        (!self.all.is_empty()).then_some(self.at)
    }

    /// Whether sessions of a control plane end, other than as sets.
    fn are_under_way(&self, owner: &str) -> bool {
        self.all.iter().any(|ending| ending.owner == owner && !ending.is_of_sets())
    }

    /// Whether a session is one of those that end with their control plane.
    pub(crate) fn have(&self, record: &SessionRecord) -> bool {
        let is_its = |ending: &&Ending| ending.owner == record.owner && !ending.is_of_sets();
        self.all.iter().filter(is_its).any(|ending| ending.lost.has(record))
    }

    fn has_room_for_a_set(&self) -> bool {
        self.all.iter().filter(|ending| ending.is_of_sets()).count() < SETS
    }

    /// The data plane has let a session go.
    pub(crate) fn gone(&mut self, seid: Seid, now: Time) {
        if self.going.remove(&seid) && self.going.is_empty() {
            self.at = now;
        }
    }

    /// The data plane is not there: it is not waited for.
    pub(crate) fn lost(&mut self, now: Time) {
        self.going.clear();
        self.at = now;
    }
}

/// What becomes of a session that is looked at.
enum Fate {
    Stays,
    /// Another control plane looks after it, and has it from now on.
    Moves(String),
    Ends,
}

impl Node {
    /// Ends sessions of a control plane, but for those another one looks after by now; at once where they are few. What the control
    /// plane asks for takes the place of what is under way; what nobody asked for gives way to it.
    pub(crate) fn end_sessions_of(&mut self, owner: String, lost: Lost, then: Then) {
        let is_asked_for = matches!(then, Then::Associate(_) | Then::Over(Some(_)));
        if self.endings.are_under_way(&owner) {
            if !is_asked_for {
                return;
            }
            self.give_up_ending(&owner);
        }
        let left = self.sessions.all_of(&owner).into_iter();
        self.begin_ending(Ending { owner, lost, left, ended: 0, then });
    }

    /// Something else is asked for. Who waits for it is told that there is more to do than can be done.
    fn give_up_ending(&mut self, owner: &str) {
        let is_its = |ending: &Ending| ending.owner == owner && !ending.is_of_sets();
        let (given_up, all): (VecDeque<_>, _) =
            std::mem::take(&mut self.endings.all).into_iter().partition(is_its);
        self.endings.all = all;
        for asked in given_up.iter().filter_map(|ending| ending.then.asked()) {
            self.refuse(asked, None, Refusal::of(Cause::PfcpEntityInCongestion));
        }
    }

    /// Ends the sessions of sets.
    pub(crate) fn end_sets(
        &mut self,
        asked: &Asked,
        owner: String,
        fq_csids: &[FqCsid],
    ) -> Result<(), Refusal> {
        if !self.endings.has_room_for_a_set() {
            return Err(Refusal::of(Cause::PfcpEntityInCongestion));
        }
        let left: Vec<Seid> = self.sessions.of_sets(fq_csids).into_iter().collect();
        let (lost, then) = (Lost::OfSets(fq_csids.to_vec()), Then::SetIsGone(*asked));
        self.begin_ending(Ending { owner, lost, left: left.into_iter(), ended: 0, then });
        Ok(())
    }

    fn begin_ending(&mut self, mut ending: Ending) {
        self.end_portion(&mut ending);
        if ending.left.len() == 0 {
            return self.have_ended(ending);
        }
        let (owner, left) = (&ending.owner, ending.left.len());
        if let Some(association) = self.peers.get_mut(owner).filter(|_| !ending.is_of_sets()) {
            association.is_ending = true;
        }
        self.note(Level::Info, format!("sessions of {owner} end: {left} more are looked at by portions"));
        self.endings.all.push_back(ending);
        self.wait_for_data_plane();
    }

    /// The next portion, where it is time for it.
    pub(crate) fn end_more(&mut self) {
        if self.endings.at > self.now {
            return;
        }
        let Some(mut ending) = self.endings.all.pop_front() else { return };
        self.endings.going.clear();
        self.end_portion(&mut ending);
        match ending.left.len() {
            0 => self.have_ended(ending),
            _ => self.endings.all.push_back(ending),
        }
        self.wait_for_data_plane();
    }

    fn wait_for_data_plane(&mut self) {
        let is_idle = self.epoch.is_none() || self.endings.going.is_empty();
        self.endings.at = if is_idle { self.now } else { self.now + PATIENCE };
    }

    fn end_portion(&mut self, ending: &mut Ending) {
        for _ in 0..self.config.limits.portion {
            let Some(seid) = ending.left.next() else { break };
            match self.fate(seid, ending) {
                Fate::Stays => {}
                Fate::Moves(heir) => self.hand_over(seid, heir),
                Fate::Ends => {
                    self.end_one(seid, ending);
                    ending.ended += 1;
                }
            }
        }
        self.sessions.rest(self.wall_ms());
    }

    fn end_one(&mut self, seid: Seid, ending: &Ending) {
        let is_told_of = match ending.lost {
            Lost::Parting => self.part_with(seid, &ending.owner),
            _ => {
                self.drop_session(seid);
                true
            }
        };
        if is_told_of && self.epoch.is_some() {
            self.endings.going.insert(seid);
        }
    }

    /// It is not woken for that.
    fn fate(&self, seid: Seid, ending: &Ending) -> Fate {
        let Ending { owner, lost, .. } = ending;
        let is_its = |session: &Session| match lost {
            Lost::OfSets(_) => self.peers.are_one(owner, &session.record.owner),
            _ => session.record.owner == *owner,
        };
        let heir = |session: &Session| self.heir_of(session).filter(|_| !ending.is_of_sets());
        let fate = |session: &Session| match heir(session) {
            _ if !is_its(session) => Fate::Stays,
            Some(heir) => Fate::Moves(heir),
            None if lost.has(&session.record) => Fate::Ends,
            None => Fate::Stays,
        };
        self.sessions.peek(seid, fate).unwrap_or(Fate::Stays)
    }

    fn have_ended(&mut self, ending: Ending) {
        let Ending { owner, ended, then, .. } = ending;
        if let Some(association) = self.peers.get_mut(&owner).filter(|_| !matches!(then, Then::SetIsGone(_)))
        {
            association.is_ending = false;
        }
        match then {
            Then::SetIsGone(asked) => {
                self.note(Level::Info, format!("{owner} ends {ended} sessions of a set"));
                self.set_is_gone(&asked);
            }
            Then::Associate(associating) => {
                self.note_lost(&owner, ended);
                self.associated_anew(*associating);
            }
            Then::Restarted(stamp) => {
                self.note_lost(&owner, ended);
                self.has_restarted(&owner, stamp);
            }
            // The next look at associations that are over finds that out.
            Then::Told => {}
            Then::Over(asked) => self.association_is_over(owner, asked.as_ref()),
        }
    }

    fn note_lost(&mut self, owner: &str, ended: usize) {
        self.note(Level::Warning, format!("{owner} has lost {ended} sessions: they are gone"));
    }
}
