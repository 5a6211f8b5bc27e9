//! Who gives way where a worker has more to do than it can. A port's queue that is full drops what comes next, whosever it is: a user
//! who sends without end takes from all others as much as from itself. So while turns bring as much as they may, one after the
//! other, users that take more than a share of the worker's time are looked for, and of their packets some are dropped as soon as it is
//! known whose they are, which takes less than a queue's length of others' time. How many is found out by trying: more while turns
//! are full, fewer while they are not.
//!
//! Nobody gives way to nobody: where all that comes is of users with more than their share, nothing is gained by it.

mod named;

use arrayvec::ArrayVec;
use named::Named;

pub use named::{GaveWay, NAMED_MAX};

/// A user may have one part in so many of a worker's time before it gives way to others.
const SHARE: u64 = 8;
/// Others who have one part in so many, none of them half as much as that, are worth a user's giving way.
const OTHERS: u64 = 64;
/// Users that give way at once; more cannot have more than their share each.
const HEAVY_MAX: usize = SHARE as usize;
/// Turns from one look at what came to the next.
const PERIOD: u32 = 256;
/// Of the packets of full turns, one in so many is looked at: of each turn some, as a user's may come in bursts.
pub(crate) const SAMPLED: usize = 32;
/// Of fewer that were looked at, nothing is said.
const SAMPLES_MIN: u64 = 512;
/// Of a user's packets, so many in all pass where it does not give way.
const ALL: u64 = 256;
/// Users that are counted at once.
const PLACES: usize = 32;
/// What a packet of a flow that is not known takes of a worker's time, in usual packets'.
pub(crate) const LONG_WAY: u32 = 4;

/// A user as a flow's key has it, and how much of a worker's time it took; of no user is 0.
type Part = (u64, u64);

/// A user that gives way.
#[derive(Clone, Copy, Debug)]
struct Heavy {
    user: u64,
    /// What is dropped says so; keys of users do not.
    is_ipv6: bool,
    /// Of [`ALL`] packets, how many pass.
    passes: u64,
    /// What is left of that from the packets before.
    credit: u64,
    /// Packets dropped in this period.
    dropped: u64,
    /// Of these, those that are noted under its name.
    noted: u64,
}

/// One worker's.
#[derive(Debug)]
pub(crate) struct FairShare {
    turns: u32,
    full: u32,
    is_full: bool,
    /// What was looked at took so much.
    came: u64,
    /// Users that had much of it, as Misra and Gries find them: whoever took more than a 33rd is among them, and is said to have
    /// taken less by that at most.
    seen: [Part; PLACES],
    heavy: ArrayVec<Heavy, HEAVY_MAX>,
    named: Named,
}

impl FairShare {
    /// Nobody gives way.
    pub(crate) fn new() -> Self {
        let (heavy, named) = (ArrayVec::new(), Named::default());
        Self { turns: 0, full: 0, is_full: false, came: 0, seen: [(0, 0); PLACES], heavy, named }
    }

    /// A turn begins; it `is_full` where a port had as much as may come of it in one.
    #[inline]
    pub(crate) fn turn(&mut self, is_full: bool) {
        self.is_full = is_full;
        self.full += u32::from(is_full);
        self.turns += 1;
        if self.turns == PERIOD {
            self.judge();
        }
    }

    /// Whether of this turn's packets some are to be dropped.
    #[inline]
    pub(crate) fn is_thinning(&self) -> bool {
        self.is_full && !self.heavy.is_empty()
    }

    /// The first of this turn's packets that is to be looked at; each [`SAMPLED`]th behind it is, too.
    #[inline]
    pub(crate) const fn first_sample(&self) -> Option<usize> {
        if self.is_full { Some(self.turns as usize % SAMPLED) } else { None }
    }

    /// A packet that is looked at, and what it took.
    #[inline]
    pub(crate) fn sample(&mut self, user: u64, weight: u32) {
        let weight = u64::from(weight);
        self.came += weight;
        if let Some((_, part)) = self.seen.iter_mut().find(|(who, part)| *who == user && *part > 0) {
            *part += weight;
        } else if let Some(place) = self.seen.iter_mut().find(|(_, part)| *part == 0) {
            *place = (user, weight);
        } else {
            self.seen.iter_mut().for_each(|(_, part)| *part = part.saturating_sub(weight));
        }
    }

    /// Whether a user's packet goes on, in a turn of which some are to be dropped.
    #[inline]
    pub(crate) fn passes(&mut self, (user, is_ipv6): (u64, bool)) -> bool {
        let Some(heavy) = self.heavy.iter_mut().find(|heavy| heavy.user == user) else { return true };
        heavy.credit += heavy.passes;
        if heavy.credit >= ALL {
            heavy.credit -= ALL;
            return true;
        }
        heavy.dropped += 1;
        heavy.is_ipv6 = is_ipv6;
        false
    }

    /// Who gave way until now.
    pub(crate) fn gave_way(&mut self) -> ArrayVec<GaveWay, NAMED_MAX> {
        self.note_names();
        self.named.all()
    }

    /// Notes what was dropped since that was done last.
    fn note_names(&mut self) {
        let Self { heavy, named, .. } = self;
        for heavy in heavy.iter_mut().filter(|heavy| heavy.dropped > heavy.noted) {
            named.note((heavy.user, heavy.is_ipv6), heavy.dropped - heavy.noted);
            heavy.noted = heavy.dropped;
        }
    }

    /// A period is over.
    fn judge(&mut self) {
        self.note_names();
        let is_overloaded = self.full * 4 >= self.turns * 3;
        match is_overloaded {
            true => self.give_way(),
            false => self.recover(),
        }
        (self.turns, self.full, self.came) = (0, 0, 0);
        self.seen = [(0, 0); PLACES];
        self.heavy.iter_mut().for_each(|heavy| (heavy.dropped, heavy.noted) = (0, 0));
    }

    /// Fewer packets of those who take more than their share pass, down to that share.
    #[cold]
    fn give_way(&mut self) {
        if self.came < SAMPLES_MIN {
            return;
        }
        let dropped: u64 = self.heavy.iter().map(|heavy| heavy.dropped).sum();
        let all = self.came * SAMPLED as u64 + dropped;
        let of_more_than = |share: u64| self.parts().filter(move |(_, part)| part * share > all);
        // Who has nearly as much as those gives way to nobody, and nobody to it: what was looked at is not that exact.
        let modest = all.saturating_sub(of_more_than(2 * SHARE).map(|(_, part)| part).sum());
        let heavy: ArrayVec<Part, HEAVY_MAX> = of_more_than(SHARE).take(HEAVY_MAX).collect();
        if modest * OTHERS < all {
            return self.heavy.clear();
        }
        let others = all.saturating_sub(heavy.iter().map(|(_, part)| part).sum());
        let least = |part: u64| ALL * others / (SHARE - 1) / part.max(1);
        let before = std::mem::take(&mut self.heavy);
        for (user, part) in heavy {
            let known = before.iter().find(|heavy| heavy.user == user);
            let (passes, credit) = known.map_or((ALL, 0), |heavy| (heavy.passes, heavy.credit));
            let passes = (passes * 3 / 4).max(least(part)).min(ALL);
            self.heavy.push(Heavy { user, is_ipv6: false, passes, credit, dropped: 0, noted: 0 });
        }
    }

    /// Users that were seen, or dropped packets of, and what they took, dropped packets as if they had gone the usual way. At most
    /// as many have a share as may give way.
    fn parts(&self) -> impl Iterator<Item = Part> {
        let dropped =
            |user: u64| self.heavy.iter().find(|heavy| heavy.user == user).map_or(0, |heavy| heavy.dropped);
        let seen = |user: u64| self.seen.iter().any(|(who, part)| *who == user && *part > 0);
        let unseen =
            self.heavy.iter().filter(move |heavy| !seen(heavy.user)).map(|heavy| (heavy.user, heavy.dropped));
        let parts = self.seen.iter().filter(|(_, part)| *part > 0);
        let parts = parts.map(move |(user, part)| (*user, part * SAMPLED as u64 + dropped(*user)));
        parts.chain(unseen).filter(|(user, _)| *user != 0)
    }

    /// More packets pass of those who gave way; who need not any more is forgotten.
    fn recover(&mut self) {
        self.heavy.iter_mut().for_each(|heavy| heavy.passes += ALL / 64);
        self.heavy.retain(|heavy| heavy.passes < ALL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Packets of a queue, and of a turn.
    const QUEUE: usize = 2_048;
    const BURST: usize = 128;
    /// What a packet costs that is dropped for its user's sake, where one that passes costs 100.
    const DROP_COST: u64 = 35;

    /// What came of each user's packets: lost at the queue, dropped, passed.
    #[derive(Clone, Copy, Debug, Default)]
    struct Fates {
        lost: u64,
        dropped: u64,
        passed: u64,
    }

    impl Fates {
        fn missing(self) -> f64 {
            (self.lost + self.dropped) as f64 / (self.lost + self.dropped + self.passed) as f64
        }
    }

    /// A worker that takes 100 units of time a packet, under so many packets of each user in a million units, in any order.
    fn run(offered: &[u64], millions: u64) -> Vec<Fates> {
        let mut fair = FairShare::new();
        let mut fates = vec![Fates::default(); offered.len()];
        let users: Vec<usize> = offered
            .iter()
            .enumerate()
            .flat_map(|(user, packets)| vec![user; *packets as usize / 10])
            .collect();
        let (mut queue, mut random) = (VecDeque::new(), 1_u64);
        let (mut time, mut due) = (0_u64, 0_u64);
        while time < millions * 1_000_000 {
            while due < time {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let user = users[(random >> 33) as usize % users.len()];
                match queue.len() < QUEUE {
                    true => queue.push_back(user),
                    false => fates[user].lost += 1,
                }
                due += 1_000_000 / (users.len() as u64 * 10);
            }
            let count = queue.len().min(BURST);
            fair.turn(count == BURST);
            for (at, user) in queue.drain(..count).enumerate() {
                let name = user as u64 + 1;
                if fair.is_thinning() && !fair.passes((name, false)) {
                    fates[user].dropped += 1;
                    time += DROP_COST;
                    continue;
                }
                if fair.first_sample() == Some(at % SAMPLED) {
                    fair.sample(name, 1);
                }
                fates[user].passed += 1;
                time += 100;
            }
            time += 100;
        }
        fates
    }

    /// The worker carries 10,000 packets in a million units; a queue alone would lose 28 % of everybody's.
    #[test]
    fn who_takes_more_than_its_share_gives_way_and_others_lose_hardly_anything() {
        let mut offered = vec![80; 61];
        offered[0] = 9_000;
        let fates = run(&offered, 2_000);
        let lost = |fates: &[Fates]| fates.iter().map(|fates| fates.missing()).fold(0.0, f64::max);
        assert!(lost(&fates[1..]) < 0.01, "{}", lost(&fates[1..]));
        // What is left when its drops and all others are paid for: 9,000 of which so many pass take 520,000 units.
        let passed = fates[0].passed as f64 / 2_000.0;
        assert!((2_700.0..3_300.0).contains(&passed), "{passed}");
    }

    /// Even where others want more than there is, it keeps a share.
    #[test]
    fn who_gives_way_keeps_its_share() {
        let mut offered = vec![300; 61];
        offered[0] = 9_000;
        let fates = run(&offered, 1_000);
        let passed: u64 = fates.iter().map(|fates| fates.passed).sum();
        let share = fates[0].passed as f64 / passed as f64;
        assert!((0.1..0.16).contains(&share), "{share}");
    }

    #[test]
    fn nobody_gives_way_where_there_is_room_or_nobody_to_give_it_to() {
        let dropped = |offered: &[u64]| run(offered, 500).iter().map(|fates| fates.dropped).sum::<u64>();
        assert_eq!(dropped(&[6_000, 1_000, 1_000, 1_000]), 0, "all pass");
        assert_eq!(dropped(&[30_000]), 0, "it is alone");
        assert_eq!(dropped(&[3_000; 7]), 0, "all of them have more than their share");
        assert_eq!(dropped(&[150; 100]), 0, "none of them has");
    }

    #[test]
    fn who_gave_way_is_forgotten_when_there_is_room() {
        let mut fair = FairShare::new();
        let turn = |fair: &mut FairShare, is_full: bool| {
            fair.turn(is_full);
            if fair.first_sample().is_some() {
                (0..100).for_each(|packet| fair.sample(if packet < 60 { 7 } else { packet }, 1));
            }
        };
        (0..10 * PERIOD).for_each(|_| turn(&mut fair, true));
        assert!(
            fair.is_thinning()
                && (0..100).any(|_| !fair.passes((7, false)))
                && (0..100).all(|_| fair.passes((80, false)))
        );
        (0..100 * PERIOD).for_each(|_| turn(&mut fair, false));
        turn(&mut fair, true);
        assert!(!fair.is_thinning());
    }

    /// Packets that take long count for more: a user's few may be most of a worker's work.
    #[test]
    fn a_share_is_of_time() {
        let heavy = |weight: u32| {
            let mut fair = FairShare::new();
            for _ in 0..3 * PERIOD {
                fair.turn(true);
                (0..100).for_each(|packet| {
                    fair.sample(if packet < 8 { 7 } else { packet }, if packet < 8 { weight } else { 1 })
                });
            }
            fair.is_thinning()
        };
        assert!(!heavy(1) && heavy(LONG_WAY));
    }

    /// More than a turn's packets of one user, and then of the next: of all that comes each has little.
    #[test]
    fn bursts_are_nobodys_share() {
        let (mut fair, mut packets) = (FairShare::new(), 0..);
        for _ in 0..5 * PERIOD {
            fair.turn(true);
            for (at, number) in packets.by_ref().take(256).enumerate() {
                assert!(!fair.is_thinning() || fair.passes((1 + number / 332, false)));
                if fair.first_sample() == Some(at % SAMPLED) {
                    fair.sample(1 + number / 332, LONG_WAY);
                }
            }
        }
        assert!(fair.heavy.is_empty());
    }
}
