//! Whose a session is, and what several of them share.

use super::*;

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
        to.header = rules::OuterHeader::Gtpu(rules::Teid(0x9000 + u32::from(at)));
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
