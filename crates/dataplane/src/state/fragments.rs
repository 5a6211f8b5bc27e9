//! Datagrams that come to us in fragments, put together again (RFC 791 3.2, RFC 8200 4.5): so many at once, for so long,
//! of so many bytes, in memory taken at the start. What peers send us should not be fragmented, so
//! there need not be many.

use crate::frame::PortIndex;
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
}

/// Why a fragment is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Useless {
    /// It, or its datagram, makes no sense: too long, overlapping (RFC 5722), ending twice.
    Senseless,
    /// As many datagrams as may be of that side, or that sender, are being put together.
    Full,
}

struct Datagram {
    name: DatagramName,
    since_ns: u64,
    /// Bit n: the n-th unit is there.
    units: [u64; UNIT_WORDS],
    /// Known from the last fragment.
    length: Option<usize>,
    bytes: Box<[u8]>,
}

/// All datagrams being put together by a worker.
pub(crate) struct Fragments {
    datagrams: Vec<Datagram>,
    /// Memory of those that are not in use.
    free: Vec<Box<[u8]>>,
    /// Datagrams of one side: what is sent to us from the data network is no hindrance to base stations.
    of_side: usize,
}

impl Fragments {
    /// Room for so many datagrams of each side.
    pub(crate) fn new(of_side: usize) -> Self {
        let free = (0..SIDES * of_side).map(|_| vec![0; BYTES].into()).collect();
        Self { datagrams: Vec::with_capacity(SIDES * of_side), free, of_side }
    }

    /// Takes a fragment in; returns the datagram's bytes where it is whole by it. They are forgotten with the next call.
    pub(crate) fn take(
        &mut self,
        name: DatagramName,
        (part, bytes): (Part, &[u8]),
        now_ns: u64,
    ) -> Result<Option<&[u8]>, Useless> {
        self.forget(|datagram| now_ns.saturating_sub(datagram.since_ns) > PATIENCE_NS);
        let at = match self.datagrams.iter().position(|datagram| datagram.name == name) {
            Some(at) => at,
            None => self.open(name, now_ns)?,
        };
        match self.datagrams[at].put(part, bytes) {
            Some(None) => Ok(None),
            Some(Some(length)) => {
                let datagram = self.datagrams.swap_remove(at);
                self.free.push(datagram.bytes);
                Ok(self.free.last().and_then(|bytes| bytes.get(..length)))
            }
            // The others are of no use without it, and not to be trusted with it.
            None => {
                self.forget(|datagram| datagram.name == name);
                Err(Useless::Senseless)
            }
        }
    }

    fn open(&mut self, name: DatagramName, since_ns: u64) -> Result<usize, Useless> {
        let count = |is_it: fn(&DatagramName, &DatagramName) -> bool| {
            self.datagrams.iter().filter(|other| is_it(&other.name, &name)).count()
        };
        let is_full = count(|other, name| other.side == name.side) >= self.of_side
            || count(|other, name| (other.side, other.source) == (name.side, name.source))
                >= self.of_side.div_ceil(SENDERS);
        let bytes = if is_full { None } else { self.free.pop() }.ok_or(Useless::Full)?;
        self.datagrams.push(Datagram { name, since_ns, units: [0; UNIT_WORDS], length: None, bytes });
        Ok(self.datagrams.len() - 1)
    }

    fn forget(&mut self, is_it: impl Fn(&Datagram) -> bool) {
        let gone = self.datagrams.extract_if(.., |datagram| is_it(datagram));
        self.free.extend(gone.map(|datagram| datagram.bytes));
    }
}

impl Datagram {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DATAGRAMS: usize = 64;
    const BY_SENDER: usize = 16;

    fn name(identification: u32) -> DatagramName {
        from((Direction::Uplink, 1), identification)
    }

    fn from((side, host): (Direction, u8), identification: u32) -> DatagramName {
        DatagramName { port: 0, side, source: [10, 30, 0, host].into(), identification }
    }

    fn part(offset: usize, more: bool) -> Part {
        Part { offset, more }
    }

    #[test]
    fn what_makes_no_sense_is_forgotten_whole() {
        let all = [7; 40];
        for second in [
            (part(8, true), 16),
            (part(12, true), 8),
            (part(16, true), 9),
            (part(16, true), 0),
            (part(1_992, true), 16),
            (part(0, false), 8),
        ] {
            let mut fragments = Fragments::new(DATAGRAMS);
            assert_eq!(fragments.take(name(1), (part(0, true), &all[..16]), 0), Ok(None));
            let (place, length) = second;
            assert_eq!(fragments.take(name(1), (place, &all[..length]), 0), Err(Useless::Senseless));
            assert_eq!(
                (fragments.datagrams.len(), fragments.free.len()),
                (0, SIDES * DATAGRAMS),
                "{second:?}"
            );
        }
        let mut fragments = Fragments::new(DATAGRAMS);
        fragments.take(name(1), (part(32, false), &all[..8]), 0).unwrap();
        assert_eq!(fragments.take(name(1), (part(24, false), &all[..8]), 0), Err(Useless::Senseless));
        fragments.take(name(1), (part(32, true), &all[..8]), 0).unwrap();
        assert_eq!(fragments.take(name(1), (part(0, false), &all[..8]), 0), Err(Useless::Senseless));
    }

    #[test]
    fn the_limits_hold() {
        let mut fragments = Fragments::new(DATAGRAMS);
        for identification in 0..BY_SENDER as u32 {
            fragments.take(name(identification), (part(0, true), &[1; 8]), 5).unwrap();
        }
        assert_eq!(fragments.take(name(99), (part(0, true), &[1; 8]), 5), Err(Useless::Full), "its own");
        for number in BY_SENDER as u8..DATAGRAMS as u8 {
            fragments.take(from((Direction::Uplink, number), 1), (part(0, true), &[1; 8]), 5).unwrap();
        }
        let another = from((Direction::Uplink, 200), 1);
        assert_eq!(fragments.take(another, (part(0, true), &[1; 8]), 5), Err(Useless::Full), "of all");
        let beyond = from((Direction::Downlink, 200), 1);
        assert_eq!(fragments.take(beyond, (part(0, true), &[1; 8]), 5), Ok(None), "of the other side");
        let later = 5 + PATIENCE_NS + 1;
        assert_eq!(fragments.take(name(99), (part(0, true), &[1; 8]), later), Ok(None));
        // The older fragments of this one are gone.
        assert_eq!(fragments.take(name(1), (part(8, false), &[1; 8]), later), Ok(None));
        assert_eq!(fragments.datagrams.len(), 2);
    }

    proptest! {
        /// In any order, mixed with another datagram's, fragments make the datagram.
        #[test]
        fn nothing_is_lost(
            bytes in proptest::collection::vec(any::<u8>(), 1..BYTES),
            chunk in 1usize..100,
            order in any::<prop::sample::Index>(),
        ) {
            let chunk = chunk * UNIT;
            let count = bytes.len().div_ceil(chunk);
            let mut numbers: Vec<usize> = (0..count).collect();
            numbers.rotate_left(order.index(count));
            let mut fragments = Fragments::new(DATAGRAMS);
            for (turn, number) in numbers.iter().enumerate() {
                let end = bytes.len().min((number + 1) * chunk);
                let part = part(number * chunk, number + 1 < count);
                let other = fragments.take(name(2), (super::tests::part(turn * UNIT, true), &[0; UNIT]), 0);
                prop_assert_eq!(other, Ok(None));
                let taken = fragments.take(name(1), (part, &bytes[number * chunk..end]), 0);
                let whole = (turn + 1 == count).then_some(&bytes[..]);
                prop_assert_eq!(taken, Ok(whole));
            }
        }
    }
}
