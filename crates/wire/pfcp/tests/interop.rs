//! What others say is understood here, and what is said here is understood by others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::pcap;
use common::strategies::message;
use pfcp::{Body, PORT, decode, encode};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::net::{Ipv4Addr, SocketAddrV4};

#[test]
fn every_message_of_the_captures_is_read() {
    for file in pcap::captures() {
        let datagrams = pcap::udp_payloads(&file, PORT);
        assert!(!datagrams.is_empty(), "{}", file.display());
        for bytes in &datagrams {
            let message =
                decode(bytes).unwrap_or_else(|error| panic!("{}: {error}: {bytes:02X?}", file.display()));
            assert_eq!(decode(&encode(&message)), Ok(message), "{}", file.display());
        }
        println!("{}: {} messages", file.display(), datagrams.len());
    }
}

/// What is decoded by name in the captures: a guard against IEs that silently end in `carried`.
#[test]
fn the_captures_hold_what_real_control_planes_send() {
    let all: Vec<_> = pcap::captures().iter().flat_map(|file| pcap::udp_payloads(file, PORT)).collect();
    let bodies: Vec<Body> = all.iter().map(|bytes| decode(bytes).unwrap().body).collect();
    let establishments = bodies.iter().filter_map(|body| match body {
        Body::SessionEstablishmentRequest(request) => Some(request),
        _ => None,
    });
    for request in establishments {
        assert!(request.create_pdrs.iter().all(|pdr| pdr.far_id.is_some() && pdr.carried.is_empty()));
        assert!(request.create_pdrs.iter().all(|pdr| pdr.pdi.carried.is_empty()));
        let instances = request.create_pdrs.iter().filter_map(|pdr| pdr.pdi.network_instance.as_ref());
        assert!(instances.into_iter().all(|instance| instance.name().is_some()));
        assert!(request.create_fars.iter().all(|far| far.carried.is_empty()));
    }
}

#[test]
fn tshark_reads_what_is_written() {
    let mut runner = TestRunner::deterministic();
    let [us, them] = [1, 2].map(|host| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), PORT));
    let datagrams: Vec<_> =
        (0..400).map(|_| (us, them, encode(&message().new_tree(&mut runner).unwrap().current()))).collect();
    let file = std::env::temp_dir().join(format!("anchorline-pfcp-{}.pcap", std::process::id()));
    pcap::write(&file, &datagrams);
    let count = pcap::count_by_tshark(&file);
    std::fs::remove_file(&file).unwrap();
    assert!(count.is_none_or(|count| count == datagrams.len()));
}
