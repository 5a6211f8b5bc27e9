//! The end of the data plane: nothing is forwarded any more, and what sessions have used is told, as nobody will be able to ask.

use super::Engine;
use super::rounds::Rounds;
use crate::worker::{Order, Query};
use rules::Seid;

/// Rounds of questions, one after the other, in which no worker has found a packet under way. One is not enough: a packet may be handed
/// to a worker that has answered by one that has not.
const QUIET_ROUNDS: usize = 2;
/// The token of the last questions about usage, which is nobody's.
const LAST: u64 = u64::MAX;

/// How far it has come.
pub(super) struct Ending {
    rounds: Rounds<bool>,
    quiet: usize,
    /// Sessions that are yet to be asked, once all is quiet.
    unasked: Option<Vec<Seid>>,
    /// Those that were and have not answered.
    asked: usize,
}

impl Ending {
    pub(super) const fn new() -> Self {
        Self { rounds: Rounds::new(), quiet: 0, unasked: None, asked: 0 }
    }

    /// Whether no session is to move any more: between two workers, it would tell nothing.
    pub(super) fn has_begun(&self) -> bool {
        !self.rounds.is_empty() || self.unasked.is_some()
    }
}

impl Engine {
    /// Nothing is taken from ports any more. To be followed by [`Engine::ask_last`] until [`Engine::untold`] says that none has.
    pub fn end(&mut self) {
        self.ending.rounds.ask(None, self.hands.len());
        self.order_all(|| Order::End);
    }

    /// Asks up to so many more sessions for what they have used, once no packet is under way. [`Engine::poll`] has the answers.
    pub fn ask_last(&mut self, most: usize) {
        for _ in 0..most {
            let Some(session) = self.ending.unasked.as_mut().and_then(Vec::pop) else { return };
            self.ending.asked += 1;
            let (urrs, counts) = (Vec::new(), Vec::new());
            self.query(Query { seid: session, urrs, token: LAST, is_reported: false, counts });
        }
    }

    /// Sessions that have not told yet; `None` as long as packets are under way.
    pub fn untold(&self) -> Option<usize> {
        Some(self.ending.unasked.as_ref()?.len() + self.ending.asked)
    }

    /// A worker takes nothing from ports any more.
    pub(super) fn ends(&mut self, worker: usize, is_quiet: bool) {
        let Some(answers) = self.ending.rounds.answer(None, worker, is_quiet) else { return };
        self.ending.quiet =
            if answers.into_iter().all(|is_quiet| is_quiet) { self.ending.quiet + 1 } else { 0 };
        if self.ending.quiet < QUIET_ROUNDS || self.is_moving() {
            return self.end();
        }
        let counts = self.known.iter().filter(|(_, known)| known.urrs > 0);
        self.ending.unasked = Some(counts.map(|(session, _)| session).collect());
    }

    /// Whether an answer is to a last question.
    pub(super) fn is_last(&mut self, token: u64) -> bool {
        if token == LAST {
            self.ending.asked = self.ending.asked.saturating_sub(1);
        }
        token == LAST
    }
}
