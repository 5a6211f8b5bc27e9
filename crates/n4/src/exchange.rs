//! Requests and their answers, both ways.

use crate::few_lines::Often;
use crate::interface::{Level, Note, Output};
use crate::load::Pressure;
use crate::node::Node;
use crate::refusal::{self, Identity, Procedure, Refusal};
use crate::support;
use pfcp::{Body, Cause, Header, Message};
use rules::{PdrId, Seid};
use session::CpFSeid;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

/// Sequence numbers have 24 bits (TS 29.244 7.2.2.2).
pub(crate) const SEQUENCES: u32 = 1 << 24;

/// A request from a peer. Two of the same number but different octets are two: a peer that restarts counts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) from: SocketAddr,
    pub(crate) sequence: u32,
    pub(crate) digest: u64,
}

/// A request from a peer, as its answer needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) key: Key,
    pub(crate) priority: Option<u8>,
    pub(crate) procedure: Option<Procedure>,
}

/// A request of ours.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
    pub(crate) purpose: Purpose,
    /// Of the session it is about, in whose share of the table it is.
    pub(crate) owner: Option<String>,
}

impl Asking {
    /// Whether a response with this SEID may be to it. The SEID of a response is the receiver's, so ours, or 0 where the sender does not
    /// know (TS 29.244 7.2.2.4.2). Some control planes of SD-Core echo that of the request, which is their own name for the session.
    fn may_be_answered_with(&self, seid: Option<u64>) -> bool {
        let Some(session) = self.purpose.session() else { return true };
        let is_echo = |seid| pfcp::peek(&self.bytes).and_then(|header| header.seid) == Some(seid);
        seid.is_none_or(|seid| seid == 0 || seid == session.0 || is_echo(seid))
    }
}

/// What a request of ours is for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// Whether the peer of a Node ID is there.
    Heartbeat(String),
    /// To associate.
    Setup,
    /// To be released by the peer of a Node ID.
    Leave(String),
    /// To tell the peer of a Node ID what we can do now.
    Capabilities(String),
    /// To tell the peer of a Node ID of a path.
    NodeReport(String),
    /// To report about a session, once.
    Report(Seid),
    /// To tell the owner of one that is gone what was yet to be told.
    After(Seid, Former),
    /// To report what it used.
    Usage(Seid),
    /// To report that its user is silent, so many times.
    Silence(Seid, u8),
    /// To report packets kept by these rules of it.
    Paging(Seid, Vec<PdrId>),
}

/// A session that is gone.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    pub(crate) owner: String,
    /// What it was called there.
    pub(crate) name: CpFSeid,
}

/// What a request must not outlive: a session that is there, or that the name of one that is gone is nobody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Session(Seid),
    Former(CpFSeid),
}

impl Purpose {
    /// The message type of its response.
    const fn response_type(&self) -> u8 {
        match self {
            Self::Heartbeat(_) => 2,
            Self::Setup => 6,
            Self::Leave(_) | Self::Capabilities(_) => 8,
            Self::NodeReport(_) => 13,
            Self::Report(_) | Self::After(..) | Self::Usage(_) | Self::Silence(..) | Self::Paging(..) => 57,
        }
    }

    /// The Node ID of the peer it is for, where it is about no session.
    pub(crate) fn peer(&self) -> Option<&str> {
        match self {
            Self::Heartbeat(node_id)
            | Self::Leave(node_id)
            | Self::Capabilities(node_id)
            | Self::NodeReport(node_id) => Some(node_id),
            Self::Setup
            | Self::Report(_)
            | Self::After(..)
            | Self::Usage(_)
            | Self::Silence(..)
            | Self::Paging(..) => None,
        }
    }

    pub(crate) const fn subject(&self) -> Option<Subject> {
        match (self, self.session()) {
            (Self::After(_, former), _) => Some(Subject::Former(former.name)),
            (_, Some(seid)) => Some(Subject::Session(seid)),
            _ => None,
        }
    }

    /// The session it is about.
    pub(crate) const fn session(&self) -> Option<Seid> {
        match self {
            Self::Report(seid)
            | Self::After(seid, _)
            | Self::Usage(seid)
            | Self::Silence(seid, _)
            | Self::Paging(seid, _) => Some(*seid),
            Self::Heartbeat(_)
            | Self::Setup
            | Self::Leave(_)
            | Self::Capabilities(_)
            | Self::NodeReport(_) => None,
        }
    }
}

/// A Version Not Supported Response answers any request.
pub(crate) const VERSION_NOT_SUPPORTED: u8 = 11;

impl Node {
    pub(crate) fn response(&mut self, from: SocketAddr, (sequence, seid): (u32, Option<u64>), body: &Body) {
        let Some(asking) = self.answered(from, (sequence, seid), body.message_type()) else {
            self.counters.unexpected += 1;
            return;
        };
        match (&asking.purpose, body) {
            (Purpose::Heartbeat(node_id), Body::HeartbeatResponse(response)) => {
                self.answered_heartbeat(node_id, asking.to, response);
            }
            (Purpose::Setup, Body::AssociationSetupResponse(response)) => {
                self.answered_setup(&asking, response.clone());
            }
            (Purpose::Leave(node_id), Body::AssociationUpdateResponse(response)) => {
                self.answered_leave(node_id, response.cause);
            }
            (Purpose::Capabilities(node_id), Body::AssociationUpdateResponse(response)) => {
                self.capabilities_told(node_id, Some(response.cause));
            }
            // A version it does not know: it will not know it the next time either.
            (Purpose::Capabilities(node_id), _) => self.capabilities_told(node_id, None),
            // Whatever it says: it was heard.
            (Purpose::NodeReport(node_id), _) => self.news_told(node_id, sequence),
            (
                Purpose::Report(seid)
                | Purpose::After(seid, _)
                | Purpose::Usage(seid)
                | Purpose::Silence(seid, _)
                | Purpose::Paging(seid, _),
                Body::SessionReportResponse(response),
            ) => self.answered_report(*seid, (sequence, &asking), response),
            _ => self.unanswered(sequence, &asking),
        }
    }

    /// The request a response is to, which is then over.
    fn answered(
        &mut self,
        from: SocketAddr,
        (sequence, seid): (u32, Option<u64>),
        message_type: u8,
    ) -> Option<Asking> {
        let is_it = |asking: &&Asking| asking.to.ip() == from.ip() && asking.may_be_answered_with(seid);
        let asking = self.requests.get(sequence).filter(is_it)?;
        let types = [asking.purpose.response_type(), VERSION_NOT_SUPPORTED];
        if types.contains(&message_type) { self.requests.finish(sequence) } else { None }
    }

    /// A response that cannot be read ends its request all the same (TS 29.244 7.6.1).
    pub(crate) fn bad_response(&mut self, from: SocketAddr, header: &Header) {
        match self.answered(from, (header.sequence, header.seid), header.message_type) {
            Some(Asking { purpose: Purpose::NodeReport(node_id), .. }) => {
                self.news_told(&node_id, header.sequence);
            }
            Some(Asking { purpose: Purpose::Capabilities(node_id), .. }) => {
                self.capabilities_told(&node_id, None);
            }
            Some(asking) => self.unanswered(header.sequence, &asking),
            None => self.counters.unexpected += 1,
        }
    }

    /// Nobody answered, or not in a way that can be used.
    pub(crate) fn unanswered(&mut self, sequence: u32, asking: &Asking) {
        self.counters.unanswered += 1;
        match &asking.purpose {
            Purpose::Heartbeat(node_id) => {
                self.heartbeat_is_over(node_id, false);
                self.suspect_is_silent(node_id);
            }
            Purpose::Setup => self.setup_is_over(asking.to),
            Purpose::NodeReport(node_id) => self.news_unheard(node_id, sequence),
            Purpose::Capabilities(node_id) => self.capabilities_unheard(node_id),
            Purpose::Leave(node_id) => {
                self.note(Level::Warning, format!("{node_id} does not take what it was told"));
            }
            Purpose::Usage(seid) => self.usage_unconfirmed(*seid),
            Purpose::Silence(seid, attempt) => self.silence_unheard(*seid, *attempt),
            Purpose::Paging(seid, pdrs) => self.page_unheard((*seid, asking.to), pdrs),
            Purpose::Report(seid) | Purpose::After(seid, _) => {
                self.note(Level::Warning, format!("{} takes no report about session {seid}", asking.to));
            }
        }
    }

    /// Sends a request of ours, until it is answered or was sent often enough; whether there was room for it, and it may go there.
    pub(crate) fn ask(
        &mut self,
        to: SocketAddr,
        purpose: Purpose,
        with: impl FnOnce(u32) -> Message,
    ) -> bool {
        if !self.config.allows(to.ip()) {
            return false;
        }
        let sequence = self.new_sequence();
        let bytes = pfcp::encode(&with(sequence));
        let of_session = || Some(self.sessions.get(purpose.session()?)?.record.owner.clone());
        let owner = match &purpose {
            Purpose::After(_, former) => Some(former.owner.clone()),
            _ => of_session(),
        };
        let asking = Asking { to, bytes: bytes.clone(), purpose, owner };
        let reporting = usage_of(&asking.purpose);
        let is_room = self.requests.start(sequence, asking, self.now);
        if is_room {
            let session = reporting.and_then(|seid| self.sessions.get_mut(seid));
            session.into_iter().for_each(|session| session.reporting = Some(sequence));
            self.send_bytes(to, bytes);
        }
        is_room
    }

    pub(crate) fn accept(&mut self, asked: &Asked, cp_seid: Option<u64>, body: impl Into<Body>) {
        self.counters.accepted += 1;
        self.answer(asked, cp_seid, body.into());
    }

    pub(crate) fn refuse(&mut self, asked: &Asked, cp_seid: Option<u64>, refusal: Refusal) {
        let Some(procedure) = asked.procedure else { return };
        let from = asked.key.from;
        let text = format!("{from} is refused {procedure:?}: {refusal}");
        match (procedure, refusal.cause) {
            (Procedure::Setup, Cause::NoResourcesAvailable) => self.note_few(Often::NoPlace, text),
            _ => self.note_refusal((from.ip(), procedure), refusal, text),
        }
        self.refuse_silently(asked, cp_seid, refusal);
    }

    /// Refuses what is told of otherwise.
    pub(crate) fn refuse_silently(&mut self, asked: &Asked, cp_seid: Option<u64>, refusal: Refusal) {
        let Some(procedure) = asked.procedure else { return };
        self.counters.refused += 1;
        let us = Identity {
            node_id: self.config.node_id.clone(),
            recovery_time_stamp: self.recovery_time_stamp,
            features: support::features(&self.config),
            pressure: match procedure.is_of_a_session() {
                true => self.pressure(asked.key.from.ip()),
                false => Pressure::default(),
            },
        };
        // A response about a session has a SEID, if only 0 (TS 29.244 7.2.2.4.2).
        let seid = procedure.is_of_a_session().then(|| cp_seid.unwrap_or(0));
        self.answer(asked, seid, refusal::response(procedure, refusal, us));
    }

    fn answer(&mut self, asked: &Asked, seid: Option<u64>, body: Body) {
        self.answer_bytes(asked, answer_to(asked, seid, body));
    }

    pub(crate) fn answer_bytes(&mut self, asked: &Asked, bytes: Vec<u8>) {
        self.answers.answer(&asked.key, bytes.clone());
        self.send_bytes(asked.key.from, bytes);
    }

    pub(crate) fn send(&mut self, to: SocketAddr, message: &Message) {
        self.send_bytes(to, pfcp::encode(message));
    }

    pub(crate) fn send_bytes(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        self.counters.sent += 1;
        self.out.push(Output::Send { to, bytes });
    }

    pub(crate) fn note(&mut self, level: Level, text: String) {
        self.out.push(Output::Note(Note { level, text }));
    }
}

/// The session whose usage is told, once.
const fn usage_of(purpose: &Purpose) -> Option<Seid> {
    match purpose {
        Purpose::Usage(seid) => Some(*seid),
        _ => None,
    }
}

/// The octets of an answer.
pub(crate) fn answer_to(asked: &Asked, seid: Option<u64>, body: impl Into<Body>) -> Vec<u8> {
    let Key { sequence, .. } = asked.key;
    pfcp::encode(&Message { seid, sequence, priority: asked.priority, body: body.into() })
}

/// Tells datagrams apart, the same way in every run.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
