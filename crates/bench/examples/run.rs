//! Runs the benchmark alone.
use clap::Parser;
fn main() -> anyhow::Result<()> {
    anchorline_bench::Args::parse().execute()
}
