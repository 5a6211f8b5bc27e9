//! A conversation, as tshark reads it.

use crate::common::billing::{metered, total, urr};
use crate::common::smf::{self, GNB, establishment, path_switch, setup};
use crate::common::{Lab, OTHER, SMF, config, pcap};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::{
    ApplyAction, AssociationReleaseRequest, Body, Cause, CpFeature, CpFunctionFeatures, FSeid,
    HeartbeatRequest, Message, NodeId, SessionDeletionRequest, SessionModificationRequest, ie,
};
use rules::{PdrId, Qfi, Teid};
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

#[test]
fn tshark_reads_a_whole_conversation() {
    let mut lab = Lab::new(config());
    lab.ask(SMF, &Message::node(1, HeartbeatRequest { recovery_time_stamp: 0xE000_0000, carried: vec![] }));
    lab.ask(SMF, &Message::node(2, setup(SMF, 0xE000_0000)));
    let answer = lab.ask(SMF, &Message::session(0, 3, establishment(77)));
    let Body::SessionEstablishmentResponse(response) = answer else { panic!("{answer:?}") };
    let seid = response.up_f_seid.unwrap().seid;
    lab.ask(SMF, &Message::session(seid, 4, path_switch(5)));
    let indication = Notice::Event(Event::ErrorIndication { teid: Teid(5), peer: GNB.into(), towards: None });
    lab.handle(Input::DataPath(&indication));
    refusals(&mut lab, seid);
    usage_and_paging(&mut lab);
    lab.ask(SMF, &Message::session(seid, 90, SessionDeletionRequest::default()));
    lab.pass(config().heartbeat_interval);
    lab.sent.clear();
    lab.ask(
        SMF,
        &Message::node(91, AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] }),
    );

    let ours = lab.trace.iter().filter(|(from, ..)| from.ip() == crate::common::US);
    let datagrams: Vec<_> = ours.map(|(from, to, bytes)| (v4(*from), v4(*to), bytes.clone())).collect();
    let file = std::env::temp_dir().join(format!("anchorline-n4-{}.pcap", std::process::id()));
    pcap::write(&file, &datagrams);
    let count = pcap::count_by_tshark(&file);
    std::fs::remove_file(&file).unwrap();
    assert!(datagrams.len() >= 12, "{}", datagrams.len());
    assert!(count.is_none_or(|count| count == datagrams.len()));
}

/// Reports of every kind, in every message that has them.
fn usage_and_paging(lab: &mut Lab) {
    let mut rule = urr(1, 0b11);
    (rule.measurement_period, rule.volume_threshold) = (Some(10), total(100));
    rule.measurement_information = Some(pfcp::flags::MEASUREMENT_MNOP);
    rule.monitoring_time = Some((crate::common::SINCE_1900_MS / 1_000) as u32 + 5);
    let mut request = metered(79, vec![rule, urr(2, 0)]);
    request.create_fars[1].apply_action = ApplyAction::new(ApplyAction::BUFF | ApplyAction::NOCP);
    request.user_plane_inactivity_timer = Some(20);
    let session = lab.establish(request);
    let event = Event::DownlinkData { session, pdr: PdrId(2), qfi: Qfi::new(9), traffic_class: 184 };
    lab.handle(Input::DataPath(&Notice::Event(event)));
    lab.traffic(session, (60, 70), false);
    lab.pass(Duration::from_secs(60));
    let query = SessionModificationRequest {
        pfcpsm_req_flags: Some(pfcp::flags::PFCPSM_QAURR),
        query_urr_reference: Some(7),
        remove_pdrs: vec![pfcp::RemovePdr { pdr_id: 1, carried: vec![] }],
        ..SessionModificationRequest::default()
    };
    // One of them in two parts: before and after the monitoring time.
    assert_eq!(lab.modify(session, query).usage_reports.len(), 3);
    // One was told before, and not confirmed.
    assert_eq!(lab.delete(session).usage_reports.len(), 3);
}

/// Responses with Offending IE and with Failed Rule ID, and another version than ours.
fn refusals(lab: &mut Lab, seid: u64) {
    let mut request = establishment(78);
    request.create_pdrs[0].urr_ids = vec![1];
    lab.ask(SMF, &Message::session(0, 80, request));
    let mut request = establishment(78);
    request.create_pdrs[1].far_id = Some(9);
    lab.ask(SMF, &Message::session(0, 81, request));
    let mut request = path_switch(5);
    request.update_fars[0].far_id = 9;
    lab.ask(SMF, &Message::session(seid, 82, request));
    lab.ask(SMF, &Message::session(4711, 83, SessionDeletionRequest::default()));
    lab.receive(crate::common::at(SMF), &[0x40, 1, 0, 4, 0, 0, 84, 0]);
}

/// What no other test makes us say, for `scripts/decoders.sh`.
#[test]
fn what_is_said_seldom() {
    let limits = n4::Limits { sessions: 10, ..n4::Limits::default() };
    let mut lab = Lab::new(n4::Config { limits, ..config() });
    for peer in [SMF, OTHER] {
        let features = Some(CpFunctionFeatures::of(&[CpFeature::Load]));
        let request = pfcp::AssociationSetupRequest { cp_function_features: features, ..setup(peer, 1) };
        lab.ask(peer, &Message::node(1, request));
    }
    let session = lab.establish(establishment(77));
    // The load grows by somebody else's session, and who modifies one next hears of it.
    let mut request = establishment(78);
    (request.node_id, request.cp_f_seid) = (NodeId::Ipv4(OTHER), FSeid::new(78, OTHER.into()));
    request.create_pdrs[1].pdi.ue_ip_addresses = vec![smf::ue([10, 60, 1, 1].into())];
    lab.ask(OTHER, &Message::session(0, 2, request));
    assert!(lab.modify(session, path_switch(9)).load.is_some());
    // Elements that are longer than the messages they stand in.
    let Body::SessionDeletionResponse(response) = cut_short(&mut lab, 54, &session.0.to_be_bytes()) else {
        panic!("an answer")
    };
    assert_eq!((response.cause, response.offending_ie), (Cause::InvalidLength, Some(ie::NODE_ID)));
    let Body::SessionSetModificationResponse(response) = cut_short(&mut lab, 16, &[]) else {
        panic!("an answer")
    };
    assert_eq!((response.cause, response.offending_ie), (Cause::InvalidLength, Some(ie::NODE_ID)));
}

/// The answer to a message of this type whose one element ends too early.
fn cut_short(lab: &mut Lab, message_type: u8, seid: &[u8]) -> Body {
    let flags = 0x20 | u8::from(!seid.is_empty());
    let element = [0, ie::NODE_ID as u8, 0, 80, 0, 10];
    let length = (seid.len() + 4 + element.len()) as u8;
    let sequence = [0xAA, 0, message_type, 0];
    lab.receive(
        crate::common::at(SMF),
        &[&[flags, message_type, 0, length][..], seid, &sequence, &element].concat(),
    );
    lab.answer(0xAA_0000 | u32::from(message_type)).body
}

/// UDP over IPv4 carries no more.
const LONGEST: usize = 65_507;

/// As many URRs as a session may have, all asked about at once, each in two parts, with all that can be said of it: an answer and
/// requests behind it, none too long.
#[test]
fn the_longest_answer_fits_a_datagram() {
    let monitored = |id| {
        let mut rule = urr(id, 0);
        rule.measurement_information = Some(pfcp::flags::MEASUREMENT_MNOP);
        rule.monitoring_time = Some((crate::common::SINCE_1900_MS / 1_000) as u32 + 5);
        rule
    };
    let mut lab = Lab::associated();
    let mut request = establishment(77);
    request.create_urrs = (1..=250).map(monitored).collect();
    let session = lab.establish(request);
    lab.traffic(session, (1_000, 1_000), false);
    lab.pass(Duration::from_secs(10));
    lab.traffic(session, (1_000, 1_000), false);
    let query = SessionModificationRequest {
        pfcpsm_req_flags: Some(pfcp::flags::PFCPSM_QAURR),
        query_urr_reference: Some(7),
        ..SessionModificationRequest::default()
    };
    let answered = lab.modify(session, query).usage_reports.len();
    assert!((50..500).contains(&answered), "{answered}");
    let longest = lab.trace.iter().map(|(.., bytes)| bytes.len()).max().unwrap();
    assert!((5_000..=LONGEST).contains(&longest), "{longest}");
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address}"),
    }
}

/// Where GTP-U is served, as somebody else's decoder reads it: alone, and with IPv6.
#[test]
fn tshark_reads_where_tunnels_end() {
    let ipv6: std::net::Ipv6Addr = "2001:db8:3::2".parse().unwrap();
    for access_address_ipv6 in [None, Some(ipv6)] {
        let access =
            n4::GtpuAddress { ipv6: access_address_ipv6, ..n4::GtpuAddress::access(crate::common::N3) };
        let mut lab = Lab::new(n4::Config { gtpu: vec![access], ..config() });
        lab.ask(SMF, &Message::node(2, setup(SMF, 0xE000_0000)));
        let (_, _, bytes) = lab.trace.last().unwrap();
        let file = std::env::temp_dir().join(format!("anchorline-n4-upiri-{}.pcap", std::process::id()));
        pcap::write(
            &file,
            &[(v4(crate::common::at(crate::common::US)), v4(crate::common::at(SMF)), bytes.clone())],
        );
        let fields =
            ["pfcp.upiri.ipv4_addr", "pfcp.upiri.ipv6_addr", "pfcp.source_interface", "_ws.malformed"];
        let mut command = std::process::Command::new("tshark");
        command.args(["-r"]).arg(&file).args(["-T", "fields"]);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = command.output();
        std::fs::remove_file(&file).unwrap();
        // Where there is no tshark, nobody else reads it.
        let Ok(output) = output else { return };
        let text = String::from_utf8(output.stdout).unwrap();
        let read: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
        let ipv6 = access_address_ipv6.map_or(String::new(), |ipv6| ipv6.to_string());
        assert_eq!(read, ["10.30.0.2", &ipv6, "0", ""]);
    }
}
