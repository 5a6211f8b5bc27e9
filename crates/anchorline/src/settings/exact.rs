//! `exact_rules` of `[[dpe.port]]`: sessions that a card's hash leads elsewhere than to their workers have rules of their own.

use super::classes::Around;
use super::values::ExactRules;
use super::{ClassSettings, DeviceHash};
use config::{Refusal, Spanned};

/// How many a port may have; none, unless told.
pub(super) fn check(
    rules: Option<Spanned<ExactRules>>,
    around: &Around<'_>,
    classes: &[ClassSettings],
) -> Result<usize, Refusal> {
    let Some(rules) = rules.filter(|rules| rules.get_ref().0 > 0) else { return Ok(0) };
    let why = if around.hash != DeviceHash::Auto {
        "exact rules need hash = \"auto\": they go with those by which this node sets up the card"
    } else if around.crew.distributors > 0 {
        "with dpe.distributors workers lead packets to their users' workers, and no card does"
    } else if around.ethernet {
        "a port of Ethernet has no exact rules"
    } else if !classes.is_empty() {
        "an exact rule leads to one queue, and with classes a worker has several: a port has either"
    } else {
        return Ok(rules.get_ref().0);
    };
    Err(Refusal::of(&rules, why))
}
