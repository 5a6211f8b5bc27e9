//! Whole scenarios, small. DPDK starts once in a process, with the memory of its first user: one test starts it.

use crate::contest::{Field, RUNNERS, Runner};
use crate::meter::Rack;
use crate::plan::{Direction, Plan};
use crate::product::{Memory, Population, Product};
use crate::replay::Replay;
use crate::report::Report;
use crate::sample::{Expectation, Sampler};
use crate::scenario::{Runnable, Scenario};
use crate::yardstick::Yardstick;
use std::time::Duration;
use traffic::{PROFILES, Profile};

/// Enough for the pools of any scenario with two CPUs.
const MEMORY_MB: u32 = 1_024;

fn plan(direction: Direction) -> Plan {
    let uplink = match direction {
        Direction::Up => 1.0,
        Direction::Down => 0.0,
        Direction::Both => 0.5,
    };
    let profile = Profile { subscribers: 500, active: 200, flows: 1_000, uplink, ..PROFILES[0] };
    let duration = Duration::from_millis(200);
    Plan {
        profile,
        direction,
        pdrs: 4,
        duration,
        trials: 2,
        rules: 0,
        every_session: false,
        services: false,
        seed: 3,
    }
}

/// Promises that nothing ever changes.
struct Unchanged;

impl Expectation for Unchanged {
    fn expect(&mut self, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
        vec![(1 - port, frame.to_vec())]
    }
}

fn field<'a>(memory: &Memory, runnable: &'a mut Runnable, sampler: Sampler) -> Field<'a, Runnable> {
    let plan = plan(Direction::Both);
    let rack = Rack::new(memory.pool().unwrap(), &plan).unwrap();
    let yardstick = Yardstick::new(&plan).unwrap();
    Field {
        ports: runnable.ports.clone(),
        rack,
        yardstick,
        product: runnable,
        sampler,
        pool: memory.pool().unwrap().clone(),
    }
}

/// Both yardsticks ran beside it, and it is compared with them.
fn check_yardsticks(report: &Report) {
    let scenario = &report.scenario;
    let (floor, bare) = (report.floor_mpps_per_core.unwrap(), report.bare_mpps_per_core.unwrap());
    assert!(floor > 0.0 && bare > 0.0, "{scenario}");
    let ratio = report.spread.unwrap().ratio;
    assert!(ratio.min > 0.0 && report.ratio == Some(ratio.median), "{scenario}");
}

fn check(report: &Report) {
    check_yardsticks(report);
    let scenario = &report.scenario;
    assert!(report.balanced && !report.interrupted, "{scenario}");
    assert!(report.compared > 0, "{scenario}: nothing was compared");
    assert!(report.mpps_per_core.unwrap() > 0.0 && report.loss == Some(0.0), "{scenario}");
    assert!(report.nodes.iter().any(|node| node.name == "flow" && node.packets > 0), "{scenario}");
    assert!(!report.text().is_empty());
}

/// The keys that others read (issue 3, 4b).
fn check_keys(report: &Report) {
    let value = serde_json::to_value(report).unwrap();
    for key in [
        "scenario",
        "profile",
        "workers",
        "sessions",
        "flows",
        "rules",
        "seed",
        "mpps_per_core",
        "gbps_per_core",
        "floor_mpps_per_core",
        "bare_mpps_per_core",
        "ratio",
        "loss",
        "cycles_per_packet",
        "latency_us",
        "nodes",
        "memory",
        "machine",
        "balanced",
    ] {
        assert!(value.get(key).is_some(), "{key}");
    }
    for (outer, inner) in [
        ("/nodes/0", vec!["name", "cycles_per_packet", "packets_per_vector"]),
        ("/memory", vec!["bytes_per_session", "bytes_per_flow"]),
        ("/machine", vec!["cpu", "clock_mhz", "dpdk", "build"]),
    ] {
        let object = value.pointer(outer).unwrap();
        assert!(inner.iter().all(|key| object.get(key).is_some()), "{outer}");
    }
    let again: Report = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(again).unwrap(), value, "what is written can be read");
}

#[test]
fn scenarios_yield_sound_reports_and_wrong_packets_none() {
    // Two CPUs are enough, and their memory is what was foreseen.
    let cpus: Vec<usize> = crate::machine::cpus().into_iter().take(2).collect();
    crate::machine::pin_to(&cpus).unwrap();
    let config = dpdk::EalConfig { memory_mb: MEMORY_MB, ..dpdk::EalConfig::default() };
    dpdk::Eal::init(&config).unwrap();
    for direction in [Direction::Up, Direction::Down, Direction::Both] {
        let report = Scenario::Forward.measure(&plan(direction)).unwrap();
        check(&report);
        check_keys(&report);
        assert!(report.ratio.unwrap() > 0.0 && report.memory.bytes_per_session.is_some());
    }
    let sweep = Scenario::Rules.measure(&Plan { pdrs: 20, ..plan(Direction::Both) }).unwrap();
    let pdrs: Vec<u32> = sweep.points.iter().map(|point| point.pdrs).collect();
    assert_eq!(pdrs, [2, 10, 20]);
    sweep.points.iter().for_each(check);
    let services = Plan { rules: 100, services: true, pdrs: 12, ..plan(Direction::Both) };
    check_services(&Scenario::Services.measure(&services).unwrap());
    let control = Scenario::Control.measure(&plan(Direction::Both)).unwrap();
    assert!(control.balanced && control.compared > 0 && control.loss == Some(0.0));
    let found = control.control.unwrap();
    assert!(found.ratio_to_quiet.median > 0.0);
    assert!(found.quiet_turn.p99_9_us >= found.quiet_turn.p50_us && found.changed_turn.p50_us > 0.0);
    check(&control);
    let read: Report = serde_json::from_str(&serde_json::to_string(&control).unwrap()).unwrap();
    assert_eq!(read.control, control.control, "what is written can be read");
    check_drops(&Scenario::Drops.measure(&plan(Direction::Both)).unwrap());
    check_scaling(&Scenario::Scaling.measure(&plan(Direction::Both)).unwrap());
    if cpus.len() > 1 {
        check_latency(&Scenario::Latency.measure(&plan(Direction::Both)).unwrap());
        // The generator had one to itself.
        crate::machine::pin_to(&cpus).unwrap();
        check_steering(&Scenario::Steering.measure(&plan(Direction::Both)).unwrap());
    }
    a_wrong_packet_is_refused();
}

/// From no content rules to those asked for; with none, no flow is of an application.
fn check_services(report: &Report) {
    check(report);
    let rules: Vec<u32> = report.points.iter().map(|point| point.rules).collect();
    assert_eq!(rules, [0, 100]);
    let of = |at: usize| report.points[at].services.as_ref().unwrap();
    assert_eq!(of(0).detected_flows_per_s, 0.0);
    assert!(of(1).detected_flows_per_s > 0.0 && of(1).ratio_to_forward.median > 0.0);
    let inspects = |nodes: &[crate::report::Node]| nodes.iter().any(|node| node.name == "inspect");
    assert!(inspects(&report.points[1].nodes) && !inspects(&of(1).forward_nodes), "one knows of services");
    assert!(of(1).forward_nodes.iter().any(|node| node.name == "verdict"));
    let found = report.classification.as_ref().unwrap();
    assert!(found.rules == 100 && found.compiled_ms > 0.0 && found.memory_mib > 0.0);
    let told: Vec<&str> = found.first_packets.iter().map(|packet| packet.by.as_str()).collect();
    assert_eq!(told, ["HTTP", "TLS", "QUIC", "addresses"]);
    assert!(found.first_packets.iter().all(|packet| packet.ns.min > 0.0));
    assert!(report.text().contains("first packets, by what tells"), "{}", report.text());
    let value = serde_json::to_value(report).unwrap();
    assert_eq!(value.pointer("/points/0/rules"), Some(&0.into()));
    let again: Report = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(again).unwrap(), value, "what is written can be read");
}

/// Each fault has its reason, and nothing but packets with it is dropped: else there is no report. What rules refuse is there both ways.
fn check_drops(report: &Report) {
    assert!(report.balanced && !report.interrupted && report.ratio.is_none());
    let dropped = &report.drops.as_ref().unwrap().dropped;
    let reasons: Vec<&str> = dropped.iter().map(|dropped| dropped.reason.as_str()).collect();
    for reason in ["gate_closed", "rate_exceeded", "quota_exhausted"] {
        assert!(reasons.iter().filter(|other| **other == reason).count() >= 2, "up and down: {reasons:?}");
        assert!(report.text().contains(reason));
    }
    for reason in ["no_tunnel", "no_pdr", "user_packet_malformed", "no_session", "ttl_expired"] {
        assert!(reasons.contains(&reason), "{reasons:?}");
        assert!(report.text().contains(reason));
    }
    for dropped in dropped {
        assert!(dropped.of_forwarded.min > 0.0 && dropped.cycles_per_packet.min > 0.0, "{dropped:?}");
        let may_be_sent = ["no_tunnel", "no_session", "ttl_expired", "rate_exceeded"];
        assert!(dropped.answered_share == 0.0 || may_be_sent.contains(&&*dropped.reason), "{dropped:?}");
    }
    let read: Report = serde_json::from_str(&serde_json::to_string(report).unwrap()).unwrap();
    assert_eq!(read.drops, report.drops, "what is written can be read");
}

fn check_scaling(report: &Report) {
    check(report);
    let workers: Vec<u32> = report.points.iter().map(|point| point.workers).collect();
    assert_eq!(workers, [1, 2][..report.machine.cores]);
}

/// A machine busy with other tests lets packets wait, not go missing from the books.
fn check_latency(report: &Report) {
    assert!(report.balanced && report.compared > 0);
    let load = report.load.as_ref().unwrap();
    assert!(load.zero_loss_mpps.is_some());
    // Without a figure only where the generator was the bottleneck. It may be so after the search, which has its figure.
    match report.ratio {
        None => assert!(load.generator_bound),
        Some(_) => check_yardsticks(report),
    }
    let latency = report.latency_us.or(report.points.first().and_then(|point| point.latency_us));
    assert!(latency.is_none_or(|latency| 0.0 < latency.p50 && latency.p50 <= latency.max));
}

/// What the card brings where decides what is handed over, and nothing else does.
fn check_steering(report: &Report) {
    check_yardsticks(report);
    assert!(report.balanced && report.compared > 0 && !report.text().is_empty());
    let rates = report.points.iter().filter_map(|point| point.steering.as_ref());
    for steering in rates.filter(|steering| steering.offered_mpps.is_none()) {
        let share = steering.handed_share;
        match steering.mode.as_str() {
            "inner" | "teid" => assert_eq!(share, 0.0),
            "distributor" => assert_eq!(share, 1.0),
            // Of two workers; of more, more.
            _ => assert!((0.4..0.9).contains(&share), "{steering:?}"),
        }
        assert!(steering.work_cycles.unwrap().median > 0.0);
    }
    check_overload(report);
    check_compared(report);
    let timed = report.points.iter().filter(|point| point.steering.as_ref().unwrap().offered_mpps.is_some());
    let (mut any, text) = (false, report.text());
    for point in timed {
        any |= point.latency_us.is_none_or(|latency| latency.mean.is_some_and(|mean| mean <= latency.max));
        assert!(point.notes.iter().all(|note| text.contains(note)), "{:?}", point.notes);
    }
    assert!(any);
    let value = serde_json::to_value(report).unwrap();
    let again: Report = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(again).unwrap(), value, "what is written can be read");
}

/// Every number of workers was run and none of them modelled, nor a number beyond run; each length was measured by itself.
fn check_compared(report: &Report) {
    let by = |modelled: bool| {
        let rows = report.over_workers.iter().filter(move |carried| carried.modelled == modelled);
        rows.map(|carried| carried.workers).collect::<Vec<u32>>()
    };
    assert_eq!((by(false), by(true)), (vec![1, 2], vec![4, 5, 6, 7, 8, 16, 32]));
    assert!(report.over_workers[1].spread.is_some_and(|times| times.min > 0.0));
    let of = |profile: &str, mode: &str| {
        let mut points = report.points.iter().filter(|point| point.profile == profile);
        points.find(|point| point.steering.as_ref().unwrap().mode == mode).unwrap()
    };
    for (profile, bytes, theirs) in [("cht-512", 540.0, "1.97 times"), ("cht-1280", 1_308.0, "2.07 times")] {
        let (inner, outer) = (of(profile, "inner"), of(profile, "outer"));
        assert_eq!((inner.mean_bytes, outer.mean_bytes), (bytes, bytes), "{profile}");
        let gain = 1.0 / outer.steering.as_ref().unwrap().ratio_to_inner.unwrap().median;
        let row = report.published.iter().find(|row| row.published == theirs).unwrap();
        assert!(row.measured.starts_with(&format!("{gain:.2} times")), "{row:?}");
        assert!(row.measured.contains(&format!("of {bytes:.0} B")), "{row:?}");
        assert!(report.text().contains(theirs) && report.text().contains(&row.measured));
    }
}

fn a_wrong_packet_is_refused() {
    let memory = Memory::new(1, 65_535).unwrap();
    let _thread = memory.eal.register_thread().unwrap();
    let pool = memory.pool().unwrap();
    let mut ports = [Replay::new(pool), Replay::new(pool)];
    let population = Population { sessions: 500, pdrs: 2, flows: 1_000, services: false, share: None };
    let product = Product::new(ports.clone(), &mut ports, pool, &population).unwrap();
    let mut runnable = Runnable::new(product, ports, memory.eal.tsc_hz());
    let mut field = field(&memory, &mut runnable, Sampler::new(Box::new(Unchanged)));
    for runner in RUNNERS {
        let result = field.round(runner).map_err(|error| error.to_string());
        match runner {
            Runner::Product => assert!(result.unwrap_err().contains("a packet came out wrong")),
            _ => assert!(result.is_ok(), "{result:?}"),
        }
    }
}

/// A busy machine may leave no run that counts; where there is one, it is as it should be.
fn check_overload(report: &Report) {
    let of = |mode: &str| {
        let mut all = report.points.iter().filter_map(|point| point.steering.as_ref());
        all.find(|steering| steering.mode == mode).unwrap().by_class.clone()
    };
    if let [urgent, rest] = of("classes").as_slice() {
        assert!(urgent.loss == 0.0 && rest.loss > 0.0 && urgent.packets > 0, "{urgent:?} {rest:?}");
    }
    if let [one, rest] = of("one-user").as_slice() {
        assert!(one.loss > rest.loss && one.packets > rest.packets, "{one:?} {rest:?}");
    }
    if let [urgent, rest] = of("no-classes").as_slice() {
        assert!(urgent.loss > 0.0 && rest.loss > 0.0, "{urgent:?} {rest:?}");
    }
}
