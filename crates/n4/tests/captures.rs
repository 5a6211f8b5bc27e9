//! What real control planes were recorded saying: every request is answered, whatever we make of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::{Lab, SMF, at, config, pcap};
use pfcp::{Body, Cause, Message};
use std::collections::BTreeMap;

/// Requests a control plane sends; the rest of a recording is the other side.
fn is_request(body: &Body) -> bool {
    matches!(body.message_type(), 1 | 5 | 9 | 50 | 52 | 54)
}

fn cause(body: &Body) -> Option<Cause> {
    match body {
        Body::AssociationSetupResponse(response) => Some(response.cause),
        Body::AssociationReleaseResponse(response) => Some(response.cause),
        Body::SessionEstablishmentResponse(response) => Some(response.cause),
        Body::SessionModificationResponse(response) => Some(response.cause),
        Body::SessionDeletionResponse(response) => Some(response.cause),
        _ => None,
    }
}

/// A recorded SEID is not ours: requests about a session go to the last one established.
fn readdressed(message: Message, last: u64) -> Message {
    let seid = message.seid.map(|_| if message.body.message_type() == 50 { 0 } else { last });
    Message { seid, ..message }
}

#[test]
fn every_recorded_request_is_answered() {
    for file in pcap::captures() {
        let mut lab = Lab::new(config());
        let (mut last, mut causes) = (4711, BTreeMap::<u8, u32>::new());
        let messages =
            pcap::udp_payloads(&file, pfcp::PORT).into_iter().map(|bytes| pfcp::decode(&bytes).unwrap());
        for message in messages.filter(|message| is_request(&message.body)) {
            let sequence = message.sequence;
            lab.receive(at(SMF), &pfcp::encode(&readdressed(message, last)));
            let answer =
                lab.sent.iter().rposition(|(_, answer)| answer.sequence == sequence).expect("an answer");
            let (_, answer) = lab.sent.remove(answer);
            if let Body::SessionEstablishmentResponse(response) = &answer.body {
                last = response.up_f_seid.map_or(4711, |f_seid| f_seid.seid);
            }
            cause(&answer.body).into_iter().for_each(|cause| *causes.entry(cause.number()).or_default() += 1);
        }
        assert_eq!(lab.in_force, lab.desired(), "{}", file.display());
        let told: std::collections::BTreeSet<_> =
            lab.notes.iter().filter(|note| note.contains("refused")).collect();
        println!("{}: causes {causes:?}\n{told:#?}", file.display());
    }
}
