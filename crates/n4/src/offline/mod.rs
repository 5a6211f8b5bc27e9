//! Offline charging: what of sessions' usage goes into charging data records, whatever control planes are told of it.
//! What decides is in the crate `charging`; here it meets the PFCP node.
//!
//! | file | what it is about |
//! |---|---|
//! | `anew` | what ends where the data plane is told of sessions without being asked to |
//! | `content` | rules of the data plane for what content rules say the rating group of |
//! | `meters` | what is charged: control planes' URRs, and our own where they have none; what was counted |
//! | `subject` | whom: what a session's request and rules say of its user |
//! | `closing` | when: times, changes, ends |
//! | `rule_change` | which changes of a control plane's rules are one of what is charged |
//!
//! A record is closed in the same breath as the session's account says so; both are saved in one transaction.

mod anew;
mod closing;
mod content;
mod meters;
mod rule_change;
mod subject;

pub(crate) use anew::Changing;
pub(crate) use closing::{Looked, look, own_meters};
pub(crate) use content::{behind, parts_of};
pub(crate) use meters::{Charged, begin_anew, hear, hear_former, hear_last, measure, meet};
pub(crate) use subject::opened;

use charging::{Policy, Rating};

/// What an operator sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charging {
    /// What is charged under which rating group.
    pub rating: Rating,
    /// When records and containers are closed.
    pub policy: Policy,
}
