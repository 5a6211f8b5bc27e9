//! What a deletion tells of usage: all that the control plane has not confirmed, and nothing twice.

use crate::common::billing::{Bill, lab, metered, octets, seconds, total, urr};
use crate::common::smf;
use crate::common::{Lab, Obedience, SMF, at, config};
use n4::{Config, Limits};
use pfcp::*;
use rules::{Seid, UrrId};
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

/// A deletion that crosses a report, after which there was more.
fn crossed() -> (Lab, Seid, u32) {
    let (mut lab, session, sequence) = reporting();
    lab.traffic(session, (1, 2), true);
    ask_to_delete(&mut lab, session);
    assert!(waits(&lab));
    (lab, session, sequence)
}

/// Nor does one that comes while the answer waits for that of a report: the data plane has told its last counts, and has them no more.
#[test]
fn a_restart_while_a_report_is_waited_for_loses_nothing() {
    let (mut lab, session, _) = crossed();
    lab.restart();
    ask_to_delete(&mut lab, session);
    // The report has been sent again, and is waited for again.
    let reports = lab.reports();
    let [(_, report)] = &reports[..] else { panic!("{reports:?}") };
    answer(&mut lab, report.sequence, Cause::RequestAccepted);
    assert_eq!(told(&mut lab), [(1, (1, 2))]);
    assert_eq!(lab.node.sessions(), 0);
}

/// What is waited for is the control plane's word, and not that of the data plane, which has let the session go.
#[test]
fn a_report_is_waited_for_though_the_data_plane_is_lost() {
    let (mut lab, _, sequence) = crossed();
    lab.handle(n4::Input::DataPathLost);
    assert!(waits(&lab));
    answer(&mut lab, sequence, Cause::RequestAccepted);
    assert_eq!(told(&mut lab), [(1, (1, 2))]);
    assert_eq!(lab.node.sessions(), 0);
}

/// Whose session it is knows it no more; the deletion it has asked for is behind a change that the data plane has yet to make.
#[test]
fn a_deletion_that_waits_for_a_change_is_answered_though_its_session_is_forgotten() {
    let (mut lab, session, sequence) = reporting();
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, 8, smf::path_switch(9)));
    ask_to_delete(&mut lab, session);
    answer(&mut lab, sequence, Cause::SessionContextNotFound);
    lab.obedience = Obedience::Obeys;
    lab.obey();
    assert_eq!(told(&mut lab), [(0, (400, 600)), (1, (0, 0))]);
    assert_eq!((lab.node.sessions(), lab.in_force.len()), (0, 0));
}

/// A report that crosses the deletion has mostly been heard: the answer waits for that of the report, and tells no more than the rest.
#[test]
fn a_report_on_its_way_is_waited_for() {
    let (mut lab, session, sequence) = crossed();
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

/// A session that was deleted while the data plane was busy and counted on, of which the answer knows nothing.
fn answered_late(features: &[CpFeature]) -> (Lab, Seid, Bill) {
    let mut lab = Lab::new(config());
    let cp_function_features = Some(CpFunctionFeatures::of(features));
    let setup = AssociationSetupRequest { cp_function_features, ..smf::setup(SMF, 1) };
    lab.ask(SMF, &Message::node(1, setup));
    let session = lab.establish(metered(77, vec![urr(1, 0), urr(2, 0)]));
    lab.traffic(session, (100, 200), true);
    seconds(&mut lab, 1);
    lab.obedience = Obedience::Waits;
    ask_to_delete(&mut lab, session);
    lab.pass(lab.config.apply_timeout);
    let Body::SessionDeletionResponse(response) = lab.answer(SEQUENCE).body else { panic!() };
    let mut bill = Bill::default();
    bill.add(&response.usage_reports);
    assert_eq!((bill.sums()[&UrrId(1)], lab.node.sessions()), ((0, 0), 0));
    let announced = response.carried.iter().find(|it| it.ie == ie::ADDITIONAL_USAGE_REPORTS_INFORMATION);
    let knows = features.iter().any(|feature| matches!(feature, CpFeature::Ardr));
    assert_eq!(announced.map(|it| &it.value[..]), knows.then_some(&[0, 2][..]));
    (lab, session, bill)
}

fn obeys(lab: &mut Lab) {
    lab.obedience = Obedience::Obeys;
    lab.obey();
}

/// What it was not told in the answer comes behind it, from whichever control plane.
#[test]
fn counts_that_come_after_the_answer_are_told_behind_it() {
    for features in [&[][..], &[CpFeature::Ardr]] {
        let (mut lab, session, mut bill) = answered_late(features);
        seconds(&mut lab, 3);
        lab.traffic(session, (1, 2), true);
        assert!(lab.reports().is_empty());
        obeys(&mut lab);
        let reports = lab.reports();
        let [(to, message)] = &reports[..] else { panic!("{reports:?}") };
        let Body::SessionReportRequest(request) = &message.body else { panic!() };
        assert_eq!((*to, message.seid, request.usage_reports.len()), (at(SMF), Some(77), 2));
        bill.add(&request.usage_reports);
        assert!(bill.sums().into_iter().eq(lab.plane.counted.clone()));
        let time: Vec<u32> = bill.order.iter().filter_map(|report| report.duration_measurement).collect();
        assert_eq!(time[2..], [0, 0], "its time was over with the answer: {time:?}");
        answer(&mut lab, message.sequence, Cause::RequestAccepted);
        seconds(&mut lab, 60);
        assert!(lab.reports().is_empty());
    }
}

/// Whoever was told to wait for reports gets them, other ones nothing that says nothing; and nobody waits for ever.
#[test]
fn counts_that_never_come_are_not_waited_for() {
    for (features, expected) in [(&[][..], 0), (&[CpFeature::Ardr], 1)] {
        let (mut lab, session, _) = answered_late(features);
        seconds(&mut lab, 9);
        assert!(lab.reports().is_empty());
        seconds(&mut lab, 1);
        let reports = lab.reports();
        assert_eq!(reports.len(), expected);
        for (_, message) in reports {
            answer(&mut lab, message.sequence, Cause::RequestAccepted);
        }
        lab.traffic(session, (1, 2), true);
        obeys(&mut lab);
        seconds(&mut lab, 60);
        assert!(lab.reports().is_empty());
    }
}

/// Without more than was told, there is nothing to say.
#[test]
fn who_waits_for_nothing_is_told_nothing_where_there_is_nothing() {
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, vec![urr(1, 0)]));
    lab.obedience = Obedience::Waits;
    ask_to_delete(&mut lab, session);
    lab.pass(lab.config.apply_timeout);
    lab.answer(SEQUENCE);
    obeys(&mut lab);
    seconds(&mut lab, 60);
    assert!(lab.reports().is_empty());
}

/// Of very many only the last.
#[test]
fn there_is_a_limit_to_those_that_are_waited_for() {
    let limits = Limits { requests: 2, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    let one = |cp_seid: u64| {
        let mut request = metered(cp_seid, vec![urr(1, 0)]);
        request.create_pdrs.truncate(1);
        request
    };
    let all: Vec<Seid> = (1..=4).map(|cp_seid| lab.establish(one(cp_seid))).collect();
    all.iter().for_each(|session| lab.traffic(*session, (7, 0), true));
    lab.obedience = Obedience::Waits;
    for (sequence, session) in (900..).zip(&all) {
        lab.tell(SMF, &Message::session(session.0, sequence, SessionDeletionRequest::default()));
    }
    lab.pass(lab.config.apply_timeout);
    obeys(&mut lab);
    let told: Vec<Option<u64>> = lab.reports().iter().map(|(_, message)| message.seid).collect();
    assert_eq!(told, [Some(3), Some(4)]);
    assert_eq!(lab.node.sessions(), 0);
}

/// The answer may have been lost, and the process have ended since. A session that is set up meanwhile is not the one that is meant.
#[test]
fn a_deletion_that_comes_again_after_a_restart_ends_no_other_session() {
    let mut lab = Lab::associated();
    let session = lab.establish(smf::establishment(77));
    ask_to_delete(&mut lab, session);
    assert_eq!(told(&mut lab), []);
    lab.restart();
    let other = lab.establish(smf::establishment(78));
    assert_ne!(other, session);
    ask_to_delete(&mut lab, session);
    let Body::SessionDeletionResponse(response) = lab.answer(SEQUENCE).body else { panic!() };
    assert_eq!((response.cause, lab.node.sessions()), (Cause::SessionContextNotFound, 1));
}

/// The names that a process has given out are known to the next by blocks: nothing is written for each.
#[test]
fn the_names_of_many_sessions_are_kept_at_once() {
    let mut lab = Lab::associated();
    lab.establish(smf::establishment(1));
    let (kept, mut last) = (lab.record, Seid(0));
    for cp_seid in 2..100 {
        let session = lab.establish(metered(cp_seid, vec![]));
        assert!(session > last);
        last = session;
        lab.delete(session);
    }
    assert_eq!(lab.record, kept);
}
