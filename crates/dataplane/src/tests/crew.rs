//! Several workers and their engine together, turn by turn in one thread.

mod ending;
mod leading;
mod sessions;
mod sorting;

use super::{applied, removed, to_user};
use crate::config::{Config, Echo};
use crate::counters::DropReason;
use crate::engine::Engine;
use crate::fixture::{GNB, N3, N6, TestPort, config, rules};
use crate::steering::Crew;
use crate::worker::{Clock, Worker, connect_crew};
use dplink::{Command, Desired, Event, Notice, Outcome, Question, TraceEnd, TraceFilter};
use packet::HeapBuffer;
use packet::ethernet::MacAddress;
use rules::{Interface, Rules, Seid, Teid};
use std::net::Ipv4Addr;

const S: u64 = 1_000_000_000;

pub(super) struct Team {
    pub(super) engine: Engine,
    pub(super) workers: Vec<Worker<TestPort>>,
    wires: Vec<Vec<TestPort>>,
    pub(super) now_ns: u64,
}

impl Team {
    pub(super) fn over(config: &Config, crew: &Crew) -> Self {
        Self::timed(config, crew, || 0)
    }

    /// The same with a clock that workers read.
    pub(super) fn timed(config: &Config, crew: &Crew, clock: Clock) -> Self {
        let wires: Vec<Vec<TestPort>> =
            (0..crew.workers).map(|_| config.ports.iter().map(|_| TestPort::default()).collect()).collect();
        let (engine, workers) = connect_crew(config, crew, wires.clone(), clock).unwrap();
        Self { engine, workers, wires, now_ns: 1 }
    }

    /// Whose neighbours are known, with sessions 1 to `sessions`.
    fn of(workers: usize, sessions: u64) -> Self {
        let mut config = config();
        config.limits.sessions = 64;
        config.limits.pdrs = 256;
        let mut team = Self::over(&config, &Crew::of(workers));
        team.meet();
        (1..=sessions).for_each(|session| team.put(session, 1, rules(session)));
        assert_eq!(team.settle().len() as u64, sessions);
        team
    }

    pub(super) fn meet(&mut self) {
        for worker in &mut self.workers {
            worker.know(N3 as u8, MacAddress([2, 0, 0, 0, 3, 1]), GNB);
            worker.know(N6 as u8, MacAddress([2, 0, 0, 0, 6, 1]), Ipv4Addr::new(10, 50, 0, 1));
        }
    }

    pub(super) fn put(&mut self, session: u64, revision: u64, rules: Rules) {
        let told = self.engine.handle(Command::Put(Desired::new(Seid(session), revision, rules))).unwrap();
        assert_eq!(told, None);
    }

    pub(super) fn refused(&mut self, session: u64, rules: Rules) -> String {
        match self.engine.handle(Command::Put(Desired::new(Seid(session), 9, rules))).unwrap() {
            Some(Notice::Refused { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn settle(&mut self) -> Vec<Notice> {
        let mut notices = Vec::new();
        for _ in 0..100 {
            for worker in &mut self.workers {
                worker.turn(self.now_ns);
            }
            notices.extend(self.engine.poll(0));
        }
        assert!(self.workers.iter().all(|worker| worker.books().balanced()));
        notices
    }

    pub(super) fn ask(&mut self, command: Command) -> Vec<Notice> {
        let told = self.engine.handle(command).unwrap();
        told.into_iter().chain(self.settle()).collect()
    }

    pub(super) fn receive(&mut self, worker: usize, port: usize, frame: &[u8]) {
        self.wires[worker][port].0.borrow_mut().to_worker.push_back(HeapBuffer::new(frame));
    }

    /// What each worker sent by a port.
    pub(super) fn sent(&mut self, port: usize) -> Vec<Vec<Vec<u8>>> {
        self.wires.iter().map(|wires| std::mem::take(&mut wires[port].0.borrow_mut().from_worker)).collect()
    }

    /// The worker that has a session, which is one alone.
    pub(super) fn owner(&self, session: u64) -> usize {
        let owners: Vec<usize> =
            (0..self.workers.len()).filter(|at| self.workers[*at].holds(Seid(session))).collect();
        assert_eq!(owners.len(), 1, "session {session} is at {owners:?}");
        owners[0]
    }

    pub(super) fn drops(&self, worker: usize, reason: DropReason) -> u64 {
        self.workers[worker].counters().drops[reason as usize]
    }

    /// Two sessions of 1 to 16 at different workers.
    fn strangers(&self) -> (u64, u64) {
        let other = (2..=16).find(|session| self.owner(*session) != self.owner(1)).unwrap();
        (1, other)
    }
}

/// No queue tells of it, so whoever waits for one would not be woken.
#[test]
fn who_is_about_to_rest_sees_what_was_handed_over_meanwhile() {
    let mut team = Team::of(2, 1);
    let owner = team.owner(1);
    let other = 1 - owner;
    assert!(team.workers.iter().all(|worker| !worker.is_waited_for()));
    team.receive(other, N6, &to_user(1));
    team.workers[other].turn(team.now_ns);
    assert_eq!([other, owner].map(|at| team.workers[at].is_waited_for()), [false, true]);
    team.workers[owner].turn(team.now_ns);
    assert!(!team.workers[owner].is_waited_for());
    team.settle();
}

/// A frame of the gNB to us.
fn from_gnb(ip_payload: &[u8], protocol: u8) -> Vec<u8> {
    let ip = packet::ipv4::Header::new(GNB, [10, 30, 0, 2].into(), protocol, ip_payload.len()).unwrap();
    let mut frame = vec![2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1, 8, 0];
    frame.resize(34, 0);
    ip.write(&mut frame[14..]).unwrap();
    frame.extend_from_slice(ip_payload);
    frame
}

/// A user's packet in a tunnel: the user's address is `source`, which may be a lie.
pub(super) fn from_user(session: u64, source: Ipv4Addr, port: u16) -> Vec<u8> {
    let mut inner = vec![0; 28];
    packet::ipv4::Header::new(source, [203, 0, 113, 80].into(), 17, 8).unwrap().write(&mut inner).unwrap();
    packet::udp::Header::new(port, 53, 0).unwrap().write(&mut inner[20..]).unwrap();
    to_network(session, &inner)
}

/// Any packet of a user, in its tunnel.
pub(super) fn to_network(session: u64, inner: &[u8]) -> Vec<u8> {
    let teid = 0xff + session as u32;
    let mut gtpu = vec![0x30, 255, 0, inner.len() as u8];
    gtpu.extend(teid.to_be_bytes());
    gtpu.extend(inner);
    let mut datagram = vec![0; 8];
    packet::udp::Header::new(2152, 2152, gtpu.len()).unwrap().write(&mut datagram).unwrap();
    datagram.extend(gtpu);
    from_gnb(&datagram, 17)
}

pub(super) fn address(session: u64) -> Ipv4Addr {
    Ipv4Addr::from(0x0a3c_0000 + session as u32)
}

#[test]
fn sessions_are_spread_and_served_wherever_their_packets_arrive() {
    let mut team = Team::of(3, 16);
    for session in (2..=16).filter(|session| *session != 3) {
        for worker in 0..3 {
            team.receive(worker, N6, &to_user(session as u8));
        }
    }
    team.settle();
    let sent = team.sent(N3);
    for session in (2..=16).filter(|session| *session != 3) {
        let teid = (0x1ff + session as u32).to_be_bytes();
        let by: Vec<usize> =
            sent.iter().map(|frames| frames.iter().filter(|frame| frame[46..50] == teid).count()).collect();
        let mut expected = vec![0; 3];
        expected[team.owner(session)] = 3;
        assert_eq!(by, expected, "session {session}");
    }
    assert!((0..3).all(|worker| (1..=16).any(|session| team.owner(session) == worker)));
}

/// One that lies about its address is its session's all the same: the tunnel says whose it is, and the rules that it lies.
#[test]
fn a_tunnel_brings_packets_of_any_address_to_its_owner() {
    let mut team = Team::of(3, 16);
    for worker in 0..3 {
        for lie in 1..=16 {
            team.receive(worker, N3, &from_user(2, address(lie), 1));
        }
    }
    team.settle();
    let owner = team.owner(2);
    let by_owner = team.sent(N6)[owner].len() as u64;
    assert_eq!(by_owner + team.drops(owner, DropReason::NoPdr), 48);
    assert!(by_owner >= 3);
    assert!((0..3).all(|worker| team.drops(worker, DropReason::NoTunnel) == 0));
}

#[test]
fn a_tunnel_nobody_has_is_told_so_once() {
    let mut team = Team::of(3, 2);
    team.receive(1, N3, &from_user(40, address(40), 1));
    team.settle();
    let errors: usize = team.sent(N3).iter().flatten().filter(|frame| frame[43] == 26).count();
    assert_eq!(errors, 1);
    // It was theirs, and is no more.
    team.ask(Command::Delete { session: Seid(2) });
    for worker in 0..3 {
        team.receive(worker, N3, &from_user(2, address(1), 1));
    }
    team.settle();
    let errors: usize = team.sent(N3).iter().flatten().filter(|frame| frame[43] == 26).count();
    assert!(errors >= 1, "no packet is handed about for ever");
}

#[test]
fn packets_of_a_flow_keep_their_order() {
    let mut team = Team::of(2, 16);
    let (one, other) = team.strangers();
    let other = if one == 1 { other } else { one };
    let away = 1 - team.owner(other);
    for port in 0..700 {
        team.receive(away, N3, &from_user(other, address(other), port));
    }
    team.settle();
    let ports: Vec<u16> = team.sent(N6).concat().iter().map(|f| u16::from_be_bytes([f[34], f[35]])).collect();
    assert_eq!(ports, (0..700).collect::<Vec<u16>>());
}

#[test]
fn a_worker_that_does_not_keep_up_costs_packets_by_name_and_no_more() {
    let mut team = Team::of(2, 16);
    let (_, other) = team.strangers();
    let owner = team.owner(other);
    let away = 1 - owner;
    for port in 0..2_000 {
        team.receive(away, N3, &from_user(other, address(other), port));
    }
    while team.workers[away].turn(1) > 0 {}
    let books = team.workers[away].books();
    let depth = 1_024;
    assert_eq!((books.handed_out, team.drops(away, DropReason::HandoffFull)), (depth, 2_000 - depth));
    assert!(books.balanced());
    team.settle();
    assert_eq!(team.workers[owner].books().handed_in, depth);
    assert_eq!(team.sent(N6)[owner].len() as u64, depth);
}

/// Of two workers that know nobody, with some sessions.
fn strangers_to_all() -> Team {
    let mut config = config();
    config.limits.sessions = 64;
    let mut team = Team::over(&config, &Crew::of(2));
    (4..=16).for_each(|session| team.put(session, 1, rules(session)));
    team.settle();
    team
}

/// The gNB's answer to ARP.
fn answer_of_gnb() -> Vec<u8> {
    let mut reply = vec![2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2];
    reply.extend([2, 0, 0, 0, 3, 1, 10, 30, 0, 1, 2, 0, 0, 0, 3, 2, 10, 30, 0, 2]);
    reply
}

/// The only station that answers answers one worker; another asked as well.
#[test]
fn an_answer_of_a_neighbour_reaches_all_who_asked() {
    let mut team = strangers_to_all();
    for session in 4..=16 {
        team.receive(0, N6, &to_user(session as u8));
    }
    team.settle();
    let asked: Vec<usize> = team.sent(N3).iter().map(Vec::len).collect();
    assert_eq!(asked, [1, 1]);
    team.receive(0, N3, &answer_of_gnb());
    team.settle();
    let sent: Vec<usize> = team.sent(N3).iter().map(Vec::len).collect();
    // Two may wait for it at each.
    assert_eq!(sent, [2, 2]);
}

/// Else packets of a session that moves would wait for an answer where it comes to, and few may.
#[test]
fn a_neighbour_of_one_worker_is_no_stranger_to_another() {
    let mut team = strangers_to_all();
    let first = team.owner(4);
    let other = (5..=16).find(|session| team.owner(*session) != first).unwrap();
    let there = team.owner(other);
    team.receive(first, N6, &to_user(4));
    team.settle();
    assert_eq!(team.sent(N3).concat().len(), 1, "a question");
    for hearer in [first, there] {
        team.now_ns += S;
        team.receive(hearer, N3, &answer_of_gnb());
        team.settle();
    }
    team.sent(N3);
    for _ in 0..40 {
        team.receive(there, N6, &to_user(other as u8));
    }
    team.settle();
    assert_eq!(team.sent(N3)[there].len(), 40, "nobody is asked, and nothing waits");
}

#[test]
fn a_peer_is_asked_by_one_worker_and_its_answer_found_wherever_it_arrives() {
    let mut config = Config { echo: Echo { period_ns: 60 * S, t3_ns: 5 * S, n3: 2 }, ..config() };
    config.limits.sessions = 64;
    for silent in [false, true] {
        let mut team = Team::over(&config, &Crew::of(3));
        team.meet();
        (4..=16).for_each(|session| team.put(session, 1, rules(session)));
        team.settle();
        let (mut asked, mut told) = (0, Vec::new());
        for _ in 0..130 {
            team.now_ns += S;
            told.extend(team.settle());
            team.meet();
            let frames = team.sent(N3).concat();
            for question in frames.iter().filter(|frame| frame[12..14] == [8, 0] && frame[43] == 1) {
                asked += 1;
                let answer = [
                    &[8, 104, 8, 104, 0, 22, 0, 0, 0x32, 2, 0, 6, 0, 0, 0, 0][..],
                    &question[50..52],
                    &[0, 0, 14, 0],
                ];
                // Any worker but the one that asked hears it, some time.
                (0..3).filter(|_| !silent).for_each(|worker| {
                    if worker == asked % 3 {
                        team.receive(worker, N3, &from_gnb(&answer.concat(), 17));
                    }
                });
            }
        }
        let path =
            |failed| Notice::Event(Event::Path { side: Interface::Access, remote: GNB.into(), failed });
        match silent {
            false => assert_eq!((asked, told), (3, vec![path(false)])),
            true => assert_eq!((asked, told), (6, vec![path(true)])),
        }
        let peers = team.ask(Command::GetPeers { token: 1 });
        let [Notice::Peers { peers, .. }] = &peers[..] else { panic!("{peers:?}") };
        assert_eq!((peers.len(), peers[0].tunnels), (1, 13));
        let statistics = team.ask(Command::GetStatistics);
        let [Notice::Statistics(statistics)] = &statistics[..] else { panic!("{statistics:?}") };
        assert_eq!(statistics.workers.iter().map(|worker| worker.paths.peers).sum::<u64>(), 1);
    }
}

#[test]
fn a_trace_sees_both_parts_of_a_packets_way() {
    let mut team = Team::of(2, 16);
    let (_, other) = team.strangers();
    let owner = team.owner(other);
    let teid = Some(Teid(0xff + other as u32));
    let filter = TraceFilter { packets: 2, seconds: 1, port: None, ue: None, teid };
    assert_eq!(team.engine.handle(Command::Trace { token: 3, filter }).unwrap(), None);
    team.settle();
    team.receive(1 - owner, N3, &from_user(other, address(other), 7));
    let mut told = team.settle();
    team.now_ns += 2 * S;
    told.extend(team.settle());
    let [Notice::Trace { token: 3, outcome: Ok(trace) }] = &told[..] else { panic!("{told:?}") };
    let [first, second] = &trace.packets[..] else { panic!("{trace:?}") };
    assert_eq!(
        (&first.nodes[..], first.arrived),
        (&["usual_input".to_owned(), "steer".to_owned()][..], second.arrived)
    );
    assert_eq!(first.end, TraceEnd::HandedOff { worker: owner as u8 });
    assert_eq!((second.nodes[0].as_str(), second.session), ("flow", Some(Seid(other))));
    assert!(matches!(second.end, TraceEnd::Sent { .. }));
    assert_eq!(trace.looked_at, 1);
}

#[test]
fn distributors_own_no_session_and_process_no_users_packet() {
    let mut config = config();
    config.limits.sessions = 64;
    let mut team = Team::over(&config, &Crew { distributors: 1, ..Crew::of(3) });
    team.meet();
    (4..=16).for_each(|session| team.put(session, 1, rules(session)));
    team.settle();
    (4..=16).for_each(|session| team.receive(0, N6, &to_user(session)));
    team.settle();
    let sent: Vec<usize> = team.sent(N3).iter().map(Vec::len).collect();
    assert_eq!((sent[0], sent.iter().sum::<usize>()), (0, 13));
    assert!(sent[1] > 0 && sent[2] > 0);
    assert_eq!(team.workers[0].counters().nodes[crate::NodeId::Flow as usize].packets, 0);
}

#[test]
fn a_crew_that_cannot_be_is_refused() {
    for crew in [Crew::of(0), Crew::of(33), Crew { distributors: 2, ..Crew::of(2) }] {
        let ports: Vec<Vec<TestPort>> = (0..crew.workers).map(|_| vec![]).collect();
        assert!(connect_crew(&config(), &crew, ports, || 0).is_err());
    }
}

/// All sessions of frames are with one worker, and whichever receives a frame hands it there unread.
#[test]
fn frames_go_to_the_worker_that_switches_them() {
    use super::ethernet::{frame, in_tunnel};
    use crate::fixture::{FRAMES, N6E, ethernet, with_ethernet};
    const HOST: [u8; 6] = [2, 0, 0, 0, 12, 1];
    // The first reads as the beginning of an IPv6 packet.
    const STATIONS: [[u8; 6]; 2] = [[0x60, 0, 0, 0, 10, 1], [2, 0, 0, 0, 10, 2]];
    let mut team = Team::over(&with_ethernet(), &Crew { distributors: 1, ..Crew::of(3) });
    for worker in &mut team.workers {
        worker.know(N3 as u8, MacAddress([2, 0, 0, 0, 3, 1]), GNB);
    }
    FRAMES.iter().for_each(|session| team.put(*session, 1, ethernet(*session)));
    assert_eq!(team.settle().len(), 2);
    assert_eq!(FRAMES.map(|session| team.owner(session)), [1, 1]);
    for receiver in 0..3 {
        for (session, station) in FRAMES.iter().zip(STATIONS) {
            team.receive(receiver, N3, &in_tunnel(*session, &frame(station, HOST)));
            team.receive(receiver, N6E, &frame(HOST, station));
        }
        team.settle();
        let (network, users) = (team.sent(N6E), team.sent(N3));
        assert_eq!((network[1].len(), users[1].len()), (2, 2), "received by {receiver}");
        assert!(network[1].iter().all(|sent| sent.len() == 60));
    }
    // Between two users, received by a worker that has neither.
    team.receive(2, N3, &in_tunnel(120, &frame(STATIONS[0], STATIONS[1])));
    team.settle();
    assert_eq!((team.sent(N3)[1].len(), team.sent(N6E)[1].len()), (1, 0));
}
