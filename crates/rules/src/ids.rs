//! The identifiers of TS 29.244, each its own type so that none can stand in for another.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::{NonZeroU32, NonZeroU64};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    };
}

id!(
    /// Session Endpoint Identifier: the user plane's name for a session (TS 29.244 5.6.2), never 0.
    Seid(u64), "{:#018x}"
);
id!(
    #[derive(Serialize, Deserialize)]
    /// Tunnel Endpoint Identifier of GTP-U (TS 29.281 5.1); 0 is reserved for signalling messages.
    Teid(u32),
    "{:#010x}"
);
id!(
    #[derive(Serialize, Deserialize)]
    /// Packet Detection Rule ID (TS 29.244 8.2.36).
    PdrId(u16),
    "PDR {}"
);
id!(
    #[derive(Serialize, Deserialize)]
    /// FAR ID (TS 29.244 8.2.74).
    FarId(u32),
    "FAR {}"
);
id!(
    #[derive(Serialize, Deserialize)]
    /// QER ID (TS 29.244 8.2.75).
    QerId(u32),
    "QER {}"
);
id!(
    #[derive(Serialize, Deserialize)]
    /// URR ID (TS 29.244 8.2.54).
    UrrId(u32),
    "URR {}"
);
id!(
    #[derive(Serialize, Deserialize)]
    /// BAR ID (TS 29.244 8.2.57).
    BarId(u8),
    "BAR {}"
);

/// Where people read it, as they see it and give it to commands: readers of JSON round numbers above 2^53. Elsewhere the number.
impl Serialize for Seid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Seid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return u64::deserialize(deserializer).map(Self);
        }
        let text = String::deserialize(deserializer)?;
        let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        number.map(Self).ok_or_else(|| de::Error::custom("a SEID is hexadecimal after 0x"))
    }
}

/// A network instance (TS 29.244 8.2.4): users' addresses and routes of its own, known by a digest of its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Instance(u16);

impl Instance {
    /// The network of whatever belongs to none that has a name.
    pub const DEFAULT: Self = Self(0);

    /// That of a name, in lower case, never the default one (FNV-1a of 32 bits, folded). An operator's names are few, and
    /// two of one digest are refused when they are configured.
    pub fn of(name: &str) -> Self {
        let octets = name.bytes().map(|octet| octet.to_ascii_lowercase());
        let digest = octets
            .fold(0x811c_9dc5_u32, |digest, octet| (digest ^ u32::from(octet)).wrapping_mul(0x0100_0193));
        Self(((digest >> 16) as u16 ^ digest as u16).max(1))
    }

    /// That of a digest, as [`Instance::digest`] tells it.
    pub const fn of_digest(digest: u16) -> Self {
        Self(digest)
    }

    /// The digest of its name; 0 is the default one.
    pub const fn digest(self) -> u16 {
        self.0
    }
}

/// A forwarding policy (TS 29.244 8.2.23) by a digest of its name, which the operator knows and rules need not carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Policy(NonZeroU32);

impl Policy {
    /// That of a name, octet by octet (FNV-1a). Two of one digest are refused when they are configured.
    pub fn of(name: &[u8]) -> Self {
        let add = |digest: u32, octet: &u8| (digest ^ u32::from(*octet)).wrapping_mul(0x0100_0193);
        Self(NonZeroU32::new(name.iter().fold(0x811c_9dc5, add)).unwrap_or(NonZeroU32::MIN))
    }
}

/// Application ID (8 bytes, as few PDRs have one): the name of an application that content rules or PFDs describe (TS 29.244 8.2.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ApplicationId(Box<Box<str>>);

impl ApplicationId {
    /// `None` for the empty name, and for more than 255 octets.
    pub fn new(name: &str) -> Option<Self> {
        (1..=255).contains(&name.len()).then(|| Self(Box::new(name.into())))
    }

    /// What stands for the flows that content rules charge under a rating group and service, whatever their applications
    /// are. The name begins with a zero byte, lest it be taken for an operator's.
    pub fn of_charging(rating_group: u32, service: Option<u32>) -> Self {
        let service = service.map_or(String::new(), |service| format!("/{service}"));
        Self(Box::new(format!("\0charging {rating_group}{service}").into()))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// What stands for it where packets are looked at.
    pub fn tag(&self) -> ApplicationTag {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        ApplicationTag(NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MAX))
    }
}

impl fmt::Display for ApplicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A hash of an [`ApplicationId`], the same throughout a process: of content rules, names that share one are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ApplicationTag(NonZeroU64);

impl ApplicationTag {
    /// As one number, which is the same for the next process, if it is of the same build.
    pub const fn bits(self) -> u64 {
        self.0.get()
    }
}

/// QoS Flow Identifier, 0 to 63 (TS 29.244 8.2.89).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Qfi(u8);

impl QerId {
    /// What limits a user whose control plane does not, where the node is told to. IDs with the highest bit are given by
    /// user plane functions (TS 29.244 8.2.75).
    pub const OWN: Self = Self(u32::MAX);
}

impl Qfi {
    /// The largest value the six bits hold.
    pub const MAX: u8 = 63;

    /// `None` above [`Qfi::MAX`].
    pub const fn new(value: u8) -> Option<Self> {
        if value <= Self::MAX { Some(Self(value)) } else { None }
    }

    /// 0 to 63.
    pub const fn value(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Qfi {
    type Error = &'static str;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        Self::new(value).ok_or("a QFI is 0 to 63")
    }
}

impl From<Qfi> for u8 {
    fn from(qfi: Qfi) -> Self {
        qfi.0
    }
}
