//! Compares with packets that scapy built (golden/make.py).

use crate::ethernet::MacAddress;
use crate::gtpu::{Endpoints, OuterHeader, PduSession, PduType, TunnelError, UdpChecksum};
use crate::ndp::{Dns, NeighbourAdvertisement, Prefix, RouterAdvertisement};
use crate::{Buffer, FiveTuple, HeapBuffer, fragment, gtpu, icmp, icmpv6, ipv4, ipv6, ndp, tcp, udp, vlan};
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A line: an operation, its arguments, and what must come of it.
struct Case {
    operation: String,
    given: Vec<String>,
    expected: Vec<String>,
}

fn cases(text: &str) -> Vec<Case> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let read = |line: &str| {
        let (left, right) = line.split_once('=').unwrap();
        let mut given = words(left);
        let operation = given.remove(0);
        Case { operation, given, expected: words(right) }
    };
    text.lines().map(read).collect()
}

impl Case {
    fn value<T: FromStr<Err: std::fmt::Debug>>(&self, at: usize) -> T {
        self.given[at].parse().unwrap()
    }

    fn hex_value(&self, at: usize) -> u32 {
        u32::from_str_radix(&self.given[at], 16).unwrap()
    }

    fn bytes(&self, at: usize) -> Vec<u8> {
        bytes(&self.given[at])
    }

    /// Compares with the only thing that must come of it.
    fn check(&self, made: &[u8]) {
        assert_eq!(hex(made), self.expected[0], "{} {:?}", self.operation, self.given);
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = if text == "-" { "" } else { text };
    let nibbles: Vec<_> = digits.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    nibbles.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn hex(bytes: &[u8]) -> String {
    let pairs: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if pairs.is_empty() { "-".into() } else { pairs }
}

/// Calls a builder with room, and cuts the room to what it used.
fn built(write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut room = vec![0; 2000];
    let length = write(&mut room).unwrap();
    room.truncate(length);
    room
}

/// `kind,qfi,reflective,policy`
fn container(text: &str) -> Option<PduSession> {
    let mut words = text.split(',');
    let kind = words.next().filter(|kind| *kind != "-")?;
    let qfi = words.next()?.parse().ok()?;
    let reflective = words.next() == Some("1");
    let paging_policy = words.next().and_then(|policy| policy.parse().ok());
    Some(match kind {
        "ul" => PduSession::uplink(qfi),
        _ => PduSession { reflective, paging_policy, ..PduSession::downlink(qfi) },
    })
}

#[test]
fn flows() {
    for case in cases(include_str!("../golden/flows.golden")) {
        let read = FiveTuple::parse(&case.bytes(0)).unwrap();
        let flow = read.tuple;
        let (ports, security) = ([flow.source_port, flow.destination_port].map(u32::from), flow.spi);
        let addresses =
            [flow.source_address(), flow.destination_address()].map(|address| address.to_string());
        let rest = [flow.protocol.into(), security, flow.tos.into(), flow.flow_label, flow.fragment.into()];
        let places = [read.upper, read.total].map(|place| place as u32);
        let numbers = ports.iter().chain(&rest).chain(&places).map(u32::to_string);
        let seen: Vec<_> = addresses.into_iter().chain(numbers).collect();
        assert_eq!(seen, case.expected, "{}", case.given[0]);
    }
}

fn outer(case: &Case) -> OuterHeader {
    let checksum = if case.given[3] == "zero" { UdpChecksum::Zero } else { UdpChecksum::Computed };
    let endpoints = match (case.value(0), case.value(1)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Endpoints::V4 { source, destination },
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            Endpoints::V6 { source, destination, flow_label: case.value(2), checksum }
        }
        _ => panic!("addresses of two versions"),
    };
    OuterHeader {
        endpoints,
        tos: case.value(4),
        source_port: case.value(5),
        teid: case.hex_value(6),
        pdu_session: container(&case.given[7]),
    }
}

#[test]
fn tunnels() {
    for case in cases(include_str!("../golden/tunnels.golden")) {
        let mut buffer = HeapBuffer::new(&case.bytes(8));
        outer(&case).template().encapsulate(&mut buffer).unwrap();
        case.check(buffer.data());
    }
}

#[test]
fn changes() {
    for case in cases(include_str!("../golden/changes.golden")) {
        let mut packet = case.bytes(case.given.len() - 1);
        match case.operation.as_str() {
            "tos" => ipv4::set_tos(&mut packet, case.value(0)).unwrap(),
            "ttl" => ipv4::decrement_ttl(&mut packet).unwrap(),
            "class" => ipv6::set_traffic_class(&mut packet, case.value(0)).unwrap(),
            "hops" => ipv6::decrement_hop_limit(&mut packet).unwrap(),
            "label" => ipv6::set_flow_label(&mut packet, case.value(0)).unwrap(),
            "mss" => assert_eq!(tcp::clamp_mss(&mut packet, case.value(0)), Ok(tcp::Clamp::Lowered)),
            "udp" => fill_udp_checksum(&mut packet),
            "push" => packet = pushed(&case, &packet),
            other => panic!("what is {other}?"),
        }
        case.check(&packet);
    }
}

fn fill_udp_checksum(packet: &mut [u8]) {
    let read = FiveTuple::parse(packet).unwrap();
    let length = read.total - read.upper;
    let pseudo = match (read.tuple.source_address(), read.tuple.destination_address()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ipv4::pseudo_sum(from, to, 17, length),
        (IpAddr::V6(from), IpAddr::V6(to)) => ipv6::pseudo_sum(from, to, 17, length),
        _ => panic!("addresses of two versions"),
    };
    udp::fill_checksum(&mut packet[read.upper..], pseudo).unwrap();
    assert_eq!(udp::verify(&packet[read.upper..], pseudo), udp::Checksum::Intact);
}

fn pushed(case: &Case, frame: &[u8]) -> Vec<u8> {
    let tag = vlan::Tag { id: case.value(1), priority: case.value(2), drop_eligible: case.given[3] == "1" };
    let mut buffer = HeapBuffer::new(frame);
    vlan::push(&mut buffer, case.hex_value(0) as u16, tag).unwrap();
    assert_eq!(vlan::Tags::parse(buffer.data()).unwrap().outer, Some(tag));
    let tagged = buffer.data().to_vec();
    assert_eq!((vlan::pop(&mut buffer), buffer.data()), (Some(tag), frame));
    tagged
}

#[test]
fn answers() {
    for case in cases(include_str!("../golden/answers.golden")) {
        let mut packet = case.bytes(case.given.len() - 1);
        let made = match case.operation.as_str() {
            "reset" => built(|room| tcp::write_reset(&packet, room).ok()),
            "error4" => built(|room| icmp::write_error(error4(&case), &packet, case.value(3), room).ok()),
            "error6" => built(|room| icmpv6::write_error(error6(&case), &packet, case.value(3), room).ok()),
            "ping6" => {
                icmpv6::reply_to_echo(&mut packet).unwrap();
                packet
            }
            other => panic!("what is {other}?"),
        };
        case.check(&made);
    }
}

fn error4(case: &Case) -> icmp::Error {
    match (case.value(0), case.value(1)) {
        (11u8, 0) => icmp::Error::TimeExceeded,
        (3, 4) => icmp::Error::FragmentationNeeded { mtu: case.value(2) },
        (_, code) => icmp::Error::Unreachable { code },
    }
}

fn error6(case: &Case) -> icmpv6::Error {
    match (case.value(0), case.value(1)) {
        (1u8, code) => icmpv6::Error::Unreachable { code },
        (2, _) => icmpv6::Error::PacketTooBig { mtu: case.value(2) },
        (3, _) => icmpv6::Error::TimeExceeded,
        (_, code) => icmpv6::Error::ParameterProblem { code, pointer: case.value(2) },
    }
}

const DNS: [[u8; 16]; 2] = [
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x53).octets(),
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x54).octets(),
];

/// What golden/make.py advertises, with or without options.
fn advertisement(full: bool, source_link: Option<MacAddress>) -> RouterAdvertisement<'static> {
    let bare = RouterAdvertisement {
        hop_limit: 64,
        other: true,
        lifetime_s: 65_535,
        reachable_ms: 7,
        retransmit_ms: 9,
        ..RouterAdvertisement::default()
    };
    let prefix = Prefix {
        address: Ipv6Addr::new(0x2001, 0xdb8, 0x60, 0, 0, 0, 0, 0),
        length: 64,
        on_link: false,
        autonomous: true,
        valid_s: u32::MAX,
        preferred_s: 3600,
    };
    let dns = Some(Dns { lifetime_s: 600, servers: &DNS });
    let with_options =
        RouterAdvertisement { source_link, mtu: Some(1400), prefix: Some(prefix), dns, ..bare };
    if full { with_options } else { bare }
}

#[test]
fn neighbours() {
    for case in cases(include_str!("../golden/neighbours.golden")) {
        let mac = case.given.last().unwrap().parse().ok();
        let message = match case.operation.as_str() {
            "rs" => ndp::Message::RouterSolicitation { source_link: mac },
            "ns" => ndp::Message::NeighbourSolicitation { target: case.value(2), source_link: mac },
            "na" => ndp::Message::NeighbourAdvertisement(NeighbourAdvertisement {
                target: case.value(2),
                router: case.given[3].contains('r'),
                solicited: case.given[3].contains('s'),
                overrides: case.given[3].contains('o'),
                target_link: mac,
            }),
            "ra" => ndp::Message::RouterAdvertisement(advertisement(case.given[2] == "full", mac)),
            other => panic!("what is {other}?"),
        };
        case.check(&built(|room| message.write(case.value(0), case.value(1), room)));
        let packet = bytes(&case.expected[0]);
        assert_eq!(ndp::Message::parse(&ipv6::Packet::parse(&packet).unwrap()), Ok(message));
    }
}

#[test]
fn fragments() {
    for case in cases(include_str!("../golden/fragments.golden")) {
        let packet = case.bytes(1);
        let split = fragment::Split::plan(&packet, case.value(0)).unwrap();
        let made: Vec<_> =
            (0..split.count()).map(|number| hex(&built(|room| split.write(number, room)))).collect();
        assert_eq!(made, case.expected);
    }
}

#[test]
fn messages() {
    for case in cases(include_str!("../golden/messages.golden")) {
        match case.operation.as_str() {
            "echo_request" => case.check(&built(|room| gtpu::write_echo_request(room, case.value(0), None))),
            "echo_response" => {
                case.check(&built(|room| gtpu::write_echo_response(room, case.value(0), None)))
            }
            "end_marker" => case.check(&built(|room| match container(&case.given[1]) {
                Some(flow) => gtpu::write_end_marker_of_flow(room, case.value(0), flow),
                None => gtpu::write_end_marker(room, case.value(0)),
            })),
            "error" => tunnel_error(&case),
            "parse" => parsed(&case),
            other => panic!("what is {other}?"),
        }
    }
}

fn tunnel_error(case: &Case) {
    let udp_port = case.given[2].parse().ok();
    let error =
        TunnelError { teid: case.hex_value(1), address: case.value(0), udp_port, recovery_time_stamp: None };
    case.check(&built(|room| error.write(room)));
    let message = bytes(&case.expected[0]);
    let head = gtpu::Message::parse(&message).unwrap();
    assert_eq!(TunnelError::read(&head, &message), Some(error));
}

fn parsed(case: &Case) {
    let message = case.bytes(0);
    let read = gtpu::Message::parse(&message).unwrap();
    let flow = read.pdu_session.map(|session| {
        let kind = if session.pdu_type == PduType::Uplink { "ul" } else { "dl" };
        let policy = session.paging_policy.map_or("-".into(), |policy| policy.to_string());
        format!("{kind},{},{},{policy}", session.qfi, u8::from(session.reflective))
    });
    let seen = [flow.unwrap_or("-".into()), read.header_length.to_string(), read.total_length.to_string()];
    assert_eq!(seen[..], case.expected, "{}", case.given[0]);
    for length in 0..message.len() {
        assert_eq!(gtpu::Message::parse(&message[..length]), Err(gtpu::Malformed::Truncated));
    }
}
