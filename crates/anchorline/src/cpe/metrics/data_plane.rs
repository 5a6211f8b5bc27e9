//! What the data plane counts.

use super::{Families, Labels, NO_LABELS};
use dataplane::DropReason;
use dplink::{NodeStatistics, PortLink, PortStatistics, Punting, Statistics, WorkerStatistics};
use std::fmt;
use steer::ExactState;

/// All of it.
pub(super) fn tell(families: &mut Families<'_>, dpe: &Statistics) -> fmt::Result {
    let uptime = [(NO_LABELS, dpe.uptime_ms / 1_000)];
    families.gauge("dpe_uptime_seconds", "Since the data plane started", uptime)?;
    ports(families, &dpe.ports)?;
    exact_rules(families, &dpe.ports)?;
    punting(families, &dpe.ports)?;
    for (name, help, value) in LEVELS {
        families.gauge(name, help, by_worker(&dpe.workers, *value))?;
    }
    for (name, help, value) in COUNTERS {
        families.counter(name, help, by_worker(&dpe.workers, *value))?;
    }
    nodes(families, &dpe.workers)?;
    drops(families, &dpe.workers)
}

/// Name, help, and the value of a worker.
type OfWorker = (&'static str, &'static str, fn(&WorkerStatistics) -> u64);

/// What is so now.
const LEVELS: &[OfWorker] = &[
    ("sessions", "Sessions in force", |of| of.sessions),
    ("flows", "Flows remembered", |of| of.flows),
    ("pdrs", "PDRs that sessions take the room of", |of| of.pdrs),
    ("pdrs_most", "Of how many PDRs there is room", |of| of.pdrs_most),
    ("held_packets", "Packets that wait for a neighbour or a sleeping user", |of| of.books.held),
    ("gtpu_peers", "GTP-U peers that tunnels lead to", |of| of.paths.peers),
    ("gtpu_failed_paths", "GTP-U peers in use that do not answer", |of| of.paths.failed),
    ("content_waiting_flows", "Flows looked at for what application they are of", |of| of.content.waiting),
];

/// What has been so far.
const COUNTERS: &[OfWorker] = &[
    ("gtpu_path_failures", "Times a GTP-U path failed", |of| of.paths.failures),
    ("gtpu_peer_restarts", "Restarts of GTP-U peers that they told of themselves", |of| of.paths.restarts),
    ("gtpu_echo_requests", "Echo requests sent, repetitions included", |of| of.paths.echo_requests),
    ("gtpu_echo_responses", "Answers to echo requests", |of| of.paths.echo_responses),
    ("content_detected_flows", "Flows found to be of an application", |of| of.content.detected),
    ("content_undetected_flows", "Flows found to be of no application", |of| of.content.undetected),
    (
        "content_encrypted_hellos",
        "Flows looked at whose ClientHello has Encrypted ClientHello, or what looks like it",
        |of| of.content.encrypted,
    ),
    ("content_displaced_flows", "Flows that gave way before it was known", |of| of.content.displaced),
    ("content_learned_names", "Server addresses that got a name from DNS", |of| of.content.names),
    ("content_enriched_requests", "Requests that got a field by header enrichment", |of| of.content.enriched),
    ("content_unenriched_requests", "Requests that were to get a field, and could not", |of| {
        of.content.unenriched
    }),
    ("worker_received_packets", "Packets taken from ports", |of| of.books.received),
    ("worker_created_packets", "Packets made by the engine", |of| of.books.created),
    ("worker_sent_packets", "Packets given to ports", |of| of.books.sent),
    ("worker_dropped_packets", "Packets dropped, whatever the reason", |of| of.books.dropped),
    ("worker_consumed_packets", "Packets to the engine itself", |of| of.books.consumed),
    ("worker_punted_packets", "Packets given to the kernel", |of| of.books.punted),
    ("worker_handed_in_packets", "Packets taken from other workers", |of| of.books.handed_in),
    ("worker_handed_out_packets", "Packets given to other workers", |of| of.books.handed_out),
];

fn by_worker(
    workers: &[WorkerStatistics],
    value: fn(&WorkerStatistics) -> u64,
) -> impl Iterator<Item = (Labels, u64)> {
    let numbered = workers.iter().enumerate();
    numbered.map(move |(number, worker)| (vec![("worker", number.to_string())], value(worker)))
}

fn ports(families: &mut Families<'_>, ports: &[PortStatistics]) -> fmt::Result {
    /// Name, help, and what is counted.
    type Family = (&'static str, &'static str, fn(&PortStatistics) -> u64);
    const ALL: [Family; 6] = [
        ("port_received_packets", "Packets received", |port| port.received),
        ("port_received_bytes", "Bytes received, from the Ethernet header on", |port| port.received_bytes),
        ("port_sent_packets", "Packets sent", |port| port.sent),
        ("port_sent_bytes", "Bytes sent, from the Ethernet header on", |port| port.sent_bytes),
        ("port_missed_packets", "Packets the device lost before they were received", |port| port.missed),
        ("port_unsent_packets", "Packets the device took and failed to send", |port| port.unsent),
    ];
    ALL.into_iter().try_for_each(|(name, help, count)| {
        let samples = ports.iter().map(|port| (vec![("port", port.name.clone())], count(port)));
        families.counter(name, help, samples)
    })?;
    let known = ports.iter().filter(|port| port.link != PortLink::Unknown);
    let is_up = known.map(|port| (vec![("port", port.name.clone())], u64::from(port.link == PortLink::Up)));
    families.gauge("port_link_up", "Whether packets get through the port", is_up)?;
    let samples = ports.iter().flat_map(|port| {
        let labels = |class: &str| vec![("port", port.name.clone()), ("class", class.to_owned())];
        let named = port.steering.classes.iter().zip(&port.classes);
        named.map(move |(class, received)| (labels(&class.name), *received))
    });
    families.counter("port_class_received_packets", "Packets received in a class of the port", samples)
}

/// Of ports that have an interface in the kernel.
fn punting(families: &mut Families<'_>, ports: &[PortStatistics]) -> fmt::Result {
    /// Name, help, and what is counted.
    type Family = (&'static str, &'static str, fn(&Punting) -> u64);
    const ALL: [Family; 3] = [
        ("port_punted_packets", "Packets given to the port's interface in the kernel", |of| of.punted),
        ("port_from_kernel_packets", "Packets that the kernel had sent by the port", |of| of.from_kernel),
        (
            "port_punt_refused_packets",
            "Packets given to the port's interface in the kernel that it did not take",
            |of| of.refused,
        ),
    ];
    ALL.into_iter().try_for_each(|(name, help, count)| {
        let samples = ports.iter().filter_map(|port| {
            let punting = port.punting.as_ref()?;
            let labels = vec![("port", port.name.clone()), ("interface", punting.interface.clone())];
            Some((labels, count(punting)))
        });
        families.counter(name, help, samples)
    })
}

/// Of ports that may have exact rules.
fn exact_rules(families: &mut Families<'_>, ports: &[PortStatistics]) -> fmt::Result {
    /// Name, help, and the value of a port.
    type Family = (&'static str, &'static str, fn(&ExactState) -> u64);
    const LEVELS: [Family; 2] = [
        ("port_exact_rules", "Exact rules in the card, which lead sessions to their workers", |of| {
            of.installed
        }),
        ("port_exact_rules_limit", "Exact rules the card has at most", |of| of.limit),
    ];
    const COUNTERS: [Family; 3] = [
        ("port_exact_rules_refused", "Tunnels and addresses that the card took no exact rule for", |of| {
            of.refused
        }),
        (
            "port_exact_rules_over_budget",
            "Tunnels and addresses there was no time to make an exact rule for",
            |of| of.over_budget,
        ),
        (
            "port_exact_rules_over_limit",
            "Tunnels and addresses for which there was no exact rule left",
            |of| of.over_limit,
        ),
    ];
    let samples = |value: fn(&ExactState) -> u64| {
        let all = ports.iter().filter_map(|port| Some((&port.name, port.steering.exact.as_ref()?)));
        all.map(move |(port, state)| (vec![("port", port.clone())], value(state)))
    };
    LEVELS.into_iter().try_for_each(|(name, help, value)| families.gauge(name, help, samples(value)))?;
    COUNTERS.into_iter().try_for_each(|(name, help, value)| families.counter(name, help, samples(value)))
}

fn nodes(families: &mut Families<'_>, workers: &[WorkerStatistics]) -> fmt::Result {
    /// Name, help, and what is counted.
    type Family = (&'static str, &'static str, fn(&NodeStatistics) -> u64);
    const ALL: [Family; 3] = [
        ("node_packets", "Packets a node of the graph handled", |node| node.packets),
        ("node_vectors", "Times a node of the graph ran", |node| node.vectors),
        ("node_cycles", "Time stamp counter cycles a node of the graph took", |node| node.cycles),
    ];
    ALL.into_iter().try_for_each(|(name, help, count)| {
        let samples = workers.iter().enumerate().flat_map(|(number, worker)| {
            let labels = move |node: &str| vec![("worker", number.to_string()), ("node", node.to_owned())];
            worker.nodes.iter().map(move |node| (labels(&node.name), count(node)))
        });
        families.counter(name, help, samples)
    })
}

/// Reasons that never occurred stand with 0: their first time is then seen as an increase.
fn drops(families: &mut Families<'_>, workers: &[WorkerStatistics]) -> fmt::Result {
    let samples = workers.iter().enumerate().flat_map(|(number, worker)| {
        DropReason::ALL.iter().map(move |reason| {
            let found = worker.drops.iter().find(|(name, _)| name == reason.name());
            let labels = vec![("worker", number.to_string()), ("reason", reason.name().to_owned())];
            (labels, found.map_or(0, |(_, count)| *count))
        })
    });
    families.counter("drops", "Packets dropped by reason", samples)
}
