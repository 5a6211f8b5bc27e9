//! The ports and sessions that the data plane's golden files are run with, as its own tests have them.

use super::{f_teid, to};
use crate::{Neighbour, PortSetup, Route, Setup};
use rules::*;
use std::net::{IpAddr, Ipv4Addr};

const GNB: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);

pub(super) fn setup() -> Setup {
    let port = |interface, place, ipv4: &str| PortSetup {
        interface,
        instance: Instance::DEFAULT,
        mac: [2, 0, 0, 0, place, 2],
        ipv4: ipv4.parse().unwrap(),
        ipv6: Some(format!("2001:db8:{place}::2/64").parse().unwrap()),
        mtu: 1500,
        vlan: None,
        mss_clamp: interface == Interface::Access,
    };
    let [gnb6, router6] = ["2001:db8:3::1", "2001:db8:6::1"].map(|address| address.parse().unwrap());
    let neighbour = |port, address, place| Neighbour { port, address, mac: [2, 0, 0, 0, place, 1] };
    let route =
        |prefix: &str, via| Route { prefix: prefix.parse().unwrap(), via, instance: Instance::DEFAULT };
    Setup {
        routes: vec![route("0.0.0.0/0", ROUTER.into()), route("::/0", router6)],
        neighbours: vec![
            neighbour(0, GNB.into(), 3),
            neighbour(1, ROUTER.into(), 6),
            neighbour(0, gnb6, 3),
            neighbour(1, router6, 6),
        ],
        held_per_neighbour: 2,
        // As the data plane has it.
        one_teid_space_per_port: true,
        ..Setup::new(vec![
            port(Interface::Access, 3, "10.30.0.2/24"),
            port(Interface::Core, 6, "10.50.0.2/24"),
        ])
    }
}

/// With the session's QER.
fn limited(id: u16, far: u32, pdi: Pdi) -> Pdr {
    Pdr {
        id: PdrId(id),
        precedence: 100,
        outer_header_removal: pdi.f_teid.is_some(),
        pdi,
        far: FarId(far),
        qers: vec![QerId(1)].into(),
        urrs: vec![].into(),
    }
}

/// Session 1: 5G with QFI 9. Session 2: 4G, no QFI. Session 3: FAR DROP up, gate closed down.
pub(super) fn rules(session: u32) -> Rules {
    let qfi = Qfi::new(9).filter(|_| session == 1);
    let shut = session == 3;
    let f_teid = FTeid { teid: Teid(0xff + session), address: Ipv4Addr::new(10, 30, 0, 2).into() };
    let pdi = |source_interface, f_teid| Pdi {
        source_interface,
        instance: Instance::DEFAULT,
        f_teid,
        ue_ipv4: Some(Ipv4Addr::from(0x0a3c_0000 + session)),
        ue_ipv6: None,
        framed_routes: vec![],
        qfis: qfi.filter(|_| source_interface == Interface::Access).into_iter().collect(),
        sdf_filters: vec![],
        application: None,
        ethernet: None,
    };
    let far = |id, apply_action, destination_interface, outer_header_creation| Far {
        id: FarId(id),
        apply_action,
        notify: false,
        forwarding: Some(ForwardingParameters {
            destination_interface,
            instance: Instance::DEFAULT,
            outer_header_creation,
            dscp: None,
            policy: None,
        }),
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    };
    let tunnel = OuterHeaderCreation::gtpu(Teid(0x1ff + session), IpAddr::V4(GNB));
    let up = if shut { ApplyAction::Drop } else { ApplyAction::Forward };
    Rules {
        pdrs: vec![
            limited(1, 1, pdi(Interface::Access, Some(f_teid))),
            limited(2, 2, pdi(Interface::Core, None)),
        ],
        fars: vec![
            far(1, up, Interface::Core, None),
            far(2, ApplyAction::Forward, Interface::Access, Some(tunnel)),
        ],
        qers: vec![Qer {
            id: QerId(1),
            uplink_gate: Gate::Open,
            downlink_gate: if shut { Gate::Closed } else { Gate::Open },
            mbr: None,
            packet_rates: PacketRates::default(),
            correlation: None,
            gbr: None,
            qfi,
            reflective: false,
        }],
        ..Rules::default()
    }
}

/// Session 40: 1 kbit/s up, and 100 bytes in all.
pub(super) fn metered() -> Rules {
    let mut rules = rules(40);
    rules.qers[0].mbr = Some(BitRates { uplink_kbps: 1, downlink_kbps: 1_000_000 });
    let volume_quota = Some(Volume { total: Some(100), ..Volume::default() });
    rules.urrs = vec![Urr { id: UrrId(1), volume_quota, quota_grant: 1, ..Urr::default() }];
    rules.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    rules
}

/// Session 50: downlink packets are kept.
pub(super) fn asleep() -> Rules {
    let mut rules = rules(50);
    rules.fars[1].apply_action = ApplyAction::Buffer;
    rules
}

/// Session 60: a prefix, and both tunnels over IPv6.
pub(super) fn six() -> Rules {
    let mut rules = rules(60);
    for pdr in &mut rules.pdrs {
        (pdr.pdi.ue_ipv4, pdr.pdi.ue_ipv6) = (None, Some("2001:db8:60::/64".parse().unwrap()));
        pdr.pdi.f_teid = pdr.pdi.f_teid.and_then(|known| f_teid(known.teid.0, "2001:db8:3::2"));
    }
    rules.fars[1].forwarding = Some(to(Interface::Access, f_teid(0x1ff + 60, "2001:db8:3::1"), None));
    rules
}

/// Session 70: copied, uplink packets in a tunnel, downlink packets plain and marked.
pub(super) fn copied() -> Rules {
    let mut rules = rules(70);
    (rules.fars[0].duplicating, rules.fars[1].duplicating) = (true, true);
    rules.fars[0].duplicates = vec![to(Interface::Core, f_teid(0x999, "10.50.0.1"), None)];
    rules.fars[1].duplicates = vec![to(Interface::Core, None, Some(10))];
    rules
}

/// Sessions 140 and 141: behind a UDP header, over IPv4, and marked over IPv6.
pub(super) fn behind_udp(session: u32) -> Rules {
    let mut rules = rules(session);
    let (host, dscp) = if session == 140 { ("203.0.113.99", None) } else { ("2001:db8:ffff::9", Some(46)) };
    let outer_header_creation = host.parse().ok().map(|host| OuterHeaderCreation::udp(5_000, host));
    rules.fars[0].forwarding =
        Some(ForwardingParameters { outer_header_creation, ..to(Interface::Core, None, dscp) });
    rules
}

/// Session 115: sent to another host.
pub(super) fn readdressed() -> Rules {
    let mut rules = rules(115);
    rules.fars[0].redirect = rules::Redirect::new("203.0.113.99");
    rules
}

/// Session 80: marked both ways, in a reflective QoS flow.
pub(super) fn marked() -> Rules {
    let mut rules = rules(80);
    (rules.qers[0].qfi, rules.qers[0].reflective) = (Qfi::new(7), true);
    for (far, dscp) in rules.fars.iter_mut().zip([46, 34]) {
        far.forwarding.as_mut().unwrap().dscp = Some(dscp);
    }
    rules
}
