//! A user plane that says what a test tells it to, and a clock that stands still unless moved.

use crate::config::FTeidMode;
use crate::smf::{Dialect, Event, Input, Output, PduSession, Settings, Smf};
use crate::tunnel::Tunnel;
use machine::Time;
use pfcp::{
    AssociationReleaseResponse, AssociationSetupResponse, Body, Cause, CreatedPdr, FSeid, FTeid,
    HeartbeatResponse, Message, NodeId, SessionDeletionResponse, SessionEstablishmentResponse,
    SessionModificationResponse,
};
use rules::{Qfi, Teid};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

pub(super) const UPF: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 40, 0, 2), 8805);
pub(super) const SMF: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 1);
pub(super) const N3: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);
pub(super) const GNB: Tunnel = Tunnel { teid: Teid(7), address: Ipv4Addr::new(10, 30, 0, 1) };
pub(super) const BORN: u32 = 3_900_000_000;

/// The machine and the script's view of it.
pub(super) struct Scene {
    pub(super) smf: Smf,
    pub(super) now: Time,
    pub(super) sent: Vec<Message>,
    pub(super) events: Vec<Event>,
    pub(super) recovery_time_stamp: u32,
    sessions_made: u64,
}

pub(super) fn settings(f_teid: FTeidMode) -> Settings {
    Settings {
        node_id: NodeId::Ipv4(SMF),
        address: SMF,
        upf: UPF,
        f_teid,
        n9: None,
        dialect: Dialect::Plain,
        awaits_setup: false,
        recovery_time_stamp: BORN,
        wait: Duration::from_secs(30),
    }
}

impl Scene {
    /// Started, its first setup request sent.
    pub(super) fn of(sessions: u8, f_teid: FTeidMode) -> Self {
        Self::with((0..sessions).map(Self::plan).collect(), f_teid)
    }

    pub(super) fn plan(n: u8) -> PduSession {
        PduSession {
            ue: Ipv4Addr::new(10, 60, 0, n + 1),
            asks_for_address: false,
            ue6: None,
            qfi: Qfi::new(9).unwrap(),
            downlink: GNB,
            beyond: None,
            portal: None,
            mbr: None,
            report_after_bytes: None,
            ethernet: false,
            predefined_rules: vec![],
        }
    }

    /// Started with these sessions to establish.
    pub(super) fn with(plans: Vec<PduSession>, f_teid: FTeidMode) -> Self {
        let mut scene = Self {
            smf: Smf::new(settings(f_teid), plans),
            now: Time::ZERO,
            sent: vec![],
            events: vec![],
            recovery_time_stamp: BORN + 1,
            sessions_made: 0,
        };
        scene.feed(Input::Start);
        scene
    }

    /// Associated, with one session under way: its establishment request.
    pub(super) fn establishing(f_teid: FTeidMode) -> (Self, Message) {
        let mut scene = Self::of(1, f_teid);
        let setup = scene.one();
        let answer = scene.accept(&setup);
        scene.say(&answer);
        let request = scene.one();
        (scene, request)
    }

    /// Everything is accepted until nothing is asked any more.
    pub(super) fn ready(sessions: u8) -> Self {
        let mut scene = Self::of(sessions, FTeidMode::Choose);
        scene.accept_all();
        assert_eq!(scene.events.pop(), Some(Event::Ready));
        scene.events.clear();
        scene
    }

    pub(super) fn feed(&mut self, input: Input<'_>) {
        for output in self.smf.handle(input, self.now) {
            match output {
                Output::Send(to, bytes) => {
                    assert_eq!(to, UPF);
                    self.sent.push(pfcp::decode(&bytes).unwrap());
                }
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    pub(super) fn say(&mut self, message: &Message) {
        self.feed(Input::Datagram(UPF, &pfcp::encode(message)));
    }

    /// The one message sent since last asked.
    pub(super) fn one(&mut self) -> Message {
        let message = self.sent.pop().expect("nothing was sent");
        assert_eq!(self.sent, [], "more than one message was sent");
        message
    }

    pub(super) fn accept_all(&mut self) {
        while !self.sent.is_empty() {
            let request = self.sent.remove(0);
            let answer = self.accept(&request);
            self.say(&answer);
        }
    }

    /// As [`Scene::accept_all`], where answers of ours are among what was sent.
    pub(super) fn accept_all_but_answers(&mut self) {
        self.sent.retain(|message| message.body.message_type() != 2);
        self.accept_all();
    }

    /// Time passes as a runtime lets it: tick by tick.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.smf.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.feed(Input::Tick);
        }
        self.now = end;
    }

    /// What a willing user plane answers.
    pub(super) fn accept(&mut self, request: &Message) -> Message {
        let cause = Cause::RequestAccepted;
        let (node_id, recovery_time_stamp) = (NodeId::Ipv4(*UPF.ip()), self.recovery_time_stamp);
        let (seid, body): (_, Body) = match &request.body {
            Body::HeartbeatRequest(_) => (None, HeartbeatResponse::new(recovery_time_stamp).into()),
            Body::AssociationSetupRequest(_) => (None, setup_response(cause, recovery_time_stamp).into()),
            Body::AssociationReleaseRequest(_) => {
                (None, AssociationReleaseResponse::new(node_id, cause).into())
            }
            Body::SessionEstablishmentRequest(establishment) => {
                self.sessions_made += 1;
                let made = u8::try_from(self.sessions_made).unwrap();
                (Some(establishment.cp_f_seid.seid), establishment_response(Some(made)).into())
            }
            Body::SessionModificationRequest(_) => {
                (self.cp_seid(request), modification_response(cause).into())
            }
            Body::SessionDeletionRequest(_) => {
                (self.cp_seid(request), SessionDeletionResponse::new(cause).into())
            }
            other => panic!("not a request of an SMF: {other:?}"),
        };
        Message { seid, sequence: request.sequence, priority: None, body }
    }

    /// Our SEID of the session that a request names by the user plane's.
    fn cp_seid(&self, request: &Message) -> Option<u64> {
        let remote = request.seid;
        let of = |index| self.smf.sessions.get(index);
        (0..).map_while(of).find(|s| s.remote.map(|r| r.seid) == remote).map(|session| session.seid)
    }
}

pub(super) fn setup_response(cause: Cause, recovery_time_stamp: u32) -> AssociationSetupResponse {
    AssociationSetupResponse::new(NodeId::Ipv4(*UPF.ip()), cause, recovery_time_stamp)
}

/// With a Created PDR for the uplink, TEID 0x100 and up, where `made` numbers it.
pub(super) fn establishment_response(made: Option<u8>) -> SessionEstablishmentResponse {
    let created = |n: u8| CreatedPdr {
        local_f_teid: Some(FTeid::ipv4(0x100 + u32::from(n), N3)),
        ..CreatedPdr::new(1)
    };
    SessionEstablishmentResponse {
        up_f_seid: Some(FSeid::new(0x5000 + u64::from(made.unwrap_or(0)), (*UPF.ip()).into())),
        created_pdrs: made.map(created).into_iter().collect(),
        ..SessionEstablishmentResponse::new(NodeId::Ipv4(*UPF.ip()), Cause::RequestAccepted)
    }
}

pub(super) fn modification_response(cause: Cause) -> SessionModificationResponse {
    SessionModificationResponse::new(cause)
}
