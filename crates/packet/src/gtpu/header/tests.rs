use super::super::PduType;
use super::*;
use proptest::prelude::*;

/// An uplink G-PDU of a real gNB: TEID 0x0000fa1f, PDU session container with QFI 1.
const UPLINK: [u8; 16] =
    [0x34, 0xff, 0x00, 0x08, 0x00, 0x00, 0xfa, 0x1f, 0x00, 0x00, 0x00, 0x85, 0x01, 0x10, 0x01, 0x00];

#[test]
fn an_uplink_packet_of_a_gnb() {
    let message = Message::parse(&UPLINK).unwrap();
    assert_eq!((message.message_type, message.teid), (G_PDU, 0xfa1f));
    assert_eq!((message.header_length, message.total_length), (16, 16));
    let pdu_session = message.pdu_session.unwrap();
    assert_eq!((pdu_session.pdu_type, pdu_session.qfi), (PduType::Uplink, 1));
    assert_eq!(message.sequence, None);
}

#[test]
fn each_fault_has_its_name() {
    let with = |at: usize, value: u8| [&UPLINK[..at], &[value], &UPLINK[at + 1..]].concat();
    assert_eq!(Message::parse(&UPLINK[..7]), Err(Malformed::Truncated));
    assert_eq!(Message::parse(&UPLINK[..15]), Err(Malformed::Truncated));
    assert_eq!(Message::parse(&with(0, 0x54)), Err(Malformed::Version));
    assert_eq!(Message::parse(&with(0, 0x24)), Err(Malformed::Version));
    assert_eq!(Message::parse(&with(12, 0)), Err(Malformed::Extension));
    assert_eq!(Message::parse(&with(12, 2)), Err(Malformed::Extension));
    assert_eq!(Message::parse(&with(15, 0x85)), Err(Malformed::Extension));
    assert_eq!(Message::parse(&with(11, 0xc1)), Err(Malformed::UnknownExtension));
}

#[test]
fn an_unknown_extension_nobody_insists_on_is_skipped() {
    let mut bytes = UPLINK;
    bytes[11] = 0x03;
    let message = Message::parse(&bytes).unwrap();
    assert_eq!((message.header_length, message.pdu_session), (16, None));
}

#[test]
fn an_endless_chain_of_extensions_ends() {
    let mut bytes = UPLINK[..12].to_vec();
    bytes.extend([0x01, 0x10, 0x01, 0x85].repeat(EXTENSIONS_MAX));
    bytes.extend([0x01, 0x10, 0x01, 0x00]);
    bytes[3] = (bytes.len() - MANDATORY) as u8;
    assert_eq!(Message::parse(&bytes), Err(Malformed::Extension));
}

proptest! {
    #[test]
    fn a_g_pdu_reads_as_it_was_written(teid: u32, qfi in proptest::option::of(0u8..64), payload in 0usize..1500) {
        let pdu_session = qfi.map(PduSession::downlink);
        let header = encapsulated_length(pdu_session);
        let mut bytes = vec![0; header + payload];
        write_g_pdu(&mut bytes, teid, pdu_session, payload).unwrap();
        let message = Message::parse(&bytes).unwrap();
        prop_assert_eq!((message.teid, message.pdu_session), (teid, pdu_session));
        prop_assert_eq!((message.header_length, message.total_length), (header, bytes.len()));
    }

    #[test]
    fn any_bytes_parse_or_fail_and_lengths_hold(mut bytes in proptest::collection::vec(any::<u8>(), 8..64)) {
        bytes[0] = VERSION_1_GTP | bytes[0] & 7;
        bytes[2] = 0;
        if let Ok(message) = Message::parse(&bytes) {
            prop_assert!(message.header_length <= message.total_length);
            prop_assert!(message.total_length <= bytes.len());
        }
    }

    #[test]
    fn a_packet_is_passed_on_with_its_extension_headers(
        contents in proptest::collection::vec((1u8..0x80, 0usize..4), 0..=EXTENSIONS_MAX),
        teid: u32,
        payload in 0usize..100,
    ) {
        let all = [0x5a; 18];
        let contents: Vec<_> = contents.iter().map(|(kind, units)| (*kind, &all[..4 * units + 2])).collect();
        let extensions: Vec<_> = contents.iter().map(|(kind, content)| Extension { kind: *kind, content }).collect();
        let mut bytes = vec![0; 200 + payload];
        let header = write_g_pdu_with(&mut bytes, teid, &extensions, payload).unwrap();
        bytes.truncate(header + payload);
        let message = Message::parse(&bytes).unwrap();
        prop_assert_eq!((message.header_length, message.total_length, message.teid), (header, bytes.len(), teid));
        let read: Vec<_> = message.extensions(&bytes).map(Result::unwrap).collect();
        prop_assert_eq!(read, extensions);
        for length in 0..bytes.len() {
            prop_assert_eq!(Message::parse(&bytes[..length]), Err(Malformed::Truncated));
            prop_assert!(message.extensions(&bytes[..length]).count() <= EXTENSIONS_MAX);
        }
    }
}

#[test]
fn a_container_with_all_its_options() {
    // Downlink: QMP and SNP set, paging policy 5 before the time stamp and the sequence number, which are skipped.
    let content = [0x0c, 0xc9, 0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9];
    let mut bytes = vec![0; 40];
    let extensions = [Extension { kind: 0x85, content: &content }];
    write_g_pdu_with(&mut bytes, 1, &extensions, 0).unwrap();
    let read = Message::parse(&bytes).unwrap().pdu_session.unwrap();
    assert_eq!(read, PduSession { reflective: true, paging_policy: Some(5), ..PduSession::downlink(9) });
    // Uplink: the same bits mean other things there.
    let content = [0x1c, 0xc9, 1, 2, 3, 4];
    write_g_pdu_with(&mut bytes, 1, &[Extension { kind: 0x85, content: &content }], 0).unwrap();
    assert_eq!(Message::parse(&bytes).unwrap().pdu_session, Some(PduSession::uplink(9)));
}

#[test]
fn containers_that_are_wrong() {
    // A downlink container whose paging policy is announced and then not there, as a length of 1 leaves no room.
    for (kind, flow) in [(0x00, 0x80), (0x20, 9), (0xf0, 9)] {
        let mut bytes = UPLINK;
        (bytes[13], bytes[14]) = (kind, flow);
        assert_eq!(Message::parse(&bytes), Err(Malformed::Extension), "{kind:x} {flow:x}");
    }
}

#[test]
fn numbers_of_forwarded_packets_are_no_obstacle() {
    for kind in [extension_type::PDCP_PDU_NUMBER, extension_type::LONG_PDCP_PDU_NUMBER, 0x03] {
        let content = [0x12, 0x34, 0x56, 0, 0, 0];
        let extensions =
            [Extension { kind, content: &content }, Extension { kind: 0x85, content: &[0x10, 5] }];
        let mut bytes = [0; 24];
        assert_eq!(write_g_pdu_with(&mut bytes, 1, &extensions, 0), Some(24));
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.pdu_session, Some(PduSession::uplink(5)));
        assert!(message.extensions(&bytes).all(|extension| extension.unwrap().is_relayed()));
    }
    for kind in
        [extension_type::RAN_CONTAINER, extension_type::XW_RAN_CONTAINER, extension_type::NR_RAN_CONTAINER]
    {
        let mut bytes = UPLINK;
        bytes[11] = kind;
        assert_eq!(Message::parse(&bytes), Err(Malformed::UnknownExtension));
    }
}

#[test]
fn what_cannot_be_written() {
    let extension = Extension { kind: 0x85, content: &[0x10, 5] };
    let mut bytes = [0; 100];
    assert_eq!(write_g_pdu_with(&mut bytes, 1, &[extension; EXTENSIONS_MAX + 1], 0), None);
    assert_eq!(write_g_pdu_with(&mut bytes, 1, &[Extension { content: &[1], ..extension }], 0), None);
    assert_eq!(write_g_pdu_with(&mut bytes, 1, &[extension], 65_535), None);
    assert!((0..16).all(|length| write_g_pdu_with(&mut bytes[..length], 1, &[extension], 0).is_none()));
    assert!((0..8).all(|length| write_g_pdu_with(&mut bytes[..length], 1, &[], 0).is_none()));
    let policy = PduSession { paging_policy: Some(3), ..PduSession::downlink(1) };
    assert!((0..20).all(|length| write_g_pdu(&mut bytes[..length], 1, Some(policy), 0).is_none()));
}
