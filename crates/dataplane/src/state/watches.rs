//! Accounts whose packets pass without a look for a time, and are to be looked at when it is over.

use super::SessionIndex;
use super::State;
use std::collections::VecDeque;

/// How long packets pass, the longest first. One look in a second at most costs little; accounts of longer times take one in
/// that time.
const PERIODS_NS: [u64; 3] = [64_000_000_000, 8_000_000_000, 1_000_000_000];

/// Most accounts of a period: of more, all packets are looked at. Room that is never used takes no memory.
const WATCHED_MAX: usize = 1 << 20;

/// Room for so many accounts of each session, as far as that goes.
const OF_SESSION: usize = 4;

/// Most that are over in one turn, so that packets do not wait for long. A worker has so many turns in a second that all it may have
/// are over within it.
const AT_ONCE: usize = 256;

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Watched {
    until_ns: u64,
    at: (SessionIndex, u16),
}

/// All of them. What has moved or gone meanwhile stays until its time is over.
#[derive(Debug)]
pub(crate) struct Watches {
    /// By [`PERIODS_NS`], those first that are over first.
    queues: [VecDeque<Watched>; PERIODS_NS.len()],
    /// None is over before.
    next_ns: u64,
}

/// The place of the longest period that is no longer than this.
pub(super) fn period(longest_ns: u64) -> usize {
    let found = PERIODS_NS.iter().position(|period| *period <= longest_ns);
    found.unwrap_or(PERIODS_NS.len() - 1)
}

impl Watches {
    /// With room for those of so many sessions, in each period.
    pub(super) fn new(sessions: usize) -> Self {
        let room = sessions.saturating_mul(OF_SESSION).min(WATCHED_MAX);
        Self { queues: PERIODS_NS.map(|_| VecDeque::with_capacity(room)), next_ns: u64::MAX }
    }

    /// Until when the account's packets may pass; `None`: there is no room.
    pub(super) fn begin(&mut self, at: (SessionIndex, u16), period: usize, now_ns: u64) -> Option<u64> {
        let (queue, period_ns) = (self.queues.get_mut(period)?, PERIODS_NS.get(period)?);
        if queue.len() == queue.capacity() {
            return None;
        }
        let until_ns = now_ns + period_ns;
        queue.push_back(Watched { until_ns, at });
        self.next_ns = self.next_ns.min(until_ns);
        Some(until_ns)
    }

    #[cfg(test)]
    pub(super) fn over(&mut self, now_ns: u64) -> Option<u64> {
        self.pop(now_ns).map(|watched| watched.until_ns)
    }

    /// One that is over.
    fn pop(&mut self, now_ns: u64) -> Option<Watched> {
        let is_over = |watched: &mut Watched| watched.until_ns <= now_ns;
        let over = self.queues.iter_mut().find_map(|queue| queue.pop_front_if(is_over));
        if over.is_none() {
            let fronts = self.queues.iter().filter_map(|queue| queue.front());
            self.next_ns = fronts.map(|watched| watched.until_ns).min().unwrap_or(u64::MAX);
        }
        over
    }
}

impl State {
    /// The next packet of accounts whose time is over is looked at. To be called before packets are counted.
    #[inline]
    pub(crate) fn end_watches(&mut self) {
        if self.now_ns >= self.watches.next_ns {
            self.end_some_watches();
        }
    }

    #[cold]
    fn end_some_watches(&mut self) {
        let now_ns = self.now_ns;
        for _ in 0..AT_ONCE {
            let Some(Watched { until_ns, at }) = self.watches.pop(now_ns) else { return };
            self.sessions.with_ledger(at, |ledger, count| ledger.look_again(count, Some(until_ns), now_ns));
        }
    }

    /// Packets of a session passed without a look until now, and another worker was to see to the end of that.
    pub(super) fn look_again_at(&mut self, index: SessionIndex) {
        let now_ns = self.now_ns;
        let accounts = self.sessions.get(index).map_or(0, |session| session.accounts.len()) as u16;
        for place in 0..accounts {
            self.sessions.with_ledger((index, place), |ledger, count| ledger.look_again(count, None, now_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn none_is_watched_for_longer_than_it_may_be() {
        let periods = [1, 2, 8, 9, 63, 64, 100_000].map(|s| PERIODS_NS[period(s * S)] / S);
        assert_eq!(periods, [1, 1, 8, 8, 8, 64, 64]);
    }

    #[test]
    fn those_are_over_whose_time_is_and_no_more_are_taken_than_there_is_room_for() {
        let mut watches = Watches::new(2);
        let room = watches.queues[2].capacity() as u16;
        let until: Vec<_> =
            (0..room + 1).map(|at| watches.begin((SessionIndex(0), at), 2, at.into())).collect();
        assert_eq!((until[0], until[usize::from(room)]), (Some(S), None));
        assert_eq!(watches.begin((SessionIndex(1), 0), 1, 0), Some(8 * S));
        assert!(watches.pop(S - 1).is_none() && watches.next_ns == S);
        assert_eq!(watches.pop(S).map(|watched| watched.at), Some((SessionIndex(0), 0)));
        (1..room).for_each(|_| assert!(watches.pop(2 * S).is_some()));
        assert!(watches.pop(2 * S).is_none() && watches.next_ns == 8 * S);
        assert_eq!(watches.pop(8 * S).map(|watched| watched.at), Some((SessionIndex(1), 0)));
        assert!(watches.pop(9 * S).is_none() && watches.next_ns == u64::MAX);
    }
}
