//! How associations stand.

use super::Families;
use n4::{AssociationState, AssociationStatus};
use std::fmt;

/// States that nobody is in stand with 0.
pub(super) fn tell(families: &mut Families<'_>, all: &[AssociationStatus]) -> fmt::Result {
    let count = |state| all.iter().filter(|association| association.state == state).count() as u64;
    let by_state = AssociationState::ALL.into_iter();
    let by_state = by_state.map(|state| (vec![("state", state.name().to_owned())], count(state)));
    families.gauge("pfcp_associations", "Associations with control planes by state", by_state)?;
    let associated = || all.iter().filter_map(|it| Some((vec![("node_id", it.node_id.clone()?)], it)));
    let sessions = associated().map(|(labels, it)| (labels, it.sessions));
    families.gauge("pfcp_association_sessions", "PFCP sessions by control plane", sessions)?;
    let outstanding = associated().map(|(labels, it)| (labels, it.outstanding_requests));
    families.gauge("pfcp_association_requests", "Requests of ours under way by control plane", outstanding)
}
