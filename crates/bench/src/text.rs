//! A report as a table, for people.

mod steering;

use crate::misses::UNKNOWN;
use crate::report::{Control, Drops, Latency, Load, Node, PfcpCost, PfcpRates, Report, Services};
use crate::scenario::{Classification, FirstPacket};
use crate::spread::Spread;
use std::fmt::Write;

impl Report {
    /// All of it.
    pub(crate) fn text(&self) -> String {
        let mut text = self.heading();
        let parts = [
            self.rates(),
            self.pfcp.as_ref().map(pfcp_table),
            self.control.map(control_line),
            self.services.as_ref().map(services_line),
            self.drops.as_ref().map(drops_table),
            self.classification.as_ref().map(classification_table),
            self.latency_us.zip(self.load.as_ref()).map(|(latency, load)| self.latency(latency, load)),
            self.steering.as_ref().map(|_| steering::table(self)),
            (!self.points.is_empty() && self.steering.is_none()).then(|| self.table_of_points()),
            (!self.nodes.is_empty()).then(|| node_table(&self.nodes)),
            Some(self.remarks()),
        ];
        for part in parts.into_iter().flatten() {
            text.push('\n');
            text.push_str(&part);
        }
        text
    }

    fn heading(&self) -> String {
        let machine = &self.machine;
        let head = match self.pfcp {
            Some(_) => format!("{}: {} sessions", self.scenario, self.sessions),
            None => format!(
                "{} {}: {} sessions of {} PDRs, {} active, {} flows, packets of {:.0} bytes, {} trials",
                self.scenario,
                self.profile,
                self.sessions,
                self.pdrs,
                self.active,
                self.flows,
                self.mean_bytes,
                self.trials,
            ),
        };
        format!(
            "{head}\n{} at {} MHz, {} CPUs{}, DPDK {}, {} build, packets in memory (no network card)\n",
            machine.cpu,
            machine.clock_mhz,
            machine.cores,
            if machine.virtualized { " of a virtual machine" } else { "" },
            machine.dpdk,
            machine.build,
        )
    }

    fn rates(&self) -> Option<String> {
        let spread = self.spread?;
        let mut text = format!(
            "{:<12} {:>18} {:>9} {:>9} {:>12}\n",
            "", "cycles per packet", "least", "most", "Mpps a core"
        );
        let rates = [self.floor_mpps_per_core, self.bare_mpps_per_core, self.mpps_per_core];
        let runners = [("floor", spread.floor), ("bare", spread.bare), ("product", spread.product)];
        for ((name, Spread { min, median, max }), mpps) in runners.into_iter().zip(rates) {
            let mpps = mpps.unwrap_or_default();
            let _ = writeln!(text, "{name:<12} {median:>18.1} {min:>9.1} {max:>9.1} {mpps:>12.2}");
        }
        let Spread { min, median, max } = spread.ratio;
        let _ = writeln!(text, "\nproduct over bare: {median:.3} ({min:.3} to {max:.3})");
        if let Some(bytes) = self.memory.bytes_per_session {
            let _ = writeln!(text, "{bytes} bytes of memory a session");
        }
        Some(text)
    }

    fn latency(&self, latency: Latency, load: &Load) -> String {
        let mut text = String::new();
        if let Some(rate) = load.zero_loss_mpps {
            let Spread { min, median, max } = rate;
            let _ = writeln!(text, "zero-loss rate: {median:.3} Mpps ({min:.3} to {max:.3})");
        }
        let _ = writeln!(
            text,
            "one way at {:.0} % of it: mean {}, p50 {:.1}, p99 {:.1}, p99.9 {:.1}, most {:.1} us",
            load.load * 100.0,
            latency.mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}")),
            latency.p50,
            latency.p99,
            latency.p999,
            latency.max,
        );
        if let Some(calm) = load.waits.calm_us {
            let _ = writeln!(
                text,
                "of these, the {:.1} % that came back while both threads ran and packets were sent in time: p50 {:.1}, p99 {:.1}, p99.9 {:.1}, most {:.1} us",
                load.waits.calm_share * 100.0,
                calm.p50,
                calm.p99,
                calm.p999,
                calm.max,
            );
        }
        for (which, us) in [
            ("", load.waits.stand_in_us),
            (", while both threads ran and packets were sent in time", load.waits.stand_in_calm_us),
        ] {
            let Some(us) = us else { continue };
            let _ = writeln!(
                text,
                "through the bare loop at that pace{which}: p50 {:.1}, p99 {:.1}, p99.9 {:.1}, most {:.1} us",
                us.p50, us.p99, us.p999, us.max,
            );
        }
        if load.is_of_the_machine() {
            text += "the machine was busy with other things: rate and latencies are its, not the engine's\n";
        }
        text
    }

    fn table_of_points(&self) -> String {
        let mut text = format!(
            "{:>9} {:>9} {:>6} {:>7} {:>8} {:>6} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
            "sessions",
            "flows",
            "PDRs",
            "content",
            "workers",
            "load",
            "Mpps/core",
            "bare",
            "ratio",
            "mean us",
            "p50",
            "p99",
            "p99.9",
            "most"
        );
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        for point in &self.points {
            let latency = |pick: fn(&Latency) -> f64| number(point.latency_us.as_ref().map(pick), 1);
            let _ = writeln!(
                text,
                "{:>9} {:>9} {:>6} {:>7} {:>8} {:>6} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
                point.sessions,
                point.flows,
                point.pdrs,
                point.rules,
                point.workers,
                number(point.load.as_ref().map(|load| load.load), 2),
                number(point.mpps_per_core, 2),
                number(point.bare_mpps_per_core, 2),
                number(point.ratio, 3),
                number(point.latency_us.and_then(|latency| latency.mean), 1),
                latency(|latency| latency.p50),
                latency(|latency| latency.p99),
                latency(|latency| latency.p999),
                latency(|latency| latency.max),
            );
        }
        text
    }

    /// What must be known of points alone, once; the table of `steering` has them in its lines.
    fn notes_of_points(&self) -> Vec<&String> {
        let mut notes: Vec<&String> = Vec::new();
        let points = self.points.iter().filter(|point| point.steering.is_none());
        for note in points.flat_map(|point| &point.notes) {
            if !self.notes.contains(note) && !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    fn remarks(&self) -> String {
        let mut text = String::new();
        if self.compared > 0 {
            let _ = writeln!(text, "{}", self.comparison());
        }
        match self.cache_misses_per_packet {
            Some(misses) => _ = writeln!(text, "{misses} misses of the last-level cache per packet"),
            None if self.nodes.is_empty() => {}
            None => _ = writeln!(text, "note: {UNKNOWN}"),
        }
        for note in self.notes.iter().chain(self.notes_of_points()) {
            let _ = writeln!(text, "note: {note}");
        }
        if let Some(share) = self.cpu_share.filter(|share| *share < BUSY) {
            let _ = writeln!(text, "note: {}", busy(share));
        }
        if self.interrupted {
            let _ = writeln!(text, "interrupted: the figures are those of what was done until then");
        }
        text
    }
}

fn pfcp_table(rates: &PfcpRates) -> String {
    let mut text = format!(
        "{:<16} {:>10} {:>10} {:>10}  a request: CPU time, and its answer's\n",
        "per second", "median", "least", "most"
    );
    let rows = [
        ("establishments", rates.establishments_per_s, rates.cost.establishment),
        ("modifications", rates.modifications_per_s, rates.cost.modification),
        ("deletions", rates.deletions_per_s, rates.cost.deletion),
    ];
    for (name, rate, PfcpCost { cpe_us, dpe_us, answer_us }) in rows {
        let Some(Spread { min, median, max }) = rate else {
            let _ = writeln!(text, "{name:<16} {:>10}", "-");
            continue;
        };
        let _ = write!(
            text,
            "{name:<16} {median:>10.0} {min:>10.0} {max:>10.0} {cpe_us:>8.1} us cpe {dpe_us:>8.1} us dpe"
        );
        let _ = match answer_us {
            Some(Latency { p50, p99, .. }) => {
                writeln!(text, " {:>6.1} ms p50 {:>6.1} ms p99", p50 / 1e3, p99 / 1e3)
            }
            None => writeln!(text),
        };
    }
    if let Some(Spread { min, median, max }) = rates.bare_per_s {
        let _ = writeln!(text, "{:<16} {median:>10.0} {min:>10.0} {max:>10.0}", "bare UDP");
    }
    growth_table(rates, &mut text);
    let _ = writeln!(
        text,
        "\n{} bytes of memory a session: {} in the control plane engine, {} in the data plane engine\n\
         {} requests under way at once; {} sent again; {} failed",
        rates.bytes_per_session,
        rates.cpe_bytes_per_session,
        rates.dpe_bytes_per_session,
        rates.window,
        rates.retransmissions,
        rates.failures,
    );
    text
}

fn growth_table(rates: &PfcpRates, text: &mut String) {
    if rates.growth.len() < 2 {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<16} {:>10} {:>12} {:>12} {:>12}",
        "up to sessions", "a second", "us cpe", "us bare", "bare a second"
    );
    for step in &rates.growth {
        let figure = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let _ = writeln!(
            text,
            "{:<16} {:>10.0} {:>12} {:>12} {:>12}",
            step.sessions,
            step.establishments_per_s,
            figure(step.cpe_us, 2),
            figure(step.bare_us, 2),
            figure(step.bare_per_s, 0)
        );
    }
    if let Some(ratio) = rates.last_to_first_cpu {
        let _ = writeln!(
            text,
            "the last third at {ratio:.2} of the first third's, by CPU time over the bare answer's"
        );
    }
    if let Some(ratio) = rates.last_to_first_wall {
        let _ = writeln!(
            text,
            "the last third at {ratio:.2} of the first third's rate by the clock, whatever the machine did"
        );
    }
}

fn control_line(control: Control) -> String {
    let Control {
        changes_per_s, ratio_to_quiet: Spread { min, median, max }, quiet_turn, changed_turn, ..
    } = control;
    format!(
        "{changes_per_s} sessions changed a second: {median:.3} of the rate without ({min:.3} to {max:.3}); \
         999 of 1,000 turns of the worker take {:.1} us at most, without changes {:.1} us\n",
        changed_turn.p99_9_us, quiet_turn.p99_9_us
    )
}

fn services_line(services: &Services) -> String {
    let Services { ratio_to_forward: Spread { min, median, max }, forward_mpps_per_core, .. } = services;
    let flows = services.flows_per_s();
    let fewer = services.at_flow_rate.map_or(String::new(), |fewer| {
        let Spread { min, median, max } = fewer.ratio_to_forward;
        format!("with {:.0} new flows a second, {median:.3} ({min:.3} to {max:.3})\n", fewer.flows_per_s)
    });
    format!(
        "{median:.3} of the rate without services, which is {forward_mpps_per_core:.2} Mpps ({min:.3} to {max:.3}); \
         {flows:.0} new flows a second, {:.0} of them of a known application\n{fewer}",
        services.detected_flows_per_s
    )
}

/// A line for each reason.
fn drops_table(drops: &Drops) -> String {
    let mut text = format!(
        "{:<24} {:>17} {:>16} {:>22} {:>9}\n",
        "dropped as", "cycles per packet", "forwarded alike", "of that", "sent"
    );
    for dropped in &drops.dropped {
        let Spread { min, median, max } = dropped.of_forwarded;
        let _ = writeln!(
            text,
            "{:<24} {:>17.1} {:>16.1} {:>22} {:>7.2} %  {}",
            dropped.reason,
            dropped.cycles_per_packet.median,
            dropped.forwarded_cycles_per_packet.median,
            format!("{median:.3} ({min:.3} to {max:.3})"),
            dropped.answered_share * 100.0,
            dropped.what,
        );
    }
    text
}

/// Each figure beside what is asked.
fn classification_table(found: &Classification) -> String {
    let mut text =
        format!("{:<34} {:>12} {:>22} {:>10}\n", "first packets, by what tells", "ns", "", "asked ns");
    for FirstPacket { by, ns, asked_ns } in &found.first_packets {
        let range = format!("({:.0} to {:.0})", ns.min, ns.max);
        let _ = writeln!(text, "{by:<34} {:>12.0} {range:>22} {asked_ns:>10}", ns.median);
    }
    let Classification { rules, compiled_ms, compiled_asked_ms, .. } = found;
    let _ = writeln!(
        text,
        "{rules} content rules are compiled in {compiled_ms:.0} ms (asked: {compiled_asked_ms}) and take {:.1} MiB, the process \
         {:.1} MiB more than before (asked: {})",
        found.memory_mib, found.grown_mib, found.memory_asked_mib
    );
    if !found.is_as_asked() {
        text.push_str("not all of this is as it is asked\n");
    }
    text
}

fn node_table(nodes: &[Node]) -> String {
    let mut text = format!(
        "{:<24} {:>12} {:>10} {:>18} {:>18}\n",
        "node", "packets", "vectors", "packets per vector", "cycles per packet"
    );
    for node in nodes {
        let _ = writeln!(
            text,
            "{:<24} {:>12} {:>10} {:>18.1} {:>18.1}",
            node.name, node.packets, node.vectors, node.packets_per_vector, node.cycles_per_packet
        );
    }
    text
}

/// A thread that had less of a CPU than this was disturbed by other programs.
pub(crate) const BUSY: f64 = 0.97;

/// What a reader must know of a disturbed measurement.
pub(crate) fn busy(share: f64) -> String {
    format!(
        "the machine was busy with other things: what was measured had a CPU for {:.0} % of the time, and what it did \
         is counted by that",
        share * 100.0
    )
}
