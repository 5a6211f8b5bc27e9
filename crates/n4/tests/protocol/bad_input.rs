//! Datagrams nobody should send: the right cause, or silence, and never more. [`CLASSES`] says where each kind of message
//! that has brought a user plane in the open down is tried.

use crate::common::smf::{self, establishment, path_switch};
use crate::common::{Lab, SMF, at};
use pfcp::{Body, Cause, ErrorKind, Message, ie};
use pfcp_mutate::{Datagram, Tree};

/// What has crashed user planes in public reports, and the test that shows what we do with it.
const CLASSES: &[(&str, &str, &str)] = &[
    ("F-TEID absent", "dialects", "an_uplink_pdr_without_a_tunnel_would_never_match_and_is_refused"),
    ("F-TEID of zero length", "bad_input", "an_endpoint_without_octets_is_named"),
    ("F-TEID shorter than it says", "bad_input", "ies_of_wrong_length_are_named"),
    ("F-TEID without an address, or TEID 0", "bad_input", "endpoints_that_are_none_are_incorrect"),
    ("short Apply Action", "bad_input", "ies_of_wrong_length_are_named"),
    ("any IE short", "sweeps", "what_is_cut_is_refused_by_name_or_harmless"),
    ("any IE of zero length", "sweeps", "what_is_empty_is_named_or_takes_away"),
    ("any IE longer than its group", "sweeps", "what_is_longer_than_its_group_is_named"),
    (
        "sessions beyond any round number",
        "../bursts",
        "a_hundred_thousand_sessions_that_end_leave_nothing_behind",
    ),
    ("mandatory IE absent", "sweeps", "what_is_left_out_is_named_where_it_must_be_there"),
    ("IE in the wrong group", "omissions", "what_is_in_the_wrong_group_is_refused_or_carried"),
    ("groups in groups without end", "bad_input", "groups_may_be_nested_without_end"),
    ("session of another owner", "sessions", "a_session_is_its_owners"),
    ("unknown session", "sessions", "an_unknown_session_is_not_found"),
    ("duplicate identifiers", "sweeps", "what_comes_twice_is_named_or_counts_once"),
    ("duplicate session", "sessions", "the_same_cp_f_seid_replaces_its_session"),
    ("update of an unknown rule", "omissions", "rules_that_are_not_there_cannot_be_updated"),
    ("removal of an unknown rule", "restated", "what_is_gone_can_be_removed_with_whatever_else_is_asked"),
    ("creation of a known rule", "restated", "a_pdr_that_is_there_is_not_made_again"),
    ("header SEID zero, or none", "bad_input", "a_session_of_no_name_is_not_found"),
    (
        "message longer or shorter than its length",
        "omissions",
        "a_message_of_another_length_than_it_says_is_refused_or_dropped",
    ),
    ("octets behind the message", "bad_input", "what_stands_behind_a_message_is_no_part_of_it"),
    ("several messages in a datagram", "bad_input", "of_messages_in_one_datagram_the_first_is_heard"),
    ("fragments", "bad_input", "fragments_are_no_messages"),
    ("no association", "peers", "without_association_there_are_no_sessions"),
    ("responses nobody asked for", "bad_input", "what_is_no_request_for_us_meets_silence"),
    ("another version", "bad_input", "other_versions_are_told_ours"),
    ("anything at all", "mutations", "whatever_is_said_is_answered_once_and_can_be_taken_back"),
];

#[test]
fn every_class_has_its_test() {
    for (class, file, test) in CLASSES {
        let path = format!("{}/tests/protocol/{file}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(&format!("#[test]\nfn {test}() {{")), "{class}: {file}::{test}");
    }
}

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
    for action in [3, 6] {
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

#[test]
fn an_endpoint_without_octets_is_named() {
    let mut datagram = Datagram::read(&pfcp::encode(&request())).unwrap();
    let is_endpoint = |tree: &Tree| tree.ie == ie::F_TEID;
    let mut groups = datagram.body.iter_mut().flat_map(|tree| &mut tree.children);
    let pdi = groups.find(|tree| tree.children.iter().any(is_endpoint)).unwrap();
    pdi.children.iter_mut().filter(|tree| is_endpoint(tree)).for_each(|tree| tree.value.clear());
    assert_eq!(refused(&datagram.write()), (Some(77), Cause::InvalidLength, Some(ie::F_TEID)));
}

#[test]
fn a_session_of_no_name_is_not_found() {
    let mut lab = Lab::associated();
    let Body::SessionEstablishmentResponse(_) = lab.ask(SMF, &request()) else { panic!("an answer") };
    let before = lab.desired();
    let deletion = Message::session(0, 3, pfcp::SessionDeletionRequest::default());
    for message in [Message::session(0, 2, path_switch(5)), deletion] {
        lab.tell(SMF, &message);
        let answer = lab.answer(message.sequence);
        assert_eq!(answer.seid, Some(0));
        let cause = match answer.body {
            Body::SessionModificationResponse(response) => response.cause,
            Body::SessionDeletionResponse(response) => response.cause,
            other => panic!("{other:?}"),
        };
        assert_eq!(cause, Cause::SessionContextNotFound);
    }
    // A header that has no room for one.
    lab.tell(SMF, &Message::node(4, path_switch(5)));
    assert!(lab.sent.iter().all(|(_, message)| message.sequence == 4));
    assert_eq!(lab.desired(), before);
}

/// In whatever places a message is cut: no part of it is one, and the whole is.
#[test]
fn fragments_are_no_messages() {
    let whole = pfcp::encode(&request());
    let mut lab = Lab::associated();
    for cut in 1..whole.len() {
        let (first, second) = whole.split_at(cut);
        lab.receive(at(SMF), first);
        lab.receive(at(SMF), second);
        assert_eq!((lab.node.sessions(), lab.in_force.len()), (0, 0), "{cut}");
    }
    lab.sent.clear();
    lab.receive(at(SMF), &whole);
    assert_eq!(lab.node.sessions(), 1);
}

/// The length says where a message ends (TS 29.244 7.2.2.2): what stands behind it neither changes what is done nor spoils it.
#[test]
fn what_stands_behind_a_message_is_no_part_of_it() {
    let whole = pfcp::encode(&request());
    // Nothing, a mandatory IE that is wrong, an IE cut short.
    for tail in [&[0; 7][..], &[0, 60, 0, 1, 9], &[0, 1, 200, 0]] {
        let mut lab = Lab::associated();
        lab.receive(at(SMF), &[&whole[..], tail].concat());
        let Body::SessionEstablishmentResponse(response) = lab.answer(1).body else { panic!("an answer") };
        assert_eq!((response.cause, lab.node.sessions()), (Cause::RequestAccepted, 1), "{tail:?}");
    }
}

/// The FO flag says that another message follows (TS 29.244 7.2.2.2). That is for user planes that say they take it (BUNDL), which
/// we do not: its sender hears nothing of the second and says it again, by itself.
#[test]
fn of_messages_in_one_datagram_the_first_is_heard() {
    let answer = Lab::new(crate::common::config()).ask(SMF, &Message::node(9, smf::setup(SMF, 1)));
    let Body::AssociationSetupResponse(setup) = answer else { panic!("{answer:?}") };
    assert!(!setup.up_function_features.unwrap().contains(pfcp::UpFeature::Bundl));
    let second = pfcp::encode(&Message::session(0, 2, establishment(78)));
    let mut first = pfcp::encode(&request());
    first[0] |= 0b100;
    let mut lab = Lab::associated();
    lab.sent.clear();
    lab.receive(at(SMF), &[first, second.clone()].concat());
    let answered: Vec<u32> = lab.sent.iter().map(|(_, message)| message.sequence).collect();
    assert_eq!((answered, lab.node.sessions()), (vec![1], 1));
    lab.receive(at(SMF), &second);
    assert_eq!(lab.node.sessions(), 2);
}

/// As deep as a datagram goes.
#[test]
fn groups_may_be_nested_without_end() {
    let mut body = vec![];
    while body.len() < 60_000 {
        let group = [ie::CREATE_PDR, ie::PDI][body.len() / 4 % 2];
        let length = body.len() as u16;
        body.splice(0..0, [group.to_be_bytes(), length.to_be_bytes()].concat());
    }
    let mut bytes = vec![0x21, 50];
    bytes.extend((body.len() as u16 + 12).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    bytes.extend(body);
    assert_eq!(refused(&bytes).1, Cause::MandatoryIeMissing);
}
