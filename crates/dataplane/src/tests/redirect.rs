//! Users who are sent elsewhere: each side of a connection hears what TCP lets it believe, and the books balance.

use super::drops;
use crate::content::ContentRules;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, PORTAL, REDIRECTED, SERVED, redirected, rules, served};
use packet::tcp::{Made, Segment, flag};
use packet::{FiveTuple, ethernet, ipv4, udp};
use proptest::prelude::*;
use rules::{Redirect, Rules, Urr, UrrId, Volume};
use std::net::Ipv4Addr;

const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
/// Bytes in front of the user's packet in its tunnel.
pub(super) const TUNNEL: usize = ethernet::LENGTH + ipv4::LENGTH + udp::LENGTH + 8;
/// The number of a user's SYN.
const USER: u32 = 5_000;
/// The number of a server's.
const THEIRS: u32 = 77_000;
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: www.blocked.example\r\n\r\n";
/// What begins a ClientHello.
const HELLO: &[u8] = &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];

/// The user of a session asks port 80 of the server.
pub(super) fn flow(session: u64) -> FiveTuple {
    let mut ip = [0; 44];
    let made = Made { flags: flag::SYN, sequence: 0, acknowledgement: 0, timestamps: None, payload: &[] };
    let address = |address: Ipv4Addr| u128::from(address.to_bits()) << 96;
    let tuple = FiveTuple {
        source: address([10, 60, 0, session as u8].into()),
        destination: address(SERVER),
        source_port: 41_000,
        destination_port: 80,
        protocol: packet::protocol::TCP,
        version: 4,
        ..FiveTuple::default()
    };
    let length = made.write(&tuple, &mut ip).unwrap();
    FiveTuple::parse(&ip[..length]).unwrap().tuple
}

pub(super) fn made(flags: u8, (sequence, acknowledgement): (u32, u32), payload: &[u8]) -> Made<'_> {
    Made { flags, sequence, acknowledgement, timestamps: None, payload }
}

/// The frame with a segment from the user.
pub(super) fn up(session: u64, flow: &FiveTuple, segment: &Made<'_>) -> Vec<u8> {
    let mut inner = [0; 1500];
    let length = segment.write(flow, &mut inner).unwrap();
    tunnelled(session, &inner[..length])
}

/// The frame with a packet from the user, in the tunnel of its session.
pub(super) fn tunnelled(session: u64, inner: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 3, 1, 8, 0];
    frame.resize(TUNNEL, 0);
    let gtpu = 8 + inner.len();
    ipv4::Header::new([10, 30, 0, 1].into(), [10, 30, 0, 2].into(), 17, 8 + gtpu)
        .unwrap()
        .write(&mut frame[14..])
        .unwrap();
    udp::Header::new(2152, 2152, gtpu).unwrap().write(&mut frame[34..]).unwrap();
    frame[42..46].copy_from_slice(&[0x30, 0xff, 0, inner.len() as u8]);
    frame[44..46].copy_from_slice(&(inner.len() as u16).to_be_bytes());
    frame[46..50].copy_from_slice(&(0xff + session as u32).to_be_bytes());
    frame.extend(inner);
    frame
}

/// The frame with a segment from the server.
pub(super) fn down(flow: &FiveTuple, segment: &Made<'_>) -> Vec<u8> {
    let [high, low] = if flow.version == 4 { [8, 0] } else { [0x86, 0xdd] };
    let mut frame = vec![2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1, high, low];
    frame.resize(1500, 0);
    let length = segment.write(&flow.reversed(), &mut frame[14..]).unwrap();
    frame.truncate(14 + length);
    frame
}

/// A segment that was sent: flags, number, acknowledgement, timestamps, payload.
pub(super) type Heard = (u8, u32, u32, Option<(u32, u32)>, Vec<u8>);

/// What left on one side.
fn heard(bench: &mut Bench, port: usize) -> Vec<(FiveTuple, Heard)> {
    let skipped = if port == N3 { TUNNEL } else { ethernet::LENGTH };
    let segment = |frame: Vec<u8>| {
        let ip = &frame[skipped..];
        let found = FiveTuple::parse(ip).unwrap();
        let segment = Segment::parse(&ip[found.upper..found.total]).unwrap();
        let heard = (segment.flags(), segment.sequence(), segment.acknowledgement());
        (found.tuple, (heard.0, heard.1, heard.2, segment.timestamps(), segment.payload().to_vec()))
    };
    bench.sent(port).into_iter().map(segment).collect()
}

/// What both sides hear of a frame.
pub(super) fn pass(bench: &mut Bench, port: usize, frame: &[u8]) -> (Vec<Heard>, Vec<Heard>) {
    bench.receive(port, frame);
    bench.worker.turn(bench.now_ns);
    assert!(bench.worker.books().balanced(), "{:?}", bench.worker.books());
    let heard = [N3, N6].map(|port| heard(bench, port).into_iter().map(|(_, heard)| heard).collect());
    let [user, server] = heard;
    (user, server)
}

fn is_portal(payload: &[u8]) -> bool {
    let text = str::from_utf8(payload).unwrap();
    text.starts_with("HTTP/1.1 302 Found\r\n")
        && text.contains(&format!("\r\nLocation: {PORTAL}\r\n"))
        && text.ends_with("\r\n\r\n")
}

pub(super) const ANSWER: u8 = flag::FIN | flag::PSH | flag::ACK;
const RESET: u8 = flag::RST | flag::ACK;

/// A whole connection, of which no server ever hears.
#[test]
fn a_captive_user_has_its_connection_with_the_portal_s_messenger() {
    let mut bench = Bench::full();
    let flow = flow(REDIRECTED);
    let mut say = |flags, numbers, payload: &[u8]| {
        let (user, server) = pass(&mut bench, N3, &up(REDIRECTED, &flow, &made(flags, numbers, payload)));
        assert_eq!(server, [], "the server heard of it");
        user
    };
    let accepted = say(flag::SYN, (USER, 0), b"");
    let [(flags, ours, USER_NEXT, None, _)] = accepted[..] else { panic!("{accepted:?}") };
    assert_eq!(flags, flag::SYN | flag::ACK);
    assert_eq!(say(flag::SYN, (USER, 0), b""), accepted, "said again");
    assert_eq!(say(flag::ACK, (USER + 1, ours + 1), b""), []);
    let answered = say(flag::ACK | flag::PSH, (USER + 1, ours + 1), GET);
    let [(flags, sequence, acknowledged, None, text)] = &answered[..] else { panic!("{answered:?}") };
    assert_eq!((*flags, *sequence, *acknowledged), (ANSWER, ours + 1, USER + 1 + GET.len() as u32));
    assert!(is_portal(text), "{text:?}");
    let (mine, theirs) = (*acknowledged, ours + 1 + text.len() as u32 + 1);
    assert_eq!(say(flag::ACK, (mine, theirs), b""), []);
    let closed = say(flag::ACK | flag::FIN, (mine, theirs), b"");
    assert_eq!(closed, [(flag::ACK, theirs, mine + 1, None, vec![])]);
    assert_eq!(say(flag::RST, (mine, 0), b""), []);
}

const USER_NEXT: u32 = USER + 1;

/// Nobody keeps it here, so it is not acknowledged: the user says it again (RFC 7413 4.2).
#[test]
fn a_request_that_comes_with_the_syn_is_asked_for_again() {
    let mut bench = Bench::full();
    let flow = flow(REDIRECTED);
    let (user, server) = pass(&mut bench, N3, &up(REDIRECTED, &flow, &made(flag::SYN, (USER, 0), GET)));
    let [(flags, ours, acknowledged, ..)] = user[..] else { panic!("{user:?}") };
    assert_eq!((flags, acknowledged, server.len()), (flag::SYN | flag::ACK, USER + 1, 0));
    let again = made(flag::ACK | flag::PSH, (USER + 1, ours + 1), GET);
    let (user, server) = pass(&mut bench, N3, &up(REDIRECTED, &flow, &again));
    assert!(is_portal(&user[0].4) && server.is_empty());
}

#[test]
fn what_is_no_request_is_reset_and_what_is_not_tcp_is_dropped() {
    let mut bench = Bench::full();
    let mut flow = flow(REDIRECTED);
    let data = up(REDIRECTED, &flow, &made(flag::ACK, (USER, THEIRS), HELLO));
    let (user, server) = pass(&mut bench, N3, &data);
    assert_eq!(user, [(RESET, THEIRS, USER + HELLO.len() as u32, None, vec![])]);
    // Only its own rule would lead there, and that leads to the user.
    assert_eq!((server, drops(&bench, DropReason::Redirected)), (vec![], 1));
    // A connection for TLS is refused before it begins.
    flow.destination_port = 443;
    let (user, server) = pass(&mut bench, N3, &up(REDIRECTED, &flow, &made(flag::SYN, (USER, 0), b"")));
    assert_eq!((user, server), (vec![(RESET, 0, USER + 1, None, vec![])], vec![]));
    let mut datagram = vec![0; 28 + 4];
    ipv4::Header::new([10, 60, 0, REDIRECTED as u8].into(), SERVER, 17, 12).unwrap().write(&mut datagram);
    udp::Header::new(50_000, 443, 4).unwrap().write(&mut datagram[20..]);
    let (user, server) = pass(&mut bench, N3, &tunnelled(REDIRECTED, &datagram));
    assert_eq!((user, server, drops(&bench, DropReason::Redirected)), (vec![], vec![], 2));
}

/// The session of a service that is redirected rather than blocked; `down`, on its way to the user, too.
fn service(down: bool) -> Rules {
    let mut rules = served();
    let [.., ref mut far] = rules.fars[..] else { panic!() };
    (far.apply_action, far.redirect) = (rules::ApplyAction::Forward, Redirect::new(PORTAL));
    if down {
        let mut pdr = rules.pdrs[1].clone();
        (pdr.id, pdr.precedence, pdr.far) = (rules::PdrId(4), 10, rules::FarId(4));
        pdr.pdi.application = rules.pdrs[2].pdi.application.clone();
        let far =
            rules::Far { id: rules::FarId(4), redirect: Redirect::new(PORTAL), ..rules.fars[1].clone() };
        rules.pdrs.push(pdr);
        rules.fars.push(far);
    }
    rules
}

/// What follows the numbers of the SYNs.
pub(super) const USER_FIRST: u32 = USER + 1;
pub(super) const SERVER_FIRST: u32 = THEIRS + 1;

pub(super) fn bench_with(session: u64, rules: Rules) -> Bench {
    let mut bench = Bench::full();
    bench.put(session, 2, rules);
    bench.settle();
    bench
}

fn with_service(down: bool) -> Bench {
    bench_with(SERVED, service(down))
}

/// A handshake that passes, because nobody knows yet.
fn shake_hands(bench: &mut Bench, flow: &FiveTuple) {
    let (user, server) = pass(bench, N3, &up(SERVED, flow, &made(flag::SYN, (USER, 0), b"")));
    assert_eq!((user.len(), server.len()), (0, 1));
    let (user, server) = pass(bench, N6, &down(flow, &made(flag::SYN | flag::ACK, (THEIRS, USER + 1), b"")));
    assert_eq!((user.len(), server.len()), (1, 0));
}

#[test]
fn a_request_for_a_redirected_service_is_answered_and_its_server_let_go() {
    let mut bench = with_service(false);
    let flow = flow(SERVED);
    shake_hands(&mut bench, &flow);
    let asks =
        Made { timestamps: Some((10, 20)), ..made(flag::ACK | flag::PSH, (USER + 1, THEIRS + 1), GET) };
    let (user, server) = pass(&mut bench, N3, &up(SERVED, &flow, &asks));
    let [(ANSWER, sequence, acknowledged, Some((20, 10)), text)] = &user[..] else { panic!("{user:?}") };
    assert_eq!((*sequence, *acknowledged), (THEIRS + 1, USER + 1 + GET.len() as u32));
    assert!(is_portal(text), "{text:?}");
    assert_eq!(server, [(RESET, USER + 1, THEIRS + 1, Some((10, 20)), vec![])]);
    assert_eq!(bench.worker.books().created, 1);
    let closes = made(flag::ACK | flag::FIN, (*acknowledged, THEIRS + 1 + text.len() as u32 + 1), b"");
    let (user, _) = pass(&mut bench, N3, &up(SERVED, &flow, &closes));
    assert_eq!(user, [(flag::ACK, closes.acknowledgement, closes.sequence + 1, None, vec![])]);
}

/// The session of a service whose connections are reset.
fn resetting(down: bool) -> Rules {
    let mut rules = service(down);
    for far in rules.fars.iter_mut().filter(|far| far.redirect.is_some()) {
        (far.apply_action, far.redirect) = (rules::ApplyAction::Reset, None);
    }
    rules
}

/// In the place of the rules of [`Bench::full`].
pub(super) fn load(bench: &mut Bench, text: &str) {
    let classifier = dpi::rule_file::read_lines(text).unwrap().compile().unwrap();
    let rules = ContentRules::new(2, classifier, bench.engine.content().as_deref()).unwrap();
    bench.engine.load(rules);
    bench.settle();
}

/// A request and anything else alike: the user is told by the server's numbers, the server by the user's.
#[test]
fn connections_that_are_reset_end_at_both_ends() {
    for said in [GET, b"SSH-2.0-OpenSSH\r\n"] {
        let mut bench = bench_with(SERVED, resetting(true));
        load(&mut bench, "id=1 precedence=1 rating-group=1 application=blocked any");
        let flow = flow(SERVED);
        shake_hands(&mut bench, &flow);
        let asks = made(flag::ACK | flag::PSH, (USER + 1, THEIRS + 1), said);
        let (user, server) = pass(&mut bench, N3, &up(SERVED, &flow, &asks));
        assert_eq!(user, [(RESET, THEIRS + 1, USER + 1 + said.len() as u32, None, vec![])]);
        assert_eq!(server, [(RESET, USER + 1, THEIRS + 1, None, vec![])]);
        // Whatever either end goes on to say: an acknowledgement, the end, data; but not that there is no connection.
        let next = USER + 1 + said.len() as u32;
        for flags in [flag::ACK, flag::ACK | flag::FIN] {
            let says = made(flags, (next, THEIRS + 1), b"");
            let (user, server) = pass(&mut bench, N3, &up(SERVED, &flow, &says));
            assert_eq!((user.len(), &server[..]), (1, &[(RESET, next, THEIRS + 1, None, vec![])][..]));
        }
        let says = made(flag::ACK, (THEIRS + 1, USER + 1), b"hello");
        let (user, server) = pass(&mut bench, N6, &down(&flow, &says));
        assert_eq!(user, [(RESET, THEIRS + 1, USER + 1, None, vec![])]);
        assert_eq!(server, [(RESET, USER + 1, THEIRS + 6, None, vec![])]);
        let (user, server) = pass(&mut bench, N3, &up(SERVED, &flow, &made(flag::RST, (next, 0), b"")));
        assert_eq!((user, server), (vec![], vec![(flag::RST, next, 0, None, vec![])]));
        let (user, server) = pass(&mut bench, N6, &down(&flow, &made(flag::RST, (THEIRS + 1, 0), b"")));
        assert_eq!((user, server), (vec![(flag::RST, THEIRS + 1, 0, None, vec![])], vec![]));
    }
}

/// What begins is refused, on whatever port; what is not TCP is dropped.
#[test]
fn connections_to_what_is_reset_are_refused() {
    let mut rules = redirected();
    (rules.fars[0].apply_action, rules.fars[0].redirect) = (rules::ApplyAction::Reset, None);
    let mut bench = bench_with(REDIRECTED, rules);
    let mut flow = flow(REDIRECTED);
    for port in [80, 443, 8_080] {
        flow.destination_port = port;
        let (user, server) = pass(&mut bench, N3, &up(REDIRECTED, &flow, &made(flag::SYN, (USER, 0), b"")));
        assert_eq!((user, server), (vec![(RESET, 0, USER + 1, None, vec![])], vec![]), "{port}");
    }
    let mut datagram = vec![0; 28 + 4];
    ipv4::Header::new([10, 60, 0, REDIRECTED as u8].into(), SERVER, 17, 12).unwrap().write(&mut datagram);
    udp::Header::new(50_000, 443, 4).unwrap().write(&mut datagram[20..]);
    let (user, server) = pass(&mut bench, N3, &tunnelled(REDIRECTED, &datagram));
    assert_eq!((user, server, drops(&bench, DropReason::Redirected)), (vec![], vec![], 1));
}

/// How long the segment of a fragment is nobody knows, and no router sends anything to a group.
#[test]
fn nobody_hears_of_a_fragment_or_of_what_no_router_forwards() {
    let mut rules = redirected();
    (rules.fars[0].apply_action, rules.fars[0].redirect) = (rules::ApplyAction::Reset, None);
    let mut bench = bench_with(REDIRECTED, rules);
    let flow = flow(REDIRECTED);
    let says = made(flag::ACK, (USER + 1, THEIRS + 1), b"hello");
    let mut inner = [0; 1500];
    let length = says.write(&flow, &mut inner).unwrap();
    inner[6..8].copy_from_slice(&[0x20, 0]);
    inner[10..12].fill(0);
    let checksum = packet::checksum::of(&inner[..ipv4::LENGTH]);
    inner[10..12].copy_from_slice(&checksum.to_be_bytes());
    let (user, server) = pass(&mut bench, N3, &tunnelled(REDIRECTED, &inner[..length]));
    assert_eq!((user, server, drops(&bench, DropReason::Redirected)), (vec![], vec![], 1));
    let group = FiveTuple { destination: u128::from(Ipv4Addr::new(224, 0, 0, 9).to_bits()) << 96, ..flow };
    let (user, server) = pass(&mut bench, N3, &up(REDIRECTED, &group, &says));
    assert_eq!((user.len(), server, drops(&bench, DropReason::Redirected)), (1, vec![], 2));
}

#[test]
fn requests_for_other_services_pass() {
    let mut bench = with_service(true);
    let flow = flow(SERVED);
    shake_hands(&mut bench, &flow);
    let get = b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n";
    let asks = made(flag::ACK | flag::PSH, (USER + 1, THEIRS + 1), get);
    let (user, server) = pass(&mut bench, N3, &up(SERVED, &flow, &asks));
    assert_eq!((user, server.len(), &server[0].4[..]), (vec![], 1, &get[..]));
}

#[test]
fn what_a_server_goes_on_to_say_ends_the_connection_at_both_ends() {
    let mut bench = with_service(true);
    let flow = flow(SERVED);
    shake_hands(&mut bench, &flow);
    let asks = made(flag::ACK | flag::PSH, (USER + 1, THEIRS + 1), GET);
    pass(&mut bench, N3, &up(SERVED, &flow, &asks));
    let says = made(flag::ACK, (THEIRS + 1, USER + 1), b"hello");
    let (user, server) = pass(&mut bench, N6, &down(&flow, &says));
    assert_eq!(user, [(RESET, THEIRS + 1, USER + 1, None, vec![])]);
    assert_eq!(server, [(RESET, USER + 1, THEIRS + 6, None, vec![])]);
}

#[test]
fn without_memory_the_user_still_hears() {
    let mut bench = with_service(false);
    let flow = flow(SERVED);
    shake_hands(&mut bench, &flow);
    bench.wires[N3].0.borrow_mut().buffers = Some(0);
    let asks = made(flag::ACK | flag::PSH, (USER + 1, THEIRS + 1), GET);
    let (user, server) = pass(&mut bench, N3, &up(SERVED, &flow, &asks));
    assert_eq!((user.len(), server.len(), drops(&bench, DropReason::NotCopied)), (1, 0, 1));
}

/// The usual end of credit: the FAR of the quota is a redirection to where there is more (TS 29.244 5.2.2.2.1).
#[test]
fn a_quota_that_is_used_up_leads_to_the_portal_and_a_new_one_back() {
    let mut bench = Bench::new();
    let mut rules = rules(REDIRECTED);
    let quota = Volume { total: Some(100), ..Volume::default() };
    rules.urrs = vec![Urr {
        id: UrrId(1),
        volume_quota: Some(quota),
        quota_grant: 1,
        quota_far: Some(rules::FarId(3)),
        ..Urr::default()
    }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    rules.fars.push(rules::Far { id: rules::FarId(3), ..redirected().fars[0].clone() });
    bench.put(REDIRECTED, 1, rules.clone());
    bench.settle();
    let flow = flow(REDIRECTED);
    let asks = up(REDIRECTED, &flow, &made(flag::ACK | flag::PSH, (USER, THEIRS), GET));
    assert_eq!([(); 3].map(|()| pass(&mut bench, N3, &asks).0.len()), [0, 0, 1], "86 bytes each");
    let (user, server) = pass(&mut bench, N3, &asks);
    assert!(is_portal(&user[0].4));
    assert_eq!(server, [(RESET, USER, THEIRS, None, vec![])], "who was asked before is let go");
    // A new connection is with us.
    let fresh = FiveTuple { source_port: 42_000, ..flow };
    let (user, server) = pass(&mut bench, N3, &up(REDIRECTED, &fresh, &made(flag::SYN, (USER, 0), b"")));
    assert_eq!((user[0].0, server.len()), (flag::SYN | flag::ACK, 0));
    // What still comes down is not for this user any more.
    let says = made(flag::ACK, (THEIRS, USER), b"the rest");
    let (user, server) = pass(&mut bench, N6, &down(&flow, &says));
    assert_eq!((user[0].0, server[0].0), (RESET, RESET));
    let counted = {
        let query = dplink::Command::QueryUsage {
            session: rules::Seid(REDIRECTED),
            urrs: vec![],
            token: 1,
            is_reported: false,
        };
        bench.engine.handle(query).unwrap();
        match &bench.settle()[..] {
            [.., dplink::Notice::Usage { counts, .. }] => {
                (counts[0].uplink_bytes, counts[0].downlink_packets)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(counted, (2 * (40 + GET.len() as u64), 0), "what passed, and nothing of what did not");
    rules.urrs[0].quota_grant += 1;
    bench.put(REDIRECTED, 2, rules);
    bench.settle();
    let (user, server) = pass(&mut bench, N3, &asks);
    assert_eq!((user.len(), &server[0].4[..]), (0, GET));
}

/// Its quota's FAR stands in for its own, and nothing else leads there any more.
#[test]
fn a_server_is_let_go_where_only_a_spent_service_leads_to_it() {
    let mut rules = served();
    let portal = rules::Far { id: rules::FarId(4), ..redirected().fars[0].clone() };
    rules.urrs = vec![Urr {
        id: UrrId(1),
        volume_quota: Some(Volume { total: Some(0), ..Volume::default() }),
        quota_grant: 1,
        quota_far: Some(portal.id),
        ..Urr::default()
    }];
    rules.pdrs[2].urrs = vec![UrrId(1)].into();
    rules.fars[2].apply_action = rules::ApplyAction::Forward;
    rules.fars.push(portal);
    let mut bench = Bench::new();
    bench.put(SERVED, 2, rules.clone());
    let line = |id, name| {
        format!("id={id} precedence={id} rating-group=1 application={name} host=.{name}.example\n")
    };
    load(&mut bench, &(line(1, "blocked") + &line(2, "other")));
    let flow = flow(SERVED);
    shake_hands(&mut bench, &flow);
    let asks = up(SERVED, &flow, &made(flag::ACK | flag::PSH, (USER + 1, THEIRS + 1), GET));
    let heard = pass(&mut bench, N3, &asks);
    assert!(is_portal(&heard.0[0].4), "{heard:?}");
    assert_eq!(heard.1, [(RESET, USER + 1, THEIRS + 1, None, vec![])]);
    let mut other = rules.pdrs[2].clone();
    (other.id, other.precedence, other.far) = (rules::PdrId(4), 5, rules::FarId(1));
    other.pdi.application = rules::ApplicationId::new("other");
    rules.pdrs.push(other);
    rules.fars[0].apply_action = rules::ApplyAction::Drop;
    bench.put(SERVED, 3, rules);
    let notices = bench.settle();
    assert!(matches!(notices[..], [.., dplink::Notice::Applied { .. }]), "{notices:?}");
    assert_eq!(pass(&mut bench, N3, &asks), heard);
}

/// Copies of tunnels' places are given back.
#[test]
fn sessions_that_redirect_come_and_go() {
    let mut bench = with_service(true);
    for revision in 3..100 {
        bench.put(SERVED, revision, service(revision % 2 == 0));
        let notices = bench.settle();
        assert!(matches!(notices[..], [dplink::Notice::Applied { .. }]), "{notices:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever segments come, from both sides: the books balance, and nothing reaches the server but resets, and SYNs, which may begin
    /// a connection of something else.
    #[test]
    fn whatever_comes_is_answered_or_dropped(
        segments in proptest::collection::vec(
            (any::<bool>(), any::<u8>(), any::<(u32, u32)>(), proptest::collection::vec(any::<u8>(), 0..40)),
            1..20,
        ),
        cut in 0..60_usize,
    ) {
        let mut bench = with_service(true);
        load(&mut bench, "id=1 precedence=1 rating-group=1 application=blocked any");
        let flow = flow(SERVED);
        shake_hands(&mut bench, &flow);
        pass(&mut bench, N3, &up(SERVED, &flow, &made(flag::ACK, (USER + 1, THEIRS + 1), GET)));
        for (is_up, flags, numbers, payload) in &segments {
            let segment = made(*flags, *numbers, payload);
            let (port, mut frame) = match is_up {
                true => (N3, up(SERVED, &flow, &segment)),
                false => (N6, down(&flow, &segment)),
            };
            let length = frame.len() - cut.min(frame.len() - 14) * usize::from(payload.len() % 7 == 0);
            frame.truncate(length);
            let (_, server) = pass(&mut bench, port, &frame);
            let is_syn = |flags: &u8| *is_up && flags & (flag::SYN | flag::ACK) == flag::SYN;
            let passes = |(flags, .., payload): &Heard| {
                is_syn(flags) || flags & flag::RST != 0 && payload.is_empty()
            };
            prop_assert!(server.iter().all(passes));
        }
    }
}
