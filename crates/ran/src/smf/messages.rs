//! What we send, word by word.

use super::event::Settings;
use super::session::{Remote, Session};
use crate::tunnel::Tunnel;
use pfcp::{
    ApplyAction, AssociationReleaseRequest, AssociationSetupRequest, CpFunctionFeatures, CreateFar,
    CreatePdr, CreateQer, CreateUrr, DestinationInterface, FSeid, FTeid, ForwardingParameters, Gate,
    GateStatus, HeartbeatRequest, Message, OuterHeaderCreation, OuterHeaderRemoval, Pdi, PdnType, Rates,
    ReportingTriggers, SessionDeletionRequest, SessionEstablishmentRequest, SessionModificationRequest,
    SourceInterface, UeIpAddress, UpdateFar, UpdateForwardingParameters, Volumes, flags,
};

/// Until [`super::Smf`] sends it.
const UNNUMBERED: u32 = 0;
/// The rules of a session, each by what it is for.
pub(super) const UPLINK_PDR: u16 = 1;
const DOWNLINK_PDR: u16 = 2;
const UPLINK_FAR: u32 = 1;
const DOWNLINK_FAR: u32 = 2;
const QER: u32 = 1;
const URR: u32 = 1;
/// Of MAC addresses.
pub(super) const MACS_URR: u32 = 2;
/// After so many seconds without frames an address is no longer in use.
const MACS_INACTIVE_S: u32 = 30;
/// The reporting trigger of volume thresholds (TS 29.244 8.2.19).
const VOLTH: u32 = 1 << 1;
/// That of MAC addresses.
const MACAR: u32 = 1 << 11;
/// Of both PDRs: they never match the same packet.
/// Between the ID of a PDR and that of one that activates rules in its place.
const ACTIVATING: u16 = 10;
const PRECEDENCE: u32 = 255;
/// PDRs of a session with the same CHOOSE ID share an F-TEID (TS 29.244 8.2.3).
const CHOOSE_ID: u8 = 1;

pub(super) fn setup(settings: &Settings) -> Message {
    let request = AssociationSetupRequest {
        node_id: settings.node_id.clone(),
        recovery_time_stamp: settings.recovery_time_stamp,
        up_function_features: None,
        cp_function_features: Some(CpFunctionFeatures::of(&[])),
        pools: vec![],
        smf_set_id: None,
        alternatives: vec![],
        carried: vec![],
    };
    Message::node(UNNUMBERED, request)
}

pub(super) fn heartbeat(settings: &Settings) -> Message {
    let recovery_time_stamp = settings.recovery_time_stamp;
    Message::node(UNNUMBERED, HeartbeatRequest { recovery_time_stamp, carried: vec![] })
}

pub(super) fn release(settings: &Settings) -> Message {
    let node_id = settings.node_id.clone();
    Message::node(UNNUMBERED, AssociationReleaseRequest { node_id, carried: vec![] })
}

/// Uplink forwarded to the data network, downlink dropped: the gNB's tunnel comes by [`modification`], as it does in
/// TS 23.502 4.3.2.2.1, where the gNB answers after the session was made.
pub(super) fn establishment(settings: &Settings, session: &Session) -> Message {
    let request = SessionEstablishmentRequest {
        node_id: settings.node_id.clone(),
        cp_f_seid: FSeid::new(session.seid, settings.address.into()),
        create_pdrs: pdrs(settings, session),
        create_fars: vec![uplink_far(), downlink_far()],
        create_urrs: urr(session).into_iter().chain(macs_urr(session)).collect(),
        create_qers: vec![qer(session)],
        create_bar: None,
        pdn_type: Some(if session.plan.ethernet { PdnType::Ethernet } else { PdnType::Ipv4 }),
        user_plane_inactivity_timer: None,
        user_id: None,
        apn_dnn: None,
        s_nssai: None,
        pfcpse_req_flags: None,
        create_traffic_endpoints: vec![],
        fq_csids: vec![],
        group_id: None,
        carried: vec![],
    };
    // The user plane has no SEID for it yet (TS 29.244 7.2.2.4.2).
    Message::session(0, UNNUMBERED, request)
}

/// One each way, and where rules of the user plane's are to be activated, another each way that stands for them.
fn pdrs(settings: &Settings, session: &Session) -> Vec<CreatePdr> {
    let plain = [uplink_pdr(settings, session), downlink_pdr(session)];
    let plain = plain.map(|pdr| measured(session, pdr));
    let rules: Vec<_> = session.plan.predefined_rules.iter().map(|name| name.clone().into_bytes()).collect();
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

fn uplink_pdr(settings: &Settings, session: &Session) -> CreatePdr {
    let f_teid = match session.picked_uplink(settings.f_teid) {
        Some(tunnel) => FTeid::Explicit { teid: tunnel.teid.0, ipv4: Some(tunnel.address), ipv6: None },
        None => FTeid::Choose { ipv4: true, ipv6: false, choose_id: Some(CHOOSE_ID) },
    };
    let pdi = Pdi {
        f_teid: Some(f_teid),
        qfis: vec![session.plan.qfi.value()],
        ..pdi(SourceInterface::Access, session)
    };
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV4);
    CreatePdr { outer_header_removal: Some(removal), ..pdr(UPLINK_PDR, UPLINK_FAR, pdi) }
}

fn downlink_pdr(session: &Session) -> CreatePdr {
    pdr(DOWNLINK_PDR, DOWNLINK_FAR, pdi(SourceInterface::Core, session))
}

fn pdr(pdr_id: u16, far_id: u32, pdi: Pdi) -> CreatePdr {
    CreatePdr {
        pdr_id,
        precedence: Some(PRECEDENCE),
        pdi,
        outer_header_removal: None,
        far_id: Some(far_id),
        urr_ids: vec![],
        qer_ids: vec![QER],
        activate_predefined_rules: vec![],
        ue_ip_address_pool: None,
        carried: vec![],
    }
}

/// The UE's packets that come from there: it is their source from the radio, their destination otherwise.
fn pdi(source_interface: SourceInterface, session: &Session) -> Pdi {
    let is_destination = source_interface != SourceInterface::Access;
    let ue = UeIpAddress { ipv4: Some(session.plan.ue), is_destination, ..UeIpAddress::default() };
    Pdi {
        source_interface,
        f_teid: None,
        network_instance: None,
        ue_ip_addresses: if session.plan.ethernet { vec![] } else { vec![ue] },
        traffic_endpoint_id: None,
        // Of downlink PDRs (TS 29.244 7.5.2.2-2).
        ethernet_pdu_session_information: (session.plan.ethernet && is_destination)
            .then_some(flags::ETHERNET_ETHI),
        ethernet_packet_filters: vec![],
        sdf_filters: vec![],
        application_id: None,
        qfis: vec![],
        interface_type: None,
        carried: vec![],
    }
}

fn uplink_far() -> CreateFar {
    let forwarding_parameters = ForwardingParameters {
        destination_interface: DestinationInterface::Core,
        network_instance: None,
        outer_header_creation: None,
        transport_level_marking: None,
        redirect_information: None,
        header_enrichment: None,
        interface_type: None,
        linked_traffic_endpoint_id: None,
        carried: vec![],
    };
    far(UPLINK_FAR, ApplyAction::FORW, Some(forwarding_parameters))
}

fn downlink_far() -> CreateFar {
    far(DOWNLINK_FAR, ApplyAction::DROP, None)
}

fn far(far_id: u32, action: u16, forwarding_parameters: Option<ForwardingParameters>) -> CreateFar {
    let apply_action = ApplyAction::new(action);
    CreateFar {
        far_id,
        apply_action,
        forwarding_parameters,
        duplicating_parameters: vec![],
        bar_id: None,
        carried: vec![],
    }
}

fn qer(session: &Session) -> CreateQer {
    CreateQer {
        qer_id: QER,
        qer_correlation_id: None,
        gate_status: GateStatus { uplink: Gate::Open, downlink: Gate::Open },
        mbr: session
            .plan
            .mbr
            .map(|mbr| Rates { uplink_kbps: mbr.uplink_kbps, downlink_kbps: mbr.downlink_kbps }),
        gbr: None,
        qfi: Some(session.plan.qfi.value()),
        rqi: None,
        carried: vec![],
    }
}

/// Bytes both ways, of all packets, told after so many.
fn urr(session: &Session) -> Option<CreateUrr> {
    let threshold = session.plan.report_after_bytes?;
    Some(CreateUrr {
        urr_id: URR,
        measurement_method: flags::METHOD_VOLUM,
        reporting_triggers: ReportingTriggers::new(VOLTH),
        volume_threshold: Some(Volumes { total: Some(threshold), ..Volumes::default() }),
        ..CreateUrr::default()
    })
}

/// MAC addresses behind the UE, as they come and go.
fn macs_urr(session: &Session) -> Option<CreateUrr> {
    session.plan.ethernet.then(|| CreateUrr {
        urr_id: MACS_URR,
        measurement_method: flags::METHOD_EVENT,
        reporting_triggers: ReportingTriggers::new(MACAR),
        ethernet_inactivity_timer: Some(MACS_INACTIVE_S),
        ..CreateUrr::default()
    })
}

fn measured(session: &Session, pdr: CreatePdr) -> CreatePdr {
    let volume = session.plan.report_after_bytes.map(|_| URR);
    let urr_ids = volume.into_iter().chain(session.plan.ethernet.then_some(MACS_URR)).collect();
    CreatePdr { urr_ids, ..pdr }
}

/// Downlink packets are kept, and the first is told of (TS 23.502 4.2.6).
pub(super) fn sleep(remote: Remote) -> Message {
    let update = UpdateFar {
        far_id: DOWNLINK_FAR,
        apply_action: Some(ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP)),
        ..UpdateFar::default()
    };
    let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
    Message::session(remote.seid, UNNUMBERED, request)
}

/// The downlink goes into the gNB's tunnel.
pub(super) fn modification(session: &Session, remote: Remote) -> Message {
    let Tunnel { teid, address } = session.plan.downlink;
    let parameters = UpdateForwardingParameters {
        destination_interface: Some(DestinationInterface::Access),
        outer_header_creation: Some(OuterHeaderCreation::GtpuIpv4 { teid: teid.0, address }),
        ..UpdateForwardingParameters::default()
    };
    let update = UpdateFar {
        far_id: DOWNLINK_FAR,
        apply_action: Some(ApplyAction::new(ApplyAction::FORW)),
        update_forwarding_parameters: Some(parameters),
        ..UpdateFar::default()
    };
    let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
    Message::session(remote.seid, UNNUMBERED, request)
}

pub(super) fn deletion(remote: Remote) -> Message {
    Message::session(remote.seid, UNNUMBERED, SessionDeletionRequest::default())
}
