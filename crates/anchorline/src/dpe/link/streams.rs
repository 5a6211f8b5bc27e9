//! Connections' streams: commands come in frames, notices go out in as few writes as may be.

use super::{ConnectionId, Heard};
use dplink::Notice;
use dplink::frame::{self, Reader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

pub(super) async fn read(id: ConnectionId, mut socket: OwnedReadHalf, tell: mpsc::Sender<Heard>) {
    let mut reader = Reader::default();
    let mut bytes = vec![0; 65_536];
    while let Ok(length @ 1..) = socket.read(&mut bytes).await {
        reader.extend(bytes.get(..length).unwrap_or_default());
        if let Err(error) = pass_on(id, &mut reader, &tell).await {
            tracing::warn!("connection {id} was closed: {error}");
            break;
        }
    }
    let _ = tell.send((id, None)).await;
}

/// Passes every whole command on; waits while too many are under way.
async fn pass_on(id: ConnectionId, reader: &mut Reader, tell: &mpsc::Sender<Heard>) -> anyhow::Result<()> {
    while let Some(command) = reader.take()? {
        tell.send((id, Some(command))).await?;
    }
    Ok(())
}

pub(super) async fn write(mut socket: OwnedWriteHalf, mut notices: mpsc::Receiver<Notice>) {
    let mut bytes = Vec::new();
    while let Some(notice) = notices.recv().await {
        bytes.clear();
        let mut next = Some(notice);
        // Whatever else waits goes out in the same write.
        while let Some(notice) = next {
            if let Err(error) = frame::write(&notice, &mut bytes) {
                tracing::error!("a notice cannot be sent: {error}");
            }
            next = notices.try_recv().ok();
        }
        if socket.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
