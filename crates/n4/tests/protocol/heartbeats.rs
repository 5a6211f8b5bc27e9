//! Recovery time stamps in heartbeats: what a request tells is asked for (TS 29.244 6.2.2, 8.2.65).

use crate::common::smf::establishment;
use crate::common::{Lab, SMF};
use crate::peers::with_session;
use pfcp::*;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn tell(lab: &mut Lab, sequence: u32, stamp: u32) {
    lab.tell(SMF, &Message::node(sequence, HeartbeatRequest::new(stamp)));
}

fn is_asked(lab: &Lab) -> bool {
    lab.sent.iter().any(|(_, sent)| matches!(sent.body, Body::HeartbeatRequest(_)))
}

fn restarts(lab: &Lab) -> usize {
    lab.notes.iter().filter(|note| note.contains("has restarted")).count()
}

fn known(lab: &Lab) -> u32 {
    lab.associations[&SMF.to_string()].recovery_time_stamp
}

/// OpenAirInterface's SMF for a while: it requests with the present time every 10 s, and answers with that of its start.
fn lives_on(lab: &mut Lab, seconds: u32) -> usize {
    let mut asked = 0;
    for now in 1..=seconds {
        if now % 10 == 0 {
            tell(lab, 1_000 + now, 1 + now);
        }
        asked += lab.answers_with(SMF, 1);
        lab.pass(SECOND);
    }
    asked
}

#[test]
fn the_present_time_in_requests_is_no_restart() {
    let mut lab = with_session();
    let asked = lives_on(&mut lab, 120);
    assert_eq!((lab.in_force.len(), restarts(&lab), known(&lab)), (1, 0, 1));
    assert!((10..=13).contains(&asked), "as often as others: {asked}");
}

#[test]
fn who_requests_with_the_present_time_tells_of_a_restart_in_its_answer() {
    for lived_s in [0, 30, 35] {
        let mut lab = with_session();
        lives_on(&mut lab, lived_s);
        lab.answers_with(SMF, 1);
        tell(&mut lab, 1, 500);
        let mut waited = 0;
        while lab.answers_with(SMF, 400) == 0 {
            lab.pass(SECOND);
            waited += 1;
        }
        assert!(waited <= if lived_s == 0 { 0 } else { 10 }, "{waited}");
        assert_eq!((restarts(&lab), lab.in_force.len()), (1, 1), "it may say which sessions it retains");
        lab.pass(SECOND * 5);
        assert_eq!((lab.in_force.len(), known(&lab)), (0, 400));
    }
}

/// What it makes before that is known is of its new life.
#[test]
fn who_tells_of_a_restart_and_does_not_answer_is_believed() {
    let mut lab = with_session();
    let old = *lab.in_force.keys().next().unwrap();
    tell(&mut lab, 1, 2);
    assert!(is_asked(&lab));
    lab.pass(SECOND * 8);
    let mut other = establishment(78);
    other.create_pdrs[1].pdi.ue_ip_addresses = vec![crate::common::smf::ue([10, 60, 0, 2].into())];
    let new = lab.establish(other);
    assert_eq!((restarts(&lab), lab.in_force.len()), (0, 2));
    lab.pass(SECOND);
    assert_eq!(restarts(&lab), 1);
    lab.pass(SECOND * 5);
    assert!(!lab.in_force.contains_key(&old) && lab.in_force.contains_key(&new));
    assert_eq!(known(&lab), 2);
}

/// A path that fails tells nothing of who is known to request with the present time.
#[test]
fn who_requests_with_the_present_time_and_falls_silent_is_silent() {
    let mut lab = with_session();
    lives_on(&mut lab, 39);
    lab.pass(SECOND * 2);
    lab.sent.clear();
    tell(&mut lab, 1, 500);
    lab.pass(SECOND * 60);
    assert_eq!((restarts(&lab), lab.in_force.len()), (0, 1));
    assert!(lab.notes.iter().any(|note| note.contains("is silent")));
    for _ in 0..30 {
        lab.sent.clear();
        lab.pass(SECOND);
        lab.answers_with(SMF, 400);
    }
    assert_eq!(restarts(&lab), 1, "it answers, and says when it was started");
}

/// A heartbeat that is given up though the path is there again was asked too early.
#[test]
fn a_heartbeat_that_was_under_way_tells_nothing_of_the_request() {
    let mut lab = with_session();
    lab.pass(SECOND * 18);
    assert!(is_asked(&lab) && restarts(&lab) == 0);
    tell(&mut lab, 1, 500);
    lab.sent.clear();
    lab.pass(SECOND * 2);
    assert!(lab.answers_with(SMF, 1) > 0, "it is asked again");
    lab.pass(SECOND * 30);
    assert_eq!((restarts(&lab), lab.in_force.len(), known(&lab)), (0, 1, 1));
}
