//! One question to a data plane engine.

use anyhow::{Context, bail};
use dplink::frame::{self, Reader};
use dplink::{Command, Notice, Role, Statistics, VERSION};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// An engine that is there answers at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the engine behind the socket at `path` has counted.
pub(crate) async fn statistics(path: &Path) -> anyhow::Result<Statistics> {
    let asked = timeout(PATIENCE, ask(path)).await;
    asked.with_context(|| format!("the data plane at {} does not answer", path.display()))?
}

async fn ask(path: &Path) -> anyhow::Result<Statistics> {
    let mut socket = UnixStream::connect(path).await.with_context(|| {
        format!("no data plane runs at {}; is the node up, and is --config that of the node?", path.display())
    })?;
    let mut question = Vec::new();
    frame::write(&Command::Hello { version: VERSION, role: Role::Observer }, &mut question)?;
    frame::write(&Command::GetStatistics, &mut question)?;
    socket.write_all(&question).await?;
    let mut reader = Reader::default();
    let mut bytes = vec![0; 65_536];
    loop {
        if let Some(notice) = reader.take()? {
            match notice {
                Notice::Statistics(statistics) => return Ok(statistics),
                _ => continue,
            }
        }
        match socket.read(&mut bytes).await? {
            0 => bail!("the data plane hung up; is it of another version?"),
            length => reader.extend(bytes.get(..length).unwrap_or_default()),
        }
    }
}
