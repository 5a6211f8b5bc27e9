//! DPDK ports as the data path sees them.

use super::memif;
use super::numa::{self, Pools};
use super::queues::{self, Inlet, Outlet, Queues};
use super::watch::Watched;
use crate::settings::{DpeSettings, PortSettings};
use dataplane::Crew;
use dpdk::{Eal, Mbuf, Mempool, PortCounter, RxQueue};
use dplink::PortSteering;
use host::Placement;
use packet::ethernet::MacAddress;
use rules::Instance;
use std::cell::Cell;
use steer::ExactRules;

/// A worker's part of a DPDK port.
pub(crate) struct Port {
    /// `None`: other workers receive, and hand over.
    inlet: Option<Inlet>,
    outlet: Outlet,
    pool: Mempool,
    /// The first worker asks the device what it counts, unless somebody else asks something of it just then.
    counter: Option<PortCounter>,
    /// What it counted last.
    missed: Cell<u64>,
}

impl Port {
    /// Those it receives from.
    pub(super) fn queues(&self) -> impl Iterator<Item = &RxQueue> {
        self.inlet.iter().flat_map(Inlet::queues)
    }
}

impl dataplane::Port for Port {
    type Buffer = Mbuf;

    fn receive(&mut self, into: &mut Vec<Mbuf>, limit: usize) -> usize {
        self.inlet.as_mut().map_or(0, |inlet| inlet.receive(into, limit))
    }

    fn classes(&self) -> usize {
        self.inlet.as_ref().map_or(0, |inlet| inlet.classes.len())
    }

    fn receive_class(&mut self, class: usize, into: &mut Vec<Mbuf>, limit: usize) -> usize {
        self.inlet.as_mut().map_or(0, |inlet| inlet.receive_class(class, into, limit))
    }

    fn send(&mut self, from: &mut Vec<Mbuf>) -> usize {
        self.outlet.send(from)
    }

    fn allocate(&mut self) -> Option<Mbuf> {
        self.pool.alloc()
    }

    fn missed(&self) -> u64 {
        if let Some(stats) = self.counter.as_ref().and_then(PortCounter::stats) {
            self.missed.set(stats.rx_missed + stats.rx_no_buffer);
        }
        self.missed.get()
    }
}

/// The ports of all workers.
pub(crate) struct Opened {
    pub(crate) configs: Vec<dataplane::PortConfig>,
    pub(crate) crew: Crew,
    /// By worker, then in the order of the configuration.
    pub(crate) ports: Vec<Vec<Port>>,
    /// What was found out about each port's card.
    pub(crate) steering: Vec<PortSteering>,
    /// What tells whether packets get through each.
    pub(super) watch: Vec<(Watched, PortCounter)>,
    /// The exact rules of each that is to have any.
    pub(crate) exact: Vec<Option<ExactRules<dpdk::Port>>>,
}

/// Opens every port of the configuration, in its order, each with packets where they belong.
pub(crate) fn open(eal: &Eal, dpe: &DpeSettings, placement: &Placement) -> Result<Opened, dpdk::Error> {
    let pools = Pools::make(eal, placement, dpe.memory_mb)?;
    let (workers, distributors) = (dpe.crew.workers, dpe.crew.distributors);
    let mut devices = Vec::new();
    for (at, settings) in dpe.ports.iter().enumerate() {
        let Some(pool) = pools.of(placement.packets.get(at).copied().flatten()) else { break };
        memif::make_way(&settings.device);
        devices.push((at, settings, pool, queues::open(eal, settings, &dpe.crew, pool)?));
    }
    // One function says who owns a user, whatever port the packets come by: it is known once all tables are.
    let tables = devices.iter().filter_map(|(_, settings, _, device)| queues::table(settings, device));
    let (period, balance) = (steer::period(tables), dpe.crew.balance);
    let mut opened = Opened {
        configs: Vec::new(),
        crew: Crew { workers, distributors, spread: Vec::new(), balance, period },
        ports: (0..workers).map(|_| Vec::new()).collect(),
        steering: Vec::new(),
        watch: Vec::new(),
        exact: Vec::new(),
    };
    for (at, settings, pool, device) in devices {
        let mut queues = queues::share_out(device, settings, (&dpe.crew, period))?;
        queues.steering.placement = numa::told(placement, at, pool.nodes());
        opened.configs.push(config(settings, &queues));
        opened.crew.spread.push(queues.spread);
        let watched = Watched::new(&settings.name, &settings.device);
        opened.watch.push((watched, queues.port.counter()));
        opened.steering.push(std::mem::take(&mut queues.steering));
        let (grant, port) = (queues.exact, share_out(queues, pool, &mut opened.ports));
        opened.exact.push(grant.map(|grant| ExactRules::new(port, grant, settings.exact_rules)));
    }
    Ok(opened)
}

/// Gives each worker its queues; what is left is to be kept by whoever has something to ask of the device while it runs.
fn share_out(queues: Queues, pool: &Mempool, workers: &mut [Vec<Port>]) -> dpdk::Port {
    let (mut inlets, mut counter) = (queues.inlets.into_iter(), Some(queues.port.counter()));
    for (worker, outlet) in workers.iter_mut().zip(queues.outlets) {
        let (pool, missed) = (pool.clone(), Cell::new(0));
        worker.push(Port { inlet: inlets.next(), outlet, pool, counter: counter.take(), missed });
    }
    queues.port
}

fn config(settings: &PortSettings, queues: &Queues) -> dataplane::PortConfig {
    let capabilities = queues.port.capabilities();
    let mac = MacAddress(capabilities.mac);
    let (name, spread) = (&settings.name, queues.spread.about());
    let address = match settings.ethernet {
        true => "Ethernet".to_owned(),
        false => settings.address.to_string(),
    };
    tracing::info!("port {name}: {} ({}), {mac}, {address}, {spread}", settings.device, capabilities.driver);
    let PortSteering { reason, refused, .. } = &queues.steering;
    tracing::info!("port {name}: {reason}");
    refused.iter().for_each(|refused| tracing::info!("port {name}: not taken: {refused}"));
    for apart in &queues.steering.placement.apart {
        tracing::warn!("port {name}: {apart}");
    }
    for class in queues.steering.classes.iter().filter(|class| !class.in_force) {
        tracing::warn!(
            "port {name}: class {} is not served first: its packets are with the rest",
            class.name
        );
    }
    dataplane::PortConfig {
        name: settings.name.clone(),
        device: settings.device.clone(),
        interface: settings.interface,
        instance: settings.network_instance.as_deref().map_or(Instance::DEFAULT, Instance::of),
        mac,
        address: settings.address,
        address6: settings.address6,
        mtu: settings.mtu,
        vlan: settings.vlan,
        mss_clamp: settings.mss_clamp,
        ethernet: settings.ethernet,
        punt: settings.punt.clone(),
    }
}
