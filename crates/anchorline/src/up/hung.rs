//! A control plane engine that is there and does nothing: no session would ever be made again, and nobody would know why.

use crate::cpe::control::{self, Order};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long an engine is waited for, and between what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Between two questions, and for an answer.
    pub(super) pause: Duration,
    /// An engine that has answered nothing for so long is told of.
    pub(super) worry: Duration,
    /// For so long: it hangs.
    pub(super) most: Duration,
}

impl Patience {
    /// It is at most a second behind with its work where a million sessions come at once.
    pub(super) const USUAL: Self =
        Self { pause: Duration::from_secs(4), worry: Duration::from_secs(10), most: Duration::from_secs(60) };
}

/// Returns once the engine that listens at `socket`, and has answered before, has answered nothing for too long. One that starts reads
/// its database first, however long that takes.
pub(super) async fn hangs(socket: &Path, patience: Patience) {
    let (mut heard, mut is_worried) = (None::<Instant>, false);
    loop {
        sleep(patience.pause).await;
        let asked = timeout(patience.pause, control::order(socket, Order::Leaving)).await;
        let silent = heard.map_or(Duration::ZERO, |heard| heard.elapsed());
        match asked {
            Ok(Ok(_)) => {
                if is_worried {
                    tracing::warn!("the cpe answers again");
                }
                (heard, is_worried) = (Some(Instant::now()), false);
            }
            // Whoever hangs up is there; nobody is where it starts.
            Ok(Err(_)) => {}
            Err(_) if silent >= patience.most => return,
            Err(_) if silent >= patience.worry && !is_worried => {
                is_worried = true;
                let (silent, most) = (silent.as_secs(), patience.most);
                tracing::error!(
                    "the cpe has not answered for {silent} s: sessions stay as they are, and nothing changes; \
                     after {most:?} it is ended and starts again"
                );
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::control::{Control, Done};

    const SHORT: Patience = Patience {
        pause: Duration::from_millis(20),
        worry: Duration::from_millis(50),
        most: Duration::from_millis(200),
    };

    #[tokio::test]
    async fn an_engine_that_has_answered_and_no_longer_does_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("cpe.sock");
        let lasts = async |time| timeout(Duration::from_millis(time), hangs(&socket, SHORT)).await.is_err();
        assert!(lasts(400).await, "nobody is there yet");
        let mut control = Control::listen(&socket).unwrap();
        assert!(lasts(400).await, "it has not answered yet");
        let answers = async {
            loop {
                let _ = control.next().await.1.send(Done::default());
            }
        };
        tokio::select! {
            lasts = lasts(400) => assert!(lasts, "it answers"),
            () = answers => {}
        }
        let halts = async {
            let _ = control.next().await.1.send(Done::default());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            lasts = lasts(2_000) => assert!(!lasts, "it does not answer any more"),
            () = halts => {}
        }
    }
}
