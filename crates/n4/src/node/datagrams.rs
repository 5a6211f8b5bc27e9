//! What comes over N4: to which procedure it goes, and what is answered without one. Repeated requests get the answer they had
//! (TS 29.244 6.4), one session's wait for each other.

use super::Node;
use crate::exchange::{Asked, Key, VERSION_NOT_SUPPORTED, digest};
use crate::refusal::{self, Procedure, Refusal};
use machine::Seen;
use pfcp::{Body, Cause, DecodeError, ErrorKind, Header, Message, VersionNotSupportedResponse};
use rules::Seid;
use std::net::SocketAddr;

impl Node {
    pub(super) fn datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.counters.received += 1;
        if !self.config.allows(from.ip()) {
            self.counters.not_allowed += 1;
            return self.note_not_allowed(from);
        }
        let digest = digest(bytes);
        match pfcp::decode(bytes) {
            Ok(message) => {
                let procedure = Procedure::of(message.body.message_type());
                let key = Key { from, sequence: message.sequence, digest };
                self.message(&Asked { key, priority: message.priority, procedure }, message);
            }
            Err(error) => self.undecodable(from, &error),
        }
    }

    fn message(&mut self, asked: &Asked, message: Message) {
        self.hear(asked.key.from);
        match &message.body {
            Body::HeartbeatRequest(request) => self.heartbeat(asked, request),
            body if asked.procedure.is_none() => {
                self.response(asked.key.from, (message.sequence, message.seid), body)
            }
            _ => self.request(asked, message.seid.unwrap_or(0), &message.body),
        }
    }

    /// What a stranger asks is refused the same again: nobody's answer gives way to that.
    fn request(&mut self, asked: &Asked, seid: u64, body: &Body) {
        let from = asked.key.from;
        let is_known = self.peers.speaking_from(from.ip()).next().is_some()
            || self.owned(from, Seid(seid)).is_ok()
            || match body {
                Body::AssociationSetupRequest(_) => true,
                Body::SessionEstablishmentRequest(request) => self.is_named_there(from.ip(), request),
                _ => false,
            };
        if let Body::AssociationSetupRequest(request) = body {
            self.forget_void(asked, request);
        }
        let seen = match is_known {
            true => self.answers.begin(asked.key, self.now),
            false => self.answers.seen(&asked.key),
        };
        match seen {
            Seen::New => self.new_request(asked, seid, body),
            Seen::InProgress => self.counters.repeated += 1,
            Seen::Answered(bytes) => {
                let bytes = bytes.to_vec();
                self.counters.repeated += 1;
                self.send_bytes(asked.key.from, bytes);
            }
        }
    }

    fn new_request(&mut self, asked: &Asked, seid: u64, body: &Body) {
        let (done, cp_seid) = match body {
            body if self.cannot_keep && !is_an_end(body) => return self.refuse_unkept(asked, seid, body),
            Body::AssociationSetupRequest(request) => (self.set_up(asked, request), None),
            Body::AssociationUpdateRequest(request) => (self.update(asked, request), None),
            Body::AssociationReleaseRequest(request) => (self.release(asked, request), None),
            Body::PfdManagementRequest(request) => (self.manage_pfds(asked, request), None),
            Body::SessionSetDeletionRequest(request) => (self.delete_set(asked, request), None),
            Body::SessionSetModificationRequest(request) => (self.modify_set(asked, request), None),
            Body::SessionEstablishmentRequest(request) => {
                (self.establish(asked, request), Some(request.cp_f_seid.seid))
            }
            _ => (self.queue(asked, Seid(seid), body), None),
        };
        if let Err(refusal) = done {
            self.refuse(asked, cp_seid, refusal);
        }
    }

    /// A request about a session waits for the one before it.
    fn queue(&mut self, asked: &Asked, seid: Seid, body: &Body) -> Result<(), Refusal> {
        self.owned(asked.key.from, seid)?;
        self.spoken_of(seid);
        let waiting = self.config.limits.waiting;
        let session = self.sessions.get_mut(seid).ok_or(Refusal::of(Cause::SessionContextNotFound))?;
        if session.pending.is_none() {
            self.session_request(asked, seid, body);
        } else if session.waiting.len() < waiting {
            session.waiting.push(*asked, body.clone());
        } else {
            let cp_seid = session.record.cp_f_seid.seid;
            self.refuse(asked, Some(cp_seid), Refusal::of(Cause::PfcpEntityInCongestion));
        }
        Ok(())
    }

    /// A session is its owner's: to anyone else it is not there.
    pub(crate) fn owned(&self, from: SocketAddr, seid: Seid) -> Result<u64, Refusal> {
        let session = self.sessions.get(seid).filter(|session| self.may_speak(from.ip(), session));
        let is_known = self.peers.speaking_from(from.ip()).next().is_some();
        session.map(|session| session.record.cp_f_seid.seid).ok_or(Refusal::of(match is_known {
            true => Cause::SessionContextNotFound,
            false => Cause::NoEstablishedPfcpAssociation,
        }))
    }

    pub(crate) fn session_request(&mut self, asked: &Asked, seid: Seid, body: &Body) {
        let cp_seid = self.sessions.get(seid).map(|session| session.record.cp_f_seid.seid);
        let done = match body {
            Body::SessionModificationRequest(request) => self.modify(asked, seid, request),
            _ => {
                self.delete(asked, seid);
                Ok(())
            }
        };
        if let Err(refusal) = done {
            self.refuse(asked, cp_seid, refusal);
        }
    }

    /// What cannot be read is answered where an answer is due, and needs no memory: it comes out the same again.
    fn undecodable(&mut self, from: SocketAddr, error: &DecodeError) {
        let Some(header) = error.header else {
            self.counters.garbage += 1;
            return;
        };
        let procedure = Procedure::of(header.message_type);
        let key = Key { from, sequence: header.sequence, digest: 0 };
        let asked = Asked { key, priority: header.priority, procedure };
        match (error.kind, refusal::of_decoding(error.kind)) {
            (ErrorKind::UnsupportedVersion(_), _) if header.message_type != VERSION_NOT_SUPPORTED => {
                self.send(from, &Message::node(header.sequence, VersionNotSupportedResponse::default()));
            }
            (_, Some(refusal)) if procedure.is_some() => {
                self.refuse(&asked, self.cp_seid(from, &header, error), refusal);
            }
            (_, Some(_)) => self.bad_response(from, &header),
            (_, None) => self.counters.garbage += 1,
        }
    }

    /// The sender's name for the session an unreadable request is about.
    fn cp_seid(&self, from: SocketAddr, header: &Header, error: &DecodeError) -> Option<u64> {
        let told = error.cp_f_seid.map(|f_seid| f_seid.seid);
        told.or_else(|| self.owned(from, Seid(header.seid?)).ok())
    }
}

/// Nobody asks for it again.
const fn is_an_end(body: &Body) -> bool {
    use Body::{AssociationReleaseRequest, SessionDeletionRequest, SessionSetDeletionRequest};
    matches!(body, SessionDeletionRequest(_) | SessionSetDeletionRequest(_) | AssociationReleaseRequest(_))
}
