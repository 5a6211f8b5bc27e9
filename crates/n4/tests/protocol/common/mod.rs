//! A node on the bench: a scripted control plane speaks bytes to it, and a pretended data plane obeys or does not.
#![allow(dead_code, missing_docs, unreachable_pub)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

pub mod billing;
mod lives;
#[path = "../../../../wire/pfcp/tests/common/pcap.rs"]
pub mod pcap;
pub mod personas;
pub mod plane;
#[path = "../../../../wire/pfcp/tests/common/record.rs"]
pub mod record;
pub mod smf;

use dplink::{Desired, Notice, RefusalCause};
use machine::Time;
use n4::{Config, Input, Node, Output, Start};
use pfcp::{Body, Message, NodeId};
use rules::Seid;
use session::{AssociationRecord, NodeRecord, PathRecord, PfdRecord, SessionRecord, ToldRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

pub const US: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 2);
pub const N3: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);
pub const SMF: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 9);
pub const OTHER: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 8);
pub const STAMP: u32 = 0xE000_0001;
/// The time of day when everything begins, in milliseconds.
pub const SINCE_1900_MS: u64 = 0xE000_0100 * 1_000;

const FIRST: NodeRecord = NodeRecord::new(STAMP);

pub fn at(address: Ipv4Addr) -> SocketAddr {
    SocketAddr::new(address.into(), pfcp::PORT)
}

pub fn config() -> Config {
    Config::new(NodeId::Ipv4(US), US, N3)
}

/// What the data plane does with what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obedience {
    Obeys,
    Refuses,
    /// Whatever is younger than this one.
    RefusesAfter(Seid),
    /// Holds still until [`Lab::obey`].
    Waits,
}

pub struct Lab {
    pub config: Config,
    pub node: Node,
    pub now: Time,
    /// When the process started: its own zero.
    started: Time,
    pub obedience: Obedience,
    /// Why the data plane refuses, where it does.
    pub refusal: RefusalCause,
    /// What the data plane holds.
    pub in_force: BTreeMap<Seid, Desired>,
    /// What it counts.
    pub plane: plane::Plane,
    /// Everything it was told to do, in order.
    pub told: Vec<Output>,
    pub orders: Vec<Output>,
    is_obeying: bool,
    /// What was sent and not yet read by the test.
    pub sent: Vec<(SocketAddr, Message)>,
    pub notes: Vec<String>,
    /// The node's own record.
    pub record: NodeRecord,
    /// What the clock was changed by since everything began.
    pub clock_ms: i64,
    pub saved: BTreeMap<Seid, SessionRecord>,
    /// Saved, too: what is left of sessions that are over.
    pub over: BTreeMap<Seid, SessionRecord>,
    pub associations: BTreeMap<String, AssociationRecord>,
    /// What was told of applications.
    pub pfds: BTreeMap<String, PfdRecord>,
    /// GTP-U peers that do not answer.
    pub paths: BTreeSet<PathRecord>,
    /// What names of predefined rules stood for when the data plane had been told.
    pub told_names: Vec<ToldRecord>,
    /// How often content rules were said to have changed.
    pub content_changes: usize,
    /// Charging data records, all there ever were, and the highest number of one.
    pub cdrs: Vec<charging::Cdr>,
    pub last_cdr: u64,
    /// All datagrams both ways: from, to, octets.
    pub trace: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// All control planes do, at once; their restarts and silence are for the tests to say.
    pub answers_heartbeats: bool,
    /// But for these.
    pub silent: Vec<Ipv4Addr>,
}

impl Lab {
    pub fn new(config: Config) -> Self {
        let start = Start::new(FIRST, SINCE_1900_MS);
        let mut lab = Self::from(config.clone(), Node::new(config, start));
        lab.connect();
        lab
    }

    fn from(config: Config, node: Node) -> Self {
        Self {
            config,
            node,
            now: Time::ZERO,
            started: Time::ZERO,
            obedience: Obedience::Obeys,
            refusal: RefusalCause::Unfit,
            in_force: BTreeMap::new(),
            plane: plane::Plane::default(),
            told: vec![],
            orders: vec![],
            is_obeying: false,
            sent: vec![],
            notes: vec![],
            record: FIRST,
            clock_ms: 0,
            saved: BTreeMap::new(),
            over: BTreeMap::new(),
            associations: BTreeMap::new(),
            pfds: BTreeMap::new(),
            paths: BTreeSet::new(),
            told_names: vec![],
            content_changes: 0,
            cdrs: vec![],
            last_cdr: 0,
            trace: vec![],
            answers_heartbeats: true,
            silent: vec![],
        }
    }

    /// With one control plane associated.
    pub fn associated() -> Self {
        Self::associated_with(config())
    }

    pub fn associated_with(config: Config) -> Self {
        let mut lab = Self::new(config);
        lab.associate(SMF, 1);
        lab
    }

    pub fn associate(&mut self, peer: Ipv4Addr, stamp: u32) {
        let answer = self.ask(peer, &Message::node(0xFFF0, smf::setup(peer, stamp)));
        assert!(matches!(answer, Body::AssociationSetupResponse(ref setup) if setup.cause.is_accepted()));
    }

    pub fn time_of_day_ms(&self) -> u64 {
        (SINCE_1900_MS + self.now.since_zero().as_millis() as u64).saturating_add_signed(self.clock_ms)
    }

    /// Somebody puts the clock forward, or back, and the node is told.
    pub fn change_clock(&mut self, by_s: i64) {
        self.clock_ms += by_s * 1_000;
        let since_1900_ms = self.time_of_day_ms();
        self.handle(Input::TimeOfDay { since_1900_ms });
    }

    pub fn handle(&mut self, input: Input<'_>) {
        if let Input::DataPath(notice) = input {
            self.plane.tells(notice);
        }
        let outputs = self.node.handle(input, self.time());
        outputs.into_iter().for_each(|output| self.carry_out(output));
        // As at work: nothing new comes before all that was said is done.
        if self.obedience != Obedience::Waits && !self.is_obeying {
            self.obey();
        }
    }

    /// Of the node's process.
    pub fn time(&self) -> Time {
        Time::from_zero(self.now - self.started)
    }

    /// What the node said without having been told something.
    pub fn carry_out_all(&mut self, outputs: Vec<Output>) {
        outputs.into_iter().for_each(|output| self.carry_out(output));
        self.obey();
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Send { to, bytes } => {
                let message = pfcp::decode(&bytes).unwrap();
                record::sent(at(US), to, &message, &bytes);
                self.sent.push((to, message));
                self.trace.push((at(US), to, bytes));
            }
            Output::Put(_) | Output::Delete(_) | Output::QueryUsage { .. } => self.order(output),
            Output::SaveSession(seid, packed) => self.save(seid, packed.record().unwrap()),
            Output::SaveCdr(cdr) => {
                assert_eq!(cdr.serial, self.last_cdr + 1);
                self.last_cdr = cdr.serial;
                self.cdrs.push(*cdr);
            }
            Output::EraseSession(seid) => {
                self.saved.remove(&seid);
                self.over.remove(&seid);
            }
            Output::SaveNode(record) => self.record = record,
            Output::SaveAssociation(record) => {
                drop(self.associations.insert(record.node_id.clone(), record));
            }
            Output::SavePfds(record) => drop(self.pfds.insert(record.application.clone(), record)),
            Output::ErasePfds(application) => drop(self.pfds.remove(&application)),
            Output::SaveTold(told) => self.told_names = told,
            Output::SavePath(path) => drop(self.paths.insert(path)),
            Output::ErasePath(path) => assert!(self.paths.remove(&path)),
            Output::ContentRules => self.content_changes += 1,
            Output::EraseAssociation(node_id) => drop(self.associations.remove(&node_id)),
            Output::Note(note) => self.notes.push(note.text),
        }
    }

    fn save(&mut self, seid: Seid, record: SessionRecord) {
        assert_eq!(record.seid, seid);
        if record.usage.is_over {
            self.saved.remove(&seid);
            self.over.insert(seid, record);
        } else {
            self.saved.insert(seid, record);
        }
    }

    fn order(&mut self, order: Output) {
        self.told.push(order.clone());
        self.orders.push(order);
    }

    /// The data plane works off what it was told; while it waits, no more than that.
    pub fn obey(&mut self) {
        self.is_obeying = true;
        loop {
            for order in std::mem::take(&mut self.orders) {
                if let Some(notice) = self.react(order) {
                    self.handle(Input::DataPath(&notice));
                }
            }
            if self.orders.is_empty() || self.obedience == Obedience::Waits {
                break;
            }
        }
        self.is_obeying = false;
    }

    fn refuses(&self, session: Seid) -> bool {
        match self.obedience {
            Obedience::Refuses => true,
            Obedience::RefusesAfter(last) => session > last,
            Obedience::Obeys | Obedience::Waits => false,
        }
    }

    fn react(&mut self, order: Output) -> Option<Notice> {
        let notice = match order {
            Output::Put(desired) if self.refuses(desired.session) => Notice::Refused {
                session: desired.session,
                revision: desired.revision,
                cause: self.refusal,
                reason: "it is told to".to_owned(),
            },
            Output::Put(desired) => {
                let (session, revision) = (desired.session, desired.revision);
                let removed = self.plane.put(&desired, self.now);
                // What is done once has been done.
                let lasting =
                    Desired { end_markers: vec![], drop_buffered: false, buffering_over: vec![], ..desired };
                self.in_force.insert(session, lasting);
                Notice::Applied { session, revision, removed }
            }
            Output::Delete(session) => {
                self.in_force.remove(&session);
                Notice::Removed { session, usage: self.plane.delete(session, self.now) }
            }
            Output::QueryUsage { session, urrs, token, is_reported } => {
                return self.plane.query(session, &urrs, (token, is_reported, self.now));
            }
            other => panic!("{other:?}"),
        };
        Some(notice)
    }

    /// A user's packet is counted by all URRs of a session; what the data plane tells of it may get lost.
    pub fn traffic(&mut self, session: Seid, (uplink, downlink): (u64, u64), is_lost: bool) {
        let notices = self.plane.count(session, (uplink, downlink), self.now);
        for notice in notices.into_iter().filter(|_| !is_lost) {
            self.handle(Input::DataPath(&notice));
        }
    }

    /// The data plane tells what a session has used so far, without being asked.
    pub fn interim(&mut self, session: Seid, is_lost: bool) {
        let notice = self.plane.interim(session, self.now);
        if !is_lost {
            self.handle(Input::DataPath(&notice));
        }
    }

    pub fn receive(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.trace.push((from, at(US), bytes.to_vec()));
        self.handle(Input::Datagram { from, bytes });
    }

    pub fn tell(&mut self, from: Ipv4Addr, message: &Message) {
        self.receive(at(from), &pfcp::encode(message));
    }

    /// Asks, and returns the one answer.
    pub fn ask(&mut self, from: Ipv4Addr, message: &Message) -> Body {
        self.tell(from, message);
        self.answer(message.sequence).body
    }

    /// The answer to the request of that number, which must be there once.
    pub fn answer(&mut self, sequence: u32) -> Message {
        let at = self.sent.iter().position(|(_, message)| message.sequence == sequence).expect("an answer");
        let (_, message) = self.sent.remove(at);
        assert!(self.sent.iter().all(|(_, other)| other.sequence != sequence), "two answers");
        message
    }

    pub fn is_silent(&self) -> bool {
        self.sent.is_empty()
    }

    /// Time passes; what falls due is done in time.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let due = |lab: &Self| lab.node.next_due().map(|due| lab.started + due.since_zero());
        let mut at_once = 0;
        while let Some(due) = due(self).filter(|due| *due <= end) {
            at_once = if due > self.now { 0 } else { at_once + 1 };
            assert!(at_once < 10_000, "something is due again and again");
            self.now = self.now.max(due);
            let from = self.sent.len();
            self.handle(Input::Tick);
            if self.answers_heartbeats {
                self.answer_heartbeats(from);
            }
        }
        self.now = end;
    }

    /// Control planes that have answered heartbeats do so no more.
    pub fn goes_silent(&mut self) {
        self.answers_heartbeats = true;
        self.pass(self.config.heartbeat_interval + Duration::from_secs(1));
        self.answers_heartbeats = false;
    }

    /// Of what was sent, from there on.
    fn answer_heartbeats(&mut self, from: usize) {
        let is_asked = |(_, sent): &&(SocketAddr, Message)| matches!(sent.body, Body::HeartbeatRequest(_));
        let is_there = |to: &SocketAddr| !self.silent.iter().any(|silent| to.ip() == *silent);
        let asked = self.sent[from..].iter().filter(is_asked).map(|(to, sent)| (*to, sent.sequence));
        let asked = asked.filter(|(to, _)| is_there(to));
        for (to, sequence) in asked.collect::<Vec<_>>() {
            let mut known = self.associations.values().filter(|known| known.address == to);
            let recovery_time_stamp = known.next().map_or(1, |known| known.recovery_time_stamp);
            let response = pfcp::HeartbeatResponse { recovery_time_stamp, carried: vec![] };
            self.receive(to, &pfcp::encode(&Message::node(sequence, response)));
        }
    }

    pub fn desired(&self) -> BTreeMap<Seid, Desired> {
        self.node.desired().map(|desired| (desired.session, desired)).collect()
    }
}
