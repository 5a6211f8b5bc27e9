//! Thresholds and quotas of events (TS 29.244 5.2.2.2): when uses of a service are told, and when there are no more.

use crate::common::billing::*;
use crate::events::*;
use dplink::{Notice, UsageCounts};
use n4::Input;
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::UrrId;

const TIMQU: u32 = 1 << 9;

#[test]
fn the_use_that_spends_a_quota_goes_on_and_the_next_needs_another() {
    let mut rule = events(EVEQU);
    (rule.event_quota, rule.quota_far_id) = (Some(2), Some(2));
    let mut stage = Stage::new(vec![rule]);
    for given in 0..3 {
        let first = stage.uses();
        assert_eq!((stage.told(), stage.passes()), (vec![], None), "{given}");
        let second = now_s(&stage.lab);
        for expected in [vec![(Trigger::EVEQU, vec![first, second])], vec![], vec![]] {
            stage.packet();
            stage.seconds(STOPS_S - 10);
            assert_eq!((stage.told(), stage.passes()), (expected, None));
        }
        stage.seconds(15);
        assert_eq!(stage.passes(), Some(0));
        assert_eq!(stage.lab.in_force[&stage.session].rules.urrs[0].quota_far, Some(rules::FarId(2)));
        // What misses it is no use, and told of no more.
        stage.many(2);
        assert_eq!((stage.told(), stage.passes()), (vec![], Some(0)));
        stage.update(UpdateUrr { event_quota: Some(2), ..UpdateUrr::default() });
        assert_eq!(stage.passes(), None);
    }
    assert_eq!(stage.last(), (Trigger::TERMR, vec![]));
}

/// It was never used up: its end is told when somebody misses it, and not before.
#[test]
fn a_quota_of_no_events_is_told_once_with_the_first_packet() {
    let mut rule = events(EVEQU);
    rule.event_quota = Some(0);
    let mut stage = Stage::new(vec![rule]);
    for _ in 0..3 {
        stage.seconds(100);
        assert_eq!((stage.told(), stage.passes()), (vec![], Some(0)));
        for expected in [vec![(Trigger::EVEQU, vec![])], vec![]] {
            stage.packet();
            assert_eq!(stage.told(), expected);
            stage.seconds(2);
        }
        stage.update(UpdateUrr { event_quota: Some(0), ..UpdateUrr::default() });
    }
    // The data plane has told of a start, of which no packet passed: it tells of the one that does.
    stage.update(UpdateUrr { event_quota: Some(1), ..UpdateUrr::default() });
    let at = now_s(&stage.lab);
    stage.packet();
    assert_eq!(stage.told(), [(Trigger::EVEQU, vec![at])]);
}

/// The data plane hears of a quota's end a moment later.
#[test]
fn what_passes_before_the_data_plane_knows_is_no_use() {
    let mut stage = Stage::new(vec![CreateUrr { event_quota: Some(1), ..events(EVEQU) }]);
    let at = stage.uses();
    assert_eq!(stage.passes(), Some(0));
    let counts = UsageCounts {
        urr: UrrId(1),
        uplink_bytes: 20,
        uplink_packets: 2,
        first_packet_age_ms: Some(0),
        last_packet_age_ms: Some(0),
        ..UsageCounts::default()
    };
    let told = Notice::InterimUsage { counts: vec![(stage.session, counts)] };
    stage.lab.handle(Input::DataPath(&told));
    stage.seconds(1);
    assert_eq!(stage.told(), [(Trigger::EVEQU, vec![at])]);
    assert_eq!(stage.last(), (Trigger::TERMR, vec![]));
}

/// A quota of nothing ends what is under way, too.
#[test]
fn a_quota_of_no_events_stops_a_use() {
    let mut stage = Stage::new(vec![events(EVEQU)]);
    stage.packet();
    stage.update(UpdateUrr { event_quota: Some(0), ..UpdateUrr::default() });
    assert_eq!(stage.passes(), Some(0));
}

#[test]
fn quotas_of_time_and_of_events_hold_each_by_itself() {
    let rule = CreateUrr { event_quota: Some(1), time_quota: Some(30), ..events(EVEQU | TIMQU) };
    let mut stage = Stage::new(vec![rule]);
    let at = now_s(&stage.lab);
    stage.packet();
    stage.seconds(STOPS_S + 5);
    assert_eq!(stage.told(), [(Trigger::EVEQU, vec![at]), (Trigger::TIMQU, vec![])]);
    let time = UpdateUrr { time_quota: Some(30), ..UpdateUrr::default() };
    let event = UpdateUrr { event_quota: Some(1), ..UpdateUrr::default() };
    for given in [[&time, &event], [&event, &time]] {
        for (change, left) in given.into_iter().zip([Some(0), None]) {
            stage.update(change.clone());
            assert_eq!((stage.told(), stage.passes()), (vec![], left));
        }
        stage.uses();
        assert_eq!((stage.told().len(), stage.passes()), (2, Some(0)));
    }
    // Without one of them the other is still used up.
    for (ie, left) in [(ie::TIME_QUOTA, Some(0)), (ie::EVENT_QUOTA, None)] {
        stage.update(without(&[ie]));
        assert_eq!(stage.passes(), left);
    }
}

#[test]
fn thresholds_and_quotas_are_changed_and_taken_away() {
    let rule = CreateUrr { event_threshold: Some(2), event_quota: Some(3), ..events(EVETH | EVEQU) };
    let mut stage = Stage::new(vec![rule]);
    stage.many(2);
    assert_eq!(stage.told().len(), 1);
    stage.update(UpdateUrr { event_threshold: Some(4), event_quota: Some(5), ..without(&[]) });
    let expected = stage.many(4);
    assert_eq!(stage.told(), [(Trigger::EVETH, expected)]);
    stage.update(without(&[ie::EVENT_THRESHOLD]));
    let expected = stage.many(1);
    assert_eq!(stage.told(), [(Trigger::EVEQU, expected)]);
    assert_eq!(stage.passes(), Some(0));
    stage.update(without(&[ie::EVENT_QUOTA]));
    assert_eq!(stage.passes(), None);
    let expected = stage.many(10);
    assert_eq!(stage.told(), []);
    assert_eq!(stage.last().1, expected);
}

/// Subsequent ones hold from their monitoring time on, and what was before it is told apart.
#[test]
fn monitoring_times_have_thresholds_and_quotas_of_events() {
    holds_from(|quota| (Some(quota), None));
    // Of the other type.
    holds_from(|quota| (None, Some(quota)));
}

fn holds_from(quota: fn(u32) -> (Option<u32>, Option<u32>)) {
    let (subsequent_event_quota, event_quota) = quota(1);
    let mut stage = Stage::new(vec![]);
    let time = now_s(&stage.lab) + 200;
    let more = AdditionalMonitoringTime {
        monitoring_time: time + 200,
        subsequent_event_quota,
        event_quota,
        ..AdditionalMonitoringTime::default()
    };
    let rule = CreateUrr {
        event_threshold: Some(100),
        event_quota: Some(100),
        monitoring_time: Some(time),
        subsequent_event_threshold: Some(2),
        additional_monitoring_times: vec![more],
        ..events(EVETH | EVEQU)
    };
    let pdr = |pdr_id| UpdatePdr { pdr_id, urr_ids: vec![1], ..UpdatePdr::default() };
    let request = SessionModificationRequest {
        create_urrs: vec![rule],
        update_pdrs: vec![pdr(1), pdr(2)],
        ..Default::default()
    };
    stage.modify(request);
    let before = stage.many(3);
    stage.seconds(10);
    let after = stage.many(2);
    let parts = stage.reports();
    assert_eq!(
        parts.iter().map(of).collect::<Vec<_>>(),
        [(Trigger::EVETH | Trigger::MONIT, before), (Trigger::EVETH, after)]
    );
    assert_eq!(parts[0].usage_information, Some(flags::USAGE_BEF));
    stage.seconds(100);
    assert_eq!(stage.passes(), None);
    let last = stage.uses();
    let parts: Vec<_> = stage.reports().iter().map(of).collect();
    assert_eq!(parts, [(Trigger::EVEQU | Trigger::MONIT, vec![]), (Trigger::EVEQU, vec![last])]);
    assert_eq!(stage.passes(), Some(0));
}
