//! The laboratory: a whole mobile network on one machine, for the demo and the end-to-end tests.
//!
//! Three network namespaces stand for the radio access network (`ran`), the user plane node (`upf`) and the data
//! network (`dn`). Real programs (ping, curl, iperf3, tshark) are the users and the judges.
//!
//! ```text
//!      ran                         upf                        dn
//!  10.30.0.1  n3 ------------- n3  10.30.0.2
//!  10.40.0.1  n4 ------------- n4  10.40.0.2
//!  10.60.0.1  ue0                  10.50.0.2  n6 ---------- n6  10.50.0.1
//! ```
//!
//! Everything happens in private mount, network and (for an ordinary user) user namespaces of this process, and
//! every child dies with it: whatever happens, the kernel cleans up, and two laboratories never see each other.

pub mod address;
pub mod anchorline;
pub mod capture;
pub mod command;
pub mod config;
pub mod http;
pub mod interrupt;
pub mod measure;
pub mod privilege;
pub mod wait;

mod laboratory;
mod namespace;
mod process;
mod run_dir;

pub use laboratory::{Core, Lab};
pub use namespace::Namespace;
pub use process::Process;
pub use run_dir::{RunDir, Scratch, program};
