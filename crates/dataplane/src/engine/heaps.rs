//! What the rules of sessions take of memory beside the tables: names and limits of accounts, what finds a packet's PDR, texts of
//! redirections. It is as much as control planes make it, so there is a limit to it, which the start of a node reckons with
//! (`tables.rs`). Sessions that take nothing, as plain ones do, are not in it.

use super::placement::map_bytes;
use crate::state::Refusal;
use rules::Seid;
use std::collections::HashMap;

/// Bytes of one session.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// In force.
    held: u32,
    /// Of what was ordered last.
    ordered: u32,
    /// What it counts as: the most of what may come to be in force.
    most: u32,
}

/// Of all sessions.
#[derive(Debug)]
pub(crate) struct Heaps {
    /// `None`: there is no limit.
    limit: Option<usize>,
    all: usize,
    by_seid: HashMap<Seid, Taken>,
}

impl Heaps {
    /// What it takes itself, where each of so many sessions takes something.
    pub(crate) const fn bytes(sessions: usize) -> usize {
        map_bytes(sessions, size_of::<(Seid, Taken)>())
    }

    pub(super) fn new(limit: Option<usize>) -> Self {
        Self { limit, all: 0, by_seid: HashMap::new() }
    }

    fn of(&self, session: Seid) -> Taken {
        self.by_seid.get(&session).copied().unwrap_or_default()
    }

    /// Whether a session may be ordered with rules that take so many bytes. What takes no more than before always may.
    pub(super) fn admits(&self, session: Seid, bytes: usize) -> Result<(), Refusal> {
        let most = self.of(session).most as usize;
        let is_too_much = |limit| bytes > most && self.all.saturating_add(bytes - most) > limit;
        match self.limit.is_some_and(is_too_much) {
            true => Err(Refusal::Memory),
            false => Ok(()),
        }
    }

    /// It has been ordered so.
    pub(super) fn order(&mut self, session: Seid, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let before = self.of(session);
        self.set(session, Taken { ordered: bytes, most: before.most.max(bytes), ..before });
    }

    /// A revision is in force, which `is_last` that was ordered or not.
    pub(super) fn applied(&mut self, session: Seid, is_last: bool) {
        let before = self.of(session);
        self.set(
            session,
            match is_last {
                true => Taken { held: before.ordered, most: before.ordered, ..before },
                false => Taken { held: before.most, ..before },
            },
        );
    }

    /// What was ordered last is refused: it stays as it was.
    pub(super) fn refused(&mut self, session: Seid) {
        let held = self.of(session).held;
        self.set(session, Taken { held, ordered: held, most: held });
    }

    /// It is there no more.
    pub(super) fn left(&mut self, session: Seid) {
        self.set(session, Taken::default());
    }

    fn set(&mut self, session: Seid, taken: Taken) {
        self.all = (self.all + taken.most as usize).saturating_sub(self.of(session).most as usize);
        match (taken.most, taken.ordered) {
            (0, 0) => drop(self.by_seid.remove(&session)),
            _ => drop(self.by_seid.insert(session, taken)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Seid = Seid(1);
    const TWO: Seid = Seid(2);

    fn heaps(limit: usize) -> Heaps {
        Heaps::new(Some(limit))
    }

    fn put(heaps: &mut Heaps, session: Seid, bytes: usize) -> bool {
        let admitted = heaps.admits(session, bytes).is_ok();
        if admitted {
            heaps.order(session, bytes);
            heaps.applied(session, true);
        }
        admitted
    }

    #[test]
    fn there_is_no_more_than_the_limit_and_what_leaves_gives_it_back() {
        let mut heaps = heaps(100);
        assert!(put(&mut heaps, ONE, 60) && !put(&mut heaps, TWO, 41) && put(&mut heaps, TWO, 40));
        assert!(put(&mut heaps, TWO, 0), "less is always taken");
        assert!(put(&mut heaps, ONE, 100) && !put(&mut heaps, TWO, 1));
        heaps.left(ONE);
        assert_eq!((heaps.all, heaps.by_seid.len()), (0, 0));
        assert!(put(&mut heaps, TWO, 100));
        assert!(put(&mut Heaps::new(None), ONE, usize::MAX));
    }

    #[test]
    fn until_a_change_is_done_the_larger_of_both_counts() {
        let mut heaps = heaps(100);
        put(&mut heaps, ONE, 60);
        heaps.order(ONE, 10);
        assert!(heaps.admits(TWO, 41).is_err(), "it may be refused");
        heaps.refused(ONE);
        assert_eq!(heaps.all, 60);
        heaps.order(ONE, 80);
        heaps.order(ONE, 20);
        heaps.applied(ONE, false);
        assert_eq!(heaps.all, 80);
        heaps.applied(ONE, true);
        assert_eq!((heaps.all, heaps.of(ONE).held), (20, 20));
    }
}
