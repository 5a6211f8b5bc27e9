//! Ethernet packet filters (TS 29.244 7.5.2.2-3): which frames of a user a rule is about, in a PDU session that carries
//! Ethernet frames and not IP packets (TS 23.501 5.6.10.2).

use crate::sdf::SdfFilter;
use serde::{Deserialize, Serialize};

/// Addresses from `first` to `last`, both included, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MacRange {
    /// Not above `last`.
    pub first: [u8; 6],
    /// Not below `first`; the same for a single address.
    pub last: [u8; 6],
}

impl MacRange {
    /// A single address.
    pub const fn one(address: [u8; 6]) -> Self {
        Self { first: address, last: address }
    }

    /// Whether an address is in it.
    pub fn contains(&self, address: [u8; 6]) -> bool {
        self.first <= address && address <= self.last
    }
}

/// A MAC address that a user's frames came from, and the VLANs of their tags (TS 29.244 8.2.103). Priorities differ from frame to
/// frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeenMac {
    /// The address.
    pub mac: [u8; 6],
    /// VID of the customer's tag.
    pub c_vlan: Option<u16>,
    /// VID of the provider's tag.
    pub s_vlan: Option<u16>,
}

impl SeenMac {
    /// Without tags.
    pub const fn untagged(mac: [u8; 6]) -> Self {
        Self { mac, c_vlan: None, s_vlan: None }
    }
}

/// Both addresses of a frame (TS 29.244 8.2.93): what is present must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MacFilter {
    /// SOUR, and USOU where it is a range.
    pub source: Option<MacRange>,
    /// DEST, and UDES where it is a range.
    pub destination: Option<MacRange>,
}

/// A VLAN tag (TS 29.244 8.2.94 and 8.2.95): what is present must match, and frames without the tag do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TagFilter {
    /// VID, 12 bits.
    pub id: Option<u16>,
    /// PCP, 3 bits.
    pub priority: Option<u8>,
    /// DEI.
    pub drop_eligible: Option<bool>,
}

/// One Ethernet packet filter: all that is present must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EthernetFilter {
    /// Ethernet Filter ID: a filter of nothing but this stands for the session's other filter of the same ID, of several
    /// for the first. That one must be bidirectional; in PDRs of the other direction its addresses change places.
    pub id: Option<u32>,
    /// BIDE: PDRs of the other direction may name it.
    pub is_bidirectional: bool,
    /// Any of these; empty matches every frame. At most
    /// [`limits::MACS_PER_ETHERNET_FILTER`](crate::limits::MACS_PER_ETHERNET_FILTER).
    pub macs: Vec<MacFilter>,
    /// What is behind the tags.
    pub ethertype: Option<u16>,
    /// The customer's tag (IEEE 802.1Q).
    pub c_tag: Option<TagFilter>,
    /// The provider's tag (IEEE 802.1ad).
    pub s_tag: Option<TagFilter>,
    /// Any of these, of the IP packet in the frame; where there are any, other frames do not match.
    pub sdf_filters: Vec<SdfFilter>,
}

impl EthernetFilter {
    /// The ID of the filter it stands for, if it is nothing but an ID.
    pub fn reference(&self) -> Option<u32> {
        let id = self.id?;
        (*self == Self { id: Some(id), ..Self::default() }).then_some(id)
    }
}

/// What a PDI says of frames. A session has it in all of its PDIs, or in none: that makes it an Ethernet PDU session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EthernetPdi {
    /// Any of these; empty matches every frame. At most
    /// [`limits::ETHERNET_FILTERS_PER_PDI`](crate::limits::ETHERNET_FILTERS_PER_PDI), and
    /// [`limits::ETHERNET_FILTERS`](crate::limits::ETHERNET_FILTERS) in all PDIs of a session.
    pub filters: Vec<EthernetFilter>,
}
