//! Every message there can be.

mod ethernet;
mod rules;
mod sets;
mod usage;
mod values;

use pfcp::*;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use rules::*;
use sets::*;
use usage::*;
use values::*;

prop_compose! {
    fn establishment_request()(
        (node_id, cp_f_seid) in (node_id(), f_seid()),
        create_pdrs in vec(create_pdr().boxed(), 1..4),
        create_fars in vec(create_far().boxed(), 1..4),
        create_urrs in vec(create_urr().boxed(), 0..2),
        create_qers in vec(create_qer().boxed(), 0..3),
        create_bar in of(create_bar()),
        pdn_type in of((1u8..5).prop_map(|n| [PdnType::Ipv4, PdnType::Ipv6, PdnType::NonIp, PdnType::Ethernet][usize::from(n - 1)])),
        (user_id, apn_dnn, s_nssai) in (of(imsi()), of(label()), of(vec(any::<u8>(), 4))),
        (pfcpse_req_flags, user_plane_inactivity_timer) in any::<(Option<u8>, Option<u32>)>(),
        create_traffic_endpoints in vec(create_traffic_endpoint().boxed(), 0..3),
        (fq_csids, group_id) in (vec(fq_csid(), 0..2), of(text())),
        carried in carried(),
    ) -> SessionEstablishmentRequest {
        SessionEstablishmentRequest { node_id, cp_f_seid, create_pdrs, create_fars, create_urrs, create_qers,
            create_bar, pdn_type, user_plane_inactivity_timer, user_id, apn_dnn, s_nssai, pfcpse_req_flags, create_traffic_endpoints, fq_csids, group_id,
            carried }
    }
}

prop_compose! {
    fn modification_request()(
        (cp_f_seid, node_id) in (of(f_seid()), of(node_id())),
        (update_traffic_endpoints, gone) in (vec(update_traffic_endpoint().boxed(), 0..2), vec(any::<u8>(), 0..2)),
        create in establishment_request().boxed(),
        (pdrs, fars, qers) in (vec(any::<u16>(), 0..3), vec(any::<u32>(), 0..3), vec(any::<u32>(), 0..3)),
        (urrs, bar) in (vec(any::<u32>(), 0..2), any::<Option<u8>>()),
        (update_urrs, update_bar, query_urr_reference) in (vec(update_urr().boxed(), 0..2), of(update_bar()), any::<Option<u32>>()),
        update_pdrs in vec(update_pdr().boxed(), 0..3),
        update_fars in vec(update_far().boxed(), 0..3),
        update_qers in vec(update_qer().boxed(), 0..3),
    ) -> SessionModificationRequest {
        SessionModificationRequest {
            cp_f_seid,
            remove_pdrs: pdrs.into_iter().map(|pdr_id| RemovePdr { pdr_id, carried: vec![] }).collect(),
            remove_fars: fars.into_iter().map(|far_id| RemoveFar { far_id, carried: vec![] }).collect(),
            remove_urrs: urrs.iter().map(|urr_id| RemoveUrr { urr_id: *urr_id, carried: vec![] }).collect(),
            remove_qers: qers.into_iter().map(|qer_id| RemoveQer { qer_id, carried: vec![] }).collect(),
            remove_bar: bar.map(|bar_id| RemoveBar { bar_id, carried: vec![] }),
            create_pdrs: create.create_pdrs,
            create_fars: create.create_fars,
            create_urrs: create.create_urrs,
            create_qers: create.create_qers,
            create_bar: create.create_bar,
            update_pdrs,
            update_fars,
            update_urrs,
            update_qers,
            update_bar,
            query_urrs: urrs.into_iter().map(|urr_id| QueryUrr { urr_id, carried: vec![] }).collect(),
            query_urr_reference,
            user_plane_inactivity_timer: create.user_plane_inactivity_timer,
            pfcpsm_req_flags: create.pfcpse_req_flags,
            carried: create.carried,
            node_id,
            create_traffic_endpoints: create.create_traffic_endpoints,
            update_traffic_endpoints,
            remove_traffic_endpoints: gone.into_iter().map(|traffic_endpoint_id| RemoveTrafficEndpoint { traffic_endpoint_id, carried: vec![] }).collect(),
            fq_csids: create.fq_csids,
            group_id: create.group_id,
        }
    }
}

type Rest = (
    Option<FailedRuleId>,
    Vec<CreatedTrafficEndpoint>,
    Option<LoadControlInformation>,
    Option<OverloadControlInformation>,
);

/// What answers about sessions have in common.
fn rest() -> impl Strategy<Value = Rest> {
    (of(failed_rule_id()), vec(created_traffic_endpoint(), 0..2), of(load()), of(overload()))
}

prop_compose! {
    fn established()(
        (node_id, cause, offending_ie) in (node_id(), cause(), any::<Option<u16>>()),
        (up_f_seid, created_pdrs) in (of(f_seid()), vec(created_pdr(), 0..3)),
        (failed_rule_id, created_traffic_endpoints, load, overload) in rest(),
        carried in carried(),
    ) -> SessionEstablishmentResponse {
        SessionEstablishmentResponse { node_id, cause, offending_ie, up_f_seid, created_pdrs, failed_rule_id,
            created_traffic_endpoints, load, overload, carried }
    }
}

prop_compose! {
    fn modified()(
        (cause, offending_ie) in (cause(), any::<Option<u16>>()),
        created_pdrs in vec(created_pdr(), 0..3),
        (failed_rule_id, created_traffic_endpoints, load, overload) in rest(),
        (usage_reports, carried) in (reports(), carried()),
    ) -> SessionModificationResponse {
        SessionModificationResponse { cause, offending_ie, created_pdrs, failed_rule_id, usage_reports,
            created_traffic_endpoints, load, overload, carried }
    }
}

fn session_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        establishment_request().prop_map(Body::from).boxed(),
        established().prop_map(Body::from).boxed(),
        modification_request().prop_map(Body::from).boxed(),
        modified().prop_map(Body::from).boxed(),
        carried().prop_map(|carried| SessionDeletionRequest { carried }.into()),
        (cause(), any::<Option<u16>>(), reports(), of(load()), of(overload()), carried()).prop_map(
            |(cause, offending_ie, usage_reports, load, overload, carried)| {
                SessionDeletionResponse { cause, offending_ie, usage_reports, load, overload, carried }.into()
            }
        ),
        report_request().prop_map(Body::from).boxed(),
        report_response().prop_map(Body::from).boxed(),
    ]
}

prop_compose! {
    fn report_request()(
        report_type in any::<u8>().prop_map(ReportType),
        pdr_ids in of((vec(any::<u16>(), 1..3), vec(service_information(), 0..3))),
        usage_reports in reports(),
        remote_f_teids in of(vec(f_teid(), 1..3)),
        (old_cp_f_seid, pfcpsrreq_flags) in (of(f_seid()), any::<Option<u8>>()),
        carried in carried(),
    ) -> SessionReportRequest {
        SessionReportRequest {
            report_type,
            downlink_data_report: pdr_ids.map(|(pdr_ids, service_information)| DownlinkDataReport {
                pdr_ids,
                service_information,
                carried: vec![],
            }),
            usage_reports,
            error_indication_report: remote_f_teids
                .map(|remote_f_teids| ErrorIndicationReport { remote_f_teids, carried: vec![] }),
            old_cp_f_seid,
            pfcpsrreq_flags,
            carried,
        }
    }
}

prop_compose! {
    fn report_response()(
        (cause, cp_f_seid) in (cause(), of(f_seid())),
        (offending_ie, pfcpsrrsp_flags) in any::<(Option<u16>, Option<u8>)>(),
        (update_bar, alternative) in (of(update_bar_in_report()), of(sets::alternative())),
        carried in carried(),
    ) -> SessionReportResponse {
        SessionReportResponse {
            cause,
            offending_ie,
            update_bar,
            pfcpsrrsp_flags,
            cp_f_seid,
            alternative,
            carried,
        }
    }
}

fn node_body() -> impl Strategy<Value = Body> {
    let set = (vec(pool_information(), 0..2), of(set_id()), vec(alternative(), 0..2));
    let setup = (node_id(), cause(), any::<u32>(), of(up_features()), of(cp_features()), set, carried());
    let both = setup.prop_flat_map(|(node_id, cause, recovery_time_stamp, up, cp, set, carried)| {
        let answer = AssociationSetupResponse {
            node_id,
            cause,
            recovery_time_stamp,
            up_function_features: up,
            cp_function_features: cp,
            pools: set.0,
            smf_set_id: set.1,
            alternatives: set.2,
            carried,
        };
        proptest::sample::select(association_bodies(answer))
    });
    let heartbeat = (any::<u32>(), carried())
        .prop_map(|(recovery_time_stamp, carried)| HeartbeatRequest { recovery_time_stamp, carried });
    let answer = any::<u32>()
        .prop_map(|recovery_time_stamp| HeartbeatResponse { recovery_time_stamp, carried: vec![] });
    prop_oneof![
        both,
        set_body().boxed(),
        pfd_body().boxed(),
        heartbeat.prop_map(Body::from),
        answer.prop_map(Body::from),
        Just(VersionNotSupportedResponse::default().into()),
    ]
}

/// All association messages that say the same as `from`.
fn association_bodies(from: AssociationSetupResponse) -> Vec<Body> {
    let (node_id, cause, carried) = (from.node_id.clone(), from.cause, from.carried.clone());
    let (up, cp) = (from.up_function_features.clone(), from.cp_function_features.clone());
    vec![
        AssociationSetupRequest {
            node_id: node_id.clone(),
            recovery_time_stamp: from.recovery_time_stamp,
            up_function_features: up.clone(),
            cp_function_features: cp.clone(),
            pools: from.pools.clone(),
            smf_set_id: from.smf_set_id.clone(),
            alternatives: from.alternatives.clone(),
            carried: carried.clone(),
        }
        .into(),
        AssociationUpdateRequest {
            node_id: node_id.clone(),
            up_function_features: up.clone(),
            cp_function_features: cp.clone(),
            association_release_request: Some(1),
            graceful_release_period: None,
            pools: from.pools.clone(),
            smf_set_id: from.smf_set_id.clone(),
            alternatives: from.alternatives.clone(),
            carried: carried.clone(),
        }
        .into(),
        AssociationUpdateResponse {
            node_id: node_id.clone(),
            cause,
            up_function_features: up,
            cp_function_features: cp,
            carried: carried.clone(),
        }
        .into(),
        AssociationReleaseRequest { node_id: node_id.clone(), carried: carried.clone() }.into(),
        AssociationReleaseResponse { node_id, cause, carried }.into(),
        from.into(),
    ]
}

/// Any message.
pub fn message() -> impl Strategy<Value = Message> {
    let header = (any::<Option<u64>>(), 0u32..1 << 24, of(0u8..16));
    (header, prop_oneof![node_body().boxed(), session_body().boxed()])
        .prop_map(|((seid, sequence, priority), body)| Message { seid, sequence, priority, body })
}
