//! Network instances: users of different ones may have the same address.

use crate::common::personas::{accepted, established, rules};
use crate::common::smf::{self, establishment};
use crate::common::{Lab, SMF};
use n4::{Config, ForwardingPolicy, UePool};
use pfcp::*;
use rules::Instance;
use std::net::Ipv4Addr;

fn config() -> Config {
    let pool = |name: &str| UePool {
        name: name.to_owned(),
        prefix: "10.60.0.0/30".parse().unwrap(),
        network_instance: Some(name.to_owned()),
    };
    let network_instances = ["access", "ims", "internet"].map(str::to_owned).to_vec();
    let refuses_unknown_instances = true;
    Config {
        network_instances,
        refuses_unknown_instances,
        ue_pools: vec![pool("internet"), pool("ims")],
        ..crate::common::config()
    }
}

/// A session whose user is in this network, as a control plane that names all of them says it.
fn within(cp_seid: u64, network: &str) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    request.create_pdrs[0].pdi.network_instance = Some(NetworkInstance::text("access"));
    request.create_pdrs[1].pdi.network_instance = Some(NetworkInstance::labels(network));
    let to = request.create_fars[0].forwarding_parameters.as_mut().unwrap();
    to.network_instance = Some(NetworkInstance::text(network));
    request
}

fn choosing(cp_seid: u64, network: &str) -> SessionEstablishmentRequest {
    let mut request = within(cp_seid, network);
    let address = UeIpAddress { ipv4: None, choose_ipv4: true, ..smf::ue(Ipv4Addr::UNSPECIFIED) };
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![address];
    request
}

fn refused(lab: &mut Lab, request: SessionEstablishmentRequest) -> SessionEstablishmentResponse {
    match lab.ask(SMF, &Message::session(0, 900, request)) {
        Body::SessionEstablishmentResponse(response) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_say_which_network_they_are_of() {
    let mut lab = Lab::associated_with(config());
    for (cp_seid, network) in [(1, "internet"), (2, "IMS")] {
        let (session, _) = established(&mut lab, within(cp_seid, network));
        let rules = rules(&lab, session);
        let instance = Instance::of(network);
        assert_eq!((rules.pdrs[1].pdi.instance, rules.pdrs[1].pdi.ue_ipv4), (instance, Some(smf::UE)));
        assert_eq!(rules.fars[0].forwarding.unwrap().instance, instance);
    }
    assert_eq!(lab.node.sessions(), 2, "of one address");
}

#[test]
fn each_network_has_a_pool_of_the_same_addresses() {
    let mut lab = Lab::associated_with(config());
    let address = |created: &[CreatedPdr]| created.last().unwrap().ue_ip_addresses[0].ipv4.unwrap();
    let (first, created) = established(&mut lab, choosing(1, "internet"));
    assert_eq!(address(&created), Ipv4Addr::new(10, 60, 0, 1));
    let (_, created) = established(&mut lab, choosing(2, "ims"));
    assert_eq!((address(&created), lab.node.addresses()), (Ipv4Addr::new(10, 60, 0, 1), 2));
    // A restart takes both back, each where it was.
    lab.restart();
    assert_eq!(lab.node.addresses(), 2);
    lab.delete(first);
    assert_eq!(lab.node.addresses(), 1);
    let again = within(3, "internet");
    established(&mut lab, again);
    let taken = refused(&mut lab, within(4, "ims"));
    assert_eq!(
        (taken.cause, taken.offending_ie),
        (Cause::RuleCreationModificationFailure, Some(ie::UE_IP_ADDRESS))
    );
}

#[test]
fn unknown_networks_are_refused_by_the_rule_that_names_them() {
    let mut lab = Lab::associated_with(config());
    let blamed = |rule| (Cause::RuleCreationModificationFailure, Some(ie::NETWORK_INSTANCE), rule);
    let mut request = within(1, "internet");
    request.create_pdrs[1].pdi.network_instance = Some(NetworkInstance::labels("mec"));
    let answer = refused(&mut lab, request);
    let (cause, offending_ie) = (answer.cause, answer.offending_ie);
    assert_eq!((cause, offending_ie, answer.failed_rule_id), blamed(Some(FailedRuleId::Pdr(2))));
    let mut request = within(1, "internet");
    let to = request.create_fars[0].forwarding_parameters.as_mut().unwrap();
    to.network_instance = Some(NetworkInstance::text("mec"));
    let answer = refused(&mut lab, request);
    let (cause, offending_ie) = (answer.cause, answer.offending_ie);
    assert_eq!((cause, offending_ie, answer.failed_rule_id), blamed(Some(FailedRuleId::Far(1))));
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (0, 0, 0));
}

#[test]
fn a_far_may_lead_elsewhere_later() {
    let mut lab = Lab::associated_with(config());
    let (session, _) = established(&mut lab, within(1, "internet"));
    let mut update = |name: NetworkInstance| {
        let to = UpdateForwardingParameters {
            network_instance: Some(name),
            ..UpdateForwardingParameters::default()
        };
        let update = UpdateFar { far_id: 1, update_forwarding_parameters: Some(to), ..UpdateFar::default() };
        let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
        let response = lab.modify(session, request);
        (response, rules(&lab, session).fars[0].forwarding.unwrap().instance)
    };
    let (response, instance) = update(NetworkInstance::text("ims"));
    accepted(&response);
    assert_eq!(instance, Instance::of("ims"));
    let (response, instance) = update(NetworkInstance::text("mec"));
    let told = (response.cause, response.offending_ie, response.failed_rule_id);
    let blamed = Some(FailedRuleId::Far(1));
    assert_eq!(told, (Cause::RuleCreationModificationFailure, Some(ie::NETWORK_INSTANCE), blamed));
    assert_eq!(instance, Instance::of("ims"), "as before");
}

#[test]
fn where_no_network_has_a_name_any_stands_for_the_one() {
    let mut lab = Lab::associated();
    let (session, _) = established(&mut lab, within(1, "whatever"));
    let rules = rules(&lab, session);
    assert!(rules.pdrs.iter().all(|pdr| pdr.pdi.instance == Instance::DEFAULT));
    assert_eq!(rules.fars[0].forwarding.unwrap().instance, Instance::DEFAULT);
}

#[test]
fn unknown_networks_are_the_one_without_a_name_and_known_ones_stay_apart() {
    let mut lab = Lab::associated_with(Config { refuses_unknown_instances: false, ..config() });
    let mut unknown = within(1, "mec");
    unknown.create_pdrs[0].pdi.network_instance = Some(NetworkInstance::text("n3.somewhere"));
    let (session, _) = established(&mut lab, unknown);
    let of = |lab: &Lab, session| {
        let rules = rules(lab, session);
        (rules.pdrs[1].pdi.instance, rules.fars[0].forwarding.unwrap().instance)
    };
    assert_eq!(of(&lab, session), (Instance::DEFAULT, Instance::DEFAULT));
    let (other, _) = established(&mut lab, within(2, "ims"));
    assert_eq!(of(&lab, other), (Instance::of("ims"), Instance::of("ims")));
    let (session, _) = established(&mut lab, within(3, "internet"));
    assert_eq!(of(&lab, session), (Instance::of("internet"), Instance::of("internet")));
    assert_eq!(lab.node.sessions(), 3, "of one address");
    // A change of name is one, too.
    let to = UpdateForwardingParameters {
        network_instance: Some(NetworkInstance::text("mec")),
        ..UpdateForwardingParameters::default()
    };
    let update = UpdateFar { far_id: 1, update_forwarding_parameters: Some(to), ..UpdateFar::default() };
    let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
    accepted(&lab.modify(session, request));
    assert_eq!(of(&lab, session), (Instance::of("internet"), Instance::DEFAULT));
}

fn blamed(response: &SessionEstablishmentResponse) -> (Cause, Option<u16>, Option<FailedRuleId>) {
    (response.cause, response.offending_ie, response.failed_rule_id)
}

/// Where every port has a name there is no network without one: plain packets of it would neither come nor leave.
#[test]
fn rules_for_plain_packets_of_no_network_are_refused_where_every_network_has_a_name() {
    let named = Config { has_no_nameless_network: true, ..config() };
    let mut lab = Lab::associated_with(named.clone());
    let nameless = |rule| (Cause::RuleCreationModificationFailure, Some(ie::NETWORK_INSTANCE), Some(rule));
    let mut request = within(1, "internet");
    request.create_pdrs[1].pdi.network_instance = None;
    assert_eq!(blamed(&refused(&mut lab, request.clone())), nameless(FailedRuleId::Pdr(2)));
    established(&mut Lab::associated_with(config()), request);
    let mut request = within(1, "internet");
    request.create_fars[0].forwarding_parameters.as_mut().unwrap().network_instance = None;
    assert_eq!(blamed(&refused(&mut lab, request.clone())), nameless(FailedRuleId::Far(1)));
    assert_eq!((lab.node.sessions(), lab.node.tunnels(), lab.node.addresses()), (0, 0, 0));
    established(&mut Lab::associated_with(config()), request);
    // The access side is one network, whatever it is called.
    let mut request = within(1, "internet");
    request.create_pdrs[0].pdi.network_instance = None;
    let (session, _) = established(&mut lab, request);
    let to = UpdateForwardingParameters {
        carried: vec![RawIe { ie: ie::NETWORK_INSTANCE, value: vec![] }],
        ..UpdateForwardingParameters::default()
    };
    let update = UpdateFar { far_id: 1, update_forwarding_parameters: Some(to), ..UpdateFar::default() };
    let request = SessionModificationRequest { update_fars: vec![update], ..Default::default() };
    let response = lab.modify(session, request);
    let told = (response.cause, response.offending_ie, response.failed_rule_id);
    assert_eq!(told, nameless(FailedRuleId::Far(1)));
    assert_eq!(rules(&lab, session).fars[0].forwarding.unwrap().instance, Instance::of("internet"));
}

/// Its next hops are in another network than packets of the FAR are to leave to.
#[test]
fn a_forwarding_policy_of_another_network_is_refused_by_the_far_that_gives_it() {
    let of_ims = ForwardingPolicy { name: "steer".to_owned(), instance: Some(Instance::of("ims")) };
    let forwarding_policies = vec![of_ims, ForwardingPolicy::of_any("any")];
    let mut lab = Lab::associated_with(Config { forwarding_policies, ..config() });
    let by = |name: &str| {
        let value = [&[name.len() as u8], name.as_bytes()].concat();
        vec![RawIe { ie: ie::FORWARDING_POLICY, value }]
    };
    let steered = |cp_seid, network: &str, policy| {
        let mut request = within(cp_seid, network);
        request.create_fars[0].forwarding_parameters.as_mut().unwrap().carried = by(policy);
        request
    };
    let elsewhere = (Cause::InvalidForwardingPolicy, Some(ie::FORWARDING_POLICY), Some(FailedRuleId::Far(1)));
    assert_eq!(blamed(&refused(&mut lab, steered(1, "internet", "steer"))), elsewhere);
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
    let (session, _) = established(&mut lab, steered(1, "ims", "steer"));
    established(&mut lab, steered(2, "internet", "any"));
    // Nor may the FAR lead elsewhere later.
    let to = UpdateForwardingParameters {
        network_instance: Some(NetworkInstance::text("internet")),
        ..UpdateForwardingParameters::default()
    };
    let update = |to| {
        let update = UpdateFar { far_id: 1, update_forwarding_parameters: Some(to), ..UpdateFar::default() };
        SessionModificationRequest { update_fars: vec![update], ..Default::default() }
    };
    let response = lab.modify(session, update(to.clone()));
    assert_eq!((response.cause, response.offending_ie, response.failed_rule_id), elsewhere);
    accepted(&lab.modify(session, update(UpdateForwardingParameters { carried: by("any"), ..to })));
}
