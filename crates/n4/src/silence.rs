//! Users who are silent for as long as their control plane wants to know (TS 29.244 7.5.8.1, UPIR): it is told again, a
//! few times, where nobody answers.

use crate::asking::Telling;
use crate::exchange::Purpose;
use crate::node::Node;
use pfcp::{Cause, ReportType, SessionReportRequest};
use rules::Seid;

/// One who does not answer this often hears of it no more, unless the user is silent anew.
const ATTEMPTS: u8 = 4;

/// A report to be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Again {
    at_ms: u64,
    attempt: u8,
}

impl Node {
    pub(crate) fn report_silence(&mut self, seid: Seid, attempt: u8) {
        let report_type = ReportType(ReportType::UPIR);
        let request = SessionReportRequest { report_type, ..SessionReportRequest::default() };
        match self.tell_owner(seid, Purpose::Silence(seid, attempt), request) {
            Telling::UnderWay => {}
            Telling::NoRoom => self.wait_in_silence(seid, attempt),
            Telling::Silent => {
                let again = Again { at_ms: self.wall_ms(), attempt };
                let session = self.sessions.get_mut(seid);
                session.into_iter().for_each(|session| session.meter.silence_again = Some(again));
            }
        }
    }

    fn wait_in_silence(&mut self, seid: Seid, attempt: u8) {
        let at_ms = self.wall_ms() + self.config.heartbeat_interval.as_millis() as u64;
        if let Some(session) = self.sessions.get_mut(seid).filter(|_| attempt < ATTEMPTS) {
            session.meter.silence_again = Some(Again { at_ms, attempt: attempt + 1 });
        }
    }

    /// Nobody answered.
    pub(crate) fn silence_unheard(&mut self, seid: Seid, attempt: u8) {
        self.wait_in_silence(seid, attempt);
        self.attend(seid);
    }

    /// A control plane that is too busy hears it again.
    pub(crate) fn silence_answered(&mut self, seid: Seid, attempt: u8, cause: Cause) {
        if cause == Cause::PfcpEntityInCongestion {
            self.silence_unheard(seid, attempt);
        }
    }

    /// Reports once more if it is time, and the user is still silent; when it will be.
    pub(crate) fn report_silence_again(&mut self, seid: Seid, now_ms: u64) -> Option<u64> {
        let session = self.sessions.get_mut(seid)?;
        let Again { at_ms, attempt } = session.meter.silence_again?;
        let is_silent = session.record.usage.inactivity.as_ref().is_some_and(|it| it.is_reported);
        if is_silent && at_ms > now_ms {
            return Some(at_ms);
        }
        if is_silent && self.must_wait(seid) {
            return None;
        }
        self.sessions.get_mut(seid)?.meter.silence_again = None;
        if is_silent {
            self.report_silence(seid, attempt);
        }
        self.sessions.get(seid)?.meter.silence_again.map(|again| again.at_ms)
    }
}
