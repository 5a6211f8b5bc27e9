//! What was used is charged once, whoever of us, the data plane and the control planes dies and comes back.

use crate::charging::{key, lab_of, volumes};
use crate::charging_records::HOUR_S;
use crate::common::billing::*;
use crate::common::{Lab, SMF, smf};
use ::charging::{Cause as Closed, Cdr, OWN_METERS, Policy, Rating};
use n4::Charging;
use pfcp::*;
use proptest::prelude::*;
use rules::UrrId;
use std::collections::BTreeMap;

#[test]
fn a_session_whose_owner_restarts_is_charged_to_its_end() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (3, 0), true);
    lab.associate(SMF, 2);
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::AbnormalRelease, vec![(1, 3, 0)]));
    assert!(lab.saved.is_empty() && lab.over.is_empty());
    assert!(!lab.in_force.contains_key(&session));
}

/// A session that was dropped is charged by the next process, if this one dies before the data plane has spoken.
#[test]
fn a_session_that_was_leaving_when_the_process_died_is_charged() {
    let (mut lab, session) = lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![]);
    lab.traffic(session, (1_000, 0), false);
    lab.obedience = crate::common::Obedience::Waits;
    lab.tell(SMF, &Message::node(900, smf::setup(SMF, 2)));
    assert!(lab.cdrs.is_empty() && lab.over.contains_key(&session));
    lab.orders.clear();
    lab.obedience = crate::common::Obedience::Obeys;
    lab.restart();
    assert_eq!((lab.cdrs[0].cause, volumes(&lab.cdrs[0])), (Closed::AbnormalRelease, vec![(1, 1_000, 0)]));
    assert!(lab.over.is_empty());
    lab.restart();
    assert_eq!(lab.cdrs.len(), 1);
}

/// The data plane that has removed it says nothing.
#[test]
fn a_session_whose_last_counts_never_come_is_charged_with_what_is_known() {
    let (mut lab, session) = lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![]);
    lab.traffic(session, (1_000, 0), false);
    lab.obedience = crate::common::Obedience::Waits;
    lab.tell(SMF, &Message::node(900, smf::setup(SMF, 2)));
    seconds(&mut lab, 2);
    assert_eq!(volumes(&lab.cdrs[0]), [(1, 1_000, 0)]);
    assert!(lab.notes.iter().any(|note| note.contains("has not told the last counts")));
    assert!(lab.over.is_empty());
}

/// The control plane engine alone starts with another configuration.
#[test]
fn what_is_charged_under_another_key_from_a_restart_on_is_measured_anew() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (3, 0), true);
    let policy = Policy::default();
    let rating = Rating::new(Some(key(5)), vec![], []).unwrap();
    lab.config.charging = Some(Charging { rating, policy });
    lab.restart();
    lab.handle(n4::Input::Tick);
    lab.traffic(session, (4, 0), true);
    lab.delete(session);
    assert_eq!(lab.cdrs.iter().flat_map(volumes).collect::<Vec<_>>(), [(1, 3, 0), (5, 4, 0)]);
}

#[test]
fn a_session_that_is_charged_no_longer_has_a_last_record() {
    let (mut lab, session) = lab_of(Policy { volume_limit_bytes: 8_000, ..Policy::default() }, vec![]);
    // What was used in one process and not told, and in the next before it was asked, by a meter of ours and by one of the control plane's.
    let charged = metered(78, vec![urr(10, 0)]);
    let other = lab.establish(charged);
    for used in [1_000, 500] {
        lab.traffic(session, (used, 0), true);
        lab.traffic(other, (used, 1), true);
        seconds(&mut lab, 1);
    }
    lab.config.charging = None;
    lab.restart();
    seconds(&mut lab, 11);
    assert!(
        lab.cdrs.iter().all(|cdr| cdr.cause == Closed::ManagementIntervention && !cdr.cause.is_partial())
    );
    let mut all: Vec<_> = lab.cdrs.iter().flat_map(volumes).collect();
    all.sort_unstable();
    assert_eq!(all, [(1, 1_500, 0), (10, 1_500, 2)]);
    assert!(lab.saved.values().all(|record| record.charging.is_none()));
    lab.traffic(session, (7, 0), true);
    lab.delete(session);
    assert_eq!(lab.cdrs.len(), 2);
}

/// Both processes are killed, and the next control engine finds the data plane at once, or late.
#[test]
fn a_session_that_is_charged_no_longer_is_billed_by_what_a_killed_data_plane_left() {
    for is_late in [false, true] {
        let (mut lab, session) = lab_of(Policy::default(), vec![urr(10, 0)]);
        lab.traffic(session, (1_000, 0), false);
        lab.interim(session, false);
        lab.traffic(session, (500, 0), true);
        seconds(&mut lab, 1);
        lab.config.charging = None;
        if is_late {
            lab.handle(n4::Input::DataPathLost);
            lab.restart_alone();
            seconds(&mut lab, 30);
            assert!(lab.cdrs.is_empty());
        }
        lab.kill_plane(is_late, false);
        seconds(&mut lab, 11);
        let all: Vec<_> = lab.cdrs.iter().flat_map(volumes).collect();
        assert_eq!(all, [(10, 1_500, 0)], "{is_late}");
    }
}

/// A container that was closed at a tariff time is kept, and the switch is not made again: what was used since is of the new tariff.
#[test]
fn a_tariff_switch_before_a_restart_stays_where_it_was() {
    let tariff_minutes = (0..24).map(|hour| hour * 60).collect();
    let policy = Policy { tariff_minutes, time_limit_ms: 24 * HOUR_S * 1_000, ..Policy::default() };
    let (mut lab, session) = lab_of(policy, vec![]);
    let used = |lab: &mut Lab, octets| {
        lab.traffic(session, (octets, 0), true);
        seconds(lab, HOUR_S / 2);
    };
    for octets in [1, 2, 4, 8, 16] {
        used(&mut lab, octets);
    }
    lab.restart();
    used(&mut lab, 32);
    lab.delete(session);
    let all = lab.cdrs.iter().flat_map(|cdr| &cdr.containers);
    let parts: Vec<_> = all.map(|one| (one.uplink_bytes, (one.until_ms - one.from_ms) / 1_000)).collect();
    assert_eq!(parts.iter().map(|part| part.0).sum::<u64>(), 63);
    assert!(parts.len() >= 3 && parts.iter().all(|part| part.1 <= HOUR_S), "{parts:?}");
}

#[test]
fn records_go_on_after_a_restart_of_either_process() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (3, 0), true);
    seconds(&mut lab, HOUR_S);
    lab.restart();
    lab.traffic(session, (4, 0), true);
    seconds(&mut lab, HOUR_S);
    assert_eq!(lab.cdrs.iter().flat_map(volumes).collect::<Vec<_>>(), [(1, 3, 0), (1, 4, 0)]);
    lab.restart_plane();
    lab.traffic(session, (5, 0), true);
    lab.delete(session);
    assert_eq!(volumes(&lab.cdrs[2]), [(1, 5, 0)]);
}

/// A URR that is there goes on as it began: what others were charged for is not charged again, nor the same packets twice from then on.
#[test]
fn what_the_operator_maps_otherwise_is_of_urrs_that_come_then() {
    let mapping = |urr: u32| Rating::new(Some(key(1)), vec![(urr..=urr, key(10))], []).unwrap();
    for (first, then, groups) in [(10, 11, (10, 1)), (11, 10, (1, 10))] {
        let (mut lab, session) = lab_of(Policy::default(), vec![]);
        lab.delete(session);
        lab.cdrs.clear();
        let charging = |urr| Some(Charging { rating: mapping(urr), policy: Policy::default() });
        lab.config.charging = charging(first);
        lab.restart();
        let session = lab.establish(metered(78, vec![urr(10, 0)]));
        lab.traffic(session, (300, 0), true);
        lab.config.charging = charging(then);
        lab.restart();
        lab.traffic(session, (20, 5), true);
        let change = SessionModificationRequest {
            update_pdrs: [1, 2].map(|pdr| UpdatePdr { urr_ids: vec![10], ..UpdatePdr::new(pdr) }).into(),
            ..SessionModificationRequest::default()
        };
        lab.modify(session, change);
        lab.restart();
        lab.traffic(session, (1, 0), true);
        lab.delete(session);
        assert_eq!(charged(&lab.cdrs), BTreeMap::from([(groups.0, (321, 5))]), "{first}");
        lab.cdrs.clear();
        let next = lab.establish(metered(79, vec![urr(10, 0)]));
        lab.traffic(next, (7, 0), true);
        lab.delete(next);
        assert_eq!(charged(&lab.cdrs), BTreeMap::from([(groups.1, (7, 0))]), "{first}");
    }
}

/// One that comes into a session later is charged as the operator has it then, from its first packet on.
#[test]
fn a_urr_that_comes_later_is_charged_as_it_is_mapped() {
    let (mut lab, session) = lab_of(Policy::default(), vec![]);
    lab.traffic(session, (300, 0), true);
    let change = SessionModificationRequest {
        create_urrs: vec![urr(10, 0)],
        update_pdrs: [1, 2].map(|pdr| UpdatePdr { urr_ids: vec![10], ..UpdatePdr::new(pdr) }).into(),
        ..SessionModificationRequest::default()
    };
    lab.modify(session, change);
    assert_eq!(lab.in_force[&session].rules.urrs.len(), 1, "no meter of our own any more");
    lab.traffic(session, (20, 5), true);
    lab.delete(session);
    assert_eq!(charged(&lab.cdrs), BTreeMap::from([(1, (300, 0)), (10, (20, 5))]));
}

/// What the lab counted, by key.
fn counted(
    lab: &Lab,
    of: impl Fn(&crate::common::plane::Plane) -> &BTreeMap<UrrId, (u64, u64)>,
) -> BTreeMap<u32, (u64, u64)> {
    let mut sums = BTreeMap::<u32, (u64, u64)>::new();
    for (urr, (uplink, downlink)) in of(&lab.plane) {
        let group = if urr.0 == 10 { 10 } else { 1 };
        if urr.0 == 10 || urr.0 >= OWN_METERS {
            let sum = sums.entry(group).or_default();
            *sum = (sum.0 + uplink, sum.1 + downlink);
        }
    }
    sums.retain(|_, sum| *sum != (0, 0));
    sums
}

fn charged(cdrs: &[Cdr]) -> BTreeMap<u32, (u64, u64)> {
    let mut sums = BTreeMap::<u32, (u64, u64)>::new();
    for (group, uplink, downlink) in cdrs.iter().flat_map(volumes) {
        let sum = sums.entry(group).or_default();
        *sum = (sum.0 + uplink, sum.1 + downlink);
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever gets lost and whoever restarts: what was counted is in records once.
    #[test]
    fn what_was_counted_is_charged_once(
        steps in prop::collection::vec((0u8..10, 0u64..4_000, 0u64..2_000), 1..40),
        is_mapped in any::<bool>(),
    ) {
        let policy = Policy {
            volume_limit_bytes: 9_000,
            containers: 3,
            tariff_minutes: vec![0, 480, 960],
            ..Policy::default()
        };
        let (mut lab, session) = lab_of(policy, vec![urr(if is_mapped { 10 } else { 2 }, 0)]);
        for (what, uplink, downlink) in steps {
            lab.sent.clear();
            match what {
                0 => lab.restart(),
                1 => seconds(&mut lab, uplink),
                2 => {
                    let all = Some(flags::PFCPSM_QAURR);
                    lab.modify(session, SessionModificationRequest { pfcpsm_req_flags: all, ..Default::default() });
                }
                3 => seconds(&mut lab, downlink * 10),
                4 => {
                    // What a process has not asked about since it started, it does not know.
                    seconds(&mut lab, 11);
                    lab.restart_plane();
                }
                8 => lab.kill_plane(uplink % 2 == 0, downlink % 2 == 0),
                9 => lab.interim(session, uplink % 4 == 0),
                what => lab.traffic(session, (uplink, downlink), what % 2 == 0),
            }
        }
        lab.sent.clear();
        lab.delete(session);
        prop_assert_eq!(charged(&lab.cdrs), counted(&lab, |plane| &plane.counted));
        let serials: Vec<u64> = lab.cdrs.iter().map(|cdr| cdr.serial).collect();
        prop_assert_eq!(serials, (1..=lab.cdrs.len() as u64).collect::<Vec<_>>());
        prop_assert!(lab.cdrs.last().is_some_and(|cdr| !cdr.cause.is_partial()));
    }
}
