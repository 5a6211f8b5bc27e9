//! What a worker counts.

use crate::fair_share::{GaveWay, NAMED_MAX};
use crate::frame::PortIndex;
use crate::graph::NodeId;
use crate::port::CLASSES_MAX;
use crate::state::{ContentCounts, PathCounts};
use arrayvec::ArrayVec;
use dplink::{Books, NodeStatistics};

macro_rules! drop_reasons {
    ($($(#[doc = $about:literal])+ $variant:ident = $name:literal,)*) => {
        /// Why a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum DropReason {
            $($(#[doc = $about])+ $variant,)*
        }

        impl DropReason {
            /// All of them, by number.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Stable name for counters.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What it means, in one sentence.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($about),+).trim_ascii(),)*
                }
            }

            /// The reason of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.name() == name)
            }
        }
    };
}

drop_reasons! {
    /// A received packet in more than one piece (a jumbo frame).
    NotContiguous = "not_contiguous",
    /// A frame without a whole Ethernet header.
    EthernetTruncated = "ethernet_truncated",
    /// A frame for another station.
    NotOurMac = "not_our_mac",
    /// A frame of a VLAN that the port is not on.
    OtherVlan = "other_vlan",
    /// A frame whose payload we do not speak.
    UnknownEthertype = "unknown_ethertype",
    /// An ARP message that is no request or reply for IPv4 over Ethernet, or of no station.
    ArpMalformed = "arp_malformed",
    /// An ARP message that does not concern us, or is our own.
    ArpNotForUs = "arp_not_for_us",
    /// A message of neighbour discovery that RFC 4861 has ignored, or of no station.
    NdpMalformed = "ndp_malformed",
    /// A message of neighbour discovery that does not concern us, or is our own.
    NdpNotForUs = "ndp_not_for_us",
    /// An ARP message or one of neighbour discovery of a station that has our address, too (RFC 5227 2.4, RFC 4862 5.4).
    AddressConflict = "address_conflict",
    /// An IPv4 packet shorter than it says.
    Ip4Truncated = "ip4_truncated",
    /// An IP packet that is not version 4.
    Ip4Version = "ip4_version",
    /// An IPv4 header whose length is impossible.
    Ip4HeaderLength = "ip4_header_length",
    /// An IPv4 header whose checksum is wrong.
    Ip4Checksum = "ip4_checksum",
    /// A fragment addressed to us of anything but UDP.
    Ip4Fragment = "ip4_fragment",
    /// An IPv6 packet shorter than it says.
    Ip6Truncated = "ip6_truncated",
    /// An IP packet that is not version 6.
    Ip6Version = "ip6_version",
    /// A chain of IPv6 extension headers that makes no sense.
    Ip6Extension = "ip6_extension",
    /// An IPv6 fragment addressed to us of anything but UDP.
    Ip6Fragment = "ip6_fragment",
    /// A fragment addressed to us that makes no sense with those before it, or makes too long a datagram, or came twice.
    BadFragment = "bad_fragment",
    /// A fragment addressed to us of one datagram more than are put together at once, all of other senders.
    FragmentsFull = "fragments_full",
    /// A fragment addressed to us whose datagram was given up: its rest did not come in time, or a newer one of its sender
    /// needed the place.
    FragmentsIncomplete = "fragments_incomplete",
    /// A packet on an access port that is not addressed to us, or one outside tunnels for or from an address that no router forwards
    /// to or from: a station of a link of IPv6, a group, nobody, or a host's own. A user's packet to such an address or to everybody has it,
    /// too, where it would leave its tunnel (239.0.0.0/8 and ff0e::/16 are groups as others).
    IpNotForUs = "ip_not_for_us",
    /// A packet addressed to us that nobody here listens to.
    NoListener = "no_listener",
    /// An ICMP message to us that is cut short or damaged.
    IcmpMalformed = "icmp_malformed",
    /// An ICMP message to us other than an echo request.
    IcmpNotEcho = "icmp_not_echo",
    /// A UDP header whose length is impossible.
    UdpMalformed = "udp_malformed",
    /// A UDP datagram over IPv6 whose checksum is wrong.
    UdpChecksum = "udp_checksum",
    /// A GTP-U message shorter than it says.
    GtpuTruncated = "gtpu_truncated",
    /// Not GTP version 1.
    GtpuVersion = "gtpu_version",
    /// A chain of GTP-U extension headers that makes no sense.
    GtpuExtension = "gtpu_extension",
    /// A GTP-U extension header that must be understood and is not.
    GtpuUnknownExtension = "gtpu_unknown_extension",
    /// A GTP-U message type we do not handle.
    GtpuUnknownType = "gtpu_unknown_type",
    /// An Error Indication that lacks an information element, or an echo request without sequence number.
    GtpuIncomplete = "gtpu_incomplete",
    /// A user's packet in a tunnel whose header a congested router has marked, and the packet's sender heeds no marks (RFC 6040 4.2); or
    /// such a tunnel's datagram in fragments, of which others are of a peer that heeds none.
    NotEct = "not_ect",
    /// A tunnel that leads to no session, and no Error Indication could be sent.
    NoTunnel = "no_tunnel",
    /// A packet to or from a user at an address that no session has.
    NoSession = "no_session",
    /// A user's packet that is not sound IPv4.
    UserPacketMalformed = "user_packet_malformed",
    /// An Ethernet frame of a user, or for one, that names a group of stations as its sender.
    FrameSource = "frame_source",
    /// A frame of an Ethernet data network for a station that is behind no user there.
    FrameUnknownStation = "frame_unknown_station",
    /// A frame of a user for a station behind the same user.
    FrameToItself = "frame_to_itself",
    /// A frame in a tunnel, for a group whose address begins like an IP packet, and that reads as one.
    FrameLikePacket = "frame_like_packet",
    /// A frame of a user, or for one, with more than two VLAN tags, or a tag cut short.
    FrameTags = "frame_tags",
    /// A frame of a station that there is no room to learn, for the user or for all.
    MacTableFull = "mac_table_full",
    /// A copy of a frame for many users, and as many as may be were made in this second.
    FrameCopies = "frame_copies",
    /// No PDR of the session matches.
    NoPdr = "no_pdr",
    /// The FAR says DROP.
    FarDrop = "far_drop",
    /// A packet that a FAR redirects and that has no answer: not of TCP, or of a connection that is over. Where to is an address:
    /// one that cannot be sent there, or does not come from there.
    Redirected = "redirected",
    /// A packet to be redirected to an address that its user talks to already, from the same port, in the place of another host.
    RedirectTaken = "redirect_taken",
    /// A segment sent again whose field could not be put into it again.
    NotEnriched = "not_enriched",
    /// A QER's gate is closed.
    GateClosed = "gate_closed",
    /// A QER's rate is used up.
    RateExceeded = "rate_exceeded",
    /// A URR's quota is used up.
    QuotaExhausted = "quota_exhausted",
    /// As many packets are kept for sleeping users as may be.
    BufferFull = "buffer_full",
    /// A packet was kept for a sleeping user for too long.
    BufferExpired = "buffer_expired",
    /// The control plane had the packets kept for a user dropped.
    BufferDropped = "buffer_dropped",
    /// The time was over for which a control plane had packets kept for a user who could not be reached (DL Buffering Duration).
    BufferOver = "buffer_over",
    /// No hop is left, and the sender was not told.
    TtlExpired = "ttl_expired",
    /// The buffer has no room for the headers to put on.
    NoHeadroom = "no_headroom",
    /// A packet too long for its way, not to be split, and the sender was not told.
    MtuExceeded = "mtu_exceeded",
    /// No route leads to the destination, and the sender was not told.
    NoRoute = "no_route",
    /// A packet whose forwarding policy has next hops, and none of its IP version.
    NoPolicyHop = "no_policy_hop",
    /// A user's packet addressed to this node.
    ToOurselves = "to_ourselves",
    /// A copy that a FAR asks for, and there was no memory for it or no way.
    NotCopied = "not_copied",
    /// A packet that tunnels of this node led back into it more often than may be.
    Looped = "looped",
    /// A packet to be split, and there was no room or memory for all its fragments.
    NotSplit = "not_split",
    /// A neighbour did not tell its Ethernet address, and the sender was not told, or too many packets wait for it.
    NeighbourUnresolved = "neighbour_unresolved",
    /// A packet of another worker, which had as many of them waiting as may.
    HandoffFull = "handoff_full",
    /// A packet of a session that was being moved to another worker, and as many of them waited as may.
    MovingFull = "moving_full",
    /// A packet for the kernel, beyond the pace at which a port gives it any.
    PuntRate = "punt_rate",
    /// A packet for the kernel, which had as many waiting as may.
    PuntFull = "punt_full",
    /// A packet of a user that takes more than an eighth of a worker's time, while the worker has more to do than it can and others
    /// would lose theirs.
    UserShare = "user_share",
    /// The port did not take the packet.
    PortFull = "port_full",
    /// A packet no node finished: an error in the graph's wiring.
    Unfinished = "unfinished",
}

/// One node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Vectors it had packets of.
    pub vectors: u64,
    /// Packets it handled.
    pub packets: u64,
    /// Clock cycles it took.
    pub cycles: u64,
}

/// One port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets received.
    pub received: u64,
    /// Bytes received, from the Ethernet header on.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes sent, from the Ethernet header on.
    pub sent_bytes: u64,
    /// Of those received, given to the kernel.
    pub punted: u64,
    /// Of those created, the ones that the kernel had sent by it.
    pub from_kernel: u64,
    /// Packets lost before they were received; not in the books.
    pub missed: u64,
    /// Of those received, by class; the rest is in none.
    pub classes: [u64; CLASSES_MAX],
}

/// Everything a worker counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Packets made here.
    pub created: u64,
    /// Packets that other workers handed over.
    pub handed_in: u64,
    /// Packets handed to other workers.
    pub handed_out: u64,
    /// Packets addressed to this node that reached their end.
    pub consumed: u64,
    /// Packets given to the kernel.
    pub punted: u64,
    /// Packets waiting now.
    pub held: u64,
    /// Flows remembered now.
    pub flows: u64,
    /// PDRs that sessions take the room of.
    pub pdrs: u64,
    /// Of how many PDRs there is room.
    pub pdrs_most: u64,
    /// Paths to peers.
    pub paths: PathCounts,
    /// What content rules found out.
    pub content: ContentCounts,
    /// By [`DropReason`].
    pub drops: [u64; DropReason::ALL.len()],
    /// Users of whom [`DropReason::UserShare`] was.
    pub gave_way: ArrayVec<GaveWay, NAMED_MAX>,
    /// By [`NodeId`].
    pub nodes: [NodeCounters; NodeId::ALL.len()],
    /// By port.
    pub ports: Vec<PortCounters>,
}

impl Counters {
    /// All zero.
    pub fn new(ports: usize) -> Self {
        Self {
            created: 0,
            handed_in: 0,
            handed_out: 0,
            consumed: 0,
            punted: 0,
            held: 0,
            flows: 0,
            pdrs: 0,
            pdrs_most: 0,
            paths: PathCounts::default(),
            content: ContentCounts::default(),
            drops: [0; DropReason::ALL.len()],
            gave_way: ArrayVec::new(),
            nodes: [NodeCounters::default(); NodeId::ALL.len()],
            ports: vec![PortCounters::default(); ports],
        }
    }

    /// Takes over the counts of a worker with as many ports, allocating nothing.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.created = other.created;
        (self.handed_in, self.handed_out) = (other.handed_in, other.handed_out);
        (self.consumed, self.punted) = (other.consumed, other.punted);
        self.held = other.held;
        self.flows = other.flows;
        (self.pdrs, self.pdrs_most) = (other.pdrs, other.pdrs_most);
        self.paths = other.paths;
        self.content = other.content;
        self.drops = other.drops;
        self.gave_way.clone_from(&other.gave_way);
        self.nodes = other.nodes;
        self.ports.copy_from_slice(&other.ports);
    }

    /// A packet of so many bytes came in at a port.
    #[inline(always)]
    pub(crate) fn count_received(&mut self, port: PortIndex, bytes: usize) {
        if let Some(port) = self.ports.get_mut(usize::from(port)) {
            port.received_bytes += bytes as u64;
        }
    }

    /// A vector of so many packets at a node, if there were any.
    #[inline]
    pub(crate) fn count_vector(&mut self, node: NodeId, packets: usize) {
        let node = &mut self.nodes[node as usize];
        node.vectors += u64::from(packets > 0);
        node.packets += packets as u64;
    }

    pub(crate) fn count_drops(&mut self, reason: DropReason, packets: u64) {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count += packets;
        }
    }

    /// The books; they balance between any two turns of the worker.
    pub fn books(&self) -> Books {
        Books {
            received: self.ports.iter().map(|port| port.received).sum(),
            created: self.created,
            sent: self.ports.iter().map(|port| port.sent).sum(),
            dropped: self.drops.iter().sum(),
            consumed: self.consumed,
            punted: self.punted,
            held: self.held,
            handed_in: self.handed_in,
            handed_out: self.handed_out,
        }
    }

    /// Drops that occurred, by name.
    pub fn named_drops(&self) -> Vec<(String, u64)> {
        let all = DropReason::ALL.iter().zip(self.drops);
        all.filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.name().to_owned(), count)).collect()
    }

    /// Nodes in graph order.
    pub fn named_nodes(&self) -> Vec<NodeStatistics> {
        let named = |(id, node): (&NodeId, NodeCounters)| NodeStatistics {
            name: id.name().to_owned(),
            vectors: node.vectors,
            packets: node.packets,
            cycles: node.cycles,
        };
        NodeId::ALL.iter().zip(self.nodes).map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::DropReason;

    #[test]
    fn every_reason_is_one_sentence_and_found_by_its_name() {
        for reason in DropReason::ALL {
            let about = reason.about();
            assert!(about.ends_with('.') && !about.starts_with(' ') && about.len() > 10, "{about:?}");
            assert_eq!(DropReason::named(reason.name()), Some(*reason));
        }
        assert_eq!(DropReason::named("bad_mood"), None);
    }
}
