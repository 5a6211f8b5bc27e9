//! Packets: the buffer they live in, checked views of their headers, and builders of new ones.
//!
//! A view is made from bytes that were checked once; after that, reading a field cannot fail. Everything read from
//! the wire goes through here, so nothing else in the data path indexes packet bytes.

pub mod address;
pub mod arp;
mod buffer;
pub mod checksum;
pub mod ecn;
pub mod ethernet;
pub mod five_tuple;
pub mod fragment;
pub mod gtpu;
pub mod icmp;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ndp;
pub mod protocol;
pub mod quoted;
pub mod tcp;
pub mod udp;
pub mod udp_ip;
pub mod vlan;

pub use buffer::{Buffer, HEADROOM, HeapBuffer};
pub use five_tuple::FiveTuple;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod hostile;
