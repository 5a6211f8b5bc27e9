//! TCP (RFC 9293): as much as a router that helps its users needs.

mod change;
mod clamp;
mod made;
mod reset;
mod segment;

pub use change::{change, is_sealed, seal};
pub use clamp::{Clamp, clamp_mss, mss_for_mtu};
pub use made::Made;
pub use reset::{NoReset, write_reset};
pub use segment::{LENGTH, Malformed, OptionsIter, Segment, TcpOption, flag};

#[cfg(test)]
mod tests;
