//! Sessions that have something to tell at once take turns.

use crate::common::billing::*;
use crate::common::{Lab, SMF, config};
use n4::Config;
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::Seid;
use std::collections::BTreeMap;
use std::time::Duration;

const SESSIONS: u64 = 10_000;
const PER_S: u32 = 1_000;

/// Octets told of sessions, by the control plane's SEID, and in how many reports.
type Told = BTreeMap<u64, (u64, usize)>;

fn octets_in(reports: &[UsageReport]) -> u64 {
    reports.iter().map(octets).map(|(up, down)| up + down).sum()
}

/// All reports that were sent are taken and confirmed; how many.
fn take(lab: &mut Lab, sessions: &[Seid], told: &mut Told) -> usize {
    let reports = lab.reports();
    for (_, message) in &reports {
        let Body::SessionReportRequest(request) = &message.body else { panic!("{message:?}") };
        let cp_seid = message.seid.unwrap();
        let sum = told.entry(cp_seid).or_default();
        *sum = (sum.0 + octets_in(&request.usage_reports), sum.1 + 1);
        let response = SessionReportResponse::of(Cause::RequestAccepted);
        let session = sessions[cp_seid as usize - 1];
        lab.tell(SMF, &Message::session(session.0, message.sequence, response));
    }
    reports.len()
}

fn with(per_s: u32, count: u64) -> (Lab, Vec<Seid>) {
    let mut lab = Lab::associated_with(Config { usage_reports_per_s: per_s, ..config() });
    let establish = |cp_seid| {
        let mut rule = urr(1, Trigger::VOLTH);
        rule.volume_threshold = total(1_000);
        lab.establish(metered(cp_seid, vec![rule]))
    };
    let sessions = (1..=count).map(establish).collect();
    (lab, sessions)
}

#[test]
fn thresholds_of_many_sessions_are_told_in_turn_and_whole() {
    let (mut lab, sessions) = with(PER_S, SESSIONS);
    lab.pass(Duration::from_secs(5));
    let mut told = Told::new();
    let mut by_second = vec![];
    for session in &sessions {
        lab.traffic(*session, (600, 500), false);
    }
    by_second.push(take(&mut lab, &sessions, &mut told));
    // Who waits goes on using.
    for session in &sessions[9_000..] {
        lab.traffic(*session, (100, 0), false);
    }
    while told.len() < sessions.len() && by_second.len() < 20 {
        let mut sum = 0;
        for _ in 0..20 {
            lab.pass(Duration::from_millis(50));
            sum += take(&mut lab, &sessions, &mut told);
        }
        by_second.push(sum);
    }
    assert_eq!(by_second[0], PER_S as usize / 10 + 1, "{by_second:?}");
    assert!(by_second[1..].iter().all(|reports| *reports <= PER_S as usize), "{by_second:?}");
    assert_eq!(by_second.len(), 11, "no slower than it may be: {by_second:?}");
    assert!(told.values().all(|(octets, reports)| *octets >= 1_100 && *reports == 1));
    assert_eq!(lab.node.counters().reports_delayed, SESSIONS - 101);
    for session in &sessions[8_950..9_050] {
        let last = octets_in(&lab.delete(*session).usage_reports);
        let place = sessions.iter().position(|other| other == session).unwrap();
        let used = if place < 9_000 { 1_100 } else { 1_200 };
        assert_eq!(told[&(place as u64 + 1)].0 + last, used, "{place}");
    }
}

#[test]
fn a_quota_that_is_used_up_waits_for_no_turn() {
    let (mut lab, mut sessions) = with(1, 50);
    let mut rule = urr(1, Trigger::VOLQU);
    rule.volume_quota = total(1_000);
    sessions.push(lab.establish(metered(51, vec![rule])));
    lab.pass(Duration::from_secs(5));
    let mut told = Told::new();
    for session in &sessions {
        lab.traffic(*session, (600, 500), false);
    }
    take(&mut lab, &sessions, &mut told);
    assert!(told.keys().eq(&[1, 51]), "{told:?}");
    lab.pass(Duration::from_secs(3));
    take(&mut lab, &sessions, &mut told);
    assert_eq!(told.len(), 5);
}

#[test]
fn without_a_limit_all_are_told_at_once() {
    let (mut lab, sessions) = with(0, 200);
    for session in &sessions {
        lab.traffic(*session, (600, 500), false);
    }
    assert_eq!(take(&mut lab, &sessions, &mut Told::new()), sessions.len());
}
