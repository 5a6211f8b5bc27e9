//! Who is on the wire, and what a worker is configured with: the one file that knows rules.

use crate::product::Population;
use dataplane::{Config, Crew, Lasting, Limits, PortConfig, Route};
use host::{MemoryFolder, Root};
use packet::ethernet::MacAddress;
use packet::{ipv4, udp};
use rules::{
    ApplicationId, ApplyAction, BitRates, FTeid, Far, FarId, FlowDescription, FlowEnd, ForwardingParameters,
    Gate, Instance, Interface, Methods, OuterHeaderCreation, PacketRates, Pdi, Pdr, PdrId, Qer, QerId, Qfi,
    Rules, SdfFilter, Teid, Urr, UrrId, Volume,
};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steer::Matching;
use traffic::{Endpoints, User, catalogue};

/// The ports, by their place.
pub(crate) const N3: usize = 0;
pub(crate) const N6: usize = 1;

pub(crate) const ENDPOINTS: Endpoints = Endpoints {
    n3: (MacAddress([2, 0, 0, 0, 3, 2]), Ipv4Addr::new(10, 30, 0, 2)),
    n6: (MacAddress([2, 0, 0, 0, 6, 2]), Ipv4Addr::new(10, 50, 0, 2)),
    gnb: (MacAddress([2, 0, 0, 0, 3, 1]), Ipv4Addr::new(10, 30, 0, 1)),
    router: (MacAddress([2, 0, 0, 0, 6, 1]), Ipv4Addr::new(10, 50, 0, 1)),
};

/// Where every Linux has memory with names.
const SHARED_MEMORY: &str = "/dev/shm";
/// User number 0 has this address.
const FIRST_USER: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
/// The QoS flow of all users.
pub(crate) const QFI: u8 = 9;

/// Bytes of the headers of a user's tunnel: IPv4, UDP, GTP-U with a PDU session container.
pub(crate) const TUNNEL_HEADERS: usize = ipv4::LENGTH + udp::LENGTH + GTPU_HEADER;
/// Where a frame has its TEID.
const TEID: Range<usize> = 46..50;
/// Checked by a test against what the `packet` crate writes.
const GTPU_HEADER: usize = 16;

/// Fewest PDRs of a session: one up, one down.
pub(crate) const PDRS_MIN: u32 = 2;

/// User `number`'s address, tunnel and QoS flow.
pub(crate) fn user(number: u32) -> User {
    let address = Ipv4Addr::from(u32::from(FIRST_USER).wrapping_add(number));
    User { address, teid: number.wrapping_add(1), qfi: QFI }
}

/// TEIDs as a node chooses them, so that they hash as their users' addresses do.
pub(crate) struct ChosenTunnels(Matching);

impl ChosenTunnels {
    pub(crate) fn new() -> Self {
        Self(Matching::new())
    }

    fn teid(&self, number: u32) -> Teid {
        let block = number.wrapping_add(1).wrapping_mul(Matching::BLOCK);
        Teid(self.0.teid(block, u64::from(user(number).address.to_bits()) << 32))
    }

    /// Moves the rules of user `number` to the chosen tunnel.
    pub(crate) fn move_rules(&self, number: u32, rules: &mut Rules) {
        let endpoints = rules.pdrs.iter_mut().filter_map(|pdr| pdr.pdi.f_teid.as_mut());
        endpoints.for_each(|f_teid| f_teid.teid = self.teid(number));
    }

    /// The same with a frame that a user sent.
    pub(crate) fn move_frame(&self, frame: &mut [u8]) -> Option<()> {
        let teid = frame.get_mut(TEID)?.first_chunk_mut()?;
        let number = u32::from_be_bytes(*teid).wrapping_sub(1);
        *teid = self.teid(number).0.to_be_bytes();
        Some(())
    }
}

/// The number of the user with this address.
pub(crate) fn number_of(address: Ipv4Addr) -> u32 {
    u32::from(address).wrapping_sub(u32::from(FIRST_USER))
}

/// The two ports.
pub(crate) fn ports() -> Vec<PortConfig> {
    let port = |name: &str, (mac, address): (MacAddress, Ipv4Addr), interface| {
        let address = ipnet::Ipv4Net::new(address, 24).ok()?;
        let (name, device) = (name.to_owned(), "memory".to_owned());
        let (address6, vlan, instance) = (None, None, Instance::DEFAULT);
        let mtu = 1_500;
        Some(PortConfig {
            name,
            device,
            interface,
            instance,
            mac,
            address,
            address6,
            mtu,
            vlan,
            mss_clamp: false,
            ethernet: false,
            punt: None,
        })
    };
    let ports = [port("n3", ENDPOINTS.n3, Interface::Access), port("n6", ENDPOINTS.n6, Interface::Core)];
    ports.into_iter().flatten().collect()
}

/// Counts lie in memory with a name, as those of a data plane do, which outlive it. These do not: the name is given up at once.
fn lasting(limits: &Limits) -> Option<Arc<Lasting>> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = Path::new(SHARED_MEMORY);
    let small = MemoryFolder::of(&Root::system(), folder).filter(|found| !found.has_huge_pages());
    // Whoever may not is slower, as a data plane there would be.
    let has_huge_pages = small.is_none_or(|small| small.allow_huge_pages().is_ok());
    let node = format!("anchorline-bench-{}", std::process::id());
    let lasting = Lasting::create(folder, &node, NEXT.fetch_add(1, Ordering::Relaxed)).ok()?;
    let lasting = lasting.keeping_flows(has_huge_pages);
    lasting.forget().ok()?;
    lasting.has_room_for(&Crew::default(), limits).ok().map(|()| Arc::new(lasting))
}

/// A worker's configuration for these sessions.
pub(crate) fn config(population: &Population) -> Config {
    let Population { sessions, pdrs, flows, .. } = *population;
    let route =
        Route { prefix: ipnet::Ipv4Net::default().into(), via: ENDPOINTS.router.1.into(), instance: None };
    let limits = Limits {
        sessions: sessions as usize,
        // Memory for rules is given out in powers of two.
        pdrs: sessions as usize * pdrs.next_power_of_two() as usize,
        flows: flows as usize,
        ..Limits::default()
    };
    Config {
        ports: ports(),
        routes: vec![route],
        policies: vec![],
        lasting: lasting(&limits),
        limits,
        // Nobody would answer.
        echo: dataplane::Echo::OFF,
        resolvers: vec![],
        epoch: 1,
        awaits_sessions: false,
        seed: 1,
    }
}

/// The rules of user `number`: `pdrs` PDRs, half of them up, of which the last by precedence matches the user's
/// packets and no other does; two FARs, a QER with a rate and a URR, both of which all of them share.
pub(crate) fn rules(number: u32, pdrs: u32) -> Rules {
    let user = user(number);
    let tunnel = OuterHeaderCreation::gtpu(Teid(user.teid), ENDPOINTS.gnb.1.into());
    let far = |id, destination_interface, outer_header_creation| Far {
        id: FarId(id),
        apply_action: ApplyAction::Forward,
        forwarding: Some(ForwardingParameters {
            destination_interface,
            instance: Instance::DEFAULT,
            outer_header_creation,
            dscp: None,
            policy: None,
        }),
        notify: false,
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    };
    let qer = Qer {
        id: QerId(1),
        uplink_gate: Gate::Open,
        downlink_gate: Gate::Open,
        qfi: Qfi::new(user.qfi),
        mbr: Some(BitRates { uplink_kbps: 1_000_000_000, downlink_kbps: 1_000_000_000 }),
        packet_rates: PacketRates::default(),
        correlation: None,
        gbr: None,
        reflective: false,
    };
    let urr = Urr { id: UrrId(1), methods: Methods { volume: true, ..Methods::default() }, ..Urr::default() };
    Rules {
        pdrs: pdrs_of(user, pdrs),
        fars: vec![far(1, Interface::Core, None), far(2, Interface::Access, Some(tunnel))],
        qers: vec![qer],
        urrs: vec![urr],
        bars: vec![],
    }
}

/// Why a user's rules refuse his packets, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The gates of his QERs are closed.
    Gates,
    /// His QERs have this MBR, which is far less than he sends.
    Rate { kbps: u64 },
    /// His URRs have a quota that his first packet uses up.
    Quota,
}

/// Has a user's rules refuse what they forward.
pub(crate) fn refuse(refusal: Refusal, rules: &mut Rules) {
    match refusal {
        Refusal::Gates => rules.qers.iter_mut().for_each(|qer| {
            (qer.uplink_gate, qer.downlink_gate) = (Gate::Closed, Gate::Closed);
        }),
        Refusal::Rate { kbps } => rules.qers.iter_mut().for_each(|qer| {
            qer.mbr = Some(BitRates { uplink_kbps: kbps, downlink_kbps: kbps });
        }),
        Refusal::Quota => rules.urrs.iter_mut().for_each(|urr| {
            urr.volume_quota = Some(Volume { total: Some(1), ..Volume::default() });
        }),
    }
}

/// The same of a user with two PDRs, and besides them a pair for each of some services, counted by a URR each.
pub(crate) fn service_rules(number: u32, pdrs: u32) -> Rules {
    let mut rules = rules(number, PDRS_MIN);
    for pair in 0..pdrs.saturating_sub(PDRS_MIN) / 2 {
        let service = (number + pair * 11) % catalogue::SERVICES;
        let urr = Urr { id: UrrId(2 + pair), ..rules.urrs.first().cloned().unwrap_or_default() };
        for way in 0..2 {
            let Some(mut pdr) = rules.pdrs.get(way).cloned() else { continue };
            pdr.id = PdrId((3 + 2 * pair as usize + way) as u16);
            (pdr.precedence, pdr.urrs) = (100 + pair, vec![urr.id].into());
            pdr.pdi.application = ApplicationId::new(&catalogue::service_name(service));
            rules.pdrs.push(pdr);
        }
        rules.urrs.push(urr);
    }
    rules
}

/// `permit out udp from 192.0.2.N to assigned`.
fn nobody(number: u32) -> FlowDescription {
    let prefix = ipnet::IpNet::from(std::net::IpAddr::from([192, 0, 2, number as u8]));
    let remote = FlowEnd { addresses: Some(prefix.into()), ports: vec![] };
    FlowDescription { protocol: Some(packet::protocol::UDP), remote, user: FlowEnd::default() }
}

fn pdrs_of(user: User, count: u32) -> Vec<Pdr> {
    let f_teid = FTeid { teid: Teid(user.teid), address: ENDPOINTS.n3.1.into() };
    let pdr = |id: u32, source_interface, sdf_filters: Vec<SdfFilter>| {
        let up = source_interface == Interface::Access;
        Pdr {
            id: PdrId(id as u16),
            precedence: if sdf_filters.is_empty() { 255 } else { id },
            pdi: Pdi {
                source_interface,
                instance: Instance::DEFAULT,
                f_teid: up.then_some(f_teid),
                ue_ipv4: Some(user.address),
                ue_ipv6: None,
                framed_routes: vec![],
                application: None,
                ethernet: None,
                qfis: vec![],
                sdf_filters,
            },
            outer_header_removal: up,
            far: FarId(if up { 1 } else { 2 }),
            qers: vec![QerId(1)].into(),
            urrs: vec![UrrId(1)].into(),
        }
    };
    // In vain: servers of a network that no user talks to.
    let in_vain = |id: u32| {
        let filter = SdfFilter { flow: Some(nobody(id)), ..SdfFilter::default() };
        pdr(id, if id % 2 == 1 { Interface::Access } else { Interface::Core }, vec![filter])
    };
    let mut pdrs: Vec<Pdr> = (1..=count.saturating_sub(PDRS_MIN)).map(in_vain).collect();
    let matching =
        [pdr(count.max(2) - 1, Interface::Access, vec![]), pdr(count.max(2), Interface::Core, vec![])];
    pdrs.extend(matching);
    pdrs
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::gtpu;

    #[test]
    fn tunnel_headers_are_as_long_as_written() {
        let container = Some(gtpu::PduSession::uplink(QFI));
        assert_eq!(GTPU_HEADER, gtpu::encapsulated_length(container));
    }

    #[test]
    fn sessions_have_as_many_sound_pdrs_as_asked() {
        for count in [2, 3, 10, 1_000] {
            let rules = rules(7, count);
            assert_eq!(rules.pdrs.len(), count as usize);
            rules.check().unwrap();
            service_rules(7, count).check().unwrap();
            for refusal in [Refusal::Gates, Refusal::Rate { kbps: 1 }, Refusal::Quota] {
                let mut refusing = rules.clone();
                refuse(refusal, &mut refusing);
                refusing.check().unwrap();
                assert_ne!(refusing, rules, "{refusal:?}");
            }
        }
        assert_eq!(number_of(user(7).address), 7);
    }
}
