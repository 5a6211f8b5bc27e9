//! What becomes of our requests.

use super::dialect::{Change, Endpoint};
use super::failure::{Failure, Reason};
use super::session::Remote;
use super::{Event, Purpose, RETRY, Smf};
use crate::tunnel::Tunnel;
use machine::Time;
use pfcp::{
    AssociationSetupResponse, Body, Cause, Message, SessionDeletionResponse, SessionEstablishmentResponse,
    SessionModificationResponse, ie,
};
use rules::Teid;

impl Smf {
    /// The first answer counts; any other is that to a request sent twice.
    pub(super) fn response(&mut self, message: Message, now: Time) {
        let Some(pending) = self.requests.finish(&message.sequence) else { return };
        let ended = match (pending.purpose, message.body) {
            (Purpose::Heartbeat, Body::HeartbeatResponse(answer)) => {
                self.heartbeat_answered();
                self.note_recovery(answer.recovery_time_stamp, now);
                Ok(())
            }
            (Purpose::Setup, Body::AssociationSetupResponse(answer)) => self.set_up_answered(answer, now),
            (Purpose::Release, Body::AssociationReleaseResponse(answer)) => {
                accepted(answer.cause).map(|()| self.stopped())
            }
            (Purpose::Establish(index), Body::SessionEstablishmentResponse(answer)) => {
                self.established(index, message.seid, &answer).map(|remote| self.go_on(index, remote, now))
            }
            (Purpose::Modify(index), Body::SessionModificationResponse(answer)) => {
                self.is_about(index, message.seid, &answer).and_then(|()| self.modified(index))
            }
            (Purpose::Sleep(index), Body::SessionModificationResponse(answer)) => {
                self.is_about(index, message.seid, &answer).map(|()| self.event(Event::Asleep(index)))
            }
            (Purpose::Wake(index), Body::SessionModificationResponse(answer)) => {
                self.is_about(index, message.seid, &answer).map(|()| self.event(Event::Awake(index)))
            }
            (Purpose::Change(index, change), Body::SessionModificationResponse(answer)) => {
                self.is_about(index, message.seid, &answer).map(|()| self.changed(index, change, &answer))
            }
            (Purpose::Delete(index), Body::SessionDeletionResponse(answer)) => {
                self.used(index, &answer.usage_reports);
                deleted(&answer).map(|()| self.gone(index, now))
            }
            _ => Err(Reason::Mismatch),
        };
        if let Err(reason) = ended {
            self.fail(pending.purpose, reason, now);
        }
    }

    fn set_up_answered(&mut self, answer: AssociationSetupResponse, now: Time) -> Result<(), Reason> {
        accepted(answer.cause)?;
        self.associated(answer.node_id, answer.recovery_time_stamp, now);
        Ok(())
    }

    /// What the user plane now has. It is noted even where the answer is not right, so that it will be deleted.
    fn established(
        &mut self,
        index: usize,
        seid: Option<u64>,
        answer: &SessionEstablishmentResponse,
    ) -> Result<Remote, Reason> {
        if !answer.cause.is_accepted() {
            return Err(refused(answer.cause, answer.offending_ie, answer.failed_rule_id));
        }
        let up_f_seid = answer.up_f_seid.ok_or(Reason::Incomplete(ie::F_SEID))?;
        let session = self.sessions.get(index).ok_or(Reason::Mismatch)?;
        let ours = session.seid;
        let picked = session.picked_uplink(self.settings.f_teid);
        self.sessions.chosen(index, &answer.created_pdrs);
        let uplink = picked.or_else(|| self.endpoint(index, Endpoint::Uplink));
        let nowhere = Tunnel { teid: Teid(0), address: std::net::Ipv4Addr::UNSPECIFIED };
        let remote = Remote { seid: up_f_seid.seid, uplink: uplink.unwrap_or(nowhere) };
        self.sessions.set_remote(index, Some(remote));
        uplink.ok_or(Reason::Incomplete(ie::CREATED_PDR))?;
        if seid == Some(ours) { Ok(remote) } else { Err(Reason::Seid(seid)) }
    }

    /// The session is there: its downlink is opened, unless we are leaving.
    fn go_on(&mut self, index: usize, remote: Remote, now: Time) {
        let is_restored = self.sessions.get(index).is_some_and(|session| session.is_restored);
        match self.stopping {
            true => self.sessions.queue(index, now),
            // It is as it was, downlink and all.
            false if is_restored => drop(self.modified(index)),
            false => self.modify(index, remote, now),
        }
    }

    fn changed(&mut self, index: usize, change: Change, answer: &SessionModificationResponse) {
        self.sessions.chosen(index, &answer.created_pdrs);
        self.used(index, &answer.usage_reports);
        match change {
            Change::Handover(to) => self.sessions.moved(index, to),
            Change::Grant(bytes) => self.sessions.granted(index, Some(bytes)),
            Change::EndCharging => self.sessions.granted(index, None),
            _ => {}
        }
        self.event(Event::Changed(index, change));
    }

    /// Whether it is done, and about the session it was asked for.
    fn is_about(
        &self,
        index: usize,
        seid: Option<u64>,
        answer: &SessionModificationResponse,
    ) -> Result<(), Reason> {
        if !answer.cause.is_accepted() {
            return Err(refused(answer.cause, answer.offending_ie, answer.failed_rule_id));
        }
        let session = self.sessions.get(index).ok_or(Reason::Mismatch)?;
        if seid == Some(session.seid) { Ok(()) } else { Err(Reason::Seid(seid)) }
    }

    fn modified(&mut self, index: usize) -> Result<(), Reason> {
        let session = self.sessions.get(index).ok_or(Reason::Mismatch)?;
        let uplink = session.remote.map(|remote| remote.uplink).ok_or(Reason::Mismatch)?;
        self.sessions.set_up(index, true);
        self.event(Event::SessionUp(index, uplink));
        if self.sessions.all_up() {
            self.event(Event::Ready);
        }
        Ok(())
    }

    /// The user plane has the session no more.
    fn gone(&mut self, index: usize, now: Time) {
        self.sessions.set_remote(index, None);
        self.sessions.forget_chosen(index);
        match self.stopping {
            true => self.event(Event::SessionDeleted(index)),
            false => self.sessions.queue(index, now),
        }
    }

    /// N1 requests went unanswered.
    pub(super) fn silence(&mut self, purpose: Purpose, now: Time) {
        match purpose {
            Purpose::Setup => self.setup_unanswered(now),
            Purpose::Heartbeat => self.heartbeat_unanswered(),
            _ => self.fail(purpose, Reason::Silence, now),
        }
    }

    /// A procedure ended badly: what is to be done instead.
    pub(super) fn fail(&mut self, purpose: Purpose, reason: Reason, now: Time) {
        let cause = match reason {
            Reason::Refused { cause, .. } => Some(cause),
            _ => None,
        };
        match (purpose, cause) {
            (Purpose::Setup, _) => self.setup_failed(reason, now),
            (Purpose::Heartbeat, _) => self.report_failure(purpose, reason),
            (Purpose::Release, _) => {
                self.report_failure(purpose, reason);
                self.stopped();
            }
            (
                Purpose::Modify(index)
                | Purpose::Sleep(index)
                | Purpose::Wake(index)
                | Purpose::Change(index, _),
                Some(Cause::SessionContextNotFound),
            ) => {
                self.sessions.set_remote(index, None);
                self.event(Event::SessionLost(index));
                self.again(index, now);
            }
            (
                Purpose::Establish(_)
                | Purpose::Modify(_)
                | Purpose::Sleep(_)
                | Purpose::Wake(_)
                | Purpose::Change(..),
                Some(Cause::NoEstablishedPfcpAssociation),
            ) => {
                self.event(Event::Restarted);
                self.associate_again(now);
            }
            (Purpose::Establish(index) | Purpose::Modify(index), _) => {
                // What cannot be had again is made anew.
                self.sessions.forget_chosen(index);
                self.report_failure(purpose, reason);
                self.again(index, now);
            }
            // The session is as it was: a UE that did not fall asleep, or did not wake, or what else did not change.
            (Purpose::Sleep(_) | Purpose::Wake(_) | Purpose::Change(..), _) => {
                self.report_failure(purpose, reason)
            }
            (Purpose::Delete(index), _) => {
                self.report_failure(purpose, reason);
                self.gone(index, now + RETRY);
            }
        }
    }

    /// After a pause; at once where it is to be deleted.
    fn again(&mut self, index: usize, now: Time) {
        let pause = if self.stopping { std::time::Duration::ZERO } else { RETRY };
        self.sessions.queue(index, now + pause);
    }

    pub(super) fn report_failure(&mut self, purpose: Purpose, reason: Reason) {
        let ue = match purpose {
            Purpose::Establish(index)
            | Purpose::Modify(index)
            | Purpose::Sleep(index)
            | Purpose::Wake(index)
            | Purpose::Change(index, _)
            | Purpose::Delete(index) => self.sessions.get(index).map(|session| session.plan.ue),
            Purpose::Setup | Purpose::Heartbeat | Purpose::Release => None,
        };
        let failure = Failure { upf: self.settings.upf, procedure: purpose.into(), ue, reason };
        self.event(Event::Failed(failure));
    }
}

fn accepted(cause: Cause) -> Result<(), Reason> {
    if cause.is_accepted() { Ok(()) } else { Err(refused(cause, None, None)) }
}

fn refused(cause: Cause, offending_ie: Option<u16>, failed_rule: Option<pfcp::FailedRuleId>) -> Reason {
    Reason::Refused { cause, offending_ie, failed_rule }
}

/// A session that was not there is gone as well.
fn deleted(answer: &SessionDeletionResponse) -> Result<(), Reason> {
    match answer.cause {
        Cause::SessionContextNotFound => Ok(()),
        cause if cause.is_accepted() => Ok(()),
        cause => Err(refused(cause, answer.offending_ie, None)),
    }
}
