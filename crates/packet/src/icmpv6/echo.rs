//! Answers pings (RFC 4443 4.1 and 4.2).

use super::message::is_intact;
use crate::{checksum, ipv6, protocol};

const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Why a packet cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// Cut short, or its checksum does not match.
    Malformed,
    /// Not an echo request.
    NotEchoRequest,
    /// A fragment.
    Fragment,
    /// From or to more than one station. (One may answer a ping of a group, but from an address of one's own.)
    NotUnicast,
}

/// Turns the echo request at the front of `packet`, its IPv6 header included, into its reply: addresses swapped, 64
/// hops, checksum updated.
///
/// # Errors
/// Why not; the packet is then unchanged.
pub fn reply_to_echo(packet: &mut [u8]) -> Result<(), NoReply> {
    let at = find_request(packet)?;
    let message = packet.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>).ok_or(NoReply::Malformed)?;
    let [kind, code, a, b] = *message;
    let word = |kind: u8| u16::from_be_bytes([kind, code]);
    let checksum = checksum::update(u16::from_be_bytes([a, b]), word(kind), word(ECHO_REPLY));
    let [a, b] = checksum.to_be_bytes();
    *message = [ECHO_REPLY, code, a, b];
    ipv6::reverse(packet).ok_or(NoReply::Malformed)
}

/// Where the request begins in its packet.
fn find_request(packet: &[u8]) -> Result<usize, NoReply> {
    let packet = ipv6::Packet::parse(packet).map_err(|_| NoReply::Malformed)?;
    let upper = packet.upper().map_err(|_| NoReply::Malformed)?;
    if upper.is_fragment() {
        return Err(NoReply::Fragment);
    }
    let message = packet.payload().get(upper.offset - ipv6::LENGTH..).unwrap_or_default();
    match (upper.protocol, message) {
        (protocol::ICMPV6, [ECHO_REQUEST, 0, _, _, _, _, _, _, ..]) => {}
        (protocol::ICMPV6, [ECHO_REQUEST, ..] | []) => return Err(NoReply::Malformed),
        _ => return Err(NoReply::NotEchoRequest),
    }
    let (source, destination) = (packet.source(), packet.destination());
    if source.is_multicast() || source.is_unspecified() || destination.is_multicast() {
        return Err(NoReply::NotUnicast);
    }
    if is_intact(&packet, message) { Ok(upper.offset) } else { Err(NoReply::Malformed) }
}

#[cfg(test)]
mod tests {
    use super::super::message::seal;
    use super::*;
    use std::net::Ipv6Addr;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

    fn request(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let mut bytes = [vec![0; 40], vec![ECHO_REQUEST, 0, 0, 0, 0x12, 0x34, 0, 1, b'p']].concat();
        seal(&mut bytes, (source, destination), 9, 9).unwrap();
        bytes
    }

    #[test]
    fn a_reply_goes_back_intact() {
        let mut bytes = request(A, B);
        reply_to_echo(&mut bytes).unwrap();
        let packet = ipv6::Packet::parse(&bytes).unwrap();
        assert_eq!((packet.source(), packet.destination(), packet.hop_limit()), (B, A, 64));
        assert!(is_intact(&packet, packet.payload()));
        assert_eq!((bytes[40], &bytes[44..]), (ECHO_REPLY, &request(A, B)[44..]));
        assert_eq!(reply_to_echo(&mut bytes), Err(NoReply::NotEchoRequest));
    }

    #[test]
    fn a_reply_behind_an_extension_header() {
        let plain = request(A, B);
        let mut bytes = [&plain[..40], &[protocol::ICMPV6, 0, 1, 4, 0, 0, 0, 0], &plain[40..]].concat();
        (bytes[5], bytes[6]) = (17, protocol::DESTINATION_OPTIONS);
        reply_to_echo(&mut bytes).unwrap();
        let packet = ipv6::Packet::parse(&bytes).unwrap();
        assert!(is_intact(&packet, &packet.payload()[8..]));
    }

    #[test]
    fn what_is_not_answered() {
        let good = request(A, B);
        for length in 0..good.len() {
            assert_eq!(reply_to_echo(&mut good[..length].to_vec()), Err(NoReply::Malformed));
        }
        for length in 40..48 {
            let mut cut = good[..length].to_vec();
            cut[5] = (length - 40) as u8;
            assert_eq!(reply_to_echo(&mut cut), Err(NoReply::Malformed), "{length} bytes");
        }
        let mut flipped = good.clone();
        flipped[48] ^= 1;
        let before = flipped.clone();
        assert_eq!((reply_to_echo(&mut flipped), flipped), (Err(NoReply::Malformed), before));
        let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        assert_eq!(reply_to_echo(&mut request(A, all)), Err(NoReply::NotUnicast));
        assert_eq!(reply_to_echo(&mut request(Ipv6Addr::UNSPECIFIED, B)), Err(NoReply::NotUnicast));
        let mut fragment = [&good[..40], &[protocol::ICMPV6, 0, 0, 1, 0, 0, 0, 9], &good[40..]].concat();
        (fragment[5], fragment[6]) = (17, protocol::FRAGMENT);
        assert_eq!(reply_to_echo(&mut fragment), Err(NoReply::Fragment));
    }
}
