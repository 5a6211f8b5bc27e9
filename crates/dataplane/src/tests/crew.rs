//! Several workers and their engine together, turn by turn in one thread.

use super::{applied, removed, to_user};
use crate::config::{Config, Echo};
use crate::counters::DropReason;
use crate::engine::Engine;
use crate::fixture::{GNB, N3, N6, TestPort, config, rules};
use crate::steering::Crew;
use crate::worker::{Clock, Worker, connect_crew};
use dplink::{Command, Desired, Event, Notice, Outcome, Question, RefusalCause, TraceEnd, TraceFilter};
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

/// The only station that answers answers one worker; another asked as well.
#[test]
fn an_answer_of_a_neighbour_reaches_all_who_asked() {
    let mut config = config();
    config.limits.sessions = 64;
    let mut team = Team::over(&config, &Crew::of(2));
    (4..=16).for_each(|session| team.put(session, 1, rules(session)));
    team.settle();
    for session in 4..=16 {
        team.receive(0, N6, &to_user(session as u8));
    }
    team.settle();
    let asked: Vec<usize> = team.sent(N3).iter().map(Vec::len).collect();
    assert_eq!(asked, [1, 1]);
    let mut reply = vec![2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2];
    reply.extend([2, 0, 0, 0, 3, 1, 10, 30, 0, 1, 2, 0, 0, 0, 3, 2, 10, 30, 0, 2]);
    team.receive(0, N3, &reply);
    team.settle();
    let sent: Vec<usize> = team.sent(N3).iter().map(Vec::len).collect();
    // Two may wait for it at each.
    assert_eq!(sent, [2, 2]);
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
fn a_resynchronisation_sweeps_all_workers() {
    let mut team = Team::of(3, 16);
    team.ask(Command::ResyncBegin { recovery_time_stamp: 7 });
    for session in 1..=8 {
        let again = team.engine.handle(Command::Put(Desired::new(Seid(session), 1, rules(session)))).unwrap();
        assert_eq!(again, Some(applied(session, 1)));
    }
    let mut told = team.ask(Command::ResyncEnd);
    assert_eq!(told.remove(0), Notice::Resynced { swept: 8 });
    told.sort_by_key(|notice| if let Notice::Removed { session, .. } = notice { session.0 } else { 0 });
    assert_eq!(told, (9..=16).map(removed).collect::<Vec<_>>());
    for session in 1..=16 {
        team.receive(0, N6, &to_user(session));
    }
    team.settle();
    let dropped: u64 = (0..3).map(|worker| team.drops(worker, DropReason::NoSession)).sum();
    assert_eq!(dropped, 8);
}

#[test]
fn what_belongs_to_a_session_of_another_worker_is_refused() {
    let mut team = Team::of(2, 16);
    let (one, other) = team.strangers();
    let mut thief = rules(40);
    thief.pdrs[0].pdi.f_teid = rules(one).pdrs[0].pdi.f_teid;
    assert!(team.refused(40, thief.clone()).contains("tunnel"));
    // Whichever worker the thief would be at.
    thief.pdrs[1].pdi.ue_ipv4 = rules(other).pdrs[1].pdi.ue_ipv4;
    thief.pdrs[0].pdi.f_teid = rules(40).pdrs[0].pdi.f_teid;
    assert!(team.refused(40, thief.clone()).contains("address"));
    assert_eq!(team.ask(Command::Delete { session: Seid(other) }), [removed(other)]);
    team.put(40, 10, thief);
    assert_eq!(team.settle(), [applied(40, 10)]);
}

/// A change that the session's worker refuses leaves the session what it had, and others what the change wanted; until it is
/// known, both are the session's.
#[test]
fn a_change_that_is_refused_claims_nothing() {
    let mut team = Team::of(2, 4);
    let mut too_large = rules(1);
    too_large.pdrs[0].pdi.f_teid = rules(40).pdrs[0].pdi.f_teid;
    too_large.pdrs[1].pdi.ue_ipv4 = rules(40).pdrs[1].pdi.ue_ipv4;
    for at in 0..400 {
        let mut pdr = too_large.pdrs[1].clone();
        let mut far = too_large.fars.iter().find(|far| far.id == pdr.far).unwrap().clone();
        far.id = rules::FarId(100 + u32::from(at));
        let to = far.forwarding.as_mut().unwrap().outer_header_creation.as_mut().unwrap();
        to.teid = rules::Teid(0x9000 + u32::from(at));
        (pdr.id, pdr.precedence, pdr.far) = (rules::PdrId(100 + at), u32::from(at) + 300, far.id);
        too_large.pdrs.push(pdr);
        too_large.fars.push(far);
    }
    team.put(1, 2, too_large);
    // Both what it has and what it is to have.
    let mut thief = rules(41);
    thief.pdrs[0].pdi.f_teid = rules(1).pdrs[0].pdi.f_teid;
    assert!(team.refused(41, thief.clone()).contains("tunnel"));
    assert!(team.refused(40, rules(40)).contains("tunnel"));
    let told = team.settle();
    assert!(matches!(told[..], [Notice::Refused { session: Seid(1), revision: 2, .. }]), "{told:?}");
    assert!(team.refused(41, thief.clone()).contains("tunnel"));
    team.put(40, 1, rules(40));
    assert_eq!(team.settle(), [applied(40, 1)]);
    // A change that is made gives away what the session had before.
    let mut moved = rules(1);
    moved.pdrs[0].pdi.f_teid = rules(42).pdrs[0].pdi.f_teid;
    team.put(1, 3, moved);
    assert_eq!(team.settle(), [applied(1, 3)]);
    team.put(41, 1, thief);
    assert_eq!(team.settle(), [applied(41, 1)]);
    // And one that goes, all.
    team.ask(Command::Delete { session: Seid(1) });
    team.put(1, 4, rules(42));
    assert_eq!(team.settle().len(), 1);
}

#[test]
fn all_together_hold_as_many_sessions_as_configured() {
    let mut config = config();
    config.limits.sessions = 20;
    config.limits.pdrs = 40;
    let mut team = Team::over(&config, &Crew::of(4));
    (1..=20).for_each(|session| team.put(session, 1, rules(session)));
    assert_eq!(team.settle().len(), 20);
    assert!(team.refused(21, rules(21)).contains("as many sessions"));
    team.ask(Command::Delete { session: Seid(3) });
    team.put(21, 1, rules(21));
    assert_eq!(team.settle(), [applied(21, 1)]);
}

/// An AMBR is one rate for all sessions that share it: they are together, whatever their addresses.
#[test]
fn sessions_that_share_a_meter_share_a_worker() {
    let mut team = Team::of(4, 0);
    for session in 4..=12 {
        let mut rules = rules(session);
        rules.qers[0].mbr = Some(rules::BitRates { uplink_kbps: 1_000, downlink_kbps: 1_000 });
        rules.qers[0].correlation = Some(7);
        team.put(session, 1, rules);
    }
    team.settle();
    assert!((4..=12).all(|session| team.owner(session) == team.owner(4)));
    // Those whose addresses say otherwise are found all the same.
    for worker in 0..4 {
        (4..=12).for_each(|session| team.receive(worker, N6, &to_user(session)));
    }
    team.settle();
    assert_eq!(team.sent(N3)[team.owner(4)].len(), 36);
}

/// A session is not moved for it: two workers would meter twice the rate.
#[test]
fn a_session_elsewhere_cannot_come_to_share_a_meter() {
    let mut team = Team::of(4, 0);
    let limited = |session, correlation| {
        let mut rules = rules(session);
        rules.qers[0].mbr = Some(rules::BitRates { uplink_kbps: 1_000, downlink_kbps: 1_000 });
        rules.qers[0].correlation = correlation;
        rules
    };
    (1..=16).for_each(|session| team.put(session, 1, limited(session, (session == 1).then_some(7))));
    team.settle();
    let (one, other) = team.strangers();
    let refused = team.engine.handle(Command::Put(Desired::new(Seid(other), 2, limited(other, Some(7)))));
    match refused.unwrap() {
        Some(Notice::Refused { cause, .. }) => assert_eq!(cause, RefusalCause::Full),
        told => panic!("{told:?}"),
    }
    // It is as it was. Its own meter it may number, and who is alone with a number may go on with it.
    team.put(other, 3, limited(other, Some(8)));
    team.put(one, 3, limited(one, Some(7)));
    assert_eq!(team.settle().len(), 2);
    let refused = team.refused(one, limited(one, Some(8)));
    assert!(refused.contains("meter"), "{refused}");
}

#[test]
fn a_session_stays_where_it_is_when_its_user_gets_another_address() {
    let mut team = Team::of(2, 16);
    let (one, other) = team.strangers();
    let owner = team.owner(one);
    team.ask(Command::Delete { session: Seid(other) });
    let mut moved = rules(one);
    moved.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv4 = Some(address(other)));
    team.put(one, 2, moved);
    assert_eq!(team.settle(), [applied(one, 2)]);
    for worker in 0..2 {
        team.receive(worker, N6, &to_user(other as u8));
        team.receive(worker, N6, &to_user(one as u8));
    }
    team.settle();
    assert_eq!((team.owner(one), team.sent(N3)[owner].len()), (owner, 2));
    assert_eq!((0..2).map(|worker| team.drops(worker, DropReason::NoSession)).sum::<u64>(), 2);
}

#[test]
fn questions_are_answered_by_whoever_knows() {
    let mut team = Team::of(3, 16);
    for session in [1, 2, 5, 9] {
        let question = Question {
            is_down: true,
            ue: address(session).into(),
            instance: rules::Instance::DEFAULT,
            remote: [203, 0, 113, 80].into(),
            protocol: 17,
            ports: Some((1, 53)),
            traffic_class: 0,
            qfi: None,
            teid: None,
            is_verbose: false,
            application: None,
        };
        let told = team.ask(Command::Explain { token: 4, question });
        let [Notice::Explanation { token: 4, explanation }] = &told[..] else { panic!("{told:?}") };
        assert_eq!((explanation.session, &explanation.outcome), (Some(Seid(session)), &Outcome::Sent));
        let query =
            Command::QueryUsage { session: Seid(session), urrs: vec![], token: 5, is_reported: false };
        assert!(matches!(&team.ask(query)[..], [Notice::Usage { session: told, .. }] if told.0 == session));
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
