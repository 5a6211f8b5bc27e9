//! Random sessions: what SGW-C, PGW-C and SMF ask for, and combinations that they might.

use super::environment::{Below, N3, N9, has_instances, host, ims, peer, server, user_ipv4, user_ipv6};
use super::random::{Random, chance, maybe, pick, pick_of, some_of};
use super::{Scope, content, filters, stations};
use ipnet::{IpNet, Ipv6Net};
use rules::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Rules of the session of this number; its tunnels and addresses are those of no other number.
pub(super) fn rules(random: &mut Random, scope: Scope, number: u32) -> Rules {
    let mut draft = Draft::new(random, scope, number);
    draft.add_qers_and_urrs(random);
    for source in draft.entries(random) {
        draft.add_pdrs(random, &source);
    }
    draft.share_filters(random);
    draft.lead_on_beyond_quotas(random);
    if stations::is_of_frames(scope, number) {
        stations::convert(random, &mut draft.rules);
    }
    draft.rules
}

/// Where a session's packets come in.
#[derive(Clone, Copy)]
struct Entry {
    source: Interface,
    f_teid: Option<FTeid>,
}

/// A session being made.
struct Draft {
    scope: Scope,
    number: u32,
    /// The network of its user.
    instance: Instance,
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Net>,
    /// Tunnels over IPv6.
    ipv6_tunnels: bool,
    /// There are networks behind the user.
    is_router: bool,
    /// Some rules are for applications.
    asks: bool,
    rules: Rules,
}

impl Draft {
    fn new(random: &mut Random, scope: Scope, number: u32) -> Self {
        let kind = if scope.ipv6_users { random.next_below(4) } else { 0 };
        // Of two sessions, one is of each network, and their users have the same addresses.
        let (instance, user) = match has_instances(scope) {
            true if number % 2 == 1 => (ims(), number / 2),
            true => (Instance::DEFAULT, number / 2 - 1),
            false => (Instance::DEFAULT, number),
        };
        Self {
            scope,
            number,
            instance,
            ipv4: (kind != 3).then(|| user_ipv4(user)),
            ipv6: (kind >= 2).then(|| user_ipv6(random, user)),
            ipv6_tunnels: scope.ipv6_transport && chance(random, 350),
            is_router: scope.framed_routes && chance(random, 300),
            asks: scope.applications && chance(random, 700),
            rules: Rules::default(),
        }
    }

    fn users(&self) -> Vec<IpAddr> {
        let ipv4 = self.ipv4.map(IpAddr::V4);
        ipv4.into_iter().chain(self.ipv6.map(|prefix| IpAddr::V6(prefix.addr()))).collect()
    }

    /// A tunnel of ours; different sessions have one TEID at different ports, and with twins at different addresses.
    fn f_teid(&self, port: usize, ipv6: bool, which: u32) -> FTeid {
        let shared = u32::from(port != N3) + if self.scope.twin_tunnels { u32::from(ipv6) } else { 0 };
        FTeid { teid: Teid(0x100 + 8 * (self.number + shared) + which), address: host(port, 2, ipv6) }
    }

    fn entries(&self, random: &mut Random) -> Vec<Entry> {
        let tunnel = |source, f_teid| Entry { source, f_teid: Some(f_teid) };
        let access = self.f_teid(N3, self.ipv6_tunnels, 0);
        let mut entries = vec![tunnel(Interface::Access, access)];
        if chance(random, 150) {
            entries.push(tunnel(Interface::Access, self.f_teid(N3, self.ipv6_tunnels, 1)));
        }
        if self.scope.twin_tunnels && self.scope.ipv6_transport && chance(random, 100) {
            let address = host(N3, 2, !self.ipv6_tunnels);
            let twin = Teid(0x1000_0000 + self.number);
            entries.push(tunnel(Interface::Access, FTeid { teid: twin, ..access }));
            entries.push(tunnel(Interface::Access, FTeid { teid: twin, address }));
        }
        let relay = self.scope.core_tunnels && chance(random, 300);
        if relay {
            entries.push(tunnel(Interface::Core, self.f_teid(N9, self.ipv6_tunnels, 0)));
        }
        // Where one port serves both sides.
        if self.scope.core_tunnels && chance(random, 150) {
            entries.push(tunnel(Interface::Core, self.f_teid(N3, self.ipv6_tunnels, 2)));
        }
        if self.scope.core_tunnels && chance(random, 100) {
            entries.push(tunnel(Interface::Access, self.f_teid(N9, self.ipv6_tunnels, 3)));
        }
        if !relay || chance(random, 300) {
            entries.push(Entry { source: Interface::Core, f_teid: None });
        }
        if self.scope.core_tunnels && chance(random, 100) {
            entries.push(Entry { source: Interface::SgiLan, f_teid: None });
        }
        entries
    }

    fn add_qers_and_urrs(&mut self, random: &mut Random) {
        for id in 1..=random.next_below(5) {
            self.rules.qers.push(qer(random, self.scope, id));
        }
        let bars = if self.scope.buffering { random.next_below(3) } else { 0 };
        self.rules.bars = (1..=bars).map(|id| bar(random, id as u8)).collect();
        let urrs = if self.scope.usage { random.next_below(4) } else { 0 };
        for id in 1..=urrs {
            self.rules.urrs.push(urr(random, id));
        }
    }

    /// Some for particular packets and, nearly always, one for the rest.
    fn add_pdrs(&mut self, random: &mut Random, entry: &Entry) {
        let particular = if chance(random, 15) { pick(random, [30, 100]) } else { random.next_below(4) };
        for _ in 0..particular {
            let precedence = pick(random, [1, 2, 2, 3, 100]);
            let pdi = self.pdi(random, entry, true);
            self.add_pdr(random, precedence, pdi);
        }
        if particular == 0 || chance(random, 900) {
            let precedence = pick(random, [255, 255, 0]);
            let pdi = self.pdi(random, entry, false);
            self.add_pdr(random, precedence, pdi);
        }
    }

    fn pdi(&self, random: &mut Random, entry: &Entry, particular: bool) -> Pdi {
        let named = entry.f_teid.is_none() || !self.scope.strangers || chance(random, 800);
        let mut pdi = Pdi {
            source_interface: entry.source,
            // Of packets in tunnels it says nothing.
            instance: if entry.f_teid.is_none() || chance(random, 500) { self.instance } else { ims() },
            f_teid: entry.f_teid,
            ue_ipv4: self.ipv4.filter(|_| named),
            ue_ipv6: self.ipv6.filter(|_| named),
            framed_routes: self.framed_routes(random, named),
            qfis: Vec::new(),
            sdf_filters: Vec::new(),
            application: None,
            ethernet: None,
        };
        // A router's own address may be nothing to the rule.
        if !pdi.framed_routes.is_empty() && chance(random, 100) {
            (pdi.ue_ipv4, pdi.ue_ipv6) = (None, None);
        }
        // With both addresses, each may have PDRs of its own.
        if pdi.ue_ipv4.is_some() && pdi.ue_ipv6.is_some() {
            match random.next_below(4) {
                0 => pdi.ue_ipv4 = None,
                1 => pdi.ue_ipv6 = None,
                _ => {}
            }
        }
        if particular && entry.f_teid.is_some() && chance(random, 400) {
            pdi.qfis = some_of(random, &[1, 5, 9, 63], 500).into_iter().filter_map(Qfi::new).collect();
        }
        if particular && self.scope.sdf_filters {
            let count = pick(random, [0, 1, 1, 1, 2, 4]);
            pdi.sdf_filters = (0..count).map(|_| filters::filter(random, &self.users())).collect();
        }
        if particular && self.asks {
            pdi.application = maybe(random, 450, content::application).flatten();
            if pdi.application.is_some() && chance(random, 600) {
                pdi.sdf_filters.clear();
            }
        }
        pdi
    }

    /// Some of those of this number: around all users and all other networks, or apart from them.
    fn framed_routes(&self, random: &mut Random, named: bool) -> Vec<IpNet> {
        if !named || !self.is_router {
            return Vec::new();
        }
        let number = self.number as u8;
        let lan = |third, fourth| Ipv4Addr::new(192, 168, third, fourth);
        let ipv4 = [(user_ipv4(0), 8 + number), (lan(number, 0), 24), (lan(100 + number, 9), 32)].into_iter();
        let ipv6 = [(0, 32 + number), (0x100 + u16::from(number), 56), (0x200 + u16::from(number), 64)]
            .map(|(third, length)| (Ipv6Addr::new(0x2001, 0xdb8, third, 0, 0, 0, 0, 0), length))
            .into_iter()
            .filter(|_| self.scope.ipv6_users);
        let ipv4 = ipv4.filter_map(|(address, length)| IpNet::new(address.into(), length).ok());
        let ipv6 = ipv6.filter_map(|(address, length)| IpNet::new(address.into(), length).ok());
        let all: Vec<IpNet> = ipv4.chain(ipv6).collect();
        some_of(random, &all, 500)
    }

    fn add_pdr(&mut self, random: &mut Random, precedence: u32, pdi: Pdi) {
        let id = PdrId(self.rules.pdrs.len() as u16 + 1);
        let qers: Vec<QerId> = self.rules.qers.iter().map(|qer| qer.id).collect();
        let urrs: Vec<UrrId> = self.rules.urrs.iter().map(|urr| urr.id).collect();
        let far = self.far(random, pdi.source_interface);
        self.rules.pdrs.push(Pdr {
            id,
            precedence,
            outer_header_removal: pdi.f_teid.is_some(),
            far,
            pdi,
            qers: some_of(random, &qers, 500).into(),
            urrs: some_of(random, &urrs, 600).into(),
        });
    }

    /// A FAR for packets from this side: mostly one of its own.
    fn far(&mut self, random: &mut Random, source: Interface) -> FarId {
        let id = FarId(self.rules.fars.len() as u32 + 1);
        let way_back = source.direction() == Direction::Downlink;
        let towards = |far: &&Far| {
            far.forwarding.is_none_or(|to| (to.destination_interface == Interface::Access) == way_back)
        };
        let others: Vec<FarId> = self.rules.fars.iter().filter(towards).map(|far| far.id).collect();
        if let Some(other) = pick_of(random, &others).filter(|_| chance(random, 200)) {
            return *other;
        }
        let apply_action = match random.next_below(20) {
            0 => ApplyAction::Drop,
            1 if self.scope.buffering => ApplyAction::Buffer,
            2 if self.scope.answers => ApplyAction::Reset,
            _ => ApplyAction::Forward,
        };
        let copied = match apply_action {
            ApplyAction::Reset => 0,
            ApplyAction::Forward => 80,
            ApplyAction::Drop | ApplyAction::Buffer => 300,
        };
        let copies = match self.scope.duplicates && chance(random, copied) {
            true => pick(random, [1, 1, 2]),
            false => 0,
        };
        let needed = matches!(apply_action, ApplyAction::Forward | ApplyAction::Reset) || chance(random, 500);
        let redirects = self.scope.redirects && chance(random, 120);
        let bars: Vec<BarId> = self.rules.bars.iter().map(|bar| bar.id).collect();
        let bar = pick_of(random, &bars).copied().filter(|_| chance(random, 600));
        let has_portal = self.scope.answers && chance(random, 90);
        self.rules.fars.push(Far {
            id,
            apply_action,
            notify: chance(random, 500),
            forwarding: needed.then(|| self.destination(random, way_back)),
            duplicating: copies > 0,
            duplicates: (0..copies).map(|_| self.destination(random, way_back)).collect(),
            bar,
            redirect: match (redirects, has_portal) {
                (_, true) => Redirect::by_url("http://portal.example/more"),
                (true, false) => redirect(random),
                (false, false) => None,
            },
            enrichment: None,
        });
        id
    }

    fn destination(&self, random: &mut Random, way_back: bool) -> ForwardingParameters {
        let core = self.scope.core_tunnels && chance(random, 250);
        let lan = self.scope.core_tunnels && chance(random, 80);
        let across = self.scope.core_tunnels && chance(random, 150);
        let (destination_interface, port) = match (way_back, core, lan) {
            (true, ..) => (Interface::Access, Some(if across { N9 } else { N3 })),
            (false, true, _) => (Interface::Core, Some(if across { N3 } else { N9 })),
            (false, false, true) => (Interface::SgiLan, None),
            (false, false, false) => (Interface::Core, None),
        };
        let ipv6 = self.ipv6_tunnels;
        // Some plain packets go behind a UDP header instead, to stations of the data network, and now and then to ourselves.
        let is_udp = self.scope.core_tunnels && destination_interface == Interface::Core && port.is_none();
        let outer_header_creation = match port {
            None if is_udp && chance(random, 150) => Some(udp(random, ipv6)),
            None => None,
            Some(port) => {
                let teid = Teid(0x8000 + 16 * self.number + random.next_below(4));
                Some(OuterHeaderCreation::gtpu(teid, peer(random, port, ipv6)))
            }
        };
        let dscp =
            if self.scope.dscp { maybe(random, 300, |random| pick(random, [0, 10, 46, 63])) } else { None };
        let instance = match destination_interface {
            Interface::Core if outer_header_creation.is_none_or(|it| it.teid().is_none()) => self.instance,
            // Where there is one network, others lead nowhere.
            _ if has_instances(self.scope) && chance(random, 20) => ims(),
            _ => Instance::DEFAULT,
        };
        ForwardingParameters { destination_interface, instance, outer_header_creation, dscp, policy: None }
    }

    /// Gives some URRs a FAR for the time after their quota: one of the session's, whatever it does and wherever it leads,
    /// or one of its own.
    fn lead_on_beyond_quotas(&mut self, random: &mut Random) {
        for at in 0..self.rules.urrs.len() {
            let has_quota = self.rules.urrs.get(at).is_some_and(|urr| urr.volume_quota.is_some());
            if !has_quota || !self.scope.quota_fars || !chance(random, 600) {
                continue;
            }
            let fars: Vec<FarId> = self.rules.fars.iter().map(|far| far.id).collect();
            let known = pick_of(random, &fars).copied().filter(|_| chance(random, 500));
            let far = known.unwrap_or_else(|| self.far(random, Interface::Access));
            if let Some(urr) = self.rules.urrs.get_mut(at) {
                urr.quota_far = Some(far);
            }
        }
    }

    /// Gives some filters an ID, and lets other PDRs name them by it (BID).
    fn share_filters(&mut self, random: &mut Random) {
        if self.rules.pdrs.len() < 2 || !chance(random, 250) {
            return;
        }
        let mut filters = self.rules.pdrs.iter_mut().flat_map(|pdr| &mut pdr.pdi.sdf_filters);
        let Some(filter) = filters.next() else { return };
        filter.id = Some(7);
        if let Some(last) = self.rules.pdrs.last_mut() {
            last.pdi.sdf_filters.push(SdfFilter { id: Some(7), ..SdfFilter::default() });
        }
    }
}

/// To stations of the data network, and now and then to ourselves.
fn udp(random: &mut Random, ipv6: bool) -> OuterHeaderCreation {
    let is_us = chance(random, 50);
    let to = if is_us { host(N3 + 1, 2, ipv6) } else { peer(random, N3 + 1, ipv6) };
    OuterHeaderCreation::udp(5_000, to)
}

/// To hosts that other packets go to, too, and now and then to ourselves.
fn redirect(random: &mut Random) -> Option<Redirect> {
    let ipv4 = if chance(random, 50) { host(N3 + 1, 2, false) } else { server(random, false) };
    let ipv6 = server(random, true);
    match random.next_below(4) {
        0 => Redirect::by_addresses(ipv4, None),
        1 => Redirect::by_addresses(ipv6, None),
        _ => Redirect::by_addresses(ipv4, Some(ipv6)),
    }
}

pub(super) fn gate(random: &mut Random) -> Gate {
    if chance(random, 40) { Gate::Closed } else { Gate::Open }
}

fn qer(random: &mut Random, scope: Scope, id: u32) -> Qer {
    let mut packets =
        || maybe(random, 120, |random| PacketRate { packets: pick(random, [0, 20, 200]), window_s: 1 });
    let packet_rates = PacketRates { uplink: packets(), downlink: packets() };
    Qer {
        id: QerId(id),
        uplink_gate: gate(random),
        downlink_gate: gate(random),
        mbr: if scope.rates { maybe(random, 400, rates) } else { None },
        packet_rates: if scope.rates { packet_rates } else { PacketRates::default() },
        correlation: maybe(random, 200, |random| pick(random, [1, 1, 2])),
        gbr: None,
        qfi: maybe(random, 600, |random| pick(random, [1, 5, 9, 63])).and_then(Qfi::new),
        reflective: scope.reflective && chance(random, 200),
    }
}

/// Some keep nothing, and some are full soon.
pub(super) fn bar(random: &mut Random, id: u8) -> Bar {
    let suggested_packets = maybe(random, 800, |random| pick(random, [0, 1, 3, 3, 20]));
    Bar { id: BarId(id), notification_delay_50ms: 0, suggested_packets, extended: None }
}

pub(super) fn rates(random: &mut Random) -> BitRates {
    let mut kbps = || pick(random, [0, 64, 500, 3_333, 10_000, 100_000, 1_000_000, 77_777_777]);
    BitRates { uplink_kbps: kbps(), downlink_kbps: kbps() }
}

fn urr(random: &mut Random, id: u32) -> Urr {
    Urr {
        id: UrrId(id),
        methods: Methods { volume: true, ..Methods::default() },
        triggers: Triggers(Triggers::VOLUME_THRESHOLD.0 | Triggers::VOLUME_QUOTA.0),
        volume_threshold: maybe(random, 300, volume),
        volume_quota: maybe(random, 250, volume),
        before_qos: chance(random, 250),
        dropped_downlink: maybe(random, 300, |random| DroppedDownlink {
            packets: maybe(random, 500, |random| pick(random, [1, 10])),
            bytes: maybe(random, 500, |random| pick(random, [1, 1_000])),
        }),
        inactive: chance(random, 80),
        ..Urr::default()
    }
}

pub(super) fn volume(random: &mut Random) -> Volume {
    let bytes = |random: &mut Random| pick(random, [0, 1_000, 10_000, 50_000, 1_000_000]);
    Volume {
        total: maybe(random, 700, bytes),
        uplink: maybe(random, 200, bytes),
        downlink: maybe(random, 200, bytes),
    }
}
