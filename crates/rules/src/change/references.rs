//! What still names a rule that is removed (TS 29.244 6.3.3.3: the UP function takes its identifier out of the PDRs).

use super::Change;
use crate::intent::Rules;
use crate::rule::Rule;
use std::collections::HashSet;

impl Rules {
    /// Takes the QERs, URRs, BARs and quota FARs that `change` removes out of the rules that stay. One that is created anew in
    /// the same change stays named. A PDR cannot be without a FAR: who removes that says which one follows.
    pub(super) fn unname(&mut self, change: &Change) {
        let create = &change.create;
        if let Some(gone) = gone(&change.remove_qers, &create.qers) {
            self.pdrs.iter_mut().for_each(|pdr| pdr.qers.retain(|qer| !gone.contains(qer)));
        }
        if let Some(gone) = gone(&change.remove_urrs, &create.urrs) {
            self.pdrs.iter_mut().for_each(|pdr| pdr.urrs.retain(|urr| !gone.contains(urr)));
            self.urrs.iter_mut().for_each(|urr| urr.linked.retain(|linked| !gone.contains(linked)));
        }
        if let Some(gone) = gone(&change.remove_bars, &create.bars) {
            self.fars.iter_mut().for_each(|far| far.bar = far.bar.filter(|bar| !gone.contains(bar)));
        }
        if let Some(gone) = gone(&change.remove_fars, &create.fars) {
            let kept = |far: &_| !gone.contains(far);
            self.urrs.iter_mut().for_each(|urr| urr.quota_far = urr.quota_far.filter(kept));
        }
    }
}

/// What is removed for good, if anything is.
fn gone<R: Rule>(removed: &[R::Id], created: &[R]) -> Option<HashSet<R::Id>> {
    let mut gone: HashSet<R::Id> = removed.iter().copied().collect();
    created.iter().for_each(|rule| {
        gone.remove(&rule.id());
    });
    Some(gone).filter(|gone| !gone.is_empty())
}
