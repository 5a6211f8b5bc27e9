//! The rules the data plane gets: those of the control plane, and what only it can enforce of the rest.

use super::SILENCE;
use super::monitoring::in_force;
use crate::config::Config;
use crate::{offline, predefined};
use rules::{Methods, Rules, Since, Triggers, Urr, Volume, limits};
use session::{Counts, SessionRecord, UrrUsage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Mark grants that no control plane gave, those of monitoring times by their number: counted quotas never get that far.
const SUBSEQUENT: u32 = 1 << 27;
const BLOCKED: u32 = 1 << 31;

/// What the data plane should do for a session now: mostly what its rules say, which are not copied then.
pub(crate) fn wanted(record: &SessionRecord, config: &Config) -> Arc<Rules> {
    let mut rules = Arc::clone(&record.rules);
    for (place, (urr, usage)) in record.rules.urrs.iter().zip(&record.usage.urrs).enumerate() {
        let adjusted = adjusted(urr, usage);
        if adjusted != *urr
            && let Some(urr) = Arc::make_mut(&mut rules).urrs.get_mut(place)
        {
            *urr = adjusted;
        }
    }
    if rules.qers.iter().any(|qer| qer.correlation.is_some()) {
        let numbers = Arc::make_mut(&mut rules).qers.iter_mut().filter_map(|qer| qer.correlation.as_mut());
        numbers.for_each(|number| *number |= name_of(&record.owner) << 32);
    }
    let mut keys = BTreeMap::new();
    if let Some(extras) = record.extras.as_ref().filter(|extras| !extras.predefined.is_empty()) {
        keys = predefined::expand(Arc::make_mut(&mut rules), extras, &config.predefined);
    }
    if let Some(charged) = offline::Charged::of(record, config) {
        offline::measure(Arc::make_mut(&mut rules), charged, &keys);
    }
    if record.usage.inactivity.is_some() {
        listen(Arc::make_mut(&mut rules));
    }
    rules
}

/// Control planes number correlations each for itself: a digest of the owner's name (FNV-1a, 32 bits) tells them apart.
fn name_of(owner: &str) -> u64 {
    let digest = owner
        .bytes()
        .fold(0x811c_9dc5_u32, |digest, byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    digest.into()
}

fn adjusted(urr: &Urr, usage: &UrrUsage) -> Urr {
    let mut urr = urr.clone();
    let uses = if urr.methods.event { usage.uses_awaited } else { 0 };
    urr.starts_awaited = usage.stops.wrapping_add(uses);
    let begins_time = urr.methods.duration && !usage.is_running;
    if urr.triggers.contains(Triggers::STOP_OF_TRAFFIC) || urr.methods.event || begins_time {
        // Who waits for the end, or counts, has to know of the beginning; and time begins with it, which is not among what outlives the
        // data plane.
        urr.triggers = Triggers(urr.triggers.0 | Triggers::START_OF_TRAFFIC.0);
    }
    urr.quota_grant = grant(usage, &urr);
    let in_force = in_force(usage, &urr);
    urr.volume_threshold = in_force.volume_threshold.limit;
    let threshold = urr.volume_threshold.map(|_| in_force.volume_threshold.since(usage).counts);
    urr.threshold_since = threshold.map_or(Since::default(), |counts| since(counts, usage.base));
    urr.volume_quota = in_force.volume_quota;
    let is_placed = urr.volume_quota.is_some() && !usage.is_grant_unplaced;
    urr.quota_since = is_placed.then(|| since(usage.granted.counts, usage.base));
    if usage.is_blocked {
        urr.volume_quota = Some(Volume { total: Some(0), ..Volume::default() });
        urr.quota_since = None;
    }
    urr
}

/// Under which number the data plane has the volume quota that it is to hold now.
pub(super) fn grant(usage: &UrrUsage, urr: &Urr) -> u32 {
    let blocked = if usage.is_blocked { BLOCKED } else { 0 };
    own_grant(usage, urr) | blocked
}

/// Under which it has the URR's own, or is to have it once packets pass again.
pub(super) fn own_grant(usage: &UrrUsage, urr: &Urr) -> u32 {
    urr.quota_grant | (in_force(usage, urr).volume_quotas * SUBSEQUENT)
}

/// Where that is in counts that began at `base`: what passed before is not to pass again.
fn since(counts: Counts, base: Counts) -> Since {
    let less = |counts: u64, base: u64| counts.wrapping_sub(base).cast_signed();
    Since {
        uplink: less(counts.uplink_bytes, base.uplink_bytes),
        downlink: less(counts.downlink_bytes, base.downlink_bytes),
    }
}

/// A URR of our own on every PDR that has room: it tells when the last packet came. Of others their own URRs do.
fn listen(rules: &mut Rules) {
    let methods = Methods { volume: true, ..Methods::default() };
    rules.urrs.push(Urr { id: SILENCE, methods, before_qos: true, ..Urr::default() });
    let with_room = rules.pdrs.iter_mut().filter(|pdr| pdr.urrs.len() < limits::URRS_PER_PDR);
    with_room.for_each(|pdr| pdr.urrs.push(SILENCE));
}
