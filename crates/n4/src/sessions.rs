//! A session, awake.

use crate::config::Config;
use crate::exchange::Asked;
use crate::offline::{self, Changing};
use crate::paging::Paging;
use crate::translate::Taken;
use crate::usage::{self, Meter, wanted};
use dplink::{Desired, UsageCounts};
use machine::Time;
use pfcp::Body;
use rules::{Seid, UrrId};
use session::{Extras, SessionRecord};
use std::collections::VecDeque;
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
    /// The request of ours that tells what it used, while that is under way; if none is, when the unconfirmed report is sent again.
    pub(crate) reporting: Option<u32>,
    pub(crate) report_again_ms: u64,
    /// How often nobody has answered to it, up to a limit.
    pub(crate) unheard: u8,
    /// The data plane needs other rules, once nothing is pending.
    pub(crate) put_again: bool,
    /// What of the conditions of charging changes with them.
    pub(crate) changing: Changing,
    /// This life of the data plane has not said yet that it has it.
    pub(crate) is_missing: bool,
    /// When it is attended to next.
    pub(crate) timer: Option<Time>,
    /// The database is to have the record.
    pub(crate) is_to_be_kept: bool,
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

    /// Whether the session is to be deleted.
    fn has_deletion(&self) -> bool {
        let mut all = self.0.iter().flat_map(|waiting| waiting.iter());
        all.any(|(_, body)| matches!(body, Body::SessionDeletionRequest(_)))
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
    /// The session's own record is what is to come, in the place of others that had its name, or what it has.
    Establish(Taken, Vec<Seid>),
    /// To this.
    Modify(Box<SessionRecord>, Box<Modifying>),
    Delete,
    /// It gives way to a new one of its name or with what it had, and comes back if that cannot be.
    Yield,
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
    /// Stale sessions that give way for what it wants.
    pub(crate) replaced: Vec<Seid>,
}

/// What is asked of the data plane for a request.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pub(crate) urrs: Vec<UrrId>,
    /// URRs that report along with those, or with others that go, such as go and give their names to others, and such as measure volume
    /// from now on.
    pub(crate) others: Vec<UrrId>,
    /// URRs whose thresholds go on.
    pub(crate) looked_at: Vec<UrrId>,
    /// The data plane is told of the change once it has answered, as quotas and thresholds begin with these counts.
    pub(crate) is_first: bool,
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
            Work::Establish(taken, _) => Some(taken),
            Work::Modify(_, modifying) => Some(&modifying.taken),
            Work::Delete | Work::Yield => None,
        }
    }

    /// The session as it will be after a modification.
    pub(crate) fn next(&mut self) -> Option<&mut SessionRecord> {
        match &mut self.work {
            Work::Modify(next, _) => Some(next),
            _ => None,
        }
    }

    /// Whether the data plane has to answer before it is told of the change. Where it cannot, what is known must do.
    pub(crate) fn waits_for_counts(&mut self, can_answer: bool) -> bool {
        let Work::Modify(_, modifying) = &mut self.work else { return false };
        let query = modifying.query.as_mut();
        query.is_some_and(|query| {
            query.is_first &= can_answer;
            query.is_first
        })
    }

    /// The change of which the data plane has yet to be told, once it has answered.
    pub(crate) fn takes_counts(&mut self) -> Option<(&mut SessionRecord, &Modifying)> {
        let Work::Modify(next, modifying) = &mut self.work else { return None };
        let is_first = std::mem::take(&mut modifying.query.as_mut()?.is_first);
        (is_first && self.applied.is_none()).then_some((&mut **next, &**modifying))
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
    pub(crate) fn new(record: SessionRecord) -> Self {
        Self {
            revision: record.revision,
            record,
            pending: None,
            waiting: Waiting::default(),
            meter: Meter::default(),
            paging: Paging::default(),
            reporting: None,
            report_again_ms: 0,
            unheard: 0,
            put_again: false,
            changing: Changing::default(),
            is_missing: false,
            timer: None,
            is_to_be_kept: false,
        }
    }

    /// The data plane counts it in this life. What is known is what former lives counted, also for what is under way; it is nowhere else
    /// any more, and kept.
    pub(crate) fn counted_by(&mut self, epoch: u64) {
        if self.record.usage.epoch == epoch {
            return;
        }
        let is_known_alone = self.record.charging.is_some() || usage::has_counted(&self.record.usage);
        let next = self.pending.as_mut().and_then(|pending| pending.next());
        for record in next.into_iter().chain([&mut self.record]) {
            usage::new_epoch(&mut record.usage, epoch);
            offline::begin_anew(&mut record.charging);
        }
        self.is_missing = true;
        self.is_to_be_kept |= is_known_alone && self.is_established();
    }

    /// Whether the data plane knows more of it than we do.
    pub(crate) fn is_metered(&self) -> bool {
        let SessionRecord { usage, charging, .. } = &self.record;
        !usage.urrs.is_empty() || usage.inactivity.is_some() || charging.is_some()
    }

    /// What the data plane should hold now, confirmed or not; nothing where it should be gone.
    pub(crate) fn desired(&self, config: &Config) -> Option<Desired> {
        let record = match self.pending.as_ref().map(|pending| &pending.work) {
            Some(Work::Delete | Work::Yield) => return None,
            Some(Work::Modify(next, _)) => next,
            Some(Work::Establish(..)) | None => &self.record,
        };
        Some(desired((record, &self.paging), config))
    }

    /// Whether that is what is under way.
    pub(crate) fn yields(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| matches!(pending.work, Work::Yield))
    }

    /// Whether its deletion was asked for and has not been answered.
    pub(crate) fn is_to_be_deleted(&self) -> bool {
        let is_under_way = |pending: &Pending| matches!(pending.work, Work::Delete);
        self.pending.as_deref().is_some_and(is_under_way) || self.waiting.has_deletion()
    }

    /// Whether it is being deleted.
    pub(crate) fn is_being_deleted(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| matches!(pending.work, Work::Delete))
    }

    /// Whether the data plane has let it go as was asked for, and the answer waits for that of a report alone.
    pub(crate) fn has_been_deleted(&self) -> bool {
        let is_done = |pending: &Pending| matches!(pending.work, Work::Delete) && pending.applied.is_some();
        self.pending.as_deref().is_some_and(is_done)
    }

    /// Those it is to replace.
    pub(crate) fn replaces(&self) -> &[Seid] {
        match self.pending.as_ref().map(|pending| &pending.work) {
            Some(Work::Establish(_, replaced)) => replaced,
            Some(Work::Modify(_, modifying)) => &modifying.replaced,
            _ => &[],
        }
    }

    /// Whether its owner has been told that it is there.
    pub(crate) fn is_established(&self) -> bool {
        !self.pending.as_ref().is_some_and(|pending| matches!(pending.work, Work::Establish(..)))
    }

    /// Who looks after it instead of its owner.
    pub(crate) fn alternative(&self) -> Option<IpAddr> {
        self.record.extras.as_ref()?.alternative
    }

    /// What is under way must not forget it.
    pub(crate) fn look_to(&mut self, alternative: Option<IpAddr>) {
        let cp_f_seid = self.record.cp_f_seid;
        let next = self.pending.as_mut().and_then(|pending| pending.next());
        for record in next.into_iter().chain([&mut self.record]) {
            let mut extras = record.extras.take().map(|extras| *extras).unwrap_or_default();
            extras.alternative = alternative;
            record.extras = Some(extras).filter(|extras| *extras != Extras::default()).map(Box::new);
            if alternative.is_none() {
                record.cp_f_seid = cp_f_seid;
            }
        }
    }

    /// The record is kept, as it is once the input has been handled.
    pub(crate) const fn save(&mut self) {
        self.is_to_be_kept = true;
    }

    pub(crate) const fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}

pub(crate) fn desired((record, paging): (&SessionRecord, &Paging), config: &Config) -> Desired {
    let mut rules = wanted(record, config);
    paging.adapt(&mut rules);
    Desired::new(record.seid, record.revision, rules)
}
