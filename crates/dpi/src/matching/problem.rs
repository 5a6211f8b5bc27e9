//! What is wrong with rules.

use super::limits;
use super::rule::{Conditions, PortRange, Rule};
use rustc_hash::FxHashMap;

/// Why a rule is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Its id is another rule's.
    #[error("id {0} is that of an earlier rule")]
    Duplicate(u32),
    /// More rules than [`limits::RULES`].
    #[error("more than {} rules", limits::RULES)]
    Rules,
    /// A name that no Application ID has.
    #[error("the name of an application has 1 to 255 octets")]
    ApplicationName,
    /// More applications than [`limits::APPLICATIONS`].
    #[error("more than {} applications", limits::APPLICATIONS)]
    Applications,
    /// More alternatives than [`limits`] allow.
    #[error("more than {} alternatives in one condition", limits::ALTERNATIVES)]
    Alternatives,
    /// The same over all rules.
    #[error("more than {} alternatives in all rules", limits::ALL_ALTERNATIVES)]
    AllAlternatives,
    /// Ports that begin behind their end.
    #[error("ports {0} to {1} are none")]
    Ports(u16, u16),
    /// Not below 64.
    #[error("DSCP {0} is above 63")]
    Dscp(u8),
    /// A regular expression that is none, or too large.
    #[error("regular expression: {0}")]
    Regex(String),
    /// The regular expressions without host, path, network and literal take more than [`limits::LOOSE_AUTOMATA`] searches.
    #[error(
        "regular expressions up to this rule that have neither host, path or network beside them nor letters in a row \
         of their own take more than {} searches for every flow",
        limits::LOOSE_AUTOMATA
    )]
    LooseRegexes,
    /// More memory for regular expressions than [`limits::ALL_REGEX_BYTES`].
    #[error(
        "the regular expressions up to this rule take more than {} MiB, so no more are looked at; host= and path= take \
         little, with * in them, too",
        limits::ALL_REGEX_BYTES >> 20
    )]
    AllRegexes,
}

impl Problem {
    /// Whether it is one of all rules, which each that follows would have as well.
    pub(super) const fn is_of_all(&self) -> bool {
        matches!(self, Self::Applications | Self::AllRegexes)
    }
}

/// What each rule alone, or its number, tells.
pub(super) fn check_all(rules: &[Rule]) -> Vec<(usize, Problem)> {
    let mut problems = vec![];
    let mut ids = FxHashMap::default();
    let mut alternatives = 0;
    for (place, rule) in rules.iter().enumerate() {
        let mut refuse = |problem| problems.push((place, problem));
        if place >= limits::RULES {
            refuse(Problem::Rules);
            break;
        }
        if ids.insert(rule.id, place).is_some() {
            refuse(Problem::Duplicate(rule.id));
        }
        let lengths = alternatives_of(&rule.when);
        alternatives += lengths.iter().sum::<usize>();
        if lengths.iter().any(|length| *length > limits::ALTERNATIVES) {
            refuse(Problem::Alternatives);
        }
        if alternatives > limits::ALL_ALTERNATIVES {
            refuse(Problem::AllAlternatives);
            break;
        }
        if let Some(PortRange { first, last }) = rule.when.ports.iter().find(|range| range.first > range.last)
        {
            refuse(Problem::Ports(*first, *last));
        }
        if rule.application.as_ref().is_some_and(|name| !(1..=255).contains(&name.len())) {
            refuse(Problem::ApplicationName);
        }
        if let Some(dscp) = rule.when.dscp.filter(|dscp| *dscp > 63) {
            refuse(Problem::Dscp(dscp));
        }
    }
    problems
}

fn alternatives_of(when: &Conditions) -> [usize; 5] {
    [when.hosts.len(), when.paths.len(), when.networks.len(), when.ports.len(), when.alpn.len()]
}
