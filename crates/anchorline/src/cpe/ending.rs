//! When the control plane engine ends that is told to: where the data plane engine ends, too, once that has told what sessions have used.
//!
//! `up` ends the data plane first. Where it is killed, or somebody else tells all processes of a node to end, both are told at once.

use super::link::Peer;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the data plane may take to say that it ends, too. It does as soon as it is told, but both of us may have to wait for a CPU.
const MOMENT: Duration = Duration::from_millis(500);
/// How long its last words are waited for; less than the 10 seconds that runtimes of containers leave a process to end.
pub(crate) const FAREWELL: Duration = Duration::from_secs(8);

/// Returns once this process has been told to stop and nothing is to be heard of the data plane any more that would be lost. Until then
/// all goes on.
pub(super) async fn told_to_stop(peer: watch::Receiver<Peer>) {
    crate::up::told_to_stop().await;
    last_words(peer, (MOMENT, FAREWELL)).await;
}

/// Returns when the data plane has ended, within the longer of these times; within the shorter one if it does not end: it counts on, and
/// tells the next one of us.
async fn last_words(mut peer: watch::Receiver<Peer>, (moment, farewell): (Duration, Duration)) {
    // Nobody left to tell us counts as gone.
    let _ = timeout(moment, peer.wait_for(|peer| *peer != Peer::Here)).await;
    if *peer.borrow() == Peer::Leaving {
        tracing::info!("the data plane ends, too: what it has to say is waited for");
        if timeout(farewell, peer.wait_for(|peer| *peer == Peer::Absent)).await.is_err() {
            tracing::warn!(
                "the data plane has not said all in {farewell:?}: what it was yet to tell is lost"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::time::sleep;

    const SOON: Duration = Duration::from_millis(20);
    const NEVER: Duration = Duration::from_secs(600);

    /// Where the data plane is like this when we are told to stop, and then becomes otherwise: whether that was all waited for.
    async fn hears_all(first: Peer, then: &[Peer], limits: (Duration, Duration)) -> bool {
        let (tell, peer) = watch::channel(first);
        let says = async {
            for next in then {
                sleep(SOON).await;
                tell.send_replace(*next);
            }
            pending::<()>().await;
        };
        tokio::select! {
            () = last_words(peer, limits) => {}
            () = says => {}
        }
        *tell.borrow() == then.last().copied().unwrap_or(first)
    }

    #[tokio::test]
    async fn a_data_plane_that_ends_is_heard_to_the_end() {
        let patient = (NEVER, NEVER);
        assert!(hears_all(Peer::Absent, &[], patient).await, "there is nobody to wait for");
        assert!(hears_all(Peer::Here, &[Peer::Absent], patient).await);
        assert!(hears_all(Peer::Here, &[Peer::Leaving, Peer::Absent], patient).await);
        assert!(hears_all(Peer::Leaving, &[Peer::Absent], (Duration::ZERO, NEVER)).await);
    }

    #[tokio::test]
    async fn nothing_is_waited_for_without_end() {
        let brief = Duration::from_millis(1);
        assert!(!hears_all(Peer::Here, &[Peer::Leaving], (brief, NEVER)).await, "it does not end");
        assert!(!hears_all(Peer::Leaving, &[Peer::Leaving, Peer::Absent], (NEVER, brief)).await);
    }
}
