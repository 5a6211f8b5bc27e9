//! Very many sessions that end together: of a control plane that has restarted or leaves, of a set; and those of a set that move. A
//! million of them take seconds, in which others want to be heard. So they go by portions, and what waits for them, an answer mostly,
//! comes after the last one. That an association is over, and which sets end, is kept with the association: nobody need ask for
//! that again after a restart of ours. Of the rest nothing needs to be remembered: who was not answered asks again, and whoever told of a
//! restart by heartbeats goes on to.
//!
//! The data plane sets the pace. It has a portion to let go at most, which is filled up as it does, or what is new would wait behind
//! all of them.

use crate::exchange::{Asked, Key};
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::peers::Association;
use crate::refusal::Refusal;
use crate::sessions::Session;
use crate::sets::{Moving, is_of_any};
use machine::Time;
use pfcp::{Cause, FqCsid};
use rules::Seid;
use session::{AssociationRecord, EndingSet, SessionRecord};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// A data plane that says nothing is waited for no longer than this before the next ones.
const PATIENCE: Duration = Duration::from_millis(100);
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
    /// Those of any of these sets, the last of which this is: whoever is of one later is not meant.
    OfSets(Vec<FqCsid>, Seid),
    /// All, when the data plane has told what they used.
    Parting,
    /// None: these are looked after by others from now on.
    Moving(Moving),
}

impl Lost {
    fn has(&self, record: &SessionRecord) -> bool {
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
    const fn asked(&self) -> Option<&Asked> {
        match self {
            Self::SetIsGone(asked) | Self::Over(asked) => asked.as_ref(),
            Self::SetHasMoved(asked) => Some(asked),
            Self::Associate(associating) => associating.asked.as_ref(),
            Self::Restarted(_) | Self::Told | Self::Nothing => None,
        }
    }

    /// The era of the sessions that stay: what a control plane asks to retain it has not forgotten.
    const fn era(&self) -> Option<u32> {
        match self {
            Self::Associate(associating) => Some(associating.record.era),
            _ => None,
        }
    }

    /// Whether sessions that are being deleted are answered for first. Who has restarted has forgotten that it asked.
    const fn hears_of_deletions(&self) -> bool {
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
struct Ending {
    owner: String,
    lost: Lost,
    /// Those that are not looked at yet.
    left: std::vec::IntoIter<Seid>,
    /// Those that are being deleted, of which their control plane is told by the answer to that.
    deleted: BTreeSet<Seid>,
    /// How many have ended, or moved.
    ended: usize,
    then: Then,
}

impl Ending {
    fn new(owner: String, lost: Lost, left: Vec<Seid>, then: Then) -> Self {
        Self { owner, lost, left: left.into_iter(), deleted: BTreeSet::new(), ended: 0, then }
    }

    const fn is_of_sets(&self) -> bool {
        matches!(self.lost, Lost::OfSets(..) | Lost::Moving(_))
    }

    /// What is said to who is establishing one of them: 65 is for who names one that is not there (TS 29.244 8.2.1).
    const fn cause(&self) -> Cause {
        match self.is_of_sets() {
            true => Cause::RequestRejected,
            false => Cause::NoEstablishedPfcpAssociation,
        }
    }

    const fn is_stale(&self) -> bool {
        matches!(self.then, Then::Nothing)
    }

    /// Whether it is the end of an association, or of a control plane's life.
    const fn is_of_owner(&self) -> bool {
        !self.is_of_sets() && !self.is_stale()
    }

    fn has_left(&self) -> bool {
        self.left.len() > 0
    }

    fn is_done(&self) -> bool {
        !self.has_left() && self.deleted.is_empty()
    }
}

/// All that is ending, in turns; a control plane's sessions for one reason at a time, but for its sets.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    all: VecDeque<Ending>,
    /// What the data plane has yet to let go.
    going: BTreeSet<Seid>,
    /// When to go on.
    at: Time,
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
    fn of(&self, owner: &str) -> impl Iterator<Item = &Ending> {
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

    fn have_room_for_a_set(&self) -> bool {
        self.all.iter().filter(|ending| ending.is_of_sets()).count() < SETS
    }

    /// The next in turn that has sessions left, or has none to wait for.
    fn take(&mut self, is_it: impl Fn(&Ending) -> bool) -> Option<Ending> {
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
    fn is_full(&self, portion: usize) -> bool {
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

/// What becomes of a session that is looked at.
enum Fate {
    Stays,
    /// Its control plane asks to retain it, and so names it in this era.
    Retained(u32),
    /// Its control plane has asked for its end already, and is answered.
    IsDeleted,
    /// Another control plane looks after it, and has it from now on.
    Inherited(String),
    /// Another one looks after it from now on.
    Moves(IpAddr),
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
            self.give_up_ending(&owner, then.asked().copied());
        }
        if matches!(lost, Lost::But(_)) {
            self.give_up_stale(&owner);
        }
        let left = self.that_end(&owner, &then);
        self.begin_ending(Ending::new(owner, lost, left, then));
    }

    /// Those that are being deleted may have lost their names to others already: they are found by what is under way.
    fn that_end(&self, owner: &str, then: &Then) -> Vec<Seid> {
        let mut all = self.sessions.all_of(owner);
        if matches!(then, Then::Over(_)) {
            let is_its = |seid: &Seid| self.sessions.look(*seid, |session| session.record.owner == owner);
            all.extend(self.sessions.pending().into_iter().filter(is_its));
            all.sort_unstable();
            all.dedup();
        }
        all
    }

    /// What is stale may be retained: only what is not ends.
    fn give_up_stale(&mut self, owner: &str) {
        while let Some(given_up) = self.endings.take(|ending| ending.owner == owner && ending.is_stale()) {
            self.note_stale(owner, given_up.ended);
        }
    }

    /// Something else is asked for. Who waits for it is told that there is more to do than can be done, but for who asks the same once
    /// more: there was no room to remember that it did.
    pub(crate) fn give_up_ending(&mut self, owner: &str, next: Option<Asked>) {
        let is_its = |ending: &Ending| ending.owner == owner && ending.is_of_owner();
        let next = next.map(|asked| asked.key);
        while let Some(given_up) = self.endings.take(is_its) {
            if let Some(asked) = given_up.then.asked().filter(|asked| Some(asked.key) != next) {
                self.refuse(asked, None, Refusal::of(Cause::PfcpEntityInCongestion));
            }
        }
        self.remember_endings(owner);
    }

    /// Ends the sessions of sets.
    pub(crate) fn end_sets(
        &mut self,
        asked: &Asked,
        owner: String,
        fq_csids: &[FqCsid],
    ) -> Result<(), Refusal> {
        let left: Vec<Seid> = self.sessions.of_sets(fq_csids).into_iter().collect();
        let lost = Lost::OfSets(fq_csids.to_vec(), left.last().copied().unwrap_or(Seid(0)));
        self.begin_set((owner, lost), left, Then::SetIsGone(Some(*asked)))
    }

    /// Sessions of sets go, or move.
    pub(crate) fn begin_set(
        &mut self,
        (owner, lost): (String, Lost),
        left: Vec<Seid>,
        then: Then,
    ) -> Result<(), Refusal> {
        if !self.endings.have_room_for_a_set() {
            return Err(Refusal::of(Cause::PfcpEntityInCongestion));
        }
        self.begin_ending(Ending::new(owner, lost, left, then));
        Ok(())
    }

    /// What a former life of ours did not finish.
    pub(crate) fn resume_endings(&mut self) {
        let unfinished = |association: &Association| {
            let AssociationRecord { node_id, ending_sets, .. } = &association.record;
            (node_id.clone(), association.is_over(), ending_sets.clone())
        };
        let all: Vec<_> = self.peers.iter().map(unfinished).collect();
        for (owner, is_over, sets) in all {
            self.resume_sets(&owner, &sets);
            if is_over {
                let left = self.sessions.all_of(&owner);
                let over = Ending::new(owner.clone(), Lost::All, left, Then::Over(None));
                self.endings.all.push_back(over);
            }
            self.remember_endings(&owner);
        }
    }

    /// Those that were asked for together end together. A session that has been made since is of a later SEID.
    fn resume_sets(&mut self, owner: &str, sets: &[EndingSet]) {
        let mut by_last = BTreeMap::<Seid, Vec<FqCsid>>::new();
        for EndingSet { fq_csid, last } in sets {
            by_last.entry(*last).or_default().extend(FqCsid::of_octets(fq_csid));
        }
        for (last, fq_csids) in by_last {
            let left = self.sessions.of_sets(&fq_csids).into_iter().filter(|seid| *seid <= last).collect();
            let (lost, then) = (Lost::OfSets(fq_csids, last), Then::SetIsGone(None));
            self.endings.all.push_back(Ending::new(owner.to_owned(), lost, left, then));
        }
    }

    fn begin_ending(&mut self, mut ending: Ending) {
        let is_first = !self.endings.all.iter().any(Ending::has_left);
        let before = self.endings.going.len();
        self.end_portion(&mut ending);
        // Who only waits for its turn puts off nobody else's.
        if is_first || self.endings.going.len() > before {
            self.wait_for_data_plane();
        }
        if ending.is_done() {
            return self.have_ended(ending);
        }
        let (owner, left) = (ending.owner.clone(), ending.left.len());
        let what = if matches!(ending.lost, Lost::Moving(_)) { "move" } else { "end" };
        self.note(Level::Info, format!("sessions of {owner} {what}: {left} more are looked at by portions"));
        self.endings.all.push_back(ending);
        self.remember_endings(&owner);
    }

    /// Its association, and the database, know what is under way.
    pub(crate) fn remember_endings(&mut self, owner: &str) {
        let (is_ending, is_over) = (self.endings.are_under_way(owner), self.endings.end_association(owner));
        let sets = self.endings.sets_of(owner);
        let since_1900_ms = self.since_1900_ms;
        let Some(association) = self.peers.get_mut(owner) else { return };
        association.is_ending = is_ending;
        let ends_ms = association.ends.map(|ends| since_1900_ms + ends.since_zero().as_millis() as u64);
        let ends_ms = if is_over { Some(AssociationRecord::IS_OVER) } else { ends_ms };
        let record = &mut association.record;
        if (record.ends_ms, &record.ending_sets) != (ends_ms, &sets) {
            (record.ends_ms, record.ending_sets) = (ends_ms, sets);
            self.out.push(Output::SaveAssociation(record.clone()));
        }
    }

    /// The next portion, where it is time for it.
    pub(crate) fn end_more(&mut self) {
        while let Some(done) = self.endings.take(Ending::is_done) {
            self.have_ended(done);
        }
        if self.endings.at > self.now {
            return;
        }
        let Some(mut ending) = self.endings.take(Ending::has_left) else { return };
        if self.endings.is_full(self.config.limits.portion) {
            // It has said nothing for so long.
            self.endings.going.clear();
        }
        self.end_portion(&mut ending);
        self.wait_for_data_plane();
        match ending.is_done() {
            true => self.have_ended(ending),
            false => self.endings.all.push_back(ending),
        }
    }

    fn wait_for_data_plane(&mut self) {
        let waits = self.epoch.is_some() && self.endings.is_full(self.config.limits.portion);
        self.endings.at = if waits { self.now + PATIENCE } else { self.now };
    }

    fn end_portion(&mut self, ending: &mut Ending) {
        let portion = self.config.limits.portion;
        for _ in 0..portion {
            if self.endings.going.len() >= portion {
                break;
            }
            let Some(seid) = ending.left.next() else { break };
            let fate = self.fate(seid, ending);
            ending.ended += usize::from(matches!(fate, Fate::Ends | Fate::Moves(_)));
            match fate {
                Fate::Stays => {}
                Fate::Retained(era) => self.is_named_in(seid, era),
                Fate::IsDeleted => {
                    ending.deleted.insert(seid);
                }
                Fate::Inherited(heir) => self.hand_over(seid, heir),
                Fate::Moves(to) => self.look_to(seid, to),
                Fate::Ends => self.end_one(seid, ending),
            }
        }
        // One that ended may have taken others with it that gave way to it, and these are answered for.
        ending.deleted.retain(|deleted| self.sessions.has(*deleted));
        self.sessions.rest(self.wall_ms());
    }

    fn end_one(&mut self, seid: Seid, ending: &Ending) {
        let is_told_of = match ending.lost {
            Lost::Parting => self.part_with(seid, &ending.owner),
            _ => {
                self.drop_session_by(seid, ending.cause());
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
        let is_its = |session: &Session| match ending.is_of_sets() {
            true => self.peers.are_one(owner, &session.record.owner),
            false => session.record.owner == *owner,
        };
        let fate = |session: &Session| match (lost, self.heir_in(session, ending)) {
            _ if !is_its(session) => Fate::Stays,
            (Lost::Moving(moving), _) => moving.to(&session.record).map_or(Fate::Stays, Fate::Moves),
            (_, Some(heir)) => Fate::Inherited(heir),
            _ if !lost.has(&session.record) => {
                let era = ending.then.era().filter(|era| session.record.era < *era);
                era.map_or(Fate::Stays, Fate::Retained)
            }
            _ if ending.then.hears_of_deletions() && session.is_to_be_deleted() => Fate::IsDeleted,
            _ => Fate::Ends,
        };
        self.sessions.peek(seid, fate).unwrap_or(Fate::Stays)
    }

    /// Who has a session from now on, as its owner has none any more. An owner of which only what is stale ends has the others, whoever looks
    /// after these.
    fn heir_in(&self, session: &Session, ending: &Ending) -> Option<String> {
        let is_left = match ending.is_stale() {
            true => ending.lost.has(&session.record),
            false => !ending.is_of_sets(),
        };
        is_left.then(|| self.heir_of(session)).flatten()
    }

    fn have_ended(&mut self, ending: Ending) {
        let Ending { owner, ended, then, .. } = ending;
        match then {
            Then::SetIsGone(asked) => {
                self.note(Level::Info, format!("{owner} ends {ended} sessions of a set"));
                asked.iter().for_each(|asked| self.set_is_gone(asked));
            }
            Then::SetHasMoved(asked) => {
                self.note(Level::Info, format!("{ended} sessions of {owner} are looked after by others"));
                self.set_has_moved(&asked);
            }
            Then::Associate(associating) => {
                self.note_lost(&owner, ended);
                self.associated_anew(*associating);
            }
            Then::Restarted(stamp) => {
                self.note_lost(&owner, ended);
                self.has_restarted(&owner, stamp);
            }
            Then::Told => self.bid_farewell(&owner),
            Then::Nothing => self.note_stale(&owner, ended),
            Then::Over(asked) => self.association_is_over(owner.clone(), asked.as_ref()),
        }
        self.remember_endings(&owner);
    }

    fn note_lost(&mut self, owner: &str, ended: usize) {
        self.note(Level::Warning, format!("{owner} has lost {ended} sessions: they are gone"));
    }
}
