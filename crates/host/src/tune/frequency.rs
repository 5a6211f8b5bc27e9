//! Frequencies and sleep states.

use super::plan::Wanted;
use super::step::Step;

const CPUS: &str = "/sys/devices/system/cpu";
/// States that wake up within this are left on: C1 of every processor does.
const SHALLOW_US: u64 = 10;

pub(super) fn steps(wanted: &Wanted<'_>) -> Vec<Step> {
    let mut steps = vec![turbo(wanted)];
    if wanted.workers.is_empty() {
        steps.push(Step::not_here("frequencies of workers", "no CPU is set apart for workers"));
    } else {
        steps.extend(governors(wanted));
        steps.extend(sleep(wanted));
    }
    steps.extend(uncore(wanted));
    steps
}

fn hidden(wanted: &Wanted<'_>) -> &'static str {
    match wanted.facts.machine.virtual_machine {
        true => "this is a virtual machine: frequencies are its host's business",
        false => "the kernel shows none (no cpufreq driver, or P-states are off in the BIOS)",
    }
}

fn turbo(wanted: &Wanted<'_>) -> Step {
    let Some((on, path)) = &wanted.facts.power.turbo else {
        return Step::not_here("turbo", hidden(wanted));
    };
    // One file says `no_turbo`, the other `boost`.
    let then = if path.ends_with("no_turbo") { "0" } else { "1" };
    match on {
        true => Step::done("turbo is on"),
        // `no_turbo` says 1 as well where the processor has none to give, and takes no other value then (EPERM).
        false => wanted
            .set(path, then, "frequency is throughput: 1.34 times from 2.3 to 3.5 GHz (Chunghwa MEC)")
            .unless_refused("turbo is off in the BIOS, or this CPU has none"),
    }
}

fn governors(wanted: &Wanted<'_>) -> Vec<Step> {
    let power = &wanted.facts.power;
    if power.governors.is_empty() {
        return vec![Step::not_here("governor", hidden(wanted))];
    }
    let mut steps = Vec::new();
    for cpu in wanted.workers.iter() {
        let folder = format!("{CPUS}/cpu{cpu}");
        let why = format!("the worker on CPU {cpu} keeps its frequency");
        if !power.preferences.is_empty() {
            steps.push(wanted.set(
                &format!("{folder}/cpufreq/energy_performance_preference"),
                "performance",
                &why,
            ));
        }
        if !power.biases.is_empty() {
            steps.push(wanted.set(&format!("{folder}/power/energy_perf_bias"), "0", &why));
        }
        // Last, so that it is undone first: under `performance` intel_pstate takes no other preference (EBUSY).
        steps.push(wanted.set(&format!("{folder}/cpufreq/scaling_governor"), "performance", &why));
    }
    steps
}

/// Deep states off, of workers alone: the others give what they save to turbo. `/dev/cpu_dma_latency` would do it for all
/// CPUs, and only while somebody holds it open.
fn sleep(wanted: &Wanted<'_>) -> Vec<Step> {
    let folder = format!("{CPUS}/cpu0/cpuidle");
    if wanted.root.list(&folder).is_empty() {
        return vec![Step::not_here("sleep states", "no idle driver shows any")];
    }
    let deep = wanted.root.list(&folder).into_iter().filter(|state| {
        wanted.root.value::<u64>(&format!("{folder}/{state}/latency")).is_some_and(|us| us > SHALLOW_US)
    });
    let deep: Vec<String> = deep.collect();
    if deep.is_empty() {
        return vec![Step::done("no sleep state takes long to wake up from")];
    }
    let of_cpu = |cpu: usize| {
        let path = move |state: &String| format!("{CPUS}/cpu{cpu}/cpuidle/{state}/disable");
        let why = format!("the worker on CPU {cpu} wakes up within {SHALLOW_US} us");
        deep.iter().map(move |state| wanted.set(&path(state), "1", &why))
    };
    wanted.workers.iter().flat_map(of_cpu).collect()
}

fn uncore(wanted: &Wanted<'_>) -> Vec<Step> {
    let dies = &wanted.facts.power.uncore;
    if dies.is_empty() {
        let because = match wanted.facts.cpu.is_intel() {
            true => "the module intel_uncore_frequency is not there",
            false => wanted.facts.cpu.not_intel(),
        };
        return vec![Step::not_here("uncore frequency", because)];
    }
    let why = "caches, memory controllers and PCIe keep their frequency while cores wait for them";
    let set = |die: &crate::Uncore| {
        let path = format!("{CPUS}/intel_uncore_frequency/{}/min_freq_khz", die.name);
        wanted.set(&path, &die.max_khz.to_string(), why)
    };
    dies.iter().map(set).collect()
}
