//! A process that begins anew: numbers of our requests, and requests that the one before has answered.

use crate::common::billing::{lab, metered, total, urr};
use crate::common::smf::{self, chosen, establishment, path_switch};
use crate::common::{Lab, SMF, at};
use pfcp::*;
use rules::Seid;
use std::collections::BTreeSet;
use std::time::Duration;

const VOLTH: u32 = 1 << 1;

fn reporting() -> (Lab, Seid) {
    lab(vec![CreateUrr { volume_threshold: total(100), ..urr(1, VOLTH) }])
}

fn confirm(lab: &mut Lab, seid: u64, sequence: u32) {
    lab.tell(SMF, &Message::session(seid, sequence, SessionReportResponse::of(Cause::RequestAccepted)));
}

/// However fast they follow each other: peers take a request for one that comes again by its number (TS 29.244 6.4).
#[test]
fn a_process_asks_by_other_numbers_than_the_one_before() {
    let mut lab = Lab::associated();
    let request = |seid| metered(seid, vec![CreateUrr { volume_threshold: total(100), ..urr(1, VOLTH) }]);
    let sessions: Vec<Seid> = (70..80).map(|seid| lab.establish(request(seid))).collect();
    let mut seen = BTreeSet::new();
    for _ in 0..4 {
        for _ in 0..20 {
            sessions.iter().for_each(|session| lab.traffic(*session, (100, 0), false));
            for (_, report) in lab.reports() {
                assert!(seen.insert(report.sequence), "{} again", report.sequence);
                confirm(&mut lab, 0, report.sequence);
            }
            lab.sent.clear();
            lab.pass(Duration::from_millis(100));
        }
        lab.restart();
    }
    assert!(seen.len() > 700, "{}", seen.len());
}

/// Nothing is written for each.
#[test]
fn numbers_are_kept_by_blocks() {
    let (mut lab, session) = reporting();
    lab.traffic(session, (100, 0), false);
    let kept = lab.record;
    for _ in 0..100 {
        let (_, report) = lab.reports().remove(0);
        confirm(&mut lab, session.0, report.sequence);
        lab.pass(Duration::from_millis(100));
        lab.traffic(session, (100, 0), false);
    }
    assert_eq!(lab.record, kept);
}

/// The SEID of a response is ours (TS 29.244 7.2.2.4.2). Some know none, or echo theirs.
#[test]
fn an_answer_is_about_the_session_that_was_reported_of() {
    for (is_answer, seid) in [(true, None), (true, Some(0)), (true, Some(77)), (false, Some(0xDEAD))] {
        let (mut lab, session) = reporting();
        lab.traffic(session, (100, 0), false);
        let (_, report) = lab.reports().remove(0);
        confirm(&mut lab, seid.unwrap_or(session.0), report.sequence);
        assert_eq!(lab.saved[&session].usage.unconfirmed.is_none(), is_answer, "{seid:?}");
        assert_eq!(lab.node.counters().unexpected, u64::from(!is_answer));
        confirm(&mut lab, session.0, report.sequence);
        assert!(lab.saved[&session].usage.unconfirmed.is_none());
    }
}

/// Asks, has the process begin anew, and asks again; the answers to both.
fn asked_again(lab: &mut Lab, message: &Message) -> (Message, Message) {
    lab.tell(SMF, message);
    let first = lab.answer(message.sequence);
    lab.restart();
    lab.sent.clear();
    lab.tell(SMF, message);
    (first, lab.answer(message.sequence))
}

#[test]
fn an_establishment_that_comes_again_after_a_restart_is_carried_out_once() {
    let mut lab = Lab::associated();
    let message = Message { priority: Some(12), ..Message::session(0, 900, establishment(77)) };
    let (first, again) = asked_again(&mut lab, &message);
    assert_eq!(again, first);
    let Body::SessionEstablishmentResponse(response) = again.body else { panic!() };
    let session = Seid(response.up_f_seid.unwrap().seid);
    let teid = lab.in_force[&session].rules.pdrs[0].pdi.f_teid.unwrap().teid;
    assert_eq!((chosen(&response.created_pdrs, 1), lab.node.sessions()), (teid.0, 1));
    // By others it is not: they are other requests.
    lab.receive((SMF, 4_000).into(), &pfcp::encode(&message));
    assert_ne!(lab.answer(900).body, first.body);
}

#[test]
fn a_modification_that_comes_again_after_a_restart_is_carried_out_once() {
    let (mut lab, session) = lab(vec![]);
    let create_pdrs = vec![smf::uplink(5, smf::choose(None))];
    let request = SessionModificationRequest { create_pdrs, ..Default::default() };
    let (first, again) = asked_again(&mut lab, &Message::session(session.0, 900, request));
    assert_eq!(again, first);
    let Body::SessionModificationResponse(response) = again.body else { panic!() };
    assert_eq!((response.cause, response.created_pdrs.len()), (Cause::RequestAccepted, 1));
    let (told, (first, again)) = (lab.told.len(), {
        let message = Message::session(session.0, 901, path_switch(9));
        asked_again(&mut lab, &message)
    });
    assert_eq!((again, lab.told.len()), (first, told + 1));
}

/// Of most answers little has to be kept, and that no longer than others are remembered.
#[test]
fn what_is_kept_of_an_answer_is_little_and_soon_forgotten() {
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, vec![]));
    let answer = lab.saved[&session].usage.answer.clone().unwrap();
    assert_eq!((answer.to, answer.octets.len()), (at(SMF), 23), "of the PDR with the endpoint");
    let message = Message::session(session.0, 901, path_switch(9));
    lab.tell(SMF, &message);
    assert!(lab.saved[&session].usage.answer.clone().unwrap().octets.is_empty());
    let told = lab.told.len();
    lab.pass(lab.config.answer_lifetime);
    lab.restart();
    lab.sent.clear();
    lab.ask(SMF, &message);
    assert_eq!(lab.node.counters().repeated, 0);
    assert!(lab.told.len() > told || lab.node.counters().accepted == 1);
}
