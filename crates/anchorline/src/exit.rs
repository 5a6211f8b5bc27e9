//! How a role ends.

use std::io::{Write, stderr};
use std::process::ExitCode;

/// Configuration or environment is wrong: to start again would change nothing.
pub(crate) const UNUSABLE: u8 = 2;

/// An error that starting again does not mend.
#[derive(Debug)]
struct Unusable(anyhow::Error);

/// Marks an error as one that starting again does not mend.
pub(crate) fn unusable(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::Error::new(Unusable(error.into()))
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Unusable {}

/// Says what went wrong, in one sentence on standard error, and turns it into an exit code.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    // Who would read it may be gone.
    let _ = writeln!(stderr(), "anchorline: {error:#}");
    if error.is::<Unusable>() { ExitCode::from(UNUSABLE) } else { ExitCode::FAILURE }
}
