//! Why a packet was dropped, by the names that the data plane's counters have.

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DropReason {
            $($(#[$doc])* $variant,)*
        }

        impl DropReason {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The counter's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// A frame without a whole Ethernet header.
    EthernetTruncated = "ethernet_truncated",
    /// A frame for another station.
    NotOurMac = "not_our_mac",
    /// A frame whose payload is neither IP nor ARP.
    UnknownEthertype = "unknown_ethertype",
    /// A frame of a VLAN.
    OtherVlan = "other_vlan",
    /// An ARP message that is no request or reply for IPv4 over Ethernet (RFC 826), or of no station.
    ArpMalformed = "arp_malformed",
    /// An ARP message about neither us nor its sender, or our own.
    ArpNotForUs = "arp_not_for_us",
    /// A message of a station that has our address, too (RFC 5227 2.4).
    AddressConflict = "address_conflict",
    /// An IPv4 packet shorter than it says.
    Ip4Truncated = "ip4_truncated",
    /// A packet of EtherType IPv4 that is not version 4.
    Ip4Version = "ip4_version",
    /// An IPv4 header whose length is impossible.
    Ip4HeaderLength = "ip4_header_length",
    /// An IPv4 header whose checksum is wrong.
    Ip4Checksum = "ip4_checksum",
    /// A fragment addressed to us, and not of UDP.
    Ip4Fragment = "ip4_fragment",
    /// A packet on an access port that is not addressed to us, or one outside tunnels, or that would leave its tunnel, for or from an address
    /// that no router forwards to or from.
    IpNotForUs = "ip_not_for_us",
    /// An IPv6 packet shorter than it says.
    Ip6Truncated = "ip6_truncated",
    /// A packet of EtherType IPv6 that is not version 6.
    Ip6Version = "ip6_version",
    /// A packet to us with a chain of extension headers that makes no sense.
    Ip6Extension = "ip6_extension",
    /// A fragment addressed to us, and not of UDP.
    Ip6Fragment = "ip6_fragment",
    /// A fragment that makes no sense, or none with others of its datagram.
    BadFragment = "bad_fragment",
    /// As many datagrams as may be are being put together.
    FragmentsFull = "fragments_full",
    /// A fragment addressed to us whose datagram was given up.
    FragmentsIncomplete = "fragments_incomplete",
    /// A packet addressed to us that nobody here listens to.
    NoListener = "no_listener",
    /// An ICMP or ICMPv6 message to us that is cut short or damaged.
    IcmpMalformed = "icmp_malformed",
    /// An ICMP or ICMPv6 message to us that we have no use for.
    IcmpNotEcho = "icmp_not_echo",
    /// A message of neighbour discovery that RFC 4861 has ignored.
    NdpMalformed = "ndp_malformed",
    /// A message of neighbour discovery that does not concern us.
    NdpNotForUs = "ndp_not_for_us",
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
    /// A user's packet that heeds no marks, in a tunnel marked by a congested router (RFC 6040 4.2), or such a datagram in fragments.
    NotEct = "not_ect",
    /// A tunnel that leads to no session, and no Error Indication could be sent.
    NoTunnel = "no_tunnel",
    /// A plain packet to an address no session has.
    NoSession = "no_session",
    /// A user's packet that is not sound IP.
    UserPacketMalformed = "user_packet_malformed",
    /// A frame from a group.
    FrameSource = "frame_source",
    /// A frame whose tags cannot be read.
    FrameTags = "frame_tags",
    /// A frame from a network to an address that is no user's.
    FrameUnknownStation = "frame_unknown_station",
    /// A frame to an address on its own side.
    FrameToItself = "frame_to_itself",
    /// No PDR of the session matches.
    NoPdr = "no_pdr",
    /// The FAR says DROP.
    FarDrop = "far_drop",
    /// A packet that a FAR redirects and that cannot go there, or does not come from there.
    Redirected = "redirected",
    /// A packet to be redirected into a flow that its user has with somebody else.
    RedirectTaken = "redirect_taken",
    /// As many packets as may be are kept for the user.
    BufferFull = "buffer_full",
    /// A QER's gate is closed.
    GateClosed = "gate_closed",
    /// A QER's MBR is exceeded.
    RateExceeded = "rate_exceeded",
    /// A URR's volume quota is used up.
    QuotaExhausted = "quota_exhausted",
    /// No hop is left.
    TtlExpired = "ttl_expired",
    /// A packet longer than a port's MTU.
    MtuExceeded = "mtu_exceeded",
    /// A copy that has no way.
    NotCopied = "not_copied",
    /// No route leads to the destination, and the sender was not told.
    NoRoute = "no_route",
    /// A user's packet addressed to this node.
    ToOurselves = "to_ourselves",
    /// Too many packets wait for one neighbour's Ethernet address.
    NeighbourUnresolved = "neighbour_unresolved",
    /// A frame on a port that does not exist.
    Unfinished = "unfinished",
}
