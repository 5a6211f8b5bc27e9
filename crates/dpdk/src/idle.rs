//! What a worker does while no packet waits: look again, rest a little, or sleep.

use crate::{sys, tsc};
use std::time::Duration;

/// Turns without a packet before a worker rests: until then more packets are likely.
const PATIENCE: u32 = 256;
/// Looks between two times the clock is asked, where only this CPU's short pause is to be had.
const PAUSES: u32 = 16;
/// A rest is doubled until it is as long as allowed; the first is this long.
const FIRST: Duration = Duration::from_micros(1);

/// What an idle worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Looks again at once: lowest latency, and a CPU that never rests.
    #[default]
    Poll,
    /// Rests in a light sleep of the CPU (WAITPKG or its like, through `rte_power_pause`); where there is none, in short
    /// pauses, which leave a sibling thread of the core more of it.
    Pause,
    /// Sleeps, and leaves the CPU to others.
    Sleep,
}

/// Whether this CPU has a light sleep, or why not.
///
/// # Errors
/// A sentence for people.
pub fn light_sleep() -> Result<(), &'static str> {
    // SAFETY: reads what the CPU says of itself.
    match unsafe { sys::anchorline_can_pause() } {
        0 => Err("not available here, because this CPU has no WAITPKG (or its hypervisor hides it)"),
        _ => Ok(()),
    }
}

/// An idle worker's patience. It belongs to the worker's thread.
#[derive(Clone, Debug)]
pub struct Backoff {
    idle: Idle,
    /// The longest rest, in cycles and as a time.
    longest: Duration,
    tsc_hz: u64,
    light_sleep: bool,
    turns: u32,
    rest: Duration,
}

impl Backoff {
    /// No rest is longer than `longest`, give or take what the kernel adds to a sleep; `tsc_hz` cycles make a second.
    pub fn new(idle: Idle, longest: Duration, tsc_hz: u64) -> Self {
        let light_sleep = light_sleep().is_ok();
        Self { idle, longest, tsc_hz, light_sleep, turns: 0, rest: FIRST.min(longest) }
    }

    /// After each turn: rests, if there was nothing to do for a while, neither packets nor orders. Behind an order more may wait, so
    /// there is no rest right after one; but only packets make rests short again: an order can wait for one, and where orders are all
    /// there is to do, rests that begin anew with each cost more of the CPU than what was ordered.
    #[inline]
    pub fn turn(&mut self, packets: usize, orders: usize) {
        if self.idle == Idle::Poll {
            return;
        }
        if packets > 0 {
            (self.turns, self.rest) = (0, FIRST.min(self.longest));
            return;
        }
        if orders > 0 {
            return;
        }
        self.turns = self.turns.saturating_add(1);
        if self.turns > PATIENCE {
            self.rest();
        }
    }

    /// The next rest; each is twice as long as the one before, up to the longest.
    fn rest(&mut self) {
        let rest = self.rest;
        self.rest = (rest * 2).min(self.longest);
        match self.idle {
            Idle::Sleep => std::thread::sleep(rest),
            _ => self.pause_for(rest),
        }
    }

    fn pause_for(&self, rest: Duration) {
        let until = tsc().wrapping_add((rest.as_secs_f64() * self.tsc_hz as f64) as u64);
        if self.light_sleep {
            // SAFETY: the CPU has it, as it was asked; it ends by itself, at the latest then.
            unsafe { sys::anchorline_pause_until(until) };
            return;
        }
        while tsc() < until {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }
}

/// Makes the kernel wake the calling thread when its sleep ends, and not up to 50 microseconds later, as it does to
/// gather timers. Where the kernel refuses, sleeps are that much longer.
pub fn wake_on_time() {
    // SAFETY: changes a number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn rests_grow_to_the_longest_and_a_packet_ends_them() {
        let longest = Duration::from_micros(50);
        for idle in [Idle::Pause, Idle::Sleep] {
            let mut backoff = Backoff::new(idle, longest, 1_000_000_000);
            (0..PATIENCE).for_each(|_| backoff.turn(0, 0));
            assert_eq!(backoff.rest, FIRST, "it has not rested yet");
            (0..10).for_each(|_| backoff.turn(0, 0));
            assert_eq!(backoff.rest, longest);
            backoff.turn(1, 0);
            assert_eq!((backoff.turns, backoff.rest), (0, FIRST));
        }
    }

    #[test]
    fn nobody_rests_upon_an_order_and_the_next_rest_is_as_long_as_it_was() {
        let longest = Duration::from_millis(20);
        for idle in [Idle::Pause, Idle::Sleep] {
            let mut backoff = Backoff::new(idle, longest, 1_000_000_000);
            (0..PATIENCE + 16).for_each(|_| backoff.turn(0, 0));
            let (start, turns) = (Instant::now(), backoff.turns);
            (0..100).for_each(|_| backoff.turn(0, 1));
            assert!(start.elapsed() < longest);
            assert_eq!((backoff.turns, backoff.rest), (turns, longest));
        }
    }

    #[test]
    fn orders_wait_no_longer_where_packets_come() {
        let mut backoff = Backoff::new(Idle::Sleep, Duration::from_secs(9), 1_000_000_000);
        let start = Instant::now();
        for _ in 0..10 * PATIENCE {
            backoff.turn(1, 1);
            backoff.turn(0, 1);
            backoff.turn(0, 0);
        }
        assert!(start.elapsed() < Duration::from_secs(9));
        assert_eq!(backoff.rest, FIRST);
    }

    #[test]
    fn who_polls_never_rests() {
        let mut backoff = Backoff::new(Idle::Poll, Duration::from_secs(9), 1_000_000_000);
        let start = Instant::now();
        (0..10 * PATIENCE).for_each(|_| backoff.turn(0, 0));
        assert!(start.elapsed() < Duration::from_secs(9));
        assert_eq!(backoff.turns, 0);
    }
}
