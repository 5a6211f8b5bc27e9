//! What an operator orders and asks of the control plane engine: over a Unix socket beside that of the data plane, one line of
//! JSON each way.

use super::predefined::{Granted, Wish};
use crate::{exit, reach, socket};
use anyhow::{Context, bail};
use n4::{AssociationStatus, ComesOf};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rules::Seid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// Connections at once; who comes besides is hung up on.
const CONNECTIONS_MAX: usize = 8;
/// An order is no longer, in octets: as many predefined rules as there may be, each with some filters.
const ORDER_MAX: u64 = 8 << 20;
/// Who does not say what it wants is hung up on.
const PATIENCE: Duration = Duration::from_secs(5);
/// After an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Ask every control plane to release its association, and let none associate until the process ends or
    /// [`Order::Stay`].
    Release {
        /// Within so many seconds; then the associations are over, once it is told what their sessions used.
        grace_s: u64,
        /// Ask only the one of this Node ID; all others are left alone.
        peer: Option<String>,
    },
    /// Take that back.
    Stay {
        /// For the one of this Node ID alone.
        peer: Option<String>,
    },
    /// Who was asked to, and has neither done so nor run out of time.
    Leaving,
    /// How associations stand.
    Associations,
    /// Applications that rules may name.
    Applications,
    /// Which PDRs of a session come of predefined rules.
    ComeOfPredefined(Seid),
    /// Predefined rules: which there are, and others.
    Predefined(Wish),
}

impl Order {
    /// One line of JSON.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// Node IDs of the control planes that were asked, have not released us yet, or are associated after all.
    pub(crate) asked: Vec<String>,
    /// Sessions of these that had gone before the order was taken back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) gone: u64,
    /// Node IDs of those that had not released us when their time was up, and how many of their sessions ended for that: of the one
    /// that was asked about, or of all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) unreleased: BTreeMap<String, u64>,
    /// What was asked for by [`Order::Associations`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) associations: Vec<AssociationStatus>,
    /// What was asked for by [`Order::Applications`]; none where it is not known, and every name is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) applications: Option<BTreeSet<String>>,
    /// What was asked for by [`Order::ComeOfPredefined`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) come_of: Vec<ComesOf>,
    /// What came of [`Order::Predefined`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) predefined: Option<Granted>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// An order, and where its answer goes.
pub(crate) type Ordered = (Order, oneshot::Sender<Done>);

/// The socket.
pub(crate) struct Control {
    ordered: mpsc::Receiver<Ordered>,
    tell: mpsc::Sender<Ordered>,
}

impl Control {
    /// Listens at `path`, in place of a socket that a dead engine left behind.
    pub(crate) fn listen(path: &Path) -> anyhow::Result<Self> {
        let listener = socket::listen(path, "control plane")?;
        let (tell, ordered) = mpsc::channel(CONNECTIONS_MAX);
        tokio::spawn(accept(listener, tell.clone()));
        Ok(Self { ordered, tell })
    }

    /// By which others in this process ask.
    pub(crate) fn asker(&self) -> mpsc::Sender<Ordered> {
        self.tell.clone()
    }

    /// The next order whose answer is still waited for; never returns where none can come any more.
    pub(crate) async fn next(&mut self) -> Ordered {
        loop {
            match self.ordered.recv().await {
                Some((_, answer)) if answer.is_closed() => {}
                Some(ordered) => return ordered,
                None => return std::future::pending().await,
            }
        }
    }
}

async fn accept(listener: UnixListener, tell: mpsc::Sender<Ordered>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let tell = tell.clone();
        tokio::spawn(async move {
            if let Ok(Err(error)) = timeout(PATIENCE, converse(stream, tell)).await {
                tracing::warn!("an order was not understood: {error:#}");
            }
            drop(place);
        });
    }
}

/// One order and its answer. Who says nothing only looked whether anybody listens, as `ctl cdr status` does.
async fn converse(stream: UnixStream, tell: mpsc::Sender<Ordered>) -> anyhow::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut line = String::new();
    BufReader::new(from.take(ORDER_MAX)).read_line(&mut line).await?;
    if line.is_empty() {
        return Ok(());
    }
    let order = Order::read(&line)?;
    if is_gone(to.as_ref()) {
        tracing::info!("an order is not carried out: whoever gave it has hung up");
        return Ok(());
    }
    let (answer, answered) = oneshot::channel();
    tell.send((order, answer)).await?;
    let done = serde_json::to_string(&answered.await?)? + "\n";
    Ok(to.write_all(done.as_bytes()).await?)
}

/// Whether nobody listens at the other end: who gave up waiting, as for an engine that was halted, was told that nothing was done.
/// One that has only said all it has to say (a half-closed stream) still listens.
fn is_gone(stream: &UnixStream) -> bool {
    let mut ends = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
    poll(&mut ends, PollTimeout::ZERO).is_ok()
        && ends.iter().any(|end| end.revents().is_some_and(|seen| seen.intersects(gone)))
}

const HUNG_UP: &str = "the control plane hung up; is it of another version?";

/// Orders something of the engine behind the socket at `path`.
pub(crate) async fn order(path: &Path, order: Order) -> anyhow::Result<Done> {
    let order = serde_json::to_string(&order)? + "\n";
    if order.len() as u64 > ORDER_MAX {
        let most = ORDER_MAX >> 20;
        return Err(exit::unusable(anyhow::anyhow!(
            "that is too much for one order, {most} MiB: do it by parts"
        )));
    }
    let conversation = async {
        let mut stream = UnixStream::connect(path).await.map_err(|error| {
            let why = reach::unreached(&error, "control plane", path);
            anyhow::Error::new(error).context(why)
        })?;
        stream.write_all(order.as_bytes()).await.context(HUNG_UP)?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.context(HUNG_UP)?;
        serde_json::from_str(&line).context(HUNG_UP)
    };
    let Ok(answer) = timeout(PATIENCE, conversation).await else {
        bail!("the control plane at {} does not answer within {PATIENCE:?}", path.display());
    };
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    #[test]
    fn an_order_is_heard_and_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/cpe.sock");
        run(async {
            let mut control = Control::listen(&path).unwrap();
            let engine = async {
                let (order, answer) = control.next().await;
                answer.send(Done { asked: vec!["smf.example".to_owned()], ..Done::default() }).unwrap();
                order
            };
            let asked = Order::Release { grace_s: 60, peer: None };
            let (heard, done) = tokio::join!(engine, order(&path, asked.clone()));
            assert_eq!((heard, done.unwrap().asked), (asked, vec!["smf.example".to_owned()]));
            assert!(Control::listen(&path).is_err(), "somebody listens there");
        });
    }

    #[test]
    fn a_connection_that_says_nothing_is_no_order_and_half_a_line_is_a_wrong_one() {
        for (said, is_understood) in [(&b""[..], true), (b"{", false), (b"\n", false)] {
            run(async {
                let (mut client, ours) = UnixStream::pair().unwrap();
                client.write_all(said).await.unwrap();
                drop(client);
                let (tell, mut ordered) = mpsc::channel(1);
                assert_eq!(converse(ours, tell).await.is_ok(), is_understood, "{said:?}");
                assert!(ordered.recv().await.is_none());
            });
        }
    }

    /// As whoever waited for an engine that was halted, and gave up.
    #[test]
    fn an_order_whose_client_is_gone_is_not_carried_out() {
        let stay = serde_json::to_string(&Order::Stay { peer: None }).unwrap() + "\n";
        run(async {
            let (mut client, ours) = UnixStream::pair().unwrap();
            client.write_all(stay.as_bytes()).await.unwrap();
            drop(client);
            let (tell, mut ordered) = mpsc::channel(1);
            converse(ours, tell).await.unwrap();
            assert!(ordered.recv().await.is_none());
            // One that is gone by the time it is its order's turn.
            let (tell, ordered) = mpsc::channel(2);
            let mut control = Control { ordered, tell };
            control.tell.send((Order::Stay { peer: None }, oneshot::channel().0)).await.unwrap();
            let (answer, _answered) = oneshot::channel();
            control.tell.send((Order::Leaving, answer)).await.unwrap();
            assert_eq!(control.next().await.0, Order::Leaving);
        });
    }

    #[test]
    fn whoever_says_no_more_but_listens_is_answered() {
        let leaving = serde_json::to_string(&Order::Leaving).unwrap();
        run(async {
            let (mut client, ours) = UnixStream::pair().unwrap();
            client.write_all(leaving.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let (tell, mut ordered) = mpsc::channel::<Ordered>(1);
            let engine = async { ordered.recv().await.unwrap().1.send(Done::default()).unwrap() };
            tokio::join!(engine, async { converse(ours, tell).await.unwrap() });
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            assert!(serde_json::from_str::<Done>(&said).is_ok(), "{said}");
        });
    }

    #[test]
    fn what_is_no_order_is_hung_up_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpe.sock");
        run(async {
            let _control = Control::listen(&path).unwrap();
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(b"{\"release\":{}}\n").await.unwrap();
            let mut said = Vec::new();
            stream.read_to_end(&mut said).await.unwrap();
            assert!(said.is_empty(), "{said:?}");
            let much = Order::Predefined(Wish::Put { text: "x".repeat(ORDER_MAX as usize) });
            let refused = order(&path, much).await.unwrap_err().to_string();
            assert!(refused.contains("too much for one order, 8 MiB"), "{refused}");
            let absent = order(&folder.path().join("none"), Order::Release { grace_s: 0, peer: None }).await;
            assert!(absent.unwrap_err().to_string().contains("no control plane runs at"));
        });
    }
}
