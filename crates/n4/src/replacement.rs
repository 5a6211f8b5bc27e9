//! A CP F-SEID that is used again (TS 29.244 5.6.2): the session that had the name goes once the new one is in force. Until
//! then it only gives way, as users' addresses and tunnels are one session's, and comes back where the new one fails.

use crate::exchange::Asked;
use crate::interface::Output;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sessions::{Pending, Work};
use pfcp::Cause;
use rules::Seid;
use session::{CpFSeid, SessionRecord};

impl Node {
    /// The sessions that a new one of this name is in the place of: the one that has the name, and if that one is still being
    /// established, the one it replaces. One that is being deleted goes without a successor.
    pub(crate) fn in_the_way(&self, owner: &str, name: CpFSeid) -> [Option<Seid>; 2] {
        let named = self.sessions.of_owner(owner, name).filter(|named| !self.is_going(*named));
        let before = named.and_then(|named| self.sessions.get(named)?.replaces());
        [named, before]
    }

    /// The session that is to give way. One that is still being established nobody counts on: it is over.
    pub(crate) fn replaced(&mut self, owner: &str, name: CpFSeid) -> Option<Seid> {
        let named = self.sessions.of_owner(owner, name)?;
        if !self.sessions.get(named)?.is_established() {
            self.fail(named, None);
        }
        self.sessions.of_owner(owner, name).filter(|old| !self.is_going(*old))
    }

    fn is_going(&self, seid: Seid) -> bool {
        let pending = self.sessions.get(seid).and_then(|session| session.pending.as_ref());
        pending.is_some_and(|pending| matches!(pending.work, Work::Delete))
    }

    /// What it has counts as free.
    pub(crate) fn lend(&mut self, old: Option<Seid>) {
        if let Some(record) = self.record_of(old) {
            self.release_all(&record);
        }
    }

    /// What nobody took is its own again.
    pub(crate) fn take_back(&mut self, old: Option<Seid>) {
        let Some(record) = self.record_of(old) else { return };
        self.tunnels.take_back(&record);
        for address in record.extras.iter().flat_map(|extras| &extras.addresses) {
            self.pools.claim_again(*address, self.instance_of(&record, *address), record.seid);
        }
    }

    fn record_of(&self, old: Option<Seid>) -> Option<SessionRecord> {
        Some(self.sessions.get(old?)?.record.clone())
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
        self.out.push(Output::Delete(old));
    }

    /// The new one has failed, and has left what it took.
    pub(crate) fn come_back(&mut self, old: Seid) {
        let Some(session) = self.sessions.get_mut(old).filter(|session| session.yields()) else { return };
        session.pending = None;
        self.sessions.name_again(old);
        self.take_back(Some(old));
        // The data plane has let it go, and may have no room for it any more.
        self.losses.missing(old);
        self.put_again(old);
        self.go_on(old);
        self.attend(old);
    }
}
