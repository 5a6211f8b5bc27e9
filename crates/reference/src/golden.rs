//! The data plane's golden files, whose frames scapy built, run through the reference. What a file says of nodes does
//! not concern the reference; where each frame ends and what leaves does.

use crate::{Fate, Neighbour, Outcome, PortSetup, Reference, Route, Setup};
use rules::*;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);
const PORTS: [&str; 2] = ["n3", "n6"];
/// The fixture's limit on Error Indications in a second.
const ERROR_INDICATIONS: usize = 2;

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

fn setup() -> Setup {
    let port = |interface, mac, ipv4: &str, gtpu| PortSetup {
        interface,
        mac,
        ipv4: ipv4.parse().unwrap(),
        ipv6: None,
        mtu: 1500,
        gtpu,
    };
    let neighbour = |port, address: Ipv4Addr, mac| Neighbour { port, address: address.into(), mac };
    Setup {
        routes: vec![Route { prefix: "0.0.0.0/0".parse().unwrap(), via: ROUTER.into() }],
        neighbours: vec![neighbour(0, GNB, [2, 0, 0, 0, 3, 1]), neighbour(1, ROUTER, [2, 0, 0, 0, 6, 1])],
        held_per_neighbour: 2,
        ..Setup::new(vec![
            port(Interface::Access, [2, 0, 0, 0, 3, 2], "10.30.0.2/24", true),
            port(Interface::Core, [2, 0, 0, 0, 6, 2], "10.50.0.2/24", false),
        ])
    }
}

/// Session 1: 5G with QFI 9. Session 2: 4G, no QFI. Session 3: FAR DROP up, gate closed down.
fn rules(session: u32) -> Rules {
    let qfi = Qfi::new(9).filter(|_| session == 1);
    let shut = session == 3;
    let f_teid = FTeid { teid: Teid(0xff + session), address: Ipv4Addr::new(10, 30, 0, 2).into() };
    let pdi = |source_interface, f_teid| Pdi {
        source_interface,
        f_teid,
        ue_ipv4: Some(Ipv4Addr::from(0x0a3c_0000 + session)),
        ue_ipv6: None,
        qfis: qfi.filter(|_| source_interface == Interface::Access).into_iter().collect(),
        sdf_filters: vec![],
    };
    let pdr = |id, far, pdi: Pdi| Pdr {
        id: PdrId(id),
        precedence: 100,
        outer_header_removal: pdi.f_teid.is_some(),
        pdi,
        far: FarId(far),
        qers: vec![QerId(1)],
        urrs: vec![],
    };
    let far = |id, apply_action, destination_interface, outer_header_creation| Far {
        id: FarId(id),
        apply_action,
        notify: false,
        forwarding: Some(ForwardingParameters { destination_interface, outer_header_creation, dscp: None }),
        duplicates: vec![],
        bar: None,
    };
    let tunnel = OuterHeaderCreation { teid: Teid(0x1ff + session), address: IpAddr::V4(GNB) };
    let up = if shut { ApplyAction::Drop } else { ApplyAction::Forward };
    Rules {
        pdrs: vec![pdr(1, 1, pdi(Interface::Access, Some(f_teid))), pdr(2, 2, pdi(Interface::Core, None))],
        fars: vec![
            far(1, up, Interface::Core, None),
            far(2, ApplyAction::Forward, Interface::Access, Some(tunnel)),
        ],
        qers: vec![Qer {
            id: QerId(1),
            uplink_gate: Gate::Open,
            downlink_gate: if shut { Gate::Closed } else { Gate::Open },
            mbr: None,
            gbr: None,
            qfi,
            reflective: false,
        }],
        ..Rules::default()
    }
}

/// The last word of a golden's path.
fn end(outcome: &Outcome) -> String {
    match outcome.fate {
        Fate::Sent => format!("send:{}", PORTS[outcome.sent[0].0]),
        fate => fate.to_string(),
    }
}

fn run(file: &Path) {
    let mut reference = Reference::new(setup()).unwrap();
    (1..=3).for_each(|session| reference.put(Seid(session.into()), rules(session)));
    for (number, step) in steps(&fs::read_to_string(file).unwrap()).iter().enumerate() {
        let place = format!("{} step {}", file.display(), number + 1);
        // Only one file asks for so many, and all of its steps do.
        reference.allow_error_indications(number < ERROR_INDICATIONS);
        let outcome = reference.process(step.port, &step.frame, 1);
        assert_eq!(end(&outcome), step.end, "{place}");
        assert_eq!(outcome.sent, step.out, "{place}: frames sent");
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_golden_file_ends_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/golden");
    let folders = entries(&folder).into_iter().filter(|path| path.is_dir());
    let is_golden = |path: &PathBuf| path.extension().is_some_and(|end| end == "golden");
    let files: Vec<PathBuf> = folders.flat_map(|folder| entries(&folder)).filter(is_golden).collect();
    assert!(files.len() > 40, "only {} golden files found", files.len());
    files.iter().for_each(|file| run(file));
}
