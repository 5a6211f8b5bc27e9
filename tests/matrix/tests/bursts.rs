//! As many sessions as there is room for come and go at once, with packets of theirs under way, and leave nothing behind in
//! either process: no session, TEID, address, flow or kept packet; and no room that is lost, for as many come again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

use dplink::{Command, Notice, WorkerStatistics};
use matrix::{N3, N3_ADDRESS, N6, UserPlane, node_config, plane_config};
use n4::UePool;
use packet::ethernet::{self, Header, IPV4, MacAddress};
use pfcp::*;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Room for so many, everywhere.
const SESSIONS: usize = 10_000;
const SMF: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 9);
const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
const FLOWS: usize = 4 * SESSIONS;
/// A flow without packets is forgotten.
const FLOW_AGE: Duration = Duration::from_secs(2);

struct Bench {
    plane: UserPlane,
    sequence: u32,
}

/// One user's session.
#[derive(Clone, Copy)]
struct Session {
    seid: u64,
    teid: u32,
    user: Ipv4Addr,
}

/// What is held, in both processes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    sessions: [usize; 3],
    tunnels: usize,
    addresses: usize,
    desired: usize,
    flows: u64,
    peers: u64,
    packets: u64,
}

impl Bench {
    fn new() -> Self {
        let (mut node, mut plane) = (node_config(), plane_config());
        let prefix = "10.60.0.0/18".parse().unwrap();
        node.ue_pools = vec![UePool { name: "users".to_owned(), prefix, network_instance: None }];
        // The node has room for more, so that it is the data path that refuses one too many.
        node.limits.sessions = 2 * SESSIONS;
        let limits = &mut plane.limits;
        (limits.sessions, limits.pdrs) = (SESSIONS, 2 * SESSIONS);
        (limits.flows, limits.flow_age_ns) = (FLOWS, FLOW_AGE.as_nanos() as u64);
        (limits.kept, limits.kept_per_session) = (SESSIONS, 1);
        let mut bench = Self { plane: UserPlane::over(node, plane), sequence: 0 };
        bench.associate();
        bench
    }

    fn associate(&mut self) {
        let setup = request::setup(NodeId::Ipv4(SMF), 1);
        let answer = self.ask(None, setup.into());
        assert!(matches!(answer, Body::AssociationSetupResponse(setup) if setup.cause.is_accepted()));
    }

    fn ask(&mut self, seid: Option<u64>, body: Body) -> Body {
        self.sequence += 1;
        let message = Message { seid, sequence: self.sequence, priority: None, body };
        let told = self.plane.datagram(SocketAddr::new(SMF.into(), pfcp::PORT), &encode(&message));
        let messages = told.iter().map(|(_, bytes)| decode(bytes).unwrap());
        let mut answers = messages.filter(|answer| answer.sequence == self.sequence);
        answers.next().expect("an answer").body
    }

    /// Its user's packets go up at once; those for the user are kept.
    fn establish(&mut self, number: usize) -> Result<Session, Cause> {
        match self.ask(Some(0), establishment(number).into()) {
            Body::SessionEstablishmentResponse(response) if response.cause.is_accepted() => {
                let created = &response.created_pdrs;
                let teid = created.iter().find_map(|pdr| match pdr.local_f_teid {
                    Some(FTeid::Explicit { teid, .. }) => Some(teid),
                    _ => None,
                });
                let user = created.iter().find_map(|pdr| pdr.ue_ip_addresses.first()?.ipv4);
                let seid = response.up_f_seid.unwrap().seid;
                Ok(Session { seid, teid: teid.unwrap(), user: user.unwrap() })
            }
            Body::SessionEstablishmentResponse(response) => Err(response.cause),
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, session: Session) {
        match self.ask(Some(session.seid), SessionDeletionRequest::default().into()) {
            Body::SessionDeletionResponse(response) => assert_eq!(response.cause, Cause::RequestAccepted),
            other => panic!("{other:?}"),
        }
    }

    /// A packet each way.
    fn traffic(&mut self, session: Session) {
        let up = udp((session.user, SERVER), 9_000, b"up");
        let length = up.len() as u16;
        let gtpu = [&[0x30, 255][..], &length.to_be_bytes(), &session.teid.to_be_bytes(), &up].concat();
        self.receive(N3, &udp((GNB, N3_ADDRESS), 2_152, &gtpu));
        self.receive(N6, &udp((SERVER, session.user), 9_001, b"down"));
    }

    fn receive(&mut self, port: usize, packet: &[u8]) {
        let mut frame = vec![0; ethernet::LENGTH];
        let mac = plane_config().ports[port].mac;
        Header::new(mac, MacAddress([2, 9, 9, 9, 9, 9]), IPV4).write(&mut frame).unwrap();
        frame.extend_from_slice(packet);
        self.plane.receive(port, &frame);
    }

    fn held(&mut self) -> Held {
        let worker = self.worker();
        let node = &self.plane.node;
        let sessions = [node.sessions(), self.plane.saved.sessions.len(), worker.sessions as usize];
        Held {
            sessions,
            tunnels: node.tunnels(),
            addresses: node.addresses(),
            desired: node.desired().count(),
            flows: worker.flows,
            peers: worker.paths.peers,
            packets: worker.books.held,
        }
    }

    /// What the worker says it holds.
    fn worker(&mut self) -> WorkerStatistics {
        let now_ns = self.plane.now.since_zero().as_nanos() as u64 + 1;
        let mut notices: Vec<Notice> =
            self.plane.engine.handle(Command::GetStatistics).unwrap().into_iter().collect();
        for _ in 0..8 {
            self.plane.worker.turn(now_ns);
            notices.extend(self.plane.engine.poll(0));
        }
        match notices.pop() {
            Some(Notice::Statistics(mut statistics)) if notices.is_empty() => statistics.workers.remove(0),
            other => panic!("{other:?} {notices:?}"),
        }
    }

    /// The worker goes through its table of flows, a few in every turn; it makes a million turns a second.
    fn sweep(&mut self) {
        let now_ns = self.plane.now.since_zero().as_nanos() as u64 + 1;
        for _ in 0..FLOWS {
            self.plane.worker.turn(now_ns);
        }
    }

    /// They come until there is no room, are used, and go.
    fn burst(&mut self, former: usize) {
        let sessions: Vec<Session> =
            (0..SESSIONS).map(|number| self.establish(former + number).expect("room")).collect();
        assert!(self.establish(former + SESSIONS).is_err(), "there is room for more");
        for session in &sessions {
            self.traffic(*session);
            self.plane.settle();
        }
        assert_eq!(self.plane.sent(N6).len(), SESSIONS);
        let held = self.held();
        assert_eq!((held.sessions, held.tunnels, held.addresses), ([SESSIONS; 3], SESSIONS, SESSIONS));
        // The one that is kept is of no flow yet, or of one.
        assert!(held.flows as usize >= SESSIONS && held.packets as usize == SESSIONS, "{held:?}");
        sessions.into_iter().for_each(|session| self.delete(session));
        self.plane.pass(2 * FLOW_AGE);
        self.sweep();
        assert!(self.plane.sent(N3).is_empty(), "what was kept is nobody's");
    }
}

/// UDP over IPv4, to a port of ours or a server's.
fn udp((from, to): (Ipv4Addr, Ipv4Addr), port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (28 + payload.len()) as u16;
    let mut header = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
    header.extend(from.octets());
    header.extend(to.octets());
    let checksum = packet::checksum::of(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp = [port, port, length - 20, 0].map(u16::to_be_bytes).concat();
    [header, udp, payload.to_vec()].concat()
}

fn establishment(number: usize) -> SessionEstablishmentRequest {
    let chosen = UeIpAddress { choose_ipv4: true, is_destination: true, ..UeIpAddress::default() };
    let up = Pdi { f_teid: Some(FTeid::choose(None)), ..Pdi::new(SourceInterface::Access) };
    let down = Pdi { ue_ip_addresses: vec![chosen], ..Pdi::new(SourceInterface::Core) };
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP);
    let up = CreatePdr { outer_header_removal: Some(removal), ..request::pdr((1, 1), 255, up) };
    let to_core = ForwardingParameters::new(DestinationInterface::Core);
    let fars = vec![
        request::far(1, ApplyAction::new(ApplyAction::FORW), Some(to_core)),
        request::far(2, ApplyAction::new(ApplyAction::BUFF), None),
    ];
    let (node_id, f_seid) = (NodeId::Ipv4(SMF), FSeid::new(number as u64 + 1, SMF.into()));
    SessionEstablishmentRequest {
        pdn_type: Some(PdnType::Ipv4),
        ..SessionEstablishmentRequest::new(node_id, f_seid, vec![up, request::pdr((2, 2), 255, down)], fars)
    }
}

#[test]
fn ten_thousand_sessions_that_end_leave_nothing_in_either_process() {
    let mut bench = Bench::new();
    let before = bench.held();
    assert_eq!(before.sessions, [0; 3]);
    for burst in 0..3 {
        bench.burst(2 * burst * SESSIONS);
        assert_eq!(bench.held(), before, "after burst {burst}");
    }
}
