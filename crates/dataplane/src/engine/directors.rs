//! The exact rules of all ports (flow director), as the engine wants them: [`Lead`] after [`Lead`].

use super::leading::Lead;
use steer::{Budget, ExactCard, ExactRules, ExactState, Family};

/// The exact rules of all ports, and the time that may be spent on them. Whoever has the engine has this, and calls drivers from the
/// engine's thread; no worker ever waits for it.
pub struct Directors<C: ExactCard> {
    /// By place in the configuration; `None` where there are to be none.
    ports: Vec<Option<ExactRules<C>>>,
    budget: Budget,
}

impl<C: ExactCard> Directors<C> {
    /// By port, in the order of the configuration.
    pub const fn new(ports: Vec<Option<ExactRules<C>>>, budget: Budget) -> Self {
        Self { ports, budget }
    }

    /// For [`Engine::lead_exactly`](crate::Engine::lead_exactly).
    pub fn cards(&self) -> Vec<Option<Family>> {
        self.ports.iter().map(|port| port.as_ref().map(ExactRules::family)).collect()
    }

    /// Does what the engine wants, and what is left over of before, as far as the budget goes.
    pub fn obey(&mut self, leads: Vec<Lead>) {
        let Self { ports, budget } = self;
        for lead in leads {
            let concerned = match lead {
                Lead::To { port, .. } | Lead::Claimed { port, .. } | Lead::Left { port, .. } => {
                    port..port + 1
                }
                Lead::Ended(_) => 0..ports.len(),
            };
            for rules in ports.get_mut(concerned).into_iter().flatten().flatten() {
                match lead {
                    Lead::To { session, target, worker, .. } => {
                        rules.lead((session.0, target), worker.into(), budget);
                    }
                    Lead::Claimed { session, target, .. } => rules.claim((session.0, target), budget),
                    Lead::Left { session, target, .. } => rules.leave((session.0, target)),
                    Lead::Ended(session) => rules.end(session.0),
                }
            }
        }
        ports.iter_mut().flatten().for_each(|rules| rules.withdraw(budget));
    }

    /// What there is to tell of a port.
    pub fn state(&self, port: usize) -> Option<ExactState> {
        self.ports.get(port)?.as_ref().map(ExactRules::state)
    }
}
