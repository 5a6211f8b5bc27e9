//! Traffic endpoints: said once, meant by every PDI that names them.

use crate::common::personas::{accepted, established, rules};
use crate::common::smf::{self, UE, establishment};
use crate::common::{Lab, SMF};
use pfcp::*;
use rules::{PdrId, Seid};

fn endpoint(id: u8, f_teid: Option<FTeid>, ue: Option<UeIpAddress>) -> CreateTrafficEndpoint {
    CreateTrafficEndpoint {
        traffic_endpoint_id: id,
        local_f_teid: f_teid,
        network_instance: Some(NetworkInstance::labels("internet")),
        ue_ip_addresses: ue.into_iter().collect(),
        ..CreateTrafficEndpoint::default()
    }
}

fn naming(mut pdr: CreatePdr, id: u8) -> CreatePdr {
    (pdr.pdi.f_teid, pdr.pdi.ue_ip_addresses) = (None, vec![]);
    pdr.pdi.network_instance = None;
    pdr.pdi.traffic_endpoint_id = Some(id);
    pdr
}

/// Uplink at endpoint 1, whose tunnel we choose, downlink at endpoint 2.
fn request() -> SessionEstablishmentRequest {
    let mut request = establishment(77);
    request.create_traffic_endpoints =
        vec![endpoint(1, Some(smf::choose(None)), None), endpoint(2, None, Some(smf::ue(UE)))];
    let second = naming(CreatePdr { pdr_id: 3, ..request.create_pdrs[0].clone() }, 1);
    request.create_pdrs =
        vec![naming(request.create_pdrs[0].clone(), 1), naming(request.create_pdrs[1].clone(), 2)];
    request.create_pdrs.push(second);
    request
}

fn lab() -> (Lab, Seid, u32) {
    let mut lab = Lab::associated();
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 500, request()))
    else {
        panic!("an answer")
    };
    assert_eq!((response.cause, response.created_pdrs.len()), (Cause::RequestAccepted, 0));
    let [created] = &response.created_traffic_endpoints[..] else { panic!("{response:?}") };
    let Some(FTeid::Explicit { teid, .. }) = created.local_f_teid else { panic!("{created:?}") };
    assert_eq!((created.traffic_endpoint_id, created.ue_ip_addresses.len()), (1, 0));
    (lab, Seid(response.up_f_seid.unwrap().seid), teid)
}

fn tunnel_of(lab: &Lab, session: Seid, pdr: u16) -> Option<u32> {
    let rule = rules(lab, session).pdrs.iter().find(|rule| rule.id == PdrId(pdr)).expect("the PDR");
    rule.pdi.f_teid.map(|f_teid| f_teid.teid.0)
}

fn refused(lab: &mut Lab, session: Seid, request: SessionModificationRequest) -> (Cause, Option<u16>) {
    let before = (lab.desired(), lab.node.tunnels(), lab.saved.clone());
    let response = lab.modify(session, request);
    assert_eq!((lab.desired(), lab.node.tunnels(), lab.saved.clone()), before);
    (response.cause, response.offending_ie)
}

#[test]
fn pdis_that_name_an_endpoint_match_what_it_says() {
    let (lab, session, teid) = lab();
    let in_force = &rules(&lab, session).pdrs;
    assert_eq!(in_force.len(), 3);
    assert_eq!([1, 3].map(|pdr| tunnel_of(&lab, session, pdr)), [Some(teid); 2]);
    assert_eq!((in_force[1].pdi.ue_ipv4, in_force[1].pdi.f_teid), (Some(UE), None));
    assert_eq!(lab.node.tunnels(), 1);
}

#[test]
fn the_feature_is_advertised() {
    let mut lab = Lab::new(crate::common::config());
    let Body::AssociationSetupResponse(response) = lab.ask(SMF, &Message::node(1, smf::setup(SMF, 5))) else {
        panic!("an answer")
    };
    assert!(response.up_function_features.unwrap().contains(UpFeature::Pdiu));
}

#[test]
fn an_endpoint_that_changes_changes_all_its_pdrs() {
    let (mut lab, session, old) = lab();
    let update = UpdateTrafficEndpoint {
        traffic_endpoint_id: 1,
        local_f_teid: Some(smf::given(0xAB)),
        qfis: vec![7],
        ..UpdateTrafficEndpoint::default()
    };
    let mut request =
        SessionModificationRequest { update_traffic_endpoints: vec![update], ..Default::default() };
    accepted(&lab.modify(session, request.clone()));
    assert_eq!([1, 3].map(|pdr| tunnel_of(&lab, session, pdr)), [Some(0xAB); 2]);
    assert!(rules(&lab, session).pdrs[0].pdi.qfis.iter().map(|qfi| qfi.value()).eq([7]));
    assert!(old != 0xAB && lab.node.tunnels() == 1, "the old tunnel is free again");
    request.update_traffic_endpoints[0].traffic_endpoint_id = 2;
    request.update_traffic_endpoints[0].local_f_teid = None;
    request.update_traffic_endpoints[0].ue_ip_addresses = vec![smf::ue([10, 60, 0, 2].into())];
    accepted(&lab.modify(session, request));
    assert_eq!(rules(&lab, session).pdrs[1].pdi.ue_ipv4, Some([10, 60, 0, 2].into()));
}

#[test]
fn an_endpoint_that_goes_takes_its_pdrs_with_it() {
    let (mut lab, session, _) = lab();
    let remove = RemoveTrafficEndpoint { traffic_endpoint_id: 1, carried: vec![] };
    let request = SessionModificationRequest {
        remove_traffic_endpoints: vec![remove],
        remove_pdrs: vec![RemovePdr { pdr_id: 3, carried: vec![] }],
        ..Default::default()
    };
    accepted(&lab.modify(session, request));
    assert!(rules(&lab, session).pdrs.iter().map(|pdr| pdr.id).eq([PdrId(2)]));
    assert_eq!(lab.node.tunnels(), 0);
    let again = SessionModificationRequest {
        create_traffic_endpoints: vec![endpoint(1, Some(smf::choose(None)), None)],
        create_pdrs: vec![naming(smf::uplink(9, smf::choose(None)), 1)],
        ..Default::default()
    };
    let response = lab.modify(session, again);
    accepted(&response);
    assert_eq!(response.created_traffic_endpoints.len(), 1);
    assert_eq!((lab.node.tunnels(), rules(&lab, session).pdrs.len()), (1, 2));
}

#[test]
fn endpoints_outlive_a_restart_and_leave_nothing() {
    let (mut lab, session, teid) = lab();
    lab.restart();
    assert_eq!(lab.node.tunnels(), 1);
    let create = naming(smf::uplink(9, smf::choose(None)), 1);
    accepted(
        &lab.modify(session, SessionModificationRequest { create_pdrs: vec![create], ..Default::default() }),
    );
    assert_eq!(tunnel_of(&lab, session, 9), Some(teid));
    lab.delete(session);
    assert_eq!((lab.node.tunnels(), lab.saved.len()), (0, 0));
}

#[test]
fn a_far_may_be_linked_to_an_endpoint_that_is_there() {
    let (mut lab, session, _) = lab();
    let mut request = smf::path_switch(5);
    let to = request.update_fars[0].update_forwarding_parameters.as_mut().unwrap();
    to.linked_traffic_endpoint_id = Some(1);
    accepted(&lab.modify(session, request.clone()));
    let to = request.update_fars[0].update_forwarding_parameters.as_mut().unwrap();
    to.linked_traffic_endpoint_id = Some(9);
    let failure = (Cause::RuleCreationModificationFailure, Some(ie::TRAFFIC_ENDPOINT_ID));
    assert_eq!(refused(&mut lab, session, request), failure);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let (mut lab, session, _) = lab();
    let failure = |ie| (Cause::RuleCreationModificationFailure, Some(ie));
    let unknown = naming(smf::uplink(9, smf::choose(None)), 8);
    let mut twice = naming(smf::uplink(9, smf::choose(None)), 1);
    twice.pdi.f_teid = Some(smf::choose(None));
    for create in [unknown, twice] {
        let request = SessionModificationRequest { create_pdrs: vec![create], ..Default::default() };
        assert_eq!(refused(&mut lab, session, request), failure(ie::TRAFFIC_ENDPOINT_ID));
    }
    let create = endpoint(1, Some(smf::choose(None)), None);
    let request = SessionModificationRequest { create_traffic_endpoints: vec![create], ..Default::default() };
    assert_eq!(refused(&mut lab, session, request), failure(ie::CREATE_TRAFFIC_ENDPOINT));
    assert_eq!(refused(&mut lab, session, removing(vec![1, 1])), failure(ie::REMOVE_TRAFFIC_ENDPOINT));
    let update = UpdateTrafficEndpoint { traffic_endpoint_id: 9, ..UpdateTrafficEndpoint::default() };
    let request = SessionModificationRequest { update_traffic_endpoints: vec![update], ..Default::default() };
    assert_eq!(refused(&mut lab, session, request), failure(ie::UPDATE_TRAFFIC_ENDPOINT));
    // What was taken before the fault goes back.
    let create = endpoint(5, Some(smf::choose(None)), None);
    let request = SessionModificationRequest {
        create_traffic_endpoints: vec![create],
        create_pdrs: vec![smf::pdr(9, smf::pdi(SourceInterface::Core), 99)],
        ..Default::default()
    };
    assert_eq!(refused(&mut lab, session, request).0, Cause::RuleCreationModificationFailure);
}

fn removing(ids: Vec<u8>) -> SessionModificationRequest {
    let remove = |traffic_endpoint_id| RemoveTrafficEndpoint { traffic_endpoint_id, carried: vec![] };
    let remove_traffic_endpoints = ids.into_iter().map(remove).collect();
    SessionModificationRequest { remove_traffic_endpoints, ..Default::default() }
}

/// As of rules, what is gone can be removed.
#[test]
fn an_endpoint_that_is_gone_can_be_removed() {
    let (mut lab, session, _) = lab();
    let before = (lab.in_force[&session].rules.clone(), lab.node.tunnels());
    accepted(&lab.modify(session, removing(vec![9, 9])));
    assert_eq!((lab.in_force[&session].rules.clone(), lab.node.tunnels()), before);
    assert_eq!(lab.node.counters().restated, 2);
    assert!(lab.notes.iter().any(|note| note.contains("of traffic endpoint 9 and of")), "{:?}", lab.notes);
}

#[test]
fn a_plain_session_has_no_extras() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, establishment(77));
    assert_eq!(lab.saved[&session].extras, None);
}
