//! What a worker knows: everything its nodes read and write besides the packets.

mod budget;
mod neighbours;
mod ports;
mod routes;
mod sessions;
mod table;

pub(crate) use budget::Budget;
pub(crate) use neighbours::{Lookup, Neighbours};
pub(crate) use ports::Ports;
pub(crate) use routes::Routes;
pub(crate) use sessions::{Refusal, Session, SessionIndex, Sessions};

use crate::config::{Config, ConfigError};
use dplink::Event;

/// Most events noted between two turns of the control side; later ones are only counted.
const EVENTS_MAX: usize = 64;

/// Owned by one worker alone.
pub(crate) struct State {
    /// When the vector was received.
    pub(crate) now_ns: u64,
    pub(crate) ports: Ports,
    pub(crate) routes: Routes,
    pub(crate) neighbours: Neighbours,
    pub(crate) sessions: Sessions,
    /// Error Indications that may still be sent.
    pub(crate) error_indications: Budget,
    /// For the control side.
    pub(crate) events: Vec<Event>,
}

impl State {
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let ports = Ports::new(&config.ports)?;
        Ok(Self {
            now_ns: 0,
            routes: Routes::new(&ports, &config.routes)?,
            neighbours: Neighbours::new(config.limits.neighbours),
            sessions: Sessions::new(config.limits.sessions),
            error_indications: Budget::new(config.limits.error_indications_per_s),
            events: Vec::with_capacity(EVENTS_MAX),
            ports,
        })
    }

    /// An event is a hint: when too many come at once, the rest are lost.
    pub(crate) fn note(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }
}
