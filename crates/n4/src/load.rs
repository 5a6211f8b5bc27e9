//! How full and how busy we are, told to control planes that want to know (TS 29.244 6.2.3 and 6.2.4). Load is how full: of the limit
//! of sessions or of tunnel endpoints, whichever is nearer. Nobody need leave out requests for it: what does not fit is refused by
//! its cause, and deletions make room. Overload is how busy: how long requests wait before we look at them, and for the data plane
//! after that, of T1, after which their senders say them again. Each is told what it has not heard yet.

use crate::interface::Level;
use crate::node::Node;
use machine::Time;
use pfcp::{Cause, CpFeature, LoadControlInformation, OverloadControlInformation, flags};
use std::net::IpAddr;
use std::time::Duration;

/// Overload begins when requests wait for so many percent of T1, and is over when they wait for fewer than [`OVER`]: what is between
/// begins nothing and ends nothing.
const OVERLOADED: u8 = 20;
const OVER: u8 = 10;

/// Percent of requests that a control plane is asked to leave out at most: of one that leaves out everything nobody would
/// ever hear that it is over, and what sessions need to end would not come.
const MOST: u8 = 90;

/// How long they shall do so. They are told anew before it has passed.
const VALID_S: u64 = 60;

/// A figure and its number, which grows whenever the figure changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figure {
    percent: u8,
    sequence: u32,
}

impl Figure {
    /// Numbers grow through restarts, too: none is below the time of day.
    fn set(&mut self, percent: u8, now_s: u32) {
        if self.percent != percent || self.sequence == 0 {
            *self = Self { percent, sequence: now_s.max(self.sequence.wrapping_add(1)) };
        }
    }
}

/// What an answer says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pressure {
    pub(crate) load: Option<LoadControlInformation>,
    pub(crate) overload: Option<OverloadControlInformation>,
}

impl Node {
    /// What the next answer to a peer says of how busy we are.
    pub(crate) fn pressure(&mut self, peer: IpAddr) -> Pressure {
        let now_s = (self.wall_ms() / 1_000) as u32;
        let percent = self.load_percent();
        self.load.set(percent, now_s);
        self.overload.set(self.reduction, now_s);
        let (load, overload, now) = (self.load, self.overload, self.now);
        let mut pressure = Pressure::default();
        for association in self.peers.iter_mut().filter(|association| association.speaks_from(peer)) {
            if association.has(CpFeature::Load) && association.told.load != Some(load.sequence) {
                association.told.load = Some(load.sequence);
                pressure.load = Some(LoadControlInformation {
                    sequence_number: load.sequence,
                    metric: load.percent,
                    carried: vec![],
                });
            }
            if association.has(CpFeature::Ovrl) && is_news(association.told.overload, overload, now) {
                association.told.overload = Some((overload.sequence, now));
                pressure.overload = Some(told(overload));
            }
        }
        pressure
    }

    /// Notes how long a request has waited before it was looked at.
    pub(crate) fn waited(&mut self, waited: Duration) {
        let waited = waited + self.awaits_for();
        let percent = waited.as_millis() * 100 / self.config.t1.as_millis().max(1);
        let before = self.reduction;
        self.reduction = reduction(before, percent.min(100) as u8);
        match (before, self.reduction) {
            (0, 1..) => {
                self.note(Level::Warning, format!("overloaded: requests wait for {} ms", waited.as_millis()))
            }
            (1.., 0) => self.note(Level::Info, "no longer overloaded".to_owned()),
            _ => {}
        }
    }

    /// How long the oldest order that the data plane has not confirmed has waited for its word.
    fn awaits_for(&mut self) -> Duration {
        while let Some((deadline, seid, revision)) = self.deadlines.front().copied() {
            if self.sessions.awaits(seid, revision) {
                let left = deadline - self.now;
                return self.config.apply_timeout.saturating_sub(left);
            }
            self.deadlines.pop_front();
        }
        Duration::ZERO
    }

    /// What a request is refused by that the data plane was late for: one that goes on confirming others has too much to do.
    pub(crate) fn cause_of_lateness(&self) -> Cause {
        let lately = |confirmed: Time| confirmed + self.config.apply_timeout > self.now;
        match self.confirmed.is_some_and(lately) {
            true => Cause::PfcpEntityInCongestion,
            false => Cause::SystemFailure,
        }
    }

    fn load_percent(&self) -> u8 {
        let of =
            |used: usize, limit: usize| used.saturating_mul(100).checked_div(limit).unwrap_or(100).min(100);
        let limits = self.config.limits;
        let percent = of(self.sessions.len(), limits.sessions).max(of(self.tunnels.len(), limits.tunnels));
        percent as u8
    }
}

/// Percent of requests to leave out where so many were before, and requests wait for `percent` of T1: as many, in steps of
/// ten, so that not every request is told another figure.
const fn reduction(before: u8, percent: u8) -> u8 {
    let least = if before == 0 { OVERLOADED } else { OVER };
    match percent / 10 * 10 {
        _ if percent < least => 0,
        steps if steps > MOST => MOST,
        steps => steps,
    }
}

/// Overload is told of when it begins, changes, ends, or would be forgotten.
fn is_news(told: Option<(u32, Time)>, overload: Figure, now: Time) -> bool {
    match told {
        None => overload.percent > 0,
        Some((sequence, _)) if sequence != overload.sequence => true,
        Some((_, at)) => overload.percent > 0 && now >= at + Duration::from_secs(VALID_S / 2),
    }
}

const fn told(overload: Figure) -> OverloadControlInformation {
    OverloadControlInformation {
        sequence_number: overload.sequence,
        reduction_metric: overload.percent,
        period_of_validity: flags::timer(Some(VALID_S)),
        flags: Some(flags::OCI_AOCI),
        carried: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_begins_later_than_it_ends_and_never_asks_for_silence() {
        assert_eq!(
            [0, 10, 19, 20, 35, 99, 100].map(|percent| reduction(0, percent)),
            [0, 0, 0, 20, 30, 90, 90]
        );
        assert_eq!([100, 25, 15, 10, 9, 0].map(|percent| reduction(20, percent)), [90, 20, 10, 10, 0, 0]);
    }

    #[test]
    fn numbers_grow_with_every_change_and_with_nothing_else() {
        let mut figure = Figure::default();
        figure.set(0, 100);
        assert_eq!(figure, Figure { percent: 0, sequence: 100 });
        figure.set(0, 200);
        assert_eq!(figure.sequence, 100);
        figure.set(1, 50);
        assert_eq!(figure.sequence, 101);
    }
}
