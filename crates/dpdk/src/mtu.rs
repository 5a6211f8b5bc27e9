//! How long packets of a device may be: what DPDK admits by what the driver says of itself, and where the driver carries more than it
//! says, what it has room for.

use crate::device::Device;
use crate::mempool::Mempool;
use crate::sys::rte_eth_dev_info;

/// Octets of an Ethernet header.
const HEADER: u32 = 14;
/// Octets of a VLAN tag.
const TAG: u32 = 4;
/// Octets of a frame that the MTU does not count: header and two VLAN tags.
const OVERHEAD: u32 = HEADER + 2 * TAG;
/// Those that DPDK counts with a packet where the driver does not say how many they are: header and frame check.
const ADMITTED_OVERHEAD: u32 = HEADER + 4;

/// Octets of a place in AF_PACKET's rings where the device does not say how many (`framesz`).
const AF_PACKET_PLACE: u32 = 2048;
/// Of them the kernel keeps so many before a frame it has received: `tpacket2_hdr` and `sockaddr_ll`, 52 octets, and 16 for a header of
/// Ethernet, so that what follows that begins at a multiple of 16 (`tpacket_rcv`).
const AF_PACKET_BEFORE: u32 = 80 - HEADER;

/// The MTUs that a device can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mtus {
    pub(crate) least: u16,
    pub(crate) most: u16,
    /// The largest that DPDK configures it with.
    admitted: u16,
}

impl Mtus {
    /// Of a device that has told this of itself.
    pub(crate) fn new(device: Device<'_>, info: &rte_eth_dev_info, pool: &Mempool) -> Self {
        let headroom = u16::try_from(packet::HEADROOM).unwrap_or(u16::MAX);
        let room = u32::from(pool.data_room_bytes().saturating_sub(headroom)).saturating_sub(OVERHEAD);
        let admitted = admitted(info.max_rx_pktlen, info.max_mtu);
        let most = carried(device).unwrap_or(admitted.into()).min(room);
        Self { least: info.min_mtu, most: u16::try_from(most).unwrap_or(u16::MAX), admitted }
    }

    /// What to configure a device of this MTU with. It is a check of DPDK's alone to those that carry more.
    pub(crate) fn configured(self, mtu: u16) -> u16 {
        mtu.min(self.admitted)
    }
}

/// As `rte_eth_dev_configure` and `rte_eth_dev_set_mtu` check it.
fn admitted(longest_frame: u32, max_mtu: u16) -> u16 {
    if max_mtu != u16::MAX && longest_frame > u32::from(max_mtu) {
        return max_mtu;
    }
    u16::try_from(longest_frame.saturating_sub(ADMITTED_OVERHEAD)).unwrap_or(u16::MAX).min(max_mtu)
}

/// What drivers carry that call 1,518 octets their longest frame, and never look at that: AF_PACKET's what has room in its rings, where the
/// first of two tags is beside the frame; memif's, whose frames take as many buffers as they need, any. TAP's holds packets longer than
/// DPDK's own MTU back for good, so it is none of them.
fn carried(device: Device<'_>) -> Option<u32> {
    match device.driver() {
        "net_af_packet" => {
            let place = device.argument("framesz").and_then(|octets| octets.parse().ok());
            Some(place.unwrap_or(AF_PACKET_PLACE).saturating_sub(AF_PACKET_BEFORE + HEADER + TAG))
        }
        "net_memif" => Some(u32::MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dpdk_admits_is_what_the_longest_frame_leaves() {
        for (longest_frame, max_mtu, expected) in [
            (1_518, u16::MAX, 1_500),
            (1_522, u16::MAX, 1_504),
            (9_728, 9_702, 9_702),
            (u32::MAX, u16::MAX, u16::MAX),
            (1_500, 9_000, 1_482),
            (0, u16::MAX, 0),
        ] {
            assert_eq!(admitted(longest_frame, max_mtu), expected, "{longest_frame}, {max_mtu}");
        }
    }

    #[test]
    fn a_place_of_a_ring_holds_header_tag_and_packet() {
        for (device, expected) in [
            ("net_af_packet0,iface=n3", Some(1_964)),
            ("net_af_packet0,iface=n3,framesz=2080", Some(1_996)),
            ("net_af_packet0,iface=n3,framesz=64", Some(0)),
            ("net_memif12,role=server", Some(u32::MAX)),
            ("net_tap0,iface=t0", None),
        ] {
            assert_eq!(carried(Device::new(device).unwrap()), expected, "{device}");
        }
    }
}
