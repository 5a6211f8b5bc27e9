use super::*;
use crate::extract::{Datagram, Inspection, Verdict};

pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// A protected Initial packet of a client with these frames, padded to 1,200 bytes at least.
fn initial((version, id): (Version, &[u8]), number: u8, frames: &[u8]) -> Vec<u8> {
    let (first, wire) = match version {
        Version::V1 => (0xc3, [0, 0, 0, 1]),
        Version::V2 => (0xd3, [0x6b, 0x33, 0x43, 0xcf]),
    };
    let mut plain = frames.to_vec();
    plain.resize(plain.len().max(1_170), 0);
    let mut header = vec![first];
    header.extend(wire);
    header.push(id.len() as u8);
    header.extend(id);
    header.extend([0, 0]);
    header.extend(((plain.len() + 4 + 16) as u16 | 0x4000).to_be_bytes());
    header.extend([0, 0, 0, number]);
    Keys::client(version, id).seal(&header, &plain)
}

fn crypto(message: &[u8], from: usize, to: usize) -> Vec<u8> {
    let number = |value: usize| (value as u16 | 0x4000).to_be_bytes();
    [&[6][..], &number(from), &number(to - from), &message[from..to]].concat()
}

fn look_at(inspection: &mut Inspection, payload: &[u8]) -> Option<(Version, String)> {
    match inspection.datagram(Datagram { server_port: 443, payload }) {
        Verdict::More => None,
        Verdict::Seen(Seen::Quic { version, hello: Some(hello) }) => {
            Some((version, String::from_utf8_lossy(hello.server_name.unwrap()).into_owned()))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_in_disorder_over_two_packets_make_a_hello() {
    let message = tls::hello_sample("q.example");
    let end = message.len();
    assert!(end > 1_300);
    let first = [
        vec![1, 0, 0],
        crypto(&message, 100, 700),
        vec![2, 0, 0, 1, 0, 0, 0, 1],
        crypto(&message, 0, 60),
        crypto(&message, 50, 90),
    ];
    let second = [crypto(&message, 700, end), crypto(&message, 90, 110)];
    for version in [Version::V1, Version::V2] {
        for turned in [false, true] {
            let mut packets = [first.concat(), second.concat()]
                .iter()
                .enumerate()
                .map(|(number, frames)| initial((version, &ID), number as u8, frames))
                .collect::<Vec<_>>();
            if turned {
                packets.reverse();
            }
            let mut inspection = Inspection::new();
            assert_eq!(look_at(&mut inspection, &packets[0]), None);
            assert_eq!(look_at(&mut inspection, &packets[1]), Some((version, "q.example".to_owned())));
        }
    }
}

/// A datagram that is too small, and one with too short an ID: no server takes them for what they say.
#[test]
fn a_decoy_that_servers_discard_says_nothing() {
    let (decoy, message) = (tls::hello_sample("decoy.example"), tls::hello_sample("q.example"));
    let cut = |message: &[u8]| [crypto(message, 0, 800), crypto(message, 800, message.len())];
    let small = |id: &[u8], number: u8, frames: &[u8]| {
        let mut plain = frames.to_vec();
        plain.resize(plain.len().max(8), 0);
        let mut header = vec![0xc3, 0, 0, 0, 1, id.len() as u8];
        header.extend(id);
        header.extend([0, 0]);
        header.extend(((plain.len() + 4 + 16) as u16 | 0x4000).to_be_bytes());
        header.extend([0, 0, 0, number]);
        Keys::client(Version::V1, id).seal(&header, &plain)
    };
    let too_small = cut(&decoy).map(|frames| small(&ID, 0, &frames));
    assert!(too_small.iter().all(|datagram| datagram.len() < 1_200));
    let short_id = cut(&decoy).map(|frames| initial((Version::V1, &ID[..7]), 0, &frames));
    for decoys in [too_small, short_id] {
        let mut inspection = Inspection::new();
        for datagram in &decoys {
            assert_eq!(look_at(&mut inspection, datagram), None);
        }
        let [one, two] = cut(&message).map(|frames| initial((Version::V1, &ID), 1, &frames));
        assert_eq!(look_at(&mut inspection, &one), None);
        assert_eq!(look_at(&mut inspection, &two), Some((Version::V1, "q.example".to_owned())));
    }
}

/// What servers do not take hides nothing that comes behind it.
#[test]
fn datagrams_of_no_meaning_are_passed_over_where_quic_is_spoken() {
    let message = tls::hello_sample("q.example");
    let cut = message.len() / 2;
    let unknown_version = [&[0xc3, 0x1a, 0x2a, 0x3a, 0x4a, 0][..], &[0; 1_200]].concat();
    let mut broken = initial((Version::V1, &ID), 0, &crypto(&message, 0, cut));
    *broken.last_mut().unwrap() ^= 1;
    let mut inspection = Inspection::new();
    for junk in [&b"\0"[..], &unknown_version, &broken, b"x"] {
        assert_eq!(look_at(&mut inspection, junk), None);
    }
    assert_eq!(look_at(&mut inspection, &initial((Version::V1, &ID), 0, &crypto(&message, 0, cut))), None);
    let second = initial((Version::V1, &ID), 1, &crypto(&message, cut, message.len()));
    assert_eq!(look_at(&mut inspection, &second), Some((Version::V1, "q.example".to_owned())));
    let elsewhere = Inspection::new().datagram(Datagram { server_port: 9_999, payload: b"\0" })
        == Verdict::Unknown(Unknown::Unrecognised);
    assert!(elsewhere);
}

/// RFC 9000 6: a version that nobody has, also sent again; the ones that the server has; and one of those. Whatever the port.
#[test]
fn a_version_that_nobody_has_is_followed_by_one_that_can_be_read() {
    let message = tls::hello_sample("q.example");
    let of = |version: [u8; 4], length: usize| {
        let header = [&[0xc3][..], &version, &[8], &ID, &[0, 0, 0x44, 0]].concat();
        [header, vec![7; length]].concat()
    };
    let grease = of([0x1a, 0x2a, 0x3a, 0x4a], 1_200);
    let negotiation = [&[0x8f, 0, 0, 0, 0, 0, 8][..], &ID, &[0, 0, 0, 1, 0xda, 0x1a, 0x2a, 0x3a]].concat();
    let early = of([0, 0, 0, 1], 100);
    let [one, two] = [(0, 700), (700, message.len())]
        .map(|(from, to)| initial((Version::V1, &ID), 0, &crypto(&message, from, to)));
    for server_port in [443, 4_433] {
        let mut inspection = Inspection::new();
        for payload in [&grease, &grease, &negotiation, &early, &one] {
            let verdict = inspection.datagram(Datagram { server_port, payload });
            assert_eq!(verdict, Verdict::More, "{server_port}: {payload:02x?}");
        }
        let verdict = inspection.datagram(Datagram { server_port, payload: &two });
        assert!(
            matches!(&verdict, Verdict::Seen(seen) if seen.host() == Some(&b"q.example"[..])),
            "{verdict:?}"
        );
    }
    // No server would answer it; no list of versions; IDs that are cut or too long; no long header.
    let small = of([0x1a, 0x2a, 0x3a, 0x4a], 1_000);
    let odd = &negotiation[..negotiation.len() - 1];
    let long = [&[0xc3, 0, 0, 0, 1, 21][..], &[0; 40]].concat();
    let short = [&[0x43][..], &grease[1..]].concat();
    for payload in [&small, odd, &negotiation[..15], &negotiation[..9], &long, &short, &grease[..4]] {
        let mut inspection = Inspection::new();
        let verdict = inspection.datagram(Datagram { server_port: 4_433, payload });
        assert_eq!(verdict, Verdict::Unknown(Unknown::Unrecognised), "{payload:02x?}");
    }
}

#[test]
fn two_packets_of_one_datagram_are_read() {
    let message = tls::hello_sample("q.example");
    let (one, two) = (crypto(&message, 0, 600), crypto(&message, 600, message.len()));
    let datagram = [initial((Version::V1, &ID), 0, &one), initial((Version::V1, &ID), 1, &two)].concat();
    let mut inspection = Inspection::new();
    assert_eq!(look_at(&mut inspection, &datagram), Some((Version::V1, "q.example".to_owned())));
}

#[test]
fn after_a_retry_the_keys_are_others() {
    let message = tls::hello_sample("q.example");
    let mut inspection = Inspection::new();
    let first = initial((Version::V1, &ID), 0, &crypto(&message, 0, 600));
    assert_eq!(look_at(&mut inspection, &first), None);
    let other = (Version::V1, &[9; 12][..]);
    assert_eq!(look_at(&mut inspection, &initial(other, 1, &crypto(&message, 0, 700))), None);
    // But not a third time: keys cost.
    let third = (Version::V1, &[8; 12][..]);
    assert_eq!(look_at(&mut inspection, &initial(third, 2, &crypto(&message, 700, message.len()))), None);
    let last = initial(other, 2, &crypto(&message, 700, message.len()));
    assert!(look_at(&mut inspection, &last).is_some());
}

#[test]
fn later_packets_to_the_servers_own_connection_id_keep_the_first_keys() {
    let message = tls::hello_sample("q.example");
    let mut inspection = Inspection::new();
    let first = initial((Version::V1, &ID), 0, &crypto(&message, 0, 600));
    assert_eq!(look_at(&mut inspection, &first), None);
    // Sealed with the keys of the first ID, sent to another of the same length.
    let frames = crypto(&message, 600, message.len());
    let mut plain = frames.clone();
    plain.resize(1_170, 0);
    let mut header = vec![0xc3, 0, 0, 0, 1, 8];
    header.extend([7; 8]);
    header.extend([0, 0]);
    header.extend(((1_170 + 20) as u16 | 0x4000).to_be_bytes());
    header.extend([0, 0, 0, 1]);
    let packet = Keys::client(Version::V1, &ID).seal(&header, &plain);
    assert!(look_at(&mut inspection, &packet).is_some());
}

#[test]
fn what_does_not_decrypt_says_nothing() {
    let message = tls::hello_sample("q.example");
    let mut packet = initial((Version::V1, &ID), 0, &crypto(&message, 0, 600));
    *packet.last_mut().unwrap() ^= 1;
    // Longer than is looked at.
    let long = initial((Version::V1, &ID), 0, &[0; 3_000]);
    let mut inspection = Inspection::new();
    for payload in [&packet, &long] {
        assert_eq!(inspection.datagram(Datagram { server_port: 4_433, payload }), Verdict::More);
    }
    assert!(inspection.connection.is_none());
}

#[test]
fn a_crypto_stream_that_is_no_hello_is_malformed_and_one_that_never_ends_is_bounded() {
    let mut inspection = Inspection::new();
    let packet = initial((Version::V1, &ID), 0, &[6, 0, 6, 2, 0, 0, 2, 1, 1]);
    let verdict = inspection.datagram(Datagram { server_port: 4_433, payload: &packet });
    assert_eq!(verdict, Verdict::Unknown(Unknown::Malformed));
    let mut inspection = Inspection::new();
    let ping = initial((Version::V1, &ID), 0, &[1]);
    for number in 1..=crate::extract::DATAGRAMS_MAX {
        let verdict = inspection.datagram(Datagram { server_port: 443, payload: &ping });
        if number < crate::extract::DATAGRAMS_MAX {
            assert_eq!(verdict, Verdict::More);
        } else {
            assert!(matches!(verdict, Verdict::Seen(Seen::Quic { hello: None, .. })));
        }
    }
}
