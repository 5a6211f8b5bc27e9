//! A measurement whose parameters make sense.

use anyhow::bail;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use traffic::Profile;

/// Most sessions of a measurement.
pub(crate) const SESSIONS_MAX: u32 = 2_000_000;
/// Most flows of a measurement.
pub(crate) const FLOWS_MAX: u32 = 16_000_000;
/// Most trials of a measurement.
pub(crate) const TRIALS_MAX: u32 = 100;

/// Memory a session takes at most on both sides of a worker, besides its PDRs; measured, with room to spare.
const SESSION_BYTES: u64 = 1_024;
/// Memory a PDR takes at most, as a control plane states it and as a worker runs it.
const PDR_BYTES: u64 = 320;
/// Memory a flow takes at most: a line of the yardstick, and an entry of the product.
const FLOW_BYTES: u64 = 256;
/// Memory of everything whose size does not depend on the parameters.
const BASE_BYTES: u64 = 768 << 20;
/// Memory of the packets of one more size that is measured in turns with others.
const PACKETS_BYTES: u64 = 320 << 20;

/// What a measurement keeps at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Engines with all sessions.
    pub(crate) engines: u64,
    /// Sizes that are measured in turns, each with all flows and with packets of its own.
    pub(crate) sizes: u64,
}

impl Kept {
    /// All of these sizes, of which the last is the plan's.
    pub(crate) fn in_turns(sizes: &[u32]) -> Self {
        let all: u64 = sizes.iter().copied().map(u64::from).sum();
        let last = sizes.last().copied().map_or(1, u64::from);
        Self { engines: all.div_ceil(last.max(1)), sizes: sizes.len() as u64 }
    }
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// From the users.
    Up,
    /// To the users.
    Down,
    /// As the profile mixes them.
    Both,
}

/// What is measured, how long and from which seed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Subscribers, active users and flows are those of this measurement.
    pub(crate) profile: Profile,
    pub(crate) direction: Direction,
    /// PDRs of a session.
    pub(crate) pdrs: u32,
    /// Content rules; of `rules` and `services`, the most.
    pub(crate) rules: u32,
    /// `pfcp` establishes all sessions, however long it takes: their number was given.
    pub(crate) every_session: bool,
    /// Whether the PDRs beyond the first two are for services.
    pub(crate) services: bool,
    /// Of all trials together.
    pub(crate) duration: Duration,
    pub(crate) trials: u32,
    pub(crate) seed: u64,
}

impl Plan {
    /// With so many sessions, all of them active, each with one flow or its share of those there are.
    pub(crate) fn with_sessions(&self, sessions: u32) -> Self {
        let flows = self.profile.flows.max(sessions);
        let profile = Profile { subscribers: sessions, active: sessions, flows, ..self.profile };
        Self { profile, ..self.clone() }
    }

    /// With only a part of the time.
    pub(crate) fn for_one_of(&self, parts: usize) -> Self {
        let duration = self.duration / u32::try_from(parts).unwrap_or(1).max(1);
        Self { duration, ..self.clone() }
    }

    /// What comes to one of so many workers.
    pub(crate) fn share_of_one(&self, workers: usize) -> Self {
        let share = |all: u32| (all / u32::try_from(workers).unwrap_or(1).max(1)).max(1);
        let Profile { subscribers, flows, .. } = self.profile;
        let profile = Profile { subscribers: share(subscribers), flows: share(flows), ..self.profile };
        Self { profile, ..self.clone() }
    }

    /// What one trial may take.
    pub(crate) fn trial(&self) -> Duration {
        self.duration / self.trials.max(1)
    }

    /// Whether this much memory is there, where so much is kept at once.
    ///
    /// # Errors
    /// The most that can be measured with `available` bytes.
    pub(crate) fn check_memory(&self, available: u64, kept: Kept) -> anyhow::Result<()> {
        let Profile { subscribers, flows, .. } = self.profile;
        let (most, engines) = (self.most_sessions(available, kept), kept.engines);
        if most >= u64::from(subscribers) {
            return Ok(());
        }
        let sessions = u64::from(subscribers) * self.session_bytes() * engines;
        let needed = self.base_bytes(kept) + sessions;
        let of_each = if engines > 1 { format!(" in each of {engines} engines") } else { String::new() };
        bail!(
            "{subscribers} sessions of {} PDRs with {flows} flows{of_each} need about {} MiB of memory and {} MiB are \
             available: at most {most} such sessions can be measured here; --sessions, --pdrs and --flows make it less",
            self.pdrs,
            needed >> 20,
            available >> 20,
        )
    }

    /// With as many flows and PDRs.
    fn most_sessions(&self, available: u64, kept: Kept) -> u64 {
        available.saturating_sub(self.base_bytes(kept)) / (self.session_bytes() * kept.engines.max(1))
    }

    fn session_bytes(&self) -> u64 {
        SESSION_BYTES + u64::from(self.pdrs) * PDR_BYTES
    }

    fn base_bytes(&self, Kept { engines, sizes }: Kept) -> u64 {
        let flows = u64::from(self.profile.flows) * FLOW_BYTES;
        BASE_BYTES + flows * engines.max(sizes) + PACKETS_BYTES * sizes.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_memory_is_refused_with_the_limit() {
        let profile = *traffic::profile("zte").unwrap();
        let (direction, duration) = (Direction::Both, Duration::from_secs(1));
        let plan = Plan {
            profile,
            direction,
            pdrs: 1_000,
            rules: 0,
            every_session: false,
            services: false,
            duration,
            trials: 1,
            seed: 1,
        };
        let alone = Kept { engines: 1, sizes: 1 };
        let error = plan.check_memory(8 << 30, alone).unwrap_err().to_string();
        let most = plan.most_sessions(8 << 30, alone) as u32;
        assert!(error.contains("600000 sessions of 1000 PDRs with 1000000 flows need about"), "{error}");
        assert!(error.contains(&format!("8192 MiB are available: at most {most} such sessions")), "{error}");
        plan.with_sessions(most).check_memory(8 << 30, alone).unwrap();
        plan.with_sessions(most + 1).check_memory(8 << 30, alone).unwrap_err();
        plan.with_sessions(most).check_memory(8 << 30, Kept { engines: 1, sizes: 2 }).unwrap_err();
        // Smaller ones that together are as large as the last are as much as a second one.
        for (sizes, engines) in [(&[5, 5, 10][..], 2), (&[1, 10], 2), (&[7, 7, 7], 3), (&[9], 1)] {
            assert_eq!(Kept::in_turns(sizes), Kept { engines, sizes: sizes.len() as u64 });
        }
        let several = Kept { engines: 7, sizes: 1 };
        let error = plan.with_sessions(most).check_memory(8 << 30, several).unwrap_err().to_string();
        assert!(error.contains("flows in each of 7 engines need about"), "{error}");
    }
}
