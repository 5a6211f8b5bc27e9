//! The ports and sessions that our own golden files are run with: both versions of IP, and N9 besides N3 and N6.

use super::{f_teid, to};
use crate::{Neighbour, PortSetup, Route, Setup};
use ipnet::IpNet;
use rules::*;
use std::net::Ipv4Addr;

/// Both versions of IP on N3, N6 and N9.
pub(super) fn wide_setup() -> Setup {
    let subnets = [(30, 3, Interface::Access), (50, 6, Interface::Core), (40, 9, Interface::Core)];
    let port = |(net, place, interface): (u8, u8, Interface)| PortSetup {
        interface,
        instance: Instance::DEFAULT,
        mac: [2, 0, 0, 0, place, 2],
        ipv4: format!("10.{net}.0.2/24").parse().unwrap(),
        ipv6: Some(format!("fd00:{net}::2/64").parse().unwrap()),
        mtu: 1500,
        vlan: None,
        mss_clamp: false,
    };
    let mut setup = Setup::new(subnets.map(port).to_vec());
    for (port, (net, place, _)) in subnets.into_iter().enumerate() {
        for address in [format!("10.{net}.0.1"), format!("fd00:{net}::1")] {
            let address = address.parse().unwrap();
            setup.neighbours.push(Neighbour { port, address, mac: [2, 0, 0, 0, place, 1] });
        }
    }
    let route = |prefix: &str, via: &str| Route {
        prefix: prefix.parse().unwrap(),
        via: via.parse().unwrap(),
        instance: Instance::DEFAULT,
    };
    setup.routes = vec![route("0.0.0.0/0", "10.50.0.1"), route("::/0", "fd00:50::1")];
    setup
}

pub(super) fn wide_rules() -> [(Seid, Rules); 3] {
    [(Seid(1), dual_stack()), (Seid(2), relay()), (Seid(3), filtered())]
}

fn pdr(id: u16, source_interface: Interface, f_teid: Option<FTeid>, user: Option<u16>) -> Pdr {
    let user_ipv6 = |user: u16| format!("2001:db8:60:{user}::/64").parse().unwrap();
    Pdr {
        id: PdrId(id),
        precedence: id.into(),
        pdi: Pdi {
            source_interface,
            instance: Instance::DEFAULT,
            f_teid,
            ue_ipv4: user.map(|user| Ipv4Addr::new(10, 60, 0, user as u8)),
            ue_ipv6: user.map(user_ipv6),
            framed_routes: vec![],
            qfis: vec![],
            sdf_filters: vec![],
            application: None,
            ethernet: None,
        },
        outer_header_removal: f_teid.is_some(),
        far: FarId(id.into()),
        qers: vec![].into(),
        urrs: vec![].into(),
    }
}

fn far(id: u32, forwarding: Option<ForwardingParameters>) -> Far {
    let apply_action = if forwarding.is_some() { ApplyAction::Forward } else { ApplyAction::Drop };
    Far {
        id: FarId(id),
        apply_action,
        notify: false,
        forwarding,
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    }
}

fn marking(id: u32, qfi: u8) -> Qer {
    let open = Gate::Open;
    let qfi = Qfi::new(qfi);
    Qer {
        id: QerId(id),
        uplink_gate: open,
        downlink_gate: open,
        mbr: None,
        packet_rates: PacketRates::default(),
        correlation: None,
        gbr: None,
        qfi,
        reflective: true,
    }
}

/// Over IPv6, QFI 9 with reflective QoS, marked both ways.
fn dual_stack() -> Rules {
    let mut up = pdr(1, Interface::Access, f_teid(0x100, "fd00:30::2"), Some(1));
    up.pdi.qfis = Qfi::new(9).into_iter().collect();
    let mut down = pdr(2, Interface::Core, None, Some(1));
    (up.qers, down.qers) = (vec![QerId(1)].into(), vec![QerId(1)].into());
    let access = to(Interface::Access, f_teid(0x200, "fd00:30::1"), Some(46));
    Rules {
        pdrs: vec![up, down],
        fars: vec![far(1, Some(to(Interface::Core, None, Some(10)))), far(2, Some(access))],
        qers: vec![marking(1, 9)],
        ..Rules::default()
    }
}

/// From tunnel to tunnel.
fn relay() -> Rules {
    let mut up = pdr(1, Interface::Access, f_teid(0x101, "10.30.0.2"), None);
    up.qers = vec![QerId(1)].into();
    let mut back = far(2, Some(to(Interface::Access, f_teid(0x201, "10.30.0.1"), None)));
    back.duplicating = true;
    back.duplicates = vec![to(Interface::Core, f_teid(0x999, "10.40.0.1"), Some(63))];
    Rules {
        pdrs: vec![up, pdr(2, Interface::Core, f_teid(0x401, "10.40.0.2"), None)],
        fars: vec![far(1, Some(to(Interface::Core, f_teid(0x300, "fd00:40::1"), None))), back],
        qers: vec![marking(1, 5)],
        ..Rules::default()
    }
}

/// DNS with two servers is dropped: both ways with the first, uplink only with the second.
fn filtered() -> Rules {
    let dns = |server: &str, id| SdfFilter {
        flow: Some(FlowDescription {
            protocol: Some(17),
            remote: FlowEnd {
                addresses: Some(server.parse::<IpNet>().unwrap().into()),
                ports: vec![PortRange { first: 53, last: 53 }],
            },
            user: FlowEnd::default(),
        }),
        id,
        ..SdfFilter::default()
    };
    let tunnel = f_teid(0x102, "10.30.0.2");
    let mut up = pdr(1, Interface::Access, tunnel, Some(3));
    up.pdi.sdf_filters = vec![dns("203.0.113.80/32", Some(7)), dns("2001:db8:ff::/48", None)];
    let mut down = pdr(2, Interface::Core, None, Some(3));
    down.pdi.sdf_filters = vec![SdfFilter { id: Some(7), ..SdfFilter::default() }];
    let access = to(Interface::Access, f_teid(0x202, "10.30.0.1"), None);
    Rules {
        pdrs: vec![
            up,
            down,
            pdr(3, Interface::Access, tunnel, Some(3)),
            pdr(4, Interface::Core, None, Some(3)),
        ],
        fars: vec![
            far(1, None),
            far(2, None),
            far(3, Some(to(Interface::Core, None, None))),
            far(4, Some(access)),
        ],
        ..Rules::default()
    }
}
