//! What is wrong with a file, for those who wrote it.

use crate::matching::{PatternError, Problem};
use std::fmt;

/// Something wrong in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Mistake {
    /// From 1.
    pub line: u64,
    /// What.
    pub what: What,
}

/// What may be wrong in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum What {
    /// A key, or a column, that means nothing.
    #[error("\"{0}\" is no key; keys are {keys}", keys = super::field::KEYS.join(", "))]
    Key(String),
    /// A key without value.
    #[error("\"{0}\" needs a value: {0}=...")]
    NoValue(String),
    /// A key that stands once stands twice.
    #[error("\"{0}\" stands twice")]
    Twice(&'static str),
    /// A key that must stand does not.
    #[error("\"{0}\" is missing")]
    Missing(&'static str),
    /// A value that its key cannot have.
    #[error("{key} \"{value}\": {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// What is wrong with it, or what is allowed.
        why: Why,
    },
    /// Quotes that are not closed, or closed within a word.
    #[error("quotes must be around a whole value")]
    Quotes,
    /// A rule that would match all, and may not mean to.
    #[error("no condition; a rule for all flows says \"any\"")]
    NoCondition,
    /// A rule for all flows with conditions.
    #[error("\"any\" stands with conditions")]
    NotAny,
    /// Conditions that no flow has together.
    #[error("{one} and {other} contradict each other: {why}")]
    Contradiction {
        /// One of them.
        one: String,
        /// The other.
        other: String,
        /// Why no flow has both.
        why: String,
    },
    /// A rule that is refused when all are seen together.
    #[error(transparent)]
    Rule(#[from] Problem),
    /// A table that is none.
    #[error("{0}")]
    Table(String),
    /// Too many hosts of one category.
    #[error("more than {0} hosts")]
    Hosts(usize),
    /// Too large a file.
    #[error("the file is larger than {0} MiB")]
    Large(usize),
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// What is allowed.
    #[error("{0}")]
    Allowed(&'static str),
    /// A pattern that is none.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

/// All that is wrong with a file, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Most that are told.
    pub const MAX: usize = crate::matching::limits::PROBLEMS;

    pub(super) fn of(mistakes: impl IntoIterator<Item = Mistake>) -> Self {
        let mut list: Vec<Mistake> = mistakes.into_iter().collect();
        list.sort_by_key(|mistake| mistake.line);
        list.truncate(Self::MAX);
        Self(list)
    }

    /// By line.
    pub fn list(&self) -> &[Mistake] {
        &self.0
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.0.iter().enumerate() {
            write!(f, "{}{mistake}", if number == 0 { "" } else { "\n" })?;
        }
        if self.0.len() == Self::MAX {
            f.write_str("\nand perhaps more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
