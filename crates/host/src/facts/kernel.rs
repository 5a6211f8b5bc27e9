//! The kernel: how it was started and what it keeps time by.

use crate::{CpuSet, Root};
use serde::Serialize;

/// The kernel.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Kernel {
    /// As `uname -r`.
    pub release: Option<String>,
    /// Its command line, in words.
    pub command_line: Vec<String>,
    /// What it keeps time by.
    pub clock: Option<String>,
    /// What else it could.
    pub clocks: Vec<String>,
    /// Weaknesses of the CPU it works around at a price, by name.
    pub mitigated: Vec<String>,
    /// Whether it watches for stuck CPUs by an interrupt: 0 or 1.
    pub nmi_watchdog: Option<u32>,
    /// Whether modules for devices in user space are there: `vfio_pci`, `uio_pci_generic`, `igb_uio`.
    pub user_drivers: Vec<String>,
}

impl Kernel {
    pub(super) fn read(root: &Root) -> Self {
        let clock = "/sys/devices/system/clocksource/clocksource0";
        let words = |path: &str| -> Vec<String> {
            root.text(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
        };
        let drivers =
            [("vfio_pci", "vfio-pci"), ("uio_pci_generic", "uio_pci_generic"), ("igb_uio", "igb_uio")];
        let there = |(module, driver): &&(&str, &str)| {
            root.exists(&format!("/sys/module/{module}"))
                || root.exists(&format!("/sys/bus/pci/drivers/{driver}"))
        };
        Self {
            release: root.text("/proc/sys/kernel/osrelease"),
            command_line: words("/proc/cmdline"),
            clock: root.text(&format!("{clock}/current_clocksource")),
            clocks: words(&format!("{clock}/available_clocksource")),
            mitigated: mitigated(root),
            nmi_watchdog: root.value("/proc/sys/kernel/nmi_watchdog"),
            user_drivers: drivers.iter().filter(there).map(|(module, _)| (*module).to_owned()).collect(),
        }
    }

    /// The value of a parameter of the command line, the last if it is there more than once; empty for one without.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.command_line.iter().rev().find_map(|word| match word.split_once('=') {
            Some((key, value)) if key == name => Some(value),
            None if word == name => Some(""),
            _ => None,
        })
    }

    /// CPUs that a parameter names, behind words such as `managed_irq,domain,`.
    pub fn cpus_of(&self, name: &str) -> CpuSet {
        let value = self.parameter(name).unwrap_or_default();
        let lists = value.split(',').filter(|part| part.starts_with(|first: char| first.is_ascii_digit()));
        lists.collect::<Vec<_>>().join(",").parse().unwrap_or_default()
    }
}

fn mitigated(root: &Root) -> Vec<String> {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let names = root.list(folder);
    let costs = |name: &&String| {
        root.text(&format!("{folder}/{name}")).is_some_and(|state| state.starts_with("Mitigation"))
    };
    names.iter().filter(costs).cloned().collect()
}
