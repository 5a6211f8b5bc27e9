//! DPDK's device functions, as far as they are needed, with results for status numbers. All of them are called
//! with the control lock held.

use crate::mempool::Mempool;
use crate::sys;
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::ptr;

/// A device DPDK has: valid between the call that made it and [`Ethdev::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ethdev(pub(crate) u16);

/// The error number DPDK returned, negative or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

fn check(status: c_int) -> Result<(), Errno> {
    if status == 0 { Ok(()) } else { Err(Errno(status)) }
}

/// Makes DPDK look for a device and give it to its driver.
pub(crate) fn probe(device: &CStr) -> Result<(), Errno> {
    // SAFETY: the EAL runs; the text is only read.
    check(unsafe { sys::rte_dev_probe(device.as_ptr()) })
}

/// The device of that name.
pub(crate) fn find(name: &CStr) -> Result<Ethdev, Errno> {
    let mut id = 0;
    // SAFETY: the EAL runs; the text is only read, and the number written.
    check(unsafe { sys::rte_eth_dev_get_port_by_name(name.as_ptr(), &raw mut id) })?;
    Ok(Ethdev(id))
}

/// Octets of a firmware's version, the closing one included; the longest seen in DPDK's drivers are of some 80.
const FIRMWARE_MAX: usize = 256;

/// DPDK's word for whichever NUMA node.
const ANY_SOCKET: u32 = u32::MAX;

/// On the device's own NUMA node, or where that has no memory, on any: DPDK does not look elsewhere by itself.
fn nearest(socket: u32, set_up: impl Fn(u32) -> Result<(), Errno>) -> Result<(), Errno> {
    match set_up(socket) {
        Err(Errno(error)) if error == -libc::ENOMEM && socket != ANY_SOCKET => set_up(ANY_SOCKET),
        done => done,
    }
}

impl Ethdev {
    pub(crate) fn info(self) -> Result<sys::rte_eth_dev_info, Errno> {
        let mut info = MaybeUninit::zeroed();
        // SAFETY: DPDK checks the port's number and fills what is valid when zeroed.
        unsafe {
            check(sys::rte_eth_dev_info_get(self.0, info.as_mut_ptr()))?;
            Ok(info.assume_init())
        }
    }

    /// What the device's firmware calls itself; `None` where the driver does not say, or says nothing.
    pub(crate) fn firmware(self) -> Option<String> {
        let mut text = [0_u8; FIRMWARE_MAX];
        // SAFETY: DPDK checks the port's number and writes as many octets at most, the last of them 0; what is longer is not written.
        let error = unsafe { sys::rte_eth_dev_fw_version_get(self.0, text.as_mut_ptr().cast(), text.len()) };
        let version = CStr::from_bytes_until_nul(&text).ok().filter(|_| error == 0)?.to_string_lossy();
        (!version.trim().is_empty()).then(|| version.trim().to_owned())
    }

    pub(crate) fn mac(self) -> Result<[u8; 6], Errno> {
        let mut mac = sys::rte_ether_addr { addr_bytes: [0; 6] };
        // SAFETY: DPDK checks the port's number and writes the address.
        check(unsafe { sys::rte_eth_macaddr_get(self.0, &raw mut mac) })?;
        Ok(mac.addr_bytes)
    }

    pub(crate) fn configure(self, queues: (u16, u16), mtu: u16, rss: u64) -> Result<(), Errno> {
        // SAFETY: all zero is the default configuration.
        let mut config: sys::rte_eth_conf = unsafe { MaybeUninit::zeroed().assume_init() };
        config.rxmode.mtu = u32::from(mtu);
        if queues.0 > 1 && rss != 0 {
            config.rxmode.mq_mode = sys::RTE_ETH_MQ_RX_RSS;
            config.rx_adv_conf.rss_conf.rss_hf = rss;
        }
        // SAFETY: DPDK checks the port's number and copies the configuration.
        check(unsafe { sys::rte_eth_dev_configure(self.0, queues.0, queues.1, &raw const config) })
    }

    /// What the device makes of these numbers of descriptors.
    pub(crate) fn descriptors(self, rx: u16, tx: u16) -> Result<(u16, u16), Errno> {
        let (mut rx, mut tx) = (rx, tx);
        // SAFETY: DPDK checks the port's number and changes the numbers.
        check(unsafe { sys::rte_eth_dev_adjust_nb_rx_tx_desc(self.0, &raw mut rx, &raw mut tx) })?;
        Ok((rx, tx))
    }

    pub(crate) fn set_up_rx(self, queue: u16, descriptors: u16, pool: &Mempool) -> Result<(), Errno> {
        nearest(self.socket(), |socket| {
            // SAFETY: DPDK checks the numbers; null takes the device's defaults; the port keeps the pool.
            check(unsafe {
                sys::rte_eth_rx_queue_setup(self.0, queue, descriptors, socket, ptr::null(), pool.as_ptr())
            })
        })
    }

    pub(crate) fn set_up_tx(self, queue: u16, descriptors: u16) -> Result<(), Errno> {
        nearest(self.socket(), |socket| {
            // SAFETY: DPDK checks the numbers; null takes the device's defaults.
            check(unsafe { sys::rte_eth_tx_queue_setup(self.0, queue, descriptors, socket, ptr::null()) })
        })
    }

    fn socket(self) -> u32 {
        // SAFETY: DPDK checks the port's number; -1, as unsigned, stands for any socket.
        unsafe { sys::rte_eth_dev_socket_id(self.0) }.cast_unsigned()
    }

    pub(crate) fn set_mtu(self, mtu: u16) -> Result<(), Errno> {
        // SAFETY: DPDK checks the numbers.
        check(unsafe { sys::rte_eth_dev_set_mtu(self.0, mtu) })
    }

    pub(crate) fn start(self) -> Result<(), Errno> {
        // SAFETY: DPDK checks the port's number.
        check(unsafe { sys::rte_eth_dev_start(self.0) })
    }

    /// # Safety
    /// Nobody receives or sends on it meanwhile.
    pub(crate) unsafe fn stop(self) -> Result<(), Errno> {
        // SAFETY: DPDK checks the port's number; nobody is in its queues.
        check(unsafe { sys::rte_eth_dev_stop(self.0) })
    }

    pub(crate) fn promiscuous(self) -> Result<(), Errno> {
        // SAFETY: DPDK checks the port's number.
        check(unsafe { sys::rte_eth_promiscuous_enable(self.0) })
    }

    pub(crate) fn link(self) -> Result<sys::rte_eth_link, Errno> {
        let mut link = MaybeUninit::zeroed();
        // SAFETY: DPDK checks the port's number and fills what is valid when zeroed.
        unsafe {
            check(sys::rte_eth_link_get_nowait(self.0, link.as_mut_ptr()))?;
            Ok(link.assume_init())
        }
    }

    pub(crate) fn stats(self) -> Result<sys::rte_eth_stats, Errno> {
        let mut stats = MaybeUninit::zeroed();
        // SAFETY: DPDK checks the port's number and fills what is valid when zeroed.
        unsafe {
            check(sys::rte_eth_stats_get(self.0, stats.as_mut_ptr()))?;
            Ok(stats.assume_init())
        }
    }

    /// Stops and closes the port, and takes the device from its driver, so that its name is free again.
    ///
    /// # Safety
    /// Nobody receives or sends on it now or later.
    pub(crate) unsafe fn remove(self) {
        let device = self.info().map_or(ptr::null_mut(), |info| info.device);
        // SAFETY: nobody uses the port; the device stays valid until it is removed, which is done once. What
        // these return changes nothing: there is no way on but to leave the device alone.
        unsafe {
            sys::rte_eth_dev_stop(self.0);
            sys::rte_eth_dev_close(self.0);
            if !device.is_null() {
                sys::rte_dev_remove(device);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// What a device is asked that answers so, by turns, and what comes of it.
    fn asked(socket: u32, answers: &[i32]) -> (Vec<u32>, Result<(), Errno>) {
        let (sockets, answers) = (RefCell::new(Vec::new()), RefCell::new(answers.iter()));
        let outcome = nearest(socket, |socket| {
            sockets.borrow_mut().push(socket);
            check(*answers.borrow_mut().next().unwrap())
        });
        (sockets.into_inner(), outcome)
    }

    #[test]
    fn queues_are_on_another_node_only_where_there_is_no_memory_on_the_devices() {
        let (none, other) = (-libc::ENOMEM, -libc::EINVAL);
        assert_eq!(asked(1, &[0]), (vec![1], Ok(())));
        assert_eq!(asked(1, &[none, 0]), (vec![1, ANY_SOCKET], Ok(())));
        assert_eq!(asked(1, &[none, none]), (vec![1, ANY_SOCKET], Err(Errno(none))));
        assert_eq!(asked(1, &[other]), (vec![1], Err(Errno(other))));
        assert_eq!(asked(ANY_SOCKET, &[none]), (vec![ANY_SOCKET], Err(Errno(none))));
    }
}
