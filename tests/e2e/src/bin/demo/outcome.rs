//! What the demo found.

use crate::{progress, table};
use anyhow::Result;
use dplink::Statistics;
use lab::capture::Audit;
use lab::measure::{Direction, Downloaded, Ping, Tcp, Udp};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Everything measured.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Where the logs and the capture are.
    pub(crate) run_dir: PathBuf,
    pub(crate) sessions: u64,
    pub(crate) ping: Ping,
    pub(crate) download: Downloaded,
    pub(crate) tcp: BothWays<Tcp>,
    pub(crate) udp: BothWays<Udp>,
    /// Of a user held to 10 Mbit/s up and 20 down.
    pub(crate) contract: BothWays<Udp>,
    pub(crate) cpe_kill: CpeKill,
    pub(crate) capture: Audit,
    /// After the last packet.
    pub(crate) statistics: Statistics,
}

/// The same measurement in both directions.
#[derive(Debug, Serialize)]
pub(crate) struct BothWays<T> {
    pub(crate) up: T,
    pub(crate) down: T,
}

impl<T> BothWays<T> {
    /// Measures up, then down.
    pub(crate) fn measure(mut measurement: impl FnMut(Direction) -> Result<T>) -> Result<Self> {
        Ok(Self { up: measurement(Direction::Uplink)?, down: measurement(Direction::Downlink)? })
    }
}

/// The control plane's death and return.
#[derive(Debug, Serialize)]
pub(crate) struct CpeKill {
    pub(crate) old_pid: i32,
    pub(crate) new_pid: i32,
    /// Until its successor was started.
    pub(crate) restart_ms: f64,
    /// Before and after.
    pub(crate) sessions: u64,
    /// While it happened.
    pub(crate) ping: Ping,
    /// While it happened.
    pub(crate) download: Downloaded,
}

impl Outcome {
    /// Prints the table, or the JSON object alone on standard output; then the last line.
    pub(crate) fn print(&self, json: bool) -> Result<()> {
        let mut stdout = io::stdout().lock();
        if json {
            writeln!(stdout, "{}", serde_json::to_string(self)?)?;
            progress::say("demo: OK");
        } else {
            writeln!(stdout, "\n{}\ndemo: OK", table::render(self))?;
        }
        Ok(())
    }
}
