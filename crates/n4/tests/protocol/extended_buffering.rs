//! Extended buffering (TS 29.244 5.2.4.2): the answer to a report says for how long the user cannot be reached. Until then packets
//! are kept and nobody is told; then they are dropped, and the next one is told of.

use crate::common::smf::{self, establishment, path_switch};
use crate::common::{Lab, Obedience, SMF};
use dplink::{Event, Notice};
use n4::{Input, Output};
use pfcp::*;
use rules::{BarId, Extended, PdrId, Seid};
use std::time::Duration;

/// The unit of minutes, in the upper three bits of a timer (TS 29.244 8.2.29).
const MINUTES: u8 = 1 << 5;

fn asleep() -> UpdateFar {
    let action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    UpdateFar { far_id: 2, apply_action: Some(action), ..UpdateFar::default() }
}

/// One session that sleeps.
fn lab() -> (Lab, Seid) {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_fars[1] =
        CreateFar { bar_id: Some(1), ..smf::far(2, ApplyAction::BUFF | ApplyAction::NOCP, None) };
    request.create_bar = Some(CreateBar { bar_id: 1, ..CreateBar::default() });
    request.create_pdrs.push(smf::downlink(3, Some(smf::UE)));
    let session = lab.establish(request);
    (lab, session)
}

fn packet(lab: &mut Lab, session: Seid, pdr: u16) {
    let event = Event::DownlinkData { session, pdr: PdrId(pdr), qfi: None, traffic_class: 0 };
    lab.handle(Input::DataPath(&Notice::Event(event)));
}

/// Of packets kept.
fn reported(lab: &mut Lab) -> Vec<u32> {
    let reports = lab.reports().into_iter().map(|(_, message)| match message.body {
        Body::SessionReportRequest(SessionReportRequest { downlink_data_report: Some(_), .. }) => {
            message.sequence
        }
        other => panic!("{other:?}"),
    });
    reports.collect()
}

fn for_so_long(timer: u8) -> UpdateBarInReport {
    UpdateBarInReport { bar_id: 1, dl_buffering_duration: Some(timer), ..Default::default() }
}

fn answer(lab: &mut Lab, session: Seid, sequence: u32, bar: UpdateBarInReport) {
    let response =
        SessionReportResponse { update_bar: Some(bar), ..SessionReportResponse::of(Cause::RequestAccepted) };
    lab.tell(SMF, &Message::session(session.0, sequence, response));
}

/// A packet comes, is told of, and the answer says this.
fn extend(lab: &mut Lab, session: Seid, bar: UpdateBarInReport) {
    packet(lab, session, 2);
    let [sequence] = reported(lab)[..] else { panic!("one report") };
    answer(lab, session, sequence, bar);
}

fn extended(lab: &Lab, session: Seid) -> Option<Extended> {
    assert_eq!(lab.in_force, lab.desired());
    lab.in_force[&session].rules.bars[0].extended
}

/// BARs whose packets were to be dropped, order by order.
fn dropped(lab: &Lab) -> Vec<BarId> {
    let over = |order: &Output| match order {
        Output::Put(desired) => desired.buffering_over.clone(),
        _ => vec![],
    };
    lab.told.iter().flat_map(over).collect()
}

#[test]
fn while_it_lasts_nobody_is_told_and_then_of_the_next_packet() {
    let (mut lab, session) = lab();
    extend(&mut lab, session, for_so_long(MINUTES | 5));
    assert_eq!(extended(&lab, session).map(|extended| extended.lasts_s), Some(Some(300)));
    for _ in 0..29 {
        lab.pass(Duration::from_secs(10));
        // Of another rule, too.
        [2, 3].into_iter().for_each(|pdr| packet(&mut lab, session, pdr));
        assert!(reported(&mut lab).is_empty());
    }
    assert_eq!(dropped(&lab), []);
    lab.pass(Duration::from_secs(10));
    assert_eq!((extended(&lab, session), dropped(&lab)), (None, vec![BarId(1)]));
    assert!(reported(&mut lab).is_empty());
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
    lab.pass(Duration::from_secs(600));
    assert_eq!(dropped(&lab), [BarId(1)], "once");
}

/// TS 29.244 table 8.2.29-1.
#[test]
fn the_timer_is_read_as_it_is_coded() {
    let codes: [(u8, Option<Option<u32>>); 9] = [
        (31, Some(Some(62))),
        (MINUTES | 3, Some(Some(180))),
        (2 << 5 | 3, Some(Some(1_800))),
        (3 << 5 | 3, Some(Some(10_800))),
        (4 << 5 | 31, Some(Some(1_116_000))),
        // What is not defined are minutes.
        (5 << 5 | 3, Some(Some(180))),
        (6 << 5 | 3, Some(Some(180))),
        (7 << 5, Some(None)),
        (7 << 5 | 31, Some(None)),
    ];
    for (timer, lasts_s) in codes {
        let (mut lab, session) = lab();
        extend(&mut lab, session, for_so_long(timer));
        assert_eq!(extended(&lab, session).map(|extended| extended.lasts_s), lasts_s, "{timer:#x}");
    }
}

/// A timer that is stopped ends nothing that has not begun, and drops nothing.
#[test]
fn a_timer_of_zeros_is_stopped() {
    let (mut lab, session) = lab();
    extend(&mut lab, session, for_so_long(0));
    assert_eq!((extended(&lab, session), dropped(&lab)), (None, vec![]));
    packet(&mut lab, session, 2);
    assert!(reported(&mut lab).is_empty(), "the packets it was told of");
}

/// No time in a unit of its own is over at once.
#[test]
fn no_minutes_are_over_at_once() {
    let (mut lab, session) = lab();
    extend(&mut lab, session, for_so_long(MINUTES));
    lab.pass(Duration::from_millis(2));
    assert_eq!((extended(&lab, session), dropped(&lab)), (None, vec![BarId(1)]));
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

#[test]
fn for_ever_is_until_the_user_wakes() {
    let (mut lab, session) = lab();
    extend(&mut lab, session, for_so_long(7 << 5));
    lab.pass(Duration::from_secs(100 * 24 * 3_600));
    reported(&mut lab);
    packet(&mut lab, session, 2);
    assert!(reported(&mut lab).is_empty());
    lab.modify(session, path_switch(5));
    assert_eq!((extended(&lab, session), dropped(&lab)), (None, vec![]), "drained, not dropped");
    lab.modify(session, SessionModificationRequest { update_fars: vec![asleep()], ..Default::default() });
    assert_eq!(extended(&lab, session), None);
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

#[test]
fn the_count_is_for_as_long_and_the_newest_word_holds() {
    let (mut lab, session) = lab();
    let count = |count| Some(PacketCount(count));
    let bar =
        UpdateBarInReport { dl_buffering_suggested_packet_count: count(300), ..for_so_long(MINUTES | 5) };
    packet(&mut lab, session, 2);
    lab.modify(
        session,
        SessionModificationRequest { update_fars: vec![asleep()], ..SessionModificationRequest::default() },
    );
    let [sequence] = reported(&mut lab)[..] else { panic!("one report") };
    answer(&mut lab, session, sequence, bar);
    assert_eq!(extended(&lab, session).unwrap().packets, Some(300));
    lab.pass(Duration::from_secs(300));
    let told = &lab.in_force[&session].rules.bars[0];
    assert_eq!((told.extended, told.suggested_packets), (None, None));
}

/// What else changes does not end it; that packets are to be dropped does.
#[test]
fn it_ends_where_packets_are_dropped_and_not_by_other_changes() {
    let (mut lab, session) = lab();
    extend(&mut lab, session, for_so_long(MINUTES | 5));
    let create_pdrs = vec![smf::downlink(4, Some(smf::UE))];
    lab.modify(session, SessionModificationRequest { create_pdrs, ..Default::default() });
    packet(&mut lab, session, 4);
    assert_eq!((extended(&lab, session).is_some(), reported(&mut lab)), (true, vec![]));
    let pfcpsm_req_flags = Some(flags::PFCPSM_DROBU);
    lab.modify(session, SessionModificationRequest { pfcpsm_req_flags, ..Default::default() });
    assert_eq!(extended(&lab, session), None);
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

/// One answer may have what is kept dropped, and what comes from then on kept.
#[test]
fn what_is_kept_may_go_and_what_comes_wait() {
    let (mut lab, session) = lab();
    packet(&mut lab, session, 2);
    let [sequence] = reported(&mut lab)[..] else { panic!("one report") };
    let response = SessionReportResponse {
        update_bar: Some(for_so_long(MINUTES | 5)),
        pfcpsrrsp_flags: Some(flags::PFCPSRRSP_DROBU),
        ..SessionReportResponse::of(Cause::RequestAccepted)
    };
    lab.tell(SMF, &Message::session(session.0, sequence, response));
    let drops = |order: &Output| matches!(order, Output::Put(desired) if desired.drop_buffered);
    assert_eq!(lab.told.iter().filter(|order| drops(order)).count(), 1);
    packet(&mut lab, session, 2);
    lab.pass(Duration::from_secs(100));
    assert_eq!((extended(&lab, session).is_some(), reported(&mut lab)), (true, vec![]));
}

/// The database has it: a new process goes on, and ends it when it is over, be that while there was none.
#[test]
fn it_outlives_the_process() {
    let (mut lab, session) = lab();
    let bar = UpdateBarInReport {
        dl_buffering_suggested_packet_count: Some(PacketCount(7)),
        ..for_so_long(MINUTES | 5)
    };
    extend(&mut lab, session, bar);
    lab.pass(Duration::from_secs(100));
    lab.restart();
    packet(&mut lab, session, 2);
    assert_eq!((extended(&lab, session).unwrap().packets, reported(&mut lab)), (Some(7), vec![]));
    lab.pass(Duration::from_secs(199));
    assert_eq!(dropped(&lab), []);
    lab.pass(Duration::from_secs(2));
    assert_eq!((extended(&lab, session), dropped(&lab)), (None, vec![BarId(1)]));
    extend(&mut lab, session, for_so_long(MINUTES | 5));
    lab.now = lab.now + Duration::from_secs(301);
    lab.restart();
    lab.pass(Duration::from_secs(1));
    assert_eq!((extended(&lab, session), dropped(&lab)), (None, vec![BarId(1); 2]));
}

/// A data plane that begins anew keeps packets, and nobody is told of them.
#[test]
fn it_outlives_the_data_plane() {
    let (mut lab, session) = lab();
    extend(&mut lab, session, for_so_long(MINUTES | 5));
    lab.restart_plane();
    assert!(extended(&lab, session).is_some());
    packet(&mut lab, session, 2);
    lab.pass(Duration::from_secs(20));
    assert!(reported(&mut lab).is_empty());
    lab.pass(Duration::from_secs(280));
    packet(&mut lab, session, 2);
    assert_eq!(reported(&mut lab).len(), 1);
}

/// The user wakes before the data plane says that it has been told.
#[test]
fn an_answer_that_crosses_the_wake_up_call_extends_nothing() {
    let (mut lab, session) = lab();
    packet(&mut lab, session, 2);
    let [sequence] = reported(&mut lab)[..] else { panic!("one report") };
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, 900, path_switch(5)));
    answer(&mut lab, session, sequence, for_so_long(MINUTES | 5));
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.answer(900);
    assert_eq!(extended(&lab, session), None);
    lab.pass(Duration::from_secs(400));
    assert_eq!(dropped(&lab), []);
}

/// It is over while something else is under way.
#[test]
fn it_ends_amid_a_modification() {
    let (mut lab, session) = lab();
    extend(&mut lab, session, for_so_long(1));
    lab.obedience = Obedience::Waits;
    let create_pdrs = vec![smf::downlink(4, Some(smf::UE))];
    let request = SessionModificationRequest { create_pdrs, ..Default::default() };
    lab.tell(SMF, &Message::session(session.0, 900, request));
    lab.pass(Duration::from_secs(2));
    lab.obedience = Obedience::Obeys;
    lab.obey();
    lab.answer(900);
    assert_eq!((extended(&lab, session), dropped(&lab)), (None, vec![BarId(1)]));
}

/// It is said in the answer to a report, and nowhere else (TS 29.244 7.5.2.6 and 7.5.4.11).
#[test]
fn a_request_that_says_it_is_refused() {
    let (mut lab, session) = lab();
    let carried = vec![RawIe { ie: ie::DL_BUFFERING_DURATION, value: vec![MINUTES | 5] }];
    let update_bar = Some(UpdateBar { bar_id: 1, carried, ..UpdateBar::default() });
    let request = SessionModificationRequest { update_bar, ..Default::default() };
    let Body::SessionModificationResponse(response) =
        lab.ask(SMF, &Message::session(session.0, 900, request))
    else {
        panic!("an answer")
    };
    let refused = (response.cause, response.offending_ie);
    assert_eq!(refused, (Cause::ServiceNotSupported, Some(ie::DL_BUFFERING_DURATION)));
    assert_eq!(extended(&lab, session), None);
}
