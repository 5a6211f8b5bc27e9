//! The SMF of OMEC (INTEROP: OMEC SMF): it asks for an endpoint of no family, leaves the UE's address to user planes that choose
//! addresses (UEIP), and the data network is SGi-LAN.

use super::plain::{
    DOWNLINK_FAR, DOWNLINK_PDR, FLOW_DOWNLINK_PDR, FLOW_PRECEDENCE, FLOW_QER, FLOW_UPLINK_PDR, PRECEDENCE,
    QER, UPLINK_FAR, UPLINK_PDR, explicit, pdr_at, removal,
};
use super::{About, Change, Endpoint, Flow, Phrases};
use crate::smf::messages::{self, f_seid, far_into, sdf, ue};
use crate::tunnel::Tunnel;
use pfcp::request::{self, far, far_action, pdr, qer, updates};
use pfcp::{
    ApplyAction, CreatePdr, DestinationInterface, FTeid, ForwardingParameters, NetworkInstance, Pdi, PdnType,
    Rates, RawIe, SdfFilter, SessionDeletionRequest, SessionEstablishmentRequest, SessionModificationRequest,
    SourceInterface, UeIpAddress, UpdateFar, UpdateForwardingParameters, flags, ie,
};

/// The session's, which all its PDRs share; each has one of its flow besides.
const SESSION_QER: u32 = 2;
const AMBR: Rates = Rates { uplink_kbps: 1_000_000, downlink_kbps: 1_000_000 };
/// Neither V4 nor V6, which TS 29.244 8.2.3 asks for.
const CHOOSE: FTeid = FTeid::Choose { ipv4: false, ipv6: false, choose_id: None };

pub(super) struct Omec;

impl Phrases for Omec {
    /// Downlink packets are told of without being buffered. No URR, no BAR.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        let plan = &of.session.plan;
        let pdrs = [up(of, CHOOSE, (UPLINK_PDR, PRECEDENCE)), down(of, DOWNLINK_PDR, PRECEDENCE)];
        let all = SdfFilter::flow("permit out ip from any to assigned");
        let pdrs = pdrs.map(|pdr| with(pdr, vec![all.clone()], QER));
        let to = |to| ForwardingParameters { network_instance: dnn(), ..ForwardingParameters::new(to) };
        let fars = vec![
            far(UPLINK_FAR, short(ApplyAction::FORW), Some(to(DestinationInterface::SgiLan))),
            far(DOWNLINK_FAR, short(ApplyAction::NOCP), Some(to(DestinationInterface::Access))),
        ];
        SessionEstablishmentRequest {
            create_qers: vec![
                qer(QER, messages::mbr_or_zeros(plan), Some(plan.qfi.value())),
                qer(SESSION_QER, Some(AMBR), Some(0)),
            ],
            // Whatever the session is.
            pdn_type: Some(PdnType::Ipv4),
            ..messages::establishment(of, pdrs.to_vec(), fars)
        }
    }

    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        told(of, updates(vec![into_radio(of.session.plan.downlink, None)]))
    }

    fn idle(&self, of: About<'_>) -> SessionModificationRequest {
        told(of, updates(vec![far_action(DOWNLINK_FAR, short(ApplyAction::BUFF | ApplyAction::NOCP))]))
    }

    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        let request = match change {
            Change::Handover(to) => updates(vec![into_radio(to, Some(flags::PFCPSM_SNDEM))]),
            Change::AddFlow(flow) => add_flow(of, &flow),
            Change::RemoveFlow => request::removals(&[FLOW_DOWNLINK_PDR, FLOW_UPLINK_PDR], &[], &[FLOW_QER]),
            _ => return None,
        };
        Some(told(of, request))
    }

    /// It names the F-SEID in deletions as well, where there is no such IE (TS 29.244 7.5.6).
    fn deletion(&self, of: About<'_>) -> SessionDeletionRequest {
        let seid = of.session.seid.to_be_bytes();
        let value = [&[0b10][..], &seid, &of.settings.address.octets()].concat();
        SessionDeletionRequest { carried: vec![RawIe { ie: ie::F_SEID, value }] }
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        pdr_at(endpoint)
    }

    /// The MP flag, and this.
    fn priority(&self) -> Option<u8> {
        Some(12)
    }
}

/// Of one octet.
const fn short(action: u16) -> ApplyAction {
    ApplyAction::short(action as u8)
}

fn dnn() -> Option<NetworkInstance> {
    Some(NetworkInstance::text("internet"))
}

/// Every modification names the F-SEID again.
fn told(of: About<'_>, request: SessionModificationRequest) -> SessionModificationRequest {
    SessionModificationRequest { cp_f_seid: Some(f_seid(of)), ..request }
}

fn up(of: About<'_>, f_teid: FTeid, (pdr_id, precedence): (u16, u32)) -> CreatePdr {
    let pdi = Pdi { f_teid: Some(f_teid), ..named(of, SourceInterface::Access) };
    CreatePdr { outer_header_removal: Some(removal()), ..pdr((pdr_id, UPLINK_FAR), precedence, pdi) }
}

fn down(of: About<'_>, pdr_id: u16, precedence: u32) -> CreatePdr {
    pdr((pdr_id, DOWNLINK_FAR), precedence, named(of, SourceInterface::Core))
}

/// The UE's address is in both PDIs, or asked for in both, and never said to be the destination.
fn named(of: About<'_>, source: SourceInterface) -> Pdi {
    let plan = &of.session.plan;
    let asked = UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() };
    let ue_ip_addresses = if plan.asks_for_address { vec![asked] } else { ue(plan, false) };
    Pdi { ue_ip_addresses, network_instance: dnn(), ..Pdi::new(source) }
}

/// One SDF filter, and the flow's QER beside the session's.
fn with(mut pdr: CreatePdr, sdf_filters: Vec<SdfFilter>, qer: u32) -> CreatePdr {
    pdr.pdi.sdf_filters = sdf_filters;
    CreatePdr { qer_ids: vec![qer, SESSION_QER], ..pdr }
}

/// It says Forwarding Parameters, where an Update FAR has others.
fn into_radio(tunnel: Tunnel, flags: Option<u8>) -> UpdateFar {
    let update = far_into(DOWNLINK_FAR, DestinationInterface::Access, tunnel);
    let parameters = update.update_forwarding_parameters.map(|to| UpdateForwardingParameters {
        network_instance: dnn(),
        pfcpsm_req_flags: flags,
        ..to
    });
    let apply_action = Some(short(ApplyAction::FORW));
    UpdateFar {
        update_forwarding_parameters: None,
        forwarding_parameters: parameters,
        apply_action,
        ..update
    }
}

fn add_flow(of: About<'_>, flow: &Flow) -> SessionModificationRequest {
    let f_teid = of.uplink().map_or(CHOOSE, explicit);
    let pdrs =
        [up(of, f_teid, (FLOW_UPLINK_PDR, FLOW_PRECEDENCE)), down(of, FLOW_DOWNLINK_PDR, FLOW_PRECEDENCE)];
    let filtered = |pdr| with(pdr, sdf(flow.server, flow.port), FLOW_QER);
    SessionModificationRequest {
        create_pdrs: pdrs.map(filtered).to_vec(),
        create_qers: vec![qer(FLOW_QER, Some(AMBR), Some(flow.qfi.value()))],
        ..SessionModificationRequest::default()
    }
}
