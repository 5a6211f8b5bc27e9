//! CDRs in ASN.1 BER, as TS 32.298 lays them out.
//!
//! The writer is our own: two record types of primitive values need no compiler of modules, whose crates would bring
//! thousands of types of which these use some thirty. What it writes is decoded by compilers of others in
//! `tests/golden/cdr`.
//!
//! | file | what it is about |
//! |---|---|
//! | `write`, `read` | tags, lengths and values |
//! | `pgw` | PGWRecord (TS 32.298 5.1.2.2, the module GPRSChargingDataTypes) |
//! | `chf` | CHFRecord (TS 32.298 5.1.5, the module CHFChargingDataTypes) |
//! | `seen` | what a reader makes of either |

mod chf;
mod pgw;
mod read;
mod seen;
mod write;

pub use read::{Element, Malformed, elements};
pub use seen::{Seen, SeenContainer, see};

use crate::record::Cdr;
use crate::zone::Zone;
use std::net::{IpAddr, Ipv6Addr};
use write::Writer;

/// `SubscriptionIDType`: end-user-NAI.
const NAI: u64 = 3;

/// What a CDR is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// PGWRecord: of an EPC's PDN gateway (TS 32.251).
    Pgw,
    /// CHFRecord: of a 5G core's charging function (TS 32.255).
    Chf,
}

/// Beside the CDR, what its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context<'a> {
    /// Our Node ID.
    pub node: &'a str,
    /// Whose local time.
    pub zone: &'a Zone,
}

/// The octets of a record.
pub fn encode(cdr: &Cdr, shape: Shape, context: Context<'_>) -> Vec<u8> {
    match shape {
        Shape::Pgw => pgw::encode(cdr, context),
        Shape::Chf => chf::encode(cdr, context),
    }
}

impl Context<'_> {
    fn time(&self, moment_ms: u64) -> [u8; 9] {
        self.zone.calendar(moment_ms).timestamp()
    }
}

/// A charging ID: 32 bits that no other session of ours has while they last. PFCP brings none (TS 32.298 5.1.2.2.10).
const fn charging_id(seid: u64) -> u64 {
    seid & 0xFFFF_FFFF
}

/// `IPBinaryAddress`: the address itself, in the tag of its family.
fn ip_address(writer: &mut Writer, address: IpAddr) {
    match address {
        IpAddr::V4(address) => writer.octets(0, &address.octets()),
        IpAddr::V6(address) => writer.octets(1, &address.octets()),
    }
}

/// `PDPAddressPrefixLength` where none is told.
const USUAL_PREFIX: u8 = 64;

/// An IPv6 address, or a prefix, whose length is told unless it is the usual one.
fn ipv6_prefix(writer: &mut Writer, (address, length): (Ipv6Addr, u8)) {
    match length {
        128 => writer.octets(1, &address.octets()),
        _ => writer.constructed(4, |prefix| {
            prefix.universal(write::OCTET_STRING, &address.octets());
            if length != USUAL_PREFIX {
                prefix.universal(write::INTEGER, &write::integer(length.into()));
            }
        }),
    }
}

/// Whole seconds.
const fn seconds(duration_ms: u64) -> u64 {
    duration_ms / 1_000
}

/// The fields of a `SubscriptionID`.
fn subscription(it: &mut Writer, kind: u64, name: &str) {
    it.integer(0, kind);
    it.octets(1, name.as_bytes());
}

/// As much as an `IA5String` of that size holds.
fn ia5(text: &str, size: usize) -> Vec<u8> {
    text.bytes().filter(u8::is_ascii).take(size).collect()
}
