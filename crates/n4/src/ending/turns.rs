//! Sessions that wait for their turn. Requests may name sets of nearly all sessions, each of them again: so what is
//! remembered of a set is who was looked at last, and a list of those who are next, but not of all who are left.

use crate::registry::Sessions;
use crate::set_index::Set;
use rules::Seid;
use std::vec;

/// So many are looked up at once. To find those of an owner, all of the owner's are gone through.
const CHUNK: usize = 1 << 14;
/// No session has this name.
const NOBODY: Seid = Seid(0);

/// By what sessions are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Set(Set),
    /// By Group ID.
    Group(Vec<u8>),
    /// By Node ID.
    Owner(String),
}

/// The sessions of some sources, one source after the other, each in the order of their SEIDs. Who is of several is met
/// several times.
#[derive(Debug)]
pub(super) struct Turns {
    /// The last of these is gone through.
    sources: Vec<Source>,
    /// Up to here they have been looked up.
    after: Seid,
    /// Later ones are not meant.
    last: Seid,
    next: vec::IntoIter<Seid>,
}

impl Turns {
    /// Of a list, which is that of one owner's sessions at most.
    pub(super) fn listed(all: Vec<Seid>) -> Self {
        Self { sources: vec![], after: NOBODY, last: NOBODY, next: all.into_iter() }
    }

    /// Up to the last of them that is meant.
    pub(super) fn of(sources: Vec<Source>, last: Seid) -> Self {
        Self { sources, after: NOBODY, last, next: vec![].into_iter() }
    }

    /// Whose turn it is; `None` when all have been met.
    pub(super) fn next(&mut self, sessions: &Sessions) -> Option<Seid> {
        self.look_ahead(sessions);
        self.next.next()
    }

    /// Looks up who is next, so that [`Self::are_over`] tells.
    pub(super) fn look_ahead(&mut self, sessions: &Sessions) {
        while self.next.as_slice().is_empty()
            && let Some(source) = self.sources.last()
        {
            let found = sessions.of_source(source, (self.after, self.last), CHUNK);
            match found.last() {
                Some(last) => self.after = *last,
                None => {
                    self.sources.pop();
                    self.after = NOBODY;
                }
            }
            self.next = found.into_iter();
        }
    }

    /// Whether all have been met, as far as was looked ahead.
    pub(super) fn are_over(&self) -> bool {
        self.sources.is_empty() && self.next.as_slice().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::Session;
    use session::{CpFSeid, SessionRecord, UsageRecord};

    const OWNER: &str = "smf.example";

    fn sessions(count: u64) -> Sessions {
        let mut sessions = Sessions::new((0, 0), 8);
        for seid in 1..=count {
            let record = SessionRecord {
                era: 0,
                seid: Seid(seid),
                revision: 1,
                owner: OWNER.to_owned(),
                cp_f_seid: CpFSeid { seid, address: [10, 40, 0, 9].into() },
                rules: rules::Rules::default().into(),
                usage: UsageRecord::default(),
                extras: None,
                charging: None,
            };
            sessions.insert(Session::new(record));
            sessions.rest(0);
        }
        sessions
    }

    /// Of all of an owner's, some are in memory.
    #[test]
    fn very_many_are_met_in_their_order_and_some_at_a_time() {
        let count = 2 * CHUNK as u64 + 9;
        let sessions = sessions(count + 5);
        let sources = vec![Source::Owner("nobody".to_owned()), Source::Owner(OWNER.to_owned())];
        let (mut turns, mut met) = (Turns::of(sources, Seid(count)), 0);
        while let Some(seid) = turns.next(&sessions) {
            met += 1;
            assert_eq!(seid, Seid(met));
            assert!(turns.next.len() < CHUNK);
            assert!(!turns.are_over());
        }
        assert_eq!(met, count, "and none that is later than the last");
        assert!(turns.are_over());
    }
}
