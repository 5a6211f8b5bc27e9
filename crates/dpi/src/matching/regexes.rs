//! Regular expressions as automata that were built whole.
//!
//! One that is tried for the few texts that have something else of its rule says of each state only where it leads
//! (sparse): a sixth of the memory, so that a file may have tens of thousands. Those that every text goes through have a
//! table of all bytes (dense), which takes half the time.

use super::limits::{LOOSE_AUTOMATA, REGEX_BYTES};
use regex_automata::dfa::{self, StartKind, dense, sparse};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};

/// Building an automaton may take as many times its bytes.
const BUILDING: usize = 4;
/// Expressions that are searched for together, if they fit; and if they do not.
const TOGETHER: [usize; 2] = [32, 8];
/// Bytes of their automaton. Those that combine need much less, and to find out that others do not takes time.
const TOGETHER_BYTES: usize = 128 << 10;

/// One expression.
#[derive(Debug)]
pub(super) struct Automaton {
    dfa: sparse::DFA<Vec<u8>>,
}

impl Automaton {
    /// # Errors
    /// Why an expression is refused: it is none, or its automaton would be too large.
    pub(super) fn new(expression: &str) -> Result<Self, String> {
        let dfa = build(&[expression], REGEX_BYTES)?.to_sparse().map_err(|error| reason(&error))?;
        Ok(Self { dfa })
    }

    /// Whether the expression is found in the parts, read as one text.
    pub(super) fn is_found(&self, parts: [&[u8]; 2]) -> bool {
        let mut found = false;
        search(&self.dfa, parts, |_| {
            found = true;
            false
        });
        found
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.dfa.memory_usage()
    }
}

/// An automaton of so many bytes at most that finds all expressions.
fn build(expressions: &[&str], bytes: usize) -> Result<dense::DFA<Vec<u32>>, String> {
    let limits = dense::Config::new()
        .dfa_size_limit(Some(bytes))
        .determinize_size_limit(Some(BUILDING * bytes))
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Unanchored)
        .accelerate(false);
    let nfa = thompson::Config::new()
        .utf8(false)
        .nfa_size_limit(Some(REGEX_BYTES))
        .which_captures(WhichCaptures::None);
    let built = dense::Builder::new()
        .configure(limits)
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .thompson(nfa)
        .build_many(expressions);
    built.map_err(|error| reason(&error))
}

/// Calls `found` with the number of each expression that is found, more than once perhaps, until it says `false`.
fn search(dfa: &impl dfa::Automaton, parts: [&[u8]; 2], mut found: impl FnMut(usize) -> bool) {
    let Ok(mut state) = dfa.start_state_forward(&Input::new("")) else { return };
    let mut before = None;
    let mut tell = |state: StateID| {
        if before.replace(state) == Some(state) {
            return true;
        }
        let patterns = (0..dfa.match_len(state)).map(|index| dfa.match_pattern(state, index));
        patterns.into_iter().all(|pattern| found(pattern.as_usize()))
    };
    for byte in parts.into_iter().flatten() {
        state = dfa.next_state(state, *byte);
        if !dfa.is_special_state(state) {
            continue;
        }
        if dfa.is_dead_state(state) || dfa.is_quit_state(state) {
            return;
        }
        if dfa.is_match_state(state) && !tell(state) {
            return;
        }
    }
    let state = dfa.next_eoi_state(state);
    if dfa.is_match_state(state) {
        tell(state);
    }
}

/// In one line, with what stood behind the last colon of the library's: the rest shows the expression again.
fn reason(error: &dense::BuildError) -> String {
    if error.is_size_limit_exceeded() {
        return too_large();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    if text.contains("exceed") {
        return too_large();
    }
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn too_large() -> String {
    format!(
        "its automaton would be of more than {} KiB; make repetitions and alternatives fewer",
        REGEX_BYTES >> 10
    )
}

/// Expressions without anything else to find their rules by.
#[derive(Debug, Default)]
pub(super) struct Loose {
    batches: Vec<Batch>,
}

#[derive(Debug)]
struct Batch {
    dfa: dense::DFA<Vec<u32>>,
    /// What each expression leads to, in order.
    leads_to: Vec<u32>,
}

impl Loose {
    /// Of expressions that are each known to be right, and what they lead to, in its order. Ends soon after
    /// [`LOOSE_AUTOMATA`] automata, as more are refused.
    pub(super) fn new(expressions: &[(&str, u32)]) -> Self {
        let [most, fewer] = TOGETHER;
        let mut batches: Vec<Batch> = vec![];
        for chunk in expressions.chunks(most) {
            if batches.len() > LOOSE_AUTOMATA {
                break;
            }
            match Batch::new(chunk) {
                Some(batch) => batches.push(batch),
                None => chunk.chunks(fewer).for_each(|chunk| match Batch::new(chunk) {
                    Some(batch) => batches.push(batch),
                    None => batches.extend(chunk.chunks(1).filter_map(Batch::new)),
                }),
            }
        }
        Self { batches }
    }

    /// The lowest of `best` and what the expressions that are found lead to: `holds` is given that and the lowest so far,
    /// and says which of the two it is.
    pub(super) fn search(&self, parts: [&[u8]; 2], mut best: u32, holds: impl Fn(u32, u32) -> u32) -> u32 {
        for batch in &self.batches {
            // In order: all others are beyond, too.
            if batch.leads_to.first().is_none_or(|first| *first >= best) {
                return best;
            }
            search(&batch.dfa, parts, |number| {
                if let Some(leads_to) = batch.leads_to.get(number).filter(|leads_to| **leads_to < best) {
                    best = holds(*leads_to, best);
                }
                true
            });
        }
        best
    }

    /// What the first expression of an automaton leads to.
    pub(super) fn first_of(&self, automaton: usize) -> Option<u32> {
        self.batches.get(automaton).and_then(|batch| batch.leads_to.first()).copied()
    }

    /// Automata that are run, one after the other.
    pub(super) fn automata(&self) -> usize {
        self.batches.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.batches.iter().map(|batch| batch.dfa.memory_usage()).sum()
    }
}

impl Batch {
    fn new(chunk: &[(&str, u32)]) -> Option<Self> {
        let expressions: Vec<&str> = chunk.iter().map(|(expression, _)| *expression).collect();
        let bytes = if chunk.len() == 1 { REGEX_BYTES } else { TOGETHER_BYTES };
        let dfa = build(&expressions, bytes).ok()?;
        Some(Self { dfa, leads_to: chunk.iter().map(|(_, leads_to)| *leads_to).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::limits::ALL_REGEX_BYTES;

    #[test]
    fn expressions_are_found_over_both_parts() {
        let automaton = Automaton::new(r"^a+\.example/x$").unwrap();
        assert!(automaton.is_found([b"aa.example", b"/x"]));
        assert!(!automaton.is_found([b"aa.example", b"/xy"]) && !automaton.is_found([b"", b""]));
        assert!(Automaton::new("(?i)EXAMPLE").unwrap().is_found([b"an.example", b""]));
    }

    /// So that all of a carrier's 40,000 rules may be such.
    #[test]
    fn usual_expressions_take_little() {
        for expression in [r"^(www|m)[0-9]*\.x1234\.(com|net|example)$", r"/v[0-9]+/x1234/[a-f0-9]{8}\.mp4$"]
        {
            let bytes = Automaton::new(expression).unwrap().memory_bytes();
            assert!(bytes < ALL_REGEX_BYTES / 40_000, "{expression}: {bytes}");
        }
    }

    #[test]
    fn what_cannot_be_bounded_is_refused_with_the_reason() {
        for (expression, why) in [
            ("(a|b)*a(a|b){20}", "256 KiB"),
            ("(x{1000}){1000}", "256 KiB"),
            ("(a", "unclosed group"),
            (r"(a)\1", "backreferences are not supported"),
            ("a(?=b)", "look-around"),
        ] {
            let reason = Automaton::new(expression).unwrap_err();
            assert!(reason.contains(why) && !reason.contains('\n'), "{expression}: {reason}");
        }
    }

    #[test]
    fn those_that_do_not_combine_are_searched_for_apart() {
        let expressions: Vec<String> = (0..40).map(|number| format!("x{number}.*y.*z{number}q")).collect();
        let list: Vec<(&str, u32)> =
            expressions.iter().enumerate().map(|(at, text)| (text.as_str(), at as u32)).collect();
        let loose = Loose::new(&list);
        assert!(loose.automata() > 2, "{}", loose.automata());
        for number in 0..40 {
            let text = format!("-x{number}-y-z{number}q");
            let found = loose.search([text.as_bytes(), b""], u32::MAX, |leads_to, _| leads_to);
            assert_eq!(found, number, "{text}");
        }
    }
}
