//! As many queues of a device as it has and the workers can use.

use super::steering::{self, Asked};
use crate::settings::{CrewSettings, PortSettings};
use dpdk::{Eal, Error, Mempool, PortConfig, RxQueue, TxQueue};
use dplink::{PortSteering, Spread};
use rules::Interface;
use std::sync::{Arc, Mutex, PoisonError};
use steer::Side;

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

/// An open port and its queues, by worker.
pub(super) struct Queues {
    pub(super) port: dpdk::Port,
    /// Of workers that receive.
    pub(super) inlets: Vec<RxQueue>,
    /// Of each worker.
    pub(super) outlets: Vec<Outlet>,
    pub(super) spread: Spread,
    /// What was found out about the card.
    pub(super) steering: PortSteering,
}

/// Opens a device with a queue for each worker that receives, or as many as it has.
///
/// # Errors
/// Those of the device.
pub(super) fn open(
    eal: &Eal,
    settings: &PortSettings,
    crew: &CrewSettings,
    pool: &Mempool,
) -> Result<Queues, Error> {
    let (mut port, queues) = open_with(eal, settings, wanted(crew), pool)?;
    let driver = port.capabilities().driver.clone();
    let side = if settings.interface == Interface::Access { Side::Access } else { Side::Core };
    let asked = Asked { hash: settings.hash, side, crew, driver: &driver, queues: queues.into() };
    // Before anybody has its queues: some of it needs the port to stand still.
    let (led, steering) = steering::set_up(&mut port, &asked);
    let inlets = port.take_rx_queues();
    let outlets = outlets(port.take_tx_queues(), crew.workers);
    if inlets.is_empty() || outlets.len() != crew.workers {
        return Err(Error::Queues { device: settings.device.clone(), rx: 0, tx: 0 });
    }
    let spread = match (crew.workers, inlets.len()) {
        (1, _) => Spread::OneWorker,
        (_, 1) => Spread::OneQueue,
        _ => led.unwrap_or(Spread::OuterHash),
    };
    Ok(Queues { port, inlets, outlets, spread, steering })
}

/// Queues to receive by: of those that only distribute, where there are any.
fn wanted(crew: &CrewSettings) -> u16 {
    let receivers = if crew.distributors > 0 { crew.distributors } else { crew.workers };
    u16::try_from(receivers).unwrap_or(u16::MAX)
}

/// Software devices want as many queues each way; one that has fewer says how many, and gets those.
fn open_with(
    eal: &Eal,
    settings: &PortSettings,
    queues: u16,
    pool: &Mempool,
) -> Result<(dpdk::Port, u16), Error> {
    let device = device(&settings.device, queues);
    let config = |queues| PortConfig {
        mtu: settings.mtu,
        rx_queues: queues,
        tx_queues: queues,
        ..PortConfig::new(&device)
    };
    match dpdk::Port::open(eal, &config(queues), pool) {
        Err(Error::Queues { rx, tx, .. }) if rx.min(tx) > 0 && rx.min(tx) < queues => {
            Ok((dpdk::Port::open(eal, &config(rx.min(tx)), pool)?, rx.min(tx)))
        }
        opened => Ok((opened?, queues)),
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
