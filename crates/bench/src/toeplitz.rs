//! The hash of network cards: Toeplitz with the key that drivers set by default and Microsoft published with its
//! test vectors ("Verifying the RSS hash calculation").

/// The well-known key.
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The hash of up to 36 octets.
pub(crate) fn toeplitz(input: &[u8]) -> u32 {
    let mut hash = 0;
    for (at, octet) in input.iter().enumerate() {
        for bit in 0..8 {
            if octet & 0x80 >> bit != 0 {
                hash ^= window(at * 8 + bit);
            }
        }
    }
    hash
}

/// The 32 bits of the key that start at a bit.
fn window(bit: usize) -> u32 {
    let octet = |at: usize| u64::from(KEY.get(bit / 8 + at).copied().unwrap_or(0));
    let five = (0..5).fold(0, |bits, at| bits << 8 | octet(at));
    (five >> (8 - bit % 8)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microsoft's vectors: source, destination, source port, destination port.
    #[test]
    fn published_vectors_come_out() {
        for (source, destination, ports, of_addresses, of_all) in [
            ([66, 9, 149, 187], [161, 142, 100, 80], [2794u16, 1766], 0x323e_8fc2, 0x51cc_c178),
            ([199, 92, 111, 2], [65, 69, 140, 83], [14230, 4739], 0xd718_262a, 0xc626_b0ea),
            ([24, 19, 198, 95], [12, 22, 207, 184], [12898, 38024], 0xd2d0_a5de, 0x5c2b_394a),
        ] {
            let addresses: Vec<u8> = [source, destination].concat();
            assert_eq!(toeplitz(&addresses), of_addresses);
            let all = [&addresses[..], &ports[0].to_be_bytes(), &ports[1].to_be_bytes()].concat();
            assert_eq!(toeplitz(&all), of_all);
        }
    }
}
