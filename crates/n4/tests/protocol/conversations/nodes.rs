//! What control planes say of themselves, of applications, and about paths.

use super::sessions::{accept, delete, establish, modify, setup};
use super::sets::{indicate, of_set};
use super::{About, Conversation, Stage, Step, THIRD};
use crate::common::billing::{metered, urr};
use crate::common::smf::{self, establishment, path_switch};
use crate::common::{OTHER, Obedience, SMF};
use dplink::{Event, Notice, RefusalCause};
use n4::Input;
use pfcp::*;
use std::net::Ipv4Addr;
use std::time::Duration;

fn heartbeat(from: Ipv4Addr, recovery_time_stamp: u32) -> Step {
    Step::Ask(from, About::Node, HeartbeatRequest { recovery_time_stamp, carried: vec![] }.into())
}

fn ask(from: Ipv4Addr, body: impl Into<Body>) -> Step {
    Step::Ask(from, About::Node, body.into())
}

fn release(from: Ipv4Addr) -> Step {
    ask(from, AssociationReleaseRequest { node_id: NodeId::Ipv4(from), carried: vec![] })
}

/// From the first heartbeat to the release.
pub fn associations() -> Conversation {
    let steps = vec![
        heartbeat(SMF, 1),
        setup(),
        ask(OTHER, smf::setup(OTHER, 1)),
        heartbeat(SMF, 1),
        establish(establishment(77)),
        modify(path_switch(9)),
        Step::Do(|stage| stage.pass(20)),
        release(OTHER),
        release(SMF),
    ];
    Conversation::new("an association from setup to release", steps)
}

/// A later stamp, as it answers, too, then another one with all sessions gone.
pub fn restarted() -> Conversation {
    let steps = vec![
        setup(),
        establish(establishment(77)),
        heartbeat(SMF, 2),
        Step::Answer(SMF, About::Node, HeartbeatResponse::new(2).into()),
        establish(establishment(78)),
        ask(SMF, smf::setup(SMF, 3)),
    ];
    Conversation::new("a control plane that restarts", steps)
}

/// A restart that loses no sessions.
pub fn retained() -> Conversation {
    let mut again = smf::setup(SMF, 2);
    let value = [&[0, 185, 0, 5, 2][..], &SMF.octets()].concat();
    again.carried = vec![RawIe { ie: ie::PFCP_SESSION_RETENTION_INFORMATION, value }];
    let steps = vec![setup(), establish(establishment(77)), ask(SMF, again), delete()];
    Conversation::new("a control plane that retains its sessions", steps)
}

/// It has answered before: of who never does, silence says nothing.
fn falls_silent(stage: &mut Stage) {
    stage.pass(20);
    stage.silent = vec![SMF];
    stage.pass(40);
    indicate(stage);
}

/// Where reports go while a control plane is silent: to one of its set, or to where it said others are.
pub fn silent() -> Conversation {
    let first = AssociationSetupRequest {
        alternatives: vec![CpIpAddress::new(THIRD.into())],
        up_function_features: Some(UpFunctionFeatures::of(&[UpFeature::Ftup])),
        ..of_set(smf::setup(SMF, 1))
    };
    let steps = vec![
        ask(SMF, first),
        establish(establishment(77)),
        modify(path_switch(9)),
        Step::Do(falls_silent),
        ask(OTHER, of_set(smf::setup(OTHER, 1))),
        Step::Do(|stage| {
            stage.pass(30);
            indicate(stage);
        }),
    ];
    Conversation::new("a control plane that falls silent", steps)
}

fn update(node_id: Ipv4Addr) -> AssociationUpdateRequest {
    AssociationUpdateRequest::new(NodeId::Ipv4(node_id))
}

/// The same, said later.
pub fn updated() -> Conversation {
    let later = AssociationUpdateRequest {
        cp_function_features: Some(CpFunctionFeatures::of(&[CpFeature::Load])),
        smf_set_id: Some(b"\0\x04set1".to_vec()),
        alternatives: vec![CpIpAddress::new(THIRD.into())],
        ..update(SMF)
    };
    let steps = vec![
        ask(SMF, smf::setup(SMF, 1)),
        ask(SMF, later),
        establish(establishment(77)),
        modify(path_switch(9)),
        Step::Do(falls_silent),
        ask(OTHER, of_set(smf::setup(OTHER, 1))),
        Step::Do(|stage| {
            stage.pass(30);
            indicate(stage);
        }),
    ];
    Conversation::new("an association that is updated", steps)
}

/// What we can do is other than it was said, and then we leave.
pub fn told_anew() -> Conversation {
    let response = AssociationUpdateResponse {
        node_id: NodeId::Ipv4(SMF),
        cause: Cause::RequestAccepted,
        up_function_features: None,
        cp_function_features: None,
        carried: vec![],
    };
    let steps = vec![
        setup(),
        Step::Do(|stage| {
            stage.lab.config.ue_pools.truncate(1);
            stage.lab.restart();
            stage.pass(1);
        }),
        Step::Answer(SMF, About::Node, response.clone().into()),
        Step::Do(|stage| {
            let now = stage.lab.time();
            let outputs = stage.lab.node.leave(Duration::from_secs(60), now);
            stage.lab.carry_out_all(outputs);
        }),
        Step::Answer(SMF, About::Node, response.into()),
        release(SMF),
    ];
    Conversation::new("a user plane that changes and leaves", steps)
}

fn path(stage: &mut Stage, is_up: bool) {
    let (side, peer) = (rules::Interface::Access, smf::GNB.into());
    stage.lab.handle(Input::UserPlanePath { side, peer, is_up });
}

/// Requests wait for so long.
fn wait(stage: &mut Stage, seconds: u64) {
    stage.lab.handle(Input::Waited(Duration::from_secs(seconds)));
}

/// A path fails and is there again, a peer is restarted; and there are more requests than is good.
pub fn paths() -> Conversation {
    let response =
        |cause| NodeReportResponse { node_id: NodeId::Ipv4(SMF), cause, offending_ie: None, carried: vec![] };
    let answer = |cause| Step::Answer(SMF, About::Node, response(cause).into());
    let mut steps = vec![
        setup(),
        Step::Do(|stage| path(stage, false)),
        answer(Cause::RequestAccepted),
        Step::Do(|stage| path(stage, true)),
        answer(Cause::RequestAccepted),
    ];
    let features = Some(CpFunctionFeatures::of(&[CpFeature::Load, CpFeature::Ovrl, CpFeature::Rpgur]));
    let other = AssociationSetupRequest { cp_function_features: features, ..smf::setup(OTHER, 1) };
    steps.push(ask(OTHER, other));
    steps.push(Step::Do(|stage| {
        let (side, remote) = (rules::Interface::Access, smf::GNB.into());
        stage.lab.handle(Input::DataPath(&Notice::Event(Event::PeerRestarted { side, remote })));
    }));
    let response = NodeReportResponse { node_id: NodeId::Ipv4(OTHER), ..response(Cause::RequestAccepted) };
    steps.push(Step::Answer(OTHER, About::Node, response.into()));
    let session = |cp_seid| {
        let (peer, mut request) = (if cp_seid < 10 { SMF } else { OTHER }, establishment(cp_seid));
        request.node_id = NodeId::Ipv4(peer);
        request.create_pdrs[1].pdi.ue_ip_addresses = vec![smf::ue([10, 60, 0, cp_seid as u8].into())];
        Step::Ask(peer, About::New, request.into())
    };
    steps.extend((1..10).map(session));
    steps.extend([Step::Do(|stage| wait(stage, 1)), session(10)]);
    // The first control plane has not heard yet of the last session.
    steps.extend([modify(path_switch(9)), Step::Do(|stage| wait(stage, 2)), delete()]);
    Conversation::new("paths that fail, and overload", steps)
}

/// What applications look like.
pub fn applications() -> Conversation {
    let flow = PfdContents {
        flow_descriptions: vec![b"permit out 6 from 203.0.113.9 443 to assigned".to_vec()],
        ..Default::default()
    };
    let url =
        PfdContents { urls: vec![b"^http://(www\\.)?example\\.com/.*$".to_vec()], ..Default::default() };
    let context = |contents| PfdContext { contents: vec![contents], carried: vec![] };
    let application = |name: &str, contexts| ApplicationPfds {
        application_id: name.as_bytes().to_vec(),
        contexts,
        carried: vec![],
    };
    let manage = |from, applications| {
        ask(from, PfdManagementRequest { applications, node_id: Some(NodeId::Ipv4(from)), carried: vec![] })
    };
    let steps = vec![
        setup(),
        manage(
            SMF,
            vec![application("games", vec![context(flow.clone())]), application("news", vec![context(url)])],
        ),
        manage(SMF, vec![application("news", vec![])]),
    ];
    Conversation::new("applications that are told", steps)
}

/// The data plane comes back and takes nothing.
fn come_back_full(stage: &mut Stage) {
    stage.lab.obedience = Obedience::Waits;
    stage.lab.restart_plane();
    for desired in stage.lab.desired().into_values() {
        let (session, revision) = (desired.session, desired.revision);
        stage.lab.in_force.remove(&session);
        stage.lab.plane.sessions.remove(&session);
        let (cause, reason) = (RefusalCause::Full, "it is full".to_owned());
        let notice = Notice::Refused { session, revision, cause, reason };
        stage.lab.handle(Input::DataPath(&notice));
    }
    stage.lab.obedience = Obedience::Obeys;
    stage.lab.obey();
}

/// A session is lost, and its control plane hears so.
pub fn lost() -> Conversation {
    let steps = vec![setup(), establish(metered(77, vec![urr(1, 0)])), Step::Do(come_back_full), accept()];
    Conversation::new("a session that is lost", steps)
}
