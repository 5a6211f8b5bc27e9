//! `[n4]`: what control planes find.

use super::advertised::{self, Advertised};
use super::peers::{self, Peer};
use super::predefined::{Group, Rule, predefined};
use super::timers::{self, TimerSettings, Timers};
use super::values::{Listen, Prefix};
use super::{DpeSettings, PortSettings};
use config::{Refusal, Spanned};
use ipnet::IpNet;
use n4::{Predefined, UePool};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A year.
const LONGEST_S: u32 = 31_536_000;

/// Pools of users' addresses.
const POOLS_MAX: usize = 64;

/// The longest name there is room for on the wire (TS 29.244 8.2.23 and 8.2.128).
pub(super) const NAME_MAX: usize = 255;

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
    listen: Spanned<Listen>,
    also_listen: Option<Spanned<Listen>>,
    advertise: Option<Spanned<IpAddr>>,
    advertise6: Option<Spanned<IpAddr>>,
    #[serde(default)]
    associate: Vec<Spanned<Peer>>,
    allow: Option<Spanned<Vec<Spanned<String>>>>,
    silent_max_s: Option<Spanned<u32>>,
    stale_max_s: Option<Spanned<u32>>,
    usage_reports_per_s: Option<Spanned<u32>>,
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
    prefix: Spanned<Prefix>,
    network_instance: Option<String>,
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

/// Without end where it is 0, or not said.
fn patience(value: Option<Spanned<u32>>) -> Result<Option<Duration>, Refusal> {
    let patience_s = timers::within(value, 0, 0..=LONGEST_S)?;
    Ok((patience_s > 0).then(|| Duration::from_secs(patience_s.into())))
}

/// Makes settings of values that fit together, and the ports of the data plane.
pub(super) fn check(n4: N4, dpe: &DpeSettings) -> Result<N4Settings, Refusal> {
    for listen in [Some(&n4.listen), n4.also_listen.as_ref()].into_iter().flatten() {
        if listen.get_ref().0.ip().is_unspecified() {
            return Err(Refusal::of(listen, "peers are told this address: it cannot be 0.0.0.0 or ::"));
        }
        if !config::is_of_one(listen.get_ref().0.ip()) {
            return Err(Refusal::of(
                listen,
                "peers are told this address: it cannot be that of a group or of everybody",
            ));
        }
        if listen.get_ref().0.port() == 0 {
            return Err(Refusal::of(
                listen,
                "control planes have to know the port, which is 8805 mostly; 0 is none",
            ));
        }
    }
    let is_like_the_first =
        |also: &&Spanned<Listen>| also.get_ref().0.is_ipv4() == n4.listen.get_ref().0.is_ipv4();
    if let Some(also) = n4.also_listen.as_ref().filter(is_like_the_first) {
        return Err(Refusal::of(also, "this is for the other IP version than that of listen"));
    }
    let served = [Some(&n4.listen), n4.also_listen.as_ref()];
    let own: Vec<SocketAddr> = served.iter().flatten().map(|at| at.get_ref().0).collect();
    let over_ipv4 = |is_ipv4| served.iter().flatten().any(|at| at.get_ref().0.is_ipv4() == is_ipv4);
    let said = [n4.advertise.as_ref(), n4.advertise6.as_ref()];
    let advertised = advertised::of_n4(said, [over_ipv4(true), over_ipv4(false)])?;
    check_pools(&n4.ue_pool, &dpe.network_instances())?;
    n4.ue_pool.iter().try_for_each(|pool| check_ports(pool, &dpe.ports))?;
    Ok(N4Settings {
        listen: n4.listen.into_inner().0,
        also_listen: n4.also_listen.map(|listen| listen.into_inner().0),
        advertised,
        associate: peers::asked(n4.associate, &own)?,
        allow: peers::allowed(n4.allow)?,
        silent_max: patience(n4.silent_max_s)?,
        stale_max: patience(n4.stale_max_s)?,
        usage_reports_per_s: timers::within(n4.usage_reports_per_s, 5_000, 0..=1_000_000)?,
        unknown_network_instance: n4.unknown_network_instance,
        unknown_application: n4.unknown_application,
        ue_pools: n4.ue_pool.into_iter().map(pool).collect(),
        predefined: predefined(n4.predefined_rule, n4.predefined_group, dpe.around())?,
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
        let prefix = pool.prefix.get_ref().0;
        peers::whole(prefix).map_err(|why| Refusal::of(&pool.prefix, why))?;
        let first = prefix.network();
        if first.is_unspecified() || first.is_loopback() || first.is_multicast() {
            return Err(Refusal::of(&pool.prefix, "no user can have these addresses"));
        }
        if matches!(prefix, IpNet::V6(prefix) if prefix.prefix_len() > 64) {
            return Err(Refusal::of(&pool.prefix, "each user gets a prefix of 64 bits: it cannot be longer"));
        }
        let overlaps = |other: &Pool| {
            other.prefix.get_ref().0.contains(&prefix.network())
                || prefix.contains(&other.prefix.get_ref().0.network())
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

/// What is sent to an address of ours is for us, in every network: a user who had it would get nothing.
fn check_ports(pool: &Pool, ports: &[PortSettings]) -> Result<(), Refusal> {
    let prefix = pool.prefix.get_ref().0;
    for port in ports.iter().filter(|port| !port.ethernet) {
        let own = [Some(IpAddr::V4(port.address.addr())), port.address6.map(|own| IpAddr::V6(own.addr()))];
        if let Some(address) = own.into_iter().flatten().find(|address| prefix.contains(address)) {
            let why =
                format!("contains {address}, the address of port {}, which no user can have", port.name);
            return Err(Refusal::of(&pool.prefix, why));
        }
    }
    Ok(())
}

fn pool(pool: Pool) -> UePool {
    UePool {
        name: pool.name.into_inner(),
        prefix: pool.prefix.into_inner().0,
        network_instance: pool.network_instance.map(|name| name.to_ascii_lowercase()),
    }
}
