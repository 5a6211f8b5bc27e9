//! A conversation, as tshark reads it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::smf::{GNB, establishment, path_switch, setup};
use common::{Lab, SMF, config, pcap};
use dplink::{Event, Notice};
use n4::Input;
use pfcp::{AssociationReleaseRequest, Body, HeartbeatRequest, Message, NodeId, SessionDeletionRequest};
use rules::Teid;
use std::net::{SocketAddr, SocketAddrV4};

#[test]
fn tshark_reads_a_whole_conversation() {
    let mut lab = Lab::new(config());
    lab.ask(SMF, &Message::node(1, HeartbeatRequest { recovery_time_stamp: 0xE000_0000, carried: vec![] }));
    lab.ask(SMF, &Message::node(2, setup(SMF, 0xE000_0000)));
    let answer = lab.ask(SMF, &Message::session(0, 3, establishment(77)));
    let Body::SessionEstablishmentResponse(response) = answer else { panic!("{answer:?}") };
    let seid = response.up_f_seid.unwrap().seid;
    lab.ask(SMF, &Message::session(seid, 4, path_switch(5)));
    let indication = Notice::Event(Event::ErrorIndication { teid: Teid(5), peer: GNB.into() });
    lab.handle(Input::DataPath(&indication));
    refusals(&mut lab, seid);
    lab.ask(SMF, &Message::session(seid, 90, SessionDeletionRequest::default()));
    lab.pass(config().heartbeat_interval);
    lab.sent.clear();
    lab.ask(
        SMF,
        &Message::node(91, AssociationReleaseRequest { node_id: NodeId::Ipv4(SMF), carried: vec![] }),
    );

    let ours = lab.trace.iter().filter(|(from, ..)| from.ip() == common::US);
    let datagrams: Vec<_> = ours.map(|(from, to, bytes)| (v4(*from), v4(*to), bytes.clone())).collect();
    let file = std::env::temp_dir().join(format!("anchorline-n4-{}.pcap", std::process::id()));
    pcap::write(&file, &datagrams);
    let count = pcap::count_by_tshark(&file);
    std::fs::remove_file(&file).unwrap();
    assert!(datagrams.len() >= 12, "{}", datagrams.len());
    assert!(count.is_none_or(|count| count == datagrams.len()));
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
    lab.receive(common::at(SMF), &[0x40, 1, 0, 4, 0, 0, 84, 0]);
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address}"),
    }
}
