//! What goes into the machine and what comes out.

use super::dialect::{Change, Dialect};
use super::failure::Failure;
use crate::config::FTeidMode;
use crate::tunnel::Tunnel;
use pfcp::{ErrorKind, EthernetTrafficInformation, NodeId};
use rules::{BitRates, Qfi};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::time::Duration;

/// Who we are and whom we talk to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Our Node ID.
    pub node_id: NodeId,
    /// Our address in F-SEIDs.
    pub address: Ipv4Addr,
    /// The user plane.
    pub upf: SocketAddrV4,
    /// Who picks uplink tunnels.
    pub f_teid: FTeidMode,
    /// Where the user plane takes packets of others from the core side (N9), of dialects that give that endpoint.
    pub n9: Option<Ipv4Addr>,
    /// How we speak.
    pub dialect: Dialect,
    /// The association is left to the user plane to ask for.
    pub awaits_setup: bool,
    /// Our own: when we started, in seconds since 1900.
    pub recovery_time_stamp: u32,
    /// How long the user plane may take to answer at all.
    pub wait: Duration,
}

/// A session to establish.
#[derive(Clone, Debug)]
pub struct PduSession {
    /// The UE's address; where the user plane chooses it, what it was called before.
    pub ue: Ipv4Addr,
    /// The user plane is asked to choose it (CHV4), of dialects that do so.
    pub asks_for_address: bool,
    /// An address of its IPv6 prefix, if it has one.
    pub ue6: Option<Ipv6Addr>,
    /// Its QoS flow.
    pub qfi: Qfi,
    /// Where the gNB takes its downlink packets.
    pub downlink: Tunnel,
    /// The next gateway, where an SGW or an intermediate UPF sends uplink packets, of dialects that speak to one.
    pub beyond: Option<Tunnel>,
    /// Users' requests are answered with this URL, of dialects that redirect.
    pub portal: Option<String>,
    /// No more than this passes.
    pub mbr: Option<BitRates>,
    /// A usage report is wanted after so many bytes both ways, and at the end.
    pub report_after_bytes: Option<u64>,
    /// It carries Ethernet frames, and the address is nothing to the user plane.
    pub ethernet: bool,
    /// Rules of the user plane's that are activated by name.
    pub predefined_rules: Vec<String>,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Begin.
    Start,
    /// A datagram came.
    Datagram(SocketAddrV4, &'a [u8]),
    /// Time passed.
    Tick,
    /// The UE goes to sleep: its downlink packets are kept, and the first one wakes it.
    Sleep(usize),
    /// The UE wakes up.
    Wake(usize),
    /// Something else changes; where the control plane has no such procedure, nothing does.
    Change(usize, Change),
    /// Delete all sessions and release the association.
    Stop,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a datagram.
    Send(SocketAddrV4, Vec<u8>),
    /// Take note.
    Event(Event),
}

/// What is worth knowing; sessions by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The association is there.
    Associated(NodeId),
    /// A session's uplink goes here, and its downlink comes.
    SessionUp(usize, Tunnel),
    /// The user plane forgot a session; it will be established again.
    SessionLost(usize),
    /// A session was deleted.
    SessionDeleted(usize),
    /// All sessions are up.
    Ready,
    /// The user plane restarted and lost all sessions; they will be established again.
    Restarted,
    /// Heartbeats go unanswered.
    Silent,
    /// Heartbeats are answered again; the sessions were kept.
    Answering,
    /// A UE sleeps now.
    Asleep(usize),
    /// Packets came for a UE that sleeps; it is being woken.
    Paged(usize),
    /// A UE is awake again.
    Awake(usize),
    /// A change is done; with what was measured till then on the UE's account, and endpoints chosen for it known.
    Changed(usize, Change),
    /// The user plane tells which MAC addresses are in use behind a UE, or no longer.
    Macs(usize, EthernetTrafficInformation),
    /// The user plane has not heard of a GTP-U peer any more, or has again.
    Path(IpAddr, bool),
    /// A GTP-U peer began anew, without the tunnels it had (PURR).
    PeerRestarted(IpAddr),
    /// The user is silent (UPIR).
    Inactive(usize),
    /// The user plane reported the gNB's Error Indication about a session.
    ErrorIndicationReport(usize),
    /// A datagram of the user plane that cannot be read.
    Malformed(ErrorKind),
    /// A procedure failed; it will be tried again.
    Failed(Failure),
    /// The user plane never answered.
    Unreachable(SocketAddrV4),
    /// The user plane asks to be released: its sessions are being deleted.
    ReleaseAsked,
    /// Nothing is left to do.
    Stopped,
}
