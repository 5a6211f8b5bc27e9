//! What a worker must know before the first packet.

use crate::lasting::Lasting;
use crate::side::Side;
use crate::state::NoMemory;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use packet::ethernet::MacAddress;
use rules::{BitRates, Instance, Interface};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;

/// Most ports of an engine.
pub(crate) const PORTS_MAX: usize = 16;

/// One port as the data path sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// For counters and messages.
    pub name: String,
    /// The DPDK device behind it, for statistics.
    pub device: String,
    /// The side it is on.
    pub interface: Interface,
    /// The network instance it belongs to: users' addresses and routes of ports of different ones may be the same. Of
    /// ports on the access side, without effect.
    pub instance: Instance,
    /// Our Ethernet address there.
    pub mac: MacAddress,
    /// Our address and subnet there.
    pub address: Ipv4Net,
    /// Our IPv6 address and subnet there, if any.
    pub address6: Option<Ipv6Net>,
    /// Bytes of the longest IP packet.
    pub mtu: u16,
    /// The VLAN it is on, 1 to 4094: its frames are tagged, both ways (IEEE 802.1Q).
    pub vlan: Option<u16>,
    /// Users' TCP connections agree on segments that fit this port and, on the access side, its tunnels. Where several
    /// ports ask for it, the smallest counts for all connections.
    pub mss_clamp: bool,
    /// It is an Ethernet data network: frames pass as they are, to and from sessions that carry them, and we have no
    /// address there. One of a network instance at most.
    pub ethernet: bool,
    /// The kernel's interface that gets what is addressed to the port and not spoken here; dropped, where there is none.
    pub punt: Option<String>,
}

impl PortConfig {
    /// Where its packets come from.
    #[inline]
    pub(crate) const fn side(&self) -> Side {
        Side::new(self.interface, self.instance)
    }

    /// Our addresses there; none on one of Ethernet.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let second = self.address6.map(|address| IpAddr::V6(address.addr()));
        let all = std::iter::once(IpAddr::V4(self.address.addr())).chain(second);
        all.take(if self.ethernet { 0 } else { 2 })
    }
}

/// The side by which packets reach the other end of a tunnel that leads to this side. They are packets of ours, from an
/// address of ours, so they may leave by a port of another side where that is where the other end is: a gateway of one arm
/// has S1-U and S5-U at one port. A side's own subnets come first, then those of others; beyond all of them, packets leave
/// by their own side, or where no port is on it, by that of the first port.
pub(crate) fn side_of_peer(ports: &[PortConfig], side: Side, peer: IpAddr) -> Side {
    let with_address = || ports.iter().filter(|port| !port.ethernet);
    let is_near = |port: &&PortConfig| match peer {
        IpAddr::V4(peer) => port.address.contains(&peer) && port.address.addr() != peer,
        IpAddr::V6(peer) => {
            port.address6.is_some_and(|address| address.contains(&peer) && address.addr() != peer)
        }
    };
    let own = || with_address().filter(|port| port.side() == side);
    if own().any(|port| is_near(&port)) {
        return side;
    }
    let near = with_address().find(is_near);
    let instead = near.or_else(|| with_address().next().filter(|_| own().next().is_none()));
    instead.map_or(side, PortConfig::side)
}

/// Bytes of the longest IP packet that every port of a side takes; `u16::MAX` where there is none.
pub(crate) fn least_mtu(ports: &[PortConfig], side: Side) -> u16 {
    let of_side = ports.iter().filter(|port| port.side() == side && !port.ethernet);
    of_side.map(|port| port.mtu).min().unwrap_or(u16::MAX)
}

/// A route beyond the subnets of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// To where.
    pub prefix: IpNet,
    /// The next hop, in the subnet of one of the ports.
    pub via: IpAddr,
    /// The network instance of that port; `None`: of whichever port the next hop is in the subnet of.
    pub instance: Option<Instance>,
}

/// A forwarding policy (TS 29.244 8.2.23): packets of FARs that name it go to its next hops, whatever the routes say (TS 23.501
/// 5.6.16, steering of traffic on N6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyConfig {
    /// As control planes say it.
    pub name: String,
    /// The next hop of IPv4 packets, in the subnet of a port that is not of the access side.
    pub via: Option<Ipv4Addr>,
    /// The same of IPv6 packets. With one of the two alone, packets of the other kind are dropped; with neither, all go by the
    /// routes.
    pub via6: Option<Ipv6Addr>,
    /// The network instance of the port; `None`: of whichever the next hop is in the subnet of.
    pub instance: Option<Instance>,
    /// Marks the packets, where the FAR does not.
    pub dscp: Option<u8>,
}

impl PolicyConfig {
    /// Most of them.
    pub const MOST: usize = 256;

    /// Octets of a name at most: the longest trace, which names one with each packet, has to fit a frame of the link.
    pub const NAME_MAX: usize = 128;

    /// Its next hops, of IPv4 and of IPv6.
    pub(crate) fn hops(&self) -> [Option<IpAddr>; 2] {
        [self.via.map(IpAddr::V4), self.via6.map(IpAddr::V6)]
    }

    /// The port by which one of them is reached: no user is led into the access network.
    pub(crate) fn port(&self, ports: &[PortConfig], via: IpAddr) -> Option<usize> {
        let reaches = |port: &PortConfig| match via {
            IpAddr::V4(via) => port.address.contains(&via) && port.address.addr() != via,
            IpAddr::V6(via) => {
                port.address6.is_some_and(|address| address.contains(&via) && address.addr() != via)
            }
        };
        let is_meant = |port: &PortConfig| self.instance.is_none_or(|meant| meant == port.instance);
        let may_be = |port: &PortConfig| port.interface != Interface::Access && !port.ethernet;
        ports.iter().position(|port| may_be(port) && is_meant(port) && reaches(port))
    }
}

/// How much of everything a worker holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions.
    pub sessions: usize,
    /// PDRs of all sessions together: a session counts as the next power of two of its PDRs that differ, of twice its
    /// QERs that limit and of twice its URRs, whichever is most, and as two at least. Of those beyond two a session,
    /// memory is taken when they are first in use.
    pub pdrs: usize,
    /// Bytes that the rules of all sessions may take beside the tables, as [`TableBytes`](crate::TableBytes) has it; no limit
    /// where there is none.
    pub rule_bytes: Option<usize>,
    /// Flows remembered; more are served, and cost more.
    pub flows: usize,
    /// A flow without packets for so long is forgotten.
    pub flow_age_ns: u64,
    /// The same of connections over TCP whose application is known; at least as long, and 18 hours at most.
    pub connection_age_ns: u64,
    /// Flows looked at for what application they are of, at once; 4.5 kB each, taken with the first content rules.
    pub inspections: usize,
    /// Peers that tunnels lead to: gNBs, eNBs, other gateways.
    pub peers: usize,
    /// Meters that several sessions share, and meters that count packets.
    pub meters_apart: usize,
    /// Connections over TCP of users whose requests get a field, by header enrichment.
    pub connections: usize,
    /// Flows of users who are sent to another address; counted in groups of 512, of which a session has one.
    pub redirections: usize,
    /// Packets kept for sleeping users, all together.
    pub kept: usize,
    /// Packets kept for one session, unless its BAR asks for less.
    pub kept_per_session: u16,
    /// A packet is kept no longer.
    pub kept_ns: u64,
    /// How far a packet may be ahead of its MBR.
    pub burst_ns: u64,
    /// How far one may be that catches up on what was not used of its MBR in the last second; 0 where nothing is to be caught up.
    pub catch_up_ns: u64,
    /// What users are held to, each way, whose rules have no limit for it.
    pub session_mbr: Option<BitRates>,
    /// Neighbours on all ports.
    pub neighbours: usize,
    /// Packets waiting for one neighbour's Ethernet address.
    pub held_per_neighbour: usize,
    /// Datagrams in fragments, addressed to us, put together at once on each side; 2 kB each.
    pub reassembled: usize,
    /// Networks behind users, of all sessions.
    pub framed_routes: usize,
    /// Sessions that carry Ethernet frames of a data network.
    pub ethernet_sessions: usize,
    /// MAC addresses behind all of them.
    pub macs: usize,
    /// Copies of frames for many users made in a second.
    pub frame_copies_per_s: u32,
    /// Error Indications sent in a second on each side.
    pub error_indications_per_s: u32,
    /// ICMP errors sent in a second of each kind: too long, no hop left, no route or nobody there. A user has an eighth of them.
    pub icmp_errors_per_s: u32,
    /// Packets that a port gives the kernel in a second, as many besides that are of routing protocols, and an eighth as many that
    /// tell of neighbours: what a flood to a port's address may cost the control side, which writes each by a call of its own. A
    /// whole table of BGP passes within seconds.
    pub punts_per_s: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 100_000,
            pdrs: 200_000,
            rule_bytes: None,
            flows: 1 << 20,
            flow_age_ns: 300_000_000_000,
            connection_age_ns: 7_440_000_000_000,
            inspections: 8_192,
            peers: 4_096,
            meters_apart: 16_384,
            connections: 4_096,
            redirections: 16_384,
            kept: 16_384,
            kept_per_session: 128,
            kept_ns: 60_000_000_000,
            burst_ns: 10_000_000,
            catch_up_ns: 250_000_000,
            session_mbr: None,
            neighbours: 4_096,
            held_per_neighbour: 16,
            reassembled: 64,
            framed_routes: 16_384,
            ethernet_sessions: 1_024,
            macs: 8_192,
            frame_copies_per_s: 100_000,
            error_indications_per_s: 100,
            icmp_errors_per_s: 1_000,
            punts_per_s: 10_000,
        }
    }
}

/// When peers in use are asked whether they are there (TS 29.281 7.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Between two questions, in nanoseconds; 0 asks nobody. The specification allows no less than 60 s.
    pub period_ns: u64,
    /// T3-RESPONSE: a question not answered for so long is asked again, in nanoseconds.
    pub t3_ns: u64,
    /// N3-REQUESTS: a question is asked so often before the path has failed.
    pub n3: u32,
}

impl Echo {
    /// Nobody is asked.
    pub const OFF: Self = Self { period_ns: 0, t3_ns: 0, n3: 0 };
}

impl Default for Echo {
    fn default() -> Self {
        Self { period_ns: 60_000_000_000, t3_ns: 5_000_000_000, n3: 3 }
    }
}

/// The whole configuration of a data path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// At most 16.
    pub ports: Vec<PortConfig>,
    /// In any order.
    pub routes: Vec<Route>,
    /// Each of another name, at most [`PolicyConfig::MOST`].
    pub policies: Vec<PolicyConfig>,
    /// How much of everything.
    pub limits: Limits,
    /// When peers are asked whether they are there.
    pub echo: Echo,
    /// Resolvers whose answers name servers for all users of a network; those of others do for who asked.
    pub resolvers: Vec<IpAddr>,
    /// Of this life of the engine, unlike those before it: counts of usage begin at zero with each.
    pub epoch: u64,
    /// Whether it is yet to be told which sessions there are, by a first resynchronisation: no peer hears before that a tunnel
    /// leads nowhere, as base stations release users for it (TS 23.527 5.3.2.1).
    pub awaits_sessions: bool,
    /// Of hashes, so that nobody outside can aim at one place of a table.
    pub seed: u64,
    /// Where what is counted lies, if it is to outlive the process.
    pub lasting: Option<Arc<Lasting>>,
}

impl From<NoMemory> for ConfigError {
    fn from(error: NoMemory) -> Self {
        Self::NoMemory(error.bytes >> 20)
    }
}

/// A configuration no data path can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// See [`Config::ports`].
    #[error("{0} ports are more than the {PORTS_MAX} an engine can have")]
    TooManyPorts(usize),
    /// See [`Config::lasting`].
    #[error("what is counted cannot lie in {}: {reason}", path.display())]
    Lasting {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No port reaches the next hop.
    #[error("route {0} goes via {1}, which is in the subnet of no port")]
    UnreachableNextHop(IpNet, IpAddr),
    /// No port reaches the next hop of a policy.
    #[error("forwarding policy {0} goes via {1}, which is in the subnet of no port of the core side")]
    UnreachablePolicy(String, IpAddr),
    /// See [`Config::policies`].
    #[error("{0} forwarding policies are more than the {most} an engine can have", most = PolicyConfig::MOST)]
    TooManyPolicies(usize),
    /// See [`crate::Crew`].
    #[error(
        "{0} workers, {1} of which only distribute, cannot be: an engine has 1 to 32, one of which owns sessions"
    )]
    Crew(usize, usize),
    /// Two ports of an Ethernet data network would be a bridge between them.
    #[error("two ports of one network instance are of Ethernet: frames would not know by which to leave")]
    TwoEthernetPorts,
    /// An Ethernet data network is beyond the core.
    #[error("port {0} is of Ethernet and not on the core side")]
    EthernetAccess(String),
    /// Two ports with one address.
    #[error("address {0} stands on two ports")]
    DoubleAddress(IpAddr),
    /// What is set aside for PDRs. In MiB.
    #[error("this machine cannot set {0} MiB aside for PDRs: lower pdrs, or add memory")]
    NoMemory(usize),
}
