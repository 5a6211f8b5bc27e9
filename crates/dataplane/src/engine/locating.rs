//! Where a session is, for who asks, and has it move.

use super::Engine;
use super::moving::{ONE_WORKER, Wish};
use crate::state::{Key, user_key};
use dplink::{Destination, Notice, Placed, Whose};
use rules::{Instance, Seid};
use std::net::IpAddr;

impl Engine {
    /// Says where a session is, or has it move.
    pub(super) fn locate(&mut self, token: u64, whose: Whose, to: Option<Destination>) -> Option<Notice> {
        let found = self.session(whose).and_then(|session| {
            let placed = Placed { session, worker: self.owner(session), came_from: None };
            match to.filter(|to| to.worker != placed.worker) {
                None => Ok(Some(placed)),
                Some(Destination { worker, is_dry }) => {
                    let wish = Wish::asked(token).dry(is_dry);
                    self.want(wish, session, worker).map(|()| None)
                }
            }
        });
        found
            .map_or_else(|reason| Some(Err(reason)), |placed| placed.map(Ok))
            .map(|outcome| Notice::Placed { token, outcome })
    }

    fn session(&self, whose: Whose) -> Result<Seid, String> {
        if self.hands.len() == 1 {
            return Err(ONE_WORKER.to_owned());
        }
        let found = match whose {
            Whose::User(ue, instance) => self.session_of(ue, instance),
            Whose::Session(session) => self.known.get(session).map(|_| session),
        };
        found.ok_or_else(|| whose.not_found())
    }

    fn session_of(&self, ue: IpAddr, instance: Instance) -> Option<Seid> {
        let key = user_key(ue).map(|key| Key::User(key, instance))?;
        self.placement.holder(key)
    }
}
