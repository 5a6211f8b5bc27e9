//! One engine as a child process: started, listened to, started again when it dies, and ended.

use super::Event;
use super::hung::{Patience, hangs};
use crate::exit::{self, UNUSABLE};
use crate::log::say;
use crate::settings::Args;
use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

/// Set for the children, so that they end with their parent.
const SUPERVISED: &str = "ANCHORLINE_SUPERVISED";
/// How long, in milliseconds, an engine keeps memory that it has freed before the kernel has it back: what the next sessions take of it
/// costs no page faults, which on a virtual machine may be its host's (`doctor explain memory.reporting`). The allocator reads it
/// before there is a `main`; who has set it knows better.
const KEEP_FREED: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "60000");
/// Before the first restart; doubles with each that follows soon.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Between restarts at most.
const PAUSE_MOST: Duration = Duration::from_secs(5);
/// A child that lived longer was all right.
const SOUND: Duration = Duration::from_secs(10);
/// How long a child may take to end that has nothing left to say.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Dpe,
    Cpe,
}

impl Role {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Dpe => "dpe",
            Self::Cpe => "cpe",
        }
    }

    /// How long it may take to end.
    const fn farewell(self) -> Duration {
        match self {
            Self::Dpe => crate::dpe::FAREWELL.saturating_add(FAREWELL),
            Self::Cpe => crate::cpe::FAREWELL.saturating_add(FAREWELL),
        }
    }
}

pub(super) fn command(args: &Args, role: Role) -> anyhow::Result<Command> {
    let executable = std::env::current_exe().context("the executable cannot be found again")?;
    let arguments: [OsString; 3] = [role.name().into(), "--config".into(), args.config.clone().into()];
    let mut command = Command::new(executable);
    command.args(arguments).env(SUPERVISED, "1").stdin(Stdio::null()).stdout(Stdio::piped());
    let (name, kept_ms) = KEEP_FREED;
    if std::env::var_os(name).is_none() {
        command.env(name, kept_ms);
    }
    // A group of its own: Ctrl-C reaches us, and we end the children in order.
    command.process_group(0).kill_on_drop(true);
    Ok(command)
}

/// One engine, and how to keep it running.
pub(super) struct Engine {
    pub(super) role: Role,
    pub(super) command: Command,
    /// Where the control plane is asked whether it is at work.
    pub(super) socket: PathBuf,
    /// Which engines are to end.
    pub(super) told: watch::Receiver<Vec<Role>>,
    pub(super) tell: mpsc::Sender<Event>,
    /// The control plane is to start again.
    pub(super) again: Arc<Notify>,
}

impl Engine {
    pub(super) async fn keep(mut self) -> anyhow::Result<()> {
        let name = self.role.name();
        let (mut pause, mut was_ready) = (PAUSE_FIRST, false);
        while !self.is_over() {
            let mut child = match self.command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    pause = longer(pause);
                    self.put_off(&error, was_ready, pause).await?;
                    continue;
                }
            };
            say(&format!("up: {name} pid {}", child.id().unwrap_or_default()));
            let _ = self.tell.send(Event::Started(self.role)).await;
            let started = Instant::now();
            let words = tokio::spawn(pass_on(self.role, child.stdout.take(), self.tell.clone()));
            let status = tokio::select! {
                status = child.wait() => status?,
                () = stopped(self.role, &mut self.told) => return end(self.role, child).await,
                () = ordered(self.role, &self.again) => {
                    end(self.role, child).await?;
                    was_ready |= words.await?;
                    continue;
                }
                () = does_nothing(self.role, &self.socket) => {
                    tracing::error!("the {name} is ended, as it does not answer");
                    child.kill().await?;
                    child.wait().await?
                }
            };
            was_ready |= words.await?;
            check(name, status, was_ready)?;
            if self.is_over() {
                break;
            }
            pause = if started.elapsed() > SOUND { PAUSE_FIRST } else { longer(pause) };
            tracing::warn!("the {name} ended ({status}); it starts again in {pause:?}");
            self.rest(pause).await;
        }
        Ok(())
    }

    /// One that could not be executed, as its file is away or the kernel has no room for it, is tried again, if it has ever been at work:
    /// the other goes on meanwhile.
    async fn put_off(&mut self, error: &io::Error, was_ready: bool, pause: Duration) -> anyhow::Result<()> {
        let name = self.role.name();
        anyhow::ensure!(was_ready, "the {name} cannot be started: {error}");
        tracing::error!("the {name} cannot be started: {error}; it is tried again in {pause:?}");
        self.rest(pause).await;
        Ok(())
    }

    /// Whether the node ends: an engine that has ended by itself, as it was told to by somebody else, is not started again to hear of it.
    fn is_over(&self) -> bool {
        !self.told.borrow().is_empty()
    }

    /// Before the next start, which who asks for one need not wait for.
    async fn rest(&mut self, pause: Duration) {
        tokio::select! {
            () = sleep(pause) => {}
            () = stopped(self.role, &mut self.told) => {}
            () = ordered(self.role, &self.again) => {}
        }
    }
}

/// The next pause between two starts that came to nothing.
fn longer(pause: Duration) -> Duration {
    (pause * 2).min(PAUSE_MOST)
}

/// The data plane is never told to start again.
async fn ordered(role: Role, again: &Notify) {
    match role {
        Role::Cpe => again.notified().await,
        Role::Dpe => std::future::pending().await,
    }
}

/// Returns once an engine has to be ended for doing nothing. Of the data plane nobody but an operator can know: its workers forward
/// while nothing else of it answers, and the control plane says in the log that it does not.
async fn does_nothing(role: Role, socket: &Path) {
    match role {
        Role::Cpe => hangs(socket, Patience::USUAL).await,
        Role::Dpe => std::future::pending().await,
    }
}

async fn stopped(role: Role, told: &mut watch::Receiver<Vec<Role>>) {
    // Nobody left to tell us counts as told.
    let _ = told.wait_for(|told| told.contains(&role)).await;
}

/// An engine that cannot use its configuration is not started again, if it never could. One that has been at work before
/// is: the other has users' sessions, and what is wrong (an edited file, an address that is away, a disk that is full)
/// may be put right while it goes on.
fn check(name: &str, status: ExitStatus, was_ready: bool) -> anyhow::Result<()> {
    if status.code() == Some(i32::from(UNUSABLE)) && !was_ready {
        return Err(exit::unusable(anyhow::anyhow!(
            "the {name} cannot run like this; what it said stands above"
        )));
    }
    Ok(())
}

async fn end(role: Role, mut child: Child) -> anyhow::Result<()> {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    let farewell = role.farewell();
    if timeout(farewell, child.wait()).await.is_err() {
        tracing::warn!("the {} did not end in {farewell:?} and is killed", role.name());
        child.kill().await?;
    }
    Ok(())
}

/// Passes on what an engine says; whether it was ever ready.
async fn pass_on(role: Role, stdout: Option<ChildStdout>, tell: mpsc::Sender<Event>) -> bool {
    let Some(stdout) = stdout else { return false };
    let (mut lines, mut was_ready) = (BufReader::new(stdout).lines(), false);
    while let Ok(Some(line)) = lines.next_line().await {
        say(&line);
        if line == format!("{}: ready", role.name()) {
            was_ready = true;
            let _ = tell.send(Event::Ready(role)).await;
        }
    }
    was_ready
}

/// An engine started by `up` ends when its parent does, however that ends.
pub(crate) fn bind_to_parent() {
    if std::env::var_os(SUPERVISED).is_some()
        && let Err(error) = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)
    {
        tracing::warn!("this process will not end with its parent: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Its file is gone when it ends, and comes back: somebody replaced what is installed.
    #[tokio::test]
    async fn an_engine_that_was_at_work_and_cannot_be_executed_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, away) = (folder.path().join("engine"), folder.path().join("away"));
        let text = format!("#!/bin/sh\nmv {} {}\necho cpe: ready\n", file.display(), away.display());
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (stop, told) = watch::channel(vec![]);
        let (tell, mut heard) = mpsc::channel(8);
        let again = Arc::new(Notify::new());
        let engine = |was_there: bool| {
            let mut command = Command::new(if was_there { file.clone() } else { folder.path().join("none") });
            command.stdout(Stdio::piped());
            Engine {
                role: Role::Cpe,
                command,
                socket: folder.path().join("cpe.sock"),
                told: told.clone(),
                tell: tell.clone(),
                again: again.clone(),
            }
        };
        let never = engine(false).keep().await.unwrap_err().to_string();
        assert!(never.starts_with("the cpe cannot be started: No such file"), "{never}");
        let kept = tokio::spawn(engine(true).keep());
        for _ in 0..2 {
            while !matches!(heard.recv().await, Some(Event::Ready(Role::Cpe))) {}
            sleep(Duration::from_millis(300)).await;
            assert!(!kept.is_finished() && !file.exists());
            std::fs::rename(&away, &file).unwrap();
        }
        stop.send_modify(|told| told.push(Role::Cpe));
        kept.await.unwrap().unwrap();
    }

    /// By the allocator's own name for it, which nobody else here would notice to be wrong.
    #[test]
    fn engines_keep_freed_memory_for_a_minute_unless_somebody_knows_better() {
        let command = command(&Args { config: "upf.toml".into() }, Role::Cpe).unwrap();
        let told = command.as_std().get_envs().find(|(name, _)| *name == "MIMALLOC_PURGE_DELAY");
        let expected = std::env::var_os("MIMALLOC_PURGE_DELAY").is_none().then_some(Some("60000".as_ref()));
        assert_eq!(told.map(|(_, kept_ms)| kept_ms), expected);
    }
}
