//! The command line.

use crate::{Config, Options, run};
use std::path::PathBuf;
use std::time::Duration;

/// Emulates a RAN and its SMF towards a user plane.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Say everything as JSON, one object a line.
    #[arg(long)]
    json: bool,
    /// How long the user plane may take to answer at first; at least the 3 s of one request's tries.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
    /// Obey commands on standard input, one a line: "sleep ADDRESS" keeps a UE's downlink packets, "wake ADDRESS"
    /// sends them; so does the first packet that comes for it.
    #[arg(long)]
    commands: bool,
}

impl Args {
    /// Reads the configuration and runs until told to stop.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub fn execute(&self) -> anyhow::Result<()> {
        let config = Config::read(&self.config)?;
        let options =
            Options { json: self.json, wait: Duration::from_secs(self.wait), commands: self.commands };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(run(config, options))
    }
}
