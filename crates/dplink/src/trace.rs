//! Packets watched on their way through the graph.

use rules::{PdrId, Seid, Teid};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Packets of one trace at most.
pub const TRACE_PACKETS_MAX: u16 = 1_000;
/// Seconds a trace lasts at most.
pub const TRACE_SECONDS_MAX: u16 = 600;

/// Which packets to trace; all that is present must match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFilter {
    /// The trace is over after so many, 1 to [`TRACE_PACKETS_MAX`].
    pub packets: u16,
    /// The trace is over after so long, 1 to [`TRACE_SECONDS_MAX`].
    pub seconds: u16,
    /// The port they come in on, by its name in the configuration.
    pub port: Option<String>,
    /// An address of the user's packet, either end; of IPv6, any of the same 64 bits of prefix. Outside tunnels, of the
    /// packet itself.
    pub ue: Option<IpAddr>,
    /// The tunnel they come in or leave in.
    pub teid: Option<Teid>,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// In the order they came.
    pub packets: Vec<TracedPacket>,
    /// Packets that came in while the trace lasted, matching or not.
    pub looked_at: u64,
    /// How long it lasted.
    pub lasted_ms: u64,
}

/// One packet's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedPacket {
    /// Between the beginning of the trace and the turn the packet came in.
    pub after_us: u64,
    /// The port it came in on.
    pub port: String,
    /// As it came in.
    pub arrived: PacketSummary,
    /// The nodes it passed; each sent it to the next, the last to its end.
    pub nodes: Vec<String>,
    /// Where it ended.
    pub end: TraceEnd,
    /// The session it belongs to, where one was found.
    pub session: Option<Seid>,
    /// The PDR it matched.
    pub pdr: Option<PdrId>,
    /// The forwarding policy of its FAR, where that says its way.
    pub policy: Option<String>,
}

/// Where a packet's way through the graph ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceEnd {
    /// Given to a port.
    Sent {
        /// The port.
        port: String,
        /// As it left.
        packet: PacketSummary,
    },
    /// Dropped.
    Dropped {
        /// The name of the reason.
        reason: String,
    },
    /// It was for the node itself.
    Consumed,
    /// A fragment addressed to the node: it is kept until the others of its datagram come.
    Gathered,
    /// Given to the kernel: it is addressed to the port, and not spoken here.
    Punted,
    /// It waits for its next hop's Ethernet address.
    Held,
    /// It is kept for its user, who sleeps.
    Kept,
    /// It waits for its session, which another worker is about to give; then it goes on.
    Awaits,
    /// Split, or copied: its parts went on, each on its own.
    Parted {
        /// How many ended how, as far as that was seen at once.
        parts: Vec<TracedParts>,
    },
    /// Handed to the worker that owns its session, where it is traced on.
    HandedOff {
        /// That worker.
        worker: u8,
    },
    /// Put into a tunnel whose other end is this node's own, too: it came in again, and is traced on.
    Looped {
        /// The port whose address the tunnel leads to.
        port: String,
    },
}

/// Parts of one packet, or copies of it and itself, that ended alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedParts {
    /// How many.
    pub count: u16,
    /// How.
    pub end: TracePartEnd,
}

/// Where a part of a packet ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TracePartEnd {
    /// Given to a port, or come in there again by a tunnel of this node.
    Sent {
        /// The port.
        port: String,
    },
    /// Dropped.
    Dropped {
        /// The name of the reason.
        reason: String,
    },
    /// Kept for its user, who sleeps.
    Kept,
    /// It waits.
    Held,
}

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketSummary {
    /// From the Ethernet header on.
    pub bytes: u16,
    /// What the frame carries; 0 for a frame without a whole header.
    pub ethertype: u16,
    /// The GTP-U message, if it carries one.
    pub tunnel: Option<TunnelSummary>,
    /// The IP packet: the user's, inside a tunnel. `None` where there is none, or none that can be read.
    pub ip: Option<IpSummary>,
}

/// A GTP-U message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelSummary {
    /// From whom, outside.
    pub source: IpAddr,
    /// To whom, outside.
    pub destination: IpAddr,
    /// The tunnel; 0 for messages about the path.
    pub teid: Teid,
    /// Of the PDU session container, if any.
    pub qfi: Option<u8>,
    /// 255 for a user's packet (TS 29.281 6.1).
    pub message_type: u8,
}

/// An IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpSummary {
    /// From whom.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// What it carries, behind IPv6 extension headers.
    pub protocol: u8,
    /// Source and destination port, where the protocol has them and the packet shows them.
    pub ports: Option<(u16, u16)>,
    /// Type of service, or traffic class.
    pub traffic_class: u8,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Notice, frame};
    use std::net::Ipv6Addr;

    /// As long as all its values can be, on a way longer than any of the graph's.
    fn longest() -> TracedPacket {
        let (source, destination) =
            (Ipv6Addr::from_bits(u128::MAX).into(), Ipv6Addr::from_bits(u128::MAX).into());
        let tunnel =
            TunnelSummary { source, destination, teid: Teid(u32::MAX), qfi: Some(63), message_type: 255 };
        let ports = Some((u16::MAX, u16::MAX));
        let ip = IpSummary { source, destination, protocol: 255, ports, traffic_class: 255 };
        let packet =
            PacketSummary { bytes: u16::MAX, ethertype: u16::MAX, tunnel: Some(tunnel), ip: Some(ip) };
        TracedPacket {
            after_us: u64::MAX,
            port: "port".repeat(8),
            arrived: packet,
            nodes: vec!["gtpu_error_indication".to_owned(); 24],
            end: TraceEnd::Sent { port: "port".repeat(8), packet },
            session: Some(Seid(u64::MAX)),
            pdr: Some(PdrId(u16::MAX)),
            policy: Some("x".repeat(128)),
        }
    }

    #[test]
    fn the_longest_trace_fits_into_a_frame() {
        let packets = vec![longest(); usize::from(TRACE_PACKETS_MAX)];
        let trace = Trace { packets, looked_at: u64::MAX, lasted_ms: u64::MAX };
        let mut stream = Vec::new();
        frame::write(&Notice::Trace { token: u64::MAX, outcome: Ok(trace) }, &mut stream).unwrap();
        assert!(stream.len() > frame::LIMIT / 4, "{} bytes show nothing", stream.len());
    }
}
