//! `[dpe.limits]`: how much there is of what costs little, and is seldom short.

use super::timers::within;
use config::{Refusal, Spanned};
use dataplane::Limits;
use rules::BitRates;
use serde::Deserialize;

/// `[dpe.limits]`, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitSettings {
    kept: usize,
    kept_per_session: u16,
    kept_s: u64,
    peers: usize,
    neighbours: usize,
    held_per_neighbour: usize,
    shared_meters: usize,
    reassembled: usize,
    redirected_flows: usize,
    burst_ms: u64,
    catch_up_ms: u64,
    session_mbr_kbps: Option<u32>,
    punts_per_s: u32,
}

/// The table as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    kept: Option<Spanned<u32>>,
    kept_per_session: Option<Spanned<u32>>,
    kept_s: Option<Spanned<u32>>,
    peers: Option<Spanned<u32>>,
    neighbours: Option<Spanned<u32>>,
    held_per_neighbour: Option<Spanned<u32>>,
    shared_meters: Option<Spanned<u32>>,
    reassembled: Option<Spanned<u32>>,
    redirected_flows: Option<Spanned<u32>>,
    burst_ms: Option<Spanned<u32>>,
    catch_up_ms: Option<Spanned<u32>>,
    session_mbr_kbps: Option<Spanned<u32>>,
    punts_per_s: Option<Spanned<u32>>,
}

/// Makes settings of values that are in range.
pub(super) fn check(file: File) -> Result<LimitSettings, Refusal> {
    let usual = Limits::default();
    let number = |value, default: usize, range| Ok(within(value, default as u32, range)? as usize);
    let kept = number(file.kept, usual.kept, 16..=1_000_000)?;
    // One user alone may keep no more than all.
    let most = kept.min(usize::from(u16::MAX)) as u32;
    let per_session = u32::from(usual.kept_per_session).min(most);
    Ok(LimitSettings {
        kept,
        kept_per_session: within(file.kept_per_session, per_session, 1..=most)? as u16,
        kept_s: within(file.kept_s, (usual.kept_ns / 1_000_000_000) as u32, 1..=3_600)?.into(),
        peers: number(file.peers, usual.peers, 16..=65_536)?,
        neighbours: number(file.neighbours, usual.neighbours, 16..=65_536)?,
        held_per_neighbour: number(file.held_per_neighbour, usual.held_per_neighbour, 1..=256)?,
        shared_meters: number(file.shared_meters, usual.meters_apart, 16..=1_000_000)?,
        reassembled: number(file.reassembled, usual.reassembled, 4..=1_024)?,
        redirected_flows: number(file.redirected_flows, usual.redirections, 512..=4_194_304)?,
        burst_ms: within(file.burst_ms, (usual.burst_ns / 1_000_000) as u32, 1..=2_000)?.into(),
        catch_up_ms: within(file.catch_up_ms, (usual.catch_up_ns / 1_000_000) as u32, 0..=1_000)?.into(),
        session_mbr_kbps: file
            .session_mbr_kbps
            .map(|kbps| within(Some(kbps), 0, 1..=u32::MAX))
            .transpose()?,
        punts_per_s: within(file.punts_per_s, usual.punts_per_s, 1..=1_000_000)?,
    })
}

impl LimitSettings {
    /// These in place of the usual ones.
    pub(crate) fn within(self, limits: Limits) -> Limits {
        Limits {
            kept: self.kept,
            kept_per_session: self.kept_per_session,
            kept_ns: self.kept_s * 1_000_000_000,
            peers: self.peers,
            neighbours: self.neighbours,
            held_per_neighbour: self.held_per_neighbour,
            meters_apart: self.shared_meters,
            reassembled: self.reassembled,
            redirections: self.redirected_flows,
            burst_ns: self.burst_ms * 1_000_000,
            catch_up_ns: self.catch_up_ms * 1_000_000,
            session_mbr: self
                .session_mbr_kbps
                .map(u64::from)
                .map(|kbps| BitRates { uplink_kbps: kbps, downlink_kbps: kbps }),
            punts_per_s: self.punts_per_s,
            ..limits
        }
    }
}
