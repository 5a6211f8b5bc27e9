//! A CP F-SEID that is used again (TS 29.244 5.6.2): the session that had the name goes once the new one is in force. Until
//! then it only gives way, as users' addresses and tunnels are one session's, and comes back where the new one fails. Sessions
//! that their owner may have forgotten (`stale.rs`) give way for what they have, too, and to changes of others.

use crate::exchange::Asked;
use crate::interface::Output;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::room::Scarce;
use crate::sessions::{Pending, Work};
use crate::stale::{wanted_by, wanted_by_change};
use pfcp::{Cause, SessionEstablishmentRequest, SessionModificationRequest};
use rules::Seid;
use session::{CpFSeid, SessionRecord};

/// The sessions that a new one may be in the place of.
#[derive(Debug)]
pub(crate) struct Way {
    /// These go for it.
    sure: Vec<Seid>,
    /// These may come back when one does that is still being established.
    perhaps: Vec<Seid>,
    /// These are stale, and have what has run out.
    room: Vec<(Seid, Scarce)>,
    /// Whose way it is, if it is there already.
    own: Option<Seid>,
}

impl Way {
    pub(crate) fn make_room(&mut self, stale: Seid, scarce: Scarce) {
        self.room.push((stale, scarce));
    }

    pub(crate) fn room(&self) -> &[(Seid, Scarce)] {
        &self.room
    }

    /// Whether a session is in it, or goes it.
    pub(crate) fn has(&self, seid: Seid) -> bool {
        self.all().chain(self.own).any(|other| other == seid)
    }

    /// Those that go for a new one, whatever else happens.
    pub(crate) fn sure(&self) -> impl Iterator<Item = Seid> {
        self.sure.iter().copied().chain(self.room.iter().map(|(stale, _)| *stale))
    }

    fn all(&self) -> impl Iterator<Item = Seid> {
        self.sure().chain(self.perhaps.iter().copied())
    }

    /// Those that are in the way for what they are.
    fn named(&self) -> impl Iterator<Item = Seid> {
        self.sure.iter().chain(&self.perhaps).copied()
    }
}

impl Node {
    /// The sessions that a new one is in the place of: the one that has the name, and if that one is still being established,
    /// those it replaces; and stale ones that have what it asks for. One that is being deleted, or gives way to another, goes
    /// without a successor.
    pub(crate) fn in_the_way(
        &self,
        owner: &str,
        name: CpFSeid,
        request: &SessionEstablishmentRequest,
    ) -> Way {
        let named = self.sessions.of_owner(owner, name).filter(|named| !self.is_going(*named));
        let mut sure = self.stale_in_the_way(owner, wanted_by(request));
        sure.extend(named.filter(|named| !sure.contains(named)));
        let before =
            named.and_then(|named| self.sessions.get(named)).map_or(&[][..], |named| named.replaces());
        // They may have been deleted meanwhile, with a set that their successor is not of.
        let before = before.iter().copied().filter(|before| self.sessions.has(*before));
        let has_name = |seid: &Seid| self.sessions.look(*seid, |session| session.record.cp_f_seid == name);
        let (same, perhaps): (Vec<Seid>, Vec<Seid>) = before.partition(has_name);
        sure.extend(same);
        Way { sure, perhaps, room: vec![], own: None }
    }

    /// Stale sessions that have what a change of another asks for.
    pub(crate) fn in_the_way_of_change(&self, seid: Seid, request: &SessionModificationRequest) -> Way {
        let owner = self.sessions.get(seid).map(|session| &*session.record.owner);
        let stale = owner.map(|owner| self.stale_in_the_way(owner, wanted_by_change(request)));
        let sure = stale.into_iter().flatten().filter(|stale| *stale != seid).collect();
        Way { sure, perhaps: vec![], room: vec![], own: Some(seid) }
    }

    /// The sessions that give way to what a session is to be.
    pub(crate) fn replaced_by_change(&mut self, way: &Way, next: &SessionRecord) -> Vec<Seid> {
        let mut all: Vec<Seid> = way.named().filter(|old| self.is_in_the_place_of(*old, next)).collect();
        all.extend(self.making_room(way, next));
        all
    }

    /// The sessions that are to give way to a new one. One of its name that is still being established nobody counts on: it is
    /// over, as is a change of it that others give way to.
    pub(crate) fn replaced(&mut self, way: &Way, new: &SessionRecord) -> Vec<Seid> {
        let named = self.sessions.of_owner(&new.owner, new.cp_f_seid);
        let is_new = |named: &Seid| {
            let named = self.sessions.get(*named);
            named.is_some_and(|named| !named.is_established() || !named.replaces().is_empty())
        };
        if let Some(named) = named.filter(is_new) {
            self.fail(named, None);
        }
        self.replaced_by_change(way, new)
    }

    pub(crate) fn is_going(&self, seid: Seid) -> bool {
        let pending = self.sessions.get(seid).and_then(|session| session.pending.as_ref());
        pending.is_some_and(|pending| matches!(pending.work, Work::Delete | Work::Yield))
    }

    /// What they have counts as free.
    pub(crate) fn lend(&mut self, way: &Way) {
        for old in way.all() {
            if let Some(record) = self.record_of(old) {
                self.release_all(&record);
            }
        }
    }

    /// What nobody took is their own again.
    pub(crate) fn return_lent(&mut self, way: &Way) {
        way.all().for_each(|old| self.take_back(old));
    }

    fn take_back(&mut self, old: Seid) {
        let Some(record) = self.record_of(old) else { return };
        self.tunnels.take_back(&record);
        for address in record.extras.iter().flat_map(|extras| &extras.addresses) {
            self.pools.claim_again(*address, self.instance_of(&record, *address), record.seid);
        }
    }

    fn record_of(&self, old: Seid) -> Option<SessionRecord> {
        Some(self.sessions.get(old)?.record.clone())
    }

    /// It is out of force from now on. A change of it that is under way is not waited for.
    pub(crate) fn give_way(&mut self, old: Seid, asked: &Asked) {
        let Some(session) = self.sessions.get_mut(old) else { return };
        let (revision, cp_seid) = (session.revision, session.record.cp_f_seid.seid);
        let yields = Pending { asked: *asked, revision, work: Work::Yield, applied: None };
        if let Some(pending) = session.pending.replace(Box::new(yields)) {
            self.release_taken(old, &pending);
            self.refuse(&pending.asked, Some(cp_seid), Refusal::of(Cause::SessionContextNotFound));
        }
        self.sessions.leave_places(old);
        self.is_to_go(old);
        self.out.push(Output::Delete(old));
    }

    /// The new one has failed, and has left what it took.
    pub(crate) fn come_back(&mut self, old: Seid) {
        let Some(session) = self.sessions.get_mut(old).filter(|session| session.yields()) else { return };
        session.pending = None;
        self.stays_or_is_gone(old);
        let Some(session) = self.sessions.get(old) else { return };
        let name = (session.record.owner.clone(), session.record.cp_f_seid);
        // Where another has got its name meanwhile, nobody could name it any more.
        if self.sessions.of_owner(&name.0, name.1).is_some_and(|other| other != old) {
            return self.drop_session(old);
        }
        self.sessions.name_again(old);
        self.take_back(old);
        // The data plane has let it go, and may have no room for it any more.
        self.sessions.get_mut(old).into_iter().for_each(|session| session.is_missing = true);
        self.put_again(old);
        self.go_on(old);
        self.attend(old);
    }
}
