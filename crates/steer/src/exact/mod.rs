//! Exact rules in force on one port (flow director): packets that its hash leads elsewhere come to their owner's queue.
//!
//! A rule that comes into force, or goes, changes the way of packets: those in the old queue and those in the new one are then
//! handled in no order. So a rule is made for packets that nobody sends yet, and goes when they are nobody's any more; whoever calls
//! sees to that. All of it costs time of the calling thread, of which a [`Budget`] says how much there is.

mod budget;
mod state;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use state::ExactState;
use state::TOLD_MAX;

use crate::{Family, Rule, Target, exact};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

/// Refusals in a row after which the card is not asked any more, until it has lost a rule: it may be full.
const REFUSALS: u32 = 8;

/// A port's card, as far as exact rules need it; refusals are sentences with the driver's words.
pub trait ExactCard {
    /// The name of a rule in force.
    type Handle;

    /// Whether the driver would take a rule.
    ///
    /// # Errors
    /// Why not.
    fn validate(&self, rule: &Rule) -> Result<(), String>;

    /// Puts a rule in force.
    ///
    /// # Errors
    /// Why it is not.
    fn create(&mut self, rule: &Rule) -> Result<Self::Handle, String>;

    /// Takes a rule out of force.
    ///
    /// # Errors
    /// Why that failed; the handle is given up all the same.
    fn destroy(&mut self, rule: Self::Handle) -> Result<(), String>;
}

/// Kinds of targets that a card takes rules for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// [`Target::Tunnel`].
    pub tunnels: bool,
    /// [`Target::Address`].
    pub addresses: bool,
    /// [`Target::Prefix`].
    pub prefixes: bool,
}

impl Takes {
    /// Asks a card that no packets come to yet: rules of every kind that the family has are validated, then put in force together and
    /// taken back. So what a driver makes for its first rule is there before there are packets. What was refused is in the text.
    pub fn ask(card: &mut impl ExactCard, family: Family) -> (Self, Vec<String>) {
        let (mut made, mut refused) = (Vec::new(), Vec::new());
        // Nobody's: reserved for documentation (RFC 5737, RFC 3849), and the last TEID there is.
        let mut takes = |target| {
            let rules = exact(family, target, 0);
            let mut create = |rule: &Rule| {
                card.validate(rule)?;
                card.create(rule).map(|handle| made.push(handle))
            };
            let done = rules.iter().try_for_each(&mut create);
            let is_taken = !rules.is_empty() && done.is_ok();
            refused.extend(done.err());
            is_taken
        };
        let takes = Self {
            tunnels: takes(Target::Tunnel(u32::MAX)),
            addresses: takes(Target::Address(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)))),
            prefixes: takes(Target::Prefix(0x2001_0db8 << 32)),
        };
        let left = made.into_iter().rev().filter_map(|handle| card.destroy(handle).err());
        refused.extend(left);
        (takes, refused)
    }

    /// Whether any kind is taken.
    pub const fn any(self) -> bool {
        self.tunnels || self.addresses || self.prefixes
    }

    /// Whether this one is.
    pub const fn takes(self, target: Target) -> bool {
        match target {
            Target::Tunnel(_) => self.tunnels,
            Target::Address(_) => self.addresses,
            Target::Prefix(_) => self.prefixes,
        }
    }
}

/// The rules for one target.
struct Led<H> {
    session: u64,
    queue: u16,
    handles: Vec<H>,
    /// Its packets are nobody's any more.
    is_over: bool,
}

/// The exact rules of one port.
pub struct ExactRules<C: ExactCard> {
    card: C,
    family: Family,
    takes: Takes,
    limit: usize,
    /// In the card.
    installed: usize,
    led: HashMap<Target, Led<C::Handle>>,
    /// What is led of each session that has any.
    sessions: HashMap<u64, Vec<Target>>,
    /// What is over, in its order, until there is time to take the rules out.
    over: VecDeque<Target>,
    refusals: u32,
    counts: ExactState,
}

impl<C: ExactCard> ExactRules<C> {
    /// None yet; at most `limit` rules, or as many as the family has.
    pub fn new(card: C, (family, takes): (Family, Takes), limit: usize) -> Self {
        Self {
            card,
            family,
            takes,
            limit: limit.min(family.exact_rules_most()),
            installed: 0,
            led: HashMap::new(),
            sessions: HashMap::new(),
            over: VecDeque::new(),
            refusals: 0,
            counts: ExactState::default(),
        }
    }

    /// The card's family.
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Leads a target of a session to a queue, before anybody sends such packets; where the card, the limit or the budget has no
    /// room for it, not. What another session had for the target goes.
    pub fn lead(&mut self, (session, target): (u64, Target), queue: u16, budget: &mut Budget) {
        self.displace(target, budget);
        if !self.takes.takes(target) {
            return;
        }
        let rules = exact(self.family, target, queue);
        if self.installed + rules.len() > self.limit {
            self.counts.over_limit += 1;
        } else if self.refusals >= REFUSALS {
            self.counts.refused += 1;
        } else if !budget.has_left() {
            self.counts.over_budget += 1;
        } else if let Some(handles) = budget.spend(|| self.create(&rules)) {
            self.installed += handles.len();
            self.led.insert(target, Led { session, queue, handles, is_over: false });
            self.sessions.entry(session).or_default().push(target);
        }
    }

    /// A target is a session's from now on: what another one had for it goes at once, whatever that takes, as it may lead elsewhere.
    pub fn claim(&mut self, (session, target): (u64, Target), budget: &mut Budget) {
        if self.led.get(&target).is_some_and(|led| led.session != session || led.is_over) {
            self.displace(target, budget);
        }
    }

    /// A target is not this session's any more: what it had for it goes as there is time.
    pub fn leave(&mut self, (session, target): (u64, Target)) {
        if let Some(led) = self.led.get_mut(&target).filter(|led| led.session == session && !led.is_over) {
            led.is_over = true;
            self.over.push_back(target);
        }
    }

    /// A session is gone.
    pub fn end(&mut self, session: u64) {
        let targets = self.sessions.get(&session).cloned().unwrap_or_default();
        targets.into_iter().for_each(|target| self.leave((session, target)));
    }

    /// Takes rules out that are over, as far as the budget goes.
    pub fn withdraw(&mut self, budget: &mut Budget) {
        while !self.over.is_empty()
            && budget.has_left()
            && let Some(target) = self.over.pop_front()
        {
            // One that was led anew meanwhile is not over.
            if self.led.get(&target).is_some_and(|led| led.is_over) {
                self.displace(target, budget);
            }
        }
    }

    /// What there is to tell.
    pub fn state(&self) -> ExactState {
        let mut rules: Vec<_> = self.led.iter().map(|(target, led)| (*target, led.queue)).collect();
        if rules.len() > TOLD_MAX {
            rules.select_nth_unstable(TOLD_MAX);
            rules.truncate(TOLD_MAX);
        }
        rules.sort_unstable();
        let (limit, installed) = (self.limit as u64, self.installed as u64);
        ExactState { limit, installed, led: self.led.len() as u64, rules, ..self.counts.clone() }
    }

    #[cfg(test)]
    const fn card(&self) -> &C {
        &self.card
    }

    /// All rules of a target, or none.
    fn create(&mut self, rules: &[Rule]) -> Option<Vec<C::Handle>> {
        let mut handles = Vec::with_capacity(rules.len());
        for rule in rules {
            match self.card.create(rule) {
                Ok(handle) => handles.push(handle),
                Err(words) => {
                    self.refusals += 1;
                    self.counts.note_refused(words);
                    self.destroy(handles);
                    return None;
                }
            }
        }
        self.refusals = 0;
        Some(handles)
    }

    fn destroy(&mut self, handles: Vec<C::Handle>) {
        for handle in handles {
            if let Err(words) = self.card.destroy(handle) {
                self.counts.note_refused(words);
            }
        }
    }

    fn displace(&mut self, target: Target, budget: &mut Budget) {
        let Some(led) = self.led.remove(&target) else { return };
        if let Some(targets) = self.sessions.get_mut(&led.session) {
            targets.retain(|other| *other != target);
            if targets.is_empty() {
                self.sessions.remove(&led.session);
            }
        }
        self.installed -= led.handles.len();
        self.refusals = 0;
        budget.spend(|| self.destroy(led.handles));
    }
}
