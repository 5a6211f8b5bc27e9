//! Control planes that are gone: they make room, and are given up where the operator wants that.

use crate::common::smf::{self, downlink, establishment, path_switch, setup};
use crate::common::{Lab, OTHER, Obedience, SMF, config};
use ::charging::{Cause as Closed, Key, Policy, Rating};
use n4::{Charging, Config, Limits};
use pfcp::*;
use rules::Seid;
use std::net::Ipv4Addr;
use std::time::Duration;

const THIRD: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 7);

/// Heartbeats are sent every 10 s; one that is not answered is known after 9 s more.
const PATIENCE: Duration = Duration::from_secs(120);

fn seconds(lab: &mut Lab, seconds: u64) {
    lab.pass(Duration::from_secs(seconds));
}

fn set_up(lab: &mut Lab, from: Ipv4Addr, request: AssociationSetupRequest) -> Cause {
    lab.sent.clear();
    match lab.ask(from, &Message::node(20, request)) {
        Body::AssociationSetupResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

fn with_patience() -> Config {
    Config { silent_max: Some(PATIENCE), ..config() }
}

/// Said since the last time it was looked.
fn noted(lab: &mut Lab, words: &str) -> usize {
    std::mem::take(&mut lab.notes).iter().filter(|note| note.contains(words)).count()
}

/// Until it is known to be silent.
fn falls_silent(lab: &mut Lab, peer: Ipv4Addr) {
    seconds(lab, 11);
    lab.silent.push(peer);
    while !lab.notes.iter().any(|note| note.contains(&format!("{peer} is silent"))) {
        seconds(lab, 1);
    }
}

/// Whoever is gone and has no sessions keeps no place that others need.
#[test]
fn control_planes_that_are_gone_make_room() {
    let limits = Limits { peers: 2, ..Limits::default() };
    let mut lab = Lab::new(Config { limits, ..config() });
    lab.answers_heartbeats = false;
    let third = std::net::Ipv4Addr::new(10, 40, 0, 7);
    lab.associate(SMF, 1);
    lab.establish(establishment(77));
    lab.associate(OTHER, 1);
    assert_eq!(set_up(&mut lab, third, setup(third, 1)), Cause::NoResourcesAvailable);
    lab.pass(Duration::from_secs(60));
    assert_eq!(set_up(&mut lab, third, setup(third, 1)), Cause::RequestAccepted);
    assert_eq!(lab.associations.len(), 2);
    assert!(lab.associations.contains_key(&SMF.to_string()));
}

/// However much others have under way, and however slow the data plane is.
#[test]
fn there_are_never_more_control_planes_than_there_is_room_for() {
    let limits = Limits { peers: 2, portion: 1, ..Limits::default() };
    let mut lab = Lab::new(Config { limits, ..config() });
    lab.answers_heartbeats = false;
    lab.associate(SMF, 1);
    lab.associate(OTHER, 1);
    seconds(&mut lab, 60);
    lab.obedience = Obedience::Waits;
    for number in 1..=5 {
        let mut request = establishment(number);
        request.create_pdrs.truncate(1);
        lab.tell(SMF, &Message::session(0, 100 + number as u32, request));
    }
    assert_eq!(set_up(&mut lab, THIRD, setup(THIRD, 1)), Cause::RequestAccepted);
    assert!(lab.associations.keys().eq([&THIRD.to_string(), &SMF.to_string()]));
    let fourth = Ipv4Addr::new(10, 40, 0, 6);
    assert_eq!(set_up(&mut lab, fourth, setup(fourth, 1)), Cause::NoResourcesAvailable);
    assert_eq!(lab.associations.len(), 2);
}

fn named(number: usize) -> AssociationSetupRequest {
    AssociationSetupRequest { node_id: NodeId::Fqdn(format!("smf{number}.lab")), ..setup(SMF, 1) }
}

/// Whatever it makes up, and however often it comes again: others find a place at once, and keep it.
#[test]
fn one_host_takes_no_places_that_others_need() {
    let limits = Limits { peers: 4, ..Limits::default() };
    let mut lab = Lab::new(Config { limits, ..config() });
    for number in 0..4 {
        assert_eq!(set_up(&mut lab, SMF, named(number)), Cause::RequestAccepted);
    }
    assert_eq!(set_up(&mut lab, OTHER, setup(OTHER, 1)), Cause::RequestAccepted);
    assert_eq!(noted(&mut lab, "smf0.lab has no sessions"), 1);
    for number in 10..60 {
        assert_eq!(set_up(&mut lab, SMF, named(number)), Cause::NoResourcesAvailable);
    }
    assert_eq!(set_up(&mut lab, THIRD, setup(THIRD, 1)), Cause::RequestAccepted);
    assert_eq!(lab.associations.len(), 4);
    for peer in [OTHER, THIRD] {
        assert!(lab.associations.contains_key(&peer.to_string()));
    }
}

/// Of hosts that come alone it is found out at once whether they are there, as somebody waits for their places.
#[test]
fn who_answers_no_heartbeats_makes_room_and_who_does_or_has_sessions_does_not() {
    let limits = Limits { peers: 3, ..Limits::default() };
    let mut lab = Lab::new(Config { limits, ..config() });
    let fourth = Ipv4Addr::new(10, 40, 0, 6);
    for peer in [SMF, OTHER, THIRD] {
        lab.associate(peer, 1);
    }
    lab.establish(establishment(77));
    lab.silent = vec![SMF, THIRD];
    assert_eq!(set_up(&mut lab, fourth, setup(fourth, 1)), Cause::NoResourcesAvailable);
    seconds(&mut lab, 8);
    assert_eq!(set_up(&mut lab, fourth, setup(fourth, 2)), Cause::NoResourcesAvailable);
    seconds(&mut lab, 1);
    assert_eq!(set_up(&mut lab, fourth, setup(fourth, 3)), Cause::RequestAccepted);
    assert!(!lab.associations.contains_key(&THIRD.to_string()));
    seconds(&mut lab, 60);
    // One answers, one has sessions; so the last one goes when it is silent, and only it.
    lab.silent = vec![SMF, fourth];
    assert_eq!(set_up(&mut lab, THIRD, setup(THIRD, 1)), Cause::NoResourcesAvailable);
    seconds(&mut lab, 20);
    assert_eq!(set_up(&mut lab, THIRD, setup(THIRD, 2)), Cause::RequestAccepted);
    assert!(lab.associations.keys().eq([THIRD, OTHER, SMF].map(|peer| peer.to_string()).iter()));
}

/// They come again and again.
#[test]
fn who_finds_no_place_fills_no_log() {
    let limits = Limits { peers: 1, ..Limits::default() };
    let mut lab = Lab::new(Config { limits, ..config() });
    assert_eq!(set_up(&mut lab, SMF, named(0)), Cause::RequestAccepted);
    for number in 1..=100 {
        assert_eq!(set_up(&mut lab, SMF, named(number)), Cause::NoResourcesAvailable);
    }
    assert_eq!(noted(&mut lab, "NoResourcesAvailable"), 1);
    seconds(&mut lab, 9);
    assert_eq!(set_up(&mut lab, SMF, named(101)), Cause::NoResourcesAvailable);
    assert_eq!(noted(&mut lab, "refused"), 0);
    seconds(&mut lab, 1);
    assert_eq!(noted(&mut lab, "100 more set-ups of associations were refused"), 1);
    seconds(&mut lab, 60);
    assert_eq!(noted(&mut lab, "refused"), 0);
}

/// It was heard of, if only by its set-up.
#[test]
fn who_has_just_associated_keeps_its_place() {
    let limits = Limits { peers: 2, ..Limits::default() };
    let mut lab = Lab::new(Config { limits, ..config() });
    seconds(&mut lab, 600);
    lab.associate(SMF, 1);
    lab.associate(OTHER, 1);
    assert_eq!(set_up(&mut lab, THIRD, setup(THIRD, 1)), Cause::NoResourcesAvailable);
    assert_eq!(lab.associations.len(), 2);
}

#[test]
fn who_is_silent_for_too_long_is_released_and_its_sessions_are_charged() {
    let rating = Rating::new(Some(Key { rating_group: 1, service_id: None }), vec![], []).unwrap();
    let charging = Some(Charging { rating, policy: Policy::default() });
    let mut lab = Lab::associated_with(Config { charging, ..with_patience() });
    let session = lab.establish(establishment(77));
    lab.traffic(session, (100, 900), true);
    falls_silent(&mut lab, SMF);
    seconds(&mut lab, 119);
    assert_eq!((lab.in_force.len(), lab.associations.len(), lab.cdrs.len()), (1, 1, 0));
    lab.sent.clear();
    lab.notes.clear();
    seconds(&mut lab, 1);
    assert_eq!((lab.in_force.len(), lab.associations.len(), lab.saved.len()), (0, 0, 0));
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
    let [cdr] = &lab.cdrs[..] else { panic!("{:?}", lab.cdrs) };
    let container = &cdr.containers[0];
    assert_eq!(
        (cdr.cause, container.uplink_bytes, container.downlink_bytes),
        (Closed::AbnormalRelease, 100, 900)
    );
    seconds(&mut lab, 3_600);
    assert_eq!(noted(&mut lab, "10.40.0.9 has been silent for 120 s"), 1);
    assert!(
        lab.sent.iter().all(|(_, sent)| matches!(sent.body, Body::HeartbeatRequest(_))),
        "{:?}",
        lab.sent
    );
    // It may come back, and begins anew.
    lab.associate(SMF, 1);
    assert_eq!(lab.node.sessions(), 0);
}

/// Who never answers heartbeats may be there all the same; and for those nobody set a time, there is none.
#[test]
fn who_is_mute_or_may_be_silent_for_ever_stays() {
    for config in [with_patience(), config()] {
        let is_mute = config.silent_max.is_some();
        let mut lab = Lab::associated_with(config);
        lab.establish(establishment(77));
        if !is_mute {
            falls_silent(&mut lab, SMF);
        }
        lab.silent = vec![SMF];
        seconds(&mut lab, 86_400);
        assert_eq!((lab.in_force.len(), lab.associations.len()), (1, 1));
    }
}

#[test]
fn the_time_begins_anew_with_each_silence_and_each_life_of_ours() {
    let mut lab = Lab::associated_with(with_patience());
    lab.establish(establishment(77));
    falls_silent(&mut lab, SMF);
    seconds(&mut lab, 110);
    lab.silent.clear();
    seconds(&mut lab, 20);
    lab.notes.clear();
    falls_silent(&mut lab, SMF);
    seconds(&mut lab, 110);
    lab.restart();
    seconds(&mut lab, 120);
    assert_eq!((lab.in_force.len(), lab.associations.len()), (1, 1));
    seconds(&mut lab, 10);
    assert_eq!((lab.in_force.len(), lab.associations.len()), (0, 0));
}

fn of_set(peer: Ipv4Addr) -> AssociationSetupRequest {
    AssociationSetupRequest { smf_set_id: Some(b"\0\x04set1".to_vec()), ..setup(peer, 1) }
}

/// Another one of the set acts for it (TS 29.244 5.22.3).
#[test]
fn sessions_stay_while_another_of_the_set_is_there() {
    let mut lab = Lab::new(with_patience());
    assert_eq!(set_up(&mut lab, SMF, of_set(SMF)), Cause::RequestAccepted);
    assert_eq!(set_up(&mut lab, OTHER, of_set(OTHER)), Cause::RequestAccepted);
    // This one is of no set.
    lab.associate(THIRD, 1);
    lab.establish(establishment(77));
    falls_silent(&mut lab, SMF);
    seconds(&mut lab, 3_600);
    assert_eq!((lab.in_force.len(), lab.associations.len()), (1, 3));
    falls_silent(&mut lab, OTHER);
    seconds(&mut lab, 119);
    assert_eq!((lab.in_force.len(), lab.associations.len()), (1, 3));
    seconds(&mut lab, 1 + 10);
    assert_eq!((lab.in_force.len(), lab.associations.len()), (0, 1));
}

/// From another address of its own, though the first one is silent.
#[test]
fn whoever_is_heard_of_elsewhere_is_not_gone() {
    let heartbeat = HeartbeatRequest { recovery_time_stamp: 1, carried: vec![] };
    let alternatives = vec![CpIpAddress::new(OTHER.into())];
    let mut lab = Lab::new(with_patience());
    let request = AssociationSetupRequest { alternatives, ..setup(SMF, 1) };
    assert_eq!(set_up(&mut lab, SMF, request), Cause::RequestAccepted);
    lab.establish(establishment(77));
    falls_silent(&mut lab, SMF);
    for number in 0..10 {
        seconds(&mut lab, 60);
        lab.tell(OTHER, &Message::node(100 + number, heartbeat.clone()));
    }
    assert_eq!((lab.in_force.len(), lab.associations.len()), (1, 1));
    seconds(&mut lab, 119);
    assert_eq!(lab.in_force.len(), 1);
    seconds(&mut lab, 1);
    assert_eq!((lab.in_force.len(), lab.associations.len()), (0, 0));
}

/// A control plane with a host name speaks of its sessions from wherever these are named (TS 29.244 5.8.1).
#[test]
fn whoever_speaks_of_its_sessions_is_not_gone() {
    let name = NodeId::Fqdn("smf.lab".to_owned());
    let mut lab = Lab::new(with_patience());
    let request = AssociationSetupRequest { node_id: name.clone(), ..setup(SMF, 1) };
    assert_eq!(set_up(&mut lab, SMF, request), Cause::RequestAccepted);
    let establishes = |lab: &mut Lab, number: u8| {
        let mut request = establishment(number.into());
        (request.node_id, request.cp_f_seid) = (name.clone(), FSeid::new(number.into(), OTHER.into()));
        request.create_pdrs =
            vec![smf::uplink(1, smf::choose(None)), downlink(2, Some([10, 60, 0, number].into()))];
        match lab.ask(OTHER, &Message::session(0, 200 + u32::from(number), request)) {
            Body::SessionEstablishmentResponse(response) => Seid(response.up_f_seid.unwrap().seid),
            other => panic!("{other:?}"),
        }
    };
    let session = establishes(&mut lab, 1);
    seconds(&mut lab, 11);
    lab.silent.push(SMF);
    seconds(&mut lab, 100);
    for number in 0..5 {
        lab.ask(OTHER, &Message::session(session.0, 300 + number, path_switch(number + 2)));
        seconds(&mut lab, 110);
    }
    establishes(&mut lab, 2);
    seconds(&mut lab, 110);
    assert_eq!((lab.in_force.len(), lab.associations.len()), (2, 1));
    seconds(&mut lab, 10);
    assert_eq!((lab.in_force.len(), lab.associations.len()), (0, 0));
}
