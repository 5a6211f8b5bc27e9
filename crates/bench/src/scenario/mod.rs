//! What can be measured: each scenario is a value with a name that yields a report.

mod control;
mod drops;
mod first_packets;
mod flows;
mod forward;
mod latency;
mod pfcp;
mod rules;
mod scaling;
mod services;
mod sessions;
mod steering;
mod sweep;

#[cfg(test)]
pub(crate) use forward::Runnable;

pub(crate) use first_packets::{Classification, FirstPacket};
pub(crate) use flows::SWEEP_FLOWS;
pub(crate) use services::{SERVICE_OPENING, SERVICE_PDRS};

use crate::plan::{Kept, Plan};
use crate::report::Report;
use clap::ValueEnum;

/// One of the scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Users' packets through PDRs and FARs, up and down.
    Forward,
    /// The same over the number of sessions, all of them active.
    Sessions,
    /// The same over the number of flows.
    Flows,
    /// The same over the number of PDRs in a session, and over the number of content rules.
    Rules,
    /// The rate without loss, and how long packets take below it.
    Latency,
    /// One worker, two, and so on up to the CPUs there are.
    Scaling,
    /// What it costs to bring packets to the workers that own their users, and what a card that does it saves.
    Steering,
    /// What changes of sessions cost the worker that forwards meanwhile.
    Control,
    /// What it costs to know what flows are about: content rules, and a bill for every service.
    Services,
    /// What packets cost that are dropped, by reason.
    Drops,
    /// Sessions set up, changed and ended over PFCP, by the shipped node.
    Pfcp,
}

impl Scenario {
    /// What it keeps at once.
    pub(crate) fn kept(self, plan: &Plan) -> Kept {
        match self {
            Self::Steering => Kept { engines: steering::engines(), sizes: 1 },
            // One with services, one without; one that forwards, one whose rules refuse.
            Self::Services | Self::Drops => Kept { engines: 2, sizes: 1 },
            Self::Sessions => Kept::in_turns(&sessions::sizes(plan)),
            Self::Rules => Kept::in_turns(&rules::sizes(plan)),
            // As many sessions each.
            Self::Flows => {
                let sizes = flows::sizes(plan).len() as u64;
                Kept { engines: sizes, sizes }
            }
            _ => Kept { engines: 1, sizes: 1 },
        }
    }

    /// Measures.
    ///
    /// # Errors
    /// What kept a figure from being honest: packets missing or wrong, sessions that were not taken.
    pub(crate) fn measure(self, plan: &Plan) -> anyhow::Result<Report> {
        match self {
            Self::Forward => forward::measure(plan),
            Self::Sessions => sessions::measure(plan),
            Self::Flows => flows::measure(plan),
            Self::Rules => rules::measure(plan),
            Self::Latency => latency::measure(plan),
            Self::Scaling => scaling::measure(plan),
            Self::Steering => steering::measure(plan),
            Self::Control => control::measure(plan),
            Self::Services => services::measure(plan),
            Self::Drops => drops::measure(plan),
            Self::Pfcp => pfcp::measure(plan),
        }
    }
}
