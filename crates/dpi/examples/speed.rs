//! How long classification takes, and how large 50,000 rules are: `cargo run --release -p anchorline-dpi --example speed`.
//! With `-- cold`, cold look-ups alone.
//!
//! Packets and rules are those of the traffic crate's `zte` profile. A figure is the median, and beside it the best, of
//! rounds over many flows, each of which begins with a fresh inspection from the pool, in the thread's own time.
//!
//! Cold look-ups are those of a data plane: other packets come between two of them, and have taken the caches. Each is
//! timed alone, less what it takes to read the clock; a figure is the median of means of 20.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a program for developers")]

#[path = "../tests/labelled/mod.rs"]
mod labelled;

use anchorline_dpi::extract::dns::Message;
use anchorline_dpi::extract::{Pool, Verdict};
use anchorline_dpi::learn::{Asker, Config, Learner, Lookup};
use anchorline_dpi::matching::{Classifier, Facts, Rule, compile};
use anchorline_dpi::rule_file;
use nix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;
use traffic::{Endpoints, FRAME_MAX, Flows, Profile, Transport, profile};

const FLOWS: usize = 4_000;
const ROUNDS: usize = 25;

/// First packets of flows whose first packet says all, by transport.
type Samples = HashMap<Transport, Vec<Vec<u8>>>;

fn main() {
    let samples = samples();
    let rules = labelled::rules();
    if std::env::args().any(|arg| arg == "cold") {
        return cold(&rules, &samples);
    }
    let none = compile(&[]).unwrap();
    let all = compiled(&rules);
    println!("\nfirst packet: look at it and find its rule      rules: none        50,000      asked");
    for (transport, asked) in
        [(Transport::Http, 1_500), (Transport::Tls, 1_500), (Transport::Quic, 6_000), (Transport::Udp, 200)]
    {
        let frames = &samples[&transport];
        let both = [&none, &all].map(|classifier| first_packet(classifier, frames));
        println!("  {:44} {:>14} {:>14} {asked:>7} ns", format!("{transport:?}"), both[0], both[1]);
    }
    println!("\nlook-up alone: what was seen is known");
    for transport in [Transport::Http, Transport::Tls, Transport::Quic, Transport::Udp] {
        let both = [&none, &all].map(|classifier| look_up(classifier, &samples[&transport]));
        println!("  {:44} {:>14} {:>14}", format!("{transport:?}"), both[0], both[1]);
    }
    cold(&rules, &samples);
    regexes();
    hostile(&all);
    println!("\nlearning                                       {:>14}", learning(&samples[&Transport::Dns]));
}

fn compiled(rules: &[Rule]) -> Classifier {
    let text: String = rules.iter().map(|rule| format!("{rule}\n")).collect();
    let started = Instant::now();
    let read = rule_file::read_lines(&text).unwrap();
    println!("{} rules of {} KiB read in {:.0?}", read.rules().len(), text.len() >> 10, started.elapsed());
    assert!(read.rules() == rules);
    drop(read);
    let before = resident_kib();
    let started = Instant::now();
    let all = compile(rules).unwrap();
    let took = started.elapsed();
    let shape = all.shape();
    println!("compiled in {took:.0?} (asked: under 3 s)");
    println!(
        "{} KiB more resident while and after, {} KiB counted (asked: under {} KiB)",
        resident_kib() - before,
        shape.bytes >> 10,
        256 << 10
    );
    println!("{shape:?}");
    all
}

/// Flows made to cost much, each to its verdict: what one costs, all packets together.
fn hostile(classifier: &Classifier) {
    let request = |end: &str| format!("GET /{} HTTP/1.1\r\n{end}", "x/".repeat(50)).into_bytes();
    let labels = format!("Host: {}a\r\n", "a.".repeat(126));
    let records: Vec<u8> =
        [1, 0, 0xff, 0xff].into_iter().chain([0; 900]).flat_map(|byte| [22, 3, 1, 0, 1, byte]).collect();
    println!("\nhostile flows, to the verdict and the rule                      all packets");
    for (what, stream, size) in [
        ("a host of 127 labels", request(&labels), 1_400),
        ("headers without end", request(&"a:b\r\n".repeat(1_000)), 400),
        ("headers a byte at a time, from the end", request("Host: a.example\r\n"), 1),
        ("TLS in records of a byte", records, 300),
    ] {
        let mut pool = Pool::new(16);
        let segments: Vec<_> =
            stream.chunks(size).enumerate().map(|(at, bytes)| ((at * size) as u32, bytes)).collect();
        let each = rounds(100, || {
            for _ in 0..100 {
                let ticket = pool.take();
                let inspection = pool.get(ticket).unwrap();
                inspection.begin(0);
                let order: Vec<_> =
                    if size == 1 { segments.iter().rev().collect() } else { segments.iter().collect() };
                let none = Facts::default();
                for (sequence, bytes) in order {
                    let facts = match inspection.segment(*sequence, bytes) {
                        Verdict::More => continue,
                        Verdict::Seen(seen) => none.with(&seen),
                        Verdict::Unknown(_) => none,
                    };
                    black_box(classifier.classify(&facts));
                    break;
                }
                pool.put(ticket);
            }
        });
        println!("  {what:44} {each:>30} ns");
    }
}

/// Regular expressions at their worst: refused ones, and those that do not combine.
fn regexes() {
    let timed = |what: &str, texts: Vec<String>| {
        let lines = texts
            .iter()
            .enumerate()
            .map(|(id, text)| format!("id={id} precedence={id} rating-group=1 host-regex=\"{text}\"\n"));
        let file = rule_file::read_lines(&lines.collect::<String>()).unwrap();
        let started = Instant::now();
        let compiled = file.compile();
        let took = started.elapsed();
        let Ok(classifier) = compiled else {
            return println!("  {what:44} refused in {took:.0?}");
        };
        let host = b"www3.some-quite-usual.name.of-a-host.cdn.example";
        let facts = Facts { host: Some(host), ..Default::default() };
        let asked = rounds(100, || {
            (0..100).for_each(|_| {
                black_box(classifier.classify(&facts));
            })
        });
        let shape = classifier.shape();
        println!(
            "  {what:44} {took:>10.0?} {:>5} automata {:>6} KiB {asked:>14} ns",
            shape.loose_automata,
            shape.bytes >> 10
        );
    };
    println!(
        "\nregular expressions without a host             compiled                              a look-up"
    );
    timed("one that explodes", vec!["(a|b)*a(a|b){20}".to_owned()]);
    timed("one of a million repetitions", vec!["(x{1000}){1000}".to_owned()]);
    timed("50 that explode", (0..50).map(|at| format!("{at}(a|b)*a(a|b){{20}}")).collect());
    timed("1,000 anchored", (0..1_000).map(|at| format!("^(www|m)[0-9]*\\.x{at}\\.[a-z]+$")).collect());
    timed("1,000 ends", (0..1_000).map(|at| format!("cdn[0-9]+\\.x{at}\\.example$")).collect());
    timed(
        "40,000 ends",
        (0..40_000).map(|at| format!("^(www|m)[0-9]*\\.x{at}\\.(com|net|example)$")).collect(),
    );
    timed("1,000 that do not combine", (0..1_000).map(|at| format!("x{at}.*y.*z{at}q")).collect());
}

fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn samples() -> Samples {
    let busy = Profile { opening: 0.9, flows: 1_000, ..*profile("epc-us").unwrap() };
    let mut flows = Flows::new(&busy, Endpoints::EXAMPLE, 5).unwrap();
    let mut samples = Samples::new();
    let mut frame = vec![0; FRAME_MAX];
    let mut pool = Pool::new(1);
    while samples.len() < 5 || samples.values().any(|list| list.len() < FLOWS) {
        let written = flows.next(&mut frame).unwrap();
        let taken = labelled::take(&frame[..written.length], written.uplink);
        if !written.uplink || !written.first_packets || taken.payload.is_empty() {
            continue;
        }
        let transport = flows.label(written.flow).transport;
        let ticket = pool.take();
        let known = matches!(taken.look(pool.get(ticket).unwrap(), true), Verdict::Seen(_));
        pool.put(ticket);
        let list = samples.entry(transport).or_default();
        // Media never says what it is in one packet: there, addresses tell.
        if (known || transport == Transport::Udp) && list.len() < FLOWS {
            list.push(frame[..written.length].to_vec());
        }
    }
    samples
}

fn first_packet(classifier: &Classifier, frames: &[Vec<u8>]) -> String {
    let mut pool = Pool::new(256);
    let taken: Vec<_> = frames.iter().map(|frame| labelled::take(frame, true)).collect();
    rounds(taken.len(), || {
        for taken in &taken {
            let ticket = pool.take();
            let facts = taken.facts();
            let facts = match taken.look(pool.get(ticket).unwrap(), true) {
                Verdict::Seen(seen) => facts.with(&seen),
                _ => facts,
            };
            black_box(classifier.classify(&facts));
            pool.put(ticket);
        }
    })
}

fn look_up(classifier: &Classifier, frames: &[Vec<u8>]) -> String {
    let asked = asked(frames);
    rounds(asked.len(), || {
        for asked in &asked {
            black_box(classifier.classify(&asked.facts()));
        }
    })
}

/// What a look-up is about.
struct Asked {
    facts: Facts<'static>,
    host: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
}

impl Asked {
    fn facts(&self) -> Facts<'_> {
        Facts { host: self.host.as_deref(), path: self.path.as_deref(), ..self.facts }
    }
}

fn asked(frames: &[Vec<u8>]) -> Vec<Asked> {
    let mut pool = Pool::new(1);
    let asked = |frame: &Vec<u8>| {
        let taken = labelled::take(frame, true);
        let ticket = pool.take();
        let (host, path) = match taken.look(pool.get(ticket).unwrap(), true) {
            Verdict::Seen(seen) => (seen.host().map(<[u8]>::to_vec), seen.path().map(<[u8]>::to_vec)),
            _ => (None, None),
        };
        pool.put(ticket);
        Asked { facts: taken.facts(), host, path }
    };
    frames.iter().map(asked).collect()
}

/// Memory that packets between two look-ups lie in: more than what a last-level cache has.
struct Others {
    lines: Vec<[u64; 8]>,
    random: u64,
}

impl Others {
    const LINES: usize = 1 << 20;
    /// Lines between two look-ups: those of some 50 packets, their flows and users.
    const BETWEEN: usize = 2_000;

    fn new() -> Self {
        Self { lines: vec![[1; 8]; Self::LINES], random: 1 }
    }

    fn come(&mut self) {
        for _ in 0..Self::BETWEEN {
            // Knuth's MMIX.
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.lines[self.random as usize >> 32 & (Self::LINES - 1)][0] += 1;
        }
    }
}

/// Rules with a host or path, those with networks, and both: what each part of a look-up takes when it is cold.
fn cold(rules: &[Rule], samples: &Samples) {
    let some = |keep: &dyn Fn(&Rule) -> bool| {
        compile(&rules.iter().filter(|rule| keep(rule)).cloned().collect::<Vec<_>>()).unwrap()
    };
    let sets = [
        some(&|_| false),
        some(&|rule| rule.id % 50 == 7),
        some(&|rule| rule.when.networks.is_empty()),
        some(&|rule| !rule.when.networks.is_empty()),
        some(&|_| true),
    ];
    println!("\ncold look-up, rules:          none     1,000    by name    by network    50,000");
    let mut others = Others::new();
    for transport in [Transport::Http, Transport::Tls, Transport::Quic, Transport::Udp] {
        let asked = asked(&samples[&transport]);
        let [none, few, names, networks, all] =
            sets.each_ref().map(|classifier| cold_look_up(classifier, &asked, &mut others));
        let transport = format!("{transport:?}");
        println!("  {transport:22} {none:>9.0} {few:>9.0} {names:>10.0} {networks:>13.0} {all:>9.0} ns");
    }
}

fn cold_look_up(classifier: &Classifier, asked: &[Asked], others: &mut Others) -> f64 {
    const TOGETHER: usize = 20;
    let timed = |work: &dyn Fn()| {
        let started = Instant::now();
        work();
        started.elapsed().as_nanos() as f64
    };
    let mut means: Vec<f64> = asked
        .chunks_exact(TOGETHER)
        .map(|chunk| {
            let each = chunk.iter().map(|asked| {
                others.come();
                let nothing = timed(&|| ());
                // What was seen of a flow was seen just now.
                let (host, path) = (asked.host.clone(), asked.path.clone());
                let facts = Facts { host: host.as_deref(), path: path.as_deref(), ..asked.facts };
                let whole = timed(&|| {
                    black_box(classifier.rank(black_box(&facts)));
                });
                whole - nothing
            });
            each.sum::<f64>() / TOGETHER as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    means[means.len() / 2]
}

/// A query taken note of and a name asked for.
fn learning(frames: &[Vec<u8>]) -> String {
    let mut learner = Learner::new(Config::default());
    let taken: Vec<_> = frames.iter().map(|frame| labelled::take(frame, true)).collect();
    rounds(taken.len(), || {
        for taken in &taken {
            let (user, resolver) = (taken.tuple.source_address(), taken.tuple.destination_address());
            let [user, nobody] = [user, resolver].map(|address| Asker { address, holder: 1 });
            let lookup = Lookup { instance: 1, user, user_port: taken.tuple.source_port, resolver };
            learner.query(&lookup, &Message::parse(taken.payload).unwrap(), 0);
            black_box(learner.name((1, nobody), resolver, 0));
        }
    })
}

/// Time that this thread was running: the machine is shared.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

fn rounds(count: usize, mut round: impl FnMut()) -> String {
    round();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let before = cpu_ns();
            round();
            (cpu_ns() - before) as f64 / count as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    format!("{:.0} ({:.0})", times[ROUNDS / 2], times[0])
}
