//! Control planes that we want to be associated with.

use crate::config::Config;
use machine::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// So long those are asked that were associated before a crash: who has not answered by then is gone, or will come by itself.
const ASKED_AFTER_CRASH: Duration = Duration::from_secs(5 * 60);

/// A control plane to be asked until it is associated: of the configuration, or one that was before a crash.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) address: SocketAddr,
    pub(crate) next: Time,
    pub(crate) is_asked: bool,
    /// An operator ordered its release: it is not asked again.
    pub(crate) is_left: bool,
    /// Of one that was associated before a crash.
    pub(crate) until: Option<Time>,
    /// It has been sent our time stamp, or needs none.
    pub(crate) is_told: bool,
}

impl Wanted {
    pub(crate) const fn of_configuration(address: SocketAddr) -> Self {
        Self { address, next: Time::ZERO, is_asked: false, is_left: false, until: None, is_told: true }
    }

    /// It is told of the crash at once; whom that does not bring to associate is asked to.
    pub(crate) fn forgotten(address: SocketAddr, config: &Config) -> Self {
        let (next, until) = (Time::ZERO + config.heartbeat_interval, Time::ZERO + ASKED_AFTER_CRASH);
        Self { next, until: Some(until), is_told: false, ..Self::of_configuration(address) }
    }
}
