//! The kernel's interfaces for ports (`punt`): what is addressed to a port and not spoken here goes to the kernel by a TAP device
//! with the port's addresses, and what programs of this machine send there leaves by the port. A device goes with its handle.

use anyhow::{Context, anyhow};
use dataplane::{Engine, PortConfig, Punts};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use std::fs;
use std::io;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Frames that go each way at a look, of a worker or of a device: each takes a call of the kernel, of some microseconds. The engine
/// looks every millisecond, so a device sends 32,000 frames a second at most.
const PORTION: usize = 32;
/// Octets of the longest frame that a device gives: the largest MTU, with header and tags.
const LONGEST: usize = 9_600 + 14 + 8;

/// The device of a port, before there is anybody to look after it.
pub(crate) struct Tap {
    port: usize,
    name: String,
    about: String,
    device: SyncDevice,
}

impl Tap {
    /// Makes the devices of all ports that have one.
    ///
    /// # Errors
    /// One sentence with the port, the key, the name and a remedy.
    pub(crate) fn open_all(ports: &[PortConfig]) -> anyhow::Result<Vec<Self>> {
        let named = ports.iter().enumerate().filter_map(|(at, port)| Some((at, port, port.punt.as_ref()?)));
        named.map(|(at, port, name)| Self::open(at, port, name)).collect()
    }

    fn open(at: usize, port: &PortConfig, name: &str) -> anyhow::Result<Self> {
        let about = format!("port {}: punt = \"{name}\"", port.name);
        // A TAP device that nobody has open would be ours without a word.
        if if_nametoindex(name).is_ok() {
            return Err(anyhow!("{about}: this machine has an interface of this name; choose another"));
        }
        let device = make(port, name).map_err(|error| explain(&about, &error))?;
        configure(&device, port, name).with_context(|| about.clone())?;
        tracing::info!("port {}: what is not spoken here goes to the kernel by {name}", port.name);
        Ok(Self { port: at, name: name.to_owned(), about, device })
    }
}

/// No offloads: what is read is one frame, its checksums complete.
fn make(port: &PortConfig, name: &str) -> io::Result<SyncDevice> {
    DeviceBuilder::new()
        .name(name)
        .layer(Layer::L2)
        .mac_addr(port.mac.0)
        .ipv4(port.address.addr(), port.address.prefix_len(), None)
        .mtu(port.mtu)
        .offload(false)
        .packet_information(false)
        .enable(false)
        .build_sync()
}

fn configure(device: &SyncDevice, port: &PortConfig, name: &str) -> anyhow::Result<()> {
    device.set_nonblocking(true)?;
    speak_ipv6(name, port.address6.is_some());
    device.enabled(true).context("it does not come up")?;
    let Some(address) = port.address6 else { return Ok(()) };
    match device.add_address_v6(address.addr(), address.prefix_len()) {
        Ok(()) => Ok(()),
        Err(error) if is_without_ipv6(&error) => {
            tracing::warn!(
                "port {}: {name} has no IPv6 address, as the kernel has IPv6 switched off",
                port.name
            );
            Ok(())
        }
        Err(error) => Err(error).context("its IPv6 address"),
    }
}

fn is_without_ipv6(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EACCES | Errno::EAFNOSUPPORT | Errno::EOPNOTSUPP | Errno::ENODEV))
}

/// On a port without IPv6 the kernel has none either. With it, its address on the link is ours (of the MAC address, not one of its
/// own choice); nobody has to be asked whether the addresses are free, as we have them; and routers tell it no routes, as they
/// tell us none. Where `/proc/sys` cannot be written, it is as the machine has it.
fn speak_ipv6(name: &str, has_ipv6: bool) {
    let settings: &[(&str, &str)] = match has_ipv6 {
        true => &[("addr_gen_mode", "0"), ("dad_transmits", "0"), ("accept_ra", "0")],
        false => &[("disable_ipv6", "1")],
    };
    for (key, value) in settings {
        let path = format!("/proc/sys/net/ipv6/conf/{name}/{key}");
        if let Err(error) = fs::write(&path, value) {
            tracing::debug!("{path} stays as it is: {error}");
        }
    }
}

fn explain(about: &str, error: &io::Error) -> anyhow::Error {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM) => {
            anyhow!("{about}: a TAP device needs CAP_NET_ADMIN; run as root, or without punt")
        }
        Some(Errno::EBUSY | Errno::EINVAL | Errno::EEXIST) => {
            anyhow!("{about}: this machine has an interface of this name; choose another")
        }
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => {
            anyhow!("{about}: this machine has no /dev/net/tun (`modprobe tun`)")
        }
        _ => anyhow!("{about}: the TAP device cannot be made: {error}"),
    }
}

/// A device that is looked after.
struct Watched {
    port: usize,
    name: String,
    about: String,
    /// `None` once it is gone.
    device: Option<SyncDevice>,
    /// Frames it did not take.
    refused: u64,
    /// The last one was one of these.
    refuses: bool,
}

/// All devices, on the engine's thread.
pub(crate) struct Taps {
    taps: Vec<Watched>,
    frame: Box<[u8]>,
}

impl Taps {
    /// Looks after them from now on.
    pub(crate) fn new(taps: Vec<Tap>) -> Self {
        let watched = |Tap { port, name, about, device }| Watched {
            port,
            name,
            about,
            device: Some(device),
            refused: 0,
            refuses: false,
        };
        Self { taps: taps.into_iter().map(watched).collect(), frame: vec![0; LONGEST].into() }
    }

    /// Takes a portion each way. What there is no room for stays in the device, whose queue then drops.
    pub(crate) fn exchange(&mut self, engine: &mut Engine) {
        let Some(punts) = engine.punts() else { return };
        punts.take(PORTION, |port, frame| {
            if let Some(tap) = self.taps.iter_mut().find(|tap| tap.port == port) {
                tap.give(frame);
            }
        });
        self.taps.iter_mut().for_each(|tap| tap.send(punts, &mut self.frame));
    }

    /// Frames that the device of a port did not take.
    pub(crate) fn refused(&self, port: usize) -> u64 {
        self.taps.iter().find(|tap| tap.port == port).map_or(0, |tap| tap.refused)
    }
}

impl Watched {
    fn give(&mut self, frame: &[u8]) {
        let gone = || io::Error::from(Errno::ENODEV);
        let given = self.device.as_ref().map_or_else(|| Err(gone()), |device| device.send(frame));
        let refuses = given.is_err();
        self.refused += u64::from(refuses);
        if let Err(error) = given
            && !self.refuses
        {
            tracing::warn!("{}: the interface takes no packets: {error}", self.about);
        }
        self.refuses = refuses;
    }

    /// Lets the port have what the kernel sends.
    fn send(&mut self, punts: &mut Punts, buffer: &mut [u8]) {
        for _ in 0..PORTION {
            if !punts.has_room() {
                return;
            }
            let Some(device) = &self.device else { return };
            match device.recv(buffer) {
                Ok(length) => {
                    punts.send(self.port, buffer.get(..length).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.lose(&error),
            }
        }
    }

    /// Somebody has removed it. It does not come back without a restart: its name may be another's by now.
    fn lose(&mut self, error: &io::Error) {
        tracing::warn!(
            "{}: {} is gone ({error}); restart the data plane to have it again",
            self.about,
            self.name
        );
        self.device = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_of_a_device_is_one_sentence() {
        let said = |errno: Errno| explain("port n6: punt = \"n6-host\"", &errno.into()).to_string();
        for (errno, words) in [
            (Errno::EPERM, "needs CAP_NET_ADMIN"),
            (Errno::EBUSY, "has an interface of this name"),
            (Errno::ENOENT, "`modprobe tun`"),
            (Errno::ENOMEM, "cannot be made"),
        ] {
            let said = said(errno);
            assert!(said.starts_with("port n6: punt = \"n6-host\": ") && said.contains(words), "{said}");
        }
    }
}
