//! Forwarding policies by name (TS 29.244 8.2.23); `support` has seen to it that the operator knows them.

use pfcp::{RawIe, ie};
use rules::Policy;

/// The name stands behind an octet of its length; `None` where it does not.
pub(crate) fn name(policy: &RawIe) -> Option<&[u8]> {
    let (length, rest) = policy.value.split_first()?;
    rest.get(..usize::from(*length))
}

/// That of a group, if it has one.
pub(super) fn of(carried: &[RawIe]) -> Option<Policy> {
    update(carried).flatten()
}

/// That of a group that updates a rule: none from now on, where the IE is empty (TS 29.244 5.6.3).
pub(super) fn update(carried: &[RawIe]) -> Option<Option<Policy>> {
    let said = carried.iter().find(|other| other.ie == ie::FORWARDING_POLICY)?;
    Some(name(said).map(Policy::of))
}
