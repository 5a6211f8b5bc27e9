//! Tunnels of UDP over IP with nothing in between: a packet behind these two headers (TS 29.244 8.2.56, TS 29.561 9.2).

use crate::{Buffer, ipv4, ipv6, protocol, udp};
use std::net::{IpAddr, SocketAddr};

/// The UDP port that we send from: the first of those that are nobody's (RFC 6335 6), and the same for all, so that a receiver
/// may filter by it. Nothing is received at it.
pub const SOURCE_PORT: u16 = 49_152;

/// Bytes of both headers, before a packet for this address.
#[inline]
pub const fn length(destination: IpAddr) -> usize {
    let ip = if destination.is_ipv4() { ipv4::LENGTH } else { ipv6::LENGTH };
    ip + udp::LENGTH
}

/// Puts both headers in front of the packet in `buffer`, from our address, with this type of service or traffic class. Over
/// IPv6 the checksum is computed (RFC 8200 8.1), over IPv4 there is none. `None` where there is no room, the result would be
/// too long for its length fields, or the addresses are of two families; the packet is then to be dropped.
pub fn encapsulate<B: Buffer>(
    buffer: &mut B,
    source: IpAddr,
    destination: SocketAddr,
    tos: u8,
) -> Option<()> {
    let payload = buffer.data().len();
    let header = udp::Header::new(SOURCE_PORT, destination.port(), payload)?;
    header.write(buffer.prepend(udp::LENGTH)?)?;
    let length = udp::LENGTH + payload;
    match (source, destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = ipv4::Header::new(source, destination, protocol::UDP, length)?.with_tos(tos);
            header.write(buffer.prepend(ipv4::LENGTH)?)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let pseudo = ipv6::pseudo_sum(source, destination, protocol::UDP, length);
            udp::fill_checksum(buffer.data_mut(), pseudo)?;
            let header = ipv6::Header::new(source, destination, protocol::UDP, length)?;
            header.with_traffic_class(tos).write(buffer.prepend(ipv6::LENGTH)?)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeapBuffer;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn buffer(payload: &[u8]) -> HeapBuffer {
        HeapBuffer::new(payload)
    }

    #[test]
    fn over_ipv4_there_is_no_checksum_and_the_marking_is_told() {
        let (from, to) = (Ipv4Addr::new(10, 40, 0, 2), Ipv4Addr::new(192, 0, 2, 9));
        let mut buffer = buffer(b"abc");
        encapsulate(&mut buffer, from.into(), (to, 5_000).into(), 46 << 2).unwrap();
        let packet = ipv4::Packet::parse(buffer.data()).unwrap();
        assert_eq!((packet.source(), packet.destination(), packet.tos()), (from, to, 46 << 2));
        assert_eq!((packet.protocol(), packet.total_length()), (protocol::UDP, length(to.into()) + 3));
        let header = udp::Header::parse(packet.payload()).unwrap();
        assert_eq!((header.source(), header.destination(), header.length()), (SOURCE_PORT, 5_000, 11));
        assert!(header.has_no_checksum());
        assert_eq!(&packet.payload()[udp::LENGTH..], b"abc");
    }

    #[test]
    fn over_ipv6_the_checksum_is_right() {
        let (from, to) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9));
        let mut buffer = buffer(b"abc");
        encapsulate(&mut buffer, from.into(), (to, 5_000).into(), 10 << 2).unwrap();
        let packet = ipv6::Packet::parse(buffer.data()).unwrap();
        assert_eq!((packet.source(), packet.destination(), packet.traffic_class()), (from, to, 10 << 2));
        assert_eq!(packet.total_length(), length(to.into()) + 3);
        let sum = packet.pseudo_sum(protocol::UDP, 11);
        assert_eq!(udp::verify(packet.payload(), sum), udp::Checksum::Intact);
    }

    #[test]
    fn what_is_too_long_or_of_two_families_is_refused() {
        let (v4, v6) = (Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
        assert_eq!(encapsulate(&mut buffer(b""), v4.into(), (v6, 1).into(), 0), None);
        assert_eq!(encapsulate(&mut buffer(&[0; 65_508]), v4.into(), (v4, 1).into(), 0), None);
    }
}
