//! A session that is to share a meter with others comes to the worker that has it for those, as a meter is one rate only in one
//! worker (TS 29.244 5.4.4). What the session is to be waits until it is there.

use super::Engine;
use super::moving::Wish;
use super::placement::Shared;
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

    /// Whether a session is on its way still.
    pub(super) fn has(&self, session: Seid) -> bool {
        self.0.contains_key(&session)
    }
}

impl Engine {
    /// Has a session move to where the meter is that it is to share with others; it is refused where it shares one with others here,
    /// or those there are in several places.
    pub(super) fn gather(&mut self, desired: Desired, shared: &Shared) -> Option<Notice> {
        let session = desired.session;
        if self.placement.shares(session) {
            return Some(elsewhere(&desired, &Stay::Shares.to_string()));
        }
        let Some(to) = self.placement.meters_of_others(session, shared) else {
            return Some(elsewhere(&desired, "those of other sessions are with different workers"));
        };
        match self.want(Wish::own(MoveCause::Meter), session, to) {
            Ok(()) => {
                self.gathering.0.insert(session, desired);
                None
            }
            Err(reason) => Some(elsewhere(&desired, &reason)),
        }
    }

    /// A session is where it was to go, and becomes what it is to be.
    pub(super) fn gathered(&mut self, session: Seid) -> Option<Notice> {
        let desired = self.gathering.0.remove(&session)?;
        self.put_here(desired)
    }

    /// A session stays where it was, and what it was.
    pub(super) fn not_gathered(&mut self, session: Seid, why: &str) -> Option<Notice> {
        self.gathering.0.remove(&session).map(|desired| elsewhere(&desired, why))
    }
}

fn elsewhere(Desired { session, revision, .. }: &Desired, why: &str) -> Notice {
    let (session, revision, cause) = (*session, *revision, Refusal::MeterElsewhere.cause());
    Notice::Refused { session, revision, cause, reason: format!("{}: {why}", Refusal::MeterElsewhere) }
}
