//! `[n4.timers]`: how long control planes are waited for (TS 29.244 6.4: T1 and N1 are the operator's).

use config::{Refusal, Spanned};
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// `[n4.timers]`, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerSettings {
    /// Until a request is sent again.
    pub(crate) t1: Duration,
    /// How often it is sent.
    pub(crate) n1: u32,
    /// Between two questions whether a control plane is there.
    pub(crate) heartbeat: Duration,
    /// How long answers are kept for requests that come again.
    pub(crate) answers: Duration,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Timers {
    t1_s: Option<Spanned<u32>>,
    n1: Option<Spanned<u32>>,
    heartbeat_s: Option<Spanned<u32>>,
    answers_s: Option<Spanned<u32>>,
}

/// Makes settings of values that are in range.
pub(super) fn check(timers: Timers) -> Result<TimerSettings, Refusal> {
    let seconds = |value, default, range| Ok(Duration::from_secs(within(value, default, range)?.into()));
    Ok(TimerSettings {
        t1: seconds(timers.t1_s, 3, 1..=60)?,
        n1: within(timers.n1, 3, 1..=10)?,
        heartbeat: seconds(timers.heartbeat_s, 10, 1..=3_600)?,
        answers: seconds(timers.answers_s, 30, 1..=600)?,
    })
}

/// The value, or its default.
pub(super) fn within(
    value: Option<Spanned<u32>>,
    default: u32,
    range: RangeInclusive<u32>,
) -> Result<u32, Refusal> {
    match value {
        Some(value) if !range.contains(value.get_ref()) => {
            Err(Refusal::of(&value, format!("this is {} to {}", range.start(), range.end())))
        }
        Some(value) => Ok(value.into_inner()),
        None => Ok(default),
    }
}
