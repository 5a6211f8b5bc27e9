//! Questions that all workers have to answer before anybody is told.

use std::collections::VecDeque;

/// Questions under way, each with the answers there are.
pub(super) struct Rounds<T>(VecDeque<Round<T>>);

struct Round<T> {
    /// Who asked.
    token: Option<u64>,
    /// By worker.
    answers: Vec<Option<T>>,
}

impl<T> Rounds<T> {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many workers have been asked.
    pub(super) fn ask(&mut self, token: Option<u64>, workers: usize) {
        self.0.push_back(Round { token, answers: (0..workers).map(|_| None).collect() });
    }

    /// A worker has answered; all answers, by worker, if it was the last. Each answers in the order it was asked.
    pub(super) fn answer(&mut self, token: Option<u64>, worker: usize, answer: T) -> Option<Vec<T>> {
        let waits =
            |round: &Round<T>| round.token == token && matches!(round.answers.get(worker), Some(None));
        let at = self.0.iter().position(waits)?;
        let round = self.0.get_mut(at)?;
        *round.answers.get_mut(worker)? = Some(answer);
        if round.answers.iter().any(Option::is_none) {
            return None;
        }
        Some(self.0.remove(at)?.answers.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Rounds;

    #[test]
    fn the_last_answer_gives_all_in_order_of_workers() {
        let mut rounds = Rounds::new();
        rounds.ask(Some(7), 2);
        rounds.ask(Some(7), 2);
        assert_eq!((rounds.answer(Some(7), 1, 'b'), rounds.answer(Some(7), 1, 'd')), (None, None));
        assert_eq!(rounds.answer(Some(8), 0, 'x'), None);
        assert_eq!(rounds.answer(Some(7), 0, 'a'), Some(vec!['a', 'b']));
        assert_eq!(rounds.answer(Some(7), 0, 'c'), Some(vec!['c', 'd']));
        assert!(rounds.is_empty());
    }
}
