//! Frequencies and sleep states.

use crate::{CorePower, CpuSet, Root};
use serde::Serialize;
use std::collections::BTreeMap;

const CPUS: &str = "/sys/devices/system/cpu";

/// A sleep state of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CState {
    /// As `C6`.
    pub name: String,
    /// To wake up from it, in microseconds.
    pub latency_us: u64,
    /// CPUs that may sleep so.
    pub on: CpuSet,
    /// CPUs of which it is switched off.
    pub off: CpuSet,
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
    /// Whether classes are in force, as the tool says; `None` where it was not asked, else why it did not say.
    pub core_power: Option<Result<CorePower, String>>,
    /// CPUs by base frequency in kHz: more than one frequency says SST-BF is on.
    pub base_khz: BTreeMap<u64, CpuSet>,
}

/// The frequencies that a CPU may take, as it was when they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frequencies {
    /// CPUs that have theirs together, itself among them.
    pub cpus: CpuSet,
    /// The lowest it may take (`scaling_min_freq`), in kHz.
    pub low_khz: u64,
    /// The highest (`scaling_max_freq`).
    pub high_khz: u64,
}

/// Frequencies and sleep states.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Power {
    /// By CPU, where the kernel scales them.
    pub frequencies: BTreeMap<usize, Frequencies>,
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
    /// Sleep states, in the order of the kernel's numbers.
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
            frequencies: frequencies(root),
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
                core_power: None,
                base_khz: by_value(root, "cpufreq/base_frequency"),
            },
        }
    }

    /// The frequencies between which one CPU alone can be moved, or why it cannot; this goes on after "because".
    ///
    /// # Errors
    /// The kernel scales none here, or not of this CPU alone, or there is nothing between them.
    pub fn room_of(&self, cpu: usize) -> Result<&Frequencies, String> {
        let room = self.frequencies.get(&cpu).ok_or_else(|| {
            format!(
                "the kernel does not scale the frequency of CPU {cpu} (a virtual machine, no cpufreq driver, or P-states \
                 are off in the BIOS)"
            )
        })?;
        let others = room.cpus.without(&[cpu].into_iter().collect());
        match (others.is_empty(), room.low_khz < room.high_khz) {
            (false, _) => Err(format!("CPU {cpu} has its frequency together with CPUs {others}")),
            (_, false) => Err(format!("CPU {cpu} may take one frequency alone, {} kHz", room.high_khz)),
            (true, true) => Ok(room),
        }
    }

    /// The longest wake-up of the states that are on of some of these CPUs.
    pub fn wake_up_us(&self, cpus: &CpuSet) -> Option<u64> {
        let on = self.c_states.iter().filter(|state| !state.on.common(cpus).is_empty());
        on.map(|state| state.latency_us).max()
    }
}

fn frequencies(root: &Root) -> BTreeMap<usize, Frequencies> {
    let online: CpuSet = root.value(&format!("{CPUS}/online")).unwrap_or_default();
    let of = |cpu: usize| {
        let file = |name: &str| format!("{CPUS}/cpu{cpu}/cpufreq/{name}");
        // Separated by blanks, unlike all other lists of CPUs.
        let cpus = root.text(&file("affected_cpus"))?;
        let cpus = cpus.split_whitespace().filter_map(|cpu| cpu.parse().ok()).collect();
        let low_khz = root.value(&file("scaling_min_freq"))?;
        let high_khz = root.value(&file("scaling_max_freq"))?;
        Some((cpu, Frequencies { cpus, low_khz, high_khz }))
    };
    online.iter().filter_map(of).collect()
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

/// By the kernel's number, name and wake-up: cores of several kinds have states of their own.
fn c_states(root: &Root) -> Vec<CState> {
    let mut states: BTreeMap<(String, String, u64), [Vec<usize>; 2]> = BTreeMap::new();
    for cpu in root.value::<CpuSet>(&format!("{CPUS}/online")).unwrap_or_default().iter() {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in root.list(&folder) {
            let file = |name: &str| format!("{folder}/{state}/{name}");
            let said = root.text(&file("name")).zip(root.value(&file("latency")));
            let is_off = root.text(&file("disable")).as_deref() == Some("1");
            let Some((name, latency_us)) = said else { continue };
            let [on, off] = states.entry((state, name, latency_us)).or_default();
            if is_off { off.push(cpu) } else { on.push(cpu) }
        }
    }
    let set = |cpus: Vec<usize>| cpus.into_iter().collect::<CpuSet>();
    let state = |((_, name, latency_us), [on, off]): ((String, String, u64), [Vec<usize>; 2])| CState {
        name,
        latency_us,
        on: set(on),
        off: set(off),
    };
    states.into_iter().map(state).collect()
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
