//! Findings for people.

use crate::checks::count;
use crate::finding::{Finding, State};
use std::fmt::Write;

/// Whether states are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// On a terminal.
    Yes,
    /// In a file or a pipe.
    No,
}

const fn colour(state: State) -> &'static str {
    match state {
        State::Good => "\x1b[32m",
        State::Advice => "\x1b[36m",
        State::NotAvailable => "\x1b[90m",
        State::Warning => "\x1b[33m",
        State::Problem => "\x1b[31m",
    }
}

fn word(state: State, colours: Colours) -> String {
    match colours {
        Colours::Yes => format!("{}{:<8}\x1b[0m", colour(state), state.word()),
        Colours::No => format!("{:<8}", state.word()),
    }
}

/// All findings, a line or two each, and their sum.
pub fn table(findings: &[Finding], colours: Colours) -> String {
    let mut text = String::new();
    for finding in findings {
        let _ = writeln!(text, "{} {:<24} {}", word(finding.state, colours), finding.id, finding.found);
        if !finding.act.is_empty() {
            let _ = writeln!(text, "{:34}-> {}", "", finding.act);
        }
    }
    let number = |state: State| findings.iter().filter(|finding| finding.state == state).count();
    let _ = writeln!(
        text,
        "\n{} good, {} advice, {}, {}, {} not available here; \
         `anchorline doctor explain ID` says what one means and what it is worth",
        number(State::Good),
        number(State::Advice),
        count(number(State::Warning), "warning"),
        count(number(State::Problem), "problem"),
        number(State::NotAvailable),
    );
    text
}

/// The findings of one check, at length.
pub fn explained(findings: &[Finding], colours: Colours) -> String {
    let mut text = String::new();
    if let Some(first) = findings.first() {
        let _ = writeln!(text, "{}\n\nmeans  {}\nworth  {}\n", first.id, first.means, first.worth);
    }
    for finding in findings {
        let _ = writeln!(text, "{} {}", word(finding.state, colours), finding.found);
        if !finding.act.is_empty() {
            let _ = writeln!(text, "{:9}-> {}", "", finding.act);
        }
    }
    text
}
