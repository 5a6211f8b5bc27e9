//! A user whose prefix is of more links than one (prefix delegation, TS 29.244 8.2.62): what is behind it is reached, and speaks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

use matrix::frames::{a_hop_on, datagram6, from_network, g_pdu, packet_of, tunnelled};
use matrix::{N3, N6, UserPlane, node_config, plane_config6};
use pfcp::*;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

const SMF: Ipv4Addr = Ipv4Addr::new(10, 40, 0, 9);
const RADIO: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
const TEID: u32 = 7;
/// Bits of it, and the user's own link in it.
const LENGTH: u8 = 56;
const LINK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0x105, 0, 0, 0, 1);
const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 1);

fn ask(plane: &mut UserPlane, message: &Message) -> Body {
    let told = plane.datagram(SocketAddr::new(SMF.into(), PORT), &encode(message));
    let answers = told.iter().map(|(_, bytes)| decode(bytes).unwrap());
    answers.into_iter().find(|answer| answer.sequence == message.sequence).expect("an answer").body
}

fn establishment() -> SessionEstablishmentRequest {
    let user = |is_destination| {
        vec![UeIpAddress {
            ipv6: Some(LINK),
            ipv6_prefix_length: Some(LENGTH),
            is_destination,
            ..UeIpAddress::default()
        }]
    };
    let f_teid = Some(FTeid::choose(None));
    let up = Pdi { f_teid, ue_ip_addresses: user(false), ..Pdi::new(SourceInterface::Access) };
    let down = Pdi { ue_ip_addresses: user(true), ..Pdi::new(SourceInterface::Core) };
    let removal = OuterHeaderRemoval::new(OuterHeaderRemoval::GTPU_UDP_IP);
    let up = CreatePdr { outer_header_removal: Some(removal), ..request::pdr((1, 1), 255, up) };
    let tunnel = OuterHeaderCreation::GtpuIpv4 { teid: TEID, address: RADIO };
    let to_core = ForwardingParameters::new(DestinationInterface::Core);
    let to_radio = ForwardingParameters {
        outer_header_creation: Some(tunnel),
        ..ForwardingParameters::new(DestinationInterface::Access)
    };
    let forward = || ApplyAction::new(ApplyAction::FORW);
    let fars = vec![request::far(1, forward(), Some(to_core)), request::far(2, forward(), Some(to_radio))];
    let (node_id, f_seid) = (NodeId::Ipv4(SMF), FSeid::new(1, SMF.into()));
    SessionEstablishmentRequest {
        pdn_type: Some(PdnType::Ipv6),
        ..SessionEstablishmentRequest::new(node_id, f_seid, vec![up, request::pdr((2, 2), 255, down)], fars)
    }
}

/// The TEID of its uplink.
fn established(plane: &mut UserPlane) -> u32 {
    ask(plane, &Message::node(1, request::setup(NodeId::Ipv4(SMF), 1)));
    match ask(plane, &Message::session(0, 2, establishment())) {
        Body::SessionEstablishmentResponse(response) => {
            assert_eq!(response.cause, Cause::RequestAccepted, "{:?}", plane.notes);
            match response.created_pdrs[0].local_f_teid {
                Some(FTeid::Explicit { teid, .. }) => teid,
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

/// A host of the user's, on this link of its prefix.
fn host(link: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 7, link, 0, 0, 0, 9)
}

#[test]
fn all_links_of_a_delegated_prefix_are_the_users_and_no_other() {
    let mut plane = UserPlane::over(node_config(), plane_config6());
    let teid = established(&mut plane);
    // The prefix is 2001:db8:7:100::/56.
    for (link, is_users) in [(0x100, true), (0x105, true), (0x1ff, true), (0x0ff, false), (0x200, false)] {
        let up = datagram6((host(link), 9_000), (SERVER, 80), b"up");
        plane.receive(N3, &g_pdu(N3, RADIO, (teid, None), &up));
        plane.settle();
        let left: Vec<_> = plane.sent(N6).iter().map(|frame| packet_of(frame)).collect();
        let expected = if is_users { vec![a_hop_on(&up)] } else { vec![] };
        assert_eq!(left, expected, "up from {link:x}");
        let down = datagram6((SERVER, 80), (host(link), 9_000), b"down");
        plane.receive(N6, &from_network(N6, &down));
        plane.settle();
        let left: Vec<_> = plane.sent(N3).iter().map(|frame| tunnelled(frame)).collect();
        let told: Vec<_> = left.iter().map(|one| (one.to, one.teid, one.inner.clone())).collect();
        let expected = if is_users { vec![(RADIO, TEID, Some(a_hop_on(&down)))] } else { vec![] };
        assert_eq!(told, expected, "down to {link:x}");
    }
}
