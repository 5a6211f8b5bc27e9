//! A limit on how often something is done in a second.

const SECOND_NS: u64 = 1_000_000_000;

/// So many a second, refilled at the start of each.
pub(crate) struct Budget {
    per_s: u32,
    left: u32,
    second: u64,
}

impl Budget {
    pub(crate) const fn new(per_s: u32) -> Self {
        Self { per_s, left: per_s, second: 0 }
    }

    /// Whether one more is allowed now.
    pub(crate) fn take(&mut self, now_ns: u64) -> bool {
        let second = now_ns / SECOND_NS;
        if second != self.second {
            (self.second, self.left) = (second, self.per_s);
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holds_no_more_than_its_share() {
        let mut budget = Budget::new(2);
        let taken: Vec<bool> = [0, 1, 2, SECOND_NS, SECOND_NS].map(|now| budget.take(now)).to_vec();
        assert_eq!(taken, [true, true, false, true, true]);
    }
}
