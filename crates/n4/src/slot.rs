//! A session's place: awake while something is done about it, asleep otherwise. Asleep it is its record as the database
//! keeps it, one piece of memory that both share; what is under way about it, which few sessions have, lies beside.

use crate::offline::Changing;
use crate::paging::Paging;
use crate::sessions::{Session, Waiting};
use crate::usage::Meter;
use machine::Time;
use rules::Seid;
use session::Packed;
use std::cell::OnceCell;

/// A session's place.
#[derive(Debug)]
pub(crate) struct Slot {
    /// As of the last time it fell asleep.
    packed: Packed,
    rest: Option<Box<Rest>>,
    awake: OnceCell<Box<Session>>,
}

/// What there is of a session beside its record and its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rest {
    /// Given out beyond that of the record.
    revisions: u64,
    meter: Meter,
    paging: Paging,
    reporting: Option<u32>,
    report_again_ms: u64,
    unheard: u8,
    put_again: bool,
    changing: Changing,
    is_missing: bool,
    timer: Option<Time>,
}

impl Rest {
    /// Moments that have passed mean nothing any more.
    fn of(session: &mut Session, now_ms: u64) -> Self {
        session.meter.pass(now_ms);
        session.paging.pass(now_ms);
        let is_waiting = session.report_again_ms > now_ms;
        Self {
            revisions: session.revision.saturating_sub(session.record.revision),
            meter: std::mem::take(&mut session.meter),
            paging: std::mem::take(&mut session.paging),
            reporting: session.reporting,
            report_again_ms: if is_waiting { session.report_again_ms } else { 0 },
            unheard: session.unheard,
            put_again: session.put_again,
            changing: session.changing,
            is_missing: session.is_missing,
            timer: session.timer,
        }
    }
}

impl Slot {
    /// Of a session that is awake.
    pub(crate) fn of(session: Session) -> Self {
        Self { packed: Packed::default(), rest: None, awake: OnceCell::from(Box::new(session)) }
    }

    pub(crate) fn is_awake(&self) -> bool {
        self.awake.get().is_some()
    }

    /// The era in which its owner spoke of it last.
    pub(crate) fn era(&self) -> Option<u32> {
        self.awake().map_or_else(|| self.packed.era(), |session| Some(session.record.era))
    }

    /// The session, if it need not be woken.
    pub(crate) fn awake(&self) -> Option<&Session> {
        self.awake.get().map(|session| &**session)
    }

    /// The session, woken: counted by this life of the data plane, where one is known.
    pub(crate) fn session(&self, epoch: Option<u64>) -> Option<&Session> {
        if self.awake.get().is_none() {
            // It was not there a moment ago.
            let _ = self.awake.set(self.unpacked(epoch)?);
        }
        self.awake()
    }

    /// The session, woken.
    pub(crate) fn session_mut(&mut self, epoch: Option<u64>) -> Option<&mut Session> {
        self.session(epoch)?;
        self.awake.get_mut().map(|session| &mut **session)
    }

    pub(crate) fn into_session(self, epoch: Option<u64>) -> Option<Session> {
        self.session(epoch)?;
        self.awake.into_inner().map(|session| *session)
    }

    /// The session without waking it.
    pub(crate) fn look<T>(&self, epoch: Option<u64>, of: impl Fn(&Session) -> Option<T>) -> Option<T> {
        match self.awake() {
            Some(session) => of(session),
            None => of(&*self.unpacked(epoch)?),
        }
    }

    /// The data plane is there, in this life of it; who sleeps learns of it on waking.
    pub(crate) fn counted_by(&mut self, epoch: u64) {
        self.awake.get_mut().into_iter().for_each(|session| session.counted_by(epoch));
    }

    /// The data plane is gone, and its answers with it.
    pub(crate) fn lost(&mut self) {
        self.rest.iter_mut().for_each(|rest| rest.meter.lost());
        self.awake.get_mut().into_iter().for_each(|session| session.meter.lost());
    }

    /// The record can be read: we wrote it.
    fn unpacked(&self, epoch: Option<u64>) -> Option<Box<Session>> {
        let record = self.packed.record().ok()?;
        let rest = self.rest.as_deref().cloned().unwrap_or_default();
        let Rest { revisions, meter, paging, reporting, report_again_ms, unheard, .. } = rest;
        let Rest { put_again, changing, is_missing, timer, .. } = rest;
        let mut session = Box::new(Session {
            revision: record.revision + revisions,
            record,
            pending: None,
            waiting: Waiting::default(),
            meter,
            paging,
            reporting,
            report_again_ms,
            unheard,
            put_again,
            changing,
            is_missing,
            timer,
            is_to_be_kept: false,
        });
        epoch.into_iter().for_each(|epoch| session.counted_by(epoch));
        Some(session)
    }

    /// Puts the session to sleep, unless a request of it is under way. Its record, where that is to be kept.
    pub(crate) fn fall_asleep(&mut self, now_ms: u64) -> Option<Packed> {
        let session = self.awake.get_mut()?;
        let is_idle = session.pending.is_none() && session.waiting.len() == 0;
        let is_to_be_kept = std::mem::take(&mut session.is_to_be_kept);
        if is_idle || is_to_be_kept {
            let packed = Packed::of(&session.record);
            // What the database has is shared with it.
            if is_to_be_kept || packed != self.packed {
                self.packed = packed;
            }
        }
        if is_idle {
            let rest = Rest::of(session, now_ms);
            self.rest = (rest != Rest::default()).then(|| Box::new(rest));
            self.awake = OnceCell::new();
        }
        is_to_be_kept.then(|| self.packed.clone())
    }

    /// Its name, where it can be told.
    pub(crate) fn has_request(&self) -> Option<Seid> {
        self.awake().filter(|session| session.pending.is_some()).map(|session| session.record.seid)
    }
}
