//! Which rules make sense together. What does not is refused whole, naming the rule.

mod ethernet;
mod pdi;
#[cfg(test)]
mod tests;

use crate::compile::Direction;
use crate::error::{RuleError, RuleRef};
use crate::ethernet::EthernetFilter;
use crate::ids::Teid;
use crate::intent::{
    ApplyAction, Bar, BitRates, Far, ForwardingParameters, OuterHeader, PacketRates, Pdr, Qer, Rules, limits,
};
use crate::rule::ById;
use crate::sdf::SdfFilter;
use crate::urr::Urr;
use std::collections::HashMap;

/// The largest bit rate of TS 29.244 8.2.8, in kbit/s.
const MAX_RATE_KBPS: u64 = (1 << 40) - 1;

/// The largest DSCP (RFC 2474 3).
const MAX_DSCP: u8 = 63;

/// A session's rules that passed every check, each to be found by its identifier.
pub(crate) struct Checked<'a> {
    pub(crate) fars: ById<'a, Far>,
    pub(crate) qers: ById<'a, Qer>,
    pub(crate) urrs: ById<'a, Urr>,
    pub(crate) bars: ById<'a, Bar>,
    /// The SDF filters that others may refer to, by their ID.
    filters: HashMap<u32, &'a SdfFilter>,
    /// As those, each with the direction of the PDR it stands in.
    pub(crate) frame_filters: HashMap<u32, (&'a EthernetFilter, Direction)>,
}

impl Rules {
    /// Whether a data plane can run these rules. Takes time linear in their size.
    ///
    /// # Errors
    /// The first rule that is doubled, dangling, unreachable, incomplete, contradictory or beyond [`limits`].
    pub fn check(&self) -> Result<(), RuleError> {
        Checked::new(self).map(drop)
    }
}

impl<'a> Checked<'a> {
    pub(crate) fn new(rules: &'a Rules) -> Result<Self, RuleError> {
        ById::new(&rules.pdrs, limits::PDRS)?;
        let checked = Self {
            fars: ById::new(&rules.fars, limits::FARS)?,
            qers: ById::new(&rules.qers, limits::QERS)?,
            urrs: ById::new(&rules.urrs, limits::URRS)?,
            bars: ById::new(&rules.bars, limits::BARS)?,
            filters: pdi::filters_by_id(rules),
            frame_filters: ethernet::filters_by_id(rules),
        };
        rules.fars.iter().try_for_each(|far| checked.far(far))?;
        rules.qers.iter().try_for_each(qer)?;
        rules.urrs.iter().try_for_each(|urr| checked.urr(urr))?;
        rules.pdrs.iter().try_for_each(|pdr| checked.pdr(pdr))?;
        pdi::totals(rules)?;
        ethernet::check(rules, &checked)?;
        Ok(checked)
    }

    /// The filter itself, or the one it refers to.
    pub(crate) fn resolve(&self, filter: &'a SdfFilter) -> &'a SdfFilter {
        filter.reference().and_then(|id| self.filters.get(&id).copied()).unwrap_or(filter)
    }

    fn far(&self, far: &Far) -> Result<(), RuleError> {
        let rule = RuleRef::Far(far.id);
        far.bar.map_or(Ok(()), |bar| self.bars.named(bar, rule).map(drop))?;
        at_most(limits::DUPLICATES, far.duplicates.len(), rule, "copies")?;
        let leads = matches!(far.apply_action, ApplyAction::Forward | ApplyAction::Reset);
        ensure(!leads || far.forwarding.is_some(), RuleError::NoForwardingParameters(rule))?;
        far.forwarding.iter().chain(&far.duplicates).try_for_each(|to| parameters(to, rule))
    }

    fn urr(&self, urr: &Urr) -> Result<(), RuleError> {
        let rule = RuleRef::Urr(urr.id);
        at_most(limits::LINKED_URRS, urr.linked.len(), rule, "linked URRs")?;
        let more = urr.additional_monitoring.len();
        at_most(limits::ADDITIONAL_MONITORING_TIMES, more, rule, "additional monitoring times")?;
        urr.linked.iter().try_for_each(|linked| self.urrs.named(*linked, rule).map(drop))?;
        urr.quota_far.map_or(Ok(()), |far| self.fars.named(far, rule).map(drop))
    }

    fn pdr(&self, pdr: &Pdr) -> Result<(), RuleError> {
        let rule = RuleRef::Pdr(pdr.id);
        pdi::check(&pdr.pdi, rule)?;
        at_most(limits::QERS_PER_PDR, pdr.qers.len(), rule, "QERs")?;
        at_most(limits::URRS_PER_PDR, pdr.urrs.len(), rule, "URRs")?;
        self.fars.named(pdr.far, rule)?;
        pdr.qers.iter().try_for_each(|qer| self.qers.named(*qer, rule).map(drop))?;
        pdr.urrs.iter().try_for_each(|urr| self.urrs.named(*urr, rule).map(drop))?;
        let mut references = pdr.pdi.all_sdf_filters().filter_map(SdfFilter::reference);
        let unknown = references.find(|id| !self.filters.contains_key(id));
        unknown.map_or(Ok(()), |id| Err(RuleError::UnknownFilter(rule, id)))
    }
}

fn qer(qer: &Qer) -> Result<(), RuleError> {
    let fits = |rates: &BitRates| rates.uplink_kbps.max(rates.downlink_kbps) <= MAX_RATE_KBPS;
    ensure(qer.mbr.iter().chain(&qer.gbr).all(fits), RuleError::BitRate(RuleRef::Qer(qer.id)))?;
    let PacketRates { uplink, downlink } = qer.packet_rates;
    let timed = uplink.iter().chain(&downlink).all(|rate| rate.window_s > 0);
    ensure(timed, RuleError::PacketRate(RuleRef::Qer(qer.id)))
}

fn parameters(to: &ForwardingParameters, rule: RuleRef) -> Result<(), RuleError> {
    let header = to.outer_header_creation.map(|creation| creation.header);
    ensure(header != Some(OuterHeader::Gtpu(Teid(0))), RuleError::ZeroTeid(rule))?;
    ensure(header != Some(OuterHeader::Udp(0)), RuleError::ZeroPort(rule))?;
    ensure(to.dscp.is_none_or(|dscp| dscp <= MAX_DSCP), RuleError::Dscp(rule))
}

fn ensure(holds: bool, otherwise: RuleError) -> Result<(), RuleError> {
    if holds { Ok(()) } else { Err(otherwise) }
}

fn at_most(limit: usize, count: usize, rule: RuleRef, what: &'static str) -> Result<(), RuleError> {
    ensure(count <= limit, RuleError::TooManyOf(rule, what))
}
