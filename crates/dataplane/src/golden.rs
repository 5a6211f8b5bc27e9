//! Runs the golden files: frames in, the way each takes through the graph, frames out.
//!
//! `golden/<node>/<case>.golden` is written by `golden/make.py`, which builds every frame with scapy. Lines: `in PORT
//! HEX`, `path NODE... END`, `out PORT HEX` (of `kernel:PORT`: what its interface in the kernel gets), and `#` for why the case is
//! there. Only in `golden/punt` ports have such an interface.

use crate::counters::DropReason;
use crate::fixture::{Bench, GNB, N3, N6, N6E, TestPort, config, rules};
use crate::frame::Fate;
use crate::graph::{Hop, Next, NodeId};
use crate::steering::Crew;
use crate::worker::connect_crew;
use dplink::{Command, Desired};
use packet::HeapBuffer;
use packet::ethernet::MacAddress;
use rules::Seid;
use std::collections::HashSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Drops that no frame on the wire can cause in the fixture, with where they are tested instead.
const ELSEWHERE: &[(DropReason, &str)] = &[
    (DropReason::NotContiguous, "worker"),
    (DropReason::PortFull, "worker"),
    (DropReason::NeighbourUnresolved, "worker"),
    (DropReason::NoHeadroom, "worker"),
    (DropReason::BufferFull, "worker"),
    (DropReason::BufferExpired, "worker"),
    (DropReason::BufferDropped, "worker"),
    (DropReason::BufferOver, "worker"),
    (DropReason::NotCopied, "worker"),
    (DropReason::NoPolicyHop, "steered"),
    (DropReason::NotSplit, "worker"),
    (DropReason::NotEnriched, "enrich"),
    (DropReason::FragmentsFull, "fragments"),
    (DropReason::FragmentsIncomplete, "fragments"),
    (DropReason::PuntFull, "punt"),
    (DropReason::HandoffFull, "crew"),
    (DropReason::Looped, "looped"),
    (DropReason::MovingFull, "moving"),
    (DropReason::UserShare, "shares"),
    (DropReason::MacTableFull, "switch, ethernet"),
    (DropReason::FrameCopies, "ethernet"),
    (
        DropReason::Unfinished,
        "nowhere: needs an error in the wiring; a property test says that it never occurs",
    ),
];

/// Where frames that the kernel gets stand for its interface of a port.
const KERNEL: usize = 16;

struct Step {
    port: usize,
    frame: Vec<u8>,
    path: String,
    out: Vec<(usize, Vec<u8>)>,
}

fn port(name: &str) -> usize {
    match name {
        "n3" => N3,
        "n6e" => N6E,
        "kernel:n3" => KERNEL + N3,
        "kernel:n6" => KERNEL + N6,
        _ => N6,
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let octet = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.as_bytes().chunks(2).map(octet).collect()
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').unwrap();
        if kind == "path" {
            steps.last_mut().unwrap().path = rest.to_owned();
            continue;
        }
        let (name, hex) = rest.split_once(' ').unwrap();
        match kind {
            "in" => {
                steps.push(Step { port: port(name), frame: bytes(hex), path: String::new(), out: Vec::new() })
            }
            "out" => steps.last_mut().unwrap().out.push((port(name), bytes(hex))),
            other => panic!("unknown line {other}"),
        }
    }
    steps
}

fn path(hops: &[Hop]) -> String {
    let mut words: Vec<String> = hops.iter().map(|hop| hop.node.name().to_owned()).collect();
    words.push(match hops.last().map(|hop| hop.next) {
        Some(Next::End(Fate::Send(port))) => format!("send:{}", ["n3", "n6", "n6e"][usize::from(port)]),
        Some(Next::End(Fate::Drop(reason))) => format!("drop:{}", reason.name()),
        Some(Next::End(Fate::Consumed)) => "consumed".to_owned(),
        Some(Next::End(Fate::Gather)) => "gather".to_owned(),
        Some(Next::End(Fate::Punt)) => "punted".to_owned(),
        Some(Next::End(Fate::Hold)) => "hold".to_owned(),
        Some(Next::End(Fate::Keep)) => "keep".to_owned(),
        Some(Next::End(Fate::Await)) => "await".to_owned(),
        Some(Next::End(Fate::Split)) => "split".to_owned(),
        Some(Next::End(Fate::SplitTunnel)) => "split_tunnel".to_owned(),
        Some(Next::End(Fate::Duplicate)) => "duplicate".to_owned(),
        Some(Next::End(Fate::Answer)) => "answer".to_owned(),
        Some(Next::End(Fate::Unreachable)) => "unreachable".to_owned(),
        Some(Next::End(Fate::Switch)) => "switch".to_owned(),
        Some(Next::End(Fate::HandOff(_))) => "hand_off".to_owned(),
        Some(Next::End(Fate::Loop(port))) => format!("loop:{}", ["n3", "n6", "n6e"][usize::from(port)]),
        next => panic!("a packet ended its way with {next:?}"),
    });
    words.join(" ")
}

/// Of two workers, the one that does not have the user of [`rules`] 1 gets each frame: its way goes on at the one that has.
fn run_between(file: &Path) {
    let config = config();
    let wires = [(); 2].map(|()| config.ports.iter().map(|_| TestPort::default()).collect::<Vec<_>>());
    let (mut engine, mut workers) = connect_crew(&config, &Crew::of(2), wires.to_vec(), || 0).unwrap();
    for worker in &mut workers {
        worker.know(N3 as u8, MacAddress([2, 0, 0, 0, 3, 1]), GNB);
        worker.know(N6 as u8, MacAddress([2, 0, 0, 0, 6, 1]), Ipv4Addr::new(10, 50, 0, 1));
    }
    engine.handle(Command::Put(Desired::new(Seid(1), 1, rules(1)))).unwrap();
    for _ in 0..3 {
        workers.iter_mut().for_each(|worker| assert_eq!(worker.turn(1), 0));
    }
    assert_eq!(engine.poll(0).len(), 1, "the session is in force");
    let [owner, stranger] = if workers[0].holds(Seid(1)) { [0, 1] } else { [1, 0] };
    for (number, step) in steps(&fs::read_to_string(file).unwrap()).iter().enumerate() {
        let place = format!("{} step {}", file.display(), number + 1);
        wires[stranger][step.port].0.borrow_mut().to_worker.push_back(HeapBuffer::new(&step.frame));
        let ways = [stranger, owner].map(|at| {
            let mut hops = Vec::new();
            workers[at].turn_traced(1, Some(&mut hops));
            path(&hops)
        });
        assert_eq!(ways.join(" "), step.path, "{place}");
        let sent = [N3, N6].map(|port| {
            let frames = std::mem::take(&mut wires[owner][port].0.borrow_mut().from_worker);
            frames.into_iter().map(move |frame| (port, frame))
        });
        assert_eq!(sent.into_iter().flatten().collect::<Vec<_>>(), step.out, "{place}: frames sent");
        assert!(workers.iter().all(|worker| worker.books().balanced()), "{place}");
    }
}

fn run(file: &Path) {
    if file.parent().is_some_and(|folder| folder.ends_with(NodeId::Steer.name())) {
        return run_between(file);
    }
    let is_punting = file.parent().is_some_and(|folder| folder.ends_with(NodeId::Punt.name()));
    let mut bench = if is_punting { Bench::punting() } else { Bench::full() };
    for (number, step) in steps(&fs::read_to_string(file).unwrap()).iter().enumerate() {
        let place = format!("{} step {}", file.display(), number + 1);
        let mut hops = Vec::new();
        bench.receive(step.port, &step.frame);
        bench.worker.turn_traced(bench.now_ns, Some(&mut hops));
        assert_eq!(path(&hops), step.path, "{place}");
        let sent = [N3, N6, N6E].map(|port| bench.sent(port).into_iter().map(move |frame| (port, frame)));
        let to_kernel = bench.punted().into_iter().map(|(port, frame)| (KERNEL + port, frame));
        let sent: Vec<_> = sent.into_iter().flatten().chain(to_kernel).collect();
        assert_eq!(sent, step.out, "{place}: frames sent");
        let books = bench.worker.books();
        assert!(books.balanced(), "{place}: {books:?}");
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir() || path.extension().is_some_and(|end| end == "golden")).collect()
}

/// Every frame that goes into a golden.
pub(crate) fn frames() -> &'static [Vec<u8>] {
    static FRAMES: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
    FRAMES.get_or_init(|| {
        let texts = all().into_iter().map(|file| fs::read_to_string(file).unwrap());
        texts.flat_map(|text| steps(&text)).map(|step| step.frame).collect()
    })
}

/// The frames that go into one golden.
pub(crate) fn file(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name).with_extension("golden");
    steps(&fs::read_to_string(path).unwrap()).into_iter().map(|step| step.frame).collect()
}

fn all() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    files(&folder).iter().flat_map(|node| files(node)).collect()
}

#[test]
fn every_golden_file_runs_as_written() {
    let all = all();
    assert!(all.len() > 40, "only {} golden files found", all.len());
    all.iter().for_each(|file| run(file));
}

#[test]
fn every_node_has_goldens_and_they_pass_through_it() {
    for node in NodeId::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(node.name());
        for file in files(&folder) {
            let text = fs::read_to_string(&file).unwrap();
            let passes = text.lines().any(|line| line.split(' ').any(|word| word == node.name()));
            assert!(passes, "{} never reaches {}", file.display(), node.name());
        }
    }
}

#[test]
fn every_drop_reason_is_shown() {
    let texts: Vec<String> = all().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let shown: HashSet<&str> = texts
        .iter()
        .flat_map(|text| text.split_whitespace())
        .filter_map(|word| word.strip_prefix("drop:"))
        .collect();
    for reason in DropReason::ALL {
        let elsewhere = ELSEWHERE.iter().any(|(other, _)| other == reason);
        assert!(shown.contains(reason.name()) != elsewhere, "{}", reason.name());
    }
}
