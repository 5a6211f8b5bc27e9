//! Interrupts and the CPUs they go to.

use crate::{CpuSet, Root};
use serde::Serialize;

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
        let names = root.text("/proc/interrupts").unwrap_or_default();
        let mut all: Vec<Self> = root
            .list("/proc/irq")
            .iter()
            .filter_map(|folder| {
                let number: u32 = folder.parse().ok()?;
                let affinity = root.value(&format!("/proc/irq/{folder}/smp_affinity_list"))?;
                Some(Self { number, name: name(&names, number), affinity })
            })
            .collect();
        all.sort_by_key(|interrupt| interrupt.number);
        all
    }
}

/// The last word of its line.
fn name(table: &str, number: u32) -> String {
    let line =
        table.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == number.to_string()));
    line.and_then(|line| line.split_whitespace().last()).unwrap_or("unused").to_owned()
}
