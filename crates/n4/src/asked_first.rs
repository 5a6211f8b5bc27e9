//! What a modification asks the data plane about its counts, and those modifications of which it is told once it has answered.

use crate::apply::modified;
use crate::interface::{Level, Output};
use crate::node::Node;
use crate::refusal::Refusal;
use crate::sessions::{Modifying, Session, Work};
use crate::usage;
use machine::Clock;
use pfcp::{Cause, UsageReport};
use rules::{Rules, Seid};
use session::SessionRecord;

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
        foresee(next, (&record.rules, true), modifying, clock);
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

/// Usage as it will be after a modification, to tell the data plane by. Where quotas and thresholds begin with what the answer tells, that
/// counts as told.
pub(crate) fn foresee(
    next: &mut SessionRecord,
    (before, tells_first): (&Rules, bool),
    modifying: &Modifying,
    clock: Clock,
) {
    if tells_first {
        tell(next, before, modifying, clock);
    }
    let (changed, given) = ((before, &*next.rules), (&modifying.taken.given[..], modifying.silence));
    usage::apply(&mut next.usage, changed, given, clock);
}

/// What the answer to a modification tells, which counts as told from now on.
pub(crate) fn tell(
    next: &mut SessionRecord,
    before: &Rules,
    modifying: &Modifying,
    clock: Clock,
) -> Vec<UsageReport> {
    let query = modifying.query.as_ref();
    let asked = usage::Asked {
        queried: query.map_or(&[], |query| &query.urrs),
        reference: query.and_then(|query| query.reference),
        removed: usage::removed(before, &next.rules, &modifying.taken.given).collect(),
        parted: usage::parted(before, &next.rules, &modifying.taken.given),
        tell_starts: usage::telling_starts(&next.rules).collect(),
    };
    usage::tell_asked(&mut next.usage, before, &asked, clock)
}
