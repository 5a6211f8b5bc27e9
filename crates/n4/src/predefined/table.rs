//! The rules that have names, and groups of them.

use super::dropping;
use charging::Key;
use rules::{
    ApplicationId, ApplyAction, BitRates, Far, FarId, ForwardingParameters, Gate, HeaderField, PacketRates,
    Pdi, Pdr, PdrId, Policy, Qer, QerId, Qfi, Redirect, RuleError, Rules, SdfFilter,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The most rules in the table.
const RULES: usize = 4_096;

/// The most groups in the table.
const GROUPS: usize = 1_024;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredefinedRule {
    /// Its name.
    pub name: String,
    /// Of what PDRs without a precedence of their own stand for: lower is matched first. Without it, before all PDRs but those of 0.
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
    pub redirect: Option<Redirect>,
    /// Requests of HTTP get this field, where the PDR forwards.
    pub enrichment: Option<HeaderField>,
    /// DSCP of the outermost header that packets leave with, where the PDR forwards, in the place of what its FAR says.
    pub dscp: Option<u8>,
    /// Says the way of packets that leave outside of tunnels, where the PDR forwards, in the place of what its FAR says.
    pub policy: Option<Policy>,
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
            policy: None,
            mirror: None,
            is_open: (true, true),
            mbr: None,
            gbr: None,
            qfi: None,
            key: None,
        }
    }

    /// Whether it does something to packets that the PDR's FAR does not.
    pub(super) const fn treats(&self) -> bool {
        let treats_requests = self.resets || self.redirect.is_some() || self.enrichment.is_some();
        treats_requests || self.dscp.is_some() || self.policy.is_some() || self.mirror.is_some()
    }

    /// The PDR's FAR, and what the rule does besides.
    pub(super) fn far(&self, id: FarId, like: &Far) -> Far {
        let mut far = Far { id, ..like.clone() };
        if self.resets && far.apply_action == ApplyAction::Forward {
            far.apply_action = ApplyAction::Reset;
        }
        far.redirect = self.redirect.clone().or(far.redirect);
        far.enrichment = self.enrichment.clone().or(far.enrichment);
        if let (Some(dscp), Some(to)) = (self.dscp, &mut far.forwarding) {
            to.dscp = Some(dscp);
        }
        if let (Some(policy), Some(to)) = (self.policy, &mut far.forwarding) {
            to.policy = Some(policy);
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

    pub(super) fn has_qer(&self) -> bool {
        self.is_open != (true, true) || self.mbr.is_some() || self.gbr.is_some() || self.qfi.is_some()
    }

    pub(super) fn qer(&self, id: QerId) -> Qer {
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
    pub(super) rules: Vec<PredefinedRule>,
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

    /// These, and others behind them; groups may be of both.
    ///
    /// # Errors
    /// As [`Predefined::new`], of both together.
    pub fn with(
        &self,
        rules: Vec<PredefinedRule>,
        groups: &[(String, Vec<String>)],
    ) -> Result<Self, PredefinedError> {
        let members = |name: &str| self.named(name).map(|rule| rule.name.clone()).collect();
        let mut own: Vec<(String, Vec<String>)> =
            self.groups().map(|name| (name.to_owned(), members(name))).collect();
        let all = self.rules.iter().cloned().chain(rules).collect();
        own.extend_from_slice(groups);
        Self::new(all, &own)
    }

    /// All names, of rules and groups.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.names.keys()
    }

    /// Whether a rule or group has this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// The names of groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        let rules: HashSet<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
        self.names.keys().map(String::as_str).filter(move |name| !rules.contains(name))
    }

    /// A group that has a rule of these, and which; groups that are of these themselves are not looked at.
    pub fn group_with(&self, names: &BTreeSet<String>) -> Option<(&str, &str)> {
        let mut others = self.groups().filter(|group| !names.contains(*group));
        others.find_map(|group| {
            let rule = self.named(group).find(|rule| names.contains(&rule.name))?;
            Some((group, rule.name.as_str()))
        })
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

    /// The name, as text, if the table has it.
    pub(crate) fn known(&self, octets: &[u8]) -> Option<String> {
        name_of(octets).filter(|name| self.names.contains_key(*name)).map(str::to_owned)
    }

    /// What names stand for, each rule once, in order; what is not in the table stands for nothing.
    pub(super) fn of<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = (usize, &'a PredefinedRule)> {
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

/// A name as it is sent, as text. Some senders close it with a zero.
pub(crate) fn name_of(octets: &[u8]) -> Option<&str> {
    std::str::from_utf8(octets.strip_suffix(b"\0").unwrap_or(octets)).ok()
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
            qers: vec![QerId(1)].into(),
            urrs: vec![].into(),
        }],
        fars: vec![rule.far(FarId(1), &like)],
        qers: vec![rule.qer(QerId(1))],
        ..Rules::default()
    };
    alone.check().map_err(|error| PredefinedError::Impossible(rule.name.clone(), error))
}

const fn to_core() -> ForwardingParameters {
    let (destination_interface, instance) = (rules::Interface::Core, rules::Instance::DEFAULT);
    ForwardingParameters {
        destination_interface,
        instance,
        outer_header_creation: None,
        dscp: None,
        policy: None,
    }
}
