//! What there is on a host.

mod cpu;
mod held;
mod irq;
mod kernel;
mod machine;
mod memory;
mod nic;
mod power;
mod prefetch;

pub use cpu::{Cpu, CpuPlace, NumaNode, Topology};
pub use held::HeldPages;
pub use irq::Interrupt;
pub(crate) use irq::{INTERRUPTS, UNUSED, holder};
pub use kernel::Kernel;
pub use machine::{Iommu, Machine};
pub use memory::{HugePages, Memory};
pub use nic::{Ddp, Link, Nic};
pub use power::{CState, Frequencies, Power, Sst, Uncore};
pub use prefetch::Prefetchers;

use crate::asking::ask_programs;
use crate::{Root, Translation};
use serde::Serialize;

/// All that is read of a host. What is not there or may not be read is `None` or empty.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// The processor.
    pub cpu: Cpu,
    /// What its hardware fetches by itself, or why that is not known.
    pub prefetchers: Result<Prefetchers, String>,
    /// Sockets, cores, threads, NUMA nodes.
    pub topology: Topology,
    /// Huge pages and what the kernel does with memory behind a program's back.
    pub memory: Memory,
    /// Command line, clock, modules.
    pub kernel: Kernel,
    /// Frequencies and sleep states.
    pub power: Power,
    /// Virtual or not, limits.
    pub machine: Machine,
    /// What keeps devices apart.
    pub iommu: Iommu,
    /// The kernel's network interfaces, in this network namespace.
    pub interfaces: Vec<String>,
    /// Network devices on PCI.
    pub nics: Vec<Nic>,
    /// Packages for Intel cards among the firmware files.
    pub ddp: Ddp,
    /// Which CPUs interrupts go to.
    pub interrupts: Vec<Interrupt>,
}

impl Facts {
    /// Whether this is a virtual machine whose CPUs may share cores without its being told.
    pub fn hides_siblings(&self) -> bool {
        let is_alone = self.topology.cpus.iter().all(|place| place.siblings.len() < 2);
        let is_off = matches!(self.topology.smt.as_deref(), Some("off" | "forceoff"));
        self.machine.virtual_machine && is_alone && !is_off
    }

    /// Those of this machine, with what has to be measured, and what its programs say.
    pub fn measured() -> Self {
        let root = Root::system();
        let mut facts = Self::read(&root);
        ask_programs(&mut facts, &root);
        facts.memory.translation = Translation::measure();
        facts
    }

    /// Reads them.
    pub fn read(root: &Root) -> Self {
        let (cpu, topology, machine) = (Cpu::read(root), Topology::read(root), Machine::read(root));
        let first = topology.cpus.first().map_or(0, |place| place.cpu);
        Self {
            prefetchers: Prefetchers::read(root, &cpu, first, machine.virtual_machine),
            cpu,
            topology,
            memory: Memory::read(root),
            kernel: Kernel::read(root),
            power: Power::read(root),
            machine,
            iommu: Iommu::read(root),
            interfaces: root.list("/sys/class/net"),
            nics: Nic::read_all(root),
            ddp: Ddp::read(root),
            interrupts: Interrupt::read_all(root),
        }
    }
}
