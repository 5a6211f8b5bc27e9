//! Names of sets of sessions and of those that hold them.

use super::take;
use crate::ErrorKind;
use crate::fields::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most identifiers a node may put into one FQ-CSID: their number has four bits.
const CSIDS: usize = 15;

/// FQ-CSID (TS 29.244 8.2.43): sets of sessions of one node. Coded here: `rs-pfcp` drops the node's type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FqCsid {
    /// How the node is named: 0 by IPv4 address, 1 by IPv6 address, 2 by country, network and number.
    pub node_id_type: u8,
    /// Its name: 4 octets, or 16 by IPv6 address.
    pub node: Vec<u8>,
    /// Its sets, at most 15.
    pub csids: Vec<u16>,
    /// MME, SGW-C, PGW-C, ... where told.
    pub node_type: Option<u8>,
}

impl FqCsid {
    /// As on the wire.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        self.write(&mut octets);
        octets
    }

    /// Of what [`FqCsid::octets`] gave; `None` for anything else.
    pub fn of_octets(octets: &[u8]) -> Option<Self> {
        Self::read(octets, crate::ie::FQ_CSID).ok()
    }

    /// Whether they have a set in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let same_node = self.node_id_type == other.node_id_type && self.node == other.node;
        // A node that does not tell its type may be of any.
        let types = self.node_type.zip(other.node_type);
        same_node
            && types.is_none_or(|(mine, others)| mine == others)
            && self.csids.iter().any(|csid| other.csids.contains(csid))
    }
}

impl Value for FqCsid {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [first] = take(&mut bytes, ie)?;
        let node_id_type = first >> 4;
        let node = match node_id_type {
            0 | 2 => take::<4>(&mut bytes, ie)?.to_vec(),
            1 => take::<16>(&mut bytes, ie)?.to_vec(),
            _ => return Err(ErrorKind::MandatoryIeIncorrect(ie)),
        };
        let csids = (0..first & 0x0F).map(|_| take(&mut bytes, ie).map(u16::from_be_bytes));
        let csids = csids.collect::<Result<_, _>>()?;
        Ok(Self { node_id_type, node, csids, node_type: bytes.first().map(|octet| octet & 0x0F) })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let csids = self.csids.iter().take(CSIDS);
        out.push(self.node_id_type << 4 | csids.len() as u8);
        out.extend_from_slice(&self.node);
        out.extend(csids.flat_map(|csid| csid.to_be_bytes()));
        out.extend(self.node_type);
    }
}

/// CP IP Address and Alternative SMF IP Address (TS 29.244 8.2.198 and 8.2.130), which are coded alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpIpAddress {
    /// Its IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Its IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
    /// PPE: the one to be preferred; of an alternative only.
    pub is_preferred: bool,
}

const V6: u8 = 1;
const V4: u8 = 1 << 1;
const PPE: u8 = 1 << 2;

impl CpIpAddress {
    /// One with an address of either family.
    pub const fn new(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self { ipv4: Some(address), ipv6: None, is_preferred: false },
            IpAddr::V6(address) => Self { ipv4: None, ipv6: Some(address), is_preferred: false },
        }
    }

    /// All it has.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.ipv4.map(IpAddr::V4).into_iter().chain(self.ipv6.map(IpAddr::V6))
    }
}

impl Value for CpIpAddress {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [flags] = take(&mut bytes, ie)?;
        if flags & (V4 | V6) == 0 {
            return Err(ErrorKind::MandatoryIeIncorrect(ie));
        }
        let ipv4 = if flags & V4 == 0 { None } else { Some(take::<4>(&mut bytes, ie)?.into()) };
        let ipv6 = if flags & V6 == 0 { None } else { Some(take::<16>(&mut bytes, ie)?.into()) };
        Ok(Self { ipv4, ipv6, is_preferred: flags & PPE != 0 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        out.push(bit(self.ipv4.is_some(), V4) | bit(self.ipv6.is_some(), V6) | bit(self.is_preferred, PPE));
        out.extend(self.ipv4.iter().flat_map(Ipv4Addr::octets));
        out.extend(self.ipv6.iter().flat_map(Ipv6Addr::octets));
    }
}

/// Remote GTP-U Peer (TS 29.244 8.2.70).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemoteGtpuPeer {
    /// Its IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Its IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
}

impl RemoteGtpuPeer {
    /// One with an address of either family.
    pub const fn new(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self { ipv4: Some(address), ipv6: None },
            IpAddr::V6(address) => Self { ipv4: None, ipv6: Some(address) },
        }
    }
}

impl Value for RemoteGtpuPeer {
    /// Interface and network, which may follow, are for the sender's statistics.
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        CpIpAddress::read(bytes, ie).map(|CpIpAddress { ipv4, ipv6, .. }| Self { ipv4, ipv6 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        CpIpAddress { ipv4: self.ipv4, ipv6: self.ipv6, is_preferred: false }.write(out);
    }
}

/// UE IP Address Pool Identity (TS 29.244 8.2.128): a name behind its length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PoolIdentity(pub Vec<u8>);

impl Value for PoolIdentity {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let length = usize::from(u16::from_be_bytes(take(&mut bytes, ie)?));
        bytes.get(..length).map(|name| Self(name.to_vec())).ok_or(ErrorKind::InvalidLength(ie))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let length = u16::try_from(self.0.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend(self.0.iter().take(usize::from(length)));
    }
}
