//! DPDK, safely: memory, packet buffers, ports and their queues.
//!
//! This is the one crate that may be `unsafe`. DPDK's functions are bound by `bindgen`, its inline ones come through a
//! C shim, once per vector of packets, compiled for the CPU that `ANCHORLINE_CPU` names, else rustc's `target-cpu`, else
//! this machine's. DPDK loads its drivers at run time.
//!
//! ```no_run
//! use anchorline_dpdk::{Eal, EalConfig, Mempool, MempoolConfig, Port, PortConfig};
//!
//! let eal = Eal::init(&EalConfig::default())?;
//! let pool = Mempool::new(eal, MempoolConfig::default())?;
//! let mut port = Port::open(eal, &PortConfig::new("net_af_packet0,iface=n3"), &pool)?;
//! let (mut rx, mut tx) = (port.take_rx_queues().remove(0), port.take_tx_queues().remove(0));
//! let _worker = eal.register_thread()?;
//! let mut packets = Vec::with_capacity(256);
//! loop {
//!     rx.receive(&mut packets, 256);
//!     tx.send(&mut packets);
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), anchorline_dpdk::Error>(())
//! ```
//!
//! # What lives how long
//!
//! DPDK starts once per process and is shared by all threads. A pool is freed when its handles, its ports and its
//! packets are gone, a port is closed when its handle and its queues are; [`Eal::cleanup`] refuses before that. Control
//! functions take one lock, the packet path takes none. A queue is owned by one thread; a packet may go to any.
//!
//! # Memory
//!
//! [`HugePages::Auto`] takes free huge pages, else has the kernel make some for this process alone, by an overcommit limit
//! raised while DPDK maps them: they are free again when the process ends, even if it is killed. Without the right to
//! that, memory is ordinary.
//! Pools lay their packets close together in both. DPDK's own function for it would give each a page of 4 KiB when there
//! are no huge ones, and their headers then fight for the same sets of the cache.
//!
//! Cycles per packet (`examples/floor.rs`; 2.45 GHz AMD Zen 3, shared, best of 15 rounds; vectors of 64):
//!
//! | | huge pages | ordinary | ordinary, a page each |
//! |---|---|---|---|
//! | receive, free in bulk | 15 | 15 | |
//! | receive, free one by one | 24 | 24 | 56 |
//! | receive, send (net_null) | 29 | 29 | |
//! | the same, first bytes touched | 33 | 33 | 93 |
//! | the same, not a worker thread | 39 | 41 | |
//! | 7000 packets in a ring, touched | 12 | 15 to 17 | 50 |
//!
//! Where there are several NUMA nodes, [`EalConfig::nodes`] says how much memory is to be on which: DPDK is asked for that if
//! enough huge pages are free there, and makes its own choice otherwise (pages beyond the kernel's pool it takes on node 0
//! alone). [`MempoolConfig::node`] is where a pool's packets are to be, [`Mempool::nodes`] where the kernel says they are, and
//! [`Preference`] is for memory that is not DPDK's. Queues are on their device's node, or where there is memory. All of that
//! has run on machines of one node only: there the calls were taken and did what they were to, and what another node would have
//! changed was never seen.
//!
//! # Devices
//!
//! What has been run, by the tests and by `examples/ports.rs`: one thread that fills packets, sends from one port,
//! receives at the other and frees, on a shared machine of 2 cores; the best of some runs, which differ by half. Nothing
//! was lost in any.
//!
//! | devices | 64 bytes | 1400 bytes | without root | remarks |
//! |---|---|---|---|---|
//! | [`Port::loopback`], `net_ring` | 91 Mpackets/s | 29 | yes | |
//! | `net_null`, `net_pcap` files | see above | | yes | not measured by rate |
//! | `net_memif`, both ends in one process | 18 | 3.2 | yes | sends once the peer has polled; closing while the peer closes frees twice inside the driver |
//! | `net_vhost` with `net_virtio_user` | 11 | 3.8 | yes | on huge pages thanks to one file for all of them |
//! | `net_af_packet` over veth | 0.43 | 0.36 | in a user namespace | also with two queues (`qpairs=2`) |
//! | `net_tap` with `net_af_packet` on its interface | 0.46 | 0.36 | in a user namespace | |
//! | `net_af_xdp` over veth, copy mode | 0.57 | 0.51 | no: the kernel loads BPF for the machine's root only | the driver keeps the 2048 packets it lent to the kernel when it closes, so [`Eal::cleanup`] is refused after it |
//!
//! Huge and ordinary pages carried the same packets and differ less than the runs do. **Not run**: any PCI device (this
//! was written on a machine without one; that an absent or unbound one is told has been run), AF_XDP in zero-copy mode or
//! with several queues, `net_virtio_user` on `/dev/vhost-net`, `net_pcap` on an interface, memif and vhost against another
//! process, machines with several NUMA nodes, light sleeps of idle workers (no WAITPKG was here), anything but x86-64, DPDK
//! releases other than 22.11.

mod capabilities;
mod card;
mod control;
mod cpus;
mod cycles;
mod device;
mod eal;
mod error;
mod ethdev;
mod flow;
mod hash;
mod hugepages;
mod idle;
mod interface;
mod log;
mod loopback;
mod mbuf;
mod mempool;
mod mtu;
mod numa;
mod port;
mod queue;
mod quiet;
mod rest;
mod setup;
mod sys;
mod threads;

pub use capabilities::{Capabilities, Checksums, RssTypes};
pub use cycles::{prefetch_read, tsc};
pub use eal::{Eal, EalConfig, HugePages, Memory};
pub use error::Error;
pub use flow::RuleId;
pub use hash::toeplitz;
pub use idle::{Backoff, Idle};
pub use log::log_to;
pub use mbuf::Mbuf;
pub use mempool::{Mempool, MempoolConfig};
pub use numa::Preference;
pub use port::{Link, LinkState, Port, PortConfig, PortCounter, PortStats};
pub use queue::{RxQueue, TxQueue};
pub use rest::{Choice, CpuRests, Manner, Rests, wake_on_time};
pub use threads::WorkerThread;

/// The release of DPDK this was built against, such as "22.11.7".
pub const VERSION: &str = env!("ANCHORLINE_DPDK_VERSION");
