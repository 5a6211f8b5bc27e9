//! Frequencies and sleep states.

use crate::{CpuSet, Root};
use serde::Serialize;
use std::collections::BTreeMap;

const CPUS: &str = "/sys/devices/system/cpu";

/// A sleep state of the first CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CState {
    /// As `C6`.
    pub name: String,
    /// To wake up from it, in microseconds.
    pub latency_us: u64,
    /// Whether it is switched off.
    pub disabled: bool,
}

/// The frequency of all that is not a core, of a die.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Uncore {
    /// The folder's name: `package_00_die_00`.
    pub name: String,
    /// The lowest it may take now, in kHz.
    pub min_khz: u64,
    /// The highest.
    pub max_khz: u64,
}

/// Intel Speed Select.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sst {
    /// Whether the kernel's interface is there (`/dev/isst_interface`).
    pub interface: bool,
    /// Where the tool is.
    pub tool: Option<String>,
    /// CPUs by base frequency in kHz: more than one frequency says SST-BF is on.
    pub base_khz: BTreeMap<u64, CpuSet>,
}

/// Frequencies and sleep states.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Power {
    /// CPUs by governor.
    pub governors: BTreeMap<String, CpuSet>,
    /// Who scales frequencies.
    pub driver: Option<String>,
    /// Of `intel_pstate` or `amd_pstate`: `active`, `passive`, `off`.
    pub driver_status: Option<String>,
    /// Whether turbo is allowed, and the file that says so.
    pub turbo: Option<(bool, String)>,
    /// CPUs by energy performance preference (EPP).
    pub preferences: BTreeMap<String, CpuSet>,
    /// CPUs by energy performance bias (EPB): 0 is performance, 15 saving.
    pub biases: BTreeMap<u32, CpuSet>,
    /// Sleep states.
    pub c_states: Vec<CState>,
    /// Who chooses them.
    pub idle_driver: Option<String>,
    /// By die.
    pub uncore: Vec<Uncore>,
    /// Speed Select.
    pub sst: Sst,
}

impl Power {
    pub(super) fn read(root: &Root) -> Self {
        let status = |name: &str| root.text(&format!("{CPUS}/{name}/status"));
        Self {
            governors: by_value(root, "cpufreq/scaling_governor"),
            driver: root.text(&format!("{CPUS}/cpu0/cpufreq/scaling_driver")),
            driver_status: status("intel_pstate").or_else(|| status("amd_pstate")),
            turbo: turbo(root),
            preferences: by_value(root, "cpufreq/energy_performance_preference"),
            biases: by_value(root, "power/energy_perf_bias"),
            c_states: c_states(root),
            idle_driver: root
                .text(&format!("{CPUS}/cpuidle/current_driver"))
                .filter(|driver| driver != "none"),
            uncore: uncore(root),
            sst: Sst {
                interface: root.exists("/dev/isst_interface"),
                tool: tool(root),
                base_khz: by_value(root, "cpufreq/base_frequency"),
            },
        }
    }

    /// The longest wake-up of the states that are on.
    pub fn wake_up_us(&self) -> Option<u64> {
        self.c_states.iter().filter(|state| !state.disabled).map(|state| state.latency_us).max()
    }
}

/// CPUs by what a file of each says.
fn by_value<T: std::str::FromStr + Ord>(root: &Root, file: &str) -> BTreeMap<T, CpuSet> {
    let online: CpuSet = root.value(&format!("{CPUS}/online")).unwrap_or_default();
    let mut values: BTreeMap<T, Vec<usize>> = BTreeMap::new();
    for cpu in online.iter() {
        if let Some(value) = root.value(&format!("{CPUS}/cpu{cpu}/{file}")) {
            values.entry(value).or_default().push(cpu);
        }
    }
    values.into_iter().map(|(value, cpus)| (value, cpus.into_iter().collect())).collect()
}

fn turbo(root: &Root) -> Option<(bool, String)> {
    let (intel, others) = (format!("{CPUS}/intel_pstate/no_turbo"), format!("{CPUS}/cpufreq/boost"));
    let off = |path: &String| root.text(path).map(|text| text == "1");
    off(&intel).map(|off| (!off, intel.clone())).or_else(|| off(&others).map(|on| (on, others.clone())))
}

fn c_states(root: &Root) -> Vec<CState> {
    let folder = format!("{CPUS}/cpu0/cpuidle");
    let state = |name: &String| {
        let file = |file: &str| format!("{folder}/{name}/{file}");
        Some(CState {
            name: root.text(&file("name"))?,
            latency_us: root.value(&file("latency"))?,
            disabled: root.text(&file("disable")).as_deref() == Some("1"),
        })
    };
    root.list(&folder).iter().filter_map(state).collect()
}

fn uncore(root: &Root) -> Vec<Uncore> {
    let folder = format!("{CPUS}/intel_uncore_frequency");
    let die = |name: &String| {
        let khz = |file: &str| root.value(&format!("{folder}/{name}/{file}"));
        Some(Uncore { name: name.clone(), min_khz: khz("min_freq_khz")?, max_khz: khz("max_freq_khz")? })
    };
    root.list(&folder).iter().filter_map(die).collect()
}

fn tool(root: &Root) -> Option<String> {
    let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/sbin"];
    places.iter().map(|place| format!("{place}/intel-speed-select")).find(|path| root.exists(path))
}
