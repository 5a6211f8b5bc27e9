//! Puts together GTP-U datagrams that come to us in fragments, one buffer at the end for all of them.

use super::answer::replace;
use crate::counters::DropReason;
use crate::frame::{Fate, Packet};
use crate::graph::{Next, Node, NodeId};
use crate::state::{DatagramName, Part, State, Useless, Whole};
use packet::{Buffer, ecn, ipv4, ipv6, protocol, udp};
use std::net::IpAddr;

pub(crate) struct Reassembly;

impl<B: Buffer> Node<B> for Reassembly {
    const ID: NodeId = NodeId::Reassembly;

    /// All fragments but the last end here.
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next {
        let Some(fragment) = read(packet.buffer.data()) else { return Next::drop(DropReason::BadFragment) };
        let Fragment { source, destination, identification, part } = fragment;
        let header = usize::from(packet.meta.header_length);
        let bytes = packet.buffer.data().get(header..).unwrap_or_default();
        let (port, side) = (packet.meta.port, packet.meta.direction());
        let name = DatagramName { port, side, source, identification };
        let whole = match state.fragments.take(name, (part, bytes), state.now_ns) {
            Ok(Some(whole)) => whole,
            Ok(None) => return Next::End(Fate::Gather),
            Err(Useless::Senseless | Useless::Twice) => return Next::drop(DropReason::BadFragment),
            Err(Useless::Full) => return Next::drop(DropReason::FragmentsFull),
        };
        match rebuild(&mut packet.buffer, (source, destination), whole) {
            Ok(header_length) => {
                packet.meta.header_length = header_length;
                Next::To(NodeId::GtpuInput)
            }
            Err(reason) => Next::drop(reason),
        }
    }
}

struct Fragment {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    part: Part,
}

fn read(packet: &[u8]) -> Option<Fragment> {
    let ecn = ecn::of(packet)?;
    if let Ok(ip) = ipv4::Packet::parse(packet) {
        return Some(Fragment {
            source: ip.source().into(),
            destination: ip.destination().into(),
            identification: ip.identification().into(),
            part: Part { offset: ip.fragment_offset(), more: ip.more_fragments(), ecn },
        });
    }
    let ip = ipv6::Packet::parse(packet).ok()?;
    let fragment = ip.upper().ok()?.fragment?;
    Some(Fragment {
        source: ip.source().into(),
        destination: ip.destination().into(),
        identification: fragment.identification,
        part: Part { offset: fragment.offset.into(), more: fragment.more, ecn },
    })
}

/// Makes the buffer the whole packet; returns the bytes of its IP header. Identifications come again soon, so that
/// fragments of two datagrams may meet: the checksum, where there is one, tells (RFC 4963).
fn rebuild<B: Buffer>(buffer: &mut B, ends: (IpAddr, IpAddr), whole: Whole<'_>) -> Result<u8, DropReason> {
    let (datagram, length) = (whole.bytes, whole.bytes.len());
    let ecn = whole.ecn.whole().ok_or(DropReason::NotEct)?;
    let pseudo = match ends {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = ipv4::Header::new(source, destination, protocol::UDP, length);
            let mut bytes = [0; ipv4::LENGTH];
            let written = header.and_then(|header| header.with_tos(ecn).write(&mut bytes));
            put(buffer, written, (&bytes, datagram))?;
            ipv4::pseudo_sum(source, destination, protocol::UDP, length)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = ipv6::Header::new(source, destination, protocol::UDP, length);
            let mut bytes = [0; ipv6::LENGTH];
            let written = header.and_then(|header| header.with_traffic_class(ecn).write(&mut bytes));
            put(buffer, written, (&bytes, datagram))?;
            ipv6::pseudo_sum(source, destination, protocol::UDP, length)
        }
        _ => return Err(DropReason::BadFragment),
    };
    match udp::verify(datagram, pseudo) {
        udp::Checksum::Wrong => Err(DropReason::UdpChecksum),
        _ => Ok(if ends.0.is_ipv4() { ipv4::LENGTH } else { ipv6::LENGTH } as u8),
    }
}

fn put<B: Buffer>(
    buffer: &mut B,
    written: Option<()>,
    (header, datagram): (&[u8], &[u8]),
) -> Result<(), DropReason> {
    let whole = written.and_then(|()| replace(buffer, header)).and_then(|()| {
        let bytes = buffer.append(datagram.len())?;
        bytes.get_mut(header.len()..)?.copy_from_slice(datagram);
        Some(())
    });
    whole.ok_or(DropReason::BadFragment)
}
