//! What sessions have used is told by and by, whether or not anybody asks.

use super::to_user;
use crate::config::{Config, Limits};
use crate::fixture::{Bench, N6, config, rules};
use dplink::{Command, Notice};
use rules::{Methods, Rules, Seid, Urr, UrrId};
use std::collections::BTreeMap;
use std::time::Duration;

const INTERVAL_MS: u64 = 8_000;

/// As [`rules`], where all that passes is counted by so many URRs.
fn counted(session: u64, urrs: u32) -> Rules {
    let mut rules = rules(session);
    let methods = Methods { volume: true, ..Methods::default() };
    rules.urrs = (1..=urrs).map(|id| Urr { id: UrrId(id), methods, ..Urr::default() }).collect();
    let ids: Vec<UrrId> = rules.urrs.iter().map(|urr| urr.id).collect();
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = ids.clone().into());
    rules
}

/// So many sessions, and the time in milliseconds.
struct Telling {
    bench: Bench,
    now_ms: u64,
}

impl Telling {
    fn of(sessions: u64, urrs: u32) -> Self {
        let limits = Limits { sessions: 1_024, ..config().limits };
        let mut bench = Bench::over(&Config { limits, ..config() });
        bench.engine.tell_interim(Duration::from_millis(INTERVAL_MS));
        for session in 1..=sessions {
            bench.put(session, 1, counted(session, urrs));
            bench.settle();
        }
        Self { bench, now_ms: 0 }
    }

    /// What is told in so long: each session's URRs with the packets they are told to have had, as often as they are told.
    fn tell(&mut self, ms: u64) -> Vec<(u64, u32, u64)> {
        let mut told = Vec::new();
        for _ in 0..ms {
            self.now_ms += 1;
            self.bench.now_ns = self.now_ms * 1_000_000;
            self.bench.engine.ask_interim(self.now_ms);
            self.bench.worker.turn(self.bench.now_ns);
            for notice in self.bench.engine.poll(self.now_ms) {
                let Notice::InterimUsage { counts } = notice else { panic!("{notice:?}") };
                let of = |(session, counts): (Seid, dplink::UsageCounts)| {
                    (session.0, counts.urr.0, counts.downlink_packets)
                };
                told.extend(counts.into_iter().map(of));
            }
        }
        told
    }

    fn packets(&mut self, session: u8, count: usize) {
        (0..count).for_each(|_| self.bench.receive(N6, &to_user(session)));
    }
}

#[test]
fn what_was_counted_is_told_within_the_interval_and_only_where_it_has_changed() {
    let mut telling = Telling::of(4, 1);
    assert_eq!(telling.tell(3 * INTERVAL_MS), [], "nobody has used anything");
    telling.packets(1, 2);
    telling.packets(4, 5);
    let mut told = telling.tell(INTERVAL_MS);
    told.sort_unstable();
    assert_eq!(told, [(1, 1, 2), (4, 1, 5)]);
    telling.packets(4, 1);
    assert_eq!(telling.tell(INTERVAL_MS), [(4, 1, 6)], "counts are of all there was");
    assert_eq!(telling.tell(3 * INTERVAL_MS), []);
}

/// Whoever has asked has been told.
#[test]
fn what_was_answered_to_a_query_is_not_told_again() {
    let mut telling = Telling::of(1, 1);
    telling.packets(1, 2);
    telling.bench.worker.turn(telling.bench.now_ns);
    let query = Command::QueryUsage { session: Seid(1), urrs: vec![], token: 1, is_reported: false };
    telling.bench.engine.handle(query).unwrap();
    assert!(matches!(&telling.bench.settle()[..], [Notice::Usage { .. }]));
    assert_eq!(telling.tell(2 * INTERVAL_MS), []);
}

/// Who uses much in no time is told of before its turn comes.
#[test]
fn what_is_much_is_told_before_the_interval_is_over() {
    const PACKETS: usize = 13_000;
    let mut telling = Telling::of(2, 1);
    let mut frame = to_user(1);
    frame.resize(14 + 1_400, 0);
    let ip = packet::ipv4::Header::new([203, 0, 113, 80].into(), [10, 60, 0, 1].into(), 17, 1_380).unwrap();
    ip.write(&mut frame[14..]).unwrap();
    let told: Vec<_> = (0..2 * PACKETS / 100)
        .flat_map(|_| {
            (0..100).for_each(|_| telling.bench.receive(N6, &frame));
            telling.bench.worker.turn(telling.bench.now_ns);
            telling.bench.engine.poll(telling.now_ms)
        })
        .collect();
    let bytes = |notice: &Notice| match notice {
        Notice::InterimUsage { counts } => {
            counts.iter().map(|(_, counts)| counts.downlink_bytes).sum::<u64>()
        }
        other => panic!("{other:?}"),
    };
    let [one, two] = &told[..] else { panic!("{told:?}") };
    let all = 2 * PACKETS as u64 * 1_400;
    assert!(bytes(one) > 16_000_000 && bytes(two) > bytes(one) + 16_000_000 && bytes(two) <= all, "{told:?}");
}

/// Many sessions, of more URRs than an answer has room for.
#[test]
fn all_urrs_of_all_sessions_have_their_turn() {
    const SESSIONS: u8 = 200;
    let mut telling = Telling::of(SESSIONS.into(), 3);
    // Nothing passes for the third of the fixture.
    let users = || (1..=SESSIONS).filter(|session| *session != 3);
    for round in 1..=3 {
        users().for_each(|session| telling.packets(session, 1));
        let told = telling.tell(INTERVAL_MS);
        let last: BTreeMap<(u64, u32), u64> =
            told.iter().map(|(session, urr, packets)| ((*session, *urr), *packets)).collect();
        assert_eq!(last.len(), 3 * users().count());
        assert!(last.values().all(|packets| *packets == round));
        assert_eq!(told.len(), last.len(), "each is told once");
    }
}

/// Nobody asks while the link is behind.
#[test]
fn what_is_not_asked_for_is_told_later() {
    let mut telling = Telling::of(2, 1);
    telling.tell(INTERVAL_MS);
    for _ in 0..3 {
        telling.packets(2, 1);
        telling.now_ms += INTERVAL_MS;
        telling.bench.now_ns = telling.now_ms * 1_000_000;
        telling.bench.worker.turn(telling.bench.now_ns);
        assert_eq!(telling.bench.engine.poll(telling.now_ms), []);
    }
    assert_eq!(telling.tell(INTERVAL_MS), [(2, 1, 3)]);
}

#[test]
fn nothing_is_told_where_nobody_wants_it() {
    let mut telling = Telling::of(1, 1);
    telling.bench.engine.tell_interim(Duration::ZERO);
    telling.packets(1, 1);
    assert_eq!(telling.tell(2 * INTERVAL_MS), []);
}

#[test]
fn places_without_a_session_are_passed_over() {
    let mut telling = Telling::of(5, 1);
    for session in [1, 3, 5] {
        telling.bench.engine.handle(Command::Delete { session: Seid(session) }).unwrap();
    }
    telling.bench.settle();
    telling.packets(2, 1);
    telling.packets(4, 1);
    let mut told = telling.tell(INTERVAL_MS);
    told.sort_unstable();
    assert_eq!(told, [(2, 1, 1), (4, 1, 1)]);
}
