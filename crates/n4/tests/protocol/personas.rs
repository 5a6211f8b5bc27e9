//! What control planes in use do that no packet shows. The matrix of personas (tests/matrix) has the rest.

use crate::common::personas::*;
use crate::common::smf::{self, establishment, far, forwarding, given, setup, uplink};
use crate::common::{Lab, SMF, config};
use n4::Config;
use pfcp::*;

/// free5GC sends a message priority, and gives endpoints itself: the answer has the one, and tells of none of the others.
#[test]
fn an_answer_has_the_priority_of_its_request_and_no_endpoint_that_was_given() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_pdrs[0] = uplink(1, given(1));
    lab.tell(SMF, &Message { priority: Some(0), ..Message::session(0, 500, request) });
    let answer = lab.answer(500);
    assert_eq!(answer.priority, Some(0));
    let Body::SessionEstablishmentResponse(response) = answer.body else { panic!("{answer:?}") };
    assert_eq!((response.cause, response.created_pdrs), (Cause::RequestAccepted, vec![]));
}

/// free5GC's uplink classifier: filters, and a forwarding policy that the operator knows.
#[test]
fn a_branch_to_a_local_network_is_a_pdr_with_a_forwarding_policy() {
    let policies = vec![n4::ForwardingPolicy::of_any("MEC1")];
    let mut lab = Lab::new(Config { forwarding_policies: policies, ..config() });
    lab.associate(SMF, 1);
    let (session, _) = established(&mut lab, establishment(77));
    let mut branch = uplink(3, given(1));
    let flow_description = Some("permit out ip from 10.70.0.0/24 to assigned".to_owned());
    branch.pdi.sdf_filters = vec![SdfFilter { flow_description, ..SdfFilter::default() }];
    (branch.far_id, branch.precedence) = (Some(3), Some(63));
    let mut local = forwarding(DestinationInterface::Core);
    local.carried = vec![RawIe { ie: ie::FORWARDING_POLICY, value: b"\x04MEC1".to_vec() }];
    let create_fars = vec![far(3, ApplyAction::FORW, Some(local))];
    let request = SessionModificationRequest { create_pdrs: vec![branch], create_fars, ..Default::default() };
    accepted(&lab.modify(session, request));
    let to = rules(&lab, session).fars[2].forwarding.unwrap();
    assert_eq!(to.policy, Some(rules::Policy::of(b"MEC1")));
    let flow = rules(&lab, session).pdrs[2].pdi.sdf_filters[0].flow.clone().unwrap();
    assert_eq!(flow.remote.addresses.map(|wanted| wanted.prefix), Some("10.70.0.0/24".parse().unwrap()));
}

/// OMEC's adapter speaks from another port than the association was made from.
#[test]
fn a_control_plane_may_speak_from_another_port() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, establishment(77));
    let from = std::net::SocketAddr::new(SMF.into(), 40_000);
    let request = Message::session(session.0, 501, switch(5, Some(flags::PFCPSM_DROBU)));
    lab.receive(from, &pfcp::encode(&request));
    let Body::SessionModificationResponse(response) = lab.answer(501).body else { panic!("an answer") };
    accepted(&response);
}

/// Open5GS sends new filters of a rule without its F-TEID.
#[test]
fn new_filters_leave_the_endpoint_as_it_is() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, establishment(77));
    let teid = rules(&lab, session).pdrs[0].pdi.f_teid;
    let mut changed = smf::pdi(SourceInterface::Access);
    let flow_description = Some("permit out icmp from any to assigned".to_owned());
    changed.sdf_filters = vec![SdfFilter { flow_description, ..SdfFilter::default() }];
    let update_pdrs = vec![UpdatePdr { pdr_id: 1, pdi: Some(changed), ..UpdatePdr::default() }];
    accepted(&lab.modify(session, SessionModificationRequest { update_pdrs, ..Default::default() }));
    assert_eq!((rules(&lab, session).pdrs[0].pdi.f_teid, teid.is_some()), (teid, true));
}

#[test]
fn associations_come_from_either_side() {
    let mut lab = Lab::new(Config { associate: vec![crate::common::at(SMF)], ..config() });
    lab.associate(SMF, 1);
    let answer = lab.ask(SMF, &Message::node(5, setup(SMF, 1)));
    assert!(matches!(answer, Body::AssociationSetupResponse(ref it) if it.up_function_features.is_some()));
}

/// RFC 6733 4.3.1 has it although TS 29.212 5.4.2 has not.
#[test]
fn a_filter_may_want_all_addresses_but_some() {
    let with = |text: &str| {
        let mut request = establishment(77);
        request.create_pdrs[1].pdi.sdf_filters = vec![SdfFilter::flow(text)];
        request
    };
    let mut lab = Lab::associated();
    for nobody in ["permit out ip from !any to assigned", "permit out ip from any to !0.0.0.0/0"] {
        let Body::SessionEstablishmentResponse(refused) =
            lab.ask(SMF, &Message::session(0, 500, with(nobody)))
        else {
            panic!("an answer")
        };
        assert_eq!(refused.cause, Cause::RuleCreationModificationFailure, "{nobody}");
        assert_eq!(refused.failed_rule_id, Some(FailedRuleId::Pdr(2)));
    }
    let (session, _) = established(&mut lab, with("permit out ip from !203.0.113.0/24 to assigned"));
    let classifier = ::rules::compile(rules(&lab, session)).unwrap().classifier;
    let is_found = |remote: &str| classifier.find(&downlink_from(remote.parse().unwrap())).is_some();
    for remote in ["203.0.112.255", "203.0.114.0", "0.0.0.0", "255.255.255.255"] {
        assert!(is_found(remote), "{remote}");
    }
    for remote in ["203.0.113.0", "203.0.113.255", "2001:db8::1"] {
        assert!(!is_found(remote), "{remote}");
    }
}

fn downlink_from(remote: std::net::IpAddr) -> ::rules::Arrival {
    ::rules::Arrival {
        source: ::rules::Interface::Core,
        instance: ::rules::Instance::DEFAULT,
        teid: None,
        qfi: None,
        ue: smf::UE.into(),
        remote,
        protocol: 17,
        ue_port: Some(1_000),
        remote_port: Some(53),
        traffic_class: 0,
        spi: None,
        flow_label: None,
        application: ::rules::Application::None,
    }
}
