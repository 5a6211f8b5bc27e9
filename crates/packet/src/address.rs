//! Another address for a packet, all checksums with it (RFC 1624, RFC 3022 4.1).

use crate::{checksum, ipv4, ipv6, protocol};
use std::net::IpAddr;

/// Which address of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// From whom.
    Source,
    /// To whom.
    Destination,
}

/// Where the addresses of a packet count besides in their own place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// What it carries.
    protocol: u8,
    /// Where that begins; `None` in a fragment other than the first.
    upper: Option<usize>,
}

/// Places of checksums in headers of TCP, UDP and ICMPv6; those of the last are at the same place in ICMP, which counts no
/// addresses.
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
const ICMPV6_CHECKSUM: usize = 2;
/// Control bits of TCP.
const TCP_SEQUENCE: usize = 4;
const TCP_FLAGS: usize = 13;
/// The checksum of an IPv4 header.
const IPV4_CHECKSUM: usize = 10;

/// Whether packets of a protocol can get another address: their checksums are known.
pub const fn is_known(carried: u8) -> bool {
    matches!(carried, protocol::TCP | protocol::UDP | protocol::ICMP | protocol::ICMPV6)
}

impl Sealed {
    /// Of the IP packet that fills `packet`: TCP, UDP, ICMP or ICMPv6, or a fragment of that. `None` where an address cannot
    /// be replaced so that its receiver takes it: other protocols, of which some have checksums or signatures over
    /// addresses that we do not know, packets that are signed (AH) or routed by their sender, and those cut short. What a
    /// fragment other than the first carries has to be asked of the first one, see [`is_known`].
    pub fn of(packet: &[u8]) -> Option<Self> {
        let (carried, upper, is_later) = match packet.first()? >> 4 {
            4 => {
                let ip = ipv4::Packet::parse(packet).ok()?;
                (ip.protocol(), ip.header_length(), ip.is_later_fragment())
            }
            _ => {
                let upper = ipv6::Packet::parse(packet).ok()?.upper().ok()?;
                if upper.is_bound {
                    return None;
                }
                (upper.protocol, upper.offset, upper.is_later_fragment())
            }
        };
        if is_later {
            return Some(Self { protocol: carried, upper: None });
        }
        let needed = match carried {
            protocol::TCP => TCP_CHECKSUM + 2,
            protocol::UDP => UDP_CHECKSUM + 2,
            protocol::ICMP | protocol::ICMPV6 => ICMPV6_CHECKSUM + 2,
            _ => return None,
        };
        packet.get(upper..upper + needed)?;
        Some(Self { protocol: carried, upper: Some(upper) })
    }

    /// Control bits of the TCP segment in that packet; none of anything else.
    pub fn tcp_flags(self, packet: &[u8]) -> u8 {
        let upper = self.upper.filter(|_| self.protocol == protocol::TCP);
        upper.and_then(|upper| packet.get(upper + TCP_FLAGS)).copied().unwrap_or_default()
    }

    /// The sequence number of the TCP segment in that packet; `None` of anything else.
    pub fn tcp_sequence(self, packet: &[u8]) -> Option<u32> {
        let upper = self.upper.filter(|_| self.protocol == protocol::TCP)?;
        packet.get(upper + TCP_SEQUENCE..)?.first_chunk().map(|number| u32::from_be_bytes(*number))
    }

    /// Gives that packet another address of its IP version. `None`, and no change, where it is not of that version.
    pub fn replace(self, packet: &mut [u8], end: End, address: IpAddr) -> Option<()> {
        match (packet.first()? >> 4, address) {
            (4, IpAddr::V4(address)) => {
                let place = if end == End::Source { 12 } else { 16 };
                self.swap(packet, place, address.octets())
            }
            (6, IpAddr::V6(address)) => {
                let place = if end == End::Source { 8 } else { 24 };
                self.swap(packet, place, address.octets())
            }
            _ => None,
        }
    }

    /// Of four octets or of sixteen: the header of IPv4 alone has a checksum.
    fn swap<const N: usize>(self, packet: &mut [u8], place: usize, new: [u8; N]) -> Option<()> {
        let address = packet.get_mut(place..)?.first_chunk_mut()?;
        let old = std::mem::replace(address, new);
        let upper = self.upper.and_then(|upper| {
            let at = match self.protocol {
                protocol::TCP => TCP_CHECKSUM,
                protocol::UDP => UDP_CHECKSUM,
                protocol::ICMPV6 => ICMPV6_CHECKSUM,
                _ => return None,
            };
            Some(upper + at)
        });
        let header = (N == 4).then_some(IPV4_CHECKSUM);
        for at in [header, upper].into_iter().flatten() {
            let Some(field) = packet.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else { continue };
            let is_udp = self.protocol == protocol::UDP && upper == Some(at);
            let before = u16::from_be_bytes(*field);
            // A datagram without a checksum goes on without (RFC 768, RFC 6935).
            if is_udp && before == 0 {
                continue;
            }
            let after = checksum::update_bytes(before, &old, &new);
            *field = if is_udp && after == 0 { u16::MAX } else { after }.to_be_bytes();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Made, flag, is_sealed};
    use crate::{FiveTuple, udp};
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn tuple(version: u8, source: u128, destination: u128) -> FiveTuple {
        let mask = if version == 4 { !0 << 96 } else { !0 };
        FiveTuple {
            source: source & mask,
            destination: destination & mask,
            source_port: 4_000,
            destination_port: 80,
            protocol: protocol::TCP,
            version,
            ..FiveTuple::default()
        }
    }

    fn segment(tuple: &FiveTuple, payload: &[u8]) -> Vec<u8> {
        let made = Made { flags: flag::ACK, sequence: 1, acknowledgement: 2, timestamps: None, payload };
        let mut packet = vec![0; 200];
        let length = made.write(tuple, &mut packet).unwrap();
        packet.truncate(length);
        packet
    }

    /// A datagram over IPv4, and whether its checksum is right, worked out anew.
    fn datagram(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet.extend_from_slice(payload);
        let [source, destination] = [[10, 0, 0, 1], [192, 0, 2, 1]].map(Ipv4Addr::from);
        ipv4::Header::new(source, destination, 17, 8 + payload.len()).unwrap().write(&mut packet).unwrap();
        udp::Header::new(4_000, 53, payload.len()).unwrap().write(&mut packet[20..]).unwrap();
        let sum = whole_sum(&packet);
        packet[26..28].copy_from_slice(&checksum::of_sum_not_zero(sum).to_be_bytes());
        packet
    }

    fn whole_sum(packet: &[u8]) -> u16 {
        let ip = ipv4::Packet::parse(packet).unwrap();
        let pseudo = ipv4::pseudo_sum(ip.source(), ip.destination(), 17, packet.len() - 20);
        checksum::add(checksum::sum(&packet[20..]), pseudo)
    }

    proptest! {
        #[test]
        fn a_segment_stays_right(
            v6: bool,
            (source, destination, other) in any::<(u128, u128, u128)>(),
            payload in proptest::collection::vec(any::<u8>(), 0..60),
            of_source: bool,
        ) {
            let version = if v6 { 6 } else { 4 };
            let before = tuple(version, source, destination);
            let mut packet = segment(&before, &payload);
            let (end, after) = match of_source {
                true => (End::Source, tuple(version, other, destination)),
                false => (End::Destination, tuple(version, source, other)),
            };
            let new = if of_source { after.source_address() } else { after.destination_address() };
            Sealed::of(&packet).unwrap().replace(&mut packet, end, new).unwrap();
            prop_assert_eq!(&packet, &segment(&after, &payload));
            prop_assert!(is_sealed(&packet, FiveTuple::parse(&packet).unwrap().upper));
        }

        #[test]
        fn a_datagram_stays_right_and_never_says_that_it_has_no_checksum(
            payload in proptest::collection::vec(any::<u8>(), 2..9),
            other: [u8; 4],
        ) {
            let mut packet = datagram(&payload);
            let sealed = Sealed::of(&packet).unwrap();
            sealed.replace(&mut packet, End::Destination, IpAddr::from(other)).unwrap();
            prop_assert!(ipv4::Packet::parse(&packet).is_ok());
            prop_assert_eq!(whole_sum(&packet), 0xffff);
            prop_assert!(packet[26..28] != [0, 0]);
        }
    }

    /// The payload makes the checksum 0 on the new way, which is sent as 0xffff.
    #[test]
    fn a_checksum_that_comes_out_as_zero() {
        let mut packet = datagram(&[0, 0]);
        let sealed = Sealed::of(&packet).unwrap();
        sealed.replace(&mut packet, End::Destination, IpAddr::from([192, 0, 2, 9])).unwrap();
        let left = u16::from_be_bytes([packet[26], packet[27]]);
        let mut packet = datagram(&left.to_be_bytes());
        sealed.replace(&mut packet, End::Destination, IpAddr::from([192, 0, 2, 9])).unwrap();
        assert_eq!((packet[26..28].to_vec(), whole_sum(&packet)), (vec![0xff, 0xff], 0xffff));
    }

    #[test]
    fn what_has_no_checksum_gets_none_and_parts_have_none() {
        let mut packet = datagram(b"no checksum");
        packet[26..28].fill(0);
        let sealed = Sealed::of(&packet).unwrap();
        sealed.replace(&mut packet, End::Source, IpAddr::from([10, 9, 9, 9])).unwrap();
        assert_eq!(packet[26..28], [0, 0]);
        // A later fragment, of which nothing but the address is changed.
        let mut part = datagram(&[7; 40]);
        part[6..8].copy_from_slice(&[0, 5]);
        part[10..12].fill(0);
        let sum = checksum::of(&part[..20]);
        part[10..12].copy_from_slice(&sum.to_be_bytes());
        let rest = part[20..].to_vec();
        let sealed = Sealed::of(&part).unwrap();
        sealed.replace(&mut part, End::Source, IpAddr::from([10, 9, 9, 9])).unwrap();
        assert!(ipv4::Packet::parse(&part).is_ok() && part[20..] == rest);
    }

    #[test]
    fn what_is_signed_or_cut_short_or_not_known_stays_as_it_is() {
        let packet = |protocol, payload: &[u8]| {
            let mut packet = vec![0; 20];
            packet.extend_from_slice(payload);
            let [source, destination] = [[10, 0, 0, 1], [192, 0, 2, 1]].map(Ipv4Addr::from);
            ipv4::Header::new(source, destination, protocol, payload.len())
                .unwrap()
                .write(&mut packet)
                .unwrap();
            packet
        };
        for (protocol, length) in [(6, 17), (17, 7), (1, 3), (50, 40), (51, 40), (132, 40), (136, 40)] {
            assert_eq!(Sealed::of(&packet(protocol, &vec![0; length])), None, "{protocol}");
        }
        assert!(Sealed::of(&packet(1, &[8, 0, 0, 0])).is_some());
        // Routing header, authentication header, destination options, all before UDP.
        for (kind, is_changed) in [(43, false), (51, false), (60, true)] {
            let mut six = vec![0; 40];
            let rest = [17, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 2, 0, 8, 0, 0];
            six.extend_from_slice(&rest);
            ipv6::Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, kind, 16)
                .unwrap()
                .write(&mut six)
                .unwrap();
            assert_eq!(Sealed::of(&six).is_some(), is_changed, "{kind}");
        }
        let mut packet = datagram(b"four");
        assert_eq!(
            Sealed::of(&packet).unwrap().replace(&mut packet, End::Source, Ipv6Addr::LOCALHOST.into()),
            None
        );
    }
}
