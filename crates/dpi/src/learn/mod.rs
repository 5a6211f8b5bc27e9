//! Names of servers, learned from the answers to users' DNS lookups: a flow whose first packets say nothing is then
//! still with a host.
//!
//! What is learned holds for a network instance, for a bounded time. It comes only from an answer to a query that was
//! seen: same user, same port, same resolver, same message id, same question, and soon enough; each query is answered
//! once. That keeps strangers out, but not a user who runs a resolver and has it say what he likes. So an answer tells
//! everybody only if its resolver is one of [`Config::resolvers`]; any other one's, only who asked, and only of servers
//! that no such resolver has named. Where several hosts share an address, the last that was looked up counts.
//!
//! The tables are allocated at first and never grow: where they are full, what would end soonest makes room. Places in
//! them follow from a hash with a seed that users do not know. A user's queries, and the names it alone is told, have a few
//! places of the table, so that whoever asks for very many takes the room of few others. Time comes in as milliseconds of any clock that does not
//! go backwards.

mod table;

use crate::extract::dns::{Boundary, MESSAGES_MAX, Message, Name, in_segment};
use arrayvec::ArrayVec;
use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use std::fmt;
use std::hash::Hasher;
use std::net::IpAddr;
use std::num::NonZeroU64;
use table::Table;

/// Most bytes of a name that is learned; longer ones are few, and are not.
pub const LEARNED_MAX: usize = 119;
/// Most addresses that are learned from one answer.
pub const ADDRESSES_MAX: usize = 16;

/// Resolvers' streams that are followed, one for so many queries that may wait.
const QUERIES_PER_STREAM: usize = 16;
/// How long after its last message.
const STREAM_MS: u64 = 120_000;

/// How much is learned, from whom, for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most addresses whose names are known to all at once; 184 bytes each. As many again are known to those who asked.
    pub names: usize,
    /// Most queries that wait for an answer at once; 24 bytes each.
    pub queries: usize,
    /// Whose answers tell everybody; all others', only who asked.
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
    /// 32,768 names for all, as many for those who asked, and 16,384 queries (12 MiB); no resolver that tells everybody, 5 seconds for an answer, names for a minute to an hour.
    fn default() -> Self {
        Self {
            names: 1 << 15,
            queries: 1 << 14,
            resolvers: vec![],
            answer_within_ms: 5_000,
            known_min_ms: 60_000,
            known_max_ms: 3_600_000,
            seed: 0,
        }
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asker {
    /// The user's address; of IPv6, all of a prefix is one user.
    pub address: IpAddr,
    /// Who has the address, as a number of the caller's: whoever has it next knows nothing of what this one was told.
    pub holder: u64,
}

/// Between whom a DNS message goes, whichever way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lookup {
    /// The network instance, as a number of the caller's.
    pub instance: u16,
    /// The user.
    pub user: Asker,
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
    /// No query waits for it.
    Unasked,
    /// The name is longer than [`LEARNED_MAX`].
    Long,
}

/// What an answer taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Answered {
    /// Addresses that have a name now.
    pub names: usize,
    /// What was found of the query.
    pub found: Option<Found>,
}

/// What a caller found of a query, for its answer: any number of its own but the largest, which stands for nothing.
pub type Found = NonZeroU64;

const NOTHING: Found = Found::MAX;

/// What was learned.
pub struct Learner {
    config: Config,
    seed: SharedSeed,
    queries: Table<Found>,
    /// Where resolvers' streams have got to.
    streams: Table<Boundary>,
    names: Table<Known>,
    /// To those who asked.
    own: Table<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    instance: u16,
    /// Who knows; `None`: everybody.
    user: Option<u64>,
    server: IpAddr,
    name: ArrayVec<u8, LEARNED_MAX>,
}

impl Learner {
    /// Knows nothing yet.
    pub fn new(config: Config) -> Self {
        let names = || Table::new(config.names);
        let seed = SharedSeed::from_u64(config.seed);
        let streams = Table::new(config.queries / QUERIES_PER_STREAM);
        Self { seed, queries: Table::new(config.queries), streams, names: names(), own: names(), config }
    }

    /// Takes note of a user's query to a resolver. What is no query is passed over.
    pub fn query(&mut self, lookup: &Lookup, message: &Message<'_>, now_ms: u64) {
        self.query_found(lookup, (message, &message.name()), (NOTHING, now_ms));
    }

    /// The same of a query that something was found of; `name` is the message's.
    pub fn query_found(
        &mut self,
        lookup: &Lookup,
        (message, name): (&Message<'_>, &Name),
        (found, now_ms): (Found, u64),
    ) {
        if message.is_response {
            return;
        }
        let key = self.question(lookup, message, name);
        let until_ms = now_ms.saturating_add(self.config.answer_within_ms);
        self.queries.insert(key, (now_ms, until_ms), (found, |_: &Found| true));
    }

    /// Says that a resolver accepts a connection: the sequence number of the first byte it will say.
    pub fn begin(&mut self, lookup: &Lookup, sequence: u32, now_ms: u64) {
        self.follow(self.stream(lookup), Boundary::first(sequence), now_ms);
    }

    /// The messages that begin in a segment from a resolver. Of a connection that was not seen from its beginning, or has been
    /// displaced since, those that begin where the segment does.
    pub fn segment<'a>(
        &mut self,
        lookup: &Lookup,
        (sequence, payload): (u32, &'a [u8]),
        now_ms: u64,
    ) -> ArrayVec<Message<'a>, MESSAGES_MAX> {
        let key = self.stream(lookup);
        let Some(mut boundary) = self.streams.get(key, now_ms, |_| true).copied() else {
            return in_segment(payload).take(MESSAGES_MAX).collect();
        };
        let before = boundary;
        let messages = boundary.follow(sequence, payload);
        if boundary != before {
            self.follow(key, boundary, now_ms);
        }
        messages
    }

    fn follow(&mut self, key: u64, boundary: Boundary, now_ms: u64) {
        self.streams.insert(key, (now_ms, now_ms.saturating_add(STREAM_MS)), (boundary, |_: &Boundary| true));
    }

    /// A key for a resolver's stream.
    fn stream(&self, lookup: &Lookup) -> u64 {
        let Lookup { instance, user: asker, user_port, resolver } = *lookup;
        let mut hasher = self.hasher(instance);
        hasher.write_u16(user_port);
        asker.write(&mut hasher);
        write_address(&mut hasher, resolver);
        self.among((instance, asker.digest()), hasher.finish())
    }

    /// Learns from an answer of a resolver.
    ///
    /// # Errors
    /// Why nothing was learned.
    pub fn answer(
        &mut self,
        lookup: &Lookup,
        message: &Message<'_>,
        now_ms: u64,
    ) -> Result<Answered, Ignored> {
        if !message.is_response || message.code != 0 {
            return Err(Ignored::NoAnswer);
        }
        let name = message.name();
        let key = self.question(lookup, message, &name);
        let found = self.queries.remove(key, now_ms).ok_or(Ignored::Unasked)?;
        let name = ArrayVec::try_from(name.as_slice()).map_err(|_| Ignored::Long)?;
        let tells_all = self.config.resolvers.contains(&lookup.resolver);
        let user = if tells_all { None } else { Some(lookup.user.digest()) };
        let mut names = 0;
        for (server, ttl_s) in message.addresses().take(ADDRESSES_MAX) {
            let Config { known_min_ms, known_max_ms, .. } = self.config;
            let known_ms = (u64::from(ttl_s) * 1_000).max(known_min_ms).min(known_max_ms);
            let known = Known { instance: lookup.instance, user, server, name: name.clone() };
            let key = self.place(lookup.instance, user, self.of_server(lookup.instance, server));
            let same = |old: &Known| (old.instance, old.user, old.server) == (lookup.instance, user, server);
            let table = if tells_all { &mut self.names } else { &mut self.own };
            table.insert(key, (now_ms, now_ms.saturating_add(known_ms)), (known, same));
            names += 1;
        }
        Ok(Answered { names, found: Some(found).filter(|found| *found != NOTHING) })
    }

    /// The host at a server's address, in lower case, as far as a user may know; `None` where it is not known, or no more.
    pub fn name<'a>(
        &'a self,
        (instance, asker): (u16, Asker),
        server: IpAddr,
        now_ms: u64,
    ) -> Option<&'a [u8]> {
        let of_server = self.of_server(instance, server);
        let find = |table: &'a Table<Known>, user| {
            if table.was_never_used() {
                return None;
            }
            let is_it =
                |known: &Known| (known.instance, known.user, known.server) == (instance, user, server);
            table.get(self.place(instance, user, of_server), now_ms, is_it)
        };
        let known = find(&self.names, None).or_else(|| find(&self.own, Some(asker.digest())))?;
        Some(known.name.as_slice())
    }

    /// Memory of the tables.
    pub fn memory_bytes(&self) -> usize {
        self.queries.memory_bytes()
            + self.streams.memory_bytes()
            + self.names.memory_bytes()
            + self.own.memory_bytes()
    }

    fn question(&self, lookup: &Lookup, message: &Message<'_>, name: &Name) -> u64 {
        let Lookup { instance, user: asker, user_port, resolver } = *lookup;
        let mut hasher = self.hasher(instance);
        hasher.write_u64(u64::from(user_port) << 32 | u64::from(message.id) << 16 | u64::from(message.kind));
        asker.write(&mut hasher);
        write_address(&mut hasher, resolver);
        hasher.write(name);
        self.among((instance, asker.digest()), hasher.finish())
    }

    /// A key for a server, by the hash of it.
    fn place(&self, instance: u16, user: Option<u64>, of_server: u64) -> u64 {
        user.map_or(of_server, |user| self.among((instance, user), of_server))
    }

    fn of_server(&self, instance: u16, server: IpAddr) -> u64 {
        let mut hasher = self.hasher(instance);
        write_address(&mut hasher, server);
        hasher.finish()
    }

    /// A key whose upper bits, which choose the place, are mostly the user's.
    fn among(&self, (instance, user): (u16, u64), rest: u64) -> u64 {
        let low = u64::MAX >> GROUP_BITS;
        let mut hasher = self.hasher(instance);
        hasher.write_u64(user);
        hasher.finish() & !low | rest & low
    }

    fn hasher(&self, instance: u16) -> FoldHasher<'_> {
        FoldHasher::with_seed(self.config.seed ^ u64::from(instance), &self.seed)
    }
}

impl fmt::Debug for Learner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learner").finish_non_exhaustive()
    }
}

fn write_address(hasher: &mut FoldHasher<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => hasher.write_u32(address.to_bits()),
        IpAddr::V6(address) => hasher.write_u128(address.to_bits()),
    }
}

/// Users share 256 parts of a table.
const GROUP_BITS: u32 = 8;

impl Asker {
    fn digest(&self) -> u64 {
        let address = match self.address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        // Whoever comes next has the same address, and another number, which may be the next one.
        address ^ self.holder.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&self, hasher: &mut FoldHasher<'_>) {
        write_address(hasher, self.address);
        hasher.write_u64(self.holder);
    }
}

#[cfg(test)]
mod tests;
