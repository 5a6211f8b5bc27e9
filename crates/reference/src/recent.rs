//! What a meter let pass within the last second, from the first packet on that was too far ahead of its rate. Such a packet passes
//! all the same while what passed within the second before it and half of what it is ahead are no more than a second's worth.
//!
//! How much had passed is written down when a packet is beyond its rate, so what is known of times between is a bound. Which one
//! is fixed here, as the data plane must decide alike.

use crate::meters::{UNITS_PER_NS, cost, octet};

const SECOND_NS: u64 = 1_000_000_000;
/// Time between notes; one more may stand between two that are so far from each other.
const APART_NS: u64 = SECOND_NS / 32;
/// Bytes in a second beyond which nothing is caught up.
const SECOND_MAX: u64 = 1 << 30;

/// Bytes since a silence from which on nobody knows how many there were.
const COUNTED_MAX: u64 = 1 << 31;

/// What one meter passed one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    /// Bytes so far.
    passed: i128,
    /// Of these, those since nothing had passed for a second.
    since_silence: u64,
    /// When somebody looked, and what had passed at most by then, since the meter was there; below 0, what may have before.
    notes: Vec<(u64, i128)>,
    /// The limit by which the notes were made.
    kbps: u64,
}

impl Recent {
    /// Bytes pass, and those before them would have left so many units of 1/256 ns ago.
    pub(crate) const fn charge(&mut self, bytes: u64, idle: u64) {
        if idle >= SECOND_NS * UNITS_PER_NS {
            self.since_silence = 0;
        }
        self.since_silence += bytes;
        self.passed += bytes as i128;
    }

    /// Whether something of the last second's worth is left, where the meter is so far ahead, in units of 1/256 ns.
    pub(crate) fn has_left(&mut self, kbps: u64, ahead: u64, now_ns: u64) -> bool {
        if cost(SECOND_MAX, kbps) < SECOND_NS * UNITS_PER_NS {
            return false;
        }
        // Clocks begin with the data plane: nothing passed in the second before.
        let now_ns = now_ns + SECOND_NS;
        let is_old = self.notes.last().is_none_or(|(at, _)| now_ns - at >= SECOND_NS);
        if is_old || self.kbps != kbps {
            (self.notes, self.kbps) = (vec![], kbps);
        }
        self.note(ahead, now_ns);
        let second_ago = self.notes.iter().rev().find(|(at, _)| at + SECOND_NS <= now_ns);
        second_ago.is_some_and(|(_, passed)| {
            let units = cost((self.passed - passed) as u64, kbps);
            units + ahead / 2 <= SECOND_NS * UNITS_PER_NS
        })
    }

    fn note(&mut self, ahead: u64, now_ns: u64) {
        let is_near = |(at, _): &(u64, i128)| now_ns - at < APART_NS;
        match &self.notes[..] {
            [.., last] if last.0 == now_ns => return,
            [.., first, _] if is_near(first) => _ = self.notes.pop(),
            [.., last] if is_near(last) => {}
            _ => self.fill(ahead, now_ns),
        }
        self.notes.push((now_ns, self.passed));
    }

    /// Nobody has looked for a while: what has passed since, passed as late as it can have, and was no more than since the last silence
    /// of a second.
    fn fill(&mut self, ahead: u64, now_ns: u64) {
        let last = self.notes.last().copied();
        let (part, ahead) =
            (bytes_in(APART_NS * UNITS_PER_NS, self.kbps) + 1, bytes_in(ahead, self.kbps) + 1);
        for parts in (1..=32_u64).rev() {
            let at = now_ns - parts * APART_NS;
            let at_most = (u128::from(parts) * part + ahead).min(u128::from(2 * SECOND_MAX)) as i128;
            match last {
                Some((before, _)) if at <= before => {}
                Some((_, passed)) => self.notes.push((at, self.passed - at_most.min(self.passed - passed))),
                None if self.since_silence >= COUNTED_MAX => self.notes.push((at, self.passed - at_most)),
                None => self.notes.push((at, self.passed - at_most.min(self.since_silence.into()))),
            }
        }
    }
}

/// Whole bytes that a rate lets pass in a time.
fn bytes_in(units: u64, kbps: u64) -> u128 {
    let (times, over) = octet(kbps);
    u128::from(units) * over / times
}
