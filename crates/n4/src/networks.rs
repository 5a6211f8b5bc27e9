//! Network instances (TS 29.244 8.2.4): where the operator has named some, others stand for the network without a name, as
//! control planes in use name what nobody told them, or are refused.

use crate::config::Config;
use crate::refusal::Refusal;
use pfcp::{
    Cause, FailedRuleId, NetworkInstance, SessionEstablishmentRequest, SessionModificationRequest, ie,
};
use std::borrow::Cow;

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
    let updated_fars = request
        .update_fars
        .iter()
        .filter_map(|far| named(far_id(far.far_id), &far.parameters()?.network_instance));
    let endpoints = &request.create_traffic_endpoints;
    let endpoints = endpoints.iter().filter_map(|endpoint| named(None, &endpoint.network_instance));
    let updated_endpoints = &request.update_traffic_endpoints;
    let updated_endpoints =
        updated_endpoints.iter().filter_map(|endpoint| named(None, &endpoint.network_instance));
    let rules = created.chain(updated).chain(fars).chain(updated_fars);
    check(rules.chain(endpoints).chain(updated_endpoints), config)
}

/// The request with names only that are the operator's, unless others are to be refused.
pub(crate) fn known_establishment<'a>(
    request: &'a SessionEstablishmentRequest,
    config: &Config,
) -> Cow<'a, SessionEstablishmentRequest> {
    if config.refuses_unknown_instances || establishment(request, config).is_ok() {
        return Cow::Borrowed(request);
    }
    let mut known = request.clone();
    let pdrs = known.create_pdrs.iter_mut().map(|pdr| &mut pdr.pdi.network_instance);
    let fars = known.create_fars.iter_mut().filter_map(|far| far.forwarding_parameters.as_mut());
    let endpoints = known.create_traffic_endpoints.iter_mut().map(|endpoint| &mut endpoint.network_instance);
    let names = pdrs.chain(fars.map(|to| &mut to.network_instance)).chain(endpoints);
    names.for_each(|name| forget_unknown(name, config));
    Cow::Owned(known)
}

/// As [`known_establishment`].
pub(crate) fn known_modification<'a>(
    request: &'a SessionModificationRequest,
    config: &Config,
) -> Cow<'a, SessionModificationRequest> {
    if config.refuses_unknown_instances || modification(request, config).is_ok() {
        return Cow::Borrowed(request);
    }
    let mut known = request.clone();
    let created = known.create_pdrs.iter_mut().map(|pdr| &mut pdr.pdi.network_instance);
    let updated = known.update_pdrs.iter_mut().filter_map(|pdr| pdr.pdi.as_mut());
    let pdrs = created.chain(updated.map(|pdi| &mut pdi.network_instance));
    let fars = known.create_fars.iter_mut().filter_map(|far| far.forwarding_parameters.as_mut());
    let fars = fars.map(|to| &mut to.network_instance);
    let updated = known.update_fars.iter_mut().flat_map(|far| {
        far.update_forwarding_parameters.iter_mut().chain(far.forwarding_parameters.as_mut())
    });
    let fars = fars.chain(updated.map(|to| &mut to.network_instance));
    let endpoints = known.create_traffic_endpoints.iter_mut().map(|endpoint| &mut endpoint.network_instance);
    let updated = known.update_traffic_endpoints.iter_mut().map(|endpoint| &mut endpoint.network_instance);
    pdrs.chain(fars).chain(endpoints).chain(updated).for_each(|name| forget_unknown(name, config));
    Cow::Owned(known)
}

/// One without octets is that of the network without a name, in updates too.
fn forget_unknown(name: &mut Option<NetworkInstance>, config: &Config) {
    name.iter_mut().filter(|name| !is_known(name, config)).for_each(|name| name.0.clear());
}

fn is_known(name: &NetworkInstance, config: &Config) -> bool {
    name.name().is_some_and(|name| config.network_instances.contains(&name))
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
    match names.find(|(_, name)| !is_known(name, config)) {
        None => Ok(()),
        Some((failed_rule_id, _)) => Err(Refusal {
            failed_rule_id,
            ..Refusal::blaming(Cause::RuleCreationModificationFailure, ie::NETWORK_INSTANCE)
        }),
    }
}
