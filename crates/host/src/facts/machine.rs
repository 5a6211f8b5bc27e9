//! Whether the machine is one, and what it is allowed.

use crate::Root;
use serde::Serialize;

/// The machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// Who made it.
    pub maker: Option<String>,
    /// What it is.
    pub product: Option<String>,
    /// Version of its BIOS.
    pub bios: Option<String>,
    /// Whether a hypervisor runs it (the CPU says so).
    pub virtual_machine: bool,
    /// What makes this look like a container.
    pub container: Option<String>,
    /// CPUs that the control group allows this process, in thousandths; `None` without a limit.
    pub quota_millicpus: Option<u64>,
    /// Whether `irqbalance` runs.
    pub irqbalance: bool,
}

impl Machine {
    pub(super) fn read(root: &Root) -> Self {
        let dmi = |name: &str| root.text(&format!("/sys/class/dmi/id/{name}"));
        let flags = root.text("/proc/cpuinfo").unwrap_or_default();
        let hypervisor = |line: &str| {
            line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
        };
        Self {
            maker: dmi("sys_vendor"),
            product: dmi("product_name"),
            bios: dmi("bios_version"),
            virtual_machine: flags.lines().any(hypervisor),
            container: container(root),
            quota_millicpus: quota(root),
            irqbalance: runs(root, "irqbalance"),
        }
    }
}

fn container(root: &Root) -> Option<String> {
    let marks = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")];
    let mark = marks.iter().find(|(file, _)| root.exists(file)).map(|(_, name)| (*name).to_owned());
    mark.or_else(|| root.text("/run/systemd/container")).or_else(|| {
        let groups = root.text("/proc/1/cgroup")?;
        let known = ["kubepods", "docker", "lxc", "containerd"];
        known.iter().find(|name| groups.contains(**name)).map(|name| (*name).to_owned())
    })
}

/// The tightest limit from this process's group upwards, of version 2 or 1.
fn quota(root: &Root) -> Option<u64> {
    let groups = root.text("/proc/self/cgroup").unwrap_or_default();
    let of_two = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let of_one =
        groups.lines().find_map(|line| line.split_once(":cpu,cpuacct:").or(line.split_once(":cpu:")));
    let of_one = of_one.map_or("/", |(_, group)| group);
    let two = parents(of_two).filter_map(|group| {
        let text = root.text(&format!("/sys/fs/cgroup{group}/cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        millicpus(quota.parse().ok()?, period.trim().parse().ok()?)
    });
    let one = parents(of_one).filter_map(|group| {
        let number = |name: &str| root.value::<i64>(&format!("/sys/fs/cgroup/cpu{group}/{name}"));
        millicpus(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
    });
    two.chain(one).min()
}

/// `/a/b`, `/a`, and nothing for the root.
fn parents(group: &str) -> impl Iterator<Item = &str> {
    let first = Some(group.trim_end_matches('/'));
    std::iter::successors(first, |group| group.rsplit_once('/').map(|(parent, _)| parent)).take(32)
}

fn millicpus(quota_us: i64, period_us: i64) -> Option<u64> {
    let quota = u64::try_from(quota_us).ok()?;
    quota.saturating_mul(1000).checked_div(u64::try_from(period_us).ok()?)
}

fn runs(root: &Root, program: &str) -> bool {
    let processes =
        root.list("/proc").into_iter().filter(|name| name.starts_with(|first: char| first.is_ascii_digit()));
    processes
        .into_iter()
        .any(|process| root.text(&format!("/proc/{process}/comm")).as_deref() == Some(program))
}

/// What keeps devices apart.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Iommu {
    /// Groups of devices that an IOMMU keeps apart; none where there is none or it is off.
    pub groups: usize,
    /// Whether user space may have devices without one (unsafe).
    pub no_iommu: bool,
}

impl Iommu {
    pub(super) fn read(root: &Root) -> Self {
        const GROUPS: &str = "/sys/kernel/iommu_groups";
        let parameter = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
        // VFIO without an IOMMU makes groups, too, each of a device that nothing keeps from all memory.
        let is_kept_apart =
            |group: &String| root.text(&format!("{GROUPS}/{group}/name")).as_deref() != Some("vfio-noiommu");
        Self {
            groups: root.list(GROUPS).iter().filter(|group| is_kept_apart(group)).count(),
            no_iommu: root.text(parameter).as_deref() == Some("Y"),
        }
    }
}
