//! What nodes are called and what they can do.

use super::take;
use crate::fields::Value;
use crate::{ErrorKind, names};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Node ID (TS 29.244 8.2.38). Coded here: `rs-pfcp` writes host names as text instead of labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeId {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A host name.
    Fqdn(String),
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipv4(address) => address.fmt(f),
            Self::Ipv6(address) => address.fmt(f),
            Self::Fqdn(name) => f.write_str(name),
        }
    }
}

impl Value for NodeId {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [kind] = take(&mut bytes, ie)?;
        match kind & 0x0F {
            0 => take::<4>(&mut bytes, ie).map(|octets| Self::Ipv4(octets.into())),
            1 => take::<16>(&mut bytes, ie).map(|octets| Self::Ipv6(octets.into())),
            // One name, however it is spelt (RFC 4343).
            2 => names::from_bytes(bytes)
                .map(|name| Self::Fqdn(name.to_ascii_lowercase()))
                .ok_or(ErrorKind::MandatoryIeIncorrect(ie)),
            _ => Err(ErrorKind::MandatoryIeIncorrect(ie)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (kind, value) = match self {
            Self::Ipv4(address) => (0, address.octets().to_vec()),
            Self::Ipv6(address) => (1, address.octets().to_vec()),
            Self::Fqdn(name) => (2, names::to_labels(name)),
        };
        out.push(kind);
        out.extend_from_slice(&value);
    }
}

macro_rules! features {
    ($(#[$doc:meta])* $set:ident, $(#[$bit_doc:meta])* $bit:ident { $($(#[$name_doc:meta])* $name:ident = $number:literal,)* }) => {
        $(#[$bit_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $bit {
            $($(#[$name_doc])* $name = $number,)*
        }

        impl $bit {
            /// All that have a name here.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }

        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $set(Vec<u8>);

        impl $set {
            /// These and no others.
            pub fn of(bits: &[$bit]) -> Self {
                let mut octets = vec![0u8; 2];
                for bit in bits {
                    let number = *bit as usize;
                    octets.resize(octets.len().max(number / 8 + 1), 0);
                    octets.iter_mut().skip(number / 8).take(1).for_each(|octet| *octet |= 1 << (number % 8));
                }
                Self(octets)
            }

            /// Whether it is among them.
            pub fn contains(&self, bit: $bit) -> bool {
                let number = bit as usize;
                self.0.get(number / 8).is_some_and(|octet| octet & (1 << (number % 8)) != 0)
            }

            /// As on the wire; a peer of a later release has more of them.
            pub fn octets(&self) -> &[u8] {
                &self.0
            }
        }

        impl Value for $set {
            /// No octet at all means no feature: all that follow the first are optional, and some leave out that.
            fn read(bytes: &[u8], _: u16) -> Result<Self, ErrorKind> {
                Ok(Self(bytes.to_vec()))
            }

            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0);
            }
        }
    };
}

features! {
    /// UP Function Features (TS 29.244 8.2.25).
    UpFunctionFeatures,
    /// Features of a user plane, by bit number.
    UpFeature {
        /// Downlink data buffering in the control plane.
        Bucp = 0,
        /// Downlink data notification delay.
        Ddnd = 1,
        /// Downlink buffering duration.
        Dlbd = 2,
        /// Traffic steering.
        Trst = 3,
        /// F-TEIDs are allocated by the user plane.
        Ftup = 4,
        /// PFD management.
        Pfdm = 5,
        /// Header enrichment.
        Heeu = 6,
        /// Traffic redirection.
        Treu = 7,
        /// End markers are sent by the user plane.
        Empu = 8,
        /// PDIs with traffic endpoints.
        Pdiu = 9,
        /// Uplink and downlink buffering control.
        Udbc = 10,
        /// Actions when a quota is exhausted.
        Quoac = 11,
        /// Tracing.
        Trace = 12,
        /// Framed routing.
        Frrt = 13,
        /// PFD contents with several values.
        Pfde = 14,
        /// Enhanced association release.
        Epfar = 15,
        /// Deferred PDR activation.
        Dpdra = 16,
        /// Activation and deactivation of predefined PDRs.
        Adpdp = 17,
        /// UE IP addresses are allocated by the user plane.
        Ueip = 18,
        /// Sessions handled by several SMFs of a set.
        Sset = 19,
        /// Measurement of packets.
        Mnop = 20,
        /// Session handling across several TEIDs.
        Mte = 21,
        /// Several messages in one datagram.
        Bundl = 22,
        /// 5G VN group communication.
        Gcom = 23,
        /// Several associations with control planes of one set.
        Mpas = 24,
        /// Quota validity times.
        Vtime = 26,
        /// Prefixes of users that are not 64 bits long.
        Ip6pl = 29,
        /// Sessions of a set change their SMF together.
        Resps = 45,
    }
}

features! {
    /// CP Function Features (TS 29.244 8.2.58).
    CpFunctionFeatures,
    /// Features of a control plane, by bit number.
    CpFeature {
        /// Load control.
        Load = 0,
        /// Overload control.
        Ovrl = 1,
        /// Enhanced association release.
        Epfar = 2,
        /// SMF set.
        Sset = 3,
        /// Several messages in one datagram.
        Bundl = 4,
        /// Several associations for one set.
        Mpas = 5,
        /// Additional usage reports after a deletion.
        Ardr = 6,
        /// UE IP address usage reporting.
        Uiaur = 7,
        /// Reports of GTP-U peers that were restarted.
        Rpgur = 9,
    }
}
