//! Refuses requests that ask for what is not done.

use super::{
    IN_BAR, IN_DUPLICATING, IN_FAR, IN_FORWARDING, IN_MODIFICATION, IN_PDI, IN_PDR, IN_QER, IN_SESSION,
    IN_TRAFFIC_ENDPOINT, IN_URR,
};
use crate::config::{Config, ForwardingPolicy};
use crate::refusal::Refusal;
use crate::translate::policy;
use crate::{families, networks};
use charging::OWN_METERS;
use pfcp::{
    Cause, CreatePdr, CreateUrr, FailedRuleId, Pdi, PdnType, RawIe, ReportingTriggers,
    SessionEstablishmentRequest, SessionModificationRequest, UpdatePdr, UpdateUrr, flags, ie,
};
use rules::Triggers;

/// PFCPSMReq-Flags that are obeyed. Not pauses of charging (SUMPC, RUMUC), nor what later releases ask for.
const IN_MODIFICATION_FLAGS: u8 = flags::PFCPSM_DROBU | flags::PFCPSM_SNDEM | flags::PFCPSM_QAURR;

/// SSPOC, ASPOC and CIAM: pauses of charging, and measuring by application (TS 29.244 8.2.68).
const MEASUREMENT_REFUSED: u8 = 0xE0;

/// URRs in a session. The reports of all, each in two parts, fit one datagram; parts beyond come in requests behind it.
const URRS: usize = 250;

/// Whether any of these bits is set.
fn has(bits: Option<u8>, any: u8) -> bool {
    bits.is_some_and(|bits| bits & any != 0)
}

/// Refuses `ie` where it is there.
const fn without(is_there: bool, ie: u16) -> Result<(), Refusal> {
    if is_there { Err(Refusal::unsupported(ie)) } else { Ok(()) }
}

/// An IE without octets asks for removal of what is not done anyway.
fn without_any(carried: &[RawIe], refused: &[u16]) -> Result<(), Refusal> {
    match carried.iter().find(|other| refused.contains(&other.ie) && !other.value.is_empty()) {
        Some(other) => Err(Refusal::unsupported(other.ie)),
        None => Ok(()),
    }
}

pub(crate) fn establishment(request: &SessionEstablishmentRequest, config: &Config) -> Result<(), Refusal> {
    let policies = &config.forwarding_policies;
    networks::establishment(request, config)?;
    families::establishment(request, config)?;
    without_any(&request.carried, IN_SESSION)?;
    let is_done = !matches!(request.pdn_type, Some(PdnType::NonIp | PdnType::Other(_)));
    without(!is_done, ie::PDN_TYPE)?;
    without(has(request.pfcpse_req_flags, flags::PFCPSE_SUMPC), ie::PFCPSEREQ_FLAGS)?;
    request.create_bar.iter().try_for_each(|bar| without_any(&bar.carried, IN_BAR))?;
    let endpoints = request.create_traffic_endpoints.iter().map(|endpoint| &endpoint.carried);
    endpoints.into_iter().try_for_each(|carried| without_any(carried, IN_TRAFFIC_ENDPOINT))?;
    request.create_pdrs.iter().try_for_each(create_pdr)?;
    request.create_qers.iter().try_for_each(|qer| without_any(&qer.carried, IN_QER))?;
    request.create_urrs.iter().try_for_each(create_urr)?;
    request.create_fars.iter().try_for_each(|far| {
        without_any(&far.carried, IN_FAR)?;
        far.forwarding_parameters.iter().try_for_each(|to| forwarding(&to.carried, policies))?;
        far.duplicating_parameters.iter().try_for_each(|to| copying(&to.carried, policies))
    })
}

pub(crate) fn modification(request: &SessionModificationRequest, config: &Config) -> Result<(), Refusal> {
    let policies = &config.forwarding_policies;
    networks::modification(request, config)?;
    families::modification(request, config)?;
    without_any(&request.carried, IN_SESSION)?;
    without_any(&request.carried, IN_MODIFICATION)?;
    without(has(request.pfcpsm_req_flags, !IN_MODIFICATION_FLAGS), ie::PFCPSMREQ_FLAGS)?;
    request.create_bar.iter().try_for_each(|bar| without_any(&bar.carried, IN_BAR))?;
    request.update_bar.iter().try_for_each(|bar| without_any(&bar.carried, IN_BAR))?;
    let endpoints = request.create_traffic_endpoints.iter().map(|endpoint| &endpoint.carried);
    endpoints.into_iter().try_for_each(|carried| without_any(carried, IN_TRAFFIC_ENDPOINT))?;
    request.create_pdrs.iter().try_for_each(create_pdr)?;
    let endpoints = request.update_traffic_endpoints.iter().map(|endpoint| &endpoint.carried);
    endpoints.into_iter().try_for_each(|carried| without_any(carried, IN_TRAFFIC_ENDPOINT))?;
    request.update_pdrs.iter().try_for_each(update_pdr)?;
    request.create_qers.iter().try_for_each(|qer| without_any(&qer.carried, IN_QER))?;
    request.update_qers.iter().try_for_each(|qer| without_any(&qer.carried, IN_QER))?;
    request.create_urrs.iter().try_for_each(create_urr)?;
    request.update_urrs.iter().try_for_each(update_urr)?;
    request.create_fars.iter().try_for_each(|far| {
        without_any(&far.carried, IN_FAR)?;
        far.forwarding_parameters.iter().try_for_each(|to| forwarding(&to.carried, policies))?;
        far.duplicating_parameters.iter().try_for_each(|to| copying(&to.carried, policies))
    })?;
    request.update_fars.iter().try_for_each(|far| {
        without_any(&far.carried, IN_FAR)?;
        far.parameters().into_iter().try_for_each(|to| forwarding(&to.carried, policies))?;
        far.update_duplicating_parameters.iter().try_for_each(|to| copying(&to.carried, policies))
    })
}

/// More URRs than can be told of at once, one with an ID that is ours, or one that measures nothing.
pub(crate) fn urrs(rules: &rules::Rules) -> Result<(), Refusal> {
    let blame = |cause, urr: &rules::Urr| Refusal {
        failed_rule_id: Some(FailedRuleId::Urr(urr.id.0)),
        ..Refusal::of(cause)
    };
    let ours = rules.urrs.iter().find(|urr| urr.id.0 >= OWN_METERS);
    let refusal = match (rules.urrs.get(URRS), ours) {
        (Some(excess), _) => Some(blame(Cause::NoResourcesAvailable, excess)),
        (None, ours) => ours.map(|ours| blame(Cause::RuleCreationModificationFailure, ours)),
    };
    refusal.map_or(Ok(()), Err)?;
    match rules.urrs.iter().find(|urr| limits_events(urr) && !urr.methods.event) {
        Some(urr) => {
            let refusal = Refusal::incorrect(ie::MEASUREMENT_METHOD);
            Err(Refusal { failed_rule_id: Some(FailedRuleId::Urr(urr.id.0)), ..refusal })
        }
        None => Ok(()),
    }
}

/// Whether it asks for a number of events, which only means something where they are measured (TS 29.244 table 7.5.2.4-1).
fn limits_events(urr: &rules::Urr) -> bool {
    let triggers = [Triggers::EVENT_THRESHOLD, Triggers::EVENT_QUOTA];
    let says = |threshold: Option<u32>, quota: Option<u32>| threshold.or(quota).is_some();
    triggers.iter().any(|trigger| urr.triggers.contains(*trigger))
        || says(urr.event_threshold, urr.event_quota)
        || urr.monitoring().any(|time| says(time.event_threshold, time.event_quota))
}

fn create_pdr(pdr: &CreatePdr) -> Result<(), Refusal> {
    without_any(&pdr.carried, IN_PDR)?;
    pdi(&pdr.pdi)
}

fn update_pdr(pdr: &UpdatePdr) -> Result<(), Refusal> {
    without_any(&pdr.carried, IN_PDR)?;
    pdr.pdi.iter().try_for_each(pdi)
}

fn pdi(pdi: &Pdi) -> Result<(), Refusal> {
    without_any(&pdi.carried, IN_PDI)
}

fn copying(carried: &[RawIe], policies: &[ForwardingPolicy]) -> Result<(), Refusal> {
    without_any(carried, IN_DUPLICATING)?;
    forwarding(carried, policies)
}

/// Policies are those that the operator has configured.
fn forwarding(carried: &[RawIe], policies: &[ForwardingPolicy]) -> Result<(), Refusal> {
    without_any(carried, IN_FORWARDING)?;
    let asked = carried.iter().filter(|other| other.ie == ie::FORWARDING_POLICY && !other.value.is_empty());
    let is_known = |policy: &RawIe| {
        policy::name(policy).is_some_and(|name| policies.iter().any(|known| known.name.as_bytes() == name))
    };
    match asked.into_iter().all(is_known) {
        true => Ok(()),
        false => Err(Refusal::blaming(Cause::InvalidForwardingPolicy, ie::FORWARDING_POLICY)),
    }
}

fn create_urr(urr: &CreateUrr) -> Result<(), Refusal> {
    without_any(&urr.carried, IN_URR)?;
    measurement(urr.measurement_information)?;
    let is_periodic = |triggers: &ReportingTriggers| triggers.bits() & Triggers::PERIODIC.0 != 0;
    match urr.measurement_period {
        None if is_periodic(&urr.reporting_triggers) => {
            Err(Refusal::blaming(Cause::ConditionalIeMissing, ie::MEASUREMENT_PERIOD))
        }
        period => positive(period),
    }
}

fn update_urr(urr: &UpdateUrr) -> Result<(), Refusal> {
    without_any(&urr.carried, IN_URR)?;
    measurement(urr.measurement_information)?;
    positive(urr.measurement_period)
}

fn measurement(bits: Option<u8>) -> Result<(), Refusal> {
    without(bits.is_some_and(|bits| bits & MEASUREMENT_REFUSED != 0), ie::MEASUREMENT_INFORMATION)
}

fn positive(period: Option<u32>) -> Result<(), Refusal> {
    if period == Some(0) { Err(Refusal::incorrect(ie::MEASUREMENT_PERIOD)) } else { Ok(()) }
}
