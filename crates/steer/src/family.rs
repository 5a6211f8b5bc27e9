//! Families of network devices, by the DPDK driver that runs them.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// A family of network devices: those one DPDK driver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Intel Ethernet 700 series (X710, XL710, XXV710, X722).
    I40e,
    /// Intel Ethernet 800 series (E810, E822, E823).
    Ice,
    /// A virtual function of the Intel 700 or 800 series.
    Iavf,
    /// NVIDIA (Mellanox) ConnectX-4 and later, BlueField.
    Mlx5,
    /// Intel 82599, X540, X550.
    Ixgbe,
    /// Broadcom NetXtreme-C/E.
    Bnxt,
    /// Amazon's elastic network adapter.
    Ena,
    /// Google's virtual NIC.
    Gve,
    /// VMware's paravirtual NIC.
    Vmxnet3,
    /// Virtio.
    Virtio,
    /// None of these.
    Other,
}

const NAMES: [(Family, &str); 11] = [
    (Family::I40e, "i40e"),
    (Family::Ice, "ice"),
    (Family::Iavf, "iavf"),
    (Family::Mlx5, "mlx5"),
    (Family::Ixgbe, "ixgbe"),
    (Family::Bnxt, "bnxt"),
    (Family::Ena, "ena"),
    (Family::Gve, "gve"),
    (Family::Vmxnet3, "vmxnet3"),
    (Family::Virtio, "virtio"),
    (Family::Other, "other"),
];

impl Family {
    /// Whether its flow rules have the card look a hash up in the port's table (`rte_eth_dev_rss_reta_update`). The others'
    /// rules list their queues.
    pub const fn looks_tables_up(self) -> bool {
        matches!(self, Self::I40e | Self::Ice | Self::Iavf)
    }

    /// The family of a PCI vendor and device, by the identifiers the DPDK and Linux drivers list.
    pub const fn of_pci(vendor: u16, device: u16) -> Self {
        match vendor {
            0x8086 => Self::of_intel(device),
            0x15b3 => Self::of_mellanox(device),
            0x14e4 => Self::Bnxt,
            0x1d0f => Self::Ena,
            0x1ae0 => Self::Gve,
            0x15ad => Self::Vmxnet3,
            0x1af4 => Self::Virtio,
            _ => Self::Other,
        }
    }

    /// Whether a PCI vendor and device are a virtual function of the Intel 700 series. The driver is that of the 800 series', and
    /// takes none of its rules there: they are the host's to make, and that of a 700 series makes none for others.
    pub const fn is_function_of_700(vendor: u16, device: u16) -> bool {
        vendor == 0x8086 && matches!(device, 0x154c | 0x1571 | 0x37cd)
    }

    const fn of_intel(device: u16) -> Self {
        match device {
            0x154c | 0x1571 | 0x37cd | 0x1889 => Self::Iavf,
            0x1572 | 0x1574 | 0x1580..=0x158b | 0x15ff | 0x0cf8 | 0x0d58 | 0x104e | 0x104f | 0x101f => {
                Self::I40e
            }
            0x37cc | 0x37ce..=0x37d3 => Self::I40e,
            0x1591..=0x159b | 0x1888 | 0x188a..=0x188e | 0x1890..=0x1894 | 0x1897..=0x189a => Self::Ice,
            0x124c..=0x124f | 0x151d | 0x579c..=0x579f => Self::Ice,
            0x10fb | 0x10fc | 0x1528 | 0x154d | 0x1557 | 0x1563 | 0x15d1 | 0x15ab..=0x15ae => Self::Ixgbe,
            _ => Self::Other,
        }
    }

    /// ConnectX-3 and before have another driver.
    const fn of_mellanox(device: u16) -> Self {
        match device {
            0x1013..=0x1025 | 0xa2d2..=0xa2df => Self::Mlx5,
            _ => Self::Other,
        }
    }

    /// The family of a driver as DPDK names it with a port, such as "net_i40e" or "mlx5_pci".
    pub fn of_driver(driver: &str) -> Self {
        let name = driver.strip_prefix("net_").unwrap_or(driver);
        let name = name.strip_suffix("_pci").unwrap_or(name);
        let name = if name.starts_with("virtio") { "virtio" } else { name };
        NAMES.iter().find(|(_, known)| *known == name).map_or(Self::Other, |(family, _)| *family)
    }

    /// As the DPDK driver is called.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(family, _)| *family == self).map_or("other", |(_, name)| name)
    }

    /// Whether its rules hash only the first 64 bits of an IPv6 address, all of which one user has. Where not, a user with
    /// several addresses is spread, and workers hand those packets over.
    pub const fn hashes_prefix64(self) -> bool {
        matches!(self, Self::Ice | Self::Iavf)
    }

    /// Whether [`crate::script`] has rules of its own for it, by which a card looks into tunnels; all others are asked for what any
    /// card may do.
    pub const fn has_rules(self) -> bool {
        matches!(self, Self::I40e | Self::Ice | Self::Iavf | Self::Mlx5)
    }

    /// Most exact rules a port should be asked for: what the card's makers say it holds for all its ports together, of a virtual
    /// function what its host's driver gives to one. None where [`crate::exact`] has no rules.
    pub const fn exact_rules_most(self) -> usize {
        match self {
            Self::I40e => 8_192,
            Self::Ice | Self::Mlx5 => 16_384,
            Self::Iavf => 128,
            _ => 0,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = String;

    /// # Errors
    /// Names all that are known.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = NAMES.iter().find(|(_, name)| *name == text);
        known.map(|(family, _)| *family).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
            format!("a family is one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_as_ports_name_them_are_known() {
        for (driver, family) in [
            ("net_i40e", Family::I40e),
            ("net_ice", Family::Ice),
            ("net_iavf", Family::Iavf),
            ("mlx5_pci", Family::Mlx5),
            ("net_virtio_user", Family::Virtio),
            ("net_tap", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(Family::of_driver(driver), family, "{driver}");
        }
    }

    #[test]
    fn well_known_cards_are_known() {
        for (vendor, device, family) in [
            (0x8086, 0x1572, Family::I40e),
            (0x8086, 0x158b, Family::I40e),
            (0x8086, 0x1592, Family::Ice),
            (0x8086, 0x1889, Family::Iavf),
            (0x8086, 0x154c, Family::Iavf),
            (0x8086, 0x10fb, Family::Ixgbe),
            (0x15b3, 0x1017, Family::Mlx5),
            (0x15b3, 0x1003, Family::Other),
            (0x1af4, 0x1041, Family::Virtio),
            (0x1d0f, 0xec20, Family::Ena),
            (0x8086, 0x0d57, Family::Other),
        ] {
            assert_eq!(Family::of_pci(vendor, device), family, "{vendor:04x}:{device:04x}");
        }
    }

    #[test]
    fn functions_of_the_700_series_are_told_apart() {
        for device in [0x154c, 0x1571, 0x37cd] {
            assert!(Family::is_function_of_700(0x8086, device));
            assert_eq!(Family::of_pci(0x8086, device), Family::Iavf);
        }
        assert!(!Family::is_function_of_700(0x8086, 0x1889) && !Family::is_function_of_700(0x15b3, 0x154c));
    }

    #[test]
    fn names_are_read_back() {
        for (family, name) in NAMES {
            assert_eq!((name.parse(), family.to_string()), (Ok(family), name.to_owned()));
        }
        assert!("e810".parse::<Family>().unwrap_err().contains("mlx5"));
    }
}
