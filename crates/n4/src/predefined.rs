//! Rules the operator knows by name, which control planes switch on and off in a PDR (TS 29.244 5.19, feature ADPDP).
//!
//! A PDR that activates some stands for them: each makes a rule of the data plane that matches where the PDR does *and*
//! where its own filters do, with what the PDR does to packets and what it does itself. A PDR that has filters of its
//! own is there besides. The session's record keeps the control plane's rules; the others are made whenever the data
//! plane is told, from the table as it then is.

use charging::Key;
use rules::{
    ApplicationId, ApplyAction, BitRates, Far, FarId, ForwardingParameters, Gate, HeaderField, PacketRates,
    Pdi, Pdr, PdrId, Qer, QerId, Qfi, RedirectUrl, RuleError, RuleRef, Rules, SdfFilter,
};
use session::{Extras, SessionRecord};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The most rules in the table.
const RULES: usize = 4_096;

/// The most groups in the table.
const GROUPS: usize = 1_024;

/// The highest bit marks rules that are predefined (TS 29.244 8.2.74 and 8.2.75): control planes leave it 0.
const PREDEFINED: u32 = 1 << 31;

/// What a PDR has that came without a FAR, or leaves it to predefined rules.
pub(crate) const NO_FAR: FarId = FarId(u32::MAX);

/// A PDR without precedence gives way to all others.
pub(crate) const LAST: u32 = u32::MAX;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredefinedRule {
    /// Its name.
    pub name: String,
    /// Among PDRs without a precedence of their own: lower is matched first.
    pub precedence: Option<u32>,
    /// Any of these; empty matches all that the PDR matches.
    pub filters: Vec<SdfFilter>,
    /// Flows of this application only.
    pub application: Option<ApplicationId>,
    /// What it matches is dropped, whatever the PDR says.
    pub drops: bool,
    /// Connections over TCP are reset, where the PDR forwards, and all else is dropped.
    pub resets: bool,
    /// Users are sent to this portal, where the PDR forwards.
    pub redirect: Option<RedirectUrl>,
    /// Requests of HTTP get this field, where the PDR forwards.
    pub enrichment: Option<HeaderField>,
    /// DSCP of the outermost header that packets leave with, where the PDR forwards, in the place of what its FAR says.
    pub dscp: Option<u8>,
    /// Copies go there, too, where the PDR forwards.
    pub mirror: Option<ForwardingParameters>,
    /// Packets from and to the user pass.
    pub is_open: (bool, bool),
    /// No more than this passes, of all PDRs of a session that activate it together.
    pub mbr: Option<BitRates>,
    /// What the radio guarantees.
    pub gbr: Option<BitRates>,
    /// Marks packets put into a tunnel.
    pub qfi: Option<Qfi>,
    /// What its packets are charged under, unless a URR of the PDR says so.
    pub key: Option<Key>,
}

impl PredefinedRule {
    /// One that matches everything and does nothing.
    pub const fn new(name: String) -> Self {
        Self {
            name,
            precedence: None,
            filters: vec![],
            application: None,
            drops: false,
            resets: false,
            redirect: None,
            enrichment: None,
            dscp: None,
            mirror: None,
            is_open: (true, true),
            mbr: None,
            gbr: None,
            qfi: None,
            key: None,
        }
    }

    /// Whether it does something to packets that the PDR's FAR does not.
    const fn treats(&self) -> bool {
        let treats_requests = self.resets || self.redirect.is_some() || self.enrichment.is_some();
        treats_requests || self.dscp.is_some() || self.mirror.is_some()
    }

    /// The PDR's FAR, and what the rule does besides.
    fn far(&self, id: FarId, like: &Far) -> Far {
        let mut far = Far { id, ..like.clone() };
        if self.resets && far.apply_action == ApplyAction::Forward {
            far.apply_action = ApplyAction::Reset;
        }
        far.redirect = self.redirect.clone().or(far.redirect);
        far.enrichment = self.enrichment.clone().or(far.enrichment);
        if let (Some(dscp), Some(to)) = (self.dscp, &mut far.forwarding) {
            to.dscp = Some(dscp);
        }
        if let Some(mirror) = self.mirror {
            if !std::mem::replace(&mut far.duplicating, true) {
                // Where the control plane's copies went that it makes no more.
                far.duplicates.clear();
            }
            far.duplicates.push(mirror);
        }
        far
    }

    fn has_qer(&self) -> bool {
        self.is_open != (true, true) || self.mbr.is_some() || self.gbr.is_some() || self.qfi.is_some()
    }

    fn qer(&self, id: QerId) -> Qer {
        let gate = |is_open| if is_open { Gate::Open } else { Gate::Closed };
        Qer {
            id,
            uplink_gate: gate(self.is_open.0),
            downlink_gate: gate(self.is_open.1),
            mbr: self.mbr,
            packet_rates: PacketRates::default(),
            correlation: None,
            gbr: self.gbr,
            qfi: self.qfi,
            reflective: false,
        }
    }
}

/// The table: rules, and groups of them, by name. An empty one is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predefined {
    rules: Vec<PredefinedRule>,
    /// What a name stands for: places in `rules`.
    names: BTreeMap<String, Vec<usize>>,
}

/// Why a table is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PredefinedError {
    /// Two of one name.
    #[error("{0:?} is the name of two rules or groups")]
    Twice(String),
    /// A group of what is not there.
    #[error("the group {0:?} has a rule {1:?}, which does not exist")]
    Unknown(String, String),
    /// A name that no control plane can say.
    #[error("a name has 1 to 255 octets")]
    Name,
    /// More than the limit.
    #[error("there are more than {RULES} predefined rules or {GROUPS} groups")]
    TooMany,
    /// Filters, rates and so on that no session could have.
    #[error("the predefined rule {0:?} cannot be in a session: {1}")]
    Impossible(String, RuleError),
}

impl Predefined {
    /// A table of rules and of groups, each with the names of its rules.
    ///
    /// # Errors
    /// Names that are doubled or unknown, rules no session can have, and more than 4,096 rules or 1,024 groups.
    pub fn new(
        rules: Vec<PredefinedRule>,
        groups: &[(String, Vec<String>)],
    ) -> Result<Self, PredefinedError> {
        if rules.len() > RULES || groups.len() > GROUPS {
            return Err(PredefinedError::TooMany);
        }
        let mut table = Self::default();
        for (place, rule) in rules.iter().enumerate() {
            possible(rule)?;
            table.name(&rule.name, vec![place])?;
        }
        for (name, members) in groups {
            let place = |member: &String| {
                let place = rules.iter().position(|rule| rule.name == *member);
                place.ok_or_else(|| PredefinedError::Unknown(name.clone(), member.clone()))
            };
            let places = members.iter().map(place).collect::<Result<_, _>>()?;
            table.name(name, places)?;
        }
        Ok(Self { rules, ..table })
    }

    /// All rules.
    pub fn rules(&self) -> impl Iterator<Item = &PredefinedRule> {
        self.rules.iter()
    }

    /// What its rules are charged under.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.rules.iter().filter_map(|rule| rule.key)
    }

    fn name(&mut self, name: &str, places: Vec<usize>) -> Result<(), PredefinedError> {
        if !(1..=255).contains(&name.len()) {
            return Err(PredefinedError::Name);
        }
        match self.names.insert(name.to_owned(), places) {
            None => Ok(()),
            Some(_) => Err(PredefinedError::Twice(name.to_owned())),
        }
    }

    /// The rules a name stands for, in order; none where it is unknown.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &PredefinedRule> {
        let places = self.names.get(name).into_iter().flatten();
        places.filter_map(|place| self.rules.get(*place))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name, as text, if the table has it. Some senders close it with a zero.
    pub(crate) fn known(&self, octets: &[u8]) -> Option<String> {
        let octets = octets.strip_suffix(b"\0").unwrap_or(octets);
        let name = std::str::from_utf8(octets).ok()?;
        self.names.contains_key(name).then(|| name.to_owned())
    }

    /// What names stand for, each rule once, in order; what is not in the table stands for nothing.
    fn of<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = (usize, &'a PredefinedRule)> {
        let mut seen = HashSet::new();
        let places = names.iter().filter_map(|name| self.names.get(name)).flatten().copied();
        places
            .filter(move |place| seen.insert(*place))
            .filter_map(|place| self.rules.get(place).map(|rule| (place, rule)))
    }

    /// Whether a PDR that activates these needs no FAR of its own.
    pub(crate) fn decide_all(&self, names: &[String]) -> bool {
        let mut rules = self.of(names).peekable();
        rules.peek().is_some() && rules.all(|(_, rule)| rule.drops)
    }
}

/// Whether a session can have it.
fn possible(rule: &PredefinedRule) -> Result<(), PredefinedError> {
    let pdi = Pdi {
        source_interface: rules::Interface::Core,
        instance: rules::Instance::DEFAULT,
        ue_ipv4: Some([10, 0, 0, 1].into()),
        f_teid: None,
        ue_ipv6: None,
        framed_routes: vec![],
        qfis: vec![],
        sdf_filters: rule.filters.clone(),
        application: rule.application.clone(),
        ethernet: None,
    };
    let like = Far { forwarding: Some(to_core()), ..dropping(FarId(1)) };
    let alone = Rules {
        pdrs: vec![Pdr {
            id: PdrId(1),
            precedence: 1,
            pdi,
            outer_header_removal: false,
            far: FarId(1),
            qers: vec![QerId(1)],
            urrs: vec![],
        }],
        fars: vec![rule.far(FarId(1), &like)],
        qers: vec![rule.qer(QerId(1))],
        ..Rules::default()
    };
    alone.check().map_err(|error| PredefinedError::Impossible(rule.name.clone(), error))
}

const fn to_core() -> ForwardingParameters {
    let (destination_interface, instance) = (rules::Interface::Core, rules::Instance::DEFAULT);
    ForwardingParameters { destination_interface, instance, outer_header_creation: None, dscp: None }
}

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

/// Whether a PDI says no more than which user's packets it is about.
fn is_plain(pdi: &Pdi) -> bool {
    let has_frame_filters = pdi.ethernet.as_ref().is_some_and(|ethernet| !ethernet.filters.is_empty());
    pdi.sdf_filters.is_empty() && pdi.application.is_none() && !has_frame_filters
}

/// Whether a PDR only stands for others.
fn is_replaced(pdr: &Pdr, extras: &Extras, table: &Predefined) -> bool {
    let mut of_it = extras.predefined.iter().filter(|(id, _)| *id == pdr.id);
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
            pdr.precedence = rule.precedence.unwrap_or(LAST);
        }
        if rule.drops {
            pdr.far = self.far();
        } else if rule.treats() && self.used_fars.contains(&pdr.far) {
            pdr.far = self.treating(pdr.far, place);
        }
        if rule.has_qer() {
            pdr.qers.push(self.qer(place, rule));
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
