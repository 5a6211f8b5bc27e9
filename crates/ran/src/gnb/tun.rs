//! The TUN device that is a UE to every application, or the TAP device that is a station behind one.

use crate::config::UeConfig;
use anyhow::{Context, Result, anyhow};
use nix::libc::{EBUSY, EINVAL, EPERM};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Packets that wait for us in the device; the kernel's own default of 500 is less than one burst.
const QUEUE_PACKETS: u32 = 4_096;

/// An Ethernet header, and the tag of a VLAN made on the device.
const FRAME_HEADERS: usize = 18;

/// A TUN device, or for Ethernet a TAP device, that is up and has the UE's address. It goes when dropped.
pub struct Tun {
    device: SyncDevice,
    longest: usize,
}

impl Tun {
    /// Makes the device. No offloads: what is read is one packet, its checksums complete.
    ///
    /// # Errors
    /// One sentence with the device's name and a remedy.
    pub fn open(ue: &UeConfig) -> Result<Self> {
        let layer = if ue.ethernet { Layer::L2 } else { Layer::L3 };
        let device = DeviceBuilder::new()
            .name(ue.tun.as_str())
            .layer(layer)
            .ipv4(ue.address, 32, None)
            .mtu(ue.mtu.bytes())
            .offload(false)
            .packet_information(false)
            .build_sync()
            .map_err(|error| explain(ue, &error))?;
        lengthen_queue(&device, ue);
        // Reads end a batch when nothing is left.
        device.set_nonblocking(true).with_context(|| format!("TUN device {}", ue.tun))?;
        let headers = if ue.ethernet { FRAME_HEADERS } else { 0 };
        Ok(Self { device, longest: usize::from(ue.mtu.bytes()) + headers })
    }

    /// Its index among the host's devices.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn index(&self) -> io::Result<u32> {
        self.device.if_index()
    }

    /// Bytes of the longest packet or frame it gives.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Takes one packet the UE sends; `WouldBlock` where there is none.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.device.recv(buffer)
    }

    /// Gives the UE a packet.
    pub(super) fn write(&self, packet: &[u8]) -> io::Result<usize> {
        self.device.send(packet)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// A longer queue loses less in bursts. Linux lets only the machine's own root set it by ioctl: a user's namespace
/// does with the queue it has.
fn lengthen_queue(device: &SyncDevice, ue: &UeConfig) {
    if let Err(error) = device.set_tx_queue_len(QUEUE_PACKETS) {
        tracing::debug!("TUN device {} keeps its short queue: {error}", ue.tun);
    }
}

fn explain(ue: &UeConfig, error: &io::Error) -> anyhow::Error {
    let tun = &ue.tun;
    match error.raw_os_error() {
        Some(EPERM) => anyhow!(
            "TUN device {tun} needs CAP_NET_ADMIN: run as root, or in namespaces of your own (`unshare -Urn`)"
        ),
        Some(EBUSY) => anyhow!("TUN device {tun} is in use: stop the program that has it, or change ue.tun"),
        Some(EINVAL) => anyhow!("{tun} is a device of another kind: change ue.tun"),
        _ if error.kind() == io::ErrorKind::NotFound => {
            anyhow!("TUN device {tun} cannot be made: this host has no /dev/net/tun (`modprobe tun`)")
        }
        _ => anyhow!("TUN device {tun} cannot be made: {error}"),
    }
}
