//! Content rules: which application, and so which rating group and service, a flow belongs to.
//!
//! A [`Rule`] names conditions that must all hold; [`compile`] turns any number of rules into a [`Classifier`], which finds
//! the one of the lowest precedence value that matches [`Facts`]. Rules that agree in precedence go by their id.
//!
//! Every rule is found by what it says that few others say, and is then checked for the rest:
//!
//! - *host*: a hash of names, asked for each end of the host that has as many labels as some name, so that its domains are
//!   found too; for all of them at once;
//! - *server network*: the addresses cut into spans, each of which knows the smallest network around it, and that the
//!   next larger one; a search tree of cache lines;
//! - *path*: within the rules of one host, network or neither; prefixes in order, each knowing the longest prefix of its
//!   own; patterns that begin with `*` by their longest literal, all at once (Aho-Corasick);
//! - *port*: within those again, where there are many.
//!
//! What a name or network leads to lies with it: one rule or few, else more places to look. Flows open so seldom, beside
//! their packets, that what is read for one comes from far away: what counts is how many reads wait for each other.
//!
//! A regular expression that stands with a host, path or network is tried when that matches; one that does not, when the
//! text has the longest literal that the expression has in all its matches. Those without such a literal, or with one that
//! many share, are searched for together, as far as they combine.
//!
//! Expressions are dense automata of the `regex-automata` crate, built whole when rules are compiled. They were taken
//! instead of Vectorscan, the first plan, because the profile's 50,000 rules contain none (all are hosts, domains, prefixes
//! and networks, which the indexes above answer in tens of nanoseconds); because an automaton of bounded size that is
//! built before it is used runs in time linear in the text whatever the expression, without memory of its own, so that
//! workers share it and a hostile text cannot slow it; and because it needs no C++ library. What it cannot do is hundreds
//! of expressions without host and literal that do not combine: [`limits::LOOSE_AUTOMATA`] refuses them.
//!
//! Of the literals that a text has, the rules of 32 are tried: so a text made of all of them costs no more than that.

mod check;
mod classifier;
mod compile;
pub(crate) mod dots;
mod groups;
mod lead;
mod literals;
mod names;
mod paths;
mod pattern;
mod problem;
mod regexes;
mod rule;
mod spans;

pub use classifier::{Classifier, Outcome, Shape};
pub use compile::compile;
pub use pattern::{HostPattern, PathPattern, PatternError, behind_scheme};
pub use problem::Problem;
pub use rule::{Conditions, Facts, Layer, PortRange, Rule};

/// What a set of rules may hold. More is refused, with the rule.
pub mod limits {
    /// Rules.
    pub const RULES: usize = 200_000;
    /// Applications that rules are of.
    pub const APPLICATIONS: usize = 32_768;
    /// Patterns, networks or port ranges of one condition.
    pub const ALTERNATIVES: usize = 1_024;
    /// The same of all rules.
    pub const ALL_ALTERNATIVES: usize = 1_000_000;
    /// Bytes of a pattern or expression.
    pub const PATTERN_BYTES: usize = 1_024;
    /// Searches that every text would go through for the regular expressions that no host, path or network of their rule
    /// stands with, and that have no literal.
    pub const LOOSE_AUTOMATA: usize = 64;
    /// Bytes of the automaton of one regular expression.
    pub const REGEX_BYTES: usize = 256 << 10;
    /// Rules that are refused before the others are looked at no more: to refuse an expression takes time.
    pub const PROBLEMS: usize = 50;
    /// Bytes of the automata of all.
    pub const ALL_REGEX_BYTES: usize = 64 << 20;
}

#[cfg(test)]
mod tests;
