//! Sessions on their way from one worker to another, one at a time: who is told what, and what waits meanwhile.
//!
//! A session is looked at first, and nothing waits for that. Then, until it is in force again, commands about sessions wait:
//! a few turns of the workers.

use super::history::{History, Past};
use super::known::{Known, Revision};
use super::placement::Owner;
use super::{Engine, EngineError};
use crate::state::{Leaving, Parcel, Refusal, Stay};
use crate::worker::{Leg, Order};
use dplink::{Command, MoveCause, Notice, Placed};
use rules::Seid;
use std::collections::{HashSet, VecDeque};

/// Moves that wait for their turn.
pub(super) const WANTED_MAX: usize = 64;
/// How often a session is looked at that is not at rest, once in each turn of the engine.
const TRIES: u16 = 1_000;
/// How often it is waited for packets that wait for a neighbour: those of one that is not there never cease.
const PATIENT_TRIES: u16 = 100;
/// Sessions remembered that could not move.
const SETTLED_MAX: usize = 4_096;
/// Keys of a session beyond those it claims, should it have more.
const MORE_KEYS: usize = 16;
/// Nothing can move then.
pub(super) const ONE_WORKER: &str = "there is one worker, which has all sessions";

/// All moves.
#[derive(Default)]
pub(super) struct Moves {
    wanted: VecDeque<Wanted>,
    under_way: Option<UnderWay>,
    /// What came for sessions while one was under way.
    waiting: VecDeque<Command>,
    /// Sessions that stayed where they were when nobody had asked for their move but the engine.
    settled: HashSet<Seid>,
    pub(super) history: History,
}

/// Who wants a session to move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// Who is told; nobody, where the engine chose the session.
    token: Option<u64>,
    cause: MoveCause,
    /// It only wants to know whether the session could.
    is_dry: bool,
}

impl Wish {
    /// Of somebody who names the session, and is told.
    pub(crate) fn asked(token: u64) -> Self {
        Self { token: Some(token), cause: MoveCause::Asked, is_dry: false }
    }

    /// Or who wants only to know whether it could.
    pub(super) fn dry(self, is_dry: bool) -> Self {
        Self { is_dry, ..self }
    }

    /// Of the engine, which chose the session.
    pub(super) fn own(cause: MoveCause) -> Self {
        Self { token: None, cause, is_dry: false }
    }
}

/// A session that is to move.
#[derive(Clone, Copy)]
struct Wanted {
    wish: Wish,
    session: Seid,
    to: Owner,
    tries: u16,
}

impl Wanted {
    /// As one that has moved.
    fn past(&self, at_ms: u64, from: Option<Owner>) -> Past {
        let Self { wish, session, to, .. } = *self;
        Past { at_ms, session, from, to, cause: wish.cause, stayed: None }
    }
}

/// The one that moves.
struct UnderWay {
    wanted: Wanted,
    from: Owner,
    revision: Revision,
    /// Commands wait.
    holds: bool,
    /// Workers that have not been told yet, and what is told the old one then.
    leading: usize,
    parcel: Option<Box<Parcel>>,
}

impl Moves {
    /// Gives a command back, unless it has to wait.
    pub(super) fn hold(&mut self, command: Command) -> Option<Command> {
        if self.is_holding() && is_of_sessions(&command) {
            self.waiting.push_back(command);
            return None;
        }
        Some(command)
    }

    /// A session could not move: it is left alone until as many others have been tried as are remembered.
    fn settle(&mut self, session: Seid) {
        if self.settled.len() >= SETTLED_MAX {
            self.settled.clear();
        }
        self.settled.insert(session);
    }

    /// Whether a session waits for its turn to move to a meter.
    pub(super) fn gathers(&self, session: Seid) -> bool {
        let is_it = |it: &Wanted| it.session == session && it.wish.cause == MoveCause::Meter;
        self.wanted.iter().any(is_it)
    }

    /// Whether commands about sessions wait.
    pub(super) fn is_holding(&self) -> bool {
        self.under_way.as_ref().is_some_and(|under_way| under_way.holds)
    }

    /// Sessions that move, or are to.
    pub(super) fn sessions(&self) -> usize {
        self.wanted.len() + usize::from(self.under_way.is_some())
    }

    /// Commands that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// Whether a command is about what sessions are.
const fn is_of_sessions(command: &Command) -> bool {
    matches!(
        command,
        Command::Put(_)
            | Command::Delete { .. }
            | Command::QueryUsage { .. }
            | Command::ResyncBegin { .. }
            | Command::ResyncEnd
    )
}

impl Engine {
    /// Whether a session is just between two workers: then look at what they report as soon as may be.
    pub fn is_moving(&self) -> bool {
        self.moves.is_holding()
    }

    /// Whether any session moves, or is to.
    #[cfg(test)]
    pub(crate) fn has_moves(&self) -> bool {
        self.moves.sessions() > 0
    }

    /// Has a session move.
    ///
    /// # Errors
    /// A sentence for people.
    pub(crate) fn want(&mut self, wish: Wish, session: Seid, to: Owner) -> Result<(), String> {
        if !self.placement.may_own(to) {
            return Err(format!("worker {to} is not there, or owns no sessions"));
        }
        if self.moves.wanted.len() >= WANTED_MAX {
            return Err("too many sessions are to move already; try again".to_owned());
        }
        self.moves.wanted.push_back(Wanted { wish, session, to, tries: 0 });
        Ok(())
    }

    /// Whether the engine may move a session of its own accord.
    pub(super) fn may_wander(&self, session: Seid) -> bool {
        !self.moves.settled.contains(&session)
    }

    /// Begins with the next, if none is under way.
    pub(super) fn begin_move(&mut self) -> Option<Notice> {
        if self.moves.under_way.is_some() || self.ending.has_begun() {
            return None;
        }
        let mut wanted = self.moves.wanted.pop_front()?;
        if wanted.wish.cause == MoveCause::Meter {
            match self.bound(wanted.session) {
                Ok(to) => wanted.to = to,
                Err(notice) => return notice,
            }
        }
        let Some(known) = self.known.get(wanted.session) else {
            return self.stays(&wanted, None, Stay::Gone);
        };
        if known.owner == wanted.to {
            return told(&wanted, Ok(known.owner));
        }
        let Some(revision) = known.applied.filter(|_| known.applied == known.ordered) else {
            return self.try_again(wanted);
        };
        let keys = self.placement.keys(wanted.session) + MORE_KEYS;
        let mut parcel = Box::new(Parcel::new(wanted.session, wanted.to, keys));
        parcel.leaving = self.content.is_some().then(|| Box::new(Leaving::new()));
        let from = known.owner;
        self.moves.under_way =
            Some(UnderWay { wanted, from, revision, holds: false, leading: 0, parcel: None });
        self.order(from, Order::Move(Leg::Look, parcel));
        None
    }

    /// A session is not at rest: it is looked at again, unless that was so for too long.
    fn try_again(&mut self, wanted: Wanted) -> Option<Notice> {
        if wanted.tries >= TRIES {
            let from = self.owner(wanted.session);
            return self.stays(&wanted, Some(from), Stay::Restless);
        }
        self.moves.wanted.push_back(Wanted { tries: wanted.tries + 1, ..wanted });
        None
    }

    /// A worker has done its step.
    pub(super) fn moved(&mut self, leg: Leg, parcel: Box<Parcel>) -> Option<Notice> {
        match leg {
            Leg::Look => self.looked(parcel),
            Leg::Expect => self.expected(parcel),
            Leg::Lead => self.led(),
            Leg::Give => self.given(parcel),
            Leg::Take => self.taken(&parcel),
            Leg::Stay => None,
        }
    }

    fn looked(&mut self, mut parcel: Box<Parcel>) -> Option<Notice> {
        let under_way = self.moves.under_way.as_mut()?;
        let (wanted, revision) = (under_way.wanted, Some(under_way.revision));
        if parcel.stays.is_none() && self.placement.shares(wanted.session) {
            // Somebody has come since the worker looked.
            parcel.stays = Some(Stay::Shares);
        }
        if parcel.stays.is_some() {
            return self.stay(parcel);
        }
        let known = self.known.get(wanted.session).unwrap_or_default();
        let is_at_rest = known.applied == revision && known.ordered == revision;
        if !is_at_rest || (parcel.shape.holds && wanted.tries < PATIENT_TRIES) {
            let from = under_way.from;
            self.moves.under_way = None;
            self.order(from, Order::Move(Leg::Stay, parcel));
            return self.try_again(wanted);
        }
        if wanted.wish.is_dry {
            let from = under_way.from;
            self.moves.under_way = None;
            self.order(from, Order::Move(Leg::Stay, parcel));
            return match self.placement.has_room(wanted.to) {
                true => told(&wanted, Ok(from)),
                false => told(&wanted, Err(Stay::Full(Refusal::Sessions))),
            };
        }
        under_way.holds = true;
        parcel.make_room(self.connections);
        self.order(wanted.to, Order::Move(Leg::Expect, parcel));
        None
    }

    /// The session stays where it is.
    fn stay(&mut self, parcel: Box<Parcel>) -> Option<Notice> {
        let UnderWay { wanted, from, .. } = self.moves.under_way.take()?;
        if wanted.wish.token.is_none() {
            self.moves.settle(wanted.session);
        }
        let notice = self.stays(&wanted, Some(from), parcel.stays.unwrap_or(Stay::Restless));
        self.order(from, Order::Move(Leg::Stay, parcel));
        notice
    }

    fn expected(&mut self, parcel: Box<Parcel>) -> Option<Notice> {
        if parcel.stays.is_some() {
            return self.stay(parcel);
        }
        let under_way = self.moves.under_way.as_mut()?;
        let (from, to) = (under_way.from, under_way.wanted.to);
        let others = (0..self.hands.len() as Owner).filter(|worker| ![from, to].contains(worker));
        let others: Vec<Owner> = others.collect();
        under_way.leading = others.len();
        for other in &others {
            let mut told = Box::new(Parcel::new(parcel.seid, to, 0));
            told.keys.clone_from(&parcel.keys);
            self.hands[usize::from(*other)].order(Order::Move(Leg::Lead, told));
        }
        under_way.parcel = Some(parcel);
        self.ask_for_it();
        None
    }

    fn led(&mut self) -> Option<Notice> {
        let under_way = self.moves.under_way.as_mut()?;
        under_way.leading = under_way.leading.saturating_sub(1);
        self.ask_for_it();
        None
    }

    /// Nobody leads packets to the old worker any more: it may give the session.
    fn ask_for_it(&mut self) {
        let Some(under_way) = self.moves.under_way.as_mut().filter(|under_way| under_way.leading == 0) else {
            return;
        };
        let from = under_way.from;
        if let Some(parcel) = under_way.parcel.take() {
            self.order(from, Order::Move(Leg::Give, parcel));
        }
    }

    fn given(&mut self, mut parcel: Box<Parcel>) -> Option<Notice> {
        parcel.wrap();
        self.order(parcel.to, Order::Move(Leg::Take, parcel));
        None
    }

    fn taken(&mut self, parcel: &Parcel) -> Option<Notice> {
        let UnderWay { wanted, from, .. } = self.moves.under_way.take()?;
        if parcel.spent.is_none() {
            return self.stays(&wanted, Some(from), Stay::Gone);
        }
        self.moves.history.note(wanted.past(self.now_ms, Some(from)));
        self.placement.moved(wanted.session, (from, wanted.to));
        let known = self.known.get(wanted.session).unwrap_or_default();
        self.known.set(wanted.session, Known { owner: wanted.to, ..known });
        let placed = Placed { session: wanted.session, worker: wanted.to, came_from: Some(from) };
        let placed = wanted.wish.token.map(|token| Notice::Placed { token, outcome: Ok(placed) });
        placed.or_else(|| self.met(&wanted))
    }

    /// A session stays where it is: that is remembered, if it was really to go, and told to who asked.
    fn stays(&mut self, wanted: &Wanted, from: Option<Owner>, why: Stay) -> Option<Notice> {
        if !wanted.wish.is_dry {
            self.moves.history.note(Past { stayed: Some(why), ..wanted.past(self.now_ms, from) });
        }
        match wanted.wish.cause {
            MoveCause::Meter => self.not_gathered(wanted.session, &why.to_string()),
            _ => told(wanted, Err(why)),
        }
    }

    /// A session is where the meter is, if it is for one that it moved.
    fn met(&mut self, wanted: &Wanted) -> Option<Notice> {
        match wanted.wish.cause {
            MoveCause::Meter => self.gathered(wanted.session),
            _ => None,
        }
    }

    /// What waited while a session was under way, once none is.
    pub(super) fn go_on(&mut self) -> Vec<Notice> {
        let mut notices = Vec::new();
        while !self.moves.is_holding()
            && let Some(command) = self.moves.waiting.pop_front()
        {
            let answer: Result<Option<Notice>, EngineError> = self.handle(command);
            notices.extend(answer.ok().flatten());
        }
        notices
    }
}

/// What becomes of a move, for who asked.
fn told(wanted: &Wanted, outcome: Result<Owner, Stay>) -> Option<Notice> {
    let outcome = outcome.map(|worker| Placed { session: wanted.session, worker, came_from: None });
    let outcome = outcome.map_err(|stay| stay.to_string());
    wanted.wish.token.map(|token| Notice::Placed { token, outcome })
}
