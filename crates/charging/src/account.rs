//! The charging of one session: what of its usage has gone into containers and records.
//!
//! Meters count without end; a container takes what they count more than what was charged before, and counts that as
//! charged in the same breath. The account is saved with the counts it is about and with the records it closes, in one
//! transaction: so all records together hold what was counted, once.

use crate::policy::Policy;
use crate::record::{Cause, Cdr, Conditions, Container, Key, Session};
use machine::Clock;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Volume and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Bytes from the user.
    pub uplink_bytes: u64,
    /// Bytes to the user.
    pub downlink_bytes: u64,
    /// Milliseconds.
    pub duration_ms: u64,
}

impl Used {
    /// Zero where `before` is more.
    const fn since(self, before: Self) -> Self {
        Self {
            uplink_bytes: self.uplink_bytes.saturating_sub(before.uplink_bytes),
            downlink_bytes: self.downlink_bytes.saturating_sub(before.downlink_bytes),
            duration_ms: self.duration_ms.saturating_sub(before.duration_ms),
        }
    }

    /// Containers tell whole seconds: what is left of one is for the next container.
    const fn of_whole_seconds(self) -> Self {
        Self { duration_ms: self.duration_ms - self.duration_ms % 1_000, ..self }
    }

    const fn bytes(self) -> u64 {
        self.uplink_bytes.saturating_add(self.downlink_bytes)
    }
}

/// What a meter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The meter: a URR ID.
    pub meter: u32,
    /// What it is charged under.
    pub key: Key,
    /// All it has counted.
    pub used: Used,
    /// Whether time is charged by it now. What passes while it is not is never charged.
    pub measures_time: bool,
    /// When its first packet came.
    pub first_packet_ms: Option<u64>,
    /// When its last packet came.
    pub last_packet_ms: Option<u64>,
}

impl Reading {
    /// What is charged of what was used.
    const fn charges(&self, used: Used) -> Used {
        if self.measures_time { used } else { Used { duration_ms: 0, ..used } }
    }
}

/// A meter, and what of its counts is in containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Meter {
    meter: u32,
    key: Key,
    charged: Used,
    /// When it was last charged.
    since_ms: u64,
}

/// One session's charging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    session: Session,
    started_ms: u64,
    /// The open record: since when, since when its time limit counts, its number, and its containers.
    opened_ms: u64,
    timed_ms: u64,
    sequence: u32,
    containers: Vec<Container>,
    /// Serving nodes of the open record, those of now included, oldest first.
    served: Vec<IpAddr>,
    /// Of the next container.
    next_container: u32,
    /// A time of day; all else are moments.
    next_tariff_ms: Option<u64>,
    meters: Vec<Meter>,
}

impl Account {
    /// A session that begins now.
    pub fn new(session: Session, policy: &Policy, clock: Clock) -> Self {
        let now_ms = clock.now_ms;
        Self {
            served: session.serving_nodes.clone(),
            session,
            started_ms: now_ms,
            opened_ms: now_ms,
            timed_ms: now_ms,
            sequence: 1,
            containers: vec![],
            next_container: 1,
            next_tariff_ms: policy.next_tariff_ms(clock.time_of_day(now_ms)),
            meters: vec![],
        }
    }

    /// What is known of it has changed. One whose tunnels lead nowhere, as its user sleeps, is where it was.
    pub fn tell(&mut self, session: Session) {
        let before = std::mem::replace(&mut self.session, session);
        if self.session.serving_nodes.is_empty() {
            self.session.serving_nodes = before.serving_nodes;
        }
        let new = self.session.serving_nodes.iter().filter(|node| !self.served.contains(node));
        self.served.extend(new.copied().collect::<Vec<_>>());
        let Self { session, served, .. } = self;
        let mut excess = served.len().saturating_sub(Cdr::SERVING_NODES);
        served.retain(|node| {
            let goes = excess > 0 && !session.serving_nodes.contains(node);
            excess -= usize::from(goes);
            !goes
        });
    }

    /// Whose it is.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// What a meter was last charged under.
    pub fn key_of(&self, meter: u32) -> Option<Key> {
        self.meters.iter().find(|known| known.meter == meter).map(|known| known.key)
    }

    /// When [`Account::attend`] has something to do even if nothing is counted. The readings it is given should be of
    /// then or later.
    pub fn next_due_ms(&self, policy: &Policy, clock: Clock) -> u64 {
        let limit_ms = self.timed_ms.saturating_add(policy.time_limit_ms);
        self.next_tariff_ms.map_or(limit_ms, |tariff_ms| clock.moment(tariff_ms).min(limit_ms))
    }

    /// What [`Account::attend`] may change without closing a record: containers, and the tariff time that is next. Who saves the account
    /// saves it where this is another one: at the next look these would be closed again, with what is of the new tariff.
    pub fn course(&self) -> impl PartialEq + use<> {
        (self.containers.len(), self.next_tariff_ms)
    }

    /// Whether the open record has room for nothing more.
    pub fn is_full(&self, readings: &[Reading], policy: &Policy) -> bool {
        self.room_bytes(readings, policy) == 0 || self.containers.len() >= policy.containers
    }

    /// Bytes the open record has room for.
    pub fn room_bytes(&self, readings: &[Reading], policy: &Policy) -> u64 {
        let closed: u64 = self.containers.iter().map(|one| one.uplink_bytes + one.downlink_bytes).sum();
        let open: u64 = readings.iter().map(|reading| self.uncharged(reading).bytes()).sum();
        policy.volume_limit_bytes.saturating_sub(closed.saturating_add(open))
    }

    fn uncharged(&self, reading: &Reading) -> Used {
        let meter = self.meters.iter().find(|meter| meter.meter == reading.meter);
        reading.used.since(meter.map_or(Used::default(), |meter| meter.charged))
    }

    /// Closes what is to be closed by time, tariff or volume: mostly no record or one. `readings` are all meters there are.
    pub fn attend(&mut self, readings: &[Reading], policy: &Policy, clock: Clock) -> Vec<Cdr> {
        let now_ms = clock.now_ms;
        let time_of_day_ms = clock.time_of_day(now_ms);
        self.rename(readings, now_ms);
        if self.next_tariff_ms.is_some_and(|tariff_ms| tariff_ms <= time_of_day_ms) {
            self.close_containers(readings, Conditions::TARIFF_SWITCH, now_ms);
        }
        // The operator may have set other times since.
        self.next_tariff_ms = policy.next_tariff_ms(time_of_day_ms);
        self.close_if_full(readings, (policy, now_ms))
    }

    fn limit(&self, readings: &[Reading], policy: &Policy, now_ms: u64) -> Option<Cause> {
        if self.timed_ms.saturating_add(policy.time_limit_ms) <= now_ms {
            Some(Cause::TimeLimit)
        } else if self.room_bytes(readings, policy) == 0 {
            Some(Cause::VolumeLimit)
        } else {
            (self.containers.len() >= policy.containers).then_some(Cause::MaxChangeConditions)
        }
    }

    /// Charging conditions have changed: what was used until now goes into containers of its own.
    pub fn change(
        &mut self,
        readings: &[Reading],
        conditions: Conditions,
        (policy, now_ms): (&Policy, u64),
    ) -> Vec<Cdr> {
        self.rename(readings, now_ms);
        self.close_containers(readings, conditions, now_ms);
        self.close_if_full(readings, (policy, now_ms))
    }

    /// Meters that are no more: their last readings are charged, and one of the same number begins anew.
    pub fn retire(&mut self, last: &[Reading], now_ms: u64) {
        self.close_containers(last, Conditions::SERVICE_STOP, now_ms);
        self.meters.retain(|meter| !last.iter().any(|reading| reading.meter == meter.meter));
    }

    /// The session is over: its last record, whether or not anything was used, behind those that were full before it.
    pub fn end(&mut self, readings: &[Reading], cause: Cause, now_ms: u64) -> Vec<Cdr> {
        self.rename(readings, now_ms);
        self.close_containers(readings, cause.condition(), now_ms);
        self.take_records(cause, now_ms)
    }

    /// A meter that was charged under another key, before the operator changed it: what it counted until now was that.
    fn rename(&mut self, readings: &[Reading], now_ms: u64) {
        let old_key = |reading: &Reading| {
            let meter = self.meters.iter().find(|meter| meter.meter == reading.meter)?;
            (meter.key != reading.key).then_some(Reading { key: meter.key, ..*reading })
        };
        let old: Vec<Reading> = readings.iter().filter_map(old_key).collect();
        self.close_containers(&old, Conditions::SERVICE_STOP, now_ms);
        for reading in readings {
            let known = self.meters.iter_mut().filter(|meter| meter.meter == reading.meter);
            known.for_each(|meter| meter.key = reading.key);
        }
    }

    /// A partial record of nothing is not worth one: the record stays open.
    fn close_if_full(&mut self, readings: &[Reading], (policy, now_ms): (&Policy, u64)) -> Vec<Cdr> {
        let Some(cause) = self.limit(readings, policy, now_ms) else { return vec![] };
        self.close_containers(readings, cause.condition(), now_ms);
        self.timed_ms = now_ms;
        if self.containers.is_empty() { vec![] } else { self.take_records(cause, now_ms) }
    }

    /// The open record. One change closes a container of each key, which may be more than a record has room for: those
    /// before the last end with the last change they had room for.
    fn take_records(&mut self, cause: Cause, now_ms: u64) -> Vec<Cdr> {
        let mut rest = std::mem::take(&mut self.containers);
        let mut records = vec![];
        while rest.len() > Cdr::CONTAINERS {
            let behind = rest.split_off(Cdr::CONTAINERS);
            let closed_ms = rest.last().map_or(now_ms, |container| container.until_ms);
            records.push(self.take_record(Cause::MaxChangeConditions, rest, closed_ms));
            rest = behind;
        }
        records.push(self.take_record(cause, rest, now_ms));
        self.served.clone_from(&self.session.serving_nodes);
        records
    }

    fn take_record(&mut self, cause: Cause, containers: Vec<Container>, closed_ms: u64) -> Cdr {
        let cdr = Cdr {
            serial: 0,
            session: Session { serving_nodes: self.served.clone(), ..self.session.clone() },
            started_ms: self.started_ms,
            opened_ms: self.opened_ms,
            closed_ms,
            sequence: self.sequence,
            cause,
            containers,
        };
        self.sequence = self.sequence.saturating_add(1);
        (self.opened_ms, self.timed_ms) = (closed_ms, closed_ms);
        cdr
    }

    /// One container for each key of which anything was used. Time that several meters of a key measure is the longest
    /// of theirs: they measure it side by side.
    fn close_containers(&mut self, readings: &[Reading], conditions: Conditions, now_ms: u64) {
        let mut closing = BTreeMap::<Key, Container>::new();
        for reading in readings {
            let (used, from_ms, is_first) = self.charge(reading, now_ms);
            if used == Used::default() {
                continue;
            }
            let serving_nodes = self.session.serving_nodes.clone();
            let fresh = Container { conditions, serving_nodes, ..empty(reading.key, from_ms, now_ms) };
            let container = closing.entry(reading.key).or_insert(fresh);
            container.uplink_bytes = container.uplink_bytes.saturating_add(used.uplink_bytes);
            container.downlink_bytes = container.downlink_bytes.saturating_add(used.downlink_bytes);
            container.duration_ms = container.duration_ms.max(used.duration_ms);
            container.from_ms = container.from_ms.min(from_ms);
            if used.bytes() > 0 {
                let first = if is_first { reading.first_packet_ms } else { Some(from_ms) };
                container.first_packet_ms = earliest(container.first_packet_ms, first);
                // Where what was told of a meter is old, its last packet may be from before the container.
                let last = reading.last_packet_ms.map(|last| last.max(first.unwrap_or(last)));
                container.last_packet_ms = container.last_packet_ms.max(last);
            }
        }
        for (_, container) in closing {
            let sequence = self.next_container;
            self.next_container = self.next_container.saturating_add(1);
            self.containers.push(Container { sequence, ..container });
        }
    }

    /// Counts a reading as charged: what of it is new, since when, and whether it is the meter's first bytes.
    fn charge(&mut self, reading: &Reading, now_ms: u64) -> (Used, u64, bool) {
        let charged = reading.used.of_whole_seconds();
        let place = self.meters.iter().position(|meter| meter.meter == reading.meter);
        let Some(meter) = place.and_then(|place| self.meters.get_mut(place)) else {
            let Reading { meter, key, .. } = *reading;
            self.meters.push(Meter { meter, key, charged, since_ms: now_ms });
            let from_ms = self.opened_ms;
            return (reading.charges(charged), from_ms, true);
        };
        let (used, from_ms) = (reading.charges(charged.since(meter.charged)), meter.since_ms);
        let is_first = meter.charged.bytes() == 0;
        *meter = Meter { meter: reading.meter, key: meter.key, charged, since_ms: now_ms };
        (used, from_ms, is_first)
    }

    /// Meters as they are now, under the keys they have now. All that new ones have counted is still to be charged.
    pub fn set_meters(&mut self, readings: &[Reading], now_ms: u64) {
        self.rename(readings, now_ms);
        for reading in readings {
            if self.key_of(reading.meter).is_none() {
                let Reading { meter, key, .. } = *reading;
                self.meters.push(Meter { meter, key, charged: Used::default(), since_ms: now_ms });
            }
        }
    }
}

const fn empty(key: Key, from_ms: u64, until_ms: u64) -> Container {
    Container {
        key,
        sequence: 0,
        uplink_bytes: 0,
        downlink_bytes: 0,
        duration_ms: 0,
        from_ms,
        until_ms,
        first_packet_ms: None,
        last_packet_ms: None,
        conditions: Conditions(0),
        serving_nodes: vec![],
    }
}

fn earliest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
pub(crate) mod tests;
