//! What an operator sets.

use crate::offline::Charging;
use crate::pools::UePool;
use crate::predefined::Predefined;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use pfcp::NodeId;
use rules::{Instance, Interface, Policy};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A limit on everything that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Associations.
    pub peers: usize,
    /// Sessions.
    pub sessions: usize,
    /// Tunnel endpoints of ours.
    pub tunnels: usize,
    /// Requests of one session that wait for the one before.
    pub waiting: usize,
    /// Answers remembered for requests that come again: enough for as long as peers ask again (T1 x N1), at 100,000 a second.
    pub answers: usize,
    /// Octets of these.
    pub answer_octets: usize,
    /// Requests of ours about sessions that wait for an answer.
    pub requests: usize,
    /// Tunnels of peers lately reported as gone.
    pub reports: usize,
    /// Applications that PFDs were provisioned for.
    pub pfd_applications: usize,
    /// Content rules made of PFDs; at most as many as are reserved for them.
    pub pfd_rules: usize,
    /// Sessions that end in one go, where very many end together: some milliseconds, in which nobody is heard.
    pub portion: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            peers: 64,
            sessions: 100_000,
            tunnels: 400_000,
            waiting: 8,
            answers: 1 << 20,
            answer_octets: 128 << 20,
            requests: 16_384,
            reports: 4_096,
            pfd_applications: 1_024,
            pfd_rules: 10_000,
            portion: 500,
        }
    }
}

/// 3GPP Interface Types, by their numbers of six bits (TS 29.244 8.2.118).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceTypes(u64);

impl InterfaceTypes {
    /// None.
    pub const NONE: Self = Self(0);
    /// S1-U and N3 of 3GPP access: where base stations are.
    pub(crate) const RADIO: [u8; 2] = [0, 11];

    /// These; a number of more than six bits is none.
    pub fn of(types: impl IntoIterator<Item = u8>) -> Self {
        let bits = types.into_iter().filter_map(|number| 1u64.checked_shl(number.into()));
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// Whether it is among them; `None` where none is named.
    pub(crate) fn say(self, number: u8) -> Option<bool> {
        (self != Self::NONE).then(|| self.0.checked_shr(number.into()).is_some_and(|bits| bits & 1 == 1))
    }
}

/// Addresses at which GTP-U is served: those of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtpuAddress {
    /// The side the port is on.
    pub interface: Interface,
    /// The network instance it is of.
    pub instance: Instance,
    /// The 3GPP interfaces it is for; none: for any.
    pub interface_types: InterfaceTypes,
    /// Over IPv4.
    pub ipv4: Ipv4Addr,
    /// Over IPv6, if it is served there.
    pub ipv6: Option<Ipv6Addr>,
    /// What peers reach it by over IPv4, if that is another address: one that is translated to it, 1:1.
    pub advertise: Option<Ipv4Addr>,
    /// The same over IPv6.
    pub advertise6: Option<Ipv6Addr>,
}

impl GtpuAddress {
    /// On the access side, over IPv4.
    pub const fn access(ipv4: Ipv4Addr) -> Self {
        Self {
            interface: Interface::Access,
            instance: Instance::DEFAULT,
            interface_types: InterfaceTypes::NONE,
            ipv4,
            ipv6: None,
            advertise: None,
            advertise6: None,
        }
    }
}

/// A forwarding policy, of which the data plane knows what it does (TS 29.244 8.2.23).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingPolicy {
    /// As control planes say it.
    pub name: String,
    /// The network its next hops are in, if it is of one: FARs of others may not give it.
    pub instance: Option<Instance>,
}

impl ForwardingPolicy {
    /// One for any network.
    pub fn of_any(name: impl Into<String>) -> Self {
        Self { name: name.into(), instance: None }
    }
}

/// How a node is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What we call ourselves.
    pub node_id: NodeId,
    /// Where peers reach us with PFCP: goes into our F-SEIDs, both addresses where there are both.
    pub ipv4: Option<Ipv4Addr>,
    /// Over IPv6.
    pub ipv6: Option<Ipv6Addr>,
    /// Where GTP-U is served: goes into our F-TEIDs, unless something else is advertised. Not empty; in the order in which they
    /// are chosen.
    pub gtpu: Vec<GtpuAddress>,
    /// Names of network instances, in lower case: users' addresses are unique in each. Without any, every name stands for the
    /// one network there is.
    pub network_instances: Vec<String>,
    /// Other names are refused; if not, they stand for the network without a name.
    pub refuses_unknown_instances: bool,
    /// Off the access side every port is of a network with a name: rules of none would carry nothing there, and are refused.
    pub has_no_nameless_network: bool,
    /// Forwarding policies that the data plane has, and control planes may give.
    pub forwarding_policies: Vec<ForwardingPolicy>,
    /// Rules and groups of them that control planes switch on by name.
    pub predefined: Predefined,
    /// What is charged here, if anything is.
    pub charging: Option<Charging>,
    /// Where users' addresses are chosen from, if control planes leave that to us.
    pub ue_pools: Vec<UePool>,
    /// Control planes to associate with from our side; others may come by themselves.
    pub associate: Vec<SocketAddr>,
    /// Whom PFCP is spoken with, beside those of `associate`: from other addresses nothing is heard, and nothing is sent there.
    pub allow: Vec<IpNet>,
    /// How long an associated peer that was there may be silent: then its association is over. For ever, where absent.
    pub silent_max: Option<Duration>,
    /// How long sessions stay that a control plane has not named since it associated anew without having restarted. For ever, where
    /// absent.
    pub stale_max: Option<Duration>,
    /// Limits.
    pub limits: Limits,
    /// How often an associated peer is asked whether it is there, and a silent one to associate.
    pub heartbeat_interval: Duration,
    /// Until a request is sent again (TS 29.244 6.4).
    pub t1: Duration,
    /// How often a request is sent (TS 29.244 6.4).
    pub n1: u32,
    /// How long the data plane may take to obey. Less than a control plane waits, or it gives up first.
    pub apply_timeout: Duration,
    /// Between two usage reports of a session, unless a user waits for the second: what is due in between is told
    /// together.
    pub reports_apart: Duration,
    /// Before a report for which there was no room is tried again.
    pub report_interval: Duration,
    /// Usage reports of thresholds and periods to one control plane in a second; what is more takes turns. 0: without limit.
    pub usage_reports_per_s: u32,
    /// How long the data plane keeps packets of users who sleep: nobody is told of them any longer.
    pub kept_for: Duration,
    /// How long an answer is remembered. More than a control plane goes on asking.
    pub answer_lifetime: Duration,
}

impl Config {
    /// Whether users of different networks may have the same address.
    pub(crate) const fn has_instances(&self) -> bool {
        !self.network_instances.is_empty()
    }

    /// The network that a forwarding policy is of, if it is of one.
    pub(crate) fn network_of(&self, policy: Policy) -> Option<Instance> {
        let mut known = self.forwarding_policies.iter();
        known.find(|known| Policy::of(known.name.as_bytes()) == policy)?.instance
    }

    /// Whether PFCP is spoken with an address.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.iter().any(|prefix| prefix.contains(&address))
            || self.associate.iter().any(|wanted| wanted.ip().to_canonical() == address)
    }

    /// With the defaults for everything that has one.
    pub fn new(node_id: NodeId, address: impl Into<IpAddr>, access_address: Ipv4Addr) -> Self {
        let (ipv4, ipv6) = match address.into() {
            IpAddr::V4(address) => (Some(address), None),
            IpAddr::V6(address) => (None, Some(address)),
        };
        Self {
            node_id,
            ipv4,
            ipv6,
            gtpu: vec![GtpuAddress::access(access_address)],
            network_instances: vec![],
            refuses_unknown_instances: false,
            has_no_nameless_network: false,
            forwarding_policies: vec![],
            predefined: Predefined::default(),
            charging: None,
            ue_pools: vec![],
            associate: vec![],
            allow: vec![Ipv4Net::default().into(), Ipv6Net::default().into()],
            silent_max: None,
            stale_max: None,
            limits: Limits::default(),
            heartbeat_interval: Duration::from_secs(10),
            t1: Duration::from_secs(3),
            n1: 3,
            apply_timeout: Duration::from_secs(2),
            reports_apart: Duration::from_millis(100),
            report_interval: Duration::from_secs(1),
            usage_reports_per_s: 5_000,
            kept_for: Duration::from_secs(60),
            answer_lifetime: Duration::from_secs(30),
        }
    }
}
