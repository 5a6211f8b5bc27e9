//! What tells one flow of a user from another, the same for both directions.

use packet::five_tuple::FiveTuple;
use rules::Direction;

/// Bits of the last word: protocol, version, later fragment.
const VERSION_SHIFT: u32 = 8;
const FRAGMENT_SHIFT: u32 = 16;
const PORTS_SHIFT: u32 = 32;

/// The user's address, the far end's, and the rest. No key of a packet is all zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowKey {
    words: [u64; 5],
}

impl FlowKey {
    /// The key of no flow.
    pub(crate) const NONE: Self = Self { words: [0; 5] };

    /// The key of a packet that goes one way.
    #[inline]
    pub(crate) fn new(tuple: &FiveTuple, direction: Direction) -> Self {
        let (user, remote, ports) = match direction {
            Direction::Uplink => {
                (&tuple.source, &tuple.destination, [tuple.source_port, tuple.destination_port])
            }
            Direction::Downlink => {
                (&tuple.destination, &tuple.source, [tuple.destination_port, tuple.source_port])
            }
        };
        // IPsec has no ports; its two directions have different SPIs, and so are two flows.
        let ports = (u64::from(ports[0]) << 16 | u64::from(ports[1])) ^ u64::from(tuple.spi);
        let kind = u64::from(tuple.protocol)
            | u64::from(tuple.version) << VERSION_SHIFT
            | u64::from(tuple.fragment) << FRAGMENT_SHIFT;
        let [user_high, user_low] = halves(*user);
        let [remote_high, remote_low] = halves(*remote);
        Self { words: [user_high, remote_high, user_low, remote_low, ports << PORTS_SHIFT | kind] }
    }

    /// For tables; senders who do not know `seed` cannot aim at one place.
    #[inline]
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let [a, b, c, d, e] = self.words;
        let mut hash = mix(a ^ seed, b ^ 0x9e37_79b9_7f4a_7c15);
        if c | d != 0 {
            hash ^= mix(c ^ seed.rotate_left(32), d ^ 0xc2b2_ae3d_27d4_eb4f);
        }
        mix(hash ^ seed, e ^ 0x1656_67b1_9e37_79f9)
    }
}

/// Both halves of the product: every bit of either factor reaches the result.
#[inline]
const fn mix(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline]
const fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}
