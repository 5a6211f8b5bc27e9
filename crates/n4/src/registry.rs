//! All sessions, by our name and by their owners'.

#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::ending::Source;
use crate::sessions::Session;
use crate::set_index::SetIndex;
use crate::slot::Slot;
use crate::user_index::{Place, UserIndex};
use dplink::Desired;
use machine::SeededMap;
use pfcp::FqCsid;
use rules::Seid;
use rustc_hash::{FxBuildHasher, FxHashMap};
use session::{CpFSeid, Packed, SessionRecord};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An owner's sessions by the CP F-SEIDs it gave. Control planes of a set share an owner and count SEIDs each for itself, so
/// the address is part of the name (TS 29.244 5.6.2, 5.22.2); there are few of them.
type Names = BTreeMap<IpAddr, SeededMap<u64, Seid>>;

/// All of them. Whoever is looked up wakes, and sleeps again with [`Sessions::rest`].
#[derive(Debug)]
pub(crate) struct Sessions {
    /// Names are ours: nobody chooses them so that they meet in one place of the table.
    by_seid: FxHashMap<Seid, Slot>,
    by_owner: SeededMap<String, Names>,
    by_set: SetIndex,
    by_user: UserIndex,
    /// Those that were looked up, some of them several times.
    touched: RefCell<Vec<Seid>>,
    /// The life of the data plane that counts, or did last.
    epoch: Option<u64>,
    /// Records to be kept.
    saved: Vec<(Seid, Packed)>,
    recovery_time_stamp: u32,
    last: u32,
    /// Up to here names may have been given out, as far as the next process will know.
    reserved: u32,
}

/// So many names are reserved at a time: nothing is to be kept for each.
const BLOCK: u32 = 1 << 16;

impl Sessions {
    /// `reserved` is what the process before had reserved: its names may be those of sessions that are gone. There is room for `limit`
    /// sessions from the start: a table that grows moves all it has, and a million in one go keep everybody waiting.
    pub(crate) fn new((recovery_time_stamp, reserved): (u32, u32), limit: usize) -> Self {
        Self {
            by_seid: FxHashMap::with_capacity_and_hasher(limit, FxBuildHasher),
            by_owner: SeededMap::default(),
            by_set: SetIndex::default(),
            by_user: UserIndex::new(limit),
            touched: RefCell::default(),
            epoch: None,
            saved: Vec::new(),
            recovery_time_stamp,
            last: reserved,
            reserved,
        }
    }

    /// A name no session of ours has, nor had since we lost any: the stamp tells lives apart. Never 0. A request that comes again for
    /// a session that is gone must not hit another one, so names of former processes are not given out again either.
    pub(crate) fn new_seid(&mut self) -> Seid {
        loop {
            if self.last == self.reserved {
                self.reserved = self.last.checked_add(1).unwrap_or(1).saturating_add(BLOCK - 1);
            }
            self.last = self.last.checked_add(1).unwrap_or(1);
            let seid = Seid(u64::from(self.recovery_time_stamp) << 32 | u64::from(self.last));
            if !self.by_seid.contains_key(&seid) {
                return seid;
            }
        }
    }

    /// A name that is not to be given out again.
    pub(crate) fn pass_over(&mut self, seid: Seid) {
        if seid.0 >> 32 == u64::from(self.recovery_time_stamp) {
            self.last = self.last.max(seid.0 as u32);
            self.reserved = self.reserved.max(self.last);
        }
    }

    /// Up to which names are reserved.
    pub(crate) const fn reserved(&self) -> u32 {
        self.reserved
    }

    /// A session of the database. The revision after the saved one may have been given out, but not confirmed,
    /// before a restart: it is not given out again.
    pub(crate) fn restore(&mut self, record: SessionRecord) -> Seid {
        let seid = record.seid;
        self.pass_over(seid);
        let mut session = Session::new(record);
        session.next_revision();
        self.insert(session);
        seid
    }

    pub(crate) fn insert(&mut self, session: Session) {
        let seid = session.record.seid;
        self.name(&session.record);
        self.by_set.enter(&session.record);
        self.by_user.enter(&session.record);
        self.touched.get_mut().push(seid);
        self.by_seid.insert(seid, Slot::of(session));
    }

    fn name(&mut self, record: &SessionRecord) {
        let CpFSeid { seid: name, address } = record.cp_f_seid;
        // Owners are many sessions': their names are copied for the first only.
        if !self.by_owner.contains_key(&record.owner) {
            self.by_owner.insert(record.owner.clone(), Names::new());
        }
        if let Some(names) = self.by_owner.get_mut(&record.owner) {
            names.entry(address).or_default().insert(name, record.seid);
        }
    }

    /// A session has its name and its places again, after another one had them.
    pub(crate) fn name_again(&mut self, seid: Seid) {
        if let Some(record) = self.get(seid).map(|session| session.record.clone()) {
            self.name(&record);
            self.by_user.enter(&record);
        }
    }

    /// A session gives way: its places may be another's.
    pub(crate) fn leave_places(&mut self, seid: Seid) {
        if let Some(session) = self.by_seid.get(&seid).and_then(|slot| slot.session(self.epoch)) {
            self.by_user.leave(&session.record);
        }
    }

    /// Who has a place.
    pub(crate) fn at(&self, place: Place) -> Option<Seid> {
        self.by_user.owner(place)
    }

    /// Another session may have the name by now.
    fn unname(&mut self, (owner, name): (&str, CpFSeid), seid: Seid) {
        let Some(names) = self.by_owner.get_mut(owner) else { return };
        if let Some(there) = names.get_mut(&name.address) {
            if there.get(&name.seid) == Some(&seid) {
                there.remove(&name.seid);
            }
            if there.is_empty() {
                names.remove(&name.address);
            }
        }
        if names.is_empty() {
            self.by_owner.remove(owner);
        }
    }

    /// Puts the next record in the place of the one before, which it returns.
    pub(crate) fn replace_record(&mut self, next: SessionRecord) -> Option<SessionRecord> {
        let seid = next.seid;
        let record = &self.by_seid.get(&seid)?.session(self.epoch)?.record;
        let is_renamed = record.owner != next.owner || record.cp_f_seid != next.cp_f_seid;
        self.by_set.leave(record);
        self.by_user.change(record, &next);
        if is_renamed {
            let (owner, name) = (record.owner.clone(), record.cp_f_seid);
            self.unname((&owner, name), seid);
            self.name(&next);
        }
        self.by_set.enter(&next);
        let session = self.get_mut(seid)?;
        Some(std::mem::replace(&mut session.record, next))
    }

    pub(crate) fn remove(&mut self, seid: Seid) -> Option<Session> {
        let session = self.by_seid.remove(&seid)?.into_session(self.epoch)?;
        self.unname((&session.record.owner, session.record.cp_f_seid), seid);
        self.by_set.leave(&session.record);
        self.by_user.leave(&session.record);
        Some(session)
    }

    pub(crate) fn has(&self, seid: Seid) -> bool {
        self.by_seid.contains_key(&seid)
    }

    pub(crate) fn get(&self, seid: Seid) -> Option<&Session> {
        let slot = self.by_seid.get(&seid)?;
        if !slot.is_awake() {
            self.touched.borrow_mut().push(seid);
        }
        slot.session(self.epoch)
    }

    pub(crate) fn get_mut(&mut self, seid: Seid) -> Option<&mut Session> {
        let slot = self.by_seid.get_mut(&seid)?;
        let touched = self.touched.get_mut();
        // Mostly it is the same again.
        if touched.last() != Some(&seid) {
            touched.push(seid);
        }
        slot.session_mut(self.epoch)
    }

    /// The era in which its owner spoke of one last, without waking it.
    pub(crate) fn era_of(&self, seid: Seid) -> Option<u32> {
        self.by_seid.get(&seid)?.era()
    }

    /// Whether one is as it should be, without waking it.
    pub(crate) fn look(&self, seid: Seid, is_it: impl Fn(&Session) -> bool) -> bool {
        self.peek(seid, is_it).unwrap_or(false)
    }

    /// What there is to say of one, without waking it.
    pub(crate) fn peek<T>(&self, seid: Seid, of: impl Fn(&Session) -> T) -> Option<T> {
        self.by_seid.get(&seid)?.look(self.epoch, |session| Some(of(session)))
    }

    /// Whether a request of a session waits for the data plane's word on this revision. It is not woken for that: who sleeps waits for
    /// nothing.
    pub(crate) fn awaits(&self, seid: Seid, revision: u64) -> bool {
        let session = self.by_seid.get(&seid).and_then(Slot::awake);
        session
            .and_then(|session| session.pending.as_ref())
            .is_some_and(|pending| pending.revision == revision)
    }

    /// Puts to sleep whoever was woken and has nothing under way. Sessions that have are looked up again when it is over.
    pub(crate) fn rest(&mut self, now_ms: u64) {
        for seid in self.touched.get_mut().drain(..) {
            if let Some(slot) = self.by_seid.get_mut(&seid) {
                self.saved.extend(slot.fall_asleep(now_ms).map(|packed| (seid, packed)));
            }
        }
    }

    /// Records to be kept, of sessions that were put to rest.
    pub(crate) fn saved(&mut self) -> std::vec::Drain<'_, (Seid, Packed)> {
        self.saved.drain(..)
    }

    pub(crate) fn of_owner(&self, owner: &str, name: CpFSeid) -> Option<Seid> {
        self.by_owner.get(owner)?.get(&name.address)?.get(&name.seid).copied()
    }

    /// Who has sessions.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &str> {
        self.by_owner.keys().map(String::as_str)
    }

    pub(crate) fn all_of(&self, owner: &str) -> Vec<Seid> {
        let names = self.by_owner.get(owner).into_iter().flat_map(Names::values);
        let mut all: Vec<Seid> = names.flat_map(SeededMap::values).copied().collect();
        // The same order in every run.
        all.sort_unstable();
        all
    }

    /// How many sessions an owner has.
    pub(crate) fn count_of(&self, owner: &str) -> usize {
        self.by_owner.get(owner).map_or(0, |names| names.values().map(SeededMap::len).sum())
    }

    /// Of these sets those that have sessions.
    pub(crate) fn known_sets<'a>(&self, fq_csids: impl IntoIterator<Item = &'a FqCsid>) -> Vec<Source> {
        self.by_set.known(fq_csids).into_iter().map(Source::Set).collect()
    }

    /// Those of a source behind one SEID and up to another, in their order: the first so many.
    pub(crate) fn of_source(&self, source: &Source, between: (Seid, Seid), most: usize) -> Vec<Seid> {
        match source {
            Source::Set(set) => self.by_set.of_set(set, between).take(most).collect(),
            Source::Group(group) => self.by_set.of_group(group, between).take(most).collect(),
            Source::Owner(owner) => self.some_of(owner, between, most),
        }
    }

    fn some_of(&self, owner: &str, (after, last): (Seid, Seid), most: usize) -> Vec<Seid> {
        let names = self.by_owner.get(owner).into_iter().flat_map(Names::values);
        let all = names.flat_map(SeededMap::values).copied();
        let mut some: Vec<Seid> = all.filter(|seid| after < *seid && *seid <= last).collect();
        if some.len() > most {
            some.select_nth_unstable(most);
            some.truncate(most);
            some.shrink_to_fit();
        }
        some.sort_unstable();
        some
    }

    /// The last name that was given out: sessions that are set up from now on have later ones.
    pub(crate) fn newest(&self) -> Seid {
        Seid(u64::from(self.recovery_time_stamp) << 32 | u64::from(self.last))
    }

    /// Those with a request under way: they are awake. The same order in every run, as of all.
    pub(crate) fn pending(&self) -> Vec<Seid> {
        let mut pending: Vec<Seid> = self.by_seid.values().filter_map(Slot::has_request).collect();
        pending.sort_unstable();
        pending
    }

    /// The data plane is there, in this life of it. Who sleeps learns of it on waking, so that this does not take as long as waking
    /// all of them.
    pub(crate) fn counted_by(&mut self, epoch: u64) {
        self.epoch = Some(epoch);
        self.by_seid.values_mut().for_each(|slot| slot.counted_by(epoch));
    }

    /// The life of the data plane that was there last.
    pub(crate) const fn life(&self) -> Option<u64> {
        self.epoch
    }

    /// The data plane is gone, and its answers with it.
    pub(crate) fn lost(&mut self) {
        self.by_seid.values_mut().for_each(Slot::lost);
    }

    pub(crate) fn all(&self) -> Vec<Seid> {
        let mut all: Vec<Seid> = self.by_seid.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// How all of them should be.
    pub(crate) fn desired(&self, config: &Config) -> impl Iterator<Item = Desired> {
        let slots = self.all().into_iter().filter_map(|seid| self.by_seid.get(&seid));
        slots.filter_map(|slot| slot.look(self.epoch, |session| session.desired(config)))
    }

    /// How one of them should be.
    pub(crate) fn desired_of(&self, seid: Seid, config: &Config) -> Option<Desired> {
        self.by_seid.get(&seid)?.look(self.epoch, |session| session.desired(config))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_seid.len()
    }
}
