//! Sessions that come to share an AMBR come to one worker while their packets come (TS 29.244 5.4.4): whatever else happens
//! to them meanwhile, no packet is lost, none overtakes another, and the AMBR is one.

use super::*;
use rules::{Qer, QerId};

/// Of each meter, each way, in units of 1,000 bits a second.
const AMBR_KBPS: u64 = 40_000;
/// Packets of 28 bytes that its 10 ms of burst let pass at once.
const BURST: usize = 1_786;
/// A user's packets one way before the AMBR is to be felt: those of all three fit its burst.
const UNFELT: usize = 590;
/// Packets under way at once: no more than a ring holds, or some would be dropped.
const UNDER_WAY: usize = 900;

/// A user's packets one way, each told by its port, all of which arrive at one worker.
struct Way {
    user: usize,
    is_up: bool,
    inlet: usize,
    came: u16,
    left: Vec<u16>,
}

/// Three users whose sessions are with different workers.
struct Users {
    team: Team,
    sessions: [u64; 3],
    ways: Vec<Way>,
    /// By revision, whose it was, and numbers of the meters it was to have.
    asked: Vec<(usize, Vec<u64>)>,
    notices: Vec<Notice>,
}

/// A session with a meter of each number.
fn limited(session: u64, meters: &[u64]) -> Rules {
    let mut rules = counted(session);
    let mbr = Some(BitRates { uplink_kbps: AMBR_KBPS, downlink_kbps: AMBR_KBPS });
    let qer = |number: &u64| {
        let id = QerId(*number as u32);
        Qer { id, mbr, correlation: Some(*number), ..rules.qers[0].clone() }
    };
    rules.qers = meters.iter().map(qer).collect();
    let ids: Vec<QerId> = rules.qers.iter().map(|qer| qer.id).collect();
    rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = ids.clone().into());
    rules
}

/// Sessions that a team of three has at its first, second and third worker.
fn spread(team: &mut Team) -> [u64; 3] {
    let mut at = [None; 3];
    for session in 20.. {
        team.put(session, 1, limited(session, &[]));
        assert_eq!(team.settle(), [applied(session, 1)]);
        let place = &mut at[team.owner(session)];
        match place {
            None => *place = Some(session),
            Some(_) => drop(team.ask(Command::Delete { session: Seid(session) })),
        }
        if let [Some(first), Some(second), Some(third)] = at {
            return [first, second, third];
        }
    }
    unreachable!("addresses are spread over all workers")
}

impl Users {
    /// The packets of each way arrive at its inlet: all that come up, then all that go down.
    fn new(inlets: [usize; 6]) -> Self {
        let mut team = strict_team(3);
        let sessions = spread(&mut team);
        let way = |(way, inlet)| Way { user: way % 3, is_up: way < 3, inlet, came: 0, left: Vec::new() };
        let ways = inlets.into_iter().enumerate().map(way).collect();
        Self { team, sessions, ways, asked: vec![(9, vec![]); 2], notices: Vec::new() }
    }

    /// Tells a session which meters it is to have; its revision.
    fn share(&mut self, user: usize, meters: &[u64]) -> u64 {
        let (session, revision) = (self.sessions[user], self.asked.len() as u64);
        self.asked.push((user, meters.to_vec()));
        let desired = Desired::new(Seid(session), revision, limited(session, meters));
        self.notices.extend(self.team.engine.handle(Command::Put(desired)).unwrap());
        revision
    }

    /// Packets come, as many as have room.
    fn come(&mut self, way: usize, count: usize) {
        let under_way: usize = self.ways.iter().map(|way| usize::from(way.came) - way.left.len()).sum();
        let way = &mut self.ways[way];
        let count = count.min(UNDER_WAY - under_way).min(UNFELT - usize::from(way.came));
        for _ in 0..count {
            self.team.come_one(self.sessions[way.user], (way.is_up, way.inlet), way.came);
            way.came += 1;
        }
    }

    /// A worker's turn. What leaves is of sessions that the worker had before it, or has after it.
    fn turn(&mut self, worker: usize) {
        let holds = |team: &Team| self.sessions.map(|session| team.workers[worker].holds(Seid(session)));
        let had = holds(&self.team);
        self.team.workers[worker].turn(self.team.now_ns);
        let has = holds(&self.team);
        for (is_up, port) in [(true, N6), (false, N3)] {
            for frame in self.team.sent(port).concat() {
                // Tunnels have numbers that end in one less than their sessions.
                let session = u64::from(if is_up { frame[29] } else { frame[49].wrapping_add(1) });
                let user = self.sessions.iter().position(|it| *it == session).expect("a user's packet");
                assert!(had[user] || has[user], "worker {worker} does not have session {session}");
                let ports = if is_up { ports_up } else { ports_down };
                let way = self.ways.iter_mut().find(|way| (way.user, way.is_up) == (user, is_up)).unwrap();
                way.left.extend(ports(&[frame]));
            }
        }
        assert!(self.team.workers[worker].books().balanced());
    }

    fn look(&mut self) {
        self.notices.extend(self.team.engine.poll(0));
    }

    /// Everything that was begun ends.
    fn rest(&mut self) {
        for turn in 0..1_000 {
            self.look();
            self.turn(turn % 3);
            if turn > 300 && !self.team.engine.has_moves() {
                return;
            }
        }
        panic!("sessions move for ever");
    }

    /// What became of the last order about a session: refused, with the reason, or the meters it has.
    fn outcome(&self, user: usize) -> Result<&[u64], &str> {
        let last = self.asked.iter().rposition(|(of, _)| *of == user).unwrap_or_default() as u64;
        let reason = self.notices.iter().find_map(|notice| match notice {
            Notice::Refused { revision, reason, .. } if *revision == last => Some(reason.as_str()),
            _ => None,
        });
        assert!(reason.is_some() || self.in_force(user) == last.max(1), "nobody said what became of {last}");
        reason.map_or_else(|| Ok(self.meters(user)), Err)
    }

    /// The revision of a session that is in force.
    fn in_force(&self, user: usize) -> u64 {
        let session = Seid(self.sessions[user]);
        let applied = self.notices.iter().rev().find_map(|notice| match notice {
            Notice::Applied { session: of, revision, .. } if *of == session => Some(*revision),
            _ => None,
        });
        applied.unwrap_or(1)
    }

    /// The meters of that.
    fn meters(&self, user: usize) -> &[u64] {
        &self.asked[self.in_force(user) as usize].1
    }

    /// At rest: everything left in its order, was counted once, and who shares a meter is at one worker.
    fn check(&mut self) {
        for way in &self.ways {
            assert_eq!(
                way.left,
                (0..way.came).collect::<Vec<u16>>(),
                "of user {}, up: {}",
                way.user,
                way.is_up
            );
        }
        assert_eq!(self.team.all_drops(), 0);
        self.check_usage();
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            if self.meters(one).iter().any(|number| self.meters(other).contains(number)) {
                let owners = [one, other].map(|user| self.team.owner(self.sessions[user]));
                assert_eq!(owners[0], owners[1], "users {one} and {other} share a meter");
            }
        }
    }

    /// What was counted is what left.
    fn check_usage(&mut self) {
        for user in 0..3 {
            let [counts] = self.team.usage(self.sessions[user])[..] else { panic!() };
            let [up, down] = [true, false].map(|is_up| {
                let mut ways = self.ways.iter().filter(|way| (way.user, way.is_up) == (user, is_up));
                ways.next().unwrap().left.len() as u64
            });
            assert_eq!((counts.uplink_packets, counts.downlink_packets), (up, down), "user {user}");
            assert_eq!((counts.uplink_bytes, counts.downlink_bytes), (28 * up, 28 * down), "user {user}");
        }
    }

    /// More than an AMBR lets pass comes for two users at once, each way: no more of it passes than of one.
    fn flood(&mut self) {
        self.team.now_ns += 1_000_000_000;
        self.team.meet();
        let before: Vec<usize> = self.ways.iter().map(|way| way.left.len()).collect();
        for number in 0..1_000 {
            for way in self.ways.iter().filter(|way| way.user < 2) {
                self.team.come_one(self.sessions[way.user], (way.is_up, way.inlet), number);
            }
            if number % 100 == 99 {
                (0..12).for_each(|turn| self.turn(turn % 3));
            }
        }
        for is_up in [true, false] {
            let ways = self.ways.iter().zip(&before).filter(|(way, _)| way.is_up == is_up);
            let passed: usize = ways.map(|(way, before)| way.left.len() - before).sum();
            assert_eq!(passed, BURST, "up: {is_up}");
        }
        self.check_usage();
    }
}

impl Team {
    /// A packet of a user arrives at a worker.
    fn come_one(&mut self, session: u64, (is_up, inlet): (bool, usize), port: u16) {
        match is_up {
            true => self.receive(inlet, N3, &from_user(session, address(session), port)),
            false => self.receive(inlet, N6, &down(session, port)),
        }
    }
}

/// At whichever workers packets arrive, and whichever worker is ahead of the others.
#[test]
fn an_ambr_that_is_joined_holds_over_both_and_loses_no_packet() {
    for (inlet, first) in (0..3).flat_map(|inlet| (0..3).map(move |first| (inlet, first))) {
        let mut users = Users::new([0, 1, 2, 3, 4, 5].map(|way| (way + inlet) % 3));
        users.share(0, &[7]);
        users.rest();
        let homes = [0, 1].map(|user| users.team.owner(users.sessions[user]));
        assert_ne!(homes[0], homes[1]);
        let (mut turn, mut joins) = (0, None);
        while users.team.engine.has_moves() || turn < 30 {
            (0..6).for_each(|way| users.come(way, 9));
            if turn == 5 {
                joins = Some(users.share(1, &[7]));
            }
            users.look();
            (0..3).for_each(|at| users.turn((at + first) % 3));
            turn += 1;
        }
        users.rest();
        users.check();
        let joined = applied(users.sessions[1], joins.unwrap());
        assert!(users.notices.contains(&joined), "{:?}", users.notices);
        assert!(users.ways.iter().all(|way| way.came > 200));
        assert_eq!([0, 1].map(|user| users.team.owner(users.sessions[user])), [homes[0]; 2]);
        users.flood();
    }
}

/// Before a session's turn to move comes, who has the meter has moved, or the session is told to have one that is elsewhere.
#[test]
fn a_session_goes_where_its_meter_is_when_its_turn_comes() {
    let mut users = Users::new([0, 1, 2, 0, 1, 2]);
    users.share(0, &[7]);
    users.rest();
    let at = users.sessions.map(|session| users.team.owner(session));
    users.team.go(users.sessions[0], at[2]);
    users.share(1, &[7]);
    users.rest();
    assert_eq!((users.outcome(1), users.team.owner(users.sessions[1])), (Ok(&[7][..]), at[2]));

    let mut users = Users::new([0, 1, 2, 0, 1, 2]);
    users.share(0, &[7]);
    users.share(2, &[8]);
    users.rest();
    users.share(1, &[7]);
    // Whether it waits, or is looked at already.
    for is_looked_at in [false, true] {
        if is_looked_at {
            users.look();
        }
        users.share(1, &[8]);
        users.rest();
        assert_eq!((users.outcome(1), users.team.owner(users.sessions[1])), (Ok(&[8][..]), at[2]));
        users.share(1, &[]);
        users.rest();
        users.share(1, &[7]);
    }
}

/// Something that happens next.
#[derive(Clone, Debug)]
enum Event {
    Turn(usize),
    Look,
    Come(usize, usize),
    Share(usize, Vec<u64>),
    /// Somebody has it move.
    Go(usize, usize),
}

/// With meters of these numbers.
fn events(meters: &'static [u64]) -> impl Strategy<Value = Vec<Event>> {
    let shared = (0..3_usize, proptest::sample::subsequence(meters, 0..=meters.len()));
    let event = prop_oneof![
        12 => (0..3_usize).prop_map(Event::Turn),
        4 => Just(Event::Look),
        8 => (0..6_usize, 1..40_usize).prop_map(|(way, count)| Event::Come(way, count)),
        1 => shared.prop_map(|(user, meters)| Event::Share(user, meters)),
        1 => (0..3_usize, 0..3_usize).prop_map(|(user, worker)| Event::Go(user, worker)),
    ];
    proptest::collection::vec(event, 50..500)
}

/// What happens to three users, until all is at rest again.
fn after(events: Vec<Event>, inlets: [usize; 6]) -> Users {
    let mut users = Users::new(inlets);
    for event in events {
        match event {
            Event::Turn(worker) => users.turn(worker),
            Event::Look => users.look(),
            Event::Come(way, count) => users.come(way, count),
            Event::Share(user, meters) => _ = users.share(user, &meters),
            Event::Go(user, worker) => users.team.go(users.sessions[user], worker),
        }
    }
    users.rest();
    users.check();
    users
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// One meter, whenever who comes to share it: nobody is refused it.
    #[test]
    fn an_ambr_is_one_whatever_happens_meanwhile(
        events in events(&[7]), inlets in proptest::array::uniform6(0..3_usize),
    ) {
        let mut users = after(events, inlets);
        for user in 0..3 {
            prop_assert_eq!(users.outcome(user), Ok(users.meters(user)), "user {}", user);
        }
        for meters in [&[][..], &[7]] {
            (0..2).for_each(|user| _ = users.share(user, meters));
            users.share(2, &[]);
            users.rest();
        }
        users.check();
        prop_assert_eq!([0, 1].map(|user| users.outcome(user)), [Ok(&[7][..]); 2]);
        users.flood();
    }

    /// Several meters: who is refused shares one already, or was to share those of different workers.
    #[test]
    fn who_may_not_share_a_meter_is_told_why(
        events in events(&[7, 8]), inlets in proptest::array::uniform6(0..3_usize),
    ) {
        let users = after(events, inlets);
        for user in 0..3 {
            let reason = users.outcome(user).err();
            let is_known = reason.is_none_or(|it| it.contains("it shares a meter") || it.contains("different workers"));
            prop_assert!(is_known, "{:?}", reason);
        }
    }
}
