//! Datagrams and what becomes of them.

use super::*;
use packet::gtpu::{PduSession, encapsulated_length, write_echo_request, write_end_marker, write_g_pdu};
use proptest::prelude::*;
use rules::Qfi;

const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
const BORN: u32 = 3_900_000_000;
const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
const UPF: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 30, 0, 2), 40_000);
const UPLINK: Tunnel = Tunnel { teid: Teid(0x100), address: Ipv4Addr::new(10, 30, 0, 2) };

fn downlink() -> Downlink {
    let bearer = Bearer::new(UE, Qfi::new(9).unwrap());
    bearer.set_uplink(Some(UPLINK));
    Downlink::new((GNB, BORN), Arc::from([bearer]), Arc::default())
}

/// An empty IPv4 packet to `destination`.
fn user_packet(destination: Ipv4Addr) -> Vec<u8> {
    let source = Ipv4Addr::new(10, 50, 0, 1);
    let mut bytes = vec![0; ipv4::LENGTH];
    ipv4::Header::new(source, destination, ipv4::UDP, 0).unwrap().write(&mut bytes).unwrap();
    bytes
}

fn g_pdu(teid: u32, container: Option<PduSession>, packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; encapsulated_length(container)];
    bytes.extend(packet);
    write_g_pdu(&mut bytes, teid, container, packet.len()).unwrap();
    bytes
}

fn handle<'a>(downlink: &mut Downlink, bytes: &'a [u8]) -> Verdict<'a> {
    downlink.handle(bytes, UPF)
}

#[test]
fn a_g_pdu_reaches_its_ue() {
    let mut downlink = downlink();
    let packet = user_packet(UE);
    let bytes = g_pdu(1, Some(PduSession::downlink(9)), &packet);
    assert_eq!(handle(&mut downlink, &bytes), Verdict::Deliver(0, &packet));
    assert_eq!(downlink.bearers[0].counts().down_wrong_qfi, 0);
}

#[test]
fn a_wrong_flow_is_counted_and_delivered() {
    let mut downlink = downlink();
    let packet = user_packet(UE);
    for container in [None, Some(PduSession::downlink(8)), Some(PduSession::uplink(9))] {
        let bytes = g_pdu(1, container, &packet);
        assert_eq!(handle(&mut downlink, &bytes), Verdict::Deliver(0, &packet));
    }
    assert_eq!(downlink.bearers[0].counts().down_wrong_qfi, 3);
}

#[test]
fn anothers_packet_and_a_broken_one_are_not_delivered() {
    let mut downlink = downlink();
    let bytes = g_pdu(1, Some(PduSession::downlink(9)), &user_packet(Ipv4Addr::new(10, 60, 0, 2)));
    assert_eq!(handle(&mut downlink, &bytes), Verdict::Nothing);
    let bytes = g_pdu(1, Some(PduSession::downlink(9)), &user_packet(UE)[..19]);
    assert_eq!(handle(&mut downlink, &bytes), Verdict::Nothing);
    assert_eq!(downlink.bearers[0].counts().down_wrong_address, 1);
    assert_eq!(downlink.counters.read().malformed_inner, 1);
}

#[test]
fn an_echo_request_is_answered_to_where_it_came_from() {
    let mut bytes = [0; 16];
    let length = write_echo_request(&mut bytes, 0xabcd, None).unwrap();
    let Verdict::Answer(answer, to) = handle(&mut downlink(), &bytes[..length]) else { panic!("an answer") };
    let message = Message::parse(&answer).unwrap();
    assert_eq!((message.message_type, message.sequence), (message_type::ECHO_RESPONSE, Some(0xabcd)));
    assert_eq!((to, answer.len()), (UPF, message.total_length));
    assert_eq!(gtpu::read_recovery_time_stamp(&message, &answer), Some(BORN));
}

#[test]
fn a_tunnel_we_do_not_have_is_told_so_but_not_without_end() {
    let mut downlink = downlink();
    let bytes = g_pdu(0xdead, None, &user_packet(UE));
    let Verdict::Answer(answer, to) = handle(&mut downlink, &bytes) else { panic!("an answer") };
    let indication = ErrorIndication::read(&Message::parse(&answer).unwrap(), &answer);
    assert_eq!(indication, Some(ErrorIndication { teid: 0xdead, address: GNB }));
    assert_eq!(to, SocketAddrV4::new(*UPF.ip(), 2152));
    let answers = (0..100).filter(|_| handle(&mut downlink, &bytes) != Verdict::Nothing).count();
    let counts = downlink.counters.read();
    assert_eq!((answers, counts.error_indications_sent, counts.unknown_teid), (9, 10, 101));
}

#[test]
fn an_error_indication_is_reported_with_the_ue_it_concerns() {
    let mut downlink = downlink();
    let mut say = |teid, address| {
        let mut bytes = [0; ErrorIndication::LENGTH];
        ErrorIndication { teid, address }.write(&mut bytes).unwrap();
        downlink.handle(&bytes, UPF) == {
            let tunnel = Tunnel { teid: Teid(teid), address };
            Verdict::Report(TunnelRefused { tunnel, ue: (tunnel == UPLINK).then_some(0) })
        }
    };
    assert!(say(UPLINK.teid.0, UPLINK.address));
    assert!(say(UPLINK.teid.0 + 1, UPLINK.address));
    assert_eq!(downlink.counters.read().error_indications_received, 2);
    assert_eq!(downlink.bearers[0].counts().error_indications, 1);
}

#[test]
fn everything_else_is_counted_by_name() {
    let mut downlink = downlink();
    let mut marker = [0; 8];
    write_end_marker(&mut marker, 1).unwrap();
    handle(&mut downlink, &marker);
    handle(&mut downlink, &[0x30, 26, 0, 0, 0, 0, 0, 0]);
    handle(&mut downlink, &[0x30, 31, 0, 0, 0, 0, 0, 0]);
    handle(&mut downlink, &[0x30, 255, 0]);
    handle(&mut downlink, &[0x50, 255, 0, 0, 0, 0, 0, 0]);
    let counts = downlink.counters.read();
    let counted = counts.named().into_iter().filter(|(_, count)| *count > 0);
    let expected = [
        ("error_indications_received", 1),
        ("unknown_type", 1),
        ("malformed_truncated", 1),
        ("malformed_version", 1),
        ("malformed_error_indication", 1),
    ];
    assert_eq!(counted.collect::<Vec<_>>(), expected);
    assert_eq!(downlink.bearers[0].counts().end_markers, 1);
}

proptest! {
    #[test]
    fn noise_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), any_version: bool) {
        if let Some(first) = bytes.first_mut().filter(|_| !any_version) {
            *first = 0x30 | *first & 7;
        }
        handle(&mut downlink(), &bytes);
    }

    #[test]
    fn a_damaged_g_pdu_never_panics(at in 0usize..40, value: u8, cut in 0usize..40) {
        let mut bytes = g_pdu(1, Some(PduSession::downlink(9)), &user_packet(UE));
        let length = bytes.len();
        bytes[at % length] = value;
        bytes.truncate(length - cut % length);
        handle(&mut downlink(), &bytes);
    }
}
