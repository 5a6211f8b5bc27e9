//! Predefined rules that PDRs activate (TS 29.244 feature ADPDP).

use super::Translator;
use crate::refusal::Refusal;
use pfcp::{Cause, FailedRuleId, ie};
use rules::PdrId;

impl Translator<'_> {
    /// Names of predefined rules that a PDR activates.
    pub(super) fn activated(&self, pdr: PdrId) -> &[String] {
        let known = self.extras.predefined.iter().find(|(id, _)| *id == pdr);
        known.map_or(&[], |(_, names)| names)
    }

    pub(super) fn activate(&mut self, pdr: PdrId, names: &[Vec<u8>]) -> Result<(), Refusal> {
        for name in names {
            let name = self.predefined.known(name).ok_or(unknown_rule(pdr, ie::ACTIVATE_PREDEFINED_RULES))?;
            match self.extras.predefined.iter_mut().find(|(id, _)| *id == pdr) {
                Some((_, active)) if active.contains(&name) => {}
                Some((_, active)) => active.push(name),
                None => self.extras.predefined.push((pdr, vec![name])),
            }
        }
        Ok(())
    }

    /// What was not active is not active afterwards.
    pub(super) fn deactivate(&mut self, pdr: PdrId, names: &[Vec<u8>]) -> Result<(), Refusal> {
        for octets in names {
            let name = self.predefined.known(octets);
            let name = name.ok_or(unknown_rule(pdr, ie::DEACTIVATE_PREDEFINED_RULES))?;
            let of_it = self.extras.predefined.iter_mut().filter(|(id, _)| *id == pdr);
            of_it.for_each(|(_, active)| active.retain(|other| *other != name));
        }
        self.extras.predefined.retain(|(_, active)| !active.is_empty());
        Ok(())
    }
}

const fn unknown_rule(pdr: PdrId, ie: u16) -> Refusal {
    let failed_rule_id = Some(FailedRuleId::Pdr(pdr.0));
    Refusal { failed_rule_id, ..Refusal::blaming(Cause::UnknownPredefinedRule, ie) }
}
