//! A flow rule as a value, and as testpmd reads it.

use std::fmt::{self, Display, Write};
use std::net::{IpAddr, Ipv6Addr};

/// One layer of what a rule matches, from the outside in (`rte_flow_item`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Ethernet.
    Eth,
    /// A VLAN tag of this priority (PCP).
    VlanPriority(u8),
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// IPv4 with this type of service, all eight bits.
    Ipv4Tos(u8),
    /// IPv6 with this traffic class, all eight bits.
    Ipv6Class(u8),
    /// IPv4 of this DSCP, whatever its ECN bits.
    Ipv4Dscp(u8),
    /// IPv6 of this DSCP, whatever its ECN bits.
    Ipv6Dscp(u8),
    /// IP of the address's family to this address.
    To(IpAddr),
    /// IPv6 to an address with these first 64 bits.
    ToPrefix(u64),
    /// UDP.
    Udp,
    /// UDP to this port.
    UdpTo(u16),
    /// TCP.
    Tcp,
    /// SCTP.
    Sctp,
    /// GTP-U.
    Gtpu,
    /// GTP-U with this TEID.
    GtpuTeid(u32),
    /// GTP-U with a PDU session container (TS 38.415).
    Psc,
    /// With a container of this PDU type: 0 down, 1 up.
    PscType(u8),
    /// With a container of this QFI.
    PscQfi(u8),
}

impl Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eth => f.write_str("eth"),
            Self::VlanPriority(pcp) => {
                write!(f, "vlan tci spec {:#06x} tci mask 0xe000", u16::from(*pcp) << 13)
            }
            Self::Ipv4 => f.write_str("ipv4"),
            Self::Ipv6 => f.write_str("ipv6"),
            Self::Ipv4Tos(tos) => write!(f, "ipv4 tos is {tos}"),
            Self::Ipv6Class(class) => write!(f, "ipv6 tc is {class}"),
            Self::Ipv4Dscp(dscp) => write!(f, "ipv4 tos spec {:#04x} tos mask 0xfc", dscp << 2),
            Self::Ipv6Dscp(dscp) => write!(f, "ipv6 tc spec {:#04x} tc mask 0xfc", dscp << 2),
            Self::To(IpAddr::V4(address)) => write!(f, "ipv4 dst is {address}"),
            Self::To(IpAddr::V6(address)) => write!(f, "ipv6 dst is {address}"),
            Self::ToPrefix(prefix) => {
                write!(f, "ipv6 dst spec {} dst prefix 64", Ipv6Addr::from_bits(u128::from(*prefix) << 64))
            }
            Self::Udp => f.write_str("udp"),
            Self::UdpTo(port) => write!(f, "udp dst is {port}"),
            Self::Tcp => f.write_str("tcp"),
            Self::Sctp => f.write_str("sctp"),
            Self::Gtpu => f.write_str("gtpu"),
            Self::GtpuTeid(teid) => write!(f, "gtpu teid is {teid:#010x}"),
            Self::Psc => f.write_str("gtp_psc"),
            Self::PscType(pdu_type) => write!(f, "gtp_psc pdu_t is {pdu_type}"),
            Self::PscQfi(qfi) => write!(f, "gtp_psc qfi is {qfi}"),
        }
    }
}

/// What is hashed (`RTE_ETH_RSS_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RssType {
    /// IPv4 addresses.
    Ipv4,
    /// IPv6 addresses.
    Ipv6,
    /// Of addresses, the source alone.
    SourceOnly,
    /// Of addresses, the destination alone.
    DestinationOnly,
    /// Of IPv6 addresses, the first 64 bits.
    Prefix64,
    /// GTP-U, what of it is set elsewhere (i40e).
    Gtpu,
}

impl RssType {
    const fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::SourceOnly => "l3-src-only",
            Self::DestinationOnly => "l3-dst-only",
            Self::Prefix64 => "l3-pre64",
            Self::Gtpu => "gtpu",
        }
    }
}

/// Hash and choose among queues (`rte_flow_action_rss`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rss {
    /// What is hashed; empty where another rule says it.
    pub types: Vec<RssType>,
    /// 0: as the driver does; 1: outer headers; 2: headers in the tunnel.
    pub level: u32,
    /// Octets of the key if the rule sets it, else the port's.
    pub key: Vec<u8>,
    /// The queues in the order of the redirection table; the port's own table if empty.
    pub queues: Vec<u16>,
}

impl Display for Rss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rss")?;
        if self.level != 0 {
            write!(f, " func toeplitz level {}", self.level)?;
        }
        if !self.types.is_empty() {
            let types: Vec<&str> = self.types.iter().map(|kind| kind.name()).collect();
            write!(f, " types {} end", types.join(" "))?;
        }
        match self.key.is_empty() {
            // testpmd would otherwise take a key of its own.
            true if !self.types.is_empty() => f.write_str(" key_len 0")?,
            true => {}
            false => write!(f, " key {} key_len {}", hexadecimal(&self.key), self.key.len())?,
        }
        f.write_str(" queues")?;
        self.queues.iter().try_for_each(|queue| write!(f, " {queue}"))?;
        f.write_str(" end")
    }
}

pub(crate) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// What becomes of packets that match (`rte_flow_action`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A queue of several, by hash.
    Rss(Rss),
    /// This queue.
    Queue(u16),
    /// The rules of this group decide.
    Jump(u32),
}

impl Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rss(rss) => rss.fmt(f),
            Self::Queue(queue) => write!(f, "queue index {queue}"),
            Self::Jump(group) => write!(f, "jump group {group}"),
        }
    }
}

/// A flow rule for packets that come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The group it is in.
    pub group: u32,
    /// Lower goes first.
    pub priority: u32,
    /// Layers from the outside in; empty for all packets.
    pub pattern: Vec<Item>,
    /// What becomes of them.
    pub action: Action,
}

/// Pattern and action, as testpmd reads them.
impl Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pattern")?;
        self.pattern.iter().try_for_each(|item| write!(f, " {item} /"))?;
        write!(f, " end actions {} / end", self.action)
    }
}

impl Rule {
    /// In the first group, of the highest priority.
    pub const fn new(pattern: Vec<Item>, action: Action) -> Self {
        Self { group: 0, priority: 0, pattern, action }
    }

    /// As testpmd reads it, for `flow create` or `flow validate` as `verb`.
    pub fn testpmd(&self, verb: &str, port: u16) -> String {
        let mut text = format!("flow {verb} {port} ingress");
        if self.group != 0 {
            let _ = write!(text, " group {}", self.group);
        }
        if self.priority != 0 {
            let _ = write!(text, " priority {}", self.priority);
        }
        let _ = write!(text, " {self}");
        text
    }
}
