//! One step of a plan.

use serde::{Deserialize, Serialize};

/// A file that gets a new value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The file as it is called on a running system.
    pub path: String,
    /// All it says now.
    pub now: String,
    /// What is written.
    pub then: String,
    /// Why.
    pub why: String,
    /// What it means if the kernel refuses it, where it may without harm: it is then left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Whose interrupt it is about, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

/// Who has an interrupt: numbers are given away anew when a device goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub interrupt: u32,
    /// The name that the kernel's table has for it.
    pub name: String,
}

/// A program that is run, because no file does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments.
    pub words: Vec<String>,
    /// What undoes it.
    pub undo: Vec<String>,
    /// Why.
    pub why: String,
}

/// What a plan has to say about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A file gets a value.
    Write(Write),
    /// A program runs.
    Run(Command),
    /// It is so already.
    Done(String),
    /// Nobody but the operator can do it: at the start, in the BIOS.
    Advice {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
    /// It cannot be had here.
    NotHere {
        /// What.
        what: String,
        /// Completes "not available here, because".
        because: String,
    },
}

impl Write {
    /// Says that the kernel has refused it, and what that means; `None` where it may not.
    pub(super) fn refused(&self, error: &std::io::Error) -> Option<String> {
        let refusal = self.refusal.as_ref()?;
        Some(format!("{}: the kernel refuses: {refusal} ({error})", self.path))
    }
}

impl Step {
    /// A write that is left where the kernel refuses it, for that reason.
    pub(super) fn unless_refused(mut self, refusal: &str) -> Self {
        if let Self::Write(write) = &mut self {
            write.refusal = Some(refusal.to_owned());
        }
        self
    }

    pub(crate) fn not_here(what: &str, because: impl Into<String>) -> Self {
        Self::NotHere { what: what.to_owned(), because: because.into() }
    }

    pub(crate) fn done(what: impl Into<String>) -> Self {
        Self::Done(what.into())
    }
}

/// Of a choice the kernel writes as `always [madvise] never`, the one in brackets; other text without its line's end.
/// Files elsewhere than in `/sys` may have brackets of their own.
pub(crate) fn chosen<'a>(path: &str, text: &'a str) -> &'a str {
    let text = text.trim();
    if !path.starts_with("/sys/") {
        return text;
    }
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(chosen, _)| chosen)
}
