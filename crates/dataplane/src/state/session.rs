//! One session: what it is found by, and what its new flows read.

use super::cells::{CellRun, STEPS};
use super::framed::{Length, found_by};
use super::step::StepIndex;
use super::treatment::Extra;
use super::usage::Ledger;
use rules::{
    Application, Arrival, Classifier, Instance, Looks, Meter, Mostly1, Mostly2, Places, Program, QerId, Seid,
    Usage,
};

/// Bits of the prefix that a user makes addresses of (TS 29.061 11.2.1.3.2a).
const PREFIX_BITS: u8 = 64;

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

/// One session: the part that packets of known flows do not touch. Three cache lines of a plain session.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Session {
    pub(crate) seid: Seid,
    pub(crate) classifier: Classifier,
    /// Those of a plain session in place, as what precedes and what follows.
    pub(crate) keys: Mostly2<Key>,
    pub(crate) accounts: Mostly1<Names>,
    /// What few sessions have.
    rest: Option<Box<Rest>>,
    pub(crate) run: CellRun,
    /// Of the rules in force, as all its steps have it.
    pub(crate) generation: u32,
    /// How many it has.
    pub(crate) pdrs: u16,
    /// Where its steps stand, and none behind these.
    pub(crate) places: u16,
    /// Flows that wait to be of an application.
    pub(crate) waiting: u16,
    /// What its classifier looks at.
    pub(crate) looks: Looks,
    /// Its user has all of the prefix that is its key, and not one address in it.
    pub(crate) has_prefix: bool,
    /// It is between tunnels of this node: it has tunnels alone, and a rule that leads into one, whether or not it forwards now. So
    /// others of the user's sessions here have their packets before or after it.
    pub(crate) is_between: bool,
    /// The step of each PDR stands where that of the one beside it would: those to the user are tried first.
    pub(crate) is_swapped: bool,
}

/// Whose rate and whose counts are in an account.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) qer: Option<QerId>,
    pub(crate) ledger: Option<Ledger>,
}

/// What few sessions have.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Steps that do more than others, and what, by place.
    pub(crate) extras: Box<[(u16, Extra)]>,
    /// The step another stands in for, the accounts whose quotas it is, and the step that stands in, by their places.
    pub(crate) beyond: Box<[(u16, Places, u16)]>,
}

const _: () = assert!(size_of::<Option<Session>>() == 192, "three cache lines a session");
const _: () = assert!(size_of::<Names>() == 32, "and so much for each account, where it has several");

impl Session {
    /// As the control side makes it: not in force.
    pub(crate) fn new(
        seid: Seid,
        (program, classifier): (&Program, Classifier),
        (keys, places): (Vec<Key>, u16),
        rest: Rest,
    ) -> Self {
        Self {
            seid,
            keys: keys.into(),
            accounts: names(&program.meters, &program.usages),
            rest: rest.or_none(),
            run: CellRun::default(),
            generation: 0,
            pdrs: program.steps.len() as u16,
            places,
            waiting: 0,
            is_between: false,
            is_swapped: false,
            looks: classifier.looks(),
            has_prefix: program
                .ue_ipv6s
                .first()
                .is_some_and(|(_, prefix)| prefix.prefix_len() <= PREFIX_BITS),
            classifier,
        }
    }

    /// Bytes it has beside its place and its cells.
    pub(crate) fn heap_bytes(&self) -> usize {
        let keys = if self.keys.len() == 2 { 0 } else { size_of_val(&*self.keys) };
        let names = if self.accounts.len() == 1 { 0 } else { size_of_val(&*self.accounts) };
        let asked: usize = self.ledgers().map(|(ledger, _)| ledger.heap_bytes()).sum();
        let rest = self.rest.as_deref().map_or(0, Rest::heap_bytes);
        self.classifier.heap_bytes() + keys + names + asked + rest
    }

    /// Steps that do more than others, and what, by place.
    pub(crate) fn extras(&self) -> &[(u16, Extra)] {
        self.rest.as_ref().map_or(&[], |rest| &rest.extras)
    }

    /// The step another stands in for, the accounts whose quotas it is, and the step that stands in, by their places.
    pub(crate) fn beyond(&self) -> &[(u16, Places, u16)] {
        self.rest.as_ref().map_or(&[], |rest| &rest.beyond)
    }

    /// Whether packets with this key, as [`found_by`] has it, are the session's.
    #[inline]
    pub(super) fn is_found_by(&self, key: Key) -> bool {
        self.keys.iter().any(|own| found_by(*own) == key)
    }

    /// Its URRs, each with the place of its account.
    pub(crate) fn ledgers(&self) -> impl Iterator<Item = (&Ledger, u16)> {
        let all = self.accounts.iter().zip(0..);
        all.filter_map(|(names, place)| Some((names.ledger.as_ref()?, place)))
    }

    /// The same, to be written to.
    pub(crate) fn ledgers_mut(&mut self) -> impl Iterator<Item = (&mut Ledger, u16)> {
        let all = self.accounts.iter_mut().zip(0..);
        all.filter_map(|(names, place)| Some((names.ledger.as_mut()?, place)))
    }

    /// The step of the PDR that is tried in this place.
    #[inline]
    pub(crate) fn step(&self, number: usize) -> StepIndex {
        step_index(self.run.base, self.classifier.step(number) ^ usize::from(self.is_swapped))
    }

    /// The first PDR that matches a packet, by its step.
    #[inline]
    pub(crate) fn find(&self, packet: &Arrival) -> Option<StepIndex> {
        self.classifier.find(packet).map(|number| self.step(number))
    }

    /// The first PDR for an application, whichever, that takes its packets from the rules for what is of none, and whose step is
    /// wanted; by its place.
    pub(crate) fn find_application(
        &self,
        packet: &Arrival,
        is_wanted: impl Fn(StepIndex) -> bool,
    ) -> Option<usize> {
        let [none, any] =
            [Application::None, Application::Any].map(|application| Arrival { application, ..*packet });
        let end = self.classifier.find(&none).unwrap_or(usize::MAX);
        self.classifier.find_where(&any, |number| number < end && is_wanted(self.step(number)))
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

impl Rest {
    fn heap_bytes(&self) -> usize {
        let extras: usize = self.extras.iter().map(|(_, extra)| extra.heap_bytes()).sum();
        size_of::<Self>() + size_of_val(&*self.extras) + extras + size_of_val(&*self.beyond)
    }

    fn or_none(self) -> Option<Box<Self>> {
        let is_any = !self.extras.is_empty() || !self.beyond.is_empty();
        is_any.then(|| Box::new(self))
    }
}

/// By account.
fn names(meters: &[Meter], usages: &[Usage]) -> Mostly1<Names> {
    let names = |place: usize| Names {
        qer: meters.get(place).map(|meter| meter.qer),
        ledger: usages.get(place).map(Ledger::new),
    };
    (0..meters.len().max(usages.len())).map(names).collect()
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
