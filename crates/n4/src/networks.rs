//! Network instances (TS 29.244 8.2.4): where the operator has named some, others are refused.

use crate::config::Config;
use crate::refusal::Refusal;
use pfcp::{
    Cause, FailedRuleId, NetworkInstance, SessionEstablishmentRequest, SessionModificationRequest, ie,
};

/// Where a name stands: in a rule, or in a traffic endpoint, which has no ID that could be told.
type Named<'a> = (Option<FailedRuleId>, &'a NetworkInstance);

/// Refuses names that are not the operator's.
pub(crate) fn establishment(request: &SessionEstablishmentRequest, config: &Config) -> Result<(), Refusal> {
    let pdrs =
        request.create_pdrs.iter().filter_map(|pdr| named(pdr_id(pdr.pdr_id), &pdr.pdi.network_instance));
    let fars = request
        .create_fars
        .iter()
        .filter_map(|far| named(far_id(far.far_id), &far.forwarding_parameters.as_ref()?.network_instance));
    let endpoints = &request.create_traffic_endpoints;
    let endpoints = endpoints.iter().filter_map(|endpoint| named(None, &endpoint.network_instance));
    check(pdrs.chain(fars).chain(endpoints), config)
}

/// As [`establishment`].
pub(crate) fn modification(request: &SessionModificationRequest, config: &Config) -> Result<(), Refusal> {
    let created = request.create_pdrs.iter();
    let created = created.filter_map(|pdr| named(pdr_id(pdr.pdr_id), &pdr.pdi.network_instance));
    let updated = request.update_pdrs.iter();
    let updated = updated.filter_map(|pdr| named(pdr_id(pdr.pdr_id), &pdr.pdi.as_ref()?.network_instance));
    let fars = request
        .create_fars
        .iter()
        .filter_map(|far| named(far_id(far.far_id), &far.forwarding_parameters.as_ref()?.network_instance));
    let updated_fars = request.update_fars.iter().filter_map(|far| {
        named(far_id(far.far_id), &far.update_forwarding_parameters.as_ref()?.network_instance)
    });
    let endpoints = &request.create_traffic_endpoints;
    let endpoints = endpoints.iter().filter_map(|endpoint| named(None, &endpoint.network_instance));
    let updated_endpoints = &request.update_traffic_endpoints;
    let updated_endpoints =
        updated_endpoints.iter().filter_map(|endpoint| named(None, &endpoint.network_instance));
    let rules = created.chain(updated).chain(fars).chain(updated_fars);
    check(rules.chain(endpoints).chain(updated_endpoints), config)
}

fn named(rule: Option<FailedRuleId>, name: &Option<NetworkInstance>) -> Option<Named<'_>> {
    // One without octets takes a name away.
    Some((rule, name.as_ref().filter(|name| !name.0.is_empty())?))
}

const fn pdr_id(id: u16) -> Option<FailedRuleId> {
    Some(FailedRuleId::Pdr(id))
}

const fn far_id(id: u32) -> Option<FailedRuleId> {
    Some(FailedRuleId::Far(id))
}

fn check<'a>(mut names: impl Iterator<Item = Named<'a>>, config: &Config) -> Result<(), Refusal> {
    if !config.has_instances() {
        return Ok(());
    }
    let is_known =
        |name: &NetworkInstance| name.name().is_some_and(|name| config.network_instances.contains(&name));
    match names.find(|(_, name)| !is_known(name)) {
        None => Ok(()),
        Some((failed_rule_id, _)) => Err(Refusal {
            failed_rule_id,
            ..Refusal::blaming(Cause::RuleCreationModificationFailure, ie::NETWORK_INSTANCE)
        }),
    }
}
