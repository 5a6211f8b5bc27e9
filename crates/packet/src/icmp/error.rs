//! Errors: about which packets, and how they read (RFC 1122 3.2.2, RFC 1812 4.3).

use crate::{checksum, ipv4, protocol};
use std::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{Immutable, IntoBytes, KnownLayout, Unaligned};

/// Most bytes of an error, its IP header included (RFC 1812 4.3.2.3).
pub const ERROR_LENGTH_MAX: usize = 576;

const HEADER: usize = size_of::<Header>();
const UNREACHABLE: u8 = 3;
const SOURCE_QUENCH: u8 = 4;
const REDIRECT: u8 = 5;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;
const FRAGMENTATION_NEEDED: u8 = 4;
/// Internetwork control: errors go before the traffic they are about (RFC 1812 4.3.2.5).
const TOS: u8 = 0xc0;

/// Codes of [`Error::Unreachable`] (RFC 792, RFC 1812 5.2.7.1).
pub mod unreachable {
    /// No route.
    pub const NETWORK: u8 = 0;
    /// The host does not answer.
    pub const HOST: u8 = 1;
    /// The host does not speak the protocol.
    pub const PROTOCOL: u8 = 2;
    /// Nobody listens at the port.
    pub const PORT: u8 = 3;
    /// Forbidden by policy.
    pub const PROHIBITED: u8 = 13;
}

/// What is told about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It had no hops left.
    TimeExceeded,
    /// It cannot be delivered; see [`unreachable`].
    Unreachable {
        /// Why.
        code: u8,
    },
    /// It is too large and not to be fragmented (RFC 1191).
    FragmentationNeeded {
        /// What would pass, IP header included, in bytes.
        mtu: u16,
    },
}

/// Why no error is sent about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAnswered {
    /// It is damaged or cut short.
    Malformed,
    /// It is itself an error, or may be one.
    AboutError,
    /// It is a fragment, and not the first.
    Fragment,
    /// It was sent to more than one station.
    Destination,
    /// Its source is not the address of one station.
    Source,
    /// The error does not fit where it should be written.
    NoRoom,
}

#[derive(IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    kind: u8,
    code: u8,
    checksum: U16,
    unused: U16,
    mtu: U16,
}

/// Writes the whole IP packet that tells the sender of `original`, an IPv4 packet as it came, of an error, to the
/// front of `bytes`; returns its length, at most [`ERROR_LENGTH_MAX`]. `source` is an address of ours.
///
/// How often this is done is for the caller to limit (RFC 1812 4.3.2.8), and so is the check whether the packet came
/// as an Ethernet broadcast.
///
/// # Errors
/// Why the packet is not answered.
pub fn write_error(
    error: Error,
    original: &[u8],
    source: Ipv4Addr,
    bytes: &mut [u8],
) -> Result<usize, NotAnswered> {
    let packet = ipv4::Packet::parse(original).map_err(|_| NotAnswered::Malformed)?;
    may_answer(&packet)?;
    let quoted = packet.total_length().min(ERROR_LENGTH_MAX - ipv4::LENGTH - HEADER);
    let quoted = original.get(..quoted).ok_or(NotAnswered::Malformed)?;
    let (kind, code, mtu) = match error {
        Error::TimeExceeded => (TIME_EXCEEDED, 0, 0),
        Error::Unreachable { code } => (UNREACHABLE, code, 0),
        Error::FragmentationNeeded { mtu } => (UNREACHABLE, FRAGMENTATION_NEEDED, mtu),
    };
    let mut header = Header { kind, code, checksum: U16::ZERO, unused: U16::ZERO, mtu: U16::new(mtu) };
    header.checksum.set(!checksum::add(checksum::sum(header.as_bytes()), checksum::sum(quoted)));
    let message = HEADER + quoted.len();
    let ip = ipv4::Header::new(source, packet.source(), protocol::ICMP, message);
    let ip = ip.ok_or(NotAnswered::NoRoom)?.with_tos(TOS);
    put(bytes, &[ip.as_bytes(), header.as_bytes(), quoted]).ok_or(NotAnswered::NoRoom)
}

fn may_answer(packet: &ipv4::Packet<'_>) -> Result<(), NotAnswered> {
    let (source, destination) = (packet.source(), packet.destination());
    if packet.is_later_fragment() {
        return Err(NotAnswered::Fragment);
    }
    if destination.is_multicast() || destination.is_broadcast() {
        return Err(NotAnswered::Destination);
    }
    // Not network 0, not loopback, no group, nothing reserved (RFC 1122 3.2.1.3).
    let [first, ..] = source.octets();
    if matches!(first, 0 | 127 | 224..) {
        return Err(NotAnswered::Source);
    }
    match (packet.protocol(), packet.payload().first()) {
        (protocol::ICMP, None) => Err(NotAnswered::Malformed),
        (protocol::ICMP, Some(kind)) if is_error(*kind) => Err(NotAnswered::AboutError),
        _ => Ok(()),
    }
}

/// Whether messages of a type are errors.
pub(crate) const fn is_error(kind: u8) -> bool {
    matches!(kind, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

/// Whether an error says how long a packet would pass.
pub(crate) const fn is_too_long(kind: u8, code: u8) -> bool {
    kind == UNREACHABLE && code == FRAGMENTATION_NEEDED
}

/// Writes one part after the other; returns how many bytes that makes.
pub(crate) fn put(bytes: &mut [u8], parts: &[&[u8]]) -> Option<usize> {
    let mut at = 0;
    for part in parts {
        bytes.get_mut(at..)?.get_mut(..part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UE: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
    const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
    const US: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);

    fn packet(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut ip = [0; 20];
        ipv4::Header::new(source, destination, protocol, payload.len()).unwrap().write(&mut ip).unwrap();
        [&ip, payload].concat()
    }

    fn refused(original: &[u8]) -> NotAnswered {
        write_error(Error::TimeExceeded, original, US, &mut [0; 600]).unwrap_err()
    }

    #[test]
    fn an_error_quotes_what_it_is_about() {
        let original = packet(UE, SERVER, protocol::UDP, &[7; 8]);
        let mut bytes = [0; 600];
        let padded = [&original[..], &[0; 6]].concat();
        let length = write_error(Error::FragmentationNeeded { mtu: 1400 }, &padded, US, &mut bytes).unwrap();
        let ip = ipv4::Packet::parse(&bytes[..length]).unwrap();
        assert_eq!((ip.source(), ip.destination(), ip.tos()), (US, UE, 0xc0));
        assert!(checksum::is_intact(ip.payload()));
        assert_eq!((&ip.payload()[..2], &ip.payload()[4..8]), (&[3, 4][..], &[0, 0, 0x05, 0x78][..]));
        assert_eq!(ip.payload()[8..], original);
    }

    #[test]
    fn a_long_packet_is_quoted_in_part() {
        let original = packet(UE, SERVER, protocol::UDP, &[7; 1400]);
        let mut bytes = [0; 600];
        let length = write_error(Error::TimeExceeded, &original, US, &mut bytes).unwrap();
        assert_eq!((length, bytes[20], bytes[21]), (ERROR_LENGTH_MAX, 11, 0));
        assert!(checksum::is_intact(&bytes[20..length]));
        let unreachable = Error::Unreachable { code: unreachable::PROHIBITED };
        write_error(unreachable, &original, US, &mut bytes).unwrap();
        assert_eq!(bytes[20..22], [3, 13]);
        assert!((0..length).all(|short| {
            write_error(unreachable, &original, US, &mut bytes[..short]) == Err(NotAnswered::NoRoom)
        }));
    }

    #[test]
    fn what_is_not_answered() {
        for kind in [3, 4, 5, 11, 12] {
            assert_eq!(refused(&packet(UE, SERVER, protocol::ICMP, &[kind, 0])), NotAnswered::AboutError);
        }
        assert_eq!(refused(&packet(UE, SERVER, protocol::ICMP, &[])), NotAnswered::Malformed);
        for group in [[224, 0, 0, 1], [239, 1, 1, 1], [255; 4]] {
            assert_eq!(refused(&packet(UE, group.into(), protocol::UDP, &[0; 8])), NotAnswered::Destination);
        }
        for nobody in [[0, 0, 0, 0], [0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 1], [250, 1, 1, 1], [255; 4]] {
            assert_eq!(refused(&packet(nobody.into(), SERVER, protocol::UDP, &[0; 8])), NotAnswered::Source);
        }
        let mut bytes = [0; 600];
        for kind in [0, 8, 13] {
            let ping = packet(UE, SERVER, protocol::ICMP, &[kind, 0, 0, 0]);
            assert!(write_error(Error::TimeExceeded, &ping, US, &mut bytes).is_ok());
        }
    }

    #[test]
    fn only_first_fragments_are_answered() {
        for (place, expected) in [(0x2000u16, None), (1, Some(NotAnswered::Fragment))] {
            let mut fragment = packet(UE, SERVER, protocol::UDP, &[0; 8]);
            fragment[6..8].copy_from_slice(&place.to_be_bytes());
            fragment[10..12].fill(0);
            let checksum = checksum::of(&fragment[..20]);
            fragment[10..12].copy_from_slice(&checksum.to_be_bytes());
            let written = write_error(Error::TimeExceeded, &fragment, US, &mut [0; 600]);
            assert_eq!(written.err(), expected);
        }
    }

    proptest! {
        #[test]
        fn a_packet_cut_anywhere_is_not_answered(payload in proptest::collection::vec(any::<u8>(), 0..60), cut: proptest::sample::Index) {
            let original = packet(UE, SERVER, protocol::UDP, &payload);
            prop_assert_eq!(refused(&original[..cut.index(original.len())]), NotAnswered::Malformed);
        }
    }
}
