//! What goes with a session: packets kept for its user, rates and quotas, numbers of connections, and what its flows are.

use super::*;
use rules::{FTeid, OuterHeaderCreation, Redirect, Teid};

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

/// Where a session came to, its packets wait for as long as where it was.
#[test]
fn extended_buffering_goes_along() {
    use crate::fixture::ASLEEP;
    let mut rules = asleep();
    let extended = rules::Extended { lasts_s: Some(600), ends_ms: 0, packets: None };
    let id = rules::BarId(1);
    rules.bars = vec![rules::Bar {
        id,
        notification_delay_50ms: 0,
        suggested_packets: None,
        extended: Some(extended),
    }];
    rules.fars[1].bar = Some(id);
    let mut team = with(2, ASLEEP, rules);
    team.receive(0, N6, &down(ASLEEP, 1));
    team.settle();
    let to = 1 - team.owner(ASLEEP);
    team.carry(ASLEEP, to);
    team.now_ns += 600_000_000_000;
    team.settle();
    assert_eq!(team.workers[to].books().held, 1);
    let desired = Desired { buffering_over: vec![id], ..Desired::new(Seid(ASLEEP), 2, asleep()) };
    team.ask(Command::Put(desired));
    team.settle();
    let reason = crate::counters::DropReason::BufferOver as usize;
    assert_eq!((team.workers[to].books().held, team.workers[to].counters().drops[reason]), (0, 1));
}

/// A rate is as far used up as it was, and so is a quota.
#[test]
fn rates_and_quotas_go_on_where_they_stood() {
    use crate::fixture::METERED;
    let [mut stayed, mut moved] =
        [2; 2].map(|workers| with_session(strict_team(workers), METERED, metered()));
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

/// Of a user who sends much more than its rate and is silent in between, as TCP is: the bytes that have passed after
/// each millisecond, where its session moves every so many of them.
fn passed_after_each_ms(qer: &rules::Qer, moves_every: Option<u64>) -> Vec<u64> {
    let mut rules = rules(S);
    rules.qers[0] = rules::Qer { id: rules.qers[0].id, ..qer.clone() };
    let mut team = with(2, S, rules);
    let mut passed = vec![0];
    for ms in 0..2_000 {
        team.now_ns += 1_000_000;
        if moves_every.is_some_and(|every| ms % every == every - 1) {
            team.carry(S, 1 - team.owner(S));
        }
        if ms % 500 < 300 {
            (0..8).for_each(|port| team.receive(0, N3, &from_user(S, address(S), port)));
        }
        let left = (0..3).map(|turn| team.step(turn, &mut Vec::new()).1.len() as u64).sum::<u64>();
        passed.push(passed[ms as usize] + 28 * left);
    }
    passed
}

/// It has its second's worth, and not a packet more or less, wherever and however often its session goes.
#[test]
fn the_last_second_of_a_rate_goes_along() {
    let rate = BitRates { uplink_kbps: 400, downlink_kbps: 400 };
    let plain = rules::Qer { mbr: Some(rate), ..rules(S).qers.remove(0) };
    let uplink = Some(rules::PacketRate { packets: 60_000, window_s: 60 });
    let packet_rates = rules::PacketRates { uplink, downlink: None };
    let apart = rules::Qer { packet_rates, ..plain.clone() };
    for qer in [plain, apart] {
        let stayed = passed_after_each_ms(&qer, None);
        // What one was silent for is caught up.
        let in_second = |from: usize| stayed[from + 1_000] - stayed[from];
        let most = (500..1_000).map(in_second).max().unwrap();
        assert!((45_000..=50_100).contains(&most), "{most}");
        for every in [100, 333, 700] {
            assert!(stayed == passed_after_each_ms(&qer, Some(every)), "moved every {every} ms");
        }
    }
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

/// What a flow that goes to another address comes back from is known wherever its session is.
#[test]
fn flows_that_go_to_another_address_go_along() {
    use crate::fixture::{ELSEWHERE, readdressed};
    use crate::tests::readdress::{address, down, up};
    let mut team = with(2, S, readdressed(S));
    let (server, elsewhere) = (Ipv4Addr::new(203, 0, 113, 80), ELSEWHERE.parse().unwrap());
    team.receive(0, N3, &up(S, 4_000, server));
    team.settle();
    assert_eq!(address(&team.sent(N6).concat()[0], 16), elsewhere);
    for _ in 0..2 {
        team.carry(S, 1 - team.owner(S));
        team.receive(0, N6, &down(S, 4_000, elsewhere));
        team.settle();
        assert_eq!(address(&team.sent(N3).concat()[0], 12), server);
    }
}

fn with_content(team: &mut Team) {
    let rules = "id=1 precedence=1 rating-group=1 application=blocked host=.blocked.example";
    let classifier = dpi::rule_file::read_lines(rules).unwrap().compile().unwrap();
    team.engine.load(ContentRules::new(1, classifier, None).unwrap());
    team.settle();
}

/// What is blocked has a count of its own, and is let through, or there were nothing to count.
fn counted() -> Rules {
    let mut rules = crate::fixture::served();
    rules.urrs = (1..=2).map(|id| Urr { id: UrrId(id), ..Urr::default() }).collect();
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(if pdr.id.0 == 3 { 2 } else { 1 })].into());
    rules.fars[2].apply_action = ApplyAction::Forward;
    rules
}

/// Of what a flow is, its first packets said; what it used before anybody knew is counted.
#[test]
fn what_was_found_out_about_flows_goes_along() {
    const BLOCKED: &[u8] = b"GET / HTTP/1.1\r\nHost: www.blocked.example\r\n\r\n";
    let rules = counted();
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

/// Of a connection with several requests, what the last one was for goes along, and the next one counts where the session is then.
#[test]
fn requests_of_a_connection_count_wherever_its_session_is() {
    let mut team = with(2, SERVED, counted());
    with_content(&mut team);
    let (flow, mut number, mut expected) = (flow(SERVED), USER_FIRST, [0; 2]);
    let mut say = |team: &mut Team, payload: &[u8], urr: usize| {
        let segment = made(flag::ACK, (number, SERVER_FIRST), payload);
        team.receive(0, N3, &up(SERVED, &flow, &segment));
        team.settle();
        number += payload.len() as u32;
        expected[urr - 1] += 40 + payload.len() as u64;
        let counts = team.usage(SERVED);
        let of = |urr| counts.iter().find(|counts| counts.urr == UrrId(urr)).unwrap().uplink_bytes;
        assert_eq!([of(1), of(2)], expected);
    };
    for (host, urr) in
        [("www.example", 1), ("www.blocked.example", 2), ("a.blocked.example", 2), ("www.example", 1)]
    {
        say(&mut team, format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes(), urr);
        team.carry(SERVED, 1 - team.owner(SERVED));
        say(&mut team, b"the rest", urr);
    }
}

/// What a flow was where its session has been before says nothing of the connection that has begun between its ports since.
#[test]
fn a_connection_that_begins_anew_elsewhere_is_not_what_it_was_here() {
    let mut team = with(2, SERVED, counted());
    with_content(&mut team);
    let (flow, again) = (flow(SERVED), (USER_FIRST + 70_000, SERVER_FIRST + 70_000));
    let say = |team: &mut Team, flags, numbers, payload: &[u8]| {
        team.receive(0, N3, &up(SERVED, &flow, &made(flags, numbers, payload)));
        team.settle();
        40 + payload.len() as u64
    };
    let hello = |host| crate::tests::hello::hello(host, false);
    let blocked = say(&mut team, flag::SYN, (USER_FIRST - 1, 0), b"")
        + say(&mut team, flag::ACK, (USER_FIRST, SERVER_FIRST), &hello("www.blocked.example"));
    team.carry(SERVED, 1 - team.owner(SERVED));
    let mut other = say(&mut team, flag::SYN, (again.0 - 1, 0), b"");
    team.receive(
        0,
        N6,
        &crate::tests::redirect::down(&flow, &made(flag::SYN | flag::ACK, (again.1 - 1, again.0), b"")),
    );
    team.settle();
    team.carry(SERVED, 1 - team.owner(SERVED));
    other += say(&mut team, flag::ACK, again, &hello("www.example"));
    let counts = team.usage(SERVED);
    let of = |urr| counts.iter().find(|counts| counts.urr == UrrId(urr)).unwrap().uplink_bytes;
    assert_eq!((of(1), of(2)), (other, blocked));
}

/// Between tunnels of this node, its only PDR to the network leads back to us, but for the portal.
fn captive_between_tunnels() -> Rules {
    let mut rules = rules(S);
    rules.pdrs.iter_mut().for_each(|pdr| (pdr.pdi.ue_ipv4, pdr.outer_header_removal) = (None, true));
    rules.pdrs[1].pdi.f_teid = Some(FTeid { teid: Teid(0x381), address: Ipv4Addr::new(10, 50, 0, 2).into() });
    let back = OuterHeaderCreation::gtpu(Teid(0x999), Ipv4Addr::new(10, 30, 0, 2).into());
    rules.fars[0].forwarding.as_mut().unwrap().outer_header_creation = Some(back);
    rules.fars[0].redirect = Redirect::new(crate::fixture::PORTAL);
    rules
}

/// By the number with which it began, wherever that was said: no server hears of it.
#[test]
fn a_connection_with_the_portal_goes_on_where_its_session_goes() {
    let mut team = Team::over(&Config { seed: 7, ..roomy() }, &Crew::of(2));
    team.meet();
    team.put(S, 1, captive_between_tunnels());
    team.settle();
    // Its place is another one there.
    (10..16).for_each(|session| team.put(session, 1, rules(session)));
    team.settle();
    let flow = flow(S);
    team.receive(0, N3, &up(S, &flow, &made(flag::SYN, (USER_FIRST, 0), b"")));
    team.settle();
    let answer = team.sent(N3).concat().remove(0);
    let header = &answer[answer.len() - 20..];
    let number = u32::from_be_bytes(*header[4..].first_chunk().unwrap());
    let to = 1 - team.owner(S);
    team.carry(S, to);
    let says = made(flag::ACK, (USER_FIRST + 1, number.wrapping_add(1)), b"GET / HTTP/1.1\r\n\r\n");
    team.receive(0, N3, &up(S, &flow, &says));
    team.settle();
    let sent = team.sent(N3).concat();
    assert!(sent.len() == 1 && sent[0].windows(4).any(|part| part == b" 302"), "{sent:02x?}");
    let copies: u64 = team.workers.iter().map(|worker| worker.books().created).sum();
    assert_eq!(copies, 0, "nothing for the server");
}

/// Time without packets does not count, wherever the next one comes, whenever its session has moved (TS 29.244 5.2.2.2).
#[test]
fn time_with_traffic_goes_along() {
    const TENTH_NS: u64 = 100_000_000;
    let methods = rules::Methods { duration: true, ..rules::Methods::default() };
    let urr = Urr { id: UrrId(1), methods, inactivity_detection_time_s: Some(2), ..Urr::default() };
    let mut rules = rules(S);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![urr.id].into());
    rules.urrs = vec![urr];
    for moved_after in [0, 5, 15, 25, 39] {
        let mut team = with(2, S, rules.clone());
        for _ in 0..6 {
            team.receive(0, N6, &down(S, 1));
            team.settle();
            team.now_ns += moved_after * TENTH_NS;
            team.carry(S, 1 - team.owner(S));
            team.now_ns += (40 - moved_after) * TENTH_NS;
        }
        let active_ms = team.usage(S)[0].active_ms.unwrap();
        assert!(active_ms.abs_diff(12_000) <= 20, "{active_ms} ms, moved after {moved_after} tenths");
    }
}
