//! Takes leave of control planes.

use crate::cpe::control::{self, Order};
use std::path::Path;

/// How long they have.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Seconds until the associations are over in any case. Peers are told in units of 2 seconds or more, rounded up.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    grace: u64,
}

impl Args {
    /// Orders it, and says who was asked.
    pub(super) async fn execute(&self, control: &Path, json: bool) -> anyhow::Result<String> {
        let done = control::order(control, Order::Release { grace_s: self.grace }).await?;
        if json {
            return Ok(serde_json::to_string(&done)? + "\n");
        }
        Ok(match &done.asked[..] {
            [] => "no control plane is associated\n".to_owned(),
            asked => format!("asked to release within {} s: {}\n", self.grace, asked.join(", ")),
        })
    }
}
