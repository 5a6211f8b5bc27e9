//! A monitoring time: what is told apart by it, and what holds from then on.

use crate::common::billing::*;
use crate::common::{Lab, SINCE_1900_MS};
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::Seid;

const VOLTH: u32 = 1 << 1;
const TIMTH: u32 = 1 << 2;
const VOLQU: u32 = 1 << 8;
const TIMQU: u32 = 1 << 9;

#[test]
fn usage_before_and_after_the_monitoring_time_is_told_apart() {
    let mut rule = urr(1, VOLTH);
    rule.volume_threshold = total(1_000_000);
    rule.monitoring_time = Some((SINCE_1900_MS / 1_000) as u32 + 60);
    rule.subsequent_volume_threshold = total(100);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (400, 0), false);
    seconds(&mut lab, 61);
    assert!(reported(&mut lab, session).is_empty());
    assert_eq!(lab.in_force[&session].rules.urrs[0].volume_threshold.unwrap().total, Some(100));
    lab.traffic(session, (0, 30), false);
    // The data plane's threshold begins anew with its rules or with its report: what matters is what is told.
    lab.traffic(session, (0, 100), false);
    let reports = reported(&mut lab, session);
    let [before, after] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((octets(before), before.usage_information), ((400, 0), Some(flags::USAGE_BEF)));
    assert!(before.usage_report_trigger.contains(Trigger::MONIT));
    assert_eq!(after.usage_information, Some(flags::USAGE_AFT));
    assert_eq!((before.end_time, before.ur_seqn + 1), (after.start_time, after.ur_seqn));
    assert!(octets(after).1 > 0);
}

/// A monitoring time in a minute, and the moment it has passed.
fn monitored(change: impl Fn(&mut CreateUrr)) -> (Lab, Seid) {
    let mut rule = urr(1, VOLTH);
    rule.monitoring_time = Some((SINCE_1900_MS / 1_000) as u32 + 60);
    rule.measurement_information = Some(flags::MEASUREMENT_ISTM);
    change(&mut rule);
    let (mut lab, session) = lab(vec![rule]);
    seconds(&mut lab, 61);
    (lab, session)
}

#[test]
fn subsequent_quotas_hold_from_the_monitoring_time_on() {
    let (lab, session) = monitored(|rule| {
        rule.reporting_triggers = ReportingTriggers::new(VOLQU);
        rule.volume_quota = total(1_000_000);
        rule.subsequent_volume_quota = total(100);
    });
    assert_eq!(lab.in_force[&session].rules.urrs[0].volume_quota.unwrap().total, Some(100));
}

/// A subsequent threshold begins at the monitoring time, also where it is of the same size; without one, what is left of the
/// first goes on (TS 29.244 5.2.2.2.1).
#[test]
fn thresholds_after_the_monitoring_time() {
    let after = |subsequent, octets: &[u64]| {
        let mut rule = urr(1, VOLTH);
        rule.monitoring_time = Some((SINCE_1900_MS / 1_000) as u32 + 60);
        (rule.volume_threshold, rule.subsequent_volume_threshold) = (total(1_000), subsequent);
        let (mut lab, session) = lab(vec![rule]);
        lab.traffic(session, (700, 0), false);
        seconds(&mut lab, 65);
        let reports = octets.iter().map(|octets| {
            lab.traffic(session, (*octets, 0), false);
            seconds(&mut lab, 2);
            reported(&mut lab, session).len()
        });
        reports.collect::<Vec<_>>()
    };
    assert_eq!(after(total(1_000), &[400, 500, 200]), [0, 0, 2], "before and after");
    assert_eq!(after(None, &[200, 200]), [0, 2]);
    // The same for times: 60 of 100 seconds are before.
    let after = |subsequent| {
        let (mut lab, session) = monitored(|rule| {
            rule.reporting_triggers = ReportingTriggers::new(TIMTH);
            (rule.time_threshold, rule.subsequent_time_threshold) = (Some(100), subsequent);
        });
        let from = lab.now;
        while reported(&mut lab, session).is_empty() {
            seconds(&mut lab, 1);
        }
        (lab.now - from).as_secs()
    };
    assert!((37..42).contains(&after(None)) && (97..102).contains(&after(Some(100))));
}

#[test]
fn subsequent_times_hold_from_the_monitoring_time_on() {
    let (mut lab, session) = monitored(|rule| {
        rule.reporting_triggers = ReportingTriggers::new(TIMTH);
        rule.time_threshold = Some(1_000);
        rule.subsequent_time_threshold = Some(20);
    });
    reported(&mut lab, session);
    seconds(&mut lab, 15);
    assert!(reported(&mut lab, session).is_empty());
    seconds(&mut lab, 10);
    let reports = reported(&mut lab, session);
    assert!(reports.iter().any(|report| report.usage_report_trigger.contains(Trigger::TIMTH)), "{reports:?}");

    let (mut lab, session) = monitored(|rule| {
        rule.reporting_triggers = ReportingTriggers::new(TIMQU);
        rule.time_quota = Some(1_000);
        rule.subsequent_time_quota = Some(20);
    });
    reported(&mut lab, session);
    seconds(&mut lab, 15);
    assert_eq!(lab.in_force[&session].rules.urrs[0].volume_quota, None);
    seconds(&mut lab, 10);
    assert_eq!(
        lab.in_force[&session].rules.urrs[0].volume_quota.unwrap().total,
        Some(0),
        "nothing passes any more"
    );
}
