//! Interrupts, away from workers.

use super::plan::Wanted;
use super::step::{Owner, Step, Write};
use crate::Interrupt;

pub(super) fn steps(wanted: &Wanted<'_>) -> Vec<Step> {
    const WHAT: &str = "interrupts away from workers";
    if wanted.workers.is_empty() {
        let because = "no CPU is set apart for workers: name them in the configuration, with --workers, or by isolcpus \
             (anchorline doctor layout proposes some)";
        return vec![Step::not_here(WHAT, because)];
    }
    if wanted.others.is_empty() {
        return vec![Step::not_here(WHAT, "all CPUs are the workers'")];
    }
    let mut steps: Vec<Step> =
        wanted.facts.interrupts.iter().filter_map(|interrupt| moved(wanted, interrupt)).collect();
    if steps.is_empty() {
        steps.push(Step::done(format!("no interrupt may go to CPUs {}", wanted.apart())));
    }
    steps.push(balancer(wanted));
    steps
}

/// Off the siblings, too: an interrupt there takes as much of the worker's core.
fn moved(wanted: &Wanted<'_>, interrupt: &Interrupt) -> Option<Step> {
    if interrupt.affinity.common(&wanted.apart()).is_empty() {
        return None;
    }
    let rest = interrupt.affinity.common(&wanted.others);
    let then = if rest.is_empty() { &wanted.others } else { &rest };
    let path = format!("/proc/irq/{}/smp_affinity_list", interrupt.number);
    Some(Step::Write(Write {
        now: wanted.root.read(&path).ok()?,
        path,
        then: then.to_string(),
        why: format!("interrupt {} ({}) leaves workers alone", interrupt.number, interrupt.name),
        refusal: Some("a driver has chosen its CPUs for good".to_owned()),
        owner: Some(Owner { interrupt: interrupt.number, name: interrupt.name.clone() }),
    }))
}

/// What irqbalance reads when it starts. It is told, not stopped: others rely on it. Of siblings as well, or it would take the
/// interrupts there that are taken away from them, as they look idle.
fn balancer(wanted: &Wanted<'_>) -> Step {
    const FILE: &str = "/etc/default/irqbalance";
    const KEY: &str = "IRQBALANCE_BANNED_CPULIST";
    if !wanted.facts.machine.irqbalance {
        return Step::done("irqbalance does not run");
    }
    let Ok(now) = wanted.root.read(FILE) else {
        return Step::Advice {
            what: format!("start irqbalance with {KEY}={}", wanted.apart()),
            why: format!("it runs and would move interrupts back, and there is no {FILE}"),
        };
    };
    let line = format!("{KEY}={}", wanted.apart());
    let kept = now.lines().filter(|other| !other.starts_with(KEY));
    let then = kept.chain([line.as_str()]).map(|line| format!("{line}\n")).collect::<String>();
    if now == then {
        return Step::done(format!("irqbalance keeps off CPUs {}", wanted.apart()));
    }
    let why =
        "irqbalance keeps off workers and their siblings, from its next start (systemctl restart irqbalance)"
            .to_owned();
    Step::Write(Write { path: FILE.to_owned(), now, then, why, refusal: None, owner: None })
}
