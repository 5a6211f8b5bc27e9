//! Content rules: which application, and so which rating group and service, a flow belongs to.
//!
//! A [`Rule`] names conditions that must all hold; [`compile`] turns any number of rules into a [`Classifier`], which finds
//! the one of the lowest precedence value that matches [`Facts`]. Rules that agree in precedence go by their id.
//!
//! Every rule is found by what it says that few others say, and is then checked for the rest:
//!
//! - *host*: a hash of names, asked once for each label of the host, so that its domains are found too;
//! - *server network*: the addresses cut into spans, each of which knows the smallest network around it, and that the
//!   next larger one; one binary search;
//! - *path*: within the rules of one host, network or neither; prefixes in order, each knowing the longest prefix of its
//!   own; patterns that begin with `*` by their longest literal, all at once (Aho-Corasick);
//! - *port*: within those again, where there are many.
//!
//! Regular expressions that stand with a host, path or network are tried when that matches. The others are searched for
//! together, as dense automata of the `regex-automata` crate, built whole when rules are compiled. They were taken instead
//! of Vectorscan, the first plan, because the profile's 50,000 rules contain none (all are hosts, domains, prefixes and
//! networks, which the indexes above answer in tens of nanoseconds); because an automaton of bounded size that is built
//! before it is used runs in time linear in the text whatever the expression, without memory of its own, so a worker can
//! share it and a hostile text cannot slow it; and because it needs no C++ library. What it cannot do as well is many
//! hundreds of expressions without a host that do not combine: at most [`limits::LOOSE_REGEXES`] are taken.

mod check;
mod classifier;
mod compile;
mod names;
mod paths;
mod pattern;
mod regexes;
mod rule;
mod spans;

pub use classifier::{Classifier, Outcome, Shape};
pub use compile::{Problem, compile};
pub use pattern::{HostPattern, PathPattern, PatternError};
pub use rule::{Conditions, Facts, Layer, PortRange, Rule};

/// What a set of rules may hold. More is refused, with the rule.
pub mod limits {
    /// Rules.
    pub const RULES: usize = 200_000;
    /// Patterns, networks or port ranges of one condition.
    pub const ALTERNATIVES: usize = 1_024;
    /// The same of all rules.
    pub const ALL_ALTERNATIVES: usize = 1_000_000;
    /// Bytes of a pattern or expression.
    pub const PATTERN_BYTES: usize = 1_024;
    /// Regular expressions that no host, path or network of their rule stands with.
    pub const LOOSE_REGEXES: usize = 1_024;
    /// Bytes of the automaton of one regular expression.
    pub const REGEX_BYTES: usize = 1 << 20;
    /// Rules that are refused before the others are looked at no more: to refuse an expression takes time.
    pub const PROBLEMS: usize = 50;
    /// Bytes of the automata of all.
    pub const ALL_REGEX_BYTES: usize = 64 << 20;
}

#[cfg(test)]
mod tests;
