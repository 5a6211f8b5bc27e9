//! What the session database is to have; and what waits for it while the disk does not take it.
//!
//! A disk that is full or broken stops no user's packets, and no more of PFCP than it must: what would have to be kept is
//! refused meanwhile (`Node::set_keeping`), heartbeats are answered. What was done before the disk failed, or must be done whatever
//! the disk says (deletions, reports of usage), is in the database later, and answered then.

use super::send::Datagram;
use charging::Cdr;
use n4::Output;
use session::{Change, PathRecord, Store, StoreError};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// Changes that wait are looked through for what is out of date from so many on.
const MANY: usize = 4_096;

/// What keeps changes.
pub(super) trait Keeper {
    /// All of them, or none.
    fn apply(&self, changes: &[Change]) -> Result<(), StoreError>;
    /// After a failure.
    fn reopen(&self) -> Result<(), StoreError>;
}

impl Keeper for Arc<Store> {
    fn apply(&self, changes: &[Change]) -> Result<(), StoreError> {
        Store::apply(self, changes)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Store::reopen(self)
    }
}

/// The database, and what it has not taken yet.
pub(super) struct Keeping<K = Arc<Store>> {
    keeper: K,
    /// Those that wait, in order: at most one of a session, an association or an application when they have been looked through.
    unsaved: Vec<Change>,
    /// When they are looked through.
    many: usize,
    /// When it is tried again, while it fails.
    again: Option<Instant>,
    /// What must not be said or written before they are saved.
    held: HashSet<Datagram>,
    cdrs: Vec<Cdr>,
}

impl<K: Keeper> Keeping<K> {
    pub(super) fn new(keeper: K) -> Self {
        let (unsaved, held, cdrs) = (vec![], HashSet::new(), vec![]);
        Self { keeper, unsaved, many: MANY, again: None, held, cdrs }
    }

    /// Whether the database takes nothing.
    pub(super) const fn is_failing(&self) -> bool {
        self.again.is_some()
    }

    /// When to try again.
    pub(super) const fn again(&self) -> Option<Instant> {
        self.again
    }

    /// Saves changes, and those that wait; whether all are saved. What they are is taken either way.
    pub(super) fn save(&mut self, changes: &mut Vec<Change>, now: Instant) -> bool {
        if self.again.is_none() {
            let done = self.keeper.apply(changes);
            let done = done.inspect_err(|error| {
                tracing::error!("{error}; sessions are neither set up nor changed until it works again");
            });
            return self.note(done, changes, now);
        }
        self.unsaved.append(changes);
        self.look_through();
        if self.again.is_some_and(|again| again > now) {
            return false;
        }
        let done = self.keeper.reopen().and_then(|()| self.keeper.apply(&self.unsaved));
        if done.is_ok() {
            tracing::info!("the session database works again");
            self.unsaved = vec![];
        }
        self.note(done, changes, now)
    }

    fn note(&mut self, done: Result<(), StoreError>, changes: &mut Vec<Change>, now: Instant) -> bool {
        let is_saved = done.is_ok();
        self.again = (!is_saved).then(|| now + PAUSE);
        if is_saved {
            changes.clear();
        } else {
            self.unsaved.append(changes);
        }
        is_saved
    }

    /// Of changes of one thing only the last one counts, in whatever order those of others come.
    fn look_through(&mut self) {
        if self.unsaved.len() < self.many {
            return;
        }
        let mut seen = HashSet::new();
        let mut last: Vec<Change> = vec![];
        for change in self.unsaved.drain(..).rev() {
            if seen.insert(thing(&change)) {
                last.push(change);
            }
        }
        last.reverse();
        self.many = MANY.max(2 * last.len());
        self.unsaved = last;
    }

    /// A datagram that may be said, once the changes it came with were to be saved. While the database takes nothing, from the very
    /// batch on in which it failed, what goes with changes waits for them, and so does who asks for it again; all else is said.
    pub(super) fn pass(&mut self, datagram: Datagram, goes_with_changes: bool) -> Option<Datagram> {
        if self.is_failing() && (goes_with_changes || self.held.contains(&datagram)) {
            self.held.insert(datagram);
            return None;
        }
        Some(datagram)
    }

    /// A record that must not be in a file yet.
    pub(super) fn hold_cdr(&mut self, cdr: Cdr) {
        self.cdrs.push(cdr);
    }

    /// What may be said and written now that all is saved.
    pub(super) fn release(&mut self) -> (HashSet<Datagram>, Vec<Cdr>) {
        (std::mem::take(&mut self.held), std::mem::take(&mut self.cdrs))
    }
}

/// What a change is about; records of charging are each something of their own.
#[derive(PartialEq, Eq, Hash)]
enum Thing {
    Node,
    Life,
    NodeId,
    Association(String),
    Application(String),
    Predefined(String),
    Path(PathRecord),
    Session(u64),
    Told,
    LastCdr,
    Lost,
    Cdr(u64),
    Cdrs(u64, u64),
}

fn thing(change: &Change) -> Thing {
    match change {
        Change::SaveNode(_) => Thing::Node,
        Change::SaveLife(_) => Thing::Life,
        Change::SaveNodeId(_) => Thing::NodeId,
        Change::SaveAssociation(record) => Thing::Association(record.node_id.clone()),
        Change::EraseAssociation(node_id) => Thing::Association(node_id.clone()),
        Change::SavePfds(record) => Thing::Application(record.application.clone()),
        Change::ErasePfds(application) => Thing::Application(application.clone()),
        Change::SavePredefined(record) => Thing::Predefined(record.name.clone()),
        Change::ErasePredefined(name) => Thing::Predefined(name.clone()),
        Change::SaveTold(_) => Thing::Told,
        Change::SavePath(path) | Change::ErasePath(path) => Thing::Path(*path),
        Change::SaveSession(seid, _) | Change::EraseSession(seid) => Thing::Session(seid.0),
        Change::SaveCdr(cdr) => Thing::Cdr(cdr.serial),
        Change::LoseCdr(serial) => Thing::Cdr(*serial),
        Change::SkipCdr(_) => Thing::LastCdr,
        Change::SaveLost(_) => Thing::Lost,
        Change::EraseCdrs(first, last) => Thing::Cdrs(*first, *last),
    }
}

/// Whether it is for the database.
pub(super) const fn is_change(output: &Output) -> bool {
    matches!(
        output,
        Output::SaveSession(..)
            | Output::EraseSession(_)
            | Output::SaveNode(_)
            | Output::SaveTold(_)
            | Output::SavePath(_)
            | Output::ErasePath(_)
            | Output::SaveAssociation(_)
            | Output::EraseAssociation(_)
            | Output::SavePfds(_)
            | Output::ErasePfds(_)
            | Output::SaveCdr(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Seid;
    use session::Packed;
    use std::cell::{Cell, RefCell};

    /// A disk that is full for a while.
    #[derive(Default)]
    struct Disk {
        is_full: Cell<bool>,
        is_poisoned: Cell<bool>,
        taken: RefCell<Vec<Change>>,
    }

    impl Keeper for &Disk {
        fn apply(&self, changes: &[Change]) -> Result<(), StoreError> {
            if self.is_full.get() || self.is_poisoned.get() {
                self.is_poisoned.set(true);
                return Err(StoreError::Closed);
            }
            self.taken.borrow_mut().extend(changes.iter().cloned());
            Ok(())
        }

        fn reopen(&self) -> Result<(), StoreError> {
            self.is_poisoned.set(false);
            Ok(())
        }
    }

    fn save(seid: u64) -> Change {
        Change::SaveSession(Seid(seid), Packed::default())
    }

    fn datagram(octet: u8) -> Datagram {
        (([10, 40, 0, 1], 8805).into(), vec![octet])
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_kept_when_there_is_room() {
        let (disk, now) = (Disk::default(), Instant::now());
        let mut keeping = Keeping::new(&disk);
        assert!(keeping.save(&mut vec![save(1)], now) && !keeping.is_failing());
        disk.is_full.set(true);
        let mut changes = vec![save(2)];
        assert!(!keeping.save(&mut changes, now) && keeping.is_failing() && changes.is_empty());
        disk.is_full.set(false);
        assert!(!keeping.save(&mut vec![save(3)], now), "it is not time yet");
        assert!(keeping.save(&mut vec![], now + PAUSE) && !keeping.is_failing());
        assert_eq!(*disk.taken.borrow(), [save(1), save(2), save(3)]);
    }

    /// Nothing is promised that is not kept, and nobody waits who need not.
    #[test]
    fn of_the_batch_in_which_the_disk_fails_only_what_goes_with_changes_waits() {
        let (disk, now) = (Disk::default(), Instant::now());
        let mut keeping = Keeping::new(&disk);
        assert!(keeping.save(&mut vec![save(1)], now));
        assert_eq!(keeping.pass(datagram(1), true), Some(datagram(1)));
        disk.is_full.set(true);
        assert!(!keeping.save(&mut vec![save(2)], now));
        let [answer, heartbeat] = [datagram(2), datagram(3)];
        assert_eq!(keeping.pass(answer.clone(), true), None);
        assert_eq!(keeping.pass(heartbeat.clone(), false), Some(heartbeat));
        assert_eq!(keeping.pass(answer.clone(), false), None, "who asks again waits, too");
        disk.is_full.set(false);
        assert!(keeping.save(&mut vec![], now + PAUSE));
        assert_eq!(keeping.release().0.into_iter().collect::<Vec<_>>(), std::slice::from_ref(&answer));
        assert_eq!(keeping.pass(answer.clone(), false), Some(answer));
    }

    #[test]
    fn what_waits_is_no_more_than_there_are_things() {
        let (disk, now) = (Disk::default(), Instant::now());
        disk.is_full.set(true);
        let mut keeping = Keeping::new(&disk);
        for number in 0..10 * MANY as u64 {
            keeping.save(&mut vec![save(number % 10)], now);
        }
        keeping.save(&mut vec![Change::EraseSession(Seid(9))], now);
        assert!(keeping.unsaved.len() <= 2 * MANY, "{}", keeping.unsaved.len());
        disk.is_full.set(false);
        assert!(keeping.save(&mut vec![], now + PAUSE));
        assert_eq!(disk.taken.borrow().last(), Some(&Change::EraseSession(Seid(9))));
    }
}
