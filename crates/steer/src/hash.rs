//! The hash of network cards over what is as long as a user's address or a TEID, by tables: a look-up for each octet.

use crate::KEY;

/// Octets of the longest input: an IPv6 prefix.
const OCTETS: usize = 8;

static TABLES: [[u32; 256]; OCTETS] = tables();

/// The Toeplitz hash under [`KEY`] of the octets of `input`, first to last. Zeros at the end change nothing, so an IPv4
/// address, or a TEID, stands in the first four octets.
#[inline]
pub fn hash64(input: u64) -> u32 {
    let at = |place: usize| {
        let octet = (input >> (56 - 8 * place)) as u8;
        TABLES.get(place).and_then(|table| table.get(usize::from(octet))).copied().unwrap_or_default()
    };
    let hash = at(0) ^ at(1) ^ at(2) ^ at(3);
    // An IPv4 address has no more.
    if input as u32 == 0 { hash } else { hash ^ at(4) ^ at(5) ^ at(6) ^ at(7) }
}

#[allow(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
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
#[allow(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
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
    use super::hash64;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tables_say_what_the_definition_says(input: u64) {
            prop_assert_eq!(hash64(input), crate::toeplitz(&crate::KEY, &input.to_be_bytes()));
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
            assert_eq!(hash64(bits(source) << 32 | bits(destination)), expected);
        }
    }
}
