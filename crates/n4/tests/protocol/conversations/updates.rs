//! What may be changed in a session of packets.

use super::sessions::{accept, delete, establish, flow, fq_csid, modify, moment, monitoring, policy, setup};
use super::{Conversation, Step};
use crate::common::billing::{metered, total, urr};
use crate::common::smf;
use pfcp::*;
use rules::Triggers;

/// Of the session with everything: all that may be said in one message.
pub fn everything() -> SessionModificationRequest {
    let queried = |urr_id| QueryUrr { urr_id, carried: vec![] };
    let mut created = smf::downlink(7, Some(smf::UE));
    (created.far_id, created.qer_ids, created.urr_ids) = (Some(7), vec![7], vec![7]);
    SessionModificationRequest {
        cp_f_seid: Some(FSeid::new(78, crate::common::SMF.into())),
        create_pdrs: vec![created, smf::uplink(8, smf::choose(None))],
        create_fars: vec![smf::far(7, ApplyAction::DROP, None), smf::far(8, ApplyAction::DROP, None)],
        create_qers: vec![smf::qer(7)],
        create_urrs: vec![urr(7, 0)],
        update_pdrs: pdrs(),
        update_fars: fars(),
        update_urrs: vec![urr_changed()],
        update_qers: vec![qer_changed()],
        update_bar: Some(UpdateBar {
            bar_id: 1,
            downlink_data_notification_delay: Some(5),
            suggested_buffering_packets_count: Some(3),
            carried: vec![],
        }),
        query_urrs: vec![queried(2), queried(10)],
        query_urr_reference: Some(5),
        user_plane_inactivity_timer: Some(50),
        pfcpsm_req_flags: Some(flags::PFCPSM_DROBU),
        fq_csids: vec![fq_csid(2)],
        group_id: Some(vec![2]),
        ..SessionModificationRequest::default()
    }
}

fn pdrs() -> Vec<UpdatePdr> {
    let pdi = Pdi {
        sdf_filters: vec![flow("permit out 6 from any to assigned")],
        ..smf::downlink(2, Some(smf::UE)).pdi
    };
    let down = UpdatePdr {
        pdr_id: 2,
        precedence: Some(90),
        pdi: Some(pdi),
        far_id: Some(4),
        urr_ids: vec![2],
        qer_ids: vec![2],
        activate_predefined_rules: vec![b"ads".to_vec()],
        deactivate_predefined_rules: vec![b"video".to_vec()],
        ..UpdatePdr::default()
    };
    let outer_header_removal = Some(OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IPV4));
    vec![down, UpdatePdr { pdr_id: 4, outer_header_removal, ..UpdatePdr::default() }]
}

fn fars() -> Vec<UpdateFar> {
    let copy = UpdateDuplicatingParameters {
        destination_interface: Some(DestinationInterface::Access),
        outer_header_creation: Some(smf::tunnel(10)),
        transport_level_marking: Some(0x48FC),
        carried: vec![policy("bras")],
    };
    let out = UpdateForwardingParameters {
        header_enrichment: Some(HeaderEnrichment::Http { name: b"X-B".to_vec(), value: b"2".to_vec() }),
        carried: vec![policy("bras")],
        ..UpdateForwardingParameters::default()
    };
    let radio = UpdateForwardingParameters {
        destination_interface: Some(DestinationInterface::Access),
        outer_header_creation: Some(smf::tunnel(6)),
        transport_level_marking: Some(0x48FC),
        pfcpsm_req_flags: Some(flags::PFCPSM_SNDEM),
        interface_type: Some(11),
        ..UpdateForwardingParameters::default()
    };
    let other = RedirectInformation::Url("https://other.example/".to_owned());
    let portal = UpdateForwardingParameters {
        destination_interface: Some(DestinationInterface::Core),
        redirect_information: Some(other),
        ..UpdateForwardingParameters::default()
    };
    let far = |far_id, to: UpdateForwardingParameters| UpdateFar {
        far_id,
        update_forwarding_parameters: Some(to),
        ..UpdateFar::default()
    };
    vec![
        UpdateFar { update_duplicating_parameters: vec![copy], ..far(1, out) },
        UpdateFar { bar_id: Some(1), ..far(2, radio) },
        far(3, portal),
        UpdateFar {
            far_id: 5,
            apply_action: Some(ApplyAction::new(ApplyAction::BUFF)),
            ..UpdateFar::default()
        },
    ]
}

fn urr_changed() -> UpdateUrr {
    let triggers = Triggers::VOLUME_THRESHOLD.0 | Triggers::TIME_THRESHOLD.0 | Triggers::VOLUME_QUOTA.0;
    UpdateUrr {
        urr_id: 1,
        measurement_method: Some(flags::METHOD_VOLUM | flags::METHOD_EVENT),
        reporting_triggers: Some(ReportingTriggers::new(triggers)),
        measurement_period: Some(70),
        volume_threshold: total(1_100),
        volume_quota: total(91_000),
        time_threshold: Some(31),
        time_quota: Some(610),
        event_threshold: Some(7),
        event_quota: Some(41),
        quota_holding_time: Some(121),
        dropped_dl_traffic_threshold: Some(DroppedTraffic { packets: Some(4), bytes: None }),
        quota_validity_time: Some(910),
        monitoring_time: Some(moment(60)),
        subsequent_volume_threshold: total(2_100),
        subsequent_time_threshold: Some(51),
        subsequent_volume_quota: total(81_000),
        subsequent_time_quota: Some(710),
        subsequent_event_threshold: Some(8),
        subsequent_event_quota: Some(51),
        inactivity_detection_time: Some(21),
        linked_urr_ids: vec![10],
        measurement_information: Some(flags::MEASUREMENT_MBQE),
        ethernet_inactivity_timer: Some(30),
        quota_far_id: Some(5),
        additional_monitoring_times: vec![monitoring(65, 2)],
        ..UpdateUrr::default()
    }
}

fn qer_changed() -> UpdateQer {
    UpdateQer {
        qer_id: 1,
        qer_correlation_id: Some(8),
        gate_status: Some(GateStatus { uplink: Gate::Closed, downlink: Gate::Open }),
        mbr: Some(Rates { uplink_kbps: 3_000, downlink_kbps: 4_000 }),
        gbr: Some(Rates { uplink_kbps: 30, downlink_kbps: 40 }),
        qfi: Some(5),
        rqi: Some(0),
        carried: vec![RawIe { ie: ie::PACKET_RATE, value: vec![1, 0, 0, 5] }],
    }
}

/// Of the session with everything, so changed: what may go, one after the other.
pub fn removals() -> Vec<SessionModificationRequest> {
    let none = |ie| RawIe { ie, value: vec![] };
    let without_bar = |far_id| UpdateFar { far_id, carried: vec![none(ie::BAR_ID)], ..UpdateFar::default() };
    let nothing = SessionModificationRequest::default;
    vec![
        SessionModificationRequest {
            remove_pdrs: vec![RemovePdr { pdr_id: 7, carried: vec![] }],
            ..nothing()
        },
        SessionModificationRequest {
            remove_fars: vec![RemoveFar { far_id: 7, carried: vec![] }],
            ..nothing()
        },
        SessionModificationRequest {
            remove_qers: vec![RemoveQer { qer_id: 7, carried: vec![] }],
            ..nothing()
        },
        SessionModificationRequest {
            remove_urrs: vec![RemoveUrr { urr_id: 7, carried: vec![] }],
            pfcpsm_req_flags: Some(flags::PFCPSM_QAURR),
            ..nothing()
        },
        SessionModificationRequest { update_fars: vec![without_bar(2), without_bar(4)], ..nothing() },
        SessionModificationRequest {
            remove_bar: Some(RemoveBar { bar_id: 1, carried: vec![] }),
            ..nothing()
        },
    ]
}

/// Quotas that end while time passes, one after the other.
pub fn quotas() -> Conversation {
    let triggers = Triggers::VOLUME_QUOTA.0 | Triggers::TIME_QUOTA.0 | Triggers::QUOTA_VALIDITY_TIME.0;
    let dropped = Some(DroppedTraffic { packets: Some(2), bytes: None });
    let urrs = vec![
        CreateUrr { volume_quota: total(1_000), time_quota: Some(20), ..urr(1, triggers) },
        CreateUrr { dropped_dl_traffic_threshold: dropped, ..urr(2, Triggers::DROPPED_DOWNLINK.0) },
        CreateUrr { measurement_period: Some(5), ..urr(3, Triggers::PERIODIC.0) },
    ];
    let more = UpdateUrr { urr_id: 1, volume_quota: total(500), ..UpdateUrr::default() };
    let more = SessionModificationRequest { update_urrs: vec![more], ..Default::default() };
    let bar = CreateBar { bar_id: 2, suggested_buffering_packets_count: Some(2), ..CreateBar::default() };
    let create_bar = SessionModificationRequest { create_bar: Some(bar), ..Default::default() };
    let steps = vec![
        setup(),
        establish(metered(77, urrs)),
        Step::Do(|stage| {
            let session = stage.session(0);
            stage.lab.traffic(session, (700, 700), false);
            stage.pass(3);
        }),
        accept(),
        modify(more),
        modify(create_bar),
        Step::Do(|stage| stage.pass(12)),
        accept(),
        delete(),
    ];
    Conversation::new("quotas that end and are given anew", steps)
}

/// Forwarding Parameters in an Update FAR, as OMEC's SMF calls what is updated of them.
pub fn by_another_name() -> Conversation {
    let mut switch = smf::path_switch(5);
    for far in &mut switch.update_fars {
        far.forwarding_parameters = far.update_forwarding_parameters.take();
    }
    let steps = vec![setup(), establish(smf::establishment(77)), modify(switch), delete()];
    Conversation::new("a path switch by another name", steps)
}
