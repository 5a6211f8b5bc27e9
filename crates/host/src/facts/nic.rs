//! Network devices on PCI, and the packages that teach some of them GTP-U.

use crate::Root;
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use steer::{Family, I40E_PROFILE, Package};

const DEVICES: &str = "/sys/bus/pci/devices";
/// PCI class 02: network controllers.
const NETWORK: u32 = 0x02;
/// How much of a package is searched for its name; the name is in its first segment.
const PACKAGE_HEAD: u64 = 1 << 20;

/// A PCIe link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// As `8.0 GT/s PCIe`.
    pub speed: String,
    /// Lanes.
    pub width: u32,
}

impl Link {
    /// Transfers a second of all lanes, in units of 0.1 GT/s; `None` if the speed is not known.
    pub fn transfers(&self) -> Option<u64> {
        let (whole, rest) = self.speed.split_whitespace().next()?.split_once('.')?;
        let tenths = rest.chars().next()?.to_digit(10)?;
        let per_lane = whole.parse::<u64>().ok()?.checked_mul(10)?.checked_add(u64::from(tenths))?;
        per_lane.checked_mul(u64::from(self.width))
    }
}

/// A network device.
#[derive(Clone, Debug, Serialize)]
pub struct Nic {
    /// As `0000:3b:00.0`.
    pub address: String,
    /// Vendor and device.
    pub id: (u16, u16),
    /// The DPDK driver that would run it.
    pub family: Family,
    /// The kernel driver it is bound to.
    pub driver: Option<String>,
    /// The kernel's names of it.
    pub interfaces: Vec<String>,
    /// Whether those carry the machine's own traffic: one of them is up.
    pub up: bool,
    /// `None` where it is nobody's or not known.
    pub numa_node: Option<usize>,
    /// Now.
    pub link: Option<Link>,
    /// At best.
    pub link_max: Option<Link>,
    /// Virtual functions: in use and possible.
    pub functions: Option<(u32, u32)>,
    /// Whether it is a virtual function itself.
    pub is_function: bool,
    /// Where a file of the kernel says it (mlx5), or its driver does, to `ethtool` on the machine itself.
    pub firmware: Option<String>,
    /// The group it can be given away with.
    pub iommu_group: Option<String>,
}

impl Nic {
    pub(super) fn read_all(root: &Root) -> Vec<Self> {
        let class = |address: &String| {
            root.hexadecimal(&format!("{DEVICES}/{address}/class")).map(|class| class >> 16)
        };
        let addresses = root.list(DEVICES);
        addresses
            .iter()
            .filter(|address| class(address) == Some(NETWORK))
            .filter_map(|at| Self::read(root, at))
            .collect()
    }

    fn read(root: &Root, address: &str) -> Option<Self> {
        let file = |name: &str| format!("{DEVICES}/{address}/{name}");
        let number = |name: &str| u16::try_from(root.hexadecimal(&file(name))?).ok();
        let id = (number("vendor")?, number("device")?);
        // Virtio has its interface one level further down.
        let mut interfaces = root.list(&file("net"));
        for name in root.list(&file("")).iter().filter(|name| name.starts_with("virtio")) {
            interfaces.extend(root.list(&file(&format!("{name}/net"))));
        }
        let up =
            |name: &String| root.text(&format!("/sys/class/net/{name}/operstate")).as_deref() == Some("up");
        Some(Self {
            address: address.to_owned(),
            id,
            family: Family::of_pci(id.0, id.1),
            driver: root.link(&file("driver")),
            up: interfaces.iter().any(up),
            interfaces,
            numa_node: root.value::<i64>(&file("numa_node")).and_then(|node| usize::try_from(node).ok()),
            link: link(root, &file("current_link_speed"), &file("current_link_width")),
            link_max: link(root, &file("max_link_speed"), &file("max_link_width")),
            functions: root.value(&file("sriov_numvfs")).zip(root.value(&file("sriov_totalvfs"))),
            is_function: root.place(&file("physfn")).symlink_metadata().is_ok(),
            firmware: firmware(root, address),
            iommu_group: root.link(&file("iommu_group")),
        })
    }

    /// Whether it is a virtual function of the Intel 700 series, which has the driver of the 800 series' without its rules.
    pub fn is_function_of_700(&self) -> bool {
        Family::is_function_of_700(self.id.0, self.id.1)
    }

    /// Whether a driver for user space has it.
    pub fn in_user_space(&self) -> bool {
        matches!(self.driver.as_deref(), Some("vfio-pci" | "uio_pci_generic" | "igb_uio"))
    }
}

fn link(root: &Root, speed: &str, width: &str) -> Option<Link> {
    let speed = root.text(speed).filter(|speed| !speed.starts_with("Unknown"))?;
    let width = root.value(width).filter(|width| (1..=32).contains(width))?;
    Some(Link { speed, width })
}

fn firmware(root: &Root, address: &str) -> Option<String> {
    let folder = format!("{DEVICES}/{address}/infiniband");
    root.list(&folder).iter().find_map(|device| root.text(&format!("{folder}/{device}/fw_ver")))
}

/// Packages for Intel cards (DDP) among the firmware files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ddp {
    /// For the 700 series: the profile that parses GTP-U, where the data plane loads it from.
    pub i40e: Option<String>,
    /// What looks like that profile and is not loaded: it lies elsewhere, or is compressed.
    pub i40e_spare: Option<String>,
    /// For the 800 series: the package that is loaded at the start. That of the only serial number goes first, as with drivers.
    pub ice: Option<String>,
    /// Those that drivers take for one card before any other, by its serial number in their name (which no file of the kernel
    /// tells).
    pub ice_by_serial: Vec<String>,
    /// Whether that one is the package for telecommunications (comms), by the name inside; `None` if unreadable.
    pub ice_is_comms: Option<bool>,
    /// A comms package that lies elsewhere and is not loaded by itself.
    pub ice_spare: Option<String>,
}

impl Ddp {
    pub(super) fn read(root: &Root) -> Self {
        let all = |folder: &str, wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
            let roots = ["/lib/firmware/updates/intel", "/lib/firmware/intel"];
            let folders = roots.iter().map(|root| format!("{root}/{folder}"));
            let names = folders.flat_map(|folder| {
                let names = root.list(&folder).into_iter().filter(|name| wanted(name));
                names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
            });
            names.collect()
        };
        let find = |folder: &str, wanted: &dyn Fn(&str) -> bool| all(folder, wanted).into_iter().next();
        let is_gtp = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.contains("gtp") && (name.contains(".pkg") || name.ends_with(".zip"))
        };
        let elsewhere = ["i40e/ddp", "i40e"].iter().find_map(|folder| find(folder, &is_gtp));
        let ice = find("ice/ddp", &|name| name.starts_with("ice.pkg"));
        let ice_by_serial = all("ice/ddp", &is_by_serial);
        let ice = match (ice_by_serial.as_slice(), ice) {
            ([only], _) => Some(only.clone()),
            (_, Some(ice)) => Some(ice),
            (several, None) => several.first().cloned(),
        };
        Self {
            i40e: root.exists(I40E_PROFILE).then(|| I40E_PROFILE.to_owned()),
            i40e_spare: elsewhere.filter(|path| path != I40E_PROFILE),
            ice_is_comms: ice.as_ref().and_then(|path| contains(root, path, b"COMMS Package")),
            ice,
            ice_by_serial,
            ice_spare: find("ice/ddp-comms", &|name| name.contains("comms")),
        }
    }

    /// Whether a card's package is there. What a host of the 700 series has loaded, its virtual functions take no rules for.
    pub fn package(&self, nic: &Nic) -> Package {
        match nic.family {
            Family::Iavf if nic.is_function_of_700() => Package::Absent,
            Family::I40e if self.i40e.is_some() => Package::Present,
            Family::I40e => Package::Absent,
            Family::Ice => match (&self.ice, self.ice_is_comms) {
                (Some(_), Some(true)) => Package::Present,
                (Some(_), None) => Package::Unknown,
                _ => Package::Absent,
            },
            _ => Package::Unknown,
        }
    }
}

/// `ice-` and 16 hexadecimal digits. Others have a version there, and are loaded by the name `ice.pkg` alone.
fn is_by_serial(name: &str) -> bool {
    let serial = name.strip_prefix("ice-").and_then(|name| name.split_once(".pkg"));
    serial.is_some_and(|(serial, _)| {
        serial.len() == 16 && serial.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

fn contains(root: &Root, path: &str, wanted: &[u8]) -> Option<bool> {
    if [".zst", ".xz", ".gz"].iter().any(|end| path.ends_with(end)) {
        return None;
    }
    let mut head = Vec::new();
    File::open(root.place(path)).ok()?.take(PACKAGE_HEAD).read_to_end(&mut head).ok()?;
    Some(head.windows(wanted.len()).any(|part| part.eq_ignore_ascii_case(wanted)))
}
