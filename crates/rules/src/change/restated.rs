//! What a change says though it is so already. TS 29.244 has each rule created once and removed once, and is silent on what else a
//! user plane is to do. Control planes in use remove rules that are gone (free5GC says Remove URR again in each modification
//! that follows the first) and create rules that are there (free5GC its URRs in each modification, OpenAirInterface a BAR each
//! time a user sleeps): refusing them would undo the path switch or the sleep that the same request asks for.

use super::Change;
use crate::error::RuleRef;
use crate::intent::Rules;
use crate::rule::Rule;
use crate::urr::Urr;
use std::collections::{HashMap, HashSet};

impl Change {
    /// Makes of a change of these rules one that [`Rules::change`] takes, and says what there was to be made:
    ///
    /// - what is removed and not there stays out;
    /// - a FAR, QER, URR or BAR that is created and there takes the place of the one that was: of a URR, that one is removed
    ///   first, with the usage it has to tell;
    /// - a URR that is created as it is goes on as it is.
    ///
    /// A PDR that is there cannot be created, for its endpoints and addresses are told of once. What a change says twice itself
    /// is refused as ever.
    pub fn restate(&mut self, rules: &Rules) -> Vec<RuleRef> {
        let mut restated = vec![];
        absent(&rules.pdrs, &mut self.remove_pdrs, &mut restated);
        absent(&rules.fars, &mut self.remove_fars, &mut restated);
        absent(&rules.qers, &mut self.remove_qers, &mut restated);
        absent(&rules.urrs, &mut self.remove_urrs, &mut restated);
        absent(&rules.bars, &mut self.remove_bars, &mut restated);
        self.go_on(rules, &mut restated);
        present(&rules.fars, (&mut self.remove_fars, &self.create.fars), &mut restated);
        present(&rules.qers, (&mut self.remove_qers, &self.create.qers), &mut restated);
        present(&rules.urrs, (&mut self.remove_urrs, &self.create.urrs), &mut restated);
        present(&rules.bars, (&mut self.remove_bars, &self.create.bars), &mut restated);
        restated
    }

    /// URRs that are created as they are.
    fn go_on(&mut self, rules: &Rules, restated: &mut Vec<RuleRef>) {
        if self.create.urrs.is_empty() {
            return;
        }
        let olds: HashMap<_, &Urr> = rules.urrs.iter().map(|urr| (urr.id, urr)).collect();
        let removed = &self.remove_urrs;
        let is_same = |urr: &Urr| {
            olds.get(&urr.id).is_some_and(|old| {
                let Urr { quota_grant, starts_awaited, .. } = **old;
                !removed.contains(&urr.id) && **old == Urr { quota_grant, starts_awaited, ..urr.clone() }
            })
        };
        self.create.urrs.retain(|urr| {
            let goes_on = is_same(urr);
            restated.extend(goes_on.then_some(RuleRef::Urr(urr.id)));
            !goes_on
        });
    }
}

fn ids<R: Rule>(rules: &[R]) -> HashSet<R::Id> {
    rules.iter().map(Rule::id).collect()
}

fn absent<R: Rule>(rules: &[R], removed: &mut Vec<R::Id>, restated: &mut Vec<RuleRef>) {
    if removed.is_empty() {
        return;
    }
    let known = ids(rules);
    restated.extend(removed.iter().filter(|id| !known.contains(id)).map(|id| (*id).into()));
    removed.retain(|id| known.contains(id));
}

fn present<R: Rule>(rules: &[R], (removed, created): (&mut Vec<R::Id>, &[R]), restated: &mut Vec<RuleRef>) {
    if created.is_empty() {
        return;
    }
    let (known, mut gone): (_, HashSet<R::Id>) = (ids(rules), removed.iter().copied().collect());
    let over = created.iter().map(Rule::id).filter(|id| known.contains(id) && gone.insert(*id));
    let over: Vec<R::Id> = over.collect();
    restated.extend(over.iter().map(|id| (*id).into()));
    removed.extend(over);
}
