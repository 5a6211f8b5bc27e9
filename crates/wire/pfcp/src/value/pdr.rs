//! What packets are recognised by.

use super::{blame, take};
use crate::fields::Value;
use crate::{ErrorKind, names};
use rs_pfcp::ie::f_teid::Fteid;
use rs_pfcp::ie::ue_ip_address::UeIpAddress as WireUeIpAddress;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Source Interface (TS 29.244 8.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceInterface {
    /// Towards the radio.
    Access,
    /// Towards the data network.
    Core,
    /// SGi-LAN or N6-LAN.
    SgiLan,
    /// The control plane.
    CpFunction,
    /// 5G VN internal (4), or one of a release after ours.
    Other(u8),
}

impl Value for SourceInterface {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        Ok(match u8::read(bytes, ie)? & 0x0F {
            0 => Self::Access,
            1 => Self::Core,
            2 => Self::SgiLan,
            3 => Self::CpFunction,
            other => Self::Other(other),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Access => 0,
            Self::Core => 1,
            Self::SgiLan => 2,
            Self::CpFunction => 3,
            Self::Other(other) => other & 0x0F,
        });
    }
}

/// F-TEID (TS 29.244 8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FTeid {
    /// A tunnel endpoint, at one address at least.
    Explicit {
        /// The tunnel.
        teid: u32,
        /// Its IPv4 address.
        ipv4: Option<Ipv4Addr>,
        /// Its IPv6 address.
        ipv6: Option<Ipv6Addr>,
    },
    /// The user plane is to choose one. Some control planes ask for neither family: they mean IPv4.
    Choose {
        /// With an IPv4 address.
        ipv4: bool,
        /// With an IPv6 address.
        ipv6: bool,
        /// PDRs of one request with the same ID share one endpoint.
        choose_id: Option<u8>,
    },
}

impl FTeid {
    /// One at an IPv4 address.
    pub const fn ipv4(teid: u32, address: Ipv4Addr) -> Self {
        Self::Explicit { teid, ipv4: Some(address), ipv6: None }
    }

    /// The user plane is to choose one with an IPv4 address.
    pub const fn choose(choose_id: Option<u8>) -> Self {
        Self::Choose { ipv4: true, ipv6: false, choose_id }
    }
}

impl Value for FTeid {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let wire = Fteid::unmarshal(bytes).map_err(|error| blame(&error, ie))?;
        if wire.ch {
            let choose_id = wire.chid.then_some(wire.choose_id);
            return Ok(Self::Choose { ipv4: wire.v4, ipv6: wire.v6, choose_id });
        }
        // An endpoint without any address is nowhere.
        if !wire.v4 && !wire.v6 {
            return Err(ErrorKind::MandatoryIeIncorrect(ie));
        }
        Ok(Self::Explicit { teid: wire.teid.0, ipv4: wire.ipv4_address, ipv6: wire.ipv6_address })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let wire = match *self {
            Self::Explicit { teid, ipv4, ipv6 } => {
                Fteid::new(ipv4.is_some(), ipv6.is_some(), teid, ipv4, ipv6, 0)
            }
            Self::Choose { ipv4, ipv6, choose_id } => Fteid {
                ch: true,
                chid: choose_id.is_some(),
                choose_id: choose_id.unwrap_or(0),
                ..Fteid::new(ipv4, ipv6, 0, None, None, 0)
            },
        };
        out.extend_from_slice(&wire.marshal());
    }
}

/// Network Instance (TS 29.244 8.2.4). Kept as it came: some send labels, some text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NetworkInstance(pub Vec<u8>);

impl NetworkInstance {
    /// Encoded as text.
    pub fn text(name: &str) -> Self {
        Self(name.as_bytes().to_vec())
    }

    /// Encoded as labels.
    pub fn labels(name: &str) -> Self {
        Self(names::to_labels(name))
    }

    /// The name in lower case, however it was encoded; `None` where it is empty or no name at all.
    pub fn name(&self) -> Option<String> {
        names::from_bytes(&self.0).map(|name| name.to_ascii_lowercase())
    }
}

impl Value for NetworkInstance {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        Vec::read(bytes, ie).map(Self)
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

/// UE IP Address (TS 29.244 8.2.62).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UeIpAddress {
    /// The address.
    pub ipv4: Option<Ipv4Addr>,
    /// The address or prefix.
    pub ipv6: Option<Ipv6Addr>,
    /// S/D: it is the packet's destination. Many leave the flag out, so the source interface decides.
    pub is_destination: bool,
    /// CHV4: the user plane is to choose the address.
    pub choose_ipv4: bool,
    /// CHV6: the user plane is to choose the prefix.
    pub choose_ipv6: bool,
    /// IPv6D: bits of the delegated prefix.
    pub ipv6_prefix_delegation_bits: Option<u8>,
    /// IP6PL: length of the prefix.
    pub ipv6_prefix_length: Option<u8>,
}

impl Value for UeIpAddress {
    fn read(bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let wire = WireUeIpAddress::unmarshal(bytes).map_err(|error| blame(&error, ie))?;
        Ok(Self {
            ipv4: wire.ipv4_address,
            ipv6: wire.ipv6_address,
            is_destination: wire.source_destination,
            choose_ipv4: wire.choose_ipv4,
            choose_ipv6: wire.choose_ipv6,
            ipv6_prefix_delegation_bits: wire.ipv6_prefix_delegation_bits,
            ipv6_prefix_length: wire.ipv6_prefix_length,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let wire = WireUeIpAddress {
            source_destination: self.is_destination,
            ipv6_prefix_delegation: self.ipv6_prefix_delegation_bits.is_some(),
            choose_ipv4: self.choose_ipv4,
            choose_ipv6: self.choose_ipv6,
            ipv6_prefix_length_present: self.ipv6_prefix_length.is_some(),
            ipv6_prefix_delegation_bits: self.ipv6_prefix_delegation_bits,
            ipv6_prefix_length: self.ipv6_prefix_length,
            ..WireUeIpAddress::new(self.ipv4, self.ipv6)
        };
        out.extend_from_slice(&wire.marshal());
    }
}

/// Outer Header Removal (TS 29.244 8.2.64). Coded here: `rs-pfcp` drops the second octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterHeaderRemoval {
    /// One of the constants here, or another.
    pub description: u8,
    /// GTP-U Extension Header Deletion, where the octet is there.
    pub extension_header_deletion: Option<u8>,
}

impl OuterHeaderRemoval {
    /// GTP-U/UDP/IPv4.
    pub const GTPU_UDP_IPV4: u8 = 0;
    /// GTP-U/UDP/IPv6.
    pub const GTPU_UDP_IPV6: u8 = 1;
    /// GTP-U/UDP/IP, whichever it is.
    pub const GTPU_UDP_IP: u8 = 6;

    /// Without the second octet.
    pub const fn new(description: u8) -> Self {
        Self { description, extension_header_deletion: None }
    }
}

impl Value for OuterHeaderRemoval {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [description] = take(&mut bytes, ie)?;
        Ok(Self { description, extension_header_deletion: bytes.first().copied() })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.description);
        out.extend(self.extension_header_deletion);
    }
}

/// SDF Filter (TS 29.244 8.2.5). Coded here: `rs-pfcp` knows the flow description only, and insists on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SdfFilter {
    /// FD: an IPFilterRule (RFC 6733 4.3.1, TS 29.212 5.4.2).
    pub flow_description: Option<String>,
    /// TTC: ToS or traffic class, and its mask.
    pub tos_traffic_class: Option<[u8; 2]>,
    /// SPI: of IPsec.
    pub security_parameter_index: Option<u32>,
    /// FL: of IPv6.
    pub flow_label: Option<[u8; 3]>,
    /// BID: the same ID stands for the same filter in both directions.
    pub filter_id: Option<u32>,
}

impl SdfFilter {
    /// By its flow description alone.
    pub fn flow(description: impl Into<String>) -> Self {
        Self { flow_description: Some(description.into()), ..Self::default() }
    }

    fn flags(&self) -> u8 {
        u8::from(self.flow_description.is_some())
            | u8::from(self.tos_traffic_class.is_some()) << 1
            | u8::from(self.security_parameter_index.is_some()) << 2
            | u8::from(self.flow_label.is_some()) << 3
            | u8::from(self.filter_id.is_some()) << 4
    }
}

impl Value for SdfFilter {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let rest = &mut bytes;
        let [flags, _spare] = take(rest, ie)?;
        let has = |bit: u8| flags & (1 << bit) != 0;
        Ok(Self {
            flow_description: has(0).then(|| text(rest, ie)).transpose()?,
            tos_traffic_class: has(1).then(|| take(rest, ie)).transpose()?,
            security_parameter_index: has(2).then(|| take(rest, ie)).transpose()?.map(u32::from_be_bytes),
            flow_label: has(3).then(|| take(rest, ie)).transpose()?,
            filter_id: has(4).then(|| take(rest, ie)).transpose()?.map(u32::from_be_bytes),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.flags(), 0]);
        if let Some(description) = &self.flow_description {
            let length = u16::try_from(description.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend(description.bytes().take(usize::from(length)));
        }
        out.extend(self.tos_traffic_class.iter().flatten());
        out.extend(self.security_parameter_index.iter().flat_map(|spi| spi.to_be_bytes()));
        out.extend(self.flow_label.iter().flatten());
        out.extend(self.filter_id.iter().flat_map(|id| id.to_be_bytes()));
    }
}

fn text(bytes: &mut &[u8], ie: u16) -> Result<String, ErrorKind> {
    let length = usize::from(u16::from_be_bytes(take(bytes, ie)?));
    let (text, rest) = bytes.split_at_checked(length).ok_or(ErrorKind::InvalidLength(ie))?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).map_err(|_| ErrorKind::MandatoryIeIncorrect(ie))
}
