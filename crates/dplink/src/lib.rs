//! The contract between the control plane engine (CPE) and a data plane engine (DPE).
//!
//! They meet only through state. The CPE says what each session should be ([`Command::Put`]), the DPE says what
//! it now is ([`Notice::Applied`]); either may restart at any time, and a resynchronisation ([`Command::ResyncBegin`]
//! to [`Command::ResyncEnd`]) removes whatever the CPE no longer names. Messages are `postcard` values in frames of
//! a Unix stream socket ([`frame`]).

mod balance;
mod explain;
pub mod frame;
mod hex;
mod message;
mod statistics;
mod trace;
mod usage;

pub use balance::{
    BalanceMode, Balancing, Destination, Measure, Move, MoveCause, Placements, Step, Whose, WorkerLoad,
};
pub use explain::{
    ExplainedAction, ExplainedApplication, ExplainedHop, ExplainedQer, ExplainedTunnel, ExplainedUrr,
    Explanation, Outcome, Question,
};
pub use message::{Command, ContentPart, Desired, Event, Notice, Placed, RefusalCause, Role, VERSION};
pub use statistics::{
    Books, ContentStatistics, NodeStatistics, PathState, PathStatistics, PeerStatistics, PortClass, PortLink,
    PortPlacement, PortStatistics, PortSteering, Punting, Spread, Statistics, WorkerIdle, WorkerStatistics,
};
pub use trace::{
    IpSummary, PacketSummary, TRACE_PACKETS_MAX, TRACE_SECONDS_MAX, Trace, TraceEnd, TraceFilter,
    TracePartEnd, TracedPacket, TracedParts, TunnelSummary,
};
pub use usage::{Start, UsageCause, UsageCounts};
