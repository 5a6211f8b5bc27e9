//! The link to the data plane engine, made again whenever it breaks.

use dplink::frame::{self, FrameError, Reader};
use dplink::{Command, Desired, Notice, RefusalCause, Role, VERSION};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// Commands and notices on their way, each.
const AHEAD: usize = 4_096;
/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(50);
/// Between two looks whether the data plane answers.
const LOOK: Duration = Duration::from_secs(10);

/// What the link has to tell.
pub(crate) enum Heard {
    /// It stands: say what should be.
    Connected {
        /// How the data plane greeted: what it holds already, and which life of it this is.
        hello: Notice,
        /// Where commands go; those of an older connection go nowhere.
        commands: mpsc::Sender<Command>,
    },
    /// From the data plane.
    Notice(Notice),
    /// The data plane has told all that it, or a former life of it, has to say, and waits for the answer.
    Farewell {
        /// Where that goes: there may be no greeting before it.
        commands: mpsc::Sender<Command>,
    },
    /// It broke.
    Lost,
}

/// How the data plane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// There is no link to one; all that came by the last link was passed on.
    Absent,
    /// There is a link.
    Here,
    /// It has been told to end.
    Leaving,
}

/// A task that keeps the link.
pub(crate) struct Link {
    heard: mpsc::Receiver<Heard>,
    peer: watch::Receiver<Peer>,
}

impl Link {
    /// Connects to the socket at `path`, now and for ever.
    pub(crate) fn start(path: PathBuf) -> Self {
        let (tell, heard) = mpsc::channel(AHEAD);
        let (is, peer) = watch::channel(Peer::Absent);
        tokio::spawn(async move {
            while !tell.is_closed() {
                if let Ok(socket) = UnixStream::connect(&path).await {
                    is.send_replace(Peer::Here);
                    match converse(socket, &tell, &is).await {
                        Err(_) if *is.borrow() == Peer::Leaving => tracing::info!("the data plane has ended"),
                        Err(error) => tracing::warn!("the link to the data plane broke: {error:#}"),
                        Ok(()) => {}
                    }
                    let _ = tell.send(Heard::Lost).await;
                    is.send_replace(Peer::Absent);
                }
                sleep(PAUSE).await;
            }
        });
        Self { heard, peer }
    }

    /// How the data plane is, from now on.
    pub(crate) fn peer(&self) -> watch::Receiver<Peer> {
        self.peer.clone()
    }

    /// What happens next.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        self.heard.recv().await
    }

    /// What has happened already and was not told yet.
    pub(crate) fn try_next(&mut self) -> Option<Heard> {
        self.heard.try_recv().ok()
    }
}

async fn converse(
    socket: UnixStream,
    tell: &mpsc::Sender<Heard>,
    is: &watch::Sender<Peer>,
) -> anyhow::Result<()> {
    let (mut from, mut to) = socket.into_split();
    let (commands, mut queue) = mpsc::channel(AHEAD);
    let answers = AtomicBool::new(true);
    let write = async {
        let mut bytes = Vec::new();
        frame::write(&Command::Hello { version: VERSION, role: Role::Control }, &mut bytes)?;
        loop {
            to.write_all(&bytes).await?;
            bytes.clear();
            let mut next = queue.recv().await;
            anyhow::ensure!(next.is_some(), "nobody has commands any more");
            while let Some(command) = next {
                if let Err(error) = frame::write(&command, &mut bytes) {
                    tell.send(Heard::Notice(unsent(command, error)?)).await?;
                }
                next = queue.try_recv().ok();
            }
        }
    };
    let read = async {
        let mut reader = Reader::default();
        let mut bytes = vec![0; 65_536];
        loop {
            while let Some(notice) = reader.take()? {
                match notice {
                    Notice::Leaving => _ = is.send_replace(Peer::Leaving),
                    Notice::Statistics(_) => {
                        answers.store(true, Relaxed);
                        continue;
                    }
                    // Before it has greeted, it answers no questions: what former lives have left comes first.
                    Notice::Hello { .. } | Notice::FormerUsage { .. } => answers.store(true, Relaxed),
                    _ => {}
                }
                let heard = match notice {
                    hello @ Notice::Hello { .. } => Heard::Connected { hello, commands: commands.clone() },
                    Notice::Farewell => Heard::Farewell { commands: commands.clone() },
                    notice => Heard::Notice(notice),
                };
                tell.send(heard).await?;
            }
            match from.read(&mut bytes).await? {
                0 => anyhow::bail!("the data plane hung up"),
                length => reader.extend(bytes.get(..length).unwrap_or_default()),
            }
        }
    };
    tokio::select! {
        result = write => result,
        result = read => result,
        () = watch((&commands, &answers, is), LOOK, told) => Ok(()),
    }
}

/// Has the data plane asked for something that all of it has to answer, again and again: says when it does not, and when it does again.
/// One that is about to end has other things to tell.
async fn watch(
    (commands, answers, is): (&mpsc::Sender<Command>, &AtomicBool, &watch::Sender<Peer>),
    look: Duration,
    told: impl Fn(bool),
) {
    let mut was_well = true;
    loop {
        // One that has no room for a question has enough of them.
        let _ = commands.try_send(Command::GetStatistics);
        sleep(look).await;
        let is_well = answers.swap(false, Relaxed) || *is.borrow() == Peer::Leaving;
        if is_well != was_well {
            told(is_well);
        }
        was_well = is_well;
    }
}

fn told(is_well: bool) {
    match is_well {
        true => tracing::info!("the data plane answers again"),
        false => tracing::error!("the data plane has not answered for {LOOK:?}: users' packets may not pass"),
    }
}

/// What is too long for the link is that session's affair, and no reason to hang up on all others.
fn unsent(command: Command, error: FrameError) -> Result<Notice, FrameError> {
    match (command, error) {
        (Command::Put(Desired { session, revision, .. }), error @ FrameError::TooLong(_)) => {
            Ok(Notice::Refused { session, revision, cause: RefusalCause::Full, reason: error.to_string() })
        }
        (_, error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::{Rules, Seid};
    use std::sync::Mutex;

    #[test]
    fn a_session_too_long_for_the_link_is_refused_and_nothing_else_is_passed_over() {
        let put = Command::Put(Desired::new(Seid(7), 3, Rules::default()));
        let refused = unsent(put.clone(), FrameError::TooLong(frame::LIMIT + 1)).unwrap();
        assert!(matches!(
            refused,
            Notice::Refused { session: Seid(7), revision: 3, cause: RefusalCause::Full, .. }
        ));
        assert!(unsent(Command::ResyncEnd, FrameError::TooLong(frame::LIMIT + 1)).is_err());
    }

    /// A process that hangs keeps its connections.
    #[tokio::test]
    async fn a_data_plane_that_does_not_answer_is_told_of_once_and_again_when_it_does() {
        let (commands, mut asked) = mpsc::channel(AHEAD);
        let (answers, said) = (AtomicBool::new(true), Mutex::new(vec![]));
        let (is, _) = watch::channel(Peer::Here);
        let look = Duration::from_millis(20);
        let answering = async {
            for is_well in [true, true, false, false, false, true, true] {
                assert_eq!(asked.recv().await, Some(Command::GetStatistics));
                answers.store(is_well, Relaxed);
            }
            asked.recv().await;
            is.send_replace(Peer::Leaving);
            asked.recv().await;
        };
        tokio::select! {
            // An answer comes before the look for it, however late both are.
            biased;
            () = answering => {}
            () = watch((&commands, &answers, &is), look, |is_well| said.lock().unwrap().push(is_well)) => {}
        }
        assert_eq!(*said.lock().unwrap(), [false, true]);
    }
}
