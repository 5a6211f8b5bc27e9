//! Which NUMA nodes a data plane's parts are on, and which its packet memory belongs on.

use crate::{Facts, Nic, Node, NodePort};

/// Packet memory is shared out in pieces of a huge page, in MiB.
const PIECE_MB: u32 = 2;

/// By NUMA node. On a machine of one node, or that shows none, everything is where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Of each port's device, in the order of the configuration; `None` of one that is on none, or not known.
    pub devices: Vec<Option<usize>>,
    /// Of each worker's CPU; `None` of one that may run anywhere.
    pub workers: Vec<Option<usize>>,
    /// Where each port's packets belong: on the node of its device, else of the workers if that is one; `None`: anywhere.
    pub packets: Vec<Option<usize>>,
    /// Nodes that packet memory belongs on, ascending, each with its part of it in MiB; empty: anywhere.
    pub memory_mb: Vec<(usize, u32)>,
}

impl Placement {
    /// Of what a node is configured for on this host.
    pub fn new(facts: &Facts, node: &Node) -> Self {
        let workers: Vec<_> = (0..node.worker_count.max(node.workers.len()))
            .map(|worker| facts.topology.node_of(*node.workers.get(worker)?))
            .collect();
        let devices: Vec<_> = node.ports.iter().map(|port| nic(facts, port)?.numa_node).collect();
        if facts.topology.nodes.len() < 2 {
            let packets = devices.iter().map(|_| None).collect();
            return Self { devices, workers, packets, memory_mb: Vec::new() };
        }
        let of_workers = only(&workers);
        let packets: Vec<_> = devices.iter().map(|device| device.or(of_workers)).collect();
        let memory_mb = shares(&packets, of_workers, node.memory_mb);
        Self { devices, workers, packets, memory_mb }
    }

    /// The node of all workers, if it is one.
    pub fn of_workers(&self) -> Option<usize> {
        only(&self.workers)
    }
}

/// The node of all, if it is one and known of all.
fn only(nodes: &[Option<usize>]) -> Option<usize> {
    let first = nodes.first().copied().flatten()?;
    nodes.iter().all(|node| *node == Some(first)).then_some(first)
}

/// Each port has as much as any other, those that are on no node with the first that is.
fn shares(packets: &[Option<usize>], of_workers: Option<usize>, memory_mb: u32) -> Vec<(usize, u32)> {
    let mut nodes: Vec<usize> = packets.iter().copied().flatten().collect();
    nodes.sort_unstable();
    nodes.dedup();
    let Some(first) = nodes.first().copied().or(of_workers) else { return Vec::new() };
    let ports = u32::try_from(packets.len()).unwrap_or(u32::MAX).max(1);
    let part = |node: usize| {
        let count = packets.iter().filter(|other| **other == Some(node)).count();
        let part_mb = u64::from(memory_mb) * count as u64 / u64::from(ports);
        u32::try_from(part_mb).unwrap_or(u32::MAX) / PIECE_MB * PIECE_MB
    };
    let others: Vec<(usize, u32)> =
        nodes.iter().filter(|node| **node != first).map(|node| (*node, part(*node))).collect();
    let rest = others.iter().fold(memory_mb, |rest, (_, part)| rest.saturating_sub(*part));
    [(first, rest)].into_iter().chain(others).collect()
}

/// The card of a port: by its PCI address, or by the kernel's interface over it.
pub(crate) fn nic<'a>(facts: &'a Facts, port: &NodePort) -> Option<&'a Nic> {
    match port.pci() {
        Some(address) => facts.nics.iter().find(|nic| nic.address == address),
        None => facts
            .nics
            .iter()
            .find(|nic| nic.interfaces.iter().any(|name| Some(name.as_str()) == port.interface())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_memory_is_shared_out_by_ports() {
        for (packets, of_workers, expected) in [
            (&[Some(0), Some(0)][..], None, &[(0, 1_000)][..]),
            (&[Some(1), Some(1)], Some(0), &[(1, 1_000)]),
            (&[Some(1), Some(0)], None, &[(0, 500), (1, 500)]),
            // In whole pages, and nothing is left over.
            (&[Some(0), Some(1), Some(2)], None, &[(0, 336), (1, 332), (2, 332)]),
            (&[Some(1), None, None, Some(3)], None, &[(1, 750), (3, 250)]),
            (&[None, None], Some(1), &[(1, 1_000)]),
            (&[None, None], None, &[]),
            (&[], Some(1), &[(1, 1_000)]),
        ] {
            assert_eq!(shares(packets, of_workers, 1_000), expected, "{packets:?} {of_workers:?}");
        }
    }

    #[test]
    fn workers_have_one_node_only_if_all_are_there() {
        assert_eq!(only(&[Some(1), Some(1)]), Some(1));
        for nodes in [&[Some(0), Some(1)][..], &[Some(1), None], &[None], &[]] {
            assert_eq!(only(nodes), None, "{nodes:?}");
        }
    }
}
