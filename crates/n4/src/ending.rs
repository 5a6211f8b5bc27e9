//! Very many sessions that end together: of a control plane that has restarted or leaves, of a set; and those of a set that move. A
//! million of them take seconds, in which others want to be heard. So they go by portions, and what waits for them, an answer mostly,
//! comes after the last one. That an association is over, and which sets end, is kept with the association: nobody need ask for
//! that again after a restart of ours. Of the rest nothing needs to be remembered: who was not answered asks again, and whoever told of a
//! restart by heartbeats goes on to.
//!
//! The data plane sets the pace. It has a portion to let go at most, which is filled up as it does, or what is new would wait behind
//! all of them.

mod turns;
mod under_way;

pub(crate) use turns::Source;
pub(crate) use under_way::{Associating, Endings, Lost, Retained, Then, is_of_retained};

use crate::exchange::Asked;
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::peers::Association;
use crate::refusal::Refusal;
use crate::sessions::Session;
use pfcp::{Cause, FqCsid};
use rules::Seid;
use session::{AssociationRecord, EndingSet};
use std::collections::BTreeMap;
use std::net::IpAddr;
use turns::Turns;
use under_way::{Ending, PATIENCE};

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
        let left = Turns::listed(self.that_end(&owner, &then));
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
        let sources = self.sessions.known_sets(fq_csids);
        let lost = Lost::OfSets(fq_csids.to_vec(), self.sessions.newest());
        self.begin_set((owner, lost), sources, Then::SetIsGone(Some(*asked)))
    }

    /// Sessions of sets go, or move.
    pub(crate) fn begin_set(
        &mut self,
        (owner, lost): (String, Lost),
        sources: Vec<Source>,
        then: Then,
    ) -> Result<(), Refusal> {
        if !self.endings.have_room_for_a_set() {
            return Err(Refusal::of(Cause::PfcpEntityInCongestion));
        }
        let left = Turns::of(sources, self.sessions.newest());
        self.begin_ending(Ending::new(owner, lost, left, then));
        Ok(())
    }

    /// A control plane is gone. What it asked for of sets is of others of its SMF set, too, who act for it (TS 29.244 5.22.3):
    /// in the name of one of these it goes on.
    pub(crate) fn pass_on_sets(&mut self, node_id: &str) {
        if let Some(heir) = self.peers.of_set_of(node_id) {
            self.endings.pass_on_sets(node_id, &heir);
            self.remember_endings(&heir);
        }
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
                let left = Turns::listed(self.sessions.all_of(&owner));
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
            let left = Turns::of(self.sessions.known_sets(&fq_csids), last);
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
        let owner = ending.owner.clone();
        let what = if matches!(ending.lost, Lost::Moving(_)) { "move" } else { "end" };
        self.note(Level::Info, format!("sessions of {owner} {what}: others are looked at by portions"));
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
            let Some(seid) = ending.left.next(&self.sessions) else { break };
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
        ending.left.look_ahead(&self.sessions);
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
            Then::Told => {
                // Others may have taken some of them over.
                self.was_not_released(&owner, ended);
                self.bid_farewell(&owner);
            }
            Then::Nothing => self.note_stale(&owner, ended),
            Then::Over(asked) => self.association_is_over(owner.clone(), asked.as_ref()),
        }
        self.remember_endings(&owner);
    }

    fn note_lost(&mut self, owner: &str, ended: usize) {
        if ended > 0 {
            self.note(Level::Warning, format!("{owner} has lost {ended} sessions: they are gone"));
        }
    }
}
