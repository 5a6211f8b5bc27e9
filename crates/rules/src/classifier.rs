//! Finds the first PDR a packet matches.

use crate::check::Checked;
use crate::compile::Arrival;
use crate::ids::{Qfi, Teid};
use crate::intent::{Interface, Pdi, Pdr};
use crate::sdf::SdfFilter;
use ipnet::Ipv6Net;
use std::net::{IpAddr, Ipv4Addr};

/// One PDI, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matcher {
    source: Interface,
    /// `None` takes plain packets only.
    teid: Option<Teid>,
    ue_ipv4: Option<Ipv4Addr>,
    ue_ipv6: Option<Ipv6Net>,
    /// Bit n set: QFI n matches. 0 matches everything.
    qfis: u64,
    /// Any of these; empty matches everything.
    filters: Box<[SdfFilter]>,
}

impl Matcher {
    fn new(pdi: &Pdi, checked: &Checked<'_>) -> Self {
        Self {
            source: pdi.source_interface,
            teid: pdi.f_teid.map(|f_teid| f_teid.teid),
            ue_ipv4: pdi.ue_ipv4,
            ue_ipv6: pdi.ue_ipv6,
            qfis: pdi.qfis.iter().fold(0, |mask, qfi| mask | bit(*qfi)),
            filters: pdi.sdf_filters.iter().map(|filter| checked.resolve(filter).clone()).collect(),
        }
    }

    fn matches(&self, packet: &Arrival) -> bool {
        self.source == packet.source
            && self.teid == packet.teid
            && self.matches_ue(packet.ue)
            && (self.qfis == 0 || packet.qfi.is_some_and(|qfi| self.qfis & bit(qfi) != 0))
            && (self.filters.is_empty() || self.filters.iter().any(|filter| filter.matches(packet)))
    }

    fn matches_ue(&self, ue: IpAddr) -> bool {
        if self.ue_ipv4.is_none() && self.ue_ipv6.is_none() {
            return true;
        }
        match ue {
            IpAddr::V4(ue) => self.ue_ipv4 == Some(ue),
            IpAddr::V6(ue) => self.ue_ipv6.is_some_and(|prefix| prefix.contains(&ue)),
        }
    }
}

const fn bit(qfi: Qfi) -> u64 {
    1 << qfi.value()
}

/// All PDIs of a session, in the order they are to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classifier {
    matchers: Box<[Matcher]>,
}

impl Classifier {
    /// Of PDRs in the order they are to be tried.
    pub(crate) fn new(pdrs: &[&Pdr], checked: &Checked<'_>) -> Self {
        Self { matchers: pdrs.iter().map(|pdr| Matcher::new(&pdr.pdi, checked)).collect() }
    }

    /// The place of the first PDR that matches.
    pub fn find(&self, packet: &Arrival) -> Option<usize> {
        self.matchers.iter().position(|matcher| matcher.matches(packet))
    }

    /// Whether two packets of one 5-tuple, tunnel and QFI can match different PDRs by their traffic class.
    pub fn looks_at_traffic_class(&self) -> bool {
        self.filters().any(|filter| filter.traffic_class.is_some())
    }

    /// As [`Classifier::looks_at_traffic_class`], by their flow label.
    pub fn looks_at_flow_label(&self) -> bool {
        self.filters().any(|filter| filter.flow_label.is_some())
    }

    fn filters(&self) -> impl Iterator<Item = &SdfFilter> {
        self.matchers.iter().flat_map(|matcher| &matcher.filters)
    }
}
