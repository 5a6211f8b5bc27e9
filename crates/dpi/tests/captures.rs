//! What real programs send first: golden/clients.pcap, which golden/make.py writes, and golden/chromium.pcap, which the
//! end-to-end test `programs` writes (`ANCHORLINE_CAPTURES`).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests speak plainly")]

use anchorline_dpi::extract::dns::Message;
use anchorline_dpi::extract::{Datagram, Inspection, Seen, Verdict, Version};
use anchorline_dpi::learn::{Asker, Config, Learner, Lookup};
use packet::{FiveTuple, ethernet, protocol, tcp, udp};
use pcap_file::pcap::PcapReader;
use std::collections::BTreeMap;

const CLIENTS: &[u8] = include_bytes!("../golden/clients.pcap");
const CHROMIUM: &[u8] = include_bytes!("../golden/chromium.pcap");

/// IP packets of a capture.
fn packets(capture: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::new(capture).unwrap();
    std::iter::from_fn(|| {
        reader.next_packet().map(|packet| packet.unwrap().data[ethernet::LENGTH..].to_vec())
    })
    .collect()
}

/// What was seen of a flow: after how many packets with something in them, what, host, path, and protocols offered.
#[derive(Debug, PartialEq)]
struct Told {
    packets: u32,
    what: &'static str,
    host: Option<String>,
    path: Option<String>,
    protocols: String,
    /// It has Encrypted ClientHello, in earnest or as grease.
    is_encrypted: bool,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn told(packets: u32, seen: &Seen<'_>) -> Told {
    let hello = match seen {
        Seen::Tls(hello) | Seen::Quic { hello: Some(hello), .. } => Some(*hello),
        _ => None,
    };
    assert!(hello.is_none_or(|hello| hello.is_whole));
    let protocols: Vec<String> = hello.into_iter().flat_map(|hello| hello.protocols).map(text).collect();
    Told {
        packets,
        what: match (seen, hello.map(|hello| hello.version)) {
            (Seen::Http(_), _) => "http",
            (Seen::Http2, _) => "http2",
            (Seen::Tls(_), Some(0x0303)) => "tls 1.2",
            (Seen::Tls(_), Some(0x0304)) => "tls 1.3",
            (Seen::Quic { version: Version::V1, .. }, Some(0x0304)) => "quic 1",
            (Seen::Quic { version: Version::V2, .. }, Some(0x0304)) => "quic 2",
            other => panic!("{other:?}"),
        },
        host: seen.host().map(text),
        path: seen.path().map(text),
        protocols: protocols.join(","),
        is_encrypted: hello.is_some_and(|hello| hello.is_encrypted),
    }
}

/// One flow of a client.
#[derive(Default)]
struct Flow {
    inspection: Inspection,
    packets: u32,
    told: Option<Told>,
}

impl Flow {
    fn look(&mut self, tuple: &FiveTuple, upper: &[u8]) {
        if self.told.is_some() {
            return;
        }
        let verdict = if tuple.protocol == protocol::TCP {
            let segment = tcp::Segment::parse(upper).unwrap();
            if segment.has(tcp::flag::SYN) {
                self.inspection.begin(segment.sequence().wrapping_add(1));
            }
            self.packets += u32::from(!segment.payload().is_empty());
            self.inspection.segment(segment.sequence(), segment.payload())
        } else {
            self.packets += 1;
            let datagram = Datagram { server_port: tuple.destination_port, payload: &upper[udp::LENGTH..] };
            self.inspection.datagram(datagram)
        };
        match verdict {
            Verdict::More => {}
            Verdict::Seen(seen) => self.told = Some(told(self.packets, &seen)),
            Verdict::Unknown(why) => panic!("{tuple:?}: {why:?}"),
        }
    }
}

#[test]
fn real_clients_are_understood() {
    let mut flows: BTreeMap<u16, Flow> = BTreeMap::new();
    for packet in packets(CLIENTS) {
        let found = FiveTuple::parse(&packet).unwrap();
        if found.tuple.destination_port >= 8_000 && found.tuple.source_port != 53 {
            let flow = flows.entry(found.tuple.destination_port).or_default();
            flow.look(&found.tuple, &packet[found.upper..found.total]);
        }
    }
    let told: BTreeMap<u16, Told> =
        flows.into_iter().map(|(port, flow)| (port, flow.told.unwrap())).collect();
    let far = "/".to_owned() + &"p".repeat(2_000);
    let expected = [
        // curl 7.88, wget 1.21, Node 20, Java 17; curl through a proxy, in the clear and not; HTTP/2 in the clear.
        (8_001, (1, "http"), Some("shop.example"), Some("/cart?id=7"), ""),
        (8_002, (1, "http"), Some("files.example"), Some("/iso/1"), ""),
        (8_003, (1, "http"), Some("api.example"), Some("/v1/items"), ""),
        (8_004, (1, "http"), Some("java.example"), Some("/j"), ""),
        (8_005, (1, "http"), Some("media.example"), Some("/clip.mp4"), ""),
        (8_006, (1, "http"), Some("bank.example"), None, ""),
        (8_007, (1, "http2"), None, None, ""),
        (8_008, (1, "http"), Some("long.example"), Some("/l"), ""),
        (8_009, (2, "http"), Some("far.example"), Some(far.as_str()), ""),
        // curl with OpenSSL 3.0, at most 1.2; openssl without name; Node; Go 1.26, which offers ML-KEM; Java.
        (8_443, (1, "tls 1.3"), Some("web.example"), None, "h2,http/1.1"),
        (8_444, (1, "tls 1.2"), Some("old.example"), None, "h2,http/1.1"),
        (8_445, (1, "tls 1.3"), None, None, ""),
        (8_446, (1, "tls 1.3"), Some("node.example"), None, ""),
        (8_447, (2, "tls 1.3"), Some("go.example"), None, "h2,http/1.1"),
        (8_448, (1, "tls 1.3"), Some("java.example"), None, "h2,http/1.1"),
        // quic-go 0.65, whose hello with ML-KEM fills two packets, in both versions; aioquic 1.
        (9_443, (2, "quic 1"), Some("quic-go.example"), None, "h3"),
        (9_444, (1, "quic 1"), Some("aioquic.example"), None, "h3"),
        (9_445, (2, "quic 2"), Some("quic-two.example"), None, "h3"),
    ];
    let expected = expected.map(|(port, (packets, what), host, path, protocols)| {
        let [host, path] = [host, path].map(|text| text.map(str::to_owned));
        (port, Told { packets, what, host, path, protocols: protocols.to_owned(), is_encrypted: false })
    });
    assert_eq!(told, BTreeMap::from(expected));
}

/// Chromium 156: extensions in any order, grease, X25519MLKEM768 in two packets, CRYPTO frames cut and out of order.
#[test]
fn chromium_is_understood() {
    let mut flows: BTreeMap<u16, Flow> = BTreeMap::new();
    for packet in packets(CHROMIUM) {
        let found = FiveTuple::parse(&packet).unwrap();
        if [80, 443].contains(&found.tuple.destination_port) {
            let flow = flows.entry(found.tuple.source_port).or_default();
            flow.look(&found.tuple, &packet[found.upper..found.total]);
        }
    }
    // A connection that it never used says nothing.
    let told = flows.into_values().filter_map(|flow| flow.told);
    let mut told: Vec<Told> = told.collect();
    told.sort_by(|one, other| one.host.cmp(&other.host));
    let page = |(packets, what), host: &str, path: Option<&str>, protocols: &str| Told {
        packets,
        what,
        host: Some(host.to_owned()),
        path: path.map(str::to_owned),
        protocols: protocols.to_owned(),
        is_encrypted: path.is_none(),
    };
    let over_tls = || page((2, "tls 1.3"), "page-h2.example", None, "h2,http/1.1");
    let over_quic = page((2, "quic 1"), "page-h3.example", None, "h3");
    assert_eq!(told, [over_tls(), over_tls(), over_quic, page((1, "http"), "page.example", Some("/"), "")]);
}

/// glibc's resolver asks; dnspython answers with an alias.
#[test]
fn a_real_lookup_teaches_the_name_that_was_asked_for() {
    let mut learner = Learner::new(Config::default());
    let (mut learned, mut asker) = (0, None);
    for packet in packets(CLIENTS) {
        let FiveTuple { source_port, destination_port, .. } = FiveTuple::parse(&packet).unwrap().tuple;
        let found = FiveTuple::parse(&packet).unwrap();
        let payload = &packet[found.upper + udp::LENGTH..found.total];
        let [source, destination] = [found.tuple.source_address(), found.tuple.destination_address()];
        let [user, answered] = [source, destination].map(|address| Asker { address, holder: 1 });
        if found.tuple.protocol == protocol::UDP && destination_port == 53 {
            let lookup = Lookup { instance: 0, user, user_port: source_port, resolver: destination };
            asker = Some(user);
            learner.query(&lookup, &Message::parse(payload).unwrap(), 0);
        } else if found.tuple.protocol == protocol::UDP && source_port == 53 {
            let lookup =
                Lookup { instance: 0, user: answered, user_port: destination_port, resolver: source };
            learned += learner.answer(&lookup, &Message::parse(payload).unwrap(), 1).unwrap().names;
        }
    }
    assert_eq!(learned, 3);
    for server in ["198.51.100.7", "198.51.100.8", "2001:db8::7"] {
        let asker = (0, asker.unwrap());
        assert_eq!(
            learner.name(asker, server.parse().unwrap(), 1).map(text).as_deref(),
            Some("video.example")
        );
    }
}
