//! Requests of ours under way. What is told about sessions shares a table: half of it is shared out, so that each control
//! plane always finds its part; of the other half one may use as much as it leaves free. So a control plane that does not
//! answer takes nobody else's places. While its heartbeats are not answered, it is told nothing about sessions: what there is
//! to tell waits with them, and is told when it answers again.

use crate::deletion::former;
use crate::exchange::{Asking, Former, Purpose, Subject};
use crate::interface::Level;
use crate::node::Node;
use machine::{Overdue, Time};
use rules::Seid;
use session::CpFSeid;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Requests to a peer that are not about sessions, at most: heartbeats, of associations and of paths.
const OF_A_PEER: usize = 32;
/// Between two sessions whose reports have waited.
const APART: Duration = Duration::from_micros(100);

/// What became of something to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// It was sent.
    UnderWay,
    /// As much is under way as may be.
    NoRoom,
    /// Its control plane does not answer: the session is attended to when it does.
    Silent,
}

/// Requests that wait for an answer, by sequence number, and sessions that wait for their owners.
#[derive(Debug)]
pub(crate) struct Requests {
    under_way: machine::Requests<u32, Asking>,
    /// How many about sessions may be under way for any one owner, and how many for all beyond that.
    share: usize,
    common: usize,
    /// By owner, how many are.
    of_owner: BTreeMap<String, usize>,
    /// By what they must not outlive.
    of_subject: BTreeSet<(Subject, u32)>,
    /// By owner, the sessions that have something to tell.
    held: BTreeMap<String, BTreeSet<Seid>>,
}

impl Requests {
    /// Each request is sent `tries` times, `interval` apart; at most `limit` about sessions of `peers` owners are under way.
    pub(crate) fn new((interval, tries): (Duration, u32), limit: usize, peers: usize) -> Self {
        let share = (limit / peers.max(1) / 2).max(1);
        let all = limit.saturating_add(peers.saturating_mul(OF_A_PEER));
        Self {
            under_way: machine::Requests::new(interval, tries, all),
            share,
            common: limit.saturating_sub(share.saturating_mul(peers)).max(1),
            of_owner: BTreeMap::new(),
            of_subject: BTreeSet::new(),
            held: BTreeMap::new(),
        }
    }

    /// Notes a request sent for the first time; whether there was room for it.
    pub(crate) fn start(&mut self, sequence: u32, asking: Asking, now: Time) -> bool {
        if asking.owner.as_ref().is_some_and(|owner| !self.has_room(owner)) {
            return false;
        }
        self.finish(sequence);
        let (owner, subject) = (asking.owner.clone(), asking.purpose.subject());
        let is_started = self.under_way.start(sequence, asking, now).is_ok();
        if let Some(owner) = owner.filter(|_| is_started) {
            *self.of_owner.entry(owner).or_default() += 1;
        }
        self.of_subject.extend(subject.filter(|_| is_started).map(|subject| (subject, sequence)));
        is_started
    }

    fn has_room(&self, owner: &str) -> bool {
        let beyond = |count: usize| count.saturating_sub(self.share);
        let own = self.of_owner.get(owner).copied().unwrap_or_default();
        let used: usize = self.of_owner.values().map(|count| beyond(*count)).sum();
        own < self.share || beyond(own) < self.common.saturating_sub(used)
    }

    fn is_over(&mut self, sequence: u32, asking: &Asking) {
        if let Some(subject) = asking.purpose.subject() {
            self.of_subject.remove(&(subject, sequence));
        }
        let Some(owner) = &asking.owner else { return };
        let left = self.of_owner.get(owner).map_or(0, |count| count.saturating_sub(1));
        match left {
            0 => drop(self.of_owner.remove(owner)),
            _ => drop(self.of_owner.insert(owner.clone(), left)),
        }
    }

    pub(crate) fn get(&self, sequence: u32) -> Option<&Asking> {
        self.under_way.get(&sequence)
    }

    /// The request, which is over.
    pub(crate) fn finish(&mut self, sequence: u32) -> Option<Asking> {
        let asking = self.under_way.finish(&sequence)?;
        self.is_over(sequence, &asking);
        Some(asking)
    }

    /// What they are about is no more: none of them is sent again. How many there were.
    pub(crate) fn finish_all(&mut self, subject: Subject) -> usize {
        let all: Vec<u32> = self
            .of_subject
            .range((subject, 0)..=(subject, u32::MAX))
            .map(|(_, sequence)| *sequence)
            .collect();
        all.iter().filter_map(|sequence| self.finish(*sequence)).count()
    }

    /// A session is over, and this is told all the same.
    fn outlives(&mut self, sequence: u32, former: Former) {
        let Some(asking) = self.under_way.get_mut(&sequence) else { return };
        let Some(seid) = asking.purpose.session() else { return };
        self.of_subject.remove(&(Subject::Session(seid), sequence));
        self.of_subject.insert((Subject::Former(former.name), sequence));
        asking.purpose = Purpose::After(seid, former);
    }

    /// What is to be sent again, and what was sent often enough.
    pub(crate) fn overdue(&mut self, now: Time) -> Vec<Overdue<u32, Asking>> {
        let overdue = self.under_way.overdue(now);
        for each in &overdue {
            if let Overdue::GaveUp(sequence, asking) = each {
                self.is_over(*sequence, asking);
            }
        }
        overdue
    }

    /// How many are under way, by the Node ID of whom they are for.
    pub(crate) fn by_peer(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for asking in self.under_way.payloads() {
            if let Some(peer) = asking.owner.as_deref().or(asking.purpose.peer()) {
                *counts.entry(peer).or_default() += 1;
            }
        }
        counts
    }

    /// How many sessions have something to tell an owner that does not answer.
    pub(crate) fn held_for(&self, owner: &str) -> usize {
        self.held.get(owner).map_or(0, BTreeSet::len)
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        self.under_way.next_due()
    }

    /// A session has something to tell an owner that does not answer.
    pub(crate) fn hold(&mut self, owner: &str, seid: Seid) {
        match self.held.get_mut(owner) {
            Some(held) => drop(held.insert(seid)),
            None => drop(self.held.insert(owner.to_owned(), BTreeSet::from([seid]))),
        }
    }

    /// It is no more, or another's.
    pub(crate) fn forget(&mut self, owner: &str, seid: Seid) {
        let Some(held) = self.held.get_mut(owner) else { return };
        held.remove(&seid);
        if held.is_empty() {
            self.held.remove(owner);
        }
    }
}

impl Node {
    /// A session that ends has told its usage, and is not sure that this was heard: that goes on, where all else about it ends.
    pub(crate) fn is_told_after(&mut self, seid: Seid) {
        let told = self.sessions.peek(seid, |session| Some((session.reporting?, former(&session.record))));
        if let Some((sequence, former)) = told.flatten() {
            self.requests.outlives(sequence, former);
        }
    }

    /// A name is a session's from now on: what is yet to be told of the one that had it before would be taken for that one's.
    pub(crate) fn is_named(&mut self, name: CpFSeid) {
        let stopped = self.requests.finish_all(Subject::Former(name));
        if stopped > 0 {
            self.counters.unanswered += stopped as u64;
            let CpFSeid { seid, address } = name;
            let text = format!(
                "{address} has given SEID {seid} anew before it confirmed the last usage of the session that had it"
            );
            self.note(Level::Warning, text);
        }
    }

    /// Whether another session has the name of one that is gone.
    pub(crate) fn is_given_anew(&self, seid: Seid, former: &Former) -> bool {
        self.sessions.of_owner(&former.owner, former.name).is_some_and(|other| other != seid)
    }

    /// Sends a request of ours once more. One about a session that goes, and whose name another has already, would be taken for that
    /// one's: it goes on if the session comes back.
    pub(crate) fn resend(&mut self, asking: Asking) {
        let seid = asking.purpose.session();
        let named = seid.and_then(|seid| self.sessions.peek(seid, |it| (seid, former(&it.record))));
        if !named.is_some_and(|(seid, former)| self.is_given_anew(seid, &former)) {
            self.send_bytes(asking.to, asking.bytes);
        }
    }

    /// Whether a session has to wait with what it has to tell. A CP F-SEID elsewhere than its owner is asked, and so is whoever looks
    /// after it: whether those answer is not known.
    pub(crate) fn must_wait(&mut self, seid: Seid) -> bool {
        let session = self.sessions.get(seid).filter(|session| session.alternative().is_none());
        let Some(record) = session.map(|session| &session.record) else { return false };
        let (owner, address) = (record.owner.clone(), record.cp_f_seid.address);
        let is_there = self.peers.get(&owner).is_some_and(|peer| peer.record.address.ip() == address);
        let must_wait = is_there && self.is_out_of_reach(&owner);
        if must_wait {
            self.requests.hold(&owner, seid);
        }
        must_wait
    }

    /// Whether nobody hears what there is to tell a control plane: it does not answer, and no other one acts for it.
    pub(crate) fn is_out_of_reach(&self, owner: &str) -> bool {
        self.peers.get(owner).is_some_and(|owner| !owner.is_up()) && self.stand_in(owner).is_none()
    }

    /// Sessions whose owners answer again are attended to, not all at once.
    pub(crate) fn let_go(&mut self) {
        if self.requests.held.is_empty() {
            return;
        }
        let (held, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.requests.held)
            .into_iter()
            .partition(|(owner, _)| self.is_out_of_reach(owner));
        self.requests.held = held;
        if !gone.is_empty() {
            self.losses.try_again(self.now);
        }
        let mut at = self.now;
        for seid in gone.into_values().flatten() {
            let timer = self.sessions.get(seid).and_then(|session| session.timer);
            self.wake(seid, Some(timer.map_or(at, |timer| timer.min(at))));
            self.sessions.rest(self.wall_ms());
            at = at + APART;
        }
    }

    /// A session looked to by somebody else may have something to tell that one.
    pub(crate) fn release_held(&mut self, seid: Seid) {
        let owner = self.sessions.get(seid).map(|session| session.record.owner.clone());
        if owner.is_some_and(|owner| self.requests.held.get(&owner).is_some_and(|held| held.contains(&seid)))
        {
            self.wake(seid, Some(self.now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(limit: usize, peers: usize) -> Requests {
        Requests::new((Duration::from_secs(3), 3), limit, peers)
    }

    fn ask(requests: &mut Requests, sequence: u32, owner: Option<&str>) -> bool {
        let purpose = Purpose::Report(Seid(1));
        let to = ([10, 0, 0, 1], 8805).into();
        let asking = Asking { to, bytes: vec![], purpose, owner: owner.map(str::to_owned) };
        requests.start(sequence, asking, Time::ZERO)
    }

    #[test]
    fn whoever_takes_all_it_can_leaves_room_for_all_others() {
        let mut requests = requests(80, 4);
        let mut sequences = 1..;
        let mut asked = |owner| ask(&mut requests, sequences.next().unwrap(), owner);
        let taken = ["a", "b", "c", "d"].map(|owner| (0..1_000).filter(|_| asked(Some(owner))).count());
        assert_eq!(taken, [30, 20, 15, 13]);
        assert!(asked(None), "and for what is not about sessions");
        assert!(taken.iter().sum::<usize>() <= 80);
    }

    #[test]
    fn places_come_free_with_an_answer_and_without() {
        let mut requests = requests(8, 2);
        assert_eq!((1..100).filter(|sequence| ask(&mut requests, *sequence, Some("a"))).count(), 4);
        assert!(requests.finish(1).is_some() && requests.finish(1).is_none());
        assert!(ask(&mut requests, 1, Some("a")) && !ask(&mut requests, 2_000, Some("a")));
        for second in [3, 6, 9] {
            requests.overdue(Time::from_millis(second * 1_000));
        }
        assert!(requests.of_owner.is_empty() && requests.under_way.is_empty());
    }
}
