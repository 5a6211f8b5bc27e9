//! What is said of requests that are refused as the database takes nothing.

use crate::common::{Lab, SMF, smf};
use pfcp::Message;
use std::time::Duration;

/// So many a second, for so many seconds.
fn refused(lab: &mut Lab, (per_second, seconds): (u32, u32), first: u32) {
    for sequence in 0..per_second * seconds {
        let establishment = smf::establishment(u64::from(first + sequence));
        lab.ask(SMF, &Message::session(0, first + sequence, establishment));
        if (sequence + 1) % per_second == 0 {
            lab.pass(Duration::from_secs(1));
        }
    }
}

#[test]
fn a_full_disk_fills_no_log_with_what_is_refused_for_it() {
    let mut lab = Lab::associated();
    lab.notes.clear();
    lab.node.set_keeping(false);
    refused(&mut lab, (100, 25), 1);
    let [first, tenth, twentieth] = &lab.notes[..] else { panic!("{:?}", lab.notes) };
    assert!(first.contains("is refused Establishment: the session database takes nothing"), "{first}");
    for (line, untold) in [(tenth, 999), (twentieth, 1_000)] {
        assert_eq!(*line, format!("{untold} more requests were refused: the session database takes nothing"));
    }
    assert_eq!(lab.node.counters().refused, 2_500);
    lab.node.set_keeping(true);
    lab.pass(Duration::from_secs(60));
    let over = "2500 requests were refused while the session database took nothing; it does again";
    assert_eq!(lab.notes[3..], [over]);
    // The next time it is said again, and of one request no more than that.
    lab.node.set_keeping(false);
    refused(&mut lab, (1, 1), 3_000);
    lab.pass(Duration::from_secs(60));
    assert_eq!(lab.notes.len(), 5);
}
