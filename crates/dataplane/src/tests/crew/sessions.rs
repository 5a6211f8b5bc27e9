//! Whose a session is, and what several of them share.

use super::*;
use rules::{BitRates, Qer, QerId};

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

/// Has rules take more room than a worker has left.
fn overload(rules: &mut Rules) {
    for at in 0..400 {
        let mut pdr = rules.pdrs[1].clone();
        let mut far = rules.fars.iter().find(|far| far.id == pdr.far).unwrap().clone();
        far.id = rules::FarId(100 + u32::from(at));
        let to = far.forwarding.as_mut().unwrap().outer_header_creation.as_mut().unwrap();
        to.header = rules::OuterHeader::Gtpu(rules::Teid(0x9000 + u32::from(at)));
        (pdr.id, pdr.precedence, pdr.far) = (rules::PdrId(100 + at), u32::from(at) + 300, far.id);
        rules.pdrs.push(pdr);
        rules.fars.push(far);
    }
}

/// A change that the session's worker refuses leaves the session what it had, and others what the change wanted; until it is
/// known, both are the session's.
#[test]
fn a_change_that_is_refused_claims_nothing() {
    let mut team = Team::of(2, 4);
    let mut too_large = rules(1);
    too_large.pdrs[0].pdi.f_teid = rules(40).pdrs[0].pdi.f_teid;
    too_large.pdrs[1].pdi.ue_ipv4 = rules(40).pdrs[1].pdi.ue_ipv4;
    overload(&mut too_large);
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

fn limited(session: u64, correlations: &[u64]) -> Rules {
    let mut rules = rules(session);
    let qer = |number: &u64| Qer {
        id: QerId(*number as u32),
        mbr: Some(BitRates { uplink_kbps: 1_000, downlink_kbps: 1_000 }),
        correlation: Some(*number),
        ..rules.qers[0].clone()
    };
    rules.qers = correlations.iter().map(qer).collect();
    let ids: Vec<QerId> = rules.qers.iter().map(|qer| qer.id).collect();
    rules.pdrs.iter_mut().for_each(|pdr| pdr.qers = ids.clone().into());
    rules
}

/// Two workers would meter twice the rate.
#[test]
fn a_session_that_comes_to_share_a_meter_comes_to_its_worker() {
    let mut team = Team::of(4, 0);
    (1..=16)
        .for_each(|session| team.put(session, 1, limited(session, if session == 1 { &[7] } else { &[] })));
    team.settle();
    let (one, other) = team.strangers();
    team.put(one, 2, limited(one, &[7]));
    team.put(other, 2, limited(other, &[7]));
    assert!(team.settle().contains(&applied(other, 2)));
    assert_eq!(team.owner(other), team.owner(1));
    assert_eq!(team.owner(one), team.owner(1));
    // As soon as it is told to be something else, that is what it becomes.
    let third = (2..=16).find(|session| team.owner(*session) != team.owner(1)).unwrap();
    let from = team.owner(third);
    team.put(third, 2, limited(third, &[7]));
    team.put(third, 3, limited(third, &[8]));
    let told = team.settle();
    assert_eq!((told, team.owner(third)), (vec![applied(third, 3)], from));
}

/// One that shares a meter where it is stays with it, and meters that are with different workers have no place for both.
#[test]
fn a_session_whose_meters_are_apart_is_refused_and_stays_as_it_was() {
    let mut team = Team::of(4, 0);
    (1..=16).for_each(|session| team.put(session, 1, limited(session, &[])));
    team.settle();
    let (one, other) = team.strangers();
    team.put(one, 2, limited(one, &[7]));
    team.put(other, 2, limited(other, &[8]));
    assert_eq!(team.settle().len(), 2);
    let with_one = (1..=16).find(|it| *it != one && team.owner(*it) == team.owner(one)).unwrap();
    let refused = team.refused(with_one, limited(with_one, &[7, 8]));
    assert!(refused.contains("different workers"), "{refused}");
    team.put(with_one, 4, limited(with_one, &[7]));
    assert_eq!(team.settle(), [applied(with_one, 4)]);
    let refused = team.refused(with_one, limited(with_one, &[8]));
    assert!(refused.contains("meter"), "{refused}");
    assert_eq!(team.owner(with_one), team.owner(one));
}

/// Until it is known that a change is made, a meter is where the session is that may keep it: two workers would meter twice the rate.
#[test]
fn a_meter_that_a_refused_change_would_give_up_stays_where_it_is() {
    let mut team = Team::of(4, 0);
    (1..=16)
        .for_each(|session| team.put(session, 1, limited(session, if session == 1 { &[7] } else { &[] })));
    team.settle();
    let (one, other) = team.strangers();
    let mut too_large = limited(one, &[]);
    overload(&mut too_large);
    team.put(one, 2, too_large);
    team.put(other, 2, limited(other, &[7]));
    let told = team.settle();
    let is_refused =
        |notice: &Notice| matches!(notice, Notice::Refused { session: Seid(1), revision: 2, .. });
    assert!(told.iter().any(is_refused) && told.contains(&applied(other, 2)), "{told:?}");
    assert_eq!(team.owner(other), team.owner(one));
    // Where nobody has it any more it is free.
    team.put(one, 3, limited(one, &[]));
    team.put(other, 3, limited(other, &[]));
    team.settle();
    let third = (2..=16).find(|session| team.owner(*session) != team.owner(one)).unwrap();
    let at = team.owner(third);
    team.put(third, 2, limited(third, &[7]));
    assert_eq!((team.settle(), team.owner(third)), (vec![applied(third, 2)], at));
}

/// A session that gives up one of two meters that it alone has, and is refused, may still go where another is.
#[test]
fn a_session_that_has_a_meter_before_and_after_a_change_shares_it_with_nobody() {
    let mut team = Team::of(4, 0);
    (1..=16)
        .for_each(|session| team.put(session, 1, limited(session, if session == 1 { &[7, 8] } else { &[] })));
    team.settle();
    let (one, other) = team.strangers();
    team.put(other, 2, limited(other, &[9]));
    team.settle();
    let mut too_large = limited(one, &[7]);
    overload(&mut too_large);
    team.put(one, 2, too_large);
    team.put(one, 3, limited(one, &[7, 9]));
    let told = team.settle();
    assert!(told.contains(&applied(one, 3)), "{told:?}");
    assert_eq!(team.owner(one), team.owner(other));
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
            spi: None,
            flow_label: 0,
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
