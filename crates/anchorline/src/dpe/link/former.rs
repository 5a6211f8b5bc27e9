//! What former lives have left is told before this one greets: what is left of quotas, and counts of sessions, depend on it.

use super::ending::FAREWELL;
use super::{Connection, ConnectionId, Server};
use dplink::{Command, Notice, VERSION};
use tokio::time::Instant;

/// URRs told of at once: the control plane does other things in between.
const PORTION: usize = 128;

/// Somebody in control who has greeted, and is greeted in turn once all is told.
pub(super) struct Greeting {
    pub(super) id: ConnectionId,
    hello: Command,
    /// When all that one life left was said, which is not yet confirmed.
    said: Option<Instant>,
}

impl Server {
    /// What a connection says, unless it greets or is answered while it is told of former lives.
    pub(super) fn hear_former(&mut self, id: ConnectionId, command: Command) -> Option<Command> {
        // Who speaks another version would not understand; it is told so.
        let is_greeting = matches!(command, Command::Hello { version: VERSION, .. });
        if is_greeting && self.in_control == Some(id) && self.lives.are_any() {
            self.greeting = Some(Greeting { id, hello: command, said: None });
            self.lives.rewind();
            return None;
        }
        let Some(greeting) = self.greeting.as_mut().filter(|greeting| greeting.id == id) else {
            return Some(command);
        };
        if let Command::Farewell { is_kept } = command
            && greeting.said.take().is_some()
        {
            self.lives.heard(is_kept);
        }
        None
    }

    /// Tells some of it, as far as it is read; greets once all is confirmed.
    pub(super) fn tell_former(&mut self) {
        while let Some(Greeting { id, said, .. }) = self.greeting {
            if let Some(said) = said {
                return self.hang_up_after(id, said);
            }
            if self.connections.get(&id).is_none_or(Connection::is_behind) {
                return;
            }
            match self.lives.next() {
                Some((epoch, Some(counts))) => {
                    for counts in counts.chunks(PORTION) {
                        self.tell(id, Notice::FormerUsage { epoch, counts: counts.to_vec() });
                    }
                }
                Some((_, None)) => {
                    self.greeting.iter_mut().for_each(|greeting| greeting.said = Some(Instant::now()));
                    self.tell(id, Notice::Farewell);
                }
                None => {
                    let greeting = self.greeting.take();
                    greeting.into_iter().for_each(|greeting| self.obey(id, Some(greeting.hello)));
                }
            }
        }
    }

    /// Who has not confirmed what was said then may never do: it can greet once more.
    fn hang_up_after(&mut self, id: ConnectionId, said: Instant) {
        if said.elapsed() > FAREWELL {
            tracing::warn!(
                "connection {id} was closed: it has not said that it heard what former data planes have counted"
            );
            self.close(id);
        }
    }
}
