//! What is ending, and what waits for it.

use super::turns::Turns;
use crate::exchange::{Asked, Key};
use crate::sets::{Moving, is_of_any};
use machine::Time;
use pfcp::{Cause, FqCsid};
use rules::Seid;
use session::{AssociationRecord, EndingSet, SessionRecord};
use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// A data plane that says nothing is waited for no longer than this before the next ones.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// Requests to end or move sets that are under way at once.
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
    /// Those of any of these sets, of which this may be the last: whoever is set up later is not meant.
    OfSets(Vec<FqCsid>, Seid),
    /// All, when the data plane has told what they used.
    Parting,
    /// None: these are looked after by others from now on.
    Moving(Moving),
}

impl Lost {
    pub(super) fn has(&self, record: &SessionRecord) -> bool {
        match self {
            Self::All | Self::Parting => true,
            Self::But(retained) => !is_of_retained(record, retained),
            Self::UpTo(era) => record.era <= *era,
            Self::OfSets(fq_csids, _) => is_of_any(record, fq_csids),
            Self::Moving(_) => false,
        }
    }
}

pub(crate) fn is_of_retained(record: &SessionRecord, retained: &Retained) -> bool {
    retained.is_empty() || retained.contains(&record.cp_f_seid.address)
}

/// What comes after the last session.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    /// A set is gone: this is answered, if it came in this life of ours.
    SetIsGone(Option<Asked>),
    /// A set has moved: this is answered.
    SetHasMoved(Asked),
    /// The control plane is associated.
    Associate(Box<Associating>),
    /// It has restarted, and this is its time stamp.
    Restarted(u32),
    /// What they used is told before the association is over.
    Told,
    /// Nothing: they were stale (`stale.rs`).
    Nothing,
    /// The association is over; whoever asked for it is answered.
    Over(Option<Asked>),
}

impl Then {
    /// Who is answered after it.
    pub(super) const fn asked(&self) -> Option<&Asked> {
        match self {
            Self::SetIsGone(asked) | Self::Over(asked) => asked.as_ref(),
            Self::SetHasMoved(asked) => Some(asked),
            Self::Associate(associating) => associating.asked.as_ref(),
            Self::Restarted(_) | Self::Told | Self::Nothing => None,
        }
    }

    /// The era of the sessions that stay: what a control plane asks to retain it has not forgotten.
    pub(super) const fn era(&self) -> Option<u32> {
        match self {
            Self::Associate(associating) => Some(associating.record.era),
            _ => None,
        }
    }

    /// Whether sessions that are being deleted are answered for first. Who has restarted has forgotten that it asked.
    pub(super) const fn hears_of_deletions(&self) -> bool {
        match self {
            Self::SetIsGone(_) | Self::Told | Self::Over(_) | Self::Nothing => true,
            Self::Associate(associating) => !associating.has_restarted,
            Self::SetHasMoved(_) | Self::Restarted(_) => false,
        }
    }
}

/// An association that begins, or begins anew.
#[derive(Clone, Debug)]
pub(crate) struct Associating {
    pub(crate) record: AssociationRecord,
    pub(crate) has_restarted: bool,
    /// Whether the association before has ended (TS 29.244 6.2.8), and all that is left of it is yet to go.
    pub(crate) is_after_end: bool,
    /// Whom it associates in answer to, if not to us.
    pub(crate) asked: Option<Asked>,
    pub(crate) retained: Option<Retained>,
}

/// Sessions that end, and what is next.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) owner: String,
    pub(super) lost: Lost,
    /// Those that are not looked at yet.
    pub(super) left: Turns,
    /// Those that are being deleted, of which their control plane is told by the answer to that.
    pub(super) deleted: BTreeSet<Seid>,
    /// How many have ended, or moved.
    pub(super) ended: usize,
    pub(super) then: Then,
}

impl Ending {
    pub(super) const fn new(owner: String, lost: Lost, left: Turns, then: Then) -> Self {
        Self { owner, lost, left, deleted: BTreeSet::new(), ended: 0, then }
    }

    pub(super) const fn is_of_sets(&self) -> bool {
        matches!(self.lost, Lost::OfSets(..) | Lost::Moving(_))
    }

    /// What is said to who is establishing one of them: 65 is for who names one that is not there (TS 29.244 8.2.1).
    pub(super) const fn cause(&self) -> Cause {
        match self.is_of_sets() {
            true => Cause::RequestRejected,
            false => Cause::NoEstablishedPfcpAssociation,
        }
    }

    pub(super) const fn is_stale(&self) -> bool {
        matches!(self.then, Then::Nothing)
    }

    /// Whether it is the end of an association, or of a control plane's life.
    pub(super) const fn is_of_owner(&self) -> bool {
        !self.is_of_sets() && !self.is_stale()
    }

    pub(super) fn has_left(&self) -> bool {
        !self.left.are_over()
    }

    pub(super) fn is_done(&self) -> bool {
        !self.has_left() && self.deleted.is_empty()
    }
}

/// All that is ending, in turns; a control plane's sessions for one reason at a time, but for its sets.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    pub(super) all: VecDeque<Ending>,
    /// What the data plane has yet to let go.
    pub(super) going: BTreeSet<Seid>,
    /// When to go on.
    pub(super) at: Time,
}

impl Endings {
    pub(crate) fn next_due(&self) -> Option<Time> {
        let done = self.all.iter().any(Ending::is_done).then_some(Time::ZERO);
        done.or_else(|| self.all.iter().any(Ending::has_left).then_some(self.at))
    }

    pub(crate) fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of a control plane, other than of sets and of what is stale: they end with its association, or its life.
    pub(super) fn of(&self, owner: &str) -> impl Iterator<Item = &Ending> {
        self.all.iter().filter(move |ending| ending.owner == owner && ending.is_of_owner())
    }

    /// Whether sessions of a control plane end with its association, or its life.
    pub(crate) fn are_under_way(&self, owner: &str) -> bool {
        self.of(owner).next().is_some()
    }

    /// Whether its association is over with them, though another one may come behind it.
    pub(crate) fn end_association(&self, owner: &str) -> bool {
        let is_it = |then: &Then| match then {
            Then::Over(_) => true,
            Then::Associate(associating) => associating.is_after_end,
            _ => false,
        };
        self.of(owner).any(|ending| is_it(&ending.then))
    }

    /// Whether they end as it did not release us in time.
    pub(crate) fn know_parting(&self, owner: &str) -> bool {
        self.of(owner).any(|ending| matches!(ending.then, Then::Told))
    }

    /// Whether it waits to associate with this time stamp.
    pub(crate) fn know(&self, owner: &str, stamp: u32) -> bool {
        let is_it =
            |then: &Then| matches!(then, Then::Associate(it) if it.record.recovery_time_stamp == stamp);
        self.of(owner).any(|ending| is_it(&ending.then))
    }

    /// Whether it waits to associate.
    pub(crate) fn know_return(&self, owner: &str) -> bool {
        self.of(owner).any(|ending| matches!(ending.then, Then::Associate(_)))
    }

    /// Requests to associate that wait.
    pub(crate) fn associating(&self) -> Vec<Key> {
        let waiting = self.all.iter().filter(|ending| matches!(ending.then, Then::Associate(_)));
        waiting.filter_map(|ending| Some(ending.then.asked()?.key)).collect()
    }

    /// Its sets that end.
    pub(crate) fn sets_of(&self, owner: &str) -> Vec<EndingSet> {
        let mut sets = Vec::new();
        for ending in self.all.iter().filter(|ending| ending.owner == owner) {
            let Lost::OfSets(fq_csids, last) = &ending.lost else { continue };
            sets.extend(fq_csids.iter().map(|fq_csid| EndingSet { fq_csid: fq_csid.octets(), last: *last }));
        }
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// Whether a session is one of those that end with their control plane.
    pub(crate) fn have(&self, record: &SessionRecord) -> bool {
        self.of(&record.owner).any(|ending| ending.lost.has(record))
    }

    /// What a control plane asked for of sets goes on in the name of another.
    pub(super) fn pass_on_sets(&mut self, from: &str, to: &str) {
        let passed = self.all.iter_mut().filter(|ending| ending.owner == from && ending.is_of_sets());
        passed.for_each(|ending| to.clone_into(&mut ending.owner));
    }

    pub(super) fn have_room_for_a_set(&self) -> bool {
        self.all.iter().filter(|ending| ending.is_of_sets()).count() < SETS
    }

    /// The next in turn that has sessions left, or has none to wait for.
    pub(super) fn take(&mut self, is_it: impl Fn(&Ending) -> bool) -> Option<Ending> {
        let at = self.all.iter().position(is_it)?;
        self.all.remove(at)
    }

    /// The data plane has let a session go. It is told of more once it has done half of what it has to, so that it is never idle, and
    /// each turn is worth it.
    pub(crate) fn gone(&mut self, seid: Seid, (portion, now): (usize, Time)) {
        if self.going.remove(&seid) {
            self.at = if self.is_full(portion) { now + PATIENCE } else { now };
        }
    }

    /// Whether the data plane has enough to do.
    pub(super) fn is_full(&self, portion: usize) -> bool {
        self.going.len() > portion / 2
    }

    /// A session is there no more: if it was being deleted, that has been answered.
    pub(crate) fn forget(&mut self, seid: Seid) {
        for ending in &mut self.all {
            ending.deleted.remove(&seid);
        }
    }

    /// The data plane is not there: it is not waited for.
    pub(crate) fn lost(&mut self, now: Time) {
        self.going.clear();
        self.at = now;
    }
}
