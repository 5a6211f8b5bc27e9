//! Sets of CPUs as the kernel writes them: `0-3,8,10-11`.

use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// No machine has more.
const CPU_MAX: usize = 8192;

/// A set of CPUs by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// Whether it has a CPU.
    pub fn has(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    /// Those that are not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// Those in both.
    pub fn common(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = String;

    /// # Errors
    /// If it is no list of CPUs.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse().ok().filter(|cpu: &usize| *cpu < CPU_MAX);
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(format!("CPUs are written like 0-3,8, not {text:?}"));
            };
            if first > last {
                return Err(format!("CPUs are written like 0-3,8, the lower first, not {text:?}"));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = left.next() {
            let mut last = first;
            while let Some(next) = left.next_if(|next| *next == last + 1) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_read_and_written() {
        let set: CpuSet = "0-3,8,10-11\n".parse().unwrap();
        assert_eq!((set.len(), set.to_string()), (7, "0-3,8,10-11".to_owned()));
        assert!("".parse::<CpuSet>().unwrap().is_empty());
        assert!("1-x".parse::<CpuSet>().is_err() && "0-99999999".parse::<CpuSet>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cpus in proptest::collection::vec(0_usize..300, 0..40)) {
            let set: CpuSet = cpus.into_iter().collect();
            prop_assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set));
        }

        #[test]
        fn nothing_that_is_read_panics(text in "[-0-9, x]{0,30}") {
            let _ = text.parse::<CpuSet>();
        }
    }
}
