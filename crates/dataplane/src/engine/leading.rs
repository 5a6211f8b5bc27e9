//! Which exact rules cards should have (flow director): of sessions that are elsewhere than the cards' hash leads their packets.
//!
//! Rules change the way of packets, and those on the old way and on the new one would overtake each other. So a session's are asked
//! for when it is first ordered, before anybody is told that it is there, and are over when it is gone; not when it moves, nor of
//! sessions that come again by a resynchronisation, whose users have never ceased to send.

use super::Engine;
use super::placement::Owner;
use crate::state::{Key, Ports, Session};
use rules::{Interface, Seid};
use smallvec::SmallVec;
use std::net::{IpAddr, Ipv4Addr};
use steer::{Family, Target};

/// What is to be done about exact rules, in this order, and before notices are passed on that come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// A session is new, and the port's card would lead these packets elsewhere than to this worker.
    To {
        /// Whose they are.
        session: Seid,
        /// By its place in the configuration.
        port: usize,
        /// The packets.
        target: Target,
        /// The worker's number.
        worker: u8,
    },
    /// These packets are a session's from now on: no rule for another's may lead them.
    Claimed {
        /// Whose they are.
        session: Seid,
        /// By its place in the configuration.
        port: usize,
        /// The packets.
        target: Target,
    },
    /// They are no longer a session's.
    Left {
        /// Whose they were.
        session: Seid,
        /// By its place in the configuration.
        port: usize,
        /// The packets.
        target: Target,
    },
    /// A session is gone.
    Ended(Seid),
}

/// What is wanted of cards.
#[derive(Default)]
pub(super) struct Leading {
    /// By port, the family of its card; `None` where exact rules are not in use.
    cards: Vec<Option<Family>>,
    leads: Vec<Lead>,
}

/// A session's keys that it did not have before.
pub(super) type Fresh = SmallVec<[Key; 4]>;

impl Engine {
    /// Has it say what exact rules cards should have: of each port, by its place, the family of its card, or `None`.
    pub fn lead_exactly(&mut self, cards: Vec<Option<Family>>) {
        self.leading.cards = cards;
    }

    /// What there is to be done about exact rules since the last call: to be asked after every command, and every look at what
    /// workers reported, before what came of it is passed on.
    pub fn leads(&mut self) -> Vec<Lead> {
        std::mem::take(&mut self.leading.leads)
    }

    fn leads_exactly(&self) -> bool {
        self.leading.cards.iter().any(Option::is_some)
    }

    /// Those of a session's keys that it has not yet.
    pub(super) fn fresh(&self, session: Seid, keys: &[Key]) -> Fresh {
        let is_fresh = |key: &&Key| self.placement.holder(**key) != Some(session);
        keys.iter().filter(is_fresh).filter(|_| self.leads_exactly()).copied().collect()
    }

    /// A session has been ordered at its worker, with keys it did not have before; all of them, if it is new.
    pub(super) fn lead(&mut self, (session, owner): (Seid, Owner), fresh: &Fresh, is_new: bool) {
        let may_lead = is_new && self.named.is_none();
        for key in fresh {
            for (port, family, target) in self.targets(*key) {
                self.leading.leads.push(match may_lead && self.is_astray(*key, (owner, family), fresh) {
                    true => Lead::To { session, port, target, worker: owner },
                    false => Lead::Claimed { session, port, target },
                });
            }
        }
    }

    /// A session has other keys than it had: those that it lost lead nowhere.
    pub(super) fn leave(&mut self, session: Seid, before: Option<&Session>) {
        let keys = before.map_or(&[][..], |before| &before.keys);
        for key in self.fresh(session, keys) {
            for (port, _, target) in self.targets(key) {
                self.leading.leads.push(Lead::Left { session, port, target });
            }
        }
    }

    /// A session is gone, or never came.
    pub(super) fn ended(&mut self, session: Seid) {
        if self.leads_exactly() {
            self.leading.leads.push(Lead::Ended(session));
        }
    }

    /// Whether the card of a family leads packets of a key to another worker than this one. What is in a tunnel goes by the user's
    /// addresses, each for itself; where we know none, it may go anywhere.
    fn is_astray(&self, key: Key, (owner, family): (Owner, Family), keys: &Fresh) -> bool {
        let is_led = |user: u64| {
            // A card that hashes whole addresses spreads those of one prefix.
            let is_known = user >> 32 == 0 || family.hashes_prefix64();
            is_known && self.placement.led(user) == owner
        };
        match key {
            Key::Tunnel(_) => {
                let mut users = keys.iter().filter_map(|key| key.user()).peekable();
                users.peek().is_none() || !users.all(is_led)
            }
            key => key.user().is_some_and(|user| !is_led(user)),
        }
    }

    /// The packets that a key stands for, by port: a tunnel's at its port, a user's at all ports of the data network.
    fn targets(&self, key: Key) -> SmallVec<[(usize, Family, Target); 2]> {
        let cards = self.leading.cards.iter().enumerate();
        let cards = cards.filter_map(|(port, family)| family.map(|family| (port, family)));
        match key {
            Key::Tunnel(tunnel) => {
                let (at, teid) = Ports::tunnel(tunnel);
                let own = cards.filter(|(port, _)| *port == usize::from(at));
                own.map(|(port, family)| (port, family, Target::Tunnel(teid.0))).collect()
            }
            Key::User(_, instance) => {
                let Some(target) = key.user().map(target) else { return SmallVec::new() };
                let is_of_network = |port: usize| {
                    let port = self.ports.get(port);
                    port.is_some_and(|port| {
                        port.interface != Interface::Access && port.instance == instance && !port.ethernet
                    })
                };
                let of_network = cards.filter(|(port, _)| is_of_network(*port));
                of_network.map(|(port, family)| (port, family, target)).collect()
            }
            Key::Route(..) => SmallVec::new(),
        }
    }
}

/// A user's packets, by the address or prefix as keys have it.
fn target(user: u64) -> Target {
    match u32::try_from(user) {
        Ok(address) => Target::Address(IpAddr::V4(Ipv4Addr::from_bits(address))),
        Err(_) => Target::Prefix(user),
    }
}
