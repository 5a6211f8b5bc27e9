//! Whose packets come in a tunnel of a user. Some control planes leave the user's address out of uplink PDRs, as the tunnel says
//! whose they are. But what the user writes into them as their source is for the user to say, and would make it anybody: so where
//! the session's other PDRs tell the addresses, those of its tunnels take no others (TS 29.244 5.2.1, TS 23.501 5.8.2.4).

use crate::intent::{Far, Interface, Pdi, Pdr, Rules, limits};
use crate::rule::ById;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv6 user speaks from its link before it has made an address, and from none to find out whether somebody has it (RFC 4862
/// 5.4, RFC 4861 4.1).
const BEFORE_IT_HAS_ONE: [IpNet; 2] = [
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128)),
];

/// The PDRs that take the session's addresses besides what they say, by their places among `pdrs`, as they are to be matched. None
/// of a session that nothing is known of, as one between gateways, and none beyond [`limits::FRAMED_ROUTES`] networks in all.
pub(crate) fn with_source(pdrs: &[&Pdr], rules: &Rules, fars: &ById<'_, Far>) -> Vec<(usize, Pdr)> {
    let is_open = |pdr: &Pdr| is_any_users(&pdr.pdi) && !fars.get(pdr.far).is_some_and(returns);
    if !pdrs.iter().any(|pdr| is_open(pdr)) {
        return vec![];
    }
    let Some(user) = User::of(rules) else { return vec![] };
    let most = match user.networks.len().saturating_sub(BEFORE_IT_HAS_ONE.len()) {
        0 => usize::MAX,
        networks => limits::FRAMED_ROUTES / networks,
    };
    let open = pdrs.iter().enumerate().filter(|(_, pdr)| is_open(pdr));
    open.take(most).map(|(place, pdr)| (place, user.sends(pdr))).collect()
}

/// From the user, whoever it says it is.
fn is_any_users(pdi: &Pdi) -> bool {
    pdi.f_teid.is_some()
        && pdi.source_interface == Interface::Access
        && !pdi.names_user()
        && pdi.ethernet.is_none()
}

/// What goes back into a tunnel of the access side is not of the user: what one base station forwards to another during a
/// handover is for it (TS 23.401 5.5.1.2.3), and a control plane that hears users' solicitations takes them as they are.
fn returns(far: &Far) -> bool {
    let forwarding = far.forwarding.filter(|to| to.destination_interface == Interface::Access);
    forwarding.is_some_and(|to| to.outer_header_creation.is_some())
}

/// All that a session says of its user.
struct User {
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Net>,
    /// Its further addresses, what is behind it, and what it may say before it has an address.
    networks: Vec<IpNet>,
}

impl User {
    /// `None` where no PDR names an address of it.
    fn of(rules: &Rules) -> Option<Self> {
        let pdis = || rules.pdrs.iter().map(|pdr| &pdr.pdi);
        let ipv4s: BTreeSet<Ipv4Addr> = pdis().filter_map(|pdi| pdi.ue_ipv4).collect();
        let ipv6s: BTreeSet<Ipv6Net> = pdis().filter_map(|pdi| Some(pdi.ue_ipv6?.trunc())).collect();
        let (ipv4, ipv6) = (ipv4s.first().copied(), ipv6s.first().copied());
        let routes: BTreeSet<IpNet> = pdis().flat_map(|pdi| &pdi.framed_routes).map(IpNet::trunc).collect();
        let further = ipv4s.iter().skip(1).map(|address| IpNet::V4(Ipv4Net::from(*address)));
        let further = further.chain(ipv6s.iter().skip(1).copied().map(IpNet::V6)).chain(routes);
        let before = BEFORE_IT_HAS_ONE.into_iter().filter(|_| ipv6.is_some());
        (ipv4.is_some() || ipv6.is_some()).then(|| Self {
            ipv4,
            ipv6,
            networks: further.chain(before).collect(),
        })
    }

    fn sends(&self, pdr: &Pdr) -> Pdr {
        let mut pdr = pdr.clone();
        (pdr.pdi.ue_ipv4, pdr.pdi.ue_ipv6) = (self.ipv4, self.ipv6);
        pdr.pdi.framed_routes.clone_from(&self.networks);
        pdr
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::uplink_packet;
    use super::*;
    use crate::fixture::{GNB, UE, rules, towards};
    use crate::{Arrival, OuterHeaderCreation, PdrId, Teid, compile};
    use std::net::IpAddr;

    /// The plain session, whose uplink PDR says nothing of the user.
    fn open() -> Rules {
        let mut rules = rules();
        rules.pdrs[0].pdi.ue_ipv4 = None;
        rules
    }

    fn from_user(rules: &Rules, source: &str) -> Option<PdrId> {
        let ue: IpAddr = source.parse().unwrap();
        let program = compile(rules).unwrap();
        let packet = Arrival { ue, ..uplink_packet() };
        program.classifier.find(&packet).map(|place| program.steps[place].pdr)
    }

    fn is_taken(rules: &Rules, source: &str) -> bool {
        from_user(rules, source) == Some(PdrId(1))
    }

    #[test]
    fn a_tunnel_takes_its_user_s_packets_and_no_others() {
        assert!(is_taken(&open(), &UE.to_string()));
        assert!(!is_taken(&open(), "10.60.0.2") && !is_taken(&open(), "2001:db8::1"));
        assert!(!is_taken(&open(), "fe80::1"), "it has no address of IPv6");
    }

    #[test]
    fn a_user_has_all_its_addresses_and_what_is_behind_it() {
        let mut dual = open();
        dual.pdrs[1].pdi.ue_ipv6 = Some("2001:db8:1::7/64".parse().unwrap());
        dual.pdrs[1].pdi.framed_routes = vec!["192.0.2.0/24".parse().unwrap()];
        let mut third = dual.pdrs[1].clone();
        (third.id, third.pdi.ue_ipv4) = (PdrId(3), Some([10, 61, 0, 1].into()));
        dual.pdrs.push(third);
        for own in ["10.60.0.1", "10.61.0.1", "2001:db8:1::99", "192.0.2.200", "fe80::1", "::"] {
            assert!(is_taken(&dual, own), "{own}");
        }
        for other in ["10.60.0.2", "2001:db8:2::1", "192.0.3.1", "0.0.0.0", "::1"] {
            assert!(!is_taken(&dual, other), "{other}");
        }
    }

    /// As those of gateways between others, of which nothing is said.
    #[test]
    fn what_nobody_knows_is_not_asked() {
        let mut between = open();
        let f_teid = between.pdrs[0].pdi.f_teid.map(|f_teid| crate::FTeid { teid: Teid(0x900), ..f_teid });
        (between.pdrs[1].pdi.ue_ipv4, between.pdrs[1].pdi.f_teid) = (None, f_teid);
        assert!(is_taken(&between, "10.99.0.1"));
    }

    /// During a handover, a base station sends packets for the user by us to the next one.
    #[test]
    fn what_is_forwarded_to_another_base_station_is_from_anybody() {
        let mut forwarding = open();
        let tunnel = Some(OuterHeaderCreation::gtpu(Teid(7), GNB));
        forwarding.fars[0].apply_action = crate::ApplyAction::Forward;
        let to = crate::ForwardingParameters { outer_header_creation: tunnel, ..towards(Interface::Access) };
        forwarding.fars[0].forwarding = Some(to);
        assert!(is_taken(&forwarding, "203.0.113.1"));
        forwarding.fars[0].forwarding =
            Some(crate::ForwardingParameters { destination_interface: Interface::Core, ..to });
        assert!(!is_taken(&forwarding, "203.0.113.1"));
    }

    #[test]
    fn networks_are_taken_over_within_the_limit() {
        let mut wide = open();
        let route = |number: u32| IpNet::V4(Ipv4Net::new((0x0a00_0000 + number * 256).into(), 24).unwrap());
        wide.pdrs[1].pdi.framed_routes = (0..limits::FRAMED_ROUTES_PER_PDI as u32).map(route).collect();
        let uplink = wide.pdrs[0].clone();
        wide.pdrs.extend((10..100).map(|id| Pdr { id: PdrId(id), ..uplink.clone() }));
        let pdrs: Vec<&Pdr> = wide.pdrs.iter().collect();
        let fars = ById::new(&wide.fars, limits::FARS).unwrap();
        let filled = with_source(&pdrs, &wide, &fars);
        let networks: usize = filled.iter().map(|(_, pdr)| pdr.pdi.framed_routes.len()).sum();
        assert!(networks <= limits::FRAMED_ROUTES && filled.len() > 1, "{networks}");
    }
}
