//! Who asked for the end of a set, or for its move, leaves before that is done: others of its SMF set have sessions in it, too.

use crate::common::{Lab, OTHER, Obedience, SMF, config};
use crate::ending::{NUMBER, PORTION, SESSIONS, answers, delete_set, establishes};
use crate::ending_amid::{MEANWHILE, go_on, is_released, release};
use crate::ending_moves::{HEIR, moved};
use crate::sets::associate_of_set;
use n4::{Config, Limits};
use pfcp::*;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Sessions of who asks.
const OWN: u64 = 5;

/// Two control planes of an SMF set, both with sessions of one set; one has few.
fn lab_of_two() -> Lab {
    let limits = Limits { portion: PORTION, ..Limits::default() };
    let mut lab = Lab::new(Config { limits, ..config() });
    [SMF, OTHER].into_iter().for_each(|peer| associate_of_set(&mut lab, peer, &[]));
    for number in 1..=SESSIONS {
        establishes_in_set(&mut lab, if number <= OWN { SMF } else { OTHER }, number);
    }
    lab.sent.clear();
    lab
}

/// Every second name is of the set.
fn establishes_in_set(lab: &mut Lab, owner: Ipv4Addr, number: u64) {
    assert_eq!(establishes(lab, owner, 2 * number), Cause::RequestAccepted);
}

/// It has left, and most of the set is still there.
fn asks_and_leaves(lab: &mut Lab) {
    lab.obedience = Obedience::Waits;
    delete_set(lab, NUMBER, 0);
    release(lab, MEANWHILE);
    assert!(is_released(&answers(lab, MEANWHILE)));
    assert!(lab.associations.keys().eq(["10.40.0.8"]));
    assert_eq!(lab.node.sessions(), SESSIONS as usize - PORTION);
}

#[test]
fn a_set_ends_whole_though_who_asked_has_left() {
    let mut lab = lab_of_two();
    asks_and_leaves(&mut lab);
    go_on(&mut lab);
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.saved.len()), (0, 0, 0));
    let [Body::SessionSetDeletionResponse(response)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert!(lab.associations["10.40.0.8"].ending_sets.is_empty(), "done is done");
}

#[test]
fn the_next_process_goes_on_with_it() {
    let mut lab = lab_of_two();
    asks_and_leaves(&mut lab);
    lab.orders.clear();
    lab.restart();
    go_on(&mut lab);
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.saved.len()), (0, 0, 0));
}

/// One of the set after the other leaves.
#[test]
fn what_ends_is_that_of_who_is_left() {
    let third = Ipv4Addr::new(10, 40, 0, 10);
    let mut lab = lab_of_two();
    associate_of_set(&mut lab, third, &[]);
    establishes_in_set(&mut lab, third, SESSIONS + 1);
    lab.obedience = Obedience::Waits;
    delete_set(&mut lab, NUMBER, 0);
    [(SMF, 1), (third, 2)].into_iter().for_each(|(peer, sequence)| {
        let release = AssociationReleaseRequest { node_id: NodeId::Ipv4(peer), carried: vec![] };
        lab.tell(peer, &Message::node(sequence, release));
    });
    go_on(&mut lab);
    assert_eq!((lab.node.sessions(), lab.associations.len()), (0, 1));
}

#[test]
fn sessions_move_though_who_asked_has_left() {
    let mut lab = lab_of_two();
    let change = SessionChangeInfo {
        fq_csids: vec![],
        group_ids: vec![],
        cp_ip_addresses: vec![CpIpAddress::new(OTHER.into())],
        alternative: CpIpAddress::new(HEIR.into()),
        carried: vec![],
    };
    let (node_id, changes) = (NodeId::Ipv4(SMF), vec![change]);
    let moves = SessionSetModificationRequest { node_id, changes, carried: vec![] };
    lab.tell(SMF, &Message::node(NUMBER, moves));
    release(&mut lab, MEANWHILE);
    assert!(is_released(&answers(&mut lab, MEANWHILE)));
    lab.pass(Duration::ZERO);
    assert_eq!((lab.node.sessions(), moved(&lab)), ((SESSIONS - OWN) as usize, (SESSIONS - OWN) as usize));
    assert_eq!(answers(&mut lab, NUMBER).len(), 1);
}
