//! Content rules as people write them: a line for each, or a CSV table from elsewhere.
//!
//! ```text
//! # id, precedence and rating group are needed, and a condition or "any"; lowest precedence counts first.
//! id=1 precedence=100 rating-group=10 host=.video.example
//! id=2 precedence=50  rating-group=0  service=7 url=www.operator.example/account/*
//! id=3 precedence=200 rating-group=20 network=198.51.100.0/24,2001:db8:1::/48 port=5000-5999,443 protocol=udp
//! id=4 precedence=300 rating-group=30 layer=quic,tls host-regex="^cdn[0-9]+\.a{1,3}\."
//! id=5 precedence=999 rating-group=99 any
//! ```
//!
//! | key | value | more than one |
//! |---|---|---|
//! | `id`, `precedence`, `rating-group`, `service` | number | |
//! | `application` | the name that PDRs ask for as Application ID | |
//! | `host` | `a.example` (this host), `*.a.example` (all below), `.a.example` (both), `img*.a.example` | with commas |
//! | `path` | `/a` (this path), `/a*` (all that begin so), `*.mp4`, `/a*b`; the query belongs to it | `path=` again |
//! | `url` | a host, then a path: `a.example/b*`; `http://` or `https://` before it says nothing more | |
//! | `host-regex`, `url-regex` | a regular expression, found anywhere unless anchored by `^` and `$`; bytes, no look-around | |
//! | `network` | of the server: `192.0.2.0/24`, or an address | with commas |
//! | `port` | of the server: `443`, `5000-5999` | with commas |
//! | `protocol` | `tcp`, `udp`, `sctp`, `icmp`, `icmpv6`, `esp` or a number | |
//! | `layer` | `http`, `http2`, `tls`, `quic`, `dns`, `stun`, `rtp` | with commas |
//! | `ech` | nothing: the ClientHello has Encrypted ClientHello | |
//! | `alpn` | an application protocol that the ClientHello offers: `h2`, `h3`, `dot` | with commas |
//! | `dscp` | 0 to 63 | |
//! | `any` | nothing: the rule has no conditions | |
//!
//! A value with spaces stands in double quotes, in which `""` is a quote. `#` begins a comment. All keys of a rule must
//! hold; of several values of one key, any.
//!
//! A CSV table has the same keys as names of its columns, in its first row. Several values of one cell have spaces
//! between; an empty cell is no condition. `ech` and `any` are `yes`, `1` or their own name.
//!
//! A file with a mistake gives no rules at all, and every mistake with its line: of a rule that is wrong in one thing, what
//! else is wrong with it, too.

mod category;
mod contradiction;
mod error;
mod field;
mod line;
mod table;

pub use category::{CATEGORY_RULES, Category, HOSTS_MAX};
pub use error::{Mistake, Mistakes, What};

use crate::matching::{Classifier, Rule, compile, limits};
use error::Why;
use field::Fields;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// Most bytes of a file.
pub const FILE_BYTES_MAX: usize = 256 << 20;

/// Ids and precedences of rules made of packet flow descriptions (PFDs, TS 29.244 7.4.3), which are no file's: rules of
/// lower precedence values count before those, rules of higher ones after them.
pub const PFD_RULES: RangeInclusive<u32> = 4_000_000_000..=4_000_999_999;

/// The rules of a file, each with its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFile {
    rules: Vec<Rule>,
    /// Of each rule, from 1.
    lines: Vec<u64>,
}

impl RuleFile {
    /// In the order of the file.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The line of each, from 1.
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// Where the rules do not leave alone what is not for files: [`PFD_RULES`] and [`CATEGORY_RULES`].
    fn reserved(&self) -> Vec<Mistake> {
        let mut mistakes = vec![];
        for (rule, &line) in self.rules.iter().zip(&self.lines) {
            let values = [("id", rule.id), ("precedence", rule.precedence)];
            for (key, value) in values.into_iter().filter(|(_, value)| PFD_RULES.contains(value)) {
                let why = Why::Allowed("4000000000 to 4000999999 are for rules made of PFDs");
                mistakes.push(Mistake { line, what: What::Value { key, value: value.to_string(), why } });
            }
            if CATEGORY_RULES.contains(&rule.id) {
                let why = Why::Allowed("4100000000 to 4100999999 are for rules made of categories");
                let value = rule.id.to_string();
                mistakes.push(Mistake { line, what: What::Value { key: "id", value, why } });
            }
        }
        mistakes
    }

    /// Where a rule can match nothing; told only of files, as what is made of PFDs is as its sender wants it.
    fn contradictions(&self) -> impl Iterator<Item = Mistake> {
        let each = self.rules.iter().zip(&self.lines);
        each.flat_map(|(rule, &line)| {
            contradiction::of(&rule.when).into_iter().map(move |what| Mistake { line, what })
        })
    }

    /// Builds the classifier.
    ///
    /// # Errors
    /// Every rule that is refused, with its line.
    pub fn compile(&self) -> Result<Classifier, Mistakes> {
        self.build().map_err(Mistakes::of)
    }

    fn build(&self) -> Result<Classifier, Vec<Mistake>> {
        compile(&self.rules).map_err(|problems| {
            let mistake = |(place, problem): (usize, _)| {
                let line = self.lines.get(place).copied().unwrap_or_default();
                Mistake { line, what: What::Rule(problem) }
            };
            problems.into_iter().map(mistake).collect()
        })
    }
}

/// Reads a line for each rule.
///
/// # Errors
/// Every mistake that a line alone shows, up to [`Mistakes::MAX`].
pub fn read_lines(text: &str) -> Result<RuleFile, Mistakes> {
    Reading::of_lines(text).file()
}

/// Reads a CSV table (RFC 4180).
///
/// # Errors
/// As [`read_lines`].
pub fn read_csv(text: &str) -> Result<RuleFile, Mistakes> {
    Reading::of_csv(text).file()
}

/// Reads a line for each rule of an operator's file, who is told all that is wrong with it at once.
///
/// # Errors
/// Every mistake, up to [`Mistakes::MAX`], also what is only seen of all rules together, and what is not for files.
pub fn check_lines(text: &str) -> Result<(RuleFile, Classifier), Mistakes> {
    Reading::of_lines(text).checked()
}

/// Reads a CSV table of an operator's.
///
/// # Errors
/// As [`check_lines`].
pub fn check_csv(text: &str) -> Result<(RuleFile, Classifier), Mistakes> {
    Reading::of_csv(text).checked()
}

/// A text without the mark of its encoding that some editors put before it.
fn plain(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

type Row = (u64, Result<Option<Fields>, What>);

/// What was read of a file.
#[derive(Default)]
struct Reading {
    /// Rules with mistakes as well, as far as they were understood, so that what else is wrong with them is seen.
    file: RuleFile,
    mistakes: Vec<Mistake>,
    /// Those of the rules that have no id of their own, by place.
    nameless: Vec<usize>,
}

impl Reading {
    fn of_lines(text: &str) -> Self {
        let lines = plain(text).lines().zip(1..).map(|(line, number)| (number, Ok(line::fields(line))));
        Self::default().read(text, lines)
    }

    fn of_csv(text: &str) -> Self {
        let (rows, mistakes) = table::rows(text);
        Self { mistakes, ..Self::default() }.read(text, rows)
    }

    fn read(mut self, text: &str, rows: impl Iterator<Item = Row>) -> Self {
        if text.len() > FILE_BYTES_MAX {
            self.mistakes.push(Mistake { line: 1, what: What::Large(FILE_BYTES_MAX >> 20) });
            return self;
        }
        for (line, row) in rows {
            match row {
                Ok(None) => {}
                Ok(Some(_)) if self.file.rules.len() == limits::RULES => {
                    self.mistakes.push(Mistake { line, what: What::Rule(crate::matching::Problem::Rules) });
                    break;
                }
                Ok(Some(fields)) => self.take(line, fields),
                Err(what) => self.mistakes.push(Mistake { line, what }),
            }
            if self.mistakes.len() >= Mistakes::MAX {
                break;
            }
        }
        self.name();
        self
    }

    fn take(&mut self, line: u64, fields: Fields) {
        if fields.id().is_none() {
            self.nameless.push(self.file.rules.len());
        }
        let (rule, wrong) = fields.rule();
        self.file.rules.push(rule);
        self.file.lines.push(line);
        self.mistakes.extend(wrong.into_iter().map(|what| Mistake { line, what }));
    }

    /// Rules without ids get some that nobody has, so that they are not taken for the same.
    fn name(&mut self) {
        if self.nameless.is_empty() {
            return;
        }
        let taken: HashSet<u32> = self.file.rules.iter().map(|rule| rule.id).collect();
        let free = (0..=u32::MAX).rev().filter(|id| !taken.contains(id));
        for (place, id) in self.nameless.iter().zip(free) {
            self.file.rules.get_mut(*place).into_iter().for_each(|rule| rule.id = id);
        }
    }

    fn file(self) -> Result<RuleFile, Mistakes> {
        if self.mistakes.is_empty() { Ok(self.file) } else { Err(Mistakes::of(self.mistakes)) }
    }

    fn checked(mut self) -> Result<(RuleFile, Classifier), Mistakes> {
        self.mistakes.extend(self.file.reserved());
        // Where a layer was not understood, it may be the one that is missing.
        let is_sure = |line| {
            let of_layer = |what: &What| matches!(what, What::Value { key: "layer", .. });
            !self.mistakes.iter().any(|mistake| mistake.line == line && of_layer(&mistake.what))
        };
        let contradictions = self.file.contradictions().filter(|mistake| is_sure(mistake.line));
        let contradictions: Vec<_> = contradictions.take(Mistakes::MAX).collect();
        self.mistakes.extend(contradictions);
        let built = self.file.build().map_err(|refused| self.mistakes.extend(refused));
        match built {
            Ok(classifier) if self.mistakes.is_empty() => Ok((self.file, classifier)),
            _ => Err(Mistakes::of(self.mistakes)),
        }
    }
}

#[cfg(test)]
mod tests;
