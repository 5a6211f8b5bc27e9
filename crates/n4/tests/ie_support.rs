//! `docs/ie-support.md` says what is true: it is made of the code, and of the tests that use an IE.
//!
//! `ANCHORLINE_WRITE_DOCS=1 cargo test -p anchorline-n4 --test ie_support` writes it anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod common;

use common::smf::{self, establishment, path_switch};
use common::{Lab, SMF};
use n4::{IeSupport, Standing, ie_support};
use pfcp::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ie-support.md");

/// The tests of this crate by file and name, and their text; helpers are not tests.
fn tests() -> Vec<(String, String)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    let mut tests = vec![];
    for file in files.iter().filter(|file| !file.ends_with("ie_support.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        for part in text.split("#[test]\nfn ").skip(1) {
            let (name, rest) = part.split_once('(').unwrap();
            let body = rest.split_once("\n}\n").map_or(rest, |(body, _)| body);
            tests.push((format!("{stem}::{name}"), body.to_owned()));
        }
        // What a file's tests share.
        tests.push((format!("{stem}, all"), text));
    }
    let shared = ["common/smf.rs", "common/personas.rs", "common/billing.rs", "common/mod.rs"];
    for file in shared {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        tests.push((format!("all ({file})"), text));
    }
    tests
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|other| other == word)
}

/// The first test that names the field.
fn seen_in(row: &IeSupport, tests: &[(String, String)]) -> Option<String> {
    if row.standing == Standing::Refused {
        return Some("ie_support::what_is_listed_as_refused_is_refused".to_owned());
    }
    let field = row.field?;
    tests.iter().find(|(_, text)| has_word(text, field)).map(|(name, _)| name.clone())
}

const fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Obeyed => "obeyed",
        Standing::Sent => "sent",
        Standing::WithoutEffect => "taken, without effect",
        Standing::Refused => "refused",
    }
}

const INTRODUCTION: &str = "# Information elements (TS 29.244 Release 17 and later)

Made by `ANCHORLINE_WRITE_DOCS=1 cargo test -p anchorline-n4 --test ie_support` from the code; that test fails where this
page is not what the code says.

- **obeyed**: it is done.
- **sent**: we say it.
- **taken, without effect**: there is nothing to do for a user plane, or for this one.
- **refused**: a request that asks for it gets cause 76 (service not supported) and its number as Offending IE, and
  changes nothing.
- What is in a group and not listed there is carried: read, kept out of the way, and ignored, as are vendors' own IEs.

*Seen in* names the first test of `crates/n4/tests` that uses the field of that name, or the file whose tests share it.
";

fn page() -> String {
    let (rows, tests) = (ie_support(), tests());
    let mut groups: Vec<&str> = vec![];
    rows.iter().for_each(|row| groups.extend((groups.last() != Some(&row.group)).then_some(row.group)));
    let mut page = INTRODUCTION.to_owned();
    let count = |standing| rows.iter().filter(|row| row.standing == standing).count();
    let used: BTreeSet<u16> = rows.iter().map(|row| row.ie).collect();
    writeln!(
        page,
        "\n{} numbers are known by name. In {} groups: {} obeyed, {} sent, {} without effect, {} refused.",
        ie::ALL.len(),
        groups.len(),
        count(Standing::Obeyed),
        count(Standing::Sent),
        count(Standing::WithoutEffect),
        count(Standing::Refused),
    )
    .unwrap();
    for group in groups {
        write!(page, "\n## {group}\n\n| IE | name | standing | seen in |\n|---|---|---|---|\n").unwrap();
        for row in rows.iter().filter(|row| row.group == group) {
            let seen = seen_in(row, &tests).unwrap_or("–".to_owned());
            writeln!(page, "| {} | {} | {} | {seen} |", row.ie, ie::Name(row.ie), word(row.standing))
                .unwrap();
        }
    }
    write!(page, "\n## All numbers\n\n| IE | name | standing |\n|---|---|---|\n").unwrap();
    for (number, name) in ie::ALL {
        let standings: BTreeSet<Standing> =
            rows.iter().filter(|row| row.ie == *number).map(|row| row.standing).collect();
        let group = match rows.iter().any(|row| ie::name(*number) == Some(row.group)) {
            true => Some("a group above"),
            false => None,
        };
        let words: Vec<&str> = standings.into_iter().map(word).chain(group).collect();
        let words =
            if used.contains(number) || !words.is_empty() { words.join(", ") } else { "carried".to_owned() };
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
fn what_is_obeyed_or_sent_is_in_a_test() {
    let tests = tests();
    let untested: Vec<_> = ie_support()
        .into_iter()
        .filter(|row| seen_in(row, &tests).is_none())
        .map(|row| (row.group, row.field))
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
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
