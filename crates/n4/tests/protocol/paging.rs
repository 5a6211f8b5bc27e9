//! Packets kept for users who sleep: their control plane hears of it once, and wakes them.

use crate::common::smf::{self, establishment, path_switch};
use crate::common::{Lab, Obedience, SMF, config};
use dplink::{Event, Notice};
use n4::{Input, Output};
use pfcp::*;
use rules::{BarId, PdrId, Qfi, Seid};
use std::time::Duration;

/// One session that sleeps, with a BAR of this delay.
fn lab(delay: Option<u8>) -> (Lab, Seid) {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    if delay.is_some() {
        request.create_bar =
            Some(CreateBar { bar_id: 1, downlink_data_notification_delay: delay, ..CreateBar::default() });
        request.create_fars[1].bar_id = Some(1);
    }
    let session = lab.establish(request);
    (lab, session)
}

fn packet(lab: &mut Lab, session: Seid, pdr: u16) {
    let qfi = Qfi::new(9);
    let event = Event::DownlinkData { session, pdr: PdrId(pdr), qfi, traffic_class: 46 << 2 };
    lab.handle(Input::DataPath(&Notice::Event(event)));
}

fn reported(lab: &mut Lab) -> Vec<(u32, DownlinkDataReport)> {
    let reports = lab.reports().into_iter().map(|(_, message)| match message.body {
        Body::SessionReportRequest(request) => {
            assert_eq!((message.seid, request.report_type), (Some(77), ReportType(ReportType::DLDR)));
            (message.sequence, request.downlink_data_report.unwrap())
        }
        other => panic!("{other:?}"),
    });
    reports.collect()
}

fn answer(lab: &mut Lab, session: Seid, sequence: u32, response: SessionReportResponse) {
    lab.tell(SMF, &Message::session(session.0, sequence, response));
}

fn accepted() -> SessionReportResponse {
    SessionReportResponse::of(Cause::RequestAccepted)
}

#[test]
fn the_first_packet_kept_is_told_of_with_its_flow_and_class() {
    let (mut lab, session) = lab(None);
    packet(&mut lab, session, 2);
    let [(sequence, report)] = &reported(&mut lab)[..] else { panic!("one report") };
    assert_eq!(report.pdr_ids, [2]);
    let information = DownlinkDataServiceInformation { paging_policy_indication: Some(46), qfi: Some(9) };
    assert_eq!(report.service_information, [information]);
    answer(&mut lab, session, *sequence, accepted());
    (0..100).for_each(|_| packet(&mut lab, session, 2));
    lab.pass(Duration::from_secs(60));
    assert!(reported(&mut lab).is_empty());
}

#[test]
fn waking_and_sleeping_again_begins_anew() {
    let (mut lab, session) = lab(None);
    packet(&mut lab, session, 2);
    let (sequence, _) = reported(&mut lab).remove(0);
    answer(&mut lab, session, sequence, accepted());
    lab.modify(session, path_switch(5));
    // A hint of before.
    packet(&mut lab, session, 2);
    assert!(reported(&mut lab).is_empty());
    let sleep = UpdateFar {
        far_id: 2,
        apply_action: Some(ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP)),
        ..UpdateFar::default()
    };
    lab.modify(session, SessionModificationRequest { update_fars: vec![sleep], ..Default::default() });
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

#[test]
fn the_bar_delays_the_report_and_what_comes_meanwhile_goes_along() {
    let (mut lab, session) = lab(Some(10));
    let create_pdrs = vec![smf::downlink(3, Some(smf::UE))];
    lab.modify(session, SessionModificationRequest { create_pdrs, ..Default::default() });
    packet(&mut lab, session, 2);
    lab.pass(Duration::from_millis(499));
    packet(&mut lab, session, 3);
    assert!(reported(&mut lab).is_empty());
    lab.pass(Duration::from_millis(1));
    let (_, report) = reported(&mut lab).remove(0);
    assert_eq!((report.pdr_ids, report.service_information.len()), (vec![2, 3], 2));
}

/// A control plane may want to know that there are packets, and have none of them kept (openair-spgwu-tiny #53).
#[test]
fn who_has_packets_dropped_may_hear_of_them() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_fars[1].apply_action = ApplyAction::short((ApplyAction::DROP | ApplyAction::NOCP) as u8);
    let session = lab.establish(request);
    let far = &lab.in_force[&session].rules.fars[1];
    assert_eq!((far.apply_action, far.notify), (rules::ApplyAction::Drop, true));
    packet(&mut lab, session, 2);
    let (sequence, report) = reported(&mut lab).remove(0);
    assert_eq!(report.pdr_ids, [2]);
    answer(&mut lab, session, sequence, accepted());
    packet(&mut lab, session, 2);
    lab.modify(session, path_switch(5));
    packet(&mut lab, session, 2);
    assert!(reported(&mut lab).is_empty(), "once, and not of who is awake");
    let silent = UpdateFar {
        far_id: 2,
        apply_action: Some(ApplyAction::new(ApplyAction::DROP)),
        ..UpdateFar::default()
    };
    lab.modify(session, SessionModificationRequest { update_fars: vec![silent], ..Default::default() });
    packet(&mut lab, session, 2);
    assert!(reported(&mut lab).is_empty(), "nobody asks");
}

/// What was dropped is not kept: the first packet that is comes after the change (TS 29.244 8.2.26).
#[test]
fn who_heard_of_dropped_packets_hears_of_the_first_one_kept() {
    for bits in [ApplyAction::BUFF | ApplyAction::NOCP, ApplyAction::NOCP] {
        let mut lab = Lab::associated();
        let mut request = establishment(77);
        request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::DROP | ApplyAction::NOCP);
        let session = lab.establish(request);
        packet(&mut lab, session, 2);
        let (sequence, _) = reported(&mut lab).remove(0);
        answer(&mut lab, session, sequence, accepted());
        let change = |bits| {
            let apply_action = Some(ApplyAction::new(bits));
            let update_fars = vec![UpdateFar { far_id: 2, apply_action, ..UpdateFar::default() }];
            SessionModificationRequest { update_fars, ..Default::default() }
        };
        lab.modify(session, change(bits));
        packet(&mut lab, session, 2);
        let (sequence, report) = reported(&mut lab).remove(0);
        assert_eq!(report.pdr_ids, [2]);
        answer(&mut lab, session, sequence, accepted());
        lab.modify(session, change(bits));
        packet(&mut lab, session, 2);
        assert!(reported(&mut lab).is_empty(), "once, though it is said again");
    }
}

/// Then the next packet is the first again (TS 29.244 5.2.4).
#[test]
fn what_comes_after_kept_packets_were_dropped_is_told_of() {
    let (mut lab, session) = lab(None);
    packet(&mut lab, session, 2);
    let (sequence, _) = reported(&mut lab).remove(0);
    let drops = SessionReportResponse { pfcpsrrsp_flags: Some(flags::PFCPSRRSP_DROBU), ..accepted() };
    answer(&mut lab, session, sequence, drops);
    packet(&mut lab, session, 2);
    assert!(reported(&mut lab).is_empty(), "not as often as it drops");
    lab.pass(Duration::from_secs(1));
    let (sequence, _) = reported(&mut lab).remove(0);
    answer(&mut lab, session, sequence, accepted());
    packet(&mut lab, session, 2);
    let asleep = UpdateFar {
        far_id: 2,
        apply_action: Some(ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP)),
        ..UpdateFar::default()
    };
    let request = SessionModificationRequest { update_fars: vec![asleep], ..Default::default() };
    lab.modify(session, request.clone());
    packet(&mut lab, session, 2);
    assert!(reported(&mut lab).is_empty(), "the same packets");
    lab.modify(
        session,
        SessionModificationRequest { pfcpsm_req_flags: Some(flags::PFCPSM_DROBU), ..request },
    );
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

/// Nobody woke the user, and what was kept was given up at last: the data plane speaks of the next packet.
#[test]
fn what_comes_after_kept_packets_were_given_up_is_told_of() {
    let (mut lab, session) = lab(None);
    packet(&mut lab, session, 2);
    let (sequence, _) = reported(&mut lab).remove(0);
    answer(&mut lab, session, sequence, accepted());
    lab.pass(Duration::from_secs(9));
    packet(&mut lab, session, 2);
    assert!(reported(&mut lab).is_empty());
    lab.pass(Duration::from_secs(51));
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

#[test]
fn a_control_plane_that_refuses_is_told_again_a_few_times_and_of_the_next_packet() {
    let (mut lab, session) = lab(None);
    packet(&mut lab, session, 2);
    let mut told = 0;
    for _ in 0..10 {
        for (sequence, report) in reported(&mut lab) {
            assert_eq!((report.pdr_ids, report.service_information[0].qfi), (vec![2], Some(9)));
            told += 1;
            answer(&mut lab, session, sequence, SessionReportResponse::of(Cause::PfcpEntityInCongestion));
        }
        assert!(reported(&mut lab).is_empty(), "not at once");
        lab.pass(Duration::from_secs(10));
    }
    assert_eq!(told, 4);
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

#[test]
fn a_user_who_wakes_before_the_delay_is_over_is_not_told_of() {
    let (mut lab, session) = lab(Some(10));
    packet(&mut lab, session, 2);
    lab.modify(session, path_switch(5));
    lab.pass(Duration::from_secs(1));
    assert!(reported(&mut lab).is_empty());
}

#[test]
fn packets_dropped_or_kept_in_silence_are_not_told_of() {
    for action in [ApplyAction::DROP, ApplyAction::BUFF] {
        let mut lab = Lab::associated();
        let mut request = establishment(77);
        request.create_fars[1].apply_action = ApplyAction::new(action);
        let session = lab.establish(request);
        packet(&mut lab, session, 2);
        assert!(reported(&mut lab).is_empty());
    }
}

#[test]
fn what_the_user_sends_is_not_told_of() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    for far in &mut request.create_fars {
        far.apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    }
    let session = lab.establish(request);
    packet(&mut lab, session, 1);
    assert!(reported(&mut lab).is_empty());
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

/// It answers heartbeats, but no reports.
#[test]
fn a_control_plane_that_does_not_answer_is_told_again_as_long_as_packets_are_kept() {
    let (mut lab, session) = lab(None);
    packet(&mut lab, session, 2);
    lab.pass(Duration::from_secs(60));
    let sequences: std::collections::BTreeSet<u32> =
        reported(&mut lab).into_iter().map(|(sequence, _)| sequence).collect();
    assert!((3..=4).contains(&sequences.len()), "{sequences:?}");
    lab.pass(Duration::from_secs(20));
    reported(&mut lab);
    lab.pass(Duration::from_secs(120));
    assert!(reported(&mut lab).is_empty(), "nothing is kept any more");
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
    lab.modify(session, path_switch(5));
    lab.pass(Duration::from_secs(10));
    reported(&mut lab);
    lab.pass(Duration::from_secs(60));
    assert!(reported(&mut lab).is_empty());
}

/// Its sessions' names have an address behind which nobody is, as behind address translation: a user is not kept asleep any longer than that
/// takes to find out.
#[test]
fn who_cannot_be_reached_by_a_session_s_name_is_told_at_his_own_address_at_once() {
    let mut lab = Lab::associated();
    let named = std::net::Ipv4Addr::from([10, 99, 0, 1]);
    let mut request = establishment(77);
    request.cp_f_seid = FSeid::new(77, named.into());
    request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    let session = lab.establish(request);
    packet(&mut lab, session, 2);
    let told_at = |lab: &mut Lab| lab.reports().into_iter().map(|(to, _)| to.ip()).collect::<Vec<_>>();
    assert_eq!(told_at(&mut lab), [named]);
    lab.pass(config().t1 * config().n1);
    let mut all = told_at(&mut lab);
    assert_eq!(all.pop(), Some(SMF.into()));
    assert!(all.iter().all(|to| *to == named), "{all:?}");
}

#[test]
fn the_answer_may_change_the_bar_or_drop_what_is_kept() {
    let (mut lab, session) = lab(Some(1));
    packet(&mut lab, session, 2);
    lab.pass(Duration::from_millis(50));
    let (sequence, _) = reported(&mut lab).remove(0);
    let update_bar = UpdateBarInReport {
        bar_id: 1,
        downlink_data_notification_delay: Some(20),
        dl_buffering_suggested_packet_count: Some(PacketCount(300)),
        ..UpdateBarInReport::default()
    };
    let response = SessionReportResponse {
        update_bar: Some(update_bar),
        pfcpsrrsp_flags: Some(flags::PFCPSRRSP_DROBU),
        ..accepted()
    };
    answer(&mut lab, session, sequence, response);
    let bar = lab.in_force[&session].rules.bars[0];
    assert_eq!((bar.id, bar.notification_delay_50ms, bar.suggested_packets), (BarId(1), 20, Some(300)));
    let drops: Vec<bool> = puts(&lab);
    assert_eq!(drops, [false, true]);
    let saved = &lab.saved[&session].rules.bars[0];
    assert_eq!(
        (saved.notification_delay_50ms, saved.suggested_packets),
        (20, None),
        "the count is for this time"
    );
}

/// TS 29.244 7.5.9.2: how many packets are kept until the user wakes, not how many are kept whenever it sleeps.
#[test]
fn a_count_of_packets_to_keep_is_for_this_time() {
    let (mut lab, session) = lab(Some(0));
    let suggestion = |lab: &mut Lab, count| {
        packet(lab, session, 2);
        let (sequence, _) = reported(lab).remove(0);
        let count = Some(PacketCount(count));
        let bar =
            UpdateBarInReport { bar_id: 1, dl_buffering_suggested_packet_count: count, ..Default::default() };
        answer(lab, session, sequence, SessionReportResponse { update_bar: Some(bar), ..accepted() });
    };
    let kept = |lab: &Lab| lab.in_force[&session].rules.bars[0].suggested_packets;
    suggestion(&mut lab, 1);
    // Something else changes meanwhile.
    let create_pdrs = vec![smf::downlink(3, Some(smf::UE))];
    lab.modify(session, SessionModificationRequest { create_pdrs, ..Default::default() });
    assert_eq!(kept(&lab), Some(1));
    lab.modify(session, path_switch(5));
    assert_eq!(kept(&lab), None);
    lab.modify(session, sleep());
    assert_eq!(kept(&lab), None);
    suggestion(&mut lab, 7);
    assert_eq!((kept(&lab), lab.in_force == lab.desired()), (Some(7), true));
}

fn sleep() -> SessionModificationRequest {
    let sleep = UpdateFar {
        far_id: 2,
        apply_action: Some(ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP)),
        ..UpdateFar::default()
    };
    SessionModificationRequest { update_fars: vec![sleep], ..Default::default() }
}

fn puts(lab: &Lab) -> Vec<bool> {
    let put = |order: &Output| match order {
        Output::Put(desired) => Some(desired.drop_buffered),
        _ => None,
    };
    lab.told.iter().filter_map(put).collect()
}

#[test]
fn a_bar_changed_while_a_modification_is_under_way_stays_changed() {
    let (mut lab, session) = lab(Some(1));
    packet(&mut lab, session, 2);
    lab.pass(Duration::from_millis(50));
    let (sequence, _) = reported(&mut lab).remove(0);
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, 900, path_switch(5)));
    let bar =
        UpdateBarInReport { bar_id: 1, downlink_data_notification_delay: Some(7), ..Default::default() };
    answer(&mut lab, session, sequence, SessionReportResponse { update_bar: Some(bar), ..accepted() });
    lab.obedience = Obedience::Obeys;
    lab.obey();
    let Body::SessionModificationResponse(response) = lab.answer(900).body else { panic!("an answer") };
    assert_eq!(response.cause, Cause::RequestAccepted);
    let rules = &lab.in_force[&session].rules;
    assert_eq!(rules.bars[0].notification_delay_50ms, 7);
    assert_eq!(rules.fars[1].apply_action, rules::ApplyAction::Forward);
    assert_eq!(lab.in_force, lab.desired());
}

#[test]
fn a_control_plane_may_drop_what_is_kept() {
    let (mut lab, session) = lab(None);
    let pfcpsm_req_flags = Some(flags::PFCPSM_DROBU);
    lab.modify(session, SessionModificationRequest { pfcpsm_req_flags, ..Default::default() });
    assert_eq!(puts(&lab), [false, true]);
}
