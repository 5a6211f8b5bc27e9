//! What a server said before its flow was known shows by which rule it goes on; unless it goes on otherwise.

use super::content::{content, in_service, query, used};
use super::redirect::{SERVER_FIRST, USER_FIRST, down, flow, made, up};
use crate::fixture::{Bench, N3, N6, rules};
use crate::graph::NodeId;
use packet::tcp::flag;
use rules::{PdrId, Rules, SdfFilter, TrafficClass, Urr, UrrId};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: video.example\r\n\r\n";
const RULES: &str = "id=1 precedence=1 rating-group=1 application=service-1 host=video.example\n";
/// What is to count marked packets of the first service from servers.
const MARKED: u32 = 2_000;

fn bench(rules: Rules) -> Bench {
    let mut config = crate::fixture::config();
    config.limits.pdrs = 2_000;
    let mut bench = Bench::over(&config);
    bench.put(1, 1, rules);
    bench.settle();
    let content = content(RULES, 7, &bench);
    bench.engine.load(content);
    bench.settle();
    bench
}

fn pass(bench: &mut Bench, port: usize, frame: &[u8]) {
    bench.receive(port, frame);
    bench.worker.turn(bench.now_ns);
}

/// A connection is opened and asks for something; what the server says from the beginning on has this traffic class.
fn ask(bench: &mut Bench, class: u8) {
    pass(bench, N3, &up(1, &flow(1), &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    say(bench, class, &[]);
    pass(bench, N3, &up(1, &flow(1), &made(flag::ACK | flag::PSH, (USER_FIRST, SERVER_FIRST), GET)));
}

/// The server says something, or accepts the connection; returns the bytes of the packet.
fn say(bench: &mut Bench, class: u8, payload: &[u8]) -> u64 {
    let (flags, at) = if payload.is_empty() { (flag::SYN | flag::ACK, 1) } else { (flag::ACK, 0) };
    let mut frame = down(&flow(1), &made(flags, (SERVER_FIRST - at, USER_FIRST), payload));
    frame[15] = class;
    frame[24..26].fill(0);
    let checksum = packet::checksum::of(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    pass(bench, N6, &frame);
    frame.len() as u64 - 14
}

fn classified(bench: &Bench) -> u64 {
    bench.worker.counters().nodes[NodeId::Classify as usize].packets
}

#[test]
fn the_first_packet_back_goes_by_what_came_before_it() {
    let mut bench = bench(in_service(1));
    ask(&mut bench, 0);
    let before = (classified(&bench), used(&query(&mut bench, 0))[&1]);
    let bytes = say(&mut bench, 0, b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(classified(&bench), before.0, "the rules are not asked");
    assert_eq!(used(&query(&mut bench, 0))[&1], before.1 + bytes);
}

/// A URR of their own for packets of a traffic class: what came before had another, or the same.
#[test]
fn a_packet_of_another_class_goes_by_its_own_rule() {
    for first in [0, 0x28] {
        let mut bench = bench(with_marked(in_service(1)));
        ask(&mut bench, first);
        let told = used(&query(&mut bench, 0));
        let (plain, marked) = (told[&1], told[&MARKED]);
        assert_eq!(marked > 0, first == 0x28);
        let bytes = [0, 0x28].map(|class| say(&mut bench, class, b"HTTP/1.1 204 No Content\r\n\r\n"));
        let told = used(&query(&mut bench, 0));
        assert_eq!((told[&1], told[&MARKED]), (plain + bytes[0], marked + bytes[1]), "first {first:#x}");
    }
}

/// The connection is of an address in a network behind a user, which another session has by the time that it says what it is of.
#[test]
fn a_packet_for_an_address_that_another_session_has_by_now_goes_there() {
    let mut routing = in_service(1);
    for pdr in &mut routing.pdrs {
        pdr.pdi.ue_ipv4 = Some([10, 60, 0, 77].into());
        pdr.pdi.framed_routes = vec!["10.60.0.0/24".parse().unwrap()];
    }
    let mut bench = bench(routing);
    pass(&mut bench, N3, &up(1, &flow(1), &made(flag::SYN, (USER_FIRST - 1, 0), b"")));
    say(&mut bench, 0, &[]);
    let mut other = rules(2);
    other.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv4 = Some([10, 60, 0, 1].into()));
    bench.put(2, 1, other);
    bench.settle();
    pass(&mut bench, N3, &up(1, &flow(1), &made(flag::ACK | flag::PSH, (USER_FIRST, SERVER_FIRST), GET)));
    bench.sent(N3);
    say(&mut bench, 0, b"HTTP/1.1 204 No Content\r\n\r\n");
    let tunnels: Vec<u32> = bench.sent(N3).iter().map(|frame| teid(frame)).collect();
    assert_eq!(tunnels, [0x1ff + 2]);
}

fn teid(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame[46..].first_chunk().unwrap())
}

fn with_marked(mut rules: Rules) -> Rules {
    let of_service = |pdr: &&rules::Pdr| pdr.pdi.application.is_some() && pdr.urrs[..] == [UrrId(1)];
    let mut pdr = rules.pdrs.iter().rfind(of_service).unwrap().clone();
    (pdr.id, pdr.precedence, pdr.urrs) = (PdrId(1_500), 1, vec![UrrId(MARKED)].into());
    let traffic_class = Some(TrafficClass { value: 0x28, mask: 0xff });
    pdr.pdi.sdf_filters = vec![SdfFilter { traffic_class, ..SdfFilter::default() }];
    rules.pdrs.push(pdr);
    rules.urrs.push(Urr { id: UrrId(MARKED), ..Urr::default() });
    rules
}
