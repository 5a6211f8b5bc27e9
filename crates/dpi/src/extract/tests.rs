use super::*;
use crate::extract::tls::tests::in_records;
use proptest::prelude::*;

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nUser-Agent: x\r\nHost: a.example\r\n\r\n";

fn host_of(verdict: &Verdict<'_>) -> Option<String> {
    match verdict {
        Verdict::Seen(seen) => seen.host().map(|host| String::from_utf8_lossy(host).into_owned()),
        _ => None,
    }
}

#[test]
fn a_stream_in_one_byte_segments_is_followed_so_far_and_given_up() {
    let told = |stream: &[u8]| {
        let mut inspection = Inspection::new();
        for (place, byte) in stream.iter().enumerate() {
            match inspection.segment(place as u32, std::slice::from_ref(byte)) {
                Verdict::More => {}
                verdict => return (place + 1, host_of(&verdict)),
            }
        }
        panic!("more than {}", stream.len());
    };
    assert_eq!(told(REQUEST), (REQUEST.len() - 2, Some("a.example".to_owned())));
    let long = [b"GET /a HTTP/1.1\r\nUser-Agent: ", &[b'x'; 40][..], b"\r\nHost: a.example\r\n\r\n"].concat();
    assert_eq!(told(&long), (usize::from(SEGMENTS_MAX), None));
}

/// A flow that waits no longer is of what it has said so far: a name that stands in the ClientHello's first octets is enough.
#[test]
fn what_has_come_of_a_stream_is_what_is_known_in_the_end() {
    let hello = in_records(&tls::hello_sample("a.example"), 1_000);
    for (stream, cut) in [(&hello[..], hello.len() - 1), (REQUEST, REQUEST.len() - 3)] {
        let mut inspection = Inspection::new();
        assert_eq!(host_of(&inspection.conclude()), None, "nothing has come");
        assert_eq!(inspection.segment(1, &stream[..cut]), Verdict::More);
        assert_eq!(inspection.packets(), 1);
        let told = host_of(&inspection.conclude());
        assert_eq!(told.as_deref(), if stream == REQUEST { None } else { Some("a.example") });
    }
}

#[test]
fn endless_headers_are_given_up_with_what_is_known() {
    let mut inspection = Inspection::new();
    let line = [&b"X: "[..], &[b'y'; 1_000], b"\r\n"].concat();
    let mut sequence = u32::MAX - 100;
    let mut segments = vec![b"GET /a HTTP/1.1\r\n".to_vec()];
    segments.extend((0..10).map(|_| line.clone()));
    for segment in &segments {
        match inspection.segment(sequence, segment) {
            Verdict::More => sequence = sequence.wrapping_add(segment.len() as u32),
            Verdict::Seen(Seen::Http(request)) => {
                assert_eq!((request.target, request.host), (&b"/a"[..], None));
                return;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("never given up");
}

/// Jumbo frames have room for more.
#[test]
fn what_is_beyond_the_bound_is_not_looked_at_in_one_segment_either() {
    let field = [&b"X: "[..], &[b'y'; BYTES_MAX], b"\r\n"].concat();
    let stream = [&b"GET /a HTTP/1.1\r\n"[..], &field, b"Host: a.example\r\n\r\n"].concat();
    for cut in [0, 1_400, BYTES_MAX - 1] {
        let (first, rest) = stream.split_at(cut);
        let mut inspection = Inspection::new();
        assert_eq!(inspection.segment(0, first), Verdict::More);
        let verdict = inspection.segment(cut as u32, rest);
        let Verdict::Seen(Seen::Http(request)) = verdict else { panic!("{cut}: {verdict:?}") };
        assert_eq!((request.target, request.host), (&b"/a"[..], None), "{cut}");
    }
}

/// The rest of an upload whose first segment was lost, or what stands beyond all that a server takes: neither is the beginning.
#[test]
fn what_is_far_ahead_of_the_beginning_is_passed_over() {
    let mut inspection = Inspection::new();
    inspection.begin(7);
    for ahead in [1_300, 2_600, 3_900, 5_200, 6_500, 200_000, 1 << 30] {
        assert_eq!(inspection.segment(7 + ahead, &[b'j'; 1_300]), Verdict::More, "{ahead}");
    }
    assert_eq!(host_of(&inspection.segment(7, REQUEST)), Some("a.example".to_owned()));
    let mut flooded = Inspection::new();
    flooded.begin(7);
    assert_eq!(flooded.segment(7, &REQUEST[..20]), Verdict::More);
    for number in 2..SEGMENTS_MAX {
        assert_eq!(flooded.segment(9_000, b"j"), Verdict::More, "{number}");
    }
    let last = flooded.segment(9_000, b"j");
    assert!(matches!(last, Verdict::Seen(Seen::Http(request)) if request.host.is_none()), "{last:?}");
}

/// More of them than are kept.
#[test]
fn pieces_that_wait_do_not_keep_the_beginning_from_being_read() {
    let mut inspection = Inspection::new();
    inspection.begin(0);
    for number in 1..40 {
        assert_eq!(inspection.segment(100 * number, b"j"), Verdict::More, "{number}");
    }
    assert_eq!(host_of(&inspection.segment(0, REQUEST)), Some("a.example".to_owned()));
}

/// As Linux has it.
#[test]
fn what_comes_in_order_counts_over_what_waits() {
    let other = String::from_utf8(REQUEST.to_vec()).unwrap().replace("a.example", "b.example");
    let other = other.as_bytes();
    for tail in [5, 20, 38] {
        let mut inspection = Inspection::new();
        inspection.begin(0);
        assert_eq!(inspection.segment(tail, &other[tail as usize..]), Verdict::More);
        assert_eq!(host_of(&inspection.segment(0, REQUEST)), Some("a.example".to_owned()), "{tail}");
    }
    let mut inspection = Inspection::new();
    inspection.begin(0);
    for (from, text) in [(20, other), (10, REQUEST), (15, other)] {
        assert_eq!(inspection.segment(from, &text[from as usize..]), Verdict::More);
    }
    assert_eq!(host_of(&inspection.segment(0, &other[..10])), Some("a.example".to_owned()), "the longest");
}

/// As Linux has it: the octet before the one that the pointer points at, wherever it is, and whenever it comes.
#[test]
fn urgent_octets_are_none_of_the_stream() {
    let begun = || {
        let mut inspection = Inspection::new();
        inspection.begin(100);
        inspection
    };
    let at = REQUEST.windows(9).position(|part| part == b"a.example").unwrap() + 3;
    let (front, behind) = REQUEST.split_at(at);
    let stream = [front, b"X", behind].concat();
    let told = || Some("a.example".to_owned());
    let mut whole = begun();
    whole.urgent(100, at as u16 + 1);
    assert_eq!(host_of(&whole.segment(100, &stream)), told());
    // Told by a segment of its own, before or with another one, and what stands behind has come already.
    for (sequence, pointer) in
        [(100, at as u16 + 1), (100 + at as u32, 1), (100 + at as u32, 0), (90, at as u16 + 11)]
    {
        let mut inspection = begun();
        assert_eq!(inspection.segment(100 + at as u32 - 2, &stream[at - 2..at + 2]), Verdict::More);
        assert_eq!(inspection.segment(100 + at as u32 + 4, &stream[at + 4..]), Verdict::More);
        inspection.urgent(sequence, pointer);
        inspection.urgent(sequence, pointer);
        assert_eq!(inspection.segment(100, &stream[..at - 2]), Verdict::More);
        assert_eq!(host_of(&inspection.segment(100 + at as u32, &stream[at..at + 7])), told(), "{sequence}");
    }
    // The last octet of a segment, as programs send it, and two of them.
    let mut inspection = begun();
    inspection.urgent(100, 4);
    assert_eq!(inspection.segment(100, &[&REQUEST[..3], b"X"].concat()), Verdict::More);
    inspection.urgent(104, 2);
    assert_eq!(inspection.segment(104, &[&REQUEST[3..4], b"Y"].concat()), Verdict::More);
    // What waits behind one counts for no more than it would without.
    let mut over = begun();
    over.urgent(100, 21);
    assert_eq!(over.segment(121, b"j\r\n\r\n"), Verdict::More);
    assert_eq!(host_of(&over.segment(100, &[&REQUEST[..20], b"X", &REQUEST[20..]].concat())), told());
    // Of what has been read nothing is taken back.
    inspection.urgent(100, 2);
    assert_eq!(host_of(&inspection.segment(106, &REQUEST[4..])), told());
}

#[test]
fn segments_in_disorder_and_old_copies_are_put_in_order() {
    let mut inspection = Inspection::new();
    inspection.begin(1_000);
    assert_eq!(inspection.segment(1_020, &REQUEST[20..]), Verdict::More);
    // A keep-alive, an empty one, and an old copy.
    assert_eq!(inspection.segment(999, b"\0"), Verdict::More);
    assert_eq!(inspection.segment(1_000, b""), Verdict::More);
    assert_eq!(inspection.segment(1_000, &REQUEST[..10]), Verdict::More);
    let verdict = inspection.segment(1_005, &REQUEST[5..25]);
    assert_eq!(host_of(&verdict), Some("a.example".to_owned()));
}

/// What came with a SYN is the beginning as far as the server's SYN acknowledges it, and no further.
#[test]
fn what_comes_with_a_syn_counts_once_it_is_acknowledged() {
    let first = u32::MAX - 3;
    let begun = |early: &[u8]| {
        let mut inspection = Inspection::new();
        inspection.early(first, early);
        inspection
    };
    let mut whole = begun(REQUEST);
    assert_eq!(whole.accepted(first.wrapping_add(REQUEST.len() as u32 + 1)), Verdict::More, "never said");
    let verdict = whole.accepted(first.wrapping_add(REQUEST.len() as u32));
    assert_eq!(host_of(&verdict), Some("a.example".to_owned()));
    let mut part = begun(REQUEST);
    assert_eq!(part.accepted(first.wrapping_add(20)), Verdict::More);
    let verdict = part.segment(first.wrapping_add(20), &REQUEST[20..]);
    assert_eq!(host_of(&verdict), Some("a.example".to_owned()));
    let decoy = b"GET /a HTTP/1.1\r\nHost: b.example\r\n\r\n";
    let mut refused = begun(decoy);
    assert_eq!(refused.accepted(first), Verdict::More);
    // A late copy of the acknowledgement that others gave.
    assert_eq!(refused.accepted(first.wrapping_add(decoy.len() as u32)), Verdict::More);
    assert_eq!(host_of(&refused.segment(first, REQUEST)), Some("a.example".to_owned()));
    // Nobody heard the server.
    assert_eq!(host_of(&begun(decoy).segment(first, REQUEST)), Some("a.example".to_owned()));
}

/// A connection between the ports of one that said nothing yet, or not all: its server takes another SYN.
#[test]
fn a_later_syn_is_of_another_connection_once_the_server_takes_it() {
    let (first, again) = (5_000, 900_000);
    let begun = || {
        let mut inspection = Inspection::new();
        inspection.early(first, b"");
        inspection.answered(77, true);
        assert_eq!(inspection.segment(first, &REQUEST[..10]), Verdict::More);
        inspection.early(again, b"");
        inspection
    };
    let mut renewed = begun();
    assert!(renewed.is_answer(again) && renewed.is_answer(first) && !renewed.is_answer(again + 1));
    renewed.renew(again);
    assert!(renewed.is_acceptable(7), "the server has not been heard there");
    assert_eq!(host_of(&renewed.segment(again, REQUEST)), Some("a.example".to_owned()));
    let mut old = begun();
    for other in [first, again - 1, again + 1] {
        old.renew(other);
    }
    assert_eq!(host_of(&old.segment(first + 10, &REQUEST[10..])), Some("a.example".to_owned()));
}

#[test]
fn acknowledgements_are_of_what_the_server_said() {
    let mut inspection = Inspection::new();
    assert!(inspection.is_acceptable(7), "nobody has heard it");
    inspection.answered(5, false);
    assert!(inspection.is_acceptable(7), "its SYN was not seen");
    inspection.answered(u32::MAX, true);
    assert_eq!([u32::MAX - 1, u32::MAX, 0].map(|it| inspection.is_acceptable(it)), [false, true, false]);
    inspection.answered(100, false);
    inspection.answered(50, false);
    assert_eq!([u32::MAX, 0, 100, 101].map(|it| inspection.is_acceptable(it)), [true, true, true, false]);
    inspection.reset();
    assert!(inspection.is_acceptable(7));
}

#[test]
fn timestamps_are_no_older_than_what_the_server_has_taken() {
    let mut inspection = Inspection::new();
    assert!(inspection.is_fresh(7), "nobody speaks of timestamps");
    inspection.echoes(u32::MAX);
    // An answer that was overtaken.
    inspection.echoes(u32::MAX - 9);
    assert_eq!([u32::MAX - 1, u32::MAX, 0, 5].map(|it| inspection.is_fresh(it)), [false, true, true, true]);
    inspection.echoes(5);
    assert_eq!([u32::MAX, 4, 5, 6].map(|it| inspection.is_fresh(it)), [false, false, true, true]);
    inspection.reset();
    assert!(inspection.is_fresh(7));
}

#[test]
fn other_streams_are_unknown_at_their_first_bytes() {
    for bytes in [&b"SSH-2.0-OpenSSH\r\n"[..], &[22, 3, 1, 0, 5, 2], &[0; 10], &[23, 3, 3]] {
        assert_eq!(Inspection::new().segment(5, bytes), Verdict::Unknown(Unknown::Unrecognised));
    }
}

/// It may come before media between the same ports, or have ports of its own.
#[test]
fn what_controls_media_is_told_with_its_second_packet_and_keeps_nothing_from_being_told() {
    let look = |inspection: &mut Inspection, payload: &[u8]| match inspection
        .datagram(Datagram { server_port: 30_001, payload })
    {
        Verdict::More => None,
        Verdict::Seen(Seen::Rtcp(Rtcp { source })) => Some((true, source)),
        Verdict::Seen(Seen::Rtp(Rtp { source, .. })) => Some((false, source)),
        other => panic!("{other:?}"),
    };
    let control = |source| [0x80, 200, 0, 1, 0, 0, 0, source];
    let media = |number| [0x80, 96, 0, number, 0, 0, 0, 0, 0, 0, 0, 5];
    let mut inspection = Inspection::new();
    for (source, told) in [(7, None), (9, None), (7, Some((true, 7)))] {
        assert_eq!(look(&mut inspection, &control(source)), told);
    }
    inspection.reset();
    assert_eq!(look(&mut inspection, &control(7)), None);
    assert_eq!(look(&mut inspection, &media(1)), None);
    assert_eq!(look(&mut inspection, &media(2)), Some((false, 5)));
}

#[test]
fn datagrams_are_told_by_port_and_shape() {
    let mut inspection = Inspection::new();
    let mut rtp = [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3];
    assert_eq!(inspection.datagram(Datagram { server_port: 30_000, payload: &rtp }), Verdict::More);
    // The other direction has a source of its own.
    let mut other = rtp;
    other[11] = 9;
    assert_eq!(inspection.datagram(Datagram { server_port: 30_000, payload: &other }), Verdict::More);
    rtp[3] = 2;
    let verdict = inspection.datagram(Datagram { server_port: 30_000, payload: &rtp });
    assert!(matches!(verdict, Verdict::Seen(Seen::Rtp(Rtp { payload_type: 96, source: 7, .. }))));
    let query = dns::tests::sample((3, "a.example", dns::tests::QUERY), &[], &[]);
    let mut inspection = Inspection::new();
    let verdict = inspection.datagram(Datagram { server_port: 53, payload: &query });
    let Verdict::Seen(seen @ Seen::Dns(message)) = verdict else { panic!("{verdict:?}") };
    assert_eq!((message.name().as_slice(), seen.host()), (&b"a.example"[..], None));
    let verdict =
        Inspection::new().datagram(Datagram { server_port: 53, payload: &[0; 40] }) == Verdict::More;
    assert!(!verdict);
}

/// Over TCP, however it is cut; and to that port alone.
#[test]
fn a_stream_to_a_resolver_begins_with_a_lookup() {
    let query = dns::tests::sample((3, "a.example", dns::tests::QUERY), &[], &[]);
    let stream = [&(query.len() as u16).to_be_bytes()[..], &query].concat();
    for cut in 0..stream.len() {
        let mut inspection = Inspection::new();
        inspection.is_to_resolver();
        assert_eq!(inspection.segment(7, &stream[..cut]), Verdict::More, "{cut}");
        let verdict = inspection.segment(7 + cut as u32, &stream[cut..]);
        assert!(
            matches!(verdict, Verdict::Seen(Seen::Dns(message)) if message.id == 3),
            "{cut}: {verdict:?}"
        );
        inspection.reset();
        assert_eq!(inspection.segment(7, &stream), Verdict::Unknown(Unknown::Unrecognised));
    }
    let mut inspection = Inspection::new();
    inspection.is_to_resolver();
    assert_eq!(host_of(&inspection.segment(1, REQUEST)), Some("a.example".to_owned()), "a tunnel");
}

proptest! {
    /// However a stream is cut and shuffled, it says the same, if the packets are few enough.
    #[test]
    fn any_order_of_any_segments_says_the_same(
        cuts in proptest::collection::btree_set(1..1_400_usize, 0..9),
        order in Just((0..10).collect::<Vec<usize>>()).prop_shuffle(),
        size in 5..1_500_usize,
        base: u32,
    ) {
        let stream = in_records(&tls::hello_sample("b.example"), size);
        let ends: Vec<usize> = cuts.into_iter().chain([stream.len()]).collect();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let segments: Vec<_> = starts.zip(&ends).map(|(from, to)| (from, &stream[from..*to])).collect();
        let mut inspection = Inspection::new();
        inspection.begin(base);
        let mut said = None;
        for place in order.into_iter().filter(|place| *place < segments.len()) {
            let (offset, bytes) = segments[place];
            let verdict = inspection.segment(base.wrapping_add(offset as u32), bytes);
            prop_assert!(said.is_none());
            said = host_of(&verdict);
            prop_assert!(said.is_some() || verdict == Verdict::More);
        }
        prop_assert_eq!(said.as_deref(), Some("b.example"));
    }

    /// Whatever comes: no panic, and an end after the bounds.
    #[test]
    fn any_bytes_end(
        segments in proptest::collection::vec(
            (0..6_000_u32, proptest::collection::vec(any::<u8>(), 1..40)), usize::from(SEGMENTS_MAX),
        ),
        start in prop_oneof![Just(&b"GET "[..]), Just(&[22, 3, 1, 1, 0, 1][..]), Just(&[][..])],
    ) {
        let mut inspection = Inspection::new();
        inspection.begin(0);
        let mut open = inspection.segment(0, start) == Verdict::More;
        for (offset, bytes) in &segments {
            open = open && inspection.segment(*offset, bytes) == Verdict::More;
        }
        prop_assert!(!open);
    }

    #[test]
    fn any_datagrams_end(payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 20)) {
        for (server_port, first) in [(53, 0), (443, 0xc3), (443, 0x80), (443, 0)] {
            let mut inspection = Inspection::new();
            let mut open = true;
            for payload in &payloads {
                let payload = [&[first, 0, 0, 0, 1, 4][..], payload].concat();
                open = open && inspection.datagram(Datagram { server_port, payload: &payload }) == Verdict::More;
            }
            prop_assert!(!open);
        }
    }
}
