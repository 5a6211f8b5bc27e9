//! The sessions, by our name and by their owners'.

use crate::config::Config;
use crate::exchange::Asked;
use crate::paging::Paging;
use crate::set_index::SetIndex;
use crate::translate::Taken;
use crate::usage::{Meter, wanted};
use dplink::{Desired, UsageCounts};
use machine::Time;
use pfcp::{Body, FqCsid};
use rules::{Seid, UrrId};
use session::{Extras, SessionRecord};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    /// As the data plane last confirmed it; while it is being established, as it will be.
    pub(crate) record: SessionRecord,
    /// The last revision given out.
    pub(crate) revision: u64,
    /// What the data plane was told and has not confirmed.
    pub(crate) pending: Option<Box<Pending>>,
    /// Requests that came meanwhile.
    pub(crate) waiting: Waiting,
    /// What is under way about its usage, and about packets kept for it.
    pub(crate) meter: Meter,
    pub(crate) paging: Paging,
    /// A usage report is on its way; if not, when the unconfirmed one is sent again.
    pub(crate) is_reporting: bool,
    pub(crate) report_again_ms: u64,
    /// The data plane needs other rules, once nothing is pending.
    pub(crate) put_again: bool,
    /// When it is attended to next.
    pub(crate) timer: Option<Time>,
}

/// Requests of a session that wait for the one before: hardly ever any, and then 8 bytes.
#[expect(clippy::box_collection, reason = "a list of its own has 32 bytes, and there are a million sessions")]
#[derive(Debug, Default)]
pub(crate) struct Waiting(Option<Box<VecDeque<(Asked, Body)>>>);

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.len())
    }

    pub(crate) fn push(&mut self, asked: Asked, body: Body) {
        self.0.get_or_insert_default().push_back((asked, body));
    }

    pub(crate) fn pop(&mut self) -> Option<(Asked, Body)> {
        let next = self.0.as_mut()?.pop_front();
        self.0.take_if(|waiting| waiting.is_empty());
        next
    }

    /// Who asks.
    pub(crate) fn into_asked(self) -> impl Iterator<Item = Asked> {
        self.0.into_iter().flat_map(|waiting| *waiting).map(|(asked, _)| asked)
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) asked: Asked,
    pub(crate) revision: u64,
    pub(crate) work: Work,
    /// The data plane obeys, and tells the last counts of URRs that go.
    pub(crate) applied: Option<Vec<UsageCounts>>,
}

/// What a request under way does.
#[derive(Debug)]
pub(crate) enum Work {
    /// The session's own record is what is to come.
    Establish(Taken),
    /// To this.
    Modify(Box<SessionRecord>, Box<Modifying>),
    Delete,
}

/// What belongs to a modification beside the session's next record, whose usage only serves to tell the data plane:
/// what is used meanwhile counts, too.
#[derive(Debug)]
pub(crate) struct Modifying {
    pub(crate) taken: Taken,
    /// A new inactivity timer, 0 for none.
    pub(crate) silence: Option<u32>,
    /// URRs to be told of in the answer.
    pub(crate) query: Option<Query>,
    pub(crate) drop_buffered: bool,
}

/// What is asked of the data plane for a request.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) urrs: Vec<UrrId>,
    pub(crate) reference: Option<u32>,
    pub(crate) token: u64,
    pub(crate) is_answered: bool,
}

impl Pending {
    /// Whether the data plane has said all that the answer needs.
    pub(crate) fn is_done(&self) -> bool {
        let is_answered = match &self.work {
            Work::Modify(_, modifying) => modifying.query.as_ref().is_none_or(|query| query.is_answered),
            _ => true,
        };
        self.applied.is_some() && is_answered
    }

    /// The endpoints it took.
    pub(crate) const fn taken(&self) -> Option<&Taken> {
        match &self.work {
            Work::Establish(taken) => Some(taken),
            Work::Modify(_, modifying) => Some(&modifying.taken),
            Work::Delete => None,
        }
    }

    /// Whether this answers its question.
    pub(crate) fn is_query(&mut self, token: u64) -> Option<&mut Query> {
        match &mut self.work {
            Work::Modify(_, modifying) => modifying.query.as_mut().filter(|query| query.token == token),
            _ => None,
        }
    }
}

impl Session {
    /// What the data plane should hold now, confirmed or not; nothing where it should be gone.
    pub(crate) fn desired(&self, config: &Config) -> Option<Desired> {
        let record = match self.pending.as_ref().map(|pending| &pending.work) {
            Some(Work::Delete) => return None,
            Some(Work::Modify(next, _)) => next,
            Some(Work::Establish(_)) | None => &self.record,
        };
        Some(desired(record, config))
    }

    /// Whether its owner has been told that it is there.
    pub(crate) fn is_established(&self) -> bool {
        !self.pending.as_ref().is_some_and(|pending| matches!(pending.work, Work::Establish(_)))
    }

    /// Who looks after it instead of its owner.
    pub(crate) fn alternative(&self) -> Option<IpAddr> {
        self.record.extras.as_ref()?.alternative
    }

    /// What is under way must not forget it.
    pub(crate) fn look_to(&mut self, alternative: Option<IpAddr>) {
        let cp_f_seid = self.record.cp_f_seid;
        let next = match self.pending.as_mut().map(|pending| &mut pending.work) {
            Some(Work::Modify(next, _)) => Some(&mut **next),
            _ => None,
        };
        for record in next.into_iter().chain([&mut self.record]) {
            let mut extras = record.extras.take().map(|extras| *extras).unwrap_or_default();
            extras.alternative = alternative;
            record.extras = Some(extras).filter(|extras| *extras != Extras::default()).map(Box::new);
            if alternative.is_none() {
                record.cp_f_seid = cp_f_seid;
            }
        }
    }

    pub(crate) const fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}

pub(crate) fn desired(record: &SessionRecord, config: &Config) -> Desired {
    Desired::new(record.seid, record.revision, wanted(record, config))
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// In boxes: nodes of the map are half empty when names are given out in order.
    by_seid: BTreeMap<Seid, Box<Session>>,
    /// By owner and the SEID it gave.
    by_owner: HashMap<String, HashMap<u64, Seid>>,
    by_set: SetIndex,
    recovery_time_stamp: u32,
    last: u32,
}

impl Sessions {
    pub(crate) fn new(recovery_time_stamp: u32) -> Self {
        Self {
            by_seid: BTreeMap::new(),
            by_owner: HashMap::new(),
            by_set: SetIndex::default(),
            recovery_time_stamp,
            last: 0,
        }
    }

    /// A name no session of ours has, nor had since we lost any: the stamp tells lives apart. Never 0.
    pub(crate) fn new_seid(&mut self) -> Seid {
        loop {
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
        }
    }

    /// A session of the database. The revision after the saved one may have been given out, but not confirmed,
    /// before a restart: it is not given out again.
    pub(crate) fn restore(&mut self, record: SessionRecord) -> Seid {
        let seid = record.seid;
        self.pass_over(seid);
        self.insert(record).next_revision();
        seid
    }

    pub(crate) fn insert(&mut self, record: SessionRecord) -> &mut Session {
        let (seid, revision) = (record.seid, record.revision);
        self.name(&record);
        self.by_set.enter(&record);
        let session = Session {
            record,
            revision,
            pending: None,
            waiting: Waiting::default(),
            meter: Meter::default(),
            paging: Paging::default(),
            is_reporting: false,
            report_again_ms: 0,
            put_again: false,
            timer: None,
        };
        self.by_seid.entry(seid).insert_entry(Box::new(session)).into_mut()
    }

    fn name(&mut self, record: &SessionRecord) {
        let (name, seid) = (record.cp_f_seid.seid, record.seid);
        match self.by_owner.get_mut(&record.owner) {
            Some(names) => drop(names.insert(name, seid)),
            None => drop(self.by_owner.insert(record.owner.clone(), HashMap::from([(name, seid)]))),
        }
    }

    /// Another session may have the name by now.
    fn unname(&mut self, (owner, name): (&str, u64), seid: Seid) {
        let Some(names) = self.by_owner.get_mut(owner) else { return };
        if names.get(&name) == Some(&seid) {
            names.remove(&name);
        }
        if names.is_empty() {
            self.by_owner.remove(owner);
        }
    }

    /// Puts the next record in the place of the one before, which it returns.
    pub(crate) fn replace_record(&mut self, next: SessionRecord) -> Option<SessionRecord> {
        let seid = next.seid;
        let session = self.by_seid.get(&seid)?;
        let is_renamed =
            session.record.owner != next.owner || session.record.cp_f_seid.seid != next.cp_f_seid.seid;
        if is_renamed {
            let (owner, name) = (session.record.owner.clone(), session.record.cp_f_seid.seid);
            self.unname((&owner, name), seid);
            self.name(&next);
        }
        let session = self.by_seid.get_mut(&seid)?;
        self.by_set.leave(&session.record);
        self.by_set.enter(&next);
        Some(std::mem::replace(&mut session.record, next))
    }

    pub(crate) fn remove(&mut self, seid: Seid) -> Option<Session> {
        let session = *self.by_seid.remove(&seid)?;
        self.unname((&session.record.owner, session.record.cp_f_seid.seid), seid);
        self.by_set.leave(&session.record);
        Some(session)
    }

    pub(crate) fn get(&self, seid: Seid) -> Option<&Session> {
        self.by_seid.get(&seid).map(|session| &**session)
    }

    pub(crate) fn get_mut(&mut self, seid: Seid) -> Option<&mut Session> {
        self.by_seid.get_mut(&seid).map(|session| &mut **session)
    }

    pub(crate) fn of_owner(&self, owner: &str, cp_seid: u64) -> Option<Seid> {
        self.by_owner.get(owner)?.get(&cp_seid).copied()
    }

    pub(crate) fn all_of(&self, owner: &str) -> Vec<Seid> {
        let mut all: Vec<Seid> =
            self.by_owner.get(owner).into_iter().flat_map(|names| names.values().copied()).collect();
        // The same order in every run.
        all.sort_unstable();
        all
    }

    /// Those that may be of any of these sets.
    pub(crate) fn of_sets(&self, fq_csids: &[FqCsid]) -> BTreeSet<Seid> {
        self.by_set.of(fq_csids)
    }

    pub(crate) fn pending(&self) -> Vec<Seid> {
        self.by_seid.values().filter(|s| s.pending.is_some()).map(|s| s.record.seid).collect()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_seid.values_mut().map(|session| &mut **session)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_seid.values().map(|session| &**session)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_seid.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::{Far, Pdr, Qer, Urr};
    use session::UrrUsage;

    /// What a session of two PDRs, two FARs, a QER and a URR costs, beside a few lists of one item each. 1,536 would be
    /// the aim; a URR and its usage are the largest part.
    #[test]
    fn sessions_are_small() {
        let rules = 2 * size_of::<Pdr>() + 2 * size_of::<Far>() + size_of::<Qer>() + size_of::<Urr>();
        let whole = size_of::<Session>() + rules + size_of::<UrrUsage>();
        assert!(whole <= 1_792, "{} of {whole}", size_of::<Session>());
    }
}
