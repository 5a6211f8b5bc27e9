//! What a host is, what of it slows packets down, and what can be changed while it runs.
//!
//! All of it is read below a [`Root`], which is `/` or a made tree in tests, so every answer about a server that is not
//! here can be tested here: `/sys`, `/proc`, `/dev` (one register of the CPU among it, which is read and never written), and
//! firmware files. What none of them says is measured ([`Translation`]), or asked of programs that only tell ([`CorePower`]),
//! where this is that machine.
//!
//! * [`Facts`]: what there is. What cannot be read is absent, not guessed.
//! * [`Placement`]: which NUMA nodes a data plane's parts are on, and which its packet memory belongs on.
//! * [`Layout`]: which CPUs workers are best given, and why.
//! * [`examine`]: what it means for a user plane: [`Finding`]s, each with what to do and what it is worth.
//! * [`tune`]: changes at run time, as a plan that is printed, applied whole or not at all, and undone.
//! * [`Ceiling`] and [`MemoryFolder`]: what a node changes by itself: how fast a worker's CPU may be, while it runs, and whether files in
//!   memory may have huge pages.

mod asking;
mod checks;
mod cpus;
mod facts;
mod finding;
mod frequency;
mod layout;
mod memory_folder;
mod node;
mod placement;
mod report;
mod root;
mod translation;
pub mod tune;

pub use asking::CorePower;
pub use checks::{count, examine, explain, identifiers};
pub use cpus::CpuSet;
pub use facts::{
    CState, Cpu, CpuPlace, Ddp, Facts, Frequencies, HeldPages, HugePages, Interrupt, Iommu, Kernel, Link,
    Machine, Memory, Nic, NumaNode, Power, Prefetchers, Sst, Topology, Uncore,
};
pub use finding::{Finding, State};
pub use frequency::{Ceiling, Pace, Throttle, give_back};
pub use layout::{Asked, Layout};
pub use memory_folder::MemoryFolder;
pub use node::{Idle, Node, NodePort, Tables, device, is_pci};
pub use placement::Placement;
pub use report::{Colours, explained, table};
pub use root::{Absent, Root};
pub use translation::Translation;
