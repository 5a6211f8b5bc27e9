//! Golden files, whose frames scapy built, run through the reference: the data plane's, and our own for what those do
//! not show. What a file says of nodes does not concern the reference; where each frame ends and what leaves does.

mod data_plane;
mod wide;

use crate::{Fate, Outcome, Reference};
use data_plane::{asleep, behind_udp, copied, marked, metered, readdressed, rules, setup, six};
use rules::{FTeid, ForwardingParameters, Instance, Interface, OuterHeaderCreation, Seid, Teid};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use wide::{wide_rules, wide_setup};

const PORTS: [&str; 3] = ["n3", "n6", "n9"];
/// The fixture's limit on Error Indications, and on ICMP errors, in a second.
const ANSWERS: usize = 2;

/// Golden files that say how the first data path ended, and how the full one does.
const OVERTAKEN: &[(&str, &str)] = &[
    ("plain_from_the_radio_side.golden", "drop:ip_not_for_us"),
    ("from_the_core.golden", "drop:gtpu_unknown_type"),
];

struct Step {
    port: usize,
    frame: Vec<u8>,
    end: String,
    out: Vec<(usize, Vec<u8>)>,
}

fn port(name: &str) -> usize {
    PORTS.iter().position(|port| *port == name).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let octet = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.as_bytes().chunks(2).map(octet).collect()
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "in" => {
                let (port, frame) = (port(words[1]), bytes(words[2]));
                steps.push(Step { port, frame, end: String::new(), out: Vec::new() });
            }
            "path" => steps.last_mut().unwrap().end = words.last().unwrap().to_string(),
            "out" => steps.last_mut().unwrap().out.push((port(words[1]), bytes(words[2]))),
            other => panic!("unknown line {other}"),
        }
    }
    steps
}

/// The last word of a golden's path.
fn end(outcome: &Outcome) -> String {
    match outcome.fate {
        Fate::Sent => format!("send:{}", PORTS[outcome.sent[0].0]),
        fate => fate.to_string(),
    }
}

/// Runs a file; so many of its first packets may be answered by ICMP errors.
fn run(file: &Path, mut reference: Reference, icmp_errors: usize) {
    for (number, step) in steps(&fs::read_to_string(file).unwrap()).iter().enumerate() {
        let place = format!("{} step {}", file.display(), number + 1);
        // Only two files ask for so many, and all of their steps do.
        reference.allow_error_indications(number < ANSWERS);
        reference.allow_icmp_errors(number < icmp_errors);
        let outcome = reference.process(step.port, &step.frame, 1);
        let name = file.file_name().and_then(|name| name.to_str()).unwrap();
        // The data plane says no more of packets that become several.
        let several = ["split", "duplicate"].contains(&&*step.end) && outcome.fate == Fate::Sent;
        let end = end(&outcome);
        let overtaken = OVERTAKEN.contains(&(name, &end));
        assert!(end == step.end || overtaken || several, "{place}: {end} where {} is written", step.end);
        assert_eq!(hex(&outcome.sent), hex(&step.out), "{place}: frames sent");
    }
}

/// In any order.
fn hex(frames: &[(usize, Vec<u8>)]) -> BTreeSet<String> {
    let hex = |frame: &[u8]| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    frames.iter().map(|(port, frame)| format!("{} {}", PORTS[*port], hex(frame))).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn goldens(folders: &[PathBuf]) -> Vec<PathBuf> {
    let is_golden = |path: &PathBuf| path.extension().is_some_and(|end| end == "golden");
    folders.iter().flat_map(|folder| entries(folder)).filter(is_golden).collect()
}

/// What the reference leaves out: folders, and how files begin.
const LEFT_OUT: &[&str] =
    &["router_solicitation", "inspect", "redirect", "enrich", "frame_", "looped", "punt"];

fn left_out(file: &Path) -> bool {
    let is_out = |name: &str| LEFT_OUT.iter().any(|begin| name.starts_with(begin));
    file.iter().filter_map(|name| name.to_str()).any(is_out)
}

#[test]
fn every_golden_file_of_the_data_plane_ends_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/golden");
    let folders: Vec<PathBuf> = entries(&folder).into_iter().filter(|path| path.is_dir()).collect();
    let files = goldens(&folders);
    assert!(files.len() > 40, "only {} golden files found", files.len());
    for file in files.into_iter().filter(|file| !left_out(file)) {
        let mut reference = Reference::new(setup()).unwrap();
        (1..=3).for_each(|session| reference.put(Seid(session.into()), rules(session)));
        reference.put(Seid(40), metered());
        reference.put(Seid(50), asleep());
        reference.put(Seid(60), six());
        reference.put(Seid(70), copied());
        reference.put(Seid(80), marked());
        reference.put(Seid(115), readdressed());
        [140, 141].iter().for_each(|session| reference.put(Seid(*session), behind_udp(*session as u32)));
        run(&file, reference, ANSWERS);
    }
}

#[test]
fn every_golden_file_of_our_own_ends_as_written() {
    let files = goldens(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")]);
    assert!(files.len() > 20, "only {} golden files found", files.len());
    for file in files {
        let mut reference = Reference::new(wide_setup()).unwrap();
        wide_rules().into_iter().for_each(|(seid, rules)| reference.put(seid, rules));
        // What ICMP errors look like, the data plane's files show.
        run(&file, reference, 0);
    }
}

fn f_teid(teid: u32, address: &str) -> Option<FTeid> {
    Some(FTeid { teid: Teid(teid), address: address.parse().unwrap() })
}

fn to(destination_interface: Interface, tunnel: Option<FTeid>, dscp: Option<u8>) -> ForwardingParameters {
    let outer = |tunnel: FTeid| OuterHeaderCreation::gtpu(tunnel.teid, tunnel.address);
    let instance = Instance::DEFAULT;
    ForwardingParameters {
        destination_interface,
        instance,
        outer_header_creation: tunnel.map(outer),
        dscp,
        policy: None,
    }
}
