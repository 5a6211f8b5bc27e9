//! Measurements of the product on this machine, beside yardsticks of the same run.
//!
//! A scenario ([`scenario`]) turns a [`plan::Plan`] into a [`report::Report`]. What is measured is the shipped worker
//! ([`product`]) between ports of ours ([`replay`]); the only file that knows its rules and configuration is [`setup`].
//! Nothing is reported when packets are missing from the books, or when a packet came out wrong ([`sample`]).

// It panics where a reader has had enough: `output::say` does not.
#![deny(clippy::print_stdout)]

mod args;
mod beside;
mod calm;
mod clock;
mod compared;
mod contest;
mod control;
mod crew;
mod dock;
mod expected;
mod first_touch;
mod gaps;
mod generator;
mod interrupt;
mod lines;
mod link;
mod machine;
mod meter;
mod misses;
mod nic;
mod output;
mod page;
mod plan;
mod product;
mod ratchet;
mod record;
mod replay;
mod report;
mod require;
mod sample;
mod scenario;
mod search;
mod setup;
mod spread;
mod stand_in;
mod station;
#[cfg(test)]
mod tests;
mod text;
mod yardstick;

pub use args::Args;
