//! Sessions of packets: everything a control plane may say of one, from its beginning to its end.

use super::{About, Conversation, Stage, Step, updates};
use crate::common::billing::{metered, total, urr};
use crate::common::{SINCE_1900_MS, SMF, smf};
use dplink::{Notice, Start, UsageCause, UsageCounts};
use n4::Input;
use pfcp::*;
use rules::{PdrId, Triggers, UrrId};

pub fn setup() -> Step {
    let mut request = smf::setup(SMF, 1);
    request.cp_function_features =
        Some(CpFunctionFeatures::of(&[CpFeature::Load, CpFeature::Ovrl, CpFeature::Epfar]));
    Step::Ask(SMF, About::Node, request.into())
}

pub fn establish(request: SessionEstablishmentRequest) -> Step {
    Step::Ask(SMF, About::New, request.into())
}

pub fn modify(request: SessionModificationRequest) -> Step {
    Step::Ask(SMF, About::Session(0), request.into())
}

pub fn delete() -> Step {
    Step::Ask(SMF, About::Session(0), SessionDeletionRequest::default().into())
}

pub fn accept() -> Step {
    Step::Answer(SMF, About::Session(0), SessionReportResponse::of(Cause::RequestAccepted).into())
}

pub fn whole() -> Conversation {
    let steps = vec![
        setup(),
        establish(everything(77)),
        Step::Do(|stage| {
            let session = stage.session(0);
            stage.lab.traffic(session, (400, 700), false);
            stage.pass(2);
        }),
        accept(),
        modify(updates::everything()),
        Step::Do(|stage| {
            let session = stage.session(0);
            stage.lab.traffic(session, (400, 300), false);
            stage.pass(70);
        }),
        accept(),
    ];
    let removals = updates::removals().into_iter().map(modify);
    let steps = steps.into_iter().chain(removals).chain([delete()]).collect();
    Conversation::new("a session with everything", steps)
}

pub fn policy(name: &str) -> RawIe {
    let value = [&[name.len() as u8], name.as_bytes()].concat();
    RawIe { ie: ie::FORWARDING_POLICY, value }
}

pub fn flow(text: &str) -> SdfFilter {
    SdfFilter { flow_description: Some(text.to_owned()), ..SdfFilter::default() }
}

pub fn fq_csid(csid: u16) -> FqCsid {
    FqCsid { node_id_type: 0, node: vec![10, 0, 0, 7], csids: vec![csid], node_type: None }
}

fn header(name: &str) -> HeaderEnrichment {
    HeaderEnrichment::Http { name: name.into(), value: b"1".to_vec() }
}

/// All that a session of packets may be established with.
pub fn everything(cp_seid: u64) -> SessionEstablishmentRequest {
    let urrs = vec![
        counted(1),
        CreateUrr { linked_urr_ids: vec![1], ..urr(2, Triggers::LINKED_USAGE.0) },
        urr(10, 0),
    ];
    let mut request = metered(cp_seid, urrs);
    request.create_fars = fars();
    request.create_qers = vec![limited(1), smf::qer(2)];
    request.create_bar = Some(CreateBar {
        bar_id: 1,
        downlink_data_notification_delay: Some(1),
        suggested_buffering_packets_count: Some(9),
        carried: vec![],
    });
    let [up, down] = &mut request.create_pdrs[..] else { panic!("two PDRs") };
    (up.precedence, up.qer_ids, up.pdi.qfis) = (Some(100), vec![1], vec![9]);
    down.pdi.sdf_filters = vec![flow("permit out ip from any to assigned")];
    (down.precedence, down.qer_ids, down.far_id) = (Some(110), vec![1], Some(2));
    down.activate_predefined_rules = vec![b"video".to_vec()];
    let application_id = Some(b"games".to_vec());
    let pdi = Pdi { application_id, interface_type: Some(17), ..down.pdi.clone() };
    request.create_pdrs.push(CreatePdr { urr_ids: vec![2], ..smf::pdr(3, pdi, 4) });
    // Whether its packets keep the tunnel is said later.
    let mut undecided =
        CreatePdr { outer_header_removal: None, far_id: Some(5), ..smf::uplink(4, smf::choose(Some(3))) };
    undecided.pdi.interface_type = Some(11);
    request.create_pdrs.push(undecided);
    request.user_plane_inactivity_timer = Some(100);
    (request.fq_csids, request.group_id) = (vec![fq_csid(1)], Some(vec![1]));
    request.pfcpse_req_flags = Some(flags::PFCPSE_RESTI);
    request
}

/// Copied; kept; for those without a quota; kept as the BAR says; dropped.
fn fars() -> Vec<CreateFar> {
    let copy = DuplicatingParameters {
        destination_interface: DestinationInterface::LiFunction,
        outer_header_creation: Some(smf::tunnel(9)),
        transport_level_marking: Some(0xB8FC),
        carried: vec![policy("mec")],
    };
    let out = ForwardingParameters {
        network_instance: Some(NetworkInstance::labels("internet")),
        transport_level_marking: Some(0x28FC),
        header_enrichment: Some(header("X-A")),
        interface_type: Some(17),
        carried: vec![policy("mec")],
        ..smf::forwarding(DestinationInterface::Core)
    };
    let radio = ForwardingParameters {
        outer_header_creation: Some(smf::tunnel(5)),
        ..smf::forwarding(DestinationInterface::Access)
    };
    let portal = ForwardingParameters {
        redirect_information: Some(RedirectInformation::Url("http://portal.example/".to_owned())),
        ..smf::forwarding(DestinationInterface::Access)
    };
    let forwards = ApplyAction::FORW;
    vec![
        CreateFar {
            duplicating_parameters: vec![copy],
            ..smf::far(1, forwards | ApplyAction::DUPL, Some(out))
        },
        smf::far(2, forwards, Some(radio.clone())),
        smf::far(3, forwards, Some(portal)),
        CreateFar { bar_id: Some(1), ..smf::far(4, ApplyAction::BUFF | ApplyAction::NOCP, Some(radio)) },
        smf::far(5, ApplyAction::DROP, None),
    ]
}

fn limited(qer_id: u32) -> CreateQer {
    CreateQer {
        mbr: Some(Rates { uplink_kbps: 1_000, downlink_kbps: 2_000 }),
        gbr: Some(Rates { uplink_kbps: 10, downlink_kbps: 20 }),
        rqi: Some(1),
        qer_correlation_id: Some(7),
        carried: vec![RawIe { ie: ie::PACKET_RATE, value: vec![3, 0, 0, 9, 1, 0, 8] }],
        ..smf::qer(qer_id)
    }
}

/// The time of day, so many seconds after everything began.
pub fn moment(after_s: u64) -> u32 {
    (SINCE_1900_MS / 1_000 + after_s) as u32
}

/// With every threshold and every quota.
fn counted(urr_id: u32) -> CreateUrr {
    let triggers = Triggers::PERIODIC.0
        | Triggers::VOLUME_THRESHOLD.0
        | Triggers::TIME_THRESHOLD.0
        | Triggers::QUOTA_HOLDING_TIME.0
        | Triggers::DROPPED_DOWNLINK.0
        | Triggers::VOLUME_QUOTA.0
        | Triggers::TIME_QUOTA.0
        | Triggers::EVENT_THRESHOLD.0
        | Triggers::EVENT_QUOTA.0
        | Triggers::QUOTA_VALIDITY_TIME.0;
    CreateUrr {
        measurement_method: flags::METHOD_DURAT | flags::METHOD_VOLUM | flags::METHOD_EVENT,
        measurement_period: Some(60),
        volume_threshold: total(1_000),
        volume_quota: total(90_000),
        time_threshold: Some(30),
        time_quota: Some(600),
        event_threshold: Some(4),
        event_quota: Some(40),
        quota_holding_time: Some(120),
        dropped_dl_traffic_threshold: Some(DroppedTraffic { packets: Some(3), bytes: Some(1_000) }),
        quota_validity_time: Some(900),
        monitoring_time: Some(moment(40)),
        subsequent_volume_threshold: total(2_000),
        subsequent_time_threshold: Some(50),
        subsequent_volume_quota: total(80_000),
        subsequent_time_quota: Some(700),
        subsequent_event_threshold: Some(5),
        subsequent_event_quota: Some(50),
        inactivity_detection_time: Some(20),
        measurement_information: Some(flags::MEASUREMENT_MNOP),
        quota_far_id: Some(3),
        additional_monitoring_times: vec![monitoring(50, 0), monitoring(3_000, 1)],
        ..urr(urr_id, triggers)
    }
}

/// A monitoring time with every threshold and every quota; those of events by either type.
pub fn monitoring(after_s: u64, more: u32) -> AdditionalMonitoringTime {
    let is_subsequent = more.is_multiple_of(2);
    AdditionalMonitoringTime {
        monitoring_time: moment(after_s),
        subsequent_volume_threshold: total(2_500 + u64::from(more)),
        subsequent_time_threshold: Some(55 + more),
        subsequent_volume_quota: total(70_000 + u64::from(more)),
        subsequent_time_quota: Some(750 + more),
        subsequent_event_threshold: is_subsequent.then_some(6 + more),
        subsequent_event_quota: is_subsequent.then_some(60 + more),
        event_threshold: (!is_subsequent).then_some(6 + more),
        event_quota: (!is_subsequent).then_some(60 + more),
        carried: vec![],
    }
}

/// A second network, and addresses of both families.
pub fn networks() -> Conversation {
    let mut request = smf::establishment(77);
    request.pdn_type = Some(PdnType::Ipv4v6);
    request
        .create_pdrs
        .iter_mut()
        .for_each(|pdr| pdr.pdi.network_instance = Some(NetworkInstance::labels("ims")));
    let address = UeIpAddress { ipv6: Some("2001:db8:60::".parse().unwrap()), ..smf::ue(smf::UE) };
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![address];
    let to = request.create_fars[0].forwarding_parameters.as_mut().unwrap();
    to.network_instance = Some(NetworkInstance::text("ims"));
    let mut change = smf::path_switch(9);
    let to = change.update_fars[0].update_forwarding_parameters.as_mut().unwrap();
    (to.network_instance, to.interface_type) = (Some(NetworkInstance::text("ims")), Some(11));
    let indication = Step::Do(|stage| {
        let event =
            dplink::Event::ErrorIndication { teid: rules::Teid(9), peer: smf::GNB.into(), towards: None };
        stage.lab.handle(Input::DataPath(&Notice::Event(event)));
    });
    let steps = vec![setup(), establish(request), modify(change), indication, accept(), delete()];
    Conversation::new("a session of another network", steps)
}

/// Starts and stops of an application's traffic, and silence.
pub fn applications() -> Conversation {
    let triggers = Triggers::START_OF_TRAFFIC.0 | Triggers::STOP_OF_TRAFFIC.0;
    let mut request = metered(77, vec![urr(1, triggers)]);
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.pdi.application_id = Some(b"games".to_vec()));
    request.user_plane_inactivity_timer = Some(40);
    let timer = SessionModificationRequest { user_plane_inactivity_timer: Some(55), ..Default::default() };
    let steps = vec![
        setup(),
        establish(request),
        Step::Do(starts),
        accept(),
        Step::Do(|stage| stage.pass(45)),
        accept(),
        modify(timer),
        Step::Do(|stage| {
            let session = stage.session(0);
            stage.lab.traffic(session, (10, 10), false);
            stage.pass(100);
        }),
        accept(),
        delete(),
    ];
    Conversation::new("an application that starts and stops", steps)
}

fn starts(stage: &mut Stage) {
    let start = Start {
        pdr: Some(PdrId(1)),
        ue: smf::UE.into(),
        remote: [203, 0, 113, 80].into(),
        protocol: 6,
        ue_port: Some(40_000),
        remote_port: Some(443),
    };
    let counts = UsageCounts {
        urr: UrrId(1),
        uplink_bytes: 100,
        uplink_packets: 1,
        first_packet_age_ms: Some(0),
        last_packet_age_ms: Some(0),
        ..UsageCounts::default()
    };
    let (session, cause) = (stage.session(0), UsageCause::StartOfTraffic(Some(start)));
    stage.lab.handle(Input::DataPath(&Notice::Usage { session, cause, counts: vec![counts] }));
    stage.pass(1);
}
