//! `docs/ie-support.md` says what is true: it is made of the code, and of conversations in which every IE is left out or
//! changed to see what is different then.
//!
//! `ANCHORLINE_WRITE_DOCS=1 cargo test -p anchorline-n4 --test protocol ie_support` writes it anew.

use crate::common::smf::{self, establishment, path_switch};
use crate::common::{Lab, SMF};
use crate::conversations::effects::{Difference, Effects, Shown, occurrences};
use crate::conversations::{Stage, Step, blamed, cause};
use n4::{IeSupport, Standing, ie_support};
use pfcp::*;
use pfcp_mutate::around;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ie-support.md");

const REFUSED: &str = "`ie_support::what_is_listed_as_refused_is_refused`";

/// Rows that no conversation shows, and the test that does: a request without IEs can only be wrong in its octets.
const ELSEWHERE: &[(&str, u16, &str, &str)] = &[
    (
        "Session Deletion Response",
        ie::OFFENDING_IE,
        "sweeps",
        "a_deletion_that_cannot_be_read_names_what_is_wrong",
    ),
    (
        "Session Modification Response",
        ie::ADDITIONAL_USAGE_REPORTS_INFORMATION,
        "further",
        "what_an_answer_has_no_room_for_comes_in_requests_behind_it",
    ),
    (
        "Session Deletion Response",
        ie::ADDITIONAL_USAGE_REPORTS_INFORMATION,
        "further",
        "the_answer_to_a_deletion_is_no_longer_than_a_datagram_and_the_rest_follows",
    ),
];

fn elsewhere(row: &IeSupport) -> Option<String> {
    let it = ELSEWHERE.iter().find(|(group, ie, ..)| (*group, *ie) == (row.group, row.ie));
    it.map(|(_, _, file, test)| format!("`{file}::{test}`"))
}

fn words(shown: Shown) -> String {
    let Shown { difference, is_left_out, conversation } = shown;
    let how = if is_left_out { "left out" } else { "another value" };
    format!("*{conversation}*, {how}: {}", difference.words())
}

/// What shows that a row is true; `None` where nothing does.
fn shown_by(row: &IeSupport, effects: &Effects) -> Option<String> {
    match row.standing {
        Standing::Refused => Some(REFUSED.to_owned()),
        Standing::WithoutEffect => Some("–".to_owned()),
        Standing::Obeyed => effects.of(row.group, row.ie).map(words).or_else(|| elsewhere(row)),
        Standing::Sent => {
            let conversation = effects.sent(row.group, row.ie).map(|name| format!("*{name}*"));
            conversation.or_else(|| elsewhere(row))
        }
    }
}

const fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Obeyed => "obeyed",
        Standing::Sent => "sent",
        Standing::WithoutEffect => "taken, without effect",
        Standing::Refused => "refused",
    }
}

/// Its standing, and what of it is refused, or why it is not obeyed.
fn standing(row: &IeSupport) -> String {
    match (row.refused_values, row.reason) {
        (Some((words, _)), _) if row.standing == Standing::Obeyed => format!("partly; refused: {words}"),
        (Some((words, _)), _) => format!("{}; refused: {words}", word(row.standing)),
        (None, Some(reason)) => format!("{}: {reason}", word(row.standing)),
        (None, None) => word(row.standing).to_owned(),
    }
}

const INTRODUCTION: &str = "# Information elements (TS 29.244 Release 17 and later)

Made by `ANCHORLINE_WRITE_DOCS=1 cargo test -p anchorline-n4 --test protocol ie_support` from the code; that test fails where this
page is not what the code says.

- **obeyed**: it is done.
- **partly**: it is done, but for the values named; they are refused like what follows.
- **sent**: we say it.
- **taken, without effect**: there is nothing to do for a user plane, or for this one.
- **refused**: a request that asks for it gets cause 76 (service not supported) and its number as Offending IE, and
  changes nothing.
- What is in a group and not listed there is carried: read, kept out of the way, and ignored, as are vendors' own IEs.

*Shown by* names what proves the row. `crates/n4/tests/protocol/conversations` holds conversations in which everything that is
obeyed is said; the test plays each again with the IE left out, or with another value, and names what is different then:
orders to the data plane, requests of ours (reports), answers, content rules, charging records; *refused*, where a
well-formed message is accepted with the IE as it was and not without it; *what is kept*, where that alone differs. For
what is sent, the conversation in which we say it.
";

fn counts(rows: &[IeSupport], groups: usize) -> String {
    let count = |standing| rows.iter().filter(|row| row.standing == standing).count();
    let partly = |row: &&IeSupport| row.standing == Standing::Obeyed && row.refused_values.is_some();
    format!(
        "\n{} numbers are known by name. In {groups} groups: {} obeyed, {} of them partly, {} sent, {} without effect, {} \
         refused.\n",
        ie::ALL.len(),
        count(Standing::Obeyed),
        rows.iter().filter(partly).count(),
        count(Standing::Sent),
        count(Standing::WithoutEffect),
        count(Standing::Refused),
    )
}

fn page() -> String {
    let (rows, effects) = (ie_support(), Effects::new());
    let mut groups: Vec<&str> = vec![];
    rows.iter().for_each(|row| groups.extend((groups.last() != Some(&row.group)).then_some(row.group)));
    let mut page = INTRODUCTION.to_owned() + &counts(&rows, groups.len());
    for group in groups {
        write!(page, "\n## {group}\n\n| IE | name | standing | shown by |\n|---|---|---|---|\n").unwrap();
        for row in rows.iter().filter(|row| row.group == group) {
            let shown = shown_by(row, &effects).unwrap_or_else(|| panic!("nothing shows {row:?}"));
            writeln!(page, "| {} | {} | {} | {shown} |", row.ie, ie::Name(row.ie), standing(row)).unwrap();
        }
    }
    page + &all_numbers(&rows)
}

fn all_numbers(rows: &[IeSupport]) -> String {
    let mut page = "\n## All numbers\n\n| IE | name | standing |\n|---|---|---|\n".to_owned();
    for (number, name) in ie::ALL {
        let standings: BTreeSet<Standing> =
            rows.iter().filter(|row| row.ie == *number).map(|row| row.standing).collect();
        let is_group = rows.iter().any(|row| ie::name(*number) == Some(row.group));
        let group = is_group.then_some("a group above");
        let words: Vec<&str> = standings.into_iter().map(word).chain(group).collect();
        let words = if words.is_empty() { "carried".to_owned() } else { words.join(", ") };
        writeln!(page, "| {number} | {name} | {words} |").unwrap();
    }
    page
}

#[test]
fn the_page_is_what_the_code_says() {
    let page = page();
    if std::env::var_os("ANCHORLINE_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(Path::new(PAGE).parent().unwrap()).unwrap();
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page, "docs/ie-support.md is stale: write it anew (see the head of this file)");
}

#[test]
fn tests_that_are_named_are_there() {
    for (_, _, file, test) in ELSEWHERE {
        let path = format!("{}/tests/protocol/{file}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(&format!("#[test]\nfn {test}() {{")), "{file}::{test}");
    }
}

#[test]
fn whatever_is_said_in_a_conversation_is_done() {
    for conversation in crate::conversations::all() {
        let mut stage = Stage::new(conversation.config.clone());
        for step in 0..conversation.steps.len() {
            let asked: Vec<u32> = stage.asked.iter().map(|(_, message)| message.sequence).collect();
            let answer = stage.step(&conversation, step, None);
            let place = format!("{}, {step}: {:?}", conversation.name, stage.lab.notes);
            match &conversation.steps[step] {
                Step::Ask(..) => {
                    let cause = cause(&answer.expect(&place).body);
                    assert!(cause.is_none_or(Cause::is_accepted), "{place}: {cause:?}");
                }
                Step::Answer(..) => {
                    let waits = |asked: &u32| stage.asked.iter().any(|(_, other)| other.sequence == *asked);
                    assert!(!asked.iter().all(waits), "{place}: nothing to answer");
                }
                Step::Do(_) => {}
            }
        }
    }
}

/// What is listed as obeyed matters, and what is listed as without effect does not.
#[test]
fn what_is_listed_as_obeyed_matters() {
    let effects = Effects::new();
    for row in ie_support() {
        let shown = effects.of(row.group, row.ie);
        match row.standing {
            Standing::Obeyed => assert!(shown.is_some(), "{row:?}: nothing depends on it"),
            // It is told to the data plane, which has nothing to reserve.
            Standing::WithoutEffect if row.ie == ie::GBR => {}
            Standing::WithoutEffect => {
                let matters = shown.is_some_and(|shown| shown.difference < Difference::Refusals);
                assert!(!matters, "{row:?}: {shown:?}");
            }
            Standing::Sent | Standing::Refused => {}
        }
    }
}

/// Each value that is listed as refused, in the place of the one that was accepted.
#[test]
fn values_that_are_listed_as_refused_are_refused() {
    let mut refused = 0;
    let rows = ie_support().into_iter().filter(|row| row.standing != Standing::Refused);
    for row in rows {
        for value in row.refused_values.map_or(&[][..], |(_, values)| values) {
            let told = with_value(&row, value).unwrap_or_else(|| panic!("nobody says {row:?}"));
            assert_eq!(told, (Some(Cause::ServiceNotSupported), Some(row.ie)), "{row:?}: {value:?}");
            refused += 1;
        }
    }
    assert!(refused > 60, "{refused}");
}

/// What the first request that says it is told when it says this.
fn with_value(row: &IeSupport, value: &[u8]) -> Option<(Option<Cause>, Option<u16>)> {
    let all = crate::conversations::all();
    let mut all = all.iter().flat_map(|conversation| {
        occurrences(conversation, row.group, row.ie).into_iter().map(move |place| (conversation, place))
    });
    let (conversation, (step, mut body, way)) = all.next()?;
    let (_, list, at) = around(&mut body, &way)?;
    list[at].value = value.to_vec();
    let mut stage = Stage::before(conversation, step);
    let answer = stage.step(conversation, step, Some(&body))?;
    Some((cause(&answer.body), blamed(&answer.body).0))
}

fn carry(list: &mut Vec<RawIe>, ie: u16) {
    list.push(RawIe { ie, value: vec![0; 8] });
}

/// An establishment with the IE in a group; `None` where the group is of modifications only.
fn establishing(row: &IeSupport) -> Option<SessionEstablishmentRequest> {
    let mut request = establishment(77);
    request.create_qers = vec![smf::qer(1)];
    request.create_urrs = vec![CreateUrr {
        measurement_method: 2,
        reporting_triggers: ReportingTriggers::new(2),
        ..CreateUrr::default()
    }];
    request.create_traffic_endpoints = vec![CreateTrafficEndpoint::default()];
    let carried = match row.group {
        "Session Establishment Request" => &mut request.carried,
        "Create PDR" => &mut request.create_pdrs[0].carried,
        "PDI" => &mut request.create_pdrs[1].pdi.carried,
        "Create FAR" => &mut request.create_fars[0].carried,
        "Forwarding Parameters" => {
            &mut request.create_fars[0].forwarding_parameters.as_mut().unwrap().carried
        }
        "Duplicating Parameters" => {
            let to = DuplicatingParameters {
                destination_interface: DestinationInterface::Core,
                outer_header_creation: None,
                transport_level_marking: None,
                carried: vec![],
            };
            request.create_fars[0].duplicating_parameters.push(to);
            &mut request.create_fars[0].duplicating_parameters[0].carried
        }
        "Create QER" => &mut request.create_qers[0].carried,
        "Create URR" => &mut request.create_urrs[0].carried,
        "Additional Monitoring Time" => {
            let times = &mut request.create_urrs[0].additional_monitoring_times;
            times.push(AdditionalMonitoringTime::default());
            &mut times[0].carried
        }
        "Create BAR" => &mut request.create_bar.get_or_insert_default().carried,
        "Create Traffic Endpoint" => &mut request.create_traffic_endpoints[0].carried,
        _ => return None,
    };
    carry(carried, row.ie);
    Some(request)
}

fn modifying(row: &IeSupport) -> SessionModificationRequest {
    let mut request = path_switch(9);
    request.update_pdrs = vec![UpdatePdr { pdr_id: 1, ..UpdatePdr::default() }];
    request.update_qers = vec![UpdateQer { qer_id: 1, ..UpdateQer::default() }];
    request.update_urrs = vec![UpdateUrr { urr_id: 1, ..UpdateUrr::default() }];
    request.update_traffic_endpoints = vec![UpdateTrafficEndpoint::default()];
    let far = &mut request.update_fars[0];
    let carried = match row.group {
        "Session Modification Request" => &mut request.carried,
        "Update PDR" => &mut request.update_pdrs[0].carried,
        "Update FAR" => &mut far.carried,
        "Update Forwarding Parameters" => &mut far.update_forwarding_parameters.as_mut().unwrap().carried,
        "Update Duplicating Parameters" => {
            far.update_duplicating_parameters.push(UpdateDuplicatingParameters::default());
            &mut far.update_duplicating_parameters[0].carried
        }
        "Update BAR" => &mut request.update_bar.get_or_insert_default().carried,
        "Update QER" => &mut request.update_qers[0].carried,
        "Update URR" => &mut request.update_urrs[0].carried,
        "Update Traffic Endpoint" => &mut request.update_traffic_endpoints[0].carried,
        other => panic!("no way to ask for what is refused in {other}"),
    };
    carry(carried, row.ie);
    request
}

#[test]
fn what_is_listed_as_refused_is_refused() {
    let mut lab = Lab::associated();
    let Body::SessionEstablishmentResponse(response) =
        lab.ask(SMF, &Message::session(0, 1, establishment(5)))
    else {
        panic!("an answer")
    };
    let session = response.up_f_seid.unwrap().seid;
    let before = (lab.desired(), lab.node.tunnels());
    let mut refused = BTreeMap::new();
    for (row, sequence) in ie_support().iter().filter(|row| row.standing == Standing::Refused).zip(10..) {
        let message = match establishing(row) {
            Some(request) => Message::session(0, sequence, request),
            None => Message::session(session, sequence, modifying(row)),
        };
        let told = match lab.ask(SMF, &message) {
            Body::SessionEstablishmentResponse(response) => (response.cause, response.offending_ie),
            Body::SessionModificationResponse(response) => (response.cause, response.offending_ie),
            other => panic!("{other:?}"),
        };
        assert_eq!(told, (Cause::ServiceNotSupported, Some(row.ie)), "{row:?}");
        *refused.entry(row.group).or_insert(0) += 1;
    }
    assert!(refused.len() >= 15, "{refused:?}");
    assert_eq!((lab.desired(), lab.node.tunnels()), before);
}
