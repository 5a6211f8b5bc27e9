//! Sessions that come up and go as they should.

use super::*;
use crate::tunnel::Tunnel;
use pfcp::{ApplyAction, FTeid, OuterHeaderCreation};
use rules::Teid;

#[test]
fn a_session_comes_up_in_the_order_of_the_specification() {
    let mut scene = Scene::of(1, FTeidMode::Choose);
    for kind in [5, 50, 52] {
        let request = scene.one();
        assert_eq!(request.body.message_type(), kind);
        let answer = scene.accept(&request);
        scene.say(&answer);
    }
    let uplink = Tunnel { teid: Teid(0x101), address: N3 };
    let up = [Event::Associated(pfcp::NodeId::Ipv4(*UPF.ip())), Event::SessionUp(0, uplink), Event::Ready];
    assert_eq!(scene.events, up);
}

#[test]
fn an_establishment_has_two_pdrs_and_an_open_qer() {
    let (_, message) = Scene::establishing(FTeidMode::Choose);
    let request = establishment(&message);
    assert_eq!(message.seid, Some(0));
    let [uplink, downlink] = &request.create_pdrs[..] else { panic!("two PDRs") };
    let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: Some(1) };
    assert_eq!((uplink.pdi.f_teid, &uplink.pdi.qfis[..]), (Some(choose), &[9][..]));
    assert_eq!(uplink.outer_header_removal.unwrap().description, 0);
    assert!(!uplink.pdi.ue_ip_addresses[0].is_destination);
    assert_eq!(downlink.pdi.f_teid, None);
    assert!(downlink.pdi.ue_ip_addresses[0].is_destination);
    let actions: Vec<u16> = request.create_fars.iter().map(|far| far.apply_action.flags).collect();
    assert_eq!(actions, [ApplyAction::FORW, ApplyAction::DROP]);
    assert_eq!((request.create_qers.len(), request.create_qers[0].mbr), (1, None));
    assert_eq!(request.create_urrs, []);
}

#[test]
fn the_modification_opens_the_downlink_into_the_gnbs_tunnel() {
    let mut scene = Scene::of(1, FTeidMode::Choose);
    let mut last = scene.one();
    for _ in 0..2 {
        let answer = scene.accept(&last);
        scene.say(&answer);
        last = scene.one();
    }
    let Body::SessionModificationRequest(request) = &last.body else { panic!("a modification") };
    assert_eq!(last.seid, Some(0x5001));
    let far = &request.update_fars[0];
    assert_eq!(far.apply_action, Some(ApplyAction::new(ApplyAction::FORW)));
    let creation = far.update_forwarding_parameters.as_ref().unwrap().outer_header_creation.as_ref();
    assert_eq!(creation, Some(&OuterHeaderCreation::GtpuIpv4 { teid: GNB.teid.0, address: GNB.address }));
}

#[test]
fn an_smf_that_picks_f_teids_needs_no_created_pdr() {
    let (mut scene, request) = Scene::establishing(FTeidMode::Explicit(N3));
    let f_teid = establishment(&request).create_pdrs[0].pdi.f_teid;
    assert_eq!(f_teid, Some(FTeid::Explicit { teid: 1, ipv4: Some(N3), ipv6: None }));
    let seid = Some(establishment(&request).cp_f_seid.seid);
    scene.say(&Message { seid, ..Message::node(request.sequence, establishment_response(None)) });
    scene.accept_all();
    assert!(scene.events.contains(&Event::SessionUp(0, Tunnel { teid: Teid(1), address: N3 })));
}

#[test]
fn many_sessions_come_up_and_go() {
    let mut scene = Scene::ready(200);
    assert_eq!(scene.smf.sessions_up(), 200);
    scene.feed(Input::Stop);
    assert_eq!(scene.sent.len(), WINDOW);
    scene.accept_all();
    let deleted = scene.events.iter().filter(|event| matches!(event, Event::SessionDeleted(_))).count();
    assert_eq!((deleted, scene.events.last()), (200, Some(&Event::Stopped)));
    assert_eq!(scene.smf.next_due(), None);
}

#[test]
fn stopping_half_way_deletes_what_was_made() {
    let (mut scene, request) = Scene::establishing(FTeidMode::Choose);
    scene.feed(Input::Stop);
    let answer = scene.accept(&request);
    scene.say(&answer);
    assert_eq!(scene.sent[0].body.message_type(), 54);
    scene.accept_all();
    assert_eq!(scene.events.last(), Some(&Event::Stopped));
}
