//! The link to the data plane engine, made again whenever it breaks.

use dplink::frame::{self, FrameError, Reader};
use dplink::{Command, Desired, Notice, RefusalCause, Role, VERSION};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// Commands and notices on their way, each.
const AHEAD: usize = 4_096;
/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(50);

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
                    if let Err(error) = converse(socket, &tell, &is).await {
                        tracing::warn!("the link to the data plane broke: {error:#}");
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
                if notice == Notice::Leaving {
                    is.send_replace(Peer::Leaving);
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
}
