//! Which sessions move, and which stay.

use super::*;

#[test]
fn some_sessions_stay_where_they_are() {
    let mut team = sharing(3);
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
    assert!(team.engine.want(Wish::asked(1), Seid(S), 3).is_err());
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
pub(super) fn ticks() -> u64 {
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
    let to = |worker| Destination { worker, is_dry: false };
    let ask = |ue: Ipv4Addr, worker: Option<u8>| Command::Locate {
        token: 4,
        whose: Whose::User(ue.into(), instance),
        to: worker.map(to),
    };
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
    // Users of other networks may have the same address.
    let whose = Whose::User(address(S).into(), Instance::of("ims"));
    let told = team.ask(Command::Locate { token: 4, whose, to: None });
    let outcome = Err("no session has the address 10.60.0.5".to_owned());
    assert_eq!(told, [Notice::Placed { token: 4, outcome }]);
}
