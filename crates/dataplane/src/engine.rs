//! The control side of a worker: commands in, notices out. No socket, clock or thread.

use crate::config::{Config, PortConfig};
use crate::content::ContentRules;
use crate::counters::Counters;
use crate::explain::Explain;
use crate::install::installation;
use crate::state::{ContentCounts, Loading, Memory};
use crate::trace::Tracer;
use crate::worker::{Listing, Order, Query, Report};
use dplink::{
    Command, ContentStatistics, Desired, Event, Notice, PathState, PathStatistics, PeerStatistics,
    PortStatistics, Statistics, TraceFilter, UsageCause, VERSION, WorkerStatistics,
};
use rtrb::{Consumer, Producer};
use rules::Seid;
use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;

/// Orders waiting for room in the ring before commands should no longer be read.
const BACKLOG: usize = 4_096;

/// A command that cannot be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The two sides were built from different versions.
    #[error("the other side speaks version {0} of the link, this data plane version {VERSION}")]
    Version(u16),
}

/// A session's revision plus one, so that none takes no memory.
type Revision = NonZeroU64;

fn known_as(revision: u64) -> Option<Revision> {
    NonZeroU64::new(revision.wrapping_add(1))
}

const _: () = assert!(size_of::<Known>() == 24, "there are as many as sessions");

/// What is known of a session.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The revision in force.
    applied: Option<Revision>,
    /// The revision last sent to the worker.
    ordered: Option<Revision>,
    /// URRs of that revision, or of the one before if it had more.
    urrs: u16,
}

/// Controls one worker.
pub struct Engine {
    ports: Vec<PortConfig>,
    peers: usize,
    epoch: u64,
    orders: Producer<Order>,
    reports: Consumer<Report>,
    backlog: VecDeque<Order>,
    known: HashMap<Seid, Known>,
    /// While a resynchronisation runs: the sessions named in it.
    named: Option<HashSet<Seid>>,
    counting: bool,
    /// The token of the trace under way.
    tracing: Option<u64>,
    /// The content rules ordered last.
    content: Option<Arc<ContentRules>>,
    /// Flows a worker looks at, and the seed of its tables.
    inspections: (usize, u64),
}

impl Engine {
    pub(crate) fn new(config: &Config, orders: Producer<Order>, reports: Consumer<Report>) -> Self {
        Self {
            ports: config.ports.clone(),
            peers: config.limits.peers,
            epoch: config.epoch,
            orders,
            reports,
            backlog: VecDeque::new(),
            known: HashMap::new(),
            named: None,
            counting: false,
            tracing: None,
            content: None,
            inspections: (config.limits.inspections, config.seed),
        }
    }

    /// Obeys a command; what can be answered at once is.
    ///
    /// # Errors
    /// A peer that must be disconnected.
    pub fn handle(&mut self, command: Command) -> Result<Option<Notice>, EngineError> {
        Ok(match command {
            Command::Hello { version, .. } if version != VERSION => {
                return Err(EngineError::Version(version));
            }
            Command::Hello { .. } => Some(Notice::Hello {
                version: VERSION,
                sessions: self.known.len() as u64,
                epoch: self.epoch,
                content: self.content.as_ref().map_or(0, |rules| rules.revision()),
            }),
            Command::ResyncBegin => {
                self.named = Some(HashSet::new());
                None
            }
            Command::ResyncEnd => {
                // What failed while nobody listened was told to nobody.
                self.list_peers(None);
                Some(Notice::Resynced { swept: self.sweep() })
            }
            Command::Put(desired) => self.put(desired),
            Command::Delete { session } => {
                self.remove(session);
                None
            }
            Command::QueryUsage { session, urrs, token, is_reported } => {
                let counts = Vec::with_capacity(self.urrs(session));
                self.order(Order::Query(Box::new(Query { seid: session, urrs, token, is_reported, counts })));
                None
            }
            // To build rules takes long: whoever has the engine does that, and calls `load`.
            Command::PutContent(_) => None,
            Command::GetStatistics => {
                self.count();
                None
            }
            Command::GetPeers { token } => {
                self.list_peers(Some(token));
                None
            }
            Command::Trace { token, filter } => {
                let refused = self.trace(token, &filter).err();
                refused.map(|reason| Notice::Trace { token, outcome: Err(reason) })
            }
            Command::Explain { token, question } => {
                self.order(Order::Explain(Box::new(Explain::new(token, question))));
                None
            }
        })
    }

    /// Whether more commands can be taken; where not, read them later.
    pub fn has_room(&self) -> bool {
        self.backlog.len() < BACKLOG
    }

    /// Puts content rules in force, which [`Notice::ContentLoaded`] confirms.
    pub fn load(&mut self, rules: ContentRules) {
        let (flows, seed) = self.inspections;
        let memory = self.content.is_none().then(|| Box::new(Memory::new(flows, seed)));
        let rules = self.content.insert(Arc::new(rules)).clone();
        self.order(Order::Load(Box::new(Loading { rules: Some(rules), memory })));
    }

    /// The content rules ordered last.
    pub fn content(&self) -> Option<Arc<ContentRules>> {
        self.content.clone()
    }

    fn put(&mut self, desired: Desired) -> Option<Notice> {
        let (session, revision, urrs) = (desired.session, desired.revision, desired.rules.urrs.len());
        if let Some(named) = &mut self.named {
            named.insert(session);
        }
        let known = self.known.get(&session).copied().unwrap_or_default();
        if known.applied == known_as(revision) && known.ordered == known.applied {
            return Some(Notice::Applied { session, revision, removed: Vec::new() });
        }
        let installation = match installation(&self.ports, desired, usize::from(known.urrs)) {
            Ok(installation) => installation,
            Err(error) => return Some(Notice::Refused { session, revision, reason: error.to_string() }),
        };
        // Until the new revision is in force, the old one's have to be reckoned with.
        let urrs = known.urrs.max(urrs as u16);
        self.known.insert(session, Known { ordered: known_as(revision), urrs, ..known });
        self.order(Order::Install(Box::new(installation)));
        None
    }

    fn urrs(&self, session: Seid) -> usize {
        self.known.get(&session).map_or(0, |known| usize::from(known.urrs))
    }

    /// Removes every session the resynchronisation did not name.
    fn sweep(&mut self) -> u64 {
        let Some(named) = self.named.take() else { return 0 };
        let unnamed: Vec<Seid> = self.known.keys().filter(|seid| !named.contains(seid)).copied().collect();
        let swept = unnamed.len() as u64;
        unnamed.into_iter().for_each(|seid| self.remove(seid));
        swept
    }

    fn remove(&mut self, session: Seid) {
        if let Some(known) = self.known.get_mut(&session) {
            known.ordered = None;
        }
        self.order(Order::Remove(session, Vec::with_capacity(self.urrs(session))));
    }

    fn count(&mut self) {
        if !self.counting {
            self.counting = true;
            self.order(Order::Count(Box::new(Counters::new(self.ports.len()))));
        }
    }

    fn list_peers(&mut self, token: Option<u64>) {
        self.order(Order::List(Box::new(Listing::new(self.peers, token))));
    }

    /// Goes on with a list until it is whole.
    fn listed(&mut self, listing: Box<Listing>) -> Vec<Notice> {
        if listing.from.is_some() {
            self.order(Order::List(listing));
            return Vec::new();
        }
        let Listing { peers, token, .. } = *listing;
        if let Some(token) = token {
            return vec![Notice::Peers { token, peers }];
        }
        let failed = peers.into_iter().filter(|peer| peer.path == PathState::Failed);
        let told = |peer: PeerStatistics| Event::Path { side: peer.side, remote: peer.address, failed: true };
        failed.map(told).map(Notice::Event).collect()
    }

    fn trace(&mut self, token: u64, filter: &TraceFilter) -> Result<(), String> {
        if self.tracing.is_some() {
            return Err("another trace is under way; it ends by itself".to_owned());
        }
        let tracer = Tracer::new(&self.ports, token, filter)?;
        self.tracing = Some(token);
        self.order(Order::Trace(Some(Box::new(tracer))));
        Ok(())
    }

    /// Ends the trace of this token now, if it is under way: nobody waits for it any more.
    pub fn end_trace(&mut self, token: u64) {
        if self.tracing == Some(token) {
            self.order(Order::Trace(None));
        }
    }

    fn order(&mut self, order: Order) {
        self.backlog.push_back(order);
        self.push_orders();
    }

    fn push_orders(&mut self) {
        while let Some(order) = self.backlog.pop_front() {
            if let Err(rtrb::PushError::Full(order)) = self.orders.push(order) {
                self.backlog.push_front(order);
                return;
            }
        }
    }

    /// What the worker has reported since the last call. `uptime_ms` goes into statistics.
    pub fn poll(&mut self, uptime_ms: u64) -> Vec<Notice> {
        self.push_orders();
        let mut notices = Vec::new();
        while let Ok(report) = self.reports.pop() {
            match report {
                Report::Listed(listing) => notices.extend(self.listed(listing)),
                report => notices.extend(self.digest(report, uptime_ms)),
            }
        }
        notices
    }

    fn digest(&mut self, report: Report, uptime_ms: u64) -> Option<Notice> {
        Some(match report {
            Report::Installed { seid, revision, installed } => {
                self.known.entry(seid).or_default().applied = known_as(revision);
                Notice::Applied { session: seid, revision, removed: installed.removed }
            }
            Report::Refused { installation, refusal } => {
                let (session, revision) = (installation.session.seid, installation.session.revision);
                self.forget_order(session, revision);
                Notice::Refused { session, revision, reason: refusal.to_string() }
            }
            Report::Removed { seid, usage, .. } => {
                self.forget_session(seid);
                Notice::Removed { session: seid, usage }
            }
            Report::Queried(query) => {
                let Query { seid, token, counts, .. } = *query;
                Notice::Usage { session: seid, cause: UsageCause::Query(token), counts }
            }
            Report::Used(used) => {
                Notice::Usage { session: used.seid, cause: used.cause, counts: vec![used.counts] }
            }
            Report::Counted { counters, sessions } => {
                self.counting = false;
                Notice::Statistics(self.statistics(&counters, sessions as u64, uptime_ms))
            }
            Report::Loaded { revision, .. } => {
                let rules = self.content.as_ref().map_or(0, |rules| rules.rules() as u64);
                Notice::ContentLoaded { revision, rules }
            }
            Report::Event(event) => Notice::Event(event),
            Report::Listed(_) => return None,
            Report::Traced(tracer) => {
                let tracer = tracer?;
                self.tracing = None;
                Notice::Trace { token: tracer.token, outcome: Ok(tracer.into_trace(&self.ports)) }
            }
            Report::Explained(explain) => {
                let token = explain.token;
                Notice::Explanation { token, explanation: Box::new(explain.into_explanation(&self.ports)) }
            }
        })
    }

    /// The session is gone, unless it was ordered anew meanwhile.
    fn forget_session(&mut self, seid: Seid) {
        let Some(known) = self.known.get_mut(&seid) else { return };
        known.applied = None;
        if known.ordered.is_none() {
            self.known.remove(&seid);
        }
    }

    /// The session stays as it was: in its older revision, or not at all.
    fn forget_order(&mut self, seid: Seid, revision: u64) {
        let Some(known) = self.known.get_mut(&seid) else { return };
        if known.ordered == known_as(revision) {
            known.ordered = known.applied;
        }
        if known.ordered.is_none() {
            self.known.remove(&seid);
        }
    }

    fn statistics(&self, counters: &Counters, sessions: u64, uptime_ms: u64) -> Statistics {
        let ports = self.ports.iter().zip(&counters.ports).map(|(config, port)| PortStatistics {
            name: config.name.clone(),
            device: config.device.clone(),
            received: port.received,
            received_bytes: port.received_bytes,
            sent: port.sent,
            sent_bytes: port.sent_bytes,
            missed: port.missed,
        });
        let worker = WorkerStatistics {
            sessions,
            flows: counters.flows,
            paths: PathStatistics {
                peers: counters.paths.peers,
                failed: counters.paths.failed,
                echo_requests: counters.paths.requests,
                echo_responses: counters.paths.responses,
                failures: counters.paths.failures,
            },
            content: content(&counters.content),
            books: counters.books(),
            nodes: counters.named_nodes(),
            drops: counters.named_drops(),
        };
        Statistics { uptime_ms, sessions, ports: ports.collect(), workers: vec![worker] }
    }
}

const fn content(counts: &ContentCounts) -> ContentStatistics {
    let ContentCounts { revision, waiting, detected, undetected, displaced, names } = *counts;
    ContentStatistics { revision, waiting, detected, undetected, displaced, names }
}
