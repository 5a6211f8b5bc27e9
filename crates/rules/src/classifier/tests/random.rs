//! Sessions and packets from a seed. Values come from small pools, so that packets often nearly match.

use crate::fixture::{UE, pdi, pdr, rules};
use crate::*;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How much a session holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// From and to.
    pdrs: (u16, u16),
    /// In a PDR, at most.
    filters: usize,
    /// In a filter's end, at most.
    ranges: usize,
    /// Different addresses and ports.
    values: u32,
    /// Percentages of PDRs with filters and filters with flows, and of flows with a remote prefix or remote ports.
    detail: (u32, u32),
}

impl Scale {
    pub(super) const SMALL: Self = Self { pdrs: (1, 12), filters: 3, ranges: 3, values: 4, detail: (85, 60) };
    pub(super) const MEDIUM: Self =
        Self { pdrs: (1, 150), filters: 6, ranges: 3, values: 12, detail: (85, 60) };
    pub(super) const LARGE: Self =
        Self { pdrs: (1, 1_000), filters: 5, ranges: 3, values: 60, detail: (85, 60) };
    /// More values than an index may have intervals.
    pub(super) const SPREAD: Self =
        Self { pdrs: (1_000, 1_000), filters: 6, ranges: 6, values: 60_000, detail: (100, 95) };
}

pub(super) fn session(random: &mut Pcg64, scale: Scale) -> Rules {
    let count = random.random_range(scale.pdrs.0..=scale.pdrs.1);
    let mut pdrs: Vec<Pdr> = (0..count).map(|id| random_pdr(random, scale, id)).collect();
    refer(random, &mut pdrs);
    Rules { pdrs, ..rules() }
}

/// The filters of ten PDRs all in the first of them, the others behind: more filters and PDRs than a row has bits.
pub(super) fn crowded(random: &mut Pcg64) -> Rules {
    let mut rules = session(random, Scale::SPREAD);
    for pdrs in rules.pdrs.chunks_mut(10) {
        let filters = pdrs.iter_mut().flat_map(|pdr| std::mem::take(&mut pdr.pdi.sdf_filters)).collect();
        pdrs.iter_mut().for_each(|pdr| pdr.precedence = 10);
        (pdrs[0].pdi.sdf_filters, pdrs[0].precedence) = (filters, 0);
    }
    rules
}

fn random_pdr(random: &mut Pcg64, scale: Scale, id: u16) -> Pdr {
    let f_teid = some(random, 50, |random| FTeid { teid: teid(random), address: UE.into() });
    let ue_ipv4 = some(random, 60, ue_ipv4);
    let ue_ipv6 = some(random, 60, |random| {
        let length = *[64, 128].choose(random).unwrap();
        Ipv6Net::new(ue_ipv6(random), length).unwrap()
    });
    let unreachable = f_teid.is_none() && ue_ipv4.is_none() && ue_ipv6.is_none();
    let pdi = Pdi {
        f_teid,
        ue_ipv4: if unreachable { Some(UE) } else { ue_ipv4 },
        ue_ipv6,
        framed_routes: some(random, 15, |random| list(random, 3, framed_route)).unwrap_or_default(),
        instance: instance(random),
        qfis: some(random, 20, |random| list(random, 4, qfi)).unwrap_or_default(),
        sdf_filters: some(random, scale.detail.0, |random| list(random, scale.filters, |r| filter(r, scale)))
            .unwrap_or_default(),
        application: some(random, 10, application),
        ..pdi(interface(random))
    };
    Pdr { precedence: random.random_range(0..10), ..pdr(id, pdi, 2) }
}

/// Lets some filters be nothing but the ID of another.
fn refer(random: &mut Pcg64, pdrs: &mut [Pdr]) {
    let all = pdrs.iter_mut().flat_map(|pdr| &mut pdr.pdi.sdf_filters);
    let mut last = None;
    for (filter, id) in all.zip(0..) {
        match last {
            Some(last) if random.random_ratio(1, 10) => {
                *filter = SdfFilter { id: Some(last), ..SdfFilter::default() };
            }
            _ if filter.flow.is_some() => {
                filter.id = Some(id);
                last = Some(id);
            }
            _ => {}
        }
    }
}

fn filter(random: &mut Pcg64, scale: Scale) -> SdfFilter {
    SdfFilter {
        flow: some(random, scale.detail.0, |random| flow(random, scale)),
        traffic_class: some(random, 15, |random| TrafficClass {
            value: random.random(),
            mask: *[0, 0xff, 0xfc, 0x03, 0x81, random.random()].choose(random).unwrap(),
        }),
        spi: some(random, 8, spi),
        flow_label: some(random, 8, label),
        id: None,
    }
}

fn flow(random: &mut Pcg64, scale: Scale) -> FlowDescription {
    let is_ipv4 = random.random();
    let protocol = some(random, 60, protocol);
    let with_ports = protocol.is_none_or(|protocol| [6, 17].contains(&protocol));
    let mut end = |percent| FlowEnd {
        addresses: some(random, percent, |random| addresses(random, scale, is_ipv4)),
        ports: some(random, if with_ports { percent } else { 0 }, |random| {
            list(random, scale.ranges, |random| range(random, scale))
        })
        .unwrap_or_default(),
    };
    FlowDescription { protocol, remote: end(scale.detail.1), user: end(25) }
}

fn addresses(random: &mut Pcg64, scale: Scale, is_ipv4: bool) -> Addresses {
    let prefix = prefix(random, scale, is_ipv4);
    Addresses { prefix, inverted: random.random_ratio(1, 8) }
}

fn prefix(random: &mut Pcg64, scale: Scale, is_ipv4: bool) -> IpNet {
    if is_ipv4 {
        let length = *[0, 8, 24, 25, 30, 31, 32].choose(random).unwrap();
        Ipv4Net::new(ipv4(random, scale), length).unwrap().into()
    } else {
        let length = *[0, 3, 32, 64, 120, 127, 128].choose(random).unwrap();
        Ipv6Net::new(ipv6(random, scale), length).unwrap().into()
    }
}

/// Around users' addresses, or far from them.
fn framed_route(random: &mut Pcg64) -> IpNet {
    if random.random() {
        let length = *[0, 8, 29, 30, 31, 32].choose(random).unwrap();
        Ipv4Net::new(ue_ipv4(random), length).unwrap().into()
    } else {
        let length = *[0, 3, 48, 62, 63, 64].choose(random).unwrap();
        Ipv6Net::new(ue_ipv6(random), length).unwrap().into()
    }
}

fn range(random: &mut Pcg64, scale: Scale) -> PortRange {
    let first = port(random, scale);
    let last = if random.random() { first } else { port(random, scale) };
    PortRange { first: first.min(last), last: first.max(last) }
}

/// Half of the packets are made to look like one of the filters.
pub(super) fn packet(random: &mut Pcg64, rules: &Rules) -> Arrival {
    let scale = Scale::LARGE;
    let is_ipv4 = random.random();
    let has_ports = random.random_ratio(4, 5);
    let mut packet = Arrival {
        source: interface(random),
        instance: instance(random),
        teid: some(random, 50, teid),
        qfi: some(random, 50, qfi),
        ue: if is_ipv4 { ue_ipv4(random).into() } else { ue_ipv6(random).into() },
        remote: if is_ipv4 { ipv4(random, scale).into() } else { ipv6(random, scale).into() },
        protocol: protocol(random),
        ue_port: has_ports.then(|| port(random, scale)),
        remote_port: has_ports.then(|| port(random, scale)),
        traffic_class: random.random(),
        spi: some(random, 20, spi),
        flow_label: some(random, 50, label),
        application: match random.random_range(0..5) {
            0 => Application::Any,
            1 => Application::None,
            2 => {
                let is_of_one = random.random();
                let of = Some(application(random).tag()).filter(|_| is_of_one);
                Application::Charged(of, application(random).tag())
            }
            _ => Application::Of(application(random).tag()),
        },
    };
    if random.random_ratio(3, 4) {
        let pdr = rules.pdrs.choose(random).unwrap();
        imitate(random, &pdr.pdi, &mut packet);
    }
    packet
}

fn imitate(random: &mut Pcg64, pdi: &Pdi, packet: &mut Arrival) {
    packet.source = pdi.source_interface;
    packet.instance = pdi.instance;
    packet.teid = pdi.f_teid.map(|f_teid| f_teid.teid);
    packet.qfi = pdi.qfis.choose(random).copied().or(packet.qfi);
    packet.ue = match packet.ue {
        IpAddr::V4(ue) => pdi.ue_ipv4.unwrap_or(ue).into(),
        IpAddr::V6(ue) => pdi.ue_ipv6.map_or(ue, |prefix| prefix.addr()).into(),
    };
    let Some(filter) = pdi.sdf_filters.choose(random) else { return };
    packet.traffic_class = filter.traffic_class.map_or(packet.traffic_class, |class| class.value);
    packet.spi = filter.spi.or(packet.spi);
    packet.flow_label = filter.flow_label.or(packet.flow_label);
    let Some(flow) = &filter.flow else { return };
    packet.protocol = flow.protocol.unwrap_or(packet.protocol);
    packet.remote_port = port_of(&flow.remote, packet.remote_port);
    packet.ue_port = port_of(&flow.user, packet.ue_port);
    let wanted = flow.remote.addresses.map(|wanted| wanted.prefix);
    if let Some(prefix) = wanted.filter(|prefix| prefix.addr().is_ipv4() == packet.ue.is_ipv4()) {
        packet.remote = *[prefix.network(), prefix.broadcast(), prefix.addr()].choose(random).unwrap();
    }
}

fn port_of(end: &FlowEnd, otherwise: Option<u16>) -> Option<u16> {
    otherwise.map(|port| end.ports.last().map_or(port, |range| range.last))
}

fn some<T>(random: &mut Pcg64, percent: u32, make: impl FnOnce(&mut Pcg64) -> T) -> Option<T> {
    random.random_ratio(percent, 100).then(|| make(random))
}

fn list<T>(random: &mut Pcg64, most: usize, mut make: impl FnMut(&mut Pcg64) -> T) -> Vec<T> {
    (0..random.random_range(1..=most)).map(|_| make(random)).collect()
}

fn interface(random: &mut Pcg64) -> Interface {
    *[Interface::Access, Interface::Core, Interface::SgiLan].choose(random).unwrap()
}

fn instance(random: &mut Pcg64) -> Instance {
    *[Instance::DEFAULT, Instance::of("ims")].choose(random).unwrap()
}

fn teid(random: &mut Pcg64) -> Teid {
    Teid(*[1, 2, u32::MAX].choose(random).unwrap())
}

fn qfi(random: &mut Pcg64) -> Qfi {
    Qfi::new(*[0, 1, 5, 6, 63].choose(random).unwrap()).unwrap()
}

fn protocol(random: &mut Pcg64) -> u8 {
    *[0, 1, 6, 17, 50, 255].choose(random).unwrap()
}

fn spi(random: &mut Pcg64) -> u32 {
    *[0, 1, u32::MAX].choose(random).unwrap()
}

fn application(random: &mut Pcg64) -> ApplicationId {
    ApplicationId::new(["video", "voice"].choose(random).unwrap()).unwrap()
}

fn label(random: &mut Pcg64) -> u32 {
    *[0, 1, 0xf_ffff].choose(random).unwrap()
}

fn port(random: &mut Pcg64, scale: Scale) -> u16 {
    match random.random_range(0..scale.values + 2) {
        0 => 0,
        1 => u16::MAX,
        value => (value * 997 % 65_536) as u16,
    }
}

fn ue_ipv4(random: &mut Pcg64) -> Ipv4Addr {
    *[UE, Ipv4Addr::new(10, 60, 0, 2)].choose(random).unwrap()
}

fn ue_ipv6(random: &mut Pcg64) -> Ipv6Addr {
    let link = random.random_range(1..3);
    *[Ipv6Addr::new(0x2001, 0xdb8, 0, link, 0, 0, 0, 1), UE.to_ipv6_mapped()].choose(random).unwrap()
}

fn ipv4(random: &mut Pcg64, scale: Scale) -> Ipv4Addr {
    let last = *[0, 1, 127, 128, 254, 255].choose(random).unwrap();
    let value = random.random_range(0..scale.values);
    Ipv4Addr::new(192, (value >> 8) as u8, value as u8, last)
}

fn ipv6(random: &mut Pcg64, scale: Scale) -> Ipv6Addr {
    let value = random.random_range(0..scale.values);
    *[
        Ipv6Addr::new(0x2001, 0xdb8, 1, value as u16, 0, 0, 0, 0),
        Ipv6Addr::new(0x2001, 0xdb8, 1, value as u16, 0xffff, 0xffff, 0xffff, 0xffff),
        ipv4(random, scale).to_ipv6_mapped(),
        Ipv6Addr::from_bits(u128::MAX),
    ]
    .choose(random)
    .unwrap()
}
