//! What the engine knows of sessions. There are as many as in the data plane, nearly all of them at rest: these are 20 bytes
//! each in a table of fixed size, the others stand beside it.

use super::placement::Owner;
use crate::state::{Entry, Probing, scatter};
use rules::Seid;
use std::collections::HashMap;
use std::num::NonZeroU64;

/// A session's revision plus one, so that none takes no memory.
pub(super) type Revision = NonZeroU64;

pub(super) fn known_as(revision: u64) -> Option<Revision> {
    NonZeroU64::new(revision.wrapping_add(1))
}

/// What is known of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The revision in force.
    pub(super) applied: Option<Revision>,
    /// The revision last sent to the worker.
    pub(super) ordered: Option<Revision>,
    /// URRs of that revision, or of the one before if it had more.
    pub(super) urrs: u16,
    /// The worker that has it.
    pub(super) owner: Owner,
}

/// All of them.
pub(crate) struct Register {
    resting: Probing<Resting>,
    /// Ordered and not yet in force, or the other way round; and what the table has no room for.
    others: HashMap<Seid, Known>,
}

/// A session with one revision. In units of four bytes, or it would take 24.
#[derive(Clone, Copy)]
struct Resting {
    seid: [u32; 2],
    /// `None` where no session stands.
    revision: [u32; 2],
    urrs: u16,
    owner: Owner,
}

const _: () = assert!(size_of::<Resting>() == 20, "there are as many as sessions");

const fn halves(value: u64) -> [u32; 2] {
    [(value >> 32) as u32, value as u32]
}

const fn whole(halves: [u32; 2]) -> u64 {
    (halves[0] as u64) << 32 | halves[1] as u64
}

impl Resting {
    /// `None` of a session that is not at rest.
    fn new(seid: Seid, known: Known) -> Option<Self> {
        let revision = known.applied.filter(|_| known.applied == known.ordered)?;
        let Known { urrs, owner, .. } = known;
        Some(Self { seid: halves(seid.0), revision: halves(revision.get()), urrs, owner })
    }

    const fn seid(&self) -> Seid {
        Seid(whole(self.seid))
    }

    const fn known(&self) -> Known {
        let revision = NonZeroU64::new(whole(self.revision));
        Known { applied: revision, ordered: revision, urrs: self.urrs, owner: self.owner }
    }
}

impl Entry for Resting {
    const FREE: Self = Self { seid: [0; 2], revision: [0; 2], urrs: 0, owner: 0 };
    const SPARE: usize = 7;

    fn is_free(&self) -> bool {
        self.revision == [0; 2]
    }

    fn home(&self) -> u64 {
        scatter(self.seid().0)
    }
}

impl Register {
    /// Made for so many sessions; it takes more, with more memory for each.
    pub(super) fn new(sessions: usize) -> Self {
        Self { resting: Probing::new(sessions), others: HashMap::new() }
    }

    /// Bytes it takes, made for so many sessions.
    pub(crate) const fn bytes(sessions: usize) -> usize {
        Probing::<Resting>::bytes(sessions)
    }

    /// Sessions of which anything is known.
    pub(super) fn len(&self) -> usize {
        self.resting.len() + self.others.len()
    }

    pub(super) fn get(&self, session: Seid) -> Option<Known> {
        let other = self.others.get(&session).copied();
        other.or_else(|| self.resting.find(scatter(session.0), is(session)).map(Resting::known))
    }

    /// From now on, this is known of a session.
    pub(super) fn set(&mut self, session: Seid, known: Known) {
        let resting = Resting::new(session, known);
        let is_kept = resting.is_some_and(|resting| self.resting.put(resting, is(session)).is_ok());
        match is_kept {
            true => drop(self.others.remove(&session)),
            false => {
                self.resting.remove(scatter(session.0), is(session));
                self.others.insert(session, known);
            }
        }
    }

    /// Nothing is known of a session any more.
    pub(super) fn remove(&mut self, session: Seid) {
        self.others.remove(&session);
        self.resting.remove(scatter(session.0), is(session));
    }

    /// All sessions, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Seid, Known)> {
        let resting = self.resting.iter().map(|resting| (resting.seid(), resting.known()));
        resting.chain(self.others.iter().map(|(session, known)| (*session, *known)))
    }
}

fn is(session: Seid) -> impl Fn(&Resting) -> bool {
    move |resting| resting.seid() == session
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(applied: u64, ordered: u64) -> Known {
        let revision = |revision: u64| revision.checked_sub(1).and_then(known_as);
        Known { applied: revision(applied), ordered: revision(ordered), urrs: ordered as u16, owner: 3 }
    }

    proptest! {
        /// More sessions than it was made for, at rest and not.
        #[test]
        fn behaves_like_a_hash_map(
            steps in proptest::collection::vec((0u64..24, 0u64..3, 0u64..3, any::<bool>()), 0..300),
        ) {
            let (mut register, mut model) = (Register::new(8), HashMap::new());
            for (session, applied, ordered, goes) in steps {
                let session = Seid(session);
                if goes {
                    register.remove(session);
                    model.remove(&session);
                } else {
                    register.set(session, known(applied, ordered));
                    model.insert(session, known(applied, ordered));
                }
                prop_assert_eq!(register.len(), model.len());
                prop_assert_eq!(register.iter().collect::<HashMap<_, _>>(), model.clone());
                for session in (0..24).map(Seid) {
                    prop_assert_eq!(register.get(session), model.get(&session).copied());
                }
            }
        }
    }

    #[test]
    fn sessions_at_rest_stand_in_the_table() {
        let mut register = Register::new(2);
        for session in 1..=3 {
            register.set(Seid(session), known(0, 1));
            register.set(Seid(session), known(1, 1));
        }
        assert_eq!((register.resting.len(), register.others.len()), (2, 1));
    }
}
