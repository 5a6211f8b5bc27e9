//! Sessions that end together, of which some have something else under way: another one takes their place, or they are deleted.

use crate::common::{Lab, OTHER, Obedience, SMF, config};
use crate::ending::{NUMBER, PORTION, SESSIONS, answers, delete_set, is_set_up, lab, request};
use crate::ending_amid::{
    MEANWHILE, delete, delete_untold, go_on, is_released, metered_lab, obey_by_portions, of_portions,
    release, used,
};
use crate::retained::retaining;
use n4::{Config, Limits};
use pfcp::*;
use rules::Seid;

/// Of an establishment that is under way.
const UNDER_WAY: u32 = 0xCCCC;

fn tell_establishment(lab: &mut Lab, cp_seid: u64) {
    lab.tell(SMF, &Message::session(0, UNDER_WAY, request(SMF, cp_seid)));
}

/// Whose name is given again, and is then deleted by the node's name for it.
fn replaced_and_deleted(portion: usize) -> Lab {
    let limits = Limits { portion, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    let session = lab.establish(request(SMF, 1));
    lab.sent.clear();
    lab.obedience = Obedience::Waits;
    tell_establishment(&mut lab, 1);
    delete(&mut lab, session);
    lab
}

/// Of one portion, and of several.
#[test]
fn who_leaves_has_left_though_what_it_deleted_gave_way_to_another() {
    for portion in [PORTION, 1] {
        let mut lab = replaced_and_deleted(portion);
        release(&mut lab, NUMBER);
        (0..3).for_each(|_| go_on(&mut lab));
        assert!(is_released(&answers(&mut lab, NUMBER)), "{portion}");
        assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.associations.len()), (0, 0, 0));
        assert_eq!((answers(&mut lab, MEANWHILE).len(), answers(&mut lab, UNDER_WAY).len()), (1, 1));
    }
}

#[test]
fn a_set_is_gone_though_what_was_deleted_of_it_gave_way_to_another() {
    for portion in [PORTION, 1] {
        let mut lab = replaced_and_deleted(portion);
        delete_set(&mut lab, NUMBER, 1);
        (0..3).for_each(|_| go_on(&mut lab));
        let [Body::SessionSetDeletionResponse(response)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
        assert_eq!((response.cause, lab.node.sessions()), (Cause::RequestAccepted, 0));
        assert!(lab.associations.values().all(|association| association.ending_sets.is_empty()));
    }
}

/// Not as if it had named a session: it knows none yet, and 65 is for who does (TS 29.244 8.2.1).
#[test]
fn who_is_establishing_is_told_why_there_is_no_session() {
    type End = fn(&mut Lab);
    let ends: [(End, Cause); 2] = [
        (|lab| release(lab, NUMBER), Cause::NoEstablishedPfcpAssociation),
        (|lab| delete_set(lab, NUMBER, 1), Cause::RequestRejected),
    ];
    for (end, cause) in ends {
        let mut lab = Lab::associated();
        lab.sent.clear();
        lab.obedience = Obedience::Waits;
        tell_establishment(&mut lab, 1);
        end(&mut lab);
        go_on(&mut lab);
        let [Body::SessionEstablishmentResponse(response)] = &answers(&mut lab, UNDER_WAY)[..] else {
            panic!()
        };
        assert_eq!(response.cause, cause);
        assert_eq!(answers(&mut lab, NUMBER).len(), 1);
    }
}

/// Nothing is retained: all end, but who asked for a deletion waits for what was used.
fn retaining_none(lab: &mut Lab, stamp: u32) {
    lab.tell(SMF, &Message::node(NUMBER, retaining(stamp, Some(OTHER))));
}

#[test]
fn who_associates_anew_is_answered_after_what_it_deleted() {
    let (mut lab, sessions) = metered_lab(of_portions(PORTION));
    let of_deletion = delete_untold(&mut lab, sessions[3]);
    retaining_none(&mut lab, 1);
    obey_by_portions(&mut lab);
    assert!(lab.is_silent(), "{:?}", lab.sent);
    assert_eq!(lab.node.sessions(), 1);
    lab.orders.extend(of_deletion);
    go_on(&mut lab);
    assert_eq!(used(&answers(&mut lab, MEANWHILE)), 300);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    assert_eq!(lab.node.sessions(), 0);
}

/// It has forgotten that it asked.
#[test]
fn who_has_restarted_does_not_wait_for_what_it_deleted() {
    let (mut lab, sessions) = metered_lab(of_portions(PORTION));
    let of_deletion = delete_untold(&mut lab, sessions[3]);
    retaining_none(&mut lab, 2);
    obey_by_portions(&mut lab);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    assert_eq!(lab.node.sessions(), 0);
    lab.orders.extend(of_deletion);
    go_on(&mut lab);
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.saved.len()), (0, 0, 0));
}

/// The set as it was when its end was asked for: a process that dies meanwhile ends no more of it.
#[test]
fn what_is_new_in_a_set_that_ends_stays_across_a_restart() {
    for restarts in 0..3 {
        let mut lab = lab();
        lab.obedience = Obedience::Waits;
        delete_set(&mut lab, NUMBER, 0);
        let of_set = std::mem::take(&mut lab.orders);
        tell_establishment(&mut lab, 50);
        lab.obey();
        lab.orders.extend(of_set);
        let [Body::SessionEstablishmentResponse(response)] = &answers(&mut lab, UNDER_WAY)[..] else {
            panic!()
        };
        assert_eq!(response.cause, Cause::RequestAccepted);
        let new = Seid(response.up_f_seid.unwrap().seid);
        for _ in 0..restarts {
            lab.orders.clear();
            lab.restart();
            assert!(lab.node.sessions() > SESSIONS as usize / 2 + 2, "some are left");
        }
        go_on(&mut lab);
        let others = SESSIONS as usize / 2 + 1;
        assert!(lab.in_force.contains_key(&new), "{restarts}");
        assert_eq!((lab.node.sessions(), lab.in_force.len()), (others + 1, others + 1));
    }
}
