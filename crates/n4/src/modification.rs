//! Session Modification (TS 29.244 6.3.3).

use crate::asked_first::foresee;
use crate::establishment::cp_f_seid;
use crate::exchange::Asked;
use crate::interface::Level;
use crate::networks;
use crate::node::Node;
use crate::offline;
use crate::paging;
use crate::refusal::Refusal;
use crate::repeated;
use crate::sessions::{Modifying, Query, Work};
use crate::support;
use crate::translate::{Restated, Sources, Translated, Translator};
use crate::usage::{self, Given};
use pfcp::{Cause, SessionModificationRequest, flags};
use rules::{RuleError, RuleRef, Rules, Seid, Urr, UrrId};
use session::SessionRecord;
use std::sync::Arc;

impl Node {
    pub(crate) fn modify(
        &mut self,
        asked: &Asked,
        seid: Seid,
        request: &SessionModificationRequest,
    ) -> Result<(), Refusal> {
        let request = &*repeated::modification(networks::known_modification(request, &self.config));
        support::modification(request, &self.config)?;
        let mut way = self.in_the_way_of_change(seid, request);
        let (next, modifying) = self.with_room(&mut way, |node| node.changed(seid, request))?;
        self.note_restated(seid, &modifying.taken.restated);
        let replaced = self.replaced_by_change(&way, &next);
        self.ask_before_change(seid, &next);
        replaced.iter().for_each(|old| self.give_way(*old, asked));
        let modifying = Modifying { replaced, ..modifying };
        self.order(seid, asked, Work::Modify(Box::new(next), Box::new(modifying)));
        Ok(())
    }

    /// What a control plane says again is done, and somebody may want to know why its words and ours differ. Who does so does it all
    /// the time: it is noted each time there was twice as much of it.
    fn note_restated(&mut self, seid: Seid, rules: &[Restated]) {
        let Some(first) = rules.first() else { return };
        let before = self.counters.restated;
        self.counters.restated += rules.len() as u64;
        if before.checked_ilog2() == self.counters.restated.checked_ilog2() {
            return;
        }
        let others = match rules.len() - 1 {
            0 => String::new(),
            others => format!(" and of {others} more rules"),
        };
        let text = format!("session {seid} is told again of the removal or creation of {first}{others}");
        self.note(Level::Info, text);
    }

    /// The session as the request would have it, and what else is to be done.
    fn changed(
        &mut self,
        seid: Seid,
        request: &SessionModificationRequest,
    ) -> Result<(SessionRecord, Modifying), Refusal> {
        let session = self.sessions.get(seid).ok_or(Refusal::of(Cause::SessionContextNotFound))?;
        let before = &session.record;
        // It would have ever more to tell a control plane that takes nothing.
        if before.usage.further.len() >= usage::MOST_FURTHER {
            return Err(Refusal::of(Cause::PfcpEntityInCongestion));
        }
        let renamed = request.cp_f_seid.as_ref().map(|name| cp_f_seid(name, &self.config));
        let cp_f_seid = renamed.unwrap_or(Ok(before.cp_f_seid))?;
        let owner = self.new_owner(&before.owner, request.node_id.as_ref())?;
        // A name of another session of the same owner cannot be this one's, too.
        let is_renamed = cp_f_seid != before.cp_f_seid || owner != before.owner;
        if is_renamed && self.sessions.of_owner(&owner, cp_f_seid).is_some_and(|other| other != seid) {
            return Err(Refusal::incorrect(pfcp::ie::F_SEID));
        }
        let query = query(request, &before.rules)?;
        let sources = Sources {
            ours: &self.config.gtpu,
            tunnels: &mut self.tunnels,
            pools: &mut self.pools,
            predefined: &self.config.predefined,
            pfds: &self.pfds,
            config: &self.config,
        };
        let translator = Translator::new(sources, seid, (&before.rules, before.extras.as_deref()));
        let Translated { rules, extras, taken } = translator.modification(request)?;
        let no_timer = request.removes(pfcp::ie::USER_PLANE_INACTIVITY_TIMER).then_some(0);
        let silence = request.user_plane_inactivity_timer.or(no_timer);
        let drop_buffered = asks_for(request, flags::PFCPSM_DROBU);
        let mut rules = Arc::new(rules);
        paging::settle(&mut rules, drop_buffered);
        let mut next = SessionRecord {
            seid,
            revision: before.revision,
            era: self.era(&owner),
            owner,
            cp_f_seid,
            rules,
            usage: before.usage.clone(),
            extras,
            charging: before.charging.clone(),
        };
        offline::meet(&mut next, &self.config, (&before.rules, self.wall_ms()));
        let query = with_others(query, before, (&next.rules, &taken.given));
        let is_first = query.as_ref().is_some_and(|query| query.is_first);
        let modifying = Modifying { taken, silence, query, drop_buffered, replaced: vec![] };
        foresee(&mut next, (&before.rules, is_first), &modifying, self.clock());
        Ok((next, modifying))
    }
}

fn asks_for(request: &SessionModificationRequest, flag: u8) -> bool {
    request.pfcpsm_req_flags.is_some_and(|bits| bits & flag != 0)
}

/// The URRs it asks about, by name (Query URR) or all (QAURR).
fn query(request: &SessionModificationRequest, rules: &Rules) -> Result<Option<Query>, Refusal> {
    let all = rules.urrs.iter().map(|urr| urr.id);
    let urrs: Vec<UrrId> = match asks_for(request, flags::PFCPSM_QAURR) {
        true => all.collect(),
        false => request.query_urrs.iter().map(|query| UrrId(query.urr_id)).collect(),
    };
    if let Some(unknown) = urrs.iter().find(|id| !rules.urrs.iter().any(|urr| urr.id == **id)) {
        return Err(RuleError::Unknown(RuleRef::Urr(*unknown)).into());
    }
    let reference = request.query_urr_reference;
    let query = Query { urrs, reference, ..Query::default() };
    Ok(Some(query).filter(|query| !query.urrs.is_empty()))
}

/// What reports along with what is asked about, or with what goes, is to be as new as that. What gives its name to another is as well:
/// the data plane counts on for that one, and tells nothing of a removal. So is what stays without a PDR, and what measures from now on
/// what it did not.
fn with_others(
    query: Option<Query>,
    before: &SessionRecord,
    (after, given): (&Rules, &[Given]),
) -> Option<Query> {
    let (rules, query) = (&*before.rules, query.unwrap_or_default());
    let removed: Vec<UrrId> = usage::removed(rules, after, given).collect();
    let parted = usage::parted(rules, after, given);
    let reporting = query.urrs.iter().chain(&removed).chain(&parted).copied().collect();
    let mut others = usage::linked(rules, &reporting);
    others.retain(|urr| !reporting.contains(urr));
    let (volume, mut looked_at) = usage::beginning((rules, after), (given, &before.usage));
    let is_there = |id: &&UrrId| after.urrs.iter().any(|urr| urr.id == **id);
    let anew: Vec<UrrId> = removed.iter().filter(is_there).chain(&volume).copied().collect();
    for id in anew.iter().chain(&parted) {
        if !query.urrs.contains(id) && !others.contains(id) {
            others.push(*id);
        }
    }
    looked_at.retain(|id| !query.urrs.contains(id) && !others.contains(id));
    let has_limit = |urr: &Urr| urr.volume_quota.is_some() || urr.volume_threshold.is_some();
    let begins = |id: UrrId| given.iter().any(|given| given.urr == id && given.begins_volumes());
    let is_told = |id: UrrId| query.urrs.contains(&id) || others.contains(&id);
    let begins_here = |id: UrrId| anew.contains(&id) || is_told(id) && begins(id);
    let is_first = after.urrs.iter().any(|urr| has_limit(urr) && begins_here(urr.id));
    let is_any = !(query.urrs.is_empty() && others.is_empty() && looked_at.is_empty());
    is_any.then_some(Query { others, looked_at, is_first, ..query })
}
