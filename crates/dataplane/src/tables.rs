//! What the tables of a data path take of memory.

use crate::config::Limits;
use crate::engine::{Heaps, Placement, Register};
use crate::state::{Sessions, flow_table_bytes};
use crate::steering::{Crew, directory_bytes};

/// Bytes of the tables of all workers and of the engine, as far as they grow with [`Limits::sessions`], [`Limits::flows`]
/// and [`Limits::pdrs`], and of what rules take besides: there is never more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableBytes {
    /// For sessions of two PDRs, a QER and a URR: taken when the data path starts.
    pub sessions: u64,
    /// For flows: likewise.
    pub flows: u64,
    /// For the PDRs beyond two a session, for lists of several QERs and URRs, for places that have been given back, and where
    /// there are several workers for who has which keys: taken as they come, and this when there are as many as there may be.
    pub pdrs: u64,
    /// For names and limits of accounts, what finds a packet's PDR, and texts: [`Limits::rule_bytes`], taken as rules come, and what
    /// is known of how much each session takes.
    pub rules: u64,
}

impl TableBytes {
    /// Of the workers of a crew, which share these limits.
    pub fn of(crew: &Crew, limits: &Limits) -> Self {
        let own = crew.share(limits);
        let known = Sessions::tables(own.sessions).iter().map(|(_, bytes)| bytes).sum::<usize>();
        let of_others = directory_bytes(own.sessions * crew.workers.saturating_sub(1));
        let owners = crew.workers.saturating_sub(crew.distributors);
        let all = |workers: usize, bytes: usize| (workers as u64).saturating_mul(bytes as u64);
        Self {
            sessions: all(crew.workers, known + of_others) + Register::bytes(limits.sessions) as u64,
            flows: all(crew.workers, flow_table_bytes(own.flows)),
            pdrs: all(owners, Sessions::pdr_bytes(own.sessions, own.pdrs))
                + Placement::bytes(crew.workers, limits.sessions) as u64,
            rules: limits.rule_bytes.map_or(0, |bytes| bytes.saturating_add(Heaps::bytes(limits.sessions)))
                as u64,
        }
    }
}
