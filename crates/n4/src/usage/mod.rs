//! What sessions use and what control planes hear of it (TS 29.244 5.2.2): a machine of plain values. The moments it
//! is given are milliseconds since 1900.
//!
//! | file | what it is about |
//! |---|---|
//! | `account` | what the data plane told, and time that passed |
//! | `due` | which triggers have come, what must be looked up, and when to look again |
//! | `events` | uses of a service, which are counted and told with their times |
//! | `further` | reports for which an answer has no room |
//! | `macs` | MAC addresses of Ethernet PDU sessions |
//! | `monitoring` | monitoring times, and the thresholds and quotas in force |
//! | `plan` | a session's next step: look, ask, report, wait |
//! | `starts` | applications whose traffic has started or stopped |
//! | `tell` | the reports themselves |
//! | `apply` | what a modification gives and takes |
//! | `wanted` | the rules the data plane gets so that all this comes true |
//!
//! Of every URR it is known what was counted since it was created (over all lives of the data plane) and what of that
//! reports have told. A report tells the difference and, in the same breath, counts it as told: so whatever happens,
//! all reports together tell what was counted, once. The session's record is saved with a report in it before that
//! report is sent, and without it when the control plane has confirmed it. A process that dies in between sends the
//! report again, under the same UR-SEQN.

mod account;
mod apply;
mod due;
mod events;
mod further;
mod macs;
mod monitoring;
mod plan;
mod starts;
mod tell;
mod wanted;

pub(crate) use account::{
    begin_anew, engines, has_counted, hear, hear_former, hear_last, hear_spent, new_epoch,
};
pub(crate) use apply::{Given, apply, beginning, parted, removed};
pub(crate) use further::{MOST_FURTHER, information, split, split_answer};
pub(crate) use macs::hear_macs;
pub(crate) use plan::{Circumstances, Meter, Step, linked};
pub(crate) use starts::{hear_start, telling_starts};
pub(crate) use tell::{Asked, tell_all, tell_asked};
pub(crate) use wanted::wanted;

use machine::Clock;
use rules::UrrId;

/// A URR of our own, put on every PDR of a session whose silence the control plane wants to know. Control planes
/// leave the highest bit 0 (TS 29.244 8.2.54).
pub(crate) const SILENCE: UrrId = UrrId(u32::MAX);

/// Seconds as milliseconds.
fn ms(seconds: u32) -> u64 {
    u64::from(seconds) * 1_000
}

/// The time of day of a moment as PFCP tells it: seconds since 1900, of which 32 bits, which begin anew in 2036.
const fn ntp(moment_ms: u64, clock: Clock) -> u32 {
    (clock.time_of_day(moment_ms) / 1_000) as u32
}

/// The moment of a time of day in seconds since 1900: of those 136 years apart, the one nearest to now.
fn moment(time: u32, clock: Clock) -> u64 {
    let ahead = time.wrapping_sub(ntp(clock.now_ms, clock)) as i32;
    let now_s = clock.time_of_day(clock.now_ms) / 1_000;
    clock.moment(now_s.saturating_add_signed(i64::from(ahead)).saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_found_across_2036() {
        let before = (1u64 << 32) - 5;
        let [early, late] = [before, (1 << 32) + 9].map(|now_s| Clock::at(now_s * 1_000));
        assert_eq!(moment(3, early), ((1 << 32) + 3) * 1_000);
        assert_eq!(moment(ntp(before * 1_000, early), late), before * 1_000);
    }
}
