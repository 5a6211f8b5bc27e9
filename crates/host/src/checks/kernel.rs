//! The kernel.

use super::{Check, NO_FIGURE, View};
use crate::finding::Outcome;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "kernel.isolation",
        means: "CPUs that the scheduler leaves alone (isolcpus), without a tick (nohz_full) and without the kernel's own \
                callbacks (rcu_nocbs): a worker there is not interrupted for milliseconds at a time.",
        worth: "no published figure for it alone; without it the price is latency and loss at full load, not the mean",
        ask: isolation,
    },
    Check {
        id: "kernel.iommu",
        means: "With an IOMMU a card in user space reaches only the memory it was given, and virtual addresses will do; \
                iommu=pt keeps the kernel's own devices at full speed.",
        worth: "ZTE's BIOS table: VT for directed I/O enabled (needed for virtual functions); no figure for it alone",
        ask: iommu,
    },
    Check {
        id: "kernel.clock",
        means: "Workers read the time stamp counter themselves; the control plane and metrics ask the kernel, which must not \
                go to a device for it.",
        worth: NO_FIGURE,
        ask: clock,
    },
    Check {
        id: "kernel.mitigations",
        means: "Work-arounds for weaknesses of the CPU cost at every entry into the kernel. Workers hardly enter it over PCI \
                ports; AF_PACKET, AF_XDP and TAP ports enter it for every vector.",
        worth: NO_FIGURE,
        ask: mitigations,
    },
    Check {
        id: "kernel.watchdog",
        means: "The watchdog for stuck CPUs interrupts every CPU and takes a performance counter.",
        worth: NO_FIGURE,
        ask: watchdog,
    },
];

fn isolation(view: &View<'_>) -> Vec<Outcome> {
    let (kernel, topology) = (&view.facts.kernel, &view.facts.topology);
    if topology.cpus.is_empty() {
        return vec![Outcome::not_here("/sys/devices/system/cpu/online cannot be read")];
    }
    let named = kernel.cpus_of("isolcpus");
    let isolated = if topology.isolated.is_empty() { named } else { topology.isolated.clone() };
    let advice = "kernel command line: isolcpus=managed_irq,domain,CPUS nohz_full=CPUS rcu_nocbs=CPUS (anchorline tune writes it out)";
    if isolated.is_empty() {
        return vec![Outcome::advice("no CPU is isolated", advice)];
    }
    let missing: Vec<&str> = [("nohz_full", topology.tickless.is_empty()), ("rcu_nocbs", false)]
        .iter()
        .filter(|(name, empty)| kernel.parameter(name).is_none() && (*empty || *name == "rcu_nocbs"))
        .map(|(name, _)| *name)
        .collect();
    vec![match missing.is_empty() {
        true => Outcome::good(format!("CPUs {isolated}, without tick and callbacks")),
        false => Outcome::advice(format!("CPUs {isolated}, but not by {}", missing.join(", ")), advice),
    }]
}

fn iommu(view: &View<'_>) -> Vec<Outcome> {
    let (facts, kernel) = (view.facts, &view.facts.kernel);
    let intel = facts.cpu.is_intel();
    let switch = if intel { "intel_iommu=on iommu=pt" } else { "iommu=pt" };
    let groups = facts.iommu.groups;
    vec![match (groups, kernel.parameter("iommu")) {
        (0, _) if facts.machine.virtual_machine => {
            Outcome::not_here("this is a virtual machine and its host shows it no IOMMU")
        }
        (0, _) if facts.machine.container.is_some() => {
            Outcome::not_here("this is a container, which is not shown IOMMU groups")
        }
        (0, _) => Outcome::warning(
            "off",
            format!(
                "BIOS: Integrated I/O, VT for directed I/O (AMD: IOMMU): enabled; kernel command line: {switch}"
            ),
        ),
        (_, Some("pt")) => Outcome::good(format!("{groups} groups, the kernel's own devices passed through")),
        _ => Outcome::advice(
            format!("{groups} groups, all devices translated"),
            format!("kernel command line: {switch}"),
        ),
    }]
}

fn clock(view: &View<'_>) -> Vec<Outcome> {
    let kernel = &view.facts.kernel;
    let steady = view.facts.cpu.has("constant_tsc") && view.facts.cpu.has("nonstop_tsc");
    vec![match (kernel.clock.as_deref(), steady) {
        (None, _) => Outcome::not_here("/sys/devices/system/clocksource cannot be read"),
        (Some("tsc"), _) => Outcome::good("tsc"),
        (Some("kvm-clock" | "hyperv_clocksource_tsc_page"), true) => {
            Outcome::good("a clock of the hypervisor on a steady time stamp counter")
        }
        (Some(clock), true) => Outcome::warning(
            format!("{clock}, although the time stamp counter is steady"),
            "kernel command line: tsc=reliable clocksource=tsc; look in dmesg why the kernel distrusts it",
        ),
        (Some(clock), false) => Outcome::warning(
            format!("{clock}; the time stamp counter changes with the frequency or stops"),
            "let the hypervisor pass invtsc, or use another CPU: rates and times are measured with it",
        ),
    }]
}

fn mitigations(view: &View<'_>) -> Vec<Outcome> {
    let kernel = &view.facts.kernel;
    let how = kernel.parameter("mitigations").map_or_else(String::new, |how| format!(" (mitigations={how})"));
    let tsx = kernel.parameter("tsx").map_or_else(String::new, |how| format!(", tsx={how}"));
    vec![match kernel.mitigated.len() {
        0 => Outcome::good(format!("none cost anything{how}{tsx}")),
        number => Outcome::good(format!("{number} on{how}{tsx}: {}", kernel.mitigated.join(", "))),
    }]
}

fn watchdog(view: &View<'_>) -> Vec<Outcome> {
    vec![match view.facts.kernel.nmi_watchdog {
        None => Outcome::not_here("the kernel has no /proc/sys/kernel/nmi_watchdog"),
        Some(0) => Outcome::good("off"),
        Some(_) => Outcome::advice("on", "anchorline tune --apply switches it off"),
    }]
}
