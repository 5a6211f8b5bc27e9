//! What meters let pass within the last second, of those that packets were beyond. A rate says how far packets may be ahead of
//! it, which is little, so that no second has more than the rate: whoever is silent for longer loses what he might have had, and
//! TCP is silent for 200 ms whenever it loses the end of what it sent (RFC 6298 2.4, and what is usual). So a packet that is too
//! far ahead passes all the same while it is at most twice as far ahead as is left of the second before it, of which so much has
//! passed. With all that is left, who sends more than his rate without a pause, and was silent once, would have twice his rate and
//! less than half of it in turns for ever: so it is half as much in each second.
//!
//! Packets within their rates do not touch this: what passed is marked when a packet is beyond its rate, some dozen times a
//! second. Between two such looks, however long, only what the rate gives can have passed.

mod along;

use super::account::Pace;
use super::cost::Cost;
use super::table::Table;
use rules::Direction;
use std::collections::VecDeque;

pub(crate) use along::Second;

const SECOND_NS: u64 = 1_000_000_000;
/// Marks in a second, of those that have a time to themselves.
const PARTS: u64 = 32;
/// Time between two marks, if one more does not stand between them, which is moved until it is so far from the first.
const APART_NS: u64 = SECOND_NS / PARTS;
/// Two for each part, and those at the ends.
const MARKS_MAX: usize = 2 * PARTS as usize + 4;
/// Bytes of which no more may pass in a second: beyond that, counts of what passed could run over unseen.
const SECOND_MAX: u32 = 1 << 30;
/// Places looked at for one that nobody has looked at for a second, and which another meter may take.
const CANDIDATES: usize = 8;

/// A meter: one way of an account's, or of one that is apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeterWay(u64);

impl MeterWay {
    /// Of the account at a place of a session whose cells begin at `base`.
    pub(crate) fn of_account((base, place): (u32, u16), direction: Direction) -> Self {
        Self((u64::from(base) + u64::from(place)) << 1 | direction as u64)
    }

    /// Of the meter at a place of those that are apart.
    pub(crate) fn apart(at: u32, direction: Direction) -> Self {
        Self(1 << 63 | u64::from(at) << 1 | direction as u64)
    }

    /// Of one on its way from an account to another, of which it is to be the so manyth.
    fn aside(number: usize, direction: Direction) -> Self {
        Self(1 << 62 | (number as u64) << 1 | direction as u64)
    }
}

/// How much had passed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    at_ns: u64,
    /// As [`Pace::passed`] counts.
    passed: u32,
}

/// A meter's last second.
#[derive(Debug)]
struct Past {
    way: MeterWay,
    /// What the marks were made by; by another limit they say nothing.
    cost: Cost,
    /// From the last one that is a second old, where there is one.
    marks: VecDeque<Mark>,
}

impl Past {
    /// With room for all marks there may be.
    fn empty() -> Self {
        Self { way: MeterWay(0), cost: Cost::NONE, marks: VecDeque::with_capacity(MARKS_MAX) }
    }

    /// Notes how much has passed, at a time as marks have it and as the pace has.
    fn look(&mut self, now_ns: u64, (clock_ns, pace): (u64, Pace)) {
        let now = Mark { at_ns: now_ns, passed: pace.passed() };
        let before =
            |back: usize| self.marks.len().checked_sub(back).and_then(|at| self.marks.get(at)).copied();
        let is_near = |mark: Mark| now_ns.saturating_sub(mark.at_ns) < APART_NS;
        match (before(2), before(1)) {
            (_, Some(last)) if last.at_ns == now_ns => return,
            (Some(first), Some(_)) if is_near(first) => _ = self.marks.pop_back(),
            (_, last) if !last.is_some_and(is_near) => {
                self.fill(last, (now_ns, pace.bytes_ahead(clock_ns)), pace)
            }
            _ => {}
        }
        self.push(now);
        while self.marks.get(1).is_some_and(|mark| mark.at_ns + SECOND_NS <= now_ns) {
            self.marks.pop_front();
        }
    }

    /// Marks of a time in which nobody looked, since `last`, or since for ever: as if what has passed had passed as late as it
    /// may, by the rate, and as far ahead of it as the pace is. More than has passed since the last silence of a second has not.
    fn fill(&mut self, last: Option<Mark>, (now_ns, ahead): (u64, u64), pace: Pace) {
        let (part, ahead) = (pace.bytes_in(APART_NS) + 1, ahead.saturating_add(1));
        let since_silence = pace.since_silence().unwrap_or(u32::MAX);
        let most = last.map_or(since_silence, |last| pace.passed_since(last.passed)).into();
        for parts in (1..=PARTS).rev() {
            let at_ns = now_ns - parts * APART_NS;
            if last.is_none_or(|last| at_ns > last.at_ns) {
                let passed = ahead.saturating_add(parts * part).min(most).min(2 * u64::from(SECOND_MAX) - 1);
                self.push(Mark { at_ns, passed: pace.passed().wrapping_sub(passed as u32) });
            }
        }
    }

    fn push(&mut self, mark: Mark) {
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }

    /// Whether what has passed since the last mark that is a second old leaves half as much of a second's worth as the pace is
    /// ahead; at the times of [`Past::look`].
    fn has_left(&self, now_ns: u64, (clock_ns, pace): (u64, Pace)) -> bool {
        let old = self.marks.front().filter(|mark| mark.at_ns + SECOND_NS <= now_ns);
        old.is_some_and(|mark| pace.takes_at_most(SECOND_NS, (clock_ns, pace.passed_since(mark.passed))))
    }
}

/// The last seconds of as many meters as there is room for. Others are held to what they may be ahead of their rates.
pub(crate) struct Recent {
    /// How far packets may be ahead of their rates all the same.
    catch_up_ns: u64,
    places: Table,
    pasts: Box<[Past]>,
    /// By place, when somebody looked last.
    looked_ns: Box<[u64]>,
    /// So many have been given away once.
    given: usize,
    /// Where to look for the next place.
    next: usize,
}

impl Recent {
    /// Meters of a worker.
    pub(crate) const METERS: usize = 4_096;

    /// With room for so many.
    pub(crate) fn new(meters: usize, catch_up_ns: u64) -> Self {
        Self {
            catch_up_ns,
            places: Table::new(meters),
            pasts: (0..meters).map(|_| Past::empty()).collect(),
            looked_ns: vec![0; meters].into(),
            given: 0,
            next: 0,
        }
    }

    /// Whether a packet passes now that is too far ahead of its rate, as not all of the last second was used.
    pub(crate) fn admits(&mut self, way: MeterWay, pace: Pace, now_ns: u64) -> bool {
        let is_near = self.catch_up_ns > 0 && pace.admits(now_ns, self.catch_up_ns);
        if !is_near || pace.takes_less_than(SECOND_NS, SECOND_MAX) {
            return false;
        }
        let Some(place) = self.place(way, now_ns) else { return false };
        let Some((past, looked_ns)) = self.pasts.get_mut(place).zip(self.looked_ns.get_mut(place)) else {
            return false;
        };
        if past.cost != pace.cost() || now_ns.saturating_sub(*looked_ns) >= SECOND_NS {
            past.marks.clear();
            past.cost = pace.cost();
        }
        *looked_ns = now_ns;
        // Clocks may begin with us: nothing passed in the second before.
        let at_ns = now_ns.saturating_add(SECOND_NS);
        past.look(at_ns, (now_ns, pace));
        past.has_left(at_ns, (now_ns, pace))
    }

    /// What was known of a meter is of no use for the one that will be there next.
    pub(crate) fn forget(&mut self, way: MeterWay) {
        if self.places.len() > 0
            && let Some(place) = self.places.get(way.0)
        {
            self.places.remove(way.0);
            self.looked_ns[place as usize] = 0;
        }
    }

    /// A meter goes to the account with this number of new rules. Until it is [taken up](Self::take_up) there, no other loses what is
    /// known of it: meters may change places.
    pub(crate) fn set_aside(&mut self, way: MeterWay, (number, direction): (usize, Direction)) {
        self.rename(way, MeterWay::aside(number, direction));
    }

    /// The one that was set aside for the account with this number is here now.
    pub(crate) fn take_up(&mut self, way: MeterWay, (number, direction): (usize, Direction)) {
        self.rename(MeterWay::aside(number, direction), way);
    }

    fn rename(&mut self, from: MeterWay, to: MeterWay) {
        if self.places.len() == 0 {
            return;
        }
        let Some(place) = self.places.get(from.0) else { return };
        self.places.remove(from.0);
        if let Some(past) = self.pasts.get_mut(place as usize)
            && self.places.insert(to.0, place).is_ok()
        {
            past.way = to;
        }
    }

    /// Where a meter is, or from now on; `None` where all places looked at are of meters that somebody looked at in this second.
    fn place(&mut self, way: MeterWay, now_ns: u64) -> Option<usize> {
        if let Some(place) = self.places.get(way.0) {
            return Some(place as usize);
        }
        let place = self.free_place(now_ns)?;
        let past = self.pasts.get_mut(place)?;
        let before = std::mem::replace(&mut past.way, way);
        past.marks.clear();
        if self.places.get(before.0) == Some(place as u32) {
            self.places.remove(before.0);
        }
        self.places.insert(way.0, place as u32).ok()?;
        Some(place)
    }

    fn free_place(&mut self, now_ns: u64) -> Option<usize> {
        if self.given < self.pasts.len() {
            self.given += 1;
            return Some(self.given - 1);
        }
        let first = self.next;
        self.next = if first + CANDIDATES < self.pasts.len() { first + CANDIDATES } else { 0 };
        let candidates = self.looked_ns.iter().enumerate().skip(first).take(CANDIDATES);
        let (place, looked_ns) = candidates.min_by_key(|(_, looked_ns)| **looked_ns)?;
        (now_ns.saturating_sub(*looked_ns) >= SECOND_NS).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::{Moment, Rate};
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rules::BitRates;

    const MS: u64 = 1_000_000;
    const BURST_NS: u64 = 10 * MS;
    const KBPS: u64 = 8_000;
    /// A second's worth.
    const SECOND: u64 = 1_000_000;
    const BYTES: u32 = 1_000;
    const WAY: MeterWay = MeterWay(1);

    fn pace(kbps: u64) -> Pace {
        Rate::new(BitRates { uplink_kbps: kbps, downlink_kbps: kbps }).way(Direction::Uplink)
    }

    /// As packets meet a meter: whether one passes.
    fn passes(recent: &mut Recent, pace: &mut Pace, now_ns: u64) -> bool {
        if pace.take(Moment::new(now_ns, BURST_NS), BYTES) {
            return true;
        }
        let is_admitted = recent.admits(WAY, *pace, now_ns);
        if is_admitted {
            pace.charge(now_ns, BYTES);
        }
        is_admitted
    }

    /// When packets passed of those that came at these times, of a meter that somebody has been beyond just before.
    fn passed(times: impl Iterator<Item = u64>) -> Vec<u64> {
        let (mut recent, mut pace) = (Recent::new(4, 250 * MS), pace(KBPS));
        times.filter(|now_ns| passes(&mut recent, &mut pace, *now_ns)).collect()
    }

    /// Most bytes in any second.
    fn worst(passed: &[u64]) -> u64 {
        let in_second = |(at, first): (usize, &u64)| {
            passed[at..].iter().take_while(|later| **later < first + SECOND_NS).count() as u64
        };
        passed.iter().enumerate().map(in_second).max().unwrap_or(0) * u64::from(BYTES)
    }

    /// One that sends much more than its rate for some time, and then waits as TCP does.
    fn silent_for(pause_ns: u64) -> impl Iterator<Item = u64> {
        (0..30).flat_map(move |turn| {
            (0..400).map(move |packet| 2 * SECOND_NS + turn * pause_ns + packet * 100_000)
        })
    }

    #[test]
    fn who_waits_for_200_ms_whenever_packets_are_lost_has_its_rate_all_the_same() {
        for (pause_ns, least) in [(200 * MS, 88), (240 * MS, 78), (400 * MS, 74)] {
            let passed = passed(silent_for(pause_ns));
            let behind = passed.partition_point(|at| *at < 4 * SECOND_NS);
            let seconds = (passed[passed.len() - 1] - passed[behind]) / MS;
            let bytes = (passed.len() - behind) as u64 * u64::from(BYTES);
            let percent = bytes * 100_000 / SECOND / seconds;
            assert!((least..=101).contains(&percent), "{percent} % with pauses of {pause_ns} ns");
            let most = SECOND + SECOND * BURST_NS / SECOND_NS + u64::from(BYTES);
            assert!(worst(&passed) <= most, "{}", worst(&passed));
        }
    }

    #[test]
    fn who_never_waits_catches_up_on_nothing() {
        let constant = |at: u64| 2 * SECOND_NS + at * 300_000;
        let (mut recent, mut alone) = (Recent::new(4, 250 * MS), pace(KBPS));
        let with = (0..20_000).map(constant).filter(|now| passes(&mut recent, &mut alone, *now)).count();
        let (mut nothing, mut other) = (Recent::new(4, 0), pace(KBPS));
        let without = (0..20_000).map(constant).filter(|now| passes(&mut nothing, &mut other, *now)).count();
        assert_eq!(with, without);
    }

    /// A page after a pause: nobody looked, but nothing can have passed.
    #[test]
    fn who_was_silent_for_a_second_has_it_all_to_catch_up_on() {
        let page = |at_ns: u64| (0..400).map(move |packet| at_ns + packet * 10_000);
        assert!(passed(page(5 * SECOND_NS)).len() >= 250, "a session's first");
        // Within its rate for as long as makes a second's worth, and nobody looks.
        let steady = (0..3_000).map(|packet| SECOND_NS + packet * 2_000_000);
        let over = SECOND_NS + 3_000 * 2_000_000;
        for pause_ns in [1_010 * MS, 1_200 * MS, 60 * SECOND_NS] {
            let passed = passed(steady.clone().chain(page(over + pause_ns)));
            assert!(passed.len() >= 3_250, "{} after {pause_ns} ns", passed.len());
            assert!(worst(&passed) <= SECOND + u64::from(BYTES), "{}", worst(&passed));
        }
        let early = passed(steady.chain(page(over + 500 * MS)));
        assert!(early.len() < 3_100, "half a second may have been used up: {}", early.len());
    }

    /// Twice the rate from the first packet on: what a new user has to catch up on is soon used up, without a pause.
    #[test]
    fn who_never_waits_is_soon_held_to_the_rate_without_a_pause() {
        const QUARTER_NS: u64 = SECOND_NS / 4;
        let passed = passed((0..20_000).map(|packet| 2 * SECOND_NS + packet * 500_000));
        let most = SECOND + SECOND * BURST_NS / SECOND_NS + u64::from(BYTES);
        assert!(worst(&passed) <= most, "{}", worst(&passed));
        let in_quarter = |quarter: u64| {
            let at_ns = 2 * SECOND_NS + quarter * QUARTER_NS;
            passed.iter().filter(|passed| (at_ns..at_ns + QUARTER_NS).contains(*passed)).count()
        };
        let quarters: Vec<_> = (0..40).map(in_quarter).collect();
        assert!(quarters[0] > 450, "{quarters:?}");
        assert!(quarters.iter().all(|packets| *packets > 60), "{quarters:?}");
        assert!(quarters[24..].iter().all(|packets| (240..=260).contains(packets)), "{quarters:?}");
    }

    proptest! {
        /// However it comes: 10 ms are the burst, and one packet more is let in as long as there is anything left.
        #[test]
        fn no_second_has_more_than_the_rate_and_its_burst(
            turns in vec((prop_oneof![0..700 * MS, 900 * MS..1_400 * MS], 1..600_u64, 0..2 * MS), 1..60),
        ) {
            let mut now_ns = SECOND_NS;
            let times = turns.into_iter().flat_map(|(pause_ns, packets, gap_ns)| {
                now_ns += pause_ns;
                let first = now_ns;
                now_ns += packets * gap_ns;
                (0..packets).map(move |packet| first + packet * gap_ns)
            });
            let passed = passed(times.collect::<Vec<_>>().into_iter());
            let most = SECOND + SECOND * BURST_NS / SECOND_NS + u64::from(BYTES);
            prop_assert!(worst(&passed) <= most, "{} of {most}", worst(&passed));
        }
    }

    #[test]
    fn a_place_is_given_to_another_after_a_second() {
        let mut recent = Recent::new(2, 250 * MS);
        let looked = |recent: &mut Recent, way, now_ns| {
            let mut late = pace(KBPS);
            late.charge(now_ns, 50_000);
            recent.admits(MeterWay(way), late, now_ns);
            [1, 2, 3].map(|way| recent.places.get(way).is_some())
        };
        assert_eq!(looked(&mut recent, 1, 3 * SECOND_NS), [true, false, false]);
        assert_eq!(looked(&mut recent, 2, 3 * SECOND_NS + MS), [true, true, false]);
        assert_eq!(looked(&mut recent, 3, 4 * SECOND_NS - 1), [true, true, false]);
        assert_eq!(looked(&mut recent, 3, 4 * SECOND_NS), [false, true, true]);
        recent.forget(MeterWay(2));
        assert_eq!(looked(&mut recent, 1, 4 * SECOND_NS), [true, false, true]);
    }

    /// Each has used up its second, one of them 200 ms before the other.
    #[test]
    fn meters_that_change_places_catch_up_on_what_they_had() {
        let (mut recent, up) = (Recent::new(4, 250 * MS), Direction::Uplink);
        let ways = [0, 1].map(|place| MeterWay::of_account((8, place), up));
        let mut paces = [pace(KBPS); 2];
        for (at, way) in ways.into_iter().enumerate() {
            let now_ns = 2 * SECOND_NS + at as u64 * 200 * MS;
            while paces[at].admits(now_ns, BURST_NS) || recent.admits(way, paces[at], now_ns) {
                paces[at].charge(now_ns, BYTES);
            }
        }
        for (from, to) in [(0, 1), (1, 0)] {
            recent.set_aside(ways[from], (to, up));
        }
        for (at, way) in ways.into_iter().enumerate() {
            recent.take_up(way, (at, up));
        }
        let later = 2 * SECOND_NS + 220 * MS;
        let left = [1, 0].map(|at| {
            (0..1_000)
                .filter(|_| {
                    let passes =
                        paces[at].admits(later, BURST_NS) || recent.admits(ways[1 - at], paces[at], later);
                    if passes {
                        paces[at].charge(later, BYTES);
                    }
                    passes
                })
                .count()
        });
        assert!(left[0] <= 31 && (200..=221).contains(&left[1]), "{left:?}");
    }

    #[test]
    fn nothing_is_caught_up_by_another_limit_or_another_session() {
        let mut recent = Recent::new(4, 250 * MS);
        let mut used = pace(KBPS);
        while passes(&mut recent, &mut used, 2 * SECOND_NS) {}
        // 200 ms later a fifth of a second may be caught up, by the same limit.
        let later = 2 * SECOND_NS + 220 * MS;
        let count = |recent: &mut Recent, mut pace: Pace| {
            (0..1_000).filter(|_| passes(recent, &mut pace, later)).count()
        };
        assert!((200..=221).contains(&count(&mut recent, used)));
        // Of one that is forgotten, what has passed since it was silent is known all the same, and of one that never was, nothing.
        let (mut recent, mut used) = (Recent::new(4, 250 * MS), pace(KBPS));
        let steady = (0..3_000).map(|packet| SECOND_NS + packet * 1_000_000);
        assert!(steady.clone().all(|now_ns| passes(&mut recent, &mut used, now_ns)));
        recent.forget(WAY);
        let now_ns = SECOND_NS + 3_000 * 1_000_000;
        let more = (0..1_000).filter(|_| passes(&mut recent, &mut used, now_ns)).count();
        assert!(more <= 11, "{more}");
    }
}
