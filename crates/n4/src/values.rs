//! Single PFCP values as the rules know them, or a refusal of what is not done.

use crate::advertised;
use crate::config::GtpuAddress;
use crate::refusal::Refusal;
use ipnet::{IpNet, Ipv6Net};
use pfcp::{
    Cause, DestinationInterface, FailedRuleId, NetworkInstance, OuterHeaderCreation, OuterHeaderRemoval,
    SourceInterface, UeIpAddress, ie,
};
use rules::{
    ApplicationId, ApplyAction, FTeid, FlowDescription, Gate, HeaderField, Instance, Interface, PdrId, Qfi,
    Redirect, SdfFilter, Teid, TrafficClass,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where packets of a tunnel come from: the PDI's Source Interface, Network Instance and 3GPP Interface Type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) interface: Interface,
    pub(crate) instance: Instance,
    pub(crate) interface_type: Option<u8>,
}

/// Packets from a control plane come in a tunnel, like those of the radio, and at the same address of ours: they are
/// taken for packets from the access side, which a rule of that tunnel finds.
pub(crate) const fn source(interface: SourceInterface, has_tunnel: bool) -> Result<Interface, Refusal> {
    match interface {
        SourceInterface::Access => Ok(Interface::Access),
        SourceInterface::Core => Ok(Interface::Core),
        SourceInterface::SgiLan => Ok(Interface::SgiLan),
        SourceInterface::CpFunction if has_tunnel => Ok(Interface::Access),
        SourceInterface::CpFunction | SourceInterface::Other(_) => {
            Err(Refusal::unsupported(ie::SOURCE_INTERFACE))
        }
    }
}

/// Packets for a control plane leave in a tunnel, by the access side.
pub(crate) const fn destination(
    interface: DestinationInterface,
    has_tunnel: bool,
) -> Result<Interface, Refusal> {
    match interface {
        DestinationInterface::Access => Ok(Interface::Access),
        DestinationInterface::Core => Ok(Interface::Core),
        DestinationInterface::SgiLan => Ok(Interface::SgiLan),
        DestinationInterface::CpFunction if has_tunnel => Ok(Interface::Access),
        DestinationInterface::CpFunction
        | DestinationInterface::LiFunction
        | DestinationInterface::Other(_) => Err(Refusal::unsupported(ie::DESTINATION_INTERFACE)),
    }
}

/// Copies for lawful interception go by the core side.
pub(crate) const fn copy_destination(interface: DestinationInterface) -> Result<Interface, Refusal> {
    match interface {
        DestinationInterface::LiFunction => Ok(Interface::Core),
        other => destination(other, true),
    }
}

/// An Apply Action, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) apply_action: ApplyAction,
    /// NOCP.
    pub(crate) notify: bool,
    /// DUPL.
    pub(crate) duplicates: bool,
}

/// One and only one of DROP, FORW and BUFF (TS 29.244 8.2.26). NOCP goes with BUFF, and with DROP, where the control plane wants
/// to hear of packets and none of them; one sends it alone for users whose radio is not known yet, and means BUFF, too.
pub(crate) fn apply_action(action: pfcp::ApplyAction) -> Result<Action, Refusal> {
    use pfcp::ApplyAction as Bits;
    let known = Bits::DROP | Bits::FORW | Bits::BUFF | Bits::NOCP | Bits::DUPL;
    if action.flags & !known != 0 {
        return Err(Refusal::unsupported(ie::APPLY_ACTION));
    }
    let apply_action = match action.flags & !Bits::DUPL {
        bits if bits & !Bits::NOCP == Bits::DROP => ApplyAction::Drop,
        Bits::FORW => ApplyAction::Forward,
        bits if bits == Bits::BUFF || bits == Bits::NOCP || bits == Bits::BUFF | Bits::NOCP => {
            ApplyAction::Buffer
        }
        _ => return Err(Refusal::incorrect(ie::APPLY_ACTION)),
    };
    let (notify, duplicates) = (action.contains(Bits::NOCP), action.contains(Bits::DUPL));
    Ok(Action { apply_action, notify, duplicates })
}

/// As [`apply_action`], of a FAR that is new. One that says nothing at all does nothing: its packets are dropped until it is told
/// more. SMFs have sent such FARs for users whose radio is not known yet, and their own user planes read them so (OMEC: smf #87,
/// upf #367). In an update it could as well mean that nothing changes, and is refused.
pub(crate) fn first_action(action: pfcp::ApplyAction) -> Result<Action, Refusal> {
    match action.flags {
        0 => Ok(Action { apply_action: ApplyAction::Drop, notify: false, duplicates: false }),
        _ => apply_action(action),
    }
}

/// A GTP-U tunnel is removed whole, over either family, with whatever extension headers it has. UDP alone is not removed: over
/// N6 it comes to the user's own address, at a port that both ends are configured with (TS 29.561 9.2), and no IE of a PDI tells
/// which. Without the port every datagram to the user would be taken for a tunnel's.
pub(crate) const fn removes_tunnel(removal: OuterHeaderRemoval) -> Result<bool, Refusal> {
    match removal.description {
        OuterHeaderRemoval::GTPU_UDP_IPV4
        | OuterHeaderRemoval::GTPU_UDP_IPV6
        | OuterHeaderRemoval::GTPU_UDP_IP => Ok(true),
        _ => Err(Refusal::unsupported(ie::OUTER_HEADER_REMOVAL)),
    }
}

/// The header to put packets behind; a tunnel's is of IPv4 where it has both. Some control planes fill in TEID 0 until they
/// know the peer: that is no tunnel yet, and harmless as long as nothing is forwarded. A tunnel to an address that we
/// advertise leads to ourselves.
pub(crate) fn outer_header(
    creation: &OuterHeaderCreation,
    is_forwarding: bool,
    ours: &[GtpuAddress],
) -> Result<Option<rules::OuterHeaderCreation>, Refusal> {
    let (teid, address) = match creation {
        OuterHeaderCreation::GtpuIpv4 { teid, address } => (*teid, IpAddr::V4(*address)),
        OuterHeaderCreation::GtpuIpv6 { teid, address } => (*teid, IpAddr::V6(*address)),
        OuterHeaderCreation::UdpIpv4 { address, port } => {
            return udp((*address).into(), *port, ours).map(Some);
        }
        OuterHeaderCreation::UdpIpv6 { address, port } => {
            return udp((*address).into(), *port, ours).map(Some);
        }
        OuterHeaderCreation::Other(bytes) => {
            either_family(bytes).ok_or(Refusal::unsupported(ie::OUTER_HEADER_CREATION))?
        }
    };
    match teid {
        0 if is_forwarding => Err(Refusal::incorrect(ie::OUTER_HEADER_CREATION)),
        0 => Ok(None),
        teid => {
            let address = advertised::own(ours, address);
            Ok(Some(rules::OuterHeaderCreation::gtpu(Teid(teid), address)))
        }
    }
}

/// Nobody is behind an address of our own but by GTP-U: what a user sends would be read as this node's own datagrams.
fn udp(address: IpAddr, port: u16, ours: &[GtpuAddress]) -> Result<rules::OuterHeaderCreation, Refusal> {
    match port == 0 || advertised::is_ours(ours, address) {
        true => Err(Refusal::incorrect(ie::OUTER_HEADER_CREATION)),
        false => Ok(rules::OuterHeaderCreation::udp(port, address)),
    }
}

/// Whether it is a GTP-U tunnel, in which packets come from a control plane and go to it.
pub(crate) const fn is_tunnel(creation: &OuterHeaderCreation) -> bool {
    !matches!(creation, OuterHeaderCreation::UdpIpv4 { .. } | OuterHeaderCreation::UdpIpv6 { .. })
}

/// GTP-U/UDP over IPv4 and IPv6, and no more: both bits of the description, TEID, both addresses.
fn either_family(bytes: &[u8]) -> Option<(u32, IpAddr)> {
    let ([3, 0, t0, t1, t2, t3, a, b, c, d], rest) = bytes.split_first_chunk()? else { return None };
    let address = Ipv4Addr::new(*a, *b, *c, *d);
    (rest.len() == 16).then_some((u32::from_be_bytes([*t0, *t1, *t2, *t3]), IpAddr::V4(address)))
}

/// Transport Level Marking (TS 29.244 8.2.12): type of service or traffic class, and its mask; the DSCP is its upper
/// six bits.
pub(crate) const fn dscp(marking: u16) -> u8 {
    let [class, mask] = marking.to_be_bytes();
    (class & mask) >> 2
}

/// Where users are sent instead: to a URL or addresses. To another port, or by SIP, is not done.
pub(crate) fn redirect(information: &pfcp::RedirectInformation) -> Result<Redirect, Refusal> {
    let redirect = match information {
        pfcp::RedirectInformation::Url(url) => Redirect::by_url(url),
        pfcp::RedirectInformation::Address(address) => Redirect::by_addresses(*address, None),
        pfcp::RedirectInformation::Addresses(ipv4, ipv6) => {
            Redirect::by_addresses(IpAddr::V4(*ipv4), Some(IpAddr::V6(*ipv6)))
        }
        pfcp::RedirectInformation::Other(_) => {
            return Err(Refusal::unsupported(ie::REDIRECT_INFORMATION));
        }
    };
    redirect.ok_or(Refusal::incorrect(ie::REDIRECT_INFORMATION))
}

/// The field that requests of HTTP get.
pub(crate) fn enrichment(enrichment: &pfcp::HeaderEnrichment) -> Result<HeaderField, Refusal> {
    let pfcp::HeaderEnrichment::Http { name, value } = enrichment else {
        return Err(Refusal::unsupported(ie::HEADER_ENRICHMENT));
    };
    let texts = str::from_utf8(name).ok().zip(str::from_utf8(value).ok());
    let field = texts.and_then(|(name, value)| HeaderField::new(name, value));
    field.ok_or(Refusal::incorrect(ie::HEADER_ENRICHMENT))
}

/// How a PDR gets its tunnel endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Given(FTeid),
    Chosen(Wish),
}

/// An endpoint that is ours to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// The CHOOSE ID.
    pub(crate) id: Option<u8>,
    pub(crate) address: IpAddr,
    /// Of the same port, where both families were asked for: a TEID leads to one session at either.
    pub(crate) also: Option<Ipv6Addr>,
}

/// An endpoint given must be at an address of ours, whichever, the port's own or one we advertise: later releases leave the choice to the user plane (TS 29.244
/// 5.5.1), but control planes that give them are in use. One to choose gets IPv4, unless only IPv6 will do, and both
/// where both are asked for and the port has both (TS 29.244 8.2.3).
pub(crate) fn endpoint(
    f_teid: pfcp::FTeid,
    origin: Origin,
    ours: &[GtpuAddress],
) -> Result<Endpoint, Refusal> {
    let none = Refusal::unsupported(ie::F_TEID);
    match f_teid {
        pfcp::FTeid::Choose { ipv4: false, ipv6: true, choose_id } => {
            let address = nearest(origin, ours, |ours| ours.ipv6).map(IpAddr::V6).ok_or(none)?;
            Ok(Endpoint::Chosen(Wish { id: choose_id, address, also: None }))
        }
        pfcp::FTeid::Choose { ipv6, choose_id, .. } => {
            let (ipv4, other) = nearest(origin, ours, |ours| Some((ours.ipv4, ours.ipv6))).ok_or(none)?;
            let also = other.filter(|_| ipv6);
            Ok(Endpoint::Chosen(Wish { id: choose_id, address: IpAddr::V4(ipv4), also }))
        }
        pfcp::FTeid::Explicit { ipv6: Some(_), .. } if ours.iter().all(|ours| ours.ipv6.is_none()) => {
            Err(none)
        }
        pfcp::FTeid::Explicit { teid, ipv4, ipv6 } => {
            let own = |address| advertised::own(ours, address);
            let (ipv4, ipv6) = (ipv4.map(IpAddr::V4).map(own), ipv6.map(IpAddr::V6).map(own));
            let is_it = |ours: &GtpuAddress| {
                ipv4.is_none_or(|ipv4| ipv4 == ours.ipv4)
                    && ipv6.is_none_or(|ipv6| ours.ipv6.is_some_and(|ours| ipv6 == ours))
            };
            let are_ours = ours.iter().any(is_it);
            let address = ipv4.or(ipv6).filter(|_| are_ours && teid != 0);
            let address = address.ok_or(Refusal::incorrect(ie::F_TEID))?;
            Ok(Endpoint::Given(FTeid { teid: Teid(teid), address }))
        }
    }
}

/// The first address of a port for this 3GPP Interface Type, before one of a port that says none, before one of a port for others;
/// among them of this side and network instance; failing that, of this side, as S1-U and S5-U may be told apart by name or
/// not; failing that, any: a gateway of one arm has both at one port.
fn nearest<T>(origin: Origin, ours: &[GtpuAddress], family: impl Fn(&GtpuAddress) -> Option<T>) -> Option<T> {
    let distance = |ours: &GtpuAddress| {
        let is_for_it = origin.interface_type.and_then(|number| ours.interface_types.say(number));
        let of_type = match is_for_it {
            Some(true) => 0,
            None => 1,
            Some(false) => 2,
        };
        let is_across = ours.interface.direction() != origin.interface.direction();
        (of_type, is_across, ours.interface != origin.interface, ours.instance != origin.instance)
    };
    let served = ours.iter().filter_map(|ours| Some((distance(ours), family(ours)?)));
    served.min_by_key(|(distance, _)| *distance).map(|(_, address)| address)
}

/// A user's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) ipv4: Option<Ipv4Addr>,
    /// With the bits behind the prefix, which say which link of a delegated one is the user's own.
    pub(crate) ipv6: Option<Ipv6Net>,
}

/// Bits of the prefix of a link.
const LINK_BITS: u8 = 64;

impl User {
    /// The prefix of the user's own link, or its one address.
    pub(crate) fn link(&self) -> Option<Ipv6Net> {
        let link = |prefix: Ipv6Net| Ipv6Net::new(prefix.addr(), prefix.prefix_len().max(LINK_BITS)).ok();
        self.ipv6.and_then(link).map(|link| link.trunc())
    }

    /// A prefix of more links than one (prefix delegation, TS 29.244 8.2.62): a network behind the user.
    pub(crate) fn delegated(&self) -> Option<IpNet> {
        let delegated = self.ipv6.filter(|prefix| prefix.prefix_len() < LINK_BITS);
        delegated.map(|prefix| IpNet::V6(prefix.trunc()))
    }

    /// Whether it is the user's address, or in its prefix.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.ipv4 == Some(address),
            IpAddr::V6(address) => self.ipv6.is_some_and(|prefix| prefix.contains(&address)),
        }
    }

    /// Whether an address of the user's is in a network, as far as they are known.
    pub(crate) fn may_be_in(&self, network: &IpNet) -> bool {
        let ipv6 =
            |prefix: Ipv6Net| network.contains(&IpNet::V6(prefix)) || IpNet::V6(prefix).contains(network);
        self.ipv4.is_some_and(|address| network.contains(&IpAddr::V4(address))) || self.ipv6.is_some_and(ipv6)
    }
}

/// The addresses of a PDI: one of each family at most. Whether they are source or destination follows from the
/// interface; flags may be wrong. One that names none would mean everybody's packets, and some nobody can have.
pub(crate) fn user(addresses: &[UeIpAddress]) -> Result<User, Refusal> {
    let unsupported = Refusal::unsupported(ie::UE_IP_ADDRESS);
    addresses.iter().try_fold(User::default(), |user, address| {
        if address.choose_ipv4 || address.choose_ipv6 {
            return Err(unsupported);
        }
        if address.ipv4.is_none() && address.ipv6.is_none() || is_nobodys(address) {
            return Err(Refusal::incorrect(ie::UE_IP_ADDRESS));
        }
        Ok(User {
            ipv4: same(user.ipv4, address.ipv4).ok_or(unsupported)?,
            ipv6: same(user.ipv6, prefix(address)?).ok_or(unsupported)?,
        })
    })
}

/// Whether no user can have it (RFC 6890, 4291 2.5): what is sent from there nobody may answer, or to where is for many. Link-local
/// addresses of IPv6 are users' own.
fn is_nobodys(address: &UeIpAddress) -> bool {
    let ipv4 =
        |it: Ipv4Addr| it.is_unspecified() || it.is_loopback() || it.is_multicast() || it.is_broadcast();
    let ipv6 = |it: Ipv6Addr| it.is_unspecified() || it.is_loopback() || it.is_multicast();
    address.ipv4.is_some_and(ipv4) || address.ipv6.is_some_and(ipv6)
}

/// `None` where they differ.
fn same<T: PartialEq>(known: Option<T>, next: Option<T>) -> Option<Option<T>> {
    match (known, next) {
        (Some(known), Some(next)) if known != next => None,
        (known, next) => Some(known.or(next)),
    }
}

/// 64 bits unless told otherwise (TS 29.244 8.2.62); more than those the rules refuse, but for 128. Without a bit all users were one.
fn prefix(address: &UeIpAddress) -> Result<Option<Ipv6Net>, Refusal> {
    let Some(ipv6) = address.ipv6 else { return Ok(None) };
    let delegated = address.ipv6_prefix_delegation_bits.map(|bits| LINK_BITS.saturating_sub(bits));
    let length = address.ipv6_prefix_length.or(delegated).unwrap_or(LINK_BITS);
    let prefix = Ipv6Net::new(ipv6, length).ok().filter(|prefix| prefix.prefix_len() > 0);
    let prefix = prefix.ok_or(Refusal::incorrect(ie::UE_IP_ADDRESS))?;
    Ok(Some(if length < LINK_BITS { prefix } else { prefix.trunc() }))
}

/// A flow description that cannot be read is the PDR's fault. A filter of nothing would let everything pass.
pub(crate) fn sdf_filter(filter: &pfcp::SdfFilter, pdr: PdrId) -> Result<SdfFilter, Refusal> {
    let failed_rule_id = Some(FailedRuleId::Pdr(pdr.0));
    if *filter == pfcp::SdfFilter::default() {
        return Err(Refusal { failed_rule_id, ..Refusal::incorrect(ie::SDF_FILTER) });
    }
    let blamed = Refusal {
        failed_rule_id,
        ..Refusal::blaming(Cause::RuleCreationModificationFailure, ie::SDF_FILTER)
    };
    // Some senders close the text with a zero.
    let text = filter.flow_description.as_deref().map(|text| text.strip_suffix('\0').unwrap_or(text));
    let flow = text.map(str::parse::<FlowDescription>).transpose();
    let class = filter.tos_traffic_class.map(|[value, mask]| TrafficClass { value, mask });
    let label =
        filter.flow_label.map(|[high, middle, low]| u32::from_be_bytes([0, high & 0x0F, middle, low]));
    Ok(SdfFilter {
        flow: flow.map_err(|_| blamed)?,
        traffic_class: class,
        spi: filter.security_parameter_index,
        flow_label: label,
        id: filter.filter_id,
    })
}

/// Some senders close the name with a zero. One that is no text is that of no application of ours.
pub(crate) fn application(octets: &[u8]) -> Result<ApplicationId, Refusal> {
    let octets = octets.strip_suffix(b"\0").unwrap_or(octets);
    let name = std::str::from_utf8(octets).ok().and_then(ApplicationId::new);
    name.ok_or(Refusal::blaming(Cause::RuleCreationModificationFailure, ie::APPLICATION_ID))
}

/// The network of a name that is known; without a name, or where there is one network, the default one.
pub(crate) fn instance(name: Option<&NetworkInstance>, has_instances: bool) -> Instance {
    let name = name.filter(|_| has_instances).and_then(NetworkInstance::name);
    name.map_or(Instance::DEFAULT, |name| Instance::of(&name))
}

/// The two high bits are spare (TS 29.244 8.2.89).
pub(crate) fn qfi(octet: u8) -> Option<Qfi> {
    Qfi::new(octet & Qfi::MAX)
}

pub(crate) const fn gate(gate: pfcp::Gate) -> Gate {
    match gate {
        pfcp::Gate::Open => Gate::Open,
        pfcp::Gate::Closed => Gate::Closed,
    }
}
