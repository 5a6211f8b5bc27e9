//! What sessions and flows take of memory is what ARCHITECTURE.md says.

use crate::engine::Register;
use crate::state::Sessions;
use crate::{Crew, Limits, TableBytes, flow_table_bytes};

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
    is_said(
        "a flow, of a table filled as far as it was made for",
        flow_table_bytes(MANY) as f64 / MANY as f64,
    );
}

/// What is reckoned is what is said of one session, and further workers know all keys.
#[test]
fn tables_of_a_crew_are_reckoned_whole() {
    let limits = Limits { sessions: MANY, pdrs: 4 * MANY, flows: MANY, ..Limits::default() };
    let alone = TableBytes::of(&Crew::default(), &limits);
    assert_eq!(alone.sessions / MANY as u64, 388);
    assert_eq!(alone.flows, flow_table_bytes(MANY) as u64);
    // A cell more a session, with its lists, names and limits.
    assert_eq!(alone.pdrs / MANY as u64, 128 + 72 + 48 + 96);
    let two = TableBytes::of(&Crew::of(2), &limits);
    assert!(two.sessions > alone.sessions + 85 * MANY as u64 && two.pdrs > alone.pdrs, "{two:?}");
    let plain = TableBytes::of(&Crew::default(), &Limits { pdrs: 2 * MANY, ..limits });
    assert_eq!((plain.sessions, plain.pdrs), (alone.sessions, 0));
}
