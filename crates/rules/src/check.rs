//! Which rules make sense together. What does not is refused whole, naming the rule.

use crate::error::{RuleError, RuleRef};
use crate::ids::{FarId, QerId, Teid};
use crate::intent::{ApplyAction, Far, Pdr, Rules, limits};
use std::collections::HashSet;
use std::hash::Hash;

impl Rules {
    /// Whether a data plane can run these rules.
    ///
    /// # Errors
    /// The first rule that is doubled, dangling, unreachable, incomplete or beyond [`limits`].
    pub fn check(&self) -> Result<(), RuleError> {
        let pdrs = unique(self.pdrs.iter().map(|r| r.id), RuleRef::Pdr, limits::PDRS)?;
        debug_assert_eq!(pdrs.len(), self.pdrs.len());
        let fars = unique(self.fars.iter().map(|r| r.id), RuleRef::Far, limits::FARS)?;
        let qers = unique(self.qers.iter().map(|r| r.id), RuleRef::Qer, limits::QERS)?;
        self.fars.iter().try_for_each(check_far)?;
        self.pdrs.iter().try_for_each(|pdr| check_pdr(pdr, &fars, &qers))?;
        self.pdrs.iter().try_for_each(|pdr| self.check_tunnel(pdr))
    }

    /// A PDR may lack outer header removal while its FAR does not forward: some control planes add it later.
    fn check_tunnel(&self, pdr: &Pdr) -> Result<(), RuleError> {
        let keeps = pdr.pdi.f_teid.is_some() && !pdr.outer_header_removal;
        let forwards = |far: &&Far| far.id == pdr.far && far.apply_action == ApplyAction::Forward;
        match keeps && self.fars.iter().any(|far| forwards(&far)) {
            true => Err(RuleError::KeepsTunnel(RuleRef::Pdr(pdr.id))),
            false => Ok(()),
        }
    }
}

fn unique<T: Copy + Eq + Hash>(
    ids: impl Iterator<Item = T>,
    name: impl Fn(T) -> RuleRef,
    limit: usize,
) -> Result<HashSet<T>, RuleError> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(RuleError::Duplicate(name(id)));
        }
        if seen.len() > limit {
            return Err(RuleError::TooMany(name(id)));
        }
    }
    Ok(seen)
}

fn check_far(far: &Far) -> Result<(), RuleError> {
    let rule = RuleRef::Far(far.id);
    match (far.apply_action, &far.forwarding) {
        (ApplyAction::Forward, None) => Err(RuleError::NoForwardingParameters(rule)),
        (_, Some(to)) if to.outer_header_creation.is_some_and(|ohc| ohc.teid == Teid(0)) => {
            Err(RuleError::ZeroTeid(rule))
        }
        _ => Ok(()),
    }
}

fn check_pdr(pdr: &Pdr, fars: &HashSet<FarId>, qers: &HashSet<QerId>) -> Result<(), RuleError> {
    let rule = RuleRef::Pdr(pdr.id);
    if pdr.pdi.f_teid.is_none() && pdr.pdi.ue_ipv4.is_none() && pdr.pdi.ue_ipv6.is_none() {
        return Err(RuleError::Unreachable(rule));
    }
    if pdr.pdi.f_teid.is_some_and(|f_teid| f_teid.teid == Teid(0)) {
        return Err(RuleError::ZeroTeid(rule));
    }
    if pdr.qers.len() > limits::QERS_PER_PDR || pdr.pdi.qfis.len() > limits::QFIS_PER_PDI {
        return Err(RuleError::TooMany(rule));
    }
    if !fars.contains(&pdr.far) {
        return Err(RuleError::Dangling(rule, RuleRef::Far(pdr.far)));
    }
    match pdr.qers.iter().find(|qer| !qers.contains(qer)) {
        Some(qer) => Err(RuleError::Dangling(rule, RuleRef::Qer(*qer))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::rules;
    use crate::ids::PdrId;

    #[test]
    fn complete_rules_pass() {
        assert_eq!(rules().check(), Ok(()));
    }

    #[test]
    fn a_pdr_naming_an_absent_far_is_refused_with_both_ids() {
        let mut bad = rules();
        bad.pdrs[0].far = FarId(99);
        let blamed = RuleRef::Pdr(bad.pdrs[0].id);
        assert_eq!(bad.check(), Err(RuleError::Dangling(blamed, RuleRef::Far(FarId(99)))));
    }

    #[test]
    fn a_pdr_naming_an_absent_qer_is_refused() {
        let mut bad = rules();
        bad.pdrs[0].qers = vec![QerId(7)];
        assert!(matches!(bad.check(), Err(RuleError::Dangling(_, RuleRef::Qer(QerId(7))))));
    }

    #[test]
    fn doubled_ids_are_refused() {
        let mut bad = rules();
        bad.fars.push(bad.fars[0].clone());
        assert_eq!(bad.check(), Err(RuleError::Duplicate(RuleRef::Far(bad.fars[0].id))));
    }

    #[test]
    fn a_forwarding_far_must_say_where() {
        let mut bad = rules();
        bad.fars[0].apply_action = ApplyAction::Forward;
        bad.fars[0].forwarding = None;
        assert_eq!(bad.check(), Err(RuleError::NoForwardingParameters(RuleRef::Far(bad.fars[0].id))));
    }

    #[test]
    fn a_pdr_nobody_can_reach_is_refused() {
        let mut bad = rules();
        bad.pdrs[0].pdi.f_teid = None;
        bad.pdrs[0].pdi.ue_ipv4 = None;
        assert_eq!(bad.check(), Err(RuleError::Unreachable(RuleRef::Pdr(bad.pdrs[0].id))));
    }

    #[test]
    fn outer_header_removal_may_come_late_but_not_after_forwarding() {
        let mut bad = rules();
        bad.pdrs[0].outer_header_removal = false;
        assert_eq!(bad.check(), Err(RuleError::KeepsTunnel(RuleRef::Pdr(PdrId(1)))));
        bad.fars[0].apply_action = ApplyAction::Drop;
        assert_eq!(bad.check(), Ok(()));
    }

    #[test]
    fn the_limit_on_pdrs_holds() {
        let mut bad = rules();
        let model = bad.pdrs[0].clone();
        bad.pdrs = (0..=limits::PDRS as u16).map(|id| Pdr { id: PdrId(id), ..model.clone() }).collect();
        assert_eq!(bad.check(), Err(RuleError::TooMany(RuleRef::Pdr(PdrId(limits::PDRS as u16)))));
    }
}
