//! Late copies of what a control plane said in a former life.

use crate::common::smf::{establishment, path_switch, setup};
use crate::common::{Lab, SMF};
use pfcp::*;
use rules::Seid;
use std::time::Duration;

fn accepted(lab: &mut Lab, message: &Message) {
    match lab.ask(SMF, message) {
        Body::AssociationSetupResponse(response) => assert_eq!(response.cause, Cause::RequestAccepted),
        Body::AssociationReleaseResponse(response) => assert_eq!(response.cause, Cause::RequestAccepted),
        other => panic!("{other:?}"),
    }
}

fn established(lab: &mut Lab, message: &Message) -> Seid {
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, message) else { panic!() };
    assert_eq!(response.cause, Cause::RequestAccepted);
    Seid(response.up_f_seid.unwrap().seid)
}

fn set_up(sequence: u32, stamp: u32) -> Message {
    Message::node(sequence, setup(SMF, stamp))
}

fn release(sequence: u32) -> Message {
    Message::node(sequence, AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] })
}

/// Whatever numbers the new life begins with.
#[test]
fn a_set_up_of_a_former_life_ends_nothing_of_the_new_one() {
    for (former, new) in [(10, 20), (10, 1)] {
        let mut lab = Lab::new(crate::common::config());
        accepted(&mut lab, &set_up(former, 100));
        accepted(&mut lab, &set_up(new, 130));
        let session = established(&mut lab, &Message::session(0, new + 1, establishment(77)));
        accepted(&mut lab, &set_up(former, 100));
        assert!(lab.in_force.contains_key(&session));
        assert_eq!(lab.associations[&SMF.to_string()].recovery_time_stamp, 130);
    }
}

/// It may have set its clock right. And one that knows no time and begins all over says the same as in the life before.
#[test]
fn an_earlier_stamp_is_another_life_where_the_request_is_new() {
    let mut lab = Lab::new(crate::common::config());
    accepted(&mut lab, &set_up(1, 130));
    established(&mut lab, &Message::session(0, 2, establishment(77)));
    accepted(&mut lab, &set_up(1, 100));
    assert_eq!((lab.in_force.len(), lab.associations[&SMF.to_string()].recovery_time_stamp), (0, 100));
    accepted(&mut lab, &release(2));
    accepted(&mut lab, &set_up(1, 100));
    assert_eq!(lab.associations.len(), 1);
}

#[test]
fn a_release_of_a_former_life_does_not_end_the_new_one() {
    let mut lab = Lab::new(crate::common::config());
    accepted(&mut lab, &set_up(10, 100));
    accepted(&mut lab, &release(11));
    accepted(&mut lab, &set_up(12, 100));
    accepted(&mut lab, &set_up(13, 120));
    let session = established(&mut lab, &Message::session(0, 14, establishment(77)));
    accepted(&mut lab, &release(11));
    assert!(lab.in_force.contains_key(&session) && lab.associations.len() == 1);
    accepted(&mut lab, &release(15));
    assert!(lab.in_force.is_empty() && lab.associations.is_empty());
}

/// One that counts from 1 in each life, and is there for a short time each.
#[test]
fn a_release_ends_each_life_that_says_it_by_the_same_number() {
    let mut lab = Lab::new(crate::common::config());
    for stamp in [100, 103, 106] {
        accepted(&mut lab, &set_up(1, stamp));
        assert_eq!(lab.associations.len(), 1);
        established(&mut lab, &Message::session(0, 2, establishment(77)));
        accepted(&mut lab, &release(3));
        assert!(lab.in_force.is_empty() && lab.associations.is_empty(), "{stamp}");
    }
}

#[test]
fn an_establishment_of_a_former_life_replaces_nothing_of_the_new_one() {
    let mut lab = Lab::new(crate::common::config());
    accepted(&mut lab, &set_up(10, 100));
    let former = Message::session(0, 11, establishment(77));
    let gone = established(&mut lab, &former);
    accepted(&mut lab, &set_up(12, 110));
    let session = established(&mut lab, &Message::session(0, 13, establishment(77)));
    assert_eq!(established(&mut lab, &former), gone);
    assert_eq!(lab.in_force.keys().collect::<Vec<_>>(), [&session]);
    // Later nobody knows.
    lab.pass(lab.config.answer_lifetime + Duration::from_secs(1));
    lab.sent.clear();
    assert_ne!(established(&mut lab, &former), gone);
}

/// One that counts anew may ask the same by the same number.
#[test]
fn who_counts_anew_is_not_given_the_answers_of_its_former_life() {
    let mut lab = Lab::new(crate::common::config());
    accepted(&mut lab, &set_up(1, 100));
    let message = Message::session(0, 2, establishment(77));
    let gone = established(&mut lab, &message);
    lab.ask(SMF, &Message::session(gone.0, 3, path_switch(5)));
    accepted(&mut lab, &set_up(1, 110));
    let session = established(&mut lab, &message);
    assert_ne!(session, gone);
    assert!(lab.in_force.contains_key(&session));
}
