//! The other side of a user plane: a gNB with its UEs, and the SMF that controls it all.
//!
//! [`smf`] speaks N4, [`gnb`] carries packets between UEs' TUN devices and N3, and [`run`] drives both from one
//! [`Config`]. A UE is a real device of the host: whatever the host can run is its application.

mod args;
mod commands;
pub mod config;
pub mod gnb;
mod local;
mod report;
mod run;
pub mod smf;
mod tunnel;

pub use args::Args;
pub use config::Config;
pub use run::{Options, run};
pub use tunnel::Tunnel;
