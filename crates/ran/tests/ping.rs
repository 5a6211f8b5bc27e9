//! UEs ping through a peer that accepts every session and answers every echo.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says plainly what it expects"
)]

mod lab;

use anchorline_ran as ran;
use lab::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use packet::gtpu::{self, Message as Gtpu, PduSession};
use pfcp::{
    AssociationReleaseResponse, AssociationSetupResponse, Body, Cause, CreatedPdr, FSeid, FTeid, Message,
    NodeId, SessionDeletionResponse, SessionEstablishmentRequest, SessionEstablishmentResponse,
    SessionModificationResponse,
};
use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const N3: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 2);
const N4: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 2);
/// The peer's TEIDs are the last octet of the UE's address above this; the gNB's count from 1, as do the addresses.
const UPLINK_TEIDS: u32 = 0x1000;
/// The second UE shares the first one's route.
const SECOND_UE: &str = r#"
[[ue]]
tun = "ue1"
address = "10.60.0.2"
qfi = 9
routes = ["10.50.0.0/24"]
"#;
static DONE: AtomicBool = AtomicBool::new(false);

#[test]
fn ues_ping_through_their_tunnels() {
    let Some(namespace) = Namespace::new("ping") else { return };
    let n4 = namespace.spawn(control_plane);
    let n3 = namespace.spawn(user_plane);
    let ran = namespace.spawn(emulator);
    let ping = |ue| namespace.run("ping", &["-c", "3", "-i", "0.2", "-W", "1", "-I", ue, "10.50.0.1"]);
    let pinged = ["ue0", "ue1"].map(|ue| within(Duration::from_secs(10), || ping(ue)));
    kill(Pid::this(), Signal::SIGTERM).unwrap();
    ran.join().unwrap().unwrap();
    DONE.store(true, Ordering::Relaxed);
    assert_eq!(pinged, [true, true]);
    // Setup, establishment, modification, deletion, release: each asked once, or once a session.
    assert_eq!(n4.join().unwrap(), [5, 50, 50, 52, 52, 54, 54, 9]);
    // What a UE sends before its session is up goes nowhere, and ping is content with one answer of three.
    assert!(n3.join().unwrap() >= 2);
}

fn within(limit: Duration, attempt: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if attempt() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

fn emulator() -> anyhow::Result<()> {
    let config = ran::Config::parse(&format!("{}{SECOND_UE}", include_str!("../../../config/ran.toml")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(ran::run(config, ran::Options::default()))
}

/// Answers until the association is released; what it was asked.
fn control_plane() -> Vec<u8> {
    let socket = UdpSocket::bind((N4, pfcp::PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut asked, mut seids, mut buffer) = (vec![], HashMap::new(), [0; 2048]);
    while asked.last() != Some(&9) {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        let request = pfcp::decode(&buffer[..length]).unwrap();
        asked.push(request.body.message_type());
        // Our SEID is the last octet of the UE's address.
        let seid = match &request.body {
            Body::SessionEstablishmentRequest(establishment) => {
                seids.insert(u64::from(ue(establishment)), establishment.cp_f_seid.seid);
                Some(establishment.cp_f_seid.seid)
            }
            _ => request.seid.map(|seid| seids[&seid]),
        };
        let answer = Message { seid, ..Message::node(request.sequence, accept(&request.body)) };
        socket.send_to(&pfcp::encode(&answer), from).unwrap();
    }
    asked
}

fn ue(establishment: &SessionEstablishmentRequest) -> u8 {
    establishment.create_pdrs[0].pdi.ue_ip_addresses[0].ipv4.unwrap().octets()[3]
}

fn accept(request: &Body) -> Body {
    let (node_id, cause) = (NodeId::Ipv4(N4), Cause::RequestAccepted);
    match request {
        Body::AssociationSetupRequest(_) => AssociationSetupResponse::new(node_id, cause, 1).into(),
        Body::AssociationReleaseRequest(_) => AssociationReleaseResponse::new(node_id, cause).into(),
        Body::SessionEstablishmentRequest(establishment) => SessionEstablishmentResponse {
            up_f_seid: Some(FSeid::new(ue(establishment).into(), N4.into())),
            created_pdrs: vec![created_pdr(ue(establishment))],
            ..SessionEstablishmentResponse::new(node_id, cause)
        }
        .into(),
        Body::SessionModificationRequest(_) => SessionModificationResponse::new(cause).into(),
        Body::SessionDeletionRequest(_) => SessionDeletionResponse::new(cause).into(),
        other => panic!("not expected: {other:?}"),
    }
}

fn created_pdr(ue: u8) -> CreatedPdr {
    let f_teid = FTeid::Explicit { teid: UPLINK_TEIDS + u32::from(ue), ipv4: Some(N3), ipv6: None };
    CreatedPdr { pdr_id: 1, local_f_teid: Some(f_teid), ue_ip_addresses: vec![], carried: vec![] }
}

/// Sends every echo request back as its answer until all is done; how many came.
fn user_plane() -> u32 {
    let socket = UdpSocket::bind((N3, gtpu::PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (mut echoes, mut buffer) = (0, [0; 2048]);
    while !DONE.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let message = Gtpu::parse(&buffer[..length]).unwrap();
        assert_eq!(message.pdu_session, Some(PduSession::uplink(9)));
        let inner = &mut buffer[message.header_length..message.total_length];
        packet::icmp::reply_to_echo(&mut inner[20..]).unwrap();
        packet::ipv4::reverse(inner).unwrap();
        let mut answer = vec![0; gtpu::encapsulated_length(Some(PduSession::downlink(9)))];
        gtpu::write_g_pdu(
            &mut answer,
            message.teid - UPLINK_TEIDS,
            Some(PduSession::downlink(9)),
            inner.len(),
        )
        .unwrap();
        answer.extend_from_slice(inner);
        socket.send_to(&answer, from).unwrap();
        echoes += 1;
    }
    echoes
}
