//! The data path: a graph of small nodes that a worker runs over vectors of packets.
//!
//! A [`Worker`] owns its sessions, neighbours and counters alone; nothing in the packet path is shared, locked or
//! atomic. The [`Engine`] is its other end: it takes [`dplink::Command`]s, hands the worker compiled programs over a
//! ring, and turns what comes back into [`dplink::Notice`]s. Nothing here does input or output: ports are anything
//! that implements [`Port`], time comes in with the vector, so the whole path runs in a test.

mod arrangement;
mod config;
mod content;
mod counters;
mod cpu;
#[cfg(test)]
mod differential;
mod engine;
mod explain;
mod fair_share;
#[cfg(test)]
mod fixture;
mod frame;
#[cfg(test)]
mod golden;
mod graph;
mod held;
mod install;
mod kept;
mod lasting;
mod nodes;
mod own_limit;
mod port;
mod punt;
mod receipt;
mod shape;
mod side;
mod state;
mod steering;
mod summary;
mod tables;
#[cfg(test)]
mod tests;
mod trace;
mod worker;

pub use config::{Config, ConfigError, Echo, Limits, PolicyConfig, PortConfig, Route};
pub use content::{ChargingKey, ContentError, ContentRules};
pub use counters::{Counters, DropReason, NodeCounters, PortCounters};
pub use engine::{Directors, Engine, EngineError, Lead};
pub use fair_share::{GaveWay, NAMED_MAX};
pub use frame::VECTOR;
pub use graph::NodeId;
pub use lasting::{Former, Lasting, Learned, LearnedFlow, Legacy};
pub use port::{CLASSES_MAX, Port};
pub use punt::Punts;
pub use state::{ContentCounts, PathCounts, flow_table_bytes};
pub use steering::{Balance, Crew};
pub use tables::TableBytes;
pub use worker::{Clock, Worker, connect, connect_crew, connect_placed};
