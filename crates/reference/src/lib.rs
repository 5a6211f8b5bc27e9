//! The whole user-plane path in the most obvious way: what the data plane must agree with, byte by byte.
mod bytes;
mod detection;
mod enforcement;
mod ethernet;
mod forwarding;
#[cfg(test)]
mod golden;
mod gtpu;
mod icmp;
mod input;
mod ip;
mod outcome;
mod reason;
mod setup;
pub mod worlds;

pub use enforcement::UsageCounts;
pub use outcome::{Fate, Outcome};
pub use reason::DropReason;
pub use setup::{Mac, Neighbour, PortSetup, Route, Setup, SetupError};

use enforcement::Session;
use ethernet::{Asked, Waiting};
use rules::{Rules, Seid};

/// The reference: an environment, sessions, and what they remember.
#[derive(Clone, Debug)]
pub struct Reference {
    setup: Setup,
    now_ns: u64,
    sessions: Vec<Session>,
    waiting: Vec<Waiting>,
    asked: Vec<Asked>,
    error_indications: bool,
    /// The last user's packet that found its session, and the place of that.
    #[cfg(test)]
    seen: Option<(usize, detection::Arrival)>,
}

impl Reference {
    /// No sessions yet; Error Indications are sent.
    ///
    /// # Errors
    /// A setup that makes no sense.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        setup.check()?;
        let (waiting, asked) = (Vec::new(), Vec::new());
        Ok(Self {
            setup,
            now_ns: 0,
            sessions: Vec::new(),
            waiting,
            asked,
            error_indications: true,
            #[cfg(test)]
            seen: None,
        })
    }

    /// Puts a session in force, or gives it new rules: those pass [`Rules::check`], and lead no tunnel or address
    /// here that another session has. Meters and counts go on where their QERs and URRs stay.
    pub fn put(&mut self, session: Seid, mut rules: Rules) {
        for pdr in &mut rules.pdrs {
            pdr.pdi.f_teid = pdr.pdi.f_teid.map(|f_teid| self.setup.canonical(f_teid));
        }
        match self.sessions.iter_mut().find(|known| known.seid == session) {
            Some(known) => known.replace(rules),
            None => self.sessions.push(Session::new(session, rules)),
        }
    }

    /// Takes a session out of force, if it was in.
    pub fn remove(&mut self, session: Seid) {
        self.sessions.retain(|known| known.seid != session);
    }

    /// Whether the next packet to an unknown tunnel is answered; the limit on how often is the caller's.
    pub fn allow_error_indications(&mut self, allowed: bool) {
        self.error_indications = allowed;
    }

    /// Takes one frame, from the Ethernet header on, that came in on a port, by its place in [`Setup::ports`]. Time
    /// never goes back.
    pub fn process(&mut self, port: usize, frame: &[u8], now_ns: u64) -> Outcome {
        self.now_ns = now_ns;
        self.expire();
        self.receive(port, frame).into()
    }

    /// What each URR of a session has counted, in the order of its rules; empty without such a session.
    pub fn usage(&self, session: Seid) -> Vec<UsageCounts> {
        let known = self.sessions.iter().find(|known| known.seid == session);
        known.map(Session::counts).unwrap_or_default()
    }

    fn port(&self, port: usize) -> Result<&PortSetup, DropReason> {
        self.setup.ports.get(port).ok_or(DropReason::Unfinished)
    }
}
