//! The demo: a user in a RAN browses the data network through Anchorline, and its control plane is killed
//! meanwhile. Everything is measured by the programs people use; the last line is `demo: OK`.

mod keep;
mod outcome;
mod progress;
mod scenario;
mod table;

use anyhow::{Result, bail, ensure};
use clap::{Parser, ValueEnum};
use lab::config::Driver;
use lab::interrupt;
use lab::privilege::{self, Entry};
use progress::Progress;
use std::process::ExitCode;

/// Runs Anchorline between a RAN and a data network on this machine alone, and measures it.
#[derive(Debug, Parser)]
#[command(name = "demo", version)]
struct Options {
    /// Leave everything running at the end, say how to look around, and clean up on Ctrl-C.
    #[arg(long)]
    keep: bool,
    /// Print the results as one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// How the data plane reaches its interfaces; af_xdp needs root.
    #[arg(long, value_enum, default_value_t = DriverName::AfPacket)]
    driver: DriverName,
    /// Length of each of the four iperf3 measurements, in seconds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DriverName {
    #[value(name = "af_packet")]
    AfPacket,
    #[value(name = "af_xdp")]
    AfXdp,
}

impl From<DriverName> for Driver {
    fn from(name: DriverName) -> Self {
        match name {
            DriverName::AfPacket => Self::AfPacket,
            DriverName::AfXdp => Self::AfXdp,
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut progress = Progress::default();
    match demo(&options, &mut progress) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress.failed(&error);
            ExitCode::FAILURE
        }
    }
}

fn demo(options: &Options, progress: &mut Progress) -> Result<()> {
    if let Entry::Refused(lack) = privilege::enter()? {
        bail!(lack);
    }
    let denied = matches!(options.driver, DriverName::AfXdp) && !privilege::is_real_root();
    ensure!(!denied, "--driver af_xdp loads an XDP program, which only root may; af_packet needs no root");
    interrupt::watch()?;
    scenario::run(options, progress)
}
