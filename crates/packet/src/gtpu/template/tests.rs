use super::*;
use crate::HeapBuffer;
use crate::gtpu::{Message, ShortContainer, ShortTunnel, encapsulated_length, message_type, write_g_pdu};
use proptest::prelude::*;

fn container() -> impl Strategy<Value = Option<PduSession>> {
    let downlink = (0u8..64, any::<bool>(), proptest::option::of(0u8..8)).prop_map(
        |(qfi, reflective, paging_policy)| PduSession {
            reflective,
            paging_policy,
            ..PduSession::downlink(qfi)
        },
    );
    proptest::option::of(prop_oneof![downlink, (0u8..64).prop_map(PduSession::uplink)])
}

fn endpoints() -> impl Strategy<Value = Endpoints> {
    let v4 =
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(source, destination)| Endpoints::V4 { source, destination });
    let checksum = prop_oneof![Just(UdpChecksum::Computed), Just(UdpChecksum::Zero)];
    let v6 = (any::<Ipv6Addr>(), any::<Ipv6Addr>(), 0u32..1 << 20, checksum).prop_map(
        |(source, destination, flow_label, checksum)| Endpoints::V6 {
            source,
            destination,
            flow_label,
            checksum,
        },
    );
    prop_oneof![v4, v6]
}

fn outer() -> impl Strategy<Value = OuterHeader> {
    (endpoints(), any::<u8>(), any::<u16>(), any::<u32>(), container()).prop_map(
        |(endpoints, tos, source_port, teid, pdu_session)| OuterHeader {
            endpoints,
            tos,
            source_port,
            teid,
            pdu_session,
        },
    )
}

/// The same packet, header by header.
fn slowly(outer: &OuterHeader, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; encapsulated_length(outer.pdu_session)];
    write_g_pdu(&mut message, outer.teid, outer.pdu_session, payload.len()).unwrap();
    message.extend(payload);
    let mut udp = [0; udp::LENGTH];
    udp::Header::new(outer.source_port, PORT, message.len()).unwrap().write(&mut udp).unwrap();
    let datagram = [&udp[..], &message].concat();
    match outer.endpoints {
        Endpoints::V4 { source, destination } => {
            let mut ip = [0; ipv4::LENGTH];
            ipv4::Header::new(source, destination, protocol::UDP, datagram.len())
                .unwrap()
                .write(&mut ip)
                .unwrap();
            ip[1] = outer.tos;
            ip[10..12].fill(0);
            let checksum = checksum::of(&ip);
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            [&ip[..], &datagram].concat()
        }
        Endpoints::V6 { source, destination, flow_label, checksum } => {
            let ip = ipv6::Header::new(source, destination, protocol::UDP, datagram.len()).unwrap();
            let ip = ip.with_traffic_class(outer.tos).with_flow_label(flow_label);
            let mut datagram = datagram;
            if checksum == UdpChecksum::Computed {
                let pseudo = ipv6::pseudo_sum(source, destination, protocol::UDP, datagram.len());
                let sum = checksum::add(pseudo, checksum::sum(&datagram));
                datagram[6..8].copy_from_slice(&checksum::of_sum_not_zero(sum).to_be_bytes());
            }
            [ip.as_bytes(), &datagram].concat()
        }
    }
}

fn n3(pdu_session: Option<PduSession>) -> OuterHeader {
    let endpoints = Endpoints::V4 { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into() };
    OuterHeader { endpoints, tos: 0xb8, source_port: PORT, teid: 7, pdu_session }
}

#[test]
fn what_does_not_fit_is_refused() {
    let template = n3(Some(PduSession::downlink(9))).template();
    let Template::V4(v4) = template else { panic!("IPv4 was asked for") };
    assert_eq!(template.length(), 44);
    assert!(v4.write(&mut [0; 44], 65_535 - 44).is_some());
    assert!(v4.write(&mut [0; 44], 65_535 - 43).is_none());
    assert!((0..44).all(|short| v4.write(&mut vec![0; short], 0).is_none()));
    assert!(template.encapsulate(&mut HeapBuffer::with_headroom(&[1], 43)).is_none());
}

#[test]
fn what_does_not_fit_over_ipv6_is_refused() {
    let endpoints = Endpoints::V6 {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
        flow_label: 0,
        checksum: UdpChecksum::Zero,
    };
    let Template::V6(v6) = (OuterHeader { endpoints, ..n3(None) }).template() else {
        panic!("IPv6 was asked for")
    };
    assert_eq!(v6.length(), 56);
    assert!(v6.write(&mut vec![0; 40 + 65_535]).is_some());
    assert!(v6.write(&mut vec![0; 40 + 65_536]).is_none());
    assert!((0..56).all(|short| v6.write(&mut vec![0; short]).is_none()));
}

proptest! {
    #[test]
    fn a_template_writes_what_the_single_builders_write(
        outer in outer(),
        payload in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut buffer = HeapBuffer::new(&payload);
        buffer.prepend(80).unwrap()[..80].fill(0xee);
        buffer.trim_front(80).unwrap();
        let template = outer.template();
        template.encapsulate(&mut buffer).unwrap();
        prop_assert_eq!(template.length() + payload.len(), buffer.data().len());
        prop_assert_eq!(buffer.data(), slowly(&outer, &payload));
    }

    #[test]
    fn a_receiver_reads_what_was_meant(outer in outer(), payload in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut buffer = HeapBuffer::new(&payload);
        outer.template().encapsulate(&mut buffer).unwrap();
        let upper = crate::FiveTuple::parse(buffer.data()).unwrap();
        prop_assert_eq!((upper.tuple.source_port, upper.tuple.destination_port), (outer.source_port, PORT));
        prop_assert_eq!((upper.tuple.tos, upper.total), (outer.tos, buffer.data().len()));
        let message = Message::parse(&buffer.data()[upper.upper + udp::LENGTH..]).unwrap();
        prop_assert_eq!((message.message_type, message.teid), (message_type::G_PDU, outer.teid));
        prop_assert_eq!(message.pdu_session, outer.pdu_session);
        prop_assert_eq!(message.total_length - message.header_length, payload.len());
    }

    #[test]
    fn another_flow_of_the_same_tunnel(outer in outer(), other in container(), payload in proptest::collection::vec(any::<u8>(), 0..20)) {
        let mut buffers = [HeapBuffer::new(&payload), HeapBuffer::new(&payload)];
        outer.template().encapsulate_with(&mut buffers[0], other).unwrap();
        OuterHeader { pdu_session: other, ..outer }.template().encapsulate(&mut buffers[1]).unwrap();
        prop_assert_eq!(buffers[0].data(), buffers[1].data());
    }
}

proptest! {
    /// What the short way writes, the long way writes in pieces.
    #[test]
    fn framed_is_the_template_with_an_ethernet_header(
        (source, destination, source_port) in any::<(Ipv4Addr, Ipv4Addr, u16)>(),
        (teid, tos, pdu_session) in (any::<u32>(), any::<u8>(), container()),
        (payload, mtu) in (proptest::collection::vec(any::<u8>(), 0..300), 0u16..400),
    ) {
        let endpoints = Endpoints::V4 { source, destination };
        let outer = OuterHeader { endpoints, tos: 0, source_port, teid: 0, pdu_session: None };
        let Template::V4(template) = outer.template() else { unreachable!() };
        let header = crate::ethernet::Header::new(
            crate::ethernet::MacAddress([1; 6]), crate::ethernet::MacAddress([2; 6]), crate::ethernet::IPV4,
        );
        let tunnel = Tunnel { teid, pdu_session, tos };
        let mut expected = HeapBuffer::new(&payload);
        template.encapsulate_into(&mut expected, tunnel).unwrap();
        let fits = expected.data().len() <= usize::from(mtu);
        header.write(expected.prepend(crate::ethernet::LENGTH).unwrap()).unwrap();
        let mut buffer = HeapBuffer::new(&payload);
        let container = ShortContainer::of(pdu_session);
        let short = container.map(|container| ShortTunnel { teid, container, tos });
        let done = short.and_then(|short| template.framed(header).encapsulate(&mut buffer, short, mtu));
        let is_short = pdu_session.is_none_or(|container| container.paging_policy.is_none());
        prop_assert_eq!((done.is_some(), container.is_some()), (fits && is_short, is_short));
        prop_assert_eq!(buffer.data(), if done.is_some() { expected.data() } else { &payload[..] });
    }
}
