//! Values that are right by construction; each refusal says what is allowed.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rules::Interface;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Where packet memory comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HugePages {
    /// From huge pages where they can be had.
    #[default]
    Auto,
    /// From huge pages, or not at all.
    Require,
    /// From ordinary memory.
    Never,
}

/// A device of DPDK's; of a PCI address the one form that everybody behind the configuration knows it by.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Device(pub(super) String);

impl TryFrom<String> for Device {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        host::device(&text).map(Self).ok_or("a PCI address is written as \"0000:3b:00.0\" (lspci -D)")
    }
}

/// What a worker does when no packet waits, by name.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Idle {
    #[default]
    #[serde(alias = "spin")]
    Poll,
    Pause,
    Sleep,
    Monitor,
    Scale,
}

impl From<Idle> for dpdk::Idle {
    fn from(idle: Idle) -> Self {
        match idle {
            Idle::Poll => Self::Poll,
            Idle::Pause => Self::Pause,
            Idle::Sleep => Self::Sleep,
            Idle::Monitor => Self::Monitor,
            Idle::Scale => Self::Scale,
        }
    }
}

/// What is done so that workers are equally busy, by name.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Balance {
    Off,
    #[default]
    New,
    All,
}

impl From<Balance> for dataplane::Balance {
    fn from(balance: Balance) -> Self {
        match balance {
            Balance::Off => Self::Off,
            Balance::New => Self::New,
            Balance::All => Self::All,
        }
    }
}

/// What a device of several queues spreads packets by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeviceHash {
    /// The best the card can: it is asked, and set up for users' addresses if it takes the rules for that.
    #[default]
    Auto,
    /// The outermost addresses, or the tunnel: whatever the driver makes of it.
    Outer,
    /// The user's address, up and down; somebody has set the device up for it.
    Inner,
    /// Of an access port: the TEID alone; somebody has set the device up for it.
    Teid,
}

/// The side a port is on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    Access,
    Core,
}

impl From<Side> for Interface {
    fn from(side: Side) -> Self {
        match side {
            Side::Access => Self::Access,
            Side::Core => Self::Core,
        }
    }
}

/// 3GPP interfaces that a port can be for.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum PortInterface {
    #[serde(rename = "s1-u")]
    S1U,
    #[serde(rename = "s5/s8-u")]
    S5S8U,
    #[serde(rename = "s4-u")]
    S4U,
    #[serde(rename = "s11-u")]
    S11U,
    #[serde(rename = "s12")]
    S12,
    #[serde(rename = "gn/gp-u")]
    GnGpU,
    #[serde(rename = "s2a-u")]
    S2aU,
    #[serde(rename = "s2b-u")]
    S2bU,
    #[serde(rename = "n3")]
    N3,
    #[serde(rename = "n9")]
    N9,
    #[serde(rename = "n19")]
    N19,
}

impl PortInterface {
    /// The 3GPP Interface Types it has in PFCP (TS 29.244 table 8.2.118-1): one has several by access, roaming and forwarding
    /// of data in a handover, which base stations send to where they send all (10 and 28: of an SGW or a UPF).
    pub(super) const fn types(self) -> &'static [u8] {
        match self {
            Self::S1U => &[0, 10, 28],
            Self::S5S8U => &[1, 19],
            Self::S4U => &[2],
            Self::S11U => &[3],
            Self::S12 => &[4],
            Self::GnGpU => &[5, 20],
            Self::S2aU => &[6],
            Self::S2bU => &[7],
            Self::N3 => &[11, 12, 13, 14, 10, 28],
            Self::N9 => &[15, 21, 23],
            Self::N19 => &[18],
        }
    }
}

/// Checks one number against its limits.
macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident($inner:ty), $from:literal..=$to:literal, $default:literal, $message:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(try_from = "u64")]
        pub(super) struct $name(pub(super) $inner);

        impl TryFrom<u64> for $name {
            type Error = &'static str;

            fn try_from(value: u64) -> Result<Self, Self::Error> {
                let allowed = ($from..=$to).contains(&value);
                <$inner>::try_from(value).ok().filter(|_| allowed).map(Self).ok_or($message)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self($default)
            }
        }
    };
}

bounded!(
    /// Bytes of the longest IP packet of a port.
    Mtu(u16), 576..=9_600, 1_500, "an MTU is 576 to 9600 bytes"
);
bounded!(
    /// The VLAN a port is on.
    Vlan(u16), 1..=4_094, 1, "a VLAN is 1 to 4094"
);
bounded!(
    /// Exact rules of a port.
    ExactRules(usize), 0..=16_384, 0, "a port has 0 to 16384 exact rules"
);
bounded!(
    /// Packet memory, in MiB.
    MemoryMb(u32), 32..=1_048_576, 256, "packet memory is 32 to 1048576 MiB"
);
bounded!(
    /// Microseconds an idle worker rests at most.
    IdleUs(u64), 1..=10_000, 50, "an idle worker rests 1 to 10000 microseconds at most"
);
bounded!(
    /// Seconds within which what sessions have used is told to the control plane engine; 0 for never.
    InterimUsage(u64), 0..=3_600, 30, "what sessions use is told within 1 to 3600 seconds; 0 tells only what is asked for"
);
bounded!(
    /// Most sessions at once.
    Sessions(usize), 1..=4_000_000, 100_000, "a node holds 1 to 4000000 sessions"
);

bounded!(
    /// PDRs of all sessions.
    Pdrs(usize), 2..=268_435_456, 1_600_000, "a node has room for 2 to 268435456 PDRs"
);

bounded!(
    /// Networks behind users.
    FramedRoutes(usize), 1..=1_000_000, 16_384, "a node has 1 to 1000000 framed routes"
);

bounded!(
    /// Flows remembered at once.
    Flows(usize), 1_024..=64_000_000, 2_000_000, "a node remembers 1024 to 64000000 flows"
);

bounded!(
    /// Flows of a worker looked at at once for what application they are of.
    Inspections(usize), 64..=65_535, 8_192, "a worker looks at 64 to 65535 flows"
);

bounded!(
    /// Connections of a worker whose requests have had a field.
    EnrichedConnections(usize), 64..=1_048_576, 4_096, "a worker knows 64 to 1048576 connections that get fields"
);

bounded!(
    /// Seconds that connections of a known application are remembered without packets.
    ConnectionAge(u64), 300..=64_800, 7_440, "connections are remembered for 300 to 64800 seconds"
);

bounded!(
    /// Workers.
    Workers(usize), 1..=32, 1, "a node has 1 to 32 workers"
);

bounded!(
    /// Seconds between two echo requests to a peer; 0 sends none.
    EchoPeriod(u64), 0..=86_400, 60, "peers are asked every 1 to 86400 seconds, or never with 0"
);

bounded!(
    /// T3-RESPONSE, in seconds.
    EchoT3(u64), 1..=60, 5, "T3-RESPONSE is 1 to 60 seconds"
);

bounded!(
    /// N3-REQUESTS.
    EchoN3(u32), 1..=20, 3, "N3-REQUESTS is 1 to 20"
);

bounded!(
    /// Seconds until a charging record is closed.
    Age(u64), 60..=604_800, 3_600, "a record is closed after 60 to 604800 seconds"
);

bounded!(
    /// Bytes of a charging record.
    RecordBytes(u64), 1_000_000..=1_000_000_000_000_000, 1_073_741_824, "a record is closed with 1000000 bytes to 10^15"
);

bounded!(
    /// Containers of a charging record.
    Containers(usize), 1..=250, 100, "a record is closed with 1 to 250 containers"
);

bounded!(
    /// Seconds until a file of charging records is closed.
    FileAge(u64), 1..=86_400, 300, "a file is closed after 1 to 86400 seconds"
);

bounded!(
    /// Records in a file.
    Cdrs(usize), 1..=1_000_000, 10_000, "a file is closed with 1 to 1000000 records"
);

bounded!(
    /// The size of a file, in KiB.
    FileKib(usize), 1..=1_048_576, 10_240, "a file is closed with 1 to 1048576 KiB"
);

bounded!(
    /// Charging records that wait for a file.
    Waiting(usize), 1_000..=10_000_000, 100_000, "1000 to 10000000 records wait for a file"
);

bounded!(
    /// What is to be free on the disk, in MiB.
    FreeMb(u64), 0..=1_048_576, 256, "0 to 1048576 MiB are to be free"
);

bounded!(
    /// A bit rate.
    Kbps(u64), 0..=1_099_511_627_775, 0, "a rate is 0 to 1099511627775 kbit/s"
);

/// An address with its subnet's prefix; `why` says what that is, where the text is neither this nor one without a prefix.
fn prefixed<Address: FromStr, Net: FromStr>(text: &str, usual: u8, why: &str) -> Result<Net, String> {
    strictly(text)?.map_err(|_| match text.parse::<Address>() {
        Ok(_) => format!("the length of its subnet's prefix is missing, as in \"{text}/{usual}\""),
        Err(_) => why.to_owned(),
    })
}

/// A number with a zero before it is octal to some programs, and decimal to others: an address with one is nobody's for certain.
pub(super) fn strictly<Net: FromStr>(text: &str) -> Result<Result<Net, Net::Err>, String> {
    let address = text.split('/').next().unwrap_or_default();
    let is_octal = |number: &str| number.len() > 1 && number.starts_with('0');
    match !address.contains(':') && address.contains('.') && address.split('.').any(is_octal) {
        true => Err("a number of an IPv4 address has no zero before it".to_owned()),
        false => Ok(text.parse()),
    }
}

/// Addresses that have their first bits in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Prefix(pub(super) IpNet);

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        strictly(&text)?.map(Self).map_err(|_| match text.parse() {
            Ok(address) => {
                format!("the length of the prefix is missing, as in \"{text}/{}\"", usual_length(address))
            }
            Err(_) => "a prefix is an IP address and a length, like 10.0.0.0/8 or 2001:db8::/32".to_owned(),
        })
    }
}

/// What a prefix that is written without its length has for one, most likely: what ends in zeros stands for many.
fn usual_length(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => 32 - address.to_bits().trailing_zeros() / 8 * 8,
        IpAddr::V6(address) => 128 - address.to_bits().trailing_zeros() / 16 * 16,
    }
}

/// Where PFCP is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Listen(pub(super) SocketAddr);

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // Of PFCP (TS 29.244 4.2.2).
        const PORT: u16 = 8805;
        text.parse().map(Self).map_err(|_| match text.parse::<IpAddr>() {
            Ok(address) => format!("the port is missing, as in \"{}\"", SocketAddr::new(address, PORT)),
            Err(_) => format!("PFCP is served at an IP address and port, like 10.40.0.2:{PORT}"),
        })
    }
}

/// An IPv6 address of ours with its subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct PortAddress6(pub(super) Ipv6Net);

impl TryFrom<String> for PortAddress6 {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let why = "a port's IPv6 address is that of a host with its prefix, like 2001:db8:3::2/64";
        let net: Ipv6Net = prefixed::<Ipv6Addr, _>(&text, 64, why)?;
        let address = net.addr();
        if address.is_unicast_link_local() {
            return Err("tunnels end at this address: one of a link (fe80::/10) cannot be reached beyond it"
                .to_owned());
        }
        match address.is_unspecified() || address.is_multicast() || address.is_loopback() {
            false => Ok(Self(net)),
            true => Err(why.to_owned()),
        }
    }
}

/// An address of ours with its subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct PortAddress(pub(super) Ipv4Net);

impl TryFrom<String> for PortAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let why = "a port's address is that of a host with its prefix, like 10.30.0.2/24";
        let net: Ipv4Net = prefixed::<Ipv4Addr, _>(&text, 24, why)?;
        let address = net.addr();
        let usable = !address.is_unspecified() && !address.is_multicast() && !address.is_loopback();
        // In subnets of more than two addresses, the first and the last are not for hosts.
        let host = net.prefix_len() >= 31 || (address != net.network() && address != net.broadcast());
        match usable && host {
            true => Ok(Self(net)),
            false => Err(why.to_owned()),
        }
    }
}
