//! Requests of ours that wait for an answer: sent again every T1, given up after N1 tries.

use crate::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Requests under way, by key (a sequence number, or a peer and one).
#[derive(Debug)]
pub struct Requests<K, P> {
    interval: Duration,
    tries: u32,
    limit: usize,
    pending: BTreeMap<K, Pending<P>>,
    /// The same by when they are due: what is next must not cost a look at all of them.
    due: BTreeSet<(Time, K)>,
}

#[derive(Debug)]
struct Pending<P> {
    payload: P,
    due: Time,
    tries_left: u32,
}

/// As many requests are under way as the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A request whose answer is late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overdue<K, P> {
    /// Send it again.
    Resend(P),
    /// It was sent often enough; it is no longer under way.
    GaveUp(K, P),
}

impl<K: Ord + Clone, P: Clone> Requests<K, P> {
    /// Each request is sent `tries` times, `interval` apart; at most `limit` are under way at once.
    pub fn new(interval: Duration, tries: u32, limit: usize) -> Self {
        Self { interval, tries, limit, pending: BTreeMap::new(), due: BTreeSet::new() }
    }

    /// Notes a request sent for the first time.
    ///
    /// # Errors
    /// [`Full`] where `limit` are under way.
    pub fn start(&mut self, key: K, payload: P, now: Time) -> Result<(), Full> {
        if self.pending.len() >= self.limit {
            return Err(Full);
        }
        self.finish(&key);
        let (due, tries_left) = (now + self.interval, self.tries.saturating_sub(1));
        self.due.insert((due, key.clone()));
        self.pending.insert(key, Pending { payload, due, tries_left });
        Ok(())
    }

    /// The request, if it is under way.
    pub fn get(&self, key: &K) -> Option<&P> {
        self.pending.get(key).map(|pending| &pending.payload)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut P> {
        self.pending.get_mut(key).map(|pending| &mut pending.payload)
    }

    /// The answer came: the request, if it was under way.
    pub fn finish(&mut self, key: &K) -> Option<P> {
        let pending = self.pending.remove(key)?;
        self.due.remove(&(pending.due, key.clone()));
        Some(pending.payload)
    }

    /// What is due by `now`, in the order it fell due.
    pub fn overdue(&mut self, now: Time) -> Vec<Overdue<K, P>> {
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        let keys: Vec<K> = due.map(|(_, key)| key.clone()).collect();
        keys.into_iter().filter_map(|key| self.try_again(key, now)).collect()
    }

    fn try_again(&mut self, key: K, now: Time) -> Option<Overdue<K, P>> {
        let pending = self.pending.get_mut(&key)?;
        if pending.tries_left == 0 {
            return self.finish(&key).map(|payload| Overdue::GaveUp(key, payload));
        }
        pending.tries_left -= 1;
        self.due.remove(&(pending.due, key.clone()));
        pending.due = now + self.interval;
        self.due.insert((pending.due, key));
        Some(Overdue::Resend(pending.payload.clone()))
    }

    /// When [`Requests::overdue`] next has something to say.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Forgets every request whose key `drop` picks.
    pub fn cancel(&mut self, drop: impl Fn(&K) -> bool) {
        self.pending.retain(|key, _| !drop(key));
        self.due.retain(|(_, key)| !drop(key));
    }

    /// All that are under way, in the order of their keys.
    pub fn payloads(&self) -> impl Iterator<Item = &P> {
        self.pending.values().map(|pending| &pending.payload)
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether none is under way.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Requests<u32, &'static str> {
        Requests::new(Duration::from_secs(3), 3, 2)
    }

    #[test]
    fn an_answered_request_is_never_sent_again() {
        let mut requests = requests();
        requests.start(1, "heartbeat", Time::ZERO).unwrap();
        assert_eq!(requests.get(&1), Some(&"heartbeat"));
        assert_eq!(requests.finish(&1), Some("heartbeat"));
        assert_eq!(requests.overdue(Time::from_millis(60_000)), []);
        assert_eq!(requests.finish(&1), None);
    }

    #[test]
    fn a_silent_peer_gets_n1_tries_t1_apart() {
        let mut requests = requests();
        requests.start(1, "setup", Time::ZERO).unwrap();
        assert_eq!(requests.overdue(Time::from_millis(2_999)), []);
        assert_eq!(requests.overdue(Time::from_millis(3_000)), [Overdue::Resend("setup")]);
        assert_eq!(requests.overdue(Time::from_millis(6_000)), [Overdue::Resend("setup")]);
        assert_eq!(requests.overdue(Time::from_millis(9_000)), [Overdue::GaveUp(1, "setup")]);
        assert!(requests.is_empty());
    }

    #[test]
    fn the_limit_holds() {
        let mut requests = requests();
        requests.start(1, "a", Time::ZERO).unwrap();
        requests.start(2, "b", Time::ZERO).unwrap();
        assert_eq!(requests.start(3, "c", Time::ZERO), Err(Full));
    }

    #[test]
    fn what_falls_due_first_comes_first_and_nothing_is_left_behind() {
        let mut requests = Requests::new(Duration::from_secs(3), 2, 10);
        requests.start(9, "early", Time::ZERO).unwrap();
        requests.start(1, "late", Time::from_millis(10)).unwrap();
        requests.start(9, "anew", Time::from_millis(20)).unwrap();
        assert_eq!(requests.next_due(), Some(Time::from_millis(3_010)));
        let overdue = requests.overdue(Time::from_millis(4_000));
        assert_eq!(overdue, [Overdue::Resend("late"), Overdue::Resend("anew")]);
        assert_eq!(
            (requests.finish(&1), requests.next_due()),
            (Some("late"), Some(Time::from_millis(7_000)))
        );
        assert_eq!(requests.overdue(Time::from_millis(7_000)), [Overdue::GaveUp(9, "anew")]);
        assert_eq!((requests.next_due(), requests.due.len()), (None, 0));
    }

    #[test]
    fn cancelled_requests_are_forgotten() {
        let mut requests = requests();
        requests.start(1, "a", Time::ZERO).unwrap();
        requests.start(2, "b", Time::from_millis(1)).unwrap();
        requests.cancel(|key| *key == 1);
        assert_eq!((requests.len(), requests.next_due()), (1, Some(Time::from_millis(3_001))));
    }
}
