//! What the control planes of Open5GS have in common.

use super::{About, Change, Endpoint, Flow};
use crate::smf::messages::{self, far_into, sdf};
use crate::tunnel::Tunnel;
use pfcp::request::{self, far, far_action, pdr, qer, updates};
use pfcp::{
    ApplyAction, CreateBar, CreateFar, CreatePdr, CreateUrr, DestinationInterface, FTeid,
    ForwardingParameters, NetworkInstance, OuterHeaderRemoval, Pdi, Rates, ReportingTriggers, SdfFilter,
    SessionModificationRequest, SourceInterface, UpdateFar, UpdatePdr, UpdateQer, UpdateUrr, Volumes, flags,
};
use rules::Teid;

/// The SMF numbers rules in the order it makes them: downlink first, then the pair of the control plane.
pub(super) const DOWNLINK_PDR: u16 = 1;
pub(super) const UPLINK_PDR: u16 = 2;
const FROM_CP_PDR: u16 = 3;
const TO_CP_PDR: u16 = 4;
const FLOW_DOWNLINK_PDR: u16 = 5;
const FLOW_UPLINK_PDR: u16 = 6;
const FORWARDING_PDR: u16 = 7;
pub(super) const DOWNLINK_FAR: u32 = 1;
const UPLINK_FAR: u32 = 2;
const TO_CP_FAR: u32 = 3;
const FLOW_DOWNLINK_FAR: u32 = 4;
const FLOW_UPLINK_FAR: u32 = 5;
const FORWARDING_FAR: u32 = 6;
pub(super) const QER: u32 = 1;
const FLOW_QER: u32 = 2;
pub(super) const URR: u32 = 1;
pub(super) const BAR: u8 = 1;

/// The default flow comes last, and what is for the control plane before it.
const PRECEDENCE: u32 = 65_535;
const CP_PRECEDENCE: u32 = 255;
const FLOW_PRECEDENCE: u32 = 5;
/// Of the session's tunnel, and of that of packets forwarded while a handover lasts.
const CHOOSE_ID: u8 = 5;
const FORWARDING_CHOOSE_ID: u8 = 10;

/// 3GPP Interface Types (TS 29.244 8.2.118).
pub(super) const S1_U: u8 = 0;
pub(super) const S5_U: u8 = 1;
const N3: u8 = 11;
const N6: u8 = 17;

/// Without online charging, usage is told every 100 MB.
const THRESHOLD: u64 = 100 << 20;
/// Of what online charging grants.
const VALIDITY_S: u32 = 3_600;
/// What every default flow may use, each way.
const AMBR: Rates = Rates { uplink_kbps: 1_000_000, downlink_kbps: 1_000_000 };

/// Encoded as labels.
pub(super) fn dnn() -> NetworkInstance {
    NetworkInstance::labels("internet")
}

/// Its Apply Action has two octets.
pub(super) const fn buffer() -> ApplyAction {
    ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP)
}

pub(super) const fn forward() -> ApplyAction {
    ApplyAction::new(ApplyAction::FORW)
}

/// Any family: the user plane answers with what it has.
pub(super) const fn choose(choose_id: Option<u8>) -> FTeid {
    FTeid::Choose { ipv4: true, ipv6: true, choose_id }
}

pub(super) fn removal() -> Option<OuterHeaderRemoval> {
    Some(OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP))
}

pub(super) fn bar() -> Option<CreateBar> {
    Some(CreateBar { bar_id: BAR, ..CreateBar::default() })
}

/// IMSI, IMEISV and MSISDN, each with its length (TS 29.244 8.2.101).
pub(super) fn user_id() -> Option<Vec<u8>> {
    let imsi = [0x99, 0x79, 0, 0, 0, 0, 0, 0xf1];
    let imeisv = [0x68, 0x56, 0x07, 0x04, 0x40, 0x50, 0x03, 0xf1];
    let msisdn = [0x94, 0x71, 0x52, 0x76, 0, 0x41];
    Some([&[0b111, 8][..], &imsi, &[8], &imeisv, &[6], &msisdn].concat())
}

/// Its own GTP-U endpoint for the session.
pub(super) fn control_plane(of: About<'_>) -> Tunnel {
    let low = u32::try_from(of.session.seid & u64::from(u32::MAX)).unwrap_or_default();
    Tunnel { teid: Teid(low), address: of.settings.address }
}

pub(super) fn named(source: SourceInterface, interface_type: u8) -> Pdi {
    let network_instance = Some(dnn());
    Pdi { network_instance, interface_type: Some(interface_type), ..Pdi::new(source) }
}

pub(super) fn towards(
    to: DestinationInterface,
    interface_type: u8,
    tunnel: Option<Tunnel>,
) -> ForwardingParameters {
    ForwardingParameters {
        network_instance: Some(dnn()),
        outer_header_creation: tunnel.map(messages::outer_header),
        interface_type: Some(interface_type),
        ..ForwardingParameters::new(to)
    }
}

/// Endpoints by what they are chosen, or by what they were.
pub(super) struct Endpoints {
    pub(super) session: FTeid,
    pub(super) control_plane: FTeid,
}

impl Endpoints {
    pub(super) const CHOSEN: Self = Self { session: choose(Some(CHOOSE_ID)), control_plane: choose(None) };
}

/// Four PDRs: each way, and a pair for router solicitations and advertisements through the SMF, which is there in sessions
/// without IPv6, too. The PDR from the control plane has no QER, so no QFI, and no network instance.
pub(super) fn pdrs(of: About<'_>, at: &Endpoints) -> [CreatePdr; 4] {
    let plan = &of.session.plan;
    let down = Pdi { ue_ip_addresses: messages::ue(plan, true), ..named(SourceInterface::Core, N6) };
    let up = Pdi { f_teid: Some(at.session), ..named(SourceInterface::Access, N3) };
    let from_cp = Pdi { f_teid: Some(at.control_plane), ..Pdi::new(SourceInterface::CpFunction) };
    let solicitations = SdfFilter::flow("permit out 58 from ff02::2/128 to assigned");
    let to_cp = Pdi { sdf_filters: vec![solicitations], ..up.clone() };
    let from_tunnel = |pdr| CreatePdr { outer_header_removal: removal(), ..pdr };
    let metered = |pdr| CreatePdr { qer_ids: vec![QER], ..pdr };
    [
        metered(pdr((DOWNLINK_PDR, DOWNLINK_FAR), PRECEDENCE, down)),
        metered(from_tunnel(pdr((UPLINK_PDR, UPLINK_FAR), PRECEDENCE, up))),
        from_tunnel(pdr((FROM_CP_PDR, DOWNLINK_FAR), CP_PRECEDENCE, from_cp)),
        from_tunnel(pdr((TO_CP_PDR, TO_CP_FAR), CP_PRECEDENCE, to_cp)),
    ]
}

/// Downlink as given, uplink to the data network, and to the control plane.
pub(super) fn fars(of: About<'_>, downlink: CreateFar) -> Vec<CreateFar> {
    let to_core = towards(DestinationInterface::Core, N6, None);
    let to_cp = ForwardingParameters {
        outer_header_creation: Some(messages::outer_header(control_plane(of))),
        ..ForwardingParameters::new(DestinationInterface::CpFunction)
    };
    vec![downlink, far(UPLINK_FAR, forward(), Some(to_core)), far(TO_CP_FAR, forward(), Some(to_cp))]
}

/// No forwarding parameters yet.
pub(super) fn buffering(far_id: u32) -> CreateFar {
    CreateFar { bar_id: Some(BAR), ..far(far_id, buffer(), None) }
}

/// What is there from the start, into the radio's tunnel, or the SGW's.
pub(super) fn open(tunnel: Tunnel) -> CreateFar {
    far(DOWNLINK_FAR, forward(), Some(towards(DestinationInterface::Access, N3, Some(tunnel))))
}

/// With the session's AMBR.
pub(super) fn default_qer(of: About<'_>, qfi: Option<u8>) -> pfcp::CreateQer {
    qer(QER, messages::mbr(&of.session.plan).or(Some(AMBR)), qfi)
}

/// Of the downlink PDR alone. With online charging (Gy), quotas and how long they are valid (VTIME), and packets are counted, too
/// (MNOP), as the user plane says it can do both.
pub(super) fn urr(of: About<'_>) -> CreateUrr {
    let volume = |total| Some(Volumes { total: Some(total), ..Volumes::default() });
    let urr = |triggers| CreateUrr::new(URR, flags::METHOD_VOLUM, ReportingTriggers::new(triggers));
    match of.session.plan.report_after_bytes {
        Some(quota) => CreateUrr {
            volume_quota: volume(quota),
            quota_validity_time: Some(VALIDITY_S),
            measurement_information: Some(flags::MEASUREMENT_MNOP),
            ..urr(ReportingTriggers::VOLQU | ReportingTriggers::QUVTI)
        },
        None => CreateUrr { volume_threshold: volume(THRESHOLD), ..urr(ReportingTriggers::VOLTH) },
    }
}

pub(super) fn measured(pdr: CreatePdr) -> CreatePdr {
    CreatePdr { urr_ids: vec![URR], ..pdr }
}

pub(super) fn idle() -> SessionModificationRequest {
    updates(vec![UpdateFar { bar_id: Some(BAR), ..far_action(DOWNLINK_FAR, buffer()) }])
}

/// The flag for end markers stands among the forwarding parameters.
pub(super) fn into_radio(far_id: u32, tunnel: Tunnel, flags: Option<u8>) -> UpdateFar {
    let mut update = far_into(far_id, DestinationInterface::Access, tunnel);
    if let Some(to) = &mut update.update_forwarding_parameters {
        (to.network_instance, to.interface_type) = (Some(dnn()), Some(N3));
        to.pfcpsm_req_flags = flags;
    }
    update
}

/// `None` of what no control plane of Open5GS does.
pub(super) fn change(
    of: About<'_>,
    change: Change,
    generation: &Generation,
) -> Option<SessionModificationRequest> {
    Some(match change {
        Change::Handover(to) => updates(vec![into_radio(DOWNLINK_FAR, to, Some(flags::PFCPSM_SNDEM))]),
        Change::AddFlow(flow) => add_flow(&flow, generation),
        Change::ActivateFlow(flow) => {
            let tunnel = if generation.has_qos_flows { of.session.plan.downlink } else { flow.downlink };
            updates(vec![into_radio(FLOW_DOWNLINK_FAR, tunnel, None)])
        }
        Change::ModifyFlow(flow) => modify_flow(&flow),
        Change::RemoveFlow => request::removals(
            &[FLOW_DOWNLINK_PDR, FLOW_UPLINK_PDR],
            &[FLOW_DOWNLINK_FAR, FLOW_UPLINK_FAR],
            &[FLOW_QER],
        ),
        Change::Forward(to) => forward_to(to),
        Change::EndForwarding => request::removals(&[FORWARDING_PDR], &[FORWARDING_FAR], &[]),
        Change::QueryUsage => request::query(URR),
        Change::Grant(bytes) => grant(bytes),
        Change::Branch(_) | Change::EndBranch | Change::EndCharging => return None,
    })
}

/// Which radio network it is for.
pub(super) struct Generation {
    /// 5G: flows of a session share its tunnels and are told apart by QFI. Of 4G, each bearer has its own.
    pub(super) has_qos_flows: bool,
}

/// The same filter of both PDRs, and so of one ID.
fn filters(flow: &Flow) -> Vec<SdfFilter> {
    sdf(flow.server, flow.port).into_iter().map(|sdf| SdfFilter { filter_id: Some(1), ..sdf }).collect()
}

/// No UE address on either PDR; the downlink waits for the radio.
fn add_flow(flow: &Flow, generation: &Generation) -> SessionModificationRequest {
    let qfi = generation.has_qos_flows.then_some(flow.qfi.value());
    let sdf_filters = filters(flow);
    let down = Pdi { sdf_filters: sdf_filters.clone(), ..named(SourceInterface::Core, N6) };
    // The session's CHOOSE ID stands for the session's tunnel, though it was chosen by another request.
    let f_teid = Some(choose(generation.has_qos_flows.then_some(CHOOSE_ID)));
    let qfis = qfi.into_iter().collect();
    let up = Pdi { sdf_filters, f_teid, qfis, ..named(SourceInterface::Access, N3) };
    let metered = |pdr| CreatePdr { qer_ids: vec![FLOW_QER], ..pdr };
    let up = pdr((FLOW_UPLINK_PDR, FLOW_UPLINK_FAR), FLOW_PRECEDENCE + 1, up);
    let to_core = towards(DestinationInterface::Core, N6, None);
    SessionModificationRequest {
        create_pdrs: vec![
            metered(pdr((FLOW_DOWNLINK_PDR, FLOW_DOWNLINK_FAR), FLOW_PRECEDENCE, down)),
            metered(CreatePdr { outer_header_removal: removal(), ..up }),
        ],
        create_fars: vec![buffering(FLOW_DOWNLINK_FAR), far(FLOW_UPLINK_FAR, forward(), Some(to_core))],
        create_qers: vec![qer(FLOW_QER, Some(AMBR), qfi)],
        ..SessionModificationRequest::default()
    }
}

/// New filters, without the F-TEID, and new rates.
fn modify_flow(flow: &Flow) -> SessionModificationRequest {
    let update = |pdr_id, source, interface_type| UpdatePdr {
        pdr_id,
        pdi: Some(Pdi { sdf_filters: filters(flow), ..named(source, interface_type) }),
        ..UpdatePdr::default()
    };
    SessionModificationRequest {
        update_pdrs: vec![
            update(FLOW_DOWNLINK_PDR, SourceInterface::Core, N6),
            update(FLOW_UPLINK_PDR, SourceInterface::Access, N3),
        ],
        update_qers: vec![UpdateQer { qer_id: FLOW_QER, mbr: Some(AMBR), ..UpdateQer::default() }],
        ..SessionModificationRequest::default()
    }
}

/// From radio to radio, before all other PDRs.
fn forward_to(to: Tunnel) -> SessionModificationRequest {
    let f_teid = Some(choose(Some(FORWARDING_CHOOSE_ID)));
    let pdi = Pdi { f_teid, ..named(SourceInterface::Access, N3) };
    let pdr = pdr((FORWARDING_PDR, FORWARDING_FAR), 1, pdi);
    let to = towards(DestinationInterface::Access, N3, Some(to));
    SessionModificationRequest {
        create_pdrs: vec![CreatePdr { outer_header_removal: removal(), ..pdr }],
        create_fars: vec![far(FORWARDING_FAR, forward(), Some(to))],
        ..SessionModificationRequest::default()
    }
}

fn grant(bytes: u64) -> SessionModificationRequest {
    let volume_quota = Some(Volumes { total: Some(bytes), ..Volumes::default() });
    let update = UpdateUrr { urr_id: URR, volume_quota, ..UpdateUrr::default() };
    SessionModificationRequest { update_urrs: vec![update], ..SessionModificationRequest::default() }
}

pub(super) const fn pdr_at(endpoint: Endpoint) -> Option<u16> {
    match endpoint {
        Endpoint::Uplink => Some(UPLINK_PDR),
        Endpoint::ControlPlane => Some(FROM_CP_PDR),
        Endpoint::FlowUplink => Some(FLOW_UPLINK_PDR),
        Endpoint::Forwarding => Some(FORWARDING_PDR),
        Endpoint::Core | Endpoint::FlowCore => None,
    }
}
