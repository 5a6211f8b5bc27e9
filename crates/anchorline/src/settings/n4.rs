//! `[n4]`: what control planes find.

use super::actions::{self, Action, Done, Dscp, Header, Mirror};
use super::advertised::{self, Advertised};
use super::peers::{self, Peer};
use super::timers::{self, TimerSettings, Timers};
use super::values::Kbps;
use super::{DpeSettings, PortSettings};
use ::charging::Key;
use config::{Refusal, Spanned};
use ipnet::IpNet;
use n4::{Predefined, PredefinedRule, UePool};
use rules::{ApplicationId, BitRates, FlowDescription, Qfi, Redirect, SdfFilter};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A year.
const LONGEST_S: u32 = 31_536_000;

/// Pools of users' addresses.
const POOLS_MAX: usize = 64;

/// The longest name there is room for on the wire (TS 29.244 8.2.23 and 8.2.128).
const NAME_MAX: usize = 255;

/// `[n4]`.
#[derive(Debug)]
pub(crate) struct N4Settings {
    pub(crate) listen: SocketAddr,
    /// Of the other IP version.
    pub(crate) also_listen: Option<SocketAddr>,
    /// Where that is reached, as far as it is elsewhere.
    pub(crate) advertised: Advertised,
    pub(crate) associate: Vec<SocketAddr>,
    /// Whom PFCP is spoken with, besides.
    pub(crate) allow: Vec<IpNet>,
    /// How long a control plane may be silent; for ever, where absent.
    pub(crate) silent_max: Option<Duration>,
    /// How long sessions stay that a control plane has not named since it associated anew; for ever, where absent.
    pub(crate) stale_max: Option<Duration>,
    /// Usage reports to one control plane; 0 for no limit.
    pub(crate) usage_reports_per_s: u32,
    pub(crate) forwarding_policies: Vec<String>,
    pub(crate) unknown_network_instance: UnknownInstance,
    pub(crate) unknown_application: UnknownApplication,
    pub(crate) ue_pools: Vec<UePool>,
    pub(crate) predefined: Predefined,
    pub(crate) timers: TimerSettings,
    /// Most control planes at once.
    pub(crate) control_planes: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct N4 {
    listen: Spanned<SocketAddr>,
    also_listen: Option<Spanned<SocketAddr>>,
    advertise: Option<Spanned<IpAddr>>,
    advertise6: Option<Spanned<IpAddr>>,
    #[serde(default)]
    associate: Vec<Peer>,
    allow: Option<Spanned<Vec<Spanned<String>>>>,
    silent_max_s: Option<Spanned<u32>>,
    stale_max_s: Option<Spanned<u32>>,
    usage_reports_per_s: Option<Spanned<u32>>,
    #[serde(default)]
    forwarding_policies: Vec<Spanned<String>>,
    #[serde(default)]
    unknown_network_instance: UnknownInstance,
    #[serde(default)]
    unknown_application: UnknownApplication,
    #[serde(default)]
    ue_pool: Vec<Pool>,
    #[serde(default)]
    predefined_rule: Vec<Rule>,
    #[serde(default)]
    predefined_group: Vec<Group>,
    #[serde(default)]
    timers: Timers,
    control_planes: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pool {
    name: Spanned<String>,
    prefix: Spanned<IpNet>,
    network_instance: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    precedence: Option<u32>,
    #[serde(default)]
    filters: Vec<Filter>,
    application: Option<Application>,
    #[serde(default)]
    action: Action,
    redirect: Option<Spanned<Redirect>>,
    header: Option<Spanned<Header>>,
    dscp: Option<Spanned<Dscp>>,
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
struct Group {
    name: String,
    rules: Vec<String>,
}

/// What a network instance stands for that no port is of, where some are of named ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UnknownInstance {
    /// The network of the ports without a name.
    #[default]
    Default,
    /// None: whoever names it is refused.
    Refuse,
}

/// What becomes of a PDR of an application that no content rule and no PFD tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UnknownApplication {
    /// Whoever names it is refused.
    #[default]
    Refuse,
    /// It matches nothing until somebody tells of it.
    Accept,
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

/// Without end where it is 0, or not said.
fn patience(value: Option<Spanned<u32>>) -> Result<Option<Duration>, Refusal> {
    let patience_s = timers::within(value, 0, 0..=LONGEST_S)?;
    Ok((patience_s > 0).then(|| Duration::from_secs(patience_s.into())))
}

/// Makes settings of values that fit together, and the ports of the data plane.
pub(super) fn check(n4: N4, dpe: &DpeSettings) -> Result<N4Settings, Refusal> {
    for listen in [Some(&n4.listen), n4.also_listen.as_ref()].into_iter().flatten() {
        if listen.get_ref().ip().is_unspecified() {
            return Err(Refusal::of(listen, "peers are told this address: it cannot be 0.0.0.0 or ::"));
        }
    }
    let is_like_the_first =
        |also: &&Spanned<SocketAddr>| also.get_ref().is_ipv4() == n4.listen.get_ref().is_ipv4();
    if let Some(also) = n4.also_listen.as_ref().filter(is_like_the_first) {
        return Err(Refusal::of(also, "this is for the other IP version than that of listen"));
    }
    let served = [Some(&n4.listen), n4.also_listen.as_ref()];
    let over_ipv4 = |is_ipv4| served.iter().flatten().any(|at| at.get_ref().is_ipv4() == is_ipv4);
    let said = [n4.advertise.as_ref(), n4.advertise6.as_ref()];
    let advertised = advertised::of_n4(said, [over_ipv4(true), over_ipv4(false)])?;
    n4.forwarding_policies.iter().try_for_each(check_name)?;
    check_pools(&n4.ue_pool, &dpe.network_instances())?;
    Ok(N4Settings {
        listen: n4.listen.into_inner(),
        also_listen: n4.also_listen.map(Spanned::into_inner),
        advertised,
        associate: n4.associate.into_iter().map(|peer| peer.0).collect(),
        allow: peers::allowed(n4.allow)?,
        silent_max: patience(n4.silent_max_s)?,
        stale_max: patience(n4.stale_max_s)?,
        usage_reports_per_s: timers::within(n4.usage_reports_per_s, 5_000, 0..=1_000_000)?,
        forwarding_policies: n4.forwarding_policies.into_iter().map(Spanned::into_inner).collect(),
        unknown_network_instance: n4.unknown_network_instance,
        unknown_application: n4.unknown_application,
        ue_pools: n4.ue_pool.into_iter().map(pool).collect(),
        predefined: predefined(n4.predefined_rule, n4.predefined_group, &dpe.ports)?,
        timers: timers::check(n4.timers)?,
        control_planes: timers::within(n4.control_planes, 64, 1..=4_096)? as usize,
    })
}

fn check_name(name: &Spanned<String>) -> Result<(), Refusal> {
    match (1..=NAME_MAX).contains(&name.get_ref().len()) {
        true => Ok(()),
        false => Err(Refusal::of(name, "a name has 1 to 255 octets")),
    }
}

/// The name of a network that users of this pool alone are in.
fn network<'a>(pool: &Pool, networks: &'a [String]) -> Option<&'a String> {
    let name = pool.network_instance.as_ref()?;
    networks.iter().find(|network| network.eq_ignore_ascii_case(name))
}

fn check_pools(pools: &[Pool], networks: &[String]) -> Result<(), Refusal> {
    if pools.len() > POOLS_MAX {
        return Err(Refusal::absent(format!("{} pools are more than the {POOLS_MAX} allowed", pools.len())));
    }
    for (at, pool) in pools.iter().enumerate() {
        check_name(&pool.name)?;
        let others = pools.get(..at).unwrap_or_default();
        if others.iter().any(|other| other.name.get_ref() == pool.name.get_ref()) {
            return Err(Refusal::of(&pool.name, "another pool has this name"));
        }
        let prefix = pool.prefix.get_ref();
        if matches!(prefix, IpNet::V6(prefix) if prefix.prefix_len() > 64) {
            return Err(Refusal::of(&pool.prefix, "each user gets a prefix of 64 bits: it cannot be longer"));
        }
        let overlaps = |other: &Pool| {
            other.prefix.get_ref().contains(&prefix.network())
                || prefix.contains(&other.prefix.get_ref().network())
        };
        let of = network(pool, networks);
        let is_apart =
            |other: &Pool| of.is_some() && network(other, networks).is_some_and(|it| Some(it) != of);
        if others.iter().any(|other| overlaps(other) && !is_apart(other)) {
            return Err(Refusal::of(&pool.prefix, "overlaps with another pool"));
        }
    }
    Ok(())
}

fn pool(pool: Pool) -> UePool {
    UePool {
        name: pool.name.into_inner(),
        prefix: pool.prefix.into_inner().trunc(),
        network_instance: pool.network_instance.map(|name| name.to_ascii_lowercase()),
    }
}

fn predefined(rules: Vec<Rule>, groups: Vec<Group>, ports: &[PortSettings]) -> Result<Predefined, Refusal> {
    let alone =
        rules.iter().filter(|rule| rule.rating_group.is_none()).find_map(|rule| rule.service_id.as_ref());
    if let Some(service_id) = alone {
        return Err(Refusal::of(service_id, "it belongs to a rating_group, which is not there"));
    }
    rules.iter().try_for_each(|rule| check_actions(rule, ports))?;
    let groups: Vec<(String, Vec<String>)> =
        groups.into_iter().map(|group| (group.name, group.rules)).collect();
    let table = Predefined::new(rules.into_iter().map(rule).collect(), &groups);
    table.map_err(|error| Refusal::absent(format!("[[n4.predefined_rule]]: {error}")))
}

fn check_actions(rule: &Rule, ports: &[PortSettings]) -> Result<(), Refusal> {
    let Rule { redirect, header, dscp, mirror, .. } = rule;
    let all = Done {
        redirect: redirect.as_ref(),
        header: header.as_ref(),
        dscp: dscp.as_ref(),
        mirror: mirror.as_ref(),
    };
    actions::check(rule.action, all, ports)
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
        mirror: rule.mirror.map(|mirror| mirror.into_inner().into()),
        is_open: (rule.uplink_gate == Gate::Open, rule.downlink_gate == Gate::Open),
        mbr: rule.mbr_kbps.map(BitRates::from),
        gbr: rule.gbr_kbps.map(BitRates::from),
        qfi: rule.qfi.map(|qfi| qfi.0),
        key: rule
            .rating_group
            .map(|rating_group| Key { rating_group, service_id: rule.service_id.map(Spanned::into_inner) }),
        ..PredefinedRule::new(rule.name)
    }
}
