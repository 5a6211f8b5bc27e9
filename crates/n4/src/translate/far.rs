//! FARs, and the end markers of paths that change.

use super::known::Known;
use super::policy;
use crate::config::GtpuAddress;
use crate::refusal::Refusal;
use crate::values::{self, Action};
use pfcp::{
    Cause, CreateFar, DuplicatingParameters, SessionModificationRequest, UpdateDuplicatingParameters,
    UpdateFar, UpdateForwardingParameters, flags, ie,
};
use rules::{
    ApplyAction, BarId, Far, FarId, FarUpdate, ForwardingParameters, ForwardingUpdate, Instance, Interface,
    OuterHeaderCreation, RuleError, RuleRef, Rules,
};

/// What a destination is read by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Networks<'a> {
    /// Names of networks mean something.
    pub(super) has_instances: bool,
    pub(super) ours: &'a [GtpuAddress],
}

pub(super) fn far(far: &CreateFar, networks: Networks<'_>) -> Result<Far, Refusal> {
    let Action { apply_action, notify, duplicates } = values::first_action(far.apply_action)?;
    let forwards = apply_action == ApplyAction::Forward;
    let forwarding = |to| forwarding(to, forwards, networks);
    let forwarding = far.forwarding_parameters.as_ref().map(forwarding).transpose()?;
    let copies = far.duplicating_parameters.as_slice();
    if duplicates && copies.is_empty() {
        return Err(Refusal::blaming(Cause::ConditionalIeMissing, ie::DUPLICATING_PARAMETERS));
    }
    let redirect = far.forwarding_parameters.as_ref().and_then(|to| to.redirect_information.as_ref());
    let enrichment = far.forwarding_parameters.as_ref().and_then(|to| to.header_enrichment.as_ref());
    Ok(Far {
        id: FarId(far.far_id),
        apply_action,
        notify,
        forwarding,
        duplicating: duplicates,
        duplicates: super::each(copies, |to| copy(to, networks))?,
        bar: far.bar_id.map(BarId),
        redirect: redirect.map(values::redirect).transpose()?,
        enrichment: enrichment.map(values::enrichment).transpose()?,
    })
}

/// The traffic endpoint a FAR names as that of the other direction. It must be there, and that is all it does.
pub(super) fn linked(far: &CreateFar) -> (FarId, Option<u8>) {
    let to = far.forwarding_parameters.as_ref();
    (FarId(far.far_id), to.and_then(|to| to.linked_traffic_endpoint_id))
}

/// As [`linked`].
pub(super) fn linked_anew(far: &UpdateFar) -> (FarId, Option<u8>) {
    let to = far.parameters();
    (FarId(far.far_id), to.and_then(|to| to.linked_traffic_endpoint_id))
}

fn forwarding(
    to: &pfcp::ForwardingParameters,
    forwards: bool,
    Networks { has_instances, ours }: Networks<'_>,
) -> Result<ForwardingParameters, Refusal> {
    let creation = to.outer_header_creation.as_ref();
    let has_tunnel = creation.is_some_and(values::is_tunnel);
    let header = creation.map_or(Ok(None), |creation| values::outer_header(creation, forwards, ours))?;
    Ok(ForwardingParameters {
        destination_interface: values::destination(to.destination_interface, has_tunnel)?,
        instance: values::instance(to.network_instance.as_ref(), has_instances),
        outer_header_creation: header,
        dscp: to.transport_level_marking.map(values::dscp),
        policy: policy::of(&to.carried),
    })
}

fn copy(
    to: &DuplicatingParameters,
    Networks { ours, .. }: Networks<'_>,
) -> Result<ForwardingParameters, Refusal> {
    let creation = to.outer_header_creation.as_ref();
    Ok(ForwardingParameters {
        destination_interface: values::copy_destination(to.destination_interface)?,
        // Where copies go has no name (TS 29.244 table 7.5.2.3-3).
        instance: Instance::DEFAULT,
        outer_header_creation: creation
            .map_or(Ok(None), |creation| values::outer_header(creation, true, ours))?,
        dscp: to.transport_level_marking.map(values::dscp),
        policy: policy::of(&to.carried),
    })
}

pub(super) fn update(
    fars: &Known<'_, FarId, Far>,
    update: &UpdateFar,
    networks: Networks<'_>,
) -> Result<FarUpdate, Refusal> {
    let id = FarId(update.far_id);
    let before = fars.get(id);
    let action = update.apply_action.map(values::apply_action).transpose()?;
    let apply_action = action.map(|action| action.apply_action);
    let forwards = apply_action.or(before.map(|far| far.apply_action)) == Some(ApplyAction::Forward);
    let parameters = update.parameters();
    let instance = parameters.and_then(|to| new_instance(to, networks.has_instances));
    let forwarding =
        parameters.map(|to| forwarding_update((before, forwards), to, networks.ours)).transpose()?;
    let forwarding = forwarding.map(|to| ForwardingUpdate { instance, ..to });
    let no_bar = update.removes(ie::BAR_ID).then_some(None);
    let redirect = parameters.and_then(|to| to.redirect_information.as_ref());
    let enrichment = parameters.and_then(|to| to.header_enrichment.as_ref());
    let ends = |ie| parameters.is_some_and(|to| to.removes(ie)).then_some(None);
    Ok(FarUpdate {
        id,
        apply_action,
        notify: action.map(|action| action.notify),
        forwarding,
        duplicating: action.map(|action| action.duplicates),
        duplicates: copies(before, update, (action, networks.ours))?,
        bar: update.bar_id.map(|bar| Some(BarId(bar))).or(no_bar),
        redirect: redirect.map(values::redirect).transpose()?.map(Some).or(ends(ie::REDIRECT_INFORMATION)),
        enrichment: enrichment
            .map(values::enrichment)
            .transpose()?
            .map(Some)
            .or(parameters.is_some_and(|to| to.removes(ie::HEADER_ENRICHMENT)).then_some(None)),
    })
}

fn forwarding_update(
    (before, forwards): (Option<&Far>, bool),
    to: &UpdateForwardingParameters,
    ours: &[GtpuAddress],
) -> Result<ForwardingUpdate, Refusal> {
    let creation = to.outer_header_creation.as_ref();
    let before = before.and_then(|far| far.forwarding?.outer_header_creation);
    let has_tunnel = match creation {
        Some(creation) => values::is_tunnel(creation),
        None => before.is_some_and(|before| before.teid().is_some()),
    };
    let header = creation.map(|creation| values::outer_header(creation, forwards, ours)).transpose()?;
    Ok(ForwardingUpdate {
        destination_interface: to
            .destination_interface
            .map(|interface| values::destination(interface, has_tunnel))
            .transpose()?,
        instance: None,
        outer_header_creation: header.or(to.removes(ie::OUTER_HEADER_CREATION).then_some(None)),
        dscp: to
            .transport_level_marking
            .map(|marking| Some(values::dscp(marking)))
            .or(to.removes(ie::TRANSPORT_LEVEL_MARKING).then_some(None)),
        policy: policy::update(&to.carried),
    })
}

fn new_instance(to: &UpdateForwardingParameters, has_instances: bool) -> Option<Instance> {
    let is_said = to.network_instance.is_some() || to.removes(ie::NETWORK_INSTANCE);
    is_said.then(|| values::instance(to.network_instance.as_ref(), has_instances))
}

/// Where copies go from now on. That is not forgotten while none are made: it comes again only when it changes (TS 29.244
/// 7.5.4.3).
fn copies(
    before: Option<&Far>,
    update: &UpdateFar,
    (action, ours): (Option<Action>, &[GtpuAddress]),
) -> Result<Option<Vec<ForwardingParameters>>, Refusal> {
    let old = before.map_or(&[][..], |far| &far.duplicates);
    let updates = &update.update_duplicating_parameters;
    if update.removes(ie::UPDATE_DUPLICATING_PARAMETERS) {
        return Ok(Some(vec![]));
    }
    if updates.is_empty() {
        let begins = action.is_some_and(|action| action.duplicates);
        return match begins && old.is_empty() {
            true => Err(Refusal::blaming(Cause::ConditionalIeMissing, ie::UPDATE_DUPLICATING_PARAMETERS)),
            false => Ok(None),
        };
    }
    let olds = old.iter().map(Some).chain(std::iter::repeat(None));
    let updated = updates.iter().zip(olds).map(|(update, old)| copy_update(update, old, ours));
    let kept = old.iter().skip(updates.len()).map(|kept| Ok(*kept));
    updated.chain(kept).collect::<Result<_, _>>().map(Some)
}

fn copy_update(
    to: &UpdateDuplicatingParameters,
    old: Option<&ForwardingParameters>,
    ours: &[GtpuAddress],
) -> Result<ForwardingParameters, Refusal> {
    let named = to.destination_interface.map(values::copy_destination).transpose()?;
    let missing = Refusal::blaming(Cause::ConditionalIeMissing, ie::DESTINATION_INTERFACE);
    let header = match &to.outer_header_creation {
        Some(creation) => values::outer_header(creation, true, ours)?,
        None if to.removes(ie::OUTER_HEADER_CREATION) => None,
        None => old.and_then(|old| old.outer_header_creation),
    };
    let dscp = match to.transport_level_marking {
        Some(marking) => Some(values::dscp(marking)),
        None if to.removes(ie::TRANSPORT_LEVEL_MARKING) => None,
        None => old.and_then(|old| old.dscp),
    };
    Ok(ForwardingParameters {
        destination_interface: named.or(old.map(|old| old.destination_interface)).ok_or(missing)?,
        instance: Instance::DEFAULT,
        outer_header_creation: header,
        dscp,
        policy: policy::update(&to.carried).unwrap_or(old.and_then(|old| old.policy)),
    })
}

/// What an update is to say of a FAR that has been told nowhere to forward to: where that is, if it says something, or else anything.
pub(super) fn refused(error: RuleError, request: &SessionModificationRequest) -> Refusal {
    let refusal = Refusal::from(error);
    let RuleError::NoForwardingParameters(RuleRef::Far(id)) = error else { return refusal };
    let mut updates = request.update_fars.iter().filter(|update| update.far_id == id.0).peekable();
    let is_updated = updates.peek().is_some();
    let says_something = updates.any(|update| update.parameters().is_some());
    let missing = match (is_updated, says_something) {
        (false, _) => ie::FORWARDING_PARAMETERS,
        (true, false) => ie::UPDATE_FORWARDING_PARAMETERS,
        (true, true) => ie::DESTINATION_INTERFACE,
    };
    Refusal { offending_ie: Some(missing), ..refusal }
}

/// The tunnels towards the radio that the request replaces and wants an end marker in (TS 29.244 5.4.2.2): each
/// once, however many FARs had it. Some control planes ask FAR by FAR, some for the request as a whole.
pub(super) fn end_markers(
    before: &Known<'_, FarId, Far>,
    after: &Rules,
    request: &SessionModificationRequest,
) -> Vec<OuterHeaderCreation> {
    let asks = |bits: Option<u8>| bits.is_some_and(|bits| bits & flags::PFCPSM_SNDEM != 0);
    let whole = asks(request.pfcpsm_req_flags);
    let mut ended = Vec::new();
    for update in &request.update_fars {
        let parameters = update.parameters();
        let is_asked = whole || parameters.is_some_and(|to| asks(to.pfcpsm_req_flags));
        let old = before.get(FarId(update.far_id)).and_then(tunnel_to_radio).filter(|_| is_asked);
        let now = after.fars.iter().find(|far| far.id.0 == update.far_id).and_then(tunnel_to_radio);
        ended.extend(old.filter(|old| now != Some(*old) && !ended.contains(old)));
    }
    ended
}

fn tunnel_to_radio(far: &Far) -> Option<OuterHeaderCreation> {
    let to = far.forwarding.filter(|to| to.destination_interface == Interface::Access)?;
    to.outer_header_creation.filter(|to| to.teid().is_some())
}
