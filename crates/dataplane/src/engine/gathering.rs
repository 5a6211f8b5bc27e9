//! A session that is to share a meter with others comes to the worker that has it for those, as a meter is one rate only in one
//! worker (TS 29.244 5.4.4). What the session is to be waits until it is there.

use super::Engine;
use super::moving::Wish;
use super::placement::{Owner, shared_meters};
use crate::state::{Refusal, Stay};
use dplink::{Desired, MoveCause, Notice};
use rules::Seid;
use std::collections::HashMap;

/// What sessions are to be that are on their way to a meter: no more than may wait to move.
#[derive(Default)]
pub(super) struct Gathering(HashMap<Seid, Desired>);

impl Gathering {
    /// What is said of a session later is what counts.
    pub(super) fn forget(&mut self, session: Seid) {
        self.0.remove(&session);
    }
}

impl Engine {
    /// Gives a session to its worker, once it is where the meters are that it is to share with others; it is refused where
    /// it shares one with others here, or those there are in several places.
    pub(super) fn put_with_others(&mut self, desired: Desired) -> Option<Notice> {
        match self.place_of_meters(&desired) {
            Ok(None) => self.put_here(desired),
            Ok(Some(to)) => self.gather(desired, to),
            Err(why) => Some(elsewhere(&desired, &why)),
        }
    }

    /// The worker that a session has to move to first; `None` of one that may be where it is, or comes anew.
    ///
    /// # Errors
    /// A sentence for people.
    fn place_of_meters(&self, desired: &Desired) -> Result<Option<Owner>, String> {
        let (session, shared) = (desired.session, shared_meters(&desired.rules));
        let owner = self.known.get(session).map(|known| known.owner);
        if owner.is_none_or(|owner| !self.placement.are_elsewhere((session, owner), &shared)) {
            return Ok(None);
        }
        if self.placement.shares(session) {
            return Err(Stay::Shares.to_string());
        }
        let to = self.placement.meters_of_others(session, &shared);
        to.map(Some).ok_or_else(|| "those of other sessions are with different workers".to_owned())
    }

    /// Has a session move to where the meters are.
    fn gather(&mut self, desired: Desired, to: Owner) -> Option<Notice> {
        let session = desired.session;
        if !self.moves.gathers(session)
            && let Err(reason) = self.want(Wish::own(MoveCause::Meter), session, to)
        {
            return Some(elsewhere(&desired, &reason));
        }
        self.gathering.0.insert(session, desired);
        None
    }

    /// Where a session goes whose turn it is to move to its meters, as things are now: others that have them may have moved,
    /// come and gone since it was told what to be, and it may have been told something else.
    ///
    /// # Errors
    /// What is told of one that need not, or cannot, go.
    pub(super) fn bound(&mut self, session: Seid) -> Result<Owner, Option<Notice>> {
        let desired = self.gathering.0.remove(&session).ok_or(None)?;
        match self.place_of_meters(&desired) {
            Ok(Some(to)) => {
                self.gathering.0.insert(session, desired);
                Ok(to)
            }
            Ok(None) | Err(_) => Err(self.put_with_others(desired)),
        }
    }

    /// A session is where it was to go, and becomes what it is to be; it goes on where that has become something else.
    pub(super) fn gathered(&mut self, session: Seid) -> Option<Notice> {
        let desired = self.gathering.0.remove(&session)?;
        self.put_with_others(desired)
    }

    /// A session stays where it was, and what it was, unless it is to go elsewhere by now.
    pub(super) fn not_gathered(&mut self, session: Seid, why: &str) -> Option<Notice> {
        if self.moves.gathers(session) {
            return None;
        }
        self.gathering.0.remove(&session).map(|desired| elsewhere(&desired, why))
    }
}

fn elsewhere(Desired { session, revision, .. }: &Desired, why: &str) -> Notice {
    let (session, revision, cause) = (*session, *revision, Refusal::MeterElsewhere.cause());
    Notice::Refused { session, revision, cause, reason: format!("{}: {why}", Refusal::MeterElsewhere) }
}
