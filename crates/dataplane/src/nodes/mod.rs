//! The nodes, one file each. Their names are those of [`crate::NodeId`].

mod answer;
mod arp;
mod at_once;
mod clamp;
mod classify;
mod enrich;
mod ethernet_input;
mod ethernet_output;
mod far;
mod flow;
mod frame_classify;
mod frame_forward;
mod frame_input;
mod frame_output;
mod frame_user;
mod gtpu_encap;
mod gtpu_error_indication;
mod gtpu_input;
mod gtpu_path;
mod handshake;
mod icmp6_echo;
mod icmp_echo;
mod icmp_error;
mod inspect;
mod ip4_input;
mod ip6_input;
mod ip_output;
mod ndp;
mod path_mtu;
mod punt;
mod qer;
mod readdress;
mod reassembly;
mod redirect;
mod router_solicitation;
mod session;
mod steer;
mod udp_encap;
mod urr;
mod user_input;
mod usual_input;
mod verdict;

pub(crate) use answer::{write_echo_request, write_end_marker};
pub(crate) use arp::Arp;
pub(crate) use arp::write_request as write_arp_request;
pub(crate) use classify::{Classify, arrival};
pub(crate) use enrich::Enrich;
pub(crate) use ethernet_input::EthernetInput;
pub(crate) use ethernet_output::EthernetOutput;
pub(crate) use far::{Far, is_from_nobody, may_leave, route_plain};
pub(crate) use flow::Flow;
pub(crate) use frame_classify::FrameClassify;
pub(crate) use frame_forward::FrameForward;
pub(crate) use frame_input::FrameInput;
pub(crate) use frame_output::{FrameOutput, port as port_of_frames};
pub(crate) use frame_user::FrameUser;
pub(crate) use gtpu_encap::GtpuEncap;
pub(crate) use gtpu_error_indication::GtpuErrorIndication;
pub(crate) use gtpu_input::GtpuInput;
pub(crate) use gtpu_path::GtpuPath;
pub(crate) use icmp_echo::IcmpEcho;
pub(crate) use icmp_error::IcmpError;
pub(crate) use icmp6_echo::Icmp6Echo;
pub(crate) use inspect::Inspect;
pub(crate) use ip_output::{IpOutput, may_hear};
pub(crate) use ip4_input::Ip4Input;
pub(crate) use ip6_input::Ip6Input;
pub(crate) use ndp::Ndp;
pub(crate) use ndp::{write_advertisement, write_solicitation};
pub(crate) use path_mtu::{PathMtu, path_mtu};
pub(crate) use punt::Punt;
pub(crate) use qer::Qer;
pub(crate) use readdress::Readdress;
pub(crate) use reassembly::Reassembly;
pub(crate) use redirect::Redirect;
pub(crate) use router_solicitation::RouterSolicitation;
pub(crate) use session::Session;
pub(crate) use steer::Steer;
pub(crate) use udp_encap::UdpEncap;
pub(crate) use urr::Urr;
pub(crate) use user_input::UserInput;
pub(crate) use usual_input::UsualInput;
pub(crate) use verdict::Verdict;

use crate::counters::DropReason;
use crate::graph::{Next, NodeId};
use packet::{Buffer, ethernet, ipv4, ipv6};
use rules::Interface;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A packet that is not addressed to us.
#[inline]
fn to_a_user(interface: Interface) -> Next {
    match interface {
        Interface::Core | Interface::SgiLan => Next::To(NodeId::UserInput),
        // The radio side speaks to users through tunnels only.
        Interface::Access => Next::drop(DropReason::IpNotForUs),
    }
}

/// Of the IP packet at the front of `bytes`.
#[inline]
pub(crate) fn ethertype(bytes: &[u8]) -> u16 {
    match bytes.first().map(|first| first >> 4) {
        Some(6) => ethernet::IPV6,
        _ => ethernet::IPV4,
    }
}

/// Where the IP packet at the front of `bytes` goes.
#[inline]
pub(crate) fn destination(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.first()? >> 4 {
        4 => Some(IpAddr::V4(Ipv4Addr::from_octets(*bytes.get(16..)?.first_chunk()?))),
        6 => Some(IpAddr::V6(Ipv6Addr::from_octets(*bytes.get(24..)?.first_chunk()?))),
        _ => None,
    }
}

/// Puts an Ethernet header on; `None`, and no change, without the room.
pub(crate) fn push_ethernet<B: Buffer>(buffer: &mut B, header: ethernet::Header) -> Option<()> {
    header.write(buffer.prepend(ethernet::LENGTH)?)
}

impl From<ipv6::Malformed> for DropReason {
    fn from(fault: ipv6::Malformed) -> Self {
        match fault {
            ipv6::Malformed::Version => Self::Ip6Version,
            ipv6::Malformed::Truncated => Self::Ip6Truncated,
            _ => Self::Ip6Extension,
        }
    }
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
