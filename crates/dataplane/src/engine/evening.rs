//! How sessions are spread over workers, for who asks, and which would have to move for workers to be more even. They move as
//! all do (`moving`).

use super::Engine;
use super::moving::{ONE_WORKER, WANTED_MAX, Wish};
use super::placement::Owner;
use dplink::{Balancing, Measure, MoveCause, Step};
use rules::Seid;

/// Workers whose shares of time differ by less are even: more than what one second is unlike the next. In millionths.
const EVEN: u64 = 50_000;

/// A worker that may own sessions.
#[derive(Clone, Copy, Debug)]
struct Weighed {
    owner: Owner,
    sessions: u64,
    /// Of how many there is room.
    room: u64,
    /// What is to be even: sessions, or millionths of its time.
    weight: u64,
    /// What each of its sessions is reckoned to have of it.
    each: u64,
}

/// From where to where sessions would move, one by one, from who has most to who has least, as long as that makes them more
/// even.
fn ways(workers: &mut [Weighed], slack: u64, most: usize) -> Vec<(Owner, Owner)> {
    let mut ways = Vec::new();
    while ways.len() < most {
        let has_some = workers.iter().enumerate().filter(|(_, it)| it.sessions > 0);
        let heaviest = has_some.max_by_key(|(_, it)| it.weight).map(|(at, _)| at);
        let has_room = workers.iter().enumerate().filter(|(_, it)| it.sessions < it.room);
        let lightest = has_room.min_by_key(|(_, it)| it.weight).map(|(at, _)| at);
        let (Some(from), Some(to)) = (heaviest, lightest) else { break };
        // None where they are one.
        let Ok([from, to]) = workers.get_disjoint_mut([from, to]) else { break };
        let (each, difference) = (from.each, from.weight.saturating_sub(to.weight));
        // What moves is missing at one end and is more at the other.
        if difference <= slack || 2 * each > difference {
            break;
        }
        (from.weight, from.sessions) = (from.weight - each, from.sessions - 1);
        (to.weight, to.sessions) = (to.weight + each, to.sessions + 1);
        ways.push((from.owner, to.owner));
    }
    ways
}

impl Engine {
    /// How sessions and packets are spread over workers now.
    pub(super) fn balancing(&self) -> Balancing {
        let mut balancing = self.placement.loads.overview();
        self.placement.overview(&mut balancing.workers);
        if let [only] = &mut balancing.workers[..] {
            // Nobody places sessions.
            only.sessions = self.known.len() as u64;
        }
        balancing.placed = self.placement.placed;
        balancing.waiting = self.moves.sessions() as u32;
        self.moves.history.overview(&mut balancing, self.now_ms);
        balancing
    }

    /// Has sessions move so that workers are more even, or only says which.
    ///
    /// # Errors
    /// A sentence for people.
    pub(super) fn even(&mut self, by: Measure, is_dry: bool) -> Result<Vec<Step>, String> {
        let steps = self.steps(by)?;
        for Step { session, to, .. } in steps.iter().filter(|_| !is_dry) {
            self.want(Wish::own(MoveCause::Evening), *session, *to)?;
        }
        Ok(steps)
    }

    fn steps(&self, by: Measure) -> Result<Vec<Step>, String> {
        if self.hands.len() == 1 {
            return Err(ONE_WORKER.to_owned());
        }
        if self.moves.sessions() > 0 {
            return Err("sessions are on their way already; try again".to_owned());
        }
        let slack = if by == Measure::Load { EVEN } else { 1 };
        let ways = ways(&mut self.weighed(by), slack, WANTED_MAX);
        let mut sessions = self.movable(&ways);
        let step = |(from, to): &(Owner, Owner)| {
            let session = sessions.get_mut(usize::from(*from)).and_then(Vec::pop)?;
            Some(Step { session, from: *from, to: *to })
        };
        Ok(ways.iter().filter_map(step).collect())
    }

    /// Workers that may own sessions.
    fn weighed(&self, by: Measure) -> Vec<Weighed> {
        let workers = self.balancing().workers;
        let owners = (0..).zip(workers).filter(|(_, worker)| worker.room > 0);
        let one = |(owner, worker): (Owner, dplink::WorkerLoad)| {
            let (sessions, room) = (worker.sessions, worker.room);
            let weight = match by {
                Measure::Load => self.placement.loads.share(owner.into()),
                Measure::Sessions => sessions,
            };
            let each = weight.checked_div(sessions).unwrap_or(0).max(1);
            Weighed { owner, sessions, room, weight, each }
        };
        owners.map(one).collect()
    }

    /// Of each worker as many sessions as are to leave it, if it has so many that may.
    fn movable(&self, ways: &[(Owner, Owner)]) -> Vec<Vec<Seid>> {
        let leave = |owner: usize| ways.iter().filter(|(from, _)| usize::from(*from) == owner).count();
        let wanted: Vec<usize> = (0..self.hands.len()).map(leave).collect();
        let mut sessions: Vec<Vec<Seid>> = vec![Vec::new(); self.hands.len()];
        let mut missing = ways.len();
        for (session, known) in self.known.iter() {
            if missing == 0 {
                break;
            }
            let owner = usize::from(known.owner);
            let (Some(wanted), Some(found)) = (wanted.get(owner), sessions.get_mut(owner)) else { continue };
            if found.len() < *wanted && self.may_wander(session) && !self.placement.shares(session) {
                found.push(session);
                missing -= 1;
            }
        }
        sessions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn workers(of: &[(u64, u64)]) -> Vec<Weighed> {
        let one = |(owner, (sessions, weight)): (Owner, &(u64, u64))| Weighed {
            owner,
            sessions: *sessions,
            room: 100,
            weight: *weight,
            each: weight.checked_div(*sessions).unwrap_or(0).max(1),
        };
        (0..).zip(of).map(one).collect()
    }

    #[test]
    fn sessions_go_from_who_has_most_to_who_has_least() {
        assert_eq!(ways(&mut workers(&[(5, 5), (1, 1), (3, 3)]), 1, 64), [(0, 1), (0, 1)]);
        assert_eq!(ways(&mut workers(&[(3, 3), (2, 2)]), 1, 64), []);
        // Eight that take a tenth of a worker's time each: four are to be at each.
        assert_eq!(ways(&mut workers(&[(8, 800_000), (0, 0)]), EVEN, 64), [(0, 1); 4]);
        // The only one of a worker would be as heavy elsewhere.
        assert_eq!(ways(&mut workers(&[(1, 900_000), (0, 0)]), EVEN, 64), []);
        // A worker is busy, but not with sessions.
        assert_eq!(ways(&mut workers(&[(0, 900_000), (2, 10)]), EVEN, 64), []);
        assert_eq!(ways(&mut workers(&[(200, 200), (100, 100)]), 1, 64), [], "there is no room");
        assert_eq!(ways(&mut workers(&[(90, 90), (0, 0)]), 1, 7).len(), 7);
    }

    proptest! {
        /// Whatever they have, nobody has more than the heaviest had, nor less than the lightest.
        #[test]
        fn workers_are_never_less_even_than_before(
            of in proptest::collection::vec((0..90_u64, 0..1_000_000_u64), 1..8),
        ) {
            let mut after = workers(&of);
            let heaviest = of.iter().filter(|it| it.0 > 0).map(|it| it.1).max().unwrap_or(0);
            let lightest = of.iter().map(|it| it.1).min().unwrap_or(0);
            let ways = ways(&mut after, EVEN, 64);
            prop_assert!(ways.len() <= 64);
            prop_assert_eq!(after.iter().map(|it| it.sessions).sum::<u64>(), of.iter().map(|it| it.0).sum::<u64>());
            for (worker, before) in after.iter().zip(&of) {
                let changed = worker.weight != before.1;
                prop_assert!(!changed || (lightest..=heaviest).contains(&worker.weight), "{:?} {:?}", of, after);
            }
        }
    }
}
