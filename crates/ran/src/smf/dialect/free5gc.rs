//! The SMF of free5GC (INTEROP: free5GC SMF): it gives endpoints itself, and names networks in plain text.

use super::plain::{
    DOWNLINK_FAR, DOWNLINK_PDR, FLOW_DOWNLINK_PDR, FLOW_PRECEDENCE, FLOW_QER, FLOW_UPLINK_PDR, PRECEDENCE,
    QER, UPLINK_FAR, UPLINK_PDR, URR, explicit, f_teid, pdr_at, removal,
};
use super::{About, Change, Endpoint, Flow, Phrases};
use crate::smf::messages::{self, f_seid, far_into, sdf, ue};
use crate::tunnel::Tunnel;
use pfcp::request::{self, far, far_action, pdr, qer, updates};
use pfcp::{
    ApplyAction, CreateBar, CreateFar, CreatePdr, CreateUrr, DestinationInterface, ForwardingParameters,
    NetworkInstance, Pdi, Rates, ReportingTriggers, SessionEstablishmentRequest, SessionModificationRequest,
    SourceInterface, UpdateFar, UpdateForwardingParameters, UpdateUrr, Volumes, flags,
};

/// The session's AMBR, beside the flow's QER: each PDR has both.
const AMBR_QER: u32 = 2;
/// Counts after QoS enforcement, where the other counts before.
pub(super) const URR_AFTER: u32 = 4;
/// The first BAR has no number.
pub(super) const BAR: u8 = 0;
const AMBR: Rates = Rates { uplink_kbps: 1_000_000, downlink_kbps: 2_000_000 };

pub(super) struct Free5gc;

impl Phrases for Free5gc {
    /// Downlink packets are dropped until N2 has told of the radio.
    fn establishment(&self, of: About<'_>) -> SessionEstablishmentRequest {
        let pdrs = [up(of, UPLINK_PDR, PRECEDENCE), down(of, DOWNLINK_PDR, PRECEDENCE)];
        let pdrs = pdrs.map(|pdr| metered(measured(of, pdr)));
        let to_core = ForwardingParameters {
            network_instance: dnn(),
            ..ForwardingParameters::new(DestinationInterface::Core)
        };
        let fars = vec![
            far(UPLINK_FAR, short(ApplyAction::FORW), Some(to_core)),
            far(DOWNLINK_FAR, short(ApplyAction::DROP), None),
        ];
        let request = establishment(of, pdrs.to_vec(), fars);
        SessionEstablishmentRequest { create_urrs: urrs(of), ..request }
    }

    fn activation(&self, of: About<'_>) -> SessionModificationRequest {
        told(of, updates(vec![into_radio(of.session.plan.downlink, 0)]))
    }

    fn idle(&self, of: About<'_>) -> SessionModificationRequest {
        asleep(of)
    }

    fn change(&self, of: About<'_>, change: Change) -> Option<SessionModificationRequest> {
        let request = match change {
            Change::Handover(to) => updates(vec![into_radio(to, flags::PFCPSM_SNDEM)]),
            Change::AddFlow(flow) => add_flow(of, &flow),
            Change::RemoveFlow => request::removals(&[FLOW_DOWNLINK_PDR, FLOW_UPLINK_PDR], &[], &[FLOW_QER]),
            Change::QueryUsage if is_charged(of) => request::query(URR),
            Change::Grant(bytes) if is_charged(of) => grant(bytes),
            _ => return None,
        };
        Some(told(of, request))
    }

    fn pdr_at(&self, endpoint: Endpoint) -> Option<u16> {
        pdr_at(endpoint)
    }

    /// Messages about sessions have the MP flag.
    fn priority(&self) -> Option<u8> {
        Some(0)
    }
}

/// Of one octet.
pub(super) const fn short(action: u16) -> ApplyAction {
    ApplyAction::short(action as u8)
}

/// As it stands in the configuration, not as labels.
pub(super) fn dnn() -> Option<NetworkInstance> {
    Some(NetworkInstance::text("internet"))
}

/// With the session's QERs and the BAR, which every user plane on the way gets.
pub(super) fn establishment(
    of: About<'_>,
    pdrs: Vec<CreatePdr>,
    fars: Vec<CreateFar>,
) -> SessionEstablishmentRequest {
    let plan = &of.session.plan;
    let flow = qer(QER, messages::mbr_or_zeros(plan), Some(plan.qfi.value()));
    SessionEstablishmentRequest {
        create_qers: vec![qer(AMBR_QER, Some(AMBR), Some(0)), flow],
        create_bar: Some(CreateBar { downlink_data_notification_delay: Some(0), ..CreateBar::new(BAR) }),
        ..messages::establishment(of, pdrs, fars)
    }
}

pub(super) fn metered(pdr: CreatePdr) -> CreatePdr {
    CreatePdr { qer_ids: vec![AMBR_QER, QER], ..pdr }
}

/// Every modification names the F-SEID again.
pub(super) fn told(of: About<'_>, request: SessionModificationRequest) -> SessionModificationRequest {
    SessionModificationRequest { cp_f_seid: Some(f_seid(of)), ..request }
}

/// All parameters of the FAR come again, whatever its action is.
pub(super) fn asleep(of: About<'_>) -> SessionModificationRequest {
    let awake = into_radio(of.session.plan.downlink, 0);
    let action = far_action(DOWNLINK_FAR, short(ApplyAction::BUFF | ApplyAction::NOCP));
    let parameters = awake.update_forwarding_parameters;
    told(
        of,
        updates(vec![UpdateFar { update_forwarding_parameters: parameters, bar_id: Some(BAR), ..action }]),
    )
}

pub(super) fn is_charged(of: About<'_>) -> bool {
    of.session.plan.report_after_bytes.is_some()
}

/// The UE's address is in both PDIs, and never said to be the destination.
pub(super) fn named(of: About<'_>, source: SourceInterface) -> Pdi {
    let ue_ip_addresses = ue(&of.session.plan, false);
    Pdi { network_instance: dnn(), ue_ip_addresses, ..Pdi::new(source) }
}

pub(super) fn up(of: About<'_>, pdr_id: u16, precedence: u32) -> CreatePdr {
    let f_teid = of.uplink().map_or_else(|| f_teid(of), explicit);
    let pdi = Pdi { f_teid: Some(f_teid), ..named(of, SourceInterface::Access) };
    CreatePdr { outer_header_removal: Some(removal()), ..pdr((pdr_id, UPLINK_FAR), precedence, pdi) }
}

fn down(of: About<'_>, pdr_id: u16, precedence: u32) -> CreatePdr {
    pdr((pdr_id, DOWNLINK_FAR), precedence, named(of, SourceInterface::Core))
}

fn measured(of: About<'_>, pdr: CreatePdr) -> CreatePdr {
    CreatePdr { urr_ids: urrs(of).iter().map(|urr| urr.urr_id).collect(), ..pdr }
}

/// Where there is charging: before QoS enforcement and after it, with thresholds that say no volume yet.
fn urrs(of: About<'_>) -> Vec<CreateUrr> {
    let urr = |urr_id, measurement_information| CreateUrr {
        urr_id,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(ReportingTriggers::VOLTH),
        volume_threshold: Some(Volumes::default()),
        measurement_information: Some(measurement_information),
        ..CreateUrr::default()
    };
    let all = [urr(URR, flags::MEASUREMENT_MBQE), urr(URR_AFTER, 0)];
    all.into_iter().filter(|_| is_charged(of)).collect()
}

/// With flags, though none may be set.
pub(super) fn into_radio(tunnel: Tunnel, flags: u8) -> UpdateFar {
    let update = far_into(DOWNLINK_FAR, DestinationInterface::Access, tunnel);
    let parameters = update.update_forwarding_parameters.map(|to| UpdateForwardingParameters {
        network_instance: dnn(),
        pfcpsm_req_flags: Some(flags),
        ..to
    });
    let apply_action = Some(short(ApplyAction::FORW));
    UpdateFar { update_forwarding_parameters: parameters, bar_id: Some(BAR), apply_action, ..update }
}

/// Of a PCC rule: filters on both PDRs, the FARs of the session, and a QER beside the AMBR's.
fn add_flow(of: About<'_>, flow: &Flow) -> SessionModificationRequest {
    let filtered = |mut pdr: CreatePdr| {
        pdr.pdi.sdf_filters = sdf(flow.server, flow.port);
        CreatePdr { qer_ids: vec![AMBR_QER, FLOW_QER], ..measured(of, pdr) }
    };
    let down = down(of, FLOW_DOWNLINK_PDR, FLOW_PRECEDENCE);
    SessionModificationRequest {
        create_pdrs: vec![filtered(up(of, FLOW_UPLINK_PDR, FLOW_PRECEDENCE)), filtered(down)],
        create_qers: vec![qer(FLOW_QER, Some(AMBR), Some(flow.qfi.value()))],
        ..SessionModificationRequest::default()
    }
}

/// Now the threshold says its volume.
fn grant(bytes: u64) -> SessionModificationRequest {
    let volume_threshold = Some(Volumes { total: Some(bytes), ..Volumes::default() });
    let update = |urr_id| UpdateUrr { urr_id, volume_threshold, ..UpdateUrr::default() };
    let update_urrs = vec![update(URR), update(URR_AFTER)];
    SessionModificationRequest { update_urrs, ..SessionModificationRequest::default() }
}
