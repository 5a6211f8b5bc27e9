//! Extended buffering as a step has it (TS 29.244 5.2.4.2): who wants packets kept, and how much longer than others. The control
//! plane engine says when it is over; by this the worker gives packets up where nobody does.

use rules::BarId;

/// In eight bits the BAR, below them seconds and one: none has all bits clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience(u32);

const SECONDS: u32 = (1 << 24) - 1;

impl Patience {
    /// `None` is for ever, and so is what there is no room for: half a year, where a timer has 13 days at most.
    pub(super) fn new(bar: BarId, seconds: Option<u32>) -> Self {
        let seconds = seconds.map_or(SECONDS, |seconds| seconds.saturating_add(1).min(SECONDS));
        Self(u32::from(bar.0) << 24 | seconds)
    }

    pub(super) const fn from_bits(bits: u32) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn bar(self) -> BarId {
        BarId((self.0 >> 24) as u8)
    }

    pub(crate) const fn ns(self) -> u64 {
        match self.0 & SECONDS {
            SECONDS => u64::MAX,
            seconds => (seconds - 1) as u64 * 1_000_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        for (bar, seconds) in [(0, Some(0)), (1, Some(62)), (255, Some(1_116_000)), (7, None)] {
            let patience = Patience::from_bits(Patience::new(BarId(bar), seconds).bits()).unwrap();
            let ns = seconds.map_or(u64::MAX, |seconds| u64::from(seconds) * 1_000_000_000);
            assert_eq!((patience.bar(), patience.ns()), (BarId(bar), ns));
        }
        assert_eq!(Patience::from_bits(0), None);
    }
}
