//! Ethernet PDU sessions (TS 29.244 5.13, TS 23.501 5.6.10.2): which sessions are, and which frames PDRs are about.

use crate::refusal::Refusal;
use crate::values;
use pfcp::{
    Cause, EthernetPacketFilter, FailedRuleId, Mac, MacAddresses, PdnType, SessionEstablishmentRequest,
    VlanTag, flags, ie,
};
use rules::{EthernetFilter, EthernetPdi, MacFilter, MacRange, PdrId, Rules, TagFilter};

/// Whether a new session carries frames: by its PDN type or, as that may be absent, by what its rules look at.
pub(super) fn is_of_frames(request: &SessionEstablishmentRequest) -> bool {
    let endpoints = &request.create_traffic_endpoints;
    request.pdn_type == Some(PdnType::Ethernet)
        || request.create_pdrs.iter().any(|pdr| looks_at_frames(&pdr.pdi))
        || endpoints.iter().any(|endpoint| has_ethi(endpoint.ethernet_pdu_session_information))
}

/// Whether the rules of a session that is there do.
pub(super) fn are_of_frames(rules: &Rules) -> bool {
    rules.pdrs.iter().any(|pdr| pdr.pdi.ethernet.is_some())
}

/// A session of IP packets that looks at frames contradicts itself.
pub(super) fn check_type(request: &SessionEstablishmentRequest) -> Result<(), Refusal> {
    let is_ip = matches!(request.pdn_type, Some(PdnType::Ipv4 | PdnType::Ipv6 | PdnType::Ipv4v6));
    match is_ip && is_of_frames(request) {
        true => {
            let cause = Cause::RuleCreationModificationFailure;
            Err(Refusal::blaming(cause, ie::ETHERNET_PDU_SESSION_INFORMATION))
        }
        false => Ok(()),
    }
}

fn has_ethi(information: Option<u8>) -> bool {
    information.is_some_and(|bits| bits & flags::ETHERNET_ETHI != 0)
}

fn looks_at_frames(pdi: &pfcp::Pdi) -> bool {
    has_ethi(pdi.ethernet_pdu_session_information) || !pdi.ethernet_packet_filters.is_empty()
}

/// What a PDI says of frames; something in each PDI of a session that carries them.
pub(super) fn pdi(
    pdr: PdrId,
    pdi: &pfcp::Pdi,
    session_is: bool,
) -> Result<Option<Box<EthernetPdi>>, Refusal> {
    if !session_is && !looks_at_frames(pdi) {
        return Ok(None);
    }
    let filters = pdi.ethernet_packet_filters.iter().map(|filter| self::filter(pdr, filter));
    Ok(Some(Box::new(EthernetPdi { filters: filters.collect::<Result<_, _>>()? })))
}

fn filter(pdr: PdrId, filter: &EthernetPacketFilter) -> Result<EthernetFilter, Refusal> {
    let properties = filter.ethernet_filter_properties.unwrap_or(0);
    let is_bidirectional = properties & flags::ETHERNET_FILTER_BIDE != 0;
    if is_bidirectional && filter.ethernet_filter_id.is_none() {
        // Nobody could name it (TS 29.244 7.5.2.2-3).
        return Err(blame(pdr, Cause::ConditionalIeMissing, ie::ETHERNET_FILTER_ID));
    }
    let macs = filter.mac_addresses.iter().map(|addresses| mac(pdr, addresses));
    let sdf_filters = filter.ethernet_sdf_filters.iter().map(|sdf| values::sdf_filter(sdf, pdr));
    Ok(EthernetFilter {
        id: filter.ethernet_filter_id,
        is_bidirectional,
        macs: macs.collect::<Result<_, _>>()?,
        ethertype: filter.ethertype,
        c_tag: filter.c_tag.map(tag),
        s_tag: filter.s_tag.map(tag),
        sdf_filters: sdf_filters.collect::<Result<_, _>>()?,
    })
}

const fn blame(pdr: PdrId, cause: Cause, ie: u16) -> Refusal {
    Refusal { failed_rule_id: Some(FailedRuleId::Pdr(pdr.0)), ..Refusal::blaming(cause, ie) }
}

/// One of no address, or of the end of a range alone, says nothing.
fn mac(pdr: PdrId, addresses: &MacAddresses) -> Result<MacFilter, Refusal> {
    let blamed = blame(pdr, Cause::RuleCreationModificationFailure, ie::MAC_ADDRESS);
    let range = |first: Option<Mac>, last: Option<Mac>| match (first, last) {
        (None, None) => Ok(None),
        (Some(first), last) if last.is_none_or(|last| first <= last) => {
            Ok(Some(MacRange { first, last: last.unwrap_or(first) }))
        }
        _ => Err(blamed),
    };
    let filter = MacFilter {
        source: range(addresses.source, addresses.upper_source)?,
        destination: range(addresses.destination, addresses.upper_destination)?,
    };
    if filter == MacFilter::default() { Err(blamed) } else { Ok(filter) }
}

const fn tag(tag: VlanTag) -> TagFilter {
    TagFilter { id: tag.id, priority: tag.priority, drop_eligible: tag.drop_eligible }
}
