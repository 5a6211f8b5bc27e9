//! What is said of Ethernet frames.

use super::values::{carried, sdf_filter};
use pfcp::*;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn mac_addresses() -> impl Strategy<Value = MacAddresses> {
    any::<(Option<Mac>, Option<Mac>, Option<Mac>, Option<Mac>)>().prop_map(
        |(source, destination, upper_source, upper_destination)| MacAddresses {
            source,
            destination,
            upper_source,
            upper_destination,
        },
    )
}

fn vlan_tag() -> impl Strategy<Value = VlanTag> {
    (of(0u8..8), any::<Option<bool>>(), of(0u16..4096)).prop_map(|(priority, drop_eligible, id)| VlanTag {
        priority,
        drop_eligible,
        id,
    })
}

prop_compose! {
    pub fn packet_filter()(
        (ethernet_filter_id, ethernet_filter_properties) in (any::<Option<u32>>(), of(0u8..2)),
        mac_addresses in vec(mac_addresses(), 0..3),
        ethertype in any::<Option<u16>>(),
        (c_tag, s_tag) in (of(vlan_tag()), of(vlan_tag())),
        ethernet_sdf_filters in vec(sdf_filter(), 0..2),
        carried in carried(),
    ) -> EthernetPacketFilter {
        EthernetPacketFilter { ethernet_filter_id, ethernet_filter_properties, mac_addresses, ethertype, c_tag,
            s_tag, ethernet_sdf_filters, carried }
    }
}

fn list() -> impl Strategy<Value = MacAddressList> {
    (vec(any::<Mac>(), 0..4), of(vlan_tag()), of(vlan_tag()))
        .prop_map(|(addresses, c_tag, s_tag)| MacAddressList { addresses, c_tag, s_tag })
}

prop_compose! {
    pub fn traffic_information()(
        (mac_addresses_detected, mac_addresses_removed) in (vec(list(), 0..2), vec(list(), 0..2)),
    ) -> EthernetTrafficInformation {
        EthernetTrafficInformation { mac_addresses_detected, mac_addresses_removed, carried: vec![] }
    }
}
