//! Datagrams that come to us in fragments, put together again (RFC 791 3.2, RFC 8200 4.5): so many at once, for so long,
//! of so many bytes, in memory taken at the start. What peers send us should not be fragmented, so
//! there need not be many.
//!
//! Where fragments are lost on the way, what has come of their datagrams is of no use, and would keep its place until time
//! is up: a sender who needs a place more than it has gives up its own oldest datagram, and nobody else's.

use super::flow_key::mix;
use super::queues::Queues;
use crate::frame::PortIndex;
use packet::ecn::OfFragments;
use rules::Direction;
use std::net::IpAddr;

/// Of the datagrams of one side, one sender has a quarter.
const SENDERS: usize = 4;
/// Access, and all that is towards the core.
const SIDES: usize = 2;
/// Bytes of the longest, without the IP header: what a packet's buffer holds.
const BYTES: usize = 2_000;
/// From the first fragment on; a peer's fragments come together or not at all.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Fragments begin at multiples of this.
const UNIT: usize = 8;
const UNIT_WORDS: usize = BYTES.div_ceil(UNIT).div_ceil(64);

/// What the fragments of a datagram have in common, besides us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramName {
    pub(crate) port: PortIndex,
    /// The side of that port.
    pub(crate) side: Direction,
    pub(crate) source: IpAddr,
    pub(crate) identification: u32,
}

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// In bytes.
    pub(crate) offset: usize,
    /// Others follow.
    pub(crate) more: bool,
    /// What its IP header says of congestion.
    pub(crate) ecn: u8,
}

/// A datagram of which all fragments have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole<'a> {
    pub(crate) bytes: &'a [u8],
    /// What their IP headers said of congestion.
    pub(crate) ecn: OfFragments,
}

/// Why a fragment is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Useless {
    /// It, or its datagram, makes no sense: too long, overlapping (RFC 5722), ending twice.
    Senseless,
    /// All of it has come before, octet by octet, as where a network brings packets twice (RFC 8200 4.5): the others wait on.
    Twice,
    /// Others have all places of that side.
    Full,
}

/// What has become of fragments that waited for the others of their datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Their datagram is whole.
    pub(crate) whole: u64,
    /// One came that makes no sense with them.
    pub(crate) senseless: u64,
    /// The others did not come in time, or before a newer datagram of their sender needed the place.
    pub(crate) incomplete: u64,
}

/// A place for a datagram.
struct Datagram {
    name: DatagramName,
    since_ns: u64,
    /// Fragments that have come.
    parts: u64,
    ecn: OfFragments,
    /// Bit n: the n-th unit is there.
    units: [u64; UNIT_WORDS],
    /// Known from the last fragment.
    length: Option<usize>,
    bytes: Box<[u8]>,
}

/// All datagrams being put together by a worker.
pub(crate) struct Fragments {
    datagrams: Vec<Datagram>,
    /// Places that are not in use.
    free: Vec<usize>,
    /// Those in use of each side, by age.
    by_age: Queues,
    /// Those in use of senders with the same hash, by age: of one, and seldom of another.
    by_sender: Queues,
    /// Datagrams of one side: what is sent to us from the data network is no hindrance to base stations.
    of_side: usize,
    /// Of each side, as many are in use.
    counts: [usize; SIDES],
    seed: u64,
    /// Fragments that wait for the others of their datagram.
    waiting: u64,
    ended: Ended,
}

impl Fragments {
    /// Room for so many datagrams of each side; senders who do not know `seed` cannot choose which others they are looked
    /// for among.
    pub(crate) fn new(of_side: usize, seed: u64) -> Self {
        let places = SIDES * of_side;
        Self {
            datagrams: (0..places).map(|_| Datagram::none()).collect(),
            free: (0..places).collect(),
            by_age: Queues::new(SIDES, places),
            by_sender: Queues::new(places, places),
            of_side,
            counts: [0; SIDES],
            seed,
            waiting: 0,
            ended: Ended::default(),
        }
    }

    /// Takes a fragment in; returns the datagram where it is whole by it. It is forgotten with the next call.
    pub(crate) fn take(
        &mut self,
        name: DatagramName,
        (part, bytes): (Part, &[u8]),
        now_ns: u64,
    ) -> Result<Option<Whole<'_>>, Useless> {
        self.expire(now_ns);
        let at = self.place_of(name, now_ns)?;
        if self.datagrams[at].has(part, bytes) {
            return Err(Useless::Twice);
        }
        self.datagrams[at].ecn.add(part.ecn);
        match self.datagrams[at].put(part, bytes) {
            Some(None) => {
                self.datagrams[at].parts += 1;
                self.waiting += 1;
                Ok(None)
            }
            Some(Some(length)) => {
                self.ended.whole += self.close(at);
                let Datagram { bytes, ecn, .. } = &self.datagrams[at];
                Ok(bytes.get(..length).map(|bytes| Whole { bytes, ecn: *ecn }))
            }
            // The others are of no use without it, and not to be trusted with it.
            None => {
                self.ended.senseless += self.close(at);
                Err(Useless::Senseless)
            }
        }
    }

    /// Gives up what has waited too long.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        for side in 0..SIDES {
            while let Some(oldest) = self.by_age.first(side) {
                if now_ns.saturating_sub(self.datagrams[oldest].since_ns) <= PATIENCE_NS {
                    break;
                }
                self.ended.incomplete += self.close(oldest);
            }
        }
    }

    /// Fragments that wait for others.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// What has become of others since this was asked last.
    pub(crate) fn ended(&mut self) -> Ended {
        std::mem::take(&mut self.ended)
    }

    /// Where a datagram is put together. A new one of a sender with a full share, or on a full side, takes its oldest one's
    /// place: that is the likeliest to lack a fragment for good.
    fn place_of(&mut self, name: DatagramName, since_ns: u64) -> Result<usize, Useless> {
        let chain = self.chain(&name);
        let (mut oldest, mut own) = (None, 0);
        for at in self.by_sender.of(chain) {
            let other = &self.datagrams[at].name;
            if *other == name {
                return Ok(at);
            }
            if (other.side, other.source) == (name.side, name.source) {
                (oldest, own) = (oldest.or(Some(at)), own + 1);
            }
        }
        if own >= self.of_side.div_ceil(SENDERS) || self.counts[name.side as usize] >= self.of_side {
            self.ended.incomplete += self.close(oldest.ok_or(Useless::Full)?);
        }
        let at = self.free.pop().ok_or(Useless::Full)?;
        self.datagrams[at].begin(name, since_ns);
        self.by_age.push(name.side as usize, at);
        self.by_sender.push(chain, at);
        self.counts[name.side as usize] += 1;
        Ok(at)
    }

    fn chain(&self, name: &DatagramName) -> usize {
        let address = match name.source {
            IpAddr::V4(source) => source.to_bits().into(),
            IpAddr::V6(source) => source.to_bits(),
        };
        let upper = mix((address >> 64) as u64 ^ self.seed, 0x9e37_79b9_7f4a_7c15 ^ name.side as u64);
        mix(address as u64 ^ upper, 0xc2b2_ae3d_27d4_eb4f ^ self.seed) as usize % self.datagrams.len()
    }

    /// Gives up a place; returns how many fragments waited there.
    fn close(&mut self, at: usize) -> u64 {
        let Datagram { name, parts, .. } = self.datagrams[at];
        self.by_age.remove(at);
        self.by_sender.remove(at);
        self.counts[name.side as usize] -= 1;
        self.free.push(at);
        self.waiting -= parts;
        parts
    }
}

impl Datagram {
    fn none() -> Self {
        let nobody = std::net::Ipv4Addr::UNSPECIFIED.into();
        let name = DatagramName { port: 0, side: Direction::Uplink, source: nobody, identification: 0 };
        Self {
            name,
            since_ns: 0,
            parts: 0,
            ecn: OfFragments::default(),
            units: [0; UNIT_WORDS],
            length: None,
            bytes: vec![0; BYTES].into(),
        }
    }

    fn begin(&mut self, name: DatagramName, since_ns: u64) {
        (self.name, self.since_ns, self.parts) = (name, since_ns, 0);
        (self.units, self.length) = ([0; UNIT_WORDS], None);
        self.ecn = OfFragments::default();
    }

    /// Whether a fragment brings nothing that is not there.
    fn has(&self, part: Part, bytes: &[u8]) -> bool {
        let end = part.offset + bytes.len();
        let mut units = part.offset / UNIT..end.div_ceil(UNIT);
        let is_there =
            |unit: usize| self.units.get(unit / 64).is_some_and(|word| word >> (unit % 64) & 1 != 0);
        let is_aligned = part.offset.is_multiple_of(UNIT) && (!part.more || bytes.len().is_multiple_of(UNIT));
        let ends_alike = part.more == (self.length != Some(end));
        let is_like_it = is_aligned && ends_alike && !bytes.is_empty();
        is_like_it && self.bytes.get(part.offset..end) == Some(bytes) && units.all(is_there)
    }

    /// `Some` of the length once it is whole; `None` where the fragment makes no sense in it.
    fn put(&mut self, part: Part, bytes: &[u8]) -> Option<Option<usize>> {
        let end = part.offset + bytes.len();
        let fits = !bytes.is_empty() && part.offset.is_multiple_of(UNIT);
        let last_or_even = !part.more || bytes.len().is_multiple_of(UNIT);
        let within = self.length.is_none_or(|length| part.more && end <= length);
        (fits && last_or_even && within).then_some(())?;
        self.bytes.get_mut(part.offset..end)?.copy_from_slice(bytes);
        for unit in part.offset / UNIT..end.div_ceil(UNIT) {
            let (word, bit) = (unit / 64, 1 << (unit % 64));
            (self.units[word] & bit == 0).then_some(())?;
            self.units[word] |= bit;
        }
        if !part.more {
            self.length = Some(end);
        }
        let units = |length: usize| length.div_ceil(UNIT);
        let there = self.units.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        match self.length {
            // Something lies behind the end.
            Some(length) if self.highest() > units(length) => None,
            Some(length) if there == units(length) => Some(Some(length)),
            _ => Some(None),
        }
    }

    /// Units up to the last that is there.
    fn highest(&self) -> usize {
        let last = self.units.iter().rposition(|word| *word != 0);
        last.map_or(0, |word| word * 64 + 64 - self.units[word].leading_zeros() as usize)
    }
}

#[cfg(test)]
mod tests;
