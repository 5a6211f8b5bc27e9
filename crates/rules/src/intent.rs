//! Rules as a control plane states them (TS 29.244 5.2.1).
//!
//! Each field says what the data plane does about it and what [`Rules::check`] asks of it. A rule that another names
//! must exist in the same session.

use crate::ethernet::EthernetPdi;
use crate::ids::{ApplicationId, BarId, FarId, Instance, PdrId, Policy, QerId, Qfi, Teid, UrrId};
use crate::list::Names;
use crate::redirect::Redirect;
use crate::sdf::SdfFilter;
use crate::treatment::HeaderField;
use crate::urr::Urr;
use ipnet::{IpNet, Ipv6Net};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr};

/// What one session may hold at most. More is refused, never silently cut.
pub mod limits {
    /// PDRs in a session.
    pub const PDRS: usize = 1_000;
    /// FARs in a session.
    pub const FARS: usize = 1_000;
    /// QERs in a session.
    pub const QERS: usize = 1_000;
    /// URRs in a session.
    pub const URRS: usize = 1_000;
    /// BARs in a session.
    pub const BARS: usize = 16;
    /// QERs named by one PDR.
    pub const QERS_PER_PDR: usize = 8;
    /// URRs named by one PDR.
    pub const URRS_PER_PDR: usize = 8;
    /// URRs linked to one URR.
    pub const LINKED_URRS: usize = 16;
    /// Monitoring times of one URR beside its first.
    pub const ADDITIONAL_MONITORING_TIMES: usize = 8;
    /// QFIs in one PDI.
    pub const QFIS_PER_PDI: usize = 64;
    /// SDF filters in one PDI.
    pub const SDF_FILTERS_PER_PDI: usize = 64;
    /// SDF filters in a session, references to others included.
    pub const SDF_FILTERS: usize = 4_096;
    /// Port ranges at one end of one SDF filter.
    pub const PORT_RANGES: usize = 32;
    /// Port ranges in a session.
    pub const PORT_RANGES_PER_SESSION: usize = 16_384;
    /// Ethernet packet filters in one PDI.
    pub const ETHERNET_FILTERS_PER_PDI: usize = 16;
    /// Ethernet packet filters in a session, references to others included.
    pub const ETHERNET_FILTERS: usize = 256;
    /// MAC addresses in one Ethernet packet filter (TS 29.244 7.5.2.2-3).
    pub const MACS_PER_ETHERNET_FILTER: usize = 16;
    /// Framed routes in one PDI.
    pub const FRAMED_ROUTES_PER_PDI: usize = 64;
    /// Framed routes in a session, those of all its PDIs counted one by one.
    pub const FRAMED_ROUTES: usize = 1_024;
    /// Copies of a packet that one FAR asks for.
    pub const DUPLICATES: usize = 2;
}

/// Where a packet comes from or goes to (TS 29.244 8.2.2 and 8.2.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// Towards the radio: N3, S1-U, or N9/S5-U when nearer to it.
    Access,
    /// Towards the data network or the next user plane: N6, SGi, N9, S5-U.
    Core,
    /// The operator's service network beside N6.
    SgiLan,
}

/// A tunnel endpoint of ours (TS 29.244 8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FTeid {
    /// Never 0.
    pub teid: Teid,
    /// The address of ours it is reached at.
    pub address: IpAddr,
}

/// Packet Detection Information: all that is present must match (TS 29.244 7.5.2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pdi {
    /// Where the packet arrives from.
    pub source_interface: Interface,
    /// The network its plain packets arrive from, in which the user's addresses are unique. A tunnel says enough: packets
    /// in one match whatever this is.
    pub instance: Instance,
    /// The tunnel it arrives in; `None` takes only packets outside any tunnel, and then the PDI needs an address.
    pub f_teid: Option<FTeid>,
    /// The user's address: source on the uplink, destination on the downlink. With both addresses, either matches.
    pub ue_ipv4: Option<Ipv4Addr>,
    /// The user's prefix, 64 bits long, or the user's single address, 128 bits. Host bits of a prefix do not count.
    pub ue_ipv6: Option<Ipv6Net>,
    /// Networks behind the user (TS 29.244 5.16): an address in any of them matches as the user's own does. Of IPv6 no longer
    /// than 64 bits; host bits do not count. At most [`limits::FRAMED_ROUTES_PER_PDI`].
    pub framed_routes: Vec<IpNet>,
    /// Any of these; empty matches every packet, others only packets whose tunnel header has a QFI. At most
    /// [`limits::QFIS_PER_PDI`].
    pub qfis: Vec<Qfi>,
    /// Any of these; empty matches every packet. At most [`limits::SDF_FILTERS_PER_PDI`], and
    /// [`limits::SDF_FILTERS`] in all PDIs of a session.
    pub sdf_filters: Vec<SdfFilter>,
    /// The packet's flow is of this application, as content rules find out from its first packets.
    pub application: Option<ApplicationId>,
    /// The session carries Ethernet frames, and these match: a PDI then has neither the user's address nor an application,
    /// and needs no tunnel. 8 bytes, as few sessions have it.
    pub ethernet: Option<Box<EthernetPdi>>,
}

impl Pdi {
    /// Whether it names an address of the user, or a network behind it.
    pub fn names_user(&self) -> bool {
        self.ue_ipv4.is_some() || self.ue_ipv6.is_some() || !self.framed_routes.is_empty()
    }

    /// Its SDF filters, those of frames' packets included.
    pub fn all_sdf_filters(&self) -> impl Iterator<Item = &SdfFilter> {
        let of_frames = self.ethernet.iter().flat_map(|ethernet| &ethernet.filters);
        self.sdf_filters.iter().chain(of_frames.flat_map(|filter| &filter.sdf_filters))
    }
}

/// Packet Detection Rule (TS 29.244 7.5.2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pdr {
    /// Unique in the session.
    pub id: PdrId,
    /// Lower is matched first; of equals the lower ID.
    pub precedence: u32,
    /// What it matches.
    pub pdi: Pdi,
    /// Remove the GTP-U, UDP and IP headers of the tunnel. Must be so for a PDR with an F-TEID once it forwards.
    pub outer_header_removal: bool,
    /// What to do with what it matches.
    pub far: FarId,
    /// Every gate among them must be open, every rate among them holds; the first QFI among them marks the packet. At
    /// most [`limits::QERS_PER_PDR`]; one named twice counts once.
    pub qers: Names<QerId>,
    /// All of them count what it matches. At most [`limits::URRS_PER_PDR`]; one named twice counts once.
    pub urrs: Names<UrrId>,
}

/// What a FAR does with a packet (TS 29.244 8.2.26).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplyAction {
    /// DROP.
    Drop,
    /// FORW.
    Forward,
    /// BUFF: keep it until the FAR says otherwise.
    Buffer,
    /// Nothing is forwarded, and connections over TCP are reset at both ends. No control plane can say so: predefined rules do,
    /// in the place of [`ApplyAction::Forward`], whose parameters tell the way to the server.
    Reset,
}

/// What stands inside the UDP/IP header to put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OuterHeader {
    /// GTP-U, of the peer's tunnel, which is never 0.
    Gtpu(Teid),
    /// Nothing: the packet itself, for this port of the peer's, which is never 0 (TS 29.561 9.2, tunnels over N6).
    Udp(u16),
}

/// The UDP/IP header to put on, with or without GTP-U (TS 29.244 8.2.56).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OuterHeaderCreation {
    /// Of which kind.
    pub header: OuterHeader,
    /// The peer's address.
    pub address: IpAddr,
}

impl OuterHeaderCreation {
    /// Of a GTP-U tunnel.
    pub const fn gtpu(teid: Teid, address: IpAddr) -> Self {
        Self { header: OuterHeader::Gtpu(teid), address }
    }

    /// Of UDP alone.
    pub const fn udp(port: u16, address: IpAddr) -> Self {
        Self { header: OuterHeader::Udp(port), address }
    }

    /// The peer's tunnel, where it is one of GTP-U.
    pub const fn teid(&self) -> Option<Teid> {
        match self.header {
            OuterHeader::Gtpu(teid) => Some(teid),
            OuterHeader::Udp(_) => None,
        }
    }
}

/// Where and how to forward (TS 29.244 7.5.2.3), or to send a copy (7.5.2.3-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardingParameters {
    /// The side it leaves on.
    pub destination_interface: Interface,
    /// The network it leaves for; without effect on packets put into a tunnel.
    pub instance: Instance,
    /// The header to put it behind; `None` sends plain IP.
    pub outer_header_creation: Option<OuterHeaderCreation>,
    /// DSCP of the outermost header it leaves with, 0 to 63 (TS 29.244 8.2.12); `None` keeps the packet's own and
    /// gives the tunnel's header 0.
    pub dscp: Option<u8>,
    /// Says the way of packets that leave outside of tunnels, in the place of the routes for where they are sent (TS 29.244
    /// 8.2.23, TS 23.501 5.6.16). The data plane is to know it.
    pub policy: Option<Policy>,
}

/// Forwarding Action Rule (TS 29.244 7.5.2.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Far {
    /// Unique in the session.
    pub id: FarId,
    /// What to do.
    pub apply_action: ApplyAction,
    /// NOCP: tell the control plane of the first downlink packet that is kept, or that is dropped where it says so of those.
    /// Nothing happens by it where packets are forwarded.
    pub notify: bool,
    /// Needed by [`ApplyAction::Forward`] and [`ApplyAction::Reset`]; kept through any other action.
    pub forwarding: Option<ForwardingParameters>,
    /// DUPL: packets are copied as they come, be they forwarded, dropped or kept (TS 29.244 8.2.26); what is stopped by a closed
    /// gate, or answered here, is not.
    pub duplicating: bool,
    /// Where copies go, at most [`limits::DUPLICATES`]; kept through any action, as nobody says them again (TS 29.244
    /// 7.5.4.3).
    pub duplicates: Vec<ForwardingParameters>,
    /// How to keep packets; without effect on other actions.
    pub bar: Option<BarId>,
    /// With [`ApplyAction::Forward`] (TS 29.244 8.2.20). To a URL: nothing is forwarded, the user's requests of HTTP are answered
    /// with it, other connections over TCP are reset, and all else is dropped. To addresses: what the user sends is forwarded to
    /// the one of its IP version, and what comes back from there gets the address it was sent to as its source; what has no
    /// such address, and of packets to the user all else, is dropped.
    pub redirect: Option<Redirect>,
    /// With [`ApplyAction::Forward`], requests of HTTP that are forwarded get this field (TS 29.244 8.2.67).
    pub enrichment: Option<HeaderField>,
}

impl Far {
    /// Whether the control plane is to hear of packets for the user: who drops them may want to know as well as who keeps them.
    pub fn notifies(&self) -> bool {
        self.notify && matches!(self.apply_action, ApplyAction::Buffer | ApplyAction::Drop)
    }
}

/// A gate (TS 29.244 8.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gate {
    /// Packets pass.
    Open,
    /// Packets are dropped.
    Closed,
}

/// A bit rate each way (TS 29.244 8.2.8), in units of 1,000 bits a second of users' IP packets, of 40 bits each. 0 is no limit, as
/// SMFs write a rate that their policy leaves out, one way or both: what is to be stopped has a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitRates {
    /// From the user.
    pub uplink_kbps: u64,
    /// To the user.
    pub downlink_kbps: u64,
}

/// Packets in a time (TS 29.244 8.2.64), reckoned in windows: one begins with the first packet after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRate {
    /// So many pass; 0 lets none pass.
    pub packets: u16,
    /// In a window of so many seconds, at least 1.
    pub window_s: u32,
}

/// Packets in a time, each way; `None` is without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRates {
    /// From the user.
    pub uplink: Option<PacketRate>,
    /// To the user.
    pub downlink: Option<PacketRate>,
}

impl PacketRates {
    /// Whether neither way has a limit.
    pub const fn is_none(&self) -> bool {
        self.uplink.is_none() && self.downlink.is_none()
    }
}

/// QoS Enforcement Rule (TS 29.244 7.5.2.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qer {
    /// Unique in the session.
    pub id: QerId,
    /// The gate of packets from the user.
    pub uplink_gate: Gate,
    /// The gate of packets to the user.
    pub downlink_gate: Gate,
    /// No more than this passes; shared by all PDRs that name the QER.
    pub mbr: Option<BitRates>,
    /// No more packets than this pass; shared in the same way.
    pub packet_rates: PacketRates,
    /// QERs of one number, in whichever session, share their limits: an AMBR over several sessions (TS 29.244 5.4.4). Of
    /// different limits in one session the first QER's count, of different sessions those that were put in force last.
    pub correlation: Option<u64>,
    /// What the radio guarantees; the user plane admits nothing by it (TS 29.244 5.4.4).
    pub gbr: Option<BitRates>,
    /// Marks packets put into a tunnel, in the PDU session container; the first QFI among a PDR's QERs does.
    pub qfi: Option<Qfi>,
    /// RQI: tells the user to mirror the QoS of this flow (TS 23.501 5.7.5.3); sent if any of a PDR's QERs says so.
    pub reflective: bool,
}

/// Buffering Action Rule (TS 29.244 7.5.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// Unique in the session.
    pub id: BarId,
    /// Between the first packet kept and telling of it, in units of 50 ms (TS 29.244 8.2.28).
    pub notification_delay_50ms: u8,
    /// Packets to keep at most; `None` leaves it to us.
    pub suggested_packets: Option<u16>,
    /// Extended buffering, while it lasts.
    pub extended: Option<Extended>,
}

/// Extended buffering (TS 29.244 5.2.4.2): the user cannot be reached for so long, and what comes until then waits without a
/// word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extended {
    /// In all, in seconds; `None` is for ever. The data plane goes by it where nobody tells it that the time is over.
    pub lasts_s: Option<u32>,
    /// The moment at which it is over, for who knows moments: milliseconds since 1900, or [`Self::NEVER`].
    pub ends_ms: u64,
    /// Packets to keep at most meanwhile, in the place of [`Bar::suggested_packets`] (TS 29.244 8.2.30).
    pub packets: Option<u16>,
}

impl Extended {
    /// It ends when the user wakes.
    pub const NEVER: u64 = u64::MAX;
}

/// All rules of a session: the desired state of the data plane for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// At most [`limits::PDRS`].
    pub pdrs: Vec<Pdr>,
    /// At most [`limits::FARS`].
    pub fars: Vec<Far>,
    /// At most [`limits::QERS`].
    pub qers: Vec<Qer>,
    /// At most [`limits::URRS`].
    pub urrs: Vec<Urr>,
    /// At most [`limits::BARS`].
    pub bars: Vec<Bar>,
}
