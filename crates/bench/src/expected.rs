//! What today's forwarding path must make of a packet, written down octet by octet and sharing nothing with it.

use crate::sample::Expectation;
use crate::setup::{ENDPOINTS, N3, N6, QFI, number_of, user};
use packet::ethernet::MacAddress;
use std::net::Ipv4Addr;

/// Octets of Ethernet, IPv4 and UDP headers.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
/// Octets of a GTP-U header with a PDU session container (TS 29.281 5.1, TS 38.415 5.5.2).
const GTPU: usize = 16;
/// UDP port of GTP-U (TS 29.281 4.4.2).
const GTPU_PORT: u16 = 2_152;

/// What must come out of a worker that [`crate::setup`] has configured: the one place that chooses the reference.
pub(crate) fn reference() -> Box<dyn Expectation> {
    Box::new(Forwarded)
}

/// Users' packets, out of their tunnel on the way up and into it on the way down.
struct Forwarded;

impl Expectation for Forwarded {
    fn expect(&mut self, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
        match port {
            N3 => up(frame).map(|frame| (N6, frame)).into_iter().collect(),
            _ => down(frame).map(|frame| (N3, frame)).into_iter().collect(),
        }
    }
}

/// The tunnel's headers go, one hop is taken off, the router is the next hop.
fn up(frame: &[u8]) -> Option<Vec<u8>> {
    let inner = one_hop_less(frame.get(ETHERNET + IPV4 + UDP + GTPU..)?)?;
    Some([&ethernet(ENDPOINTS.router.0, ENDPOINTS.n6.0)[..], &inner].concat())
}

/// One hop is taken off, the user's tunnel is put on, the gNB is the next hop.
fn down(frame: &[u8]) -> Option<Vec<u8>> {
    let inner = one_hop_less(frame.get(ETHERNET..)?)?;
    let address = Ipv4Addr::from(*inner.get(16..20)?.first_chunk()?);
    let user = user(number_of(address));
    let length = |octets: usize| u16::try_from(octets).ok().map(u16::to_be_bytes);
    let mut packet = ethernet(ENDPOINTS.gnb.0, ENDPOINTS.n3.0).to_vec();
    packet.extend(outer_ipv4(IPV4 + UDP + GTPU + inner.len())?);
    packet.extend([GTPU_PORT.to_be_bytes(), GTPU_PORT.to_be_bytes()].concat());
    packet.extend(length(UDP + GTPU + inner.len())?);
    // No checksum (TS 29.281 4.4.2.0).
    packet.extend([0, 0]);
    // Version 1, GTP, extension header; G-PDU; length after the first 8 octets.
    packet.extend([0x34, 0xff]);
    packet.extend(length(GTPU - 8 + inner.len())?);
    packet.extend(user.teid.to_be_bytes());
    // No sequence number, no N-PDU number; a PDU session container of 4 octets, downlink, the last extension.
    packet.extend([0, 0, 0, 0x85, 1, 0, QFI, 0]);
    packet.extend(inner);
    Some(packet)
}

fn ethernet(destination: MacAddress, source: MacAddress) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[..6].copy_from_slice(&destination.0);
    header[6..12].copy_from_slice(&source.0);
    header[12..].copy_from_slice(&[0x08, 0x00]);
    header
}

/// From us to the gNB: not to be fragmented, 64 hops, UDP.
fn outer_ipv4(length: usize) -> Option<[u8; IPV4]> {
    let mut header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header[2..4].copy_from_slice(&u16::try_from(length).ok()?.to_be_bytes());
    header[12..16].copy_from_slice(&ENDPOINTS.n3.1.octets());
    header[16..].copy_from_slice(&ENDPOINTS.gnb.1.octets());
    let checksum = checksum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some(header)
}

/// The user's packet with one hop less and its header checksum computed anew.
fn one_hop_less(packet: &[u8]) -> Option<Vec<u8>> {
    let mut packet = packet.to_vec();
    let header = packet.first_chunk_mut::<IPV4>()?;
    header[8] = header[8].checked_sub(1)?;
    header[10..12].copy_from_slice(&[0, 0]);
    let checksum = checksum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some(packet)
}

/// RFC 1071.
fn checksum(header: &[u8]) -> u16 {
    let words =
        header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::{PROFILES, Packets, Profile};

    fn frame(uplink: f64) -> Vec<u8> {
        let mut packets = Packets::new(Profile { uplink, ..PROFILES[0] }, ENDPOINTS, 1);
        let mut frame = vec![0; 2_000];
        let (length, _) = packets.write(user(5), 3, &mut frame).unwrap();
        frame.truncate(length);
        frame
    }

    #[test]
    fn up_is_what_was_in_the_tunnel() {
        let frame = frame(1.0);
        let out = Forwarded.expect(N3, &frame).remove(0);
        assert_eq!((out.0, out.1.len()), (N6, frame.len() - IPV4 - UDP - GTPU));
        assert_eq!(out.1[..6], ENDPOINTS.router.0.0);
        assert_eq!(checksum(&out.1[14..34]), 0, "a sound header sums to nothing");
        assert_eq!(out.1[22] + 1, frame[58 + 8], "a hop less");
    }

    #[test]
    fn down_is_in_the_users_tunnel() {
        let frame = frame(0.0);
        let out = Forwarded.expect(N6, &frame).remove(0);
        assert_eq!((out.0, out.1.len()), (N3, frame.len() + IPV4 + UDP + GTPU));
        assert_eq!(checksum(&out.1[14..34]), 0);
        assert_eq!(out.1[46..50], 6u32.to_be_bytes(), "user 5 has tunnel 6");
        assert_eq!(out.1[58 + 20..], frame[14 + 20..], "nothing behind the header changes");
    }
}
