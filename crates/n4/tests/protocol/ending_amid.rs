//! What happens while very many sessions end by portions: who asks meanwhile, and what is under way.

use crate::common::billing::{metered, urr};
use crate::common::smf::{establishment, path_switch, setup};
use crate::common::{Lab, Obedience, SMF, config};
use crate::ending::{
    NUMBER, PATIENCE, PORTION, SESSIONS, answers, delete_set, deletions, establishes, is_set_up, lab,
    lab_with, restart, set,
};
use n4::{Config, Limits, Output};
use pfcp::*;
use rules::Seid;
use std::net::SocketAddr;
use std::time::Duration;

/// Of requests that come amid it.
pub(crate) const MEANWHILE: u32 = 0xBBBB;
pub(crate) const OVERDUE: Duration = Duration::from_secs(60);

pub(crate) fn release(lab: &mut Lab, sequence: u32) {
    let release = AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] };
    lab.tell(SMF, &Message::node(sequence, release));
}

/// The data plane does all it was told, and what it was waited for comes.
pub(crate) fn go_on(lab: &mut Lab) {
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.pass(Duration::ZERO);
}

/// While the data plane has not ended the sessions of who was silent for too long.
pub(crate) fn giving_up() -> Lab {
    let silent_max = Some(Duration::from_secs(30));
    let mut lab = lab_with(Config { silent_max, ..config() });
    lab.pass(lab.config.heartbeat_interval);
    (lab.silent, lab.obedience) = (vec![SMF], Obedience::Waits);
    while lab.node.sessions() == SESSIONS as usize {
        lab.pass(Duration::from_millis(10));
    }
    lab
}

/// Who is leaving associates, and may go on then.
pub(crate) fn comes_back(mut lab: Lab) {
    restart(&mut lab, MEANWHILE, 1);
    go_on(&mut lab);
    assert!(is_set_up(&answers(&mut lab, MEANWHILE)));
    assert_eq!(establishes(&mut lab, SMF, 77), Cause::RequestAccepted);
    lab.pass(OVERDUE);
    assert_eq!((lab.node.sessions(), lab.associations.len()), (1, 2));
}

pub(crate) fn is_released(answers: &[Body]) -> bool {
    matches!(answers, [Body::AssociationReleaseResponse(response)] if response.cause.is_accepted())
}

/// Sessions that measure something.
pub(crate) fn metered_lab(config: Config) -> (Lab, Vec<Seid>) {
    let mut lab = Lab::associated_with(config);
    let establish = |cp_seid| {
        let mut metered = metered(cp_seid, vec![urr(1, 0)]);
        metered.create_pdrs.truncate(1);
        metered.fq_csids = vec![set(cp_seid % 2)];
        lab.establish(metered)
    };
    let sessions: Vec<Seid> = (1..=SESSIONS).map(establish).collect();
    sessions.iter().for_each(|session| lab.traffic(*session, (100, 200), true));
    lab.sent.clear();
    lab.told.clear();
    (lab, sessions)
}

pub(crate) fn of_portions(portion: usize) -> Config {
    Config { limits: Limits { portion, ..Limits::default() }, ..config() }
}

#[test]
fn who_associates_again_while_it_leaves_is_associated() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    release(&mut lab, NUMBER);
    restart(&mut lab, MEANWHILE, 1);
    let [Body::AssociationReleaseResponse(refused)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
    assert_eq!(refused.cause, Cause::PfcpEntityInCongestion);
    go_on(&mut lab);
    assert!(is_set_up(&answers(&mut lab, MEANWHILE)));
    assert_eq!((lab.node.sessions(), lab.in_force.len()), (0, 0), "what it had left with it");
    assert_eq!(establishes(&mut lab, SMF, 77), Cause::RequestAccepted);
    lab.pass(OVERDUE);
    lab.restart();
    lab.pass(OVERDUE);
    assert_eq!((lab.node.sessions(), lab.associations.len()), (1, 2));
}

#[test]
fn who_comes_back_while_it_is_given_up_is_associated() {
    let mut lab = giving_up();
    lab.silent.clear();
    comes_back(lab);
}

#[test]
fn a_heartbeat_tells_who_waits_to_associate_nothing_new() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    let heartbeat = HeartbeatRequest { recovery_time_stamp: 2, carried: vec![] };
    lab.tell(SMF, &Message::node(MEANWHILE, heartbeat));
    restart(&mut lab, NUMBER, 2);
    assert!(answers(&mut lab, NUMBER).is_empty(), "the same again");
    go_on(&mut lab);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    lab.pass(OVERDUE);
    restart(&mut lab, NUMBER, 2);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
}

/// It has restarted once more, and what it asked for before is in progress all the same.
#[test]
fn a_request_to_associate_that_is_in_progress_is_not_forgotten() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    let heartbeat = HeartbeatRequest { recovery_time_stamp: 3, carried: vec![] };
    lab.tell(SMF, &Message::node(MEANWHILE, heartbeat));
    restart(&mut lab, NUMBER, 2);
    assert!(answers(&mut lab, NUMBER).is_empty());
    go_on(&mut lab);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
}

/// While others are in progress there is no room to remember it.
#[test]
fn what_is_asked_again_is_not_refused_for_its_own_sake() {
    let mut lab = lab_with(Config { limits: Limits { answers: 0, ..Limits::default() }, ..config() });
    lab.obedience = Obedience::Waits;
    delete_set(&mut lab, MEANWHILE, 0);
    restart(&mut lab, NUMBER, 2);
    restart(&mut lab, NUMBER, 2);
    assert!(answers(&mut lab, NUMBER).is_empty());
    go_on(&mut lab);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
}

pub(crate) fn delete(lab: &mut Lab, session: Seid) {
    let request = SessionDeletionRequest { carried: vec![] };
    lab.tell(SMF, &Message::session(session.0, MEANWHILE, request));
}

/// The same; the data plane has yet to be told.
pub(crate) fn delete_untold(lab: &mut Lab, session: Seid) -> Vec<Output> {
    lab.obedience = Obedience::Waits;
    delete(lab, session);
    std::mem::take(&mut lab.orders)
}

/// The data plane does what it was told, a portion after another.
pub(crate) fn obey_by_portions(lab: &mut Lab) {
    for _ in 0..4 {
        lab.obey();
        lab.pass(Duration::ZERO);
    }
}

pub(crate) fn used(answers: &[Body]) -> u64 {
    let [Body::SessionDeletionResponse(response)] = answers else { panic!("{answers:?}") };
    assert_eq!(response.cause, Cause::RequestAccepted);
    let told = response.usage_reports.iter().filter_map(|report| report.volume_measurement.as_ref());
    told.filter_map(|volume| volume.octets.total).sum()
}

#[test]
fn what_deleted_sessions_used_is_told_before_their_control_plane_has_left() {
    let (mut lab, sessions) = metered_lab(of_portions(PORTION));
    let of_deletion = delete_untold(&mut lab, sessions[3]);
    release(&mut lab, NUMBER);
    obey_by_portions(&mut lab);
    assert!(lab.is_silent(), "{:?}", lab.sent);
    assert_eq!(lab.node.sessions(), 1);
    lab.pass(PATIENCE);
    lab.orders.extend(of_deletion);
    go_on(&mut lab);
    assert_eq!(used(&answers(&mut lab, MEANWHILE)), 300);
    assert!(is_released(&answers(&mut lab, NUMBER)));
    assert_eq!((lab.node.sessions(), lab.associations.len()), (0, 0));
}

#[test]
fn what_deleted_sessions_used_is_told_before_their_set_is_gone() {
    let (mut lab, sessions) = metered_lab(of_portions(PORTION));
    lab.obedience = Obedience::Waits;
    delete(&mut lab, sessions[1]);
    delete_set(&mut lab, NUMBER, 0);
    lab.orders.clear();
    lab.pass(PATIENCE * 3);
    assert!(lab.is_silent());
    assert!(lab.node.next_due().unwrap() > lab.time(), "nothing is to be done until it has been deleted");
    // The data plane is not waited for longer than that.
    lab.pass(lab.config.apply_timeout);
    used(&answers(&mut lab, MEANWHILE));
    let [Body::SessionSetDeletionResponse(response)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
    assert_eq!((response.cause, lab.node.sessions()), (Cause::RequestAccepted, SESSIONS as usize / 2 + 1));
}

#[test]
fn a_deletion_that_waits_for_a_change_is_done_before_its_control_plane_has_left() {
    let (mut lab, sessions) = metered_lab(of_portions(PORTION));
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(sessions[3].0, 9, path_switch(9)));
    delete(&mut lab, sessions[3]);
    release(&mut lab, NUMBER);
    go_on(&mut lab);
    assert_eq!(used(&answers(&mut lab, MEANWHILE)), 300);
    assert!(is_released(&answers(&mut lab, NUMBER)));
}

/// A data plane that is late with each portion takes longer than there is to tell.
#[test]
fn there_is_time_to_tell_what_sessions_used_when_they_have_ended() {
    let (mut lab, _) = metered_lab(of_portions(1));
    for cp_seid in SESSIONS + 1..=350 {
        let mut metered = metered(cp_seid, vec![urr(1, 0)]);
        metered.create_pdrs.truncate(1);
        lab.establish(metered);
    }
    let outputs = lab.node.leave_one(&SMF.to_string(), Duration::ZERO, lab.time());
    lab.carry_out_all(outputs);
    lab.obedience = Obedience::Waits;
    lab.pass(PATIENCE * 350);
    assert_eq!((lab.reports().len(), lab.associations.len()), (0, 1));
    lab.obey();
    assert_eq!(lab.reports().len(), 350);
    assert!(lab.associations.is_empty());
}

#[test]
fn what_could_not_be_told_is_counted_in_the_log() {
    let limits = Limits { requests: 10, ..Limits::default() };
    let (mut lab, _) = metered_lab(Config { limits, ..config() });
    let outputs = lab.node.leave_one(&SMF.to_string(), Duration::ZERO, lab.time());
    lab.carry_out_all(outputs);
    lab.pass(Duration::from_secs(5));
    let told = lab.reports().len();
    assert!(told > 0 && told < SESSIONS as usize, "{told}");
    (0..4).for_each(|_| lab.pass(Duration::from_secs(10)));
    assert!(lab.associations.is_empty());
    assert!(lab.notes.iter().any(|note| note.contains("sessions used was not told")), "{:?}", lab.notes);
}

/// By port.
fn behind(port: u16) -> SocketAddr {
    SocketAddr::new(SMF.into(), port)
}

fn asks(lab: &mut Lab, from: SocketAddr, message: &Message) -> Body {
    lab.receive(from, &pfcp::encode(message));
    lab.answer(message.sequence).body
}

/// What one asked for before the other restarted is not done anew because it asks again.
#[test]
fn a_restart_behind_translation_forgets_nothing_of_others_there() {
    let mut lab = Lab::new(config());
    let by_name = |name: &str, stamp| AssociationSetupRequest {
        node_id: NodeId::Fqdn(name.to_owned()),
        ..setup(SMF, stamp)
    };
    for (port, name) in [(1_001, "one.lab"), (1_002, "two.lab")] {
        assert!(is_set_up(&[asks(&mut lab, behind(port), &Message::node(1, by_name(name, 1)))]));
    }
    let of = |name: &str, sequence, cp_seid| {
        let node_id = NodeId::Fqdn(name.to_owned());
        Message::session(0, sequence, SessionEstablishmentRequest { node_id, ..establishment(cp_seid) })
    };
    let (own, request) = (of("one.lab", MEANWHILE + 1, 2), of("two.lab", NUMBER, 1));
    let answer_before = asks(&mut lab, behind(1_001), &own);
    let answer = asks(&mut lab, behind(1_002), &request);
    let first = asks(&mut lab, behind(1_001), &Message::node(MEANWHILE, by_name("one.lab", 2)));
    assert!(is_set_up(&[first]));
    assert_eq!(asks(&mut lab, behind(1_002), &request), answer);
    assert_eq!(lab.node.counters().repeated, 1);
    // It counts its own anew.
    assert_ne!(asks(&mut lab, behind(1_001), &own), answer_before);
    assert_eq!(lab.node.counters().repeated, 1);
}

#[test]
fn who_is_to_release_us_is_to_when_it_has_associated() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    let outputs = lab.node.leave_one(&SMF.to_string(), Duration::from_secs(50), lab.time());
    lab.carry_out_all(outputs);
    go_on(&mut lab);
    lab.sent.retain(|(_, sent)| sent.sequence == NUMBER || sent.body.message_type() == 7);
    let order: Vec<u8> = lab.sent.iter().map(|(_, sent)| sent.body.message_type()).collect();
    assert_eq!(order, [7, 6, 7], "asked once more, as it has forgotten that");
    assert_eq!(lab.node.leaving(), ["10.40.0.9"]);
    lab.restart();
    assert_eq!(lab.node.leaving(), ["10.40.0.9"]);
    lab.pass(Duration::from_secs(51));
    assert_eq!(lab.associations.len(), 1);
}

#[test]
fn an_order_to_leave_one_is_taken_back_amid_it() {
    let (mut lab, _) = metered_lab(of_portions(PORTION));
    lab.establish(establishment(100));
    let outputs = lab.node.leave_one(&SMF.to_string(), Duration::ZERO, lab.time());
    lab.carry_out_all(outputs);
    lab.told.clear();
    lab.obedience = Obedience::Waits;
    lab.pass(Duration::ZERO);
    assert_eq!(deletions(&mut lab), PORTION);
    let outputs = lab.node.stay_with(&SMF.to_string(), lab.time());
    lab.carry_out_all(outputs);
    go_on(&mut lab);
    assert_eq!(lab.reports().len(), PORTION, "these have gone, and are told of");
    lab.pass(OVERDUE);
    let left = SESSIONS as usize + 1 - PORTION;
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.associations.len()), (left, left, 1));
    let note = format!("{PORTION} of its sessions had gone already");
    assert!(lab.notes.iter().any(|it| it.contains(&note)), "{:?}", lab.notes);
}

#[test]
fn who_has_left_is_not_called_back() {
    let mut lab = lab();
    let outputs = lab.node.leave_one(&SMF.to_string(), Duration::from_secs(50), lab.time());
    lab.carry_out_all(outputs);
    lab.obedience = Obedience::Waits;
    release(&mut lab, NUMBER);
    let outputs = lab.node.stay_with(&SMF.to_string(), lab.time());
    lab.carry_out_all(outputs);
    go_on(&mut lab);
    assert!(is_released(&answers(&mut lab, NUMBER)));
    assert_eq!((lab.node.sessions(), lab.associations.len()), (0, 1));
}

/// The data plane does some of what it was told.
fn obey_some(lab: &mut Lab, count: usize) {
    let later = lab.orders.split_off(count.min(lab.orders.len()));
    lab.obey();
    lab.orders.extend(later);
}

#[test]
fn a_portion_at_most_is_under_way_and_is_filled_up() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    restart(&mut lab, NUMBER, 2);
    assert_eq!(lab.orders.len(), PORTION);
    obey_some(&mut lab, PORTION / 2);
    lab.pass(Duration::ZERO);
    assert_eq!((lab.orders.len(), deletions(&mut lab)), (PORTION, PORTION + PORTION / 2));
    // A slow data plane is not a silent one.
    while lab.node.sessions() > 0 {
        lab.pass(PATIENCE / 2 + Duration::from_millis(10));
        obey_some(&mut lab, 1);
        assert!(lab.orders.len() <= PORTION, "{}", lab.orders.len());
    }
    go_on(&mut lab);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
}

#[test]
fn sets_that_end_share_the_portion_under_way() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    (0..2).for_each(|csid| delete_set(&mut lab, NUMBER + csid as u32, csid));
    assert_eq!(lab.orders.len(), PORTION);
}
