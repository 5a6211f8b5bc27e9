//! Random SDF filters, from a small stock of values so that they overlap.

use super::environment::server;
use super::random::{Random, chance, maybe, pick};
use crate::ip::{DCCP, ESP, ICMP, ICMPV6, SCTP, TCP, UDP, UDP_LITE};
use ipnet::IpNet;
use rules::{Addresses, FlowDescription, FlowEnd, PortRange, SdfFilter, TrafficClass};
use std::net::IpAddr;

pub(super) const PORTS: [u16; 9] = [53, 80, 80, 443, 443, 5060, 8085, 40000, 0];
pub(super) const PROTOCOLS: [u8; 10] = [UDP, UDP, TCP, TCP, SCTP, UDP_LITE, DCCP, ICMP, ICMPV6, ESP];
pub(super) const CLASSES: [u8; 5] = [0, 0xb8, 0x28, 0x49, 0xff];
pub(super) const LABELS: [u32; 3] = [0, 1, 0xa_bcde];
pub(super) const SPIS: [u32; 3] = [0x1001, 0x1002, 0xdead_beef];

/// A filter that asks for at least one thing, for a user with these addresses.
pub(super) fn filter(random: &mut Random, users: &[IpAddr]) -> SdfFilter {
    let flow = maybe(random, 850, |random| flow(random, users));
    let traffic_class = maybe(random, 150, |random| TrafficClass {
        value: pick(random, CLASSES),
        mask: pick(random, [0xff, 0xfc, 0xfc, 0xe0]),
    });
    let spi = maybe(random, 60, |random| pick(random, SPIS));
    let label = maybe(random, 60, |random| pick(random, LABELS));
    let nothing = flow.is_none() && traffic_class.is_none() && spi.is_none() && label.is_none();
    SdfFilter {
        flow: if nothing { Some(self::flow(random, users)) } else { flow },
        traffic_class,
        spi,
        flow_label: label,
        id: None,
    }
}

fn flow(random: &mut Random, users: &[IpAddr]) -> FlowDescription {
    let ipv6 =
        users.iter().any(IpAddr::is_ipv6) && (users.iter().all(IpAddr::is_ipv6) || chance(random, 500));
    let remote = maybe(random, 600, |random| {
        let address = server(random, ipv6);
        addresses(random, address)
    });
    let own = users.iter().find(|user| user.is_ipv6() == ipv6).copied();
    let user = own.and_then(|user| maybe(random, 200, |random| addresses(random, user)));
    let protocol = maybe(random, 700, |random| pick(random, PROTOCOLS));
    // Rules that ask for ports of a protocol without them are refused.
    let has_ports = protocol.is_none_or(|protocol| [TCP, UDP, SCTP, UDP_LITE, DCCP].contains(&protocol));
    let (remote_ports, user_ports) =
        if has_ports { (ports(random, 600), ports(random, 150)) } else { (vec![], vec![]) };
    FlowDescription {
        protocol,
        remote: FlowEnd { addresses: remote, ports: remote_ports },
        user: FlowEnd { addresses: user, ports: user_ports },
    }
}

/// Now and then all others.
fn addresses(random: &mut Random, address: IpAddr) -> Addresses {
    let prefix = prefix(random, address);
    Addresses { prefix, inverted: chance(random, 150) && prefix.prefix_len() > 0 }
}

/// Mostly one address; not always with its host bits cleared.
fn prefix(random: &mut Random, address: IpAddr) -> IpNet {
    let whole = if address.is_ipv6() { 128 } else { 32 };
    let less = pick(random, [0, 0, 0, 1, 8, whole]);
    let net = IpNet::new(address, whole - less).unwrap_or_default();
    if chance(random, 500) { net.trunc() } else { net }
}

fn ports(random: &mut Random, per_mille: u32) -> Vec<PortRange> {
    if !chance(random, per_mille) {
        return Vec::new();
    }
    let count = pick(random, [1, 1, 1, 2, 3]);
    (0..count).map(|_| range(random)).collect()
}

fn range(random: &mut Random) -> PortRange {
    let first = pick(random, PORTS);
    match pick(random, [0, 0, 1, 2]) {
        0 => PortRange { first, last: first },
        1 => PortRange { first, last: first.saturating_add(10) },
        _ => PortRange { first, last: u16::MAX },
    }
}
