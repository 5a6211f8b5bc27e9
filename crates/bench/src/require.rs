//! What a run of `pfcp` is to reach.

use crate::report::PfcpRates;
use std::fmt;
use std::str::FromStr;

/// A figure of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Establishments,
    Modifications,
    Deletions,
    Bytes,
    LastToFirst,
}

const FIGURES: [(&str, Figure); 5] = [
    ("establishments", Figure::Establishments),
    ("modifications", Figure::Modifications),
    ("deletions", Figure::Deletions),
    ("bytes", Figure::Bytes),
    ("last_to_first", Figure::LastToFirst),
];

impl Figure {
    /// `None` where the run was too short to tell.
    fn reached(self, rates: &PfcpRates) -> Option<f64> {
        match self {
            Self::Establishments => rates.establishments_per_s.map(|rate| rate.median),
            Self::Modifications => rates.modifications_per_s.map(|rate| rate.median),
            Self::Deletions => rates.deletions_per_s.map(|rate| rate.median),
            Self::Bytes => Some(rates.cpe_bytes_per_session as f64),
            Self::LastToFirst => rates.last_to_first,
        }
    }
}

/// A figure and its bound: bytes at most, all others at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Requirement {
    figure: Figure,
    bound: f64,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = FIGURES.iter().find(|(_, figure)| *figure == self.figure).map_or("", |(name, _)| name);
        write!(f, "{name}={}", self.bound)
    }
}

impl FromStr for Requirement {
    type Err = String;

    /// # Errors
    /// Names all figures there are.
    fn from_str(text: &str) -> Result<Self, String> {
        let names = || FIGURES.map(|(name, _)| name).join(", ");
        let refused = || format!("{text:?} is not like establishments=30000; there are {}", names());
        let (name, bound) = text.split_once('=').ok_or_else(refused)?;
        let figure = FIGURES.iter().find(|(known, _)| *known == name).ok_or_else(refused)?.1;
        let bound = bound.parse().ok().filter(|bound: &f64| bound.is_finite() && *bound > 0.0);
        Ok(Self { figure, bound: bound.ok_or_else(refused)? })
    }
}

impl Requirement {
    /// What is missed, as a sentence.
    fn missed(self, rates: &PfcpRates) -> Option<String> {
        let Some(reached) = self.figure.reached(rates) else {
            return Some(format!("{self} is required, and the run was too short to tell"));
        };
        let is_met = match self.figure {
            Figure::Bytes => reached <= self.bound,
            _ => reached >= self.bound,
        };
        (!is_met).then(|| format!("{self} is required, and {reached} was reached"))
    }
}

/// Holds a run against what was required of it.
///
/// # Errors
/// All that was missed, and requests that failed: rates of those mean nothing.
pub(crate) fn check(required: &[Requirement], rates: Option<&PfcpRates>) -> anyhow::Result<()> {
    let Some(rates) = rates.filter(|_| !required.is_empty()) else { return Ok(()) };
    let failures = (rates.failures > 0).then(|| format!("{} requests failed", rates.failures));
    let missed = required.iter().filter_map(|required| required.missed(rates));
    let missed: Vec<String> = failures.into_iter().chain(missed).collect();
    anyhow::ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{PfcpCost, PfcpCosts};
    use crate::spread::Spread;

    fn rates(per_s: f64, failures: u64) -> PfcpRates {
        let cost = || PfcpCost { cpe_us: 1.0, dpe_us: 1.0, answer_us: None };
        PfcpRates {
            establishments_per_s: Spread::of(&[per_s]),
            modifications_per_s: Spread::of(&[2.0 * per_s]),
            deletions_per_s: Spread::of(&[per_s]),
            bare_per_s: Spread::of(&[per_s]),
            growth: vec![],
            last_to_first: None,
            cost: PfcpCosts { establishment: cost(), modification: cost(), deletion: cost() },
            bytes_per_session: 2_000,
            cpe_bytes_per_session: 800,
            dpe_bytes_per_session: 1_200,
            window: 1,
            retransmissions: 0,
            failures,
            client_busy: 0.5,
        }
    }

    fn missed(required: &[&str], rates: &PfcpRates) -> Vec<String> {
        let required: Vec<Requirement> = required.iter().map(|text| text.parse().unwrap()).collect();
        let text = check(&required, Some(rates)).err().map(|error| error.to_string()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_missed_is_said_and_what_is_met_is_not() {
        let met = ["establishments=30000", "modifications=60000", "bytes=800"];
        assert_eq!(missed(&met, &rates(30_000.0, 0)), [""; 0]);
        assert_eq!(
            missed(&met, &rates(29_999.5, 0)),
            [
                "establishments=30000 is required, and 29999.5 was reached",
                "modifications=60000 is required, and 59999 was reached"
            ]
        );
        assert_eq!(missed(&["bytes=799"], &rates(1.0, 0)), ["bytes=799 is required, and 800 was reached"]);
        assert_eq!(
            missed(&["last_to_first=0.9"], &rates(1.0, 0)),
            ["last_to_first=0.9 is required, and the run was too short to tell"]
        );
        assert_eq!(missed(&["deletions=1"], &rates(1.0, 3)), ["3 requests failed"]);
    }

    #[test]
    fn what_nobody_measures_is_refused() {
        for text in ["", "bytes", "bytes=", "bytes=-1", "bytes=nan", "octets=5", "bytes=0"] {
            let refused = text.parse::<Requirement>().unwrap_err();
            assert!(refused.contains("last_to_first"), "{text}: {refused}");
        }
    }
}
