//! Networks that rules lead from and to: such as there are, and those of their forwarding policies.

use super::pdr::of_pdr;
use crate::config::Config;
use crate::refusal::Refusal;
use pfcp::{Cause, FailedRuleId, ie};
use rules::{ApplyAction, Far, ForwardingParameters, Instance, Interface, Pdr, Rules};

/// Rules that are what they were before the request stay, whatever has come to be configured since.
pub(super) fn check(before: &Rules, after: &Rules, config: &Config) -> Result<(), Refusal> {
    if config.has_no_nameless_network {
        let mut pdrs = after.pdrs.iter().filter(|pdr| is_nameless(pdr));
        let pdr = pdrs.find(|pdr| !before.pdrs.contains(pdr));
        pdr.map_or(Ok(()), |pdr| Err(of_pdr(nameless(), pdr.id)))?;
        let mut fars = after.fars.iter().filter(|far| leads_nowhere(far));
        let far = fars.find(|far| !before.fars.contains(far));
        far.map_or(Ok(()), |far| Err(of_far(nameless(), far)))?;
    }
    let mut fars = after.fars.iter().filter(|far| leads_elsewhere(far, config));
    let far = fars.find(|far| !before.fars.contains(far));
    let refusal = Refusal::blaming(Cause::InvalidForwardingPolicy, ie::FORWARDING_POLICY);
    far.map_or(Ok(()), |far| Err(of_far(refusal, far)))
}

/// Packets that are not in a tunnel are of the network of their port.
fn is_nameless(pdr: &Pdr) -> bool {
    let is_plain = pdr.pdi.source_interface != Interface::Access && pdr.pdi.f_teid.is_none();
    is_plain && pdr.pdi.instance == Instance::DEFAULT
}

/// Where packets leave a FAR outside of tunnels.
fn plain(far: &Far) -> Option<&ForwardingParameters> {
    let has_tunnel =
        |to: &ForwardingParameters| to.outer_header_creation.is_some_and(|it| it.teid().is_some());
    far.forwarding.as_ref().filter(|to| to.destination_interface != Interface::Access && !has_tunnel(to))
}

/// No route is of a network that is not there. A policy needs none, and requests that are redirected go by the answer to them.
fn leads_nowhere(far: &Far) -> bool {
    let is_nameless = |to: &ForwardingParameters| to.instance == Instance::DEFAULT && to.policy.is_none();
    let forwards = far.apply_action == ApplyAction::Forward && far.redirect.is_none();
    forwards && plain(far).is_some_and(is_nameless)
}

/// The policy is of another network than the FAR.
fn leads_elsewhere(far: &Far, config: &Config) -> bool {
    let Some(to) = plain(far) else { return false };
    let network = to.policy.and_then(|policy| config.network_of(policy));
    network.is_some_and(|network| network != to.instance)
}

fn nameless() -> Refusal {
    Refusal::blaming(Cause::RuleCreationModificationFailure, ie::NETWORK_INSTANCE)
}

fn of_far(refusal: Refusal, far: &Far) -> Refusal {
    Refusal { failed_rule_id: Some(FailedRuleId::Far(far.id.0)), ..refusal }
}
