//! The hash of network cards (Toeplitz), and the one key all our ports get.

use crate::Table;
use std::net::IpAddr;

/// The key of all ports: the one Microsoft published with test vectors for 40 octets ("Verifying the RSS hash
/// calculation"), begun again for cards that take 52. One key everywhere is what makes one address hash alike on the
/// access port (as inner source) and on the core port (as destination).
pub const KEY: [u8; 52] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa, 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25,
    0x3d,
];

/// The 32 bits of `key` from bit `at` on, counted from its first; beyond its end the key is zero.
pub(crate) fn window(key: &[u8], at: usize) -> u32 {
    let octet = |index: usize| u64::from(key.get(index).copied().unwrap_or(0));
    let bits = (0..5).fold(0_u64, |bits, step| bits << 8 | octet(at / 8 + step));
    u32::try_from(bits >> (8 - at % 8) & 0xffff_ffff).unwrap_or(0)
}

/// The Toeplitz hash of `input` under `key`, which should be 4 octets longer.
pub fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
    let bit_is_set = |at: &usize| input.get(at / 8).is_some_and(|octet| octet & (0x80 >> (at % 8)) != 0);
    (0..input.len() * 8).filter(bit_is_set).fold(0, |hash, at| hash ^ window(key, at))
}

/// The queue a port leads the packets of a user's address to: the hash of the address alone under [`KEY`], looked up in
/// the port's table. Of an IPv6 address the first 64 bits count where `prefix64` says so, as a user has all of them.
pub fn queue_of_address(address: IpAddr, prefix64: bool, table: Table) -> u16 {
    let hash = match address {
        IpAddr::V4(address) => toeplitz(&KEY, &address.octets()),
        IpAddr::V6(address) => {
            let octets = address.octets();
            let counted = if prefix64 { 8 } else { 16 };
            toeplitz(&KEY, octets.get(..counted).unwrap_or(&octets))
        }
    };
    table.queue(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Microsoft's vectors for IPv4 and IPv6: source, destination, then ports.
    #[test]
    fn published_vectors_come_out() {
        let v4 = [66, 9, 149, 187, 161, 142, 100, 80];
        assert_eq!(toeplitz(&KEY, &v4), 0x323e_8fc2);
        let with_ports = [&v4[..], &2794_u16.to_be_bytes(), &1766_u16.to_be_bytes()].concat();
        assert_eq!(toeplitz(&KEY, &with_ports), 0x51cc_c178);
        let source: std::net::Ipv6Addr = "3ffe:2501:200:1fff::7".parse().unwrap();
        let destination: std::net::Ipv6Addr = "3ffe:2501:200:3::1".parse().unwrap();
        assert_eq!(toeplitz(&KEY, &[source.octets(), destination.octets()].concat()), 0x2cc1_8cd5);
    }

    proptest! {
        /// What `Completer` rests on.
        #[test]
        fn the_hash_is_linear(a: [u8; 8], b: [u8; 8], key: [u8; 12]) {
            let both: Vec<u8> = a.iter().zip(b).map(|(a, b)| a ^ b).collect();
            prop_assert_eq!(toeplitz(&key, &both), toeplitz(&key, &a) ^ toeplitz(&key, &b));
        }

        #[test]
        fn of_a_prefix_all_addresses_go_to_one_queue(prefix: u64, one: u64, other: u64, queues in 1_u16..=64) {
            let table = Table::new(queues, 9).unwrap();
            let address = |low: u64| IpAddr::from((u128::from(prefix) << 64 | u128::from(low)).to_be_bytes());
            prop_assert_eq!(queue_of_address(address(one), true, table), queue_of_address(address(other), true, table));
        }
    }
}
