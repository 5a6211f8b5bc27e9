//! IPv4 (RFC 791).

mod change;
mod header;
mod options;

pub use crate::protocol::{ICMP, UDP};
pub use change::{allow_fragments, decrement_ttl, reverse, set_dscp, set_ecn, set_tos, set_total_length};
pub use header::{Header, LENGTH, Malformed, Packet, pseudo_sum};
pub use options::{BadOption, IpOption, Options};

#[cfg(test)]
mod tests;
