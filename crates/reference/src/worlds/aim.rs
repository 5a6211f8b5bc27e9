//! Packets made to match a PDR, or to miss it narrowly.

use super::environment::{host, server};
use super::random::{Random, chance, maybe, pick, pick_of};
use super::{World, content, damage, filters, frames, quotes, stations, user_packets};
use crate::detection::meant;
use crate::ip::{ESP, TCP, UDP};
use ipnet::{IpNet, Ipv6Net};
use rand::Rng;
use rules::{Addresses, Direction, FTeid, FlowDescription, FlowEnd, Pdi, Rules, SdfFilter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a user's packet is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) traffic_class: u8,
    pub(super) flow_label: u32,
    pub(super) spi: u32,
    /// Bytes behind the upper layer's header.
    pub(super) payload: usize,
    /// Where it is of TCP: with options, and not always a SYN.
    pub(super) has_options: bool,
    /// Where it is of TCP: any segment, not always a SYN.
    pub(super) goes_on: bool,
    /// It is a segment of TCP, or a datagram, that means something.
    pub(super) speaks: Option<Speech>,
    /// Where it is a fragment: of which packet.
    pub(super) identification: u16,
}

/// Who says something, and what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speech {
    pub(super) from: Direction,
    pub(super) of: Subject,
}

/// What is spoken of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    /// Over TCP: requests, and what is like nothing.
    Words,
    /// Over TCP: the user speaks TLS, and begins with this one of all ClientHellos.
    Hello(u64),
    /// Over TCP: a name is asked for.
    Question,
    /// Over UDP: a name.
    Lookup,
    /// Over UDP: calls.
    Media,
}

/// A frame with a user's packet for one PDR of one session, and its port; `None` where no session has PDRs.
pub(super) fn packet(world: &World, random: &mut Random) -> Option<(usize, Vec<u8>)> {
    let (_, rules) = pick_of(random, &world.sessions)?;
    let pdi = &pick_of(random, &rules.pdrs)?.pdi;
    if pdi.ethernet.is_some() {
        return stations::packet(world, random, (pdi, rules));
    }
    let aim = aim(world, random, pdi, rules);
    let mut packet = match world.scope.redirects && chance(random, 50) {
        true => quotes::error(random, &aim, (pdi.source_interface.direction(), rules)),
        false => user_packets::build(random, &aim),
    };
    if world.scope.damage && chance(random, 25) {
        damage::spoil(random, &mut packet);
        damage::mend_checksum(random, &mut packet);
    }
    content::without_long_syn(rules, &mut packet);
    let right = |port: &crate::PortSetup| match pdi.f_teid {
        Some(f_teid) => port.has(f_teid.address),
        None => port.interface == pdi.source_interface && port.instance == pdi.instance,
    };
    let ports: Vec<usize> =
        (0..).zip(&world.setup.ports).filter(|(_, port)| right(port)).map(|(at, _)| at).collect();
    let mut port = *pick_of(random, &ports)?;
    if chance(random, 5) {
        port = random.random_range(0..world.setup.ports.len());
    }
    let frame = match pdi.f_teid {
        Some(f_teid) => {
            let tunnel = frames::Tunnel { port, f_teid: near(random, f_teid), pdi };
            frames::tunnelled(world, random, tunnel, &packet)
        }
        None => frames::plain(world, random, port, &packet),
    };
    Some((port, frame))
}

/// A user's packet for a PDI, by itself.
pub(super) fn aimed(world: &World, random: &mut Random, (pdi, rules): (&Pdi, &Rules)) -> Vec<u8> {
    let aim = aim(world, random, pdi, rules);
    user_packets::build(random, &aim)
}

/// Now and then a tunnel that is likely nobody's.
fn near(random: &mut Random, mut f_teid: FTeid) -> FTeid {
    if chance(random, 8) {
        f_teid.teid.0 = f_teid.teid.0.wrapping_add(pick(random, [1, 8, 0x4000]));
    }
    f_teid
}

fn aim(world: &World, random: &mut Random, pdi: &Pdi, rules: &Rules) -> Aim {
    let wanted = pick_of(random, &pdi.sdf_filters).map(|filter| meant(filter, rules));
    let filter = wanted.filter(|_| chance(random, 800)).cloned().unwrap_or_default();
    let ue = user(random, pdi, &filter, rules);
    let flow = filter.flow.clone().unwrap_or_default();
    let remote = match flow.remote.addresses {
        Some(wanted) if wanted.prefix.addr().is_ipv6() == ue.is_ipv6() => aimed_at(random, wanted),
        _ => server(random, ue.is_ipv6()),
    };
    let (ue_port, remote_port) = (port(random, &flow.user), port(random, &flow.remote));
    let class = filter.traffic_class.map(|class| class.value & class.mask);
    let mtu = world.setup.ports.first().map_or(1500, |port| usize::from(port.mtu));
    let protocol = match filter.spi {
        Some(_) => pick(random, [crate::ip::ESP, crate::ip::ESP, crate::ip::AH]),
        None => flow.protocol.unwrap_or_else(|| pick(random, filters::PROTOCOLS)),
    };
    let aim = Aim {
        source: ue,
        destination: remote,
        protocol,
        source_port: ue_port,
        destination_port: remote_port,
        traffic_class: class.unwrap_or_else(|| pick(random, filters::CLASSES)),
        flow_label: filter.flow_label.unwrap_or_else(|| pick(random, filters::LABELS)),
        spi: filter.spi.unwrap_or_else(|| pick(random, filters::SPIS)),
        payload: payload(random, mtu),
        has_options: world.scope.clamping && chance(random, 300),
        goes_on: world.scope.answers && chance(random, 700),
        speaks: None,
        identification: if world.scope.parts { pick(random, [7, 7, 7, 8]) } else { random.random() },
    };
    let aim = speaking(world, random, &flow, aim);
    let aim = asking(world, random, &flow, aim);
    let aim = towards(random, pdi, aim);
    let from = pdi.source_interface.direction();
    Aim { speaks: aim.speaks.map(|speech| Speech { from, ..speech }), ..aim }
}

/// Often a segment of a connection of which there are few, so that it says something with others.
fn speaking(world: &World, random: &mut Random, flow: &FlowDescription, aim: Aim) -> Aim {
    let may_speak = flow.protocol.is_none_or(|protocol| protocol == TCP) && aim.protocol != ESP;
    if !world.scope.applications || !may_speak || !chance(random, 700) {
        return aim;
    }
    let remote = pick(random, [80, 80, 80, 80, 80, 443, 443, 443, 443, 53]);
    let destination_port = if flow.remote.ports.is_empty() { remote } else { aim.destination_port };
    let hello = hello(world, random, (aim.destination, destination_port));
    let asks = destination_port == 53 && chance(random, 500);
    let of = hello.map_or(if asks { Subject::Question } else { Subject::Words }, Subject::Hello);
    Aim {
        protocol: TCP,
        speaks: Some(Speech { from: Direction::Uplink, of }),
        source_port: if flow.user.ports.is_empty() { 40_000 } else { aim.source_port },
        destination_port,
        ..aim
    }
}

/// Now and then a lookup or media, where it may be either.
fn asking(world: &World, random: &mut Random, flow: &FlowDescription, aim: Aim) -> Aim {
    let may_ask = flow.protocol.is_none_or(|protocol| protocol == UDP) && flow.remote.ports.is_empty();
    if !world.scope.applications || !may_ask || aim.protocol == ESP || !chance(random, 150) {
        return aim;
    }
    let media = Subject::Media;
    let (of, destination_port) = pick(random, [(Subject::Lookup, 53), (media, 5_004), (media, 443)]);
    let speaks = Some(Speech { from: Direction::Uplink, of });
    let source_port = if flow.user.ports.is_empty() { 40_000 } else { aim.source_port };
    Aim { protocol: UDP, speaks, source_port, destination_port, ..aim }
}

/// With which ClientHello a user begins: mostly the same with the same server, so that its segments belong together.
fn hello(world: &World, random: &mut Random, (server, port): (IpAddr, u16)) -> Option<u64> {
    let is_tls = chance(random, if port == 443 { 900 } else { 100 });
    let last = match server {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() as u64,
    };
    let of_server = last.wrapping_add(port.into()).wrapping_mul(8);
    let other = maybe(random, 100, |random| random.random_range(1..8)).unwrap_or(0);
    is_tls.then(|| world.hellos.wrapping_add(of_server).wrapping_add(other))
}

/// Turned around on the downlink; now and then the far end is ourselves, or nobody.
fn towards(random: &mut Random, pdi: &Pdi, aim: Aim) -> Aim {
    let is_ipv6 = aim.source.is_ipv6();
    let far_end = match random.random_range(0..1_000) {
        0..8 => host(pick(random, [0, 1]), 2, is_ipv6),
        8..16 => nobody(random, is_ipv6),
        _ => aim.destination,
    };
    let aim = Aim { destination: far_end, ..aim };
    match pdi.source_interface.direction() {
        Direction::Uplink => aim,
        Direction::Downlink => Aim {
            source: aim.destination,
            destination: aim.source,
            source_port: aim.destination_port,
            destination_port: aim.source_port,
            ..aim
        },
    }
}

/// An address that no router forwards to, or one next to these.
fn nobody(random: &mut Random, is_ipv6: bool) -> IpAddr {
    let texts = match is_ipv6 {
        true => {
            ["::", "::1", "::ffff:203.0.113.80", "::203.0.113.80", "ff0e::1", "ff02::1", "fe80::1", "::1:0:0"]
        }
        false => [
            "0.0.0.0",
            "127.0.0.1",
            "224.0.0.1",
            "239.1.2.3",
            "255.255.255.255",
            "240.0.0.1",
            "223.255.255.1",
            "1.0.0.1",
        ],
    };
    pick(random, texts).parse().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// The user's address: of the PDI, or of another PDR of the session; now and then a neighbour's.
fn user(random: &mut Random, pdi: &Pdi, filter: &SdfFilter, rules: &Rules) -> IpAddr {
    let named = [pdi].into_iter().chain(rules.pdrs.iter().map(|pdr| &pdr.pdi));
    let mut addresses = named.flat_map(|pdi| {
        let ipv4 = pdi.ue_ipv4.map(IpAddr::V4);
        ipv4.into_iter().chain(pdi.ue_ipv6.map(|prefix| IpAddr::V6(prefix.addr())))
    });
    let first = addresses.next();
    let other = addresses.next();
    let wanted = filter.flow.as_ref().and_then(|flow| flow.remote.addresses);
    let wanted = wanted.map(|wanted| wanted.prefix.addr().is_ipv6());
    let pdis = [pdi].into_iter().chain(rules.pdrs.iter().map(|pdr| &pdr.pdi));
    let routes: Vec<IpNet> = pdis.flat_map(|pdi| &pdi.framed_routes).copied().collect();
    if let Some(route) = pick_of(random, &routes).copied().filter(|_| chance(random, 400)) {
        return within(random, route);
    }
    let fits = |address: &IpAddr| wanted.is_none_or(|ipv6| address.is_ipv6() == ipv6);
    let chosen = match (first, other) {
        (Some(first), Some(other)) if !fits(&first) || chance(random, 300) => other,
        (Some(first), _) => first,
        (None, _) => IpAddr::V4([10, 60, 0, 1].into()),
    };
    let step = maybe(random, 10, |random| pick(random, [1, 2]));
    if chosen.is_ipv6() && chance(random, 10) {
        return IpAddr::V6(pick(random, [Ipv6Addr::UNSPECIFIED, Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)]));
    }
    match chosen {
        IpAddr::V4(address) => IpAddr::V4((u32::from(address) + step.unwrap_or(0)).into()),
        // Within the prefix any host will do.
        IpAddr::V6(address) => {
            let hosts = pick(random, [0, 0, 0, 7, 0xffff_ffff_ffff]);
            Ipv6Addr::from((u128::from(address) ^ hosts) + (u128::from(step.unwrap_or(0)) << 64)).into()
        }
    }
}

/// Of those that are not wanted as often as of the others, and mostly next to them.
fn aimed_at(random: &mut Random, wanted: Addresses) -> IpAddr {
    let inside = within(random, wanted.prefix);
    match wanted.inverted && chance(random, 500) {
        true => beside(wanted.prefix).unwrap_or_else(|| server(random, inside.is_ipv6())),
        false => inside,
    }
}

/// The address above a prefix.
fn beside(prefix: IpNet) -> Option<IpAddr> {
    match prefix {
        IpNet::V4(net) => net.broadcast().to_bits().checked_add(1).map(|bits| Ipv4Addr::from(bits).into()),
        IpNet::V6(net) => net.broadcast().to_bits().checked_add(1).map(|bits| Ipv6Addr::from(bits).into()),
    }
}

/// An address of a prefix.
fn within(random: &mut Random, prefix: IpNet) -> IpAddr {
    if chance(random, 500) {
        return prefix.addr();
    }
    match prefix {
        IpNet::V4(net) => {
            (u32::from(net.addr()) ^ random.random::<u32>() & u32::from(net.hostmask())).to_be_bytes().into()
        }
        IpNet::V6(net) => v6_within(net, random.random::<u128>()).into(),
    }
}

fn v6_within(net: Ipv6Net, bits: u128) -> Ipv6Addr {
    (u128::from(net.addr()) ^ bits & u128::from(net.hostmask())).into()
}

/// A port that the end of a flow takes; now and then the one before or behind a range.
fn port(random: &mut Random, end: &FlowEnd) -> u16 {
    let Some(range) = pick_of(random, &end.ports) else { return pick(random, filters::PORTS) };
    match random.random_range(0..20) {
        0 => range.first.wrapping_sub(1),
        1 => range.last.wrapping_add(1),
        2..=8 => range.last,
        _ => range.first,
    }
}

/// Mostly short, for speed; sometimes around what the MTU allows, with and without a tunnel.
fn payload(random: &mut Random, mtu: usize) -> usize {
    match random.random_range(0..100) {
        0..=59 => random.random_range(0..64),
        60..=94 => random.random_range(64..400),
        _ => mtu.saturating_sub(random.random_range(0..130)),
    }
}
