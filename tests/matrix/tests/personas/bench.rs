//! A control plane, a user plane, a radio and a data network.

use crate::persona::Persona;
use crate::record;
use dataplane::{Echo, Route};
use matrix::{
    Datagram, N3, N6, N9_ADDRESS, US, UserPlane, node_config, plane_config, plane_config3, plane_config6,
};
use n4::{GtpuAddress, InterfaceTypes, UePool};
use pfcp::{
    Body, Cause, Gate, GateStatus, Message, Rates, SessionModificationRequest, UpFunctionFeatures, UpdateQer,
};
use ran::Tunnel;
use ran::smf::{Change, Endpoint, Event, Input, Output, PduSession, Settings, Smf};
use rules::{Interface, Qfi, Rules, Teid};
use std::collections::{BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

/// The control plane, on a network of its own.
pub(crate) const CP: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 9);
const CP_AT: SocketAddrV4 = SocketAddrV4::new(CP, pfcp::PORT);
const US_AT: SocketAddrV4 = SocketAddrV4::new(US, pfcp::PORT);
pub(crate) const RADIO: Tunnel = Tunnel { teid: Teid(7), address: Ipv4Addr::new(10, 30, 0, 1) };
pub(crate) const OTHER_RADIO: Tunnel = Tunnel { teid: Teid(0x77), address: Ipv4Addr::new(10, 30, 0, 3) };
/// The gateway beyond an SGW.
pub(crate) const PGW: Tunnel = Tunnel { teid: Teid(0x51), address: Ipv4Addr::new(10, 50, 0, 9) };
pub(crate) const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
/// Where users' addresses are chosen, where they are.
const POOL: &str = "10.61.0.0/24";
/// The number of requests that the emulator does not make.
const RAW: u32 = 0x00f0_0000;
pub(crate) const SERVER_PORT: u16 = 53;

/// What becomes of datagrams between control plane and user plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole,
    /// Requests of the control plane arrive twice.
    Twice,
    /// Of what is answered to each of its requests, only the second copy arrives.
    Lossy,
    /// Nothing arrives.
    Cut,
}

pub(crate) struct Bench<'a> {
    pub(crate) persona: &'a Persona,
    pub(crate) plane: UserPlane,
    pub(crate) smf: Smf,
    settings: Settings,
    pub(super) session: PduSession,
    /// The ports towards radios, and towards the network or the next gateway.
    pub(crate) near: usize,
    pub(crate) far: usize,
    pub(crate) line: Line,
    /// Between radios and us: what they know our address as, and our own.
    pub(crate) translation: Option<(Ipv4Addr, Ipv4Addr)>,
    /// Numbers of requests whose first answer was lost.
    lost: BTreeSet<u32>,
    pub(crate) events: Vec<Event>,
    /// Session modifications wait here while the control plane takes its time.
    held: Option<VecDeque<Vec<u8>>>,
    /// Bytes of users' packets that passed by rules that are measured: up, down.
    pub(crate) passed: (u64, u64),
    /// Of the last packet, which is what it is filled with.
    pub(super) number: u8,
    raw: u32,
    /// Of what was sent last to the next gateway: from where, to where, into which tunnel.
    pub(super) ways: Vec<(Ipv4Addr, Ipv4Addr, u32)>,
    /// What the user plane said it can do.
    pub(crate) features: Option<UpFunctionFeatures>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(persona: &'a Persona, quota: Option<u64>) -> Self {
        Self::over(persona, plane(persona, Echo::OFF), |session| session.report_after_bytes = quota)
    }

    /// With a user plane and a session of another kind.
    pub(crate) fn over(persona: &'a Persona, plane: UserPlane, change: impl FnOnce(&mut PduSession)) -> Self {
        let settings = Settings {
            node_id: pfcp::NodeId::Ipv4(CP),
            address: CP,
            upf: US_AT,
            f_teid: persona.f_teid,
            n9: Some(matrix::N6_ADDRESS),
            dialect: persona.dialect,
            awaits_setup: false,
            recovery_time_stamp: 3_900_000_000,
            wait: Duration::from_secs(30),
        };
        let mut session = PduSession {
            ue: UE,
            asks_for_address: persona.has_pool,
            ue6: Some("2001:db8:60::1".parse().unwrap()),
            qfi: Qfi::new(persona.qfi.unwrap_or(9)).unwrap(),
            downlink: RADIO,
            beyond: Some(PGW),
            portal: None,
            mbr: None,
            report_after_bytes: None,
            ethernet: false,
            predefined_rules: vec![],
        };
        change(&mut session);
        Self {
            persona,
            plane,
            smf: Smf::new(settings.clone(), vec![session.clone()]),
            settings,
            session,
            near: N3,
            far: N6,
            line: Line::Whole,
            translation: None,
            lost: BTreeSet::new(),
            events: vec![],
            held: None,
            passed: (0, 0),
            number: 0,
            raw: RAW,
            ways: vec![],
            features: None,
        }
    }

    /// With the session up.
    pub(crate) fn up(persona: &'a Persona, quota: Option<u64>) -> Self {
        Self::new(persona, quota).started()
    }

    /// With the session up.
    pub(crate) fn started(mut self) -> Self {
        let bench = &mut self;
        bench.feed(Input::Start);
        assert!(bench.events.contains(&Event::Ready), "{:?} {:?}", bench.events, bench.plane.notes);
        bench.events.clear();
        self
    }

    /// The control plane hears something; both sides talk until neither has anything to say.
    pub(crate) fn feed(&mut self, input: Input<'_>) {
        let mut outputs = VecDeque::from(self.smf.handle(input, self.plane.now));
        loop {
            while let Some(output) = outputs.pop_front() {
                match output {
                    Output::Event(event) => self.note(event),
                    Output::Send(_, bytes) => self.send(bytes),
                }
            }
            let mut told = self.plane.told();
            if self.line == Line::Cut {
                told.clear();
            }
            if told.is_empty() {
                return;
            }
            for (_, bytes) in told {
                said((US_AT, CP_AT), &bytes);
                if let Body::AssociationSetupResponse(response) = pfcp::decode(&bytes).unwrap().body {
                    self.features = response.up_function_features;
                }
                outputs.extend(self.smf.handle(Input::Datagram(US_AT, &bytes), self.plane.now));
            }
        }
    }

    fn note(&mut self, event: Event) {
        assert!(!matches!(event, Event::Failed(_) | Event::Malformed(_)), "{event:?} {:?}", self.plane.notes);
        self.events.push(event);
    }

    fn send(&mut self, bytes: Vec<u8>) {
        let is_change = |message: &Message| matches!(message.body, Body::SessionModificationRequest(_));
        match &mut self.held {
            Some(held) if is_change(&pfcp::decode(&bytes).unwrap()) => held.push_back(bytes),
            _ => self.arrive(&bytes),
        }
    }

    /// Answers are left with what the user plane has to tell.
    fn arrive(&mut self, bytes: &[u8]) {
        if self.line == Line::Cut {
            return;
        }
        said((CP_AT, US_AT), bytes);
        let mut told = self.plane.datagram(SocketAddr::V4(CP_AT), bytes);
        if self.line == Line::Twice {
            self.arrive_again(bytes, &told);
            told.extend(self.plane.told());
        }
        let number = pfcp::decode(bytes).unwrap().sequence;
        if self.line == Line::Lossy && self.lost.insert(number) {
            told.retain(|(_, answer)| pfcp::decode(answer).unwrap().sequence != number);
        }
        self.plane.tell_later(told);
    }

    /// The same request once more: the same answer, octet by octet, and nothing besides.
    fn arrive_again(&mut self, bytes: &[u8], told: &[Datagram]) {
        let sequence = |bytes: &[u8]| pfcp::decode(bytes).unwrap().sequence;
        let answers = |told: &[Datagram]| -> Vec<Datagram> {
            told.iter().filter(|(_, answer)| sequence(answer) == sequence(bytes)).cloned().collect()
        };
        let again = self.plane.datagram(SocketAddr::V4(CP_AT), bytes);
        assert_eq!(again, answers(told), "{:?}", pfcp::decode(bytes).unwrap());
    }

    /// The control plane is set up otherwise.
    pub(crate) fn set(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
        self.smf = Smf::new(self.settings.clone(), vec![self.session.clone()]);
    }

    /// The control plane's process ends and another begins, which knows nothing, with its user or without.
    pub(crate) fn restart_control_plane(&mut self, has_user: bool) {
        self.settings.recovery_time_stamp += 60;
        let session = Some(self.session.clone()).filter(|_| has_user);
        self.smf = Smf::new(self.settings.clone(), session.into_iter().collect());
        self.events.clear();
        self.feed(Input::Start);
    }

    /// The session's rules, as the database has them.
    pub(crate) fn rules(&self) -> Rules {
        let [session] = &self.plane.node.all()[..] else { panic!("one session") };
        self.plane.saved.sessions[session].record().unwrap().rules.as_ref().clone()
    }

    /// Opens or closes a QER, both ways.
    pub(crate) fn gate(&mut self, qer_id: u32, gate: Gate) {
        let gate_status = Some(GateStatus { uplink: gate, downlink: gate });
        self.update_qer(UpdateQer { qer_id, gate_status, ..UpdateQer::default() });
    }

    /// Gives a QER a rate, the same both ways.
    pub(crate) fn rate(&mut self, qer_id: u32, kbps: u64) {
        let mbr = Some(Rates { uplink_kbps: kbps, downlink_kbps: kbps });
        self.update_qer(UpdateQer { qer_id, mbr, ..UpdateQer::default() });
    }

    fn update_qer(&mut self, update: UpdateQer) {
        let update_qers = vec![update];
        let answer = self.ask(SessionModificationRequest { update_qers, ..Default::default() });
        let Body::SessionModificationResponse(answer) = answer else { panic!("{answer:?}") };
        assert_eq!(answer.cause, Cause::RequestAccepted);
    }

    /// What the user plane answers to a request about the session that the emulator does not make.
    pub(crate) fn ask(&mut self, body: impl Into<Body>) -> Body {
        let [session] = self.plane.node.all()[..] else { panic!("one session") };
        self.raw += 1;
        let request = pfcp::encode(&Message::session(session.0, self.raw, body));
        let told = self.plane.datagram(SocketAddr::V4(CP_AT), &request);
        let [(_, answer)] = &told[..] else { panic!("one answer: {told:?}") };
        pfcp::decode(answer).unwrap().body
    }

    /// From now on session modifications are held back.
    pub(crate) fn hold(&mut self) {
        self.held = Some(VecDeque::new());
    }

    /// They go, in order; the number of them.
    pub(crate) fn release(&mut self) -> usize {
        let held = self.held.take().unwrap_or_default();
        held.iter().for_each(|bytes| self.arrive(bytes));
        self.feed(Input::Tick);
        held.len()
    }

    /// Time passes, for both.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.plane.now + time;
        while self.plane.now < end {
            self.plane.pass(Duration::from_millis(250).min(end - self.plane.now));
            self.feed(Input::Tick);
        }
    }

    /// Whether the control plane has such a procedure; it must succeed then.
    pub(crate) fn change(&mut self, change: Change) -> bool {
        self.feed(Input::Change(0, change));
        let done = self.events.iter().position(|event| *event == Event::Changed(0, change));
        done.map(|at| self.events.remove(at)).is_some()
    }

    pub(crate) fn saw(&mut self, event: &Event) -> bool {
        let at = self.events.iter().position(|other| other == event);
        at.map(|at| self.events.remove(at)).is_some()
    }

    /// The user's address: ours, or one of the user plane's choice.
    pub(crate) fn ue(&self) -> Ipv4Addr {
        let ue = self.smf.ue(0).unwrap();
        assert_eq!(ue != UE, self.persona.has_pool, "{ue}");
        ue
    }

    /// Where uplink packets come in.
    pub(crate) fn uplink(&self) -> u32 {
        // A control plane that gives endpoints numbers its sessions.
        self.smf.endpoint(0, Endpoint::Uplink).map_or(1, |tunnel| tunnel.teid.0)
    }

    pub(crate) fn flow_of(&self, qfi: Option<u8>) -> Option<(u8, bool)> {
        qfi.map(|qfi| (qfi, false))
    }
}

/// The user plane of a control plane, that asks GTP-U peers so.
pub(crate) fn plane(persona: &Persona, echo: Echo) -> UserPlane {
    let mut config = dataplane::Config { echo, ..plane_config() };
    // Bursts are held to their rates, and nothing of a second before is caught up on.
    config.limits.catch_up_ns = 0;
    UserPlane::over(node_of(persona), config)
}

/// The same, told to associate with the control plane.
pub(crate) fn asking_plane(persona: &Persona) -> UserPlane {
    let node = n4::Config { associate: vec![CP_AT.into()], ..node_of(persona) };
    UserPlane::over(node, plane_config())
}

/// The same, with a way for users' IPv6 packets.
pub(crate) fn plane6(persona: &Persona) -> UserPlane {
    UserPlane::over(node_of(persona), plane_config6())
}

/// The same, with a way from N3 to where the control plane's GTP-U is.
pub(crate) fn plane_with_way(persona: &Persona) -> UserPlane {
    let mut config = plane_config();
    let via = Ipv4Addr::new(10, 30, 0, 254).into();
    config.routes.push(Route { prefix: "10.40.0.0/24".parse().unwrap(), via, instance: None });
    UserPlane::over(node_of(persona), config)
}

/// The same, with a third port: of the core side for a gateway between others, else of the access side. Who says nothing of which
/// interface a tunnel is of gets the first address of its side.
pub(crate) fn plane3(persona: &Persona) -> UserPlane {
    let side = if persona.is_between { Interface::Core } else { Interface::Access };
    let interface_types =
        InterfaceTypes::of([S5_U, INTERFACE_N3].into_iter().filter(|_| persona.names_interfaces));
    let third = GtpuAddress { interface: side, interface_types, ..GtpuAddress::access(N9_ADDRESS) };
    let mut node = node_of(persona);
    let at = if persona.names_interfaces { node.gtpu.len() } else { 0 };
    node.gtpu.insert(at, third);
    UserPlane::over(node, plane_config3(side))
}

/// The same, and what N3 is reached by is another address than its own.
pub(crate) fn plane_behind(persona: &Persona, outside: Ipv4Addr) -> UserPlane {
    let mut node = node_of(persona);
    node.gtpu[N3].advertise = Some(outside);
    UserPlane::over(node, plane_config())
}

/// 3GPP Interface Types (TS 29.244 table 8.2.118-1).
const S5_U: u8 = 1;
const INTERFACE_N3: u8 = 11;

pub(crate) fn node_of(persona: &Persona) -> n4::Config {
    let mut node = node_config();
    if persona.has_pool {
        let (name, prefix) = ("users".to_owned(), POOL.parse().unwrap());
        node.ue_pools = vec![UePool { name, prefix, network_instance: None }];
    }
    node
}

/// Kept for decoders of others.
fn said((from, to): (SocketAddrV4, SocketAddrV4), bytes: &[u8]) {
    record::sent(from.into(), to.into(), &pfcp::decode(bytes).unwrap(), bytes);
}
