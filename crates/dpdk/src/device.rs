//! A device string: which driver, which interface or file, and whether it can work at all.

use crate::error::Error;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// A privilege a driver takes, with its number in capability sets.
const NET_RAW: (u32, &str) = (13, "CAP_NET_RAW");
const NET_ADMIN: (u32, &str) = (12, "CAP_NET_ADMIN");

/// A device as configured: "0000:3b:00.0" or "net_tap0,iface=t0".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device<'a> {
    text: &'a str,
}

impl<'a> Device<'a> {
    /// # Errors
    /// [`Error::BadDevice`] when it is empty or has bytes no device has.
    pub(crate) fn new(text: &'a str) -> Result<Self, Error> {
        let device = Self { text };
        let bad_name = device.name().is_empty() || device.name().contains(' ');
        let bad = bad_name || text.chars().any(char::is_control);
        if bad { Err(Error::BadDevice { device: text.to_owned() }) } else { Ok(device) }
    }

    /// As configured.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// What DPDK calls it: the part before the arguments.
    pub(crate) fn name(&self) -> &'a str {
        self.text.split(',').next().unwrap_or_default()
    }

    /// Whether it is a PCI address with its domain.
    pub(crate) fn is_pci(&self) -> bool {
        let hex =
            |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut parts = self.name().split([':', '.']);
        let mut next = |digits| parts.next().is_some_and(|part| hex(part, digits));
        next(4) && next(2) && next(2) && next(1) && parts.next().is_none()
    }

    fn pci_folder(&self) -> PathBuf {
        Path::new("/sys/bus/pci/devices").join(self.name())
    }

    /// What of the kernel has the PCI device.
    pub(crate) fn pci_holder(&self) -> String {
        let link = fs::read_link(self.pci_folder().join("driver")).unwrap_or_default();
        let driver = link.file_name().map(|name| format!("the kernel driver {}", name.display()));
        driver.unwrap_or_else(|| "no kernel driver".to_owned())
    }

    /// The driver's name: that of the device without its number.
    pub(crate) fn driver(&self) -> &'a str {
        self.name().trim_end_matches(|last: char| last.is_ascii_digit())
    }

    /// The interface of the kernel whose packets its driver takes and gives.
    pub(crate) fn interface(&self) -> Option<&'a str> {
        let is_on_one = self.is("net_af_packet") || self.is("net_af_xdp");
        self.arguments(&["iface"]).next().filter(|_| is_on_one)
    }

    /// What an argument of its driver says.
    pub(crate) fn argument(&self, key: &str) -> Option<&'a str> {
        self.pairs().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    fn arguments(&self, keys: &'static [&'static str]) -> impl Iterator<Item = &'a str> {
        self.pairs().filter(|(key, _)| keys.contains(key)).map(|(_, value)| value)
    }

    fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.text.split(',').skip(1).filter_map(|argument| argument.split_once('='))
    }

    fn is(&self, driver: &str) -> bool {
        self.name().starts_with(driver)
    }

    /// What can be told before DPDK tries, because it would not say it so clearly.
    ///
    /// # Errors
    /// [`Error::NoPciDevice`], [`Error::NoInterface`], [`Error::NoFile`], [`Error::NoPrivilege`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_pci() && !self.pci_folder().exists() {
            return Err(Error::NoPciDevice { device: self.name().to_owned() });
        }
        if self.is("net_af_packet") || self.is("net_af_xdp") {
            self.check_interfaces(&["iface"])?;
            self.check_privilege(NET_RAW)?;
        }
        if self.is("net_af_xdp") {
            self.check_privilege(NET_ADMIN)?;
            self.check_bpf()?;
        }
        if self.is("net_pcap") {
            self.check_pcap()?;
        }
        if self.is("net_tap") {
            self.check_tap()?;
        }
        if self.is("net_virtio_user") || self.is("virtio_user") {
            self.check_virtio_user()?;
        }
        Ok(())
    }

    /// The kernel takes BPF programs from the machine's own root only, not from a user namespace's.
    fn check_bpf(&self) -> Result<(), Error> {
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let own = map.split_whitespace().ne(["0", "0", "4294967295"]) && !map.is_empty();
        if own { Err(self.no_privilege("CAP_BPF outside any user namespace")) } else { Ok(()) }
    }

    fn check_pcap(&self) -> Result<(), Error> {
        const LIVE: &[&str] = &["iface", "rx_iface", "rx_iface_in", "tx_iface"];
        self.check_files(&["rx_pcap"])?;
        self.check_interfaces(LIVE)?;
        if self.arguments(LIVE).next().is_some() { self.check_privilege(NET_RAW) } else { Ok(()) }
    }

    fn check_tap(&self) -> Result<(), Error> {
        self.check_interfaces(&["remote"])?;
        self.check_privilege(NET_ADMIN)?;
        let tun = fs::File::options().read(true).write(true).open("/dev/net/tun");
        tun.map(drop).map_err(|error| self.no_privilege(&format!("access to /dev/net/tun ({error})")))
    }

    /// With `server=1` the driver makes the socket itself.
    fn check_virtio_user(&self) -> Result<(), Error> {
        let server = self.arguments(&["server"]).any(|value| value == "1");
        if server { Ok(()) } else { self.check_files(&["path"]) }
    }

    fn check_interfaces(&self, keys: &'static [&'static str]) -> Result<(), Error> {
        let missing = self.arguments(keys).find(|name| !interface_exists(name));
        missing.map_or(Ok(()), |interface| {
            Err(Error::NoInterface { interface: interface.to_owned(), device: self.text.to_owned() })
        })
    }

    fn check_files(&self, keys: &'static [&'static str]) -> Result<(), Error> {
        let missing = self.arguments(keys).find(|path| !Path::new(path).exists());
        missing
            .map_or(Ok(()), |path| Err(Error::NoFile { path: path.to_owned(), device: self.text.to_owned() }))
    }

    fn check_privilege(&self, (bit, name): (u32, &str)) -> Result<(), Error> {
        if has_capability(bit) { Ok(()) } else { Err(self.no_privilege(name)) }
    }

    fn no_privilege(&self, privilege: &str) -> Error {
        Error::NoPrivilege { device: self.text.to_owned(), privilege: privilege.to_owned() }
    }
}

/// Whether the calling thread's network namespace has the interface; sysfs may show another namespace's.
fn interface_exists(name: &str) -> bool {
    // SAFETY: the name is a text with its end, only read during the call.
    CString::new(name).is_ok_and(|name| unsafe { libc::if_nametoindex(name.as_ptr()) } != 0)
}

/// Whether the calling thread has the capability in effect. Where the kernel does not say, DPDK shall try.
fn has_capability(bit: u32) -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_none_or(|set| set >> bit & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pci_address_is_told_from_a_driver() {
        assert!(Device::new("0000:3b:00.0").unwrap().is_pci());
        assert!(Device::new("0000:3b:00.0,rx_vec_en=1").unwrap().is_pci());
        assert!(!Device::new("net_tap0,iface=t0").unwrap().is_pci());
        assert!(!Device::new("3b:00.0").unwrap().is_pci());
    }

    #[test]
    fn a_device_has_a_name_a_driver_and_arguments() {
        let device = Device::new("net_af_packet12,iface=n3,qpairs=2").unwrap();
        assert_eq!((device.name(), device.driver()), ("net_af_packet12", "net_af_packet"));
        assert_eq!(device.arguments(&["iface"]).collect::<Vec<_>>(), ["n3"]);
    }

    #[test]
    fn what_is_no_device_is_refused() {
        for text in ["", ",iface=n3", "net tap", "net_tap0\0", "net_tap0,iface=a\n"] {
            assert_eq!(Device::new(text).unwrap_err(), Error::BadDevice { device: text.to_owned() });
        }
    }

    #[test]
    fn missing_interfaces_and_files_are_named() {
        let check = |text: &str| Device::new(text).unwrap().check().unwrap_err().to_string();
        assert!(check("net_af_packet0,iface=nowhere0").starts_with("interface nowhere0 does not exist;"));
        assert!(check("net_pcap0,rx_pcap=/nowhere.pcap").starts_with("file /nowhere.pcap of device"));
        assert!(check("net_virtio_user0,path=/nowhere.sock").starts_with("file /nowhere.sock of device"));
    }
}
