//! What nodes that answer share: a packet turned into a message of ours, back to where it came from.

use packet::{Buffer, gtpu, ipv4, ipv6, protocol, udp};
use rules::Teid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an end marker.
const END_MARKER: usize = 8;

/// From us to a peer's address and UDP port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Of one family with `destination`.
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) port: u16,
}

/// Source and destination of the IP packet whose header, checked before, stands at the front of `bytes`. What followed it
/// may have been cut off since: padding behind a user's packet, for one.
pub(super) fn ends(bytes: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match bytes.first()? >> 4 {
        4 => {
            let [source, destination] = [12, 16].map(|at| bytes.get(at..)?.first_chunk::<4>());
            Some((Ipv4Addr::from_octets(*source?).into(), Ipv4Addr::from_octets(*destination?).into()))
        }
        6 => {
            let [source, destination] = [8, 24].map(|at| bytes.get(at..)?.first_chunk::<16>());
            Some((Ipv6Addr::from_octets(*source?).into(), Ipv6Addr::from_octets(*destination?).into()))
        }
        _ => None,
    }
}

/// Replaces the packet by these bytes; `None` where the buffer is too small.
pub(super) fn replace<B: Buffer>(buffer: &mut B, bytes: &[u8]) -> Option<()> {
    buffer.truncate(0)?;
    buffer.append(bytes.len())?.copy_from_slice(bytes);
    Some(())
}

/// Replaces the packet by a GTP-U message of ours; `None` where the buffer is too small.
pub(super) fn replace_by_gtpu<B: Buffer>(buffer: &mut B, way: Way, message: &[u8]) -> Option<()> {
    let length = udp::LENGTH + message.len();
    buffer.truncate(0)?;
    let (bytes, header) = match (way.source, way.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let bytes = buffer.append(ipv4::LENGTH + length)?;
            ipv4::Header::new(source, destination, protocol::UDP, length)?.write(bytes)?;
            (bytes, ipv4::LENGTH)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let bytes = buffer.append(ipv6::LENGTH + length)?;
            ipv6::Header::new(source, destination, protocol::UDP, length)?.write(bytes)?;
            (bytes, ipv6::LENGTH)
        }
        _ => return None,
    };
    let datagram = bytes.get_mut(header..)?;
    udp::Header::new(gtpu::PORT, way.port, message.len())?.write(datagram)?;
    datagram.get_mut(udp::LENGTH..)?.copy_from_slice(message);
    match (way.source, way.destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => seal(datagram, source, destination),
        _ => Some(()),
    }
}

/// Over IPv6 a datagram of ours has its checksum (RFC 8200 8.1).
fn seal(datagram: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr) -> Option<()> {
    let pseudo = ipv6::pseudo_sum(source, destination, protocol::UDP, datagram.len());
    udp::fill_checksum(datagram, pseudo)
}

/// Makes an empty buffer an end marker; `None` where it is too small.
pub(crate) fn write_end_marker<B: Buffer>(buffer: &mut B, ends: (IpAddr, IpAddr), teid: Teid) -> Option<()> {
    let mut message = [0; END_MARKER];
    gtpu::write_end_marker(&mut message, teid.0)?;
    replace_by_gtpu(buffer, Way { source: ends.0, destination: ends.1, port: gtpu::PORT }, &message)
}

/// Makes an empty buffer an echo request of this number, with when we began; `None` where it is too small.
pub(crate) fn write_echo_request<B: Buffer>(
    buffer: &mut B,
    ends: (IpAddr, IpAddr),
    (sequence, stamp): (u16, Option<u32>),
) -> Option<()> {
    let mut message = [0; gtpu::ECHO_MAX];
    let length = gtpu::write_echo_request(&mut message, sequence, stamp)?;
    let way = Way { source: ends.0, destination: ends.1, port: gtpu::PORT };
    replace_by_gtpu(buffer, way, message.get(..length)?)
}
