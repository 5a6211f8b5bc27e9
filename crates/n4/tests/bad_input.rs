//! Datagrams nobody should send: the right cause, or silence, and never more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::smf::{self, establishment, path_switch};
use common::{Lab, SMF, at};
use pfcp::{Body, Cause, ErrorKind, Message, ie};

/// The last occurrence of `from` in a message, replaced. Lengths around it are the caller's concern.
fn patched(message: &Message, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = pfcp::encode(message);
    let at = bytes.windows(from.len()).rposition(|window| window == from).expect("the octets to replace");
    bytes.splice(at..at + from.len(), to.iter().copied());
    let length = (bytes.len() as u16 - 4).to_be_bytes();
    bytes[2..4].copy_from_slice(&length);
    bytes
}

fn refused(bytes: &[u8]) -> (Option<u64>, Cause, Option<u16>) {
    let mut lab = Lab::associated();
    lab.receive(at(SMF), bytes);
    let answer = lab.answer(1);
    assert_eq!((lab.node.sessions(), lab.node.tunnels()), (0, 0));
    match answer.body {
        Body::SessionEstablishmentResponse(response) => (answer.seid, response.cause, response.offending_ie),
        other => panic!("{other:?}"),
    }
}

fn request() -> Message {
    Message::session(0, 1, establishment(77))
}

#[test]
fn a_missing_mandatory_ie_is_named() {
    // Its number becomes one nobody knows.
    let missing = |number: u16, length: u8| {
        let [high, low] = number.to_be_bytes();
        refused(&patched(&request(), &[high, low, 0, length], &[0x01, 0x8F, 0, length]))
    };
    assert_eq!(missing(ie::NODE_ID, 5), (Some(77), Cause::MandatoryIeMissing, Some(ie::NODE_ID)));
    assert_eq!(missing(ie::F_SEID, 13), (Some(0), Cause::MandatoryIeMissing, Some(ie::F_SEID)));
    assert_eq!(missing(ie::PDI, 27), (Some(77), Cause::MandatoryIeMissing, Some(ie::PDI)));
    assert_eq!(missing(ie::APPLY_ACTION, 2), (Some(77), Cause::MandatoryIeMissing, Some(ie::APPLY_ACTION)));
}

#[test]
fn ies_of_wrong_length_are_named() {
    // The F-TEID asks for a CHOOSE ID it does not carry.
    let cut = patched(&request(), &[0, 21, 0, 1, 5], &[0, 21, 0, 1, 0x0D]);
    assert_eq!(refused(&cut), (Some(77), Cause::InvalidLength, Some(ie::F_TEID)));
    // An Apply Action without octets; what it had is an IE of its own of no meaning, and cut short.
    let empty = patched(&request(), &[0, 44, 0, 2, 1, 0], &[0, 44, 0, 0, 1, 0]);
    assert_eq!(refused(&empty).1, Cause::InvalidLength);
    // An IE longer than its group.
    let long = patched(&request(), &[0, 44, 0, 2], &[0, 44, 0, 200]);
    assert_eq!(refused(&long), (Some(77), Cause::InvalidLength, Some(ie::APPLY_ACTION)));
}

#[test]
fn endpoints_that_are_none_are_incorrect() {
    let mut given = establishment(77);
    given.create_pdrs[0] = smf::uplink(1, smf::given(0x0102_0304));
    let given = Message::session(0, 1, given);
    let null = patched(&given, &[1, 2, 3, 4], &[0, 0, 0, 0]);
    assert_eq!(refused(&null), (Some(77), Cause::MandatoryIeIncorrect, Some(ie::F_TEID)));
    let nowhere = patched(&given, &[1, 1, 2, 3, 4], &[0, 1, 2, 3, 4]);
    assert_eq!(refused(&nowhere), (Some(77), Cause::MandatoryIeIncorrect, Some(ie::F_TEID)));
}

#[test]
fn contradicting_actions_are_incorrect() {
    for action in [0, 3] {
        let bytes = patched(&request(), &[0, 44, 0, 2, 1, 0], &[0, 44, 0, 2, action, 0]);
        assert_eq!(refused(&bytes), (Some(77), Cause::MandatoryIeIncorrect, Some(ie::APPLY_ACTION)));
    }
}

#[test]
fn a_modification_that_cannot_be_read_is_answered_to_its_owner() {
    let mut lab = Lab::associated();
    let Body::SessionEstablishmentResponse(response) = lab.ask(SMF, &request()) else { panic!("an answer") };
    let seid = response.up_f_seid.unwrap().seid;
    let before = lab.desired();
    let modification = Message::session(seid, 2, path_switch(5));
    lab.receive(at(SMF), &patched(&modification, &[0, 44, 0, 2], &[0, 44, 0, 200]));
    let answer = lab.answer(2);
    assert_eq!(answer.seid, Some(77));
    let Body::SessionModificationResponse(response) = answer.body else { panic!("{answer:?}") };
    assert_eq!((response.cause, response.offending_ie), (Cause::InvalidLength, Some(ie::APPLY_ACTION)));
    assert_eq!(lab.desired(), before);
    assert_eq!(lab.ask(SMF, &Message::session(seid, 2, path_switch(5))), lab_accepts());
}

fn lab_accepts() -> Body {
    pfcp::SessionModificationResponse {
        cause: Cause::RequestAccepted,
        offending_ie: None,
        created_pdrs: vec![],
        usage_reports: vec![],
        created_traffic_endpoints: vec![],
        load: None,
        overload: None,
        failed_rule_id: None,
        carried: vec![],
    }
    .into()
}

#[test]
fn other_versions_are_told_ours() {
    let mut lab = Lab::associated();
    lab.receive(at(SMF), &[0x40, 50, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0]);
    assert!(matches!(lab.answer(0).body, Body::VersionNotSupportedResponse(_)));
    lab.receive(at(SMF), &[0x41, 50, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0]);
    assert!(matches!(lab.answer(9).body, Body::VersionNotSupportedResponse(_)));
    // Two nodes must not tell each other for ever.
    lab.receive(at(SMF), &[0x40, 11, 0, 4, 0, 0, 9, 0]);
    assert!(lab.is_silent());
}

#[test]
fn what_is_no_request_for_us_meets_silence() {
    let mut lab = Lab::associated();
    let whole = pfcp::encode(&request());
    for end in 0..whole.len() {
        lab.receive(at(SMF), &whole[..end]);
    }
    for message_type in [0, 4, 12, 18, 99, 255] {
        lab.receive(at(SMF), &[0x20, message_type, 0, 4, 0, 0, 9, 0]);
    }
    for message_type in [2, 6, 10, 13, 15, 17, 51, 53, 55, 57] {
        lab.receive(at(SMF), &[0x21, message_type, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0]);
    }
    lab.tell(SMF, &Message::session(1, 9, lab_accepts()));
    lab.tell(SMF, &Message::session(1, 9, pfcp::SessionReportRequest::default()));
    assert!(lab.is_silent());
    assert!(lab.node.counters().garbage > 0 && lab.node.counters().unexpected > 0);
    assert_eq!(lab.node.sessions(), 0);
}

#[test]
fn error_kinds_that_ask_for_silence_have_no_cause() {
    assert_eq!(ErrorKind::Garbage.cause(), None);
    assert_eq!(ErrorKind::UnknownMessage(99).cause(), None);
}
