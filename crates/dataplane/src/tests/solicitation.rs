//! Which users are told a prefix.

use crate::fixture::{Bench, N3, SIX, six};

/// A device asks for routers, through the tunnel of [`SIX`].
fn solicitation() -> Vec<u8> {
    let golden = include_str!("../../golden/router_solicitation/with_address.golden");
    let hex = golden.lines().find_map(|line| line.strip_prefix("in n3 ")).unwrap();
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// What a device tells its routers besides has the same addresses, and no ports that would tell it apart.
#[test]
fn whatever_else_is_said_to_routers_solicitations_are_answered() {
    let mut bench = Bench::new();
    let mut rules = six();
    let up = rules.pdrs.iter_mut().find(|pdr| pdr.pdi.f_teid.is_some()).unwrap();
    up.pdi.ue_ipv6 = None;
    bench.put(SIX, 1, rules);
    bench.settle();
    let solicitation = solicitation();
    let mut listener = solicitation.clone();
    // Router Solicitation is type 133; Multicast Listener Done 132, and the checksum is one more.
    let at = listener.windows(4).position(|octets| octets[0] == 133 && octets[1] == 0).unwrap();
    listener[at] = 132;
    let sum = u16::from_be_bytes([listener[at + 2], listener[at + 3]]) + 0x100;
    listener[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
    bench.receive(N3, &listener);
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 0);
    bench.receive(N3, &solicitation);
    bench.settle();
    assert_eq!(bench.sent(N3).len(), 1);
}

/// Who has one address of a prefix would make up another, which no rule matches.
#[test]
fn who_has_a_single_address_is_told_no_prefix() {
    for (prefix, told) in [("2001:db8:60::/64", 1), ("2001:db8:60::7/128", 0)] {
        let mut bench = Bench::new();
        let mut rules = six();
        rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv6 = Some(prefix.parse().unwrap()));
        bench.put(SIX, 1, rules);
        bench.settle();
        bench.receive(N3, &solicitation());
        bench.settle();
        assert_eq!(bench.sent(N3).len(), told, "{prefix}");
        assert!(bench.worker.books().balanced());
    }
}
