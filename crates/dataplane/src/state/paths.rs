//! GTP-U path management (TS 29.281 7.2, TS 23.007 20.3): whether a peer in use is still there.
//!
//! A path is asked every period. A question that is not answered within T3 is asked again, N3 times in all; then the path
//! has failed, until an answer comes. A restart counter in an answer says nothing: GTP-U version 1 has none (TS 29.281
//! 7.2.2).

use crate::config::Echo;

/// The path to one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Of the question asked last.
    sequence: u16,
    /// Times it was asked; 0 while none waits for an answer.
    tries: u32,
    /// When it was asked first.
    asked_ns: u64,
    /// When something is to be done next.
    due_ns: u64,
    /// When the last answer came, and how long it took, in microseconds.
    answer: Option<(u64, u32)>,
    is_failed: bool,
    /// What the control plane was told last: whether it has failed.
    told: Option<bool>,
}

/// What is to be done about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// An echo request of this number is to be sent.
    Ask(u16),
    /// It has failed just now.
    Failed,
}

impl Path {
    /// To be asked at once.
    pub(crate) const NEW: Self =
        Self { sequence: 0, tries: 0, asked_ns: 0, due_ns: 0, answer: None, is_failed: false, told: None };

    /// Looks at the path; called often enough, and as long as the peer is in use.
    pub(crate) fn look(&mut self, now_ns: u64, echo: Echo) -> Due {
        if now_ns < self.due_ns || echo.period_ns == 0 {
            return Due::Nothing;
        }
        if self.tries == 0 {
            (self.sequence, self.asked_ns) = (self.sequence.wrapping_add(1), now_ns);
        } else if self.tries >= echo.n3 {
            (self.tries, self.due_ns) = (0, self.asked_ns + echo.period_ns);
            let is_new = !std::mem::replace(&mut self.is_failed, true);
            return if is_new { Due::Failed } else { Due::Nothing };
        }
        (self.tries, self.due_ns) = (self.tries + 1, now_ns + echo.t3_ns);
        Due::Ask(self.sequence)
    }

    /// An answer of this number has come; whether anybody waited for it.
    pub(crate) fn answered(&mut self, sequence: u16, now_ns: u64, echo: Echo) -> bool {
        let is_wanted = self.tries > 0 && sequence == self.sequence;
        if is_wanted {
            let took_us = now_ns.saturating_sub(self.asked_ns) / 1_000;
            self.answer = Some((now_ns, u32::try_from(took_us).unwrap_or(u32::MAX)));
            (self.tries, self.due_ns, self.is_failed) = (0, self.asked_ns + echo.period_ns, false);
        }
        is_wanted
    }

    /// What the control plane has to be told: whether the path has failed. A first answer is told, too: before the peer was
    /// forgotten, or we restarted, it may have been told that the path had failed.
    pub(crate) fn untold(&self) -> Option<bool> {
        let is_known = self.is_failed || self.answer.is_some();
        (is_known && self.told != Some(self.is_failed)).then_some(self.is_failed)
    }

    /// It was told.
    pub(crate) fn told(&mut self) {
        self.told = Some(self.is_failed);
    }

    pub(crate) const fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// When the last answer came, in nanoseconds, and how long it took, in microseconds.
    pub(crate) const fn answer(&self) -> Option<(u64, u32)> {
        self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;
    const ECHO: Echo = Echo { period_ns: 60 * S, t3_ns: 5 * S, n3: 3 };

    fn seen(path: &mut Path, seconds: std::ops::Range<u64>) -> Vec<(u64, Due)> {
        let looks = seconds.map(|second| (second, path.look(second * S, ECHO)));
        looks.filter(|(_, due)| *due != Due::Nothing).collect()
    }

    #[test]
    fn a_peer_that_answers_is_asked_once_a_period() {
        let mut path = Path::NEW;
        assert_eq!(seen(&mut path, 0..2), [(0, Due::Ask(1))]);
        assert!(path.answered(1, 2 * S, ECHO));
        assert_eq!(path.answer(), Some((2 * S, 2_000_000)));
        assert_eq!(path.untold(), Some(false));
        path.told();
        assert_eq!(seen(&mut path, 2..62), [(60, Due::Ask(2))]);
        assert_eq!(path.untold(), None);
    }

    #[test]
    fn a_peer_that_does_not_answer_n3_requests_of_one_number_has_failed() {
        let mut path = Path::NEW;
        let all = [(0, Due::Ask(1)), (5, Due::Ask(1)), (10, Due::Ask(1)), (15, Due::Failed)];
        assert_eq!(seen(&mut path, 0..60), all);
        assert_eq!(path.untold(), Some(true));
        path.told();
        assert_eq!(path.untold(), None);
        // Too late, and asked no longer.
        assert!(!path.answered(1, 59 * S, ECHO));
        // It is asked on, and its failure is told once.
        assert_eq!(seen(&mut path, 60..80), [(60, Due::Ask(2)), (65, Due::Ask(2)), (70, Due::Ask(2))]);
        assert_eq!(seen(&mut path, 80..121), [(120, Due::Ask(3))]);
        assert!(path.answered(3, 121 * S, ECHO));
        assert_eq!(path.untold(), Some(false));
    }

    #[test]
    fn an_answer_to_another_question_is_none() {
        let mut path = Path::NEW;
        assert!(!path.answered(0, 0, ECHO));
        path.look(0, ECHO);
        assert!(!path.answered(2, S, ECHO) && path.answered(1, S, ECHO) && !path.answered(1, S, ECHO));
    }

    #[test]
    fn without_a_period_nobody_is_asked() {
        let mut path = Path::NEW;
        assert_eq!(path.look(u64::MAX, Echo::OFF), Due::Nothing);
    }

    proptest! {
        /// However answers come and get lost: never two new questions within a period, never more than N3 of one number,
        /// and a failure only after N3 of one number without an answer.
        #[test]
        fn questions_are_rationed(answers in proptest::collection::vec(0u64..8, 1..60)) {
            let mut path = Path::NEW;
            let (mut asked, mut first, mut last) = (0, None, 0);
            let mut answers = answers.into_iter().cycle();
            let mut answer_at = None;
            for second in 0..2_000 {
                match path.look(second * S, ECHO) {
                    Due::Ask(sequence) if sequence == last => asked += 1,
                    Due::Ask(sequence) => {
                        prop_assert!(first.is_none_or(|first| second - first >= 60));
                        (asked, first, last) = (1, Some(second), sequence);
                        // 7: never.
                        let delay = answers.next().filter(|delay| *delay < 7);
                        answer_at = delay.map(|delay| second + 3 * delay);
                    }
                    Due::Failed => prop_assert!(asked == 3 && !path.answered(last, second * S, ECHO)),
                    Due::Nothing => {}
                }
                prop_assert!(asked <= 3);
                if answer_at == Some(second) && path.answered(last, second * S, ECHO) {
                    prop_assert!(!path.is_failed());
                }
            }
        }
    }
}
