//! Choices that are the same for the same seed, on every machine: whole numbers only, once the shares are known.

/// One of several, each as often as its share.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Where each one's part of all 32-bit numbers ends.
    ends: Vec<u32>,
}

impl Choice {
    /// Shares need not add up to 1; only their ratio matters.
    pub(crate) fn new(shares: impl IntoIterator<Item = f64>) -> Self {
        let shares: Vec<f64> = shares.into_iter().map(|share| share.max(0.0)).collect();
        let all = shares.iter().sum::<f64>();
        let ends = shares.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(threshold(*sum / all))
        });
        Self { ends: ends.collect() }
    }

    /// The one that a random number chooses.
    #[inline]
    pub(crate) fn pick(&self, random: u32) -> usize {
        // All of them are looked at: no branch depends on the number, so none is foretold wrongly.
        let behind = self.ends.iter().map(|end| usize::from(random >= *end)).sum::<usize>();
        behind.min(self.ends.len().saturating_sub(1))
    }
}

/// A random number is below this as often as `share` says.
pub(crate) fn threshold(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * 4_294_967_296.0) as u32
}

/// A random number below `limit` (Lemire's reduction; its bias is below one in 2^32 / `limit`).
#[inline]
pub(crate) fn below(limit: u32, random: u32) -> u32 {
    ((u64::from(random) * u64::from(limit)) >> 32) as u32
}

/// A well-mixed number for each number: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
#[inline]
pub(crate) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// A number below `limit`, small ones much more often: each power of two gets as much as the next, as popularity
/// with Zipf's exponent of 1 does.
pub(crate) fn popular(limit: u32, random: u32) -> u32 {
    let limit = limit.max(1);
    let octave = below(u32::BITS - (limit - 1).leading_zeros() + 1, random);
    let first = 1_u32 << octave >> 1;
    (first | random & first.saturating_sub(1)) % limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_as_often_as_their_shares() {
        let choice = Choice::new([0.2, 0.0, 0.8]);
        let mut seen = [0_u32; 3];
        (0..100_000_u64).for_each(|number| seen[choice.pick(mixed(number) as u32)] += 1);
        assert!((19_000..21_000).contains(&seen[0]) && seen[1] == 0, "{seen:?}");
        assert_eq!(choice.pick(u32::MAX), 2);
    }

    #[test]
    fn popular_numbers_are_small_but_all_occur() {
        let mut seen = vec![0_u32; 1_000];
        (0..1_000_000_u64).for_each(|number| seen[popular(1_000, mixed(number) as u32) as usize] += 1);
        assert!(seen.iter().all(|count| *count > 0));
        let half: u32 = seen.iter().take(32).sum();
        assert!((450_000..650_000).contains(&half), "{half}");
    }
}
