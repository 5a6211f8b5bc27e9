//! Sessions move from worker to worker while their packets come: none is lost, none overtakes another, every byte is counted
//! once.

mod along;
mod evening;
mod gathering;
mod staying;

use super::applied;
use super::crew::{Team, address, from_user, to_network};
use super::redirect::{SERVER_FIRST, USER_FIRST, flow, made, up};
use crate::config::Config;
use crate::content::ContentRules;
use crate::counters::DropReason;
use crate::engine::Wish;
use crate::fixture::{
    FRAMES, N3, N6, SERVED, asleep, config, enriched, ethernet, metered, rules, with_ethernet,
};
use crate::steering::{Balance, Crew};
use dplink::{Command, Desired, Destination, Notice, Placed, UsageCounts, Whose};
use packet::tcp::flag;
use proptest::prelude::*;
use rules::{ApplyAction, BitRates, Instance, Rules, Seid, Urr, UrrId};
use std::cell::Cell;
use std::net::Ipv4Addr;

/// The user whose session moves, and its session.
const S: u64 = 5;

fn roomy() -> Config {
    let mut config = config();
    config.limits.sessions = 64;
    config.limits.pdrs = 256;
    config.limits.kept = 64;
    config.limits.kept_per_session = 16;
    config
}

/// One whose neighbours are known.
fn team(workers: usize) -> Team {
    team_of(workers, &roomy())
}

/// The same, whose users catch up on nothing.
fn strict_team(workers: usize) -> Team {
    let mut config = roomy();
    config.limits.catch_up_ns = 0;
    team_of(workers, &config)
}

fn team_of(workers: usize, config: &Config) -> Team {
    let mut team = Team::over(config, &Crew::of(workers));
    team.meet();
    team
}

fn with(workers: usize, session: u64, rules: Rules) -> Team {
    with_session(team(workers), session, rules)
}

fn with_session(mut team: Team, session: u64, rules: Rules) -> Team {
    team.put(session, 1, rules);
    assert_eq!(team.settle(), [applied(session, 1)]);
    team
}

/// With two sessions that share a meter, so that neither moves without the other.
fn sharing(workers: usize) -> Team {
    let mut team = team(workers);
    for session in [S, 6] {
        let mut rules = rules(session);
        rules.qers[0].mbr = Some(BitRates { uplink_kbps: 1_000, downlink_kbps: 1_000 });
        rules.qers[0].correlation = Some(7);
        team.put(session, 1, rules);
    }
    team.settle();
    team
}

/// Up and down, in a URR.
fn counted(session: u64) -> Rules {
    let mut rules = rules(session);
    rules.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    rules
}

/// To the user of a session, told from others by its port.
fn down(session: u64, port: u16) -> Vec<u8> {
    let ip = packet::ipv4::Header::new([203, 0, 113, 80].into(), address(session), 17, 8).unwrap();
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, 8, 0];
    frame.resize(14 + 28, 0);
    ip.write(&mut frame[14..]).unwrap();
    packet::udp::Header::new(53, port, 0).unwrap().write(&mut frame[34..]).unwrap();
    frame
}

/// Ports of the user's end, of packets that left to the network.
fn ports_up(frames: &[Vec<u8>]) -> Vec<u16> {
    frames.iter().map(|frame| u16::from_be_bytes([frame[34], frame[35]])).collect()
}

/// The same of those that left in its tunnel.
fn ports_down(frames: &[Vec<u8>]) -> Vec<u16> {
    let port = |frame: &Vec<u8>| {
        let end = frame.len();
        u16::from_be_bytes([frame[end - 6], frame[end - 5]])
    };
    frames.iter().map(port).collect()
}

impl Team {
    fn go(&mut self, session: u64, to: usize) {
        self.engine.want(Wish::asked(1), Seid(session), to as u8).unwrap();
    }

    /// One look of the engine and one turn of each worker, in an order of their own; what left by N3 and N6.
    fn step(&mut self, turn: usize, notices: &mut Vec<Notice>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        notices.extend(self.engine.poll(0));
        let workers = self.workers.len();
        for at in 0..workers {
            self.workers[(at + turn) % workers].turn(self.now_ns);
        }
        assert!(self.workers.iter().all(|worker| worker.books().balanced()));
        (self.sent(N3).concat(), self.sent(N6).concat())
    }

    /// Moves a session, with nothing else going on.
    fn carry(&mut self, session: u64, to: usize) {
        let from = self.owner(session);
        self.go(session, to);
        let placed = Placed { session: Seid(session), worker: to as u8, came_from: Some(from as u8) };
        assert_eq!(self.settle(), [Notice::Placed { token: 1, outcome: Ok(placed) }]);
        assert_eq!(self.owner(session), to);
    }

    fn stays(&mut self, session: u64, to: usize) -> String {
        let from = self.owner(session);
        self.go(session, to);
        let told = self.settle();
        let [Notice::Placed { outcome: Err(reason), .. }] = &told[..] else { panic!("{told:?}") };
        assert_eq!(self.owner(session), from);
        reason.clone()
    }

    fn usage(&mut self, session: u64) -> Vec<UsageCounts> {
        let query =
            Command::QueryUsage { session: Seid(session), urrs: vec![], token: 9, is_reported: false };
        match &self.ask(query)[..] {
            [Notice::Usage { counts, .. }] => counts.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Packets dropped, whoever did it.
    fn all_drops(&self) -> u64 {
        self.workers.iter().map(|worker| worker.books().dropped).sum()
    }
}

/// At whichever workers its packets arrive, and whichever worker is ahead of the others: between the same two ends they leave
/// in the order in which they came, all of them, and the sums say so.
#[test]
fn packets_that_come_meanwhile_leave_in_order_and_are_counted_once() {
    for (inlet, turn) in (0..3).flat_map(|inlet| (0..3).map(move |turn| (inlet, turn))) {
        let mut team = with(3, S, counted(S));
        let (mut up, mut down_, mut next, mut notices) = (Vec::new(), Vec::new(), 0, Vec::new());
        for round in 0..12 {
            let to = (team.owner(S) + 1 + round % 2) % 3;
            team.go(S, to);
            let mut steps = 0;
            while team.engine.has_moves() || steps < 3 {
                for _ in 0..40 {
                    team.receive(inlet, N3, &from_user(S, address(S), next));
                    team.receive((inlet + 1) % 3, N6, &down(S, next));
                    next += 1;
                }
                let (n3, n6) = team.step(turn, &mut notices);
                down_.extend(ports_down(&n3));
                up.extend(ports_up(&n6));
                steps += 1;
            }
            assert_eq!(team.owner(S), to);
        }
        team.settle();
        down_.extend(ports_down(&team.sent(N3).concat()));
        up.extend(ports_up(&team.sent(N6).concat()));
        let all: Vec<u16> = (0..next).collect();
        assert_eq!((&up, &down_), (&all, &all), "received by {inlet}, worker {turn} first");
        let placed = notices.iter().filter(|notice| matches!(notice, Notice::Placed { outcome: Ok(_), .. }));
        assert_eq!((placed.count(), team.all_drops()), (12, 0));
        let [counts] = team.usage(S)[..] else { panic!() };
        let packets = (counts.uplink_packets, counts.downlink_packets);
        assert_eq!(packets, (next.into(), next.into()));
        assert_eq!((counts.uplink_bytes, counts.downlink_bytes), (packets.0 * 28, packets.1 * 28));
    }
}

/// Something that happens next: a worker has its turn, the engine looks, or packets come.
#[derive(Clone, Copy, Debug)]
enum Event {
    Turn(usize),
    Look,
    Come(u16),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..3_usize).prop_map(Event::Turn),
        2 => Just(Event::Look),
        3 => (1..60_u16).prop_map(Event::Come),
    ];
    proptest::collection::vec(event, 50..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// However fast or slow each of them is.
    #[test]
    fn no_packet_overtakes_another_whoever_is_slow(
        events in events(), inlet in 0..3_usize, moves in proptest::collection::vec(0..3_usize, 1..12),
    ) {
        let mut team = with(3, S, counted(S));
        let (mut moves, mut next, mut up, mut notices) = (moves.into_iter(), 0, Vec::new(), Vec::new());
        for event in events {
            if !team.engine.has_moves() {
                moves.next().into_iter().for_each(|to| team.go(S, to));
            }
            match event {
                Event::Turn(worker) => {
                    team.workers[worker].turn(1);
                }
                Event::Look => notices.extend(team.engine.poll(0)),
                // No more than the rings hold, or some would be dropped.
                Event::Come(count) => for _ in 0..count.min(900_u16.saturating_sub(next - up.len() as u16)) {
                    team.receive(inlet, N3, &from_user(S, address(S), next));
                    next += 1;
                }
            }
            up.extend(ports_up(&team.sent(N6).concat()));
        }
        // What one worker sent must not be taken for older than what another sent before.
        for turn in 0..300 {
            notices.extend(team.engine.poll(0));
            team.workers[turn % 3].turn(1);
            up.extend(ports_up(&team.sent(N6).concat()));
        }
        prop_assert_eq!(up, (0..next).collect::<Vec<u16>>());
        prop_assert_eq!((team.all_drops(), team.usage(S)[0].uplink_packets), (0, next.into()));
    }
}

/// What comes for a session under way is done after it has arrived, in its order.
#[test]
fn commands_wait_for_the_end_of_a_move() {
    let mut team = with(2, S, counted(S));
    (0..10).for_each(|port| team.receive(0, N6, &down(S, port)));
    team.settle();
    team.sent(N3);
    team.go(S, 1 - team.owner(S));
    let mut notices = Vec::new();
    while !team.engine.is_moving() {
        team.step(0, &mut notices);
    }
    let query = Command::QueryUsage { session: Seid(S), urrs: vec![], token: 3, is_reported: false };
    let mut later = counted(S);
    let to = later.fars[1].forwarding.as_mut().unwrap();
    to.outer_header_creation.as_mut().unwrap().header = rules::OuterHeader::Gtpu(rules::Teid(0x999));
    let put = Command::Put(Desired::new(Seid(S), 2, later));
    let other = Command::Put(Desired::new(Seid(6), 1, rules(6)));
    for command in [query.clone(), put, other, query, Command::Delete { session: Seid(S) }] {
        assert_eq!(team.engine.handle(command).unwrap(), None);
    }
    (10..12).for_each(|port| team.receive(0, N6, &down(S, port)));
    notices.extend(team.settle());
    let usage = |notice: &Notice| match notice {
        Notice::Usage { counts, .. } => Some(counts[0].downlink_packets),
        Notice::Removed { usage, .. } => Some(usage[0].downlink_packets),
        _ => None,
    };
    let counts: Vec<u64> = notices.iter().filter_map(usage).collect();
    assert_eq!(counts.len(), 3, "{notices:?}");
    assert!(counts.is_sorted() && counts[0] >= 10, "{counts:?}");
    assert!(notices.contains(&applied(S, 2)) && notices.contains(&applied(6, 1)));
    assert!(matches!(notices.last(), Some(Notice::Removed { session: Seid(S), .. })), "{notices:?}");
}

#[test]
fn a_session_that_came_home_and_goes_leaves_nothing_behind() {
    let mut team = with(3, S, rules(S));
    let home = team.owner(S);
    for to in [(home + 1) % 3, (home + 2) % 3, home, (home + 1) % 3] {
        team.carry(S, to);
    }
    team.ask(Command::Delete { session: Seid(S) });
    for worker in 0..3 {
        team.receive(worker, N6, &down(S, 1));
        team.receive(worker, N3, &from_user(S, address(S), 1));
    }
    team.settle();
    let dropped: u64 = (0..3).map(|worker| team.drops(worker, DropReason::NoSession)).sum();
    assert_eq!((dropped, team.sent(N6).concat().len()), (3, 0));
    // Somebody else may have the address, at its own worker.
    team.put(S, 2, rules(S));
    assert_eq!(team.settle(), [applied(S, 2)]);
    assert_eq!(team.owner(S), home);
    (0..3).for_each(|worker| team.receive(worker, N6, &down(S, 1)));
    team.sent(N3);
    team.settle();
    assert_eq!(ports_down(&team.sent(N3)[home]), [1, 1, 1]);
}

/// A change at the new worker announces what is new and what is gone.
#[test]
fn a_session_that_has_moved_changes_like_any_other() {
    let mut team = with(3, S, rules(S));
    let to = (team.owner(S) + 1) % 3;
    team.carry(S, to);
    let mut changed = rules(S);
    changed.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv4 = Some(address(9)));
    changed.pdrs[0].pdi.f_teid.as_mut().unwrap().teid.0 = 0xff + 9;
    team.put(S, 2, changed);
    assert_eq!(team.settle(), [applied(S, 2)]);
    for worker in 0..3 {
        for port in [down(S, 1), down(9, 2)] {
            team.receive(worker, N6, &port);
        }
        team.receive(worker, N3, &from_user(9, address(9), 3));
    }
    team.settle();
    assert_eq!(ports_down(&team.sent(N3)[to]), [2, 2, 2]);
    assert_eq!(ports_up(&team.sent(N6)[to]), [3, 3, 3]);
}

/// More than may wait are dropped, and say why.
#[test]
fn packets_that_wait_are_bounded() {
    let mut team = with(3, S, rules(S));
    let home = team.owner(S);
    let (from, to) = ((home + 1) % 3, (home + 2) % 3);
    team.carry(S, from);
    team.go(S, to);
    // The worker that has the session does not look at its orders for long.
    for _ in 0..6 {
        team.engine.poll(0);
        for at in [home, to] {
            team.workers[at].turn(1);
        }
        if !team.engine.is_moving() {
            team.workers[from].turn(1);
        }
    }
    for port in 0..3_000 {
        team.receive(home, N3, &from_user(S, address(S), port));
        if port % 100 == 99 {
            for at in [home, to] {
                team.workers[at].turn(1);
            }
        }
    }
    while team.workers[home].turn(1) + team.workers[to].turn(1) > 0 {}
    let (dropped, held) = (team.drops(to, DropReason::MovingFull), team.workers[to].books().held);
    assert_eq!((dropped, held), (3_000 - 2_048, 2_048));
    let room = team.workers[to].room_to_resume();
    team.settle();
    assert_eq!(team.workers[to].room_to_resume(), room, "a worker allocates nothing");
    assert_eq!(ports_up(&team.sent(N6)[to]), (0..2_048).collect::<Vec<u16>>());
}

/// The end of a tunnel does not overtake its packets, and is not lost.
#[test]
fn nobody_is_told_that_there_is_no_session() {
    let mut team = with(3, S, rules(S));
    for round in 0..6 {
        let to = (team.owner(S) + 1 + round % 2) % 3;
        team.go(S, to);
        let mut notices = Vec::new();
        while team.engine.has_moves() {
            for worker in 0..3 {
                // One that is cut short: who has no such tunnel is told so, whatever came through it.
                team.receive(worker, N3, &to_network(S, &[0x45, 0, 0]));
                team.receive(worker, N3, &from_user(S, Ipv4Addr::new(9, 9, 9, 9), 1));
            }
            team.step(round, &mut notices);
        }
        team.settle();
        assert!(team.sent(N3).concat().iter().all(|frame| frame[43] != 26), "an Error Indication was sent");
    }
}
