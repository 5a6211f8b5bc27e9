//! Control planes: those we are associated with, and those we would like to be.

use crate::capabilities::Outdated;
use crate::config::Config;
use crate::pace::Pace;
use crate::wanted::Wanted;
use machine::Time;
use pfcp::CpFeature;
use session::AssociationRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// An association (TS 29.244 6.2.6).
#[derive(Debug)]
pub(crate) struct Association {
    pub(crate) record: AssociationRecord,
    /// Since when it is silent; as far as is known, it is there.
    pub(crate) silent: Option<Time>,
    /// When it is looked whether it has been silent for too long (`gone.rs`).
    pub(crate) given_up: Option<Time>,
    /// When anything came from its address last.
    pub(crate) heard: Option<Time>,
    /// When somebody spoke in its name last though it was silent: from another address of its own, or one of its set.
    pub(crate) spoken_for: Option<Time>,
    /// When it was asked last whether it is there.
    pub(crate) asked: Option<Time>,
    /// When to ask next whether it is there.
    pub(crate) next_heartbeat: Time,
    /// It has been asked and has not answered yet.
    pub(crate) is_asked: bool,
    /// Which of those who stand in for it while it is silent is asked: how often one of them did not answer.
    pub(crate) turn: usize,
    /// CP F-SEIDs of its sessions where nobody answers: what these are told goes to its own address instead.
    pub(crate) unreached: BTreeSet<IpAddr>,
    /// It told another recovery time stamp, and until when it may say which sessions it retains.
    pub(crate) restarted: Option<(u32, Time)>,
    /// It restarted and has not associated since: if it leaves that to us, it is asked to.
    pub(crate) is_forgotten: bool,
    /// When it is over, as we asked for its release.
    pub(crate) ends: Option<Time>,
    /// That time has come, its sessions end, and until when it is told what they used.
    pub(crate) farewell: Option<Time>,
    /// Its sessions end by portions (`ending.rs`): nothing else of this is due until that is done.
    pub(crate) is_ending: bool,
    /// Sessions that have gone, as it did not release us in time.
    pub(crate) parted: usize,
    /// It was asked for its release in a former life of ours, and may not have heard.
    pub(crate) is_to_hear: bool,
    /// Another one has been set up at its address since it spoke by its name: it may be that one.
    pub(crate) is_doubted: bool,
    /// Sessions of up to this era end then, as it has not named them (`stale.rs`).
    pub(crate) stale_end: Option<(u32, Time)>,
    /// It has yet to hear what we can do now.
    pub(crate) outdated: Option<Outdated>,
    /// When it is told next of what its sessions used.
    pub(crate) pace: Pace,
    /// The load it was told of last, and the overload and when.
    pub(crate) told: Told,
}

/// What a control plane was told last of how busy we are: sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) load: Option<u32>,
    pub(crate) overload: Option<(u32, Time)>,
}

impl Association {
    pub(crate) const fn is_up(&self) -> bool {
        self.silent.is_none()
    }

    /// Whether only its sessions are left of it.
    pub(crate) fn is_over(&self) -> bool {
        self.record.ends_ms == Some(AssociationRecord::IS_OVER)
    }

    /// From now on; looked at again after `patience`, if there is an end to that.
    pub(crate) fn falls_silent(&mut self, now: Time, patience: Option<Duration>) {
        self.silent = Some(now);
        self.given_up = patience.map(|patience| now + patience);
        self.turn = 0;
    }

    pub(crate) const fn is_heard(&mut self) {
        (self.silent, self.given_up, self.turn) = (None, None, 0);
    }

    /// Whether it has been asked whether it is there and has never said so.
    pub(crate) const fn is_mute(&self) -> bool {
        !self.record.answers_heartbeats && self.asked.is_some()
    }

    /// Whether it speaks from there: itself, or others of its set in its name (TS 29.244 5.22.2).
    pub(crate) fn speaks_from(&self, address: IpAddr) -> bool {
        self.record.address.ip() == address || self.record.alternatives.contains(&address)
    }

    pub(crate) fn is_of_set(&self, other: &Self) -> bool {
        !self.record.set_id.is_empty() && self.record.set_id == other.record.set_id
    }

    /// Whether it can do something (TS 29.244 8.2.58).
    pub(crate) fn has(&self, feature: CpFeature) -> bool {
        let bit = feature as usize;
        self.record.features.get(bit / 8).is_some_and(|octet| octet & (1 << (bit % 8)) != 0)
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Peers {
    by_node_id: BTreeMap<String, Association>,
    wanted: Vec<Wanted>,
    /// Leave is taken of all of them, until then.
    leaves: Option<Time>,
    /// How long stale sessions stay, if not for ever, and the moment of our zero.
    stale_max: Option<Duration>,
    since_1900_ms: u64,
}

impl Peers {
    /// What an operator ordered of our former life holds as long as it was to take.
    pub(crate) fn new(
        config: &Config,
        (records, forgotten): (Vec<AssociationRecord>, Vec<SocketAddr>),
        (leaves_ms, since_1900_ms): (Option<u64>, u64),
    ) -> Self {
        let leaves_ms = leaves_ms.filter(|until_ms| *until_ms > since_1900_ms);
        let mut wanted: Vec<Wanted> =
            config.associate.iter().copied().map(Wanted::of_configuration).collect();
        for address in forgotten.into_iter().filter(|address| config.allows(address.ip())) {
            if wanted.iter().all(|known| known.address != address) {
                wanted.push(Wanted::forgotten(address, config));
            }
        }
        let mut peers = Self {
            by_node_id: BTreeMap::new(),
            wanted,
            leaves: leaves_ms.map(|until_ms| Time::from_millis(until_ms - since_1900_ms)),
            stale_max: config.stale_max,
            since_1900_ms,
        };
        for record in records {
            peers.restore(record, config, since_1900_ms);
        }
        peers
    }

    /// One of the database. What was asked of it in our former life holds. Of one that is not spoken with any more nothing will be
    /// heard.
    fn restore(&mut self, record: AssociationRecord, config: &Config, since_1900_ms: u64) {
        let ends = record.ends_ms.filter(|ends_ms| *ends_ms != AssociationRecord::IS_OVER);
        let ends = ends.map(|ends_ms| Time::from_millis(ends_ms.saturating_sub(since_1900_ms)));
        let (node_id, is_allowed) = (record.node_id.clone(), config.allows(record.address.ip()));
        self.insert(record, (None, Time::ZERO));
        let Some(association) = self.get_mut(&node_id) else { return };
        if !is_allowed {
            association.falls_silent(Time::ZERO, config.silent_max);
        }
        if ends.is_some() {
            (association.ends, association.is_to_hear) = (ends, true);
        }
    }

    /// Those who may not have heard that their release was asked for, once.
    pub(crate) fn take_unheard(&mut self) -> Vec<(String, Time)> {
        let hears =
            |peer: &mut Association| std::mem::take(&mut peer.is_to_hear).then_some(peer.ends).flatten();
        let heard = self.by_node_id.values_mut();
        heard.filter_map(|peer| Some((peer.record.node_id.clone(), hears(peer)?))).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_node_id.len()
    }

    pub(crate) fn get(&self, node_id: &str) -> Option<&Association> {
        self.by_node_id.get(node_id)
    }

    pub(crate) fn get_mut(&mut self, node_id: &str) -> Option<&mut Association> {
        self.by_node_id.get_mut(node_id)
    }

    /// One that was heard of then, if in this life of ours, and is asked whether it is there at that time.
    pub(crate) fn insert(
        &mut self,
        record: AssociationRecord,
        (heard, next_heartbeat): (Option<Time>, Time),
    ) {
        let node_id = record.node_id.clone();
        self.wanted.retain(|wanted| wanted.until.is_none() || wanted.address.ip() != record.address.ip());
        if let Some(wanted) = self.wanted_mut(record.address) {
            wanted.is_left = false;
        }
        let mut association = Association {
            record,
            silent: None,
            given_up: None,
            heard,
            spoken_for: None,
            asked: None,
            next_heartbeat,
            is_asked: false,
            turn: 0,
            unreached: BTreeSet::new(),
            restarted: None,
            is_forgotten: false,
            ends: None,
            farewell: None,
            is_ending: false,
            parted: 0,
            is_to_hear: false,
            is_doubted: false,
            stale_end: None,
            outdated: None,
            pace: Pace::default(),
            told: Told::default(),
        };
        // Whoever associates anew all the time puts off no end.
        let before = self.get(&node_id).and_then(|before| before.stale_end);
        association.stale_end = before.or_else(|| self.stale_end(&association.record));
        for other in self.by_node_id.values_mut() {
            other.is_doubted |= association.may_be(other);
            association.is_doubted |= other.may_be(&association);
        }
        self.by_node_id.insert(node_id, association);
    }

    /// The next attempt to associate from our side waits until `again`.
    pub(crate) fn remove(&mut self, node_id: &str, again: Time) {
        let Some(gone) = self.by_node_id.remove(node_id) else { return };
        if let Some(wanted) = self.wanted_mut(gone.record.address) {
            (wanted.next, wanted.is_left) = (again, gone.ends.is_some());
        }
    }

    /// The associations that speak from an address, which may be another's of their set.
    pub(crate) fn speaking_from(&self, address: IpAddr) -> impl Iterator<Item = &Association> {
        self.by_node_id.values().filter(move |association| association.speaks_from(address))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Association> {
        self.by_node_id.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Association> {
        self.by_node_id.values_mut()
    }

    /// Whether one may act for the other: they are the same, or of one set (TS 29.244 5.22.3).
    pub(crate) fn are_one(&self, one: &str, other: &str) -> bool {
        let both = self.get(one).zip(self.get(other));
        one == other || both.is_some_and(|(one, other)| one.is_of_set(other))
    }

    /// Another of its set, rather one that has not left, too.
    pub(crate) fn of_set_of(&self, node_id: &str) -> Option<String> {
        let others = self.by_node_id.values().filter(|other| other.record.node_id != node_id);
        let of_set = others.filter(|other| self.are_one(node_id, &other.record.node_id));
        of_set.min_by_key(|other| other.is_over()).map(|other| other.record.node_id.clone())
    }

    /// Leave is taken: nobody is asked to associate any more.
    pub(crate) const fn leave(&mut self, until: Time) {
        self.leaves = Some(until);
    }

    /// No leave is taken any more; whether it was.
    pub(crate) fn stay(&mut self) -> bool {
        self.wanted.iter_mut().for_each(|wanted| wanted.is_left = false);
        self.leaves.take().is_some()
    }

    /// Until when the control planes have time, if leave is taken of them. It goes on afterwards.
    pub(crate) const fn leaves(&self) -> Option<Time> {
        self.leaves
    }

    /// Who was asked to associate and has not answered.
    pub(crate) fn asked_to_associate(&self) -> impl Iterator<Item = SocketAddr> {
        self.wanted.iter().filter(|wanted| wanted.is_asked).map(|wanted| wanted.address)
    }

    /// Associations whose time has run out.
    pub(crate) fn ended(&self, now: Time) -> Vec<String> {
        let ended = self.in_peace().filter(|peer| peer.ends.is_some_and(|ends| ends <= now));
        ended.map(|peer| peer.record.node_id.clone()).collect()
    }

    /// Those whose sessions do not end at the moment.
    fn in_peace(&self) -> impl Iterator<Item = &Association> {
        self.by_node_id.values().filter(|peer| !peer.is_ending)
    }

    /// Those who have yet to hear what we can do, and are to be told now.
    pub(crate) fn outdated(&self, now: Time) -> Vec<String> {
        let due = self.by_node_id.values().filter(|peer| peer.outdated.is_some_and(|it| it.next <= now));
        due.map(|peer| peer.record.node_id.clone()).collect()
    }

    /// Who restarted with which time stamp, and has not associated in time.
    pub(crate) fn restarted(&self, now: Time) -> Vec<(String, u32)> {
        let late = |peer: &Association| peer.restarted.filter(|(_, until)| *until <= now);
        self.in_peace().filter_map(|peer| Some((peer.record.node_id.clone(), late(peer)?.0))).collect()
    }

    /// Something came from an address: those who were thought silent there.
    pub(crate) fn heard(&mut self, from: IpAddr, now: Time) -> Vec<String> {
        let silent = self.by_node_id.values_mut().filter_map(|peer| {
            peer.unreached.remove(&from);
            if peer.record.address.ip() != from {
                if !peer.is_up() && peer.record.alternatives.contains(&from) {
                    peer.spoken_for = Some(now);
                }
                return None;
            }
            peer.heard = Some(now);
            (!peer.is_up()).then(|| peer.record.node_id.clone())
        });
        silent.collect()
    }

    /// Somebody speaks of its sessions: whether or not that is itself, it is not gone. Whether that was in doubt.
    pub(crate) fn spoken_for(&mut self, node_id: &str, now: Time) -> bool {
        let Some(peer) = self.get_mut(node_id) else { return false };
        if !peer.is_up() {
            peer.spoken_for = Some(now);
        }
        peer.is_doubted
    }

    /// Those who have been silent for so long that it is to be looked at.
    pub(crate) fn given_up(&self, now: Time) -> Vec<String> {
        let late = self.in_peace().filter(|peer| peer.given_up.is_some_and(|at| at <= now));
        late.map(|peer| peer.record.node_id.clone()).collect()
    }

    /// Which sessions of a control plane end when, if it does not name them.
    fn stale_end(&self, record: &AssociationRecord) -> Option<(u32, Time)> {
        let era = record.era.checked_sub(1)?;
        let end_ms = record.set_up_ms + self.stale_max?.as_millis() as u64;
        Some((era, Time::from_millis(end_ms.saturating_sub(self.since_1900_ms))))
    }

    /// Control planes whose stale sessions have stayed for as long as they may, and of which eras these are. Those of later ones are
    /// next.
    pub(crate) fn stale(&mut self, now: Time) -> Vec<(String, u32)> {
        let late = |peer: &Association| peer.stale_end.filter(|(_, end)| *end <= now);
        let of_peer = |peer: &Association| Some((peer.record.node_id.clone(), late(peer)?.0));
        let all: Vec<(String, u32)> = self.in_peace().filter_map(of_peer).collect();
        for (node_id, ended) in &all {
            let next = self.get(node_id).and_then(|peer| self.stale_end(&peer.record));
            let next = next.filter(|(era, _)| era > ended);
            self.get_mut(node_id).into_iter().for_each(|peer| peer.stale_end = next);
        }
        all
    }

    /// Since when neither a control plane nor another of its set is there.
    pub(crate) fn gone_since(&self, node_id: &str) -> Option<Time> {
        let gone = self.get(node_id)?;
        let is_one = |other: &&Association| {
            other.is_of_set(gone)
                || other.record.node_id == node_id
                || gone.record.alternatives.contains(&other.record.address.ip())
        };
        let all = self.by_node_id.values().filter(is_one);
        // None, if any of them is there.
        let silent: Option<Vec<Time>> =
            all.map(|peer| peer.silent.map(|at| at.max(peer.spoken_for.unwrap_or(at)))).collect();
        silent?.into_iter().max()
    }

    /// The associations of an address.
    pub(crate) fn at(&self, address: IpAddr) -> impl Iterator<Item = &Association> {
        self.by_node_id.values().filter(move |association| association.record.address.ip() == address)
    }

    /// The one association that a heartbeat from there is of. Heartbeats name nobody, and several control planes may share an
    /// address: a time stamp of one would end the sessions of the others. Those are heard of when they associate anew.
    pub(crate) fn alone_at(&self, from: SocketAddr) -> Option<String> {
        let mut there: Vec<&Association> = self.at(from.ip()).collect();
        if there.len() > 1 {
            there.retain(|association| association.record.address == from);
        }
        match there.as_slice() {
            [only] => Some(only.record.node_id.clone()),
            _ => None,
        }
    }

    /// Whether several are behind one address, and nobody can tell which of them hears what is sent there.
    pub(crate) fn is_shared(&self, address: SocketAddr) -> bool {
        self.at(address.ip()).next().is_some() && self.alone_at(address).is_none()
    }

    pub(crate) fn wanted_mut(&mut self, address: SocketAddr) -> Option<&mut Wanted> {
        self.wanted.iter_mut().find(|wanted| wanted.address == address)
    }

    /// Where requests to a peer go: to the port of PFCP (TS 29.244 6.1), unless the configuration names another.
    pub(crate) fn request_address(&self, peer: IpAddr) -> SocketAddr {
        let configured = self.wanted.iter().map(|wanted| wanted.address).find(|wanted| wanted.ip() == peer);
        configured.unwrap_or(SocketAddr::new(peer, pfcp::PORT))
    }

    /// Associations to send a heartbeat to.
    pub(crate) fn to_ask(&self, now: Time) -> Vec<(String, SocketAddr)> {
        let due = self.by_node_id.values().filter(|peer| !peer.is_asked && peer.next_heartbeat <= now);
        due.map(|peer| (peer.record.node_id.clone(), peer.record.address)).collect()
    }

    /// Addresses that know of us as we were before a crash, and are told of it now.
    pub(crate) fn tell_of_crash(&mut self) -> Vec<SocketAddr> {
        let untold = self.wanted.iter_mut().filter(|wanted| !wanted.is_told);
        let tell = |wanted: &mut Wanted| {
            wanted.is_told = true;
            wanted.address
        };
        untold.map(tell).collect()
    }

    /// Addresses to send an association request to.
    pub(crate) fn wanted_now(&mut self, now: Time) -> Vec<SocketAddr> {
        self.wanted.retain(|wanted| wanted.until.is_none_or(|until| until > now));
        self.unassociated().filter(|wanted| wanted.next <= now).map(|wanted| wanted.address).collect()
    }

    fn unassociated(&self) -> impl Iterator<Item = &Wanted> {
        self.wanted_but_for(|peer| !peer.is_forgotten).filter(|wanted| !wanted.is_asked)
    }

    /// Control planes of the configuration that are not associated, and are asked to be.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &Wanted> {
        self.wanted_but_for(|_| true)
    }

    /// Control planes of the configuration but those with such an association.
    fn wanted_but_for(&self, is_there: fn(&Association) -> bool) -> impl Iterator<Item = &Wanted> {
        let is_missing =
            move |wanted: &&Wanted| !wanted.is_left && !self.at(wanted.address.ip()).any(is_there);
        self.wanted.iter().filter(|_| self.leaves.is_none()).filter(is_missing)
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        let heartbeats =
            self.by_node_id.values().filter(|peer| !peer.is_asked).map(|peer| peer.next_heartbeat);
        let ends = self.in_peace().filter_map(|peer| {
            let ends = peer.farewell.or(peer.ends)?;
            Some(if peer.is_to_hear { Time::ZERO } else { ends })
        });
        let restarted = self.in_peace().filter_map(|peer| Some(peer.restarted?.1));
        let given_up = self.in_peace().filter_map(|peer| peer.given_up);
        let stale = self.in_peace().filter_map(|peer| Some(peer.stale_end?.1));
        let outdated = self.by_node_id.values().filter_map(|peer| Some(peer.outdated?.next));
        heartbeats
            .chain(ends)
            .chain(restarted)
            .chain(given_up)
            .chain(stale)
            .chain(outdated)
            .chain(self.unassociated().map(|wanted| if wanted.is_told { wanted.next } else { Time::ZERO }))
            .min()
    }
}
