//! The SGW-C of Open5GS, over Sxa: from tunnel to tunnel, nothing metered or measured, and PDRs without precedence.

use super::open5gs::{S1_U, S5_U, buffering, choose, dnn, forward, named, removal, towards};
use super::{About, Change, Endpoint, Flow, Phrases, open5gs};
use crate::smf::messages::{self, far_into};
use crate::tunnel::Tunnel;
use pfcp::request::{self, far, far_action, pdr, updates};
use pfcp::{
    CreatePdr, DestinationInterface, Pdi, SessionEstablishmentRequest, SessionModificationRequest,
    SourceInterface, UpdateFar, UpdatePdr, flags,
};

const DOWNLINK: (u16, u32) = (1, 1);
const UPLINK: (u16, u32) = (2, 2);
/// It makes the uplink of a dedicated bearer before the downlink, and numbers both when it hears of the bearer.
const FLOW_DOWNLINK: (u16, u32) = (3, 3);
const FLOW_UPLINK: (u16, u32) = (4, 4);
const FORWARDING: (u16, u32) = (5, 5);

pub(super) struct Open5gsSgwC;

impl Phrases for Open5gsSgwC {
    /// Neither the eNB nor the PGW has told its end yet: both ways are buffered, and the outer headers stay on.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        let pdrs = vec![from_core(DOWNLINK), from_radio(UPLINK)];
        let fars = vec![buffering(DOWNLINK.1), buffering(UPLINK.1)];
        SessionEstablishmentRequest {
            create_bar: open5gs::bar(),
            pdn_type: None,
            ..messages::establishment(of, pdrs, fars)
        }
    }

    /// Both have: outer headers come off, and packets go on.
    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        let plan = &of.session.plan;
        let removes = |pdr_id| UpdatePdr { pdr_id, outer_header_removal: removal(), ..UpdatePdr::default() };
        let beyond = plan.beyond.map(|tunnel| into_core(UPLINK.1, tunnel));
        SessionModificationRequest {
            update_pdrs: vec![removes(DOWNLINK.0), removes(UPLINK.0)],
            update_fars: beyond.into_iter().chain([into_radio(plan.downlink, None)]).collect(),
            ..SessionModificationRequest::default()
        }
    }

    fn idle(&self, _of: About<'_>) -> SessionModificationRequest {
        let update = far_action(DOWNLINK.1, open5gs::buffer());
        updates(vec![UpdateFar { bar_id: Some(open5gs::BAR), ..update }])
    }

    fn wake(&self, of: About<'_>) -> SessionModificationRequest {
        updates(vec![into_radio(of.session.plan.downlink, None)])
    }

    /// It neither filters nor measures.
    fn change(&self, _of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        match change {
            Change::Handover(to) => Some(updates(vec![into_radio(to, Some(flags::PFCPSM_SNDEM))])),
            Change::AddFlow(flow) => Some(add_uplink(&flow)),
            Change::ActivateFlow(flow) => Some(add_downlink(&flow)),
            Change::RemoveFlow => Some(remove(&[FLOW_DOWNLINK, FLOW_UPLINK])),
            Change::Forward(to) => Some(forward_to(to)),
            Change::EndForwarding => Some(remove(&[FORWARDING])),
            _ => None,
        }
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        match endpoint {
            Endpoint::Uplink => Some(UPLINK.0),
            Endpoint::Core => Some(DOWNLINK.0),
            Endpoint::FlowUplink => Some(FLOW_UPLINK.0),
            Endpoint::FlowCore => Some(FLOW_DOWNLINK.0),
            Endpoint::Forwarding => Some(FORWARDING.0),
            Endpoint::ControlPlane => None,
        }
    }
}

/// No CHOOSE ID: each PDR has an endpoint of its own.
fn bare(ids: (u16, u32), pdi: Pdi) -> CreatePdr {
    CreatePdr { precedence: None, ..pdr(ids, 0, Pdi { f_teid: Some(choose(None)), ..pdi }) }
}

fn from_radio(ids: (u16, u32)) -> CreatePdr {
    bare(ids, named(SourceInterface::Access, S1_U))
}

fn from_core(ids: (u16, u32)) -> CreatePdr {
    bare(ids, named(SourceInterface::Core, S5_U))
}

fn into_core(far_id: u32, tunnel: Tunnel) -> UpdateFar {
    let mut update = far_into(far_id, DestinationInterface::Core, tunnel);
    if let Some(to) = &mut update.update_forwarding_parameters {
        (to.network_instance, to.interface_type) = (Some(dnn()), Some(S5_U));
    }
    update
}

fn into_radio(tunnel: Tunnel, flags: Option<u8>) -> UpdateFar {
    let mut update = open5gs::into_radio(DOWNLINK.1, tunnel, flags);
    if let Some(to) = &mut update.update_forwarding_parameters {
        to.interface_type = Some(S1_U);
    }
    update
}

/// Of a bearer that comes later the outer header removal is there at once.
fn with(pdr: CreatePdr, far: pfcp::CreateFar) -> SessionModificationRequest {
    SessionModificationRequest {
        create_pdrs: vec![CreatePdr { outer_header_removal: removal(), ..pdr }],
        create_fars: vec![far],
        ..SessionModificationRequest::default()
    }
}

fn add_uplink(flow: &Flow) -> SessionModificationRequest {
    let to = towards(DestinationInterface::Core, S5_U, Some(flow.beyond));
    with(from_radio(FLOW_UPLINK), far(FLOW_UPLINK.1, forward(), Some(to)))
}

fn add_downlink(flow: &Flow) -> SessionModificationRequest {
    let to = towards(DestinationInterface::Access, S1_U, Some(flow.downlink));
    with(from_core(FLOW_DOWNLINK), far(FLOW_DOWNLINK.1, forward(), Some(to)))
}

fn forward_to(tunnel: Tunnel) -> SessionModificationRequest {
    let to = towards(DestinationInterface::Access, S1_U, Some(tunnel));
    with(from_radio(FORWARDING), far(FORWARDING.1, forward(), Some(to)))
}

fn remove(rules: &[(u16, u32)]) -> SessionModificationRequest {
    let (pdrs, fars): (Vec<u16>, Vec<u32>) = rules.iter().copied().unzip();
    request::removals(&pdrs, &fars, &[])
}
