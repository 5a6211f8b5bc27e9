//! One session: what it is found by, and what its new flows read.

use super::cells::{CellRun, STEPS};
use super::framed::Length;
use super::step::StepIndex;
use super::treatment::Extra;
use super::usage::Ledger;
use rules::{Arrival, Classifier, Instance, Looks, Places, QerId, Rare, Seid};
use smallvec::SmallVec;

/// A session by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionIndex(pub(crate) u32);

impl SessionIndex {
    /// No session.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Prefixes of no user, which say something of a tunnel instead: 0001::/16 and 0002::/16 are in use nowhere (RFC 4291 4).
const MARK_SHIFT: u32 = 48;
const FRAMES: u64 = 1;
const TURNED: u64 = 2;

/// By what packets find a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A tunnel endpoint of ours.
    Tunnel(u64),
    /// A user's address or prefix, and the network it is unique in.
    User(u64, Instance),
    /// A network behind the user.
    Route(u64, Length, Instance),
}

/// As notes between workers carry them.
const _: () = assert!(size_of::<Key>() == 16);

impl Key {
    /// What says that the session of a tunnel carries Ethernet frames. So other workers, and the directory, know of it as of
    /// any user.
    pub(crate) const fn frames(tunnel: u64) -> Self {
        Self::User(FRAMES << MARK_SHIFT | tunnel, Instance::DEFAULT)
    }

    /// What says that packets in a tunnel go the other way than others of its port: to the user on a port of the access
    /// side, from the user on one of the core side.
    pub(crate) const fn turned(tunnel: u64) -> Self {
        Self::User(TURNED << MARK_SHIFT | tunnel, Instance::DEFAULT)
    }

    /// Whether it is one of [`Key::frames`].
    pub(crate) const fn is_of_frames(self) -> bool {
        matches!(self, Self::User(user, _) if user >> MARK_SHIFT == FRAMES)
    }

    /// The tunnel, if it is one of [`Key::turned`].
    pub(crate) const fn turned_tunnel(self) -> Option<u64> {
        match self {
            Self::User(user, _) if user >> MARK_SHIFT == TURNED => Some(user & ((1 << MARK_SHIFT) - 1)),
            _ => None,
        }
    }

    /// A user's address or prefix.
    pub(crate) const fn user(self) -> Option<u64> {
        match self {
            Self::User(user, _) if !matches!(user >> MARK_SHIFT, FRAMES | TURNED) => Some(user),
            _ => None,
        }
    }
}

/// One session: the part that packets of known flows do not touch.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) seid: Seid,
    pub(crate) revision: u64,
    pub(crate) classifier: Classifier,
    /// What its classifier looks at.
    pub(crate) looks: Looks,
    /// Those of a plain session in place, as what follows.
    pub(crate) keys: SmallVec<[Key; 2]>,
    /// By account.
    pub(crate) qers: SmallVec<[QerId; 2]>,
    /// By account.
    pub(crate) ledgers: Box<[Ledger]>,
    /// Steps that do more than others, and what, by place.
    pub(crate) extras: Rare<(u16, Extra)>,
    /// Its user has all of the prefix that is its key, and not one address in it.
    pub(crate) has_prefix: bool,
    pub(crate) run: CellRun,
    /// How many it has.
    pub(crate) pdrs: u16,
    /// Where its steps stand, and none behind these.
    pub(crate) places: u16,
    /// Flows that wait to be of an application.
    pub(crate) waiting: u16,
    /// Of the rules in force, as all its steps have it.
    pub(crate) generation: u32,
    /// The step another stands in for, the accounts whose quotas it is, and the step that stands in, by their places.
    pub(crate) beyond: Rare<(u16, Places, u16)>,
}

const _: () = assert!(size_of::<Session>() <= 216, "allocated as 224 bytes, as are 208");
const _: () = assert!(size_of::<Ledger>() <= 72, "and a few more for each URR");

impl Session {
    /// The step of the PDR that is tried in this place.
    #[inline]
    pub(crate) fn step(&self, number: usize) -> StepIndex {
        step_index(self.run.base, self.classifier.step(number))
    }

    /// The first PDR that matches a packet, by its step.
    #[inline]
    pub(crate) fn find(&self, packet: &Arrival) -> Option<StepIndex> {
        self.classifier.find(packet).map(|number| self.step(number))
    }

    /// The steps of its PDRs, in the order they are tried.
    pub(crate) fn steps(&self) -> impl Iterator<Item = StepIndex> {
        (0..usize::from(self.pdrs)).map(|number| self.step(number))
    }

    /// The network its user's addresses are of: one that is not the default one, if there is any.
    pub(crate) fn instance(&self) -> Instance {
        instance_of(&self.keys)
    }
}

/// The network that the addresses among some keys are of: one that is not the default one, if there is any.
pub(super) fn instance_of(keys: &[Key]) -> Instance {
    let users = keys.iter().filter_map(|key| match key {
        Key::User(_, instance) | Key::Route(.., instance) => Some(*instance),
        Key::Tunnel(_) => None,
    });
    users.min_by_key(|instance| *instance == Instance::DEFAULT).unwrap_or_default()
}

/// The place of a step of the session whose first cell is `base`.
pub(super) const fn step_place(base: u32, step: StepIndex) -> usize {
    (step.cell() - base as usize) * STEPS + step.place()
}

/// The step at a place.
pub(super) const fn step_index(base: u32, place: usize) -> StepIndex {
    StepIndex::new(base + (place / STEPS) as u32, (place % STEPS) as u32)
}
