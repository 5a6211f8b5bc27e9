//! Names of servers, learned from the answers to users' DNS lookups: a flow whose first packets say nothing is then
//! still with a host.
//!
//! What is learned holds for a network instance, for a bounded time. It comes only from an answer to a query that was
//! seen: same user, same port, same resolver, same message id, same question, and soon enough; each query is answered
//! once. That keeps strangers out, but not a user who runs a resolver: [`Config::resolvers`] names those whose answers
//! are believed, and should be set wherever names decide what is charged. Where several hosts share an address, the
//! last that was looked up counts.
//!
//! Both tables are allocated at first and never grow: where they are full, what would end soonest makes room. Places in
//! them follow from a hash with a seed that users do not know. Time comes in as milliseconds of any clock that does not
//! go backwards.

mod table;

use crate::extract::dns::{Message, Name};
use arrayvec::ArrayVec;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use table::Table;

/// Most bytes of a name that is learned; longer ones are few, and are not.
pub const LEARNED_MAX: usize = 119;
/// Most addresses that are learned from one answer.
pub const ADDRESSES_MAX: usize = 16;

/// How much is learned, from whom, for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most addresses whose names are known at once; 168 bytes each.
    pub names: usize,
    /// Most queries that wait for an answer at once; 24 bytes each.
    pub queries: usize,
    /// Whose answers are believed; empty: everybody's.
    pub resolvers: Vec<IpAddr>,
    /// An answer later than this is none.
    pub answer_within_ms: u64,
    /// A name is known at least this long, as applications go on using an address when its time is over,
    pub known_min_ms: u64,
    /// and at most this long.
    pub known_max_ms: u64,
    /// Of the places in the tables: random, and nobody's to know.
    pub seed: u64,
}

impl Default for Config {
    /// 65,536 names and 16,384 queries (11 MiB) of any resolver, 5 seconds for an answer, names for a minute to an hour.
    fn default() -> Self {
        Self {
            names: 1 << 16,
            queries: 1 << 14,
            resolvers: vec![],
            answer_within_ms: 5_000,
            known_min_ms: 60_000,
            known_max_ms: 3_600_000,
            seed: 0,
        }
    }
}

/// Between whom a DNS message goes, whichever way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lookup {
    /// The network instance, as a number of the caller's.
    pub instance: u16,
    /// The user's address.
    pub user: IpAddr,
    /// The user's port.
    pub user_port: u16,
    /// The resolver's address.
    pub resolver: IpAddr,
}

/// Why an answer taught nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ignored {
    /// It is no answer, or one that says there is nothing.
    NoAnswer,
    /// The resolver is not one of those who are believed.
    Resolver,
    /// No query waits for it.
    Unasked,
    /// The name is longer than [`LEARNED_MAX`].
    Long,
}

/// What was learned.
#[derive(Debug)]
pub struct Learner {
    config: Config,
    queries: Table<()>,
    names: Table<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    instance: u16,
    server: IpAddr,
    name: ArrayVec<u8, LEARNED_MAX>,
}

impl Learner {
    /// Knows nothing yet.
    pub fn new(config: Config) -> Self {
        Self { queries: Table::new(config.queries), names: Table::new(config.names), config }
    }

    /// Takes note of a user's query: what UDP carries to port 53 of a resolver. What is no query is passed over.
    pub fn query(&mut self, lookup: &Lookup, payload: &[u8], now_ms: u64) {
        let Some(message) = Message::parse(payload).filter(|message| !message.is_response) else { return };
        if !self.believes(lookup.resolver) {
            return;
        }
        let key = self.question(lookup, &message, &message.name());
        let until_ms = now_ms.saturating_add(self.config.answer_within_ms);
        self.queries.insert(key, (now_ms, until_ms), ((), |()| true));
    }

    /// Learns from an answer: what UDP carries from port 53 of a resolver. Returns how many addresses have a name now.
    ///
    /// # Errors
    /// Why nothing was learned.
    pub fn answer(&mut self, lookup: &Lookup, payload: &[u8], now_ms: u64) -> Result<usize, Ignored> {
        let message = Message::parse(payload).filter(|message| message.is_response && message.code == 0);
        let message = message.ok_or(Ignored::NoAnswer)?;
        if !self.believes(lookup.resolver) {
            return Err(Ignored::Resolver);
        }
        let name = message.name();
        let key = self.question(lookup, &message, &name);
        self.queries.remove(key, now_ms).ok_or(Ignored::Unasked)?;
        let name = ArrayVec::try_from(name.as_slice()).map_err(|_| Ignored::Long)?;
        let mut learned = 0;
        for (server, ttl_s) in message.addresses().take(ADDRESSES_MAX) {
            let Config { known_min_ms, known_max_ms, .. } = self.config;
            let known_ms = (u64::from(ttl_s) * 1_000).max(known_min_ms).min(known_max_ms);
            let known = Known { instance: lookup.instance, server, name: name.clone() };
            let key = self.place(lookup.instance, server);
            let same = |old: &Known| (old.instance, old.server) == (lookup.instance, server);
            self.names.insert(key, (now_ms, now_ms.saturating_add(known_ms)), (known, same));
            learned += 1;
        }
        Ok(learned)
    }

    /// The host at a server's address, in lower case; `None` where it is not known, or no more.
    pub fn name(&self, instance: u16, server: IpAddr, now_ms: u64) -> Option<&[u8]> {
        let is_it = |known: &Known| (known.instance, known.server) == (instance, server);
        self.names.get(self.place(instance, server), now_ms, is_it).map(|known| known.name.as_slice())
    }

    /// Memory of the tables.
    pub fn memory_bytes(&self) -> usize {
        self.queries.memory_bytes() + self.names.memory_bytes()
    }

    fn believes(&self, resolver: IpAddr) -> bool {
        self.config.resolvers.is_empty() || self.config.resolvers.contains(&resolver)
    }

    fn question(&self, lookup: &Lookup, message: &Message<'_>, name: &Name) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.config.seed, lookup, message.id, message.kind, name.as_slice()).hash(&mut hasher);
        hasher.finish()
    }

    fn place(&self, instance: u16, server: IpAddr) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.config.seed, instance, server).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests;
