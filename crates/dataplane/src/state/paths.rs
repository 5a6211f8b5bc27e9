//! GTP-U path management (TS 29.281 7.2, TS 23.007 20.3): whether a peer in use is still there.
//!
//! A path is asked every period. A question that is not answered within T3 is asked again, N3 times in all; then the path
//! has failed, until an answer comes. Whether it was restarted its Recovery Time Stamp says (TS 23.007 18A); the restart counter
//! of an answer says nothing: GTP-U has it at 0 (TS 29.281 8.2).

use super::peers::{Name, Way};
use crate::config::Echo;
use arrayvec::ArrayVec;

/// Questions asked in one turn, and changes told.
pub(super) const AT_ONCE: usize = 32;

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
    /// When the peer began, in seconds since 1900, as it says itself.
    recovery_time_stamp: Option<u32>,
    restarts: u32,
    /// The control plane was told of all of them.
    is_restart_told: bool,
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
    pub(crate) const NEW: Self = Self {
        sequence: 0,
        tries: 0,
        asked_ns: 0,
        due_ns: 0,
        answer: None,
        is_failed: false,
        told: None,
        recovery_time_stamp: None,
        restarts: 0,
        is_restart_told: true,
    };

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

    /// The peer says when it began. If that is later than what it said before, it was restarted and has forgotten its tunnels;
    /// if it is earlier, a newer message has overtaken this one (TS 23.007 18A). Stamps go round in 2036. Returns whether
    /// it was restarted.
    pub(crate) fn began(&mut self, stamp: u32) -> bool {
        let is_later = |known: u32| stamp.wrapping_sub(known).cast_signed() > 0;
        let is_restart = self.recovery_time_stamp.is_some_and(is_later);
        if is_restart {
            (self.restarts, self.is_restart_told) = (self.restarts.saturating_add(1), false);
        }
        if is_restart || self.recovery_time_stamp.is_none() {
            self.recovery_time_stamp = Some(stamp);
        }
        is_restart
    }

    /// Whether the control plane has to be told of a restart.
    pub(crate) const fn has_untold_restart(&self) -> bool {
        !self.is_restart_told
    }

    /// It was told.
    pub(crate) const fn told_restart(&mut self) {
        self.is_restart_told = true;
    }

    /// When the peer began, in seconds since 1900; `None` where it does not say.
    pub(crate) const fn recovery_time_stamp(&self) -> Option<u32> {
        self.recovery_time_stamp
    }

    /// Restarts since the peer is known.
    pub(crate) const fn restarts(&self) -> u32 {
        self.restarts
    }

    pub(crate) const fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// When the last answer came, in nanoseconds, and how long it took, in microseconds.
    pub(crate) const fn answer(&self) -> Option<(u64, u32)> {
        self.answer
    }
}

/// What became of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Echo requests sent.
    pub requests: u64,
    /// Answers to them.
    pub responses: u64,
    /// Paths that failed.
    pub failures: u64,
    /// Restarts of peers.
    pub restarts: u64,
    /// Peers that tunnels lead to now.
    pub peers: u64,
    /// Of them, those whose path has failed.
    pub failed: u64,
}

/// What is to be done about paths now.
#[derive(Debug, Default)]
pub(crate) struct PathsDue {
    /// Ways to peers that are to be asked, and the numbers of the questions.
    pub(crate) questions: ArrayVec<(Way, u16), AT_ONCE>,
    /// Peers whose path has failed, or is there again.
    pub(crate) changes: ArrayVec<(Name, bool), AT_ONCE>,
    /// Peers that were restarted.
    pub(crate) restarts: ArrayVec<Name, AT_ONCE>,
    /// Peers in use that other workers ask, and which.
    pub(crate) named: ArrayVec<(u8, Name), AT_ONCE>,
}

impl PathsDue {
    /// Whether one more peer may be too many.
    pub(crate) fn is_full(&self) -> bool {
        self.questions.is_full() || self.changes.is_full() || self.restarts.is_full() || self.named.is_full()
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
    fn a_later_time_stamp_is_a_restart_and_an_earlier_one_an_old_message() {
        let mut path = Path::NEW;
        let stamps = [5, 5, 9, 8, 9, u32::MAX / 2 + 3, 1, 0];
        let found = stamps.map(|stamp| path.began(stamp));
        assert_eq!(found, [false, false, true, false, false, true, true, false], "1 comes after a turn");
        assert_eq!((path.recovery_time_stamp(), path.restarts()), (Some(1), 3));
        assert!(path.has_untold_restart());
        path.told_restart();
        assert!(!path.has_untold_restart());
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
