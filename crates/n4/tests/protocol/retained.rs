//! Sessions that a control plane asks to retain when it associates anew (TS 29.244 6.2.6.2.2, 8.2.134).

use crate::common::billing::{metered, seconds, total, urr};
use crate::common::smf::{establishment, path_switch, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, config};
use crate::ending::{NUMBER, SESSIONS, answers, is_set_up, lab as many};
use crate::ending_amid::{MEANWHILE, go_on, release};
use n4::{Config, Limits};
use pfcp::*;
use std::net::Ipv4Addr;
use std::time::Duration;

/// How long stale sessions stay.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// All that are named at an address, or all there are.
pub(crate) fn retaining(stamp: u32, named_at: Option<Ipv4Addr>) -> AssociationSetupRequest {
    let entity = named_at.map(|address| [&[0, 185, 0, 5, 2][..], &address.octets()].concat());
    let value = entity.unwrap_or_default();
    let carried = vec![RawIe { ie: ie::PFCP_SESSION_RETENTION_INFORMATION, value }];
    AssociationSetupRequest { carried, ..setup(SMF, stamp) }
}

fn set_up(lab: &mut Lab, request: AssociationSetupRequest) {
    let sequence = 0x8000 + lab.trace.len() as u32;
    lab.tell(SMF, &Message::node(sequence, request));
    lab.pass(Duration::ZERO);
    assert!(is_set_up(&answers(lab, sequence)));
}

fn request(cp_seid: u64) -> SessionEstablishmentRequest {
    let mut request = establishment(cp_seid);
    request.create_pdrs.truncate(1);
    request
}

fn with(limits: Limits, sessions: u64) -> Lab {
    let mut lab = Lab::associated_with(Config { stale_max: Some(PATIENCE), limits, ..config() });
    for cp_seid in 1..=sessions {
        lab.establish(request(cp_seid));
    }
    lab
}

/// Whether it has the time stamp it had or not: what it asks for it has not forgotten.
#[test]
fn what_is_retained_is_not_stale() {
    for (stamp, named_at) in [(1, None), (2, None), (1, Some(SMF)), (2, Some(SMF))] {
        let mut lab = with(Limits { portion: 2, ..Limits::default() }, 5);
        set_up(&mut lab, setup(SMF, 1));
        set_up(&mut lab, retaining(stamp, named_at));
        lab.restart();
        lab.pass(PATIENCE * 3);
        assert_eq!((lab.in_force.len(), lab.saved.len()), (5, 5), "{stamp}");
        // It is once more if it associates without a word of it.
        set_up(&mut lab, setup(SMF, stamp));
        lab.pass(PATIENCE * 3);
        assert_eq!(lab.in_force.len(), 0);
    }
}

#[test]
fn what_is_retained_leaves_no_room_for_others() {
    let mut lab = with(Limits { sessions: 2, ..Limits::default() }, 2);
    set_up(&mut lab, setup(SMF, 1));
    set_up(&mut lab, retaining(1, None));
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &Message::session(0, 7, request(3)))
    else {
        panic!("an answer")
    };
    assert_eq!((response.cause, lab.in_force.len()), (Cause::NoResourcesAvailable, 2));
}

#[test]
fn what_is_retained_stays_though_stale_ones_are_ending() {
    let mut lab = with(Limits { portion: 2, ..Limits::default() }, 9);
    set_up(&mut lab, setup(SMF, 1));
    lab.pass(PATIENCE - Duration::from_secs(1));
    lab.obedience = Obedience::Waits;
    while lab.node.sessions() == 9 {
        lab.pass(Duration::from_millis(10));
    }
    let left = lab.node.sessions();
    assert!(left > 5, "not all at once: {left}");
    lab.tell(SMF, &Message::node(NUMBER, retaining(1, None)));
    lab.obedience = Obedience::Obeys;
    lab.obey();
    seconds(&mut lab, 2);
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
    assert_eq!((lab.node.sessions(), lab.in_force.len()), (left, left));
}

/// What ended with its association is not counted on any more: nobody could tell what is left of it (TS 29.244 6.2.8).
#[test]
fn nothing_is_retained_of_an_association_that_was_released() {
    for stamp in [1, 2] {
        for asks_before in [false, true] {
            let mut lab = many();
            lab.obedience = Obedience::Waits;
            release(&mut lab, MEANWHILE);
            if asks_before {
                lab.tell(SMF, &Message::node(MEANWHILE + 1, setup(SMF, 1)));
            }
            lab.tell(SMF, &Message::node(NUMBER, retaining(stamp, None)));
            assert!(lab.node.sessions() > SESSIONS as usize / 2, "not all at once");
            go_on(&mut lab);
            let [Body::AssociationSetupResponse(response)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
            assert!(response.cause.is_accepted());
            // PSREI: none of them are there (8.2.134).
            assert!(response.carried.iter().all(|other| other.ie != ie::PFCPASRSP_FLAGS));
            assert_eq!((lab.node.sessions(), lab.in_force.len()), (0, 0));
            assert!(lab.associations.keys().eq([&OTHER.to_string(), &SMF.to_string()]));
        }
    }
}

/// Though it is associated anew before the last of its sessions is gone, and we die before that.
#[test]
fn what_an_association_had_that_was_released_is_gone_after_a_restart_too() {
    let mut lab = many();
    lab.obedience = Obedience::Waits;
    release(&mut lab, MEANWHILE);
    lab.tell(SMF, &Message::node(NUMBER, setup(SMF, 1)));
    lab.orders.clear();
    lab.restart();
    go_on(&mut lab);
    assert_eq!((lab.node.sessions(), lab.in_force.len(), lab.saved.len()), (0, 0, 0));
    lab.tell(SMF, &Message::node(NUMBER, setup(SMF, 1)));
    assert!(is_set_up(&answers(&mut lab, NUMBER)));
}

/// It is to be released once it has associated, unless that is taken back.
#[test]
fn who_comes_back_after_a_release_may_be_asked_to_leave_meanwhile() {
    for stays in [false, true] {
        let mut lab = many();
        lab.obedience = Obedience::Waits;
        release(&mut lab, MEANWHILE);
        lab.tell(SMF, &Message::node(NUMBER, setup(SMF, 1)));
        let outputs = lab.node.leave_one(&SMF.to_string(), PATIENCE, lab.time());
        lab.carry_out_all(outputs);
        if stays {
            let outputs = lab.node.stay_with(&SMF.to_string(), lab.time());
            lab.carry_out_all(outputs);
        }
        go_on(&mut lab);
        assert!(is_set_up(&answers(&mut lab, NUMBER)));
        assert_eq!((lab.node.leaving().is_empty(), lab.node.sessions()), (stays, 0));
    }
}

/// Its owner takes what is reported of it while a change of it is under way, which began before the owner associated anew.
#[test]
fn what_is_named_amid_a_change_is_not_stale_after_it() {
    let mut lab = Lab::associated_with(Config { stale_max: Some(PATIENCE), ..config() });
    let threshold = CreateUrr { volume_threshold: total(1_000), ..urr(1, 1 << 1) };
    let session = lab.establish(metered(77, vec![threshold]));
    lab.traffic(session, (400, 600), false);
    let reports = lab.reports();
    let [(_, report)] = &reports[..] else { panic!("{reports:?}") };
    lab.obedience = Obedience::Waits;
    lab.tell(SMF, &Message::session(session.0, MEANWHILE, path_switch(9)));
    set_up(&mut lab, setup(SMF, 1));
    lab.tell(SMF, &Message::session(0, report.sequence, SessionReportResponse::of(Cause::RequestAccepted)));
    go_on(&mut lab);
    assert_eq!(answers(&mut lab, MEANWHILE).len(), 1);
    lab.pass(PATIENCE * 3);
    assert_eq!(lab.in_force.len(), 1);
}
