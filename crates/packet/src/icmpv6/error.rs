//! Errors: about which packets, and how they read (RFC 4443 2.4 and 3).

use super::message::seal;
use crate::icmp::put;
use crate::{ipv6, protocol};
use std::net::Ipv6Addr;

/// Most bytes of an error, its IP header included: the least MTU of IPv6 (RFC 4443 2.4 c).
pub const ERROR_LENGTH_MAX: usize = 1280;

const HEADER: usize = 8;
const HOPS: u8 = 64;
const UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
/// Types below are errors.
const FIRST_INFORMATION: u8 = 128;
const REDIRECT: u8 = 137;

/// Codes of [`Error::Unreachable`] (RFC 4443 3.1).
pub mod unreachable {
    /// No route.
    pub const NO_ROUTE: u8 = 0;
    /// Forbidden by policy.
    pub const PROHIBITED: u8 = 1;
    /// The host does not answer.
    pub const ADDRESS: u8 = 3;
    /// Nobody listens at the port.
    pub const PORT: u8 = 4;
    /// The source address is not allowed.
    pub const SOURCE_POLICY: u8 = 5;
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
    /// It is too large.
    PacketTooBig {
        /// What would pass, IP header included, in bytes; at least 1,280.
        mtu: u32,
    },
    /// A field of it makes no sense.
    ParameterProblem {
        /// 0: a field; 1: an unknown next header; 2: an unknown option.
        code: u8,
        /// Where in the packet, in bytes.
        pointer: u32,
    },
}

/// Why no error is sent about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAnswered {
    /// It is damaged or cut short.
    Malformed,
    /// It is itself an error, or may be one.
    AboutError,
    /// It was sent to more than one station.
    Destination,
    /// Its source is not the address of one station.
    Source,
    /// The error does not fit where it should be written.
    NoRoom,
}

/// Writes the whole IP packet that tells the sender of `original`, an IPv6 packet as it came, of an error, to the
/// front of `bytes`; returns its length, at most [`ERROR_LENGTH_MAX`]. `source` is an address of ours.
///
/// How often this is done is for the caller to limit (RFC 4443 2.4 f), and so is the check whether the packet came as
/// an Ethernet broadcast.
///
/// # Errors
/// Why the packet is not answered.
pub fn write_error(
    error: Error,
    original: &[u8],
    source: Ipv6Addr,
    bytes: &mut [u8],
) -> Result<usize, NotAnswered> {
    let packet = ipv6::Packet::parse(original).map_err(|_| NotAnswered::Malformed)?;
    may_answer(error, &packet)?;
    let quoted = packet.total_length().min(ERROR_LENGTH_MAX - ipv6::LENGTH - HEADER);
    let quoted = original.get(..quoted).ok_or(NotAnswered::Malformed)?;
    let (kind, code, value) = match error {
        Error::TimeExceeded => (TIME_EXCEEDED, 0, 0),
        Error::Unreachable { code } => (UNREACHABLE, code, 0),
        Error::PacketTooBig { mtu } => (PACKET_TOO_BIG, 0, mtu),
        Error::ParameterProblem { code, pointer } => (PARAMETER_PROBLEM, code, pointer),
    };
    let message = bytes.get_mut(ipv6::LENGTH..).ok_or(NotAnswered::NoRoom)?;
    let parts = [&[kind, code, 0, 0][..], &value.to_be_bytes(), quoted];
    let length = put(message, &parts).ok_or(NotAnswered::NoRoom)?;
    seal(bytes, (source, packet.source()), HOPS, length).ok_or(NotAnswered::NoRoom)
}

fn may_answer(error: Error, packet: &ipv6::Packet<'_>) -> Result<(), NotAnswered> {
    let (source, destination) = (packet.source(), packet.destination());
    let upper = packet.upper().map_err(|_| NotAnswered::Malformed)?;
    // Groups need to know their path's MTU, and who does not know their options (RFC 4443 2.4 e.3).
    let even_to_groups =
        matches!(error, Error::PacketTooBig { .. } | Error::ParameterProblem { code: 2, .. });
    if destination.is_multicast() && !even_to_groups {
        return Err(NotAnswered::Destination);
    }
    if source.is_multicast() || source.is_unspecified() {
        return Err(NotAnswered::Source);
    }
    if upper.protocol != protocol::ICMPV6 {
        return Ok(());
    }
    // A later fragment does not show whether it is of an error.
    if upper.is_later_fragment() {
        return Err(NotAnswered::AboutError);
    }
    match packet.payload().get(upper.offset - ipv6::LENGTH..).and_then(<[u8]>::first) {
        None => Err(NotAnswered::Malformed),
        Some(..FIRST_INFORMATION | &REDIRECT) => Err(NotAnswered::AboutError),
        Some(_) => Ok(()),
    }
}

/// Whether messages of a type are errors (RFC 4443 2.1).
pub(crate) const fn is_error(kind: u8) -> bool {
    kind < FIRST_INFORMATION
}

/// The same of that which says how long a packet would pass.
pub(crate) const fn is_too_big(kind: u8) -> bool {
    kind == PACKET_TOO_BIG
}

#[cfg(test)]
mod tests {
    use super::super::message::is_intact;
    use super::*;

    const UE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2);
    const US: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 3);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1);

    fn packet(source: Ipv6Addr, destination: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
        let mut ip = [0; 40];
        ipv6::Header::new(source, destination, next, payload.len()).unwrap().write(&mut ip).unwrap();
        [&ip, payload].concat()
    }

    fn write(error: Error, original: &[u8]) -> Result<Vec<u8>, NotAnswered> {
        let mut bytes = vec![0; 1300];
        let length = write_error(error, original, US, &mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    #[test]
    fn an_error_quotes_what_it_is_about() {
        let original = packet(UE, SERVER, protocol::UDP, &[7; 8]);
        let parameter = Error::ParameterProblem { code: 1, pointer: 6 };
        for (error, front) in [
            (Error::TimeExceeded, [3, 0, 0]),
            (Error::Unreachable { code: unreachable::PORT }, [1, 4, 0]),
            (Error::PacketTooBig { mtu: 0xaa }, [2, 0, 0xaa]),
            (parameter, [4, 1, 6]),
        ] {
            let bytes = write(error, &[&original[..], &[0; 6]].concat()).unwrap();
            let ip = ipv6::Packet::parse(&bytes).unwrap();
            assert_eq!((ip.source(), ip.destination(), ip.next_header()), (US, UE, protocol::ICMPV6));
            assert!(is_intact(&ip, ip.payload()));
            assert_eq!([ip.payload()[0], ip.payload()[1], ip.payload()[7]], front);
            assert_eq!(ip.payload()[8..], original);
        }
    }

    #[test]
    fn a_long_packet_is_quoted_in_part() {
        let original = packet(UE, SERVER, protocol::UDP, &[7; 1400]);
        let bytes = write(Error::TimeExceeded, &original).unwrap();
        assert_eq!((bytes.len(), &bytes[48..]), (ERROR_LENGTH_MAX, &original[..1232]));
        assert!((0..1280).all(|short| {
            write_error(Error::TimeExceeded, &original, US, &mut vec![0; short]) == Err(NotAnswered::NoRoom)
        }));
        assert!(
            (0..original.len())
                .all(|cut| { write(Error::TimeExceeded, &original[..cut]) == Err(NotAnswered::Malformed) })
        );
    }

    #[test]
    fn what_is_not_answered() {
        let refused = |original: &[u8]| write(Error::TimeExceeded, original).unwrap_err();
        for kind in [1, 2, 3, 4, 127, 137] {
            assert_eq!(refused(&packet(UE, SERVER, protocol::ICMPV6, &[kind, 0])), NotAnswered::AboutError);
        }
        assert_eq!(refused(&packet(UE, SERVER, protocol::ICMPV6, &[])), NotAnswered::Malformed);
        assert_eq!(refused(&packet(Ipv6Addr::UNSPECIFIED, SERVER, 17, &[0; 8])), NotAnswered::Source);
        assert_eq!(refused(&packet(GROUP, SERVER, 17, &[0; 8])), NotAnswered::Source);
        let to_group = packet(UE, GROUP, 17, &[0; 8]);
        assert_eq!(refused(&to_group), NotAnswered::Destination);
        assert!(write(Error::PacketTooBig { mtu: 1280 }, &to_group).is_ok());
        assert!(write(Error::ParameterProblem { code: 2, pointer: 1 }, &to_group).is_ok());
        assert!(write(Error::TimeExceeded, &packet(UE, SERVER, protocol::ICMPV6, &[128, 0])).is_ok());
    }

    #[test]
    fn later_fragments_that_may_be_of_errors_are_not_answered() {
        let later = |next: u8| packet(UE, SERVER, protocol::FRAGMENT, &[next, 0, 0, 8, 0, 0, 0, 1, 0, 0]);
        let too_big = Error::PacketTooBig { mtu: 1280 };
        assert_eq!(write(too_big, &later(protocol::ICMPV6)), Err(NotAnswered::AboutError));
        assert!(write(too_big, &later(protocol::UDP)).is_ok());
    }
}
