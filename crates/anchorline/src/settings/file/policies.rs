//! `[[dpe.forwarding_policy]]`: where packets go whose FAR gives the name of one.

use super::Port;
use super::ports::{ipv4, ipv6, is_ethernet};
use crate::settings::actions::Dscp;
use config::{Refusal, Spanned};
use dataplane::PolicyConfig;
use rules::{Instance, Interface, Policy};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForwardingPolicy {
    name: Spanned<String>,
    via: Option<Spanned<Ipv4Addr>>,
    via6: Option<Spanned<Ipv6Addr>>,
    network_instance: Option<Spanned<String>>,
    dscp: Option<Dscp>,
}

/// Makes policies of what is written, in its order.
pub(super) fn check(policies: Vec<ForwardingPolicy>, ports: &[Port]) -> Result<Vec<PolicyConfig>, Refusal> {
    if policies.len() > PolicyConfig::MOST {
        let (count, most) = (policies.len(), PolicyConfig::MOST);
        return Err(Refusal::absent(format!("{count} forwarding policies are more than the {most} allowed")));
    }
    for (at, policy) in policies.iter().enumerate() {
        check_name(&policy.name, policies.get(..at).unwrap_or_default())?;
        check_network(policy, ports)?;
        policy.via.as_ref().map_or(Ok(()), |via| check_hop(policy, via, ports))?;
        policy.via6.as_ref().map_or(Ok(()), |via| check_hop(policy, via, ports))?;
    }
    Ok(policies.into_iter().map(policy).collect())
}

/// Names are told apart by a digest.
fn check_name(name: &Spanned<String>, others: &[ForwardingPolicy]) -> Result<(), Refusal> {
    let own = name.get_ref();
    if !(1..=PolicyConfig::NAME_MAX).contains(&own.len()) {
        return Err(Refusal::of(name, "a forwarding policy has a name of 1 to 128 octets"));
    }
    let digest = Policy::of(own.as_bytes());
    let same = others.iter().find(|other| Policy::of(other.name.get_ref().as_bytes()) == digest);
    match same.map(|other| other.name.get_ref() == own) {
        None => Ok(()),
        Some(true) => Err(Refusal::of(name, "another forwarding policy has this name")),
        Some(false) => {
            Err(Refusal::of(name, "cannot be told apart from the name of another forwarding policy"))
        }
    }
}

fn check_network(policy: &ForwardingPolicy, ports: &[Port]) -> Result<(), Refusal> {
    let Some(name) = &policy.network_instance else { return Ok(()) };
    if policy.via.is_none() && policy.via6.is_none() {
        return Err(Refusal::of(name, "says by which port a next hop is reached, and there is none"));
    }
    match ports.iter().any(|port| is_of(port, name)) {
        true => Ok(()),
        false => Err(Refusal::of(name, "is the network instance of no port")),
    }
}

/// No user is led into the access network, and none to the node itself.
fn check_hop<T>(policy: &ForwardingPolicy, via: &Spanned<T>, ports: &[Port]) -> Result<(), Refusal>
where
    T: Copy + Into<IpAddr> + std::fmt::Display,
{
    let address: IpAddr = (*via.get_ref()).into();
    let is_ours = |port: &Port| match address {
        IpAddr::V4(via) => ipv4(port).is_some_and(|own| own.addr() == via),
        IpAddr::V6(via) => ipv6(port).is_some_and(|own| own.addr() == via),
    };
    if ports.iter().any(is_ours) {
        return Err(Refusal::of(via, "is an address of this node"));
    }
    let reaches = |port: &Port| match address {
        IpAddr::V4(via) => ipv4(port).is_some_and(|own| own.contains(&via)),
        IpAddr::V6(via) => ipv6(port).is_some_and(|own| own.contains(&via)),
    };
    let is_meant = |port: &Port| policy.network_instance.as_ref().is_none_or(|name| is_of(port, name));
    let may_be = |port: &&Port| !is_ethernet(port) && Interface::from(port.interface) != Interface::Access;
    match ports.iter().filter(may_be).any(|port| is_meant(port) && reaches(port)) {
        true => Ok(()),
        false => Err(Refusal::of(via, "is in the subnet of no port of the core side or the SGi-LAN")),
    }
}

fn is_of(port: &Port, name: &Spanned<String>) -> bool {
    port.network_instance.as_ref().is_some_and(|own| own.get_ref().eq_ignore_ascii_case(name.get_ref()))
}

fn policy(policy: ForwardingPolicy) -> PolicyConfig {
    PolicyConfig {
        name: policy.name.into_inner(),
        via: policy.via.map(Spanned::into_inner),
        via6: policy.via6.map(Spanned::into_inner),
        instance: policy.network_instance.map(|name| Instance::of(name.get_ref())),
        dscp: policy.dscp.map(|dscp| dscp.0),
    }
}
