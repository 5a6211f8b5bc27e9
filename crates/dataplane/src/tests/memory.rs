//! What sessions and flows take of memory is what ARCHITECTURE.md says.

use crate::engine::{Heaps, Register};
use crate::fixture::{Bench, config, rules};
use crate::install::installation;
use crate::state::Sessions;
use crate::{Config, Crew, Limits, TableBytes, flow_table_bytes};
use dplink::{Command, Desired, Notice, RefusalCause};
use rules::{Pdr, PdrId, Rules, Seid};

const SAID: &str = include_str!("../../../../ARCHITECTURE.md");
/// So many that what tables have besides does not show.
const MANY: usize = 1_000_000;

fn is_said(what: &str, bytes: f64) {
    let row = format!("| {what} | {bytes:.1} |");
    assert!(SAID.contains(&row), "ARCHITECTURE.md lacks this row: {row}");
}

#[test]
fn a_session_takes_what_is_said() {
    let engine = ("what the engine knows of it", Register::bytes(MANY));
    let all = Sessions::tables(MANY).into_iter().chain([engine]);
    let mut sum = 0.0;
    for (what, bytes) in all {
        let each = bytes as f64 / MANY as f64;
        is_said(what, each);
        sum += each;
    }
    is_said("an idle session", sum);
    assert!(sum < 512.0);
}

#[test]
fn a_flow_takes_what_is_said() {
    let bytes = flow_table_bytes(MANY) as f64 / MANY as f64;
    is_said("a flow of TCP or UDP over IPv4, of a table filled as far as it was made for", bytes);
    is_said("any other flow there", 2.0 * bytes);
}

/// What is reckoned is what is said of one session, and further workers know all keys.
#[test]
fn tables_of_a_crew_are_reckoned_whole() {
    let limits = Limits { sessions: MANY, pdrs: 4 * MANY, flows: MANY, ..Limits::default() };
    let alone = TableBytes::of(&Crew::default(), &limits);
    assert_eq!(alone.sessions / MANY as u64, 408);
    assert_eq!(alone.flows, flow_table_bytes(MANY) as u64);
    // A cell more a session, and whose it is; lists of both, and where they are free; a place of a session that is free, and a network instance.
    assert_eq!(alone.pdrs / MANY as u64, 148 + 2 * (72 + 12) + 4 + 2);
    let two = TableBytes::of(&Crew::of(2), &limits);
    assert!(two.sessions > alone.sessions + 85 * MANY as u64 && two.pdrs > alone.pdrs, "{two:?}");
    let plain = TableBytes::of(&Crew::default(), &Limits { pdrs: 2 * MANY, ..limits });
    assert_eq!((plain.sessions, plain.pdrs / MANY as u64), (alone.sessions, 72 + 12 + 4 + 2));
    let limited = TableBytes::of(&Crew::of(2), &Limits { rule_bytes: Some(7), ..limits });
    let known = Heaps::bytes(MANY) as u64;
    assert_eq!((plain.rules, limited.rules), (0, 7 + known), "for all workers together");
}

/// With ten PDRs more, for which there is no place in the session's own.
fn long(session: u64) -> Rules {
    let mut rules = rules(session);
    let more = (10..20).map(|id| Pdr { id: PdrId(id), precedence: 9, ..rules.pdrs[1].clone() });
    let more: Vec<Pdr> = more.collect();
    rules.pdrs.extend(more);
    rules
}

/// Control planes differ in which direction's PDR comes first.
#[test]
fn a_plain_session_takes_nothing_beside_the_tables_whichever_direction_is_tried_first() {
    for precedence in [[1, 2], [2, 1]] {
        let mut rules = rules(1);
        assert_eq!(rules.pdrs.len(), 2);
        rules.pdrs.iter_mut().zip(precedence).for_each(|(pdr, precedence)| pdr.precedence = precedence);
        let installation = installation((&config().ports, &[]), Desired::new(Seid(1), 1, rules), 0).unwrap();
        assert_eq!(installation.heap_bytes(), 0);
        let to_tunnel: Vec<bool> = installation.peers.iter().map(Option::is_some).collect();
        assert_eq!(to_tunnel, [false, true], "each in its lane");
    }
}

/// What was reckoned at the start is all that rules take; who has gone or has become shorter leaves room for others.
#[test]
fn rules_take_no_more_memory_than_they_may() {
    let one =
        installation((&config().ports, &[]), Desired::new(Seid(1), 1, long(1)), 0).unwrap().heap_bytes();
    let limits = Limits { rule_bytes: Some(2 * one + one / 2), pdrs: 256, ..config().limits };
    let mut bench = Bench::over(&Config { limits, ..config() });
    let put = |bench: &mut Bench, session, revision, rules| {
        let told = bench.put(session, revision, rules).into_iter().chain(bench.settle()).next();
        match told {
            Some(Notice::Applied { .. }) => true,
            Some(Notice::Refused { cause: RefusalCause::Full, .. }) => false,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([1, 2, 3].map(|session| put(&mut bench, session, 1, long(session))), [true, true, false]);
    assert!(put(&mut bench, 3, 1, rules(3)), "plain ones take nothing");
    assert!(!put(&mut bench, 3, 2, long(3)));
    bench.engine.handle(Command::Delete { session: Seid(1) }).unwrap();
    bench.settle();
    assert!(put(&mut bench, 3, 3, long(3)) && !put(&mut bench, 4, 1, long(4)));
    assert!(put(&mut bench, 2, 2, rules(2)) && put(&mut bench, 4, 2, long(4)));
}
