//! Containers and records by hand, and sums by property.

use super::*;
use crate::ber::Context;
use crate::file::{self, Closure, Format, Frame};
use crate::user::{Slice, User};
use crate::zone::Zone;
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
    Reading {
        meter,
        key: key(meter),
        used,
        measures_time: true,
        first_packet_ms: Some(5),
        last_packet_ms: Some(9),
    }
}

fn account(policy: &Policy) -> Account {
    Account::new(session(), policy, Clock::at(0))
}

/// The only record that the end closes.
fn last(account: &mut Account, readings: &[Reading], cause: Cause, now_ms: u64) -> Cdr {
    let [cdr] = <[Cdr; 1]>::try_from(account.end(readings, cause, now_ms)).unwrap();
    cdr
}

fn volumes(cdr: &Cdr) -> Vec<(u32, u64, u64)> {
    let told = |it: &Container| (it.key.rating_group, it.uplink_bytes, it.downlink_bytes);
    cdr.containers.iter().map(told).collect()
}

#[test]
fn a_session_that_used_nothing_has_one_record_of_nothing() {
    let policy = Policy::default();
    let mut account = account(&policy);
    assert_eq!(account.attend(&[reading(1, (0, 0))], &policy, Clock::at(HOUR)), []);
    let cdr = last(&mut account, &[reading(1, (0, 0))], Cause::NormalRelease, 2 * HOUR);
    assert_eq!((cdr.sequence, cdr.opened_ms, cdr.closed_ms), (1, 0, 2 * HOUR));
    assert!(cdr.is_only() && cdr.containers.is_empty());
}

#[test]
fn records_are_closed_on_time_and_the_next_goes_on() {
    let policy = Policy::default();
    let mut account = account(&policy);
    assert_eq!(account.next_due_ms(&policy, Clock::at(0)), HOUR);
    assert_eq!(account.attend(&[reading(1, (10, 20))], &policy, Clock::at(HOUR - 1)), []);
    let first = account.attend(&[reading(1, (10, 20))], &policy, Clock::at(HOUR)).remove(0);
    assert_eq!((first.cause, first.sequence, volumes(&first)), (Cause::TimeLimit, 1, vec![(1, 10, 20)]));
    assert_eq!(first.containers[0].conditions, Conditions::TIME_LIMIT);
    assert_eq!((first.containers[0].first_packet_ms, first.containers[0].last_packet_ms), (Some(5), Some(9)));
    let last = last(&mut account, &[reading(1, (11, 20))], Cause::NormalRelease, HOUR + 7);
    assert_eq!((last.sequence, last.opened_ms, volumes(&last)), (2, HOUR, vec![(1, 1, 0)]));
    assert_eq!((last.containers[0].sequence, last.containers[0].first_packet_ms), (2, Some(HOUR)));
    assert!(!last.is_only());
}

#[test]
fn records_are_closed_when_they_are_full() {
    let policy = Policy { volume_limit_bytes: 100, containers: 2, ..Policy::default() };
    let mut account = account(&policy);
    assert_eq!(account.room_bytes(&[reading(1, (10, 20))], &policy), 70);
    assert_eq!(account.attend(&[reading(1, (40, 59))], &policy, Clock::at(1)), []);
    let full = account.attend(&[reading(1, (40, 60))], &policy, Clock::at(2)).remove(0);
    assert_eq!((full.cause, volumes(&full)), (Cause::VolumeLimit, vec![(1, 40, 60)]));
    let change = |account: &mut Account, bytes: u64| {
        account.change(&[reading(1, (40 + bytes, 60))], Conditions::QOS_CHANGE, (&policy, 3))
    };
    assert_eq!(change(&mut account, 1), []);
    assert_eq!(change(&mut account, 1), [], "nothing was used in between");
    let full = change(&mut account, 3).remove(0);
    assert_eq!((full.cause, volumes(&full)), (Cause::MaxChangeConditions, vec![(1, 1, 0), (1, 2, 0)]));
}

#[test]
fn tariffs_tell_usage_apart() {
    let policy = Policy { tariff_minutes: vec![30], ..Policy::default() };
    let mut account = account(&policy);
    assert_eq!(account.next_due_ms(&policy, Clock::at(0)), HOUR / 2);
    assert_eq!(account.attend(&[reading(1, (5, 0)), reading(2, (0, 6))], &policy, Clock::at(HOUR / 2)), []);
    assert_eq!(account.next_due_ms(&policy, Clock::at(0)), HOUR);
    let cdr = last(&mut account, &[reading(1, (7, 0)), reading(2, (0, 6))], Cause::AbnormalRelease, HOUR - 1);
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
    let cdr = last(&mut account, &[reading(1, (20, 0))], Cause::NormalRelease, 2);
    assert_eq!(volumes(&cdr), [(1, 50, 0), (1, 20, 0)]);
}

#[test]
fn what_was_used_before_the_key_changed_goes_under_the_old_one() {
    let policy = Policy::default();
    let mut account = account(&policy);
    account.set_meters(&[reading(1, (0, 0))], 0);
    let renamed = Reading { key: key(9), ..reading(1, (30, 0)) };
    assert_eq!(account.attend(&[renamed], &policy, Clock::at(1)), []);
    let later = |bytes| Reading { key: key(9), ..reading(1, (bytes, 0)) };
    assert_eq!(account.attend(&[later(33)], &policy, Clock::at(2)), []);
    let cdr = last(&mut account, &[later(35)], Cause::NormalRelease, 3);
    assert_eq!(volumes(&cdr), [(1, 30, 0), (9, 5, 0)]);
}

#[test]
fn meters_of_one_key_share_a_container() {
    let policy = Policy::default();
    let mut account = account(&policy);
    let used = |duration_ms| Used { uplink_bytes: 4, downlink_bytes: 1, duration_ms };
    let readings = [(1, 70_000), (2, 50_000)].map(|(meter, duration_ms)| Reading {
        key: key(3),
        used: used(duration_ms),
        ..reading(meter, (0, 0))
    });
    let cdr = last(&mut account, &readings, Cause::NormalRelease, 2);
    assert_eq!((volumes(&cdr), cdr.containers[0].duration_ms), (vec![(3, 8, 2)], 70_000));
}

/// What one container leaves of a second is in the next one.
#[test]
fn containers_together_tell_all_the_time_there_was() {
    let policy = Policy::default();
    let mut account = account(&policy);
    let at = |count: u64| Reading {
        used: Used { uplink_bytes: count, downlink_bytes: 0, duration_ms: count * 950 },
        ..reading(1, (0, 0))
    };
    for count in 1..10 {
        assert_eq!(account.change(&[at(count)], Conditions::QOS_CHANGE, (&policy, count)), []);
    }
    let cdr = last(&mut account, &[at(10)], Cause::NormalRelease, 10);
    let seconds = |it: &Container| it.duration_ms / 1_000;
    assert_eq!((cdr.containers.len(), cdr.containers.iter().map(seconds).sum::<u64>()), (10, 9));
}

/// The longest there may be of everything: what a session used under so many keys.
fn longest(keys: u32, bytes: u64) -> Vec<Reading> {
    let used = Used { uplink_bytes: bytes, downlink_bytes: bytes, duration_ms: bytes };
    let one = |at| Reading {
        key: Key { rating_group: u32::MAX - at, service_id: Some(u32::MAX) },
        used,
        ..reading(at, (0, 0))
    };
    (0..keys).map(one).collect()
}

/// A file is read by the lengths of its records, of two octets each (TS 32.297 6.1.2): however much a change closes, and with
/// the longest names, none gets longer.
#[test]
fn no_record_is_longer_than_its_header_can_say() {
    let long = |length| "n".repeat(length);
    let user = User {
        imei: Some("3".repeat(16)),
        msisdn: Some("3".repeat(15)),
        nai: Some(long(100)),
        dnn: Some(long(10_000)),
        slice: Some(Slice { sst: 255, sd: Some([0, 0, 1]) }),
        ipv4: Some([10, 0, 0, 1].into()),
        ipv6: Some(("2001:db8::".parse().unwrap(), 56)),
        ..User::default()
    };
    let ipv6: IpAddr = "2001:db8::1".parse().unwrap();
    let serving_nodes = vec![ipv6; Session::SERVING_NODES];
    let seid = u64::MAX;
    let session = Session { seid, owner: long(300), cp_seid: seid, cp_address: ipv6, serving_nodes, user };
    let policy = Policy { containers: Cdr::CONTAINERS, volume_limit_bytes: u64::MAX, ..Policy::default() };
    let mut account = Account::new(session.clone(), &policy, Clock::at(0));
    for at in 0..100 {
        let node = IpAddr::from([0x2001, 0xDB8, 0, 0, 0, 0, 0, at]);
        account.tell(Session { serving_nodes: vec![node; Session::SERVING_NODES], ..session.clone() });
    }
    let all = Conditions::NAMES.iter().fold(Conditions::default(), |all, (one, _)| all.and(*one));
    assert_eq!(account.change(&longest(249, 1), all, (&policy, 1)), [], "there is room for one more");
    let mut cdrs = account.change(&longest(1_000, u64::MAX / 4_000), all, (&policy, 2));
    cdrs.extend(account.end(&longest(1_000, u64::MAX / 2_000), Cause::NormalRelease, 3));
    let lengths: Vec<usize> = cdrs.iter().map(|cdr| cdr.containers.len()).collect();
    assert_eq!(lengths, [250, 250, 250, 250, 249, 250, 250, 250, 250]);
    let causes: Vec<Cause> = cdrs.iter().map(|cdr| cdr.cause).collect();
    assert_eq!((&causes[..8], causes[8]), (&[Cause::MaxChangeConditions; 8][..], Cause::NormalRelease));
    assert!(cdrs.iter().zip(1..).all(|(cdr, sequence)| cdr.sequence == sequence));
    assert!(cdrs.windows(2).all(|pair| pair[0].closed_ms == pair[1].opened_ms));
    let bytes = cdrs.iter().map(|cdr| u128::from(cdr.bytes().0)).sum::<u128>();
    assert_eq!(bytes, 1_000 * u128::from(u64::MAX / 2_000), "all is charged once");
    let (node, zone) = (long(300), Zone::default());
    let context = Context { node: &node, zone: &zone };
    for format in Format::ALL {
        let address = ipv6;
        let frame = Frame { context, address, sequence: 1, closure: Closure::Normal, lost: 0, now_ms: 3 };
        let read = file::read(&file::encode(&cdrs, format, frame)).unwrap();
        let lengths_read: Vec<usize> = read.records.iter().map(|record| record.containers.len()).collect();
        assert_eq!(lengths_read, lengths);
    }
}

/// Users move, and sleep in between: a container tells where it was used, a record all places, and none that was known is
/// forgotten as the next begins.
#[test]
fn records_tell_all_serving_nodes_and_containers_theirs() {
    let policy = Policy::default();
    let mut account = account(&policy);
    let mut bytes = 0;
    let mut used = |account: &mut Account, conditions| {
        bytes += 1;
        assert_eq!(account.change(&[reading(1, (bytes, 0))], conditions, (&policy, bytes)), []);
    };
    let nodes = |nodes: &[u8]| -> Vec<IpAddr> { nodes.iter().map(|at| [10, 30, 0, *at].into()).collect() };
    let lead = |account: &mut Account, to: &[u8]| {
        account.tell(Session { serving_nodes: nodes(to), ..session() });
    };
    used(&mut account, Conditions::QOS_CHANGE);
    for to in [&[9][..], &[], &[7, 8], &[9], &[]] {
        lead(&mut account, to);
        used(&mut account, Conditions::SERVING_NODE_CHANGE);
    }
    let all_of = |cdr: &Cdr| -> Vec<Vec<IpAddr>> {
        cdr.containers.iter().map(|container| container.serving_nodes.clone()).collect()
    };
    let first = account.attend(&[reading(1, (100, 0))], &policy, Clock::at(HOUR)).remove(0);
    assert_eq!(first.session.serving_nodes, nodes(&[9, 7, 8]), "oldest first, each once");
    let places = [&[][..], &[9], &[9], &[7, 8], &[9], &[9], &[9]].map(nodes);
    assert_eq!(all_of(&first), places, "asleep, it is where it was");
    let next = account.attend(&[reading(1, (101, 0))], &policy, Clock::at(2 * HOUR)).remove(0);
    assert_eq!((next.session.serving_nodes.clone(), all_of(&next)), (nodes(&[9]), vec![nodes(&[9])]));
    (1..=100).for_each(|at| lead(&mut account, &[at]));
    let last = last(&mut account, &[], Cause::NormalRelease, 3 * HOUR);
    let latest: Vec<u8> = (85..=100).collect();
    assert_eq!(last.session.serving_nodes, nodes(&latest));
    // That of now is told though it was the first of many.
    (101..=115).for_each(|at| lead(&mut account, &[at]));
    lead(&mut account, &[100, 116]);
    let cdr = account.end(&[], Cause::NormalRelease, 4 * HOUR).remove(0);
    let latest: Vec<u8> = [100].into_iter().chain(102..=116).collect();
    assert_eq!(cdr.session.serving_nodes, nodes(&latest));
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
        cdrs.extend(account.end(&[reading(1, counted[0]), reading(2, counted[1])], Cause::NormalRelease, now));
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
