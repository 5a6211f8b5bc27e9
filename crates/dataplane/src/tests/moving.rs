//! Sessions move from worker to worker while their packets come: none is lost, none overtakes another, every byte is counted
//! once.

use super::applied;
use super::crew::{Team, address, from_user, to_network};
use super::redirect::{SERVER_FIRST, USER_FIRST, flow, made, up};
use crate::config::Config;
use crate::content::ContentRules;
use crate::counters::DropReason;
use crate::fixture::{
    FRAMES, N3, N6, SERVED, asleep, config, enriched, ethernet, metered, rules, with_ethernet,
};
use crate::steering::{Balance, Crew};
use dplink::{Command, Desired, Notice, Placed, UsageCounts};
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
    let mut team = Team::over(&roomy(), &Crew::of(workers));
    team.meet();
    team
}

fn with(workers: usize, session: u64, rules: Rules) -> Team {
    let mut team = team(workers);
    team.put(session, 1, rules);
    assert_eq!(team.settle(), [applied(session, 1)]);
    team
}

/// Up and down, in a URR.
fn counted(session: u64) -> Rules {
    let mut rules = rules(session);
    rules.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)]);
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
        self.engine.want(Some(1), Seid(session), to as u8).unwrap();
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
    later.fars[1].forwarding.as_mut().unwrap().outer_header_creation.as_mut().unwrap().teid.0 = 0x999;
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

/// What was kept for a sleeping user goes along, before what comes meanwhile; the control plane is not told again.
#[test]
fn packets_kept_for_a_user_who_sleeps_go_along() {
    use crate::fixture::ASLEEP;
    for turn in 0..2 {
        let mut team = with(2, ASLEEP, asleep());
        (1..=3).for_each(|port| team.receive(0, N6, &down(ASLEEP, port)));
        let told = team.settle();
        assert!(matches!(told[..], [Notice::Event(_)]), "{told:?}");
        let to = 1 - team.owner(ASLEEP);
        team.go(ASLEEP, to);
        let (mut notices, mut next) = (Vec::new(), 4);
        while team.engine.has_moves() {
            team.receive(0, N6, &down(ASLEEP, next));
            next += 1;
            team.step(turn, &mut notices);
        }
        notices.extend(team.settle());
        assert!(matches!(notices[..], [Notice::Placed { outcome: Ok(_), .. }]), "{notices:?}");
        assert_eq!(team.workers[to].books().held, u64::from(next) - 1);
        let mut awake = asleep();
        awake.fars[1].apply_action = ApplyAction::Forward;
        team.put(ASLEEP, 2, awake);
        team.settle();
        assert_eq!(ports_down(&team.sent(N3)[to]), (1..next).collect::<Vec<u16>>());
        assert_eq!(team.all_drops(), 0);
    }
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

#[test]
fn some_sessions_stay_where_they_are() {
    let mut team = team(3);
    for session in [S, 6] {
        let mut rules = rules(session);
        rules.qers[0].mbr = Some(BitRates { uplink_kbps: 1_000, downlink_kbps: 1_000 });
        rules.qers[0].correlation = Some(7);
        team.put(session, 1, rules);
    }
    team.settle();
    let to = (team.owner(S) + 1) % 3;
    assert!(team.stays(S, to).contains("shares a meter"));
    // Alone with its meter it may go, and who comes later goes where it is.
    team.ask(Command::Delete { session: Seid(6) });
    team.carry(S, to);
    let mut late = rules(7);
    late.qers[0].correlation = Some(7);
    team.put(7, 1, late);
    team.settle();
    assert_eq!(team.owner(7), to);
    assert!(team.engine.want(None, Seid(S), 3).is_err());
    team.go(77, 1);
    assert!(matches!(&team.settle()[..], [Notice::Placed { outcome: Err(_), .. }]));

    let mut team = Team::over(&with_ethernet(), &Crew::of(2));
    team.put(FRAMES[0], 1, ethernet(FRAMES[0]));
    team.settle();
    assert!(team.stays(FRAMES[0], 1).contains("Ethernet"));
}

#[test]
fn a_session_stays_where_there_is_no_room_for_it_elsewhere() {
    let mut config = roomy();
    config.limits.peers = 1;
    let mut team = Team::over(&config, &Crew::of(2));
    team.put(S, 1, rules(S));
    team.settle();
    let to = 1 - team.owner(S);
    // Its peer there is another one.
    let other = (6..60).find(|session| {
        let mut rules = rules(*session);
        let far = rules.fars[1].forwarding.as_mut().unwrap();
        far.outer_header_creation.as_mut().unwrap().address = Ipv4Addr::new(10, 30, 0, 9).into();
        team.put(*session, 1, rules);
        team.settle();
        team.owner(*session) == to
    });
    assert!(other.is_some());
    assert!(team.stays(S, to).contains("peers"));
    team.receive(to, N3, &from_user(S, address(S), 1));
    team.receive(1 - to, N3, &from_user(S, address(S), 2));
    team.meet();
    team.settle();
    let mut served = ports_up(&team.sent(N6)[1 - to]);
    served.sort_unstable();
    assert_eq!(served, [1, 2]);
    // It may go once there is room.
    team.ask(Command::Delete { session: Seid(other.unwrap()) });
    team.carry(S, to);
}

/// A rate is as far used up as it was, and so is a quota.
#[test]
fn rates_and_quotas_go_on_where_they_stood() {
    use crate::fixture::METERED;
    let mut stayed = with(2, METERED, metered());
    let mut moved = with(2, METERED, metered());
    let mut passed = Vec::new();
    for (team, moves) in [(&mut stayed, false), (&mut moved, true)] {
        for port in 0..12 {
            if moves && port % 2 == 1 {
                let to = 1 - team.owner(METERED);
                team.carry(METERED, to);
            }
            team.now_ns += 1_000_000;
            team.receive(0, N3, &from_user(METERED, address(METERED), port));
            team.receive(0, N6, &down(METERED, port));
            team.settle();
        }
        let mut sent = [ports_up(&team.sent(N6).concat()), ports_down(&team.sent(N3).concat())];
        sent.iter_mut().for_each(|ports| ports.sort_unstable());
        let drops = [DropReason::RateExceeded, DropReason::QuotaExhausted];
        let drops = drops.map(|reason| team.drops(0, reason) + team.drops(1, reason));
        assert!(drops.iter().all(|count| *count > 0), "{drops:?}");
        passed.push((sent, drops, team.usage(METERED)));
    }
    assert_eq!(passed[0], passed[1]);
}

/// Numbers of a connection into which something was put are right on both sides wherever its session is.
#[test]
fn connections_with_a_field_in_them_go_along() {
    const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: www.example\r\n\r\n";
    let mut team = with(2, SERVED, enriched(SERVED));
    let flow = flow(SERVED);
    let say = |team: &mut Team, flags, number: u32, payload: &[u8]| {
        team.receive(0, N3, &up(SERVED, &flow, &made(flags, (number, SERVER_FIRST), payload)));
        team.settle();
        let sent = team.sent(N6).concat().remove(0);
        (u32::from_be_bytes([sent[38], sent[39], sent[40], sent[41]]), sent.len())
    };
    say(&mut team, flag::SYN, USER_FIRST - 1, b"");
    let (first, length) = say(&mut team, flag::ACK | flag::PSH, USER_FIRST, GET);
    let field = (length - 54 - GET.len()) as u32;
    assert_eq!((first, field > 0), (USER_FIRST, true));
    team.carry(SERVED, 1 - team.owner(SERVED));
    let next = USER_FIRST + GET.len() as u32;
    assert_eq!(say(&mut team, flag::ACK, next, b"more").0, next + field);
}

fn with_content(team: &mut Team) {
    let rules = "id=1 precedence=1 rating-group=1 application=blocked host=.blocked.example";
    let classifier = dpi::rule_file::read_lines(rules).unwrap().compile().unwrap();
    team.engine.load(ContentRules::new(1, classifier, None).unwrap());
    team.settle();
}

/// Of what a flow is, its first packets said; what it used before anybody knew is counted.
#[test]
fn what_was_found_out_about_flows_goes_along() {
    const BLOCKED: &[u8] = b"GET / HTTP/1.1\r\nHost: www.blocked.example\r\n\r\n";
    let mut rules = crate::fixture::served();
    rules.urrs = (1..=2).map(|id| Urr { id: UrrId(id), ..Urr::default() }).collect();
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(if pdr.id.0 == 3 { 2 } else { 1 })]);
    // Counted and let through, or there were nothing to count.
    rules.fars[2].apply_action = ApplyAction::Forward;
    for cut in [0, 20, BLOCKED.len()] {
        let mut team = with(2, SERVED, rules.clone());
        with_content(&mut team);
        let flow = flow(SERVED);
        let mut bytes = 0;
        let mut say = |team: &mut Team, flags, number, payload: &[u8]| {
            team.receive(0, N3, &up(SERVED, &flow, &made(flags, (number, SERVER_FIRST), payload)));
            team.settle();
            bytes += 40 + payload.len() as u64;
        };
        say(&mut team, flag::SYN, USER_FIRST - 1, b"");
        if cut > 0 {
            say(&mut team, flag::ACK, USER_FIRST, &BLOCKED[..cut]);
        }
        team.carry(SERVED, 1 - team.owner(SERVED));
        if cut < BLOCKED.len() {
            say(&mut team, flag::ACK, USER_FIRST + cut as u32, &BLOCKED[cut..]);
        }
        say(&mut team, flag::ACK, USER_FIRST + BLOCKED.len() as u32, b"the rest");
        let counts = team.usage(SERVED);
        let of = |urr| counts.iter().find(|counts| counts.urr == UrrId(urr)).unwrap().uplink_bytes;
        assert_eq!((of(1), of(2)), (0, bytes), "moved after {cut} octets");
    }
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

/// Who comes to share a meter after the worker has looked stays with it all the same.
#[test]
fn a_session_that_is_joined_meanwhile_stays() {
    let mut team = team(2);
    let shared = |session| {
        let mut rules = rules(session);
        rules.qers[0].mbr = Some(BitRates { uplink_kbps: 1_000, downlink_kbps: 1_000 });
        rules.qers[0].correlation = Some(7);
        rules
    };
    team.put(S, 1, shared(S));
    team.settle();
    let from = team.owner(S);
    team.go(S, 1 - from);
    team.engine.poll(0);
    team.workers[from].turn(1);
    team.put(6, 1, shared(6));
    let told = team.settle();
    assert!(told.iter().any(|notice| matches!(notice, Notice::Placed { outcome: Err(_), .. })), "{told:?}");
    assert_eq!((team.owner(S), team.owner(6)), (from, from));
}

/// A clock that goes on whenever anybody looks.
fn ticks() -> u64 {
    thread_local!(static TICKS: Cell<u64> = const { Cell::new(0) });
    TICKS.with(|ticks| {
        ticks.set(ticks.get() + 1);
        ticks.get()
    })
}

/// While one worker has all the packets, new sessions go to the other, and where that is wanted, some of those there are.
#[test]
fn sessions_avoid_a_worker_that_is_busy() {
    for (balance, avoid, leave) in
        [(Balance::Off, false, false), (Balance::New, true, false), (Balance::All, true, true)]
    {
        let mut team = Team::timed(&roomy(), &Crew { balance, ..Crew::of(2) }, ticks);
        team.meet();
        (10..30).for_each(|session| team.put(session, 1, rules(session)));
        team.settle();
        let mine = |team: &Team| (10..30).filter(|session| team.owner(*session) == 0).collect::<Vec<u64>>();
        let before = mine(&team);
        for second in 1..40 {
            // One that stays there, whoever leaves.
            team.receive(0, N6, &down(3, 1));
            for _ in 0..20 {
                team.receive(0, N6, &down(before[0], 1));
                team.workers[0].turn(1);
            }
            team.workers[1].turn(1);
            team.engine.poll(1_000 * second);
            team.settle();
        }
        let after = mine(&team);
        assert_eq!(after.len() < before.len(), leave, "{balance:?}: {before:?}, {after:?}");
        (40..60).for_each(|session| team.put(session, 1, rules(session)));
        team.settle();
        let new = (40..60).filter(|session| team.owner(*session) == 0).count();
        assert_eq!(new == 0, avoid, "{balance:?}: {new} went there");
    }
}

#[test]
fn where_a_session_is_can_be_asked() {
    let mut team = with(2, S, rules(S));
    let at = team.owner(S) as u8;
    let instance = Instance::DEFAULT;
    let ask = |ue: Ipv4Addr, worker| Command::Locate { token: 4, ue: ue.into(), instance, worker };
    let placed = |worker, came_from| {
        [Notice::Placed { token: 4, outcome: Ok(Placed { session: Seid(S), worker, came_from }) }]
    };
    assert_eq!(team.ask(ask(address(S), None)), placed(at, None));
    assert_eq!(team.ask(ask(address(S), Some(at))), placed(at, None));
    assert_eq!(team.ask(ask(address(S), Some(1 - at))), placed(1 - at, Some(at)));
    assert_eq!(team.ask(ask(address(S), None)), placed(1 - at, None));
    for (user, worker) in [(address(9), None), (address(S), Some(2))] {
        let told = team.ask(ask(user, worker));
        assert!(matches!(&told[..], [Notice::Placed { token: 4, outcome: Err(_) }]), "{told:?}");
    }
}
