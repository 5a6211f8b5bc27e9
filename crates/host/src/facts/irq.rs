//! Interrupts and the CPUs they go to.

use crate::{CpuSet, Root};
use serde::Serialize;

/// The kernel's table of who has which.
pub(crate) const INTERRUPTS: &str = "/proc/interrupts";
/// The name of one that nobody has.
pub(crate) const UNUSED: &str = "unused";

/// An interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// Who asked for it.
    pub name: String,
    /// CPUs it may go to.
    pub affinity: CpuSet,
}

impl Interrupt {
    pub(super) fn read_all(root: &Root) -> Vec<Self> {
        let names = root.text(INTERRUPTS).unwrap_or_default();
        let mut all: Vec<Self> = root
            .list("/proc/irq")
            .iter()
            .filter_map(|folder| {
                let number: u32 = folder.parse().ok()?;
                let affinity = root.value(&format!("/proc/irq/{folder}/smp_affinity_list"))?;
                Some(Self { number, name: holder(&names, number), affinity })
            })
            .collect();
        all.sort_by_key(|interrupt| interrupt.number);
        all
    }
}

/// Who has an interrupt, by the kernel's table: the last word of its line.
pub(crate) fn holder(table: &str, number: u32) -> String {
    let line =
        table.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == number.to_string()));
    line.and_then(|line| line.split_whitespace().last()).unwrap_or(UNUSED).to_owned()
}
