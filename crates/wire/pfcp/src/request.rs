//! What requests of control planes are put together of, each piece with nothing in it that was not asked for: the emulator, the
//! benchmark and the tests say the same things, and say them here. What else a message has is added with `..`.

use crate::{
    ApplyAction, AssociationSetupRequest, CpFunctionFeatures, CreateFar, CreatePdr, CreateQer,
    DestinationInterface, ForwardingParameters, Gate, GateStatus, NodeId, OuterHeaderCreation, Pdi, QueryUrr,
    Rates, RemoveFar, RemovePdr, RemoveQer, SessionModificationRequest, UpdateFar,
    UpdateForwardingParameters,
};

/// Of a control plane without any optional feature.
pub fn setup(node_id: NodeId, recovery_time_stamp: u32) -> AssociationSetupRequest {
    AssociationSetupRequest {
        cp_function_features: Some(CpFunctionFeatures::of(&[])),
        ..AssociationSetupRequest::new(node_id, recovery_time_stamp)
    }
}

/// By its own ID and its FAR's; the lower the precedence, the earlier it is matched.
pub fn pdr((pdr_id, far_id): (u16, u32), precedence: u32, pdi: Pdi) -> CreatePdr {
    CreatePdr { precedence: Some(precedence), far_id: Some(far_id), ..CreatePdr::new(pdr_id, pdi) }
}

/// With forwarding parameters or without.
pub fn far(far_id: u32, apply_action: ApplyAction, to: Option<ForwardingParameters>) -> CreateFar {
    CreateFar { forwarding_parameters: to, ..CreateFar::new(far_id, apply_action) }
}

/// Open both ways; rates in kbit/s.
pub fn qer(qer_id: u32, mbr: Option<Rates>, qfi: Option<u8>) -> CreateQer {
    let gates = GateStatus { uplink: Gate::Open, downlink: Gate::Open };
    CreateQer { mbr, qfi, ..CreateQer::new(qer_id, gates) }
}

/// New actions and parameters of FARs.
pub fn updates(update_fars: Vec<UpdateFar>) -> SessionModificationRequest {
    SessionModificationRequest { update_fars, ..SessionModificationRequest::default() }
}

/// A new action, the parameters as they were.
pub fn far_action(far_id: u32, apply_action: ApplyAction) -> UpdateFar {
    UpdateFar { apply_action: Some(apply_action), ..UpdateFar::new(far_id) }
}

/// Forwards into another tunnel from now on.
pub fn far_into(far_id: u32, to: DestinationInterface, tunnel: OuterHeaderCreation) -> UpdateFar {
    let parameters = UpdateForwardingParameters {
        destination_interface: Some(to),
        outer_header_creation: Some(tunnel),
        ..UpdateForwardingParameters::default()
    };
    UpdateFar {
        update_forwarding_parameters: Some(parameters),
        ..far_action(far_id, ApplyAction::new(ApplyAction::FORW))
    }
}

/// PDRs, FARs and QERs that go.
pub fn removals(pdrs: &[u16], fars: &[u32], qers: &[u32]) -> SessionModificationRequest {
    SessionModificationRequest {
        remove_pdrs: pdrs.iter().copied().map(RemovePdr::new).collect(),
        remove_fars: fars.iter().copied().map(RemoveFar::new).collect(),
        remove_qers: qers.iter().copied().map(RemoveQer::new).collect(),
        ..SessionModificationRequest::default()
    }
}

/// A URR that is to report at once.
pub fn query(urr_id: u32) -> SessionModificationRequest {
    let query_urrs = vec![QueryUrr::new(urr_id)];
    SessionModificationRequest { query_urrs, ..SessionModificationRequest::default() }
}
