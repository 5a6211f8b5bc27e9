//! Streams as a receiver sees them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

use anchorline_traffic::{
    Endpoints, FRAME_MAX, Flows, PROFILES, Profile, Transport, Tuple, Users, Written, profile,
};
use packet::{checksum, ethernet, gtpu, ipv4, udp};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

fn flows(profile: &Profile, seed: u64) -> Flows {
    Flows::new(profile, Endpoints::EXAMPLE, seed).unwrap()
}

/// A stream whose table is full, after which `opening` of the packets open flows.
fn settled(profile: &Profile, opening: f64) -> Flows {
    let mut flows = flows(profile, 1);
    flows.set_opening(1.0);
    let mut frame = [0; FRAME_MAX];
    while flows.open() < flows.limit() {
        flows.next(&mut frame).unwrap();
    }
    flows.set_opening(opening);
    flows
}

fn frames(flows: &mut Flows, count: usize) -> Vec<(Written, Vec<u8>)> {
    let one = |_| {
        let mut frame = vec![0xa5; FRAME_MAX];
        let written = flows.next(&mut frame).unwrap();
        frame.truncate(written.length);
        (written, frame)
    };
    (0..count).map(one).collect()
}

/// What is in a frame, checked layer by layer.
struct Seen {
    tuple: Tuple,
    /// The user's IP packet.
    length: usize,
    /// Of TCP: sequence number, the number after it, and flags.
    tcp: Option<(u32, u32, u8)>,
    /// A checksum was there, and right.
    summed: bool,
}

fn see(written: &Written, frame: &[u8], users: Users) -> Seen {
    let user = users.user(written.user);
    let header = ethernet::Header::parse(frame).unwrap();
    let Endpoints { n3, n6, gnb, router } = Endpoints::EXAMPLE;
    let (from, to) = if written.uplink { (gnb.0, n3.0) } else { (router.0, n6.0) };
    assert_eq!((header.source, header.destination, header.ethertype()), (from, to, ethernet::IPV4));
    let packet = &frame[ethernet::LENGTH..];
    let packet = if written.uplink { tunnelled(packet, user.teid, user.qfi) } else { packet };
    let seen = see_packet(packet, written.uplink);
    assert_eq!(seen.tuple.user, user.address);
    seen
}

fn tunnelled(packet: &[u8], teid: u32, qfi: u8) -> &[u8] {
    let outer = ipv4::Packet::parse(packet).unwrap();
    assert_eq!((outer.total_length(), outer.protocol()), (packet.len(), ipv4::UDP));
    let (_, datagram) = packet.split_at(ipv4::LENGTH);
    let header = udp::Header::parse(datagram).unwrap();
    assert_eq!((header.length(), header.destination()), (datagram.len(), gtpu::PORT));
    let message = gtpu::Message::parse(&datagram[udp::LENGTH..]).unwrap();
    assert_eq!((message.teid, message.total_length), (teid, datagram.len() - udp::LENGTH));
    assert_eq!(message.pdu_session, Some(gtpu::PduSession::uplink(qfi)));
    &datagram[udp::LENGTH + message.header_length..]
}

fn see_packet(packet: &[u8], uplink: bool) -> Seen {
    let header = ipv4::Packet::parse(packet).unwrap();
    assert_eq!(header.total_length(), packet.len());
    let segment = &packet[ipv4::LENGTH..];
    let number = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    let long = |at: usize| u32::from(number(at)) << 16 | u32::from(number(at + 2));
    let pseudo =
        [&packet[12..20], &[0, header.protocol()], &(segment.len() as u16).to_be_bytes(), segment].concat();
    let right = checksum::sum(&pseudo) == u16::MAX;
    let (summed, tcp) = if header.protocol() == ipv4::UDP {
        assert_eq!(usize::from(number(4)), segment.len());
        (number(6) != 0 && right, None)
    } else {
        let (options, flags) = (usize::from(segment[12] >> 4) * 4, segment[13]);
        let marks = u32::from(flags & 1) + u32::from(flags >> 1 & 1);
        let end = long(4).wrapping_add((segment.len() - options) as u32).wrapping_add(marks);
        (right, Some((long(4), end, flags)))
    };
    let ends = [(header.source(), number(0)), (header.destination(), number(2))];
    let [user, server] = if uplink { ends } else { [ends[1], ends[0]] };
    let tuple = Tuple {
        user: user.0.into(),
        user_port: user.1,
        server: server.0.into(),
        server_port: server.1,
        protocol: header.protocol(),
    };
    Seen { tuple, length: packet.len(), tcp, summed }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_sound(which in 0..PROFILES.len(), seed: u64, opening in 0.0..=1.0, few in 1..200_u32) {
        let profile = Profile { opening, flows: few, ..PROFILES[which] };
        let mut flows = flows(&profile, seed);
        for (written, frame) in frames(&mut flows, 400) {
            let seen = see(&written, &frame, flows.users());
            prop_assert!(seen.summed);
            prop_assert_eq!(seen.tuple, flows.tuple(written.flow));
            prop_assert!(written.user < profile.active);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_stream(which in 0..PROFILES.len(), seed: u64) {
        let stream = |seed| frames(&mut flows(&PROFILES[which], seed), 300);
        prop_assert!(stream(seed) == stream(seed));
        prop_assert!(stream(seed) != stream(seed ^ 1));
    }
}

#[test]
fn flows_go_on_where_they_were() {
    let few = Profile { flows: 300, opening: 0.2, ..*profile("zte").unwrap() };
    let mut flows = flows(&few, 4);
    let mut positions = HashMap::new();
    let mut next = HashMap::new();
    let (mut began, mut ended) = (0, 0);
    for (written, frame) in frames(&mut flows, 30_000) {
        let position = positions.entry(written.flow).or_insert(0);
        assert_eq!(written.position, *position);
        *position += 1;
        let Some((sequence, after, mark)) = see(&written, &frame, flows.users()).tcp else { continue };
        let expected = next.insert((written.flow, written.uplink), after);
        assert_eq!(mark & 2 != 0, expected.is_none(), "SYN comes first, and only then");
        assert!(expected.is_none_or(|expected| expected == sequence));
        began += u32::from(mark & 2 != 0);
        ended += u32::from(mark & 1 != 0);
    }
    // But for those that are open, each connection had two of either.
    assert!(began > 1_000 && ended > began - 2 * 300, "{began} {ended}");
}

#[test]
fn an_opening_is_a_handshake_and_what_the_transport_says_first() {
    let mut flows = flows(&Profile { opening: 0.7, ..*profile("epc-us").unwrap() }, 2);
    let mut openings: HashMap<u64, Vec<bool>> = HashMap::new();
    for (written, _) in frames(&mut flows, 3_000).into_iter().filter(|(written, _)| written.first_packets) {
        openings.entry(written.flow).or_default().push(written.uplink);
    }
    let mut seen: HashMap<Transport, HashSet<String>> = HashMap::new();
    for (flow, ways) in openings {
        let ways = ways.iter().map(|up| if *up { 'u' } else { 'd' }).collect();
        seen.entry(flows.label(flow).transport).or_default().insert(ways);
    }
    for (transport, whole) in [
        (Transport::Http, vec!["uduudd"]),
        (Transport::Tls, vec!["uduuddu", "uduudddudud", "uduuudddudud"]),
        (Transport::Quic, vec!["udddu", "uudddu"]),
        (Transport::Udp, vec!["ud"]),
        (Transport::Dns, vec!["ud", "uudd"]),
    ] {
        let ways = &seen[&transport];
        assert!(whole.iter().all(|whole| ways.contains(*whole)), "{transport:?} {ways:?}");
        let starts = |way: &String| whole.iter().any(|whole| whole.starts_with(way));
        assert!(ways.iter().all(starts), "{transport:?} {ways:?}");
    }
}

#[test]
fn directions_lengths_and_services_are_as_often_as_the_profile_says() {
    for model in PROFILES {
        let profile = Profile { flows: 3_000, ..*model };
        let mut flows = settled(&profile, profile.opening);
        let mut counts: HashMap<(bool, String), f64> = HashMap::new();
        let (mut all, mut up, mut opening) = (0.0, 0.0, 0.0);
        for (written, frame) in frames(&mut flows, 60_000) {
            if written.first_packets {
                opening += 1.0;
                continue;
            }
            let seen = see(&written, &frame, flows.users());
            if seen.length < 60 {
                continue; // the end of a connection
            }
            all += 1.0;
            up += f64::from(u8::from(written.uplink));
            let label = flows.label(written.flow);
            let service = format!("{} {:?}", label.service, label.transport);
            *counts.entry((written.uplink, service)).or_default() += 1.0;
            *counts.entry((written.uplink, seen.length.to_string())).or_default() += 1.0;
        }
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 0.012, "{}: {found} is not {expected}", model.name);
        };
        near(up / all, profile.uplink);
        near(opening / 60_000.0, profile.opening);
        for (way, lengths) in [(true, profile.uplink_lengths), (false, profile.downlink_lengths)] {
            let of_way = if way { up } else { all - up };
            let found = |key: String| counts.get(&(way, key)).copied().unwrap_or_default() / of_way;
            lengths.iter().for_each(|length| near(found(length.bytes.to_string()), length.share));
            for service in profile.services {
                let share = if way { service.uplink } else { service.downlink };
                near(found(format!("{} {:?}", service.name, service.transport)), share);
            }
        }
    }
}

#[test]
fn the_volume_of_the_carrier_model_is_85_percent_http_whatever_opens_flows() {
    let profile = Profile { flows: 3_000, ..*profile("zte").unwrap() };
    let mut flows = settled(&profile, profile.opening);
    let (mut http, mut all) = (0, 0);
    for (written, frame) in frames(&mut flows, 60_000) {
        let bytes = see(&written, &frame, flows.users()).length;
        all += bytes;
        http += if flows.label(written.flow).service == "http" { bytes } else { 0 };
    }
    let share = http as f64 / all as f64;
    assert!((share - 0.85).abs() < 0.015, "{share}");
}

#[test]
fn no_more_flows_are_open_than_asked_for_and_new_ones_keep_coming() {
    let profile = Profile { flows: 1_000, ..*profile("zte").unwrap() };
    let mut flows = settled(&profile, 0.1);
    assert!((990 - 64..=1_000).contains(&flows.limit()), "{}", flows.limit());
    let before = flows.opened();
    let opening = frames(&mut flows, 50_000).iter().filter(|(written, _)| written.first_packets).count();
    assert_eq!(flows.open(), flows.limit());
    assert!((4_700..5_300).contains(&opening), "{opening}");
    // Between seven and ten packets open a flow, with its lookup.
    let opened = flows.opened() - before;
    assert!((5_000 / 10..5_000 / 7).contains(&opened), "{opened}");
}

#[test]
fn the_more_flows_are_open_the_more_are_opening() {
    let mut flows = settled(&Profile { flows: 20_000, ..*profile("zte").unwrap() }, 1.0);
    let one_after_the_other: HashSet<u64> =
        frames(&mut flows, 1_100).iter().map(|(written, _)| written.flow).collect();
    assert_eq!(one_after_the_other.len(), 1_100);
}

#[test]
fn headers_alone_are_the_same_headers() {
    let model = Profile { flows: 500, opening: 0.2, ..*profile("zte").unwrap() };
    let mut whole = flows(&model, 9);
    let mut bare = flows(&model, 9).headers_only();
    let mut untouched = 0;
    for ((written, frame), (same, headers)) in frames(&mut whole, 5_000).iter().zip(frames(&mut bare, 5_000))
    {
        assert_eq!(*written, same);
        let seen = [frame, &headers].map(|frame| see(written, frame, whole.users()));
        assert_eq!((seen[0].tuple, seen[0].tcp), (seen[1].tuple, seen[1].tcp));
        let end = frame.len();
        if !written.first_packets && end > 300 {
            assert!(headers[end - 100..].iter().all(|byte| *byte == 0xa5));
            untouched += 1;
        }
    }
    assert!(untouched > 1_000);
}

#[test]
fn a_short_frame_changes_nothing() {
    let [mut one, mut other] = [1, 1].map(|seed| flows(profile("zte").unwrap(), seed));
    assert_eq!(one.next(&mut [0; FRAME_MAX - 1]), None);
    assert!(frames(&mut one, 10) == frames(&mut other, 10));
}

#[test]
fn profiles_that_cannot_be_are_refused() {
    let model = profile("zte").unwrap();
    let long = &[anchorline_traffic::Length { bytes: 9_000, share: 1.0 }];
    let error = |profile: &Profile| Flows::new(profile, Endpoints::EXAMPLE, 1).err().map(|e| e.to_string());
    let found = error(&Profile { uplink_lengths: long, ..*model }).unwrap();
    assert!(found.contains("9000") && found.contains("1450"), "{found}");
    let found = error(&Profile { services: &[], ..*model }).unwrap();
    assert!(found.contains("zte"), "{found}");
}
