//! Where packets go whose FAR has a forwarding policy (TS 29.244 8.2.23): to the next hop of the policy, and not by the routes for where
//! they are sent.

use super::Ports;
use crate::config::{ConfigError, PolicyConfig};
use crate::frame::{NextHop, PortIndex};
use rules::Policy;
use std::num::NonZeroU16;

/// A policy by its place, counted from 1, as a step has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PolicyIndex(NonZeroU16);

impl PolicyIndex {
    /// Of the rules' policy among those that are configured.
    pub(crate) fn of(policy: Policy, configs: &[PolicyConfig]) -> Option<Self> {
        let place = configs.iter().position(|config| Policy::of(config.name.as_bytes()) == policy)?;
        Self::from_bits(u16::try_from(place + 1).ok()?)
    }

    pub(super) fn from_bits(bits: u16) -> Option<Self> {
        NonZeroU16::new(bits).map(Self)
    }

    pub(super) const fn bits(self) -> u16 {
        self.0.get()
    }

    /// Among those that are configured.
    pub(crate) fn place(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

/// Where a policy leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steered {
    /// It does not say.
    ByRoutes,
    To(NextHop),
    /// It says so of the other IP version alone: past a policy nothing goes.
    Nowhere,
}

/// All of them.
pub(crate) struct Policies(Box<[Steering]>);

struct Steering {
    policy: Policy,
    /// Of IPv4 and of IPv6.
    hops: [Option<NextHop>; 2],
    dscp: Option<u8>,
}

impl Policies {
    pub(crate) fn new(ports: &Ports, configs: &[PolicyConfig]) -> Result<Self, ConfigError> {
        if configs.len() > PolicyConfig::MOST {
            return Err(ConfigError::TooManyPolicies(configs.len()));
        }
        configs.iter().map(|config| steering(ports, config)).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn lead(&self, policy: PolicyIndex, is_ipv6: bool) -> Steered {
        self.0.get(policy.place()).map_or(Steered::ByRoutes, |steering| steering.lead(is_ipv6))
    }

    /// As [`Policies::lead`], and how it marks, of a policy by its name.
    pub(crate) fn find(&self, policy: Policy, is_ipv6: bool) -> Option<(Steered, Option<u8>)> {
        let steering = self.0.iter().find(|steering| steering.policy == policy)?;
        Some((steering.lead(is_ipv6), steering.dscp))
    }
}

impl Steering {
    fn lead(&self, is_ipv6: bool) -> Steered {
        match (self.hops, is_ipv6) {
            ([None, None], _) => Steered::ByRoutes,
            ([Some(hop), _], false) | ([_, Some(hop)], true) => Steered::To(hop),
            _ => Steered::Nowhere,
        }
    }
}

fn steering(ports: &Ports, config: &PolicyConfig) -> Result<Steering, ConfigError> {
    let mut hops = [None; 2];
    for (hop, via) in hops.iter_mut().zip(config.hops()) {
        let Some(address) = via else { continue };
        let port = config.port(ports.all(), address);
        let port = port.ok_or_else(|| ConfigError::UnreachablePolicy(config.name.clone(), address))?;
        *hop = Some(NextHop { port: port as PortIndex, address });
    }
    Ok(Steering { policy: Policy::of(config.name.as_bytes()), hops, dscp: config.dscp })
}
