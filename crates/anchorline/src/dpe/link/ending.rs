//! The last words to the control plane: what sessions have used, which dies with this process.

use super::{POLL, Server};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// For so long at most: whoever started this process does not wait for ever.
pub(crate) const FAREWELL: Duration = Duration::from_secs(20);
/// Sessions asked between two looks at what was answered.
const PORTION: usize = 1_024;

impl Server {
    /// Forwards nothing any more, tells what all sessions have used, and waits until the control plane has read it. Without one, nobody
    /// is told.
    pub(crate) async fn end(&mut self) {
        let Some(id) = self.in_control else {
            return tracing::info!("nobody is there to be told what sessions have used");
        };
        let until = Instant::now() + FAREWELL;
        self.engine.end();
        while self.in_control == Some(id) && self.engine.untold() != Some(0) && Instant::now() < until {
            let room = self.connections.get(&id).map_or(0, |connection| connection.notices.capacity() / 2);
            self.engine.ask_last(room.min(PORTION));
            self.tell_reports();
            sleep(POLL).await;
        }
        let is_heard = self.in_control == Some(id) && self.hang_up(id, until).await;
        if is_heard && self.engine.untold() == Some(0) {
            tracing::info!("the control plane was told what all sessions have used");
        } else {
            tracing::warn!(
                "the control plane has not heard what all sessions have used: what it was not told is lost"
            );
        }
    }

    /// Says nothing more, and waits until the other end has hung up, too, which it does when it has read all: whether it did.
    async fn hang_up(&mut self, id: super::ConnectionId, until: Instant) -> bool {
        self.connections.remove(&id);
        while let Ok(Some((of, command))) = timeout_at(until, self.heard.recv()).await {
            if of == id && command.is_none() {
                return true;
            }
        }
        false
    }
}
