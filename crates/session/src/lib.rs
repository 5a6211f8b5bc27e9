//! The session database: what must outlive the control plane engine.
//!
//! Records are plain values; a store keeps them. Every producer of rules writes its sessions here before it answers,
//! so a control plane engine that restarts goes on where it stopped.

mod record;

pub use record::{AssociationRecord, CpFSeid, NodeRecord, SessionRecord};
