//! Whoever is not associated costs nothing that lasts.

use crate::common::{Lab, OTHER, SMF, smf};
use pfcp::*;
use std::time::Duration;

/// A second of a stranger's requests is ten lines, one of which sums up those of the second before, however many come.
#[test]
fn strangers_fill_no_log() {
    let mut lab = Lab::associated();
    let said = |lab: &Lab| lab.notes.iter().filter(|note| note.contains("refused")).count();
    for second in 1..=3 {
        for sequence in 0..1_000 {
            lab.ask(OTHER, &Message::session(0, sequence, smf::establishment(u64::from(sequence))));
        }
        assert_eq!(said(&lab), second * 10);
        lab.pass(Duration::from_secs(1));
        assert_eq!(said(&lab), second * 10 + 1);
        let untold = if second == 1 { 990 } else { 991 };
        let sum = format!("{untold} more requests of peers that are not associated were refused");
        assert_eq!(lab.notes.last(), Some(&sum));
    }
    assert_eq!(lab.node.counters().refused, 3_000);
    // What is said of those who are associated is not kept back.
    for sequence in 0..30 {
        let nothing = SessionModificationRequest::default();
        lab.ask(SMF, &Message::session(99, 5_000 + sequence, nothing));
    }
    assert_eq!(said(&lab), 61);
}
