//! The hash of network cards: Toeplitz, with the key that drivers set by default and Microsoft published ("Verifying the
//! RSS hash calculation"). A table for each octet makes it a few look-ups.

const KEY: [u8; 12] = [0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d];

/// Octets of the longest input: an IPv6 prefix.
const OCTETS: usize = 8;

static TABLES: [[u32; 256]; OCTETS] = tables();

/// Of the octets of `input`, first to last; zeros at the end change nothing, so an IPv4 address stands in the first four.
#[inline]
pub(super) fn hash(input: u64) -> u32 {
    let [a, b, c, d, rest @ ..] = input.to_be_bytes();
    let [first, second, third, fourth, ..] = &TABLES;
    let hash =
        first[usize::from(a)] ^ second[usize::from(b)] ^ third[usize::from(c)] ^ fourth[usize::from(d)];
    match rest {
        [0, 0, 0, 0] => hash,
        rest => {
            rest.iter().zip(&TABLES[4..]).fold(hash, |hash, (octet, table)| hash ^ table[usize::from(*octet)])
        }
    }
}

const fn tables() -> [[u32; 256]; OCTETS] {
    let mut tables = [[0; 256]; OCTETS];
    let mut at = 0;
    while at < OCTETS {
        let mut octet = 0;
        while octet < 256 {
            tables[at][octet] = part(at, octet as u8);
            octet += 1;
        }
        at += 1;
    }
    tables
}

/// What one octet adds: for each bit set, the 32 bits of the key that start there.
const fn part(at: usize, octet: u8) -> u32 {
    let mut key = 0_u64;
    let mut next = 0;
    while next < 5 {
        key = key << 8 | KEY[at + next] as u64;
        next += 1;
    }
    let (mut hash, mut bit) = (0, 0);
    while bit < 8 {
        if octet & 0x80 >> bit != 0 {
            hash ^= (key >> (8 - bit)) as u32;
        }
        bit += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::hash;
    use proptest::prelude::*;

    proptest! {
        /// Cards get the key of `steer`: behind one that hashes users' addresses, nothing is handed over.
        #[test]
        fn a_card_set_up_by_our_rules_agrees(user: u64) {
            prop_assert_eq!(hash(user), steer::toeplitz(&steer::KEY, &user.to_be_bytes()));
        }
    }

    /// Microsoft's vectors over both addresses: the first eight octets are source and destination.
    #[test]
    fn published_vectors_come_out() {
        for (source, destination, expected) in [
            ([66, 9, 149, 187], [161, 142, 100, 80], 0x323e_8fc2),
            ([199, 92, 111, 2], [65, 69, 140, 83], 0xd718_262a),
            ([24, 19, 198, 95], [12, 22, 207, 184], 0xd2d0_a5de),
            ([38, 27, 205, 30], [209, 142, 163, 6], 0x8298_9176),
        ] {
            let bits = |octets| u64::from(u32::from_be_bytes(octets));
            assert_eq!(hash(bits(source) << 32 | bits(destination)), expected);
        }
    }
}
