//! How a role ends, and what it leaves on standard output.

use anyhow::Context;
use std::io::{self, ErrorKind, Write, stderr, stdout};
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

/// Prints. A reader that has enough, as `head` soon has, is no error: what was ordered is done all the same, and how that ended is told
/// by the exit code. `print!` would panic.
///
/// # Errors
/// What is behind standard output takes nothing, such as a full disk.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    say_to(&mut stdout().lock(), text)
}

fn say_to(output: &mut impl Write, text: &str) -> anyhow::Result<()> {
    let said = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    let has_enough = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
    match said {
        Err(error) if !has_enough(&error) => Err(error).context("standard output cannot be written"),
        _ => Ok(()),
    }
}

/// Says what went wrong, in one sentence on standard error, and turns it into an exit code.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    // Who would read it may be gone.
    let _ = writeln!(stderr(), "anchorline: {error:#}");
    if error.is::<Unusable>() { ExitCode::from(UNUSABLE) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_enough_is_no_error_and_a_full_disk_is() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        say_to(&mut writer, "text\n").unwrap();
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = format!("{:#}", say_to(&mut full, "text\n").unwrap_err());
        assert!(error.starts_with("standard output cannot be written: No space left"), "{error}");
    }
}
