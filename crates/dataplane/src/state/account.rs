//! What a session has used and may still use, as the packet path writes it: one cache line holds one QER's rate and one
//! URR's counts.

use rules::{BitRates, Direction};

/// Parts of a nanosecond in which meters reckon, so that fast rates stay exact.
const PARTS: u64 = 256;
/// Bits of a cost behind the point.
const FRACTION: u32 = 24;
/// What an octet costs at 1 kbit/s: 8 bits an octet, 1,000,000 ns a ms.
const COST_AT_1_KBPS: u64 = (8_000_000 * PARTS) << FRACTION;
/// The cost of what stands for a meter apart.
const APART: u64 = u64::MAX;

/// A time, as meters reckon it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    /// Both in [`PARTS`] of a nanosecond.
    now: u64,
    /// How far a packet may be put off and still pass.
    latest: u64,
}

impl Moment {
    /// Packets may be `burst_ns` ahead of their rate.
    pub(crate) const fn new(now_ns: u64, burst_ns: u64) -> Self {
        let latest = now_ns.saturating_add(burst_ns).saturating_mul(PARTS);
        Self { now: now_ns.saturating_mul(PARTS), latest }
    }
}

/// A rate limit each way: the generic cell rate algorithm (ITU-T I.371), which needs one number a direction, the time
/// at which the packets so far would have left at the rate allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rate {
    /// By [`Direction`], in [`PARTS`] of a nanosecond.
    due: [u64; 2],
    /// By [`Direction`], of an octet, in [`PARTS`] of a nanosecond, with [`FRACTION`] bits behind the point; 0 without a
    /// limit.
    cost: [u64; 2],
}

impl Rate {
    /// No limit, nothing used.
    pub(crate) const ZERO: Self = Self { due: [0; 2], cost: [0; 2] };

    /// Nothing used yet.
    pub(crate) fn new(limit: BitRates) -> Self {
        let cost = |kbps: u64| COST_AT_1_KBPS.checked_div(kbps).map_or(0, |cost| cost.max(1));
        Self { due: [0; 2], cost: [cost(limit.uplink_kbps), cost(limit.downlink_kbps)] }
    }

    /// Stands for a meter apart, by its place.
    pub(crate) const fn apart(at: u32) -> Self {
        Self { due: [at as u64, 0], cost: [APART; 2] }
    }

    /// The place of the meter apart that it stands for.
    pub(crate) const fn stands_for(&self) -> Option<u32> {
        if self.cost[0] == APART { Some(self.due[0] as u32) } else { None }
    }

    /// The limit of a direction; `None` without one.
    pub(crate) fn limit_kbps(&self, direction: Direction) -> Option<u64> {
        match self.cost[direction as usize] {
            0 => None,
            // To the nearest.
            cost => Some((COST_AT_1_KBPS + cost / 2) / cost),
        }
    }

    /// Goes on where `old` stood: a modification grants nobody a burst. What is to be waited for is shorter at a higher rate, and
    /// over where there is none: it was reckoned at the old one. What stands for a meter apart is left alone.
    pub(crate) fn carry(&mut self, old: &Self, now_ns: u64) {
        if self.stands_for().is_none() && old.stands_for().is_none() {
            self.due = [Direction::Uplink, Direction::Downlink].map(|way| self.due_after(old, way, now_ns));
        }
    }

    fn due_after(&self, old: &Self, way: Direction, now_ns: u64) -> u64 {
        let (due, now) = (old.due[way as usize], now_ns.saturating_mul(PARTS));
        let Some(ahead) = due.checked_sub(now) else { return due };
        match (old.limit_kbps(way), self.limit_kbps(way)) {
            (_, None) => now,
            (Some(before), Some(limit)) if limit > before => {
                now + (u128::from(ahead) * u128::from(before) / u128::from(limit)) as u64
            }
            _ => due,
        }
    }

    /// Whether a packet may pass now, `burst_ns` ahead of the rate at most.
    #[inline]
    pub(crate) fn admits(&self, direction: Direction, now_ns: u64, burst_ns: u64) -> bool {
        // Where there is no limit any more, what the last one put off is no matter.
        self.cost[direction as usize] == 0
            || self.due[direction as usize] <= Moment::new(now_ns, burst_ns).latest
    }

    /// A packet passes.
    #[inline]
    pub(crate) fn charge(&mut self, direction: Direction, now_ns: u64, bytes: u32) {
        self.put_off(direction, Moment::new(now_ns, 0), bytes);
    }

    /// [`Rate::admits`] and [`Rate::charge`] in one, of a packet that nothing else holds up.
    #[inline(always)]
    pub(crate) fn take(&mut self, direction: Direction, moment: Moment, bytes: u32) -> bool {
        let admits = self.due[direction as usize] <= moment.latest || self.cost[direction as usize] == 0;
        if admits {
            self.put_off(direction, moment, bytes);
        }
        admits
    }

    #[inline(always)]
    fn put_off(&mut self, direction: Direction, moment: Moment, bytes: u32) {
        let cost = ((u128::from(bytes) * u128::from(self.cost[direction as usize])) >> FRACTION) as u64;
        let due = &mut self.due[direction as usize];
        *due = (*due).max(moment.now).saturating_add(cost);
    }
}

/// What was counted. Packets are folded into wider counts before they run over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// By [`Direction`].
    pub(crate) bytes: [u64; 2],
    /// By [`Direction`], since they were folded last.
    pub(crate) packets: [u32; 2],
    /// Bytes until thresholds, quotas and folding must be looked at.
    pub(crate) left: u32,
    /// When the last packet came, in units of 2^[`Count::TICK_SHIFT`] ns.
    pub(crate) last: u32,
}

impl Count {
    /// Nothing counted yet, and the first packet is to be looked at.
    pub(crate) const ZERO: Self = Self { bytes: [0; 2], packets: [0; 2], left: 0, last: 0 };

    /// Unit of [`Count::last`]: about a millisecond; it runs over after 52 days.
    pub(crate) const TICK_SHIFT: u32 = 20;

    /// Counts packets at once, as [`Count::add`] counts one.
    pub(crate) fn add_all(
        &mut self,
        direction: Direction,
        (packets, bytes): (u32, u32),
        now_ns: u64,
    ) -> bool {
        let added = self.add(direction, bytes, now_ns);
        if added {
            self.packets[direction as usize] += packets.saturating_sub(1);
        }
        added
    }

    /// Counts a packet; false, and nothing counted, where it must be looked at first.
    #[inline]
    pub(crate) fn add(&mut self, direction: Direction, bytes: u32, now_ns: u64) -> bool {
        let Some(left) = self.left.checked_sub(bytes) else { return false };
        self.left = left;
        self.bytes[direction as usize] += u64::from(bytes);
        self.packets[direction as usize] += 1;
        self.last = (now_ns >> Self::TICK_SHIFT) as u32;
        true
    }
}

/// One cache line of a session that packets write to.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Account {
    pub(crate) rate: Rate,
    pub(crate) count: Count,
}

const _: () = assert!(size_of::<Account>() == 64, "one cache line an account");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_nothing_limits_nothing_in_its_direction() {
        let slow = Rate::new(BitRates { uplink_kbps: 8, downlink_kbps: 8 });
        let mut rate = Rate::new(BitRates { uplink_kbps: 0, downlink_kbps: 8 });
        let mut before = slow;
        before.charge(Direction::Uplink, 1, 1_500);
        rate.carry(&before, 1);
        for direction in [Direction::Uplink, Direction::Downlink] {
            for _ in 0..10 {
                rate.charge(direction, 1, 1_500);
            }
        }
        assert!(rate.admits(Direction::Uplink, 1, 0) && !rate.admits(Direction::Downlink, 1, 0));
        assert_eq!(
            (rate.limit_kbps(Direction::Uplink), rate.limit_kbps(Direction::Downlink)),
            (None, Some(8))
        );
    }

    #[test]
    fn a_packet_is_taken_as_it_is_admitted_and_charged() {
        for kbps in [0, 1, 100, u64::MAX / COST_AT_1_KBPS] {
            let mut one = Rate::new(BitRates { uplink_kbps: kbps, downlink_kbps: 7 });
            let mut two = one;
            for step in 0..1_000 {
                let (now_ns, bytes) = (step * step * 1_003, 40 + step as u32);
                let admits = one.admits(Direction::Uplink, now_ns, 5_000_000);
                if admits {
                    one.charge(Direction::Uplink, now_ns, bytes);
                }
                let taken = two.take(Direction::Uplink, Moment::new(now_ns, 5_000_000), bytes);
                assert_eq!((taken, one), (admits, two), "{kbps} kbit/s, packet {step}");
            }
        }
    }

    #[test]
    fn a_higher_rate_is_in_force_at_once() {
        const S: u64 = 1_000_000_000;
        let both = |kbps| Rate::new(BitRates { uplink_kbps: kbps, downlink_kbps: kbps });
        let mut slow = both(1);
        // 12 seconds at 1 kbit/s.
        slow.charge(Direction::Uplink, 0, 1_500);
        assert!(!slow.admits(Direction::Uplink, 11 * S, 0) && slow.admits(Direction::Uplink, 12 * S, 0));
        let mut fast = both(1_000);
        fast.carry(&slow, 2 * S);
        // The 10 seconds that were left are 10 ms.
        assert!(!fast.admits(Direction::Uplink, 2 * S + 9_000_000, 0));
        assert!(fast.admits(Direction::Uplink, 2 * S + 10_000_000, 0));
        // A lower one makes nobody wait for what has passed.
        let mut again = both(1);
        again.carry(&fast, 2 * S);
        assert!(again.admits(Direction::Uplink, 2 * S + 10_000_000, 0));
        // What had no limit for a time begins anew.
        let mut free = both(0);
        free.carry(&slow, 2 * S);
        let mut limited = both(1);
        limited.carry(&free, 3 * S);
        assert!(limited.admits(Direction::Uplink, 3 * S, 0));
    }
}
