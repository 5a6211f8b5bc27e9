//! Several monitoring times of one URR (TS 29.244 5.2.2.2.1, 7.5.2.4): what is told apart by them, and what holds from each on.

use crate::common::billing::*;
use crate::common::{Lab, SINCE_1900_MS, SMF};
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::{Seid, Volume};

const VOLTH: u32 = 1 << 1;
const TIMTH: u32 = 1 << 2;
const VOLQU: u32 = 1 << 8;
const TIMQU: u32 = 1 << 9;

/// The time of day, so many seconds after everything began.
fn time(after_s: u32) -> u32 {
    (SINCE_1900_MS / 1_000) as u32 + after_s
}

fn at(after_s: u32) -> AdditionalMonitoringTime {
    AdditionalMonitoringTime::new(time(after_s))
}

fn threshold(after_s: u32, octets: u64) -> AdditionalMonitoringTime {
    AdditionalMonitoringTime { subsequent_volume_threshold: total(octets), ..at(after_s) }
}

fn quota(after_s: u32, octets: u64) -> AdditionalMonitoringTime {
    AdditionalMonitoringTime { subsequent_volume_quota: total(octets), ..at(after_s) }
}

/// A first monitoring time after 60 s and these, in the order the control plane says them.
fn monitored(triggers: u32, additional: Vec<AdditionalMonitoringTime>) -> CreateUrr {
    CreateUrr {
        monitoring_time: Some(time(60)),
        additional_monitoring_times: additional,
        measurement_information: Some(flags::MEASUREMENT_ISTM),
        ..urr(1, triggers)
    }
}

fn of_total(volume: Option<Volume>) -> Option<u64> {
    volume.and_then(|volume| volume.total)
}

/// The volume threshold that the data plane has now.
fn threshold_in_force(lab: &Lab, session: Seid) -> Option<u64> {
    of_total(lab.in_force[&session].rules.urrs[0].volume_threshold)
}

fn query(lab: &mut Lab, session: Seid) -> Vec<UsageReport> {
    let query_urrs = vec![QueryUrr { urr_id: 1, carried: vec![] }];
    lab.modify(session, SessionModificationRequest { query_urrs, ..Default::default() }).usage_reports
}

fn update(lab: &mut Lab, session: Seid, update: UpdateUrr) -> Cause {
    let update_urrs = vec![UpdateUrr { urr_id: 1, ..update }];
    lab.modify(session, SessionModificationRequest { update_urrs, ..Default::default() }).cause
}

/// Octets from the user, which side of a monitoring time, whether it is told for one, and when it began and ended.
type Part = (u64, Option<u8>, bool, (u32, u32));

fn parts(reports: &[UsageReport]) -> Vec<Part> {
    let since = |moment: Option<u32>| moment.unwrap() - time(0);
    let part = |report: &UsageReport| {
        let is_monitored = report.usage_report_trigger.contains(Trigger::MONIT);
        let when = (since(report.start_time), since(report.end_time));
        (octets(report).0, report.usage_information, is_monitored, when)
    };
    reports.iter().map(part).collect()
}

/// In the order of time, whatever the order in the request, and each with a threshold of its own.
#[test]
fn each_monitoring_time_brings_its_threshold_and_tells_usage_apart() {
    let mut rule = monitored(VOLTH, vec![threshold(300, 4_000), threshold(120, 3_000)]);
    rule.volume_threshold = total(1_000);
    rule.subsequent_volume_threshold = total(2_000);
    let (mut lab, session) = lab(vec![rule]);
    let mut told = vec![];
    for (until, limit) in [(60, 1_000), (120, 2_000), (300, 3_000), (400, 4_000)] {
        assert_eq!(threshold_in_force(&lab, session), Some(limit));
        lab.traffic(session, (limit - 1, 0), false);
        seconds(&mut lab, 5);
        assert!(reported(&mut lab, session).is_empty(), "{limit} begins anew at its monitoring time");
        lab.traffic(session, (1, 0), false);
        told.push(reported(&mut lab, session));
        while now_s(&lab) <= time(until) {
            seconds(&mut lab, 1);
        }
    }
    let [first, rest @ ..] = &told[..] else { panic!("reports") };
    let [first] = &first[..] else { panic!("{first:?}") };
    assert_eq!((octets(first).0, first.usage_information), (1_000, None));
    for (reports, (limit, when)) in rest.iter().zip([(2_000, 60), (3_000, 120), (4_000, 300)]) {
        let [before, after] = &parts(reports)[..] else { panic!("{reports:?}") };
        assert_eq!((before.0, before.1, before.2), (0, Some(flags::USAGE_BEF), true));
        assert_eq!((after.0, after.1, after.2), (limit, Some(flags::USAGE_AFT), false));
        assert_eq!((before.3.1, after.3.0), (when, when));
    }
}

/// Where nothing was told between two monitoring times, what lies between them is after the one and before the other.
#[test]
fn monitoring_times_that_pass_untold_part_the_next_report() {
    let (mut lab, session) = lab(vec![monitored(0, vec![at(180), at(120)])]);
    for octets in [10, 20, 30, 40] {
        lab.traffic(session, (octets, 0), false);
        seconds(&mut lab, if octets == 40 { 10 } else { 61 });
    }
    let (before, between, after) = (Some(1), Some(3), Some(2));
    assert_eq!((flags::USAGE_BEF, flags::USAGE_AFT), (1, 2));
    let expected = [
        (10, before, true, (0, 60)),
        (20, between, true, (60, 120)),
        (30, between, true, (120, 180)),
        (40, after, false, (180, 193)),
    ];
    let reports = query(&mut lab, session);
    assert_eq!(parts(&reports), expected);
    assert_eq!(reports.iter().map(|report| report.ur_seqn).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(reports[2].time_of_first_packet, Some(time(122)));
    // Told once: the next report is in one part.
    assert_eq!(parts(&query(&mut lab, session)), [(0, None, false, (193, 193))]);
}

/// Thresholds and quotas of a monitoring time go on where the next one says nothing of them.
#[test]
fn what_a_monitoring_time_does_not_say_goes_on() {
    let mut rule = monitored(VOLTH | VOLQU | TIMTH, vec![quota(120, 500), threshold(180, 700)]);
    (rule.volume_threshold, rule.time_threshold) = (total(1_000), Some(10_000));
    (rule.subsequent_volume_threshold, rule.volume_quota) = (total(900), total(9_000));
    let (mut lab, session) = lab(vec![rule]);
    let mut seen = vec![];
    for _ in 0..4 {
        let urr = &lab.in_force[&session].rules.urrs[0];
        seen.push((of_total(urr.volume_threshold), of_total(urr.volume_quota), urr.quota_grant));
        // 300 of the 900 are used between the first and the second, and count on.
        lab.traffic(session, (300, 0), false);
        seconds(&mut lab, 61);
    }
    let limits: Vec<_> =
        seen.iter().map(|(threshold, quota, _)| (threshold.unwrap(), quota.unwrap())).collect();
    assert_eq!(limits, [(1_000, 9_000), (900, 9_000), (900, 500), (700, 500)]);
    // A quota is new to the data plane when its monitoring time comes, and only then.
    let grants: Vec<u32> = seen.iter().map(|(.., grant)| *grant).collect();
    assert!(grants[0] == grants[1] && grants[1] != grants[2] && grants[2] == grants[3], "{grants:?}");
}

/// A quota of the same size is given anew by each monitoring time.
#[test]
fn quotas_of_several_monitoring_times_are_given_one_after_the_other() {
    let mut rule = monitored(VOLQU, vec![quota(120, 100), quota(180, 100)]);
    (rule.volume_quota, rule.subsequent_volume_quota) = (total(100), total(100));
    let (mut lab, session) = lab(vec![rule]);
    let mut grants = std::collections::BTreeSet::new();
    for _ in 0..4 {
        grants.insert(lab.in_force[&session].rules.urrs[0].quota_grant);
        lab.traffic(session, (99, 0), false);
        assert!(reported(&mut lab, session).is_empty());
        lab.traffic(session, (1, 0), false);
        let reports = reported(&mut lab, session);
        assert!(reports.last().unwrap().usage_report_trigger.contains(Trigger::VOLQU), "{reports:?}");
        seconds(&mut lab, 61);
    }
    assert_eq!(grants.len(), 4);
}

/// 20 s from each monitoring time on.
#[test]
fn a_time_quota_runs_from_each_monitoring_time_on() {
    let more = |after_s| AdditionalMonitoringTime { subsequent_time_quota: Some(20), ..at(after_s) };
    let mut rule = monitored(TIMQU, vec![more(120)]);
    rule.subsequent_time_quota = Some(20);
    let (mut lab, session) = lab(vec![rule]);
    let mut closed = vec![];
    for second in 0..150 {
        if of_total(lab.in_force[&session].rules.urrs[0].volume_quota) == Some(0) {
            closed.push(second);
        }
        seconds(&mut lab, 1);
    }
    let (first, second): (Vec<u32>, Vec<u32>) = closed.into_iter().partition(|second| *second < 120);
    assert!((80..=82).contains(&first[0]) && (119..=121).contains(first.last().unwrap()), "{first:?}");
    assert!((140..=142).contains(second.iter().find(|second| **second > 122).unwrap()), "{second:?}");
}

/// An update replaces the whole list, or takes it away; what is in force stays as it is.
#[test]
fn an_update_replaces_additional_monitoring_times() {
    let mut rule = monitored(VOLTH, vec![threshold(120, 3_000), threshold(180, 4_000)]);
    (rule.volume_threshold, rule.subsequent_volume_threshold) = (total(1_000), total(2_000));
    let (mut lab, session) = lab(vec![rule]);
    seconds(&mut lab, 70);
    assert_eq!(threshold_in_force(&lab, session), Some(2_000));
    // 50 s has passed already and says nothing.
    let times = vec![threshold(150, 5_000), threshold(50, 6_000), threshold(240, 7_000)];
    let other = UpdateUrr { additional_monitoring_times: times, ..UpdateUrr::default() };
    assert_eq!(update(&mut lab, session, other), Cause::RequestAccepted);
    let mut seen = vec![];
    for _ in 0..3 {
        seen.push(threshold_in_force(&lab, session));
        seconds(&mut lab, 55);
    }
    assert_eq!(seen, [Some(2_000), Some(2_000), Some(5_000)]);
    let none = RawIe { ie: ie::ADDITIONAL_MONITORING_TIME, value: vec![] };
    let away = UpdateUrr { carried: vec![none], ..UpdateUrr::default() };
    assert_eq!(update(&mut lab, session, away), Cause::RequestAccepted);
    assert_eq!(threshold_in_force(&lab, session), Some(2_000));
    seconds(&mut lab, 60);
    assert_eq!(threshold_in_force(&lab, session), Some(2_000), "no other comes any more");
    assert_eq!(parts(&query(&mut lab, session)).len(), 3, "60 s and 150 s had passed");
}

/// Where there was no monitoring time before, those in the past part nothing either.
#[test]
fn a_monitoring_time_that_is_given_late_says_nothing() {
    let (mut lab, session) = lab(vec![CreateUrr { volume_threshold: total(1_000), ..urr(1, VOLTH) }]);
    seconds(&mut lab, 70);
    let times = vec![threshold(90, 5_000), threshold(30, 6_000)];
    let late = UpdateUrr { additional_monitoring_times: times, ..UpdateUrr::default() };
    assert_eq!(update(&mut lab, session, late), Cause::RequestAccepted);
    seconds(&mut lab, 5);
    assert_eq!(threshold_in_force(&lab, session), Some(1_000));
    seconds(&mut lab, 20);
    assert_eq!(threshold_in_force(&lab, session), Some(5_000));
    assert_eq!(parts(&query(&mut lab, session)).len(), 2);
}

/// What has passed and is not told yet, and what is still to come, outlives the process and the data plane.
#[test]
fn a_restart_forgets_no_monitoring_time() {
    let mut rule = monitored(VOLTH, vec![threshold(120, 3_000), threshold(180, 4_000)]);
    rule.subsequent_volume_threshold = total(2_000);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (10, 0), false);
    seconds(&mut lab, 61);
    lab.traffic(session, (20, 0), false);
    seconds(&mut lab, 61);
    lab.restart();
    assert_eq!(threshold_in_force(&lab, session), Some(3_000));
    lab.traffic(session, (30, 0), false);
    seconds(&mut lab, 1);
    // One comes while nobody is there.
    lab.restart_alone();
    seconds(&mut lab, 70);
    lab.connect();
    seconds(&mut lab, 2);
    assert_eq!(threshold_in_force(&lab, session), Some(4_000));
    lab.traffic(session, (40, 0), false);
    let told: Vec<_> = parts(&query(&mut lab, session)).iter().map(|part| (part.0, part.1)).collect();
    assert_eq!(told, [(10, Some(1)), (20, Some(3)), (30, Some(3)), (40, Some(2))]);
}

/// As many as there is room for are taken; one more is refused by name, in a creation and in an update.
#[test]
fn more_monitoring_times_than_there_is_room_for_are_refused() {
    const MOST: usize = rules::limits::ADDITIONAL_MONITORING_TIMES;
    let many = |count: usize| (1..=count as u32).map(|minute| at(60 + 60 * minute)).collect::<Vec<_>>();
    let mut lab = Lab::associated();
    let request = metered(78, vec![monitored(0, many(MOST + 1))]);
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 1, request)) else {
        panic!("an answer")
    };
    let blamed = (response.cause, response.offending_ie, response.failed_rule_id);
    let expected =
        (Cause::NoResourcesAvailable, Some(ie::ADDITIONAL_MONITORING_TIME), Some(FailedRuleId::Urr(1)));
    assert_eq!(blamed, expected);
    assert_eq!(lab.node.sessions(), 0);

    let session = lab.establish(metered(77, vec![monitored(0, many(MOST))]));
    let more = UpdateUrr { additional_monitoring_times: many(MOST + 1), ..UpdateUrr::default() };
    assert_eq!(update(&mut lab, session, more), Cause::NoResourcesAvailable);
    for _ in 0..=MOST {
        lab.traffic(session, (7, 0), false);
        seconds(&mut lab, 61);
    }
    lab.traffic(session, (8, 0), false);
    let told = lab.delete(session).usage_reports;
    let octets: Vec<u64> = parts(&told).iter().map(|part| part.0).collect();
    assert_eq!((octets.len(), octets.iter().sum::<u64>()), (MOST + 2, 7 * (MOST as u64 + 1) + 8));
}
