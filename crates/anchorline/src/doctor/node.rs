//! What a configuration asks of its host.

use crate::dpe::table_limits;
use crate::settings::{DpeSettings, HugePages};
use dataplane::{Crew, TableBytes};
use dpdk::Idle;
use host::{Node, NodePort};

/// Bytes of a session in the control process, its share of the database's memory included: 1,500 of a plain one.
const CONTROL_BYTES: u64 = 2_048;

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
        idle: match dpe.idle {
            Idle::Poll => host::Idle::Poll,
            Idle::Pause => host::Idle::Pause,
            Idle::Sleep => host::Idle::Sleep,
            Idle::Monitor => host::Idle::Monitor,
            Idle::Scale => host::Idle::Scale,
        },
        sessions: dpe.sessions,
        pdrs: dpe.pdrs,
        flows: dpe.flows,
        tables: tables(dpe),
        ports: dpe.ports.iter().map(port).collect(),
    }
}

/// What the tables take, as the data plane says.
fn tables(dpe: &DpeSettings) -> host::Tables {
    let crew = Crew { workers: dpe.crew.workers, distributors: dpe.crew.distributors, ..Crew::default() };
    let TableBytes { sessions, flows, pdrs, rules } = TableBytes::of(&crew, &table_limits(dpe));
    host::Tables {
        sessions_bytes: sessions,
        flows_bytes: flows,
        pdrs_bytes: pdrs,
        rules_bytes: rules,
        control_bytes: dpe.sessions as u64 * CONTROL_BYTES,
    }
}
