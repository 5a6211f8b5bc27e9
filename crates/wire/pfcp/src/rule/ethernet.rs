//! Ethernet PDU sessions: which frames, and whose (TS 29.244 5.13).

use crate::fields::group;
use crate::value::{MacAddressList, MacAddresses, SdfFilter, VlanTag};

group! {
    /// Ethernet Packet Filter (TS 29.244 7.5.2.2-3): all that is there must match.
    #[derive(Default)]
    EthernetPacketFilter {
        /// The same ID stands for the same filter in both directions.
        ethernet_filter_id: opt u32 = ETHERNET_FILTER_ID,
        /// BIDE: the bits of [`crate::flags`].
        ethernet_filter_properties: opt u8 = ETHERNET_FILTER_PROPERTIES,
        /// Any of these.
        mac_addresses: all MacAddresses = MAC_ADDRESS,
        /// What the frame carries.
        ethertype: opt u16 = ETHERTYPE,
        /// The customer's tag.
        c_tag: opt VlanTag = C_TAG,
        /// The provider's tag.
        s_tag: opt VlanTag = S_TAG,
        /// Any of these, of the IP packet in the frame.
        ethernet_sdf_filters: all SdfFilter = SDF_FILTER,
    }
}

group! {
    /// Ethernet Traffic Information (TS 29.244 7.5.8.3-3).
    #[derive(Default)]
    EthernetTrafficInformation {
        /// In use since the last report.
        mac_addresses_detected: all MacAddressList = MAC_ADDRESSES_DETECTED,
        /// No longer in use since then.
        mac_addresses_removed: all MacAddressList = MAC_ADDRESSES_REMOVED,
    }
}
