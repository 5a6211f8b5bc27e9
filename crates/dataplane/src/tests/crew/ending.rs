//! The end of the data plane.

use super::{S, Team};
use crate::fixture::{N3, N6, rules};
use crate::tests::to_user;
use dplink::{Command, Destination, Notice, UsageCause, Whose};
use proptest::prelude::*;
use rules::{Methods, Rules, Seid, Urr, UrrId};
use std::collections::BTreeMap;

const WORKERS: usize = 3;
const SESSIONS: u64 = 12;

/// As [`rules`], where all that passes is counted.
fn counted(session: u64) -> Rules {
    let mut rules = rules(session);
    let methods = Methods { volume: true, ..Methods::default() };
    rules.urrs = vec![Urr { id: UrrId(1), methods, ..Urr::default() }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    rules
}

/// Packets that each session is told to have had by the time all have told, as turns come about; and those that were sent.
fn end(team: &mut Team, turns: &[prop::sample::Index]) -> (BTreeMap<Seid, u64>, usize) {
    let (mut told, mut turns) = (BTreeMap::new(), turns.iter().cycle());
    team.engine.end();
    for round in 0..1_000 {
        if team.engine.untold() == Some(0) {
            break;
        }
        // Each has its turn, one of them more often.
        for worker in [turns.next().map_or(0, |turn| turn.index(WORKERS)), round % WORKERS] {
            team.workers[worker].turn(team.now_ns);
        }
        team.engine.ask_last(SESSIONS as usize);
        for notice in team.engine.poll(0) {
            let Notice::Usage { session, cause: UsageCause::End, counts } = notice else { continue };
            told.insert(session, counts.iter().map(|counts| counts.downlink_packets).sum());
        }
    }
    assert_eq!(team.engine.untold(), Some(0));
    (told, team.sent(N3).iter().map(Vec::len).sum())
}

proptest! {
    /// Whatever was on its way from worker to worker then is counted, and what came later waits at its port for ever.
    #[test]
    fn all_that_was_forwarded_is_told_before_the_data_plane_ends(
        // More than a worker takes of the others in a few turns.
        arrivals in prop::collection::vec(0..WORKERS, 0..6_000),
        users in 1..=SESSIONS as u8,
        before in prop::collection::vec(prop_oneof![10 => 1..WORKERS, 1 => Just(0)], 0..30),
        moves in prop::option::of((1..=SESSIONS, 0..WORKERS as u8)),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 1..50),
    ) {
        let mut team = Team::of(WORKERS, 0);
        (1..=SESSIONS).for_each(|session| team.put(session, 1, counted(session)));
        team.settle();
        team.now_ns += S;
        for (worker, user) in arrivals.into_iter().zip((1..=users).cycle()) {
            team.receive(worker, N6, &to_user(user));
        }
        if let Some((session, worker)) = moves {
            let to = Some(Destination { worker, is_dry: false });
            let whose = Whose::Session(Seid(session));
            team.engine.handle(Command::Locate { token: 1, whose, to }).unwrap();
            team.engine.poll(0);
        }
        for worker in before {
            team.workers[worker].turn(team.now_ns);
        }
        let (told, sent) = end(&mut team, &turns);
        prop_assert_eq!(told.len() as u64, SESSIONS);
        prop_assert_eq!(told.values().sum::<u64>(), sent as u64);
        team.receive(0, N6, &to_user(1));
        team.settle();
        prop_assert_eq!(team.sent(N3).concat().len(), 0);
    }
}
