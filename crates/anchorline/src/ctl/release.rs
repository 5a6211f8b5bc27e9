//! Takes leave of control planes, or of one.

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
    /// Ask only the control plane of this Node ID, as `ctl associations` tells it; all others are left alone.
    #[arg(long, value_name = "NODE-ID")]
    peer: Option<String>,
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
        let peer = self.peer.clone();
        let order =
            if self.cancel { Order::Stay { peer } } else { Order::Release { grace_s: self.grace, peer } };
        let done = control::order(control, order).await?;
        if let Some(peer) = self.peer.as_ref().filter(|_| done.asked.is_empty()) {
            anyhow::bail!(
                "no control plane is associated as {peer}; `ctl associations` names those that are"
            );
        }
        if self.wait && !done.asked.is_empty() {
            let most = Duration::from_secs(self.grace) + SPARE;
            let left = self.until_left(control, &done.asked);
            super::progress::during("control planes are waited for", most, left).await?;
        }
        if json {
            return Ok(serde_json::to_string(&done)? + "\n");
        }
        Ok(self.words(&done))
    }

    fn words(&self, done: &Done) -> String {
        let gone = match done.gone {
            0 => String::new(),
            gone => format!("; {gone} sessions had gone already"),
        };
        match (&done.asked[..], self.wait) {
            (asked, _) if self.cancel && self.peer.is_some() => {
                format!("no leave is taken of {}{gone}\n", asked.join(", "))
            }
            ([], _) if self.cancel => "no leave is taken; no control plane is associated\n".to_owned(),
            (asked, _) if self.cancel => {
                format!("no leave is taken; associated: {}{gone}\n", asked.join(", "))
            }
            ([], _) => "no control plane is associated, and none may associate\n".to_owned(),
            (asked, false) => format!("asked to release within {} s: {}\n", self.grace, asked.join(", ")),
            (asked, true) => format!("no longer associated: {}\n", asked.join(", ")),
        }
    }

    /// Of all that are left, or of the one that was asked.
    async fn until_left(&self, control: &Path, asked: &[String]) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(self.grace) + SPARE;
        loop {
            let mut left = control::order(control, Order::Leaving).await?.asked;
            left.retain(|left| self.peer.is_none() || asked.contains(left));
            if left.is_empty() {
                return Ok(());
            }
            anyhow::ensure!(Instant::now() < end, "the time is up and still associated: {}", left.join(", "));
            sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::control::Control;

    /// An engine that one control plane leaves only after it was asked about twice; another one stays.
    async fn engine(mut control: Control) {
        let mut looks = 0;
        loop {
            let (order, answer) = control.next().await;
            looks += u32::from(order == Order::Leaving);
            let is_known = |peer: &String| peer == "smf.example" || peer == "other.example";
            let asked = match order.clone() {
                Order::Release { peer: Some(peer), .. } | Order::Stay { peer: Some(peer) } => {
                    vec![peer].into_iter().filter(is_known).collect()
                }
                Order::Leaving if looks == 5 => vec!["other.example".to_owned()],
                _ if looks < 3 => vec!["smf.example".to_owned()],
                _ => vec![],
            };
            // One that was late: some of its sessions are over.
            let late = Order::Stay { peer: Some("smf.example".to_owned()) };
            let gone = if order == late { 7 } else { 0 };
            answer.send(Done { asked, gone, ..Done::default() }).unwrap();
        }
    }

    #[test]
    fn who_waits_is_told_once_they_have_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpe.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::spawn(engine(Control::listen(&path).unwrap()));
            let said = |peer: Option<&str>, wait, cancel| {
                let args = Args { grace: 60, peer: peer.map(str::to_owned), wait, cancel };
                let path = path.clone();
                async move { args.execute(&path, false).await }
            };
            let all = |wait, cancel| async move { said(None, wait, cancel).await.unwrap() };
            assert_eq!(all(false, false).await, "asked to release within 60 s: smf.example\n");
            let begun = Instant::now();
            assert_eq!(all(true, false).await, "no longer associated: smf.example\n");
            assert!(begun.elapsed() >= 2 * LOOK, "it did not look until they had left");
            assert_eq!(all(true, false).await, "no control plane is associated, and none may associate\n");
            assert_eq!(all(false, true).await, "no leave is taken; no control plane is associated\n");
            let one = Some("other.example");
            assert_eq!(said(one, false, true).await.unwrap(), "no leave is taken of other.example\n");
            let late = said(Some("smf.example"), false, true).await.unwrap();
            assert_eq!(late, "no leave is taken of smf.example; 7 sessions had gone already\n");
            // The fourth look is the last: it has left. Another one's time does not matter.
            assert_eq!(said(one, true, false).await.unwrap(), "no longer associated: other.example\n");
            let smf = said(Some("smf.example"), true, false).await.unwrap();
            assert_eq!(smf, "no longer associated: smf.example\n");
            let nobody = said(Some("nobody"), false, false).await.unwrap_err().to_string();
            assert!(nobody.contains("no control plane is associated as nobody"), "{nobody}");
        });
    }
}
