//! The sections about content rules, and about sessions that change while packets flow.

use super::Results;
use super::sections::{notes, number, spread};
use crate::report::{Control, Report, TurnLengths};
use crate::scenario::Classification;
use std::fmt::Write;

/// What the columns mean.
const HOW_TO_READ: &str = "\
Two workers have the same users and are given the same packets in turns, of flows that begin, say what they are about, and
end. The sessions of one know of no services (*forward*); those of the other have PDRs for services, and a bill for each.
*Of forward* is the rate of the second over that of the first.

";

impl Results {
    /// Points over the number of content rules: those of `services`, or else those of `rules`.
    pub(super) fn content_points(&self) -> Option<Vec<&Report>> {
        ["services", "rules"].into_iter().find_map(|scenario| {
            let points = self.of(scenario)?.points.iter().filter(|point| point.services.is_some());
            let points: Vec<&Report> = points.collect();
            (!points.is_empty()).then_some(points)
        })
    }

    pub(super) fn services(&self) -> Option<String> {
        let points = self.content_points()?;
        let mut text =
            "## Over the number of content rules\n\n![Throughput over content rules](content.svg)\n\n"
                .to_owned()
                + HOW_TO_READ
                + "| sessions | content rules | Mpps per core | of forward | forward Mpps | bare Mpps | ratio | cycles per packet | new flows a second, of those of a known application |\n|---|---|---|---|---|---|---|---|---|\n";
        let others = self.of("rules").map_or(&[][..], |report| &report.points);
        let others = others.iter().filter(|point| point.services.is_some());
        let others = others.filter(|point| !points.iter().any(|shown| std::ptr::eq(*shown, *point)));
        points.iter().copied().chain(others).for_each(|point| row(&mut text, point));
        let report = self.of("services").or_else(|| self.of("rules"))?;
        let classification = self.of("services").and_then(|report| report.classification.as_ref());
        let classification = classification.map_or(String::new(), first_packets);
        let fewer = report.services.as_ref().and_then(|services| services.at_flow_rate);
        let fewer = fewer.map_or(String::new(), |fewer| {
            format!(
                "Where {:.1} % of the packets open flows, {:.0} in a second: {} Mpps with {} content rules, {} of forward.\n\n",
                fewer.opening_share * 100.0,
                fewer.flows_per_s,
                number(fewer.mpps_per_core, 2),
                report.rules,
                spread(Some(fewer.ratio_to_forward), 3)
            )
        });
        let difference = points.last().map_or(String::new(), |point| difference(point));
        Some(text + "\n" + &fewer + &difference + &classification + &notes([report]))
    }

    /// Sessions that change while packets flow.
    pub(super) fn control(&self) -> Option<String> {
        let report = self.of("control")?;
        let control = report.control.as_ref()?;
        let text = format!(
            "## While sessions change\n\n| sessions | changed a second | Mpps per core | of the rate without changes | bare Mpps | floor Mpps | ratio |\n|---|---|---|---|---|---|---|\n\
             | {} | {} | **{}** | {} | {} | {} | {} |\n\n",
            report.sessions,
            control.changes_per_s,
            number(report.mpps_per_core, 2),
            spread(Some(control.ratio_to_quiet), 3),
            number(report.bare_mpps_per_core, 2),
            number(report.floor_mpps_per_core, 2),
            spread(report.spread.map(|spread| spread.ratio), 3),
        );
        Some(text + &turn_table(control) + &notes([report]))
    }
}

/// Where a packet's cycles go in both workers. Nodes of flows that are known stand beside those of the long way, so it shows what
/// either costs.
fn difference(point: &Report) -> String {
    let Some(services) = point.services.as_ref().filter(|services| !services.forward_nodes.is_empty()) else {
        return String::new();
    };
    let workers = [&services.forward_nodes, &point.nodes];
    let all =
        workers.map(|nodes| nodes.iter().map(|node| node.packets).max().unwrap_or_default().max(1) as f64);
    let mut text = format!(
        "Where the cycles of a packet go in both, with {} content rules: each node's, spread over all packets, and which part of \
         the packets came to it.\n\n| node | forward | packets | with services | packets |\n|---|---|---|---|---|\n",
        point.rules
    );
    let mut sums = [0.0; 2];
    for node in &point.nodes {
        let of = |at: usize| {
            let found = workers[at].iter().find(|other| other.name == node.name);
            found.map_or((0.0, 0.0), |node| {
                let share = node.packets as f64 / all[at];
                (node.cycles_per_packet * share, share * 100.0)
            })
        };
        let [(forward, some), (services, others)] = [of(0), of(1)];
        sums = [sums[0] + forward, sums[1] + services];
        let _ =
            writeln!(text, "| {} | {forward:.1} | {some:.1} % | {services:.1} | {others:.1} % |", node.name);
    }
    let _ = writeln!(text, "| all nodes | {:.0} | | {:.0} | |\n", sums[0], sums[1]);
    text
}

/// What the first packets of flows cost, and the rules, each beside what is asked.
fn first_packets(found: &Classification) -> String {
    let mut text = format!(
        "The packet that says what a flow is, from a fresh inspection to its rule among {}, without the rest of its way:\n\n\
         | by | ns | asked, less than |\n|---|---|---|\n",
        found.rules
    );
    for packet in &found.first_packets {
        let _ = writeln!(text, "| {} | {} | {} |", packet.by, spread(Some(packet.ns), 0), packet.asked_ns);
    }
    let _ = writeln!(
        text,
        "\nThese rules are compiled in {:.0} ms (asked: less than {}), and take {:.1} MiB; the process grows by {:.1} MiB (asked: \
         less than {}).\n",
        found.compiled_ms, found.compiled_asked_ms, found.memory_mib, found.grown_mib, found.memory_asked_mib
    );
    text
}

/// What a packet waits for the worker's turn, without changes and with them.
fn turn_table(control: &Control) -> String {
    let row = |name: &str, turn: TurnLengths| {
        format!("| {name} | {:.1} | {:.1} | {:.1} |\n", turn.p50_us, turn.p99_us, turn.p99_9_us)
    };
    "| a turn of the worker takes, us | half | 99 of 100 | 999 of 1,000 |\n|---|---|---|---|\n".to_owned()
        + &row("without changes", control.quiet_turn)
        + &row("with changes", control.changed_turn)
        + &format!(
            "\nOf the trials whose last figures stand in the middle; by trial, the last is longer by {} us with changes.\n\n",
            spread(control.longer_p99_9_us, 1)
        )
}

fn row(text: &mut String, point: &Report) {
    let Some(services) = point.services.as_ref() else { return };
    let flows = services.flows_per_s();
    let _ = writeln!(
        text,
        "| {} | {} | **{}** | {} | {:.2} | {} | {} | {} | {flows:.0}, {:.0} |",
        point.sessions,
        point.rules,
        number(point.mpps_per_core, 2),
        spread(Some(services.ratio_to_forward), 3),
        services.forward_mpps_per_core,
        number(point.bare_mpps_per_core, 2),
        spread(point.spread.map(|spread| spread.ratio), 3),
        number(point.cycles_per_packet, 0),
        services.detected_flows_per_s,
    );
}
