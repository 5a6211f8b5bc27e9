//! Takes leave of control planes.

use crate::cpe::control::{self, Done, Order};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Between looks at who is still there.
const LOOK: Duration = Duration::from_millis(200);
/// After the time it has given, the control plane engine tells what sessions used and ends associations itself.
const SPARE: Duration = Duration::from_secs(40);

/// How long they have.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Seconds until sessions end in any case. Then control planes are told what these used, for 30 s at most, and the associations are
    /// over. Peers are told of the time in units of 2 seconds or more, rounded up.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    grace: u64,
    /// Wait until all have released us, or the time is up: then the node can be stopped and leaves no session behind.
    #[arg(long)]
    wait: bool,
    /// Take the order back: control planes may associate again, and those that have not released us make sessions again.
    #[arg(long, conflicts_with_all = ["grace", "wait"])]
    cancel: bool,
}

impl Args {
    /// Orders it, and says who was asked.
    pub(super) async fn execute(&self, control: &Path, json: bool) -> anyhow::Result<String> {
        let order = if self.cancel { Order::Stay } else { Order::Release { grace_s: self.grace } };
        let done = control::order(control, order).await?;
        if self.wait && !done.asked.is_empty() {
            self.until_left(control).await?;
        }
        if json {
            return Ok(serde_json::to_string(&done)? + "\n");
        }
        Ok(self.words(&done))
    }

    fn words(&self, done: &Done) -> String {
        match (&done.asked[..], self.wait) {
            ([], _) if self.cancel => "no leave is taken; no control plane is associated\n".to_owned(),
            (asked, _) if self.cancel => format!("no leave is taken; associated: {}\n", asked.join(", ")),
            ([], _) => "no control plane is associated, and none may associate\n".to_owned(),
            (asked, false) => format!("asked to release within {} s: {}\n", self.grace, asked.join(", ")),
            (asked, true) => format!("no longer associated: {}\n", asked.join(", ")),
        }
    }

    async fn until_left(&self, control: &Path) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(self.grace) + SPARE;
        loop {
            let Done { asked } = control::order(control, Order::Leaving).await?;
            if asked.is_empty() {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < end,
                "the time is up and still associated: {}",
                asked.join(", ")
            );
            sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::control::Control;

    /// An engine that one control plane leaves only after it was asked about twice.
    async fn engine(mut control: Control) {
        let mut looks = 0;
        loop {
            let (order, answer) = control.next().await;
            looks += u32::from(order == Order::Leaving);
            let asked = if looks < 3 { vec!["smf.example".to_owned()] } else { vec![] };
            answer.send(Done { asked }).unwrap();
        }
    }

    #[test]
    fn who_waits_is_told_once_they_have_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpe.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::spawn(engine(Control::listen(&path).unwrap()));
            let said = |wait, cancel| {
                let args = Args { grace: 60, wait, cancel };
                let path = path.clone();
                async move { args.execute(&path, false).await.unwrap() }
            };
            assert_eq!(said(false, false).await, "asked to release within 60 s: smf.example\n");
            let begun = Instant::now();
            assert_eq!(said(true, false).await, "no longer associated: smf.example\n");
            assert!(begun.elapsed() >= 2 * LOOK, "it did not look until they had left");
            assert_eq!(said(true, false).await, "no control plane is associated, and none may associate\n");
            assert_eq!(said(false, true).await, "no leave is taken; no control plane is associated\n");
        });
    }
}
