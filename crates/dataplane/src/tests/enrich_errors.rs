//! ICMP errors about connections with a field in them: each end hears of what it has sent, and of what passes.

use super::enrich::{FIELD, GET, acknowledge, say, shake_hands};
use super::redirect::{SERVER_FIRST, TUNNEL, USER_FIRST, bench_with, flow, made, pass, tunnelled, up};
use crate::fixture::{Bench, N3, N6, SERVED, enriched};
use packet::quoted::{Number, Quoted};
use packet::{FiveTuple, checksum, ethernet, icmp, icmpv6};
use rules::Rules;
use std::net::{IpAddr, Ipv4Addr};

const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const N: u32 = FIELD.len() as u32;
const LENGTH: u32 = GET.len() as u32;

/// Both families.
fn rules() -> Rules {
    let mut rules = enriched(SERVED);
    for pdr in &mut rules.pdrs {
        pdr.pdi.ue_ipv6 = Some("2001:db8:60:5a::/64".parse().unwrap());
    }
    rules
}

fn flow_over(is_ipv6: bool) -> FiveTuple {
    let four = flow(SERVED);
    let of = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().to_bits();
    let six =
        FiveTuple { version: 6, source: of("2001:db8:60:5a::1"), destination: of("2001:db8:7::80"), ..four };
    if is_ipv6 { six } else { four }
}

/// What the server has of a segment, as a packet.
fn sent(bench: &mut Bench, flow: &FiveTuple, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let flags = packet::tcp::flag::ACK;
    bench.receive(N3, &up(SERVED, flow, &made(flags, (sequence, SERVER_FIRST), payload)));
    bench.worker.turn(bench.now_ns);
    bench.sent(N6).remove(0).split_off(ethernet::LENGTH)
}

/// A connection with a request that was answered and another that is under way, as the server has it.
fn with_request(bench: &mut Bench, flow: &FiveTuple) -> Vec<u8> {
    shake_hands(bench, flow);
    say(bench, flow, USER_FIRST, GET);
    assert_eq!(acknowledge(bench, flow, USER_FIRST + LENGTH + N), USER_FIRST + LENGTH);
    let second = sent(bench, flow, USER_FIRST + LENGTH, GET);
    assert!(second.windows(FIELD.len()).any(|text| text == FIELD));
    second
}

/// An error about a packet, with what passes or without.
fn error(about: &[u8], mtu: Option<u16>) -> Vec<u8> {
    let mut bytes = vec![0; 1_300];
    let length = if about[0] >> 4 == 4 {
        let unreachable = icmp::Error::Unreachable { code: icmp::unreachable::PORT };
        let error = mtu.map_or(unreachable, |mtu| icmp::Error::FragmentationNeeded { mtu });
        icmp::write_error(error, about, ROUTER, &mut bytes).unwrap()
    } else {
        let unreachable = icmpv6::Error::Unreachable { code: icmpv6::unreachable::PORT };
        let error = mtu.map_or(unreachable, |mtu| icmpv6::Error::PacketTooBig { mtu: mtu.into() });
        icmpv6::write_error(error, about, "2001:db8:8::9".parse().unwrap(), &mut bytes).unwrap()
    };
    bytes.truncate(length);
    bytes
}

/// What becomes of an error: the packet that leaves on the other side, all of whose checksums are right.
fn told(bench: &mut Bench, from: usize, packet: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    let plain = [&[2, 0, 0, 0, 6, 2, 2, 0, 0, 0, 6, 1][..], &kind, packet].concat();
    let frame = if from == N3 { tunnelled(SERVED, packet) } else { plain };
    bench.receive(from, &frame);
    bench.worker.turn(bench.now_ns);
    let (to, skipped) = if from == N3 { (N6, ethernet::LENGTH) } else { (N3, TUNNEL) };
    let told = bench.sent(to).remove(0).split_off(skipped);
    assert_eq!(told.len(), packet.len());
    if told[0] >> 4 == 4 {
        assert!(checksum::is_intact(&told[20..]));
    } else {
        let ip = packet::ipv6::Packet::parse(&told).unwrap();
        let pseudo = ip.pseudo_sum(packet::protocol::ICMPV6, ip.payload().len());
        assert_eq!(checksum::add(checksum::sum(ip.payload()), pseudo), u16::MAX);
    }
    told
}

fn number(packet: &[u8], which: Number) -> Option<u32> {
    Quoted::of(packet).unwrap().number(packet, which)
}

fn mtu(packet: &[u8]) -> Option<u32> {
    Quoted::of(packet).unwrap().mtu(packet)
}

/// The user looks for what it has under way (RFC 5927 4.1), and sends less by the field.
#[test]
fn a_user_hears_of_its_own_segment_and_of_what_passes_with_the_field() {
    for is_ipv6 in [false, true] {
        let (mut bench, flow) = (bench_with(SERVED, rules()), flow_over(is_ipv6));
        let request = with_request(&mut bench, &flow);
        let heard = told(&mut bench, N6, &error(&request, Some(1_400)));
        assert_eq!(number(&heard, Number::Sequence), Some(USER_FIRST + LENGTH));
        assert_eq!(number(&heard, Number::Acknowledgement), Some(SERVER_FIRST));
        assert_eq!(mtu(&heard), Some(1_400 - N));
        let heard = told(&mut bench, N6, &error(&request, None));
        assert_eq!((number(&heard, Number::Sequence), mtu(&heard)), (Some(USER_FIRST + LENGTH), None));
        // What had no field in it passes when it is as long as it says.
        let rest = sent(&mut bench, &flow, USER_FIRST + 2 * LENGTH, &[b'a'; 900]);
        let heard = told(&mut bench, N6, &error(&rest, Some(1_300)));
        assert_eq!(
            (number(&heard, Number::Sequence), mtu(&heard)),
            (Some(USER_FIRST + 2 * LENGTH), Some(1_300))
        );
    }
}

/// Of IPv6, 1,280 octets are sent whatever is told (RFC 8201 4): the field makes them no longer than what passes.
#[test]
fn what_is_sent_again_with_its_field_passes() {
    let (mut bench, flow) = (bench_with(SERVED, rules()), flow_over(true));
    shake_hands(&mut bench, &flow);
    let long = |letter: &str| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", letter.repeat(1_100));
    let request = [long("a").as_bytes(), &[b' '; 100]].concat();
    let first = sent(&mut bench, &flow, USER_FIRST, long("a").as_bytes());
    let heard = told(&mut bench, N6, &error(&first, Some(1_280)));
    assert_eq!(mtu(&heard), Some(1_280));
    // Sent again with more behind it, 1,280 octets in all.
    let again = sent(&mut bench, &flow, USER_FIRST, &request[..1_220]);
    assert!(again.len() <= 1_280, "{}", again.len());
    assert!(again.windows(FIELD.len()).any(|text| text == FIELD));
    // The next one that does not fit with its field goes without.
    let end = USER_FIRST + long("a").len() as u32;
    acknowledge(&mut bench, &flow, end + N);
    let next = long("b") + &"b".repeat(1_220 - long("b").len());
    let plain = sent(&mut bench, &flow, end, next.as_bytes());
    assert_eq!((plain.len(), plain.ends_with(next.as_bytes())), (1_280, true));
}

/// A segment that has no room for one octet behind the field ends in front of it.
#[test]
fn what_stands_in_front_of_the_field_goes_alone_where_no_more_has_room() {
    let (mut bench, flow) = (bench_with(SERVED, rules()), flow_over(true));
    shake_hands(&mut bench, &flow);
    let line = format!("GET /{} HTTP/1.1\r\n", "a".repeat(1_190));
    let request = [line.as_bytes(), b"Host: a\r\n\r\n"].concat();
    let first = sent(&mut bench, &flow, USER_FIRST, &request);
    told(&mut bench, N6, &error(&first, Some(1_280)));
    let again = sent(&mut bench, &flow, USER_FIRST, &request);
    assert_eq!((again.len(), again.ends_with(b" HTTP/1.1\r\n")), (60 + line.len(), true));
    let at = USER_FIRST + line.len() as u32;
    assert_eq!(say(&mut bench, &flow, at, b"Host: a\r\n\r\n").1, [FIELD, b"Host: a\r\n\r\n"].concat());
}

/// The server's segment had another acknowledgement when it left there.
#[test]
fn a_server_hears_of_its_own_segment() {
    for is_ipv6 in [false, true] {
        let (mut bench, flow) = (bench_with(SERVED, rules()), flow_over(is_ipv6));
        with_request(&mut bench, &flow);
        let acknowledged = USER_FIRST + LENGTH;
        let segment = made(packet::tcp::flag::ACK, (SERVER_FIRST, acknowledged), b"answer");
        let mut about = vec![0; 1_500];
        let length = segment.write(&flow.reversed(), &mut about).unwrap();
        let mut packet = error(&about[..length], None);
        // The user says it.
        let user = packet::address::End::Source;
        let sealed = packet::address::Sealed::of(&packet).unwrap();
        sealed.replace(&mut packet, user, flow.source_address()).unwrap();
        let heard = told(&mut bench, N3, &packet);
        assert_eq!(number(&heard, Number::Acknowledgement), Some(acknowledged + N));
        assert_eq!(number(&heard, Number::Sequence), Some(SERVER_FIRST));
    }
}

/// Connections that nothing was put into, those of others, and what is no error.
#[test]
fn all_else_passes_as_it_is() {
    let (mut bench, flow) = (bench_with(SERVED, rules()), flow_over(false));
    let request = with_request(&mut bench, &flow);
    let other = FiveTuple { source_port: 9, ..flow };
    shake_hands(&mut bench, &other);
    let plain = sent(&mut bench, &other, USER_FIRST, b"HELO");
    let heard = told(&mut bench, N6, &error(&plain, Some(1_400)));
    assert_eq!((number(&heard, Number::Sequence), mtu(&heard)), (Some(USER_FIRST), Some(1_400)));
    // To another user, about this one's: what comes of it says nothing about the connection, nor does it change that.
    bench.put(90 + 20, 2, enriched(90 + 20));
    bench.settle();
    let mut stray = error(&request, Some(600));
    let sealed = packet::address::Sealed::of(&stray).unwrap();
    sealed.replace(&mut stray, packet::address::End::Destination, IpAddr::from([10, 60, 0, 110])).unwrap();
    let heard = told(&mut bench, N6, &stray);
    assert_eq!(number(&heard, Number::Sequence), Some(USER_FIRST + LENGTH + N));
    assert_eq!(mtu(&heard), Some(600));
    // What is of no connection at all.
    let (user, server) =
        pass(&mut bench, N6, &super::redirect::down(&other, &made(0x10, (SERVER_FIRST, USER_FIRST), b"")));
    assert_eq!((user.len(), server.len()), (1, 0));
}
