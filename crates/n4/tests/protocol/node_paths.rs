//! What control planes are told of GTP-U peers: paths that fail and recover, and restarts.

use crate::common::{Lab, OTHER, SMF, at, config};
use crate::node::associate;
use dplink::{Event, Notice};
use n4::{Config, Input, Limits};
use pfcp::*;
use rules::Interface;
use std::net::IpAddr;
use std::time::Duration;

const RADIO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 30, 0, 77));

fn node_reports(lab: &mut Lab) -> Vec<(std::net::SocketAddr, u32, NodeReportRequest)> {
    let reports = lab.sent.extract_if(.., |(_, sent)| matches!(sent.body, Body::NodeReportRequest(_)));
    let report = |(to, message): (_, Message)| match message.body {
        Body::NodeReportRequest(request) => (to, message.sequence, request),
        other => panic!("{other:?}"),
    };
    reports.map(report).collect()
}

fn path(lab: &mut Lab, is_up: bool) {
    path_on(lab, Interface::Access, is_up);
}

fn path_on(lab: &mut Lab, side: Interface, is_up: bool) {
    lab.handle(Input::UserPlanePath { side, peer: RADIO, is_up });
}

#[test]
fn all_control_planes_hear_of_a_path_that_fails_and_recovers() {
    let mut lab = Lab::associated();
    lab.associate(OTHER, 1);
    path(&mut lab, true);
    assert!(node_reports(&mut lab).is_empty(), "no news");
    path(&mut lab, false);
    path(&mut lab, false);
    let reports = node_reports(&mut lab);
    assert!(reports.iter().map(|(to, ..)| *to).eq([at(OTHER), at(SMF)]));
    for (_, _, report) in &reports {
        assert_eq!((report.report_type, &report.recovered), (flags::NODE_REPORT_UPFR, &None));
        assert_eq!(report.failed.as_ref().unwrap().peers, [RemoteGtpuPeer::new(RADIO)]);
    }
    path(&mut lab, true);
    let recovered = node_reports(&mut lab);
    assert_eq!(recovered.len(), 2);
    assert_eq!(recovered[0].2.report_type, flags::NODE_REPORT_UPRR);
    assert!(recovered[0].2.failed.is_none() && recovered[0].2.recovered.is_some());
}

/// Besides what becomes of the path: what is silent comes back restarted.
#[test]
fn a_restart_of_a_peer_is_told_to_who_understands_until_it_is_confirmed() {
    let mut lab = Lab::associated();
    let restarted = Notice::Event(Event::PeerRestarted { side: Interface::Access, remote: RADIO });
    lab.handle(Input::DataPath(&restarted));
    assert!(node_reports(&mut lab).is_empty(), "nobody understands");
    associate(&mut lab, &[CpFeature::Rpgur]);
    path(&mut lab, false);
    let answer = |lab: &mut Lab, sequence| {
        let (node_id, cause) = (NodeId::Ipv4(SMF), Cause::RequestAccepted);
        let response = NodeReportResponse { node_id, cause, offending_ie: None, carried: vec![] };
        lab.tell(SMF, &Message::node(sequence, response));
    };
    let (_, silence, _) = node_reports(&mut lab).remove(0);
    answer(&mut lab, silence);
    lab.handle(Input::DataPath(&restarted));
    path(&mut lab, true);
    let reports = node_reports(&mut lab);
    let [(_, sequence, report), (.., recovery)] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(
        (report.report_type, &report.failed, &report.recovered),
        (flags::NODE_REPORT_PURR, &None, &None)
    );
    assert_eq!(report.restarted.as_ref().unwrap().peers, [RemoteGtpuPeer::new(RADIO)]);
    assert_eq!(recovery.report_type, flags::NODE_REPORT_UPRR);
    let repeated = |lab: &mut Lab| {
        lab.pass(Duration::from_secs(4));
        node_reports(lab).iter().filter(|(.., report)| report.restarted.is_some()).count()
    };
    assert_eq!(repeated(&mut lab), 1);
    answer(&mut lab, *sequence);
    assert_eq!(repeated(&mut lab), 0);
    // And of the next one.
    lab.handle(Input::DataPath(&restarted));
    assert_eq!(node_reports(&mut lab).len(), 1);
}

/// No data plane says it again.
#[test]
fn what_was_not_confirmed_of_peers_is_told_by_our_next_life() {
    let mut lab = Lab::new(config());
    associate(&mut lab, &[CpFeature::Rpgur]);
    path(&mut lab, false);
    confirm_all(&mut lab);
    let restarted = Notice::Event(Event::PeerRestarted { side: Interface::Access, remote: RADIO });
    lab.handle(Input::DataPath(&restarted));
    path(&mut lab, true);
    lab.sent.clear();
    lab.restart();
    let told = |lab: &mut Lab| {
        lab.pass(Duration::from_secs(1));
        let reports = lab.sent.iter().filter_map(|(_, message)| match &message.body {
            Body::NodeReportRequest(report) => Some(report.report_type),
            _ => None,
        });
        let told: std::collections::BTreeSet<u8> = reports.collect();
        confirm_all(lab);
        told
    };
    assert!(told(&mut lab).into_iter().eq([flags::NODE_REPORT_UPRR, flags::NODE_REPORT_PURR]));
    lab.restart();
    assert!(told(&mut lab).is_empty(), "it is confirmed");
    // What came after is true, not what was before.
    path(&mut lab, false);
    confirm_all(&mut lab);
    path(&mut lab, true);
    path(&mut lab, false);
    lab.sent.clear();
    lab.restart();
    path(&mut lab, false);
    assert!(told(&mut lab).into_iter().eq([flags::NODE_REPORT_UPFR]));
}

fn confirm_all(lab: &mut Lab) {
    for (_, sequence, _) in node_reports(lab) {
        let (node_id, cause) = (NodeId::Ipv4(SMF), Cause::RequestAccepted);
        let response = NodeReportResponse { node_id, cause, offending_ie: None, carried: vec![] };
        lab.tell(SMF, &Message::node(sequence, response));
    }
}

/// One address may be of a radio's, and of another user plane's on the other side.
#[test]
fn a_path_that_fails_on_one_side_does_not_recover_on_the_other() {
    let mut lab = Lab::associated();
    let mut told = |side, is_up: bool| {
        let event = Event::Path { side, remote: RADIO, failed: !is_up };
        lab.handle(Input::DataPath(&Notice::Event(event)));
        node_reports(&mut lab).len()
    };
    let (access, core) = (Interface::Access, Interface::Core);
    assert_eq!((told(access, false), told(core, true), told(access, true)), (1, 0, 1));
    // By its address it has failed while either has.
    let both = [(core, false), (access, false), (core, true), (access, true)];
    assert_eq!(both.map(|(side, is_up)| told(side, is_up)), [1, 0, 0, 1]);
}

#[test]
fn who_comes_later_hears_of_paths_that_have_failed() {
    let mut lab = Lab::associated();
    path_on(&mut lab, Interface::Access, false);
    path_on(&mut lab, Interface::Core, false);
    lab.sent.clear();
    lab.associate(OTHER, 1);
    let [(to, _, report)] = &node_reports(&mut lab)[..] else { panic!("one report") };
    assert_eq!((*to, report.report_type), (at(OTHER), flags::NODE_REPORT_UPFR));
    assert_eq!(report.failed.as_ref().unwrap().peers, [RemoteGtpuPeer::new(RADIO)]);
    path_on(&mut lab, Interface::Access, true);
    path_on(&mut lab, Interface::Core, true);
    assert_eq!(node_reports(&mut lab).len(), 2);
    lab.associate(OTHER, 2);
    assert!(node_reports(&mut lab).is_empty(), "there is nothing to tell any more");
}

/// What changed while nobody was there to tell is told by what the data plane does not say any more.
#[test]
fn a_path_that_recovered_while_we_were_away_is_told() {
    let mut lab = Lab::associated();
    path_on(&mut lab, Interface::Access, false);
    let still = Event::Path { side: Interface::Core, remote: [10, 30, 0, 78].into(), failed: true };
    lab.handle(Input::DataPath(&Notice::Event(still)));
    lab.sent.clear();
    lab.restart();
    // One has failed still, and may not have been heard of.
    lab.handle(Input::DataPath(&Notice::Event(still)));
    let told = node_reports(&mut lab);
    assert_eq!((told.len(), told[0].2.report_type), (1, flags::NODE_REPORT_UPFR));
    lab.pass(Duration::from_secs(89));
    assert!(node_reports(&mut lab).iter().all(|(.., report)| report.recovered.is_none()));
    // Behind the other, which nobody has confirmed.
    lab.pass(Duration::from_secs(15));
    let recovered = node_reports(&mut lab).into_iter().find_map(|(.., report)| report.recovered);
    assert_eq!(recovered.unwrap().peers, [RemoteGtpuPeer::new(RADIO)]);
    assert_eq!(lab.paths.len(), 1);
    // And if the data plane is not there, nobody knows.
    lab.restart_alone();
    lab.pass(Duration::from_secs(600));
    assert_eq!(lab.paths.len(), 1);
}

#[test]
fn a_report_comes_again_until_it_is_confirmed() {
    let mut lab = Lab::associated();
    path(&mut lab, false);
    let (_, sequence, _) = node_reports(&mut lab).remove(0);
    lab.pass(Duration::from_secs(4));
    assert_eq!(node_reports(&mut lab)[0].1, sequence);
    let response = NodeReportResponse {
        node_id: NodeId::Ipv4(SMF),
        cause: Cause::RequestAccepted,
        offending_ie: None,
        carried: vec![],
    };
    lab.tell(SMF, &Message::node(sequence, response));
    lab.pass(Duration::from_secs(4));
    assert!(node_reports(&mut lab).is_empty());
}

/// How many messages tell of peers within a time, in which nobody answers them.
fn told_in_vain(lab: &mut Lab, time: Duration) -> usize {
    lab.pass(time);
    let reports = node_reports(lab);
    lab.sent.clear();
    reports.len()
}

const HOUR: Duration = Duration::from_secs(3_600);

/// Some control planes know nothing of Node Reports, and write a line for each.
#[test]
fn who_never_answers_is_told_ever_more_rarely() {
    let mut lab = Lab::associated();
    path(&mut lab, false);
    let counts = [0; 4].map(|_| told_in_vain(&mut lab, HOUR));
    assert!(counts[0] <= 3 * 9 && counts[3] <= 3 && counts.iter().sum::<usize>() > 3 * 8, "{counts:?}");
    // What is new waits no longer than ever.
    lab.handle(Input::UserPlanePath { side: Interface::Access, peer: [10, 30, 0, 78].into(), is_up: false });
    lab.pass(config().heartbeat_interval);
    let told = node_reports(&mut lab);
    let peers = [RADIO, [10, 30, 0, 78].into()].map(RemoteGtpuPeer::new);
    assert_eq!(told[0].2.failed.as_ref().unwrap().peers, peers);
    // And an answer brings all back to what it was.
    let (node_id, cause) = (NodeId::Ipv4(SMF), Cause::RequestAccepted);
    let response = NodeReportResponse { node_id, cause, offending_ie: None, carried: vec![] };
    lab.tell(SMF, &Message::node(told[0].1, response));
    path(&mut lab, true);
    assert_eq!(told_in_vain(&mut lab, Duration::from_secs(9)), 3);
    assert_eq!(told_in_vain(&mut lab, Duration::from_secs(11)), 1);
}

/// Who has not confirmed that a path failed is told once that it is well again; it may know of neither.
#[test]
fn a_recovery_is_told_again_only_to_who_knows_of_the_failure() {
    for (is_confirmed, restarts) in [(false, false), (true, false), (true, true)] {
        let mut lab = Lab::associated();
        path(&mut lab, false);
        if is_confirmed {
            confirm_all(&mut lab);
        }
        told_in_vain(&mut lab, HOUR);
        if restarts {
            lab.restart();
        }
        path(&mut lab, true);
        let told = told_in_vain(&mut lab, Duration::from_secs(20));
        assert_eq!(told, if is_confirmed { 4 } else { 3 });
        assert_eq!(told_in_vain(&mut lab, HOUR * 3) > 0, is_confirmed);
        let kept: usize = lab.associations.values().map(|it| it.unconfirmed.recovered.len()).sum();
        assert_eq!(kept, usize::from(is_confirmed));
    }
}

/// It failed, which was confirmed, and has failed again meanwhile: that it is well again is news whoever heard what.
#[test]
fn a_recovery_that_nobody_heard_of_is_owed_through_another_failure() {
    let mut lab = Lab::associated();
    path(&mut lab, false);
    confirm_all(&mut lab);
    path(&mut lab, true);
    told_in_vain(&mut lab, Duration::from_secs(15));
    path(&mut lab, false);
    told_in_vain(&mut lab, Duration::from_secs(60));
    path(&mut lab, true);
    told_in_vain(&mut lab, HOUR);
    assert!(told_in_vain(&mut lab, HOUR * 3) > 0);
}

/// A control plane that was silent is told as soon as it is there, however often it did not answer before.
#[test]
fn who_answers_again_is_told_at_once() {
    let mut lab = Lab::associated();
    lab.pass(Duration::from_secs(11));
    path(&mut lab, false);
    told_in_vain(&mut lab, HOUR * 2);
    lab.goes_silent();
    lab.pass(Duration::from_secs(60));
    lab.sent.clear();
    lab.answers_heartbeats = true;
    assert!(told_in_vain(&mut lab, Duration::from_secs(20)) > 0);
}

#[test]
fn paths_that_failed_long_ago_leave_room_to_tell_of_others() {
    let limits = Limits { reports: 3, ..Limits::default() };
    let mut lab = Lab::associated_with(Config { limits, ..config() });
    let mut told = |host, is_up| {
        lab.pass(Duration::from_secs(1));
        let (side, peer) = (Interface::Access, [10, 30, 0, host].into());
        lab.handle(Input::UserPlanePath { side, peer, is_up });
        let told = node_reports(&mut lab);
        for (_, sequence, _) in &told {
            let (node_id, cause) = (NodeId::Ipv4(SMF), Cause::RequestAccepted);
            let response = NodeReportResponse { node_id, cause, offending_ie: None, carried: vec![] };
            lab.tell(SMF, &Message::node(*sequence, response));
        }
        told.len()
    };
    assert!((1..=5).all(|host| told(host, false) == 1));
    // The first two are forgotten, the others are not.
    assert_eq!([5, 4, 3, 2, 1].map(|host| told(host, true)), [1, 1, 1, 0, 0]);
    assert_eq!(told(1, false), 1);
}
