//! Several measurements of one thing, as median with least and most.

use serde::{Deserialize, Serialize};

/// Of several measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of none.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let median = match sorted.len().is_multiple_of(2) {
            true => (upper + sorted.get(middle - 1)?) / 2.0,
            false => upper,
        };
        Some(Self { min: rounded(min), median: rounded(median), max: rounded(max) })
    }

    /// Least to most, as a share of the median.
    pub(crate) fn width(&self) -> f64 {
        if self.median > 0.0 { rounded((self.max - self.min) / self.median) } else { 0.0 }
    }
}

/// Of several trials, the one whose figure stands in the middle; of an even number, the higher of two.
pub(crate) fn middle<T: Copy>(trials: &[T], figure: impl Fn(&T) -> f64) -> Option<T> {
    let mut sorted = trials.to_vec();
    sorted.sort_by(|one, other| figure(one).total_cmp(&figure(other)));
    sorted.get(sorted.len() / 2).copied()
}

/// To a thousandth: what is behind that is noise.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_in_the_middle() {
        let spread = |values: &[f64]| Spread::of(values).map(|s| (s.min, s.median, s.max));
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some((1.0, 2.0, 3.0)));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some((1.0, 2.5, 4.0)));
    }

    #[test]
    fn the_trial_in_the_middle_counts() {
        let trials = [("worst", 9.0), ("best", 1.0), ("usual", 5.0)];
        assert_eq!(middle(&trials, |trial| trial.1).map(|trial| trial.0), Some("usual"));
        assert_eq!(middle(&trials[..2], |trial| trial.1).map(|trial| trial.0), Some("worst"));
        assert_eq!(middle(&[], |trial: &f64| *trial), None);
    }

    #[test]
    fn its_width_is_a_share_of_the_median() {
        assert_eq!(Spread { min: 1.0, median: 2.0, max: 4.0 }.width(), 1.5);
        assert_eq!(Spread::default().width(), 0.0);
    }
}
