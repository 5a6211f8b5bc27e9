//! Single PFCP values as the rules know them, or a refusal of what is not done.

use crate::refusal::Refusal;
use pfcp::{
    DestinationInterface, FTeid, OuterHeaderCreation, OuterHeaderRemoval, SourceInterface, UeIpAddress, ie,
};
use rules::{ApplyAction, Gate, Interface, Qfi, Teid};
use std::net::Ipv4Addr;

pub(crate) const fn source(interface: SourceInterface) -> Result<Interface, Refusal> {
    match interface {
        SourceInterface::Access => Ok(Interface::Access),
        SourceInterface::Core => Ok(Interface::Core),
        SourceInterface::SgiLan => Ok(Interface::SgiLan),
        SourceInterface::CpFunction | SourceInterface::Other(_) => {
            Err(Refusal::unsupported(ie::SOURCE_INTERFACE))
        }
    }
}

pub(crate) const fn destination(interface: DestinationInterface) -> Result<Interface, Refusal> {
    match interface {
        DestinationInterface::Access => Ok(Interface::Access),
        DestinationInterface::Core => Ok(Interface::Core),
        DestinationInterface::SgiLan => Ok(Interface::SgiLan),
        DestinationInterface::CpFunction
        | DestinationInterface::LiFunction
        | DestinationInterface::Other(_) => Err(Refusal::unsupported(ie::DESTINATION_INTERFACE)),
    }
}

/// Exactly one of DROP and FORW; nothing is buffered, duplicated or notified of.
pub(crate) fn apply_action(action: pfcp::ApplyAction) -> Result<ApplyAction, Refusal> {
    match action.flags {
        pfcp::ApplyAction::DROP => Ok(ApplyAction::Drop),
        pfcp::ApplyAction::FORW => Ok(ApplyAction::Forward),
        // One and only one of DROP, FORW, BUFF (TS 29.244 8.2.26).
        flags if flags & 0x07 == 0x03 || flags == 0 => Err(Refusal::incorrect(ie::APPLY_ACTION)),
        _ => Err(Refusal::unsupported(ie::APPLY_ACTION)),
    }
}

/// The GTP-U tunnel over IPv4 is removed whole, with whatever extension headers it has.
pub(crate) const fn removes_tunnel(removal: OuterHeaderRemoval) -> Result<bool, Refusal> {
    match removal.description {
        OuterHeaderRemoval::GTPU_UDP_IPV4 | OuterHeaderRemoval::GTPU_UDP_IP => Ok(true),
        _ => Err(Refusal::unsupported(ie::OUTER_HEADER_REMOVAL)),
    }
}

/// The tunnel to put packets into. Some control planes fill in TEID 0 until they know the peer: that is no tunnel
/// yet, and harmless as long as nothing is forwarded.
pub(crate) fn tunnel(
    creation: &OuterHeaderCreation,
    is_forwarding: bool,
) -> Result<Option<rules::OuterHeaderCreation>, Refusal> {
    match *creation {
        OuterHeaderCreation::GtpuIpv4 { teid: 0, .. } if is_forwarding => {
            Err(Refusal::incorrect(ie::OUTER_HEADER_CREATION))
        }
        OuterHeaderCreation::GtpuIpv4 { teid: 0, .. } => Ok(None),
        OuterHeaderCreation::GtpuIpv4 { teid, address } => {
            Ok(Some(rules::OuterHeaderCreation { teid: Teid(teid), address }))
        }
        OuterHeaderCreation::GtpuIpv6 { .. } | OuterHeaderCreation::Other(_) => {
            Err(Refusal::unsupported(ie::OUTER_HEADER_CREATION))
        }
    }
}

/// How a PDR gets its tunnel endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Given(Teid),
    Chosen(Option<u8>),
}

/// An endpoint given must be at our address: later releases leave the choice to the user plane (TS 29.244 5.5.1),
/// but control planes that give them are in use. One to choose gets IPv4, whatever else it might have had.
pub(crate) fn endpoint(f_teid: FTeid, ours: Ipv4Addr) -> Result<Endpoint, Refusal> {
    match f_teid {
        FTeid::Choose { ipv4: false, ipv6: true, .. } => Err(Refusal::unsupported(ie::F_TEID)),
        FTeid::Choose { choose_id, .. } => Ok(Endpoint::Chosen(choose_id)),
        FTeid::Explicit { ipv6: Some(_), .. } => Err(Refusal::unsupported(ie::F_TEID)),
        FTeid::Explicit { teid, ipv4, .. } if teid != 0 && ipv4 == Some(ours) => {
            Ok(Endpoint::Given(Teid(teid)))
        }
        FTeid::Explicit { .. } => Err(Refusal::incorrect(ie::F_TEID)),
    }
}

/// The one address of a PDI. Whether it is source or destination follows from the interface; flags may be wrong.
pub(crate) fn ue_ipv4(addresses: &[UeIpAddress]) -> Result<Option<Ipv4Addr>, Refusal> {
    let is_plain =
        |address: &UeIpAddress| address.ipv6.is_none() && !address.choose_ipv4 && !address.choose_ipv6;
    let mut plain = addresses.iter().filter(|address| is_plain(address)).filter_map(|address| address.ipv4);
    let first = plain.next();
    if !addresses.iter().all(is_plain) || plain.any(|other| Some(other) != first) {
        return Err(Refusal::unsupported(ie::UE_IP_ADDRESS));
    }
    Ok(first)
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
