//! The SMF's side of N4 (TS 29.244): one association, and a session for each UE.
//!
//! [`Smf`] is sans-IO: inputs and the time go in, datagrams and events come out. What it asks for is asked T1 apart
//! and N1 times (TS 29.244 6.4); what it is asked it answers, the same request with the same answer.

mod answer;
mod association;
mod dialect;
mod event;
mod failure;
mod messages;
mod response;
mod session;
mod usage;

pub use dialect::{Branch, Change, Dialect, Endpoint, Flow};
pub use event::{Event, Input, Output, PduSession, Settings};
pub use failure::{Failure, Procedure, Reason};
pub use usage::Usage;

use crate::tunnel::Tunnel;
use association::Phase;
use machine::{AnswerCache, AnswerLimits, Overdue, Requests, Time};
use pfcp::{Body, Message};
use session::{Sessions, Wish};
use std::net::SocketAddrV4;
use std::time::Duration;

/// T1: how long an answer may take.
const T1: Duration = Duration::from_secs(1);
/// N1: how often a request is sent.
const N1: u32 = 3;
/// Session requests under way at once.
const WINDOW: usize = 64;
/// Requests under way at once: those of sessions, one about the association and one heartbeat.
const UNDER_WAY: usize = WINDOW + 2;
/// Requests of the user plane that are remembered, and how long: beyond any retransmission.
const REMEMBERED: usize = 1_024;
const REMEMBER: Duration = Duration::from_secs(30);
/// Time between heartbeats; TS 29.244 6.2.2.1 leaves it to the operator.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// What failed is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

/// The machine.
#[derive(Debug)]
pub struct Smf {
    settings: Settings,
    sessions: Sessions,
    phase: Phase,
    /// The user plane's recovery time stamp, once it told it.
    recovery_time_stamp: Option<u32>,
    /// Until when the first association may take; `None` once it is there.
    deadline: Option<Time>,
    stopping: bool,
    requests: Requests<u32, Pending>,
    answers: AnswerCache<(SocketAddrV4, u32)>,
    last_sequence: u32,
    outputs: Vec<Output>,
}

/// A request under way.
#[derive(Clone, Debug)]
struct Pending {
    purpose: Purpose,
    bytes: Vec<u8>,
}

/// What a request is for; sessions by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Setup,
    Heartbeat,
    Release,
    Establish(usize),
    Modify(usize),
    Sleep(usize),
    Wake(usize),
    Change(usize, Change),
    Delete(usize),
}

impl Smf {
    /// An SMF that has yet to start, with these sessions to establish.
    pub fn new(settings: Settings, sessions: Vec<PduSession>) -> Self {
        Self {
            settings,
            sessions: Sessions::new(sessions),
            phase: Phase::Idle,
            recovery_time_stamp: None,
            deadline: None,
            stopping: false,
            requests: Requests::new(T1, N1, UNDER_WAY),
            answers: AnswerCache::new(AnswerLimits {
                lifetime: REMEMBER,
                requests: REMEMBERED,
                octets: usize::MAX,
            }),
            last_sequence: 0,
            outputs: Vec::new(),
        }
    }

    /// Something happened, or time passed.
    pub fn handle(&mut self, input: Input<'_>, now: Time) -> Vec<Output> {
        match input {
            Input::Start => self.start(now),
            Input::Datagram(from, bytes) => self.datagram(from, bytes, now),
            Input::Tick => {}
            Input::Sleep(index) => self.wish(index, Wish::Sleep, now),
            Input::Wake(index) => self.wish(index, Wish::Wake, now),
            Input::Change(index, change) => self.wish(index, Wish::Change(change), now),
            Input::Stop => self.stop(now),
        }
        for overdue in self.requests.overdue(now) {
            match overdue {
                Overdue::Resend(pending) => self.send(pending.bytes),
                Overdue::GaveUp(_, pending) => self.silence(pending.purpose, now),
            }
        }
        self.keep_association(now);
        self.pump(now);
        std::mem::take(&mut self.outputs)
    }

    /// When to come back with [`Input::Tick`] at the latest.
    pub fn next_due(&self) -> Option<Time> {
        let session = self.sessions.next_due().filter(|_| self.phase.is_up() && self.has_room());
        let patience = self.deadline.filter(|_| self.phase == Phase::Awaited);
        [self.requests.next_due(), self.phase.next_due(), patience, session].into_iter().flatten().min()
    }

    /// How many sessions have their downlink set.
    pub fn sessions_up(&self) -> usize {
        self.sessions.up()
    }

    /// What the user plane reported that a UE used.
    pub fn usage(&self, index: usize) -> Usage {
        self.sessions.get(index).map(|session| session.account.usage()).unwrap_or_default()
    }

    /// Where packets come in at the user plane, of the endpoints it chose.
    pub fn endpoint(&self, index: usize, endpoint: Endpoint) -> Option<Tunnel> {
        let pdr = self.settings.dialect.phrases().pdr_at(endpoint)?;
        self.sessions.get(index)?.chosen.get(&pdr).copied()
    }

    /// A UE's address: ours, or what the user plane chose.
    pub fn ue(&self, index: usize) -> Option<std::net::Ipv4Addr> {
        self.sessions.get(index).map(|session| session.plan.ue)
    }

    fn has_room(&self) -> bool {
        self.requests.len() < WINDOW
    }

    /// A datagram from anyone but the user plane is none of ours.
    fn datagram(&mut self, from: SocketAddrV4, bytes: &[u8], now: Time) {
        if from.ip() != self.settings.upf.ip() {
            return;
        }
        match pfcp::decode(bytes) {
            Ok(message) => self.message(from, message, now),
            Err(error) => self.unreadable(&error, now),
        }
    }

    fn message(&mut self, from: SocketAddrV4, message: Message, now: Time) {
        match &message.body {
            Body::HeartbeatRequest(_)
            | Body::AssociationSetupRequest(_)
            | Body::AssociationUpdateRequest(_)
            | Body::AssociationReleaseRequest(_)
            | Body::NodeReportRequest(_)
            | Body::SessionReportRequest(_) => self.request(from, &message, now),
            // We are no user plane.
            Body::SessionEstablishmentRequest(_)
            | Body::SessionModificationRequest(_)
            | Body::SessionDeletionRequest(_) => {}
            _ => self.response(message, now),
        }
    }

    /// An answer that cannot be read ends its request; any other such datagram only gets reported.
    fn unreadable(&mut self, error: &pfcp::DecodeError, now: Time) {
        let pending = error.header.and_then(|header| self.requests.finish(&header.sequence));
        match pending {
            Some(pending) => self.fail(pending.purpose, Reason::Unreadable(error.kind), now),
            None => self.event(Event::Malformed(error.kind)),
        }
    }

    /// Sends a request, and again until it is answered.
    fn ask(&mut self, purpose: Purpose, mut message: Message, now: Time) {
        // 24 bits (TS 29.244 7.2.2.3).
        self.last_sequence = (self.last_sequence + 1) & 0x00ff_ffff;
        message.sequence = self.last_sequence;
        let bytes = pfcp::encode(&message);
        let pending = Pending { purpose, bytes: bytes.clone() };
        // Never full: sessions keep to the window, and there is room for the two others beside it.
        if self.requests.start(message.sequence, pending, now).is_ok() {
            self.send(bytes);
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.outputs.push(Output::Send(self.settings.upf, bytes));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push(Output::Event(event));
    }
}

#[cfg(test)]
mod tests;
