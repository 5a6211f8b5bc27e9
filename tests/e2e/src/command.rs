//! Short commands: run to the end within a time limit, output captured.

use crate::namespace::WRAPPER;
use crate::process;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Plenty for a command that only tells or sets something.
pub const SHORT: Duration = Duration::from_secs(10);

/// What a command left behind.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it was called.
    pub call: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

impl Finished {
    /// What it printed, where it ended well.
    ///
    /// # Errors
    /// Where it did not, with its complaint.
    pub fn success(self) -> Result<String> {
        if !self.status.success() {
            let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
            bail!("`{}` ended with {}: {}", self.call, self.status, last_lines(said, 3));
        }
        Ok(self.stdout)
    }
}

/// Runs `command`; what still runs after `limit` is killed.
///
/// # Errors
/// Where it cannot be started, takes longer, or a signal asks us to stop.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    let call = describe(command);
    // Files, not pipes: nobody has to read while the command runs, and a long answer cannot block it.
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut child = command.process_group(0).spawn().with_context(|| format!("cannot start `{call}`"))?;
    let ended = process::wait_exit(&mut child, limit);
    if ended.is_err() {
        process::kill(&mut child);
    }
    let status = ended.with_context(|| format!("`{call}` was stopped"))?;
    Ok(Finished { call, status, stdout: text(&mut stdout)?, stderr: text(&mut stderr)? })
}

/// Runs a command line whose words are parted by spaces.
///
/// # Errors
/// As [`run`], and where it ends badly.
pub fn line(words: &str) -> Result<String> {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().context("an empty command line")?);
    run(command.args(words), SHORT)?.success()
}

/// The last `count` lines of `text` that say something, on one line.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default().join(" | ")
}

/// The command as a person would type it, without what brings it into a namespace.
fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    line.split_once(WRAPPER).map_or(line.as_str(), |(_, call)| call).to_owned()
}

fn text(file: &mut File) -> Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_status_come_back() {
        let done = run(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]), SHORT).unwrap();
        assert_eq!(
            (done.stdout.as_str(), done.stderr.as_str(), done.status.code()),
            ("out\n", "err\n", Some(3))
        );
        assert!(done.success().unwrap_err().to_string().ends_with("exit status: 3: err"));
    }

    #[test]
    fn a_command_that_hangs_is_stopped() {
        let failure = run(Command::new("sleep").arg("60"), Duration::from_millis(50)).unwrap_err();
        assert_eq!(failure.to_string(), "`sleep 60` was stopped");
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = run(&mut Command::new("no-such-program"), SHORT).unwrap_err();
        assert_eq!(failure.to_string(), "cannot start `no-such-program`");
    }

    #[test]
    fn last_lines_skip_empty_ones() {
        assert_eq!(last_lines("a\n\nb\n c \n\n", 2), "b | c");
    }
}
