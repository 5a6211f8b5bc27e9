//! Quotas: what becomes of packets when one has run out, and what is told of it.

use crate::common::billing::*;
use crate::common::{Lab, Obedience, SMF};
use dplink::Notice;
use n4::{Input, Output};
use pfcp::UsageReportTrigger as Trigger;
use pfcp::*;
use rules::Seid;

const VOLTH: u32 = 1 << 1;
const QUHTI: u32 = 1 << 3;
const VOLQU: u32 = 1 << 8;
const TIMQU: u32 = 1 << 9;
const QUVTI: u32 = 1 << 15;

#[test]
fn a_volume_quota_is_told_at_once_and_a_new_one_lets_packets_pass() {
    let mut rule = urr(1, VOLQU | VOLTH);
    rule.volume_quota = total(1_000);
    rule.volume_threshold = total(800);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (800, 0), false);
    assert_eq!(reported(&mut lab, session)[0].usage_report_trigger, Trigger(Trigger::VOLTH));
    // Not a second later: the user waits.
    lab.traffic(session, (0, 200), false);
    assert_eq!(reported(&mut lab, session)[0].usage_report_trigger, Trigger(Trigger::VOLQU));
    lab.traffic(session, (0, 200), false);
    assert_eq!(lab.in_force[&session].rules.urrs[0].quota_grant, 1);
    update(&mut lab, session, UpdateUrr { urr_id: 1, volume_quota: total(500), ..UpdateUrr::default() });
    assert_eq!(lab.in_force[&session].rules.urrs[0].quota_grant, 2);
    seconds(&mut lab, 2);
    lab.traffic(session, (0, 600), false);
    assert_eq!(octets(&reported(&mut lab, session)[0]), (0, 600));
}

/// What passed while the control plane asked for it is of the new quota, which it was asked for by the report; whatever the data plane
/// tells meanwhile, and when.
#[test]
fn a_quota_counts_from_the_report_before_it() {
    for is_told in [[false, false], [true, false], [false, true], [true, true]] {
        let mut rule = urr(1, VOLQU | VOLTH);
        (rule.volume_quota, rule.volume_threshold) = (total(1_000), total(800));
        let (mut lab, session) = lab(vec![rule]);
        lab.traffic(session, (800, 0), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (800, 0));
        lab.traffic(session, (150, 0), false);
        tell(&mut lab, session, is_told[0]);
        update(&mut lab, session, UpdateUrr { urr_id: 1, volume_quota: total(500), ..UpdateUrr::default() });
        assert_eq!(left(&lab, session), 350);
        lab.traffic(session, (0, 340), false);
        tell(&mut lab, session, is_told[1]);
        assert!(reported(&mut lab, session).is_empty(), "there is some left");
        lab.traffic(session, (0, 10), false);
        let report = reported(&mut lab, session).remove(0);
        assert_eq!((report.usage_report_trigger, octets(&report)), (Trigger(Trigger::VOLQU), (150, 350)));
        assert!(left(&lab, session) <= 0);
    }
}

/// Nor does another threshold begin anew: it is a report after so much.
#[test]
fn a_threshold_counts_from_the_report_before_it() {
    for is_told in [[false, false], [true, false], [false, true], [true, true]] {
        let mut rule = urr(1, VOLTH);
        rule.volume_threshold = total(1_000);
        let (mut lab, session) = lab(vec![rule]);
        lab.traffic(session, (1_000, 0), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (1_000, 0));
        lab.traffic(session, (300, 0), false);
        tell(&mut lab, session, is_told[0]);
        update(
            &mut lab,
            session,
            UpdateUrr { urr_id: 1, volume_threshold: total(400), ..UpdateUrr::default() },
        );
        lab.traffic(session, (0, 90), false);
        tell(&mut lab, session, is_told[1]);
        assert!(reported(&mut lab, session).is_empty(), "it is not reached");
        // Of thresholds one is told a second.
        seconds(&mut lab, 1);
        lab.traffic(session, (0, 10), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (300, 100));
        seconds(&mut lab, 1);
        lab.traffic(session, (0, 399), false);
        assert!(reported(&mut lab, session).is_empty(), "it has begun anew");
        lab.traffic(session, (0, 1), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (0, 400));
    }
}

/// Of a quota that has been used already, nothing passes.
#[test]
fn a_quota_of_less_than_was_used_since_the_report_is_used_up() {
    let mut rule = urr(1, VOLQU);
    rule.volume_quota = total(10_000);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (3_000, 0), false);
    update(&mut lab, session, UpdateUrr { urr_id: 1, volume_quota: total(2_000), ..UpdateUrr::default() });
    assert!(left(&lab, session) <= 0);
    lab.traffic(session, (100, 0), false);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger, octets(&report)), (Trigger(Trigger::VOLQU), (3_000, 0)));
}

/// What goes by the FAR of a quota that is used up, as to a portal, takes nothing of the next one.
#[test]
fn a_quota_that_comes_when_the_last_one_is_used_up_counts_from_there() {
    for is_told in [[false, false], [true, false], [false, true], [true, true]] {
        let mut rule = urr(1, VOLQU);
        (rule.volume_quota, rule.quota_far_id) = (total(1_000), Some(1));
        let (mut lab, session) = lab(vec![rule]);
        lab.traffic(session, (1_000, 0), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (1_000, 0));
        lab.plane.quota_fars_forward = true;
        lab.traffic(session, (3_000, 0), false);
        tell(&mut lab, session, is_told[0]);
        update(
            &mut lab,
            session,
            UpdateUrr { urr_id: 1, volume_quota: total(1_500), ..UpdateUrr::default() },
        );
        assert_eq!(left(&lab, session), 1_500);
        tell(&mut lab, session, is_told[1]);
        lab.traffic(session, (1_499, 0), false);
        assert!(reported(&mut lab, session).is_empty(), "there is some left");
        lab.traffic(session, (1, 0), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (4_500, 0));
    }
}

/// Nor does it where that FAR is removed: together with the grant, before it, or as the URR names it no more.
#[test]
fn a_quota_that_comes_with_the_end_of_the_far_counts_from_there() {
    let none = RawIe { ie: ie::FAR_ID, value: vec![] };
    let removal = || SessionModificationRequest {
        remove_fars: vec![RemoveFar { far_id: 5, carried: vec![] }],
        ..Default::default()
    };
    let update = UpdateUrr { urr_id: 1, carried: vec![none], ..UpdateUrr::default() };
    let unnamed = SessionModificationRequest { update_urrs: vec![update], ..Default::default() };
    for (before, with) in [
        (vec![], removal()),
        (vec![removal()], SessionModificationRequest::default()),
        (vec![unnamed, removal()], SessionModificationRequest::default()),
    ] {
        let rule = CreateUrr { volume_quota: total(1_000), quota_far_id: Some(5), ..urr(1, VOLQU) };
        let mut request = metered(77, vec![rule]);
        let to_portal = crate::common::smf::forwarding(DestinationInterface::Core);
        request.create_fars.push(crate::common::smf::far(5, ApplyAction::FORW, Some(to_portal)));
        let mut lab = Lab::associated();
        let session = lab.establish(request);
        lab.plane.quota_fars_forward = true;
        lab.traffic(session, (1_000, 0), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (1_000, 0));
        lab.traffic(session, (5_000, 0), false);
        for request in before {
            assert_eq!(lab.modify(session, request).cause, Cause::RequestAccepted);
            lab.restart();
        }
        let given = UpdateUrr { urr_id: 1, volume_quota: total(3_000), ..UpdateUrr::default() };
        let answer = lab.modify(session, SessionModificationRequest { update_urrs: vec![given], ..with });
        assert_eq!(answer.cause, Cause::RequestAccepted, "{:?}", lab.notes);
        assert_eq!(left(&lab, session), 3_000);
        lab.traffic(session, (3_000, 0), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (8_000, 0));
    }
}

/// Several workers confirm together, so one of them may tell of a quota before the others have heard of it.
#[test]
fn a_quota_that_is_used_up_before_it_is_confirmed_is_told_once() {
    for (far, earlier) in [(None, false), (Some(1), false), (None, true), (Some(1), true)] {
        let mut rule = urr(1, VOLQU);
        (rule.volume_quota, rule.quota_far_id) = (total(1_000), far);
        let (mut lab, session) = lab(vec![rule]);
        lab.plane.quota_fars_forward = true;
        lab.traffic(session, (1_000, 0), false);
        assert_eq!(octets(&reported(&mut lab, session)[0]), (1_000, 0));
        lab.obedience = Obedience::Waits;
        let update = UpdateUrr { urr_id: 1, volume_quota: total(500), ..UpdateUrr::default() };
        let request = SessionModificationRequest { update_urrs: vec![update], ..Default::default() };
        lab.tell(SMF, &Message::session(session.0, 0xABCD, request));
        if earlier {
            // Told under the rules before, and no use of the new quota.
            lab.plane.quota_fars_forward = true;
            lab.traffic(session, (200, 0), false);
            lab.interim(session, false);
        }
        let Some(Output::Put(desired)) = lab.orders.pop() else { panic!("no order") };
        let removed = lab.plane.put(&desired, lab.now);
        let (session, revision) = (desired.session, desired.revision);
        lab.in_force.insert(session, desired);
        lab.traffic(session, (500, 0), false);
        lab.obedience = Obedience::Obeys;
        lab.handle(Input::DataPath(&Notice::Applied { session, revision, removed }));
        let before = if earlier && far.is_some() { 200 } else { 0 };
        assert_eq!(octets(&reported(&mut lab, session)[0]), (before + 500, 0), "{far:?}, {earlier}");
        lab.interim(session, false);
        seconds(&mut lab, 60);
        assert!(reported(&mut lab, session).is_empty(), "{far:?}, {earlier}");
    }
}

/// As many have it, in another life of the data plane, too.
#[test]
fn what_was_used_of_a_quota_that_came_late_is_not_given_again() {
    let mut rule = urr(1, VOLQU);
    (rule.volume_quota, rule.quota_far_id) = (total(1_000), Some(1));
    let (mut lab, session) = lab(vec![rule]);
    lab.plane.quota_fars_forward = true;
    lab.traffic(session, (1_000, 0), false);
    lab.traffic(session, (3_000, 0), false);
    update(&mut lab, session, UpdateUrr { urr_id: 1, volume_quota: total(1_500), ..UpdateUrr::default() });
    lab.interim(session, false);
    lab.traffic(session, (500, 0), false);
    lab.interim(session, false);
    lab.restart_plane();
    assert_eq!(left(&lab, session), 1_000);
}

/// The control plane changes a URR.
fn update(lab: &mut Lab, session: Seid, update: UpdateUrr) {
    lab.modify(session, SessionModificationRequest { update_urrs: vec![update], ..Default::default() });
}

fn tell(lab: &mut Lab, session: Seid, is_told: bool) {
    if is_told {
        lab.interim(session, false);
    }
}

/// As it is the control engine that knows the time, it takes the quota away.
#[test]
fn a_time_quota_that_runs_out_stops_packets_until_the_next() {
    let mut rule = urr(1, TIMQU);
    rule.time_quota = Some(30);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (10, 0), false);
    seconds(&mut lab, 29);
    lab.traffic(session, (10, 0), false);
    seconds(&mut lab, 1);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger, octets(&report)), (Trigger(Trigger::TIMQU), (20, 0)));
    assert_eq!(report.duration_measurement, Some(30));
    lab.traffic(session, (10, 0), false);
    seconds(&mut lab, 60);
    assert!(reported(&mut lab, session).is_empty());
    update(&mut lab, session, UpdateUrr { urr_id: 1, time_quota: Some(30), ..UpdateUrr::default() });
    lab.traffic(session, (10, 0), false);
    seconds(&mut lab, 30);
    assert_eq!(octets(&reported(&mut lab, session)[0]), (10, 0));
}

/// It goes to the data plane whichever of its quotas runs out, can be changed, and be taken away.
#[test]
fn a_quota_has_a_far_of_its_own() {
    let mut rule = urr(1, TIMQU);
    (rule.time_quota, rule.quota_far_id) = (Some(30), Some(2));
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (1, 1), false);
    seconds(&mut lab, 31);
    let quota = |lab: &crate::common::Lab| {
        let urr = &lab.in_force[&session].rules.urrs[0];
        (urr.volume_quota.and_then(|quota| quota.total), urr.quota_far.map(|far| far.0))
    };
    assert_eq!(quota(&lab), (Some(0), Some(2)));
    let none = RawIe { ie: ie::FAR_ID, value: vec![] };
    for (quota_far_id, carried, expected) in [(Some(1), vec![], Some(1)), (None, vec![none], None)] {
        update(&mut lab, session, UpdateUrr { urr_id: 1, quota_far_id, carried, ..UpdateUrr::default() });
        assert_eq!(quota(&lab).1, expected);
    }
}

#[test]
fn a_quota_is_held_only_so_long_without_packets_and_valid_only_so_long() {
    let mut rule = urr(1, QUHTI | QUVTI);
    (rule.quota_holding_time, rule.quota_validity_time) = (Some(20), Some(100));
    rule.volume_quota = total(1_000_000);
    let (mut lab, session) = lab(vec![rule]);
    for _ in 0..3 {
        seconds(&mut lab, 15);
        lab.traffic(session, (1, 0), false);
    }
    seconds(&mut lab, 19);
    assert!(reported(&mut lab, session).is_empty());
    seconds(&mut lab, 1);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger, octets(&report)), (Trigger(Trigger::QUHTI), (3, 0)));
    seconds(&mut lab, 34);
    assert!(reported(&mut lab, session).is_empty());
    seconds(&mut lab, 1);
    assert_eq!(reported(&mut lab, session)[0].usage_report_trigger, Trigger(Trigger::QUVTI));
    seconds(&mut lab, 1_000);
    assert!(reported(&mut lab, session).is_empty());
}

/// TS 29.244 7.5.2.4: packets are no longer permitted to pass when none came for the quota holding time.
#[test]
fn a_quota_that_nobody_used_for_its_holding_time_lets_nothing_pass_until_the_next() {
    let mut rule = urr(1, QUHTI);
    rule.quota_holding_time = Some(20);
    rule.volume_quota = total(1_000);
    let (mut lab, session) = lab(vec![rule]);
    lab.traffic(session, (100, 0), false);
    seconds(&mut lab, 20);
    assert_eq!(reported(&mut lab, session)[0].usage_report_trigger, Trigger(Trigger::QUHTI));
    let quota = |lab: &crate::common::Lab| {
        let urr = &lab.in_force[&session].rules.urrs[0];
        urr.volume_quota.and_then(|quota| quota.total)
    };
    assert_eq!(quota(&lab), Some(0));
    lab.traffic(session, (50, 0), false);
    seconds(&mut lab, 100);
    assert!(reported(&mut lab, session).is_empty(), "told once");
    let give = |lab: &mut crate::common::Lab, update: UpdateUrr| {
        lab.modify(session, SessionModificationRequest { update_urrs: vec![update], ..Default::default() });
    };
    give(&mut lab, UpdateUrr { urr_id: 1, quota_holding_time: Some(30), ..UpdateUrr::default() });
    assert_eq!(quota(&lab), Some(0), "a time is no quota");
    give(&mut lab, UpdateUrr { urr_id: 1, volume_quota: total(700), ..UpdateUrr::default() });
    assert_eq!(quota(&lab), Some(700));
    lab.traffic(session, (40, 0), false);
    seconds(&mut lab, 30);
    let report = reported(&mut lab, session).remove(0);
    assert_eq!((report.usage_report_trigger, octets(&report)), (Trigger(Trigger::QUHTI), (40, 0)));
}

/// Looking whether packets came must not move the volume threshold.
#[test]
fn a_look_at_the_counts_leaves_thresholds_alone() {
    let mut rule = urr(1, QUHTI | VOLTH);
    rule.quota_holding_time = Some(10);
    rule.volume_threshold = total(1_000);
    let (mut lab, session) = lab(vec![rule]);
    for _ in 0..9 {
        lab.traffic(session, (100, 0), false);
        seconds(&mut lab, 9);
    }
    assert!(reported(&mut lab, session).is_empty());
    lab.traffic(session, (100, 0), false);
    assert_eq!(octets(&reported(&mut lab, session)[0]), (1_000, 0));
}
