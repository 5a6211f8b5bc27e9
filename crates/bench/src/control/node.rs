//! `anchorline up` as a child process, on ports without anything behind them.

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where the node is reached.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// How long it may take to be ready.
const START: Duration = Duration::from_secs(30);
/// How long it may take to end.
const FAREWELL: Duration = Duration::from_secs(30);
/// Between two looks whether it has.
const TICK: Duration = Duration::from_millis(10);
/// Marks a child that is to end when its parent does, however that ends.
const SUPERVISED: &str = "ANCHORLINE_SUPERVISED";

/// A node; it ends when this is dropped.
pub(crate) struct Node {
    child: Child,
    /// Where PFCP is served.
    pub(crate) address: SocketAddrV4,
    /// Of the control plane engine.
    pub(crate) cpe: u32,
    /// Of the data plane engine.
    pub(crate) dpe: u32,
    _folder: TempDir,
}

impl Node {
    /// Starts one that holds so many sessions, on the CPUs of the calling thread.
    ///
    /// # Errors
    /// What it says when it does not start, or that it takes too long.
    pub(crate) fn start(sessions: u32) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("anchorline-bench-").tempdir()?;
        let address = SocketAddrV4::new(ADDRESS, free_port()?);
        let config = folder.path().join("upf.toml");
        std::fs::write(&config, configuration(&folder, address, sessions))?;
        let executable = std::env::current_exe().context("the executable cannot be found again")?;
        let mut command = Command::new(executable);
        command.arg("up").arg("--config").arg(&config).env(SUPERVISED, "1").env("ANCHORLINE_LOG", "error");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().context("the node cannot be started")?;
        // From here on, whatever fails, dropping it ends the child.
        let mut node = Self { child, address, cpe: 0, dpe: 0, _folder: folder };
        node.wait_until_ready()?;
        Ok(node)
    }

    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let lines = lines(self.child.stdout.take().context("no standard output")?);
        let deadline = Instant::now() + START;
        loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line == "up: ready" => return Ok(()),
                Ok(line) => self.note_pid(&line),
                Err(RecvTimeoutError::Timeout) => bail!("the node was not ready in {} s", START.as_secs()),
                Err(RecvTimeoutError::Disconnected) => bail!("the node did not start; it says why above"),
            }
        }
    }

    fn note_pid(&mut self, line: &str) {
        let pid = |role: &str| line.strip_prefix(&format!("up: {role} pid "))?.parse().ok();
        self.cpe = pid("cpe").unwrap_or(self.cpe);
        self.dpe = pid("dpe").unwrap_or(self.dpe);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).map(Pid::from_raw);
        let _ = pid.map(|pid| kill(pid, Signal::SIGTERM));
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline && !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            thread::sleep(TICK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of the child, read until it closes its end.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (say, heard) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Read on, even where nobody listens: the child must not block.
            let _ = say.send(line);
        }
    });
    heard
}

fn free_port() -> anyhow::Result<u16> {
    let socket = UdpSocket::bind((ADDRESS, 0)).context("no UDP port can be had on the loopback")?;
    Ok(socket.local_addr()?.port())
}

/// The data path has no traffic and must not take the CPU from what is measured: it sleeps.
fn configuration(folder: &TempDir, listen: SocketAddrV4, sessions: u32) -> String {
    let folder = folder.path().display();
    format!(
        r#"[node]
id = "{address}"
run_dir = "{folder}/run"
state_dir = "{folder}/state"

[dpe]
memory_mb = 64
huge_pages = "never"
idle = "sleep"
idle_us = 250
sessions = {sessions}

[[dpe.port]]
name = "n3"
device = "net_null0,no-rx=1"
interface = "access"
address = "10.30.0.2/24"

[[dpe.port]]
name = "n6"
device = "net_null1,no-rx=1"
interface = "core"
address = "10.50.0.2/24"

[n4]
listen = "{listen}"
"#,
        address = listen.ip(),
    )
}
