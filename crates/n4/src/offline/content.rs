//! Charging by content rules: a PDR that nothing else is said of is split by the rating group that content rules give flows.
//!
//! The data plane gets, for each key that the operator has listed, the same PDR for flows of that key alone, with a meter of
//! the key; it goes just before the PDR itself, which is left with all other flows. So what packets come to is the same, and
//! they are charged as content rules say, from the first byte of a flow on, as flows of applications are.

use super::meters::Charged;
use crate::config::Config;
use crate::predefined;
use charging::Key;
use rules::{ApplicationId, Pdr, PdrId, Rules, limits};
use session::SessionRecord;
use std::collections::{BTreeMap, HashSet};

/// A PDR for flows of one key.
struct Part {
    id: PdrId,
    /// The PDR that it is a part of.
    of: PdrId,
    key: Key,
}

/// The parts of all PDRs that are split.
fn parts(rules: &Rules, charged: Charged<'_>, keys: &BTreeMap<PdrId, Key>) -> Vec<Part> {
    let content = charged.charging.rating.content();
    let is_split =
        |pdr: &&Pdr| pdr.pdi.application.is_none() && !charged.is_mapped(pdr) && !keys.contains_key(&pdr.id);
    let split: Vec<PdrId> = rules.pdrs.iter().filter(is_split).map(|pdr| pdr.id).collect();
    let used: HashSet<PdrId> = rules.pdrs.iter().map(|pdr| pdr.id).collect();
    let free = (1..=u16::MAX).rev().map(PdrId).filter(|id| !used.contains(id));
    let all = split.iter().flat_map(|of| content.iter().map(|key| (*of, *key)));
    free.zip(all).map(|(id, (of, key))| Part { id, of, key }).collect()
}

/// Splits PDRs; what the new ones are. A session that would have more rules than a session may have stays as it is.
fn split_into(rules: &mut Rules, charged: Charged<'_>, keys: &BTreeMap<PdrId, Key>) -> Vec<Part> {
    let parts = parts(rules, charged, keys);
    if parts.is_empty() {
        return parts;
    }
    let mut more = rules.clone();
    make_room(&mut more);
    let made = parts.iter().filter_map(|Part { id, of, key }| {
        let whole = more.pdrs.iter().find(|pdr| pdr.id == *of)?;
        let mut pdr = Pdr { id: *id, precedence: whole.precedence - 1, ..whole.clone() };
        pdr.pdi.application = Some(ApplicationId::of_charging(key.rating_group, key.service_id));
        Some(pdr)
    });
    let made: Vec<Pdr> = made.collect();
    more.pdrs.extend(made);
    // Meters come behind: one of each key, the default's, and what listens for silence.
    let meters = charged.charging.rating.content().len() + 2;
    if more.urrs.len() + meters > limits::URRS || more.check().is_err() {
        return vec![];
    }
    *rules = more;
    parts
}

/// Splits PDRs; what the new ones are charged under.
pub(super) fn split(
    rules: &mut Rules,
    charged: Charged<'_>,
    keys: &BTreeMap<PdrId, Key>,
) -> BTreeMap<PdrId, Key> {
    split_into(rules, charged, keys).into_iter().map(|part| (part.id, part.key)).collect()
}

/// Gives PDRs odd precedences, one each, so that their order is the same and there is one free before each. Of one
/// precedence the lower ID goes first.
fn make_room(rules: &mut Rules) {
    let mut order: Vec<(u32, PdrId)> = rules.pdrs.iter().map(|pdr| (pdr.precedence, pdr.id)).collect();
    order.sort_unstable();
    for pdr in &mut rules.pdrs {
        let rank = order.partition_point(|other| *other < (pdr.precedence, pdr.id));
        pdr.precedence = 2 * rank as u32 + 1;
    }
}

/// The PDR that one of the data plane's is a part of; itself, if of none.
pub(crate) fn behind(record: &SessionRecord, config: &Config, pdr: PdrId) -> PdrId {
    parts_of(record, config).into_iter().find(|(part, _)| *part == pdr).map_or(pdr, |(_, of)| of)
}

/// Which of the data plane's PDRs are parts of others.
pub(crate) fn parts_of(record: &SessionRecord, config: &Config) -> Vec<(PdrId, PdrId)> {
    let Some(charged) = Charged::of(record, config) else { return vec![] };
    let mut rules = Rules::clone(&record.rules);
    let extras = record.extras.as_ref().filter(|extras| !extras.predefined.is_empty());
    let keys = extras.map(|extras| predefined::expand(&mut rules, extras, &config.predefined));
    let parts = split_into(&mut rules, charged, &keys.unwrap_or_default());
    parts.into_iter().map(|part| (part.id, part.of)).collect()
}
