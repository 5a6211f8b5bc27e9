//! Ports: what their devices were found to be able to do, and what was done about it.

use crate::dpe::numa::nodes;
use dplink::{PortStatistics, Punting, Spread};
use serde::Serialize;
use std::fmt::Write;
use steer::{ExactState, Family};

/// How to look at ports.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Print the settings and flow rules in force on each card, as DPDK's testpmd reads them.
    #[arg(long)]
    flow_rules: bool,
}

/// What is told of a port.
#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    device: &'a str,
    spread: Spread,
    about: &'static str,
    steering: &'a dplink::PortSteering,
    /// What it and the kernel gave each other, if they are to.
    punting: Option<&'a Punting>,
    /// Packets received, by class of `steering`.
    received_by_class: &'a [u64],
}

impl Args {
    /// A table, and below each port why; or the rules alone.
    pub(super) fn text(&self, ports: &[PortStatistics]) -> String {
        match self.flow_rules {
            true => ports.iter().map(rules).collect(),
            false => table(ports),
        }
    }
}

/// For programs.
pub(super) fn json(ports: &[PortStatistics]) -> serde_json::Value {
    let ports: Vec<Told<'_>> = ports.iter().map(told).collect();
    serde_json::json!({ "ports": ports })
}

fn told(port: &PortStatistics) -> Told<'_> {
    let PortStatistics { name, device, spread, steering, classes, punting, .. } = port;
    let received_by_class = classes.get(..steering.classes.len()).unwrap_or_default();
    Told {
        name,
        device,
        spread: *spread,
        about: spread.about(),
        steering,
        punting: punting.as_ref(),
        received_by_class,
    }
}

fn table(ports: &[PortStatistics]) -> String {
    let mut text =
        format!("{:<12} {:<16} {:>6}  {:<25} {:>5}  device\n", "port", "driver", "queues", "spread", "rules");
    for PortStatistics { name, device, spread, steering, .. } in ports {
        let rules = steering.installed.iter().filter(|line| line.starts_with("flow create")).count();
        let _ = writeln!(
            text,
            "{name:<12} {:<16} {:>6}  {:<25} {rules:>5}  {device}",
            steering.driver,
            steering.queues,
            spread.about(),
        );
    }
    for PortStatistics { name, steering, received, classes, punting, .. } in ports {
        let _ = writeln!(text, "\n{name}: {}", steering.reason);
        steering.firmware.iter().for_each(|version| _ = writeln!(text, "  firmware: {version}"));
        text += &placement(&steering.placement);
        text += &by_class(steering, (*received, classes));
        steering.refused.iter().for_each(|refused| _ = writeln!(text, "  not taken: {refused}"));
        steering.exact.iter().for_each(|state| text += &exact(state));
        punting.iter().for_each(|punting| text += &kernel(punting));
    }
    text
}

/// The exact rules of a port, and what is not led for want of one.
fn exact(state: &ExactState) -> String {
    let ExactState { limit, installed, refused, over_budget, over_limit, words, led, .. } = state;
    let mut text = format!(
        "  exact rules: {installed} of at most {limit}, which lead {led} tunnels and addresses; handed over: {refused} \
         refused, {over_budget} for want of time, {over_limit} beyond the limit\n"
    );
    words.iter().for_each(|words| _ = writeln!(text, "  not taken: {words}"));
    text
}

/// What a port and its interface in the kernel gave each other.
fn kernel(Punting { interface, punted, from_kernel, refused }: &Punting) -> String {
    let refused = match refused {
        0 => String::new(),
        _ => format!(", of which it refused {refused}"),
    };
    format!("  kernel: {punted} packets to {interface}{refused}, {from_kernel} from there\n")
}

/// The NUMA nodes of its parts, as far as they are known, and what is on another than it should be.
fn placement(placement: &dplink::PortPlacement) -> String {
    let dplink::PortPlacement { device, packets, workers, apart } = placement;
    let known = [
        device.map(|node| format!("device on node {node}")),
        (!packets.is_empty()).then(|| format!("packets in memory of {}", nodes(packets))),
        (!workers.is_empty()).then(|| format!("workers on {}", nodes(workers))),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    let mut text = match known.is_empty() {
        true => String::new(),
        false => format!("  NUMA: {}\n", known.join(", ")),
    };
    apart.iter().for_each(|apart| _ = writeln!(text, "  apart: {apart}"));
    text
}

/// The classes of a port, the most urgent first, with what came in each.
fn by_class(steering: &dplink::PortSteering, (received, by_class): (u64, &[u64])) -> String {
    let (mut text, mut rest) = (String::new(), received);
    for (dplink::PortClass { name, packets, in_force }, received) in steering.classes.iter().zip(by_class) {
        rest = rest.saturating_sub(*received);
        let told = match in_force {
            true => format!("{received} packets"),
            false => "not in force: its packets are with the rest".to_owned(),
        };
        let _ = writeln!(text, "  class {name} ({packets}): {told}");
    }
    if !text.is_empty() {
        let _ = writeln!(text, "  the rest: {rest} packets");
    }
    text
}

fn rules(PortStatistics { name, steering, .. }: &PortStatistics) -> String {
    let lines = steering.installed.iter().map(|line| format!("{line}\n"));
    let none = match steering.installed.is_empty() {
        true => "# none are in force; those for a card: anchorline doctor flow-rules --family FAMILY\n",
        false => "",
    };
    let exact: String = steering.exact.iter().map(|state| exact_rules(&steering.driver, state)).collect();
    format!("# {name}: {}\n{none}{}{exact}", steering.reason, lines.collect::<String>())
}

/// Those of sessions, as they were made.
fn exact_rules(driver: &str, state: &ExactState) -> String {
    let rules = state.rules.iter().flat_map(|(target, queue)| {
        steer::exact(Family::of_driver(driver), *target, *queue)
            .into_iter()
            .map(|rule| rule.testpmd("create", 0))
    });
    let head = format!("# exact rules of sessions: {} of at most {}\n", state.installed, state.limit);
    let rest = match state.led.saturating_sub(state.rules.len() as u64) {
        0 => String::new(),
        more => format!("# and those of {more} tunnels and addresses more\n"),
    };
    rules.fold(head, |text, rule| text + &rule + "\n") + &rest
}

#[cfg(test)]
mod tests {
    use super::super::fixture::statistics;
    use super::*;

    fn ports() -> Vec<PortStatistics> {
        let mut ports = statistics().ports;
        let steering = dplink::PortSteering {
            driver: "net_ice".to_owned(),
            firmware: Some("4.40 0x8001c7d4 1.3534.0".to_owned()),
            queues: 4,
            reason: "the card took the flow rules for ice".to_owned(),
            installed: vec!["# start".to_owned(), "flow create 0 ingress".to_owned()],
            refused: vec!["no ipv6".to_owned()],
            classes: [("voice", "QFI 1", true), ("video", "PCP 4", false)]
                .map(|(name, packets, in_force)| dplink::PortClass {
                    name: name.to_owned(),
                    packets: packets.to_owned(),
                    in_force,
                })
                .to_vec(),
            placement: dplink::PortPlacement::default(),
            exact: None,
        };
        for port in &mut ports {
            (port.steering, port.classes) = (steering.clone(), vec![4, 0, 0]);
        }
        ports
    }

    #[test]
    fn a_port_says_what_it_can_do_and_what_it_did_not_take() {
        let text = Args { flow_rules: false }.text(&ports());
        assert!(
            text.contains("net_ice               4  one worker                    1  net_null0"),
            "{text}"
        );
        assert!(text.contains("\n  firmware: 4.40 0x8001c7d4 1.3534.0\n"), "{text}");
        assert!(text.contains("n3: the card took") && text.contains("  not taken: no ipv6\n"), "{text}");
        let classes = "  class voice (QFI 1): 4 packets\n  class video (PCP 4): not in force: its packets are with \
                       the rest\n  the rest: 6 packets\n";
        assert!(text.contains(classes), "{text}");
        let json = json(&ports()).to_string();
        assert!(json.contains("\"received_by_class\":[4,0]"), "{json}");
        assert!(
            json.contains("\"refused\":[\"no ipv6\"]") && json.contains("\"about\":\"one worker\""),
            "{json}"
        );
    }

    #[test]
    fn it_is_told_where_a_ports_parts_are() {
        let mut ports = ports();
        let none = Args { flow_rules: false }.text(&ports);
        assert!(!none.contains("NUMA"), "{none}");
        ports[0].steering.placement = dplink::PortPlacement {
            device: Some(1),
            packets: vec![0, 1],
            workers: vec![1],
            apart: vec!["its packets belong on node 1".to_owned()],
        };
        let text = Args { flow_rules: false }.text(&ports);
        let told = "  NUMA: device on node 1, packets in memory of nodes 0, 1, workers on node 1\n  apart: its packets \
                    belong on node 1\n";
        assert!(text.contains(told), "{text}");
        let json = json(&ports).to_string();
        assert!(json.contains("\"placement\":{\"device\":1,\"packets\":[0,1],\"workers\":[1],"), "{json}");
    }

    #[test]
    fn what_the_kernel_gets_and_sends_is_told() {
        let mut ports = ports();
        assert!(!Args { flow_rules: false }.text(&ports).contains("kernel"));
        let told =
            |refused| Some(Punting { interface: "n3-host".to_owned(), punted: 7, from_kernel: 9, refused });
        ports[0].punting = told(0);
        let text = Args { flow_rules: false }.text(&ports);
        assert!(text.contains("  kernel: 7 packets to n3-host, 9 from there\n"), "{text}");
        ports[0].punting = told(2);
        let text = Args { flow_rules: false }.text(&ports);
        assert!(text.contains("to n3-host, of which it refused 2, 9 from"), "{text}");
        let json = json(&ports).to_string();
        assert!(
            json.contains("\"punting\":{\"interface\":\"n3-host\",\"punted\":7,\"from_kernel\":9"),
            "{json}"
        );
    }

    #[test]
    fn exact_rules_are_counted_and_printed_as_they_were_made() {
        let mut ports = ports();
        let none = [true, false].map(|flow_rules| Args { flow_rules }.text(&ports)).concat();
        assert!(!none.contains("exact"), "{none}");
        let targets = [steer::Target::Tunnel(0x101), steer::Target::Address([10, 60, 0, 1].into())];
        ports[0].steering.exact = Some(ExactState {
            limit: 1_024,
            installed: 3,
            refused: 7,
            over_budget: 40,
            over_limit: 2,
            words: vec!["no room".to_owned()],
            led: 5,
            rules: targets.map(|target| (target, 2)).to_vec(),
        });
        let text = Args { flow_rules: false }.text(&ports);
        let told = "  exact rules: 3 of at most 1024, which lead 5 tunnels and addresses; handed over: 7 refused, 40 for \
                    want of time, 2 beyond the limit\n  not taken: no room\n";
        assert!(text.contains(told), "{text}");
        let text = Args { flow_rules: true }.text(&ports);
        let rules = "flow create 0 ingress\n\
            # exact rules of sessions: 3 of at most 1024\n\
            flow create 0 ingress pattern eth / ipv4 / udp / gtpu teid is 0x00000101 / end actions queue index 2 / end\n\
            flow create 0 ingress pattern eth / ipv4 / udp / gtpu teid is 0x00000101 / gtp_psc / end actions queue \
            index 2 / end\n\
            flow create 0 ingress pattern eth / ipv4 dst is 10.60.0.1 / end actions queue index 2 / end\n\
            # and those of 3 tunnels and addresses more\n";
        assert!(text.ends_with(rules), "{text}");
        let json = json(&ports).to_string();
        assert!(json.contains("\"over_budget\":40") && json.contains("[{\"tunnel\":257},2]"), "{json}");
    }

    #[test]
    fn rules_are_printed_as_testpmd_reads_them() {
        let text = Args { flow_rules: true }.text(&ports());
        assert_eq!(text, "# n3: the card took the flow rules for ice\n# start\nflow create 0 ingress\n");
        let text = Args { flow_rules: true }.text(&statistics().ports);
        assert!(text.contains("doctor flow-rules"), "{text}");
    }
}
