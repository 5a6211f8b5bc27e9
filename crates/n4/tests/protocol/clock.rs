//! Somebody puts the clock right: what lasts or waits does not care, what is told does.

use crate::common::billing::*;
use crate::common::{Lab, SINCE_1900_MS, config};
use ::charging::{Conditions, Key, Policy, Rating};
use n4::{Charging, Config, Input};
use pfcp::*;
use rules::Seid;
use std::time::Duration;

const PERIO: u32 = 1;
const QUVTI: u32 = 1 << 15;
const HOUR_S: i64 = 3_600;

fn seconds(lab: &mut Lab, seconds: u64) {
    lab.pass(Duration::from_secs(seconds));
}

fn time_of_day_s(lab: &Lab) -> u32 {
    (lab.time_of_day_ms() / 1_000) as u32
}

/// A report every ten minutes, and a quota that is over after half an hour, whether or not it is used up.
fn waiting() -> (Lab, Seid) {
    let mut rule = urr(1, PERIO | QUVTI);
    rule.measurement_period = Some(600);
    rule.quota_validity_time = Some(1_800);
    rule.volume_quota = total(1 << 30);
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, vec![rule]));
    lab.traffic(session, (1, 2), false);
    (lab, session)
}

fn reported(lab: &mut Lab, session: Seid) -> Vec<UsageReport> {
    let mut bill = Bill::default();
    lab.bill(&mut bill, session, true);
    bill.order
}

/// Nothing comes for the clock's sake, and the periodic report comes in its time, told by the clock as it is then.
fn period_goes_on((lab, session): (&mut Lab, Seid), left_s: u64) {
    seconds(lab, left_s - 1);
    assert_eq!(reported(lab, session), []);
    seconds(lab, 1);
    let [report] = &reported(lab, session)[..] else { panic!("one report") };
    assert_eq!(report.usage_report_trigger.0, UsageReportTrigger::PERIO);
    let now_s = time_of_day_s(lab);
    assert_eq!((report.start_time, report.end_time), (Some(now_s - 600), Some(now_s)));
    assert_eq!(report.duration_measurement, Some(600));
    assert_eq!(report.time_of_first_packet, Some(now_s - 600));
}

#[test]
fn a_clock_put_forward_ends_nothing_and_what_is_told_after_it_is_right() {
    let (mut lab, session) = waiting();
    seconds(&mut lab, 100);
    lab.change_clock(HOUR_S);
    period_goes_on((&mut lab, session), 500);
}

#[test]
fn a_clock_put_back_keeps_nothing_waiting() {
    let (mut lab, session) = waiting();
    seconds(&mut lab, 100);
    lab.change_clock(-HOUR_S);
    period_goes_on((&mut lab, session), 500);
}

/// As it is after boot: the clock is put right while the process runs, and the next process begins with the right one.
#[test]
fn a_restart_after_the_clock_was_put_forward_ends_nothing() {
    let (mut lab, session) = waiting();
    seconds(&mut lab, 100);
    lab.change_clock(HOUR_S);
    seconds(&mut lab, 100);
    lab.restart();
    period_goes_on((&mut lab, session), 400);
}

/// What others give as a time of day is one: it comes when the clock says so.
#[test]
fn a_monitoring_time_comes_with_the_clock() {
    for (before_s, given_after_s, wait_s) in [(0, 5_000, 1_401), (HOUR_S, 1_000, 1_001)] {
        let mut lab = Lab::associated();
        lab.change_clock(before_s);
        let mut rule = urr(1, PERIO);
        rule.measurement_period = Some(2_000);
        rule.monitoring_time = Some(time_of_day_s(&lab) + given_after_s);
        let session = lab.establish(metered(77, vec![rule]));
        lab.traffic(session, (10, 0), false);
        // The one who was given it before the clock was put right waits the less.
        lab.change_clock(HOUR_S - before_s);
        let passes_at = (SINCE_1900_MS / 1_000) as u32 + 3_600 + wait_s - 1;
        seconds(&mut lab, u64::from(wait_s));
        lab.traffic(session, (5, 0), false);
        let answer = lab.modify(
            session,
            SessionModificationRequest {
                query_urrs: vec![QueryUrr { urr_id: 1, carried: vec![] }],
                ..SessionModificationRequest::default()
            },
        );
        let told: Vec<_> = answer.usage_reports.iter().map(octets).collect();
        assert_eq!(told, [(10, 0), (5, 0)]);
        assert_eq!(answer.usage_reports[0].end_time, Some(passes_at));
    }
}

/// A clock that is put forward beyond a monitoring time has brought it; what was known to be used is before it.
#[test]
fn a_monitoring_time_that_was_jumped_over_has_come() {
    let mut lab = Lab::associated();
    let mut rule = urr(1, PERIO);
    rule.measurement_period = Some(20_000);
    rule.monitoring_time = Some(time_of_day_s(&lab) + 3_000);
    let session = lab.establish(metered(77, vec![rule]));
    lab.traffic(session, (10, 0), false);
    seconds(&mut lab, 10);
    let token = 1 << 40;
    let known = lab.plane.query(session, &[], (token, false, lab.now)).unwrap();
    lab.handle(Input::DataPath(&known));
    lab.change_clock(HOUR_S);
    seconds(&mut lab, 1);
    lab.traffic(session, (5, 0), false);
    let told: Vec<_> = lab.delete(session).usage_reports.iter().map(octets).collect();
    assert_eq!(told, [(10, 0), (5, 0)]);
}

/// A time limit of half an hour and a tariff that changes at a time of day.
fn charged(tariff_minute: u64) -> Config {
    let policy = Policy { time_limit_ms: 1_800_000, ..Policy::default() };
    let policy = Policy { tariff_minutes: vec![tariff_minute as u32], ..policy };
    let rating = Rating::new(Some(Key { rating_group: 1, service_id: None }), vec![], []).unwrap();
    Config { charging: Some(Charging { rating, policy }), ..config() }
}

#[test]
fn records_of_charging_tell_the_clock_and_last_as_long_as_they_last() {
    let minute_of_day = SINCE_1900_MS / 60_000 % 1_440;
    // Some 75 minutes ahead: the clock is put forward by an hour, so it comes in some 15.
    let mut lab = Lab::associated_with(charged((minute_of_day + 75) % 1_440));
    let session = lab.establish(metered(77, vec![]));
    let began_ms = lab.time_of_day_ms();
    lab.traffic(session, (10, 0), false);
    seconds(&mut lab, 60);
    lab.change_clock(HOUR_S);
    seconds(&mut lab, 1_200);
    assert_eq!(lab.cdrs, [], "half an hour is not over");
    lab.traffic(session, (5, 0), false);
    seconds(&mut lab, 600);
    let [cdr] = &lab.cdrs[..] else { panic!("{:?}", lab.cdrs) };
    assert_eq!((cdr.opened_ms, cdr.closed_ms), (began_ms + 3_600_000, began_ms + 5_400_000));
    let closed: Vec<_> = cdr.containers.iter().map(|it| (it.conditions, it.uplink_bytes)).collect();
    assert_eq!(closed, [(Conditions::TARIFF_SWITCH, 10), (Conditions::TIME_LIMIT, 5)]);
    let tariff_ms = cdr.containers[0].until_ms;
    assert_eq!(tariff_ms / 60_000 % 1_440, (minute_of_day + 75) % 1_440);
    assert_eq!(cdr.containers[0].first_packet_ms, Some(began_ms + 3_600_000));
}
