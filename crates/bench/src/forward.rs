//! `forward`: users' packets through session, PDR, QER gate and FAR, up and down.

use crate::args::Plan;
use crate::meter::{ROUND, Rack, Rounds, timed};
use crate::report::{Node, Report};
use crate::setup::{Memory, Product, resident_bytes};
use crate::yardstick::Yardstick;
use crate::{machine, setup};
use anyhow::bail;
use dataplane::{Counters, NodeId, Worker};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Rounds before any is counted.
const WARM_UP: usize = 300;

/// Runs floor, bare and product in turns, and compares.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Report> {
    let memory = Memory::new()?;
    let _thread = memory.eal.register_thread()?;
    let before = resident_bytes()?;
    let mut product = Product::new(&memory, plan.profile.subscribers)?;
    let session_bytes = resident_bytes()?.saturating_sub(before) / u64::from(plan.profile.subscribers);
    let mut yardstick = Yardstick::new(plan);
    let mut rack = Rack::new(&memory, plan)?;
    let mut ports = [product.n3.clone(), product.n6.clone()];
    let mut results = [Rounds::default(), Rounds::default(), Rounds::default()];
    let (mut bytes, mut rounds) = (0, 0);
    let bar = progress(plan.duration);
    let start = Instant::now();
    let mut counted_from = product.worker.counters().clone();
    let mut per_round: Vec<Vec<f64>> = vec![vec![]; NodeId::ALL.len()];
    while start.elapsed() < plan.duration || rounds <= WARM_UP {
        for (what, result) in results.iter_mut().enumerate() {
            let laid = rack.lay(&ports[0], &ports[1])?;
            let before_round = product.worker.counters().clone();
            let cycles = timed(|| match what {
                0 => yardstick.floor(&mut ports),
                1 => yardstick.bare(&mut ports),
                _ => run(&mut product),
            });
            rack.take_back(&ports[0], &ports[1])?;
            if what == 2 && rounds >= WARM_UP {
                for (at, list) in per_round.iter_mut().enumerate() {
                    let (a, b) = (product.worker.counters().nodes[at], before_round.nodes[at]);
                    if a.packets > b.packets { list.push((a.cycles - b.cycles) as f64 / (a.packets - b.packets) as f64); }
                }
            }
            if rounds >= WARM_UP {
                result.add(cycles);
                bytes += if what == 2 { laid } else { 0 };
            }
        }
        rounds += 1;
        if rounds == WARM_UP {
            counted_from = product.worker.counters().clone();
        }
        bar.set_position(start.elapsed().as_millis() as u64);
    }
    bar.finish_and_clear();
    for (at, list) in per_round.iter_mut().enumerate() {
        list.sort_by(f64::total_cmp);
        if !list.is_empty() { eprintln!("{:24} median {:8.1} min {:8.1}", NodeId::ALL[at].name(), list[list.len()/2], list[0]); }
    }
    let measured = (rounds - WARM_UP) as u64 * ROUND as u64;
    let sent = sent(&product.worker, measured, &counted_from)?;
    let hz = memory.eal.tsc_hz();
    Ok(Report {
        scenario: "forward",
        profile: plan.profile.name,
        workers: 1,
        sessions: plan.profile.subscribers,
        active: plan.profile.active,
        flows: plan.profile.flows,
        seed: plan.seed,
        rounds: rounds - WARM_UP,
        loss: 1.0 - sent as f64 / measured as f64,
        balanced: product.worker.books().balanced(),
        mean_bytes: bytes as f64 / measured as f64,
        hz,
        cycles: results.map(|rounds| rounds.spread()),
        nodes: nodes(product.worker.counters(), &counted_from),
        session_bytes,
        machine: machine::describe(hz),
    })
}

fn run(product: &mut Product) {
    let waiting = |port: &crate::replay::Replay| !port.wire.borrow().inbox.is_empty();
    while waiting(&product.n3) || waiting(&product.n6) {
        product.worker.turn(setup::NOW_NS);
    }
}

/// Packets the worker sent: it must have sent all it received, and dropped nothing.
fn sent(worker: &Worker<crate::replay::Replay>, measured: u64, from: &Counters) -> anyhow::Result<u64> {
    let (books, before) = (worker.books(), from.books());
    if !books.balanced() || books.sent - before.sent != measured || books.dropped != before.dropped {
        bail!("the books do not balance over {measured} packets: {books:?}, before {before:?}");
    }
    Ok(books.sent - before.sent)
}

fn nodes(after: &Counters, before: &Counters) -> Vec<Node> {
    let node = |(at, id): (usize, &NodeId)| {
        let (after, before) = (after.nodes.get(at)?, before.nodes.get(at)?);
        let packets = after.packets - before.packets;
        let per = |whole: u64, parts: u64| whole as f64 / parts.max(1) as f64;
        (packets > 0).then(|| Node {
            name: id.name(),
            packets,
            cycles_per_packet: per(after.cycles - before.cycles, packets),
            packets_per_vector: per(packets, after.vectors - before.vectors),
        })
    };
    NodeId::ALL.iter().enumerate().filter_map(node).collect()
}

fn progress(duration: Duration) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {eta}");
    let bar = ProgressBar::new(duration.as_millis() as u64).with_message("forward, bare and floor in turns");
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
