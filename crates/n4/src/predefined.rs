//! Rules the operator knows by name, which control planes switch on and off in a PDR (TS 29.244 5.19, feature ADPDP).
//!
//! A PDR that activates some stands for them: each makes a rule of the data plane that matches where the PDR does *and*
//! where its own filters do, with what the PDR does to packets and what it does itself. A PDR that has filters of its
//! own is there besides. The session's record keeps the control plane's rules; the others are made whenever the data
//! plane is told, from the table as it then is.

mod renewal;
mod table;
mod told;

pub(crate) use renewal::Renewal;
pub(crate) use table::name_of;
pub use table::{Predefined, PredefinedError, PredefinedRule};

use crate::config::Config;
use crate::node::Node;
use crate::sessions::Session;
use charging::Key;
use rules::{ApplyAction, Far, FarId, Pdi, Pdr, PdrId, Qer, QerId, RuleError, RuleRef, Rules, Seid};
use serde::{Deserialize, Serialize};
use session::{Extras, SessionRecord};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The highest bit marks rules that are predefined (TS 29.244 8.2.74 and 8.2.75): control planes leave it 0.
const PREDEFINED: u32 = 1 << 31;

/// What a PDR has that came without a FAR, or leaves it to predefined rules.
pub(crate) const NO_FAR: FarId = FarId(u32::MAX);

/// A PDR without precedence gives way to all others.
pub(crate) const LAST: u32 = u32::MAX;

/// A rule that nobody has given a place goes before them: behind a PDR for all of a user's packets it would never be reached.
const FIRST: u32 = 0;

pub(crate) fn dropping(id: FarId) -> Far {
    let apply_action = ApplyAction::Drop;
    Far {
        id,
        apply_action,
        notify: false,
        forwarding: None,
        duplicating: false,
        duplicates: vec![],
        bar: None,
        redirect: None,
        enrichment: None,
    }
}

/// Makes what is activated part of `rules`; says which of the PDRs made are charged under a key of their own.
pub(crate) fn expand(rules: &mut Rules, extras: &Extras, table: &Predefined) -> BTreeMap<PdrId, Key> {
    let mut made = Made::new(rules);
    let mut keys = BTreeMap::new();
    let pdrs: Vec<Pdr> = activated(rules, extras, table)
        .into_iter()
        .filter_map(|(id, parent, rule)| {
            let parent = rules.pdrs.iter().find(|pdr| pdr.id == parent)?;
            keys.extend(rule.1.key.map(|key| (id, key)));
            Some(made.pdr(id, parent, rule))
        })
        .collect();
    rules.pdrs.retain(|pdr| !is_replaced(pdr, extras, table));
    rules.pdrs.extend(pdrs);
    rules.qers.extend(made.qers.into_values());
    let treating = made.treating.into_iter().filter_map(|((far, place), id)| {
        let like = rules.fars.iter().find(|other| other.id == far)?;
        Some(table.rules.get(place)?.far(id, like))
    });
    let treating: Vec<Far> = treating.collect();
    rules.fars.extend(treating);
    rules.fars.extend(made.dropping.map(dropping));
    keys
}

/// What is activated that brings a QER: by PDR, the place in the table.
pub(crate) fn with_qer(extras: Option<&Extras>, table: &Predefined) -> BTreeSet<(PdrId, usize)> {
    let activated = extras.into_iter().flat_map(|extras| &extras.predefined);
    let places = activated.flat_map(|(pdr, names)| table.of(names).map(move |rule| (*pdr, rule)));
    places.filter(|(_, (_, rule))| rule.has_qer()).map(|(pdr, (place, _))| (pdr, place)).collect()
}

/// PDRs that activate a rule which is charged under a key of its own.
pub(crate) fn with_key(extras: Option<&Extras>, table: &Predefined) -> BTreeSet<PdrId> {
    let activated = extras.into_iter().flat_map(|extras| &extras.predefined);
    let keyed = activated.filter(|(_, names)| table.of(names).any(|(_, rule)| rule.key.is_some()));
    keyed.map(|(pdr, _)| *pdr).collect()
}

/// Whether a PDI says no more than which user's packets it is about.
fn is_plain(pdi: &Pdi) -> bool {
    let has_frame_filters = pdi.ethernet.as_ref().is_some_and(|ethernet| !ethernet.filters.is_empty());
    pdi.sdf_filters.is_empty() && pdi.application.is_none() && !has_frame_filters
}

/// Whether a PDR only stands for others. One of whose rules none is left, as operators may take them away, goes on by itself.
fn is_replaced(pdr: &Pdr, extras: &Extras, table: &Predefined) -> bool {
    let are_any = |names: &[String]| table.of(names).next().is_some();
    let mut of_it = extras.predefined.iter().filter(|(id, names)| *id == pdr.id && are_any(names));
    let matches_all = |rule: &PredefinedRule| rule.filters.is_empty() && rule.application.is_none();
    of_it.any(|(_, names)| is_plain(&pdr.pdi) || table.of(names).any(|(_, rule)| matches_all(rule)))
}

type Activated<'a> = (PdrId, PdrId, (usize, &'a PredefinedRule));

/// All that is activated: its PDR ID, the PDR that activates it, and what it is. The IDs are the highest that the control
/// plane has left, in ascending order, as the lower ID counts among PDRs of one precedence.
fn activated<'a>(rules: &Rules, extras: &'a Extras, table: &'a Predefined) -> Vec<Activated<'a>> {
    let used: HashSet<PdrId> = rules.pdrs.iter().map(|pdr| pdr.id).collect();
    let present = extras.predefined.iter().filter(|(id, _)| used.contains(id));
    let all: Vec<_> = present.flat_map(|(id, names)| table.of(names).map(move |rule| (*id, rule))).collect();
    let free = (1..=u16::MAX).rev().map(PdrId).filter(|id| !used.contains(id));
    let mut ids: Vec<PdrId> = free.take(all.len()).collect();
    ids.reverse();
    ids.into_iter().zip(all).map(|(made, (parent, rule))| (made, parent, rule)).collect()
}

/// What predefined rules bring to a session.
struct Made {
    used_qers: HashSet<QerId>,
    used_fars: HashSet<FarId>,
    /// By place in the table: PDRs that activate the same rule share its rate.
    qers: BTreeMap<usize, Qer>,
    dropping: Option<FarId>,
    /// By the PDR's own FAR, and the place of the rule in the table.
    treating: BTreeMap<(FarId, usize), FarId>,
}

impl Made {
    fn new(rules: &Rules) -> Self {
        Self {
            used_qers: rules.qers.iter().map(|qer| qer.id).collect(),
            used_fars: rules.fars.iter().map(|far| far.id).collect(),
            qers: BTreeMap::new(),
            dropping: None,
            treating: BTreeMap::new(),
        }
    }

    fn pdr(&mut self, id: PdrId, parent: &Pdr, (place, rule): (usize, &PredefinedRule)) -> Pdr {
        let mut pdr = Pdr { id, ..parent.clone() };
        if !rule.filters.is_empty() {
            pdr.pdi.sdf_filters.clone_from(&rule.filters);
        }
        if rule.application.is_some() {
            pdr.pdi.application.clone_from(&rule.application);
        }
        if pdr.precedence == LAST {
            pdr.precedence = rule.precedence.unwrap_or(FIRST);
        }
        if rule.drops {
            pdr.far = self.far();
        } else if rule.treats() && self.used_fars.contains(&pdr.far) {
            pdr.far = self.treating(pdr.far, place);
        }
        if rule.has_qer() {
            // Of several QERs' QFIs the first counts: the rule's, if it has one, and not the default flow's.
            let at = if rule.qfi.is_some() { 0 } else { pdr.qers.len() };
            pdr.qers.insert(at, self.qer(place, rule));
        }
        pdr
    }

    fn far(&mut self) -> FarId {
        let id = self.dropping.unwrap_or_else(|| self.free_far());
        *self.dropping.insert(id)
    }

    /// The PDR's own FAR, and what the rule does to packets.
    fn treating(&mut self, far: FarId, place: usize) -> FarId {
        match self.treating.get(&(far, place)) {
            Some(id) => *id,
            None => {
                let id = self.free_far();
                *self.treating.entry((far, place)).or_insert(id)
            }
        }
    }

    fn free_far(&mut self) -> FarId {
        let id = (PREDEFINED..).map(FarId).find(|id| !self.used_fars.contains(id)).unwrap_or(NO_FAR);
        self.used_fars.insert(id);
        id
    }

    fn qer(&mut self, place: usize, rule: &PredefinedRule) -> QerId {
        let first = PREDEFINED | u32::try_from(place).unwrap_or(0) << 8;
        let free = || (first..).map(QerId).find(|id| !self.used_qers.contains(id)).unwrap_or(QerId(first));
        self.qers.entry(place).or_insert_with(|| rule.qer(free())).id
    }
}

/// The predefined rule that a PDR of the data plane comes of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComesOf {
    /// The PDR, of an ID that the control plane has not given.
    pub pdr: PdrId,
    /// The rule's name.
    pub rule: String,
    /// The rule says that packets are dropped, whatever the control plane's FAR says.
    pub drops: bool,
}

impl Node {
    /// Which of a session's PDRs in the data plane come of predefined rules; none of a session that is not there.
    pub fn come_of_predefined(&self, seid: Seid) -> Vec<ComesOf> {
        let all = |session: &Session| comes_of(&session.record, &self.config);
        self.sessions.peek(seid, all).unwrap_or_default()
    }
}

/// Those of content rules' charging are parts of them.
fn comes_of(record: &SessionRecord, config: &Config) -> Vec<ComesOf> {
    let Some(extras) = record.extras.as_ref().filter(|extras| !extras.predefined.is_empty()) else {
        return vec![];
    };
    let made = activated(&record.rules, extras, &config.predefined).into_iter();
    let made = made.map(|(pdr, _, (_, rule))| ComesOf { pdr, rule: rule.name.clone(), drops: rule.drops });
    let made: Vec<ComesOf> = made.collect();
    let of = |whole: PdrId| made.iter().find(move |made| made.pdr == whole);
    let parts = crate::offline::parts_of(record, config).into_iter();
    let parts: Vec<_> =
        parts.filter_map(|(pdr, whole)| Some(ComesOf { pdr, ..of(whole)?.clone() })).collect();
    made.into_iter().chain(parts).collect()
}

/// The control plane's rule behind one that the data plane names.
pub(crate) fn parent(record: &SessionRecord, table: &Predefined, pdr: PdrId) -> PdrId {
    let Some(extras) = record.extras.as_ref().filter(|extras| !extras.predefined.is_empty()) else {
        return pdr;
    };
    let made = activated(&record.rules, extras, table);
    made.into_iter().find_map(|(id, parent, _)| (id == pdr).then_some(parent)).unwrap_or(pdr)
}

/// Whether the data plane can run the rules with what is activated in them.
///
/// # Errors
/// As [`Rules::check`], or the control plane's PDR that activates what cannot be run.
pub(crate) fn check(rules: &Rules, extras: &Extras, table: &Predefined) -> Result<(), RuleError> {
    if extras.predefined.is_empty() {
        return Ok(());
    }
    let mut expanded = rules.clone();
    expand(&mut expanded, extras, table);
    expanded.check().map_err(|error| {
        let made = activated(rules, extras, table);
        let parent =
            made.iter().find_map(|(id, parent, _)| (error.rule() == RuleRef::Pdr(*id)).then_some(*parent));
        parent.map_or(error, |parent| RuleError::TooManyOf(RuleRef::Pdr(parent), "rules that are predefined"))
    })
}
