//! Network namespaces.

use crate::privilege::MARK;
use crate::{command, interrupt};
use anyhow::{Context, Result, anyhow};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The end of what goes before a program that runs in a namespace.
pub(crate) const WRAPPER: &str = "setpriv --pdeathsig KILL -- ";
/// How long killed processes get to disappear.
const GRACE: Duration = Duration::from_secs(2);

/// A named network namespace. Dropping it kills what still runs in it and removes it with all its interfaces.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one, with loopback up and without IPv6, whose neighbour discovery would speak unasked.
    pub(crate) fn create(name: &str) -> Result<Self> {
        command::line(&format!("ip netns add {name}"))?;
        let made = Self { name: name.into() };
        made.sysctl("ipv6/conf/all/disable_ipv6", "1")?;
        made.sysctl("ipv6/conf/default/disable_ipv6", "1")?;
        made.ip("link set lo up")?;
        Ok(made)
    }

    /// Its name, as `ip netns exec` takes it inside the laboratory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs in here and dies with the thread that starts it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).arg("--").args(WRAPPER.split_whitespace());
        command.arg(program).env_remove(MARK);
        command
    }

    /// Runs a command line in here to its end; what it printed.
    ///
    /// # Errors
    /// Where it fails, or is not done within `limit`.
    pub fn run(&self, words: &str, limit: Duration) -> Result<String> {
        let mut words = words.split_whitespace();
        let mut command = self.command(words.next().context("an empty command line")?);
        command::run(command.args(words), limit)?.success()
    }

    /// Runs `ip` in here.
    ///
    /// # Errors
    /// Where it fails.
    pub fn ip(&self, words: &str) -> Result<String> {
        command::line(&format!("ip -n {} {words}", self.name))
    }

    /// Sets a kernel parameter under `/proc/sys/net`.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<()> {
        let path = format!("/proc/sys/net/{name}");
        self.inside(|| fs::write(&path, value).with_context(|| format!("cannot set {path}")))
    }

    /// Does `work` in a thread that is in here. Sockets it makes stay in here, whoever uses them.
    ///
    /// # Errors
    /// Where the namespace cannot be entered, or `work` fails.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let namespace = File::open(self.path())?;
        let enter = || setns(&namespace, CloneFlags::CLONE_NEWNET);
        let joined = thread::scope(|scope| scope.spawn(|| enter().map(|()| work())).join());
        joined.map_err(|_| anyhow!("a thread in namespace {} panicked", self.name))??
    }

    /// The processes in here.
    ///
    /// # Errors
    /// Where they cannot be listed.
    pub fn pids(&self) -> Result<Vec<Pid>> {
        let listed = command::line(&format!("ip netns pids {}", self.name))?;
        Ok(listed.lines().filter_map(|line| line.trim().parse().ok()).map(Pid::from_raw).collect())
    }

    fn path(&self) -> String {
        format!("/run/netns/{}", self.name)
    }

    /// Ends every process in here: in a namespace that we made, all are ours.
    pub fn kill_all(&self) {
        let end = Instant::now() + GRACE;
        while let Ok(pids) = self.pids()
            && !pids.is_empty()
            && Instant::now() < end
        {
            for pid in pids {
                // It may be gone by now.
                let _ = kill(pid, Signal::SIGKILL);
            }
            thread::sleep(interrupt::TICK);
        }
    }
}

impl Drop for Namespace {
    /// A namespace in which something lives on keeps its name, for [`crate::Lab::close`] to see.
    fn drop(&mut self) {
        self.kill_all();
        if self.pids().is_ok_and(|left| left.is_empty()) {
            // A failure here can be told to no one, and the name goes with our private /run.
            let _ = command::line(&format!("ip netns del {}", self.name));
        }
    }
}
