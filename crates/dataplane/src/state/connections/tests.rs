use super::*;
use proptest::prelude::*;

fn connection(text: &str, at: u32) -> Connection {
    let mut connection = Connection { upcoming: Upcoming::Request(at), ..Connection::NONE };
    assert!(connection.insert(at, &Arc::from(text.as_bytes())));
    connection
}

#[test]
fn numbers_differ_behind_the_insertion_alone() {
    let mut it = connection("12345", 100);
    assert_eq!([99, 100, 101, 500].map(|number| it.to_server(number)), [99, 100, 106, 505]);
    assert_eq!([99, 100, 103, 105, 106, 505].map(|number| it.to_user(number)), [99, 100, 100, 100, 101, 500]);
    it.acknowledge(104);
    assert_eq!(it.covers(90, 20).map(|(offset, _)| offset), Some(10), "not all of it is there");
    it.acknowledge(105);
    assert_eq!((it.covers(90, 20), it.base), (None, 5));
    assert_eq!([101, 500].map(|number| it.to_server(number)), [106, 505]);
    assert!(it.insert(200, &Arc::from(&b"other"[..])));
    assert_eq!((it.to_server(200), it.to_server(201), it.to_user(211)), (205, 211, 201));
}

/// What comes in the server's name is believed where it may be the server's.
#[test]
fn a_connection_is_over_when_both_ends_say_so_or_one_that_may_tears_it_down() {
    let user = |it: &mut Connection, flags| it.hear_user(flags | flag::ACK, 5_000, 0);
    let server = |it: &mut Connection, flags, number: u32| it.hear_server(flags, (number, number + 1), 0);
    let is_over = |events: &[&dyn Fn(&mut Connection)]| {
        let mut it = connection("12345", 100);
        user(&mut it, 0);
        events.iter().for_each(|event| event(&mut it));
        it.may_go(ENDED_NS + 1)
    };
    let user_closes = |it: &mut Connection| user(it, flag::FIN);
    let server_closes = |it: &mut Connection| server(it, flag::FIN, 5_000);
    assert!(!is_over(&[&user_closes]) && !is_over(&[&server_closes]), "half of it is open");
    assert!(is_over(&[&user_closes, &server_closes]) && is_over(&[&server_closes, &user_closes]));
    assert!(is_over(&[&|it| user(it, flag::RST)]) && is_over(&[&|it| server(it, flag::RST, 5_000)]));
    assert!(is_over(&[&|it| server(it, flag::RST, 6_460)]), "behind what is on its way");
    for number in [1_234_567_890, 4_999, 5_000 + WINDOW] {
        assert!(!is_over(&[&|it| server(it, flag::RST, number)]), "{number}");
        assert!(!is_over(&[&user_closes, &|it| server(it, flag::FIN, number)]), "{number}");
    }
    let mut it = connection("12345", 100);
    user_closes(&mut it);
    assert!(!it.may_go(IDLE_NS) && it.may_go(IDLE_NS + 1), "nobody waits for ever");
}

#[test]
fn what_is_shifted_gives_way_to_nothing() {
    let mut all = Connections::new(2, None).unwrap();
    let keys: Vec<FlowKey> = (1..5)
        .map(|port| {
            let tuple = packet::FiveTuple { source_port: port, version: 4, ..Default::default() };
            FlowKey::new(&tuple, rules::Direction::Uplink)
        })
        .collect();
    all.begin((&keys[0], 1), 10, 0);
    assert!(all.get((&keys[0], 1)).unwrap().insert(10, &Arc::from(&b"x"[..])));
    all.begin((&keys[1], 2), 10, 0);
    all.begin((&keys[2], 3), 10, 0);
    assert!(all.get((&keys[1], 2)).is_none() && all.get((&keys[2], 3)).is_some());
    assert!(all.get((&keys[0], 1)).unwrap().is_shifted());
    assert!(all.get((&keys[3], 1)).is_none(), "another of the same hash");
    all.begin((&keys[3], 4), 10, IDLE_NS + 1);
    all.begin((&keys[1], 2), 10, IDLE_NS + 1);
    assert!(all.get((&keys[0], 1)).is_none() && all.get((&keys[1], 2)).is_some());
}

fn key(user: u8, port: u16) -> FlowKey {
    let source = u128::from(user) << 96;
    let tuple = packet::FiveTuple { source, source_port: port, version: 4, ..Default::default() };
    FlowKey::new(&tuple, rules::Direction::Uplink)
}

/// Opens a connection and, if its user has a share left, gives it a field; whether it got one.
fn enrich(all: &mut Connections, key: &FlowKey, now_ns: u64) -> bool {
    let flow = (key, key.hash(7));
    all.begin(flow, 10, now_ns);
    let may_keep = all.may_keep(key);
    let inserted = all.get(flow).is_some_and(|it| may_keep && it.insert(10, &Arc::from(&b"x"[..])));
    if inserted {
        all.keep(flow);
    }
    inserted
}

#[test]
fn a_user_keeps_a_share_of_the_places_until_its_connections_are_over() {
    let mut all = Connections::new(64, None).unwrap();
    let got = (0..64).filter(|port| enrich(&mut all, &key(1, *port), 0)).count();
    assert_eq!(got, 64 / USERS_MIN);
    assert!(enrich(&mut all, &key(2, 1), 0), "another user's");
    // Over, and found to be so.
    (0..64).for_each(|_| all.sweep(IDLE_NS + 1));
    assert!(enrich(&mut all, &key(1, 100), IDLE_NS + 1));
    // Its session goes, and with it what it kept.
    all.forget(|flow| flow.user() == key(1, 0).user());
    let again = (200..264).filter(|port| enrich(&mut all, &key(1, *port), IDLE_NS + 1)).count();
    assert_eq!(again, 64 / USERS_MIN);
}

#[test]
fn who_opens_many_connections_displaces_its_own() {
    let mut all = Connections::new(64, None).unwrap();
    for port in 0..10_000 {
        all.begin((&key(9, port), key(9, port).hash(7)), 10, 0);
        if port < 64 && port % 8 == 0 {
            let other = key((port / 8) as u8, 1);
            all.begin((&other, other.hash(7)), 10, 0);
        }
    }
    let known = (0..8).filter(|user| all.get((&key(*user, 1), key(*user, 1).hash(7))).is_some()).count();
    assert_eq!(known, 8);
    let counted: u32 = all.shares.iter().map(|share| share.places).sum();
    assert_eq!((all.known, counted), (64, 64));
}

proptest! {
    /// A stream cut into segments at random, some of them sent again, cut otherwise: whatever arrives, laid down by
    /// number, is the stream with the text in its place, and what is acknowledged comes back right.
    #[test]
    fn however_it_is_cut_the_server_reads_the_same(
        first in any::<u32>(),
        stream in proptest::collection::vec(any::<u8>(), 1..60),
        at in 0..60_usize,
        cuts in proptest::collection::vec((0..60_usize, 1..20_usize), 1..40),
    ) {
        let at = at % stream.len();
        let text = b"inserted";
        let mut it = Connection { upcoming: Upcoming::Request(first), ..Connection::NONE };
        assert!(it.insert(first.wrapping_add(at as u32), &Arc::from(&text[..])));
        let expected = [&stream[..at], text, &stream[at..]].concat();
        let mut laid = vec![None; expected.len()];
        for (from, length) in cuts {
            let from = from % stream.len();
            let until = (from + length).min(stream.len());
            let sequence = first.wrapping_add(from as u32);
            let mut payload = stream[from..until].to_vec();
            if let Some((offset, text)) = it.covers(sequence, payload.len()) {
                payload.splice(offset..offset, text.iter().copied());
            }
            let place = it.to_server(sequence).wrapping_sub(first) as usize;
            for (octet, place) in payload.into_iter().zip(place..) {
                laid[place] = Some(octet);
            }
            prop_assert!(laid.iter().zip(&expected).all(|(seen, right)| seen.is_none_or(|seen| seen == *right)));
            let whole = laid.iter().take_while(|octet| octet.is_some()).count() as u32;
            let told = it.to_user(first.wrapping_add(whole)).wrapping_sub(first) as usize;
            let right = (whole as usize).min(at).max((whole as usize).saturating_sub(text.len()));
            prop_assert_eq!(told, right);
        }
    }
}
