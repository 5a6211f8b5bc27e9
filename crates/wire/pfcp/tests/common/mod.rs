//! What several tests need.
#![allow(dead_code, missing_docs, unreachable_pub)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

pub mod pcap;
pub mod strategies;
