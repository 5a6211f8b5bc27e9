//! As many queues of a device as it has and the workers can use.

use super::exact::{self, Grant};
use super::steering::{self, Asked};
use crate::settings::{CrewSettings, DeviceHash, PortSettings};
use dpdk::{Capabilities, Eal, Error, Mempool, PortConfig, RxQueue, TxQueue};
use dplink::{PortSteering, Spread};
use rules::Interface;
use std::sync::{Arc, Mutex, PoisonError};
use steer::{Family, Side};

/// Where a worker sends.
pub(super) enum Outlet {
    /// A queue of its own.
    Own(TxQueue),
    /// One that other workers use, too: the device has fewer. It is locked for each vector.
    Shared(Arc<Mutex<TxQueue>>),
}

impl Outlet {
    pub(super) fn send(&mut self, packets: &mut Vec<dpdk::Mbuf>) -> usize {
        match self {
            Self::Own(queue) => queue.send(packets),
            Self::Shared(queue) => queue.lock().unwrap_or_else(PoisonError::into_inner).send(packets),
        }
    }
}

/// Where a worker receives.
#[derive(Default)]
pub(super) struct Inlet {
    /// By class, the most urgent first; `None` of one that is not in force. None at all where none is.
    pub(super) classes: Vec<Option<RxQueue>>,
    /// What is in no class: one queue, or where the device has those of classes that it did not sort packets into, several.
    pub(super) rest: Vec<RxQueue>,
}

/// An open port and its queues, by worker.
pub(super) struct Queues {
    pub(super) port: dpdk::Port,
    /// Of workers that receive.
    pub(super) inlets: Vec<Inlet>,
    /// Of each worker.
    pub(super) outlets: Vec<Outlet>,
    pub(super) spread: Spread,
    /// What was found out about the card.
    pub(super) steering: PortSteering,
    /// Exact rules it takes, if it is to have any.
    pub(super) exact: Option<Grant>,
}

/// Opens a device with a queue for each worker that receives, and for each of its classes, or as many as it has.
///
/// # Errors
/// Those of the device.
pub(super) fn open(
    eal: &Eal,
    settings: &PortSettings,
    crew: &CrewSettings,
    pool: &Mempool,
) -> Result<dpdk::Port, Error> {
    open_with(eal, settings, Wanted::new(settings, crew), pool)
}

/// Entries of the table by which the device leads packets, if it is one that the workers' own has to agree with.
pub(super) fn table(settings: &PortSettings, port: &dpdk::Port) -> Option<u16> {
    let Capabilities { driver, rss_table_size, .. } = port.capabilities();
    let has = match settings.hash {
        DeviceHash::Auto => Family::of_driver(driver).looks_tables_up(),
        DeviceHash::Inner | DeviceHash::Teid => true,
        DeviceHash::Outer => false,
    };
    has.then_some(*rss_table_size)
}

/// Has a device lead packets to the workers, whose table begins again after so many entries, and shares its queues out.
///
/// # Errors
/// It has not the queues that it said.
pub(super) fn share_out(
    mut port: dpdk::Port,
    settings: &PortSettings,
    (crew, period): (&CrewSettings, u16),
) -> Result<Queues, Error> {
    let wanted = Wanted::new(settings, crew);
    let driver = port.capabilities().driver.clone();
    let side = if settings.interface == Interface::Access { Side::Access } else { Side::Core };
    let asked = Asked {
        hash: settings.hash,
        side,
        crew,
        driver: &driver,
        queues: port.queues(),
        period,
        classes: &settings.classes,
        exact_rules: settings.exact_rules,
    };
    // Before anybody has its queues: some of it needs the port to stand still.
    let (led, mut steering) = steering::set_up(&mut port, &asked);
    steering.firmware.clone_from(&port.capabilities().firmware);
    let exact = exact::ask(&mut port, (&asked, led), &mut steering);
    let in_force: Vec<bool> = steering.classes.iter().map(|class| class.in_force).collect();
    let inlets = inlets(port.take_rx_queues(), wanted.receivers.into(), &in_force);
    let outlets = outlets(port.take_tx_queues(), crew.workers);
    if inlets.is_empty() || outlets.len() != crew.workers {
        return Err(Error::Queues { device: settings.device.clone(), rx: 0, tx: 0 });
    }
    let spread = match (crew.workers, inlets.len()) {
        (1, _) => Spread::OneWorker,
        (_, 1) => Spread::OneQueue,
        _ => led.unwrap_or(Spread::OuterHash),
    };
    Ok(Queues { port, inlets, outlets, spread, steering, exact })
}

/// Queues that would be used.
#[derive(Clone, Copy)]
struct Wanted {
    /// Workers that receive: those that only distribute, where there are any.
    receivers: u16,
    /// Queues of each: one, and one for each class.
    groups: u16,
}

impl Wanted {
    /// Only a card could sort packets into classes.
    fn new(settings: &PortSettings, crew: &CrewSettings) -> Self {
        let receivers = if crew.distributors > 0 { crew.distributors } else { crew.workers };
        let classes = if host::is_pci(&settings.device) { settings.classes.len() } else { 0 };
        let number = |count| u16::try_from(count).unwrap_or(u16::MAX);
        Self { receivers: number(receivers), groups: number(classes + 1) }
    }
}

/// Software devices want as many queues each way; one that has fewer says how many, and gets those.
fn open_with(
    eal: &Eal,
    settings: &PortSettings,
    wanted: Wanted,
    pool: &Mempool,
) -> Result<dpdk::Port, Error> {
    let Wanted { receivers, groups } = wanted;
    let device = device(&settings.device, receivers);
    let open = |rx_queues, tx_queues| {
        let config = PortConfig { mtu: settings.mtu, rx_queues, tx_queues, ..PortConfig::new(&device) };
        dpdk::Port::open(eal, &config, pool)
    };
    match open(receivers.saturating_mul(groups), receivers) {
        Err(Error::Queues { rx, tx, .. }) if rx.min(tx) > 0 => match rx.min(tx).min(receivers) {
            queues if queues < receivers.saturating_mul(groups) => open(queues, queues),
            _ => Err(Error::Queues { device, rx, tx }),
        },
        opened => opened,
    }
}

/// Gives each worker its queues: every so many-th, so that whatever group a queue is of, the worker is the same.
fn inlets(queues: Vec<RxQueue>, receivers: usize, in_force: &[bool]) -> Vec<Inlet> {
    let workers = queues.len().min(receivers);
    let mut inlets: Vec<Inlet> = (0..workers).map(|_| Inlet::default()).collect();
    if in_force.contains(&true) {
        inlets.iter_mut().for_each(|inlet| inlet.classes = in_force.iter().map(|_| None).collect());
    }
    for (at, queue) in queues.into_iter().enumerate() {
        let Some(inlet) = at.checked_rem(workers).and_then(|worker| inlets.get_mut(worker)) else { continue };
        let class = (at / workers).checked_sub(1).filter(|class| in_force.get(*class) == Some(&true));
        match class.and_then(|class| inlet.classes.get_mut(class)) {
            Some(place) => *place = Some(queue),
            None => inlet.rest.push(queue),
        }
    }
    inlets
}

impl Inlet {
    /// All of them.
    pub(super) fn queues(&self) -> impl Iterator<Item = &RxQueue> {
        self.classes.iter().flatten().chain(&self.rest)
    }

    /// What is in no class.
    pub(super) fn receive(&mut self, into: &mut Vec<dpdk::Mbuf>, limit: usize) -> usize {
        match self.rest.as_mut_slice() {
            [only] => only.receive(into, limit),
            several => {
                let most = limit.div_ceil(several.len().max(1));
                let received = several
                    .iter_mut()
                    .fold(0, |received, queue| received + queue.receive(into, most.min(limit - received)));
                // The next time it is another one's turn to be first.
                several.rotate_left(usize::from(several.len() > 1));
                received
            }
        }
    }

    /// Packets of a class.
    pub(super) fn receive_class(&mut self, class: usize, into: &mut Vec<dpdk::Mbuf>, limit: usize) -> usize {
        let queue = self.classes.get_mut(class).and_then(Option::as_mut);
        queue.map_or(0, |queue| queue.receive(into, limit))
    }
}

/// AF_PACKET makes as many queues as it is told to, and spreads packets over all of them.
fn device(device: &str, queues: u16) -> String {
    let is_told = device.split(',').any(|argument| argument.starts_with("qpairs="));
    match device.starts_with("net_af_packet") && !is_told && queues > 1 {
        true => format!("{device},qpairs={queues}"),
        false => device.to_owned(),
    }
}

/// A queue for each worker, or where there are fewer, each for several.
fn outlets(queues: Vec<TxQueue>, workers: usize) -> Vec<Outlet> {
    if queues.len() >= workers {
        return queues.into_iter().take(workers).map(Outlet::Own).collect();
    }
    let shared: Vec<_> = queues.into_iter().map(|queue| Arc::new(Mutex::new(queue))).collect();
    shared.iter().cycle().take(workers).cloned().map(Outlet::Shared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn af_packet_is_told_of_its_queues_unless_somebody_did() {
        for (text, queues, expected) in [
            ("net_af_packet0,iface=n3", 1, "net_af_packet0,iface=n3"),
            ("net_af_packet0,iface=n3", 2, "net_af_packet0,iface=n3,qpairs=2"),
            ("net_af_packet0,iface=n3,qpairs=1", 2, "net_af_packet0,iface=n3,qpairs=1"),
            ("net_tap0,iface=n3", 2, "net_tap0,iface=n3"),
        ] {
            assert_eq!(device(text, queues), expected);
        }
    }
}
