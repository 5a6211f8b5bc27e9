//! DPDK ports as the data path sees them.

use crate::settings::{DpeSettings, PortSettings};
use dpdk::{Eal, Mbuf, Mempool, MempoolConfig, RxQueue, TxQueue};
use packet::ethernet::MacAddress;

/// Bytes of memory one packet takes in a pool: data room, mbuf and the pool's own header.
const PACKET_BYTES: u32 = 2_048 + 128 + 128 + 64;

/// One queue pair of a DPDK port.
pub(crate) struct Port {
    rx: RxQueue,
    tx: TxQueue,
    pool: Mempool,
    port: dpdk::Port,
}

impl dataplane::Port for Port {
    type Buffer = Mbuf;

    fn receive(&mut self, into: &mut Vec<Mbuf>, limit: usize) -> usize {
        self.rx.receive(into, limit)
    }

    fn send(&mut self, from: &mut Vec<Mbuf>) -> usize {
        self.tx.send(from)
    }

    fn allocate(&mut self) -> Option<Mbuf> {
        self.pool.alloc()
    }

    fn missed(&self) -> u64 {
        self.port.stats().map_or(0, |stats| stats.rx_missed + stats.rx_no_buffer)
    }

    fn is_contiguous(buffer: &Mbuf) -> bool {
        buffer.is_contiguous()
    }
}

/// Whether a device is a PCI address rather than a driver's name.
pub(crate) fn is_pci(device: &str) -> bool {
    device.starts_with(|c: char| c.is_ascii_hexdigit()) && device.contains(':')
}

/// Opens every port of the configuration, in its order.
pub(crate) fn open(
    eal: &Eal,
    dpe: &DpeSettings,
) -> Result<(Vec<dataplane::PortConfig>, Vec<Port>), dpdk::Error> {
    // Half of the memory is for packets; the rest is for queues, rings and what drivers want.
    let capacity = (dpe.memory_mb * (1 << 20) / 2 / PACKET_BYTES).min(262_143);
    let pool = Mempool::new(eal, MempoolConfig { capacity, ..MempoolConfig::default() })?;
    let opened: Result<Vec<_>, _> = dpe.ports.iter().map(|port| open_one(eal, port, &pool)).collect();
    Ok(opened?.into_iter().unzip())
}

fn open_one(
    eal: &Eal,
    settings: &PortSettings,
    pool: &Mempool,
) -> Result<(dataplane::PortConfig, Port), dpdk::Error> {
    let config = dpdk::PortConfig { mtu: settings.mtu, ..dpdk::PortConfig::new(&settings.device) };
    let mut port = dpdk::Port::open(eal, &config, pool)?;
    let no_queues = || dpdk::Error::Queues { device: settings.device.clone(), rx: 0, tx: 0 };
    let rx = port.take_rx_queues().pop().ok_or_else(no_queues)?;
    let tx = port.take_tx_queues().pop().ok_or_else(no_queues)?;
    let mac = MacAddress(port.capabilities().mac);
    let (name, address) = (&settings.name, settings.address);
    tracing::info!("port {name}: {} ({}), {mac}, {address}", settings.device, port.capabilities().driver);
    let config = dataplane::PortConfig {
        name: settings.name.clone(),
        device: settings.device.clone(),
        interface: settings.interface,
        mac,
        address,
        address6: settings.address6,
        mtu: settings.mtu,
        vlan: settings.vlan,
        mss_clamp: settings.mss_clamp,
    };
    Ok((config, Port { rx, tx, pool: pool.clone(), port }))
}
