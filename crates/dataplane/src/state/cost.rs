//! What an octet costs at a rate, as meters reckon it.

/// Parts of a nanosecond in which meters reckon, so that fast rates stay exact.
pub(crate) const PARTS: u64 = 256;
/// What an octet costs at 1 kbit/s: 8 bits an octet, 1,000,000 ns a ms.
const AT_1_KBPS: u64 = 8_000_000 * PARTS;
/// Faster than anything; what is above counts as this.
const MAX_KBPS: u64 = 4_000_000_000;
/// Bits of the exponent.
const EXPONENT: u32 = 5;
/// The least that stands before it: 27 bits are significant.
const LEAST: u64 = 1 << 26;
/// Of the slowest rate an octet costs so many times what 27 bits can say.
const SLOWEST: u32 = 4;

/// [`PARTS`] of a nanosecond for an octet: 27 bits, to the nearest, and by which power of two they are to be divided. So it leaves
/// room in the line of a meter for what has passed. Nothing, of a rate that is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost(u32);

impl Cost {
    /// No limit.
    pub(crate) const NONE: Self = Self(0);
    /// Of no rate: what has this is no meter.
    pub(crate) const APART: Self = Self(u32::MAX);

    /// At a rate; 0 is no limit.
    pub(crate) fn at(kbps: u64) -> Self {
        if kbps == 0 {
            return Self::NONE;
        }
        let kbps = kbps.min(MAX_KBPS);
        let divided = |by: u32| ((AT_1_KBPS << by) + (kbps << SLOWEST) / 2) / (kbps << SLOWEST);
        let first = kbps.ilog2().saturating_sub(1);
        let by = (first..31).find(|by| divided(*by) >= LEAST).unwrap_or(31);
        Self((divided(by) as u32) << EXPONENT | by)
    }

    /// The rate; `None` where there is no limit.
    pub(crate) const fn kbps(self) -> Option<u64> {
        let (octet, by) = self.parts();
        let divisor = octet << SLOWEST;
        if self.0 == 0 { None } else { Some(((AT_1_KBPS << by) + divisor / 2) / divisor) }
    }

    #[inline(always)]
    const fn parts(self) -> (u64, u32) {
        ((self.0 >> EXPONENT) as u64, self.0 & ((1 << EXPONENT) - 1))
    }

    /// What so many octets cost.
    #[inline(always)]
    pub(crate) const fn of(self, bytes: u32) -> u64 {
        let (octet, by) = self.parts();
        ((bytes as u64 * octet) << SLOWEST) >> by
    }

    /// Whole octets for this much; nothing where there is no limit.
    pub(crate) fn bytes(self, parts: u64) -> u64 {
        let (octet, by) = self.parts();
        let bytes = (u128::from(parts) << by).checked_div(u128::from(octet << SLOWEST));
        bytes.map_or(0, |bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_octets_cost_is_what_the_rate_says(
            kbps in prop_oneof![1..100_u64, 1..1_000_000_u64, 1..67_000_000_u64, Just(100_000_000)], bytes: u32,
        ) {
            let cost = Cost::at(kbps);
            prop_assert_eq!(cost.kbps(), Some(kbps));
            let exact = f64::from(bytes) * AT_1_KBPS as f64 / kbps as f64;
            prop_assert!((cost.of(bytes) as f64 - exact).abs() <= 1.0 + exact * 1e-8, "{}", exact);
            let back = cost.bytes(cost.of(bytes));
            // An octet of a fast rate is less than a part.
            let octets = (kbps / AT_1_KBPS + 1) as i64;
            prop_assert!((0..=octets).contains(&(i64::from(bytes) - back as i64)), "{} of {}", back, bytes);
        }
    }

    #[test]
    fn the_fastest_rate_costs_something_and_none_nothing() {
        let fastest = Cost::at(u64::MAX);
        assert_eq!(fastest, Cost::at(MAX_KBPS));
        assert!(fastest.of(1_500) > 0 && fastest != Cost::APART);
        assert_eq!((Cost::NONE.kbps(), Cost::NONE.of(1_500), Cost::NONE.bytes(1)), (None, 0, 0));
        // A second of the slowest.
        assert_eq!(Cost::at(1).of(125), 1_000_000_000 * PARTS);
    }
}
