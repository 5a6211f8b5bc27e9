//! IPv6 (RFC 8200).

mod change;
mod extensions;
mod header;

pub use change::{
    decrement_hop_limit, reverse, set_dscp, set_ecn, set_flow_label, set_payload_length, set_traffic_class,
};
pub(crate) use extensions::behind;
pub use extensions::{EXTENSIONS_MAX, Fragment, Upper};
pub use header::{Header, LENGTH, Malformed, Packet, pseudo_sum};

#[cfg(test)]
mod tests;
