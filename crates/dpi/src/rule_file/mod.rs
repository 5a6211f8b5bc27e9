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
//! | `url` | a host, then a path: `a.example/b*` | |
//! | `host-regex`, `url-regex` | a regular expression, found anywhere unless anchored by `^` and `$`; bytes, no look-around | |
//! | `network` | of the server: `192.0.2.0/24`, or an address | with commas |
//! | `port` | of the server: `443`, `5000-5999` | with commas |
//! | `protocol` | `tcp`, `udp`, `sctp`, `icmp`, `icmpv6`, `esp` or a number | |
//! | `layer` | `http`, `http2`, `tls`, `quic`, `dns`, `stun`, `rtp` | with commas |
//! | `ech` | nothing: the ClientHello has Encrypted ClientHello | |
//! | `dscp` | 0 to 63 | |
//! | `any` | nothing: the rule has no conditions | |
//!
//! A value with spaces stands in double quotes, in which `""` is a quote. `#` begins a comment. All keys of a rule must
//! hold; of several values of one key, any.
//!
//! A CSV table has the same keys as names of its columns, in its first row. Several values of one cell have spaces
//! between; an empty cell is no condition.
//!
//! A file with a mistake gives no rules at all, and every mistake with its line.

mod category;
mod error;
mod field;
mod line;
mod table;

pub use category::{CATEGORY_RULES, Category, HOSTS_MAX};
pub use error::{Mistake, Mistakes, What};

use crate::matching::{Classifier, Rule, compile, limits};
use error::Why;
use field::Fields;
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

    /// Whether the rules leave alone what is not for files: [`PFD_RULES`] and [`CATEGORY_RULES`].
    ///
    /// # Errors
    /// Every rule that does not, with its line.
    pub fn check_reserved(&self) -> Result<(), Mistakes> {
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
        if mistakes.is_empty() { Ok(()) } else { Err(Mistakes::of(mistakes)) }
    }

    /// Builds the classifier.
    ///
    /// # Errors
    /// Every rule that is refused, with its line.
    pub fn compile(&self) -> Result<Classifier, Mistakes> {
        compile(&self.rules).map_err(|problems| {
            let mistake = |(place, problem): (usize, _)| {
                let line = self.lines.get(place).copied().unwrap_or_default();
                Mistake { line, what: What::Rule(problem) }
            };
            Mistakes::of(problems.into_iter().map(mistake))
        })
    }
}

/// Reads a line for each rule.
///
/// # Errors
/// Every mistake with its line, up to [`Mistakes::MAX`].
pub fn read_lines(text: &str) -> Result<RuleFile, Mistakes> {
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line::fields(line)));
    gather(text, lines)
}

/// Reads a CSV table (RFC 4180).
///
/// # Errors
/// Every mistake with its line, up to [`Mistakes::MAX`].
pub fn read_csv(text: &str) -> Result<RuleFile, Mistakes> {
    gather(text, table::rows(text)?)
}

type Row = (u64, Result<Option<Fields>, What>);

fn gather(text: &str, rows: impl Iterator<Item = Row>) -> Result<RuleFile, Mistakes> {
    let mut file = RuleFile::default();
    let mut mistakes = vec![];
    if text.len() > FILE_BYTES_MAX {
        return Err(Mistakes::of([Mistake { line: 1, what: What::Large(FILE_BYTES_MAX >> 20) }]));
    }
    for (line, row) in rows {
        match row.and_then(|fields| fields.map(Fields::rule).transpose()) {
            Ok(None) => {}
            Ok(Some(_)) if file.rules.len() == limits::RULES => {
                mistakes.push(Mistake { line, what: What::Rule(crate::matching::Problem::Rules) });
                break;
            }
            Ok(Some(rule)) => {
                file.rules.push(rule);
                file.lines.push(line);
            }
            Err(what) => mistakes.push(Mistake { line, what }),
        }
        if mistakes.len() == Mistakes::MAX {
            break;
        }
    }
    if mistakes.is_empty() { Ok(file) } else { Err(Mistakes::of(mistakes)) }
}

#[cfg(test)]
mod tests;
