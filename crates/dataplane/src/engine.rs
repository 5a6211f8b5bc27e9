//! The control side of the workers: commands in, notices out. No socket, clock or thread.

mod balance;
mod claims;
mod directors;
mod ending;
mod evening;
mod gathering;
mod hand;
mod heaps;
mod history;
mod interim;
mod known;
mod leading;
mod locating;
mod looks;
mod merge;
mod moving;
mod placement;
mod reports;
mod rounds;

use crate::config::{Config, PolicyConfig, PortConfig};
use crate::content::ContentRules;
use crate::counters::Counters;
use crate::explain::Explain;
use crate::install::installation;
use crate::lasting::Legacy;
use crate::own_limit;
use crate::punt::Punts;
use crate::state::{Key, Loading, Memory, Refusal, Removal};
use crate::steering::Crew;
use crate::worker::{Order, Query};
pub use directors::Directors;
use dplink::{Command, Desired, Explanation, Notice, PeerStatistics, RefusalCause, Spread, VERSION};
use ending::Ending;
use gathering::Gathering;
pub(crate) use hand::Ends;
use hand::Hand;
pub(crate) use heaps::Heaps;
use interim::Interims;
pub(crate) use known::Register;
use known::{Known, known_as};
pub use leading::Lead;
use leading::Leading;
use looks::Tracing;
use merge::Counted;
use moving::Moves;
#[cfg(test)]
pub(crate) use moving::Wish;
pub(crate) use placement::Placement;
use placement::{Owner, Shared};
use rounds::Rounds;
use rules::{BitRates, Seid};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

/// A command that cannot be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The two sides were built from different versions.
    #[error("the other side speaks version {0} of the link, this data plane version {VERSION}")]
    Version(u16),
}

/// Controls the workers.
pub struct Engine {
    ports: Vec<PortConfig>,
    policies: Vec<PolicyConfig>,
    session_mbr: Option<BitRates>,
    peers: usize,
    epoch: u64,
    hands: Vec<Hand>,
    /// By port.
    spread: Vec<Spread>,
    placement: Placement,
    known: Register,
    heaps: Heaps,
    /// While a resynchronisation runs: the sessions named in it.
    named: Option<HashSet<Seid>>,
    /// The content rules ordered last.
    content: Option<Arc<ContentRules>>,
    /// Flows a worker looks at, whose answers to lookups tell everybody, and the seed of its tables.
    inspections: (usize, (Vec<IpAddr>, u64)),
    loads: Rounds<()>,
    counts: Rounds<Counted>,
    lists: Rounds<Vec<PeerStatistics>>,
    explanations: Rounds<Explanation>,
    tracing: Option<Tracing>,
    moves: Moves,
    gathering: Gathering,
    leading: Leading,
    ending: Ending,
    interims: Interims,
    /// Of the last look at what workers reported.
    now_ms: u64,
    /// What a former life knew of connections of sessions that are not in force yet.
    legacy: Option<Legacy>,
    /// That a worker has room for.
    connections: usize,
    /// Where ports give the kernel what is not spoken here.
    punts: Option<Punts>,
}

impl Engine {
    pub(crate) fn new(config: &Config, crew: &Crew, hands: Vec<Ends>, punts: Option<Punts>) -> Self {
        Self {
            ports: config.ports.clone(),
            policies: config.policies.clone(),
            session_mbr: config.limits.session_mbr,
            peers: config.limits.peers,
            epoch: config.epoch,
            hands: hands.into_iter().map(Hand::new).collect(),
            spread: crew.spread.clone(),
            placement: Placement::new(crew, &config.limits),
            known: Register::new(config.limits.sessions),
            heaps: Heaps::new(config.limits.rule_bytes),
            named: None,
            counts: Rounds::new(),
            lists: Rounds::new(),
            explanations: Rounds::new(),
            tracing: None,
            moves: Moves::default(),
            gathering: Gathering::default(),
            leading: Leading::default(),
            ending: Ending::new(),
            interims: Interims::default(),
            now_ms: 0,
            connections: config.limits.connections,
            legacy: None,
            punts,
            content: None,
            loads: Rounds::new(),
            inspections: (config.limits.inspections, (config.resolvers.clone(), config.seed)),
        }
    }

    /// Obeys a command; what can be answered at once is.
    ///
    /// # Errors
    /// A peer that must be disconnected.
    pub fn handle(&mut self, command: Command) -> Result<Option<Notice>, EngineError> {
        self.moves.hold(command).map_or(Ok(None), |command| self.obey(command))
    }

    fn obey(&mut self, command: Command) -> Result<Option<Notice>, EngineError> {
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
            Command::ResyncBegin { recovery_time_stamp } => {
                self.named = Some(HashSet::new());
                self.order_all(|| Order::RecoveryTimeStamp(recovery_time_stamp));
                None
            }
            Command::ResyncEnd => {
                // What failed while nobody listened was told to nobody.
                self.list_peers(None);
                self.order_all(|| Order::AllMacs);
                self.order_all(|| Order::NoMoreSessions);
                self.legacy = None;
                Some(Notice::Resynced { swept: self.sweep() })
            }
            Command::Put(desired) => self.put(desired),
            Command::Delete { session } => {
                self.remove(session);
                None
            }
            Command::QueryUsage { session, urrs, token, is_reported } => {
                self.query(Query { seid: session, urrs, token, is_reported, counts: Vec::new() });
                None
            }
            // To build rules takes long: whoever has the engine does that, and calls `load`.
            Command::PutContent(_) => None,
            // It is who serves the link that takes leave.
            Command::Farewell { .. } => None,
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
                self.explanations.ask(Some(token), self.hands.len());
                self.order_all(|| Order::Explain(Box::new(Explain::new(token, question.clone()))));
                None
            }
            Command::Locate { token, whose, to } => self.locate(token, whose, to),
            Command::GetBalance { token } => {
                Some(Notice::Balance { token, balancing: Box::new(self.balancing()) })
            }
            Command::Even { token, by, is_dry } => {
                Some(Notice::Evening { token, outcome: self.even(by, is_dry) })
            }
        })
    }

    fn query(&mut self, mut query: Query) {
        // The worker allocates nothing.
        query.counts = Vec::with_capacity(self.urrs(query.seid));
        self.order(self.owner(query.seid), Order::Query(Box::new(query)));
    }

    /// What ports and the kernel have for each other, if any port has to do with it.
    pub const fn punts(&mut self) -> Option<&mut Punts> {
        self.punts.as_mut()
    }

    /// Whether more commands can be taken; where not, read them later.
    pub fn has_room(&self) -> bool {
        self.hands.iter().all(Hand::has_room) && self.moves.waiting() < hand::BACKLOG
    }

    /// Puts content rules in force, which [`Notice::ContentLoaded`] confirms.
    pub fn load(&mut self, rules: ContentRules) {
        let (flows, of_names) = self.inspections.clone();
        let is_first = self.content.is_none();
        let rules = self.content.insert(Arc::new(rules)).clone();
        self.legacy.iter_mut().for_each(|legacy| legacy.number(&rules));
        self.loads.ask(Some(rules.revision()), self.hands.len());
        self.order_all(|| {
            let memory = is_first.then(|| Box::new(Memory::new(flows, of_names.clone())));
            Order::Load(Box::new(Loading { rules: Some(rules.clone()), memory }))
        });
    }

    /// A former life of the engine has left this: sessions that come back go on with it, until all that there are have come.
    pub fn inherit(&mut self, legacy: Legacy) {
        self.legacy = Some(legacy);
    }

    /// Whether any were ordered.
    pub const fn has_content(&self) -> bool {
        self.content.is_some()
    }

    /// The content rules ordered last.
    pub fn content(&self) -> Option<Arc<ContentRules>> {
        self.content.clone()
    }

    fn put(&mut self, desired: Desired) -> Option<Notice> {
        let (session, revision) = (desired.session, desired.revision);
        self.gathering.forget(session);
        if let Some(named) = &mut self.named {
            named.insert(session);
        }
        let Some(known) = self.known.get(session) else { return self.put_here(desired) };
        if known.applied == known_as(revision) && known.ordered == known.applied {
            // What was told while nobody listened was told to nobody.
            if self.named.is_some() && looks::asks_to_hear(&desired.rules) {
                self.order(known.owner, Order::TellAgain(session));
            }
            return Some(Notice::Applied { session, revision, removed: Vec::new() });
        }
        self.put_with_others(desired)
    }

    /// Gives a session to the worker that has it, or a new one to one.
    fn put_here(&mut self, mut desired: Desired) -> Option<Notice> {
        let (session, revision, urrs) = (desired.session, desired.revision, desired.rules.urrs.len());
        let known = self.known.get(session);
        let (is_new, known) = (known.is_none(), known.unwrap_or_default());
        let refused = |cause, reason: String| Some(Notice::Refused { session, revision, cause, reason });
        let shared = placement::shared_meters(&desired.rules);
        if let Some(mbr) = self.session_mbr {
            own_limit::hold(Arc::make_mut(&mut desired.rules), mbr);
        }
        let mut installation =
            match installation((&self.ports, &self.policies), desired, usize::from(known.urrs)) {
                Ok(installation) => installation,
                Err(error) => return refused(RefusalCause::Unfit, error.to_string()),
            };
        let bytes = installation.heap_bytes();
        if let Err(refusal) = self.heaps.admits(session, bytes) {
            return refused(refusal.cause(), refusal.to_string());
        }
        let of_frames = installation.ethernet.is_some();
        let fresh = self.fresh(session, installation.keys());
        let claimed = (revision, installation.keys());
        let owner = match self.owner_for(session, (claimed, of_frames), shared) {
            Ok(owner) => owner,
            Err(refusal) => return refused(refusal.cause(), refusal.to_string()),
        };
        if is_new && let Some(legacy) = &mut self.legacy {
            let inherited = legacy.take(session, installation.keys());
            inherited.into_iter().for_each(|inherited| installation.inherit(inherited));
        }
        self.heaps.order(session, bytes);
        // Until the new revision is in force, the old one's have to be reckoned with.
        let urrs = known.urrs.max(urrs as u16);
        self.known.set(session, Known { ordered: known_as(revision), urrs, owner, ..known });
        self.order(owner, Order::Install(Box::new(installation)));
        self.lead((session, owner), &fresh, is_new);
        None
    }

    /// A session stays with its worker; a new one is given to one.
    fn owner_for(
        &mut self,
        session: Seid,
        ((revision, keys), of_frames): ((u64, &[Key]), bool),
        shared: Shared,
    ) -> Result<Owner, Refusal> {
        if let Some(Known { owner, .. }) = self.known.get(session) {
            return self.placement.claim((session, owner), (revision, keys), shared).map(|()| owner);
        }
        let (owner, reason) = self.placement.place(keys, &shared, of_frames)?;
        let claimed = self.placement.claim((session, owner), (revision, keys), shared);
        match claimed {
            Ok(()) => *reason(&mut self.placement.placed) += 1,
            Err(_) => self.placement.left(session, owner),
        }
        claimed.map(|()| owner)
    }

    /// The worker of a session; of one that is not there, any.
    fn owner(&self, session: Seid) -> Owner {
        self.known.get(session).map_or(0, |known| known.owner)
    }

    fn urrs(&self, session: Seid) -> usize {
        self.known.get(session).map_or(0, |known| usize::from(known.urrs))
    }

    /// Removes every session the resynchronisation did not name.
    fn sweep(&mut self) -> u64 {
        let Some(named) = self.named.take() else { return 0 };
        let unnamed: Vec<Seid> =
            self.known.iter().map(|(seid, _)| seid).filter(|seid| !named.contains(seid)).collect();
        let swept = unnamed.len() as u64;
        unnamed.into_iter().for_each(|seid| self.remove(seid));
        swept
    }

    fn remove(&mut self, session: Seid) {
        self.gathering.forget(session);
        if let Some(known) = self.known.get(session) {
            self.known.set(session, Known { ordered: None, ..known });
        }
        self.placement.release(session);
        let removal = Removal::new(session, self.urrs(session));
        self.order(self.owner(session), Order::Remove(Box::new(removal)));
    }

    fn count(&mut self) {
        if self.counts.is_empty() {
            self.counts.ask(None, self.hands.len());
            let ports = self.ports.len();
            self.order_all(|| Order::Count(Box::new(Counters::new(ports))));
        }
    }

    fn order(&mut self, owner: Owner, order: Order) {
        if let Some(hand) = self.hands.get_mut(usize::from(owner)) {
            hand.order(order);
        }
    }

    fn order_all(&mut self, order: impl Fn() -> Order) {
        self.hands.iter_mut().for_each(|hand| hand.order(order()));
    }
}
