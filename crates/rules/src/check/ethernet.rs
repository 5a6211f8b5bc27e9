//! What sessions that carry Ethernet frames may ask for.

use super::{Checked, at_most, ensure};
use crate::compile::Direction;
use crate::error::{RuleError, RuleRef};
use crate::ethernet::{EthernetFilter, EthernetPdi};
use crate::ids::Instance;
use crate::intent::{ApplyAction, Far, OuterHeader, Pdr, Rules, limits};
use std::collections::HashMap;

/// What a reference finds: of several filters of one ID, the first.
pub(super) fn filters_by_id(rules: &Rules) -> HashMap<u32, (&EthernetFilter, Direction)> {
    let mut by_id = HashMap::new();
    for pdr in &rules.pdrs {
        let filters = pdr.pdi.ethernet.iter().flat_map(|ethernet| &ethernet.filters);
        for filter in filters.filter(|filter| filter.is_bidirectional && filter.reference().is_none()) {
            if let Some(id) = filter.id {
                by_id.entry(id).or_insert((filter, pdr.pdi.source_interface.direction()));
            }
        }
    }
    by_id
}

/// All PDRs of a session are of frames, or none is.
pub(super) fn check(rules: &Rules, checked: &Checked<'_>) -> Result<(), RuleError> {
    let Some(first) = rules.pdrs.first() else { return Ok(()) };
    let of_frames = first.pdi.ethernet.is_some();
    let other = rules.pdrs.iter().find(|pdr| pdr.pdi.ethernet.is_some() != of_frames);
    other.map_or(Ok(()), |pdr| Err(RuleError::MixedTypes(RuleRef::Pdr(pdr.id))))?;
    if !of_frames {
        return Ok(());
    }
    let (mut filters, mut network) = (0, None);
    for pdr in &rules.pdrs {
        let ethernet = pdr.pdi.ethernet.as_deref();
        filters += ethernet.map_or(0, |ethernet| ethernet.filters.len());
        at_most(limits::ETHERNET_FILTERS, filters, RuleRef::Pdr(pdr.id), "Ethernet filters")?;
        one_network(pdr, &mut network)?;
        ethernet.map_or(Ok(()), |ethernet| self::pdr(pdr, ethernet, checked))?;
    }
    rules.fars.iter().try_for_each(far)
}

/// Its MAC addresses are known in one.
fn one_network(pdr: &Pdr, network: &mut Option<Instance>) -> Result<(), RuleError> {
    if pdr.pdi.f_teid.is_some() {
        return Ok(());
    }
    let known = *network.get_or_insert(pdr.pdi.instance);
    ensure(known == pdr.pdi.instance, RuleError::SeveralNetworks(RuleRef::Pdr(pdr.id)))
}

fn pdr(pdr: &Pdr, ethernet: &EthernetPdi, checked: &Checked<'_>) -> Result<(), RuleError> {
    let rule = RuleRef::Pdr(pdr.id);
    ensure(!pdr.pdi.names_user(), RuleError::NotOfFrames(rule, "a UE IP address"))?;
    ensure(pdr.pdi.application.is_none(), RuleError::NotOfFrames(rule, "an application"))?;
    at_most(limits::ETHERNET_FILTERS_PER_PDI, ethernet.filters.len(), rule, "Ethernet filters")?;
    ethernet.filters.iter().try_for_each(|one| filter(one, rule, checked))
}

fn filter(filter: &EthernetFilter, rule: RuleRef, checked: &Checked<'_>) -> Result<(), RuleError> {
    at_most(
        limits::MACS_PER_ETHERNET_FILTER,
        filter.macs.len(),
        rule,
        "MAC addresses in an Ethernet filter",
    )?;
    at_most(
        limits::SDF_FILTERS_PER_PDI,
        filter.sdf_filters.len(),
        rule,
        "SDF filters in an Ethernet filter",
    )?;
    let mut ranges = filter.macs.iter().flat_map(|mac| mac.source.iter().chain(&mac.destination));
    ensure(ranges.all(|range| range.first <= range.last), RuleError::MacRange(rule))?;
    match filter.reference().filter(|id| !checked.frame_filters.contains_key(id)) {
        Some(unknown) => Err(RuleError::UnknownEthernetFilter(rule, unknown)),
        None => Ok(()),
    }
}

/// A frame is forwarded as it is, and copied nowhere.
fn far(far: &Far) -> Result<(), RuleError> {
    let rule = RuleRef::Far(far.id);
    ensure(far.apply_action != ApplyAction::Reset, RuleError::NotOfFrames(rule, "a reset of connections"))?;
    ensure(far.redirect.is_none(), RuleError::NotOfFrames(rule, "redirection"))?;
    ensure(far.enrichment.is_none(), RuleError::NotOfFrames(rule, "header enrichment"))?;
    ensure(!far.duplicating, RuleError::NotOfFrames(rule, "copies"))?;
    let policy = far.forwarding.and_then(|to| to.policy);
    ensure(policy.is_none(), RuleError::NotOfFrames(rule, "a forwarding policy"))?;
    let creation = far.forwarding.and_then(|to| to.outer_header_creation);
    let is_udp = creation.is_some_and(|creation| matches!(creation.header, OuterHeader::Udp(_)));
    ensure(!is_udp, RuleError::NotOfFrames(rule, "an outer header of UDP alone"))
}
