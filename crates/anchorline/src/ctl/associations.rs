//! Control planes we are associated with, as a table for people.

use n4::{AssociationState, AssociationStatus};
use std::fmt::Write;

/// In the order given: where each is, whether it is there, and what it has of ours.
pub(super) fn text(associations: &[AssociationStatus]) -> String {
    if associations.is_empty() {
        return "no control plane is associated\n".to_owned();
    }
    let mut text = format!(
        "{:<28} {:<24} {:<28} {:>9} {:>13} {:>11} {:>6}  {:<20} {:<24} alternatives\n",
        "node ID",
        "address",
        "state",
        "sessions",
        "last heard s",
        "outstanding",
        "held",
        "features",
        "SMF set"
    );
    for association in associations {
        let _ = writeln!(
            text,
            "{:<28} {:<24} {:<28} {:>9} {:>13} {:>11} {:>6}  {:<20} {:<24} {}",
            association.node_id.as_deref().unwrap_or(NONE),
            association.address.to_string(),
            state(association),
            association.sessions,
            association.last_heard_age_ms.map_or_else(none, |age_ms| format!("{:.1} ago", seconds(age_ms))),
            association.outstanding_requests,
            association.held_sessions,
            or_none(association.features.join(",")),
            association.smf_set.as_deref().unwrap_or(NONE),
            or_none(association.alternatives.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
        );
    }
    text
}

const NONE: &str = "-";

fn none() -> String {
    NONE.to_owned()
}

fn or_none(text: String) -> String {
    if text.is_empty() { none() } else { text }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// One that is leaving, or whose sessions end, may be silent, too.
fn state(association: &AssociationStatus) -> String {
    let silent = association.silent_ms.map(|ms| format!("SILENT for {:.0} s", seconds(ms)));
    let leaving = association.ends_in_ms.map(|ms| format!("leaving in {:.0} s", seconds(ms)));
    match association.state {
        AssociationState::Up | AssociationState::Mute | AssociationState::Wanted => {
            association.state.name().to_owned()
        }
        AssociationState::Ending => {
            let ending = association.state.name().to_owned();
            std::iter::once(ending).chain(silent).collect::<Vec<_>>().join(", ")
        }
        AssociationState::Silent | AssociationState::Leaving => {
            leaving.into_iter().chain(silent).collect::<Vec<_>>().join(", ")
        }
    }
}

/// What tests show.
#[cfg(test)]
pub(crate) mod fixture {
    use super::*;

    /// One that is silent and has sessions.
    pub(crate) fn status() -> AssociationStatus {
        AssociationStatus {
            node_id: Some("smf.example".to_owned()),
            address: ([10, 40, 0, 9], 8805).into(),
            alternatives: vec![[10, 40, 0, 8].into(), [10, 40, 0, 7].into()],
            state: AssociationState::Silent,
            silent_ms: Some(75_000),
            ends_in_ms: None,
            last_heard_age_ms: Some(86_300),
            sessions: 12,
            features: vec!["LOAD".to_owned(), "SSET".to_owned()],
            smf_set: Some("set1".to_owned()),
            outstanding_requests: 3,
            held_sessions: 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::status;
    use super::*;

    fn words(text: &str, line: usize) -> String {
        text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_association_is_a_line() {
        let leaving =
            AssociationStatus { state: AssociationState::Leaving, ends_in_ms: Some(40_000), ..status() };
        let ending = AssociationStatus { state: AssociationState::Ending, ..status() };
        let text = text(&[status(), leaving, ending]);
        let rest = "12 86.3 ago 3 2 LOAD,SSET set1 10.40.0.8,10.40.0.7";
        assert_eq!(words(&text, 1), format!("smf.example 10.40.0.9:8805 SILENT for 75 s {rest}"));
        assert_eq!(
            words(&text, 2),
            format!("smf.example 10.40.0.9:8805 leaving in 40 s, SILENT for 75 s {rest}")
        );
        assert_eq!(words(&text, 3), format!("smf.example 10.40.0.9:8805 ending, SILENT for 75 s {rest}"));
    }

    #[test]
    fn of_who_has_not_associated_little_is_known() {
        let wanted = AssociationStatus {
            node_id: None,
            alternatives: vec![],
            state: AssociationState::Wanted,
            silent_ms: None,
            last_heard_age_ms: None,
            sessions: 0,
            features: vec![],
            smf_set: None,
            outstanding_requests: 1,
            held_sessions: 0,
            ..status()
        };
        assert_eq!(words(&text(&[wanted]), 1), "- 10.40.0.9:8805 wanted 0 - 1 0 - - -");
        assert_eq!(text(&[]), "no control plane is associated\n");
    }
}
