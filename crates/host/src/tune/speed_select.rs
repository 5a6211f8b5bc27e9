//! Intel Speed Select, through the tool of the kernel's sources: the interface has no files.

use super::plan::Wanted;
use super::step::{Command, Step};

/// Class 0 gets frequency first, class 3 last (kernel documentation, intel-speed-select).
const HIGH: &str = "0";
const LOW: &str = "3";

pub(super) fn steps(wanted: &Wanted<'_>) -> Vec<Step> {
    const WHAT: &str = "Speed Select (SST-CP, SST-BF)";
    let (facts, sst) = (wanted.facts, &wanted.facts.power.sst);
    if !facts.cpu.is_intel() {
        return vec![Step::not_here(WHAT, facts.cpu.not_intel())];
    }
    if !sst.interface {
        return vec![Step::not_here(WHAT, "there is no /dev/isst_interface")];
    }
    let Some(tool) = &sst.tool else {
        return vec![Step::not_here(WHAT, "intel-speed-select is not installed (Debian: linux-cpupower)")];
    };
    if wanted.workers.is_empty() || wanted.others.is_empty() {
        return vec![Step::not_here(WHAT, "no CPU is set apart for workers, or all are theirs")];
    }
    let mut steps = Vec::new();
    if wanted.base_frequency {
        // Not "-a", which gives classes to cores as the processor lists them, whoever works there.
        steps.push(run(
            tool,
            &["base-freq", "enable"],
            &["base-freq", "disable"],
            "higher guaranteed frequency for the cores that \"intel-speed-select base-freq info\" lists: have workers there",
        ));
    }
    steps.extend(core_power(wanted, tool));
    steps
}

/// ZTE's figure 1: worker cores held high, the others low.
fn core_power(wanted: &Wanted<'_>, tool: &str) -> Vec<Step> {
    let (workers, others) = (wanted.workers.to_string(), wanted.others.to_string());
    let assoc = |cpus: &str, class: &str, why: &str| {
        let back = ["-c", cpus, "core-power", "assoc", "--clos", HIGH];
        run(tool, &["-c", cpus, "core-power", "assoc", "--clos", class], &back, why)
    };
    vec![
        run(
            tool,
            &["core-power", "enable", "--priority", "1"],
            &["core-power", "disable"],
            "cores get frequency by class (as ZTE's UPF: 2.8 GHz for workers, 1.5 for the others)",
        ),
        assoc(&others, LOW, "cores without workers get what is left"),
        assoc(&workers, HIGH, "cores of workers come first"),
    ]
}

fn run(tool: &str, words: &[&str], undo: &[&str], why: &str) -> Step {
    let line =
        |words: &[&str]| std::iter::once(tool).chain(words.iter().copied()).map(str::to_owned).collect();
    Step::Run(Command { words: line(words), undo: line(undo), why: why.to_owned() })
}
