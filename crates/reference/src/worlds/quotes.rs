//! ICMP errors about packets of the other direction, as whoever got them, or was on their way, sends them.

use super::aim::Aim;
use super::environment::server;
use super::random::{Random, chance, pick, pick_of};
use super::user_packets;
use crate::icmp::icmp_message;
use crate::ip::{self, ICMP, ICMPV6, TCP, UDP};
use rand::Rng;
use rules::{Direction, RedirectTo, Rules};
use std::net::IpAddr;

/// Nobody quotes more.
const QUOTED_MAX: usize = 500;

/// The error where another packet was aimed at: about one that has its ends, the other way round.
pub(super) fn error(random: &mut Random, aim: &Aim, (direction, rules): (Direction, &Rules)) -> Vec<u8> {
    let elsewhere = elsewhere(random, rules, aim.source).filter(|_| direction == Direction::Downlink);
    let aim = &Aim { source: elsewhere.unwrap_or(aim.source), ..*aim };
    let about = Aim {
        source: aim.destination,
        destination: aim.source,
        source_port: aim.destination_port,
        destination_port: aim.source_port,
        protocol: pick(random, [TCP, UDP, aim.protocol]),
        payload: aim.payload.min(64),
        speaks: None,
        ..*aim
    };
    let mut quoted = user_packets::build(random, &about);
    quoted.truncate(if chance(random, 200) { random.random_range(0..60) } else { QUOTED_MAX });
    let is_of_router = direction == Direction::Downlink && chance(random, 300);
    let source = if is_of_router { server(random, aim.source.is_ipv6()) } else { aim.source };
    let (protocol, kind, pseudo) = match (source, aim.destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let pseudo = ip::pseudo_header(source, destination, ICMPV6, 8 + quoted.len());
            (ICMPV6, pick(random, [[1, 4], [2, 0], [3, 0], [4, 1]]), pseudo)
        }
        _ => (ICMP, pick(random, [[3, 3], [3, 4], [11, 0], [12, 0], [5, 1]]), vec![]),
    };
    let message = icmp_message(&pseudo, kind, random.random_range(0..1_500), &quoted);
    let new = ip::New { protocol, traffic_class: aim.traffic_class, hops: 64 };
    ip::packet(source, aim.destination, new, &message)
}

/// Mostly where the session's user is sent in the place of others.
fn elsewhere(random: &mut Random, rules: &Rules, like: IpAddr) -> Option<IpAddr> {
    let redirects = rules.fars.iter().filter_map(|far| match far.redirect.as_ref()?.to() {
        RedirectTo::Addresses(addresses) => addresses.like(like),
        RedirectTo::Url(_) => None,
    });
    let addresses: Vec<IpAddr> = redirects.collect();
    pick_of(random, &addresses).copied().filter(|_| chance(random, 900))
}
