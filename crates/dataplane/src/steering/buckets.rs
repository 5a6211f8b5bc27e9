//! The function from a user to a worker.

use super::Crew;

/// Entries of the table from hash to worker: as many as most network cards have, whose tables can then be the same. It
/// begins again earlier where a card's has fewer.
const ENTRIES: usize = steer::PERIOD as usize;

/// Toeplitz over the user's address, and a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets([u8; ENTRIES]);

impl Buckets {
    /// All workers of a crew alike, but for those that only distribute.
    pub(crate) fn new(crew: &Crew) -> Self {
        let owners = crew.workers.saturating_sub(crew.distributors).max(1);
        let period = usize::from(crew.period).clamp(1, ENTRIES);
        Self(std::array::from_fn(|entry| (crew.distributors + entry % period % owners) as u8))
    }

    /// The owner of a user, given as in a flow's key: an IPv4 address in the upper half, or an IPv6 prefix.
    #[inline]
    pub(crate) fn owner(&self, user: u64) -> u8 {
        self.0[steer::hash64(user) as usize % ENTRIES]
    }

    /// A user's key, as sessions have it, as a flow's key has it.
    pub(crate) const fn user(key: u64) -> u64 {
        if key >> 32 == 0 { key << 32 } else { key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn users_are_spread_over_all_workers_that_own_any() {
        for (workers, distributors, owners) in [(1, 0, vec![0]), (3, 0, vec![0, 1, 2]), (3, 1, vec![1, 2])] {
            let buckets = Buckets::new(&Crew { workers, distributors, ..Crew::default() });
            let found: HashSet<u8> =
                (0..1_000).map(|n| buckets.owner(Buckets::user(0x0a3c_0000 + n))).collect();
            assert_eq!(found, owners.into_iter().collect());
        }
    }

    /// A card reads as many of the hash's lowest bits as its table has entries for.
    #[test]
    fn the_owner_is_the_queue_of_the_shortest_card() {
        for period in [64, 128] {
            let buckets = Buckets::new(&Crew { period, ..Crew::of(3) });
            let table = steer::Table::new(3, u32::from(period).ilog2()).unwrap();
            for address in 0x0a3c_0000_u32..0x0a3c_1000 {
                let queue = steer::queue_of_address(std::net::Ipv4Addr::from(address).into(), true, table);
                assert_eq!(u16::from(buckets.owner(Buckets::user(address.into()))), queue, "{period}");
            }
        }
    }
}
