//! Every message of every conversation, and what becomes of it when any one of its IEs is left out, emptied, cut, doubled, or
//! says that it is longer than what it stands in: the right cause names the right IE, and the state is as before.

use crate::common::smf::establishment;
use crate::common::{Lab, SMF, at};
use crate::conversations::state::State;
use crate::conversations::tables::{Place, mandatory};
use crate::conversations::{Conversation, Stage, Step, blamed, cause};
use pfcp::*;
use pfcp_mutate::{GROUPS, Tree, around, places, write};
use std::collections::BTreeSet;

/// What a request was told that had something changed.
#[derive(Debug)]
struct Told {
    place: Place,
    /// There is no other of its number in its group.
    is_only: bool,
    /// `None` where it was a response, or a heartbeat.
    cause: Option<Cause>,
    offending: Option<u16>,
    failed: Option<FailedRuleId>,
}

impl Told {
    /// Answers about associations have no room for more than a cause.
    fn has_room(&self) -> bool {
        !matches!(self.place.message_type, 5 | 7 | 9)
    }

    fn is_refused(&self) -> bool {
        self.cause.is_some_and(|cause| !cause.is_accepted())
    }

    /// Accepted, or refused with the name of what is wrong.
    fn is_fair(&self) -> bool {
        !self.is_refused() || !self.has_room() || self.offending.is_some() || self.failed.is_some()
            // Whose session it is, and who asks, have no rule and no IE to blame.
            || matches!(
                self.cause,
                Some(Cause::NoEstablishedPfcpAssociation | Cause::SessionContextNotFound)
            )
    }

    /// Refused for this reason, with the name of this IE.
    fn blames(&self, cause: Cause, ie: u16) -> bool {
        self.cause == Some(cause) && (!self.has_room() || self.offending == Some(ie))
    }
}

/// Changes every IE of every message in turn.
fn each(change: impl Fn(&mut Vec<Tree>, usize), mut judge: impl FnMut(&Told)) {
    let mut seen = BTreeSet::new();
    for conversation in crate::conversations::all() {
        for step in 0..conversation.steps.len() {
            let Some(body) = conversation.body(step) else { continue };
            let (_, about, message) = conversation.message(step).unwrap();
            // What several conversations begin with is looked at once.
            if seen.insert((message.message_type(), format!("{about:?}"), write(&body))) {
                each_of((&conversation, step), &change, &mut judge);
            }
        }
    }
}

fn each_of(
    (conversation, step): (&Conversation, usize),
    change: impl Fn(&mut Vec<Tree>, usize),
    mut judge: impl FnMut(&Told),
) {
    let whole = conversation.body(step).unwrap();
    let message_type = conversation.message(step).unwrap().2.message_type();
    let mut stage = Stage::before(conversation, step);
    for way in places(&whole) {
        let mut changed = whole.clone();
        let outer = way.split_last().and_then(|(_, outer)| around(&mut changed, outer));
        let is_in_update = outer.is_some_and(|(group, ..)| group == ie::UPDATE_FAR);
        let (group, list, at) = around(&mut changed, &way).unwrap();
        // Some call so what they update.
        let is_update = is_in_update && group == ie::FORWARDING_PARAMETERS;
        let group = if is_update { ie::UPDATE_FORWARDING_PARAMETERS } else { group };
        let ie = list[at].ie;
        let is_only = list.iter().filter(|tree| tree.ie == ie).count() == 1;
        change(list, at);
        let before = State::of(&stage.lab);
        let answer = stage.step(conversation, step, Some(&changed)).map(|answer| answer.body);
        let is_question = matches!(conversation.steps[step], Step::Ask(..));
        assert!(message_type == 1 || answer.is_some() == is_question, "{:?}", ie::Name(ie));
        let (offending, failed) = answer.as_ref().map_or((None, None), blamed);
        let place = Place { message_type, group, ie };
        let told = Told { place, is_only, cause: answer.as_ref().and_then(cause), offending, failed };
        judge(&told);
        if told.is_refused() {
            before.assert_same(&State::of(&stage.lab), &[]);
        } else {
            assert!(stage.lab.in_force.values().all(|session| session.rules.check() == Ok(())));
            stage = Stage::before(conversation, step);
        }
    }
}

#[test]
fn what_is_left_out_is_named_where_it_must_be_there() {
    let mut missing = BTreeSet::new();
    each(
        |list, at| drop(list.remove(at)),
        |told| {
            let Place { group, ie, message_type } = told.place;
            if told.place.is_mandatory() && told.is_only {
                missing.insert((group, if group == 0 { message_type } else { 0 }, ie));
                let is_named = told.cause.is_none() || told.blames(Cause::MandatoryIeMissing, ie);
                assert!(is_named, "{told:?}");
            }
            assert!(told.is_fair(), "{told:?}");
        },
    );
    // All but PDRs and FARs, of which there are always several.
    assert_eq!(missing.len(), mandatory() - 2, "{missing:?}");
}

/// IEs of any length: octets or text.
const OF_ANY_LENGTH: &[u16] = &[
    ie::USER_ID,
    ie::APN_DNN,
    ie::S_NSSAI,
    ie::NETWORK_INSTANCE,
    ie::GROUP_ID,
    ie::SMF_SET_ID,
    ie::APPLICATION_ID,
    ie::ACTIVATE_PREDEFINED_RULES,
    ie::UE_IP_ADDRESS_POOL_IDENTITY,
    ie::CP_FUNCTION_FEATURES,
    ie::UP_FUNCTION_FEATURES,
    // Looked at by those who obey them.
    ie::PACKET_RATE,
    ie::FORWARDING_POLICY,
    ie::PFCP_SESSION_RETENTION_INFORMATION,
    // Of networks behind users, none names none.
    ie::FRAMED_ROUTE,
    ie::FRAMED_IPV6_ROUTE,
    ie::FRAMED_ROUTING,
];

/// An IE without octets has an invalid length; a group lacks what is mandatory in it; and in an update it takes something away.
#[test]
fn what_is_empty_is_named_or_takes_away() {
    let mut emptied = 0;
    each(
        |list, at| (list[at].value, list[at].children) = (vec![], vec![]),
        |told| {
            let ie = told.place.ie;
            assert!(told.is_fair(), "{told:?}");
            let is_update = told.place.is_of_an_update() && !told.place.is_mandatory();
            let is_later = OF_ANY_LENGTH.contains(&ie) || OF_ANY_LENGTH.contains(&told.place.group);
            if told.cause.is_none() || GROUPS.contains(&ie) || is_later || is_update {
                return;
            }
            emptied += 1;
            assert!(told.blames(Cause::InvalidLength, ie), "{told:?}");
        },
    );
    assert!(emptied > 400, "{emptied}");
}

#[test]
fn what_is_cut_is_refused_by_name_or_harmless() {
    let cut = |list: &mut Vec<Tree>, at: usize| {
        let tree = &mut list[at];
        tree.value.splice(0..0, write(&std::mem::take(&mut tree.children)));
        tree.value.pop();
    };
    each(cut, |told| assert!(told.is_fair(), "{told:?}"));
}

#[test]
fn what_comes_twice_is_named_or_counts_once() {
    let twice = |list: &mut Vec<Tree>, at: usize| list.insert(at, list[at].clone());
    let (mut named, mut once) = (0, 0);
    each(twice, |told| {
        assert!(told.is_fair(), "{told:?}");
        if matches!(told.place.ie, ie::CREATE_PDR | ie::CREATE_FAR) {
            assert!(!told.is_refused(), "{told:?}");
            once += 1;
        }
        if matches!(told.place.ie, ie::CREATE_URR | ie::CREATE_QER) {
            assert_eq!(told.cause, Some(Cause::RuleCreationModificationFailure), "{told:?}");
            assert!(told.failed.is_some(), "{told:?}");
            named += 1;
        }
    });
    assert!(named > 10 && once > 50, "{named}, {once}");
}

#[test]
fn what_is_longer_than_its_group_is_named() {
    each(
        |list, at| list[at].lie = Some(60_000),
        |told| {
            // What is in an IE that is looked at later is that IE's fault.
            if told.cause.is_some() && told.place.group != ie::PFCP_SESSION_RETENTION_INFORMATION {
                assert!(told.blames(Cause::InvalidLength, told.place.ie), "{told:?}");
            }
        },
    );
}

/// It needs no IE, so what is there can only be wrong in its octets.
#[test]
fn a_deletion_that_cannot_be_read_names_what_is_wrong() {
    let mut lab = Lab::associated();
    let session = lab.establish(establishment(77));
    let mut bytes = pfcp::encode(&Message::session(session.0, 900, SessionDeletionRequest::default()));
    bytes.extend([0, 60, 0, 9, 0]);
    bytes[3] += 5;
    lab.receive(at(SMF), &bytes);
    let answer = lab.answer(900);
    let Body::SessionDeletionResponse(response) = answer.body else { panic!("{answer:?}") };
    assert_eq!((response.cause, response.offending_ie), (Cause::InvalidLength, Some(ie::NODE_ID)));
    assert_eq!((answer.seid, lab.node.sessions(), lab.in_force.len()), (Some(77), 1, 1));
}
