//! Ethernet PDU sessions of random worlds, their stations and frames.

use super::World;
use super::aim::aimed;
use super::frames::{Tunnel, tunnelled};
use super::random::{Random, chance, maybe, pick, pick_of, some_of};
use super::{Scope, filters};
use crate::ethernet::{ARP, IPV4, IPV6, VLAN, frame};
use crate::gtpu::G_PDU;
use crate::setup::{FramePort, Mac, Setup};
use rand::Rng;
use rules::*;

/// Whether what a tunnel of frames has in it begins like an IP packet, behind no extension header or the shortest one: the data plane
/// drops some of these by name, and worlds have none.
pub(super) fn are_like_packet(world: &World, bytes: &[u8]) -> bool {
    let is_of_frames = |teid: u32| {
        let mut pdis = world.sessions.iter().flat_map(|(_, rules)| &rules.pdrs).map(|pdr| &pdr.pdi);
        pdis.any(|pdi| pdi.ethernet.is_some() && pdi.f_teid.is_some_and(|f_teid| f_teid.teid.0 == teid))
    };
    bytes.windows(20).any(|part| match part {
        [_, G_PDU, _, _, t0, t1, t2, t3, plain, _, _, _, _, _, _, _, extended, ..] => {
            [plain, extended].contains(&&0x45) && is_of_frames(u32::from_be_bytes([*t0, *t1, *t2, *t3]))
        }
        _ => false,
    })
}

/// Of a session, but for those that stand for others.
const FILTERS: usize = limits::ETHERNET_FILTERS - 8;
/// The VLANs that are used.
const VLANS: [u16; 3] = [1, 7, 4_094];

/// Sessions of frames: some of the first network, and one of the second.
pub(super) const fn is_of_frames(scope: Scope, number: u32) -> bool {
    scope.frames && matches!(number, 4 | 8 | 9)
}

/// A port of frames in each network.
pub(super) fn add_ports(random: &mut Random, setup: &mut Setup) {
    let mut cores: Vec<Instance> = setup
        .ports
        .iter()
        .filter(|port| port.interface == Interface::Core)
        .map(|port| port.instance)
        .collect();
    cores.dedup();
    for instance in cores {
        if setup.frame_ports.iter().all(|port| port.network.1 != instance) {
            let mtu = pick(random, [1_500, 1_500, 300]);
            setup.frame_ports.push(FramePort { network: (Interface::Core, instance), mtu });
        }
    }
}

/// Makes a session of packets one of frames.
pub(super) fn convert(random: &mut Random, rules: &mut Rules) {
    let mut left = FILTERS;
    for pdr in &mut rules.pdrs {
        (pdr.pdi.ue_ipv4, pdr.pdi.ue_ipv6, pdr.pdi.framed_routes) = (None, None, vec![]);
        // Nobody looks into frames for what they are of.
        pdr.pdi.application = None;
        if chance(random, 600) {
            pdr.pdi.sdf_filters.clear();
        }
        let count = if pdr.precedence > 100 { 0 } else { left.min(pick(random, [0, 1, 1, 2, 3])) };
        left -= count;
        let filters = (0..count).map(|_| filter(random)).collect();
        pdr.pdi.ethernet = Some(Box::new(EthernetPdi { filters }));
    }
    lose_references(rules);
    share(random, rules);
    for far in &mut rules.fars {
        (far.redirect, far.duplicating, far.duplicates) = (None, false, vec![]);
        if far.apply_action == ApplyAction::Reset {
            far.apply_action = ApplyAction::Forward;
        }
        if let Some(to) = &mut far.forwarding {
            to.outer_header_creation = to.outer_header_creation.filter(|it| it.teid().is_some());
        }
    }
}

/// SDF filters that stand for one that is gone.
fn lose_references(rules: &mut Rules) {
    let is_reference = |filter: &SdfFilter| *filter == SdfFilter { id: filter.id, ..SdfFilter::default() };
    let all = || rules.pdrs.iter().flat_map(|pdr| &pdr.pdi.sdf_filters);
    let is_there = all().any(|filter| filter.id.is_some() && !is_reference(filter));
    if !is_there {
        rules.pdrs.iter_mut().for_each(|pdr| pdr.pdi.sdf_filters.retain(|filter| !is_reference(filter)));
    }
}

/// One filter goes both ways, and others name it.
fn share(random: &mut Random, rules: &mut Rules) {
    let mut of = rules.pdrs.iter_mut().filter_map(|pdr| pdr.pdi.ethernet.as_mut());
    let first = of.find_map(|ethernet| ethernet.filters.first_mut());
    let Some(first) = first.filter(|_| chance(random, 400)) else { return };
    (first.id, first.is_bidirectional) = (Some(3), true);
    for pdr in rules.pdrs.iter_mut().rev().take(3) {
        if let Some(ethernet) = pdr.pdi.ethernet.as_mut().filter(|_| chance(random, 500)) {
            ethernet.filters.push(EthernetFilter { id: Some(3), ..EthernetFilter::default() });
        }
    }
}

fn filter(random: &mut Random) -> EthernetFilter {
    let macs = if chance(random, 500) { pick(random, [1, 1, 2]) } else { 0 };
    let sdf = if chance(random, 250) { pick(random, [1, 2]) } else { 0 };
    EthernetFilter {
        id: None,
        is_bidirectional: chance(random, 200),
        macs: (0..macs).map(|_| mac_filter(random)).collect(),
        ethertype: maybe(random, 300, |random| pick(random, [IPV4, IPV6, ARP, VLAN])),
        c_tag: maybe(random, 250, tag_filter),
        s_tag: maybe(random, 150, tag_filter),
        sdf_filters: (0..sdf).map(|_| filters::filter(random, &[])).collect(),
    }
}

fn mac_filter(random: &mut Random) -> MacFilter {
    MacFilter { source: maybe(random, 500, range), destination: maybe(random, 500, range) }
}

fn range(random: &mut Random) -> MacRange {
    let (one, other) = (station(random), station(random));
    match chance(random, 600) {
        true => MacRange::one(one),
        false => MacRange { first: one.min(other), last: one.max(other) },
    }
}

fn tag_filter(random: &mut Random) -> TagFilter {
    TagFilter {
        id: maybe(random, 600, |random| pick(random, VLANS)),
        priority: maybe(random, 200, |random| pick(random, [0, 5])),
        drop_eligible: maybe(random, 150, |random| random.random()),
    }
}

/// Of few, so that they are met again, wherever they are.
fn station(random: &mut Random) -> Mac {
    [2, 0, 0, 0, 0x10, random.random_range(0..8)]
}

fn destination(random: &mut Random) -> Mac {
    match random.random_range(0..20) {
        0 | 1 => [0xff; 6],
        2 => [1, 0, 0x5e, 0, 0, 1],
        _ => station(random),
    }
}

/// A frame that nearly matches a PDI, and its port.
pub(super) fn packet(
    world: &World,
    random: &mut Random,
    (pdi, rules): (&Pdi, &Rules),
) -> Option<(usize, Vec<u8>)> {
    let filters = pdi.ethernet.as_ref().map(|ethernet| &ethernet.filters[..]).unwrap_or_default();
    let filter = pick_of(random, filters).cloned().unwrap_or_default();
    let mut wanted = pdi.clone();
    wanted.sdf_filters.extend(filter.sdf_filters.iter().cloned());
    let packet = aimed(world, random, (&wanted, rules));
    let bytes = self::frame_of(random, &filter, &packet);
    match pdi.f_teid {
        Some(f_teid) => {
            let ports = world.setup.ports.iter();
            let port = ports.enumerate().find(|(_, port)| port.has(f_teid.address)).map(|(at, _)| at)?;
            Some((port, tunnelled(world, random, Tunnel { port, f_teid, pdi }, &bytes)))
        }
        None => {
            let mut ports = world.setup.frame_ports.iter();
            let at = ports.position(|port| port.network.1 == pdi.instance)?;
            Some((world.setup.ports.len() + at, bytes))
        }
    }
}

fn frame_of(random: &mut Random, filter: &EthernetFilter, packet: &[u8]) -> Vec<u8> {
    let macs = pick_of(random, &filter.macs).copied().unwrap_or_default();
    let mut from = macs.source.map_or_else(|| station(random), |range| range.first);
    let mut to = macs.destination.map_or_else(|| destination(random), |range| range.last);
    if chance(random, 150) {
        (from, to) = (to, from);
    }
    if chance(random, 5) {
        from = [3, 0, 0, 0, 0, 1];
    }
    let own = if packet.first().is_some_and(|first| first >> 4 == 6) { IPV6 } else { IPV4 };
    let ethertype = filter.ethertype.filter(|_| chance(random, 700)).unwrap_or(own);
    let mut bytes = frame(to, from, if chance(random, 50) { ARP } else { ethertype }, packet);
    for kind in tags(random, filter) {
        let wanted = if kind == VLAN { filter.c_tag } else { filter.s_tag }.unwrap_or_default();
        let id = wanted.id.unwrap_or_else(|| pick(random, VLANS));
        let priority = wanted.priority.unwrap_or_else(|| pick(random, [0, 5]));
        let eligible = wanted.drop_eligible.unwrap_or_else(|| random.random());
        let tag = u16::from(priority) << 13 | u16::from(eligible) << 12 | id;
        let [[k0, k1], [t0, t1]] = [kind, tag].map(u16::to_be_bytes);
        bytes.splice(12..12, [k0, k1, t0, t1]);
    }
    bytes
}

/// Types of the tags, the innermost first.
fn tags(random: &mut Random, filter: &EthernetFilter) -> Vec<u16> {
    if chance(random, 30) {
        let all = [VLAN, 0x88a8, 0x9100, VLAN];
        return some_of(random, &all, 600);
    }
    let customers = filter.c_tag.is_some() || chance(random, 200);
    let providers = filter.s_tag.is_some() || chance(random, 80);
    let outer = pick(random, [0x88a8, 0x88a8, 0x9100]);
    [(customers, VLAN), (providers, outer)].into_iter().filter_map(|(is, kind)| is.then_some(kind)).collect()
}
