//! Our own way: nothing that is not needed.

use super::{About, Change, Endpoint, Flow, Phrases};
use crate::smf::event::PduSession;
use crate::smf::messages::{self, far_into, sdf, ue};
use crate::tunnel::Tunnel;
use pfcp::request::{self, far, far_action, pdr, qer, updates};
use pfcp::{
    ApplyAction, CpFeature, CreateFar, CreatePdr, CreateUrr, DestinationInterface, FTeid,
    ForwardingParameters, OuterHeaderRemoval, Pdi, PdnType, ReportingTriggers, SessionEstablishmentRequest,
    SessionModificationRequest, SourceInterface, UpdatePdr, Volumes, flags,
};

/// The rules of a session, each by what it is for.
pub(super) const UPLINK_PDR: u16 = 1;
pub(super) const DOWNLINK_PDR: u16 = 2;
pub(super) const FLOW_DOWNLINK_PDR: u16 = 3;
pub(super) const FLOW_UPLINK_PDR: u16 = 4;
pub(super) const UPLINK_FAR: u32 = 1;
pub(super) const DOWNLINK_FAR: u32 = 2;
pub(super) const QER: u32 = 1;
pub(super) const FLOW_QER: u32 = 3;
pub(in crate::smf) const URR: u32 = 1;
/// Of MAC addresses.
pub(in crate::smf) const MACS_URR: u32 = 2;
/// After so many seconds without frames an address is no longer in use.
const MACS_INACTIVE_S: u32 = 30;
/// Between the ID of a PDR and that of one that activates rules in its place.
const ACTIVATING: u16 = 10;
/// Of both PDRs: they never match the same packet.
pub(super) const PRECEDENCE: u32 = 255;
/// Of PDRs that go before them.
pub(super) const FLOW_PRECEDENCE: u32 = 100;
/// PDRs of a session with the same CHOOSE ID share an F-TEID (TS 29.244 8.2.3).
const CHOOSE_ID: u8 = 1;

pub(super) struct Plain;

impl Phrases for Plain {
    fn features(&self) -> &'static [CpFeature] {
        &[CpFeature::Rpgur]
    }

    /// Downlink packets are dropped: the gNB's tunnel comes later, as it does in TS 23.502 4.3.2.2.1, where the gNB
    /// answers after the session was made.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        let plan = &of.session.plan;
        let fars = vec![uplink_far(), far(DOWNLINK_FAR, ApplyAction::new(ApplyAction::DROP), None)];
        let request = messages::establishment(of, pdrs(of), fars);
        SessionEstablishmentRequest {
            create_urrs: urr(plan).into_iter().chain(macs_urr(plan)).collect(),
            create_qers: vec![qer(QER, messages::mbr(plan), Some(plan.qfi.value()))],
            pdn_type: if plan.ethernet { Some(PdnType::Ethernet) } else { request.pdn_type },
            ..request
        }
    }

    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        match change {
            Change::Handover(to) => Some(handover(to)),
            Change::AddFlow(flow) => Some(add_flow(of, &flow)),
            Change::ModifyFlow(flow) => Some(modify_flow(of, &flow)),
            Change::RemoveFlow => {
                Some(request::removals(&[FLOW_DOWNLINK_PDR, FLOW_UPLINK_PDR], &[], &[FLOW_QER]))
            }
            Change::QueryUsage => of.session.plan.report_after_bytes.map(|_| request::query(URR)),
            _ => None,
        }
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        pdr_at(endpoint)
    }
}

/// The gNB's PDU session has one endpoint for all its flows.
pub(super) const fn pdr_at(endpoint: Endpoint) -> Option<u16> {
    match endpoint {
        Endpoint::Uplink => Some(UPLINK_PDR),
        Endpoint::FlowUplink => Some(FLOW_UPLINK_PDR),
        Endpoint::Core | Endpoint::ControlPlane | Endpoint::FlowCore | Endpoint::Forwarding => None,
    }
}

/// The downlink goes into the gNB's tunnel.
pub(super) fn activation(of: About<'_>) -> SessionModificationRequest {
    updates(vec![downlink_into(of.session.plan.downlink)])
}

fn downlink_into(tunnel: Tunnel) -> pfcp::UpdateFar {
    far_into(DOWNLINK_FAR, DestinationInterface::Access, tunnel)
}

/// Downlink packets are kept, and the first is told of (TS 23.502 4.2.6).
pub(super) fn idle() -> SessionModificationRequest {
    updates(vec![far_action(DOWNLINK_FAR, ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP))])
}

/// The flag stands in the request, for all its FARs (TS 29.244 5.4.2.2).
fn handover(to: Tunnel) -> SessionModificationRequest {
    let flags = Some(flags::PFCPSM_SNDEM);
    SessionModificationRequest { pfcpsm_req_flags: flags, ..updates(vec![downlink_into(to)]) }
}

/// One each way, and where rules of the user plane's are to be activated, another each way that stands for them.
fn pdrs(of: About<'_>) -> Vec<CreatePdr> {
    let plan = &of.session.plan;
    let plain = [uplink_pdr(of), downlink_pdr(plan)].map(|pdr| measured(plan, pdr));
    let rules: Vec<_> = plan.predefined_rules.iter().map(|name| name.clone().into_bytes()).collect();
    let activating = |pdr: &CreatePdr| CreatePdr {
        pdr_id: pdr.pdr_id + ACTIVATING,
        // The rules' own.
        precedence: None,
        activate_predefined_rules: rules.clone(),
        ..pdr.clone()
    };
    let others: Vec<_> = plain.iter().filter(|_| !rules.is_empty()).map(activating).collect();
    plain.into_iter().chain(others).collect()
}

fn uplink_pdr(of: About<'_>) -> CreatePdr {
    let plan = &of.session.plan;
    let from_radio = pdi(SourceInterface::Access, plan);
    let pdi = Pdi { f_teid: Some(f_teid(of)), qfis: vec![plan.qfi.value()], ..from_radio };
    let pdr = pdr((UPLINK_PDR, UPLINK_FAR), PRECEDENCE, pdi);
    CreatePdr { outer_header_removal: Some(removal()), qer_ids: vec![QER], ..pdr }
}

/// The endpoint that we pick, where the operator wants us to.
pub(super) fn f_teid(of: About<'_>) -> FTeid {
    match of.session.picked_uplink(of.settings.f_teid) {
        Some(tunnel) => explicit(tunnel),
        None => FTeid::choose(Some(CHOOSE_ID)),
    }
}

pub(super) const fn explicit(Tunnel { teid, address }: Tunnel) -> FTeid {
    FTeid::ipv4(teid.0, address)
}

pub(super) const fn removal() -> OuterHeaderRemoval {
    OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV4)
}

fn downlink_pdr(plan: &PduSession) -> CreatePdr {
    let pdr = pdr((DOWNLINK_PDR, DOWNLINK_FAR), PRECEDENCE, pdi(SourceInterface::Core, plan));
    CreatePdr { qer_ids: vec![QER], ..pdr }
}

/// The UE's packets that come from there: it is their source from the radio, their destination otherwise.
fn pdi(source_interface: SourceInterface, plan: &PduSession) -> Pdi {
    let is_destination = source_interface != SourceInterface::Access;
    Pdi {
        ue_ip_addresses: if plan.ethernet { vec![] } else { ue(plan, is_destination) },
        // Of downlink PDRs (TS 29.244 7.5.2.2-2).
        ethernet_pdu_session_information: (plan.ethernet && is_destination).then_some(flags::ETHERNET_ETHI),
        ..Pdi::new(source_interface)
    }
}

fn uplink_far() -> CreateFar {
    let to_core = ForwardingParameters::new(DestinationInterface::Core);
    far(UPLINK_FAR, ApplyAction::new(ApplyAction::FORW), Some(to_core))
}

/// Bytes both ways, of all packets, told after so many.
fn urr(plan: &PduSession) -> Option<CreateUrr> {
    let threshold = plan.report_after_bytes?;
    Some(CreateUrr {
        urr_id: URR,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(ReportingTriggers::VOLTH),
        volume_threshold: Some(Volumes { total: Some(threshold), ..Volumes::default() }),
        ..CreateUrr::default()
    })
}

/// MAC addresses behind the UE, as they come and go.
fn macs_urr(plan: &PduSession) -> Option<CreateUrr> {
    plan.ethernet.then(|| CreateUrr {
        urr_id: MACS_URR,
        measurement_method: flags::METHOD_EVENT,
        reporting_triggers: ReportingTriggers::new(ReportingTriggers::MACAR),
        ethernet_inactivity_timer: Some(MACS_INACTIVE_S),
        ..CreateUrr::default()
    })
}

fn measured(plan: &PduSession, pdr: CreatePdr) -> CreatePdr {
    let volume = plan.report_after_bytes.map(|_| URR);
    let urr_ids = volume.into_iter().chain(plan.ethernet.then_some(MACS_URR)).collect();
    CreatePdr { urr_ids, ..pdr }
}

fn add_flow(of: About<'_>, flow: &Flow) -> SessionModificationRequest {
    let plan = &of.session.plan;
    let [down, up] = flow_pdis(of, flow);
    let pdr = |id, far, pdi| CreatePdr {
        qer_ids: vec![FLOW_QER],
        ..measured(plan, pdr((id, far), FLOW_PRECEDENCE, pdi))
    };
    let up = pdr(FLOW_UPLINK_PDR, UPLINK_FAR, up);
    SessionModificationRequest {
        create_pdrs: vec![
            pdr(FLOW_DOWNLINK_PDR, DOWNLINK_FAR, down),
            CreatePdr { outer_header_removal: Some(removal()), ..up },
        ],
        create_qers: vec![qer(FLOW_QER, None, Some(flow.qfi.value()))],
        ..SessionModificationRequest::default()
    }
}

/// Its uplink packets come in where all others do.
fn flow_pdis(of: About<'_>, flow: &Flow) -> [Pdi; 2] {
    let plan = &of.session.plan;
    let sdf_filters = sdf(flow.server, flow.port);
    let down = Pdi { sdf_filters: sdf_filters.clone(), ..pdi(SourceInterface::Core, plan) };
    let from_radio = pdi(SourceInterface::Access, plan);
    let f_teid = of.uplink().map(explicit);
    [down, Pdi { sdf_filters, f_teid, qfis: vec![flow.qfi.value()], ..from_radio }]
}

fn modify_flow(of: About<'_>, flow: &Flow) -> SessionModificationRequest {
    let [down, up] = flow_pdis(of, flow);
    let update = |pdr_id, pdi| UpdatePdr { pdr_id, pdi: Some(pdi), ..UpdatePdr::default() };
    let update_pdrs = vec![update(FLOW_DOWNLINK_PDR, down), update(FLOW_UPLINK_PDR, up)];
    SessionModificationRequest { update_pdrs, ..SessionModificationRequest::default() }
}
