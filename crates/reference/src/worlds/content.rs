//! Random content rules, and what users and servers say that they are for.

use super::aim::{Speech, Subject};
use super::environment::server;
use super::filters::CLASSES;
use super::random::{Random, chance, maybe, pick, pick_of};
use super::{hello, lookup};
use crate::applications::pseudo;
use crate::bytes::{checksum, put};
use crate::ip::{ESP, ICMP, ICMPV6, SCTP, TCP, UDP, UserPacket};
use crate::{ContentRule, Layer};
use ipnet::IpNet;
use rand::Rng;
use rules::{ApplicationId, Direction, Rules};
use std::net::IpAddr;

const SYN: u8 = 0x02;
const URG: u8 = 0x20;
/// Numbers of the SYNs of both sides, and how much of what a user says may come in a segment of its own.
const FIRST_OF_USER: u32 = 1_000;
const FIRST_OF_SERVER: u32 = 5_000;
pub(super) const CUT: usize = 20;
/// Octets that may be missing.
const GAP: usize = 5;
/// Port of lookups.
const DNS: u16 = 53;
/// A SYN that takes more octets than this behind the shortest headers is missed where its flow has a verdict.
const SYN_MAX: usize = 80;

/// Those of rules, and one that none is of.
const NAMES: [&str; 4] = ["video", "voice", "web", "nobody"];
const HOSTS: [&str; 4] = ["a.example", ".a.example", "*.a.example", "b.example"];
const PATHS: [&str; 4] = ["/", "/v*", "/v/1", "/w*"];
const WORDS: [&str; 17] = [
    "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "GET /v/1 HTTP/1.1\r\nHost: b.example\r\n\r\n",
    "GET /v/2 HTTP/1.1\r\nHost: x.a.example:8080\r\n\r\n",
    "POST /w HTTP/1.1\r\nhost: B.Example.\r\nAccept: *",
    "GET /w/3 HTTP/1.0\r\n\r\n",
    "GET /v/../w/3 HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "GET /w/%2e./v%2f1?/../ HTTP/1.1\r\nHost: b.example\r\n\r\n",
    "GET http://u@a.example:80/v HTTP/1.1\r\nHost: b.example\r\n\r\n",
    "\r\nGET /v/1 HTTP/1.1\nHost: a.example\nHost: b.example\n\n",
    "GET /v HTTP/1.1\r\nAccept: */*\r\nHost: xa.example\r\nA",
    "CONNECT b.example:443 HTTP/1.1\r\n\r\n",
    "GET\t/v/1 \u{b}HTTP/1.1 \r\nHost\t: a.example\r\n\r\n",
    "GET /w HTTP/1.1\r\nHost:\r\n \t\r\n\tb.example\r\nAccept: *",
    "1a0\r\nGET /v HTTP/1.1\r\nHost: b.example\r\n\r\n",
    "GET /v/1 SIP/2.0\r\n\r\n",
    "SSH-2.0-x\r\n",
    "GET /w/and/nothing/more",
];

/// Of what application a PDR's packets are to be.
pub(super) fn application(random: &mut Random) -> Option<ApplicationId> {
    ApplicationId::new(pick(random, NAMES))
}

/// The rules of a world: what the first ones leave, the others may have.
pub(super) fn rules(random: &mut Random) -> Vec<ContentRule> {
    let count = random.random_range(0..12);
    let mut all: Vec<ContentRule> = (1..=count).map(|id| rule(random, id)).collect();
    all.extend(maybe(random, 500, |random| of_tls(random, count + 1)));
    all
}

/// All that is TLS, where no other rule counts: whether that is told of a flow makes a difference.
fn of_tls(random: &mut Random, id: u32) -> ContentRule {
    let application = Some(pick(random, NAMES).to_owned());
    ContentRule { id, precedence: 8, application, layers: vec![Layer::Tls], ..ContentRule::default() }
}

fn rule(random: &mut Random, id: u32) -> ContentRule {
    let [video, voice, web, _] = NAMES;
    let mut rule = ContentRule {
        id,
        precedence: pick(random, [1, 2, 2, 3]),
        application: maybe(random, 900, |random| pick(random, [video, voice, web]).to_owned()),
        ..ContentRule::default()
    };
    match random.random_range(0..12) {
        0 | 1 => rule.networks = vec![network(random)],
        2 => rule.ports = vec![pick(random, [(80, 80), (443, 5_100), (0, 52), (53, 53)])],
        3 => rule.protocol = Some(pick(random, [TCP, UDP, SCTP, ICMP, ICMPV6, ESP])),
        4 => rule.dscp = Some(pick(random, CLASSES) >> 2),
        5 => rule.layers = vec![pick(random, [Layer::Http, Layer::Rtp, Layer::Tls, Layer::Dns])],
        6 => rule.paths = vec![pick(random, PATHS).to_owned()],
        7 if chance(random, 300) => rule.precedence = 9,
        _ => rule.hosts = vec![pick(random, HOSTS).to_owned()],
    }
    let may_have_path = !rule.hosts.is_empty() && chance(random, 500);
    if may_have_path {
        rule.paths = vec![pick(random, PATHS).to_owned()];
    } else if !rule.hosts.is_empty() {
        of_layers(random, &mut rule);
    }
    if (!rule.hosts.is_empty() || !rule.networks.is_empty()) && chance(random, 200) {
        rule.ports = vec![(80, 80)];
    }
    if !rule.networks.is_empty() && chance(random, 200) {
        rule.networks.push(network(random));
    }
    rule
}

/// Of a host's rules some are for TLS, with or without requests, for ClientHellos with encrypted ones, or for lookups.
fn of_layers(random: &mut Random, rule: &mut ContentRule) {
    match random.random_range(0..10) {
        0 | 1 => rule.layers = vec![Layer::Tls],
        2 => rule.layers = vec![Layer::Http, Layer::Tls],
        3 => rule.ech = true,
        4 => rule.layers = vec![Layer::Dns],
        5 => rule.layers = vec![Layer::Tls, Layer::Dns],
        _ => {}
    }
}

fn network(random: &mut Random) -> IpNet {
    let ipv6 = chance(random, 300);
    let whole = if ipv6 { 128 } else { 32 };
    let address = server(random, ipv6);
    IpNet::new(address, whole - pick(random, [0, 0, 8])).unwrap_or_default().trunc()
}

/// A segment of a connection that begins like all others here, so that several are of one, and its checksum to be set.
pub(super) fn segment(random: &mut Random, ports: (u16, u16), said: Speech) -> Vec<u8> {
    let mut bytes = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    let (numbers, flags, payload) = match said.from {
        Direction::Uplink => of_user(random, (said.of, ports.1)),
        Direction::Downlink => of_server(random),
    };
    bytes.extend([numbers.0.to_be_bytes(), numbers.1.to_be_bytes()].concat());
    let options = options(random, flags);
    let (urgent, pointer) = if chance(random, 50) { (URG, pick(random, [0, 1, 8, 20, 40])) } else { (0, 0) };
    bytes.extend([0x50 + 4 * options.len() as u8, flags | urgent, 0x20, 0, 0, 0, 0, pointer]);
    bytes.extend(options);
    bytes.extend(payload);
    bytes
}

/// Timestamps, or what a SYN says that its sender takes.
fn options(random: &mut Random, flags: u8) -> Vec<u8> {
    let mut stamp = || pick(random, [10_u32, 11, 11, 12]).to_be_bytes();
    let stamps = [&[1, 1, 8, 10][..], &stamp(), &stamp()].concat();
    let [high, low] = pick(random, [536_u16, 1_400, 1_460, 8_960]).to_be_bytes();
    match random.random_range(0..10) {
        0 | 1 => stamps,
        2..=7 if flags & SYN != 0 => vec![2, 4, high, low],
        _ => vec![],
    }
}

type Said = ((u32, u32), u8, Vec<u8>);

fn of_user(random: &mut Random, (of, server_port): (Subject, u16)) -> Said {
    let flags = pick(random, [SYN, 0x10, 0x18, 0x18, 0x18, 0x18, 0x18, 0x19]);
    let flags = if chance(random, 30) { pick(random, [0x04, 0x14, 0x12, 0x08, 0x06]) } else { flags };
    let pieces = match of {
        Subject::Hello(number) => hello::pieces(random, number, server_port == DNS),
        Subject::Question => question(random),
        _ => words(random),
    };
    let begin = FIRST_OF_USER + 1;
    let heard = FIRST_OF_SERVER + pick(random, [1, 1, 1, 1, 1, 30, 0, 9_000]);
    if flags == SYN {
        let first = pick(random, [FIRST_OF_USER, FIRST_OF_USER, 2 * FIRST_OF_USER]);
        return ((first, 0), flags, if chance(random, 300) { pieces.front } else { vec![] });
    }
    let (ahead, payload) = match random.random_range(0..10) {
        0 | 1 => (0, vec![]),
        2 | 3 => (0, pieces.front),
        4 | 5 => pieces.later,
        6 => match random.random_range(0..5) {
            0 => (500, pieces.all),
            1 => (5_000, pieces.all),
            _ => pieces.behind_a_gap(),
        },
        7 => (-3, pieces.all),
        _ => (0, pieces.all),
    };
    ((begin.wrapping_add_signed(ahead), heard), flags, payload)
}

/// What a user may say in one segment, and how far behind the beginning.
pub(super) struct Pieces {
    pub(super) all: Vec<u8>,
    /// No longer than a SYN may have it.
    pub(super) front: Vec<u8>,
    pub(super) later: (i32, Vec<u8>),
}

impl Pieces {
    /// What comes later, without its beginning, which others may say otherwise.
    fn behind_a_gap(self) -> (i32, Vec<u8>) {
        let (ahead, payload) = self.later;
        (ahead + GAP as i32, payload.get(GAP..).unwrap_or_default().to_vec())
    }
}

fn words(random: &mut Random) -> Pieces {
    pieces_of(pick_of(random, &WORDS).copied().unwrap_or_default().as_bytes())
}

/// A lookup behind its length, which is not always right.
fn question(random: &mut Random) -> Pieces {
    let message = lookup::message(random, Direction::Uplink);
    let wrong = maybe(random, 100, |random| pick(random, [0, 16, 17, 300, 2_049]));
    let length = wrong.unwrap_or(message.len() as u16);
    pieces_of(&[&length.to_be_bytes()[..], &message].concat())
}

fn pieces_of(text: &[u8]) -> Pieces {
    let (front, back) = text.split_at_checked(CUT).unwrap_or((text, &[]));
    Pieces { all: text.to_vec(), front: front.to_vec(), later: (CUT as i32, back.to_vec()) }
}

fn of_server(random: &mut Random) -> Said {
    let flags = pick(random, [0x12, 0x12, 0x10, 0x18, 0x18]);
    let flags = if chance(random, 40) { pick(random, [0x11, 0x04, 0x02]) } else { flags };
    let first = if flags & SYN != 0 { FIRST_OF_SERVER } else { FIRST_OF_SERVER + pick(random, [1, 1, 30]) };
    let heard = FIRST_OF_USER + pick(random, [1, 1, 1, 1 + CUT as u32, 8, FIRST_OF_USER + 1]);
    let payload = if flags & SYN != 0 { 0 } else { random.random_range(0..60) };
    ((first, heard), flags, vec![b'.'; payload])
}

/// Sets the checksum of a segment, or of a datagram.
pub(super) fn seal(bytes: &mut [u8], ends: (IpAddr, IpAddr), protocol: u8) {
    let at = if protocol == UDP { 6 } else { 16 };
    put(bytes, at, &[0, 0]);
    let checksum = checksum(&[&pseudo(ends, protocol, bytes.len()), bytes]);
    put(bytes, at, &checksum.to_be_bytes());
}

/// Where it matters, no SYN is longer than those that are looked for.
pub(super) fn without_long_syn(rules: &Rules, packet: &mut [u8]) {
    let asks = rules.pdrs.iter().any(|pdr| pdr.pdi.application.is_some());
    let Some(read) = UserPacket::read(packet).filter(|read| asks && read.protocol == TCP) else { return };
    let Some(upper) = read.header.upper(&read.bytes).filter(|upper| !upper.is_later_fragment()) else {
        return;
    };
    let shortest = if read.header.source.is_ipv6() { 60 } else { 40 };
    let flags = packet.get(upper.at + 13).copied().unwrap_or(0);
    if read.bytes.len() > shortest + SYN_MAX {
        put(packet, upper.at + 13, &[flags & !SYN]);
    }
}
