//! What can go wrong, each in one sentence for a person: what failed, for which device, and the remedy.

/// Why DPDK, a pool or a port is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `rte_eal_init` refused.
    #[error("DPDK does not start: {reason}; correct the memory, cores or devices it is given")]
    Start {
        /// DPDK's own words.
        reason: String,
    },
    /// [`HugePages::Require`](crate::HugePages::Require) without enough of them.
    #[error(
        "huge pages are required, but {free_mb} MB of {wanted_mb} MB are free and no more can be reserved; \
         reserve them as root (sysctl vm.nr_hugepages=N) or allow ordinary memory"
    )]
    NoHugePages {
        /// Memory asked for, in MB.
        wanted_mb: u64,
        /// Memory in free huge pages, in MB.
        free_mb: u64,
    },
    /// After [`Eal::cleanup`](crate::Eal::cleanup); DPDK starts once per process.
    #[error("DPDK was shut down in this process; restart the process to use it again")]
    Closed,
    /// [`Eal::cleanup`](crate::Eal::cleanup) while something still uses DPDK.
    #[error(
        "DPDK cannot shut down while {ports} ports, {pools} packet pools and {workers} worker threads use it; \
         drop them and every packet first"
    )]
    InUse {
        /// Ports open.
        ports: usize,
        /// Pools alive, or dropped with packets still outside.
        pools: usize,
        /// Threads registered.
        workers: usize,
    },
    /// A thread cannot register as worker.
    #[error(
        "this thread cannot register as a DPDK worker: {reason}; register once per thread, at most 127 threads"
    )]
    Thread {
        /// DPDK's own words.
        reason: String,
    },
    /// A pool of that shape makes no sense.
    #[error(
        "a pool of {capacity} packets cannot have caches of {cache}; \
         take 1 packet or more, and caches of at most 512 and two thirds of them"
    )]
    PoolShape {
        /// Packets asked for.
        capacity: u32,
        /// Packets per cache asked for.
        cache: u32,
    },
    /// A pool is not to be had.
    #[error(
        "a pool of {capacity} packets of {room_bytes} bytes cannot be made: {reason}; raise memory_mb or lower the pool's size"
    )]
    Pool {
        /// Packets asked for.
        capacity: u32,
        /// Data room of each, in bytes.
        room_bytes: u16,
        /// DPDK's own words.
        reason: String,
    },
    /// The device string is not one.
    #[error(
        "\"{device}\" is not a device; write a PCI address (0000:3b:00.0) or a driver with arguments (net_tap0,iface=t0)"
    )]
    BadDevice {
        /// As configured.
        device: String,
    },
    /// The kernel interface a device attaches to is missing.
    #[error("interface {interface} does not exist; create it, or correct the interface in \"{device}\"")]
    NoInterface {
        /// The interface's name.
        interface: String,
        /// As configured.
        device: String,
    },
    /// A file a device needs is missing.
    #[error(
        "file {path} of device \"{device}\" does not exist; correct the path, or start what provides it first"
    )]
    NoFile {
        /// The path.
        path: String,
        /// As configured.
        device: String,
    },
    /// The process may not do what the device takes.
    #[error("device \"{device}\" needs {privilege}; run as root or grant it to the executable")]
    NoPrivilege {
        /// As configured.
        device: String,
        /// The capability, or the file to be opened.
        privilege: String,
    },
    /// No driver of DPDK goes by that name.
    #[error(
        "no DPDK driver is called \"{driver}\" (device \"{device}\"); correct the name or install its librte-net package"
    )]
    UnknownDriver {
        /// The driver's part of the device's name.
        driver: String,
        /// As configured.
        device: String,
    },
    /// A PCI device the EAL was not told about when it started.
    #[error(
        "PCI device {device} is not among those DPDK was started with; name it in the start configuration"
    )]
    NotAllowed {
        /// The PCI address.
        device: String,
    },
    /// There is no PCI device at that address.
    #[error("PCI device {device} does not exist; \"lspci -D\" lists those that do")]
    NoPciDevice {
        /// The PCI address.
        device: String,
    },
    /// DPDK cannot have a PCI device, perhaps because the kernel has it.
    #[error(
        "PCI device {device} cannot be attached while it has {holder}: {reason}; bind it to vfio-pci (dpdk-devbind.py)"
    )]
    PciDriver {
        /// The PCI address.
        device: String,
        /// The kernel's driver, or its lack of one.
        holder: String,
        /// DPDK's own words.
        reason: String,
    },
    /// The port is open already.
    #[error("device \"{device}\" is already open; give each port a device of its own name")]
    AlreadyOpen {
        /// As configured.
        device: String,
    },
    /// More queues than the device has, or none.
    #[error(
        "device \"{device}\" has at most {rx} receive and {tx} transmit queues; configure 1 to that many"
    )]
    Queues {
        /// As configured.
        device: String,
        /// Receive queues it has.
        rx: u16,
        /// Transmit queues it has.
        tx: u16,
    },
    /// The MTU does not fit the device or the pool.
    #[error("an MTU of {mtu} bytes does not fit device \"{device}\": {least} to {most} bytes do")]
    Mtu {
        /// As configured.
        device: String,
        /// The MTU asked for, in bytes.
        mtu: u16,
        /// The smallest the device takes, in bytes.
        least: u16,
        /// The largest that device and pool take, in bytes.
        most: u16,
    },
    /// A flow rule is not taken.
    #[error("device \"{device}\" does not take the flow rule \"{rule}\": {reason}")]
    FlowRule {
        /// As configured.
        device: String,
        /// Its pattern and action, as testpmd reads them.
        rule: String,
        /// The driver's own words.
        reason: String,
    },
    /// The device's driver refused.
    #[error("device \"{device}\" cannot be {action}: {reason}")]
    Device {
        /// As configured.
        device: String,
        /// What was tried.
        action: &'static str,
        /// The driver's own words.
        reason: String,
    },
}
