//! How busy workers are, and what follows from it for where sessions are: new ones do not go to a worker that is much busier
//! than another, and where that lasts, some move.

use super::Engine;
use super::moving::Wish;
use super::placement::Owner;
use crate::steering::{Balance, Crew};
use crate::worker::{Busy, Order};
use dplink::{BalanceMode, Balancing, MoveCause, Spread, WorkerLoad};
use rules::Seid;

/// Between two looks at how busy workers are.
const PERIOD_MS: u64 = 1_000;
/// Shares of time are reckoned in millionths.
const WHOLE: u64 = 1_000_000;
/// How much busier a worker has to be than another, where packets are handed over anyway, and where a card leads them to
/// their workers: there a session that is elsewhere costs a hand-over for each packet.
const MARGIN: u64 = WHOLE / 5;
const MARGIN_OF_CARDS: u64 = WHOLE / 2;
/// Looks in a row that find workers unevenly busy before sessions move, and how many move after each look from then on.
const PATIENCE: u32 = 10;
const AT_ONCE: usize = 8;
/// Where sessions went is as busy then as where they came from was: one of them is heavy by itself, and moving back and forth
/// helps nobody. Each such turn doubles the patience, up to this.
const PATIENCE_MAX: u32 = 3_600;

/// One worker.
#[derive(Clone, Copy, Default)]
struct Load {
    /// What it told last, and when, in milliseconds.
    told: Option<(Busy, u64)>,
    /// The share of its time that packets take.
    share: u64,
    packets_per_s: u64,
}

/// All workers.
pub(super) struct Loads {
    balance: Balance,
    margin: u64,
    /// Those before own no sessions.
    distributors: usize,
    workers: Vec<Load>,
    next_ms: u64,
    /// Workers that were asked and have not told yet.
    asked: usize,
    /// Looks in a row that found them uneven, and how many are waited for.
    uneven: u32,
    patience: u32,
    /// Which way sessions moved last.
    last: Option<(Owner, Owner)>,
}

impl Loads {
    pub(super) fn new(crew: &Crew) -> Self {
        let leads = |spread: &Spread| matches!(spread, Spread::InnerHash | Spread::TeidHash);
        Self {
            balance: crew.balance,
            margin: if crew.spread.iter().any(leads) { MARGIN_OF_CARDS } else { MARGIN },
            distributors: crew.distributors,
            workers: vec![Load::default(); crew.workers],
            next_ms: PERIOD_MS,
            asked: 0,
            uneven: 0,
            patience: PATIENCE,
            last: None,
        }
    }

    /// Whether it is time to ask.
    fn is_due(&mut self, now_ms: u64) -> bool {
        let is_due = self.workers.len() > 1 && now_ms >= self.next_ms && self.asked == 0;
        if is_due {
            (self.next_ms, self.asked) = (now_ms + PERIOD_MS, self.workers.len());
        }
        is_due
    }

    /// A worker tells, at a time, how busy it has been until now. Half of what is known is of the last second, a quarter of
    /// the one before, and so on.
    fn hear(&mut self, worker: usize, told: Busy, now_ms: u64) {
        self.asked = self.asked.saturating_sub(1);
        let Some(load) = self.workers.get_mut(worker) else { return };
        let Some((before, before_ms)) = load.told.replace((told, now_ms)) else { return };
        let cycles = told.cycles.saturating_sub(before.cycles);
        let time = told.clock.saturating_sub(before.clock);
        if let Some(share) = (u128::from(cycles) * u128::from(WHOLE)).checked_div(time.into()) {
            load.share = load.share.midpoint(u64::try_from(share).unwrap_or(WHOLE).min(WHOLE));
        }
        let packets = told.packets.saturating_sub(before.packets).saturating_mul(1_000);
        if let Some(rate) = packets.checked_div(now_ms.saturating_sub(before_ms)) {
            load.packets_per_s = load.packets_per_s.midpoint(rate);
        }
    }

    /// The share of its time that packets take of a worker, in parts of a thousand.
    pub(super) fn permille(&self, worker: usize) -> u16 {
        (self.share(worker) / (WHOLE / 1_000)) as u16
    }

    /// What is known of a worker and what is done about it; who places sessions knows how many there are.
    pub(super) fn overview(&self) -> Balancing {
        let one = |load: &Load| WorkerLoad {
            busy_permille: (load.share / (WHOLE / 1_000)) as u16,
            packets_per_s: load.packets_per_s,
            ..WorkerLoad::default()
        };
        Balancing {
            mode: match self.balance {
                Balance::Off => BalanceMode::Off,
                Balance::New => BalanceMode::New,
                Balance::All => BalanceMode::All,
            },
            margin_permille: (self.margin / (WHOLE / 1_000)) as u16,
            is_led_by_devices: self.margin == MARGIN_OF_CARDS,
            uneven_s: self.uneven,
            patience_s: self.patience,
            workers: self.workers.iter().map(one).collect(),
            ..Balancing::default()
        }
    }

    /// The share of its time that packets take of a worker, in millionths.
    pub(super) fn share(&self, worker: usize) -> u64 {
        self.workers.get(worker).map_or(0, |load| load.share)
    }

    fn owners(&self) -> impl Iterator<Item = (Owner, u64)> {
        let all = self.workers.iter().enumerate().skip(self.distributors);
        all.map(|(owner, load)| (owner as Owner, load.share))
    }

    /// The worker that takes a new session instead of the one whose it would be, which is much busier; `sessions` is how many
    /// there are already.
    pub(super) fn instead_of(
        &mut self,
        owner: Owner,
        has_room: impl Fn(Owner) -> bool,
        sessions: usize,
    ) -> Owner {
        if self.balance == Balance::Off {
            return owner;
        }
        let own = self.share(usize::from(owner));
        let least = self.owners().filter(|(other, _)| has_room(*other)).min_by_key(|(_, share)| *share);
        let Some((other, _)) = least.filter(|(_, share)| share + self.margin < own) else { return owner };
        // Until it is known how busy the new one makes it: as busy as others do.
        let each = self.owners().map(|(_, share)| share).sum::<u64>() / sessions.max(1) as u64;
        if let Some(load) = self.workers.get_mut(usize::from(other)) {
            load.share += each.max(1);
        }
        other
    }

    /// From where to where sessions are to move, where workers have been unevenly busy for long.
    fn uneven(&mut self) -> Option<(Owner, Owner)> {
        let most = self.owners().max_by_key(|(_, share)| *share)?;
        let least = self.owners().min_by_key(|(_, share)| *share)?;
        self.uneven = if least.1 + self.margin < most.1 { self.uneven + 1 } else { 0 };
        if self.balance != Balance::All || self.uneven <= self.patience {
            return None;
        }
        let way = (most.0, least.0);
        if self.last.replace(way) == Some((way.1, way.0)) {
            (self.uneven, self.patience) = (0, (2 * self.patience).min(PATIENCE_MAX));
            return None;
        }
        Some(way)
    }
}

impl Engine {
    /// Asks workers from time to time how busy they are.
    pub(super) fn look_at_loads(&mut self, now_ms: u64) {
        if self.placement.loads.is_due(now_ms) {
            self.order_all(|| Order::Busy);
        }
    }

    /// A worker has told. The last of them is the time to do something about it.
    pub(super) fn heard(&mut self, worker: usize, told: Busy) {
        self.placement.loads.hear(worker, told, self.now_ms);
        if worker + 1 < self.hands.len() {
            return;
        }
        let Some((from, to)) = self.placement.loads.uneven() else { return };
        for session in self.some_of(from) {
            // There are others.
            let _ = self.want(Wish::own(MoveCause::Balance), session, to);
        }
    }

    /// Some sessions of a worker, any but those that could not move before.
    fn some_of(&self, owner: Owner) -> Vec<Seid> {
        let is_it = |session: &Seid| self.may_wander(*session);
        let all = self.known.iter().filter(|(_, known)| known.owner == owner).map(|(session, _)| session);
        all.filter(is_it).take(AT_ONCE).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cycles: u64, clock: u64) -> Busy {
        Busy { cycles, clock, packets: 5 * cycles }
    }

    fn loads(crew: Crew, shares: &[u64]) -> Loads {
        let mut loads = Loads::new(&crew);
        for second in 0..20 {
            for (worker, share) in shares.iter().enumerate() {
                loads.hear(worker, told(second * share, second * 100), second * 1_000);
            }
        }
        loads
    }

    #[test]
    fn what_workers_tell_is_the_share_of_the_last_seconds() {
        let mut loads = loads(Crew::of(2), &[60, 10]);
        assert_eq!([0, 1].map(|worker| loads.permille(worker)), [599, 99]);
        loads.hear(0, told(19 * 60, 2_000), 20_000);
        assert_eq!(loads.permille(0), 299);
    }

    #[test]
    fn packets_are_those_of_a_second() {
        let mut loads = loads(Crew::of(2), &[60, 10]);
        let rates =
            |loads: &Loads| loads.overview().workers.iter().map(|it| it.packets_per_s).collect::<Vec<_>>();
        // Five a cycle: 300 and 50 a second, told 19 times.
        assert_eq!(rates(&loads), [299, 49]);
        // Half of them, in half a second.
        loads.hear(0, told(19 * 60 + 30, 2_000), 19_500);
        assert_eq!(rates(&loads), [299, 49]);
        // Two workers that tell in one millisecond are not told of as infinitely fast.
        loads.hear(0, told(20 * 60, 2_000), 19_500);
        assert_eq!(rates(&loads), [299, 49]);
    }

    #[test]
    fn new_sessions_go_to_the_least_busy_where_the_difference_is_large() {
        let all = |_: Owner| true;
        let card = Crew { spread: vec![Spread::InnerHash], ..Crew::of(3) };
        let off = Crew { balance: Balance::Off, ..Crew::of(3) };
        for (crew, shares, expected) in [
            (Crew::of(3), [60, 45, 30], 2),
            (Crew::of(3), [45, 45, 30], 0),
            (card.clone(), [60, 45, 30], 0),
            (card, [90, 45, 30], 2),
            (off, [99, 0, 0], 0),
            (Crew { distributors: 1, ..Crew::of(3) }, [0, 80, 30], 1),
        ] {
            let owner = if crew.distributors == 1 { 1 } else { 0 };
            let expected = if crew.distributors == 1 { 2 } else { expected };
            assert_eq!(loads(crew, &shares).instead_of(owner, all, 9), expected, "{shares:?}");
        }
        assert_eq!(loads(Crew::of(3), &[90, 45, 30]).instead_of(0, |owner| owner != 2, 9), 1);
        // Not all that come between two looks go to one.
        let mut loads = loads(Crew::of(3), &[90, 30, 30]);
        let went: Vec<Owner> = (0..20).map(|_| loads.instead_of(0, all, 15)).collect();
        assert!((1..3).all(|owner| went.contains(&owner)) && went.ends_with(&[0]), "{went:?}");
    }

    #[test]
    fn sessions_move_where_the_difference_lasts() {
        let mut loads = loads(Crew { balance: Balance::All, ..Crew::of(3) }, &[60, 45, 30]);
        let found: Vec<_> = (0..=PATIENCE).map(|_| loads.uneven()).collect();
        assert!(found[..PATIENCE as usize].iter().all(Option::is_none));
        assert_eq!(found.last(), Some(&Some((0, 2))));
        loads.balance = Balance::New;
        assert_eq!(loads.uneven(), None);
    }

    #[test]
    fn sessions_that_would_only_go_back_are_left_alone_for_longer_each_time() {
        let mut loads = loads(Crew { balance: Balance::All, ..Crew::of(2) }, &[90, 10]);
        let mut until_they_move = |shares: [u64; 2]| {
            loads.workers.iter_mut().zip(shares).for_each(|(load, share)| load.share = share * WHOLE / 100);
            (0..10_000).take_while(|_| loads.uneven().is_none()).count() as u32
        };
        assert_eq!(until_they_move([90, 10]), PATIENCE);
        // The heavy one has gone there, too: what counts goes on from the looks that found the others.
        assert_eq!(until_they_move([10, 90]), 2 * PATIENCE + 1);
        assert_eq!(until_they_move([90, 10]), 4 * PATIENCE + 1);
    }

    #[test]
    fn nobody_is_asked_again_before_all_have_told() {
        let mut loads = Loads::new(&Crew::of(2));
        assert!(loads.is_due(PERIOD_MS) && !loads.is_due(2 * PERIOD_MS));
        loads.hear(0, told(0, 1), 1_000);
        assert!(!loads.is_due(3 * PERIOD_MS));
        loads.hear(1, told(0, 1), 1_000);
        assert!(loads.is_due(3 * PERIOD_MS));
    }
}
