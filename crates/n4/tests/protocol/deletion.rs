//! What a deletion tells of usage: all that the control plane has not confirmed, and nothing twice.

use crate::common::billing::{lab, octets, seconds, total, urr};
use crate::common::{Lab, Obedience, SMF};
use pfcp::*;
use rules::Seid;
use std::time::Duration;

const VOLTH: u32 = 1 << 1;
/// Of deletions.
const SEQUENCE: u32 = 900;

/// A session with a report under way, of 1,000 bytes.
fn reporting() -> (Lab, Seid, u32) {
    let threshold = CreateUrr { volume_threshold: total(1_000), ..urr(1, VOLTH) };
    let (mut lab, session) = lab(vec![threshold]);
    lab.traffic(session, (400, 600), false);
    let reports = lab.reports();
    let [(_, report)] = &reports[..] else { panic!("{reports:?}") };
    (lab, session, report.sequence)
}

fn answer(lab: &mut Lab, sequence: u32, cause: Cause) {
    lab.tell(SMF, &Message::session(0, sequence, SessionReportResponse::of(cause)));
}

fn ask_to_delete(lab: &mut Lab, session: Seid) {
    lab.tell(SMF, &Message::session(session.0, SEQUENCE, SessionDeletionRequest::default()));
}

/// Numbers and octets of the reports in the answer to the deletion, which must be there.
fn told(lab: &mut Lab) -> Vec<(u32, (u64, u64))> {
    let Body::SessionDeletionResponse(response) = lab.answer(SEQUENCE).body else { panic!() };
    assert_eq!(response.cause, Cause::RequestAccepted);
    response.usage_reports.iter().map(|report| (report.ur_seqn, octets(report))).collect()
}

fn waits(lab: &Lab) -> bool {
    lab.sent.iter().all(|(_, message)| message.sequence != SEQUENCE)
}

/// Whoever left it unanswered, said that it cannot take it now, or was silent, hears of it with the deletion.
#[test]
fn a_report_that_waits_to_be_told_again_is_told_with_the_deletion() {
    type Case = fn(&mut Lab, u32);
    let cases: [Case; 4] = [
        |lab, _| seconds(lab, 9),
        |lab, sequence| answer(lab, sequence, Cause::PfcpEntityInCongestion),
        |lab, sequence| answer(lab, sequence, Cause::SystemFailure),
        |lab, sequence| answer(lab, sequence, Cause::NoEstablishedPfcpAssociation),
    ];
    for case in cases {
        let (mut lab, session, sequence) = reporting();
        case(&mut lab, sequence);
        lab.traffic(session, (1, 2), true);
        lab.sent.clear();
        ask_to_delete(&mut lab, session);
        assert_eq!(told(&mut lab), [(0, (400, 600)), (1, (1, 2))]);
        seconds(&mut lab, 400);
        assert!(lab.reports().is_empty(), "once");
    }
}

#[test]
fn what_a_silent_control_plane_was_not_told_is_told_with_the_deletion() {
    let threshold = CreateUrr { volume_threshold: total(1_000), ..urr(1, VOLTH) };
    let (mut lab, session) = lab(vec![threshold]);
    lab.goes_silent();
    seconds(&mut lab, 30);
    lab.traffic(session, (400, 600), false);
    assert!(lab.reports().is_empty());
    ask_to_delete(&mut lab, session);
    let told = told(&mut lab);
    assert_eq!(told.iter().map(|(_, octets)| octets.0 + octets.1).sum::<u64>(), 1_000);
    assert_eq!(told[0].0, 0);
}

/// Nor across a restart of the process.
#[test]
fn a_restart_loses_nothing_of_it() {
    let (mut lab, session, sequence) = reporting();
    answer(&mut lab, sequence, Cause::SystemFailure);
    ask_to_delete(&mut lab, session);
    let first = told(&mut lab);
    lab.restart();
    ask_to_delete(&mut lab, session);
    assert_eq!(
        (told(&mut lab), first),
        (vec![(0, (400, 600)), (1, (0, 0))], vec![(0, (400, 600)), (1, (0, 0))])
    );
}

/// A report that crosses the deletion has mostly been heard: the answer waits for that of the report, and tells no more than the rest.
#[test]
fn a_report_on_its_way_is_waited_for() {
    let (mut lab, session, sequence) = reporting();
    lab.traffic(session, (1, 2), true);
    ask_to_delete(&mut lab, session);
    assert!(waits(&lab));
    // What comes meanwhile is as for any session that is being deleted.
    lab.tell(SMF, &Message::session(session.0, SEQUENCE + 1, SessionModificationRequest::default()));
    assert_eq!(lab.node.sessions(), 1);
    answer(&mut lab, sequence, Cause::RequestAccepted);
    assert_eq!(told(&mut lab), [(1, (1, 2))]);
    let Body::SessionModificationResponse(response) = lab.answer(SEQUENCE + 1).body else { panic!() };
    assert_eq!((response.cause, lab.node.sessions()), (Cause::SessionContextNotFound, 0));
    seconds(&mut lab, 400);
    assert!(lab.reports().is_empty());
}

/// Not longer than for the data plane: then it is told with the deletion, and nowhere else.
#[test]
fn a_report_that_nobody_answers_meanwhile_is_told_with_the_deletion() {
    let (mut lab, session, _) = reporting();
    ask_to_delete(&mut lab, session);
    lab.pass(lab.config.apply_timeout);
    assert_eq!(told(&mut lab), [(0, (400, 600)), (1, (0, 0))]);
    assert!(!lab.notes.iter().any(|note| note.contains("the data plane is silent")), "{:?}", lab.notes);
    seconds(&mut lab, 400);
    assert!(lab.reports().is_empty());
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
}

/// A control plane that forgets a session as soon as it wants it gone, or is too busy for the report, has not heard it.
#[test]
fn a_report_on_its_way_that_is_not_taken_is_told_with_the_deletion() {
    for cause in [Cause::SessionContextNotFound, Cause::PfcpEntityInCongestion] {
        let (mut lab, session, sequence) = reporting();
        ask_to_delete(&mut lab, session);
        answer(&mut lab, sequence, cause);
        assert_eq!(told(&mut lab), [(0, (400, 600)), (1, (0, 0))]);
        // Before the data plane has said its last word, too.
        let (mut lab, session, sequence) = reporting();
        lab.obedience = Obedience::Waits;
        ask_to_delete(&mut lab, session);
        answer(&mut lab, sequence, cause);
        assert!(waits(&lab));
        lab.obedience = Obedience::Obeys;
        lab.obey();
        assert_eq!(told(&mut lab), [(0, (400, 600)), (1, (0, 0))]);
    }
}

/// Nothing is begun while it is being deleted: a report that is sent then would cross the answer.
#[test]
fn nothing_is_told_again_while_the_session_is_being_deleted() {
    let (mut lab, session, sequence) = reporting();
    answer(&mut lab, sequence, Cause::PfcpEntityInCongestion);
    lab.pass(Duration::from_millis(9_500));
    lab.obedience = Obedience::Waits;
    ask_to_delete(&mut lab, session);
    lab.pass(Duration::from_millis(1_000));
    assert!(lab.reports().is_empty());
    lab.obedience = Obedience::Obeys;
    lab.obey();
    assert_eq!(told(&mut lab), [(0, (400, 600)), (1, (0, 0))]);
}
