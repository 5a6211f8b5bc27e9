//! The nodes, one file each. Their names are those of [`crate::NodeId`].

mod arp;
mod classify;
mod ethernet_input;
mod ethernet_output;
mod far;
mod gtpu_encap;
mod gtpu_error_indication;
mod gtpu_input;
mod gtpu_path;
mod icmp_echo;
mod ip4_input;
mod ip4_output;
mod session_downlink;
mod session_uplink;

pub(crate) use arp::Arp;
pub(crate) use arp::write_request as write_arp_request;
pub(crate) use classify::Classify;
pub(crate) use ethernet_input::EthernetInput;
pub(crate) use ethernet_output::EthernetOutput;
pub(crate) use far::Far;
pub(crate) use gtpu_encap::GtpuEncap;
pub(crate) use gtpu_error_indication::GtpuErrorIndication;
pub(crate) use gtpu_input::GtpuInput;
pub(crate) use gtpu_path::GtpuPath;
pub(crate) use icmp_echo::IcmpEcho;
pub(crate) use ip4_input::Ip4Input;
pub(crate) use ip4_output::Ip4Output;
pub(crate) use session_downlink::SessionDownlink;
pub(crate) use session_uplink::SessionUplink;

use crate::counters::DropReason;
use packet::{Buffer, ethernet, ipv4, udp};
use std::net::Ipv4Addr;

/// Puts an Ethernet header on; `None`, and no change, without the room.
pub(crate) fn push_ethernet<B: Buffer>(buffer: &mut B, header: ethernet::Header) -> Option<()> {
    header.write(buffer.prepend(ethernet::LENGTH)?)
}

/// Replaces the packet by a GTP-U message of ours; `None` where the buffer is too small.
fn replace_by_gtpu<B: Buffer>(buffer: &mut B, way: Way, message: &[u8]) -> Option<()> {
    let udp_length = udp::LENGTH + message.len();
    buffer.truncate(0)?;
    let bytes = buffer.append(ipv4::LENGTH + udp_length)?;
    ipv4::Header::new(way.source, way.destination, ipv4::UDP, udp_length)?.write(bytes)?;
    let datagram = bytes.get_mut(ipv4::LENGTH..)?;
    udp::Header::new(packet::gtpu::PORT, way.port, message.len())?.write(datagram)?;
    datagram.get_mut(udp::LENGTH..)?.copy_from_slice(message);
    Some(())
}

/// From us to a peer's address and UDP port.
struct Way {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    port: u16,
}

impl From<ipv4::Malformed> for DropReason {
    fn from(fault: ipv4::Malformed) -> Self {
        match fault {
            ipv4::Malformed::Truncated => Self::Ip4Truncated,
            ipv4::Malformed::Version => Self::Ip4Version,
            ipv4::Malformed::HeaderLength => Self::Ip4HeaderLength,
            ipv4::Malformed::Checksum => Self::Ip4Checksum,
        }
    }
}
