//! By which accounts a step's packets are held to rates and counted. Most steps need a rate and a count at most, and say so
//! themselves ([`HotStep`]); of others, a list stands in a place of its own.

use super::session::SessionIndex;
use super::step::HotStep;
use crate::config::PortConfig;
use rules::{DroppedDownlink, PdrId, Step, Usage, limits};
use std::ops::{Deref, DerefMut};
use zerocopy::FromZeros;

/// QERs that limit a rate, and URRs, of one step.
const SLOTS: usize = 8;
const _: () = assert!(limits::QERS_PER_PDR <= SLOTS && limits::URRS_PER_PDR <= SLOTS);

/// Places in the session's accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromZeros)]
#[repr(C)]
pub(crate) struct Lists {
    meters: [u16; SLOTS],
    usages: [u16; SLOTS],
    /// How many of both there are.
    counts: [u8; 2],
    /// Bit n: the n-th URR counts what QoS enforcement drops, too.
    before_qos: u8,
}

impl Lists {
    pub(super) fn new(meters: &[u16], usages: &[u16], before_qos: u8) -> Self {
        let mut lists = Self { before_qos, ..Self::default() };
        lists.counts = [copy(meters, &mut lists.meters), copy(usages, &mut lists.usages)];
        lists
    }

    /// Accounts whose rate limits apply.
    #[inline]
    pub(crate) fn meters(&self) -> &[u16] {
        &self.meters[..usize::from(self.counts[0]).min(SLOTS)]
    }

    /// Accounts whose usage is counted.
    #[inline]
    pub(crate) fn usages(&self) -> &[u16] {
        &self.usages[..usize::from(self.counts[1]).min(SLOTS)]
    }

    pub(super) const fn are_any_before_qos(&self) -> bool {
        self.before_qos != 0
    }

    /// Of these, the accounts that count what QoS enforcement drops, too.
    pub(crate) fn usages_before_qos(&self) -> impl Iterator<Item = u16> + use<> {
        self.usages_by(true)
    }

    /// The other accounts: they count what leaves.
    pub(crate) fn usages_on_leaving(&self) -> impl Iterator<Item = u16> + use<> {
        self.usages_by(false)
    }

    fn usages_by(&self, before_qos: bool) -> impl Iterator<Item = u16> + use<> {
        let (mask, count) = (self.before_qos, self.usages().len());
        let places = self.usages.into_iter().take(count).enumerate();
        places.filter_map(move |(n, place)| ((mask >> n & 1 == 1) == before_qos).then_some(place))
    }
}

/// Rules with more than fit were refused.
fn copy(from: &[u16], to: &mut [u16; SLOTS]) -> u8 {
    let count = from.len().min(SLOTS);
    to[..count].copy_from_slice(&from[..count]);
    count as u8
}

/// A step with its lists, wherever these stand: it is what is put in force, and what the long way goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WholeStep {
    hot: HotStep,
    lists: Lists,
    /// Whose it is; of nobody before it is in force.
    pub(crate) session: SessionIndex,
}

impl WholeStep {
    /// Of no session.
    pub(crate) const EMPTY: Self = Self {
        hot: HotStep::EMPTY,
        lists: Lists { meters: [0; SLOTS], usages: [0; SLOTS], counts: [0; 2], before_qos: 0 },
        session: SessionIndex::NONE,
    };

    pub(super) const fn of(hot: HotStep, lists: Lists, session: SessionIndex) -> Self {
        Self { hot, lists, session }
    }

    /// Into a tunnel, counted by these accounts.
    #[cfg(test)]
    pub(crate) fn tunnel(pdr: PdrId, teid: rules::Teid, accounts: &[u16]) -> Self {
        let lists = Self::by_lists(&[], accounts, 0).lists;
        let mut step = Self { hot: HotStep::tunnel(pdr, teid), lists, ..Self::EMPTY };
        step.hot.note(&lists);
        step
    }

    /// By these accounts.
    #[cfg(test)]
    pub(super) fn by_lists(meters: &[u16], usages: &[u16], before_qos: u8) -> Self {
        let mut step = Self { lists: Lists::new(meters, usages, before_qos), ..Self::EMPTY };
        step.hot.note(&step.lists);
        step
    }

    /// A step of the rules; where it belongs is filled in when it is put in force. URRs that are not to measure for now are left
    /// out.
    pub(crate) fn new(ports: &[PortConfig], step: &Step, usages: &[Usage]) -> Self {
        let usage = |place: &u16| usages.get(usize::from(*place));
        let is_active = |place: &u16| usage(place).is_some_and(|usage| !usage.inactive);
        let active: Vec<u16> = step.usages.iter().copied().filter(is_active).collect();
        let before_qos = active.iter().map(|place| usage(place).is_some_and(|usage| usage.before_qos));
        let before_qos = (0..).zip(before_qos).fold(0, |mask, (n, early)| mask | u8::from(early) << n);
        let mut whole = Self {
            hot: HotStep::new(step),
            lists: Lists::new(&step.meters, &active, before_qos),
            ..Self::EMPTY
        };
        let minds = |place: &u16| {
            usage(place).is_some_and(|usage| usage.dropped_downlink != DroppedDownlink::default())
        };
        if active.iter().any(minds) {
            whole.hot.minds();
        }
        whole.hot.fit(ports, step);
        whole.hot.note(&whole.lists);
        whole
    }

    /// What every packet reads of it.
    pub(super) const fn hot(&self) -> HotStep {
        self.hot
    }

    /// By which accounts.
    pub(crate) const fn lists(&self) -> &Lists {
        &self.lists
    }

    /// The same of whichever PDR.
    pub(crate) fn of_no_pdr(mut self) -> Self {
        self.hot.pdr = PdrId(0);
        self
    }
}

/// A whole step is a hot one that has lists besides.
impl Deref for WholeStep {
    type Target = HotStep;

    #[inline]
    fn deref(&self) -> &HotStep {
        &self.hot
    }
}

impl DerefMut for WholeStep {
    #[inline]
    fn deref_mut(&mut self) -> &mut HotStep {
        &mut self.hot
    }
}
