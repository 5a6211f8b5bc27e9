//! What the data plane is told, and in which order.
//!
//! A resynchronisation of very many sessions takes the data plane many seconds. It is said session by session, as there is room for
//! it: how a session should be is worked out when it is its turn, so that there is no copy of all rules in memory, and what the node says
//! meanwhile goes first, so that nobody's request waits for all sessions. A session that is told of both ways is left alone the second
//! time, as its revision is in force.

use super::resync::Going;
use dplink::{Command, Desired};
use rules::Seid;
use std::collections::VecDeque;
use tokio::sync::mpsc::{self, error::TrySendError};

/// Commands that are given in one go: others want the thread, too.
const PORTION: usize = 256;

/// Commands on their way to the data plane.
#[derive(Default)]
pub(super) struct Orders {
    /// Where they go while the link stands.
    commands: Option<mpsc::Sender<Command>>,
    /// Those the link has not taken yet: what the node has under way.
    outbox: VecDeque<Command>,
    /// Sessions the resynchronisation has yet to name, while one is under way.
    unnamed: Option<std::vec::IntoIter<Seid>>,
    /// How many it has named so far.
    named: u64,
    /// Sessions the data plane has yet to let go.
    going: Going,
}

impl Orders {
    /// There is a link: says what each session of the node should be, and when they began; what is not named goes.
    pub(super) fn begin(
        &mut self,
        commands: mpsc::Sender<Command>,
        (recovery_time_stamp, sessions): (u32, Vec<Seid>),
    ) {
        self.commands = Some(commands);
        let begin = Command::ResyncBegin { recovery_time_stamp };
        self.outbox = std::iter::once(begin).chain(self.going.deletions()).collect();
        self.unnamed = Some(sessions.into_iter());
        self.named = 0;
    }

    /// Sessions that the resynchronisation has named.
    pub(super) const fn named(&self) -> u64 {
        self.named
    }

    /// The link is gone. The next one starts with a resynchronisation.
    pub(super) fn lost(&mut self) {
        (self.commands, self.unnamed) = (None, None);
        self.outbox.clear();
    }

    pub(super) const fn is_linked(&self) -> bool {
        self.commands.is_some()
    }

    /// The data plane has let a session go.
    pub(super) fn gone(&mut self, session: Seid) {
        self.going.gone(session);
    }

    /// What the node orders. Without a link there is nobody to tell. A data plane that is asked about a session must have
    /// heard of it.
    pub(super) fn give(&mut self, command: Command, desired: impl Fn(Seid) -> Option<Desired>) {
        self.going.ordered(&command);
        if self.commands.is_none() {
            return;
        }
        if let (Command::QueryUsage { session, .. }, true) = (&command, self.unnamed.is_some()) {
            self.outbox.extend(desired(*session).map(Command::Put));
        }
        self.outbox.push_back(command);
    }

    /// When there is room for more, if there is more.
    pub(super) async fn room(&self) {
        match &self.commands {
            Some(commands) if !self.outbox.is_empty() || self.unnamed.is_some() => {
                // A link that is gone says so.
                let _ = commands.reserve().await;
            }
            _ => std::future::pending().await,
        }
    }

    /// Gives as many as there is room for, up to a portion.
    pub(super) fn send(&mut self, desired: impl Fn(Seid) -> Option<Desired>) {
        for _ in 0..PORTION {
            let Some(commands) = &self.commands else { return };
            let Ok(room) = commands.clone().try_reserve_owned().map_err(|error| match error {
                TrySendError::Full(_) | TrySendError::Closed(_) => {}
            }) else {
                return;
            };
            let Some(command) = self.next(&desired) else { return };
            room.send(command);
        }
    }

    fn next(&mut self, desired: impl Fn(Seid) -> Option<Desired>) -> Option<Command> {
        if let Some(command) = self.outbox.pop_front() {
            return Some(command);
        }
        let named = self.unnamed.as_mut()?.find_map(desired).map(Command::Put);
        self.named += u64::from(named.is_some());
        named.or_else(|| self.unnamed.take().map(|_| Command::ResyncEnd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Rules;

    fn desired(session: Seid) -> Option<Desired> {
        // One has ended since.
        (session != Seid(2)).then(|| Desired::new(session, 1, Rules::default()))
    }

    fn put(session: u64) -> Command {
        Command::Put(Desired::new(Seid(session), 1, Rules::default()))
    }

    fn query(session: u64) -> Command {
        Command::QueryUsage { session: Seid(session), urrs: vec![], token: 1, is_reported: false }
    }

    #[test]
    fn what_is_said_during_a_resynchronisation_goes_before_the_rest_of_it() {
        let (commands, mut taken) = mpsc::channel(2);
        let mut orders = Orders::default();
        orders.give(Command::Delete { session: Seid(9) }, desired);
        orders.begin(commands, (7, vec![Seid(1), Seid(2), Seid(3), Seid(4)]));
        orders.send(desired);
        orders.send(desired);
        orders.give(put(5), desired);
        orders.give(query(4), desired);
        let mut all = vec![];
        while let Ok(command) = taken.try_recv() {
            all.push(command);
            orders.send(desired);
        }
        let deletion = Command::Delete { session: Seid(9) };
        let first = [Command::ResyncBegin { recovery_time_stamp: 7 }, deletion, put(5), put(4), query(4)];
        let rest = [put(1), put(3), put(4), Command::ResyncEnd];
        assert_eq!(all, [&first[..], &rest[..]].concat());
        // The fifth is new.
        assert_eq!(orders.named(), 3);
    }

    #[test]
    fn a_million_sessions_are_named_by_portions() {
        let (commands, mut taken) = mpsc::channel(100_000);
        let mut orders = Orders::default();
        orders.begin(commands, (7, (3..1_000_003).map(Seid).collect()));
        orders.send(desired);
        assert_eq!(taken.len(), PORTION);
        orders.lost();
        assert!(!orders.is_linked() && taken.try_recv().is_ok());
    }
}
