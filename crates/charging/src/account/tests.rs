//! Containers and records by hand, and sums by property.

use super::*;
use crate::user::User;
use proptest::prelude::*;

const HOUR: u64 = 3_600_000;

pub(crate) fn session() -> Session {
    Session {
        seid: 1,
        owner: "smf.example".to_owned(),
        cp_seid: 7,
        cp_address: [10, 40, 0, 9].into(),
        serving_nodes: vec![],
        user: User::default(),
    }
}

const fn key(rating_group: u32) -> Key {
    Key { rating_group, service_id: None }
}

const fn reading(meter: u32, (uplink_bytes, downlink_bytes): (u64, u64)) -> Reading {
    let used = Used { uplink_bytes, downlink_bytes, duration_ms: 0 };
    Reading { meter, key: key(meter), used, first_packet_ms: Some(5), last_packet_ms: Some(9) }
}

fn account(policy: &Policy) -> Account {
    Account::new(session(), policy, Clock::at(0))
}

fn volumes(cdr: &Cdr) -> Vec<(u32, u64, u64)> {
    let told = |it: &Container| (it.key.rating_group, it.uplink_bytes, it.downlink_bytes);
    cdr.containers.iter().map(told).collect()
}

#[test]
fn a_session_that_used_nothing_has_one_record_of_nothing() {
    let policy = Policy::default();
    let mut account = account(&policy);
    assert_eq!(account.attend(&[reading(1, (0, 0))], &policy, Clock::at(HOUR)), None);
    let cdr = account.end(&[reading(1, (0, 0))], Cause::NormalRelease, 2 * HOUR);
    assert_eq!((cdr.sequence, cdr.opened_ms, cdr.closed_ms), (1, 0, 2 * HOUR));
    assert!(cdr.is_only() && cdr.containers.is_empty());
}

#[test]
fn records_are_closed_on_time_and_the_next_goes_on() {
    let policy = Policy::default();
    let mut account = account(&policy);
    assert_eq!(account.next_due_ms(&policy, Clock::at(0)), HOUR);
    assert_eq!(account.attend(&[reading(1, (10, 20))], &policy, Clock::at(HOUR - 1)), None);
    let first = account.attend(&[reading(1, (10, 20))], &policy, Clock::at(HOUR)).unwrap();
    assert_eq!((first.cause, first.sequence, volumes(&first)), (Cause::TimeLimit, 1, vec![(1, 10, 20)]));
    assert_eq!(first.containers[0].conditions, Conditions::TIME_LIMIT);
    assert_eq!((first.containers[0].first_packet_ms, first.containers[0].last_packet_ms), (Some(5), Some(9)));
    let last = account.end(&[reading(1, (11, 20))], Cause::NormalRelease, HOUR + 7);
    assert_eq!((last.sequence, last.opened_ms, volumes(&last)), (2, HOUR, vec![(1, 1, 0)]));
    assert_eq!((last.containers[0].sequence, last.containers[0].first_packet_ms), (2, Some(HOUR)));
    assert!(!last.is_only());
}

#[test]
fn records_are_closed_when_they_are_full() {
    let policy = Policy { volume_limit_bytes: 100, containers: 2, ..Policy::default() };
    let mut account = account(&policy);
    assert_eq!(account.room_bytes(&[reading(1, (10, 20))], &policy), 70);
    assert_eq!(account.attend(&[reading(1, (40, 59))], &policy, Clock::at(1)), None);
    let full = account.attend(&[reading(1, (40, 60))], &policy, Clock::at(2)).unwrap();
    assert_eq!((full.cause, volumes(&full)), (Cause::VolumeLimit, vec![(1, 40, 60)]));
    let change = |account: &mut Account, bytes: u64| {
        account.change(&[reading(1, (40 + bytes, 60))], Conditions::QOS_CHANGE, (&policy, 3))
    };
    assert_eq!(change(&mut account, 1), None);
    assert_eq!(change(&mut account, 1), None, "nothing was used in between");
    let full = change(&mut account, 3).unwrap();
    assert_eq!((full.cause, volumes(&full)), (Cause::MaxChangeConditions, vec![(1, 1, 0), (1, 2, 0)]));
}

#[test]
fn tariffs_tell_usage_apart() {
    let policy = Policy { tariff_minutes: vec![30], ..Policy::default() };
    let mut account = account(&policy);
    assert_eq!(account.next_due_ms(&policy, Clock::at(0)), HOUR / 2);
    assert_eq!(account.attend(&[reading(1, (5, 0)), reading(2, (0, 6))], &policy, Clock::at(HOUR / 2)), None);
    assert_eq!(account.next_due_ms(&policy, Clock::at(0)), HOUR);
    let cdr = account.end(&[reading(1, (7, 0)), reading(2, (0, 6))], Cause::AbnormalRelease, HOUR - 1);
    assert_eq!(volumes(&cdr), [(1, 5, 0), (2, 0, 6), (1, 2, 0)]);
    let conditions: Vec<_> = cdr.containers.iter().map(|it| it.conditions).collect();
    assert_eq!(conditions, [Conditions::TARIFF_SWITCH, Conditions::TARIFF_SWITCH, Conditions::ABNORMAL]);
}

#[test]
fn a_meter_that_goes_is_charged_and_one_of_its_number_begins_anew() {
    let policy = Policy::default();
    let mut account = account(&policy);
    account.retire(&[reading(1, (50, 0))], 1);
    account.set_meters(&[reading(1, (5, 0))], 1);
    let cdr = account.end(&[reading(1, (20, 0))], Cause::NormalRelease, 2);
    assert_eq!(volumes(&cdr), [(1, 50, 0), (1, 20, 0)]);
}

#[test]
fn what_was_used_before_the_key_changed_goes_under_the_old_one() {
    let policy = Policy::default();
    let mut account = account(&policy);
    account.set_meters(&[reading(1, (0, 0))], 0);
    let renamed = Reading { key: key(9), ..reading(1, (30, 0)) };
    assert_eq!(account.attend(&[renamed], &policy, Clock::at(1)), None);
    let later = |bytes| Reading { key: key(9), ..reading(1, (bytes, 0)) };
    assert_eq!(account.attend(&[later(33)], &policy, Clock::at(2)), None);
    let cdr = account.end(&[later(35)], Cause::NormalRelease, 3);
    assert_eq!(volumes(&cdr), [(1, 30, 0), (9, 5, 0)]);
}

#[test]
fn meters_of_one_key_share_a_container() {
    let policy = Policy::default();
    let mut account = account(&policy);
    let used = |duration_ms| Used { uplink_bytes: 4, downlink_bytes: 1, duration_ms };
    let readings = [(1, 70), (2, 50)].map(|(meter, duration_ms)| Reading {
        key: key(3),
        used: used(duration_ms),
        ..reading(meter, (0, 0))
    });
    let cdr = account.end(&readings, Cause::NormalRelease, 2);
    assert_eq!((volumes(&cdr), cdr.containers[0].duration_ms), (vec![(3, 8, 2)], 70));
}

proptest! {
    /// Whatever happens when, all records together hold what was counted.
    #[test]
    fn all_that_was_counted_is_charged_once(
        steps in prop::collection::vec((0u8..4, 0u64..5_000, 0u64..5_000, 0u64..HOUR), 1..60),
    ) {
        let policy = Policy {
            volume_limit_bytes: 9_000,
            containers: 4,
            tariff_minutes: vec![0, 600],
            ..Policy::default()
        };
        let mut account = account(&policy);
        let (mut counted, mut now, mut cdrs) = ([(0, 0); 2], 0, vec![]);
        for (what, uplink, downlink, passed) in steps {
            now += passed;
            counted[usize::from(what) % 2].0 += uplink;
            counted[usize::from(what) % 2].1 += downlink;
            let readings = [reading(1, counted[0]), reading(2, counted[1])];
            cdrs.extend(match what {
                0 => account.change(&readings, Conditions::QOS_CHANGE, (&policy, now)),
                _ => account.attend(&readings, &policy, Clock::at(now)),
            });
        }
        cdrs.push(account.end(&[reading(1, counted[0]), reading(2, counted[1])], Cause::NormalRelease, now));
        for (number, counted) in [(1, counted[0]), (2, counted[1])] {
            let of_it = cdrs.iter().flat_map(volumes).filter(|(rating_group, ..)| *rating_group == number);
            let sum = of_it.fold((0, 0), |sum, (_, uplink, downlink)| (sum.0 + uplink, sum.1 + downlink));
            prop_assert_eq!(sum, counted);
        }
        let sequences: Vec<u32> = cdrs.iter().map(|cdr| cdr.sequence).collect();
        prop_assert_eq!(sequences, (1..=cdrs.len() as u32).collect::<Vec<_>>());
        let containers: Vec<u32> = cdrs.iter().flat_map(|cdr| &cdr.containers).map(|it| it.sequence).collect();
        prop_assert_eq!(containers.clone(), (1..=containers.len() as u32).collect::<Vec<_>>());
    }
}
