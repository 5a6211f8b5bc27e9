//! Finding the rule of a flow.

use super::check::{Check, More, View};
use super::dots;
use super::lead::{Candidate, Group, Lead, List, Listed, To};
use super::literals::{Literals, Tries};
use super::names::Names;
use super::paths::Paths;
use super::regexes::Loose;
use super::rule::{Facts, Layer};
use super::spans::Spans;
use crate::extract::NAME_MAX;
use arrayvec::ArrayVec;
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// Behind it a target identifies a fragment.
const FRAGMENT: u8 = b'#';

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
    /// The place of its application in [`Classifier::applications`], where it has one.
    pub application: Option<u16>,
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
    /// The lowest rank of the rules that are found by a network.
    pub(super) networks_from: u32,
    pub(super) groups: Vec<Group>,
    pub(super) candidates: Vec<Listed>,
    pub(super) paths: Vec<Paths>,
    pub(super) ports: Vec<FxHashMap<u16, List>>,
    /// The rules without host and network.
    pub(super) anywhere: Group,
    pub(super) regexes: Regexes,
    pub(super) applications: Vec<Box<str>>,
    pub(super) tells_requests_apart: bool,
    pub(super) asks_for_alpn: bool,
    /// Some rules of hosts are for lookups of them.
    pub(super) asks_for_lookups: bool,
}

/// Rules with nothing but regular expressions to be found by: by a literal that they have in all their matches, or by
/// searching for them.
#[derive(Debug)]
pub(super) struct Regexes {
    pub(super) host_literals: Literals,
    pub(super) url_literals: Literals,
    pub(super) host: Loose,
    pub(super) url: Loose,
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
        self.outcomes.get(self.rank(facts)?)
    }

    /// The place of that rule in [`Classifier::outcomes`].
    pub fn rank(&self, facts: &Facts<'_>) -> Option<usize> {
        match facts.path.is_some_and(|path| dots::are_in(path) || memchr::memchr(FRAGMENT, path).is_some()) {
            false => self.rank_as_said(facts),
            true => self.rank_as_resolved(facts),
        }
    }

    /// Where a server looks elsewhere than the path seems to say. What identifies a fragment of what is there is no part of it
    /// (RFC 3986 3.5), and servers pass it over.
    #[cold]
    #[inline(never)]
    fn rank_as_resolved(&self, facts: &Facts<'_>) -> Option<usize> {
        let path = facts.path.and_then(|path| path.split(|byte| *byte == FRAGMENT).next());
        let resolved = path.filter(|path| dots::are_in(path)).map(dots::resolve);
        let path = resolved.as_ref().map_or(path, |resolved| resolved.as_deref());
        self.rank_as_said(&Facts { path, ..*facts })
    }

    fn rank_as_said(&self, facts: &Facts<'_>) -> Option<usize> {
        let mut memory = ArrayVec::<u8, NAME_MAX>::new();
        let is_lookup = facts.layer == Some(Layer::Dns);
        // What is looked up is of no concern to any rule, mostly, and its rules would be far away.
        let host = facts.host.filter(|_| !is_lookup || self.asks_for_lookups).and_then(|host| {
            memory.try_extend_from_slice(host).ok()?;
            memory.make_ascii_lowercase();
            Some(memory.as_slice())
        });
        let view = View { facts: *facts, host, is_lookup_of_host: is_lookup };
        let mut search = Search { rules: self, view, best: u32::MAX, tries: Tries::new() };
        if let Some(host) = host {
            self.names.search(host, |lead| search.lead(lead));
        }
        search.view.is_lookup_of_host = false;
        search.networks();
        search.rules_of(&self.anywhere);
        search.regexes();
        (search.best != u32::MAX).then_some(search.best as usize)
    }

    /// What the rules make of flows, in the order in which they count.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The names of all applications, each once.
    pub fn applications(&self) -> &[Box<str>] {
        &self.applications
    }

    /// Whether two requests of one connection may be of different rules: some ask for what a request of HTTP/1.x says.
    pub const fn tells_requests_apart(&self) -> bool {
        self.tells_requests_apart
    }

    /// Whether any rule asks for application protocols of a ClientHello.
    pub const fn asks_for_alpn(&self) -> bool {
        self.asks_for_alpn
    }

    /// How large it is.
    pub fn shape(&self) -> Shape {
        Shape {
            rules: self.outcomes.len(),
            names: self.names.len(),
            paths: self.paths.iter().map(Paths::len).sum(),
            loose_automata: self.regexes.host.automata() + self.regexes.url.automata(),
            bytes: self.memory_bytes(),
        }
    }

    /// The lowest rank of those of a list that match, and `best`. The first that matches is the best of a list.
    #[inline]
    fn best_of(&self, list: List, (view, best): (&View<'_>, u32)) -> u32 {
        let (from, count) = (list.from as usize, list.count as usize);
        for Listed { candidate, check } in self.candidates.get(from..from + count).unwrap_or_default() {
            let rank = candidate.rank();
            if rank >= best {
                return best;
            }
            if self.is_for(*candidate, view, Some(check)) {
                return rank;
            }
        }
        best
    }

    /// Whether a rule that was found holds. Lookups of a host are no traffic of it: rules that are found by it and have nothing else to
    /// say are not for them. Those that are found otherwise ask for no host. So where nothing is left to check, no check is read.
    #[inline]
    fn is_for(&self, candidate: Candidate, view: &View<'_>, check: Option<&Check>) -> bool {
        match candidate.is_checked() {
            true => check.is_some_and(|check| self.satisfies(check, view)),
            false => !view.is_lookup_of_host,
        }
    }

    #[inline]
    fn satisfies(&self, check: &Check, view: &View<'_>) -> bool {
        let more = || check.more.and_then(|more| self.more.get(more as usize));
        check.holds(&view.facts) && more().is_none_or(|more| more.holds(view))
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
            + self.regexes.memory_bytes()
    }
}

/// One question.
struct Search<'c, 'f> {
    rules: &'c Classifier,
    view: View<'f>,
    /// The lowest rank that matches so far.
    best: u32,
    tries: Tries,
}

impl Regexes {
    /// The first rule that is searched for by one automaton too many.
    pub(super) fn first_beyond(&self) -> Option<u32> {
        [&self.host, &self.url].into_iter().find_map(|loose| loose.first_of(super::limits::LOOSE_AUTOMATA))
    }

    fn memory_bytes(&self) -> usize {
        let literals = self.host_literals.memory_bytes() + self.url_literals.memory_bytes();
        literals + self.host.memory_bytes() + self.url.memory_bytes()
    }
}

impl Search<'_, '_> {
    #[inline]
    fn lead(&mut self, lead: Lead) {
        match lead.to() {
            Some(To::Rule(candidate)) => self.rule(candidate),
            Some(To::List(list)) => self.list(list),
            Some(To::Group(group)) => {
                if let Some(group) = self.rules.groups.get(group as usize) {
                    self.rules_of(group);
                }
            }
            None => {}
        }
    }

    #[inline]
    fn rule(&mut self, candidate: Candidate) {
        let rank = candidate.rank();
        if rank < self.best && self.rules.is_for(candidate, &self.view, self.rules.checks.get(rank as usize))
        {
            self.best = rank;
        }
    }

    /// Those of the networks around the server, unless what is found already comes before all that any network leads to.
    #[inline]
    fn networks(&mut self) {
        if self.best < self.rules.networks_from {
            return;
        }
        let rules = self.rules;
        match self.view.facts.server {
            IpAddr::V4(address) => rules.v4.around(address.to_bits()).for_each(|lead| self.lead(lead)),
            IpAddr::V6(address) => rules.v6.around(address.to_bits()).for_each(|lead| self.lead(lead)),
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
            let (rules, view, best) = (self.rules, &self.view, &mut self.best);
            paths.search(path, &mut self.tries, |list| *best = rules.best_of(list, (view, *best)));
        }
    }

    #[inline]
    fn list(&mut self, list: List) {
        self.best = self.rules.best_of(list, (&self.view, self.best));
    }

    fn regexes(&mut self) {
        let Some(host) = self.view.host else { return };
        let Classifier { regexes, .. } = self.rules;
        let (rules, view, best, tries) = (self.rules, &self.view, &mut self.best, &mut self.tries);
        let found = |list: List, best: u32| rules.best_of(list, (view, best));
        let holds = |rank: u32, best: u32| {
            let check = rules.checks.get(rank as usize);
            if check.is_some_and(|check| rules.satisfies(check, view)) { rank } else { best }
        };
        regexes.host_literals.search(host, tries, |list| *best = found(list, *best));
        *best = regexes.host.search([host, b""], *best, holds);
        if let Some(path) = view.facts.path {
            regexes.url_literals.search(host, tries, |list| *best = found(list, *best));
            regexes.url_literals.search(path, tries, |list| *best = found(list, *best));
            *best = regexes.url.search([host, path], *best, holds);
        }
    }
}
