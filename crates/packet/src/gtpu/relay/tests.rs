use super::*;
use crate::gtpu::{
    Endpoints, Message, OuterHeader, PduSession, Tunnel, UdpChecksum, message_type, write_g_pdu_with,
};
use crate::{Buffer, HeapBuffer, ipv4, protocol};
use proptest::prelude::*;
use std::net::Ipv6Addr;

const USER: &[u8] = b"a user's packet";

/// The headers of a packet in a tunnel.
fn headers(is_v6: bool, extensions: &[Extension<'_>]) -> Vec<u8> {
    let mut gtpu = [0; 200];
    let length = write_g_pdu_with(&mut gtpu, 7, extensions, USER.len()).unwrap();
    let mut udp = [0; udp::LENGTH];
    udp::Header::new(2152, 2152, length + USER.len()).unwrap().write(&mut udp).unwrap();
    let datagram = udp::LENGTH + length + USER.len();
    let mut ip = vec![0; if is_v6 { ipv6::LENGTH } else { ipv4::LENGTH }];
    match is_v6 {
        true => {
            let [from, to] = [1, 2].map(|end| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, end));
            ipv6::Header::new(from, to, protocol::UDP, datagram).unwrap().write(&mut ip).unwrap();
        }
        false => {
            let (from, to) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
            ipv4::Header::new(from, to, protocol::UDP, datagram).unwrap().write(&mut ip).unwrap();
        }
    }
    [&ip[..], &udp, &gtpu[..length]].concat()
}

fn kinds(extensions: &[Extension<'_>]) -> Vec<u8> {
    extensions.iter().map(|extension| extension.kind).collect()
}

#[test]
fn numbers_of_radio_nodes_go_on_and_what_is_for_the_next_node_alone_does_not() {
    let container = Extension { kind: extension_type::PDU_SESSION_CONTAINER, content: &[0x10, 9] };
    let number = Extension { kind: extension_type::PDCP_PDU_NUMBER, content: &[0x12, 0x34] };
    let long =
        Extension { kind: extension_type::LONG_PDCP_PDU_NUMBER, content: &[0x01, 0x23, 0x45, 0, 0, 0] };
    let port = Extension { kind: extension_type::UDP_PORT, content: &[8, 0x68] };
    for is_v6 in [false, true] {
        let headers = headers(is_v6, &[container, number, port, long]);
        assert_eq!(Relayed::of(&headers).as_slice(), [number, long]);
        assert_eq!(Relayed::of(&headers[..headers.len() - 1]).as_slice(), [number], "the chain is cut off");
        assert_eq!(Relayed::of(&headers[1..]).as_slice(), []);
    }
    assert_eq!(Relayed::of(&headers(false, &[container, port])).as_slice(), []);
    assert_eq!(Relayed::of(&[]).as_slice(), []);
}

#[test]
fn there_is_a_place_for_the_container() {
    let number = Extension { kind: extension_type::PDCP_PDU_NUMBER, content: &[0x12, 0x34] };
    let headers = headers(false, &[number; EXTENSIONS_MAX]);
    let relayed = Relayed::of(&headers);
    assert_eq!(relayed.as_slice().len(), EXTENSIONS_MAX - 1);
    let all = kinds(relayed.behind(Some(&[0, 9])).as_slice());
    assert_eq!((all.len(), all[0]), (EXTENSIONS_MAX, extension_type::PDU_SESSION_CONTAINER));
}

fn endpoints() -> impl Strategy<Value = Endpoints> {
    let [one, other] = [1, 2].map(|end| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, end));
    let v6 = move |checksum| Endpoints::V6 { source: one, destination: other, flow_label: 5, checksum };
    prop_oneof![
        Just(Endpoints::V4 { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into() }),
        Just(v6(UdpChecksum::Computed)),
        Just(v6(UdpChecksum::Zero)),
    ]
}

proptest! {
    /// Beside what is relayed, all is as without it.
    #[test]
    fn a_packet_is_relayed_as_it_is_put_into_any_tunnel(
        endpoints in endpoints(), teid: u32, dscp in 0..64_u8, qfi in proptest::option::of(0..64_u8), policy in proptest::option::of(0..8_u8),
        numbers in proptest::collection::vec(any::<[u8; 2]>(), 1..4),
    ) {
        let outer = OuterHeader { endpoints, tos: 0, source_port: 2152, teid: 0, pdu_session: None };
        let pdu_session = qfi.map(|qfi| PduSession { paging_policy: policy, ..PduSession::downlink(qfi) });
        let tunnel = Tunnel { teid, pdu_session, tos: dscp << 2 };
        let number = |content| Extension { kind: extension_type::PDCP_PDU_NUMBER, content };
        let extensions: Vec<Extension<'_>> = numbers.iter().map(|content| number(&content[..])).collect();
        let came = headers(false, &extensions);
        let [mut plain, mut relayed] = [HeapBuffer::new(USER), HeapBuffer::new(USER)];
        outer.template().encapsulate_into(&mut plain, tunnel).unwrap();
        outer.template().relay_into(&mut relayed, tunnel, &Relayed::of(&came)).unwrap();
        let at = gtpu_at(relayed.data()).unwrap();
        let [plain_gtpu, relayed_gtpu] = [&plain, &relayed].map(|buffer| &buffer.data()[at..]);
        let [was, is] = [plain_gtpu, relayed_gtpu].map(|gtpu| Message::parse(gtpu).unwrap());
        prop_assert_eq!((is.message_type, is.teid, is.pdu_session), (message_type::G_PDU, teid, pdu_session));
        prop_assert_eq!((was.relays, is.relays), (false, true));
        prop_assert_eq!(&relayed_gtpu[is.header_length..], USER);
        prop_assert_eq!(is.total_length, relayed_gtpu.len());
        let again = Relayed::of(relayed.data());
        prop_assert_eq!(again.as_slice(), &extensions[..]);
        prop_assert!(is_sound(relayed.data(), at), "lengths or checksums");
        prop_assert_eq!(relayed.data()[..2].to_vec(), plain.data()[..2].to_vec(), "version and class");
    }
}

/// Lengths and checksums of IP and UDP are right.
fn is_sound(packet: &[u8], gtpu_at: usize) -> bool {
    let datagram = &packet[gtpu_at - udp::LENGTH..];
    let is_whole = udp::Header::parse(datagram).is_some_and(|header| header.length() == datagram.len());
    let is_right = match ipv4::Packet::parse(packet) {
        Ok(ip) => ip.total_length() == packet.len(),
        Err(_) => {
            let ip = ipv6::Packet::parse(packet).unwrap();
            let pseudo = ip.pseudo_sum(protocol::UDP, datagram.len());
            ip.total_length() == packet.len() && udp::verify(datagram, pseudo) != udp::Checksum::Wrong
        }
    };
    is_whole && is_right
}
