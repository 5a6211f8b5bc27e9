//! A session on its way from one worker to another: what of it is packed where it was, and unpacked where it will be.
//!
//! Flows are not taken along: they are a cache. What was found out about them is.

use super::account::Account;
use super::apart::Apart;
use super::cells::{CellRun, STEPS};
use super::connections::Connection;
use super::flow_key::FlowKey;
use super::installation::{Installation, Refusal, Unwanted};
use super::lists::WholeStep;
use super::peers::{Name, PeerIndex};
use super::recent::Second;
use super::redirections::{REDIRECTIONS_OF_SESSION, Redirection};
use super::session::{Key, Session, SessionIndex, instance_of};
use super::sessions::Sessions;
use super::step::{HotStep, Kind, StepIndex};
use super::waiting::Waiter;
use super::{State, WAITING_PER_SESSION};
use crate::content::Detected;
use crate::kept::Told;
use crate::steering::{Buckets, GIVEN_MAX};
use rules::Seid;
use std::ops::RangeInclusive;

/// Blocks of flows looked at in one turn, 2 KiB each, for what a user's flows were found to be of.
const BLOCKS_AT_ONCE: usize = 32;
/// Flows whose application is taken along; of more it is found out again.
pub(crate) const LEARNED_MAX: usize = 2_048;

/// Flows that may begin to wait from when the session is looked at until it goes, 4.5 kB each.
const SOME_WAITERS: usize = 32;

/// Meters that may be met beyond their rates for the first time from when the session is looked at until it goes, 1.2 kB each.
const SOME_SECONDS: usize = 8;

/// Why a session stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stay {
    /// It has gone meanwhile.
    #[error("the session is no longer there")]
    Gone,
    /// All sessions of frames are switched to each other.
    #[error("it carries Ethernet frames: all such sessions stay together")]
    Ethernet,
    /// One meter cannot be in two places.
    #[error("it shares a meter with other sessions: such sessions stay together")]
    Shares,
    /// They would not fit the way.
    #[error("more packets are kept for its user than can be handed over at once")]
    Kept,
    /// It is being changed, or packets wait for a neighbour's address.
    #[error("it was not at rest for long enough; try again")]
    Restless,
    /// There is no room for it.
    #[error("there is no room at the other worker: {0}")]
    Full(Refusal),
}

/// How much there is of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    steps: usize,
    accounts: usize,
    peers: usize,
    aparts: usize,
    /// Meters, each way by itself, of whose last second something is known.
    seconds: usize,
    /// Flows that wait to be of an application.
    waiting: usize,
    /// It has rules for applications, and there are content rules.
    asks: bool,
    /// Its connections may have to be taken along.
    enriches: bool,
    /// The same of its flows that go to other addresses.
    readdresses: bool,
    /// Packets wait for neighbours' addresses, which may be this user's.
    pub(crate) holds: bool,
}

/// What becomes known of a session's flows from when it is looked at until it goes.
#[derive(Debug)]
pub(crate) struct Leaving {
    session: SessionIndex,
    learned: Vec<(FlowKey, Detected)>,
    /// The block of flows to go on from.
    next: Option<usize>,
}

impl Leaving {
    /// Allocated by the control side, as everything that a worker fills.
    pub(crate) fn new() -> Self {
        Self { session: SessionIndex::NONE, learned: Vec::with_capacity(LEARNED_MAX), next: Some(0) }
    }
}

/// A session that is to move, and what is asked, told and taken along. Its lists have the room before a worker gets them.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) seid: Seid,
    pub(crate) to: u8,
    pub(crate) keys: Vec<Key>,
    pub(crate) shape: Shape,
    /// Why it stays, if it does.
    pub(crate) stays: Option<Stay>,
    /// Where there are content rules.
    pub(crate) leaving: Option<Box<Leaving>>,
    pub(crate) session: Option<Session>,
    pub(crate) steps: Vec<WholeStep>,
    pub(crate) peers: Vec<Option<Name>>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) aparts: Vec<(u16, Apart)>,
    /// As many as may be filled.
    pub(crate) seconds: Vec<Second>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) redirections: Vec<Redirection>,
    pub(crate) waiters: Vec<Waiter>,
    /// Rules of whose kept packets the control plane has heard.
    pub(crate) told: Told,
    /// What the lists above have become.
    pub(crate) installation: Option<Box<Installation>>,
    /// What the worker needs no longer.
    pub(crate) spent: Option<Box<Installation>>,
}

impl Parcel {
    /// Of a session that may have so many keys.
    pub(crate) fn new(seid: Seid, to: u8, keys: usize) -> Self {
        Self {
            seid,
            to,
            keys: Vec::with_capacity(keys),
            shape: Shape::default(),
            stays: None,
            leaving: None,
            session: None,
            steps: Vec::new(),
            peers: Vec::new(),
            accounts: Vec::new(),
            aparts: Vec::new(),
            seconds: Vec::new(),
            connections: Vec::new(),
            redirections: Vec::new(),
            waiters: Vec::new(),
            told: Told::new(),
            installation: None,
            spent: None,
        }
    }

    /// Makes room for what was found to be there.
    pub(crate) fn make_room(&mut self, connections: usize) {
        let Shape { steps, accounts, aparts, seconds, waiting, enriches, readdresses, asks, .. } = self.shape;
        self.steps.reserve_exact(steps);
        self.peers.reserve_exact(steps);
        self.accounts.reserve_exact(accounts);
        self.aparts.reserve_exact(aparts);
        let seconds = (seconds + SOME_SECONDS).min(2 * accounts);
        self.seconds = std::iter::repeat_with(Second::empty).take(seconds).collect();
        self.connections.reserve_exact(if enriches { connections } else { 0 });
        self.redirections.reserve_exact(if readdresses { REDIRECTIONS_OF_SESSION } else { 0 });
        // Some may begin until it goes.
        let room = (waiting + SOME_WAITERS).min(WAITING_PER_SESSION.into());
        self.waiters.reserve_exact(if asks { room } else { 0 });
    }

    /// Makes of what was packed what a worker takes. Nobody asks it for the revision: the engine knows.
    pub(crate) fn wrap(&mut self) {
        let Some(session) = self.session.take() else { return };
        self.installation = Some(Box::new(Installation {
            seid: self.seid,
            session: Some(session),
            revision: 0,
            steps: std::mem::take(&mut self.steps).into(),
            peers: std::mem::take(&mut self.peers).into(),
            accounts: std::mem::take(&mut self.accounts).into(),
            aparts: std::mem::take(&mut self.aparts).into(),
            ethernet: None,
            unwanted: Unwanted::default(),
            end_markers: Box::default(),
            removed: Vec::new(),
            inherited: None,
        }));
    }
}

/// A session that another worker is about to give: its keys lead here, to a place where nothing is yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) index: SessionIndex,
    run: CellRun,
}

impl Key {
    /// The users it leads to, as flows have them ([`FlowKey::user`]); `None` of a tunnel.
    pub(crate) fn users(&self) -> Option<RangeInclusive<u64>> {
        match *self {
            Self::User(user, _) => Some(Buckets::user(user)..=Buckets::user(user)),
            Self::Route(bits, length, _) => Some(length.users(bits)),
            Self::Tunnel(_) => None,
        }
    }
}

/// Whether a flow is of a session that has these keys.
pub(crate) fn is_of(keys: &[Key], flow: &FlowKey) -> bool {
    keys.iter().any(|key| match *key {
        Key::Tunnel(_) => false,
        Key::User(user, instance) => {
            Buckets::user(user) == flow.user() && instance.digest() == flow.network()
        }
        Key::Route(bits, length, instance) => {
            length.holds(bits, flow.user()) && instance.digest() == flow.network()
        }
    })
}

impl State {
    /// A session is about to be no more: nor are its connections that may have had a field, nor its flows that
    /// go to other addresses.
    pub(crate) fn forget_connections(&mut self, seid: Seid) {
        let index = self.sessions.by_seid(seid);
        let Some(session) = index.and_then(|index| self.sessions.get(index)) else { return };
        let is_enriched = |at: StepIndex| self.sessions.cells.step(at).kind == Kind::Enrich;
        if self.sessions.steps_of(session).any(is_enriched) {
            self.connections.forget(|flow| is_of(&session.keys, flow));
        }
        if self.sessions.steps_of(session).any(|at| self.sessions.cells.step(at).may_readdress()) {
            self.redirections.forget(seid);
        }
    }

    /// Looks at a session that is to go: whether it can, and how much there is of it. `kept` packets of it are kept.
    pub(crate) fn look_at_leaving(&mut self, parcel: &mut Parcel, kept: impl FnOnce(SessionIndex) -> usize) {
        let Some(index) = self.sessions.by_seid(parcel.seid) else { return parcel.stays = Some(Stay::Gone) };
        parcel.stays = if self.switch.carries(index) {
            Some(Stay::Ethernet)
        } else if kept(index) > GIVEN_MAX / 2 {
            Some(Stay::Kept)
        } else {
            self.sessions.shape(index, parcel)
        };
        parcel.shape.asks &= self.content.is_loaded();
        if let Some(mut leaving) = parcel.leaving.take_if(|_| parcel.stays.is_none() && parcel.shape.asks) {
            (leaving.session, leaving.next) = (index, Some(0));
            leaving.learned.clear();
            self.leaving = Some(leaving);
        }
    }

    /// Whether there are flows to be looked at for a session that is to go.
    pub(crate) fn looks_at_flows(&self) -> bool {
        self.leaving.as_ref().is_some_and(|leaving| leaving.next.is_some())
    }

    /// A session that was to go stays.
    pub(crate) const fn leave_alone(&mut self) -> Option<Box<Leaving>> {
        self.leaving.take()
    }

    /// Looks at some more flows of a session that is to go; whether it has seen them all.
    pub(crate) fn look_at_flows(&mut self) -> bool {
        let Some(leaving) = &mut self.leaving else { return true };
        let (Some(from), Some(session)) = (leaving.next, self.sessions.get(leaving.session)) else {
            return true;
        };
        let learned = &mut leaving.learned;
        leaving.next = self.flows.applications(from, BLOCKS_AT_ONCE, |flow, detected| {
            if learned.len() < learned.capacity() && is_of(&session.keys, flow) {
                learned.push((*flow, detected));
            }
        });
        leaving.next.is_none()
    }

    /// A flow was found to be of an application, and its session may be about to go.
    #[cold]
    pub(crate) fn learned(&mut self, session: SessionIndex, flow: &FlowKey, detected: Detected) {
        let leaving = self.leaving.as_mut().filter(|leaving| leaving.session == session);
        if let Some(leaving) = leaving
            && leaving.learned.len() < leaving.learned.capacity()
        {
            leaving.learned.push((*flow, detected));
        }
    }

    /// Another worker is about to give a session: from now on its keys lead here. Packets for it have to wait.
    pub(crate) fn expect(&mut self, parcel: &mut Parcel) {
        let enriched = if parcel.shape.enriches { self.connections.room(self.now_ns) } else { usize::MAX };
        let reserved = match enriched {
            0 => Err(Refusal::Keys),
            _ => self.sessions.reserve(&parcel.keys, &parcel.shape),
        };
        match reserved {
            Ok(expected) => {
                self.expected = Some(expected);
                self.steering.lead(&parcel.keys, parcel.to);
            }
            Err(refusal) => parcel.stays = Some(Stay::Full(refusal)),
        }
    }

    /// Whether packets for a session that is not there have to wait for it.
    pub(crate) fn is_expected(&self, session: SessionIndex) -> bool {
        self.expected.is_some_and(|expected| expected.index == session)
    }

    /// Packs a session, which is no longer here then; its keys lead to where it goes.
    pub(crate) fn pack(&mut self, index: SessionIndex, parcel: &mut Parcel) {
        self.pack_waiting(index, &mut parcel.waiters);
        if parcel.shape.enriches {
            self.connections.carry_off(|flow| is_of(&parcel.keys, flow), &mut parcel.connections);
        }
        if parcel.shape.readdresses {
            self.redirections.carry_off(parcel.seid, &mut parcel.redirections);
        }
        parcel.leaving = self.leaving.take().or(parcel.leaving.take());
        self.sessions.pack(index, parcel);
        self.steering.lead(&parcel.keys, parcel.to);
    }

    /// Puts in force what another worker has packed; its place, where anything was packed.
    pub(crate) fn unpack(&mut self, parcel: &mut Parcel) -> Option<SessionIndex> {
        let expected = self.expected.take()?;
        let Some(installation) = parcel.installation.take() else {
            self.sessions.give_up(&parcel.keys, expected);
            return None;
        };
        let Self { sessions, ports, routes, .. } = self;
        let (place, seconds) = ((expected, self.now_ns), &mut parcel.seconds[..]);
        parcel.spent =
            Some(sessions.unpack((installation, seconds), place, |peer| Self::way(ports, routes, peer)));
        self.owe_late(expected.index);
        self.look_again_at(expected.index);
        for connection in parcel.connections.drain(..) {
            self.connections.adopt(connection, self.now_ns);
        }
        for redirection in parcel.redirections.drain(..) {
            self.adopt_redirection(redirection);
        }
        // A connection may have begun anew since its session was here, which nothing that is known of it tells.
        for waiter in &parcel.waiters {
            self.flows.forget_application(waiter.key());
        }
        for (flow, detected) in parcel.leaving.iter_mut().flat_map(|leaving| leaving.learned.drain(..)) {
            self.flows.learn_application(&flow, detected, self.now_ns);
        }
        for waiter in parcel.waiters.drain(..) {
            self.unpack_waiting(expected.index, waiter);
        }
        Some(expected.index)
    }

    /// Thresholds of a session that waited to be told wait here.
    fn owe_late(&mut self, index: SessionIndex) {
        let accounts = self.sessions.get(index).map_or(0, |session| session.accounts.len()) as u16;
        for place in 0..accounts {
            if self.sessions.ledger((index, place)).is_some_and(|(ledger, _)| ledger.is_late()) {
                self.come_late((index, place));
            }
        }
    }
}

impl Sessions {
    /// How much there is of a session, or why it cannot go.
    fn shape(&mut self, index: SessionIndex, parcel: &mut Parcel) -> Option<Stay> {
        let session = self.slots.get(index.0 as usize)?.as_ref()?;
        if session.keys.len() > parcel.keys.capacity() {
            return Some(Stay::Restless);
        }
        parcel.keys.clear();
        parcel.keys.extend_from_slice(&session.keys);
        let steps = || self.steps_of(session).map(|at| self.cells.step(at));
        let mut shape = Shape {
            steps: session.places.into(),
            accounts: session.accounts.len(),
            seconds: self.seconds(session),
            peers: steps().filter(|step| step.peer.is_some()).count(),
            waiting: session.waiting.into(),
            enriches: steps().any(|step| step.kind == Kind::Enrich),
            readdresses: steps().any(HotStep::may_readdress),
            asks: session.looks.application,
            ..parcel.shape
        };
        let (base, meters) = (session.run.base, session.accounts.len() as u16);
        shape.aparts = 0;
        for place in 0..meters {
            if let Some(at) = self.cells.account(base, place).rate.stands_for() {
                shape.aparts += 1;
                if self.aparts.users(at) > 1 {
                    return Some(Stay::Shares);
                }
            }
        }
        parcel.shape = shape;
        None
    }

    /// Keeps all the room that a session needs, and lets its keys lead there.
    fn reserve(&mut self, keys: &[Key], shape: &Shape) -> Result<Expected, Refusal> {
        self.admit_keys(keys, None)?;
        if self.peers.room() < shape.peers {
            return Err(Refusal::Peers);
        }
        if self.aparts.room() < shape.aparts {
            return Err(Refusal::Meters);
        }
        if !self.has_place() {
            return Err(Refusal::Sessions);
        }
        let cells = shape.steps.div_ceil(STEPS).max(shape.accounts);
        let run = self.cells.allocate(cells).ok_or(Refusal::Rules)?;
        let place = self.take_place().ok_or(Refusal::Sessions)?;
        self.remember((keys, instance_of(keys)), place);
        Ok(Expected { index: SessionIndex(place), run })
    }

    /// The session does not come.
    fn give_up(&mut self, keys: &[Key], expected: Expected) {
        self.forget_keys(keys, expected.index.0);
        self.cells.release(expected.run);
        self.leave_place(expected.index.0);
    }

    /// Takes a session out of force as it stands.
    fn pack(&mut self, index: SessionIndex, parcel: &mut Parcel) {
        let Some(session) = self.slots.get_mut(index.0 as usize).and_then(Option::take) else { return };
        for at in self.steps_of(&session) {
            let mut step = self.cells.whole(at);
            parcel.peers.push(self.peers.name_of(step.peer));
            step.peer = PeerIndex::NONE;
            parcel.steps.push(step);
        }
        for place in 0..parcel.shape.accounts as u16 {
            let mut account = self.cells.account(session.run.base, place);
            if let Some(apart) = account.rate.stands_for().and_then(|at| self.aparts.at(at)) {
                parcel.aparts.push((place, *apart));
                account.rate = super::Rate::ZERO;
            }
            parcel.accounts.push(account);
        }
        self.carry_seconds_off(&session, &mut parcel.seconds);
        self.give_back(&session, index.0);
        parcel.session = Some(session);
    }

    /// Puts a session in force where room was kept for it.
    fn unpack(
        &mut self,
        (mut new, seconds): (Box<Installation>, &mut [Second]),
        (expected, now_ns): (Expected, u64),
        way: impl Fn(Name) -> Option<super::Way>,
    ) -> Box<Installation> {
        if let Some(session) = &mut new.session {
            (session.run, session.waiting) = (expected.run, 0);
        }
        self.enter_aparts(None, &mut new, now_ns);
        self.adopt_seconds(&new, seconds, now_ns);
        self.fill(expected.index.0, &mut new, way);
        new
    }
}
