//! Answers given, kept for requests that come again: an answer is repeated, never worked out twice.

use crate::Time;
use crate::line::Line;
use crate::numbers::Numbers;
use std::hash::Hash;
use std::time::Duration;

/// Room that is not given back.
const LEAST: usize = 1_024;

/// What may be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// For how long.
    pub lifetime: Duration,
    /// How many requests.
    pub requests: usize,
    /// Octets of all answers.
    pub octets: usize,
}

/// Answers by request key (a peer and a sequence number), the oldest first.
#[derive(Debug)]
pub struct AnswerCache<K> {
    limits: AnswerLimits,
    /// The number of a request: its place, if nothing before it had been forgotten.
    numbers: Numbers,
    requests: Line<Request<K>>,
    /// That of the oldest. They are counted around.
    first: u32,
    /// That of the one behind the last that was answered: mostly they are answered in turn.
    next_answered: u32,
    octets: usize,
    /// Requests in progress.
    in_progress: usize,
}

#[derive(Debug)]
struct Request<K> {
    key: K,
    /// `None` once it is forgotten: something else may have its key by now.
    until: Option<Time>,
    answer: Option<Box<[u8]>>,
}

/// What is known of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// It comes for the first time.
    New,
    /// It is being worked on; its answer will come.
    InProgress,
    /// It was answered with these bytes.
    Answered(&'a [u8]),
}

impl<K: Clone + Eq + Hash> AnswerCache<K> {
    /// Remembers requests within limits, 2^31 at most: of those that are answered, the oldest goes first. Those in progress stay, so
    /// that nothing is done twice because others ask much; while they are half of all, no more are remembered.
    pub fn new(limits: AnswerLimits) -> Self {
        Self {
            limits: AnswerLimits { requests: limits.requests.min(1 << 31), ..limits },
            numbers: Numbers::default(),
            requests: Line::default(),
            first: 0,
            next_answered: 0,
            octets: 0,
            in_progress: 0,
        }
    }

    /// A request has come, and is in progress from now on if it is new.
    pub fn begin(&mut self, key: K, now: Time) -> Seen<'_> {
        self.expire(now);
        if let Some(place) = self.place(&key) {
            return Self::of(self.requests.get(place));
        }
        if self.in_progress > self.limits.requests / 2 {
            return Seen::New;
        }
        if self.requests.len() >= self.limits.requests {
            self.make_room();
        }
        self.numbers.insert(&key, self.next());
        self.in_progress += 1;
        self.requests.push_back(Request { key, until: Some(now + self.limits.lifetime), answer: None });
        Seen::New
    }

    /// What is known of a request. It is not remembered for that.
    pub fn seen(&self, key: &K) -> Seen<'_> {
        Self::of(self.place(key).and_then(|place| self.requests.get(place)))
    }

    fn of(request: Option<&Request<K>>) -> Seen<'_> {
        match request {
            Some(Request { answer: Some(answer), .. }) => Seen::Answered(answer),
            Some(_) => Seen::InProgress,
            None => Seen::New,
        }
    }

    /// The number of a request that is remembered.
    fn number(&self, key: &K) -> Option<u32> {
        self.numbers.get(key, |number| self.is_of(number, key))
    }

    fn is_of(&self, number: u32, key: &K) -> bool {
        let is_it = |request: &Request<K>| request.until.is_some() && request.key == *key;
        self.requests.get(self.place_of(number)).is_some_and(is_it)
    }

    fn place(&self, key: &K) -> Option<usize> {
        self.number(key).map(|number| self.place_of(number))
    }

    const fn place_of(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }

    /// The number of the next one.
    const fn next(&self) -> u32 {
        self.first.wrapping_add(self.requests.len() as u32)
    }

    /// The request is answered with `bytes`.
    pub fn answer(&mut self, key: &K, bytes: Vec<u8>) {
        let in_turn = Some(self.next_answered).filter(|number| self.is_of(*number, key));
        let Some(number) = in_turn.or_else(|| self.number(key)) else { return };
        self.next_answered = number.wrapping_add(1);
        let place = self.place_of(number);
        let Some(request) = self.requests.get_mut(place) else { return };
        self.octets += bytes.len();
        match request.answer.replace(bytes.into_boxed_slice()) {
            Some(old) => self.octets -= old.len(),
            None => self.in_progress -= 1,
        }
        while self.octets > self.limits.octets {
            self.make_room();
        }
    }

    /// The request will not be answered: should it come again, it is new.
    pub fn forget(&mut self, key: &K) {
        let Some(number) = self.number(key) else { return };
        self.numbers.remove(key, number);
        let place = self.place_of(number);
        let Some(request) = self.requests.get_mut(place) else { return };
        request.until = None;
        match request.answer.take() {
            Some(answer) => self.octets -= answer.len(),
            None => self.in_progress -= 1,
        }
    }

    /// Forgets every request that `drop` picks by its key and its answer, if it has one (a peer that restarted counts anew).
    pub fn forget_all(&mut self, drop: impl Fn(&K, Option<&[u8]>) -> bool) {
        let known = self.requests.iter().filter(|request| request.until.is_some());
        let picked = known.filter(|request| drop(&request.key, request.answer.as_deref()));
        let dropped: Vec<K> = picked.map(|request| request.key.clone()).collect();
        dropped.iter().for_each(|key| self.forget(key));
    }

    /// Forgets what is too old, and gives back the room of a busier time.
    pub fn expire(&mut self, now: Time) {
        while self.requests.front().is_some_and(|oldest| oldest.until.is_none_or(|until| until <= now)) {
            self.forget_oldest();
        }
        self.numbers.shrink_to(self.requests.len().max(LEAST) * 2);
    }

    /// Forgets one. Those in progress go to the end of the line: they are half of all at most, so others are found soon.
    fn make_room(&mut self) {
        while let Some(oldest) = self.requests.pop_front_if(|oldest| oldest.answer.is_none()) {
            let number = self.first;
            self.first = self.first.wrapping_add(1);
            if oldest.until.is_none() {
                return;
            }
            self.numbers.change(&oldest.key, number, self.next());
            self.requests.push_back(oldest);
        }
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.requests.front() else { return };
        if oldest.until.is_some() {
            let key = oldest.key.clone();
            self.forget(&key);
        }
        self.requests.pop_front();
        self.first = self.first.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(requests: usize) -> AnswerCache<u32> {
        let lifetime = Duration::from_secs(10);
        AnswerCache::new(AnswerLimits { lifetime, requests, octets: 100 })
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
    fn every_request_gets_its_own_answer_in_turn_or_not() {
        let mut cache = cache(100);
        (0..50).for_each(|key| assert_eq!(cache.begin(key, Time::ZERO), Seen::New));
        cache.forget(&7);
        // In turn, from the end, and again in turn beside one that is forgotten, one that is answered twice and one that never came.
        for key in (0..5).chain((40..50).rev()).chain(5..40).chain([3, 4, 60]) {
            cache.answer(&key, vec![key as u8]);
        }
        let answered = |key: u32| cache.seen(&key) == Seen::Answered(&[key as u8]);
        assert!((0..50).all(|key| answered(key) == (key != 7)));
        assert_eq!((cache.seen(&7), cache.seen(&60), cache.octets), (Seen::New, Seen::New, 49));
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
        for key in 1..=3 {
            cache.begin(key, Time::ZERO);
            cache.answer(&key, vec![7]);
        }
        assert_eq!(cache.seen(&2), Seen::Answered(&[7]));
        assert_eq!(cache.seen(&1), Seen::New);
        assert!(cache.requests.len() <= 2 && cache.numbers.len() <= 2);
    }

    #[test]
    fn what_is_in_progress_does_not_give_way() {
        let mut cache = cache(4);
        cache.begin(1, Time::ZERO);
        for key in 2..=1_000 {
            cache.begin(key, Time::ZERO);
            cache.answer(&key, vec![7]);
        }
        assert_eq!((cache.seen(&1), cache.requests.len()), (Seen::InProgress, 4));
        // Nor to others in progress: of these, as many are remembered as leave room for answers.
        for key in 2_001..=3_000 {
            cache.begin(key, Time::ZERO);
        }
        let known = (2_001..=3_000).filter(|key| cache.seen(key) == Seen::InProgress).count();
        assert_eq!((cache.seen(&1), known, cache.requests.len()), (Seen::InProgress, 2, 4));
        cache.answer(&1, vec![8]);
        assert_eq!((cache.seen(&1), cache.in_progress), (Seen::Answered(&[8]), 2));
        // One that is never answered has its time, too.
        cache.expire(Time::from_millis(10_000));
        assert_eq!((cache.requests.len(), cache.in_progress, cache.octets), (0, 0, 0));
    }

    #[test]
    fn a_forgotten_request_is_new_and_lives_its_whole_life() {
        let mut cache = cache(8);
        cache.begin(1, Time::ZERO);
        cache.forget(&1);
        assert_eq!(cache.begin(1, Time::from_millis(5_000)), Seen::New);
        assert_eq!(cache.begin(1, Time::from_millis(12_000)), Seen::InProgress);
    }

    #[test]
    fn answers_have_a_limit_together() {
        let mut cache = cache(8);
        for key in 1..=3 {
            cache.begin(key, Time::ZERO);
            cache.answer(&key, vec![7; 40]);
        }
        assert_eq!((cache.seen(&1), cache.seen(&2)), (Seen::New, Seen::Answered(&[7; 40])));
        // One that is answered anew counts once, one that is forgotten not at all.
        cache.answer(&3, vec![8; 60]);
        assert_eq!((cache.seen(&2), cache.octets), (Seen::Answered(&[7; 40]), 100));
        cache.forget_all(|key, answer| *key == 2 && answer.is_some());
        cache.begin(4, Time::ZERO);
        cache.answer(&4, vec![9; 40]);
        assert_eq!((cache.seen(&3), cache.seen(&4)), (Seen::Answered(&[8; 60]), Seen::Answered(&[9; 40])));
    }

    #[test]
    fn a_look_is_not_remembered() {
        let mut cache = cache(8);
        assert_eq!(cache.seen(&1), Seen::New);
        assert_eq!(cache.begin(1, Time::ZERO), Seen::New);
    }

    #[test]
    fn the_room_of_a_busier_time_is_given_back() {
        let mut cache = cache(100_000);
        for key in 0..100_000 {
            cache.begin(key, Time::ZERO);
            cache.answer(&key, vec![]);
        }
        let busy = (cache.requests.room(), cache.numbers.room());
        cache.expire(Time::from_millis(10_000));
        let idle = (cache.requests.room(), cache.numbers.room());
        assert!(busy.0 >= 100_000 && idle.0 < 8_192 && idle.1 < 8_192, "{busy:?} {idle:?}");
    }

    /// Four thousand million requests are a day of hard work.
    #[test]
    fn numbers_begin_again() {
        let mut cache = cache(4);
        cache.first = u32::MAX - 5;
        cache.begin(0, Time::ZERO);
        for key in 1..=20 {
            assert_eq!(cache.begin(key, Time::ZERO), Seen::New);
            cache.answer(&key, vec![key as u8]);
            assert_eq!(cache.seen(&key), Seen::Answered(&[key as u8]));
            assert_eq!(cache.seen(&0), Seen::InProgress);
        }
        assert_eq!((cache.requests.len(), cache.numbers.len()), (4, 4));
    }
}
