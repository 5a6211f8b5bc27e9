//! What the five kinds of rules have in common: an identifier that a session has once.

use crate::error::{RuleError, RuleRef};
use crate::ids::{BarId, FarId, PdrId, QerId, UrrId};
use crate::intent::{Bar, Far, Pdr, Qer};
use crate::urr::Urr;
use std::collections::HashMap;
use std::hash::Hash;

/// One rule of a session.
pub(crate) trait Rule {
    /// What names it.
    type Id: Copy + Eq + Hash + Into<RuleRef>;

    /// Its identifier.
    fn id(&self) -> Self::Id;
}

macro_rules! rules {
    ($($rule:ident $id:ident $kind:ident)+) => {
        $(
            impl From<$id> for RuleRef {
                fn from(id: $id) -> Self {
                    Self::$kind(id)
                }
            }

            impl Rule for $rule {
                type Id = $id;

                fn id(&self) -> $id {
                    self.id
                }
            }
        )+
    };
}

rules! {
    Pdr PdrId Pdr
    Far FarId Far
    Qer QerId Qer
    Urr UrrId Urr
    Bar BarId Bar
}

/// Up to so many rules are faster found by looking at each.
pub(crate) const FEW: usize = 16;

/// The rules of one kind in a session, each found by its identifier in constant time.
pub(crate) struct ById<'a, R: Rule> {
    rules: &'a [R],
    /// `None` while the rules are few.
    places: Option<HashMap<R::Id, usize>>,
}

impl<'a, R: Rule> ById<'a, R> {
    /// Refuses more than `limit` rules, and two of one identifier.
    pub(crate) fn new(rules: &'a [R], limit: usize) -> Result<Self, RuleError> {
        if let Some(rule) = rules.get(limit) {
            return Err(RuleError::TooMany(rule.id().into()));
        }
        if rules.len() > FEW {
            return Ok(Self { rules, places: Some(places(rules)?) });
        }
        let mut all = rules.iter().enumerate();
        match all.find(|(place, rule)| place_in(rules, rule.id()) != Some(*place)) {
            Some((_, twice)) => Err(RuleError::Duplicate(twice.id().into())),
            None => Ok(Self { rules, places: None }),
        }
    }

    /// Its place among the rules of its kind.
    pub(crate) fn place(&self, id: R::Id) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&id).copied(),
            None => place_in(self.rules, id),
        }
    }

    pub(crate) fn get(&self, id: R::Id) -> Option<&'a R> {
        self.rules.get(self.place(id)?)
    }

    /// The rule that `by` names.
    pub(crate) fn named(&self, id: R::Id, by: RuleRef) -> Result<&'a R, RuleError> {
        self.get(id).ok_or(RuleError::Dangling(by, id.into()))
    }
}

/// Found by looking at each.
pub(crate) fn place_in<R: Rule>(rules: &[R], id: R::Id) -> Option<usize> {
    rules.iter().position(|rule| rule.id() == id)
}

fn places<R: Rule>(rules: &[R]) -> Result<HashMap<R::Id, usize>, RuleError> {
    let mut places = HashMap::with_capacity(rules.len());
    for (place, rule) in rules.iter().enumerate() {
        if places.insert(rule.id(), place).is_some() {
            return Err(RuleError::Duplicate(rule.id().into()));
        }
    }
    Ok(places)
}
