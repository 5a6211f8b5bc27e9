//! What sessions and flows take of memory is what ARCHITECTURE.md says.

use crate::engine::Register;
use crate::flow_table_bytes;
use crate::state::Sessions;

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
