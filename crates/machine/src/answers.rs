//! Answers given, kept for requests that come again: an answer is repeated, never worked out twice.

use crate::Time;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// Answers by request key (a peer and a sequence number).
#[derive(Debug)]
pub struct AnswerCache<K> {
    lifetime: Duration,
    limit: usize,
    entries: HashMap<K, Entry>,
    order: VecDeque<(K, u64)>,
    serial: u64,
}

#[derive(Debug)]
struct Entry {
    answer: Option<Vec<u8>>,
    until: Time,
    serial: u64,
}

/// What is known of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// It comes for the first time and is now in progress.
    New,
    /// It is being worked on; its answer will come.
    InProgress,
    /// It was answered with these bytes.
    Answered(&'a [u8]),
}

impl<K: Clone + Eq + Hash> AnswerCache<K> {
    /// Remembers each request for `lifetime`, and at most `limit` of them: the oldest goes first.
    pub fn new(lifetime: Duration, limit: usize) -> Self {
        Self { lifetime, limit, entries: HashMap::new(), order: VecDeque::new(), serial: 0 }
    }

    /// A request has come.
    pub fn begin(&mut self, key: K, now: Time) -> Seen<'_> {
        self.expire(now);
        if !self.entries.contains_key(&key) {
            self.note(key, now);
            return Seen::New;
        }
        match self.entries.get(&key).and_then(|entry| entry.answer.as_deref()) {
            Some(answer) => Seen::Answered(answer),
            None => Seen::InProgress,
        }
    }

    fn note(&mut self, key: K, now: Time) {
        if self.entries.len() >= self.limit {
            self.forget_oldest();
        }
        self.serial += 1;
        self.order.push_back((key.clone(), self.serial));
        self.entries.insert(key, Entry { answer: None, until: now + self.lifetime, serial: self.serial });
    }

    /// The request is answered with `bytes`.
    pub fn answer(&mut self, key: &K, bytes: Vec<u8>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.answer = Some(bytes);
        }
    }

    /// The request will not be answered: should it come again, it is new.
    pub fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Forgets every request whose key `drop` picks (a peer that restarted counts anew).
    pub fn forget_all(&mut self, drop: impl Fn(&K) -> bool) {
        self.entries.retain(|key, _| !drop(key));
    }

    fn expire(&mut self, now: Time) {
        while let Some((key, serial)) = self.order.front() {
            let current = self.entries.get(key).filter(|entry| entry.serial == *serial);
            if current.is_some_and(|entry| entry.until > now) {
                return;
            }
            self.forget_oldest();
        }
    }

    /// Also drops order entries whose request was forgotten or noted anew.
    fn forget_oldest(&mut self) {
        if let Some((key, serial)) = self.order.pop_front()
            && self.entries.get(&key).is_some_and(|entry| entry.serial == serial)
        {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(limit: usize) -> AnswerCache<u32> {
        AnswerCache::new(Duration::from_secs(10), limit)
    }

    #[test]
    fn a_request_is_new_then_in_progress_then_answered() {
        let mut cache = cache(8);
        assert_eq!(cache.begin(1, Time::ZERO), Seen::New);
        assert_eq!(cache.begin(1, Time::ZERO), Seen::InProgress);
        cache.answer(&1, vec![7]);
        assert_eq!(cache.begin(1, Time::from_millis(9_999)), Seen::Answered(&[7]));
    }

    #[test]
    fn answers_are_forgotten_after_their_lifetime() {
        let mut cache = cache(8);
        cache.begin(1, Time::ZERO);
        cache.answer(&1, vec![7]);
        assert_eq!(cache.begin(1, Time::from_millis(10_000)), Seen::New);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut cache = cache(2);
        cache.begin(1, Time::ZERO);
        cache.begin(2, Time::ZERO);
        cache.begin(3, Time::ZERO);
        assert_eq!(cache.begin(2, Time::ZERO), Seen::InProgress);
        assert_eq!(cache.begin(1, Time::ZERO), Seen::New);
        assert!(cache.entries.len() <= 2);
    }

    #[test]
    fn a_forgotten_request_is_new_and_lives_its_whole_life() {
        let mut cache = cache(8);
        cache.begin(1, Time::ZERO);
        cache.forget(&1);
        assert_eq!(cache.begin(1, Time::from_millis(5_000)), Seen::New);
        assert_eq!(cache.begin(1, Time::from_millis(12_000)), Seen::InProgress);
    }
}
