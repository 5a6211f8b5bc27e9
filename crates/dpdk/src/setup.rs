//! Opening a port: the device given to its driver, looked at, configured and started.

use crate::capabilities::Capabilities;
use crate::device::Device;
use crate::error::Error;
use crate::ethdev::{self, Errno, Ethdev};
use crate::mempool::Mempool;
use crate::mtu::Mtus;
use crate::port::PortConfig;
use crate::{log, sys};
use std::ffi::CString;

/// Runs a call, its error told with what DPDK logged.
pub(crate) fn attempt<T>(
    device: &str,
    action: &'static str,
    call: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Error> {
    let (result, log) = log::capture(call);
    result.map_err(|errno| Error::Device {
        device: device.to_owned(),
        action,
        reason: log::reason(&log, errno.0),
    })
}

/// Gives the device to its driver.
pub(crate) fn attach(device: Device<'_>) -> Result<Ethdev, Error> {
    let text =
        |text: &str| CString::new(text).map_err(|_| Error::BadDevice { device: device.text().to_owned() });
    let (arguments, name) = (text(device.text())?, text(device.name())?);
    if ethdev::find(&name).is_ok() && !device.is_pci() {
        return Err(Error::AlreadyOpen { device: device.text().to_owned() });
    }
    let (probed, log) = log::capture(|| ethdev::probe(&arguments));
    match probed {
        Err(Errno(error)) if !(device.is_pci() && error == -libc::EEXIST) => {
            Err(refusal(device, error, &log))
        }
        _ => attempt(device.text(), "found", || ethdev::find(&name)),
    }
}

fn refusal(device: Device<'_>, error: i32, log: &str) -> Error {
    if device.is_pci() {
        let reason = log::reason(log, error);
        return Error::PciDriver { device: device.name().to_owned(), holder: device.pci_holder(), reason };
    }
    if log.contains("failed to parse device") {
        return Error::UnknownDriver { driver: device.driver().to_owned(), device: device.text().to_owned() };
    }
    Error::Device { device: device.text().to_owned(), action: "attached", reason: log::reason(log, error) }
}

/// Configures and starts it: what it can do, and whether it is promiscuous.
pub(crate) fn set_up(
    ethdev: Ethdev,
    config: &PortConfig,
    pool: &Mempool,
) -> Result<(Capabilities, bool), Error> {
    let device = config.device.as_str();
    let info = attempt(device, "asked what it can do", || ethdev.info())?;
    let mac = attempt(device, "asked for its address", || ethdev.mac())?;
    // SAFETY: `info` comes from DPDK.
    let capabilities = unsafe { Capabilities::new(&info, (mac, ethdev.firmware())) };
    check_queues(config, &capabilities)?;
    let mtus = Mtus::new(Device::new(device)?, &info, pool);
    check_mtu(config, mtus)?;
    let queues = (config.rx_queues, config.tx_queues);
    let rss = capabilities.rss.bits & sys::ANCHORLINE_RSS_USUAL;
    attempt(device, "configured", || ethdev.configure(queues, mtus.configured(config.mtu), rss))?;
    if capabilities.driver == "net_tap" {
        // The interface is the device's own; of other interfaces the kernel's administrator decides.
        attempt(device, "given its MTU", || ethdev.set_mtu(config.mtu))?;
    }
    attempt(device, "given its queues", || set_up_queues(ethdev, config, pool))?;
    attempt(device, "started", || ethdev.start())?;
    let promiscuous = attempt(device, "made promiscuous", || ethdev.promiscuous()).is_ok();
    Ok((capabilities, promiscuous))
}

fn set_up_queues(ethdev: Ethdev, config: &PortConfig, pool: &Mempool) -> Result<(), Errno> {
    let (rx, tx) = ethdev.descriptors(config.rx_descriptors, config.tx_descriptors)?;
    (0..config.rx_queues).try_for_each(|queue| ethdev.set_up_rx(queue, rx, pool))?;
    (0..config.tx_queues).try_for_each(|queue| ethdev.set_up_tx(queue, tx))
}

fn check_queues(config: &PortConfig, capabilities: &Capabilities) -> Result<(), Error> {
    let (rx, tx) = (capabilities.max_rx_queues, capabilities.max_tx_queues);
    let fits = (1..=rx).contains(&config.rx_queues) && (1..=tx).contains(&config.tx_queues);
    if fits { Ok(()) } else { Err(Error::Queues { device: config.device.clone(), rx, tx }) }
}

fn check_mtu(config: &PortConfig, mtus: Mtus) -> Result<(), Error> {
    let (mtu, Mtus { least, most, .. }) = (config.mtu, mtus);
    let fits = (least..=most).contains(&mtu);
    if fits { Ok(()) } else { Err(Error::Mtu { device: config.device.clone(), mtu, least, most }) }
}
