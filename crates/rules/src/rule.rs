//! What the five kinds of rules have in common: an identifier that a session has once.

use crate::error::RuleRef;
use crate::ids::{BarId, FarId, PdrId, QerId, UrrId};
use crate::intent::{Bar, Far, Pdr, Qer};
use crate::urr::Urr;
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
