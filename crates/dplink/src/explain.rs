//! What would happen to a packet, and by which rule.

use rules::{
    ApplicationId, Instance, Interface, Mismatch, OuterHeader, PdrId, QerId, Qfi, Seid, Teid, UrrId,
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A packet that is only thought of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// It goes to the user, rather than from the user.
    pub is_down: bool,
    /// The user's address.
    pub ue: IpAddr,
    /// The network the user's address is of.
    pub instance: Instance,
    /// The other address, of the same IP version.
    pub remote: IpAddr,
    /// What it carries.
    pub protocol: u8,
    /// Ports at the user's and at the far end, where the protocol has ports.
    pub ports: Option<(u16, u16)>,
    /// Type of service, or traffic class.
    pub traffic_class: u8,
    /// Security parameter index, where it carries ESP or AH.
    pub spi: Option<u32>,
    /// Flow label, of IPv6.
    pub flow_label: u32,
    /// The QoS flow its tunnel header names; `None`: none, or the first that some PDR takes.
    pub qfi: Option<Qfi>,
    /// The tunnel it comes in; `None`: from the user, the first tunnel of the session some PDR takes it in; to the user,
    /// none.
    pub teid: Option<Teid>,
    /// Also tell of each PDR that was tried in vain.
    pub is_verbose: bool,
    /// Its flow is of this application; `None`: as the data plane knows, or what it does while it does not.
    pub application: Option<ApplicationId>,
}

/// The answer to a [`Question`]. Nothing was sent, counted or charged for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The session the packet belongs to.
    pub session: Option<Seid>,
    /// The tunnel it was taken to come in.
    pub teid: Option<Teid>,
    /// The QoS flow it was taken to come in.
    pub qfi: Option<Qfi>,
    /// The PDR it matches.
    pub pdr: Option<PdrId>,
    /// PDRs of the session.
    pub pdrs: u16,
    /// Of what application its flow was taken to be; `None` where the session's rules do not ask.
    pub application: Option<ExplainedApplication>,
    /// What the PDR's FAR does, once the gates of its QERs have had their say.
    pub action: Option<ExplainedAction>,
    /// The QERs of the PDR that limit a rate.
    pub qers: Vec<ExplainedQer>,
    /// The URRs of the PDR that measure now.
    pub urrs: Vec<ExplainedUrr>,
    /// The forwarding policy of its FAR, where that says its way.
    pub policy: Option<String>,
    /// Where it would go on the wire.
    pub next_hop: Option<ExplainedHop>,
    /// What would become of it.
    pub outcome: Outcome,
    /// The PDRs tried before the one that matches, and why each does not; only if asked for.
    pub tried: Vec<(PdrId, Mismatch)>,
}

/// Of what application a flow was taken to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExplainedApplication {
    /// Of that in the question.
    Asked,
    /// Of this one, as its first packets said.
    Known(String),
    /// Of none, as its first packets said.
    None,
    /// Nothing is known of it, and its first packet would go by its addresses, ports and protocol, unless that says more: of this one,
    /// or of none.
    ByAddress(Option<String>),
    /// It is not known: its first packets would be looked at, and meanwhile go as is told.
    Unknown,
}

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It leaves.
    Sent,
    /// It is kept for its user, who sleeps.
    Kept,
    /// It is kept until there is a quota again: the FAR of one that is used up says so.
    KeptBeyondQuota,
    /// Its user is answered in the place of the server, or the connection is reset.
    Answered,
    /// It is dropped.
    Dropped {
        /// The name of the reason.
        reason: String,
    },
}

/// What a FAR does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExplainedAction {
    /// DROP.
    Drop,
    /// A gate of one of the PDR's QERs is closed.
    GateClosed,
    /// BUFF.
    Buffer {
        /// NOCP.
        notify: bool,
    },
    /// FORW, with Redirect Information of a URL.
    Redirect,
    /// Connections over TCP are reset.
    Reset,
    /// FORW.
    Forward {
        /// The side it leaves on.
        to: Interface,
        /// The tunnel it is put into.
        tunnel: Option<ExplainedTunnel>,
        /// DSCP of the outermost header, if set.
        dscp: Option<u8>,
        /// Copies go elsewhere, too.
        duplicates: bool,
        /// Where it goes in the place of where it was sent (TS 29.244 8.2.20); to the user, from whom it comes in the place of its sender.
        redirect: Option<IpAddr>,
    },
}

/// A tunnel to a peer, of GTP-U or of UDP alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedTunnel {
    /// Of which kind: the peer's tunnel, or its port.
    pub header: OuterHeader,
    /// Our address and the peer's; `None` where no route leads there.
    pub ends: Option<(IpAddr, IpAddr)>,
    /// In the PDU session container.
    pub qfi: Option<u8>,
    /// RQI.
    pub reflective: bool,
}

/// A QER that limits a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedQer {
    /// The QER.
    pub qer: QerId,
    /// MBR of the packet's direction; `None` where packets are counted, not bits.
    pub limit_kbps: Option<u64>,
    /// Whether the rate would let a packet pass now.
    pub admits: bool,
}

/// A URR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedUrr {
    /// The URR.
    pub urr: UrrId,
    /// Counted so far, from the user.
    pub uplink_bytes: u64,
    /// Counted so far, to the user.
    pub downlink_bytes: u64,
    /// Its quota lets nothing pass.
    pub is_used_up: bool,
}

/// A next hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedHop {
    /// The port it leaves by.
    pub port: String,
    /// The station there.
    pub address: IpAddr,
    /// Its Ethernet address is known; if not, the packet would wait for it.
    pub is_resolved: bool,
}
