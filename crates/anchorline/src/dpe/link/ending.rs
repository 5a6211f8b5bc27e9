//! The last words to the control plane: what sessions have used, which dies with this process.

use super::{ConnectionId, Lives, POLL, Server};
use dataplane::ContentRules;
use dplink::{Command, Notice};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// For so long at most: whoever started this process does not wait for ever.
pub(crate) const FAREWELL: Duration = Duration::from_secs(20);
/// Sessions asked between two looks at what was answered.
const PORTION: usize = 1_024;

/// What became of the last words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// There is no control plane.
    ByNobody,
    /// It has read all, and keeps it.
    Kept,
    /// It has read all, and its disk takes nothing.
    Unkept,
    /// It has not said that it has read all.
    Unconfirmed,
}

impl Server {
    /// Forwards nothing any more, tells what all sessions have used, and waits until the control plane says that it has read it. Without
    /// one, nobody is told.
    pub(crate) async fn end(&mut self) {
        let heard = self.last_words().await;
        let untold = match self.lives.end(matches!(heard, Heard::Kept | Heard::Unkept)) {
            Some(path) => format!("the next data plane tells it, from {}", path.display()),
            None => "what none was told before is lost".to_owned(),
        };
        match heard {
            Heard::Kept => tracing::info!("the control plane was told what all sessions have used"),
            Heard::ByNobody => {
                tracing::warn!("no control plane is there to be told what sessions have used: {untold}");
            }
            Heard::Unkept => tracing::warn!(
                "the control plane was told what all sessions have used, and its disk does not take it: if it ends before that does, \
                 what its database lacks is lost"
            ),
            Heard::Unconfirmed => tracing::warn!(
                "the control plane has not said that it heard what all sessions have used: {untold}"
            ),
        }
    }

    /// What others have to do with once it is over.
    pub(crate) fn left(&mut self) -> (Lives, Option<Arc<ContentRules>>) {
        (std::mem::take(&mut self.lives), self.engine.content())
    }

    pub(super) async fn last_words(&mut self) -> Heard {
        let Some(id) = self.in_control else { return Heard::ByNobody };
        let until = Instant::now() + FAREWELL;
        // Before all else: one that is to end, too, is about to do so.
        self.tell(id, Notice::Leaving);
        self.engine.end();
        while self.in_control == Some(id) && self.engine.untold() != Some(0) && Instant::now() < until {
            let room = self.connections.get(&id).map_or(0, |connection| connection.notices.capacity() / 2);
            self.engine.ask_last(room.min(PORTION));
            self.tell_reports();
            sleep(POLL).await;
        }
        match self.engine.untold() {
            Some(0) => self.take_leave(id, until).await,
            _ => Heard::Unconfirmed,
        }
    }

    /// Says that this was all, and waits for the answer: that a connection ends says nothing of what was read of it.
    async fn take_leave(&mut self, id: ConnectionId, until: Instant) -> Heard {
        self.tell(id, Notice::Farewell);
        while self.in_control == Some(id)
            && let Ok(Some((of, command))) = timeout_at(until, self.heard.recv()).await
        {
            match command {
                Some(Command::Farewell { is_kept: true }) if of == id => return Heard::Kept,
                Some(Command::Farewell { is_kept: false }) if of == id => return Heard::Unkept,
                None if of == id => return Heard::Unconfirmed,
                _ => {}
            }
        }
        Heard::Unconfirmed
    }
}
