//! What outlives the process while very many sessions end by portions.

use crate::common::{Obedience, SMF};
use crate::ending::{NUMBER, SESSIONS, delete_set, establishes, lab};
use crate::ending_amid::{OVERDUE, comes_back, giving_up, go_on, release};
use pfcp::*;

#[test]
fn who_has_left_has_left_after_a_restart_too() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    release(&mut lab, NUMBER);
    lab.orders.clear();
    lab.restart();
    lab.sent.clear();
    go_on(&mut lab);
    let is_heartbeat = |sent: &Message| sent.body.message_type() == 1;
    assert!(lab.sent.iter().all(|(_, sent)| is_heartbeat(sent)), "there is nothing to say: {:?}", lab.sent);
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.saved.len()), (0, 0, 0));
    assert!(lab.associations.keys().eq(["10.40.0.8"]));
}

#[test]
fn who_was_given_up_is_gone_after_a_restart_too() {
    let mut lab = giving_up();
    lab.orders.clear();
    lab.restart();
    go_on(&mut lab);
    assert_eq!((lab.node.sessions(), lab.associations.len()), (0, 1));
}

#[test]
fn who_left_before_a_restart_may_come_back_after_it() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    release(&mut lab, NUMBER);
    lab.orders.clear();
    lab.restart();
    comes_back(lab);
}

#[test]
fn a_set_that_ends_goes_on_to_after_a_restart() {
    let mut lab = lab();
    lab.obedience = Obedience::Waits;
    delete_set(&mut lab, NUMBER, 0);
    lab.orders.clear();
    lab.restart();
    go_on(&mut lab);
    let others = SESSIONS as usize / 2 + 1;
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.saved.len()), (others, others, others));
    assert_eq!(establishes(&mut lab, SMF, 100), Cause::RequestAccepted, "of the same set");
    lab.restart();
    lab.pass(OVERDUE);
    assert_eq!((lab.node.sessions(), lab.associations.len()), (others + 1, 2), "done is done");
}
