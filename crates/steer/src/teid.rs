//! TEIDs that hash to a chosen queue, for ports that hash on the TEID but cannot see what is inside the tunnel.
//!
//! The Toeplitz hash is linear over GF(2): each bit of the TEID that is set adds (exclusive or) one 32-bit window of the
//! key. So the free bits of a TEID are found by solving a small linear system, once per port, not by trying.

use crate::key::window;

/// Most queues of a table.
const QUEUES_MAX: u16 = 64;
/// Most bits of a hash that a table is indexed by (i40e: 512 entries; mlx5 and ice fewer or 2048).
const TABLE_BITS_MAX: u32 = 11;

/// A port's redirection table (RETA) of a power of two of entries, filled with the queues in turn, as DPDK does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    queues: u16,
    bits: u32,
}

impl Table {
    /// A table of `1 << bits` entries over `queues` queues; `None` unless 1 to 64 queues and no more than entries, of
    /// which there are 2048 at most.
    pub fn new(queues: u16, bits: u32) -> Option<Self> {
        let fits = bits <= TABLE_BITS_MAX && u32::from(queues) <= 1 << bits;
        ((1..=QUEUES_MAX).contains(&queues) && fits).then_some(Self { queues, bits })
    }

    /// The queue of a hash.
    pub fn queue(self, hash: u32) -> u16 {
        let entry = hash & self.mask();
        u16::try_from(entry % u32::from(self.queues)).unwrap_or(0)
    }

    const fn mask(self) -> u32 {
        (1 << self.bits) - 1
    }

    /// The entries that lead to a queue.
    fn entries(self, queue: u16) -> impl Iterator<Item = u32> {
        (u32::from(queue)..=self.mask())
            .step_by(usize::from(self.queues))
            .filter(move |_| queue < self.queues)
    }
}

/// Completes TEIDs for one port.
#[derive(Clone, Debug)]
pub struct Completer {
    table: Table,
    free_bits: u32,
    /// What each bit of the TEID, the lowest first, adds to the hash.
    windows: Vec<u32>,
    /// For each bit of the table's index: a combination of the TEID's free bits whose hash has it as highest bit.
    basis: Vec<Option<Vector>>,
}

#[derive(Clone, Copy, Debug)]
struct Vector {
    hash: u32,
    teid: u32,
}

impl Completer {
    /// For a port that hashes with `key`, where the TEID begins `offset` octets into what is hashed (0 if it is the TEID
    /// alone), and of whose TEIDs the lowest `free_bits` (at most 32) may be chosen. A few more than the table's bits
    /// make sure that every queue is reached, whatever the key.
    pub fn new(key: &[u8], offset: usize, free_bits: u32, table: Table) -> Self {
        let free_bits = free_bits.min(32);
        let slots = usize::try_from(table.bits).unwrap_or(0);
        let windows: Vec<u32> = (0..32).rev().map(|place| window(key, offset * 8 + place)).collect();
        let mut completer = Self { table, free_bits, windows: windows.clone(), basis: vec![None; slots] };
        for (bit, window) in (0..free_bits).zip(windows) {
            completer.insert(Vector { hash: window & table.mask(), teid: 1 << bit });
        }
        completer
    }

    fn hash_of_head(&self, head: u32) -> u32 {
        let bits = self.windows.iter().enumerate();
        bits.filter(|(bit, _)| head >> bit & 1 == 1).fold(0, |hash, (_, window)| hash ^ window)
    }

    fn insert(&mut self, vector: Vector) {
        let rest = self.reduce(vector);
        if let Some(slot) = highest_bit(rest.hash).and_then(|bit| self.basis.get_mut(bit)) {
            *slot = Some(rest);
        }
    }

    /// What is left of a vector when all of the basis has been taken out.
    fn reduce(&self, vector: Vector) -> Vector {
        self.basis.iter().enumerate().rev().fold(vector, |rest, (bit, base)| match base {
            Some(base) if rest.hash & (1 << bit) != 0 => {
                Vector { hash: rest.hash ^ base.hash, teid: rest.teid ^ base.teid }
            }
            _ => rest,
        })
    }

    /// The TEID whose upper bits are those of `head` and whose hash leads to `queue`, or `None` if there is none.
    ///
    /// `others` is the hash of all else that the port hashes besides the TEID, with the TEID as zero: 0 if it hashes the
    /// TEID alone. It must not contain what the peer chooses (its address, its port), or a handover moves the user.
    /// The TEID is never 0, which stands for no tunnel (TS 29.281 5.1).
    pub fn complete(&self, head: u32, others: u32, queue: u16) -> Option<u32> {
        let free = u32::try_from((1_u64 << self.free_bits) - 1).unwrap_or(u32::MAX);
        let head = head & !free;
        let fixed = others ^ self.hash_of_head(head);
        let teids = self.table.entries(queue).filter_map(|entry| self.combination(entry ^ fixed));
        teids.map(|low| head | low).find(|teid| *teid != 0)
    }

    /// The free bits that add this to the part of the hash the table looks at, or `None` if there are none.
    pub(crate) fn combination(&self, hash: u32) -> Option<u32> {
        let rest = self.reduce(Vector { hash: hash & self.table.mask(), teid: 0 });
        (rest.hash == 0).then_some(rest.teid)
    }
}

/// Of a number, counted from 0; `None` of zero.
fn highest_bit(number: u32) -> Option<usize> {
    number.checked_ilog2().and_then(|bit| usize::try_from(bit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KEY, queue_of_address, toeplitz};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    proptest! {
        /// With our key, 16 free bits reach every queue of every table.
        #[test]
        fn a_completed_teid_lands_on_its_queue(
            head: u32, queues in 1_u16..=64, extra_bits in 0_u32..=3, wish: u16, before: [u8; 8], in_front: bool,
        ) {
            let table = Table::new(queues, 6 + extra_bits).unwrap();
            let before = if in_front { &before[..] } else { &[] };
            let others = toeplitz(&KEY, &[before, &[0; 4]].concat());
            let queue = wish % queues;
            let teid = Completer::new(&KEY, before.len(), 16, table).complete(head, others, queue).unwrap();
            prop_assert_eq!(teid >> 16, head >> 16);
            prop_assert_ne!(teid, 0);
            let hash = toeplitz(&KEY, &[before, &teid.to_be_bytes()].concat());
            prop_assert_eq!(table.queue(hash), queue);
        }

        /// With any key: where it finds none, trying all finds none either.
        #[test]
        fn what_is_not_found_does_not_exist(key: [u8; 8], head: u32, queues in 1_u16..=64, wish: u16, free in 0_u32..=7) {
            let table = Table::new(queues, 6).unwrap();
            let queue = wish % queues;
            let leads = |teid: &u32| *teid != 0 && table.queue(toeplitz(&key, &teid.to_be_bytes())) == queue;
            let found = Completer::new(&key, 0, free, table).complete(head, 0, queue);
            match found {
                Some(teid) => prop_assert!(leads(&teid)),
                None => {
                    let head = head >> free << free;
                    // Of several ways to one entry only one is looked at, so TEID 0 may hide others.
                    prop_assume!(head != 0);
                    prop_assert!(!(0..1 << free).any(|low| leads(&(head | low))));
                }
            }
        }

        /// Mode (b): the uplink by its TEID, the downlink by the user's address, to one queue.
        #[test]
        fn both_directions_meet(address: u32, head: u32, queues in 1_u16..=64) {
            let table = Table::new(queues, 9).unwrap();
            let down = queue_of_address(IpAddr::V4(Ipv4Addr::from(address)), false, table);
            let teid = Completer::new(&KEY, 0, 16, table).complete(head, 0, down).unwrap();
            prop_assert_eq!(table.queue(toeplitz(&KEY, &teid.to_be_bytes())), down);
        }
    }

    #[test]
    fn tables_have_limits() {
        assert!(Table::new(0, 7).is_none() && Table::new(65, 7).is_none());
        assert!(Table::new(64, 5).is_none() && Table::new(2, 12).is_none());
        assert_eq!(Completer::new(&KEY, 0, 16, Table::new(4, 7).unwrap()).complete(7, 0, 4), None);
    }
}
