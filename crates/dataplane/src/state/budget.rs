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

/// Parts of users that have a share of their own.
const PARTS: usize = 64;
/// Of what there is in a second, a part has so much, and no less than a few.
const SHARE: u32 = 8;
const FEW: u32 = 4;

/// So many a second, of which each user has a share: one who makes us speak without end takes it from few others.
pub(crate) struct Shared {
    all: Budget,
    parts: Box<[Budget]>,
}

impl Shared {
    pub(crate) fn new(per_s: u32) -> Self {
        let share = (per_s / SHARE).max(FEW).min(per_s);
        Self { all: Budget::new(per_s), parts: (0..PARTS).map(|_| Budget::new(share)).collect() }
    }

    /// Whether one more is allowed now, on account of `user`.
    pub(crate) fn take(&mut self, user: u64, now_ns: u64) -> bool {
        // Users' addresses count up, those of IPv4 in the upper half: the golden ratio scatters either (Knuth 6.4).
        let scattered = (user ^ user >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let part = self.parts.get_mut((scattered >> 58) as usize % PARTS);
        part.is_some_and(|part| part.take(now_ns)) && self.all.take(now_ns)
    }
}

/// ICMP errors that may still be sent.
pub(crate) struct IcmpErrors {
    /// A packet is too long.
    pub(crate) too_long: Shared,
    /// It has no hop left.
    pub(crate) no_hop: Shared,
    /// No route leads on, or nobody is there.
    pub(crate) nowhere: Shared,
}

impl IcmpErrors {
    /// So many of each kind.
    pub(crate) fn new(per_s: u32) -> Self {
        let [too_long, no_hop, nowhere] = [(); 3].map(|()| Shared::new(per_s));
        Self { too_long, no_hop, nowhere }
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

    #[test]
    fn a_user_has_its_share_and_leaves_others_theirs() {
        let mut budget = Shared::new(1_000);
        let greedy = (0..5_000).filter(|_| budget.take(7 << 32, 0)).count();
        assert_eq!(greedy, 125);
        let others = (0..100_u64).filter(|user| budget.take((1_000 + user) << 32, 0)).count();
        assert!(others >= 90, "{others}");
        let all = (0..100_000_u64).filter(|user| budget.take(user << 32, 0)).count();
        assert_eq!(greedy + others + all, 1_000);
    }
}
