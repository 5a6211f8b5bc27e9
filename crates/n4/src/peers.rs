//! Control planes: those we are associated with, and those we would like to be.

mod associating;
mod association;
mod due;

pub(crate) use association::{Answer, Association};

use crate::config::Config;
use crate::wanted::Wanted;
use machine::Time;
use session::AssociationRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

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
        // One that is named twice is asked once.
        let mut named = BTreeSet::new();
        let once = config.associate.iter().copied().filter(|address| named.insert(*address));
        let mut wanted: Vec<Wanted> = once.map(Wanted::of_configuration).collect();
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
        let mut association = Association::new(record, heard, next_heartbeat);
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

    /// How many associations each address has.
    pub(crate) fn by_address(&self) -> BTreeMap<IpAddr, usize> {
        let mut all = BTreeMap::new();
        let addresses = self.by_node_id.values().map(|association| association.record.address.ip());
        addresses.for_each(|address| *all.entry(address).or_default() += 1);
        all
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
}
