//! What is said of the node itself: how busy it is.

use crate::common::smf::{establishment, path_switch, setup};
use crate::common::{Lab, Obedience, SMF, config};
use n4::{Config, Input, Limits};
use pfcp::*;
use rules::Seid;
use std::time::Duration;

/// Ten sessions are the limit.
fn small() -> Lab {
    let limits = Limits { sessions: 10, ..Limits::default() };
    Lab::new(Config { limits, ..config() })
}

pub(crate) fn associate(lab: &mut Lab, features: &[CpFeature]) {
    let request = AssociationSetupRequest {
        cp_function_features: Some(CpFunctionFeatures::of(features)),
        ..setup(SMF, 1)
    };
    lab.ask(SMF, &Message::node(1, request));
}

type Said = (Option<u8>, Option<u8>);

fn establish(lab: &mut Lab, cp_seid: u64) -> (Said, Option<Seid>) {
    let mut request = establishment(cp_seid);
    request.create_pdrs[1].pdi.ue_ip_addresses =
        vec![crate::common::smf::ue([10, 60, 1, cp_seid as u8].into())];
    let Body::SessionEstablishmentResponse(response) =
        lab.ask(SMF, &Message::session(0, 100 + cp_seid as u32, request))
    else {
        panic!("an answer")
    };
    let said =
        (response.load.map(|load| load.metric), response.overload.map(|overload| overload.reduction_metric));
    (said, response.up_f_seid.map(|f_seid| Seid(f_seid.seid)))
}

#[test]
fn load_is_told_to_those_who_understand_whenever_it_changes() {
    let mut lab = small();
    associate(&mut lab, &[CpFeature::Load]);
    let (first, session) = establish(&mut lab, 1);
    assert_eq!((first, establish(&mut lab, 2).0), ((Some(10), None), (Some(20), None)));
    let session = session.unwrap();
    assert_eq!(lab.modify(session, path_switch(9)).load, None, "nothing new");
    assert_eq!(lab.delete(session).load.map(|load| load.metric), Some(10));
}

#[test]
fn numbers_of_load_grow_through_a_restart() {
    let mut lab = small();
    associate(&mut lab, &[CpFeature::Load]);
    let number = |lab: &mut Lab, cp_seid| {
        let Body::SessionEstablishmentResponse(response) =
            lab.ask(SMF, &Message::session(0, 100 + cp_seid as u32, establishment(cp_seid)))
        else {
            panic!("an answer")
        };
        response.load.unwrap().sequence_number
    };
    let (first, second) = (number(&mut lab, 1), number(&mut lab, 2));
    lab.pass(Duration::from_secs(5));
    lab.restart();
    assert!(first < second && second < number(&mut lab, 3));
}

/// Only deletions make room in what is full.
#[test]
fn a_full_node_asks_nobody_to_leave_requests_out() {
    let mut lab = small();
    associate(&mut lab, &[CpFeature::Ovrl]);
    for cp_seid in 1..=11 {
        let (said, session) = establish(&mut lab, cp_seid);
        assert_eq!((said, session.is_some()), ((None, None), cp_seid <= 10));
    }
}

/// Requests of this control plane wait for a share of T1, which is 3 s.
fn wait(lab: &mut Lab, milliseconds: u64) {
    lab.handle(Input::Waited(Duration::from_millis(milliseconds)));
}

#[test]
fn a_busy_node_asks_for_less_until_it_is_over() {
    let mut lab = small();
    associate(&mut lab, &[CpFeature::Ovrl]);
    wait(&mut lab, 500);
    let (said, session) = establish(&mut lab, 1);
    assert_eq!(said, (None, None));
    let session = session.unwrap();
    wait(&mut lab, 1_000);
    let begun = lab.modify(session, path_switch(9)).overload.unwrap();
    assert_eq!((begun.reduction_metric, flags::timer_s(begun.period_of_validity)), (30, Some(60)));
    assert_eq!(lab.modify(session, path_switch(9)).overload, None, "no news");
    // It goes on where it would not have begun.
    wait(&mut lab, 500);
    assert_eq!(lab.modify(session, path_switch(9)).overload.unwrap().reduction_metric, 10);
    wait(&mut lab, 100_000);
    let most = lab.modify(session, path_switch(9)).overload.unwrap();
    assert_eq!(most.reduction_metric, 90, "never silence");
    // It is told anew before it is forgotten.
    lab.pass(Duration::from_secs(40));
    lab.sent.clear();
    assert_eq!(lab.modify(session, path_switch(9)).overload, Some(most.clone()));
    wait(&mut lab, 0);
    let over = lab.delete(session).overload.unwrap();
    assert!(over.reduction_metric == 0 && over.sequence_number > most.sequence_number);
    assert_eq!(establish(&mut lab, 2).0, (None, None));
}

/// It confirms others, but is late with one: that is told before it is too late, and the refusal says that it may be tried again.
#[test]
fn a_data_plane_that_is_late_is_overload_and_congestion() {
    let mut lab = small();
    associate(&mut lab, &[CpFeature::Ovrl]);
    let session = establish(&mut lab, 1).1.unwrap();
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, 50, path_switch(9)));
    lab.pass(Duration::from_millis(1_500));
    let late = std::mem::take(&mut lab.orders);
    lab.obedience = Obedience::Obeys;
    wait(&mut lab, 0);
    assert_eq!(establish(&mut lab, 2).0, (None, Some(50)), "of T1, which is 3 s");
    lab.pass(Duration::from_millis(500));
    let Body::SessionModificationResponse(refused) = lab.answer(50).body else { panic!("an answer") };
    assert_eq!(refused.cause, Cause::PfcpEntityInCongestion);
    lab.orders.extend(late);
    lab.obey();
    wait(&mut lab, 0);
    assert_eq!(lab.delete(session).overload.unwrap().reduction_metric, 0);
}

#[test]
fn a_refusal_tells_of_load_and_overload_too() {
    let mut lab = Lab::new(Config { limits: Limits { tunnels: 0, ..Limits::default() }, ..config() });
    associate(&mut lab, &[CpFeature::Load, CpFeature::Ovrl]);
    wait(&mut lab, 3_000);
    assert_eq!(establish(&mut lab, 1), ((Some(100), Some(90)), None));
}

#[test]
fn who_does_not_understand_is_told_nothing() {
    let mut lab = small();
    associate(&mut lab, &[]);
    wait(&mut lab, 3_000);
    assert!((1..=10).all(|cp_seid| establish(&mut lab, cp_seid).0 == (None, None)));
}
