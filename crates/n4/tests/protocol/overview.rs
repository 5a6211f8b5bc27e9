//! Associations as an operator sees them.

use crate::common::smf::{establishment, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, at, config};
use crate::ending;
use dplink::{Event, Notice};
use n4::{AssociationState, AssociationStatus, Config, Input};
use pfcp::*;
use rules::PdrId;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const THIRD: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 7);

fn of(lab: &Lab, peer: Ipv4Addr) -> AssociationStatus {
    lab.node.overview(lab.time()).into_iter().find(|it| it.address == at(peer)).unwrap()
}

fn states(lab: &Lab) -> Vec<(Option<String>, AssociationState)> {
    lab.node.overview(lab.time()).into_iter().map(|it| (it.node_id, it.state)).collect()
}

#[test]
fn what_a_control_plane_told_of_itself_is_seen() {
    let mut lab = Lab::new(config());
    let preferred = CpIpAddress { is_preferred: true, ..CpIpAddress::new(THIRD.into()) };
    let request = AssociationSetupRequest {
        node_id: NodeId::Fqdn("smf.lab".to_owned()),
        cp_function_features: Some(CpFunctionFeatures::of(&[CpFeature::Load, CpFeature::Sset])),
        smf_set_id: Some(b"\0\x04set1\x03amf".to_vec()),
        alternatives: vec![CpIpAddress::new(OTHER.into()), preferred],
        ..setup(SMF, 1)
    };
    lab.ask(SMF, &Message::node(1, request));
    lab.establish(SessionEstablishmentRequest {
        node_id: NodeId::Fqdn("smf.lab".to_owned()),
        ..establishment(77)
    });
    lab.pass(Duration::from_millis(1_500));
    let told = of(&lab, SMF);
    assert_eq!((told.node_id.as_deref(), told.state), (Some("smf.lab"), AssociationState::Up));
    assert_eq!(told.alternatives, [THIRD, OTHER].map(IpAddr::from));
    assert_eq!(
        (&told.features[..], told.smf_set.as_deref()),
        (&["LOAD".into(), "SSET".into()][..], Some("set1.amf"))
    );
    assert_eq!((told.sessions, told.last_heard_age_ms), (1, Some(1_500)));
    assert_eq!((told.silent_ms, told.ends_in_ms, told.held_sessions), (None, None, 0));
    let odd = AssociationSetupRequest { smf_set_id: Some(vec![0, 0xFF]), ..setup(OTHER, 1) };
    lab.ask(OTHER, &Message::node(2, odd));
    assert_eq!(of(&lab, OTHER).smf_set.as_deref(), Some("00ff"));
}

#[test]
fn it_is_seen_who_answers() {
    let mut lab = Lab::new(Config { associate: vec![at(THIRD)], ..config() });
    lab.associate(SMF, 1);
    lab.associate(OTHER, 1);
    let named = |state: [AssociationState; 2]| {
        let [smf, other] = state;
        // By Node ID; then who has none yet.
        vec![(Some(OTHER.to_string()), other), (Some(SMF.to_string()), smf), (None, AssociationState::Wanted)]
    };
    use AssociationState::{Leaving, Mute, Silent, Up};
    lab.silent = vec![OTHER];
    assert_eq!(states(&lab), named([Up, Up]), "nobody was asked yet");
    lab.pass(Duration::from_secs(30));
    assert_eq!(states(&lab), named([Up, Mute]));
    lab.silent.push(SMF);
    lab.pass(Duration::from_secs(60));
    assert_eq!(states(&lab), named([Silent, Mute]));
    let silent_ms = of(&lab, SMF).silent_ms.unwrap();
    // The last heartbeat it answered was that of 30 s; the next was given up 9 s after it was sent.
    assert_eq!((silent_ms, of(&lab, SMF).last_heard_age_ms), (41_000, Some(60_000)));
    let outputs = lab.node.leave_one(&SMF.to_string(), Duration::from_secs(50), lab.time());
    lab.carry_out_all(outputs);
    lab.pass(Duration::from_secs(20));
    assert_eq!(states(&lab), named([Leaving, Mute]));
    assert_eq!((of(&lab, SMF).silent_ms, of(&lab, SMF).ends_in_ms), (Some(61_000), Some(30_000)));
    lab.restart();
    assert_eq!(of(&lab, OTHER).last_heard_age_ms, None, "not in this life");
}

#[test]
fn it_is_seen_whose_sessions_end() {
    let mut lab = ending::lab();
    let others = of(&lab, OTHER);
    lab.obedience = Obedience::Waits;
    for stamp in [2, 3] {
        ending::restart(&mut lab, stamp, stamp);
        assert_eq!(of(&lab, SMF).state, AssociationState::Ending);
    }
    assert_eq!(of(&lab, SMF).sessions, ending::SESSIONS - ending::PORTION as u64);
    let outputs = lab.node.leave_one(&SMF.to_string(), Duration::from_secs(50), lab.time());
    lab.carry_out_all(outputs);
    assert_eq!(of(&lab, SMF).state, AssociationState::Ending, "first of all");
    lab.pass(Duration::from_secs(1));
    assert_eq!((of(&lab, SMF).state, of(&lab, SMF).sessions), (AssociationState::Leaving, 0));
    assert_eq!(of(&lab, OTHER).state, others.state);
}

#[test]
fn it_is_seen_what_waits_for_answers() {
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    let session = lab.establish(request);
    let packet = Event::DownlinkData { session, pdr: PdrId(2), qfi: None, traffic_class: 0 };
    lab.handle(Input::DataPath(&Notice::Event(packet)));
    assert_eq!((of(&lab, SMF).outstanding_requests, of(&lab, SMF).held_sessions), (1, 0));
    lab.answers_heartbeats = false;
    lab.pass(Duration::from_secs(10));
    assert_eq!(of(&lab, SMF).outstanding_requests, 1, "a heartbeat; the report was given up");
    lab.goes_silent();
    lab.pass(Duration::from_secs(60));
    lab.handle(Input::DataPath(&Notice::Event(packet)));
    assert_eq!(of(&lab, SMF).held_sessions, 1);
}
