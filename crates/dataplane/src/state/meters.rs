//! The meters of sessions: in their accounts, or apart.

use super::account::Rate;
use super::apart::Apart;
use super::installation::Installation;
use super::recent::{MeterWay, Second};
use super::session::{Names, Session};
use super::sessions::{Sessions, find_near};
use rules::{Direction, QerId};

const BOTH: [Direction; 2] = [Direction::Uplink, Direction::Downlink];

/// The meter of the account at a place of a session whose cells begin at a base, or of what stands in its place.
fn way(account: (u32, u16), apart: Option<u32>, direction: Direction) -> MeterWay {
    match apart {
        None => MeterWay::of_account(account, direction),
        Some(at) => MeterWay::apart(at, direction),
    }
}

impl Sessions {
    /// Whether the meter of an account lets a packet pass now.
    #[inline]
    pub(crate) fn admits(
        &mut self,
        (base, place): (u32, u16),
        direction: Direction,
        (now_ns, burst_ns): (u64, u64),
    ) -> bool {
        let pace = *self.cells.way((base, place), direction).0;
        let apart = pace.stands_for();
        let pace = match apart {
            None => pace,
            Some(at) => match self.aparts.at(at).filter(|apart| apart.admits_packets(direction, now_ns)) {
                None => return false,
                Some(apart) => apart.rate().way(direction),
            },
        };
        pace.admits(now_ns, burst_ns)
            || self.recent.admits(way((base, place), apart, direction), pace, now_ns)
    }

    /// A packet passes the meter of an account.
    #[inline]
    pub(crate) fn charge(
        &mut self,
        (base, place): (u32, u16),
        direction: Direction,
        (now_ns, bytes): (u64, u32),
    ) {
        let pace = self.cells.way((base, place), direction).0;
        match pace.stands_for() {
            None => pace.charge(now_ns, bytes),
            Some(at) => {
                self.aparts.at_mut(at).into_iter().for_each(|apart| apart.charge(direction, now_ns, bytes))
            }
        }
    }

    /// Bits a second that the meter of an account lets pass, in units of 1,000; `None` without such a limit.
    pub(crate) fn limit_kbps(&mut self, (base, place): (u32, u16), direction: Direction) -> Option<u64> {
        let pace = *self.cells.way((base, place), direction).0;
        match pace.stands_for() {
            None => pace.limit_kbps(),
            Some(at) => self.aparts.at(at)?.rate().way(direction).limit_kbps(),
        }
    }

    /// How many meters apart of a session take room that is not taken; `own` is its place, where it has one.
    pub(super) fn new_aparts(&mut self, own: Option<u32>, new: &Installation) -> usize {
        let Installation { session: Some(session), aparts, .. } = new else { return 0 };
        let is_new = |(place, apart): &&(u16, Apart)| {
            let place = usize::from(*place);
            let qer = session.accounts.get(place).and_then(|names| names.qer);
            let before = own.zip(qer).and_then(|(own, qer)| self.meter_of(own, (qer, place)));
            self.aparts.is_new(apart, before)
        };
        aparts.iter().filter(is_new).count()
    }

    /// The meter apart of a QER of the session at a place.
    fn meter_of(&self, own: u32, (qer, near): (QerId, usize)) -> Option<u32> {
        let session = self.slots.get(own as usize)?.as_ref()?;
        let place = find_near(&session.accounts, near, |names| names.qer == Some(qer))?;
        self.cells.account(session.run.base, place as u16).rate.stands_for()
    }

    /// Before the old session leaves them, so that meters that stay go on where they stood.
    pub(super) fn enter_aparts(&mut self, old: Option<&Session>, new: &mut Installation, now_ns: u64) {
        let Installation { session: Some(session), aparts, accounts, .. } = new else { return };
        for (place, apart) in aparts.iter() {
            let place = usize::from(*place);
            let qer = session.accounts.get(place).and_then(|names| names.qer);
            let Some((qer, account)) = qer.zip(accounts.get_mut(place)) else { continue };
            let before = old.and_then(|old| self.rate_of(old, qer, place));
            let apart = before.map_or(*apart, |before| apart.carry(&before, now_ns));
            let known = before.and_then(|rate| rate.stands_for());
            account.rate = Rate::apart(self.aparts.enter(apart, known, now_ns));
        }
    }

    /// A session uses its meters no longer, or under new rules: what is known of those that nobody else uses is forgotten.
    pub(super) fn leave_meters(&mut self, session: &Session) {
        let base = session.run.base;
        for place in 0..session.accounts.len() as u16 {
            let apart = self.cells.account(base, place).rate.stands_for();
            let is_own =
                apart.and_then(|at| self.aparts.at(at)).is_none_or(|apart| apart.own_rate().is_some());
            let is_gone = apart.is_none_or(|at| self.aparts.leave(at)) || is_own;
            for direction in BOTH.into_iter().filter(|_| is_gone) {
                self.recent.forget(way((base, place), apart, direction));
            }
        }
    }

    /// What the last second's packets took of meters that stay goes with them to where new rules have them. Those that sessions share stay
    /// where they are.
    pub(super) fn set_recent_aside(&mut self, old: &Session, new: &Installation) {
        let Some(session) = &new.session else { return };
        for (number, names) in session.accounts.iter().enumerate() {
            let is_it = |before: &Names| names.qer.is_some() && before.qer == names.qer;
            let Some(place) = find_near(&old.accounts, number, is_it) else { continue };
            let at = (old.run.base, place as u16);
            let apart = self.cells.account(at.0, at.1).rate.stands_for();
            let stands_for = new.accounts.get(number).and_then(|account| account.rate.stands_for());
            if self.is_shared(apart) || self.is_shared(stands_for) {
                continue;
            }
            for direction in BOTH {
                self.recent.set_aside(way(at, apart, direction), (number, direction));
            }
        }
    }

    /// Whether a meter apart, if there is one, is of several sessions.
    fn is_shared(&self, apart: Option<u32>) -> bool {
        apart.and_then(|at| self.aparts.at(at)).is_some_and(|apart| apart.own_rate().is_none())
    }

    /// It is there.
    pub(super) fn take_recent_up(&mut self, new: &Installation) {
        let Some(session) = &new.session else { return };
        for (number, account) in new.accounts.iter().enumerate().take(session.accounts.len()) {
            let (at, apart) = ((session.run.base, number as u16), account.rate.stands_for());
            for direction in BOTH {
                self.recent.take_up(way(at, apart, direction), (number, direction));
            }
        }
    }

    /// How many of a session's meters, each way by itself, have a last second that would go along.
    pub(super) fn seconds(&self, session: &Session) -> usize {
        let (base, places) = (session.run.base, 0..session.accounts.len() as u16);
        let ways = places.flat_map(|place| {
            let apart = self.cells.account(base, place).rate.stands_for();
            BOTH.map(|direction| way((base, place), apart, direction))
        });
        ways.filter(|way| self.recent.knows(*way)).count()
    }

    /// A session leaves for another worker, and as many of its meters' last seconds with it as there is room for.
    pub(super) fn carry_seconds_off(&mut self, session: &Session, seconds: &mut [Second]) {
        let base = session.run.base;
        let mut free = seconds.iter_mut();
        let mut next = free.next();
        for place in 0..session.accounts.len() as u16 {
            let apart = self.cells.account(base, place).rate.stands_for();
            for direction in BOTH {
                let Some(second) = &mut next else { return };
                if self.recent.carry_off(way((base, place), apart, direction), second) {
                    second.of = Some((place, direction));
                    next = free.next();
                }
            }
        }
    }

    /// They are here, as the meters are by now.
    pub(super) fn adopt_seconds(&mut self, new: &Installation, seconds: &mut [Second], now_ns: u64) {
        let Some(session) = &new.session else { return };
        for second in seconds {
            let Some((place, direction)) = second.of.take() else { continue };
            let apart = new.accounts.get(usize::from(place)).and_then(|account| account.rate.stands_for());
            self.recent.adopt(way((session.run.base, place), apart, direction), second, now_ns);
        }
    }

    /// The rate of a QER, which is likely at this place.
    pub(super) fn rate_of(&self, session: &Session, qer: QerId, near: usize) -> Option<Rate> {
        let place = find_near(&session.accounts, near, |names| names.qer == Some(qer))?;
        Some(self.cells.account(session.run.base, place as u16).rate)
    }
}
