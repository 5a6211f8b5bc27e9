//! Traffic as models describe it: how many users, how long packets are, which way they go; and the packets themselves,
//! the same for the same seed.

mod packets;
mod profile;

pub use packets::{Endpoints, Packets, User};
pub use profile::{Length, PROFILES, Profile, profile};
