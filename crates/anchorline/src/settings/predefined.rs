//! `[[n4.predefined_rule]]` and `[[n4.predefined_group]]`: in the configuration, and as operators put them while a node runs.

use super::Around;
use super::actions::{self, Action, Done, Dscp, Header, Mirror};
use super::n4::NAME_MAX;
use super::values::Kbps;
use ::charging::Key;
use config::{ConfigError, Refusal, Spanned};
use n4::{Predefined, PredefinedError, PredefinedRule};
use rules::{ApplicationId, BitRates, FlowDescription, OuterHeader, Policy, Qfi, Redirect, SdfFilter};
use serde::Deserialize;

/// Rules, and groups with the names of theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) rules: Vec<PredefinedRule>,
    pub(crate) groups: Vec<(String, Vec<String>)>,
}

/// What operators put: the same tables, and nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    n4: Tables,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default)]
    predefined_rule: Vec<Rule>,
    #[serde(default)]
    predefined_group: Vec<Group>,
}

/// Reads what operators put. Whether all of it fits together with what there is, is not known here.
///
/// # Errors
/// What is wrong, where, and what is allowed.
pub(crate) fn read(text: &str, around: Around<'_>) -> Result<Parts, ConfigError> {
    config::parse(text, |document: Document| {
        parts(document.n4.predefined_rule, document.n4.predefined_group, around)
    })
}

/// The same, table by table: names, and texts that say what stands in the whole.
pub(crate) fn texts(text: &str) -> Vec<(String, String)> {
    let of = |array| config::each(text, "n4", array);
    of("predefined_rule").into_iter().chain(of("predefined_group")).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    name: Spanned<String>,
    precedence: Option<u32>,
    #[serde(default)]
    filters: Vec<Filter>,
    application: Option<Application>,
    #[serde(default)]
    action: Action,
    redirect: Option<Spanned<Redirect>>,
    header: Option<Spanned<Header>>,
    dscp: Option<Spanned<Dscp>>,
    forwarding_policy: Option<Spanned<String>>,
    mirror: Option<Spanned<Mirror>>,
    #[serde(default)]
    uplink_gate: Gate,
    #[serde(default)]
    downlink_gate: Gate,
    mbr_kbps: Option<Rates>,
    gbr_kbps: Option<Rates>,
    qfi: Option<QosFlow>,
    rating_group: Option<u32>,
    service_id: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    name: Spanned<String>,
    rules: Vec<Spanned<String>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Gate {
    #[default]
    Open,
    Closed,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rates {
    uplink: Kbps,
    downlink: Kbps,
}

impl From<Rates> for BitRates {
    fn from(rates: Rates) -> Self {
        Self { uplink_kbps: rates.uplink.0, downlink_kbps: rates.downlink.0 }
    }
}

/// A flow description as control planes write them.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Filter(SdfFilter);

impl TryFrom<String> for Filter {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let flow: FlowDescription = text.parse().map_err(|error| {
            format!("{error}; a filter reads like \"permit out ip from 203.0.113.0/24 to assigned\"")
        })?;
        Ok(Self(SdfFilter { flow: Some(flow), ..SdfFilter::default() }))
    }
}

/// The name of an application of the content rules.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Application(ApplicationId);

impl TryFrom<String> for Application {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        ApplicationId::new(&name).map(Self).ok_or("an application's name has 1 to 255 octets")
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "u8")]
struct QosFlow(Qfi);

impl TryFrom<u8> for QosFlow {
    type Error = &'static str;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        Qfi::try_from(value).map(Self)
    }
}

/// The table of them.
pub(super) fn predefined(
    rules: Vec<Rule>,
    groups: Vec<Group>,
    around: Around<'_>,
) -> Result<Predefined, Refusal> {
    let names = rules.iter().map(|rule| &rule.name).chain(groups.iter().map(|group| &group.name));
    let names: Vec<Spanned<String>> = names.cloned().collect();
    let members: Vec<Spanned<String>> = groups.iter().flat_map(|group| group.rules.clone()).collect();
    let Parts { rules, groups } = parts(rules, groups, around)?;
    Predefined::new(rules, &groups).map_err(|error| match blamed(&error, &names, &members) {
        Some(text) => Refusal::of(text, error.to_string()),
        None => Refusal::absent(format!("[[n4.predefined_rule]]: {error}")),
    })
}

/// What stands where it is wrong, of the names of rules and groups, in their order, and of what groups have.
fn blamed<'a>(
    error: &PredefinedError,
    names: &'a [Spanned<String>],
    members: &'a [Spanned<String>],
) -> Option<&'a Spanned<String>> {
    let mut names = names.iter();
    match error {
        PredefinedError::Twice(twice) => names.filter(|name| name.get_ref() == twice).nth(1),
        PredefinedError::Unknown(_, unknown) => members.iter().find(|member| member.get_ref() == unknown),
        PredefinedError::Name => names.find(|name| !(1..=NAME_MAX).contains(&name.get_ref().len())),
        PredefinedError::Impossible(rule, _) => names.find(|name| name.get_ref() == rule),
        PredefinedError::TooMany => None,
    }
}

fn parts(rules: Vec<Rule>, groups: Vec<Group>, around: Around<'_>) -> Result<Parts, Refusal> {
    let alone =
        rules.iter().filter(|rule| rule.rating_group.is_none()).find_map(|rule| rule.service_id.as_ref());
    if let Some(service_id) = alone {
        return Err(Refusal::of(service_id, "it belongs to a rating_group, which is not there"));
    }
    rules.iter().try_for_each(|rule| check_actions(rule, around))?;
    let members = |group: Group| group.rules.into_iter().map(Spanned::into_inner).collect();
    let groups = groups.into_iter().map(|group| (group.name.get_ref().clone(), members(group))).collect();
    Ok(Parts { rules: rules.into_iter().map(rule).collect(), groups })
}

fn check_actions(rule: &Rule, around: Around<'_>) -> Result<(), Refusal> {
    let Rule { redirect, header, dscp, forwarding_policy, mirror, .. } = rule;
    let all = Done {
        redirect: redirect.as_ref(),
        header: header.as_ref(),
        dscp: dscp.as_ref(),
        policy: forwarding_policy.as_ref(),
        mirror: mirror.as_ref(),
    };
    actions::check(rule.action, all, around)
}

fn rule(rule: Rule) -> PredefinedRule {
    PredefinedRule {
        precedence: rule.precedence,
        filters: rule.filters.into_iter().map(|filter| filter.0).collect(),
        application: rule.application.map(|application| application.0),
        drops: rule.action == Action::Drop,
        resets: rule.action == Action::Reset,
        redirect: rule.redirect.map(Spanned::into_inner),
        enrichment: rule.header.map(|header| header.into_inner().0),
        dscp: rule.dscp.map(|dscp| dscp.into_inner().0),
        policy: rule.forwarding_policy.map(|name| Policy::of(name.get_ref().as_bytes())),
        mirror: rule.mirror.map(|mirror| mirror.into_inner().into()),
        is_open: (rule.uplink_gate == Gate::Open, rule.downlink_gate == Gate::Open),
        mbr: rule.mbr_kbps.map(BitRates::from),
        gbr: rule.gbr_kbps.map(BitRates::from),
        qfi: rule.qfi.map(|qfi| qfi.0),
        key: rule
            .rating_group
            .map(|rating_group| Key { rating_group, service_id: rule.service_id.map(Spanned::into_inner) }),
        ..PredefinedRule::new(rule.name.into_inner())
    }
}

/// What a rule does, in words.
pub(crate) fn does(rule: &PredefinedRule) -> Vec<String> {
    let mirror = rule.mirror.and_then(|to| to.outer_header_creation);
    let all = [
        rule.drops.then(|| "drops its packets".to_owned()),
        rule.resets.then(|| "resets its connections".to_owned()),
        rule.redirect.as_ref().map(|to| format!("sends its users to {to}")),
        rule.enrichment.as_ref().map(|field| format!("puts the field {} into requests", field.name())),
        rule.dscp.map(|dscp| format!("marks its packets DSCP {dscp}")),
        rule.policy.map(|_| "says by which next hop its packets leave".to_owned()),
        mirror.map(|to| match to.header {
            OuterHeader::Gtpu(teid) => format!("copies its packets to {}, tunnel {teid}", to.address),
            OuterHeader::Udp(port) => format!("copies its packets to {}, UDP port {port}", to.address),
        }),
        (rule.is_open != (true, true)).then(|| "closes a gate".to_owned()),
        rule.mbr
            .map(|mbr| format!("holds it to {} kbit/s up and {} down", mbr.uplink_kbps, mbr.downlink_kbps)),
        rule.qfi.map(|qfi| format!("puts it into QoS flow {}", qfi.value())),
        rule.key.map(|key| format!("charges it under rating group {}", key.rating_group)),
    ];
    all.into_iter().flatten().collect()
}
