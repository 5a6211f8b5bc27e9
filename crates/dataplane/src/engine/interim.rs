//! What sessions have used is told by and by, whether or not anybody asks: a data plane that dies takes its counts with it. All
//! sessions of a worker are gone through in turn, and what has counted since it was told is told.
//!
//! The pace is set here and not by workers: so they read no clock for it, and where the link is behind, nobody asks. A worker has one
//! such order at a time.

use super::Engine;
use crate::state::Interim;
use crate::worker::Order;
use dplink::{Notice, UsageCounts};
use rules::Seid;
use std::time::Duration;

/// Places of sessions that are worth an order.
const WORTH: u32 = 64;
/// Most of one order: packets wait meanwhile.
const MOST: u32 = 128;
/// URRs that one order tells of. Most sessions have one or two, and not all have counted.
const ROOM: usize = 256;
/// Orders in an interval, at least: by each it is learned how many sessions there are by then.
const ORDERS: u64 = 8;

/// All workers, each by itself.
#[derive(Default)]
pub(super) struct Interims {
    /// In microseconds; 0: nothing is told that was not asked for.
    interval_us: u64,
    workers: Vec<Turn>,
}

/// One worker.
struct Turn {
    pace: Pace,
    /// How far it has come; `None` while the worker has it.
    interim: Option<Box<Interim>>,
}

/// How many places of a worker's sessions are due, so that each is looked at once in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// In microseconds, as are all times here.
    interval: u64,
    /// What was due until then has been looked at.
    since: u64,
    /// Of the last order.
    ordered: u64,
    /// Places it was for.
    looks: u32,
    /// All there are, as the worker told last.
    places: u32,
}

impl Pace {
    const fn new(interval: u64) -> Self {
        Self { interval, since: 0, ordered: 0, looks: 0, places: 0 }
    }

    /// All are looked at within so long. What is left of an interval is for places that are not known yet, and for those that wait
    /// until an order is worth it.
    fn round(self) -> u64 {
        (self.interval - 2 * (self.interval / ORDERS)).max(1)
    }

    /// How many to look at now, which are on order then; `None` where that can wait.
    fn order(&mut self, now: u64) -> Option<u32> {
        let owed = u128::from(now.saturating_sub(self.since)) * u128::from(self.places);
        let owed = u32::try_from(owed / u128::from(self.round())).unwrap_or(u32::MAX);
        if owed < WORTH && now.saturating_sub(self.ordered) < self.interval / ORDERS {
            return None;
        }
        (self.ordered, self.looks) = (now, owed.min(self.places).min(MOST));
        Some(self.looks)
    }

    /// All of those but so many have been looked at, and there are so many places now. Who is a whole round behind is no further
    /// behind than that.
    fn looked(&mut self, (left, places): (u32, u32), now: u64) {
        let looked = u64::from(self.looks.saturating_sub(left));
        let paid = (looked * self.round()).checked_div(self.places.into());
        let since = paid.map_or(now, |paid| self.since + paid);
        self.since = since.max(now.saturating_sub(self.round()));
        self.places = places;
    }
}

impl Engine {
    /// Has workers tell what sessions have used, of each URR that has counted, within so long; of none, if this is zero.
    pub fn tell_interim(&mut self, interval: Duration) {
        let interval_us = interval.as_micros() as u64;
        let turn = || Turn { pace: Pace::new(interval_us), interim: Some(Box::new(Interim::new(ROOM))) };
        self.interims = Interims { interval_us, workers: self.hands.iter().map(|_| turn()).collect() };
    }

    /// Asks workers for what is due of that; [`Engine::poll`] has the answers. To be called often, but only while whoever is told
    /// keeps up: what is not asked for now is told later.
    pub fn ask_interim(&mut self, now_ms: u64) {
        if self.interims.interval_us == 0 || self.ending.has_begun() {
            return;
        }
        for (turn, hand) in self.interims.workers.iter_mut().zip(&mut self.hands) {
            let is_here = turn.interim.is_some();
            let Some(looks) = is_here.then(|| turn.pace.order(now_ms * 1_000)).flatten() else { continue };
            if let Some(mut interim) = turn.interim.take() {
                interim.looks = looks;
                hand.order(Order::Interim(interim));
            }
        }
    }

    /// A worker has told of one URR, by how much it has counted.
    pub(super) fn told_unasked(&self, session: Seid, counts: UsageCounts) -> Option<Notice> {
        (self.interims.interval_us > 0).then(|| Notice::InterimUsage { counts: vec![(session, counts)] })
    }

    /// A worker has told.
    pub(super) fn interim_told(&mut self, worker: usize, mut interim: Box<Interim>) -> Option<Notice> {
        let turn = self.interims.workers.get_mut(worker)?;
        turn.pace.looked((interim.looks, interim.places), self.now_ms * 1_000);
        // The list goes round with the rest, and keeps its room.
        let counts: Vec<_> = interim.counts.drain(..).collect();
        turn.interim = Some(interim);
        (!counts.is_empty()).then_some(Notice::InterimUsage { counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;
    const MS: u64 = 1_000;

    /// Places looked at in one go, and when, of so many that are there from the start, by a worker that is asked every millisecond
    /// and answers at once.
    fn looks(places: u32, seconds: u64) -> Vec<(u64, u32)> {
        let mut pace = Pace::new(10 * S);
        let mut all = Vec::new();
        for now in (0..seconds * S).step_by(MS as usize) {
            if let Some(looks) = pace.order(now) {
                all.push((now, looks));
                pace.looked((0, places), now);
            }
        }
        all
    }

    /// The longest that any place waited for its next look, from the start on.
    fn longest(places: u32, seconds: u64) -> u64 {
        let (mut seen, mut next, mut longest) = (vec![0; places as usize], 0, 0);
        for (now, looks) in self::looks(places, seconds) {
            for _ in 0..looks {
                longest = longest.max(now - seen[next]);
                seen[next] = now;
                next = (next + 1) % places as usize;
            }
        }
        seen.into_iter().map(|last| seconds * S - last).chain([longest]).max().unwrap_or(0)
    }

    #[test]
    fn each_place_is_looked_at_within_the_interval_and_hardly_more_often() {
        for places in [1, 2, 7, 63, 64, 1_000, 100_000, 1_000_000] {
            let longest = longest(places, 60);
            assert!(longest <= 10 * S, "one of {places} waited for {} ms", longest / MS);
            let all: u64 = looks(places, 60).iter().map(|(_, looks)| u64::from(*looks)).sum();
            assert!(all <= 8 * u64::from(places), "{all} looks at {places} in a minute");
        }
    }

    #[test]
    fn an_order_is_worth_it_and_no_long_one() {
        assert!(looks(1_000_000, 20).iter().all(|(_, looks)| *looks <= MOST));
        let few = looks(1_000, 20).len();
        assert!(few <= 40, "{few} orders in 20 s for 1000 places");
    }

    /// The link was behind for a minute: what was not looked at is, in one round, by orders no longer than others.
    #[test]
    fn what_could_not_be_asked_for_is_asked_for_once() {
        let mut pace = Pace::new(10 * S);
        pace.looked((0, 10_000), 0);
        let mut all = 0;
        for now in (60 * S..62 * S).step_by(MS as usize) {
            let Some(looks) = pace.order(now) else { continue };
            assert!(looks <= MOST);
            all += looks;
            pace.looked((0, 10_000), now);
        }
        // A round, and what is due of the next.
        assert!((10_000..13_000).contains(&all), "{all} looks");
    }

    #[test]
    fn what_had_no_room_in_an_answer_is_still_due() {
        let mut pace = Pace::new(10 * S);
        pace.looked((0, 1_000), 0);
        assert_eq!(pace.order(S), Some(MOST));
        pace.looked((100, 1_000), S);
        // 133 were due.
        assert_eq!(pace.order(S + MS), Some(105));
    }
}
