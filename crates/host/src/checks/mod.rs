//! The checks: each a name, what it means, what it is worth, and a question to the facts.

mod cpu;
mod idle;
mod kernel;
mod memory;
mod nic;
mod node;
mod power;
mod system;

use crate::finding::{Finding, Outcome};
use crate::{CpuSet, Facts, Node};

/// What a check looks at.
pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts,
    /// The product's configuration, if there is one.
    pub(crate) node: Option<&'a Node>,
}

impl View<'_> {
    /// The workers' CPUs as `tune` finds them: those of the configuration, else the isolated ones; none if there are neither.
    pub(crate) fn workers(&self) -> CpuSet {
        match self.node.map(|node| node.workers.as_slice()) {
            Some(workers @ [_, ..]) => workers.iter().copied().collect(),
            _ => self.facts.topology.isolated.clone(),
        }
    }

    /// CPUs that are to be fast: the workers' that are there, else all.
    pub(crate) fn fast(&self) -> CpuSet {
        let online = self.facts.topology.online();
        let workers = self.workers().common(&online);
        if workers.is_empty() { online } else { workers }
    }
}

/// A check.
pub(crate) struct Check {
    pub(crate) id: &'static str,
    pub(crate) means: &'static str,
    pub(crate) worth: &'static str,
    pub(crate) ask: fn(&View<'_>) -> Vec<Outcome>,
}

/// Where nobody has published a figure for it alone.
pub(crate) const NO_FIGURE: &str = "no published figure for it alone";

fn all() -> impl Iterator<Item = &'static Check> {
    [cpu::CHECKS, memory::CHECKS, kernel::CHECKS, power::CHECKS, system::CHECKS, nic::CHECKS, node::CHECKS]
        .into_iter()
        .flatten()
}

impl Check {
    fn findings<'a>(&'a self, view: &View<'_>) -> impl Iterator<Item = Finding> + use<'a> {
        (self.ask)(view).into_iter().map(|outcome| Finding {
            id: self.id,
            state: outcome.state,
            found: outcome.found,
            act: outcome.act,
            means: self.means,
            worth: self.worth,
        })
    }
}

/// All findings about a host, and with a node about what it is configured for. A check finds one thing, or one of each
/// device, port or worker it is about.
pub fn examine(facts: &Facts, node: Option<&Node>) -> Vec<Finding> {
    let view = View { facts, node };
    all().flat_map(|check| check.findings(&view)).collect()
}

/// The findings of one check, by its name; `None` if there is no such check.
pub fn explain(id: &str, facts: &Facts, node: Option<&Node>) -> Option<Vec<Finding>> {
    let check = all().find(|check| check.id == id)?;
    let found: Vec<Finding> = check.findings(&View { facts, node }).collect();
    let nothing =
        || Outcome::not_here("there is nothing it would look at (checks of the node need --config)");
    Some(match found.is_empty() {
        false => found,
        true => Check { ask: |_| Vec::new(), ..*check }.nothing(nothing()),
    })
}

impl Check {
    fn nothing(&self, outcome: Outcome) -> Vec<Finding> {
        let (state, found, act) = (outcome.state, outcome.found, outcome.act);
        vec![Finding { id: self.id, state, found, act, means: self.means, worth: self.worth }]
    }
}

/// The names of all checks.
pub fn identifiers() -> impl Iterator<Item = &'static str> {
    all().map(|check| check.id)
}

/// `1 port`, `2 ports`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_check_has_a_name_of_its_own_and_is_explained() {
        let names: BTreeSet<_> = identifiers().collect();
        assert_eq!(names.len(), all().count());
        for check in all() {
            assert!(check.means.len() > 20 && check.means.ends_with('.'), "{}", check.id);
            assert!(!check.worth.is_empty(), "{}", check.id);
        }
    }
}
