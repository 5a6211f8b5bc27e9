//! Measurements of the product on this machine, beside yardsticks of the same run.

mod args;
mod forward;
mod machine;
mod meter;
mod replay;
mod report;
mod setup;
mod yardstick;

pub use args::Args;
