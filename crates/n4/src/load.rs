//! How busy we are, told to control planes that want to know (TS 29.244 6.2.3 and 6.2.4): of the limit of sessions or of
//! tunnel endpoints, whichever is nearer. Each is told what it has not heard yet.

use crate::node::Node;
use machine::Time;
use pfcp::{CpFeature, LoadControlInformation, OverloadControlInformation, flags};
use std::net::IpAddr;
use std::time::Duration;

/// From here on control planes are asked to send fewer requests, percent.
const OVERLOADED: u8 = 90;

/// Percent of requests that a control plane is asked to leave out at most. What is full is tables, and only deletions make
/// room in them: somebody who leaves out everything would keep us full.
const MOST: u8 = 50;

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
        self.overload.set(reduction(percent), now_s);
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

    fn load_percent(&self) -> u8 {
        let of =
            |used: usize, limit: usize| used.saturating_mul(100).checked_div(limit).unwrap_or(100).min(100);
        let limits = self.config.limits;
        let percent = of(self.sessions.len(), limits.sessions).max(of(self.tunnels.len(), limits.tunnels));
        percent as u8
    }
}

/// Percent of requests to leave out: none up to the threshold, [`MOST`] at the limit.
const fn reduction(percent: u8) -> u8 {
    let above = percent.saturating_sub(OVERLOADED);
    (above as u16 * MOST as u16 / (100 - OVERLOADED) as u16) as u8
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
    fn requests_are_reduced_from_the_threshold_to_the_limit() {
        assert_eq!([0, 90, 91, 95, 100].map(reduction), [0, 0, 5, 25, 50]);
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
