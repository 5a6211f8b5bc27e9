//! Ports behind 1:1 translation: control planes, and by them base stations, know other addresses than the ports have. Only what
//! is said on N4 changes: rules, records and the data plane know the ports' own addresses, so that sessions live on whatever
//! is advertised next.

use crate::config::GtpuAddress;
use crate::values::User;
use rules::Instance;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl GtpuAddress {
    /// Its IPv4 address as peers know it.
    pub(crate) fn told_ipv4(&self) -> Ipv4Addr {
        self.advertise.unwrap_or(self.ipv4)
    }

    /// Its IPv6 address as peers know it, if it has one.
    pub(crate) fn told_ipv6(&self) -> Option<Ipv6Addr> {
        self.ipv6.map(|own| self.advertise6.unwrap_or(own))
    }

    /// Both addresses: its own, and as peers know it.
    fn pairs(&self) -> [Option<(IpAddr, IpAddr)>; 2] {
        let ipv6 = self.ipv6.zip(self.told_ipv6());
        [Some((self.ipv4.into(), self.told_ipv4().into())), ipv6.map(|(own, told)| (own.into(), told.into()))]
    }
}

/// An address of ours as peers know it.
pub(crate) fn told(ours: &[GtpuAddress], own: IpAddr) -> IpAddr {
    let mut pairs = ours.iter().flat_map(GtpuAddress::pairs).flatten();
    pairs.find(|pair| pair.0 == own).map_or(own, |(_, told)| told)
}

/// Whether an address is of ours, as the port has it or as peers know it.
pub(crate) fn is_ours(ours: &[GtpuAddress], address: IpAddr) -> bool {
    let mut pairs = ours.iter().flat_map(GtpuAddress::pairs).flatten();
    pairs.any(|(own, told)| own == address || told == address)
}

/// Whether a user would have an address of one of our ports of a network, as the port has it or as peers know it.
pub(crate) fn are_of_port(ours: &[GtpuAddress], user: &User, instance: Instance) -> bool {
    let of_network = ours.iter().filter(|port| port.instance == instance);
    let pairs = of_network.flat_map(GtpuAddress::pairs).flatten();
    pairs.flat_map(|(own, told)| [own, told]).any(|address| user.has(address))
}

/// The port's own address, of one that peers know it by; any other as it is.
pub(crate) fn own(ours: &[GtpuAddress], told: IpAddr) -> IpAddr {
    let mut pairs = ours.iter().flat_map(GtpuAddress::pairs).flatten();
    pairs.find(|pair| pair.1 == told).map_or(told, |(own, _)| own)
}
