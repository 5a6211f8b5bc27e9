//! Carries out a modification, in time linear in the session and the change.

use super::{BarUpdate, Change, FarUpdate, ForwardingUpdate, PdrUpdate, QerUpdate, UrrUpdate};
use crate::error::{RuleError, RuleRef};
use crate::intent::{Bar, Far, ForwardingParameters, Pdr, Qer, Rules};
use crate::rule::{FEW, Rule, place_in};
use crate::urr::Urr;
use std::collections::{HashMap, HashSet};

impl Rules {
    /// These rules after `change`; `self` stays as it is. A rule that is removed is no longer named by others, unless the change
    /// itself says so or creates one in its place; only the FAR of a PDR has to be replaced by the change.
    ///
    /// # Errors
    /// The first rule that is unknown, or that leaves the whole in a state [`Rules::check`] refuses.
    pub fn change(&self, change: Change) -> Result<Self, RuleError> {
        let mut next = self.clone();
        next.remove(&change)?;
        next.unname(&change);
        next.create(self.regrant(change.create));
        update(&mut next.pdrs, change.update_pdrs)?;
        update(&mut next.fars, change.update_fars)?;
        update(&mut next.qers, change.update_qers)?;
        update(&mut next.urrs, change.update_urrs)?;
        update(&mut next.bars, change.update_bars)?;
        next.check()?;
        Ok(next)
    }

    fn remove(&mut self, change: &Change) -> Result<(), RuleError> {
        remove(&mut self.pdrs, &change.remove_pdrs)?;
        remove(&mut self.fars, &change.remove_fars)?;
        remove(&mut self.qers, &change.remove_qers)?;
        remove(&mut self.urrs, &change.remove_urrs)?;
        remove(&mut self.bars, &change.remove_bars)
    }

    /// A URR created in the place of one of the same identifier begins with a quota of its own.
    fn regrant(&self, mut create: Self) -> Self {
        if !create.urrs.is_empty() {
            let grants: HashMap<_, _> = self.urrs.iter().map(|urr| (urr.id, urr.quota_grant)).collect();
            for urr in &mut create.urrs {
                urr.quota_grant = grants.get(&urr.id).map_or(urr.quota_grant, |grant| grant.wrapping_add(1));
            }
        }
        create
    }

    fn create(&mut self, create: Self) {
        self.pdrs.extend(create.pdrs);
        self.fars.extend(create.fars);
        self.qers.extend(create.qers);
        self.urrs.extend(create.urrs);
        self.bars.extend(create.bars);
    }
}

/// A rule removed twice is unknown the second time.
fn remove<R: Rule>(rules: &mut Vec<R>, ids: &[R::Id]) -> Result<(), RuleError> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut present: HashSet<R::Id> = rules.iter().map(Rule::id).collect();
    match ids.iter().find(|id| !present.remove(id)) {
        Some(id) => Err(RuleError::Unknown((*id).into())),
        None => {
            rules.retain(|rule| present.contains(&rule.id()));
            Ok(())
        }
    }
}

/// What is to become of one rule.
trait Update {
    type Rule: Rule;

    fn id(&self) -> <Self::Rule as Rule>::Id;

    fn apply(self, rule: &mut Self::Rule) -> Result<(), RuleError>;
}

fn update<U: Update>(rules: &mut [U::Rule], updates: Vec<U>) -> Result<(), RuleError> {
    if updates.is_empty() {
        return Ok(());
    }
    let places: Option<HashMap<_, usize>> =
        (rules.len() > FEW).then(|| rules.iter().map(Rule::id).zip(0..).collect());
    updates.into_iter().try_for_each(|update| {
        let id = update.id();
        let place = match &places {
            Some(places) => places.get(&id).copied(),
            None => place_in(rules, id),
        };
        let rule = place.and_then(|place| rules.get_mut(place));
        update.apply(rule.ok_or(RuleError::Unknown(id.into()))?)
    })
}

/// Sets those fields of a rule that an update names. Takes the update apart, so that no field can be forgotten.
macro_rules! set {
    ($rule:ident = $update:ident as $type:ident { $($field:ident),+ } $(, except $other:ident)*) => {
        let $type { id: _, $($field,)+ $($other,)* } = $update;
        $(if let Some(value) = $field {
            $rule.$field = value;
        })+
    };
}

impl Update for PdrUpdate {
    type Rule = Pdr;

    fn id(&self) -> <Pdr as Rule>::Id {
        self.id
    }

    fn apply(self, pdr: &mut Pdr) -> Result<(), RuleError> {
        set!(pdr = self as PdrUpdate { precedence, pdi, outer_header_removal, far, qers, urrs });
        Ok(())
    }
}

impl Update for FarUpdate {
    type Rule = Far;

    fn id(&self) -> <Far as Rule>::Id {
        self.id
    }

    fn apply(self, far: &mut Far) -> Result<(), RuleError> {
        set!(far = self as FarUpdate { apply_action, notify, duplicating, duplicates, bar, redirect, enrichment }, except forwarding);
        let Some(to) = forwarding else { return Ok(()) };
        let merged = merge(far.forwarding, to);
        far.forwarding = Some(merged.ok_or(RuleError::NoForwardingParameters(RuleRef::Far(far.id)))?);
        Ok(())
    }
}

impl Update for QerUpdate {
    type Rule = Qer;

    fn id(&self) -> <Qer as Rule>::Id {
        self.id
    }

    fn apply(self, qer: &mut Qer) -> Result<(), RuleError> {
        set!(
            qer = self as QerUpdate { mbr, packet_rates, correlation, gbr, qfi, reflective },
            except gates
        );
        if let Some((uplink, downlink)) = gates {
            qer.uplink_gate = uplink;
            qer.downlink_gate = downlink;
        }
        Ok(())
    }
}

impl Update for UrrUpdate {
    type Rule = Urr;

    fn id(&self) -> <Urr as Rule>::Id {
        self.id
    }

    fn apply(self, urr: &mut Urr) -> Result<(), RuleError> {
        let grants = matches!(self.volume_quota, Some(Some(_)));
        set!(
            urr = self as UrrUpdate {
                methods,
                triggers,
                measurement_period_s,
                volume_threshold,
                volume_quota,
                time_threshold_s,
                time_quota_s,
                event_threshold,
                event_quota,
                quota_holding_time_s,
                quota_validity_time_s,
                dropped_downlink,
                inactivity_detection_time_s,
                monitoring_time,
                subsequent_volume_threshold,
                subsequent_time_threshold_s,
                subsequent_volume_quota,
                subsequent_time_quota_s,
                subsequent_event_threshold,
                subsequent_event_quota,
                additional_monitoring,
                linked,
                before_qos,
                inactive,
                immediate_start,
                ethernet_inactivity_s,
                quota_far
            }
        );
        // A quota given anew counts from now, whatever its size.
        urr.quota_grant = urr.quota_grant.wrapping_add(u32::from(grants));
        Ok(())
    }
}

impl Update for BarUpdate {
    type Rule = Bar;

    fn id(&self) -> <Bar as Rule>::Id {
        self.id
    }

    fn apply(self, bar: &mut Bar) -> Result<(), RuleError> {
        set!(bar = self as BarUpdate { notification_delay_50ms, suggested_packets, extended });
        Ok(())
    }
}

/// `None` where the FAR had no forwarding parameters and the update names no interface.
fn merge(old: Option<ForwardingParameters>, update: ForwardingUpdate) -> Option<ForwardingParameters> {
    let old_tunnel = old.and_then(|to| to.outer_header_creation);
    Some(ForwardingParameters {
        destination_interface: update.destination_interface.or(old.map(|to| to.destination_interface))?,
        instance: update.instance.or(old.map(|to| to.instance)).unwrap_or_default(),
        outer_header_creation: update.outer_header_creation.unwrap_or(old_tunnel),
        dscp: update.dscp.unwrap_or(old.and_then(|to| to.dscp)),
        policy: update.policy.unwrap_or(old.and_then(|to| to.policy)),
    })
}
