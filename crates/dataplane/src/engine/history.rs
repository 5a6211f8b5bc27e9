//! Which sessions have moved, and which were to and stayed.

use super::placement::Owner;
use crate::state::Stay;
use dplink::{Balancing, Move, MoveCause};
use rules::Seid;
use std::collections::VecDeque;

/// The last moves, and how many there were.
#[derive(Default)]
pub(super) struct History {
    last: VecDeque<Past>,
    moved: u64,
    stayed: u64,
}

/// A session that moved, or was to.
pub(super) struct Past {
    pub(super) at_ms: u64,
    pub(super) session: Seid,
    /// `None`: it had gone.
    pub(super) from: Option<Owner>,
    pub(super) to: Owner,
    pub(super) cause: MoveCause,
    /// Why it stayed; `None`: it moved.
    pub(super) stayed: Option<Stay>,
}

impl History {
    /// One more.
    pub(super) fn note(&mut self, past: Past) {
        match past.stayed {
            None => self.moved += 1,
            Some(_) => self.stayed += 1,
        }
        self.last.truncate(Balancing::MOVES_MAX - 1);
        self.last.push_front(past);
    }

    /// All there is to tell, in what is told.
    pub(super) fn overview(&self, balancing: &mut Balancing, now_ms: u64) {
        (balancing.moved, balancing.stayed) = (self.moved, self.stayed);
        let told = |past: &Past| Move {
            session: past.session,
            from: past.from,
            to: past.to,
            cause: past.cause,
            age_ms: now_ms.saturating_sub(past.at_ms),
            stayed: past.stayed.map(|why| why.to_string()),
        };
        balancing.last = self.last.iter().map(told).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moves_are_remembered_and_all_are_counted() {
        let mut history = History::default();
        for at_ms in 0..100 {
            let stayed = (at_ms % 4 == 0).then_some(Stay::Shares);
            let cause = MoveCause::Balance;
            history.note(Past { at_ms, session: Seid(at_ms), from: Some(0), to: 1, cause, stayed });
        }
        let mut told = Balancing::default();
        history.overview(&mut told, 150);
        assert_eq!((told.moved, told.stayed, told.last.len()), (75, 25, Balancing::MOVES_MAX));
        let [first, .., last] = &told.last[..] else { panic!() };
        assert_eq!((first.session, first.age_ms, last.session), (Seid(99), 51, Seid(36)));
        assert!(last.stayed.as_deref().is_some_and(|why| why.contains("shares a meter")));
    }
}
