//! Addresses that no router forwards to, nor from (RFC 1812 5.3.7, RFC 4291 2.5 and 2.7).

use super::drops;
use super::redirect::tunnelled;
use crate::counters::DropReason;
use crate::fixture::{Bench, N3, N6, rules};
use packet::{ipv4, ipv6, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const USER: u64 = 4;
pub(super) const OF_IPV4: Ipv4Addr = Ipv4Addr::new(10, 60, 0, USER as u8);
pub(super) const OF_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x60, 0, 0, 0, 0, 1);

/// With a user of both versions.
fn bench() -> Bench {
    let mut bench = Bench::bare();
    let mut rules = rules(USER);
    rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ipv6 = Some("2001:db8:60::/64".parse().unwrap()));
    bench.put(USER, 1, rules);
    bench.settle();
    bench
}

/// A packet of 8 octets, which begin as a datagram's, or a message of ICMP, do.
pub(super) fn packet(carried: u8, from: IpAddr, to: IpAddr) -> Vec<u8> {
    let payload = [3, 4, 0, 53, 0, 8, 0, 0];
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut bytes = vec![0; ipv4::LENGTH];
            ipv4::Header::new(from, to, carried, payload.len()).unwrap().write(&mut bytes).unwrap();
            [&bytes[..], &payload].concat()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let front = [0x60, 0, 0, 0, 0, payload.len() as u8, carried, 64];
            [&front[..], &from.octets(), &to.octets(), &payload].concat()
        }
        _ => panic!("of two versions"),
    }
}

/// How many of two packets leave from the user to this address, and how many are dropped for it.
fn to_far_end(to: IpAddr) -> (usize, u64) {
    let mut bench = bench();
    let from = if to.is_ipv4() { OF_IPV4.into() } else { OF_IPV6.into() };
    for _ in 0..2 {
        bench.receive(N3, &tunnelled(USER, &packet(protocol::UDP, from, to)));
        bench.settle();
    }
    (bench.sent(N6).len(), drops(&bench, DropReason::IpNotForUs))
}

/// The same of two packets to the user from this address.
fn from_far_end(from: IpAddr, carried: u8) -> (usize, u64) {
    let packet = packet(carried, from, if from.is_ipv4() { OF_IPV4.into() } else { OF_IPV6.into() });
    to_user([&packet, &packet])
}

/// The same of these.
fn to_user(packets: [&[u8]; 2]) -> (usize, u64) {
    let mut bench = bench();
    for packet in packets {
        let ethertype = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
        let header = [[2, 0, 0, 0, 6, 2], [2, 0, 0, 0, 6, 1]].concat();
        bench.receive(N6, &[&header[..], &ethertype, packet].concat());
        bench.settle();
    }
    (bench.sent(N3).len(), drops(&bench, DropReason::IpNotForUs))
}

/// Those next to them are others' addresses.
const NOBODY: [&str; 12] = [
    "0.0.0.0",
    "127.0.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::203.0.113.80",
    "::ffff:203.0.113.80",
    "ff02::1",
    "ff0e::1",
    "fe80::1",
    "febf::1",
];
const SOMEBODY: [&str; 7] =
    ["1.0.0.1", "126.255.255.255", "128.0.0.1", "223.255.255.1", "::1:0:0:1", "::fffe:cb00:7150", "fec0::1"];

fn each<const N: usize>(texts: [&str; N]) -> [IpAddr; N] {
    texts.map(|text| text.parse().unwrap())
}

#[test]
fn what_users_send_to_nobody_s_address_is_dropped() {
    each(NOBODY).into_iter().for_each(|to| assert_eq!(to_far_end(to), (0, 2), "{to}"));
    each(SOMEBODY).into_iter().for_each(|to| assert_eq!(to_far_end(to), (2, 0), "{to}"));
}

#[test]
fn what_comes_from_nobody_s_address_is_dropped() {
    let is_of_udp = |from| from_far_end(from, protocol::UDP);
    each(NOBODY).into_iter().for_each(|from| assert_eq!(is_of_udp(from), (0, 2), "{from}"));
    each(SOMEBODY).into_iter().for_each(|from| assert_eq!(is_of_udp(from), (2, 0), "{from}"));
}

/// One user hears by these of what was sent to another, where the network leads it back to us.
#[test]
fn from_our_own_address_users_have_icmp_alone() {
    let ours = each(["10.50.0.2", "2001:db8:6::2", "10.30.0.2"]);
    for (from, icmp) in ours.into_iter().zip([protocol::ICMP, protocol::ICMPV6, protocol::ICMP]) {
        assert_eq!(from_far_end(from, protocol::UDP), (0, 2), "{from}");
        assert_eq!(from_far_end(from, icmp), (2, 0), "{from}");
    }
}

/// Destination options in front of a message make no other flow of it.
#[test]
fn what_a_flow_has_from_our_own_address_is_the_same_behind_headers_of_ipv6() {
    const OPTIONS: u8 = 60;
    for (carried, expected) in [(protocol::ICMPV6, (2, 0)), (protocol::UDP, (0, 2))] {
        let bare = packet(carried, "2001:db8:6::2".parse().unwrap(), OF_IPV6.into());
        let (header, payload) = bare.split_at(ipv6::LENGTH);
        let mut behind = [header, &[carried, 0, 1, 4, 0, 0, 0, 0], payload].concat();
        (behind[5], behind[6]) = (8 + payload.len() as u8, OPTIONS);
        assert_eq!(to_user([&bare, &behind]), expected);
        assert_eq!(to_user([&behind, &bare]), expected);
    }
}
