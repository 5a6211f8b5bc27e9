//! What was found, and what of it.

use serde::Serialize;

/// How a finding bears on a user plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// Could be better.
    Advice,
    /// Cannot be looked at, or does not exist here.
    NotAvailable,
    /// Costs throughput or latency.
    Warning,
    /// The node will not start, or not do what it is configured for.
    Problem,
}

impl State {
    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Advice => "advice",
            Self::NotAvailable => "not here",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check it comes of: `memory.huge-pages`.
    pub id: &'static str,
    /// How it bears.
    pub state: State,
    /// What was found, or "not available here, because ...".
    pub found: String,
    /// What to do; empty if nothing.
    pub act: String,
    /// What it means for Anchorline.
    pub means: &'static str,
    /// What it is worth by published measurements, with their source; or that none is known.
    pub worth: &'static str,
}

/// What a check says, before it is a finding.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) state: State,
    pub(crate) found: String,
    pub(crate) act: String,
}

impl Outcome {
    pub(crate) fn good(found: impl Into<String>) -> Self {
        Self { state: State::Good, found: found.into(), act: String::new() }
    }

    pub(crate) fn advice(found: impl Into<String>, act: impl Into<String>) -> Self {
        Self { state: State::Advice, found: found.into(), act: act.into() }
    }

    pub(crate) fn warning(found: impl Into<String>, act: impl Into<String>) -> Self {
        Self { state: State::Warning, found: found.into(), act: act.into() }
    }

    pub(crate) fn problem(found: impl Into<String>, act: impl Into<String>) -> Self {
        Self { state: State::Problem, found: found.into(), act: act.into() }
    }

    /// `because` completes the sentence.
    pub(crate) fn not_here(because: impl AsRef<str>) -> Self {
        let found = format!("not available here, because {}", because.as_ref());
        Self { state: State::NotAvailable, found, act: String::new() }
    }
}
