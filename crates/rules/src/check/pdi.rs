//! What a PDI may ask for.

use super::{at_most, ensure};
use crate::error::{RuleError, RuleRef};
use crate::ids::Teid;
use crate::intent::{Pdi, Rules, limits};
use crate::sdf::{FlowDescription, FlowEnd, SdfFilter};
use ipnet::IpNet;
use std::collections::HashMap;

/// The largest flow label (RFC 8200 3).
const MAX_FLOW_LABEL: u32 = (1 << 20) - 1;

/// The prefix lengths a user may have: a link of its own, or an address.
const UE_PREFIX_LENGTHS: [u8; 2] = [64, 128];

/// TCP, UDP, DCCP, SCTP and UDP-Lite have ports, and all in the same place.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// What a reference finds: of several filters of one ID, the first.
pub(super) fn filters_by_id(rules: &Rules) -> HashMap<u32, &SdfFilter> {
    let all = rules.pdrs.iter().flat_map(|pdr| pdr.pdi.all_sdf_filters());
    let mut by_id = HashMap::new();
    for filter in all.filter(|filter| filter.reference().is_none()) {
        if let Some(id) = filter.id {
            by_id.entry(id).or_insert(filter);
        }
    }
    by_id
}

/// How much the filters and framed routes of all PDRs may ask for together: it bounds the memory of the classifier.
pub(super) fn totals(rules: &Rules) -> Result<(), RuleError> {
    let (mut filters, mut ranges, mut routes) = (0, 0, 0);
    for pdr in &rules.pdrs {
        routes += pdr.pdi.framed_routes.len();
        at_most(limits::FRAMED_ROUTES, routes, RuleRef::Pdr(pdr.id), "framed routes")?;
        filters += pdr.pdi.all_sdf_filters().count();
        ranges += pdr.pdi.all_sdf_filters().map(port_ranges).sum::<usize>();
        at_most(limits::SDF_FILTERS, filters, RuleRef::Pdr(pdr.id), "SDF filters")?;
        at_most(limits::PORT_RANGES_PER_SESSION, ranges, RuleRef::Pdr(pdr.id), "port ranges")?;
    }
    Ok(())
}

fn port_ranges(filter: &SdfFilter) -> usize {
    filter.flow.as_ref().map_or(0, |flow| flow.remote.ports.len() + flow.user.ports.len())
}

/// What one PDI says, without the rest of the session.
pub(super) fn check(pdi: &Pdi, rule: RuleRef) -> Result<(), RuleError> {
    let addressed = pdi.f_teid.is_some() || pdi.names_user() || pdi.ethernet.is_some();
    ensure(addressed, RuleError::Unreachable(rule))?;
    ensure(pdi.f_teid.is_none_or(|f_teid| f_teid.teid != Teid(0)), RuleError::ZeroTeid(rule))?;
    let known_length = |prefix: ipnet::Ipv6Net| UE_PREFIX_LENGTHS.contains(&prefix.prefix_len());
    ensure(pdi.ue_ipv6.is_none_or(known_length), RuleError::PrefixLength(rule))?;
    at_most(limits::FRAMED_ROUTES_PER_PDI, pdi.framed_routes.len(), rule, "framed routes")?;
    let is_too_long =
        |route: &IpNet| matches!(route, IpNet::V6(net) if net.prefix_len() > UE_PREFIX_LENGTHS[0]);
    ensure(!pdi.framed_routes.iter().any(is_too_long), RuleError::FramedRouteLength(rule))?;
    at_most(limits::QFIS_PER_PDI, pdi.qfis.len(), rule, "QFIs")?;
    at_most(limits::SDF_FILTERS_PER_PDI, pdi.sdf_filters.len(), rule, "SDF filters")?;
    pdi.all_sdf_filters().try_for_each(|filter| sdf_filter(filter, rule))
}

fn sdf_filter(filter: &SdfFilter, rule: RuleRef) -> Result<(), RuleError> {
    let label_fits = filter.flow_label.is_none_or(|label| label <= MAX_FLOW_LABEL);
    ensure(label_fits, RuleError::FlowLabel(rule))?;
    filter.flow.as_ref().map_or(Ok(()), |flow| flow_description(flow, rule))
}

fn flow_description(flow: &FlowDescription, rule: RuleRef) -> Result<(), RuleError> {
    let ends = [&flow.remote, &flow.user];
    ends.iter().try_for_each(|end| ports(end, rule))?;
    let prefixes = ends.map(|end| end.addresses.map(|addresses| addresses.prefix));
    let mixed = matches!(prefixes, [Some(IpNet::V4(_)), Some(IpNet::V6(_))])
        || matches!(prefixes, [Some(IpNet::V6(_)), Some(IpNet::V4(_))]);
    ensure(!mixed, RuleError::MixedFamilies(rule))?;
    let portless = flow.protocol.filter(|protocol| !WITH_PORTS.contains(protocol));
    match portless {
        Some(protocol) if ends.iter().any(|end| !end.ports.is_empty()) => {
            Err(RuleError::Portless(rule, protocol))
        }
        _ => Ok(()),
    }
}

fn ports(end: &FlowEnd, rule: RuleRef) -> Result<(), RuleError> {
    at_most(limits::PORT_RANGES, end.ports.len(), rule, "port ranges in an SDF filter")?;
    let ordered = end.ports.iter().all(|range| range.first <= range.last);
    ensure(ordered, RuleError::PortRange(rule))
}
