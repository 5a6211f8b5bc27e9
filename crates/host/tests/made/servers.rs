//! Servers as they are found in racks and clouds.

use super::Made;
use anchorline_host::{Idle, Node, NodePort, Tables};

const XEON: &str =
    "sse4_2 avx2 avx512f avx512bw aes pclmulqdq clflushopt pdpe1gb constant_tsc nonstop_tsc hwp vmx";
const EPYC: &str =
    "sse4_2 avx2 avx512f avx512bw aes pclmulqdq clflushopt pdpe1gb constant_tsc nonstop_tsc monitorx svm";
/// The first CPU, whose sleep states are read, and the workers' of `node`.
const SOME: [usize; 3] = [0, 8, 20];
const GEN3: &str = "8.0 GT/s PCIe";
const GEN4: &str = "16.0 GT/s PCIe";

fn every(count: usize) -> Vec<usize> {
    (0..count).collect()
}

/// Two Xeons with an E810 in a slot of half the lanes (comms package there, not loaded) and an X710 (profile there).
pub(crate) fn xeon() -> Made {
    let made = Made::new();
    made.cpuinfo("GenuineIntel", "Intel(R) Xeon(R) Gold 6230N CPU @ 2.30GHz", XEON).cpus(2, 20);
    made.file(
        "/proc/cmdline",
        "root=/dev/sda1 isolcpus=managed_irq,domain,8-19 nohz_full=8-19 intel_iommu=on iommu=pt",
    );
    made.file("/sys/devices/system/cpu/isolated", "8-19").file("/sys/devices/system/cpu/nohz_full", "8-19");
    made.file("/proc/meminfo", "MemTotal:       395000000 kB").file("/proc/sys/kernel/numa_balancing", "1");
    made.huge_pages(0, 2048, [0, 0])
        .huge_pages(0, 1 << 20, [8, 6])
        .huge_pages(1, 2048, [512, 512])
        .huge_pages(1, 1 << 20, [0, 0]);
    made.file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
    made.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
    made.file("/sys/kernel/mm/ksm/run", "1").file("/proc/sys/kernel/nmi_watchdog", "1");
    made.of_cpus(&every(80), "cpufreq/scaling_governor", "powersave").of_cpus(
        &SOME,
        "cpufreq/scaling_driver",
        "intel_pstate",
    );
    made.of_cpus(&SOME, "cpufreq/energy_performance_preference", "balance_performance").of_cpus(
        &SOME,
        "power/energy_perf_bias",
        "6",
    );
    made.file("/sys/devices/system/cpu/intel_pstate/no_turbo", "1")
        .file("/sys/devices/system/cpu/intel_pstate/status", "active");
    made.sleep_states(&SOME, &[("POLL", 0), ("C1", 2), ("C1E", 10), ("C6", 133)]);
    for die in ["package_00_die_00", "package_01_die_00"] {
        let folder = format!("/sys/devices/system/cpu/intel_uncore_frequency/{die}");
        made.file(&format!("{folder}/min_freq_khz"), "800000")
            .file(&format!("{folder}/max_freq_khz"), "2400000");
    }
    made.file("/dev/isst_interface", "").file("/usr/sbin/intel-speed-select", "");
    xeon_devices(&made);
    made
}

fn xeon_devices(made: &Made) {
    for (number, dimm) in [("0", "Dell Inc."), ("1", "")] {
        made.folder(&format!("/sys/kernel/iommu_groups/{number}"));
        if !dimm.is_empty() {
            made.file("/sys/class/dmi/id/sys_vendor", dimm)
                .file("/sys/class/dmi/id/product_name", "PowerEdge R740");
        }
    }
    made.folder("/sys/module/vfio_pci").file("/proc/300/comm", "irqbalance");
    made.file("/etc/default/irqbalance", "# options\nIRQBALANCE_ARGS=\"[x]\"");
    made.nic("0000:3b:00.0", ("0x8086", "0x1592"), ("vfio-pci", 0))
        .pcie("0000:3b:00.0", [(GEN3, 8), (GEN4, 16)]);
    made.nic("0000:af:00.0", ("0x8086", "0x1572"), ("i40e", 1)).pcie("0000:af:00.0", [(GEN3, 8), (GEN3, 8)]);
    made.folder("/sys/bus/pci/devices/0000:af:00.0/net/ens3f0").file("/sys/class/net/ens3f0/operstate", "up");
    made.file("/sys/bus/pci/devices/0000:af:00.0/sriov_totalvfs", "64")
        .file("/sys/bus/pci/devices/0000:af:00.0/sriov_numvfs", "4");
    made.file("/lib/firmware/intel/i40e/ddp/gtp.pkgo", "profile");
    made.file("/lib/firmware/intel/ice/ddp/ice.pkg", "\0\0ICE OS Default Package\0");
    made.file("/lib/firmware/intel/ice/ddp-comms/ice_comms-1.3.45.0.pkg", "\0\0ICE COMMS Package\0");
    made.file(
        "/proc/interrupts",
        "           CPU0\n  24:   1   PCI-MSI 1-edge   nvme0q0\n  25:   1   PCI-MSI 2-edge   ens3f0-0",
    );
    made.interrupt(24, "0-79").interrupt(25, "10").interrupt(26, "0-7");
}

/// An EPYC with a ConnectX-6 Dx, well set up.
pub(crate) fn epyc() -> Made {
    let made = Made::new();
    made.cpuinfo("AuthenticAMD", "AMD EPYC 9354P 32-Core Processor", EPYC).cpus(1, 32);
    made.file(
        "/proc/cmdline",
        "isolcpus=managed_irq,domain,1-8 nohz_full=1-8 rcu_nocbs=1-8 iommu=pt mitigations=off",
    );
    made.file("/sys/devices/system/cpu/isolated", "1-8").file("/sys/devices/system/cpu/nohz_full", "1-8");
    made.file("/proc/meminfo", "MemTotal:       263000000 kB").huge_pages(0, 2048, [2048, 2048]).huge_pages(
        0,
        1 << 20,
        [0, 0],
    );
    made.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    made.of_cpus(&every(64), "cpufreq/scaling_governor", "performance").of_cpus(
        &[0],
        "cpufreq/scaling_driver",
        "acpi-cpufreq",
    );
    made.file("/sys/devices/system/cpu/cpufreq/boost", "1")
        .sleep_states(&every(9), &[("POLL", 0), ("C1", 1), ("C2", 400)]);
    made.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
    made.folder("/sys/kernel/iommu_groups/0").folder("/sys/module/vfio_pci");
    made.nic("0000:c1:00.0", ("0x15b3", "0x101d"), ("mlx5_core", 0))
        .pcie("0000:c1:00.0", [(GEN4, 16), (GEN4, 16)]);
    made.file("/sys/bus/pci/devices/0000:c1:00.0/infiniband/mlx5_0/fw_ver", "22.39.1002");
    made.folder("/sys/bus/pci/devices/0000:c1:00.0/net/enp193s0f0np0");
    made.interrupt(40, "0,9-31");
    made
}

/// A small machine of a cloud: an adapter of the cloud's own, a foreign clock, a quota.
pub(crate) fn cloud() -> Made {
    let made = Made::new();
    made.cpuinfo(
        "GenuineIntel",
        "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz",
        "sse4_2 avx2 aes pclmulqdq hypervisor constant_tsc nonstop_tsc",
    );
    made.cpus(1, 2)
        .file("/proc/cmdline", "root=/dev/nvme0n1p1")
        .file("/proc/meminfo", "MemTotal:        7900000 kB");
    made.file("/sys/class/dmi/id/sys_vendor", "Amazon EC2")
        .file("/sys/class/dmi/id/product_name", "m6i.xlarge");
    made.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "xen");
    made.file("/proc/self/cgroup", "0::/kubepods/pod1")
        .file("/sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000");
    made.file("/proc/1/cgroup", "0::/kubepods/pod1")
        .file("/proc/swaps", "Filename Type Size\n/swapfile file 1048576");
    made.nic("0000:00:05.0", ("0x1d0f", "0xec20"), ("ena", -1));
    made.folder("/sys/bus/pci/devices/0000:00:05.0/net/eth0").huge_pages(0, 2048, [0, 0]);
    made
}

/// A container that is shown nothing.
pub(crate) fn container() -> Made {
    let made = Made::new();
    made.file("/.dockerenv", "");
    made
}

/// A node as configured for `xeon`: two workers on a socket's isolated CPUs, a port on each card.
pub(crate) fn node() -> Node {
    let port = |name: &str, device: &str| NodePort { name: name.to_owned(), device: device.to_owned() };
    Node {
        workers: vec![8, 20],
        worker_count: 2,
        memory_mb: 8192,
        huge_pages: true,
        required: true,
        idle: Idle::Poll,
        sessions: 600_000,
        pdrs: 9_600_000,
        flows: 8_000_000,
        tables: Tables {
            sessions_bytes: 460 << 20,
            flows_bytes: 620 << 20,
            pdrs_bytes: 1_400 << 20,
            rules_bytes: 2_400 << 20,
            control_bytes: 1_200 << 20,
        },
        ports: vec![port("n3", "0000:3b:00.0"), port("n6", "0000:af:00.0"), port("n9", "0000:d8:00.0")],
    }
}
