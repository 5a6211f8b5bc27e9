//! Sets of sessions, and sets of control planes.

use super::sessions::{accept, establish, fq_csid, modify, setup};
use super::{About, Conversation, Stage, Step};
use crate::common::smf::{self, establishment, path_switch};
use crate::common::{OTHER, SMF};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::*;
use rules::Teid;

const SET: &[u8] = b"\0\x04set1";

pub fn of_set(mut request: AssociationSetupRequest) -> AssociationSetupRequest {
    request.smf_set_id = Some(SET.to_vec());
    request
}

/// A peer of the data plane has no use for the packets of tunnel 9, nor for those of 10.
pub fn indicate(stage: &mut Stage) {
    for teid in [9, 10] {
        let event = Event::ErrorIndication { teid: Teid(teid), peer: smf::GNB.into(), towards: None };
        stage.lab.handle(Input::DataPath(&Notice::Event(event)));
    }
    stage.pass(1);
}

fn grouped(cp_seid: u64, csid: u16, teid: u32) -> Vec<Step> {
    let mut request = establishment(cp_seid);
    (request.fq_csids, request.group_id) = (vec![fq_csid(csid)], Some(vec![csid as u8]));
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![smf::ue([10, 60, 0, csid as u8].into())];
    let session = About::Session(usize::from(csid) - 1);
    vec![establish(request), Step::Ask(SMF, session, path_switch(teid).into())]
}

fn two() -> Vec<Step> {
    [vec![setup()], grouped(77, 1, 9), grouped(78, 2, 10)].concat_steps()
}

trait Concat {
    fn concat_steps(self) -> Vec<Step>;
}

impl<const N: usize> Concat for [Vec<Step>; N] {
    fn concat_steps(self) -> Vec<Step> {
        self.into_iter().flatten().collect()
    }
}

fn to_other() -> SessionChangeInfo {
    SessionChangeInfo {
        fq_csids: vec![],
        group_ids: vec![],
        cp_ip_addresses: vec![],
        alternative: CpIpAddress::new(OTHER.into()),
        carried: vec![],
    }
}

/// Sessions are looked after by another: by their set, their group, and the address of their control plane.
pub fn moved() -> Conversation {
    let by_set = SessionChangeInfo { fq_csids: vec![fq_csid(1)], ..to_other() };
    let by_group = SessionChangeInfo { group_ids: vec![vec![2]], ..to_other() };
    let ask =
        |changes| SessionSetModificationRequest { node_id: NodeId::Ipv4(SMF), changes, carried: vec![] };
    let first = Step::Ask(SMF, About::Node, ask(vec![by_set, by_group]).into());
    let renamed = SessionReportResponse {
        cp_f_seid: Some(FSeid::new(99, OTHER.into())),
        ..SessionReportResponse::of(Cause::RequestAccepted)
    };
    let by_address =
        SessionChangeInfo { cp_ip_addresses: vec![CpIpAddress::new(OTHER.into())], ..to_other() };
    let alternative = CpIpAddress::new(super::THIRD.into());
    let second = ask(vec![SessionChangeInfo { alternative, ..by_address }]);
    let mut steps = two();
    steps.extend([
        first,
        Step::Do(indicate),
        Step::Answer(OTHER, About::Session(0), renamed.into()),
        Step::Ask(SMF, About::Node, second.into()),
        Step::Do(|stage| {
            stage.pass(30);
            indicate(stage);
        }),
    ]);
    Conversation::new("sessions of sets that move", steps)
}

/// A control plane says who is to hear of a session instead.
pub fn redirected() -> Conversation {
    let redirection = SessionReportResponse {
        alternative: Some(CpIpAddress::new(OTHER.into())),
        ..SessionReportResponse::of(Cause::RedirectionRequested)
    };
    let steps = vec![
        setup(),
        establish(establishment(77)),
        modify(path_switch(9)),
        Step::Do(indicate),
        Step::Answer(SMF, About::Session(0), redirection.into()),
    ];
    Conversation::new("a report that is redirected", steps)
}

/// One of a set of control planes takes a session over.
pub fn taken_over() -> Conversation {
    let join = |peer| Step::Ask(peer, About::Node, of_set(smf::setup(peer, 1)).into());
    let mut take = path_switch(9);
    (take.node_id, take.cp_f_seid) = (Some(NodeId::Ipv4(OTHER)), Some(FSeid::new(5, OTHER.into())));
    let steps = vec![
        join(SMF),
        join(OTHER),
        establish(establishment(77)),
        Step::Ask(OTHER, About::Session(0), take.into()),
        Step::Do(indicate),
        Step::Ask(OTHER, About::Session(0), SessionDeletionRequest::default().into()),
    ];
    Conversation::new("a session that is taken over", steps)
}

/// Sessions that end by their set, the second by the one it was given later.
pub fn ended() -> Conversation {
    let end = |csid| {
        let request = SessionSetDeletionRequest {
            node_id: NodeId::Ipv4(SMF),
            fq_csids: vec![fq_csid(csid)],
            carried: vec![],
        };
        Step::Ask(SMF, About::Node, request.into())
    };
    let mut steps = two();
    let given = SessionModificationRequest {
        fq_csids: vec![fq_csid(5)],
        group_id: Some(vec![5]),
        ..SessionModificationRequest::default()
    };
    let by_group = SessionSetModificationRequest {
        node_id: NodeId::Ipv4(SMF),
        changes: vec![SessionChangeInfo { group_ids: vec![vec![5]], ..to_other() }],
        carried: vec![],
    };
    steps.extend([
        modify(given),
        Step::Ask(SMF, About::Node, by_group.into()),
        Step::Do(indicate),
        accept(),
        end(5),
        end(2),
    ]);
    Conversation::new("sets of sessions that end", steps)
}
