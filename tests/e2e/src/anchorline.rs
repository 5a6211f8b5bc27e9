//! The programs under test.

use crate::config::{self, Contract, Driver, FTeid};
use crate::{Lab, Process, command, process, program, wait};
use anyhow::{Context, Result, anyhow, ensure};
use dplink::Statistics;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a node may take to come up: without huge pages the memory is touched page by page.
const START: Duration = Duration::from_secs(20);
/// How long a part that died may take to be back, as long as it may take at first.
const RESTART: Duration = START;
/// How long a program may take to end: ports and TUN devices go only once all CPUs of the machine have let go of them, for
/// which the kernel (`rcu_barrier`) was seen to take more than 30 seconds where other programs had the CPUs.
const END: Duration = Duration::from_secs(120);

/// The two processes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The data plane engine.
    Dpe,
    /// The control plane engine.
    Cpe,
}

impl Part {
    /// The line by which it tells that it is at work.
    const fn ready(self) -> &'static str {
        match self {
            Self::Dpe => "dpe: ready",
            Self::Cpe => "cpe: ready",
        }
    }

    /// The start of the line by which `up` tells its pid.
    const fn line(self) -> &'static str {
        match self {
            Self::Dpe => "up: dpe pid ",
            Self::Cpe => "up: cpe pid ",
        }
    }
}

/// A running user plane node: `anchorline up`.
#[derive(Debug)]
pub struct Node {
    process: Process,
    config: PathBuf,
    program: PathBuf,
}

impl Node {
    /// Starts one in `lab` and waits until both of its processes run and are connected.
    ///
    /// # Errors
    /// Where it does not come up.
    pub fn start(lab: &Lab, driver: Driver) -> Result<Self> {
        Self::start_with(lab, driver, 1)
    }

    /// The same with so many workers.
    ///
    /// # Errors
    /// Where it does not come up.
    pub fn start_with(lab: &Lab, driver: Driver, workers: u32) -> Result<Self> {
        let config = config::write_upf(lab.dir.path(), driver)?;
        if workers > 1 {
            config::set_workers(&config, workers)?;
        }
        Self::start_by(lab, config)
    }

    /// Starts one that charges, and says where its files will be.
    ///
    /// # Errors
    /// Where it does not come up.
    pub fn start_charging(lab: &Lab, driver: Driver) -> Result<(Self, PathBuf)> {
        let (folder, config) = config::write_upf_charging(lab.dir.path(), driver)?;
        Ok((Self::start_by(lab, config)?, folder))
    }

    /// Starts one of another configuration.
    ///
    /// # Errors
    /// Where it does not come up.
    pub fn start_by(lab: &Lab, config: PathBuf) -> Result<Self> {
        let program = program("anchorline")?;
        let mut up = lab.upf.command(&program);
        up.args(["up", "--config"]).arg(&config);
        let mut process = Process::spawn("up", &mut up, lab.dir.path())?;
        process.wait_for_line("up: ready", START)?;
        Ok(Self { process, config, program })
    }

    /// The pid of a part, as `up` told it last.
    ///
    /// # Errors
    /// Where it told none.
    pub fn pid(&self, part: Part) -> Result<Pid> {
        let pids = pids(&self.process.output()?, part);
        pids.last().copied().with_context(|| format!("no line `{}N` from up", part.line()))
    }

    /// How often a part was started.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub fn starts(&self, part: Part) -> Result<usize> {
        Ok(pids(&self.process.output()?, part).len())
    }

    /// Sends SIGKILL to a part, by its own pid; that pid.
    ///
    /// # Errors
    /// Where the pid is not one of the node's.
    pub fn kill(&self, lab: &Lab, part: Part) -> Result<Pid> {
        let pid = self.pid(part)?;
        ensure!(lab.upf.pids()?.contains(&pid), "pid {pid} does not run in namespace {}", lab.upf.name());
        kill(pid, Signal::SIGKILL)?;
        Ok(pid)
    }

    /// Waits until `up` has started a part anew, after the one with pid `old`, and that one is at work: before, it hears
    /// nobody.
    ///
    /// # Errors
    /// Where it does not in time.
    pub fn wait_restart(&mut self, part: Part, old: Pid) -> Result<Pid> {
        self.process.wait_for("a restart", RESTART, |output| {
            let pid = pids(output, part).last().copied().filter(|pid| *pid != old)?;
            is_ready(output, part).then_some(pid)
        })
    }

    /// What it has printed so far.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub fn output(&self) -> Result<String> {
        self.process.output()
    }

    /// What the data plane engine counts, from `ctl status`.
    ///
    /// # Errors
    /// Where nobody answers.
    pub fn status(&self) -> Result<Statistics> {
        let said = self.ctl("status --json")?;
        serde_json::from_str(&said).with_context(|| format!("`ctl status` said {}", said.trim()))
    }

    /// What a view of `anchorline ctl` prints; `args` part by spaces.
    ///
    /// # Errors
    /// Where it does not end well.
    pub fn ctl(&self, args: &str) -> Result<String> {
        command::run(&mut self.ctl_command(args), command::SHORT)?.success()
    }

    /// Starts a view of `anchorline ctl` that takes its time; what it prints goes to `ctl.log`.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn start_ctl(&self, lab: &Lab, args: &str) -> Result<Process> {
        Process::spawn("ctl", &mut self.ctl_command(args), lab.dir.path())
    }

    fn ctl_command(&self, args: &str) -> Command {
        let mut ctl = Command::new(&self.program);
        ctl.arg("ctl").args(args.split_whitespace()).arg("--config").arg(&self.config);
        ctl
    }

    /// Waits until the node has `count` sessions.
    ///
    /// # Errors
    /// Where it does not come to that.
    pub fn wait_sessions(&self, count: u64) -> Result<()> {
        let mut last = String::new();
        let waited = wait::until(&format!("{count} sessions in the node"), RESTART, || {
            // A node that restarts does not answer at once.
            let seen = self.status().map(|status| status.sessions);
            last = match &seen {
                Ok(sessions) => format!("it has {sessions}"),
                Err(error) => format!("{error:#}"),
            };
            Ok((seen.ok() == Some(count)).then_some(()))
        });
        waited.map_err(|error| anyhow!("{error}: {last}"))
    }

    /// Waits until the books of all workers balance: the traffic has ended, but a last packet may be on its way.
    ///
    /// # Errors
    /// Where they do not.
    pub fn wait_balance(&self) -> Result<Statistics> {
        wait::until("the books to balance", Duration::from_secs(3), || {
            let status = self.status()?;
            let balanced = status.workers.iter().all(|worker| worker.books.balanced());
            Ok(Some(status).filter(|_| balanced))
        })
    }

    /// Waits until all workers have content rules.
    ///
    /// # Errors
    /// Where they get none.
    pub fn wait_content(&self) -> Result<()> {
        wait::until("the content rules to be in force", command::SHORT, || {
            let has_rules = self.status()?.workers.iter().all(|worker| worker.content.revision != 0);
            Ok(has_rules.then_some(()))
        })
    }

    /// Sends a signal to `up`.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Waits until it has said something, `words`, so many times.
    ///
    /// # Errors
    /// Where it does not in time.
    pub fn wait_said(&mut self, words: &str, times: usize) -> Result<()> {
        let what = format!("`{words}` {times} times");
        self.process.wait_for(&what, RESTART, |output| (output.matches(words).count() >= times).then_some(()))
    }

    /// Ends the node, as an operator does who restarts it, and starts it again.
    ///
    /// # Errors
    /// Where it does not end cleanly, or does not come up.
    pub fn restart(mut self, lab: &Lab) -> Result<Self> {
        self.end()?;
        Self::start_by(lab, self.config)
    }

    /// Waits until `up` and both engines have ended, which nobody need have told to.
    ///
    /// # Errors
    /// Where they do not.
    pub fn wait_gone(&mut self, lab: &Lab) -> Result<()> {
        self.process.wait_exit(END)?;
        wait::until("both engines to end", END, || Ok(lab.upf.pids()?.is_empty().then_some(())))
    }

    /// The same, and starts it again.
    ///
    /// # Errors
    /// Where they do not end, or it does not come up.
    pub fn start_once_gone(mut self, lab: &Lab) -> Result<Self> {
        self.wait_gone(lab)?;
        Self::start_by(lab, self.config)
    }

    /// Ends the node, which may have had something to complain of.
    ///
    /// # Errors
    /// Where it does not end cleanly.
    pub fn end(&mut self) -> Result<()> {
        self.process.stop(END)
    }

    /// Ends the node.
    ///
    /// # Errors
    /// Where it does not end cleanly, or had anything to complain of in its life.
    pub fn stop(mut self) -> Result<()> {
        self.end()?;
        let output = self.process.output()?;
        let complaint =
            output.lines().find(|line| line.starts_with("anchorline: ") || line.contains("panicked"));
        complaint.map_or(Ok(()), |complaint| Err(anyhow!("the node complained: {complaint}")))
    }
}

/// The SMF, the gNB and its users: `anchorline ran`.
#[derive(Debug)]
pub struct Ran {
    process: Process,
    /// Sessions that came up.
    pub sessions: u64,
}

impl Ran {
    /// Starts them in `lab` and waits until the sessions are up.
    ///
    /// # Errors
    /// Where they do not come up.
    pub fn start(lab: &Lab, f_teid: FTeid) -> Result<Self> {
        Self::run(lab, &config::write_ran(lab.dir.path(), f_teid)?)
    }

    /// As [`Ran::start`], its users held to a contract.
    ///
    /// # Errors
    /// Where they do not come up.
    pub fn start_with(lab: &Lab, contract: Contract) -> Result<Self> {
        Self::run(lab, &config::write_ran_with(lab.dir.path(), contract)?)
    }

    /// As [`Ran::start`], of another configuration.
    ///
    /// # Errors
    /// Where they do not come up.
    pub fn run(lab: &Lab, config: &Path) -> Result<Self> {
        let mut ran = lab.ran.command(program("anchorline")?);
        ran.args(["ran", "--config"]).arg(config);
        let mut process = Process::spawn("ran", &mut ran, lab.dir.path())?;
        let ready = process.wait_for_line("ran: ready", START)?;
        let sessions = ready.split_whitespace().find_map(|word| word.parse().ok());
        Ok(Self {
            process,
            sessions: sessions.with_context(|| format!("no number of sessions in `{ready}`"))?,
        })
    }

    /// Waits until it says something.
    ///
    /// # Errors
    /// Where it does not in time.
    pub fn wait_for_line(&mut self, words: &str) -> Result<()> {
        self.process.wait_for_line(words, START).map(drop)
    }

    /// Bytes to its user that it was told of, by reports of the user plane; as it says in the end.
    ///
    /// # Errors
    /// Where it has not said so.
    pub fn reported_downlink_bytes(&self) -> Result<u64> {
        let output = self.process.output()?;
        let words = output
            .lines()
            .find_map(|line| line.split_once("as the UPF reports: ")?.1.split_once("down bytes "));
        let bytes = words.and_then(|(_, rest)| rest.split(',').next()?.parse().ok());
        bytes.with_context(|| format!("no word of reports: {}", command::last_lines(&output, 3)))
    }

    /// Its pid.
    ///
    /// # Errors
    /// Where it has ended.
    pub fn pid(&self) -> Result<Pid> {
        self.process.pid()
    }

    /// Ends it: it deletes the sessions first.
    ///
    /// # Errors
    /// Where it does not end cleanly.
    pub fn stop(mut self) -> Result<()> {
        self.stop_here()
    }

    /// As [`Ran::stop`], where another is to take its place.
    ///
    /// # Errors
    /// Where it does not end cleanly.
    pub fn stop_here(&mut self) -> Result<()> {
        self.process.stop(END)
    }
}

/// Calls the program under test in namespace `upf`, to see it refuse; `args` part by spaces.
///
/// # Errors
/// Where it cannot be called or does not end.
pub fn call(lab: &Lab, args: &str, config: &Path) -> Result<command::Finished> {
    let mut command = lab.upf.command(program("anchorline")?);
    command::run(command.args(args.split_whitespace()).arg("--config").arg(config), START)
}

fn pids(output: &str, part: Part) -> Vec<Pid> {
    let told = process::whole_lines(output).filter_map(|line| line.strip_prefix(part.line()));
    told.filter_map(|pid| pid.trim().parse().ok()).map(Pid::from_raw).collect()
}

/// Whether the last one that was started is at work.
fn is_ready(output: &str, part: Part) -> bool {
    let since: Vec<&str> =
        process::whole_lines(output).rev().take_while(|line| !line.starts_with(part.line())).collect();
    since.contains(&part.ready())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_started_is_ready_by_its_own_word() {
        let output = "up: dpe pid 10\nup: cpe pid 11\ncpe: ready\nup: cpe pid 12\ndpe: ready\n";
        assert!(is_ready(output, Part::Dpe));
        assert!(!is_ready(output, Part::Cpe), "that was the one before");
        assert!(is_ready(&format!("{output}cpe: ready\n"), Part::Cpe));
    }

    #[test]
    fn pids_are_read_from_whole_lines() {
        let output = "up: dpe pid 10\nup: cpe pid 11\nup: ready\nup: cpe pid 12\nup: cpe pid 1";
        assert_eq!(pids(output, Part::Cpe), [Pid::from_raw(11), Pid::from_raw(12)]);
        assert_eq!(pids(output, Part::Dpe), [Pid::from_raw(10)]);
    }
}
