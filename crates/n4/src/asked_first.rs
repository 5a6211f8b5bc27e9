//! What a modification asks the data plane about its counts, and those modifications of which it is told once it has answered.

use crate::apply::modified;
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sessions::{Session, Work};
use crate::usage;
use pfcp::Cause;
use rules::Seid;

impl Node {
    /// Asks about the URRs that a modification is to tell of, or that begin with it. The data plane answers in order.
    pub(crate) fn order_query(&mut self, session: Seid, work: &mut Work) {
        let Work::Modify(_, modifying) = work else { return };
        let Some(query) = &mut modifying.query else { return };
        let told = [&query.urrs[..], &query.others].concat();
        for (urrs, is_reported) in [(query.looked_at.clone(), false), (told, true)] {
            if !urrs.is_empty() {
                self.token += 1;
                let token = self.token;
                query.token = token;
                self.out.push(Output::QueryUsage { session, urrs, token, is_reported });
            }
        }
    }

    /// The question of a modification has been answered. If it waited for that, the data plane is told of it now: quotas and thresholds
    /// that begin with it do so at the counts that it has told, which are those that the answer tells.
    pub(crate) fn order_asked(&mut self, seid: Seid) {
        let clock = self.clock();
        let Some(session) = self.sessions.get_mut(seid) else { return };
        let Session { record, pending, paging, .. } = session;
        let Some(pending) = pending else { return };
        let revision = pending.revision;
        let Some((next, modifying)) = pending.takes_counts() else { return };
        next.usage = record.usage.clone();
        let (changed, given) =
            ((&*record.rules, &*next.rules), (&modifying.taken.given[..], modifying.silence));
        usage::apply(&mut next.usage, changed, given, clock);
        let desired = modified((next, paging), modifying, &self.config);
        match desired.fits() {
            true => self.out.push(Output::Put(desired)),
            false => self.fail_as_too_long(seid, revision),
        }
    }

    pub(crate) fn fail_as_too_long(&mut self, seid: Seid, revision: u64) {
        let text = format!("session {seid} would have more rules than the data plane can be told of");
        self.note(Level::Warning, text);
        self.fail_by(seid, Some(revision), Refusal::of(Cause::NoResourcesAvailable));
    }
}
