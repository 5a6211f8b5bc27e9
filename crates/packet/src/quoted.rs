//! The packet that an ICMP error is about, as far as the error quotes it (RFC 792, RFC 4443 3), and another address for it, all
//! checksums with it (RFC 5508 4.2); of a segment of TCP other numbers, too.

mod fits;
mod segment;

pub use segment::Number;

use crate::address::End;
use crate::{FiveTuple, checksum, icmp, icmpv6, ipv4, ipv6, protocol};
use std::net::IpAddr;

/// Bytes of an error before what it quotes, and where its checksum stands.
const ERROR_HEADER: usize = 8;
const ERROR_CHECKSUM: usize = 2;
/// Places in a quoted IPv4 header.
const PLACE_OF_FRAGMENT: usize = 6;
const PROTOCOL: usize = 9;
const IPV4_CHECKSUM: usize = 10;

/// A quoted packet in the error about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    flow: FiveTuple,
    /// Where the error, the quoted packet and what that carries begin.
    error: usize,
    quote: usize,
    upper: usize,
}

/// Whether a packet, or the fragment that begins it, is an error.
pub fn is_error(packet: &[u8]) -> bool {
    begin(packet).is_some()
}

/// Where an error begins, and whether that is all of its packet.
fn begin(packet: &[u8]) -> Option<(usize, bool)> {
    if packet.first()? >> 4 == 4 {
        let ip = ipv4::Packet::parse(packet).ok()?;
        let is_it = ip.protocol() == protocol::ICMP && !ip.is_later_fragment();
        let kind = *ip.payload().first().filter(|_| is_it)?;
        return icmp::is_error(kind).then_some((ip.header_length(), !ip.is_fragment()));
    }
    let ip = ipv6::Packet::parse(packet).ok()?;
    let upper = ip.upper().ok()?;
    let is_it = upper.protocol == protocol::ICMPV6 && !upper.is_later_fragment();
    let kind = *packet.get(upper.offset..ip.total_length())?.first().filter(|_| is_it)?;
    icmpv6::is_error(kind).then_some((upper.offset, !upper.is_fragment() && !upper.is_bound))
}

impl Quoted {
    /// Of the packet that fills `packet`, if it is an error. `None` also where the quote does not say which flow it is of, as
    /// that of a fragment other than the first, where its addresses are signed or are not all there are (AH, routing headers),
    /// and in a fragment: errors are short enough for all links.
    pub fn of(packet: &[u8]) -> Option<Self> {
        let (error, is_whole) = begin(packet)?;
        let quote = error + ERROR_HEADER;
        let bytes = packet.get(quote..).filter(|_| is_whole)?;
        let (flow, header) = match (packet.first()? >> 4, bytes.first()? >> 4) {
            (4, 4) => of_ipv4(bytes)?,
            (6, 6) => of_ipv6(bytes)?,
            _ => return None,
        };
        Some(Self { flow, error, quote, upper: quote + header })
    }

    /// The quoted packet's flow: the ends as that had them, and neither class nor flow label.
    pub const fn flow(&self) -> &FiveTuple {
        &self.flow
    }

    /// Gives the quoted packet another address of its IP version. Checksums that were right are afterwards: that of the error, and
    /// those in the quote as far as it goes. `None`, and no change, where it is not of that version.
    pub fn replace(&self, packet: &mut [u8], end: End, address: IpAddr) -> Option<()> {
        let is_source = end == End::Source;
        match (self.flow.version, address) {
            (4, IpAddr::V4(address)) => {
                self.swap(packet, if is_source { 12 } else { 16 }, address.octets())?;
            }
            (6, IpAddr::V6(address)) => {
                self.swap(packet, if is_source { 8 } else { 24 }, address.octets())?;
            }
            _ => return None,
        }
        Some(())
    }

    fn swap<const N: usize>(&self, packet: &mut [u8], place: usize, new: [u8; N]) -> Option<()> {
        let address = packet.get_mut(self.quote + place..)?.first_chunk_mut()?;
        let old = std::mem::replace(address, new);
        self.follow(packet, &old, &new);
        let header = (N == 4).then_some(self.quote + IPV4_CHECKSUM);
        let upper = self.upper_checksum().map(|at| self.upper + at);
        for at in [header, upper].into_iter().flatten() {
            let Some(field) = packet.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else { continue };
            let before = u16::from_be_bytes(*field);
            let is_udp = self.flow.protocol == protocol::UDP && upper == Some(at);
            // A datagram without a checksum was sent without (RFC 768, RFC 6935).
            if is_udp && before == 0 {
                continue;
            }
            let after = checksum::update_bytes(before, &old, &new);
            let after = if is_udp && after == 0 { u16::MAX } else { after };
            *field = after.to_be_bytes();
            self.follow(packet, &before.to_be_bytes(), &after.to_be_bytes());
        }
        Some(())
    }

    /// The error's checksum, after some of what it quotes has changed.
    fn follow(&self, packet: &mut [u8], old: &[u8], new: &[u8]) {
        let field = packet.get_mut(self.error + ERROR_CHECKSUM..).and_then(<[u8]>::first_chunk_mut);
        field.into_iter().for_each(|field| {
            *field = checksum::update_bytes(u16::from_be_bytes(*field), old, new).to_be_bytes();
        });
    }

    /// Where a checksum over addresses stands in what the quoted packet carries.
    const fn upper_checksum(&self) -> Option<usize> {
        match self.flow.protocol {
            protocol::TCP => Some(16),
            protocol::UDP => Some(6),
            protocol::ICMPV6 => Some(2),
            _ => None,
        }
    }
}

/// Flow, and bytes of the header. A quote may be shorter than the packet was, and its checksum that of another hop.
fn of_ipv4(quote: &[u8]) -> Option<(FiveTuple, usize)> {
    let header = usize::from(quote.first()? & 0x0f) * 4;
    let place = u16::from_be_bytes(*quote.get(PLACE_OF_FRAGMENT..)?.first_chunk()?);
    let is_first = place & 0x1fff == 0 && header >= ipv4::LENGTH;
    let [source, destination] = [12, 16].map(|at| {
        let octets: Option<&[u8; 4]> = quote.get(at..)?.first_chunk();
        octets.map(|octets| u128::from(u32::from_be_bytes(*octets)) << 96)
    });
    let flow = FiveTuple {
        source: source?,
        destination: destination?,
        protocol: *quote.get(PROTOCOL).filter(|_| is_first)?,
        version: 4,
        ..FiveTuple::default()
    };
    Some((with_ports(flow, quote.get(header..)?)?, header))
}

fn of_ipv6(quote: &[u8]) -> Option<(FiveTuple, usize)> {
    let (header, rest) = quote.split_first_chunk::<{ ipv6::LENGTH }>()?;
    let upper = ipv6::behind(*header.get(6)?, rest).ok()?;
    let is_clear = !upper.is_later_fragment() && !upper.is_bound;
    let [source, destination] = [8, 24].map(|at| {
        let octets: Option<&[u8; 16]> = header.get(at..)?.first_chunk();
        octets.map(|octets| u128::from_be_bytes(*octets))
    });
    let flow = FiveTuple {
        source: source?,
        destination: destination?,
        protocol: upper.protocol,
        version: 6,
        ..FiveTuple::default()
    };
    Some((with_ports(flow, quote.get(upper.offset..).filter(|_| is_clear)?)?, upper.offset))
}

fn with_ports(flow: FiveTuple, upper: &[u8]) -> Option<FiveTuple> {
    if !protocol::has_ports(flow.protocol) {
        return Some(flow);
    }
    let [a, b, c, d] = *upper.first_chunk()?;
    let (source_port, destination_port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some(FiveTuple { source_port, destination_port, ..flow })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Sealed;
    use crate::tcp::{Made, flag};
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const US: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    fn flow(version: u8, [source, destination]: [u128; 2]) -> FiveTuple {
        let mask = (if version == 4 { !0 << 96 } else { !0 }) & (!0 >> 8);
        FiveTuple {
            // Nobody answers those from networks that are none.
            source: source & mask | 0x20 << 120,
            destination: destination & mask | 0x20 << 120,
            source_port: 4_000,
            destination_port: 80,
            protocol: protocol::TCP,
            version,
            ..FiveTuple::default()
        }
    }

    fn segment(flow: &FiveTuple, payload: &[u8]) -> Vec<u8> {
        numbered(flow, (1, 2), payload)
    }

    fn numbered(flow: &FiveTuple, (sequence, acknowledgement): (u32, u32), payload: &[u8]) -> Vec<u8> {
        let made = Made { flags: flag::ACK, sequence, acknowledgement, timestamps: None, payload };
        let mut packet = vec![0; 200];
        let length = made.write(flow, &mut packet).unwrap();
        packet.truncate(length);
        packet
    }

    /// An error about a packet, of which so many bytes are quoted at most.
    fn error(about: &[u8], quoted: usize) -> Vec<u8> {
        let (four, six) = (icmp::Error::Unreachable { code: 3 }, icmpv6::Error::TimeExceeded);
        error_of((four, six), about, quoted)
    }

    fn too_long(mtu: u16, about: &[u8], quoted: usize) -> Vec<u8> {
        let four = icmp::Error::FragmentationNeeded { mtu };
        error_of((four, icmpv6::Error::PacketTooBig { mtu: mtu.into() }), about, quoted)
    }

    fn error_of((four, six): (icmp::Error, icmpv6::Error), about: &[u8], quoted: usize) -> Vec<u8> {
        let mut bytes = vec![0; 1_300];
        let length = match about[0] >> 4 {
            4 => icmp::write_error(four, about, US, &mut bytes).unwrap(),
            _ => {
                let us = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
                icmpv6::write_error(six, about, us, &mut bytes).unwrap()
            }
        };
        bytes.truncate(length);
        cut(bytes, quoted)
    }

    /// Quotes less.
    fn cut(mut error: Vec<u8>, quoted: usize) -> Vec<u8> {
        let header = if error[0] >> 4 == 4 { 20 } else { 40 };
        error.truncate(header + 8 + quoted);
        let length = error.len() as u16;
        error[header + 2..header + 4].fill(0);
        if header == 20 {
            ipv4::set_total_length(&mut error, length).unwrap();
            let sum = checksum::of(&error[20..]);
            error[22..24].copy_from_slice(&sum.to_be_bytes());
            return error;
        }
        ipv6::set_payload_length(&mut error, length - 40).unwrap();
        let ip = ipv6::Packet::parse(&error).unwrap();
        let pseudo = ip.pseudo_sum(protocol::ICMPV6, ip.payload().len());
        let sum = !checksum::add(checksum::sum(ip.payload()), pseudo);
        error[42..44].copy_from_slice(&sum.to_be_bytes());
        error
    }

    #[test]
    fn what_would_pass_is_said_by_errors_that_are_intact() {
        for version in [4, 6] {
            let about = segment(&flow(version, [1, 2]), b"long");
            let of = |error: &[u8]| Quoted::of(error).unwrap().fits(error);
            let mut told = too_long(1_300, &about, 28 + usize::from(version == 6) * 20);
            assert_eq!(of(&told), Some(1_300));
            *told.last_mut().unwrap() ^= 1;
            assert_eq!(of(&told), None, "it is damaged");
            assert_eq!(of(&error(&about, 60)), None, "it is about something else");
        }
    }

    proptest! {
        /// It comes to what an error about a packet with that address would be.
        #[test]
        fn an_error_is_about_another_address(
            v6: bool,
            ends: [u128; 2],
            other: u128,
            payload in proptest::collection::vec(any::<u8>(), 0..60),
            (of_source, words) in (any::<bool>(), 12..100_usize),
        ) {
            // Half of a checksum says nothing.
            let quoted = 2 * words + if v6 { 20 } else { 0 };
            let version = if v6 { 6 } else { 4 };
            let before = flow(version, ends);
            let other = flow(version, [other; 2]);
            let (end, after) = match of_source {
                true => (End::Source, FiveTuple { source: other.source, ..before }),
                false => (End::Destination, FiveTuple { destination: other.destination, ..before }),
            };
            let mut packet = error(&segment(&before, &payload), quoted);
            let found = Quoted::of(&packet).unwrap();
            prop_assert_eq!(found.flow(), &before);
            found.replace(&mut packet, end, other.source_address()).unwrap();
            prop_assert_eq!(Quoted::of(&packet).map(|found| found.flow), Some(after));
            let mut expected = error(&segment(&after, &payload), quoted);
            if of_source {
                // Errors go to whom the packet was from.
                let to = before.source_address();
                Sealed::of(&expected).unwrap().replace(&mut expected, End::Destination, to).unwrap();
            }
            prop_assert_eq!(packet, expected);
        }

        /// It comes to what an error about a segment with those numbers would be, and with that MTU.
        #[test]
        fn an_error_is_about_other_numbers(
            v6: bool,
            numbers: [u32; 4],
            (mtu, other_mtu) in (1..u16::MAX, 1..u16::MAX),
            payload in proptest::collection::vec(any::<u8>(), 0..60),
            words in 14..100_usize,
        ) {
            let quoted = 2 * words + if v6 { 20 } else { 0 };
            let flow = flow(if v6 { 6 } else { 4 }, [1 << 100, 2 << 100]);
            let [sequence, acknowledgement, other, another] = numbers;
            let mut packet = too_long(mtu, &numbered(&flow, (sequence, acknowledgement), &payload), quoted);
            let found = Quoted::of(&packet).unwrap();
            prop_assert_eq!(found.mtu(&packet), Some(mtu.into()));
            prop_assert_eq!(found.carried(&packet), Some(payload.len()));
            prop_assert_eq!(found.number(&packet, Number::Sequence), Some(sequence));
            found.renumber(&mut packet, Number::Sequence, other).unwrap();
            let acknowledges = found.number(&packet, Number::Acknowledgement);
            let whole = quoted >= if v6 { 52 } else { 32 };
            prop_assert_eq!(acknowledges, whole.then_some(acknowledgement));
            let renumbered = found.renumber(&mut packet, Number::Acknowledgement, another);
            found.tell_mtu(&mut packet, other_mtu.into()).unwrap();
            let numbers = (other, if renumbered.is_some() { another } else { acknowledgement });
            prop_assert_eq!(packet, too_long(other_mtu, &numbered(&flow, numbers, &payload), quoted));
        }

        #[test]
        fn nothing_breaks(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), first in 0..4_usize) {
            let fronts = [0x45, 0x60, 0x46, 0x4f];
            bytes.iter_mut().take(1).for_each(|byte| *byte = fronts[first]);
            if let Some(found) = Quoted::of(&bytes) {
                let _ = found.replace(&mut bytes, End::Source, IpAddr::V4(US));
                let _ = found.renumber(&mut bytes, Number::Acknowledgement, 1);
                let _ = (found.carried(&bytes), found.tell_mtu(&mut bytes, 1));
            }
        }
    }

    #[test]
    fn a_quote_that_does_not_tell_its_flow_is_none_and_the_error_is_one() {
        let about = segment(&flow(4, [1 << 100, 2 << 100]), b"payload");
        assert!((24..60).all(|quoted| Quoted::of(&error(&about, quoted)).is_some()));
        for quoted in 0..24 {
            let error = error(&about, quoted);
            assert!(is_error(&error) && Quoted::of(&error).is_none(), "{quoted}");
        }
        let mut later = error(&about, 60);
        later[20 + 8 + 7] = 1;
        assert!(is_error(&later) && Quoted::of(&later).is_none());
        // Of the other version.
        let mut other = error(&about, 60);
        other[28] = 0x60;
        assert_eq!(Quoted::of(&other), None);
    }

    #[test]
    fn what_is_no_segment_has_no_numbers_and_what_is_not_too_long_no_mtu() {
        let about = segment(&flow(4, [1 << 100, 2 << 100]), b"payload");
        let unreachable = error(&about, 60);
        assert_eq!(Quoted::of(&unreachable).unwrap().mtu(&unreachable), None);
        let silent = too_long(0, &about, 60);
        assert_eq!(Quoted::of(&silent).unwrap().mtu(&silent), None);
        let mut packet = too_long(1_400, &about, 60);
        packet[20 + 8 + PROTOCOL] = protocol::UDP;
        assert_eq!(Quoted::of(&packet).unwrap().number(&packet, Number::Sequence), None);
    }

    #[test]
    fn what_is_no_error_is_none() {
        let about = segment(&flow(4, [1 << 100, 2 << 100]), b"payload");
        assert!(!is_error(&about));
        let mut packet = error(&about, 60);
        for (kind, is_it) in [(0, false), (3, true), (4, true), (5, true), (8, false), (11, true), (12, true)]
        {
            packet[20] = kind;
            assert_eq!((is_error(&packet), Quoted::of(&packet).is_some()), (is_it, is_it), "{kind}");
        }
        let mut six = error(&segment(&flow(6, [1, 2]), b"payload"), 100);
        for (kind, is_it) in [(1, true), (127, true), (128, false), (136, false)] {
            six[40] = kind;
            assert_eq!(Quoted::of(&six).is_some(), is_it, "{kind}");
        }
    }

    #[test]
    fn a_quoted_datagram_without_checksum_stays_without() {
        let mut about = vec![0; 28];
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 7));
        ipv4::Header::new(source, destination, 17, 8).unwrap().write(&mut about).unwrap();
        about[20..28].copy_from_slice(&[0, 1, 0, 2, 0, 8, 0, 0]);
        let mut packet = error(&about, 28);
        let other = IpAddr::from([192, 0, 2, 8]);
        Quoted::of(&packet).unwrap().replace(&mut packet, End::Destination, other).unwrap();
        assert_eq!(packet[54..56], [0, 0]);
        assert!(checksum::is_intact(&packet[20..]));
    }
}
