//! The result, for people and for programs.

use crate::machine::Machine;
use anyhow::Context;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// One node of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) packets: u64,
    pub(crate) cycles_per_packet: f64,
    pub(crate) packets_per_vector: f64,
}

/// What a scenario found.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) scenario: &'static str,
    pub(crate) profile: &'static str,
    pub(crate) workers: u32,
    pub(crate) sessions: u32,
    pub(crate) active: u32,
    pub(crate) flows: u32,
    pub(crate) seed: u64,
    pub(crate) rounds: usize,
    /// Share of packets that went in and did not come out.
    pub(crate) loss: f64,
    pub(crate) balanced: bool,
    /// Of the users' packets.
    pub(crate) mean_bytes: f64,
    pub(crate) hz: u64,
    /// Cycles per packet, least, median and most: of the floor, the bare loop, the product.
    pub(crate) cycles: [[f64; 3]; 3],
    pub(crate) nodes: Vec<Node>,
    pub(crate) session_bytes: u64,
    pub(crate) machine: Machine,
}

impl Report {
    fn mpps(&self, cycles: f64) -> f64 {
        self.hz as f64 / cycles / 1e6
    }

    /// Product over bare loop: 1 would be logic that costs nothing.
    fn ratio(&self) -> f64 {
        let [_, bare, product] = self.cycles;
        bare[1] / product[1]
    }

    fn json(&self) -> Value {
        let [floor, bare, product] = self.cycles;
        let mpps = self.mpps(product[1]);
        let nodes: Vec<Value> = self.nodes.iter().map(node_json).collect();
        json!({
            "scenario": self.scenario, "profile": self.profile, "workers": self.workers,
            "sessions": self.sessions, "active": self.active, "flows": self.flows, "rules": 0,
            "seed": self.seed, "rounds": self.rounds, "mean_bytes": self.mean_bytes,
            "mpps_per_core": mpps, "gbps_per_core": mpps * self.mean_bytes * 8.0 / 1e3,
            "floor_mpps_per_core": self.mpps(floor[1]), "bare_mpps_per_core": self.mpps(bare[1]),
            "ratio": self.ratio(), "loss": self.loss, "cycles_per_packet": product[1],
            "spread": { "floor": floor, "bare": bare, "product": product },
            "nodes": nodes, "memory": { "bytes_per_session": self.session_bytes },
            "machine": self.machine, "balanced": self.balanced,
        })
    }

    fn text(&self) -> String {
        let [floor, bare, product] = self.cycles;
        let mut text = format!(
            "{} {}: {} sessions, {} active, {} flows, packets of {:.0} bytes, {} rounds\n{} at {} MHz, DPDK {}, {} build, packets in memory (no network card)\n\n",
            self.scenario,
            self.profile,
            self.sessions,
            self.active,
            self.flows,
            self.mean_bytes,
            self.rounds,
            self.machine.cpu,
            self.machine.clock_mhz,
            self.machine.dpdk,
            self.machine.build,
        );
        let _ = writeln!(
            text,
            "{:<12} {:>18} {:>9} {:>9} {:>12}",
            "", "cycles per packet", "least", "most", "Mpps a core"
        );
        for (name, [least, median, most]) in [("floor", floor), ("bare", bare), ("product", product)] {
            let _ = writeln!(
                text,
                "{name:<12} {median:>18.1} {least:>9.1} {most:>9.1} {:>12.2}",
                self.mpps(median)
            );
        }
        let _ = writeln!(
            text,
            "\nproduct over bare: {:.2}; {} bytes of memory a session\n",
            self.ratio(),
            self.session_bytes
        );
        let _ = writeln!(
            text,
            "{:<24} {:>14} {:>18} {:>18}",
            "node", "packets", "cycles per packet", "packets per vector"
        );
        for node in &self.nodes {
            let _ = writeln!(
                text,
                "{:<24} {:>14} {:>18.1} {:>18.1}",
                node.name, node.packets, node.cycles_per_packet, node.packets_per_vector
            );
        }
        text
    }
}

fn node_json(node: &Node) -> Value {
    json!({
        "name": node.name, "packets": node.packets,
        "cycles_per_packet": node.cycles_per_packet, "packets_per_vector": node.packets_per_vector,
    })
}

/// Says the result: as JSON where a file is named ("-" is standard output), as a table otherwise.
pub(crate) fn give(report: &Report, json: Option<&Path>) -> anyhow::Result<()> {
    match json {
        Some(path) if path == Path::new("-") => println!("{}", report.json()),
        Some(path) => std::fs::write(path, format!("{}\n", report.json()))
            .with_context(|| format!("{} cannot be written", path.display()))?,
        None => print!("{}", report.text()),
    }
    Ok(())
}
