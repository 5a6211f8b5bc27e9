//! More datagrams in fragments than may be put together at once, which random worlds hardly have.

use super::pair::Pair;
use super::tally::Frame;
use crate::steering::Crew;
use packet::{ipv4, protocol};
use rand::{Rng, SeedableRng};
use reference::worlds::{Random, Scope};
use rules::Interface;
use std::collections::BTreeMap;

/// One of two fragments of a datagram to a port, from a host beside it. Put together, it is nothing that GTP-U knows.
fn half(pair: &Pair, host: u8, identification: u8, is_first: bool) -> Frame {
    let ports = pair.world.setup.ports.iter();
    let (at, port) = ports.enumerate().find(|(_, port)| port.interface == Interface::Access).unwrap();
    let datagram = [0, 9, 0x08, 0x68, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let part = if is_first { &datagram[..16] } else { &datagram[16..] };
    let header =
        ipv4::Header::new([10, 99, 0, host].into(), port.ipv4.addr(), protocol::UDP, part.len()).unwrap();
    let mut ip = [0; ipv4::LENGTH];
    header.write(&mut ip).unwrap();
    let place: u16 = if is_first { 0x2000 } else { 2 };
    (ip[5], ip[10], ip[11]) = (identification, 0, 0);
    ip[6..8].copy_from_slice(&place.to_be_bytes());
    let checksum = packet::checksum::of(&ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    Frame(at, [&port.mac[..], &[2, 0, 0, 0, 0, 9, 8, 0], &ip, part].concat())
}

#[test]
fn more_datagrams_in_fragments_than_may_be_give_way_as_the_reference_says() {
    let mut drops: BTreeMap<&str, u64> = BTreeMap::new();
    let mut consumed = 0;
    for seed in 0..20 {
        let mut pair = Pair::new(
            seed,
            Scope { twin_tunnels: false, applications: false, ..Scope::ALL },
            (&Crew::default(), false, 1),
        );
        let random = &mut Random::seed_from_u64(seed);
        // Few who have more than their share, or many who share a side.
        let hosts = if seed % 2 == 0 { 5 } else { 90 };
        for number in 0..600 {
            let (host, identification) = (random.random_range(0..hosts), random.random_range(0..40));
            let frame = half(&pair, host, identification, random.random());
            let (expected, seen) = pair.give(&[frame], None);
            assert_eq!(expected, seen, "fragment {number} of seed {seed}");
            consumed += seen.consumed;
            seen.drops.into_iter().for_each(|(reason, count)| *drops.entry(reason).or_default() += count);
        }
    }
    for reason in ["fragments_incomplete", "fragments_full", "bad_fragment"] {
        assert!(drops.get(reason).is_some_and(|count| *count > 100), "{reason} in {drops:?}");
    }
    assert!(consumed > 500, "{consumed}");
}
