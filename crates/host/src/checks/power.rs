//! Frequencies and sleep. The BIOS settings are those of ZTE's table ("BIOS Configuration for a Compute Node").

use super::{Check, NO_FIGURE, View};
use crate::finding::Outcome;
use crate::{CState, CorePower, CpuSet, Facts, Prefetchers};
use std::collections::BTreeMap;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "power.governor",
        means: "A governor that lowers frequencies finds a worker always busy, or, if it sleeps, always idle: it follows the \
                traffic too late.",
        worth: "ZTE's BIOS table: CPU power and performance policy: performance; SpeedStep enabled. No figure for it alone",
        ask: governor,
    },
    Check {
        id: "power.turbo",
        means: "Frequency is throughput. What turbo gives depends on how many cores are busy and how warm they are, so it is \
                worth most together with SST-CP, which says which cores get it.",
        worth: "Chunghwa MEC: 1.34 times (2.3 to 3.5 GHz, one core, 1280-byte payload); ZTE's BIOS table: enabled",
        ask: turbo,
    },
    Check {
        id: "power.hardware-p-states",
        means: "With hardware P-states the CPU chooses frequencies by itself, by a preference the system gives (EPP).",
        worth: "ZTE's BIOS table: disabled; Chunghwa's: native mode. They differ, so measure on your machine",
        ask: hardware_p_states,
    },
    Check {
        id: "power.sleep",
        means: "A core that sleeps deeply needs its wake-up time before it looks at a packet, and loses its caches. Workers \
                that look without pause never sleep; those with idle = \"sleep\", the control plane and the card's wake-up do.",
        worth: "ZTE's BIOS table: package C-state C0/C1, C1E and C6 disabled; Chunghwa's: C6 enabled, to leave turbo to the \
                busy cores",
        ask: sleep,
    },
    Check {
        id: "power.bias",
        means: "A hint to the CPU how much speed it may give up for power (EPP, EPB).",
        worth: "ZTE's BIOS table: CPU power and performance policy: performance; no figure for it alone",
        ask: bias,
    },
    Check {
        id: "power.uncore",
        means: "Memory controllers, last-level cache and PCIe have a frequency of their own, which falls when cores wait: just \
                when a flow table is read at random.",
        worth: NO_FIGURE,
        ask: uncore,
    },
    Check {
        id: "power.sst-cp",
        means: "Intel Speed Select, core power: cores of a class get frequency first. Workers high, the rest low.",
        worth: "ZTE UPF on Xeon 6230N: worker cores held at 2.8 GHz, the other 8 of each socket at 1.5 GHz (base 2.3)",
        ask: core_power,
    },
    Check {
        id: "power.sst-bf",
        means: "Intel Speed Select, base frequency: some cores have a higher guaranteed frequency, the others a lower one.",
        worth: "Chunghwa MEC ran with SST-BF enabled; no figure for it alone",
        ask: base_frequency,
    },
    Check {
        id: "bios.prefetch",
        means: "The hardware's prefetchers fetch the line beside the one that is asked for. They help copying and hurt \
                random tables; our code asks ahead for the lines it needs.",
        worth: "Chunghwa's BIOS table: on; Samsung's UPF leans on them. No figure for it alone",
        ask: prefetch,
    },
];

/// Why a machine shows no frequencies.
fn hidden(facts: &Facts) -> &'static str {
    match (facts.machine.virtual_machine, facts.machine.container.is_some()) {
        (true, _) => "this is a virtual machine: frequencies are its host's business",
        (_, true) => "this is a container, which is not shown them",
        _ => "the kernel shows no frequencies (no cpufreq driver: P-states are off in the BIOS?)",
    }
}

/// What is said of some of these CPUs, with which they are.
fn said_of<'a, T>(values: &'a BTreeMap<T, CpuSet>, cpus: &CpuSet) -> Vec<(&'a T, CpuSet)> {
    let here = values.iter().map(|(value, of)| (value, of.common(cpus)));
    here.filter(|(_, of)| !of.is_empty()).collect()
}

fn governor(view: &View<'_>) -> Vec<Outcome> {
    let power = &view.facts.power;
    let governors = said_of(&power.governors, &view.fast());
    if governors.is_empty() {
        return vec![Outcome::not_here(hidden(view.facts))];
    }
    let driver = power.driver.as_deref().unwrap_or("unknown driver");
    let all: Vec<String> = governors.iter().map(|(name, cpus)| format!("{name} on CPUs {cpus}")).collect();
    let found = format!("{} ({driver})", all.join(", "));
    vec![match governors.iter().all(|(name, _)| *name == "performance") {
        true => Outcome::good(found),
        false => Outcome::warning(
            found,
            "anchorline tune --config FILE --apply sets performance on the workers' CPUs",
        ),
    }]
}

fn turbo(view: &View<'_>) -> Vec<Outcome> {
    vec![match &view.facts.power.turbo {
        None => Outcome::not_here(hidden(view.facts)),
        Some((true, _)) => Outcome::good("on"),
        Some((false, _)) => Outcome::warning(
            "off",
            "anchorline tune --apply switches it on, unless the kernel refuses: then BIOS: CPU P State Control, Turbo Boost: enabled; \
             or this CPU has none",
        ),
    }]
}

fn hardware_p_states(view: &View<'_>) -> Vec<Outcome> {
    let (facts, power) = (view.facts, &view.facts.power);
    if power.driver.is_none() {
        return vec![Outcome::not_here(hidden(facts))];
    }
    if !facts.cpu.is_intel() {
        return vec![Outcome::not_here(facts.cpu.not_intel())];
    }
    vec![match (facts.cpu.has("hwp"), power.preferences.is_empty()) {
        (true, false) => {
            Outcome::advice("on", "measure with BIOS: Hardware P-States: disabled, as ZTE had it")
        }
        (true, true) => Outcome::good("the CPU has them, and they are off"),
        _ => Outcome::good("off"),
    }]
}

fn sleep(view: &View<'_>) -> Vec<Outcome> {
    /// C1 of every processor wakes up sooner.
    const SHALLOW_US: u64 = 10;
    let (facts, power, fast) = (view.facts, &view.facts.power, view.fast());
    let (Some(driver), Some(wake_up)) = (&power.idle_driver, power.wake_up_us(&fast)) else {
        return vec![Outcome::not_here(if facts.machine.virtual_machine {
            hidden(facts)
        } else {
            "no idle driver shows sleep states"
        })];
    };
    let all: Vec<String> = power.c_states.iter().filter_map(|state| slept(state, &fast)).collect();
    let limits = ["intel_idle.max_cstate", "processor.max_cstate", "idle"];
    let limits = limits.iter().filter_map(|name| Some(format!("; {name}={}", facts.kernel.parameter(name)?)));
    let found = format!("{driver} of CPUs {fast}: {}{}", all.join(", "), limits.collect::<String>());
    vec![match wake_up {
        0..=SHALLOW_US => Outcome::good(found),
        _ => Outcome::advice(
            found,
            "anchorline tune --config FILE --apply switches deep states off on the workers' CPUs; or BIOS: package C-state C0/C1, C1E and C6 disabled",
        ),
    }]
}

/// A state with its wake-up, and with whose it is where it is on of some of these CPUs alone; `None`: of none.
fn slept(state: &CState, cpus: &CpuSet) -> Option<String> {
    let (on, off) = (state.on.common(cpus), state.off.common(cpus));
    let whose = if off.is_empty() { String::new() } else { format!(" on CPUs {on}") };
    (!on.is_empty()).then(|| format!("{} {} us{whose}", state.name, state.latency_us))
}

fn bias(view: &View<'_>) -> Vec<Outcome> {
    let (power, fast) = (&view.facts.power, view.fast());
    let (preferences, biases) = (said_of(&power.preferences, &fast), said_of(&power.biases, &fast));
    let mut all: Vec<String> =
        preferences.iter().map(|(name, cpus)| format!("EPP {name} on CPUs {cpus}")).collect();
    all.extend(biases.iter().map(|(bias, cpus)| format!("EPB {bias} on CPUs {cpus}")));
    let found = all.join(", ");
    let performance = preferences.iter().all(|(name, _)| *name == "performance" || *name == "0");
    vec![match found.is_empty() {
        true => Outcome::not_here("the kernel shows neither EPP nor EPB"),
        false if performance && biases.iter().all(|(bias, _)| **bias == 0) => Outcome::good(found),
        false => Outcome::advice(
            found,
            "anchorline tune --config FILE --apply sets performance on the workers' CPUs",
        ),
    }]
}

fn uncore(view: &View<'_>) -> Vec<Outcome> {
    let (facts, dies) = (view.facts, &view.facts.power.uncore);
    if dies.is_empty() {
        let because = if facts.cpu.is_intel() {
            "the module intel_uncore_frequency is not there"
        } else {
            facts.cpu.not_intel()
        };
        return vec![Outcome::not_here(because)];
    }
    let text =
        |die: &crate::Uncore| format!("{} {} to {} MHz", die.name, die.min_khz / 1000, die.max_khz / 1000);
    let all: Vec<String> = dies.iter().map(text).collect();
    vec![match dies.iter().all(|die| die.min_khz == die.max_khz) {
        true => Outcome::good(all.join(", ")),
        false => Outcome::advice(
            all.join(", "),
            "anchorline tune --config FILE --apply sets the lowest to the highest",
        ),
    }]
}

fn core_power(view: &View<'_>) -> Vec<Outcome> {
    let (facts, sst) = (view.facts, &view.facts.power.sst);
    vec![match (facts.cpu.is_intel(), sst.interface, &sst.tool) {
        (false, _, _) => Outcome::not_here(facts.cpu.not_intel()),
        (true, false, _) => Outcome::not_here(
            "there is no /dev/isst_interface (an older CPU, a virtual machine, or the module isst_if_mbox_pci is not loaded)",
        ),
        (true, true, None) => Outcome::advice(
            "the interface is there, the tool is not",
            "install intel-speed-select (linux-cpupower), then anchorline tune --config FILE --apply",
        ),
        (true, true, Some(tool)) => of_tool(tool, sst.core_power.as_ref()),
    }]
}

fn of_tool(tool: &str, told: Option<&Result<CorePower, String>>) -> Outcome {
    let act = "anchorline tune --config FILE --apply puts the workers' cores into class 0 and the others into class 3";
    match told {
        None => Outcome::advice(format!("can be asked: {tool} core-power info"), act),
        Some(Err(why)) => Outcome::not_here(format!("{tool} core-power info did not say it ({why})")),
        Some(Ok(CorePower { supported: false, .. })) => Outcome::not_here("the processor does not have it"),
        Some(Ok(CorePower { enabled: false, .. })) => Outcome::advice("off", act),
        Some(Ok(CorePower { priority, .. })) => {
            let how = priority.as_ref().map_or(String::new(), |how| format!(", {how}"));
            Outcome::good(format!("on{how}; whose class is which says {tool} core-power get-assoc"))
        }
    }
}

fn base_frequency(view: &View<'_>) -> Vec<Outcome> {
    let sst = &view.facts.power.sst;
    let all: Vec<String> =
        sst.base_khz.iter().map(|(khz, cpus)| format!("{} MHz on CPUs {cpus}", khz / 1000)).collect();
    vec![match (all.len(), sst.interface) {
        (2.., _) => Outcome::good(format!("on: {}; workers belong on the faster ones", all.join(", "))),
        (_, true) => Outcome::advice(
            "off, or not of this CPU",
            "intel-speed-select base-freq info; anchorline tune --sst-bf --apply",
        ),
        _ => {
            Outcome::not_here("there is no /dev/isst_interface, and all CPUs show one base frequency or none")
        }
    }]
}

fn prefetch(view: &View<'_>) -> Vec<Outcome> {
    vec![match &view.facts.prefetchers {
        Err(because) => Outcome::not_here(because),
        Ok(Prefetchers { on, off }) if off.is_empty() => Outcome::good(format!("on: {}", on.join(", "))),
        Ok(Prefetchers { on, off }) if on.is_empty() => Outcome::good(format!("off: {}", off.join(", "))),
        Ok(Prefetchers { on, off }) => {
            Outcome::good(format!("on: {}; off: {}", on.join(", "), off.join(", ")))
        }
    }]
}
