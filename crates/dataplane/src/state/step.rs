//! A PDR and what it leads to, as the packet path reads it: one cache line.

use super::peers::PeerIndex;
use super::sessions::SessionIndex;
use rules::{Action, Encapsulation, Forward, Interface, PdrId, Qfi, Step, Usage, limits};

/// QERs that limit a rate, and URRs, of one step.
const SLOTS: usize = 8;
const _: () = assert!(limits::QERS_PER_PDR <= SLOTS && limits::URRS_PER_PDR <= SLOTS);

/// A step of a session by its place: cell and place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepIndex(u32);

impl StepIndex {
    /// No step.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) const fn new(cell: u32, place: u32) -> Self {
        Self(cell << 1 | place)
    }

    pub(crate) const fn cell(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) const fn place(self) -> usize {
        (self.0 & 1) as usize
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The FAR says DROP.
    Drop,
    /// A gate is closed.
    GateClosed,
    /// It is kept.
    Keep,
    /// It is kept, and the control plane is told.
    KeepAndNotify,
    /// It goes out as it is.
    Plain,
    /// It goes out in a tunnel.
    Tunnel,
}

/// One step, ready to run.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct HotStep {
    /// Of the rules it belongs to; 0 for no rules at all.
    pub(crate) generation: u32,
    pub(crate) session: SessionIndex,
    /// First cell of the session.
    pub(crate) base: u32,
    /// Of the tunnel to put packets into.
    pub(crate) teid: u32,
    /// The tunnel's other end.
    pub(crate) peer: PeerIndex,
    pub(crate) pdr: PdrId,
    pub(crate) kind: Kind,
    pub(crate) to: Interface,
    qfi: u8,
    dscp: u8,
    pub(crate) reflective: bool,
    /// Copies are to be made.
    pub(crate) duplicates: bool,
    simple: bool,
    meters: u8,
    usages: u8,
    /// Bit n: the n-th URR counts what QoS enforcement drops, too.
    before_qos: u8,
    /// Places of QERs, then of URRs, in the session's accounts.
    slots: [[u16; SLOTS]; 2],
}

const _: () = assert!(size_of::<HotStep>() == 64, "one cache line a step");

/// No QFI, no DSCP.
const NONE: u8 = u8::MAX;

impl HotStep {
    /// Of no session.
    pub(crate) const EMPTY: Self = Self {
        generation: 0,
        session: SessionIndex::NONE,
        base: 0,
        teid: 0,
        peer: PeerIndex::NONE,
        pdr: PdrId(0),
        kind: Kind::Drop,
        to: Interface::Core,
        qfi: NONE,
        dscp: NONE,
        reflective: false,
        duplicates: false,
        simple: false,
        meters: 0,
        usages: 0,
        before_qos: 0,
        slots: [[0; SLOTS]; 2],
    };

    /// A step of the rules; where it belongs is filled in when it is put in force.
    pub(crate) fn new(step: &Step, usages: &[Usage]) -> Self {
        let mut hot = Self { pdr: step.pdr, duplicates: !step.duplicates.is_empty(), ..Self::EMPTY };
        hot.meters = copy(&step.meters, &mut hot.slots[0]);
        hot.count_by(&step.usages, usages);
        match step.action {
            Action::Drop => hot.kind = Kind::Drop,
            Action::GateClosed => hot.kind = Kind::GateClosed,
            Action::Buffer { notify: true } => hot.kind = Kind::KeepAndNotify,
            Action::Buffer { notify: false } => hot.kind = Kind::Keep,
            Action::Forward(to) => hot.forward(to),
        }
        hot
    }

    /// Marks a step in the cell of its session's first account that needs nothing but that.
    pub(crate) fn simplify(&mut self, is_beside_account_0: bool) {
        let at_0 = |places: &[u16]| matches!(places, [] | [0]);
        self.simple = is_beside_account_0
            && matches!(self.kind, Kind::Plain | Kind::Tunnel)
            && !self.duplicates
            && at_0(self.meters())
            && at_0(self.usages());
    }

    /// Whether it forwards, with at most one rate and one count, both in the account of its own cell.
    #[inline]
    pub(crate) const fn is_simple(&self) -> bool {
        self.simple
    }

    /// URRs that are not to measure for now are left out.
    fn count_by(&mut self, places: &[u16], usages: &[Usage]) {
        let usage = |place: &u16| usages.get(usize::from(*place));
        let active = places.iter().filter(|place| usage(place).is_some_and(|usage| !usage.inactive));
        let active: Vec<u16> = active.copied().collect();
        let before_qos = active.iter().map(|place| usage(place).is_some_and(|usage| usage.before_qos));
        self.before_qos = (0..).zip(before_qos).fold(0, |mask, (n, early)| mask | u8::from(early) << n);
        self.usages = copy(&active, &mut self.slots[1]);
    }

    fn forward(&mut self, forward: Forward) {
        self.to = forward.to;
        self.dscp = forward.dscp.unwrap_or(NONE);
        self.kind = Kind::Plain;
        if let Some(Encapsulation { teid, qfi, reflective, .. }) = forward.encapsulation {
            self.kind = Kind::Tunnel;
            self.teid = teid.0;
            self.qfi = qfi.map_or(NONE, Qfi::value);
            self.reflective = reflective;
        }
    }

    /// The QoS flow its packets are put into.
    #[inline]
    pub(crate) const fn qfi(&self) -> Option<u8> {
        if self.qfi == NONE { None } else { Some(self.qfi) }
    }

    /// DSCP of the outermost header.
    #[inline]
    pub(crate) const fn dscp(&self) -> Option<u8> {
        if self.dscp == NONE { None } else { Some(self.dscp) }
    }

    /// Accounts whose rate limits apply.
    #[inline]
    pub(crate) fn meters(&self) -> &[u16] {
        &self.slots[0][..usize::from(self.meters).min(SLOTS)]
    }

    /// Of these, the accounts that count what QoS enforcement drops, too.
    pub(crate) fn usages_before_qos(&self) -> impl Iterator<Item = u16> {
        let mask = self.before_qos;
        self.slots[1]
            .into_iter()
            .enumerate()
            .filter_map(move |(n, place)| (mask >> n & 1 == 1).then_some(place))
    }

    /// Accounts whose usage is counted.
    #[inline]
    pub(crate) fn usages(&self) -> &[u16] {
        &self.slots[1][..usize::from(self.usages).min(SLOTS)]
    }
}

/// Rules with more than fit were refused.
fn copy(from: &[u16], to: &mut [u16; SLOTS]) -> u8 {
    let count = from.len().min(SLOTS);
    to[..count].copy_from_slice(&from[..count]);
    count as u8
}
