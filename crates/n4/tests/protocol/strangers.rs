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
}

/// A modification of a session that is not there, and how often the log has that.
fn unknown(lab: &mut Lab, sequence: u32) -> usize {
    lab.ask(SMF, &Message::session(99, sequence, SessionModificationRequest::default()));
    lab.notes.iter().filter(|note| note.contains("is refused Modification")).count()
}

/// Each request that is refused now and then is in the log, and at once.
#[test]
fn single_refusals_are_all_told_of() {
    let mut lab = Lab::associated();
    for sequence in 1..=100 {
        assert_eq!(unknown(&mut lab, sequence), sequence as usize);
        lab.pass(Duration::from_secs(1));
    }
}

/// Whoever is associated, or has the address of one who is, fills no log either; what else goes wrong meanwhile is told of.
#[test]
fn a_control_plane_that_is_refused_in_a_loop_fills_no_log() {
    let mut lab = Lab::associated();
    let last = (1..=5_000).map(|sequence| unknown(&mut lab, sequence)).last();
    assert_eq!(last, Some(20));
    let nothing = Message::session(99, 6_000, SessionDeletionRequest::default());
    lab.ask(SMF, &nothing);
    assert!(lab.notes.last().is_some_and(|note| note.contains("is refused Deletion")), "another kind");
    lab.pass(Duration::from_secs(10));
    let sum = format!("4980 more times {SMF} was refused Modification: SessionContextNotFound (65)");
    assert_eq!(lab.notes.last(), Some(&sum));
    assert_eq!(lab.node.counters().refused, 5_001);
    lab.pass(Duration::from_secs(60));
    assert_eq!(lab.notes.last(), Some(&sum), "nothing came");
    assert_eq!(unknown(&mut lab, 7_000), 21, "the first of the next while");
}
