//! Predefined rules that PDRs activate (TS 29.244 feature ADPDP).

use super::Translator;
use super::pdr::of_pdr;
use crate::predefined::{self, PredefinedRule};
use crate::refusal::Refusal;
use pfcp::{Cause, ie};
use rules::{ApplicationId, PdrId};

impl Translator<'_> {
    /// Names of predefined rules that a PDR activates.
    pub(super) fn activated(&self, pdr: PdrId) -> &[String] {
        let known = self.extras.predefined.iter().find(|(id, _)| *id == pdr);
        known.map_or(&[], |(_, names)| names)
    }

    pub(super) fn activate(&mut self, pdr: PdrId, names: &[Vec<u8>]) -> Result<(), Refusal> {
        for name in names {
            let name = self.predefined.known(name).ok_or(unknown_rule(pdr, ie::ACTIVATE_PREDEFINED_RULES))?;
            if self.activated(pdr).contains(&name) {
                continue;
            }
            self.may_match(pdr, &name)?;
            match self.extras.predefined.iter_mut().find(|(id, _)| *id == pdr) {
                Some((_, active)) => active.push(name),
                None => self.extras.predefined.push((pdr, vec![name])),
            }
        }
        Ok(())
    }

    /// A rule for an application that nobody knows matches no packet, as a PDR that names it itself. Of a group one rule is enough.
    fn may_match(&self, pdr: PdrId, name: &str) -> Result<(), Refusal> {
        let application = |rule: &PredefinedRule| rule.application.clone();
        let is_known = |it: ApplicationId| self.pfds.know(it.name());
        let mut rules = self.predefined.named(name).map(application);
        match rules.any(|application| application.is_none_or(is_known)) {
            true => Ok(()),
            false => {
                let refusal = Refusal::blaming(Cause::UnknownApplicationId, ie::ACTIVATE_PREDEFINED_RULES);
                Err(of_pdr(refusal, pdr))
            }
        }
    }

    /// What was not active is not active afterwards. What is can be deactivated though the node has it no more: the control plane
    /// cannot know that the operator took it away.
    pub(super) fn deactivate(&mut self, pdr: PdrId, names: &[Vec<u8>]) -> Result<(), Refusal> {
        for octets in names {
            let active = self
                .activated(pdr)
                .iter()
                .find(|name| predefined::name_of(octets) == Some(name.as_str()))
                .cloned();
            let name = active.or_else(|| self.predefined.known(octets));
            let name = name.ok_or(unknown_rule(pdr, ie::DEACTIVATE_PREDEFINED_RULES))?;
            let of_it = self.extras.predefined.iter_mut().filter(|(id, _)| *id == pdr);
            of_it.for_each(|(_, active)| active.retain(|other| *other != name));
        }
        self.extras.predefined.retain(|(_, active)| !active.is_empty());
        Ok(())
    }
}

const fn unknown_rule(pdr: PdrId, ie: u16) -> Refusal {
    of_pdr(Refusal::blaming(Cause::UnknownPredefinedRule, ie), pdr)
}
