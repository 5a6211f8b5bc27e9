//! Very many sessions that move to another control plane, by portions as others end.

use crate::common::{Lab, OTHER, SMF, config};
use crate::ending::{NUMBER, PORTION, SESSIONS, answers, deletions, is_alive, lab, lab_with};
use n4::Config;
use pfcp::*;
use std::net::Ipv4Addr;
use std::time::Duration;

pub(crate) const HEIR: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 77);

pub(crate) fn moved(lab: &Lab) -> usize {
    let extras = lab.saved.values().filter_map(|record| record.extras.as_ref());
    extras.filter(|extras| extras.alternative == Some(HEIR.into())).count()
}

fn moves(to: &[Ipv4Addr]) -> SessionSetModificationRequest {
    let change = |to: &Ipv4Addr| SessionChangeInfo {
        fq_csids: vec![],
        group_ids: vec![],
        cp_ip_addresses: vec![CpIpAddress::new(SMF.into())],
        alternative: CpIpAddress::new((*to).into()),
        carried: vec![],
    };
    SessionSetModificationRequest {
        node_id: NodeId::Ipv4(SMF),
        changes: to.iter().map(change).collect(),
        carried: vec![],
    }
}

#[test]
fn very_many_sessions_move_by_portions() {
    let mut lab = lab();
    lab.tell(SMF, &Message::node(NUMBER, moves(&[OTHER, HEIR])));
    for round in 1..=3 {
        assert!(lab.is_silent(), "{:?}", lab.sent);
        assert_eq!(moved(&lab), round * PORTION, "to where the last change wants them");
        assert!(is_alive(&mut lab));
        lab.handle(n4::Input::Tick);
    }
    let [Body::SessionSetModificationResponse(response)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
    assert_eq!((response.cause, moved(&lab)), (Cause::RequestAccepted, SESSIONS as usize));
    assert_eq!(deletions(&mut lab), 0);
}

#[test]
fn sessions_that_may_not_move_to_all_places_move_to_none() {
    let allow = vec!["10.40.0.0/24".parse().unwrap()];
    let mut lab = lab_with(Config { allow, ..config() });
    lab.tell(SMF, &Message::node(NUMBER, moves(&[HEIR, Ipv4Addr::new(10, 41, 0, 1)])));
    let [Body::SessionSetModificationResponse(response)] = &answers(&mut lab, NUMBER)[..] else { panic!() };
    assert_eq!(response.cause, Cause::MandatoryIeIncorrect);
    lab.pass(Duration::ZERO);
    assert_eq!(moved(&lab), 0);
}
