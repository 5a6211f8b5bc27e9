//! Long-running programs: their output goes to a log file, and they never outlive their handle.

use crate::{command, interrupt, wait};
use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program gets to end by itself when its handle is dropped.
const GRACE: Duration = Duration::from_secs(3);

/// A running program. Dropping it ends it: by SIGTERM, then by SIGKILL.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// Octets of the log that others of its name printed before.
    before: usize,
}

impl Process {
    /// Starts `command`; what it prints goes to `NAME.log` in `dir`, after what is already there.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn spawn(name: &str, command: &mut Command, dir: &Path) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let file = OpenOptions::new().create(true).append(true).open(&log)?;
        let before = usize::try_from(file.metadata()?.len())?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name: name.into(), child, log, before })
    }

    /// Its process identifier.
    ///
    /// # Errors
    /// Where the kernel gave it one that is none.
    pub fn pid(&self) -> Result<Pid> {
        pid(&self.child)
    }

    /// Everything it printed so far.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub fn output(&self) -> Result<String> {
        let log = fs::read(&self.log)?;
        Ok(String::from_utf8_lossy(log.get(self.before..).unwrap_or_default()).into_owned())
    }

    /// Waits until `find` finds something in what it printed.
    ///
    /// # Errors
    /// Where `limit` passes or the program ends first.
    pub fn wait_for<T>(
        &mut self,
        what: &str,
        limit: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        let what = format!("{what} from {}", self.name);
        let mut output = String::new();
        let waited = wait::until(&what, limit, || {
            let ended = self.child.try_wait()?;
            output = self.output()?;
            match (find(&output), ended) {
                (Some(found), _) => Ok(Some(found)),
                (None, None) => Ok(None),
                (None, Some(status)) => bail!("{} ended with {status}", self.name),
            }
        });
        waited.map_err(|error| anyhow!("{error}: {}", command::last_lines(&output, 3)))
    }

    /// Waits for a line that starts with `start`; the line, whole.
    ///
    /// # Errors
    /// Where `limit` passes or the program ends first.
    pub fn wait_for_line(&mut self, start: &str, limit: Duration) -> Result<String> {
        self.wait_for(&format!("the line `{start}`"), limit, |output| {
            whole_lines(output).find(|line| line.starts_with(start)).map(str::to_owned)
        })
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        signal::kill(self.pid()?, signal).with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn runs(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Where it still runs after `limit`.
    pub fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        wait_exit(&mut self.child, limit)
            .map_err(|error| anyhow!("{} does not end: {error}; {}", self.name, whereabouts(&self.child)))
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// Where it does not end within `limit`, or not with success.
    pub fn stop(&mut self, limit: Duration) -> Result<()> {
        self.signal(Signal::SIGTERM)?;
        let status = self.wait_exit(limit)?;
        if !status.success() {
            bail!("{} ended with {status}: {}", self.name, command::last_lines(&self.output()?, 3));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means it is gone already. The pid cannot be someone else's: nobody has reaped it yet.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.signal(Signal::SIGTERM);
            await_end(&mut self.child, GRACE);
        }
        kill(&mut self.child);
    }
}

/// Lines that ended: the last one may still be being written.
pub(crate) fn whole_lines(output: &str) -> impl DoubleEndedIterator<Item = &str> {
    output.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'))
}

/// Waits for the end of a child of ours.
pub(crate) fn wait_exit(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    wait::until("the end of a program", limit, || Ok(child.try_wait()?))
}

/// What the threads of a child of ours do, and what they wait for in the kernel.
fn whereabouts(child: &Child) -> String {
    let of = |file: &Path| fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    let thread = |task: PathBuf| {
        let state = of(&task.join("status"));
        let state = state.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or_default().trim();
        format!("{} is {state} in {}", of(&task.join("comm")), of(&task.join("wchan")))
    };
    threads.map(|task| thread(task.path())).collect::<Vec<_>>().join(", ")
}

/// Ends a child of ours for sure and reaps it.
pub(crate) fn kill(child: &mut Child) {
    // Both fail only where it was reaped before.
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits even where a signal asked us to stop: this is the cleaning up.
fn await_end(child: &mut Child, limit: Duration) {
    let end = Instant::now() + limit;
    while Instant::now() < end && child.try_wait().is_ok_and(|ended| ended.is_none()) {
        thread::sleep(interrupt::TICK);
    }
}

fn pid(child: &Child) -> Result<Pid> {
    Ok(Pid::from_raw(child.id().try_into()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, dir: &Path) -> Process {
        Process::spawn("shell", Command::new("sh").args(["-c", script]), dir).unwrap()
    }

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_line_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = shell("echo up: ready, 2 of 2; sleep 60", dir.path());
        assert_eq!(shell.wait_for_line("up: ready", LIMIT).unwrap(), "up: ready, 2 of 2");
    }

    #[test]
    fn a_program_that_does_not_end_is_told_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = shell("exec sleep 60", dir.path());
        let failure = shell.wait_exit(Duration::from_millis(100)).unwrap_err().to_string();
        assert!(failure.starts_with("shell does not end: waited 0.1 s in vain"), "{failure}");
        assert!(failure.contains(" is S (sleeping) in "), "{failure}");
    }

    #[test]
    fn a_program_that_ends_ends_the_wait_with_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = shell("echo no such interface >&2; exit 2", dir.path());
        let failure = shell.wait_for_line("ready", LIMIT).unwrap_err().to_string();
        assert_eq!(failure, "shell ended with exit status: 2: no such interface");
    }

    #[test]
    fn a_dropped_program_is_gone_even_if_it_ignores_sigterm() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = shell("trap '' TERM; echo ready; while :; do sleep 0.1; done", dir.path());
        shell.wait_for_line("ready", LIMIT).unwrap();
        let pid = shell.pid().unwrap();
        drop(shell);
        assert!(signal::kill(pid, None).is_err());
    }

    #[test]
    fn a_line_still_being_written_does_not_count() {
        assert_eq!(whole_lines("a\nb\nhalf").collect::<Vec<_>>(), ["a", "b"]);
    }
}
