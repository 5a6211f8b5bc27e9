//! A whole node: both engines as child processes, restarted when they die, ended together.

use crate::exit::{self, UNUSABLE};
use crate::settings::Args;
use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

/// Set for the children, so that they end with their parent.
const SUPERVISED: &str = "ANCHORLINE_SUPERVISED";
/// Before the first restart; doubles with each that follows soon.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Between restarts at most.
const PAUSE_MOST: Duration = Duration::from_secs(5);
/// A child that lived longer was all right.
const SOUND: Duration = Duration::from_secs(10);
/// How long a child may take to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// Runs until told to stop, or until an engine says that it can never run like this.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.load()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(supervise(args))
}

async fn supervise(args: &Args) -> anyhow::Result<()> {
    let (stop, told) = watch::channel(false);
    let (say, heard) = mpsc::channel(8);
    let mut dpe = tokio::spawn(keep("dpe", command(args, "dpe")?, told.clone(), say.clone()));
    let mut cpe = tokio::spawn(keep("cpe", command(args, "cpe")?, told, say));
    let ready = tokio::spawn(announce(heard));
    let ended = tokio::select! {
        () = told_to_stop() => None,
        result = &mut dpe => Some(result),
        result = &mut cpe => Some(result),
    };
    // Both are told at once; the data plane does not need the control plane to end well, nor the reverse.
    stop.send_replace(true);
    for task in [dpe, cpe] {
        if !task.is_finished() {
            task.await??;
        }
    }
    ready.abort();
    ended.map_or(Ok(()), |result| result?)
}

/// Says so once both engines are ready.
async fn announce(mut heard: mpsc::Receiver<&'static str>) {
    let mut ready: Vec<&str> = Vec::new();
    while let Some(role) = heard.recv().await {
        if !ready.contains(&role) {
            ready.push(role);
            if ready.len() == 2 {
                println!("up: ready");
            }
        }
    }
}

fn command(args: &Args, role: &str) -> anyhow::Result<Command> {
    let executable = std::env::current_exe().context("the executable cannot be found again")?;
    let arguments: [OsString; 3] = [role.into(), "--config".into(), args.config.clone().into()];
    let mut command = Command::new(executable);
    command.args(arguments).env(SUPERVISED, "1").stdin(Stdio::null()).stdout(Stdio::piped());
    // A group of its own: Ctrl-C reaches us, and we end the children in order.
    command.process_group(0).kill_on_drop(true);
    Ok(command)
}

/// Keeps one engine running.
async fn keep(
    role: &'static str,
    mut command: Command,
    mut told: watch::Receiver<bool>,
    say: mpsc::Sender<&'static str>,
) -> anyhow::Result<()> {
    let mut pause = PAUSE_FIRST;
    while !*told.borrow() {
        let mut child = command.spawn().with_context(|| format!("the {role} cannot be started"))?;
        let pid = child.id().unwrap_or_default();
        println!("up: {role} pid {pid}");
        let started = Instant::now();
        tokio::spawn(pass_on(role, child.stdout.take(), say.clone()));
        let status = tokio::select! {
            status = child.wait() => status?,
            () = stopped(&mut told) => return end(role, child).await,
        };
        check(role, status)?;
        pause = if started.elapsed() > SOUND { PAUSE_FIRST } else { (pause * 2).min(PAUSE_MOST) };
        tracing::warn!("the {role} ended ({status}); it starts again in {pause:?}");
        tokio::select! {
            () = sleep(pause) => {}
            () = stopped(&mut told) => {}
        }
    }
    Ok(())
}

async fn stopped(told: &mut watch::Receiver<bool>) {
    // Nobody left to tell us counts as told.
    let _ = told.wait_for(|stop| *stop).await;
}

/// An engine that cannot use its configuration is not started again.
fn check(role: &str, status: ExitStatus) -> anyhow::Result<()> {
    if status.code() == Some(i32::from(UNUSABLE)) {
        return Err(exit::unusable(anyhow::anyhow!(
            "the {role} cannot run like this; what it said stands above"
        )));
    }
    Ok(())
}

async fn end(role: &str, mut child: Child) -> anyhow::Result<()> {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    if timeout(FAREWELL, child.wait()).await.is_err() {
        tracing::warn!("the {role} did not end in {FAREWELL:?} and is killed");
        child.kill().await?;
    }
    Ok(())
}

/// Passes on what an engine says, and notes when it is ready.
async fn pass_on(
    role: &'static str,
    stdout: Option<tokio::process::ChildStdout>,
    say: mpsc::Sender<&'static str>,
) {
    let Some(stdout) = stdout else { return };
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        println!("{line}");
        if line == format!("{role}: ready") {
            let _ = say.send(role).await;
        }
    }
}

/// An engine started by [`run`] ends when its parent does, however that ends.
pub(crate) fn bind_to_parent() {
    if std::env::var_os(SUPERVISED).is_some()
        && let Err(error) = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)
    {
        tracing::warn!("this process will not end with its parent: {error}");
    }
}

/// Returns on SIGTERM and SIGINT.
pub(crate) async fn told_to_stop() {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be received; only SIGKILL will end this process");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}
