//! What several workers say, as one.

use crate::config::PortConfig;
use crate::counters::Counters;
use crate::fair_share::GaveWay;
use crate::graph::NodeId;
use crate::port::CLASSES_MAX;
use crate::state::ContentCounts;
use crate::steering::steward;
use dplink::{
    ContentStatistics, Explanation, PathStatistics, PeerStatistics, PortLink, PortStatistics, PortSteering,
    Punting, Spread, Statistics, Trace, TracedPacket, WorkerStatistics,
};
use rules::Interface;
use std::collections::HashMap;
use std::net::IpAddr;

/// What a worker counted, and its sessions.
pub(super) type Counted = (Box<Counters>, usize);

/// Ports count for all workers together, everything else for each.
pub(super) fn statistics(
    (ports, spread): (&[PortConfig], &[Spread]),
    counted: &[Counted],
    uptime_ms: u64,
) -> Statistics {
    let port = |(at, config): (usize, &PortConfig)| {
        let of_workers = || counted.iter().filter_map(|(counters, _)| counters.ports.get(at));
        PortStatistics {
            name: config.name.clone(),
            device: config.device.clone(),
            received: of_workers().map(|port| port.received).sum(),
            received_bytes: of_workers().map(|port| port.received_bytes).sum(),
            sent: of_workers().map(|port| port.sent).sum(),
            sent_bytes: of_workers().map(|port| port.sent_bytes).sum(),
            missed: of_workers().map(|port| port.missed).sum(),
            // Who opened the port says it.
            unsent: 0,
            link: PortLink::default(),
            punting: config.punt.as_ref().map(|interface| Punting {
                interface: interface.clone(),
                punted: of_workers().map(|port| port.punted).sum(),
                from_kernel: of_workers().map(|port| port.from_kernel).sum(),
                // Who has the interface says it.
                refused: 0,
            }),
            spread: spread.get(at).copied().unwrap_or_default(),
            // Who opened the port says it.
            steering: PortSteering::default(),
            classes: (0..CLASSES_MAX)
                .map(|class| of_workers().filter_map(|port| port.classes.get(class)).sum())
                .collect(),
        }
    };
    Statistics {
        uptime_ms,
        sessions: counted.iter().map(|(_, sessions)| *sessions as u64).sum(),
        ports: ports.iter().enumerate().map(port).collect(),
        workers: counted.iter().map(|(counters, sessions)| worker(counters, *sessions as u64)).collect(),
        // Who runs the workers says it.
        idle: Vec::new(),
    }
}

fn worker(counters: &Counters, sessions: u64) -> WorkerStatistics {
    WorkerStatistics {
        sessions,
        // Who places sessions says it.
        busy_permille: 0,
        flows: counters.flows,
        pdrs: counters.pdrs,
        pdrs_most: counters.pdrs_most,
        paths: PathStatistics {
            peers: counters.paths.peers,
            failed: counters.paths.failed,
            echo_requests: counters.paths.requests,
            echo_responses: counters.paths.responses,
            failures: counters.paths.failures,
            restarts: counters.paths.restarts,
        },
        content: content(&counters.content),
        books: counters.books(),
        nodes: counters.named_nodes(),
        drops: counters.named_drops(),
        gave_way: counters.gave_way.iter().map(|GaveWay { user, packets }| (*user, *packets)).collect(),
    }
}

const fn content(counts: &ContentCounts) -> ContentStatistics {
    let ContentCounts { revision, waiting, detected, undetected, encrypted, displaced, names, .. } = *counts;
    let ContentCounts { enriched, unenriched, .. } = *counts;
    ContentStatistics {
        revision,
        waiting,
        detected,
        undetected,
        encrypted,
        displaced,
        names,
        enriched,
        unenriched,
    }
}

/// A peer is the worker's that asks it whether it is there; tunnels of all lead to it.
pub(super) fn peers(lists: Vec<Vec<PeerStatistics>>) -> Vec<PeerStatistics> {
    let workers = lists.len() as u8;
    let mut merged: Vec<PeerStatistics> = Vec::new();
    let mut places: HashMap<(Interface, IpAddr), usize> = HashMap::new();
    for (worker, peer) in
        (0..).zip(lists).flat_map(|(worker, list)| list.into_iter().map(move |peer| (worker, peer)))
    {
        let name = (peer.side, peer.address);
        let at = *places.entry(name).or_insert(merged.len());
        match merged.get_mut(at) {
            None => merged.push(peer),
            Some(known) => {
                let tunnels = known.tunnels + peer.tunnels;
                let path_mtu = known.path_mtu.into_iter().chain(peer.path_mtu).min();
                let knows = worker == steward(name, workers);
                *known = PeerStatistics { tunnels, path_mtu, ..if knows { peer } else { known.clone() } };
            }
        }
    }
    merged
}

/// The first so many packets that any worker saw.
pub(super) fn traces(traces: Vec<Trace>, limit: usize) -> Trace {
    let looked_at = traces.iter().map(|trace| trace.looked_at).sum();
    let lasted_ms = traces.iter().map(|trace| trace.lasted_ms).max().unwrap_or(0);
    let mut packets: Vec<_> = traces.into_iter().flat_map(|trace| trace.packets).collect();
    // Of one moment, what came in goes before what was handed over.
    let came_in =
        |packet: &TracedPacket| packet.nodes.first().is_some_and(|node| node == NodeId::UsualInput.name());
    packets.sort_by_key(|packet| (packet.after_us, !came_in(packet)));
    packets.truncate(limit);
    Trace { packets, looked_at, lasted_ms }
}

/// That of the worker that knows the session.
pub(super) fn explanation(explanations: Vec<Explanation>) -> Option<Explanation> {
    let mut explanations: Vec<_> = explanations;
    let knows = explanations.iter().position(|explanation| explanation.session.is_some());
    let at = knows.unwrap_or(0);
    (at < explanations.len()).then(|| explanations.swap_remove(at))
}
