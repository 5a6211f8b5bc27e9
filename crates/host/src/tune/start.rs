//! What only the next start changes: it is said, not done.

use super::plan::Wanted;
use super::step::Step;
use crate::node::pages_of_1g;

pub(super) fn steps(wanted: &Wanted<'_>) -> Vec<Step> {
    if wanted.workers.is_empty() {
        return vec![Step::not_here(
            "the kernel's command line for workers",
            "no CPU is set apart for workers",
        )];
    }
    let mut steps = Vec::new();
    if wanted.others.is_empty() {
        // A kernel told to isolate all of them keeps one for itself, and a worker is there.
        let because = "all CPUs are the workers', and one must be left for the kernel and the control plane";
        steps.push(Step::not_here("isolation", because));
    }
    steps.push(advice(wanted));
    steps
}

fn advice(wanted: &Wanted<'_>) -> Step {
    let missing: Vec<String> = parameters(wanted).into_iter().filter(|word| lacks(wanted, word)).collect();
    if missing.is_empty() {
        return Step::done("the kernel's command line has all that is advised");
    }
    Step::Advice {
        what: format!("GRUB_CMDLINE_LINUX=\"{}\" in /etc/default/grub, then update-grub and restart", missing.join(" ")),
        why: "CPUs of workers and their siblings without scheduler, tick and callbacks; large pages that can only be had at the start; the \
              kernel's command line is never changed from here"
            .to_owned(),
    }
}

fn parameters(wanted: &Wanted<'_>) -> Vec<String> {
    let facts = wanted.facts;
    let mut words = Vec::new();
    if !wanted.others.is_empty() {
        let apart = wanted.apart();
        words.push(format!("isolcpus=managed_irq,domain,{apart}"));
        words.push(format!("nohz_full={apart}"));
        words.push(format!("rcu_nocbs={apart}"));
    }
    if facts.cpu.has("pdpe1gb") && wanted.huge_mb > 0 {
        words.push("hugepagesz=1G".to_owned());
        words.push(format!("hugepages={}", pages_of_1g(wanted.huge_mb)));
    }
    if !facts.machine.virtual_machine {
        words.extend(facts.cpu.is_intel().then(|| "intel_iommu=on".to_owned()));
        words.push("iommu=pt".to_owned());
    }
    words
}

/// Parameters with CPUs count as there if they name the workers' and their siblings at least.
fn lacks(wanted: &Wanted<'_>, word: &str) -> bool {
    let kernel = &wanted.facts.kernel;
    match word.split_once('=') {
        Some((name @ ("isolcpus" | "nohz_full" | "rcu_nocbs"), _)) => {
            !wanted.apart().without(&kernel.cpus_of(name)).is_empty()
        }
        Some((name, _)) => kernel.parameter(name).is_none(),
        None => kernel.parameter(word).is_none(),
    }
}
