//! Rates and reports asked for, and what is made of them.

use super::*;
use pfcp::{Rates, ReportType, SessionReportRequest, UsageReport, VolumeMeasurement, Volumes};
use rules::BitRates;

fn plan() -> PduSession {
    PduSession {
        mbr: Some(BitRates { uplink_kbps: 1_000, downlink_kbps: 5_000 }),
        report_after_bytes: Some(1_000_000),
        ..Scene::plan(0)
    }
}

fn report(ur_seqn: u32, uplink: u64, downlink: u64) -> UsageReport {
    let octets = Volumes { total: None, uplink: Some(uplink), downlink: Some(downlink) };
    let volume_measurement = Some(VolumeMeasurement { octets, packets: Volumes::default() });
    UsageReport { urr_id: 1, ur_seqn, volume_measurement, ..UsageReport::default() }
}

fn tell(scene: &mut Scene, sequence: u32, usage_reports: Vec<UsageReport>) {
    let seid = scene.smf.sessions.get(0).unwrap().seid;
    let report_type = ReportType(ReportType::USAR);
    let request = SessionReportRequest { report_type, usage_reports, ..SessionReportRequest::default() };
    scene.say(&Message::session(seid, sequence, request));
    assert!(matches!(scene.one().body, Body::SessionReportResponse(answer) if answer.cause.is_accepted()));
}

#[test]
fn both_pdrs_are_measured_by_one_urr_and_limited_by_one_qer() {
    let mut scene = Scene::with(vec![plan()], FTeidMode::Choose);
    let setup = scene.one();
    let answer = scene.accept(&setup);
    scene.say(&answer);
    let message = scene.one();
    let request = establishment(&message);
    assert!(request.create_pdrs.iter().all(|pdr| pdr.urr_ids == [1] && pdr.qer_ids == [1]));
    let [urr] = &request.create_urrs[..] else { panic!("one URR") };
    assert_eq!(urr.volume_threshold.unwrap().total, Some(1_000_000));
    assert_eq!(request.create_qers[0].mbr, Some(Rates { uplink_kbps: 1_000, downlink_kbps: 5_000 }));
}

#[test]
fn reports_are_added_up_each_once_whatever_their_order() {
    let mut scene = Scene::with(vec![plan()], FTeidMode::Choose);
    scene.accept_all();
    tell(&mut scene, 1, vec![report(1, 10, 0)]);
    tell(&mut scene, 2, vec![report(0, 1, 2), report(1, 10, 0)]);
    tell(&mut scene, 3, vec![report(0, 1, 2)]);
    let sum = Usage { reports: 2, uplink_bytes: 11, downlink_bytes: 2 };
    assert_eq!(scene.smf.usage(0), sum);
    scene.feed(Input::Stop);
    let deletion = scene.one();
    let mut answer = scene.accept(&deletion);
    let Body::SessionDeletionResponse(response) = &mut answer.body else { panic!("{answer:?}") };
    response.usage_reports = vec![report(2, 5, 5)];
    scene.say(&answer);
    assert_eq!(scene.smf.usage(0), Usage { reports: 3, uplink_bytes: 16, downlink_bytes: 7 });
}

/// Another session counts its reports from 0 again.
#[test]
fn a_new_session_goes_on_the_same_account() {
    let mut scene = Scene::with(vec![plan()], FTeidMode::Choose);
    scene.accept_all();
    tell(&mut scene, 1, vec![report(0, 1, 2)]);
    scene.recovery_time_stamp += 1;
    scene.say(&Message::node(9, pfcp::HeartbeatRequest { recovery_time_stamp: BORN + 9, carried: vec![] }));
    scene.accept_all_but_answers();
    tell(&mut scene, 2, vec![report(0, 1, 2)]);
    assert_eq!(scene.smf.usage(0), Usage { reports: 2, uplink_bytes: 2, downlink_bytes: 4 });
}
