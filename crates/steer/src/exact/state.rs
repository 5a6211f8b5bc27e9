//! What is told of a port's exact rules.

use crate::Target;
use serde::{Deserialize, Serialize};

/// Refusals whose words are remembered.
const WORDS_MAX: usize = 8;
/// Targets that are told one by one: what is told of all ports fits a message.
pub(super) const TOLD_MAX: usize = 1_024;

/// The exact rules of a port, and what became of those it has not. Counters are cumulative; a target may take several rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactState {
    /// Rules the port has at most.
    pub limit: u64,
    /// Rules in the card.
    pub installed: u64,
    /// Targets that the card refused, or was not asked for after so many refusals in a row; and rules it would not give up.
    pub refused: u64,
    /// Targets for which the budget of time was used up: their packets are handed over.
    pub over_budget: u64,
    /// Targets beyond the limit.
    pub over_limit: u64,
    /// What the driver said, each once: the first few.
    pub words: Vec<String>,
    /// Targets that are led.
    pub led: u64,
    /// The first of them, at most 1,024, and the queue of each.
    pub rules: Vec<(Target, u16)>,
}

impl ExactState {
    /// The card refused something with these words, which name the rule: told apart is only what comes behind it.
    pub(super) fn note_refused(&mut self, words: String) {
        self.refused += 1;
        let reason =
            |words: &str| words.rsplit_once("\": ").map_or_else(|| words.to_owned(), |it| it.1.to_owned());
        let is_new = self.words.iter().all(|known| reason(known) != reason(&words));
        if is_new && self.words.len() < WORDS_MAX {
            self.words.push(words);
        }
    }
}
