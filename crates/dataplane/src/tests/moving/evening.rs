//! What is told of how sessions are spread, and orders to spread them more evenly.

use super::staying::ticks;
use super::*;
use dplink::{Balancing, Measure, MoveCause, Placements, Step};

impl Team {
    fn balancing(&mut self) -> Balancing {
        match self.engine.handle(Command::GetBalance { token: 3 }).unwrap() {
            Some(Notice::Balance { token: 3, balancing }) => *balancing,
            other => panic!("{other:?}"),
        }
    }

    /// What is to move, before anything has.
    fn even(&mut self, by: Measure, is_dry: bool) -> Result<Vec<Step>, String> {
        match self.engine.handle(Command::Even { token: 3, by, is_dry }).unwrap() {
            Some(Notice::Evening { token: 3, outcome }) => outcome,
            other => panic!("{other:?}"),
        }
    }

    /// Sessions of each worker, as they are and as is told.
    fn spread(&mut self) -> Vec<u64> {
        let told: Vec<u64> = self.balancing().workers.iter().map(|worker| worker.sessions).collect();
        let mut counted = vec![0; self.workers.len()];
        (10..30).for_each(|session| counted[self.owner(session)] += 1);
        assert_eq!(told, counted);
        told
    }
}

/// Twenty sessions of three workers, all of them at the first.
fn crowded() -> Team {
    let mut team = team(3);
    (10..30).for_each(|session| team.put(session, 1, counted(session)));
    team.settle();
    for session in 10..30 {
        if team.owner(session) != 0 {
            team.carry(session, 0);
        }
    }
    assert_eq!(team.spread(), [20, 0, 0]);
    team
}

/// Packets of all of them come meanwhile, at whichever worker: all leave, in order, and are counted.
#[test]
fn an_order_spreads_sessions_evenly_and_loses_no_packet() {
    let mut team = crowded();
    let moved_before = team.balancing().moved;
    let steps = team.even(Measure::Sessions, false).unwrap();
    assert!(steps.iter().all(|step| step.from == 0 && step.to != 0), "{steps:?}");
    assert_eq!((steps.len(), team.balancing().waiting), (13, 13));
    assert!(team.even(Measure::Sessions, false).unwrap_err().contains("already"));
    let (mut up, mut next, mut notices) = (Vec::new(), 0, Vec::new());
    while team.engine.has_moves() {
        for session in 10..30 {
            team.receive(usize::from(next % 3), N3, &from_user(session, address(session), next));
        }
        next += 1;
        up.extend(ports_up(&team.step(0, &mut notices).1));
    }
    team.settle();
    up.extend(ports_up(&team.sent(N6).concat()));
    let mut spread = team.spread();
    spread.sort_unstable();
    assert_eq!(spread, [6, 7, 7]);
    assert_eq!((up.len(), team.all_drops()), (20 * usize::from(next), 0));
    assert!((10..30).all(|session| team.usage(session)[0].uplink_packets == u64::from(next)));
    let told = team.balancing();
    assert_eq!((told.moved - moved_before, told.stayed, told.waiting), (13, 0, 0));
    let newest = &told.last[..13];
    assert!(
        newest.iter().all(|last| last.cause == MoveCause::Evening && last.stayed.is_none()),
        "{newest:?}"
    );
    assert!(steps.iter().all(|step| newest.iter().any(|last| last.session == step.session)));
    assert_eq!(told.last[13].cause, MoveCause::Asked);
    assert_eq!(team.even(Measure::Sessions, false), Ok(vec![]));
}

#[test]
fn what_would_move_can_be_asked_and_nothing_moves() {
    let mut team = crowded();
    let before = team.balancing();
    assert_eq!(team.even(Measure::Sessions, true).unwrap().len(), 13);
    // Nobody is busy: by that they are even.
    assert_eq!(team.even(Measure::Load, true), Ok(vec![]));
    let whose = Whose::Session(Seid(12));
    let ask = |worker, is_dry| Command::Locate { token: 4, whose, to: Some(Destination { worker, is_dry }) };
    let placed = |worker, came_from| {
        [Notice::Placed { token: 4, outcome: Ok(Placed { session: Seid(12), worker, came_from }) }]
    };
    assert_eq!(team.ask(ask(1, true)), placed(0, None));
    assert_eq!((team.spread(), team.balancing()), (vec![20, 0, 0], before));
    assert_eq!(team.ask(ask(1, false)), placed(1, Some(0)));
    assert_eq!(team.spread(), [19, 1, 0]);
    for (session, worker) in [(77, 1), (12, 3)] {
        let to = Some(Destination { worker, is_dry: true });
        let told = team.ask(Command::Locate { token: 4, whose: Whose::Session(Seid(session)), to });
        assert!(matches!(&told[..], [Notice::Placed { outcome: Err(_), .. }]), "{told:?}");
    }
}

/// It is said without a move, and by a move that is refused; the latter is remembered.
#[test]
fn a_session_that_cannot_go_says_why() {
    let mut team = sharing(2);
    let (from, to) = (team.owner(S) as u8, 1 - team.owner(S) as u8);
    for is_dry in [true, false] {
        let to = Some(Destination { worker: to, is_dry });
        let told = team.ask(Command::Locate { token: 4, whose: Whose::Session(Seid(S)), to });
        let [Notice::Placed { outcome: Err(reason), .. }] = &told[..] else { panic!("{told:?}") };
        assert!(reason.contains("shares a meter"), "{reason}");
    }
    let told = team.balancing();
    assert_eq!((told.moved, told.stayed, told.last.len()), (0, 1, 1));
    assert_eq!((told.last[0].from, told.last[0].to), (Some(from), to));
    assert_eq!(told.placed, Placements { address: 1, meter: 1, ..Placements::default() });
    // Nor is it chosen.
    assert_eq!(team.even(Measure::Sessions, false), Ok(vec![]));
}

/// Users are as many everywhere, and those of one worker have all the packets: some leave it, though it has no more of them.
#[test]
fn by_load_sessions_leave_the_worker_that_is_busy() {
    let mut team = Team::timed(&roomy(), &Crew { balance: Balance::Off, ..Crew::of(2) }, ticks);
    team.meet();
    (10..30).for_each(|session| team.put(session, 1, rules(session)));
    team.settle();
    let mine: Vec<u64> = (10..30).filter(|session| team.owner(*session) == 0).collect();
    for second in 1..20 {
        for turn in 0..20 {
            team.receive(0, N6, &down(mine[turn % mine.len()], 1));
            team.workers[0].turn(1);
        }
        team.workers[1].turn(1);
        team.engine.poll(1_000 * second);
        team.workers.iter_mut().for_each(|worker| _ = worker.turn(1));
        team.engine.poll(1_000 * second + 1);
    }
    let told = team.balancing();
    let [busy, idle] = told.workers[..] else { panic!("{told:?}") };
    assert!(busy.busy_permille > idle.busy_permille + 200, "{told:?}");
    assert_eq!((busy.packets_per_s.div_ceil(10), idle.packets_per_s), (2, 0), "{told:?}");
    let steps = team.even(Measure::Load, false).unwrap();
    assert!(!steps.is_empty() && steps.iter().all(|step| (step.from, step.to) == (0, 1)), "{steps:?}");
    team.settle();
    assert!(steps.iter().all(|step| team.owner(step.session.0) == 1));
}

#[test]
fn with_one_worker_there_is_nothing_to_move() {
    let mut team = with(1, S, rules(S));
    let told = team.balancing();
    assert_eq!((told.workers.len(), told.workers[0].sessions), (1, 1));
    assert!(team.even(Measure::Sessions, true).unwrap_err().contains("one worker"));
}
