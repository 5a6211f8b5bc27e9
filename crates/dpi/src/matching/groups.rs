//! The rules of each host, domain and network while rules are added, and what becomes of them.

use super::check::Check;
use super::lead::{Candidate, Group, Lead, List, Listed};
use super::literals::Literals;
use super::paths::Paths;
use super::pattern::PathPattern;
use super::problem::Problem;
use super::regexes::Loose;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The rules of one host, domain or network, while more are added. They are added in the order of their rank.
#[derive(Default)]
pub(super) struct DraftGroup {
    plain: Vec<(Candidate, Vec<u16>)>,
    prefixes: BTreeMap<Box<str>, Vec<Candidate>>,
    literals: BTreeMap<Box<str>, Vec<Candidate>>,
}

/// From this many rules of a group on, those that name their ports one by one are found by port.
const MANY: usize = 16;

/// Rules that share a literal; others that have it are searched for.
const SHARED: usize = 4;

/// Rules with nothing but regular expressions to be found by.
#[derive(Default)]
pub(super) struct DraftRegexes {
    literals: BTreeMap<Box<str>, Vec<Candidate>>,
    pub(super) loose: Vec<(String, u32)>,
}

impl DraftRegexes {
    /// Adds an expression by its literal, if there is room for that; whether there was.
    pub(super) fn add_literal(&mut self, literal: Option<String>, candidate: Candidate) -> bool {
        let Some(literal) = literal else { return false };
        let rules = self.literals.entry(literal.into()).or_default();
        let is_free = rules.len() < SHARED;
        if is_free {
            rules.push(candidate);
        }
        is_free
    }
}

/// A rule that is to be placed.
pub(super) struct Place<'a> {
    pub(super) candidate: Candidate,
    pub(super) paths: &'a [PathPattern],
    pub(super) ports: Vec<u16>,
}

impl DraftGroup {
    pub(super) fn add(&mut self, place: &Place<'_>) {
        if place.paths.is_empty() {
            self.plain.push((place.candidate, place.ports.clone()));
        }
        for pattern in place.paths {
            let (map, text) = match (pattern.prefix(), pattern.literal()) {
                ("", literal) if !literal.is_empty() => (&mut self.literals, literal),
                (prefix, _) => (&mut self.prefixes, prefix),
            };
            map.entry(text.into()).or_default().push(place.candidate);
        }
    }
}

/// What all groups have of a kind, one after the other.
pub(super) struct Lists {
    /// Of all rules, by rank.
    pub(super) checks: Vec<Check>,
    pub(super) candidates: Vec<Listed>,
    pub(super) groups: Vec<Group>,
    pub(super) paths: Vec<Paths>,
    pub(super) ports: Vec<FxHashMap<u16, List>>,
}

impl Lists {
    pub(super) fn new(checks: Vec<Check>) -> Self {
        Self { checks, candidates: vec![], groups: vec![], paths: vec![], ports: vec![] }
    }

    /// What leads to the rules of a group: to one or few by themselves, where that is all.
    pub(super) fn lead(&mut self, draft: DraftGroup) -> Result<Lead, Problem> {
        let is_plain = draft.prefixes.is_empty() && draft.literals.is_empty();
        if let ([(candidate, _)], true) = (draft.plain.as_slice(), is_plain)
            && let Some(lead) = Lead::rule(*candidate)
        {
            return Ok(lead);
        }
        let group = self.finish(draft)?;
        let few =
            Lead::list(group.plain).filter(|_| group == Group { plain: group.plain, ..Group::default() });
        Ok(few.unwrap_or_else(|| {
            self.groups.push(group);
            Lead::group(self.groups.len() as u32 - 1)
        }))
    }

    pub(super) fn finish(&mut self, group: DraftGroup) -> Result<Group, Problem> {
        let many = group.plain.len() > MANY;
        let by_port = |ports: &[u16]| many && !ports.is_empty();
        let rest = group.plain.iter().filter(|(_, ports)| !by_port(ports)).map(|(candidate, _)| *candidate);
        let plain = self.list(rest);
        let mut numbers: BTreeMap<u16, Vec<Candidate>> = BTreeMap::new();
        for (candidate, ports) in group.plain.iter().filter(|(_, ports)| by_port(ports)) {
            ports.iter().for_each(|port| numbers.entry(*port).or_default().push(*candidate));
        }
        let mut finished = Group { plain, ..Group::default() };
        if !numbers.is_empty() {
            finished.ports = self.ports.len() as u32;
            let ports = numbers.into_iter().map(|(port, list)| (port, self.list(list))).collect();
            self.ports.push(ports);
        }
        if !group.prefixes.is_empty() || !group.literals.is_empty() {
            finished.paths = self.paths.len() as u32;
            let mut lists = |map: BTreeMap<Box<str>, Vec<Candidate>>| {
                map.into_iter().map(|(text, list)| (text, self.list(list))).collect()
            };
            let (prefixes, literals) = (lists(group.prefixes), lists(group.literals));
            self.paths.push(Paths::new(prefixes, literals).map_err(Problem::Regex)?);
        }
        Ok(finished)
    }

    pub(super) fn regexes(&mut self, draft: DraftRegexes) -> Result<(Literals, Loose), Problem> {
        let rules = draft.literals.into_iter().map(|(text, list)| (text, self.list(list)));
        let literals = Literals::new(rules.collect()).map_err(Problem::Regex)?;
        let loose: Vec<(&str, u32)> = draft.loose.iter().map(|(text, rank)| (text.as_str(), *rank)).collect();
        Ok((literals, Loose::new(&loose)))
    }

    fn list(&mut self, candidates: impl IntoIterator<Item = Candidate>) -> List {
        let from = self.candidates.len() as u32;
        let checks = &self.checks;
        let listed = |candidate: Candidate| {
            checks.get(candidate.rank() as usize).map(|check| Listed { candidate, check: *check })
        };
        self.candidates.extend(candidates.into_iter().filter_map(listed));
        List { from, count: self.candidates.len() as u32 - from }
    }
}
