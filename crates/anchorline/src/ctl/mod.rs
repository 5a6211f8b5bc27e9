//! Looks into a running node: asks its data plane engine, which answers whether or not a control plane is there.

mod ask;
mod table;

use crate::settings;
use clap::{Parser, Subcommand};
use dplink::Statistics;

/// What to look at, and how to say it.
#[derive(Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    view: View,
    #[command(flatten)]
    settings: settings::Args,
    /// Print one JSON object with everything the engine counts.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum View {
    /// Sessions, ports, and whether every packet is accounted for.
    Status,
    /// Packets, vectors and cycles by node of the graph.
    Runtime,
    /// Dropped packets by reason.
    Drops,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.settings.load()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let statistics = runtime.block_on(ask::statistics(&settings.link()))?;
    if args.json {
        println!("{}", serde_json::to_string(&statistics)?);
        return Ok(());
    }
    print!("{}", args.view.text(&statistics));
    Ok(())
}

impl View {
    fn text(&self, statistics: &Statistics) -> String {
        match self {
            Self::Status => table::status(statistics),
            Self::Runtime => table::runtime(statistics),
            Self::Drops => table::drops(statistics),
        }
    }
}
