//! Takes leave of control planes, or of one.

use crate::cpe::control::{self, Done, Order};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Between looks at who is still there.
const LOOK: Duration = Duration::from_millis(200);
/// After the time it has given, the control plane engine tells what sessions used and ends associations itself.
const SPARE: Duration = Duration::from_secs(40);

/// A control plane engine that has died is there again by then, or nobody starts it.
const RESTART: Duration = Duration::from_secs(10);

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
    /// Wait until all have released us, or the time is up: then the node can be stopped and leaves no session behind. It is said of each
    /// which it was; where the time was up for one at least, the exit code is 3.
    #[arg(long)]
    wait: bool,
    /// Take the order back: control planes may associate again, and those that have not released us make sessions again. For whom the time
    /// was up before is said, with how many sessions that ended; with `--peer` the exit code is 3 then.
    #[arg(long, conflicts_with_all = ["grace", "wait"])]
    cancel: bool,
}

impl Args {
    /// Orders it, and says who was asked.
    pub(super) async fn execute(&self, control: &Path, json: bool) -> anyhow::Result<String> {
        let peer = self.peer.clone();
        let order =
            if self.cancel { Order::Stay { peer } } else { Order::Release { grace_s: self.grace, peer } };
        let mut done = control::order(control, order).await?;
        let is_unknown = done.asked.is_empty() && done.unreleased.is_empty();
        if let Some(peer) = self.peer.as_ref().filter(|_| is_unknown) {
            anyhow::bail!(
                "no control plane is associated as {peer}; `ctl associations` names those that are"
            );
        }
        if self.wait && !done.asked.is_empty() {
            let most = Duration::from_secs(self.grace) + SPARE;
            let left = self.until_left(control, &done.asked);
            done.unreleased = super::progress::during("control planes are waited for", most, left).await?;
        }
        let told = if json { serde_json::to_string(&done)? + "\n" } else { self.words(&done) };
        match self.is_late(&done) {
            true => Err(crate::exit::late(told)),
            false => Ok(told),
        }
    }

    /// Whether what was waited for, or taken back, was over before it was done.
    fn is_late(&self, done: &Done) -> bool {
        !done.unreleased.is_empty() && (self.wait || (self.peer.is_some() && done.asked.is_empty()))
    }

    fn words(&self, done: &Done) -> String {
        if !self.cancel && self.wait && !done.asked.is_empty() {
            return done.asked.iter().map(|peer| format!("{}\n", became(peer, done))).collect();
        }
        let gone = match done.gone {
            0 => String::new(),
            gone => format!("; {gone} sessions had gone already"),
        };
        let over: String = done.unreleased.keys().map(|peer| format!("{}\n", became(peer, done))).collect();
        let asked = done.asked.join(", ");
        match (done.asked.is_empty(), self.cancel) {
            (true, true) if self.peer.is_some() => over,
            (true, true) => format!("no leave is taken; no control plane is associated\n{over}"),
            (false, true) if self.peer.is_some() => format!("no leave is taken of {asked}{gone}\n{over}"),
            (false, true) => format!("no leave is taken; associated: {asked}{gone}\n{over}"),
            (true, false) => "no control plane is associated, and none may associate\n".to_owned(),
            (false, false) => format!("asked to release within {} s: {asked}\n", self.grace),
        }
    }

    /// Of all that are left, or of the one that was asked. Which of those that were asked had not released us in time.
    async fn until_left(&self, control: &Path, asked: &[String]) -> anyhow::Result<BTreeMap<String, u64>> {
        let end = Instant::now() + Duration::from_secs(self.grace) + SPARE;
        let mut heard = Instant::now();
        loop {
            let Done { asked: mut left, mut unreleased, .. } =
                match control::order(control, Order::Leaving).await {
                    Ok(done) => done,
                    // It may have died, and the order holds in its next life, too.
                    Err(_) if heard.elapsed() < RESTART => {
                        sleep(LOOK).await;
                        continue;
                    }
                    Err(error) => return Err(error.context("the order is given, and stays in force")),
                };
            heard = Instant::now();
            left.retain(|left| self.peer.is_none() || asked.contains(left));
            if left.is_empty() {
                unreleased.retain(|peer, _| asked.contains(peer));
                return Ok(unreleased);
            }
            anyhow::ensure!(Instant::now() < end, "the time is up and still associated: {}", left.join(", "));
            sleep(LOOK).await;
        }
    }
}

/// What became of a control plane that was asked, in words.
fn became(peer: &str, done: &Done) -> String {
    match done.unreleased.get(peer) {
        Some(sessions) => format!("{peer}: the time was up: {sessions} sessions ended"),
        // Only its address is known of one that was asked to associate before.
        None if peer.parse::<SocketAddr>().is_ok() => format!("{peer}: does not associate any more"),
        None => format!("{peer}: released"),
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
                Order::Release { peer: Some(peer), .. } if peer == "gone.example" => vec![peer],
                Order::Release { peer: Some(peer), .. } | Order::Stay { peer: Some(peer) } => {
                    vec![peer].into_iter().filter(is_known).collect()
                }
                Order::Leaving if looks == 5 => vec!["other.example".to_owned()],
                _ if looks < 3 => vec!["smf.example".to_owned()],
                _ => vec![],
            };
            // One that was late: some of its sessions are over; and one for whom the time was up.
            let late = Order::Stay { peer: Some("smf.example".to_owned()) };
            let gone = if order == late { 7 } else { 0 };
            let is_told = match &order {
                Order::Leaving => true,
                Order::Stay { peer } => peer.as_ref().is_none_or(|peer| peer == "gone.example"),
                _ => false,
            };
            let unreleased = if is_told { [("gone.example".to_owned(), 12)].into() } else { BTreeMap::new() };
            answer.send(Done { asked, gone, unreleased, ..Done::default() }).unwrap();
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
            assert_eq!(all(true, false).await, "smf.example: released\n");
            assert!(begun.elapsed() >= 2 * LOOK, "it did not look until they had left");
            assert_eq!(all(true, false).await, "no control plane is associated, and none may associate\n");
            let over = "gone.example: the time was up: 12 sessions ended\n";
            let none = format!("no leave is taken; no control plane is associated\n{over}");
            assert_eq!(all(false, true).await, none);
            let one = Some("other.example");
            assert_eq!(said(one, false, true).await.unwrap(), "no leave is taken of other.example\n");
            let late = said(Some("smf.example"), false, true).await.unwrap();
            assert_eq!(late, "no leave is taken of smf.example; 7 sessions had gone already\n");
            // The fourth look is the last: it has left. Another one's time does not matter.
            assert_eq!(said(one, true, false).await.unwrap(), "other.example: released\n");
            let smf = said(Some("smf.example"), true, false).await.unwrap();
            assert_eq!(smf, "smf.example: released\n");
            for (wait, cancel) in [(true, false), (false, true)] {
                let late = said(Some("gone.example"), wait, cancel).await.unwrap_err();
                assert_eq!((late.to_string().as_str(), crate::exit::is_late(&late)), (over, true));
            }
            let nobody = said(Some("nobody"), false, false).await.unwrap_err().to_string();
            assert!(nobody.contains("no control plane is associated as nobody"), "{nobody}");
        });
    }

    /// The order holds in its next life, too.
    #[test]
    fn a_control_plane_engine_that_dies_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpe.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let args = Args { grace: 60, peer: None, wait: true, cancel: false };
            let reborn = async {
                sleep(3 * LOOK).await;
                let mut control = Control::listen(&path).unwrap();
                let (order, answer) = control.next().await;
                assert_eq!(order, Order::Leaving);
                answer.send(Done { unreleased: [("smf".to_owned(), 2)].into(), ..Done::default() }).unwrap();
                std::future::pending::<()>().await;
            };
            let asked = ["smf".to_owned()];
            let left = args.until_left(&path, &asked);
            tokio::select! {
                left = left => assert_eq!(left.unwrap(), [("smf".to_owned(), 2)].into()),
                () = reborn => {}
            }
        });
    }
}
