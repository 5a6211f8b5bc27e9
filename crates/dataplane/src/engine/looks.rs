//! What is asked of all workers and changes nothing: lists of peers, and traces.

use super::placement::Owner;
use super::rounds::Rounds;
use super::{Engine, merge};
use crate::trace::Tracer;
use crate::worker::{Listing, Order};
use dplink::{Event, Notice, PathState, PeerStatistics, Trace, TraceFilter};
use rules::{Rules, Triggers, Urr, Volume};

/// A trace that runs in all workers.
pub(super) struct Tracing {
    token: u64,
    packets: usize,
    parts: Rounds<Trace>,
}

impl Engine {
    pub(super) fn list_peers(&mut self, token: Option<u64>) {
        self.lists.ask(token, self.hands.len());
        let peers = self.peers;
        self.order_all(|| Order::List(Box::new(Listing::new(peers, token))));
    }

    /// Goes on with a list until it is whole, at every worker.
    pub(super) fn listed(&mut self, worker: usize, listing: Box<Listing>) -> Vec<Notice> {
        if listing.from.is_some() {
            self.order(worker as Owner, Order::List(listing));
            return Vec::new();
        }
        let Listing { peers, token, .. } = *listing;
        let Some(lists) = self.lists.answer(token, worker, peers) else { return Vec::new() };
        let peers = merge::peers(lists);
        if let Some(token) = token {
            return vec![Notice::Peers { token, peers }];
        }
        let failed = peers.into_iter().filter(|peer| peer.path == PathState::Failed);
        let told = |peer: PeerStatistics| Event::Path { side: peer.side, remote: peer.address, failed: true };
        failed.map(told).map(Notice::Event).collect()
    }

    pub(super) fn trace(&mut self, token: u64, filter: &TraceFilter) -> Result<(), String> {
        if self.tracing.is_some() {
            return Err("another trace is under way; it ends by itself".to_owned());
        }
        let tracer = || Tracer::new(&self.ports, filter).map(Box::new);
        let tracers = self.hands.iter().map(|_| tracer()).collect::<Result<Vec<_>, _>>()?;
        let mut parts = Rounds::new();
        parts.ask(None, tracers.len());
        self.tracing = Some(Tracing { token, packets: filter.packets.into(), parts });
        for (worker, tracer) in (0..).zip(tracers) {
            self.order(worker, Order::Trace(Some(tracer)));
        }
        Ok(())
    }

    /// Ends the trace of this token now, if it is under way: nobody waits for it any more.
    pub fn end_trace(&mut self, token: u64) {
        if self.tracing.as_ref().is_some_and(|tracing| tracing.token == token) {
            self.order_all(|| Order::Trace(None));
        }
    }

    /// A worker's part of a trace is over; where it saw as many packets as were asked for, so is the whole.
    pub(super) fn traced(&mut self, worker: usize, tracer: Tracer) -> Option<Notice> {
        let tracing = self.tracing.as_mut()?;
        let (token, limit) = (tracing.token, tracing.packets);
        let part = tracer.into_trace((&self.ports, &self.policies));
        let is_enough = part.packets.len() >= limit;
        if let Some(parts) = tracing.parts.answer(None, worker, part) {
            self.tracing = None;
            return Some(Notice::Trace { token, outcome: Ok(merge::traces(parts, limit)) });
        }
        if is_enough {
            self.order_all(|| Order::Trace(None));
        }
        None
    }
}

/// Whether a control plane waits to hear of a session's packets that do not get to the user, of traffic that begins, or of packets
/// that miss a quota of nothing: counts do not say that.
pub(super) fn asks_to_hear(rules: &Rules) -> bool {
    let starts = |urr: &Urr| urr.triggers.contains(Triggers::START_OF_TRAFFIC);
    let is_nothing = |quota: Volume| [quota.total, quota.uplink, quota.downlink].contains(&Some(0));
    let misses = |urr: &Urr| urr.volume_quota.is_some_and(is_nothing);
    rules.fars.iter().any(rules::Far::notifies) || rules.urrs.iter().any(|urr| starts(urr) || misses(urr))
}
