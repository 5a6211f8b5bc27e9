//! Every message survives its encoding; no bytes whatever do harm.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::strategies::message;
use pfcp::{decode, encode};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_message_survives(message in message()) {
        let bytes = encode(&message);
        prop_assert_eq!(decode(&bytes), Ok(message));
    }

    #[test]
    fn any_bytes_end_in_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
    }

    /// Random bytes seldom pass for a header; these do.
    #[test]
    fn any_ies_end_in_a_message_or_an_error(
        message_type in 0u8..60,
        ies in proptest::collection::vec((0u16..360, proptest::collection::vec(any::<u8>(), 0..40)), 0..20),
    ) {
        let _ = decode(&datagram(message_type, &ies));
    }

    #[test]
    fn a_changed_octet_does_no_harm(message in message(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = encode(&message);
        let at = at.index(bytes.len());
        bytes[at] = to;
        let _ = decode(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Cut anywhere: by the network (the header tells more than there is) and by a sender that counts the cut.
    #[test]
    fn a_cut_message_does_no_harm(message in message()) {
        let bytes = encode(&message);
        for end in 0usize..bytes.len() {
            prop_assert!(decode(&bytes[..end]).is_err());
            let mut cut = bytes[..end].to_vec();
            if let (Some(length), Ok(counted)) = (cut.get_mut(2..4), u16::try_from(end.saturating_sub(4))) {
                length.copy_from_slice(&counted.to_be_bytes());
            }
            let _ = decode(&cut);
        }
    }
}

fn datagram(message_type: u8, ies: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = vec![0; 12];
    for (ie, value) in ies {
        body.extend(ie.to_be_bytes());
        body.extend((value.len() as u16).to_be_bytes());
        body.extend(value);
    }
    let mut bytes = vec![0x21, message_type];
    bytes.extend((body.len() as u16).to_be_bytes());
    bytes.extend(body);
    bytes
}
