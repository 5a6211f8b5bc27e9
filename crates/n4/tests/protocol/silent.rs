//! A control plane that does not answer: it costs the others nothing, and hears how things are when it answers again.

use crate::common::billing::{metered, urr};
use crate::common::smf::{downlink, establishment};
use crate::common::{Lab, OTHER, SMF, at};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::*;
use rules::{Interface, PdrId, Seid};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Sessions of users who sleep.
fn asleep(lab: &mut Lab, owner: Ipv4Addr, first: u32, count: u32) -> Vec<Seid> {
    let one = |number: u32| {
        let mut request = establishment(u64::from(number));
        request.node_id = NodeId::Ipv4(owner);
        request.cp_f_seid = FSeid::new(number.into(), owner.into());
        request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
        request.create_pdrs[1] = downlink(2, Some(Ipv4Addr::from(0x0A40_0000 + number)));
        match lab.ask(owner, &Message::session(0, number, request)) {
            Body::SessionEstablishmentResponse(response) => Seid(response.up_f_seid.unwrap().seid),
            other => panic!("{other:?}"),
        }
    };
    (first..first + count).map(one).collect()
}

fn packet(lab: &mut Lab, session: Seid) {
    let event = Event::DownlinkData { session, pdr: PdrId(2), qfi: None, traffic_class: 0 };
    lab.handle(Input::DataPath(&Notice::Event(event)));
}

/// Reports to a control plane that have been sent, retransmissions too.
fn reports(lab: &mut Lab, to: Ipv4Addr) -> Vec<Message> {
    let is_report = |(peer, sent): &mut (std::net::SocketAddr, Message)| {
        *peer == at(to) && matches!(sent.body, Body::SessionReportRequest(_))
    };
    lab.sent.extract_if(.., is_report).map(|(_, sent)| sent).collect()
}

/// Nobody answers any more, for so long that a control plane is known to be silent.
fn fall_silent(lab: &mut Lab) {
    lab.goes_silent();
    // What was under way is given up, too.
    lab.pass(Duration::from_secs(40));
    assert!(lab.notes.iter().any(|note| note.contains("is silent")), "{:?}", lab.notes);
    lab.sent.clear();
}

#[test]
fn a_silent_control_plane_takes_no_places_of_others() {
    let mut lab = Lab::associated();
    lab.associate(OTHER, 1);
    lab.answers_heartbeats = false;
    let silent = asleep(&mut lab, SMF, 1_000, 20_000);
    let other = asleep(&mut lab, OTHER, 100_000, 1)[0];
    lab.sent.clear();
    silent.iter().for_each(|session| packet(&mut lab, *session));
    let taken = reports(&mut lab, SMF).len();
    assert!((4_096..10_000).contains(&taken), "{taken}");
    packet(&mut lab, other);
    assert_eq!(reports(&mut lab, OTHER).len(), 1, "at once");
    let heartbeats = |lab: &mut Lab| {
        lab.pass(Duration::from_secs(10));
        let sent = std::mem::take(&mut lab.sent);
        let to_other = sent.iter().filter(|(to, _)| *to == at(OTHER));
        to_other.filter(|(_, sent)| matches!(sent.body, Body::HeartbeatRequest(_))).count()
    };
    assert_eq!(heartbeats(&mut lab), 1);
}

#[test]
fn packets_for_a_silent_control_plane_are_told_when_it_answers_again_if_they_are_kept_still() {
    let mut lab = Lab::associated();
    let sessions = asleep(&mut lab, SMF, 1_000, 3);
    fall_silent(&mut lab);
    packet(&mut lab, sessions[0]);
    lab.pass(Duration::from_secs(59));
    packet(&mut lab, sessions[1]);
    lab.pass(Duration::from_secs(2));
    assert!(reports(&mut lab, SMF).is_empty(), "not to one who does not answer");
    lab.answers_heartbeats = true;
    lab.pass(Duration::from_secs(20));
    let told: Vec<Option<u64>> = reports(&mut lab, SMF).iter().map(|report| report.seid).collect();
    assert!(told.contains(&Some(1_001)) && !told.contains(&Some(1_000)), "{told:?}");
    // And packets from now on are told as ever.
    packet(&mut lab, sessions[0]);
    assert!(reports(&mut lab, SMF).iter().any(|report| report.seid == Some(1_000)));
}

/// Nothing is sent but heartbeats, however long it takes; then the report that was made is.
#[test]
fn usage_waits_for_a_silent_control_plane() {
    let mut perio = urr(1, 1);
    perio.measurement_period = Some(30);
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, vec![perio]));
    lab.traffic(session, (100, 200), false);
    lab.goes_silent();
    lab.pass(Duration::from_secs(120));
    lab.sent.clear();
    lab.pass(Duration::from_secs(3_600));
    assert!(reports(&mut lab, SMF).is_empty());
    lab.answers_heartbeats = true;
    lab.pass(Duration::from_secs(20));
    let told = reports(&mut lab, SMF);
    let Body::SessionReportRequest(request) = &told[0].body else { panic!("{told:?}") };
    assert_eq!(request.usage_reports[0].ur_seqn, 0);
    assert_eq!(request.usage_reports[0].volume_measurement.unwrap().octets.total, Some(300));
}

/// It answers heartbeats, but no reports: these come ever more rarely.
#[test]
fn a_report_that_nobody_answers_is_not_repeated_as_often_for_ever() {
    let mut perio = urr(1, 1);
    perio.measurement_period = Some(30);
    let mut lab = Lab::associated();
    let session = lab.establish(metered(77, vec![perio]));
    lab.traffic(session, (100, 200), false);
    lab.pass(Duration::from_secs(3_600));
    let told = reports(&mut lab, SMF).len();
    assert!((30..60).contains(&told), "{told} datagrams in an hour");
}

fn path(lab: &mut Lab, host: u8, is_up: bool) {
    lab.handle(Input::UserPlanePath { side: Interface::Access, peer: [10, 30, 0, host].into(), is_up });
}

/// Peers said to have failed and to be there again, by the last octets of their addresses, and the messages' numbers.
fn told_of(lab: &mut Lab) -> Vec<(u32, Vec<u8>, Vec<u8>)> {
    let is_report = |(_, sent): &mut (_, Message)| matches!(sent.body, Body::NodeReportRequest(_));
    let reports = lab.sent.extract_if(.., is_report).map(|(_, sent)| match sent.body {
        Body::NodeReportRequest(request) => (sent.sequence, hosts(request.failed), hosts(request.recovered)),
        other => panic!("{other:?}"),
    });
    reports.collect()
}

fn hosts(report: Option<PathReport>) -> Vec<u8> {
    let peers = report.into_iter().flat_map(|report| report.peers);
    peers.filter_map(|peer| peer.ipv4.map(|address| address.octets()[3])).collect()
}

#[test]
fn paths_are_told_when_the_control_plane_answers_again() {
    let mut lab = Lab::associated();
    path(&mut lab, 7, false);
    path(&mut lab, 8, false);
    fall_silent(&mut lab);
    path(&mut lab, 9, false);
    path(&mut lab, 8, true);
    lab.pass(Duration::from_secs(600));
    assert!(told_of(&mut lab).is_empty(), "not to one who does not answer");
    lab.answers_heartbeats = true;
    let mut told = vec![];
    for _ in 0..20 {
        lab.pass(Duration::from_secs(1));
        for news in told_of(&mut lab) {
            let (node_id, cause) = (NodeId::Ipv4(SMF), Cause::RequestAccepted);
            let response = NodeReportResponse { node_id, cause, offending_ie: None, carried: vec![] };
            lab.tell(SMF, &Message::node(news.0, response));
            told.push(news);
        }
    }
    let failed: Vec<u8> = told.iter().flat_map(|(_, failed, _)| failed.clone()).collect();
    let recovered: Vec<u8> = told.iter().flat_map(|(_, _, recovered)| recovered.clone()).collect();
    assert!(failed.contains(&7) && failed.contains(&9) && !failed.contains(&8), "{told:?}");
    assert!(recovered.contains(&8) && !recovered.contains(&7), "{told:?}");
    lab.pass(Duration::from_secs(600));
    assert!(told_of(&mut lab).is_empty(), "once confirmed, it is not told again");
}

/// What a path was is not sent again after what it is.
#[test]
fn news_overtake_what_they_contradict() {
    let mut lab = Lab::associated();
    path(&mut lab, 7, false);
    path(&mut lab, 7, true);
    assert_eq!(told_of(&mut lab).len(), 2);
    lab.pass(Duration::from_secs(4));
    let told = told_of(&mut lab);
    assert!(told.iter().all(|(_, failed, recovered)| failed.is_empty() && *recovered == [7]), "{told:?}");
    assert_eq!(told.len(), 1);
}

/// Some control planes answer no heartbeats, and yet they are there: they are told of all that concerns them.
#[test]
fn a_control_plane_that_answers_no_heartbeats_is_paged_all_the_same() {
    let mut lab = Lab::associated();
    let session = asleep(&mut lab, SMF, 1_000, 1)[0];
    lab.answers_heartbeats = false;
    lab.pass(Duration::from_secs(3_600));
    packet(&mut lab, session);
    assert_eq!(reports(&mut lab, SMF).len(), 1);
}

/// One that did answer them, and does no longer, is silent until anything comes from it.
#[test]
fn whatever_comes_from_a_silent_control_plane_shows_that_it_is_there() {
    let mut lab = Lab::associated();
    let session = asleep(&mut lab, SMF, 1_000, 1)[0];
    fall_silent(&mut lab);
    packet(&mut lab, session);
    assert_eq!(reports(&mut lab, SMF).len(), 0);
    asleep(&mut lab, SMF, 1_001, 1);
    lab.pass(Duration::from_secs(1));
    assert_eq!(reports(&mut lab, SMF).len(), 1);
    // And while it goes on speaking, that it answers no heartbeat does not matter.
    for number in 1_002..1_020 {
        lab.pass(Duration::from_secs(5));
        asleep(&mut lab, SMF, number, 1);
    }
    assert_eq!(lab.notes.iter().filter(|note| note.contains("is silent")).count(), 1);
}

/// The same in its next container, by another Node ID: users' addresses are those of its former life.
#[test]
fn sessions_of_a_silent_control_plane_give_way_to_anothers() {
    let mut lab = Lab::associated();
    lab.associate(OTHER, 2);
    let silent = asleep(&mut lab, SMF, 1_000, 1)[0];
    let asks = |lab: &mut Lab, number: u32| {
        let mut request = establishment(number.into());
        (request.node_id, request.cp_f_seid) = (NodeId::Ipv4(OTHER), FSeid::new(number.into(), OTHER.into()));
        request.create_pdrs[1] = downlink(2, Some(Ipv4Addr::from(0x0A40_0000 + 1_000)));
        match lab.ask(OTHER, &Message::session(0, number, request)) {
            Body::SessionEstablishmentResponse(response) => response.cause,
            other => panic!("{other:?}"),
        }
    };
    // While it answers, the data plane decides: two cannot have an address.
    assert_eq!(asks(&mut lab, 5), Cause::RequestAccepted);
    assert!(lab.in_force.contains_key(&silent));
    fall_silent(&mut lab);
    assert_eq!(asks(&mut lab, 6), Cause::RequestAccepted);
    assert!(!lab.in_force.contains_key(&silent) && lab.in_force.len() == 2);
}
