//! NUMA nodes: packet memory, queues and workers' tables are to be on the node of the device or worker that uses them. What is
//! not is said, and costs time and nothing else.

use crate::doctor;
use crate::settings::DpeSettings;
use dpdk::{Eal, Error, Mempool, MempoolConfig, Preference};
use dplink::PortPlacement;
use host::{Facts, Placement, Root};
use std::path::Path;

/// Bytes of memory one packet takes in a pool: data room, mbuf and the pool's own header.
const PACKET_BYTES: u32 = 2_048 + 128 + 128 + 64;
/// Most packets of a pool.
const PACKETS_MAX: u32 = 262_143;

/// Pools of packets, one for each node that ports' packets belong on.
pub(super) struct Pools(Vec<(Option<u32>, Mempool)>);

/// Where the parts of this node belong on this machine.
pub(super) fn placement(dpe: &DpeSettings) -> Placement {
    Placement::new(&Facts::read(&Root::at(Path::new("/"))), &doctor::node(dpe))
}

/// For DPDK: nodes, each with its part of packet memory in MiB.
pub(super) fn memory(placement: &Placement) -> Vec<(u32, u32)> {
    placement.memory_mb.iter().filter_map(|(node, part)| Some((number(*node)?, *part))).collect()
}

fn number(node: usize) -> Option<u32> {
    u32::try_from(node).ok()
}

/// How many packets there are memory for: half of it is theirs, the rest is for queues, rings and what drivers want.
fn capacity(memory_mb: u32) -> u32 {
    let bytes = u64::from(memory_mb) * (1 << 20) / 2 / u64::from(PACKET_BYTES);
    u32::try_from(bytes).unwrap_or(u32::MAX).min(PACKETS_MAX)
}

impl Pools {
    /// One for each node of the placement, or a single one.
    ///
    /// # Errors
    /// Without the memory.
    pub(super) fn make(eal: &Eal, placement: &Placement, memory_mb: u32) -> Result<Self, Error> {
        let parts: Vec<(Option<u32>, u32)> = match memory(placement) {
            nodes if nodes.is_empty() => vec![(None, memory_mb)],
            nodes => nodes.into_iter().map(|(node, part)| (Some(node), part)).collect(),
        };
        let pool = |(node, part): (Option<u32>, u32)| {
            let config = MempoolConfig { capacity: capacity(part), node, ..MempoolConfig::default() };
            Ok((node, Mempool::new(eal, config)?))
        };
        Ok(Self(parts.into_iter().map(pool).collect::<Result<_, Error>>()?))
    }

    /// That of a port, by the node its packets belong on; the first where they belong nowhere.
    pub(super) fn of(&self, packets: Option<usize>) -> Option<&Mempool> {
        let node = packets.and_then(number);
        let own = self.0.iter().find(|(of, _)| *of == node);
        own.or_else(|| self.0.first()).map(|(_, pool)| pool)
    }
}

/// Has the memory that the calling thread touches first be on the node of a worker, until the next or until this is dropped.
#[derive(Default)]
pub(super) struct Beside(Option<Preference>);

impl Beside {
    /// A worker; of one that may run anywhere, memory is wherever there is some.
    pub(super) fn worker(&mut self, placement: &Placement, worker: usize) {
        self.move_to(placement.workers.get(worker).copied().flatten());
    }

    /// Beside all workers, if they are on one node: rules that the engine compiles are read by them.
    pub(super) fn all_workers(placement: &Placement) -> Self {
        let mut beside = Self::default();
        beside.move_to(placement.of_workers());
        beside
    }

    fn move_to(&mut self, node: Option<usize>) {
        // What was before comes back first.
        self.0 = None;
        self.0 = node.and_then(number).and_then(Preference::of);
    }
}

/// Where the parts of a port are.
pub(super) fn told(placement: &Placement, port: usize, packets: Vec<u32>) -> PortPlacement {
    let of = |nodes: &[Option<usize>]| nodes.get(port).copied().flatten().and_then(number);
    let mut workers: Vec<u32> = placement.workers.iter().copied().flatten().filter_map(number).collect();
    workers.sort_unstable();
    workers.dedup();
    let device = of(&placement.devices);
    let apart = apart((device, of(&placement.packets)), &packets, &workers);
    PortPlacement { device, packets, workers, apart }
}

fn apart((device, belong): (Option<u32>, Option<u32>), packets: &[u32], workers: &[u32]) -> Vec<String> {
    let mut apart = Vec::new();
    if let Some(node) = belong.filter(|node| packets.iter().any(|other| other != node)) {
        apart.push(format!(
            "its packets belong on node {node} and are in memory of {}: reserve huge pages there before the start \
             (anchorline tune --config FILE --apply)",
            nodes(packets)
        ));
    }
    if let Some(node) = device.filter(|node| workers.iter().any(|other| other != node)) {
        apart.push(format!(
            "its device is on node {node} and workers on {}: name CPUs of node {node}",
            nodes(workers)
        ));
    }
    apart
}

/// Their numbers, for people.
pub(crate) fn nodes(numbers: &[u32]) -> String {
    let noun = if numbers.len() == 1 { "node" } else { "nodes" };
    format!("{noun} {}", numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_nodes() -> Placement {
        Placement {
            devices: vec![Some(1), None],
            workers: vec![Some(1), Some(0), Some(1), None],
            packets: vec![Some(1), None],
            memory_mb: vec![(1, 512)],
        }
    }

    #[test]
    fn what_is_on_another_node_is_told() {
        let told = told(&two_nodes(), 0, vec![0]);
        assert_eq!((told.device, &told.packets[..], &told.workers[..]), (Some(1), &[0][..], &[0, 1][..]));
        let [packets, workers] = &told.apart[..] else { panic!("{told:?}") };
        assert!(
            packets.starts_with("its packets belong on node 1 and are in memory of node 0: reserve huge"),
            "{packets}"
        );
        assert!(
            workers.starts_with("its device is on node 1 and workers on nodes 0, 1: name CPUs"),
            "{workers}"
        );
    }

    #[test]
    fn what_is_where_it_belongs_or_belongs_nowhere_is_not() {
        let placement = Placement { workers: vec![Some(1)], ..two_nodes() };
        assert_eq!(told(&placement, 0, vec![1]).apart, Vec::<String>::new());
        // The kernel may not say, and a device in software is nowhere.
        assert_eq!(told(&placement, 0, vec![]).apart, Vec::<String>::new());
        assert_eq!(told(&two_nodes(), 1, vec![0, 1]).apart, Vec::<String>::new());
        assert_eq!(told(&Placement::default(), 0, vec![0]).apart, Vec::<String>::new());
    }

    #[test]
    fn half_of_the_memory_is_for_packets() {
        assert_eq!((capacity(1), capacity(256), capacity(u32::MAX)), (221, 56_679, PACKETS_MAX));
    }

    #[test]
    fn memory_is_on_each_workers_node_in_turn() {
        let mut beside = Beside::default();
        beside.worker(&two_nodes(), 3);
        assert!(beside.0.is_none(), "it may run anywhere");
        // Every machine has this one, if its kernel knows any.
        let has_nodes = Path::new("/sys/devices/system/node/node0").exists();
        beside.worker(&two_nodes(), 1);
        assert_eq!(beside.0.is_some(), has_nodes);
        assert!(Beside::all_workers(&two_nodes()).0.is_none(), "they are on two");
        beside.worker(&two_nodes(), 9);
        assert!(beside.0.is_none());
    }
}
