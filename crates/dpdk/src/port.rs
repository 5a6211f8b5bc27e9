//! Ports: a device of DPDK, configured and running.

use crate::capabilities::Capabilities;
use crate::device::Device;
use crate::eal::Eal;
use crate::error::Error;
use crate::ethdev::{Errno, Ethdev};
use crate::flow::{Flow, RuleId};
use crate::interface::Interface;
use crate::loopback::Rings;
use crate::mempool::Mempool;
use crate::queue::{RxQueue, TxQueue};
use crate::setup::{attach, attempt, set_up};
use crate::{control, log, sys};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// How a port is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// A PCI address ("0000:3b:00.0") or a driver with arguments ("net_af_packet0,iface=n3").
    pub device: String,
    /// Receive queues, at least 1. With more the device spreads packets by its hash.
    pub rx_queues: u16,
    /// Transmit queues, at least 1.
    pub tx_queues: u16,
    /// Packets a receive queue holds; the device may round.
    pub rx_descriptors: u16,
    /// Packets a transmit queue holds; the device may round.
    pub tx_descriptors: u16,
    /// Largest IP packet, in bytes. A TAP's interface gets it too; other interfaces of the kernel keep their own.
    pub mtu: u16,
}

impl PortConfig {
    /// One queue each way, 1024 descriptors, MTU 1500.
    pub fn new(device: &str) -> Self {
        Self {
            device: device.to_owned(),
            rx_queues: 1,
            tx_queues: 1,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            mtu: 1500,
        }
    }
}

/// Whether the port's cable has somebody at its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Packets can pass.
    pub up: bool,
    /// Speed, in Mbit/s; `None` where the device does not know.
    pub speed_mbps: Option<u32>,
}

/// What passed a port since it was opened, as its device counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets the device dropped because nobody took them from its queue.
    pub rx_missed: u64,
    /// Packets received broken.
    pub rx_errors: u64,
    /// Packets the device failed to send.
    pub tx_errors: u64,
    /// Packets not received because the pool was empty.
    pub rx_no_buffer: u64,
}

/// Whether packets get through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// They do.
    Up,
    /// Not now: there is no carrier, or the interface is down.
    Down,
    /// Its interface in the kernel is gone.
    Gone,
    /// There is another interface of its name, of which the port knows nothing until it is opened again.
    Replaced,
}

/// The device while anybody uses it: the port or one of its queues.
#[derive(Debug)]
pub(crate) struct OpenPort {
    pub(crate) ethdev: Ethdev,
    device: String,
    /// If it is on one of the kernel's.
    interface: Option<Interface>,
    /// What a loopback is made of.
    rings: Option<Arc<Rings>>,
    /// The device holds packets of it.
    _pool: Mempool,
}

impl OpenPort {
    /// As configured.
    pub(crate) fn device(&self) -> &str {
        &self.device
    }
}

/// The caller holds the control lock.
impl OpenPort {
    fn ask<T>(&self, action: &'static str, call: fn(Ethdev) -> Result<T, Errno>) -> Result<T, Error> {
        attempt(&self.device, action, || call(self.ethdev))
    }

    fn link(&self) -> Result<Link, Error> {
        let link = self.ask("asked for its link", Ethdev::link)?;
        let known = link.link_speed != 0 && link.link_speed != u32::MAX;
        Ok(Link {
            up: u32::from(link.link_status()) == sys::RTE_ETH_LINK_UP,
            speed_mbps: known.then_some(link.link_speed),
        })
    }

    fn stats(&self) -> Result<PortStats, Error> {
        let stats = self.ask("asked for its statistics", Ethdev::stats)?;
        Ok(PortStats {
            rx_packets: stats.ipackets,
            rx_bytes: stats.ibytes,
            tx_packets: stats.opackets,
            tx_bytes: stats.obytes,
            rx_missed: stats.imissed + self.interface.as_ref().map_or(0, Interface::lost),
            rx_errors: stats.ierrors,
            tx_errors: stats.oerrors,
            rx_no_buffer: stats.rx_nombuf,
        })
    }
}

impl Drop for OpenPort {
    fn drop(&mut self) {
        let mut control = control::lock();
        // SAFETY: the last user is gone, queues included, and the device is removed once.
        let ((), _log) = log::capture(|| unsafe { self.ethdev.remove() });
        self.rings = None;
        control.port_closed();
    }
}

/// A device, configured and running. It is stopped and closed when the port and all of its queues are dropped.
#[derive(Debug)]
pub struct Port {
    open: Arc<OpenPort>,
    capabilities: Capabilities,
    promiscuous: bool,
    rx_queues: Vec<RxQueue>,
    tx_queues: Vec<TxQueue>,
    /// As many as it was opened with.
    queues: (usize, usize),
    /// Flow rules in force, and the number of the next.
    rules: BTreeMap<RuleId, Flow>,
    next_rule: u64,
    /// Not shared between threads: DPDK's control functions are not made for it.
    not_sync: PhantomData<Cell<()>>,
}

impl Port {
    /// Opens a device, configures it with its queues receiving into `pool`, and starts it, promiscuous where the
    /// device can be. It attaches in the network namespace of the calling thread.
    ///
    /// # Errors
    /// What is wrong with the device, the configuration or the privileges; nothing stays open.
    pub fn open(eal: &Eal, config: &PortConfig, pool: &Mempool) -> Result<Self, Error> {
        let device = Device::new(&config.device)?;
        if device.is_pci() && !eal.allows_pci(device.name()) {
            return Err(Error::NotAllowed { device: device.name().to_owned() });
        }
        device.check()?;
        let mut control = control::lock_running()?;
        let ethdev = attach(device)?;
        Self::start(ethdev, config, pool, None).inspect(|_| control.port_opened())
    }

    /// Configures and starts a device, or removes it. The caller holds the control lock and counts the port.
    pub(crate) fn start(
        ethdev: Ethdev,
        config: &PortConfig,
        pool: &Mempool,
        rings: Option<Arc<Rings>>,
    ) -> Result<Self, Error> {
        match set_up(ethdev, config, pool) {
            Ok((capabilities, promiscuous)) => {
                let device = config.device.clone();
                let interface = Interface::of(&device, config.mtu);
                let open = OpenPort { ethdev, device, interface, rings, _pool: pool.clone() };
                Ok(Self::new(Arc::new(open), config, capabilities, promiscuous))
            }
            Err(error) => {
                // SAFETY: nobody has the device yet.
                let ((), _log) = log::capture(|| unsafe { ethdev.remove() });
                Err(error)
            }
        }
    }

    fn new(open: Arc<OpenPort>, config: &PortConfig, capabilities: Capabilities, promiscuous: bool) -> Self {
        let rx_queues: Vec<_> = (0..config.rx_queues).map(|queue| RxQueue::new(&open, queue)).collect();
        let tx_queues: Vec<_> = (0..config.tx_queues).map(|queue| TxQueue::new(&open, queue)).collect();
        let queues = (rx_queues.len(), tx_queues.len());
        let (rules, next_rule) = (BTreeMap::new(), 0);
        let not_sync = PhantomData;
        Self { open, capabilities, promiscuous, rx_queues, tx_queues, queues, rules, next_rule, not_sync }
    }

    /// What its device can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The device as configured.
    pub fn device(&self) -> &str {
        &self.open.device
    }

    /// Whether packets for other addresses are received too.
    pub fn promiscuous(&self) -> bool {
        self.promiscuous
    }

    /// Receive queues it was opened with.
    pub fn queues(&self) -> usize {
        self.queues.0
    }

    /// Its receive queues, in order; nothing when they have been taken before.
    pub fn take_rx_queues(&mut self) -> Vec<RxQueue> {
        std::mem::take(&mut self.rx_queues)
    }

    /// Its transmit queues, in order; nothing when they have been taken before.
    pub fn take_tx_queues(&mut self) -> Vec<TxQueue> {
        std::mem::take(&mut self.tx_queues)
    }

    /// The link as it is now.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver cannot say.
    pub fn link(&self) -> Result<Link, Error> {
        let _control = control::lock();
        self.open.link()
    }

    /// What passed until now.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver does not count.
    pub fn stats(&self) -> Result<PortStats, Error> {
        let _control = control::lock();
        self.open.stats()
    }

    /// Its counters, for a thread that must not wait for what others do about the port.
    pub fn counter(&self) -> PortCounter {
        PortCounter(self.open.clone())
    }

    /// Runs a call about the port under the control lock; also what DPDK logged meanwhile.
    pub(crate) fn with_lock<T>(&self, call: impl FnOnce(u16) -> T) -> (T, String) {
        let _control = control::lock();
        log::capture(|| call(self.open.ethdev.0))
    }

    /// Whether none of its queues has been taken, so that nobody can be receiving or sending.
    pub(crate) fn has_its_queues(&self) -> bool {
        (self.rx_queues.len(), self.tx_queues.len()) == self.queues
    }

    pub(crate) fn keep_rule(&mut self, flow: Flow) -> RuleId {
        let id = RuleId(self.next_rule);
        self.next_rule += 1;
        self.rules.insert(id, flow);
        id
    }

    pub(crate) fn forget_rule(&mut self, id: RuleId) -> Option<Flow> {
        self.rules.remove(&id)
    }

    pub(crate) fn forget_rules(&mut self) {
        self.rules.clear();
    }

    /// Nothing is received or sent from now on; refused unless the port has all its queues.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        if !self.has_its_queues() {
            let (device, reason) = (self.device().to_owned(), "its queues are in use".to_owned());
            return Err(Error::Device { device, action: "stopped", reason });
        }
        let _control = control::lock();
        // SAFETY: all queues are here, so nobody else has any, and we are borrowed alone.
        attempt(self.device(), "stopped", || unsafe { self.open.ethdev.stop() })
    }

    /// It runs again.
    pub(crate) fn go_on(&mut self) -> Result<(), Error> {
        let _control = control::lock();
        self.ask("started again", Ethdev::start)
    }

    fn ask<T>(&self, action: &'static str, call: fn(Ethdev) -> Result<T, Errno>) -> Result<T, Error> {
        self.open.ask(action, call)
    }
}

/// The counters of a port, which is open as long as this is there.
#[derive(Clone, Debug)]
pub struct PortCounter(Arc<OpenPort>);

impl PortCounter {
    /// What passed until now; `None` while something else is being done about any port, and where the driver does not count.
    pub fn stats(&self) -> Option<PortStats> {
        let _control = control::try_lock()?;
        self.0.stats().ok()
    }

    /// Octets of the longest IP packet that its interface in the kernel takes, where that is shorter than the port's longest: longer ones are
    /// lost, and the driver counts them as sent.
    pub fn narrowed(&self) -> Option<u32> {
        self.0.interface.as_ref()?.narrowed()
    }

    /// Whether packets get through; `None` while something else is being done about any port, and where the driver cannot say.
    pub fn link(&self) -> Option<LinkState> {
        if let Some(interface) = &self.0.interface {
            return Some(interface.state());
        }
        let _control = control::try_lock()?;
        self.0.link().ok().map(|link| if link.up { LinkState::Up } else { LinkState::Down })
    }
}
