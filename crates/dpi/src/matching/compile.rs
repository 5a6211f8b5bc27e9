//! From what operators say to what is asked.

use super::check::{Check, More, OF_HOSTS};
use super::classifier::{Classifier, Outcome, Regexes};
use super::groups::{DraftGroup, DraftRegexes, Lists, Place};
use super::lead::{Candidate, Lead};
use super::limits;
use super::literals;
use super::names::{DraftNames, Entry, Names};
use super::pattern::{HostPattern, PathPattern};
use super::problem::{Problem, check_all};
use super::regexes::Automaton;
use super::rule::{Conditions, Layer, PortRange, Rule};
use super::spans::{Network, Spans};
use ipnet::IpNet;
use rustc_hash::FxHashMap;

/// The number of TCP (RFC 9293).
const TCP: u8 = 6;

/// Ranks rules by precedence, then id, and builds the indexes.
///
/// # Errors
/// Rules that are refused, by their place in `rules`, with each reason: all, or at least [`limits::PROBLEMS`]. None of the
/// rules is then in force. That expressions take too many searches is only known of rules that are right.
pub fn compile(rules: &[Rule]) -> Result<Classifier, Vec<(usize, Problem)>> {
    let mut problems = check_all(rules);
    let mut draft = Draft::default();
    let mut order: Vec<usize> = (0..rules.len().min(limits::RULES)).collect();
    order.sort_unstable_by_key(|place| rules.get(*place).map(|rule| (rule.precedence, rule.id)));
    let most = problems.len() + limits::PROBLEMS;
    for &place in &order {
        if let Some(rule) = rules.get(place) {
            // What is refused for one reason may have others, but needs no room.
            let refused = if problems.is_empty() { draft.add(rule) } else { draft.parts_of(rule).map(drop) };
            problems.extend(refused.err().into_iter().flatten().map(|problem| (place, problem)));
        }
        if problems.len() >= most || problems.last().is_some_and(|(_, problem)| problem.is_of_all()) {
            break;
        }
    }
    problems.sort_by_key(|(place, _)| *place);
    if !problems.is_empty() {
        return Err(problems);
    }
    let classifier = draft.finish().map_err(|problem| vec![(0, problem)])?;
    // None was refused, so ranks are places in the order.
    let beyond = classifier.regexes.first_beyond().and_then(|rank| order.get(rank as usize));
    beyond.map_or(Ok(classifier), |place| Err(vec![(*place, Problem::LooseRegexes)]))
}

/// What of a rule is built by itself, and may be refused: the automata of host and URL, the place of the application.
type Parts = ([Option<Automaton>; 2], Option<u16>);

#[derive(Default)]
struct Draft {
    outcomes: Vec<Outcome>,
    checks: Vec<Check>,
    more: Vec<More>,
    names: DraftNames,
    networks: FxHashMap<IpNet, u32>,
    /// The first rule of a network, the lowest rank of them.
    networks_from: Option<u32>,
    groups: Vec<DraftGroup>,
    anywhere: DraftGroup,
    host_regexes: DraftRegexes,
    url_regexes: DraftRegexes,
    regex_bytes: usize,
    applications: FxHashMap<Box<str>, u16>,
    tells_requests_apart: bool,
    asks_for_alpn: bool,
    asks_for_lookups: bool,
}

impl Draft {
    fn add(&mut self, rule: &Rule) -> Result<(), Vec<Problem>> {
        let rank = self.outcomes.len() as u32;
        let Rule { id, precedence, rating_group, service, ref when, .. } = *rule;
        let (automata, application) = self.parts_of(rule)?;
        let mut more = more_of(when, automata);
        self.tells_requests_apart |= asks_for_request(when);
        self.asks_for_alpn |= !when.alpn.is_empty();
        self.asks_for_lookups |= asks_for_host(when) && when.layers.contains(&Layer::Dns);
        self.outcomes.push(Outcome { id, precedence, rating_group, service, application });
        if is_loose(when) {
            self.place_by_regex(when, (rank, &mut more));
            let check = self.check_of(when, more);
            self.checks.push(check);
        } else {
            let check = self.check_of(when, more);
            self.checks.push(check);
            self.place(when, Candidate::new(rank, !check.is_empty()));
        }
        Ok(())
    }

    fn parts_of(&mut self, rule: &Rule) -> Result<Parts, Vec<Problem>> {
        let host = self.automaton(rule.when.host_regex.as_ref());
        let host = host.and_then(|host| of_lower_case(rule.when.host_regex.as_deref()).map(|()| host));
        let url = self.automaton(rule.when.url_regex.as_ref());
        let application = rule.application.as_deref().map(|name| self.application(name)).transpose();
        match (host, url, application) {
            (Ok(host), Ok(url), Ok(application)) => Ok(([host, url], application)),
            (host, url, application) => {
                let mut problems: Vec<_> =
                    [host.err(), url.err(), application.err()].into_iter().flatten().collect();
                problems.dedup();
                Err(problems)
            }
        }
    }

    /// The place of an application's name.
    fn application(&mut self, name: &str) -> Result<u16, Problem> {
        if let Some(place) = self.applications.get(name) {
            return Ok(*place);
        }
        let place = self.applications.len();
        if place >= limits::APPLICATIONS {
            return Err(Problem::Applications);
        }
        self.applications.insert(name.into(), place as u16);
        Ok(place as u16)
    }

    /// By the literal of its expression, else by the expression itself, which need then not be searched for again.
    fn place_by_regex(&mut self, when: &Conditions, (rank, more): (u32, &mut More)) {
        let candidate = Candidate::new(rank, true);
        if let Some(regex) = &when.host_regex {
            if !self.host_regexes.add_literal(literals::of_regex(regex), candidate) {
                self.host_regexes.loose.push((regex.clone(), rank));
                more.host_regex = None;
            }
        } else if let Some(regex) = &when.url_regex
            && !self.url_regexes.add_literal(literals::of_url_regex(regex), candidate)
        {
            self.url_regexes.loose.push((regex.clone(), rank));
            more.url_regex = None;
        }
    }

    fn check_of(&mut self, when: &Conditions, more: More) -> Check {
        let ports = match when.ports.as_slice() {
            [only] => *only,
            _ => PortRange::ANY,
        };
        let of_hosts = if asks_for_host(when) { OF_HOSTS } else { 0 };
        let layers = when.layers.iter().fold(of_hosts, |bits, layer: &Layer| bits | layer.bit());
        let place = (!more.is_empty()).then_some(self.more.len() as u32);
        if place.is_some() {
            self.more.push(more);
        }
        Check { ports, protocol: when.protocol, dscp: when.dscp, layers, ech: when.ech, more: place }
    }

    fn automaton(&mut self, regex: Option<&String>) -> Result<Option<Automaton>, Problem> {
        let Some(regex) = regex else { return Ok(None) };
        if regex.len() > limits::PATTERN_BYTES {
            return Err(Problem::Regex(format!("it is longer than {} bytes", limits::PATTERN_BYTES)));
        }
        if self.regex_bytes > limits::ALL_REGEX_BYTES {
            return Err(Problem::AllRegexes);
        }
        let automaton = Automaton::new(regex).map_err(Problem::Regex)?;
        self.regex_bytes += automaton.memory_bytes();
        Ok(Some(automaton))
    }

    /// Where a rule is found: by its hosts, else its networks; by its paths within those.
    fn place(&mut self, when: &Conditions, candidate: Candidate) {
        let place = Place { candidate, paths: &when.paths, ports: single_ports(&when.ports) };
        if !when.hosts.is_empty() {
            when.hosts.iter().for_each(|pattern| self.place_by_host(pattern, &place));
        } else if !when.networks.is_empty() {
            self.networks_from.get_or_insert(candidate.rank());
            for network in &when.networks {
                let fresh = self.groups.len() as u32;
                let group = *self.networks.entry(network.trunc()).or_insert(fresh);
                self.group(group).add(&place);
            }
        } else {
            self.anywhere.add(&place);
        }
    }

    fn place_by_host(&mut self, pattern: &HostPattern, place: &Place<'_>) {
        let (exact, below) = match pattern {
            HostPattern::Exact(name) => (Some(&**name), None),
            HostPattern::Below(domain) => (None, Some(&**domain)),
            HostPattern::Domain(domain) => (Some(&**domain), Some(&**domain)),
            HostPattern::Glob(form) => (None, end_of(form)),
        };
        if exact.is_none() && below.is_none() {
            return self.anywhere.add(place);
        }
        if let Some(name) = exact {
            self.group_of(name, |entry| &mut entry.exact).add(place);
        }
        if let Some(name) = below {
            self.group_of(name, |entry| &mut entry.below).add(place);
        }
    }

    /// The group of a name; a fresh one where it has none yet.
    fn group_of(&mut self, name: &str, which: impl Fn(&mut Entry) -> &mut Option<u32>) -> &mut DraftGroup {
        let fresh = self.groups.len() as u32;
        let group = *which(self.names.entry(name)).get_or_insert(fresh);
        self.group(group)
    }

    fn group(&mut self, place: u32) -> &mut DraftGroup {
        let place = place as usize;
        if place >= self.groups.len() {
            self.groups.resize_with(place + 1, DraftGroup::default);
        }
        self.groups.get_mut(place).unwrap_or(&mut self.anywhere)
    }

    fn finish(self) -> Result<Classifier, Problem> {
        let mut lists = Lists::new(self.checks);
        let leads: Vec<Lead> =
            self.groups.into_iter().map(|group| lists.lead(group)).collect::<Result<_, _>>()?;
        let lead = |group: u32| leads.get(group as usize).copied().unwrap_or(Lead::NONE);
        let anywhere = lists.finish(self.anywhere)?;
        let (v4, v6) = networks(&self.networks, lead);
        let (host_literals, host) = lists.regexes(self.host_regexes)?;
        let (url_literals, url) = lists.regexes(self.url_regexes)?;
        let mut applications: Vec<_> = self.applications.into_iter().collect();
        applications.sort_unstable_by_key(|(_, place)| *place);
        let applications = applications.into_iter().map(|(name, _)| name).collect();
        Ok(Classifier {
            outcomes: self.outcomes,
            checks: lists.checks,
            more: self.more,
            names: Names::new(self.names, lead),
            v4: Spans::new(v4),
            v6: Spans::new(v6),
            networks_from: self.networks_from.unwrap_or(u32::MAX),
            groups: lists.groups,
            candidates: lists.candidates,
            paths: lists.paths,
            ports: lists.ports,
            anywhere,
            regexes: Regexes { host_literals, url_literals, host, url },
            applications,
            tells_requests_apart: self.tells_requests_apart,
            asks_for_alpn: self.asks_for_alpn,
            asks_for_lookups: self.asks_for_lookups,
        })
    }
}

/// Whether an expression is found in some host: they are compared in lower case.
fn of_lower_case(host_regex: Option<&str>) -> Result<(), Problem> {
    match host_regex.and_then(literals::capital_of_regex) {
        Some(letter) => Err(Problem::Regex(format!(
            "no host has the letter {letter}, as hosts are in lower case; write it in lower case"
        ))),
        None => Ok(()),
    }
}

/// What is not told by where the rule is found, nor by its [`Check`].
fn more_of(when: &Conditions, [host_regex, url_regex]: [Option<Automaton>; 2]) -> More {
    let by_host = !when.hosts.is_empty();
    let is_whole_host = |pattern: &HostPattern| !matches!(pattern, HostPattern::Glob(_));
    let is_whole_path = |pattern: &PathPattern| matches!(pattern, PathPattern::Prefix(_));
    let unless = |told: bool| if told { 0 } else { usize::MAX };
    More {
        hosts: when.hosts.iter().take(unless(when.hosts.iter().all(is_whole_host))).cloned().collect(),
        paths: when.paths.iter().take(unless(when.paths.iter().all(is_whole_path))).cloned().collect(),
        networks: when.networks.iter().take(unless(!by_host)).copied().collect(),
        ports: when.ports.iter().take(unless(when.ports.len() == 1)).copied().collect(),
        host_regex,
        url_regex,
        alpn: when.alpn.clone(),
    }
}

/// Whether a rule asks for a host, which of a lookup is the name that is asked for.
fn asks_for_host(when: &Conditions) -> bool {
    !when.hosts.is_empty() || when.host_regex.is_some() || when.url_regex.is_some()
}

/// Whether a rule asks for what a request of HTTP/1.x says, and may be that request's.
fn asks_for_request(when: &Conditions) -> bool {
    let of_host = !when.hosts.is_empty() || when.host_regex.is_some();
    let of_path = !when.paths.is_empty() || when.url_regex.is_some();
    let is_of_http = when.layers.is_empty() || when.layers.contains(&Layer::Http);
    let is_of_tcp = when.protocol.is_none_or(|protocol| protocol == TCP);
    (of_host || of_path) && is_of_http && is_of_tcp && !when.asks_for_hello()
}

/// Whether a rule has nothing but regular expressions to be found by.
fn is_loose(when: &Conditions) -> bool {
    let regex = when.host_regex.is_some() || when.url_regex.is_some();
    regex && when.hosts.is_empty() && when.networks.is_empty() && when.paths.is_empty()
}

/// The labels that a form of hosts ends with, whatever its `*` stand for.
fn end_of(form: &str) -> Option<&str> {
    let end = form.rsplit('*').next()?;
    end.split_once('.').map(|(_, labels)| labels)
}

/// Ports that are named one by one; empty where there is a range, or none.
fn single_ports(ports: &[PortRange]) -> Vec<u16> {
    let single = ports.iter().all(|range| range.first == range.last);
    ports.iter().filter(|_| single).map(|range| range.first).collect()
}

type Sides = (Vec<Network<u32>>, Vec<Network<u128>>);

fn networks(groups: &FxHashMap<IpNet, u32>, lead: impl Fn(u32) -> Lead) -> Sides {
    let (mut v4, mut v6): Sides = (vec![], vec![]);
    for (network, group) in groups {
        let lead = lead(*group);
        match network {
            IpNet::V4(net) => {
                v4.push(Network { first: net.network().to_bits(), last: net.broadcast().to_bits(), lead });
            }
            IpNet::V6(net) => {
                v6.push(Network { first: net.network().to_bits(), last: net.broadcast().to_bits(), lead });
            }
        }
    }
    (v4, v6)
}
