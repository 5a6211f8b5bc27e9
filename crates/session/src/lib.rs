//! The session database: what must outlive the control plane engine.
//!
//! Records are plain values; a [`Store`] keeps them. Every producer of rules writes its sessions here before it
//! answers, so a control plane engine that restarts goes on where it stopped.

mod charge;
mod packed;
mod record;
mod store;
mod usage;

pub use charge::{ChargingRecord, LostCdrs, OwnMeter};
pub use packed::Packed;
pub use record::{
    AssociationRecord, CpFSeid, EndingSet, Extras, LifeRecord, NodeRecord, PathRecord, PeerNews, PfdRecord,
    PredefinedRecord, SessionRecord, ToldRecord, TrafficEndpoint,
};
pub use store::{Change, Contents, Store, StoreError};
pub use usage::{
    AnswerKind, AnswerRecord, Counts, Inactivity, MacRecord, Monitored, StartRecord, ToldMacs, UrrUsage,
    UsageRecord, Used,
};
