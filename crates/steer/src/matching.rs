//! TEIDs that hash as the user's address does, for ports that see the TEID and not what is in the tunnel.
//!
//! A card finds the queue of a packet in a table by the lowest bits of its hash. If the hash of the TEID agrees in those
//! bits with that of the user's address, both directions come to one queue, whatever the number of queues and workers,
//! as long as all tables are filled alike. So who chooses TEIDs need not know who has them processed.

use crate::{Completer, KEY, Table, hash64};

/// Bits of the hash that tables of up to 128 entries are indexed by. Those of the workers have 128.
const INDEX_BITS: u32 = 7;
const ENTRIES: usize = 1 << INDEX_BITS;

/// Chooses the lowest bits of TEIDs.
#[derive(Clone, Debug)]
pub struct Matching {
    /// By what the lowest bits have to add to the hash.
    low: [u32; ENTRIES],
}

impl Default for Matching {
    fn default() -> Self {
        Self::new()
    }
}

impl Matching {
    /// TEIDs from one block to the next: in each there is one for every user.
    pub const BLOCK: u32 = 1 << INDEX_BITS;

    /// For ports that hash the TEID alone, under [`KEY`].
    pub fn new() -> Self {
        let completer = Table::new(1, INDEX_BITS).map(|table| Completer::new(&KEY, 0, INDEX_BITS, table));
        // Under this key as many bits are enough, as a test says.
        let low = |entry| completer.as_ref().and_then(|completer| completer.combination(entry as u32));
        Self { low: std::array::from_fn(|entry| low(entry).unwrap_or(0)) }
    }

    /// The TEID of the block that `teid` is in which comes to the queue of a user: given as [`hash64`] has it, an IPv4
    /// address in the upper half, or an IPv6 prefix. It may be 0, which no tunnel has (TS 29.281 5.1).
    pub fn teid(&self, teid: u32, user: u64) -> u32 {
        let head = teid & !(Self::BLOCK - 1);
        let missing = hash64(user) ^ hash64(u64::from(head) << 32);
        head | self.low.get(missing as usize % ENTRIES).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{queue_of_address, toeplitz};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    proptest! {
        #[test]
        fn both_directions_come_to_one_queue(
            start: u32, ipv4: u32, ipv6: u128, queues in 1_u16..=64, bits in 6_u32..=7,
        ) {
            let (matching, table) = (Matching::new(), Table::new(queues, bits).unwrap());
            let queue = |teid: u32| table.queue(toeplitz(&KEY, &teid.to_be_bytes()));
            let plain = matching.teid(start, u64::from(ipv4) << 32);
            prop_assert_eq!(queue(plain), queue_of_address(IpAddr::V4(Ipv4Addr::from(ipv4)), true, table));
            let long = matching.teid(start, (ipv6 >> 64) as u64);
            prop_assert_eq!(queue(long), queue_of_address(IpAddr::V6(Ipv6Addr::from(ipv6)), true, table));
            prop_assert_eq!(plain / Matching::BLOCK, start / Matching::BLOCK);
        }
    }
}
