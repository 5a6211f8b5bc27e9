//! Which PDR a packet matches (TS 29.244 5.2.1).

use crate::gtpu::Relayed;
use crate::ip::UserPacket;
use ipnet::IpNet;
use rules::{
    Addresses, Direction, FTeid, FlowDescription, FlowEnd, Instance, Interface, Pdi, Pdr, Qfi, Rules,
    SdfFilter,
};
use std::net::IpAddr;

/// The tunnel a packet came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tunnel {
    pub(crate) f_teid: FTeid,
    /// Of its PDU session container.
    pub(crate) qfi: Option<Qfi>,
    /// RQI, of a downlink one.
    pub(crate) reflective: bool,
    /// PPI, of a downlink one.
    pub(crate) paging_policy: Option<u8>,
}

/// A user's packet and how it came.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// Where it came in.
    pub(crate) port: usize,
    pub(crate) source: Interface,
    /// The network there.
    pub(crate) instance: Instance,
    pub(crate) tunnel: Option<Tunnel>,
    /// Extension headers of that tunnel's header that go on into the next.
    pub(crate) relayed: Relayed,
    pub(crate) packet: UserPacket,
}

impl Arrival {
    /// The user's address and the far end's; on the uplink the user is the source.
    pub(crate) fn ends(&self) -> (IpAddr, IpAddr) {
        let header = &self.packet.header;
        match self.source.direction() {
            Direction::Uplink => (header.source, header.destination),
            Direction::Downlink => (header.destination, header.source),
        }
    }

    /// The user's port and the far end's, where the packet shows them.
    pub(crate) fn ports(&self) -> (Option<u16>, Option<u16>) {
        let Some((source, destination)) = self.packet.ports else { return (None, None) };
        match self.source.direction() {
            Direction::Uplink => (Some(source), Some(destination)),
            Direction::Downlink => (Some(destination), Some(source)),
        }
    }
}

/// Of what application a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Application<'a> {
    /// Of none, or of one that is not known.
    None,
    Of(&'a str),
    /// Of whichever a PDR asks for.
    Any,
}

/// The first that matches a packet of no application, by precedence, then PDR ID.
pub(crate) fn first_pdr<'a>(rules: &'a Rules, arrival: &Arrival) -> Option<&'a Pdr> {
    first_pdr_of(rules, arrival, Application::None)
}

/// The same of a packet of an application.
pub(crate) fn first_pdr_of<'a>(
    rules: &'a Rules,
    arrival: &Arrival,
    application: Application<'_>,
) -> Option<&'a Pdr> {
    pdrs_of(rules, arrival, application).into_iter().next()
}

/// All that match a packet of an application, in that order.
pub(crate) fn pdrs_of<'a>(rules: &'a Rules, arrival: &Arrival, application: Application<'_>) -> Vec<&'a Pdr> {
    let is_of = |pdi: &Pdi| match (&pdi.application, application) {
        (None, _) | (Some(_), Application::Any) => true,
        (Some(wanted), Application::Of(name)) => wanted.name() == name,
        (Some(_), Application::None) => false,
    };
    let matches = |pdr: &&Pdr| {
        is_of(&pdr.pdi) && pdi_matches(&pdr.pdi, rules, arrival) && !is_spoofed(pdr, rules, arrival)
    };
    let mut all: Vec<&Pdr> = rules.pdrs.iter().filter(matches).collect();
    all.sort_by_key(|pdr| (pdr.precedence, pdr.id));
    all
}

/// All that is present must match, beside the application.
fn pdi_matches(pdi: &Pdi, rules: &Rules, arrival: &Arrival) -> bool {
    let qfi = arrival.tunnel.and_then(|tunnel| tunnel.qfi);
    // A tunnel of ours says where its packets come from.
    (arrival.tunnel.is_some() || pdi.source_interface == arrival.source)
        && pdi.f_teid == arrival.tunnel.map(|tunnel| tunnel.f_teid)
        && (arrival.tunnel.is_some() || pdi.instance == arrival.instance)
        && ue_matches(pdi, arrival.ends().0)
        && (pdi.qfis.is_empty() || qfi.is_some_and(|qfi| pdi.qfis.contains(&qfi)))
        && (pdi.sdf_filters.is_empty()
            || pdi.sdf_filters.iter().any(|filter| sdf_matches(meant(filter, rules), arrival)))
}

/// A rule that names no address of the user takes none but the user's out of its tunnel, where any rule tells which those are.
/// What one base station forwards to another is from anybody. A user of IPv6 that has no address yet speaks from its link, or
/// from nowhere.
fn is_spoofed(pdr: &Pdr, rules: &Rules, arrival: &Arrival) -> bool {
    let names = |pdi: &Pdi| pdi.ue_ipv4.is_some() || pdi.ue_ipv6.is_some();
    let says_nothing = !names(&pdr.pdi) && pdr.pdi.framed_routes.is_empty();
    let is_up = pdr.pdi.f_teid.is_some() && pdr.pdi.source_interface == Interface::Access;
    let far = rules.fars.iter().find(|far| far.id == pdr.far);
    let is_back = far.and_then(|far| far.forwarding).is_some_and(|to| {
        to.destination_interface == Interface::Access && to.outer_header_creation.is_some()
    });
    let pdis = || rules.pdrs.iter().map(|pdr| &pdr.pdi);
    if !says_nothing || !is_up || is_back || !pdis().any(names) {
        return false;
    }
    let source = arrival.ends().0;
    let without_address = match source {
        IpAddr::V4(_) => false,
        IpAddr::V6(source) => {
            pdis().any(|pdi| pdi.ue_ipv6.is_some())
                && (source.is_unspecified() || source.is_unicast_link_local())
        }
    };
    !without_address
        && !pdis().any(|pdi| (names(pdi) || !pdi.framed_routes.is_empty()) && ue_matches(pdi, source))
}

/// With both addresses, either matches, and so does any in a network behind the user.
fn ue_matches(pdi: &Pdi, ue: IpAddr) -> bool {
    if !pdi.framed_routes.is_empty() {
        let own = pdi.ue_ipv4.map(IpAddr::V4) == Some(ue);
        let in_prefix = pdi.ue_ipv6.is_some_and(|prefix| IpNet::V6(prefix).contains(&ue));
        return own || in_prefix || pdi.framed_routes.iter().any(|route| route.contains(&ue));
    }
    match (pdi.ue_ipv4, pdi.ue_ipv6, ue) {
        (None, None, _) => true,
        (ipv4, _, IpAddr::V4(ue)) => ipv4 == Some(ue),
        (_, ipv6, IpAddr::V6(ue)) => ipv6.is_some_and(|prefix| prefix.contains(&ue)),
    }
}

/// A filter of nothing but an ID stands for the session's filter of that ID (TS 29.244 5.2.1A.2A).
pub(crate) fn meant<'a>(filter: &'a SdfFilter, rules: &'a Rules) -> &'a SdfFilter {
    let is_reference = |filter: &SdfFilter| *filter == SdfFilter { id: filter.id, ..SdfFilter::default() };
    if filter.id.is_none() || !is_reference(filter) {
        return filter;
    }
    let mut all = rules.pdrs.iter().flat_map(|pdr| &pdr.pdi.sdf_filters);
    all.find(|other| other.id == filter.id && !is_reference(other)).unwrap_or(filter)
}

/// All that is present must match (TS 29.244 8.2.5).
pub(crate) fn sdf_matches(filter: &SdfFilter, arrival: &Arrival) -> bool {
    let packet = &arrival.packet;
    let class = packet.header.traffic_class;
    filter.flow.as_ref().is_none_or(|flow| flow_matches(flow, arrival))
        && filter.traffic_class.is_none_or(|wanted| class & wanted.mask == wanted.value & wanted.mask)
        && filter.spi.is_none_or(|spi| packet.spi == Some(spi))
        && filter.flow_label.is_none_or(|label| packet.header.flow_label == Some(label))
}

/// Flow descriptions are written for packets to the user; for packets from the user the ends change places
/// (TS 29.244 5.2.1A.2A).
fn flow_matches(flow: &FlowDescription, arrival: &Arrival) -> bool {
    let (ue, remote) = arrival.ends();
    let (ue_port, remote_port) = arrival.ports();
    flow.protocol.is_none_or(|protocol| protocol == arrival.packet.protocol)
        && end_matches(&flow.remote, remote, remote_port)
        && end_matches(&flow.user, ue, ue_port)
}

/// A packet that shows no ports matches only where no ports are asked for.
fn end_matches(end: &FlowEnd, address: IpAddr, port: Option<u16>) -> bool {
    let in_range = |port: u16| end.ports.iter().any(|range| range.first <= port && port <= range.last);
    end.addresses.is_none_or(|wanted| is_one_of(wanted, address))
        && (end.ports.is_empty() || port.is_some_and(in_range))
}

/// Of a prefix, or, inverted, of its IP version and not of it (RFC 6733 4.3.1).
fn is_one_of(wanted: Addresses, address: IpAddr) -> bool {
    let is_of_version = wanted.prefix.addr().is_ipv6() == address.is_ipv6();
    is_of_version && wanted.prefix.contains(&address) != wanted.inverted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;
    use crate::worlds::{Random, Scope, World};
    use rand::SeedableRng;
    use rules::compile;

    fn compiled_view(arrival: &Arrival) -> rules::Arrival {
        let ((ue, remote), (ue_port, remote_port)) = (arrival.ends(), arrival.ports());
        let header = &arrival.packet.header;
        rules::Arrival {
            source: arrival.source,
            instance: arrival.instance,
            teid: arrival.tunnel.map(|tunnel| tunnel.f_teid.teid),
            qfi: arrival.tunnel.and_then(|tunnel| tunnel.qfi),
            ue,
            remote,
            protocol: arrival.packet.protocol,
            ue_port,
            remote_port,
            traffic_class: header.traffic_class,
            spi: arrival.packet.spi,
            flow_label: header.flow_label,
            application: rules::Application::None,
        }
    }

    /// Two readings of the same rules, neither of which knows the other. The compiled one leaves the address of a
    /// tunnel to the look-up of the session, so no session here has one TEID at two addresses.
    #[test]
    fn the_compiled_classifier_finds_the_same_pdr() {
        let (mut found, mut missed) = (0, 0);
        for seed in 0..300 {
            let world = World::within(seed, Scope { twin_tunnels: false, ..Scope::ALL });
            let mut reference = Reference::new(world.setup.clone()).unwrap();
            world.sessions.iter().for_each(|(seid, rules)| reference.put(*seid, rules.clone()));
            let programs: Vec<_> = world.sessions.iter().map(|(_, rules)| compile(rules).unwrap()).collect();
            let random = &mut Random::seed_from_u64(seed);
            for _ in 0..1_000 {
                let (port, frame) = world.packet(random);
                reference.process(port, &frame, 0);
                let Some((session, arrival)) = reference.seen.take() else { continue };
                let (rules, program) = (&reference.sessions[session].rules, &programs[session]);
                let step = program.classifier.find(&compiled_view(&arrival)).map(|at| program.steps[at].pdr);
                let pdr = first_pdr(rules, &arrival).map(|pdr| pdr.id);
                assert_eq!(step, pdr, "seed {seed}: {arrival:?}\n{rules:#?}");
                *(if pdr.is_some() { &mut found } else { &mut missed }) += 1;
            }
        }
        assert!(found > 175_000 && missed > 10_000, "{found} {missed}");
    }
}
