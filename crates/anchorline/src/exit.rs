//! How a role ends, and what it leaves on standard output.

use anyhow::Context;
use config::ConfigError;
use std::io::{self, ErrorKind, Write, stdout};
use std::process::ExitCode;

/// Configuration or environment is wrong: to start again would change nothing.
pub(crate) const UNUSABLE: u8 = 2;

/// What was waited for did not come about in time; what was ordered is done all the same.
const LATE: u8 = 3;

/// That it was so, and all there is to tell, for standard output.
#[derive(Debug)]
struct Late(String);

/// Prints `told` as what came of an order, and has the exit code tell that the time was up.
pub(crate) fn late(told: String) -> anyhow::Error {
    anyhow::Error::new(Late(told))
}

#[cfg(test)]
pub(crate) fn is_late(error: &anyhow::Error) -> bool {
    error.is::<Late>()
}

impl std::fmt::Display for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Late {}

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
    let error = match result.map_err(|error| error.downcast::<Late>()) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Ok(Late(told))) => match say(&told) {
            Ok(()) => return ExitCode::from(LATE),
            Err(error) => error,
        },
        Err(Err(error)) => error,
    };
    // Who would read it may be gone.
    crate::log::complain(&format!("anchorline: {error:#}"));
    // Of a file that is wrong, whoever read it.
    let is_unusable = error.is::<Unusable>() || error.is::<ConfigError>();
    if is_unusable { ExitCode::from(UNUSABLE) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_too_late_is_told_from_what_was_done_and_what_failed() {
        let coded = |result| format!("{:?}", code(result));
        let plain = |number: u8| format!("{:?}", ExitCode::from(number));
        assert_eq!(coded(Ok(())), plain(0));
        assert_eq!(coded(Err(anyhow::anyhow!("it failed"))), plain(1));
        assert_eq!(coded(Err(unusable(anyhow::anyhow!("it is wrong")))), plain(2));
        assert_eq!(coded(Err(late(String::new()))), plain(3));
    }

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
