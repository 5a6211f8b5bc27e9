//! What a configuration asks of its host.

use crate::settings::{DpeSettings, HugePages};
use dpdk::Idle;
use host::{Node, NodePort};

/// The node of `[dpe]`.
pub(crate) fn node(dpe: &DpeSettings) -> Node {
    let port = |port: &crate::settings::PortSettings| NodePort {
        name: port.name.clone(),
        device: port.device.clone(),
    };
    Node {
        workers: dpe.crew.cpus.clone(),
        worker_count: dpe.crew.workers,
        memory_mb: dpe.memory_mb,
        huge_pages: dpe.huge_pages != HugePages::Never,
        required: dpe.huge_pages == HugePages::Require,
        spinning: dpe.idle != Idle::Sleep,
        sessions: dpe.sessions,
        flows: dpe.flows,
        ports: dpe.ports.iter().map(port).collect(),
    }
}
