//! Questions to a data plane engine, as an observer: who asks changes nothing of what sessions are.

use crate::reach;
use anyhow::{Context, bail};
use dplink::frame::{self, Reader};
use dplink::{
    Balancing, Command, Destination, Explanation, Measure, Notice, PeerStatistics, Placed, Question, Role,
    Statistics, Step, Trace, TraceFilter, VERSION, Whose,
};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// An engine that is there answers at once.
const PATIENCE: Duration = Duration::from_secs(5);

const HUNG_UP: &str = "the data plane hung up; is it of another version, or asked by very many at once?";

/// What the engine behind the socket at `path` has counted.
pub(crate) async fn statistics(path: &Path) -> anyhow::Result<Statistics> {
    let answer = |notice| match notice {
        Notice::Statistics(statistics) => Some(statistics),
        _ => None,
    };
    ask(path, Command::GetStatistics, PATIENCE, answer).await
}

/// The peers that tunnels lead to, and what is known of the paths to them.
pub(crate) async fn peers(path: &Path) -> anyhow::Result<Vec<PeerStatistics>> {
    let answer = |notice| match notice {
        Notice::Peers { peers, .. } => Some(peers),
        _ => None,
    };
    ask(path, Command::GetPeers { token: 0 }, PATIENCE, answer).await
}

/// Traces packets, until enough were seen or the time is up.
pub(crate) async fn trace(path: &Path, filter: TraceFilter) -> anyhow::Result<Trace> {
    let patience = PATIENCE + Duration::from_secs(filter.seconds.into());
    let answer = |notice| match notice {
        Notice::Trace { outcome, .. } => Some(outcome),
        _ => None,
    };
    let outcome = ask(path, Command::Trace { token: 0, filter }, patience, answer).await?;
    outcome.map_err(|reason| anyhow::anyhow!("nothing was traced: {reason}"))
}

/// What would happen to a packet.
pub(crate) async fn explain(path: &Path, question: Question) -> anyhow::Result<Explanation> {
    let answer = |notice| match notice {
        Notice::Explanation { explanation, .. } => Some(*explanation),
        _ => None,
    };
    ask(path, Command::Explain { token: 0, question }, PATIENCE, answer).await
}

/// At which worker a session is, once it is where it is to be, if that is given.
pub(crate) async fn locate(path: &Path, whose: Whose, to: Option<Destination>) -> anyhow::Result<Placed> {
    let answer = |notice| match notice {
        Notice::Placed { outcome, .. } => Some(outcome),
        _ => None,
    };
    let outcome = ask(path, Command::Locate { token: 0, whose, to }, PATIENCE, answer).await?;
    outcome.map_err(|reason| match to {
        Some(Destination { worker, is_dry: false }) => {
            anyhow::anyhow!("nothing was moved to worker {worker}: {reason}")
        }
        Some(Destination { worker, is_dry: true }) => {
            anyhow::anyhow!("nothing would move to worker {worker}: {reason}")
        }
        None => anyhow::anyhow!(reason),
    })
}

/// How sessions are spread over workers.
pub(crate) async fn balancing(path: &Path) -> anyhow::Result<Balancing> {
    let answer = |notice| match notice {
        Notice::Balance { balancing, .. } => Some(*balancing),
        _ => None,
    };
    ask(path, Command::GetBalance { token: 0 }, PATIENCE, answer).await
}

/// Has sessions move so that workers are more even, or only says which would; before they have moved.
pub(crate) async fn even(path: &Path, by: Measure, is_dry: bool) -> anyhow::Result<Vec<Step>> {
    let answer = |notice| match notice {
        Notice::Evening { outcome, .. } => Some(outcome),
        _ => None,
    };
    let outcome = ask(path, Command::Even { token: 0, by, is_dry }, PATIENCE, answer).await?;
    outcome.map_err(|reason| anyhow::anyhow!("nothing is moved: {reason}"))
}

/// The first notice `answer` takes, within `patience`.
async fn ask<T>(
    path: &Path,
    command: Command,
    patience: Duration,
    answer: impl Fn(Notice) -> Option<T>,
) -> anyhow::Result<T> {
    let Ok(asked) = timeout(patience, converse(path, command, answer)).await else {
        bail!("the data plane at {} does not answer within {patience:?}", path.display());
    };
    asked
}

async fn converse<T>(
    path: &Path,
    command: Command,
    answer: impl Fn(Notice) -> Option<T>,
) -> anyhow::Result<T> {
    let connected = UnixStream::connect(path).await;
    let mut socket = connected.map_err(|error| {
        let why = reach::unreached(&error, "data plane", path);
        anyhow::Error::new(error).context(why)
    })?;
    let mut question = Vec::new();
    frame::write(&Command::Hello { version: VERSION, role: Role::Observer }, &mut question)?;
    frame::write(&command, &mut question)?;
    socket.write_all(&question).await.context(HUNG_UP)?;
    let mut reader = Reader::default();
    let mut bytes = vec![0; 65_536];
    loop {
        while let Some(notice) = reader.take()? {
            if let Some(answer) = answer(notice) {
                return Ok(answer);
            }
        }
        match socket.read(&mut bytes).await.context(HUNG_UP)? {
            0 => bail!(HUNG_UP),
            length => reader.extend(bytes.get(..length).unwrap_or_default()),
        }
    }
}
