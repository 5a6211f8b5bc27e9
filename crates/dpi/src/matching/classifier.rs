//! Finding the rule of a flow.

use super::check::{Check, More, View};
use super::names::{NONE, Names};
use super::paths::Paths;
use super::regexes::Loose;
use super::rule::Facts;
use super::spans::Spans;
use crate::extract::NAME_MAX;
use arrayvec::ArrayVec;
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// What a flow's rule makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The rule.
    pub id: u32,
    /// Its precedence.
    pub precedence: u32,
    /// Its rating group.
    pub rating_group: u32,
    /// Its service, where it has one.
    pub service: Option<u32>,
}

/// Rules, ready to be asked. Immutable, so that workers can share it; asking allocates nothing.
///
/// Rules are numbered in the order in which they count: their rank. So the lowest rank that matches is the answer.
#[derive(Debug)]
pub struct Classifier {
    /// By rank, as is [`Self::checks`].
    pub(super) outcomes: Vec<Outcome>,
    pub(super) checks: Vec<Check>,
    pub(super) more: Vec<More>,
    pub(super) names: Names,
    pub(super) v4: Spans<u32>,
    pub(super) v6: Spans<u128>,
    pub(super) groups: Vec<Group>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) paths: Vec<Paths>,
    pub(super) ports: Vec<FxHashMap<u16, List>>,
    /// The rules without host and network.
    pub(super) anywhere: Group,
    pub(super) host_regexes: Loose,
    pub(super) url_regexes: Loose,
}

/// A rule by its rank, and whether there is anything left to check once it was found where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate(u32);

impl Candidate {
    pub(super) const fn new(rank: u32, checked: bool) -> Self {
        Self(rank << 1 | checked as u32)
    }

    const fn rank(self) -> u32 {
        self.0 >> 1
    }

    const fn is_checked(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Candidates that stand together, lowest rank first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) from: u32,
    pub(super) count: u32,
}

/// The rules of one host, domain or network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) plain: List,
    /// Where in [`Classifier::paths`].
    pub(super) paths: u32,
    /// Where in [`Classifier::ports`].
    pub(super) ports: u32,
}

const _: () = assert!(size_of::<Group>() == 16);

impl Default for Group {
    fn default() -> Self {
        Self { plain: List::default(), paths: NONE, ports: NONE }
    }
}

/// How large a [`Classifier`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rules.
    pub rules: usize,
    /// Distinct hosts and domains.
    pub names: usize,
    /// Distinct path prefixes and literals, counted for each host, domain or network.
    pub paths: usize,
    /// Automata that every host and every URL runs through.
    pub loose_automata: usize,
    /// Memory, as far as it can be counted.
    pub bytes: usize,
}

impl Classifier {
    /// The rule of the lowest precedence value that matches; `None` where none does. A host that is no name, as it is
    /// longer than [`NAME_MAX`], counts as none.
    pub fn classify(&self, facts: &Facts<'_>) -> Option<&Outcome> {
        let mut memory = ArrayVec::<u8, NAME_MAX>::new();
        let host = facts.host.and_then(|host| {
            memory.try_extend_from_slice(host).ok()?;
            memory.make_ascii_lowercase();
            Some(memory.as_slice())
        });
        let mut search = Search { rules: self, view: View { facts: *facts, host }, best: u32::MAX };
        if let Some(host) = host {
            self.names.groups(host).for_each(|group| search.group(group));
        }
        match facts.server {
            IpAddr::V4(address) => self.v4.around(address.to_bits()).for_each(|group| search.group(group)),
            IpAddr::V6(address) => self.v6.around(address.to_bits()).for_each(|group| search.group(group)),
        }
        search.rules_of(&self.anywhere);
        search.loose();
        self.outcomes.get(search.best as usize)
    }

    /// How large it is.
    pub fn shape(&self) -> Shape {
        Shape {
            rules: self.outcomes.len(),
            names: self.names.len(),
            paths: self.paths.iter().map(Paths::len).sum(),
            loose_automata: self.host_regexes.automata() + self.url_regexes.automata(),
            bytes: self.memory_bytes(),
        }
    }

    fn memory_bytes(&self) -> usize {
        let lists = size_of_val(self.outcomes.as_slice())
            + size_of_val(self.checks.as_slice())
            + size_of_val(self.more.as_slice())
            + size_of_val(self.groups.as_slice())
            + size_of_val(self.candidates.as_slice())
            + size_of_val(self.paths.as_slice());
        let ports: usize = self.ports.iter().map(|ports| ports.capacity() * 16).sum();
        let regexes = self.more.iter().flat_map(|more| [&more.host_regex, &more.url_regex]).flatten();
        lists
            + ports
            + regexes.map(super::regexes::Automaton::memory_bytes).sum::<usize>()
            + self.paths.iter().map(Paths::memory_bytes).sum::<usize>()
            + (self.names.memory_bytes() + self.v4.memory_bytes() + self.v6.memory_bytes())
            + (self.host_regexes.memory_bytes() + self.url_regexes.memory_bytes())
    }
}

/// One question.
struct Search<'c, 'f> {
    rules: &'c Classifier,
    view: View<'f>,
    /// The lowest rank that matches so far.
    best: u32,
}

impl Search<'_, '_> {
    #[inline]
    fn group(&mut self, group: u32) {
        if let Some(group) = self.rules.groups.get(group as usize) {
            self.rules_of(group);
        }
    }

    #[inline]
    fn rules_of(&mut self, group: &Group) {
        self.list(group.plain);
        if let Some(ports) = self.rules.ports.get(group.ports as usize)
            && let Some(list) = ports.get(&self.view.facts.server_port)
        {
            self.list(*list);
        }
        if let Some(path) = self.view.facts.path
            && let Some(paths) = self.rules.paths.get(group.paths as usize)
        {
            paths.search(path, |list| self.list(list));
        }
    }

    /// The first that holds is the best of a list.
    #[inline]
    fn list(&mut self, list: List) {
        let (from, count) = (list.from as usize, list.count as usize);
        for candidate in self.rules.candidates.get(from..from + count).unwrap_or_default() {
            let rank = candidate.rank();
            if rank >= self.best {
                return;
            }
            if !candidate.is_checked() || self.holds(rank) {
                self.best = rank;
                return;
            }
        }
    }

    fn holds(&self, rank: u32) -> bool {
        let Some(check) = self.rules.checks.get(rank as usize) else { return false };
        let more = check.more.and_then(|more| self.rules.more.get(more as usize));
        check.holds(&self.view.facts) && more.is_none_or(|more| more.holds(&self.view))
    }

    fn loose(&mut self) {
        let Some(host) = self.view.host else { return };
        let mut best = self.best;
        let rules = self.rules;
        let mut found = |rank: u32| {
            if rank < best && self.holds(rank) {
                best = rank;
            }
            best
        };
        let after = rules.host_regexes.search([host, b""], self.best, &mut found);
        if let Some(path) = self.view.facts.path {
            rules.url_regexes.search([host, path], after, &mut found);
        }
        self.best = best;
    }
}
