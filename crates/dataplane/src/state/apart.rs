//! Meters that few QERs need, apart from the sessions: those that several sessions share, and those that count packets
//! (TS 29.244 5.4.4 and 8.2.64). Packets that meet none of them do not touch this.

use super::account::Rate;
use super::table::Table;
use rules::{Direction, Meter, PacketRate};

const SECOND_NS: u64 = 1_000_000_000;

/// Packets in a time, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    limit: Option<PacketRate>,
    /// When the window ends; later, another begins with the next packet.
    end_ns: u64,
    used: u16,
}

impl Window {
    const fn new(limit: Option<PacketRate>) -> Self {
        Self { limit, end_ns: 0, used: 0 }
    }

    fn admits(&self, now_ns: u64) -> bool {
        let Some(limit) = self.limit else { return true };
        limit.packets > 0 && (now_ns >= self.end_ns || self.used < limit.packets)
    }

    fn charge(&mut self, now_ns: u64) {
        let Some(limit) = self.limit else { return };
        if now_ns >= self.end_ns {
            (self.end_ns, self.used) = (now_ns.saturating_add(length_ns(limit)), 0);
        }
        self.used = self.used.saturating_add(1);
    }

    /// With the limit of another: it ends no later than one of that limit that began now, and without a limit nothing is
    /// remembered.
    fn limited_as(self, other: &Self, now_ns: u64) -> Self {
        let Some(limit) = other.limit else { return *other };
        let latest_ns = now_ns.saturating_add(length_ns(limit));
        Self { limit: other.limit, end_ns: self.end_ns.min(latest_ns), ..self }
    }
}

fn length_ns(limit: PacketRate) -> u64 {
    u64::from(limit.window_s).saturating_mul(SECOND_NS)
}

/// A meter apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apart {
    /// Meters of one number are one.
    number: Option<u64>,
    rate: Rate,
    /// By [`Direction`].
    windows: [Window; 2],
}

impl Apart {
    /// `None` for a meter that belongs into its session's account.
    pub(crate) fn new(meter: &Meter) -> Option<Self> {
        let rates = meter.packet_rates;
        let is_apart = meter.correlation.is_some() || !rates.is_none();
        is_apart.then(|| Self {
            number: meter.correlation,
            rate: meter.mbr.map_or(Rate::ZERO, Rate::new),
            windows: [rates.uplink, rates.downlink].map(Window::new),
        })
    }

    /// Whether one more packet may pass now, whatever its size.
    pub(crate) fn admits_packets(&self, direction: Direction, now_ns: u64) -> bool {
        self.windows[direction as usize].admits(now_ns)
    }

    /// A packet passes.
    pub(crate) fn charge(&mut self, direction: Direction, now_ns: u64, bytes: u32) {
        self.rate.way_mut(direction).charge(now_ns, bytes);
        self.windows[direction as usize].charge(now_ns);
    }

    /// The limit of bits, if there is one.
    pub(crate) fn rate(&self) -> &Rate {
        &self.rate
    }

    /// Takes over the limits of another, not what it has seen.
    fn limit_as(&mut self, other: &Self, now_ns: u64) {
        let before = std::mem::replace(&mut self.rate, other.rate);
        self.rate.carry(&before, now_ns);
        for (window, other) in self.windows.iter_mut().zip(&other.windows) {
            *window = window.limited_as(other, now_ns);
        }
    }

    /// Goes on where the session's own meter of the same QER stood, which was in its account.
    pub(crate) fn carry(mut self, old: &Rate, now_ns: u64) -> Self {
        if self.number.is_none() {
            self.rate.carry(old, now_ns);
        }
        self
    }

    /// The rate of a meter that is nobody else's.
    pub(crate) fn own_rate(&self) -> Option<&Rate> {
        self.number.is_none().then_some(&self.rate)
    }
}

/// All meters apart of a worker.
pub(crate) struct Aparts {
    /// With how many sessions use each.
    meters: Vec<(Apart, u32)>,
    free: Vec<u32>,
    by_number: Table,
    limit: usize,
}

impl Aparts {
    /// Room for so many.
    pub(crate) fn new(limit: usize) -> Self {
        let (meters, free) = (Vec::with_capacity(limit), Vec::with_capacity(limit));
        Self { meters, free, by_number: Table::new(limit), limit }
    }

    /// Whether a meter takes room that is not taken: one of a number that nobody has, or one of a session's own that has none
    /// yet, `before`.
    pub(crate) fn is_new(&self, apart: &Apart, before: Option<u32>) -> bool {
        self.known(apart, before).is_none()
    }

    fn known(&self, apart: &Apart, before: Option<u32>) -> Option<u32> {
        match apart.number {
            Some(number) => self.by_number.get(number),
            None => before.filter(|at| self.at(*at).is_some_and(|old| old.number.is_none())),
        }
    }

    /// Meters that can still be taken in.
    pub(crate) fn room(&self) -> usize {
        self.limit - (self.meters.len() - self.free.len())
    }

    /// How many sessions use a meter.
    pub(crate) fn users(&self, at: u32) -> u32 {
        self.meters.get(at as usize).map_or(0, |(_, users)| *users)
    }

    /// One more session uses a meter: one of the same number, `before` where that is the session's own, or a new one.
    /// What was seen stays, the limits are those of `apart`. Room was made sure of.
    pub(crate) fn enter(&mut self, apart: Apart, before: Option<u32>, now_ns: u64) -> u32 {
        if let Some(at) = self.known(&apart, before)
            && let Some((meter, users)) = self.meters.get_mut(at as usize)
        {
            meter.limit_as(&apart, now_ns);
            *users += 1;
            return at;
        }
        let at = self.free.pop().unwrap_or(self.meters.len() as u32);
        match self.meters.get_mut(at as usize) {
            Some(slot) => *slot = (apart, 1),
            None => self.meters.push((apart, 1)),
        }
        if let Some(number) = apart.number {
            let inserted = self.by_number.insert(number, at);
            debug_assert!(inserted.is_ok(), "there are as many places as numbers");
        }
        at
    }

    /// One session less uses a meter; whether it was the last.
    pub(crate) fn leave(&mut self, at: u32) -> bool {
        let Some((meter, users)) = self.meters.get_mut(at as usize) else { return false };
        *users -= 1;
        if *users == 0 {
            meter.number.into_iter().for_each(|number| {
                self.by_number.remove(number);
            });
            self.free.push(at);
        }
        *users == 0
    }

    /// The meter at a place.
    pub(crate) fn at(&self, at: u32) -> Option<&Apart> {
        self.meters.get(at as usize).map(|(meter, _)| meter)
    }

    /// The meter at a place.
    pub(crate) fn at_mut(&mut self, at: u32) -> Option<&mut Apart> {
        self.meters.get_mut(at as usize).map(|(meter, _)| meter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::{PacketRates, QerId};

    fn apart(number: Option<u64>, packets: u16) -> Apart {
        let uplink = Some(PacketRate { packets, window_s: 60 });
        let packet_rates = PacketRates { uplink, downlink: None };
        Apart::new(&Meter { qer: QerId(1), mbr: None, packet_rates, correlation: number }).unwrap()
    }

    fn passed(meter: &mut Apart, seconds: std::ops::Range<u64>) -> usize {
        let pass = |second: &u64| {
            let admitted = meter.admits_packets(Direction::Uplink, second * SECOND_NS);
            admitted.then(|| meter.charge(Direction::Uplink, second * SECOND_NS, 100)).is_some()
        };
        seconds.filter(pass).count()
    }

    #[test]
    fn a_window_begins_with_a_packet_and_takes_so_many() {
        let mut meter = apart(None, 3);
        assert_eq!(passed(&mut meter, 7..67), 3);
        assert_eq!(passed(&mut meter, 67..127), 3);
        assert!((0..9).all(|_| meter.admits_packets(Direction::Downlink, 0)));
        assert_eq!(passed(&mut apart(None, 0), 0..500), 0);
    }

    #[test]
    fn what_is_used_together_lives_as_long_as_anybody_uses_it() {
        let mut all = Aparts::new(2);
        let first = all.enter(apart(Some(9), 3), None, 0);
        assert_eq!(passed(all.at_mut(first).unwrap(), 0..10), 3);
        // Another session joins with another limit; the first one leaves.
        assert_eq!(all.enter(apart(Some(9), 5), None, 0), first);
        all.leave(first);
        assert_eq!(passed(all.at_mut(first).unwrap(), 10..20), 2);
        all.leave(first);
        let next = all.enter(apart(Some(9), 3), None, 0);
        assert_eq!(passed(all.at_mut(next).unwrap(), 20..30), 3);
    }

    #[test]
    fn a_meter_of_ones_own_goes_on_after_a_change() {
        let mut all = Aparts::new(2);
        let own = all.enter(apart(None, 3), None, 0);
        assert_eq!(passed(all.at_mut(own).unwrap(), 0..10), 3);
        assert_eq!(all.enter(apart(None, 4), Some(own), 0), own);
        all.leave(own);
        assert_eq!(passed(all.at_mut(own).unwrap(), 10..20), 1);
        assert_ne!(all.enter(apart(Some(1), 4), Some(own), 0), own, "what is shared is nobody's own");
    }

    #[test]
    fn room_is_counted_without_what_is_there() {
        let mut all = Aparts::new(2);
        let known = apart(Some(1), 3);
        all.enter(known, None, 0);
        let own = all.enter(apart(None, 1), None, 0);
        assert_eq!(all.room(), 0);
        let is_new = |number, before| all.is_new(&apart(number, 1), before);
        assert!(!is_new(Some(1), None) && !is_new(None, Some(own)));
        assert!(is_new(Some(2), None) && is_new(None, None) && is_new(Some(2), Some(own)));
    }
}
