//! What is charged, and what it has counted.

use super::{Charging, content};
use crate::config::Config;
use crate::usage::{SILENCE, engines, wanted};
use ::charging::{Account, Key, OWN_METERS, Reading, Used};
use dplink::UsageCounts;
use rules::{Methods, Pdr, PdrId, Rules, Triggers, Urr, UrrId, Volume, limits};
use session::{ChargingRecord, Counts, OwnMeter, SessionRecord};
use std::collections::{BTreeMap, BTreeSet};

/// The data plane tells of every eighth of a record's volume limit, so that a record is not much larger.
const PARTS_OF_LIMIT: u64 = 8;

pub(super) const fn is_own(urr: UrrId) -> bool {
    urr.0 >= OWN_METERS && urr.0 != SILENCE.0
}

/// A session, and by what its packets are charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charged<'a> {
    pub(super) charging: &'a Charging,
    account: &'a Account,
}

impl<'a> Charged<'a> {
    /// `None` of what is not charged.
    pub(crate) fn of(record: &'a SessionRecord, config: &'a Config) -> Option<Self> {
        let (charging, charged) = (config.charging.as_ref()?, record.charging.as_deref()?);
        Some(Self { charging, account: &charged.account })
    }

    /// Whether a URR of the control plane charges the packets of a PDR.
    pub(super) fn is_mapped(&self, pdr: &Pdr) -> bool {
        pdr.urrs.iter().any(|urr| self.charges(*urr))
    }

    /// Whether anything is charged by a URR.
    pub(super) fn charges(&self, urr: UrrId) -> bool {
        key_of(urr, Some(self.charging), self.account).is_some()
    }
}

/// Puts meters on all PDRs that have none: of the keys their predefined rules bring, of content rules, or of the default.
pub(crate) fn measure(rules: &mut Rules, charged: Charged<'_>, keys: &BTreeMap<PdrId, Key>) {
    let charging = charged.charging;
    let mut made = BTreeSet::new();
    let by_content = content::split(rules, charged, keys);
    for pdr in &mut rules.pdrs {
        if charged.is_mapped(pdr) {
            continue;
        }
        let key = keys.get(&pdr.id).or(by_content.get(&pdr.id)).copied().or(charging.rating.default_key());
        let Some(meter) = key.and_then(|key| charging.rating.own_meter(key)).map(UrrId) else { continue };
        if put(pdr, meter) {
            made.insert(meter);
        }
    }
    let told = told_volume(charging);
    for urr in &mut rules.urrs {
        let is_free = urr.volume_threshold.is_none() && !urr.triggers.contains(Triggers::VOLUME_THRESHOLD);
        if is_free && charged.charges(urr.id) {
            urr.volume_threshold = Some(told);
        }
    }
    let methods = Methods { volume: true, ..Methods::default() };
    let meter = |id| Urr { id, methods, volume_threshold: Some(told), ..Urr::default() };
    rules.urrs.extend(made.into_iter().map(meter));
}

fn put(pdr: &mut Pdr, meter: UrrId) -> bool {
    let has_room = pdr.urrs.len() < limits::URRS_PER_PDR;
    pdr.urrs.extend(has_room.then_some(meter));
    has_room
}

fn told_volume(charging: &Charging) -> Volume {
    let total = (charging.policy.volume_limit_bytes / PARTS_OF_LIMIT).max(1);
    Volume { total: Some(total), ..Volume::default() }
}

/// Our own meters that a session's rules need.
pub(super) fn needed(record: &SessionRecord, config: &Config) -> Vec<UrrId> {
    if record.charging.is_none() {
        return vec![];
    }
    wanted(record, config).urrs.iter().map(|urr| urr.id).filter(|urr| is_own(*urr)).collect()
}

/// URRs that come into a session are charged as the operator has it then. Those that are there go on as they began, whatever he says
/// since: packets of one that was not mapped count under another key, and those of one that was under no other.
pub(crate) fn meet(record: &mut SessionRecord, config: &Config, (before, now_ms): (&Rules, u64)) {
    let (Some(charging), Some(charged)) = (&config.charging, &mut record.charging) else { return };
    let is_new = |urr: &&Urr| !before.urrs.iter().any(|old| old.id == urr.id);
    let new = record.rules.urrs.iter().filter(is_new).filter_map(|urr| {
        let key = charging.rating.key_of(urr.id.0)?;
        Some(reading((urr.id, key), (Counts::default(), 0), (None, None)))
    });
    charged.account.set_meters(&new.collect::<Vec<_>>(), now_ms);
}

/// Adds those of them that are new.
pub(super) fn add_own(record: &mut SessionRecord, needed: &[UrrId], now: u64) {
    let Some(charging) = &mut record.charging else { return };
    for urr in needed {
        if !charging.own.iter().any(|meter| meter.urr == *urr) {
            charging.own.push(OwnMeter { urr: *urr, heard_ms: now, ..OwnMeter::default() });
        }
    }
}

/// Counts of the data plane, told at `now`.
pub(crate) fn hear(charging: &mut Option<Box<ChargingRecord>>, told: &[UsageCounts], now: u64) {
    let Some(charging) = charging else { return };
    for counts in told.iter().filter(|counts| is_own(counts.urr)) {
        match charging.own.iter_mut().find(|meter| meter.urr == counts.urr) {
            Some(meter) => hear_one(meter, counts, now),
            None => {
                let mut meter = OwnMeter { urr: counts.urr, ..OwnMeter::default() };
                hear_one(&mut meter, counts, now);
                charging.own.push(meter);
            }
        }
    }
}

/// What a life of the data plane that is over had counted of a meter in the end. It is not the last that is known, where that is more.
pub(crate) fn hear_former(charging: &mut Option<Box<ChargingRecord>>, told: &UsageCounts, now: u64) {
    let own = charging.iter().flat_map(|charging| &charging.own).find(|meter| meter.urr == told.urr);
    let (base, known) = own.map(|meter| (meter.base, meter.known)).unwrap_or_default();
    if (base + engines(told)).is_more_than(known) {
        hear(charging, std::slice::from_ref(told), now);
    }
}

fn hear_one(meter: &mut OwnMeter, told: &UsageCounts, now: u64) {
    let engines = engines(told);
    // The data plane counts less than before: it has lost the session in between, and counts anew.
    if !(meter.base + engines).is_at_least(meter.known) {
        meter.base = meter.known;
    }
    meter.known = meter.base + engines;
    meter.heard_ms = now;
    let moment = |age: u64| now.saturating_sub(age);
    meter.first_packet_ms = meter.first_packet_ms.or(told.first_packet_age_ms.map(moment));
    meter.last_packet_ms = meter.last_packet_ms.max(told.last_packet_age_ms.map(moment));
}

/// The data plane has forgotten the session: should it get it again, it counts anew.
pub(crate) fn begin_anew(charging: &mut Option<Box<ChargingRecord>>) {
    let own = charging.iter_mut().flat_map(|charging| &mut charging.own);
    own.for_each(|meter| meter.base = meter.known);
}

/// The last counts of meters that the data plane has forgotten: should it get them again, it counts anew.
pub(crate) fn hear_last(charging: &mut Option<Box<ChargingRecord>>, told: &[UsageCounts], now: u64) {
    hear(charging, told, now);
    let own = charging.iter_mut().flat_map(|charging| &mut charging.own);
    let forgotten = own.filter(|meter| told.iter().any(|told| told.urr == meter.urr));
    forgotten.for_each(|meter| meter.base = meter.known);
}

/// What all meters of a session have counted.
pub(super) fn readings(record: &SessionRecord, charging: Option<&Charging>) -> Vec<Reading> {
    let Some(charged) = &record.charging else { return vec![] };
    let key = |urr: UrrId| key_of(urr, charging, &charged.account);
    let theirs = record.usage.urrs.iter().zip(&record.rules.urrs).filter_map(|(usage, urr)| {
        let moments = (usage.first_packet_ms, usage.last_packet_ms);
        let counted = (usage.known.counts, usage.known.duration_ms);
        let reading = reading((usage.urr, key(usage.urr)?), counted, moments);
        Some(Reading { measures_time: urr.methods.duration, ..reading })
    });
    let own = charged.own.iter().filter_map(|meter| {
        let moments = (meter.first_packet_ms, meter.last_packet_ms);
        Some(reading((meter.urr, key(meter.urr)?), (meter.known, 0), moments))
    });
    theirs.chain(own).collect()
}

/// What a URR is charged under: of a control plane's what the operator says now, if it is one that charges ([`meet`]). Where he has taken a
/// key away, what is measured under it stays charged under it.
fn key_of(urr: UrrId, charging: Option<&Charging>, account: &Account) -> Option<Key> {
    let (now, known) = (charging.and_then(|it| it.rating.key_of(urr.0)), account.key_of(urr.0));
    match is_own(urr) {
        true => now.or(known),
        false => known.map(|known| now.unwrap_or(known)),
    }
}

/// Of one by which no time is charged.
const fn reading(
    (urr, key): (UrrId, Key),
    (counts, duration_ms): (Counts, u64),
    (first_packet_ms, last_packet_ms): (Option<u64>, Option<u64>),
) -> Reading {
    let Counts { uplink_bytes, downlink_bytes, .. } = counts;
    let used = Used { uplink_bytes, downlink_bytes, duration_ms };
    Reading { meter: urr.0, key, used, measures_time: false, first_packet_ms, last_packet_ms }
}

/// When any counts of a session were told last.
pub(super) fn last_heard_ms(record: &SessionRecord) -> u64 {
    let own = record.charging.iter().flat_map(|charged| &charged.own).map(|meter| meter.heard_ms);
    record.usage.urrs.iter().map(|usage| usage.heard_ms).chain(own).max().unwrap_or(0)
}

/// Meters of a session whose counts were told before a moment: only the data plane knows more. Where nothing is charged any more, of
/// those that were.
pub(super) fn unheard(record: &SessionRecord, charging: Option<&Charging>, moment_ms: u64) -> Vec<UrrId> {
    let Some(charged) = &record.charging else { return vec![] };
    let is_charged = |urr: UrrId| key_of(urr, charging, &charged.account).is_some();
    let theirs = record.usage.urrs.iter().map(|usage| (usage.urr, usage.heard_ms));
    let own = charged.own.iter().map(|meter| (meter.urr, meter.heard_ms));
    let all = theirs.chain(own).filter(|(urr, heard_ms)| is_charged(*urr) && *heard_ms < moment_ms);
    all.map(|(urr, _)| urr).collect()
}
