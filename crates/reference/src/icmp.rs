//! Answers to pings (RFC 792, RFC 4443) and to Neighbour Solicitations (RFC 4861).

use crate::Reference;
use crate::bytes::{checksum, octets, put, u8_at};
use crate::ethernet::{IPV6, frame, is_station};
use crate::ip::{self, Header, ICMPV6, Upper};
use crate::outcome::{Fate, Outcome};
use crate::reason::DropReason;
use crate::setup::{Mac, NextHop, PortSetup};
use std::net::{IpAddr, Ipv6Addr};

const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;
/// A longer list is an attack on the receiver's time.
const OPTIONS_MAX: usize = 32;
const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
/// Router, solicited, override (RFC 4861 4.4).
const FLAGS: u8 = 0b1110_0000;
const SOLICITED: u8 = 0b0100_0000;
const OVERRIDE: u8 = 0b0010_0000;
pub(crate) const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The group in which a station hears solicitations for one of its addresses (RFC 4291 2.7.1).
pub(crate) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// A packet addressed to us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToUs<'a> {
    pub(crate) port: usize,
    /// Without padding.
    pub(crate) packet: &'a [u8],
    pub(crate) header: Header,
    pub(crate) upper: Upper,
}

impl ToUs<'_> {
    pub(crate) fn payload(&self) -> &[u8] {
        self.packet.get(self.upper.at..).unwrap_or_default()
    }

    /// The packet turned around, with an ICMP message of this type.
    fn echoed(&self, kind: u8) -> Vec<u8> {
        let mut answer = ip::reverse(self.packet, &self.header);
        put(&mut answer, self.upper.at, &[kind, 0, 0, 0]);
        let message = answer.get(self.upper.at..).unwrap_or_default();
        let checksum = checksum(&[&self.pseudo_header(), message]);
        put(&mut answer, self.upper.at + 2, &checksum.to_be_bytes());
        answer
    }

    /// Of ICMPv6; ICMP has none.
    fn pseudo_header(&self) -> Vec<u8> {
        match (self.header.source, self.header.destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ip::pseudo_header(source, destination, ICMPV6, self.payload().len())
            }
            _ => Vec::new(),
        }
    }

    fn is_intact(&self) -> bool {
        checksum(&[&self.pseudo_header(), self.payload()]) == 0
    }

    /// What all messages of neighbour discovery must have: no router forwarded it, it is whole, of code 0 and in one
    /// piece (RFC 4861 6.1 and 7.1, RFC 6980 5).
    fn is_of_this_link(&self) -> bool {
        self.header.hops == 255
            && self.payload().len() >= 8
            && u8_at(self.payload(), 1) == Some(0)
            && self.upper.identification.is_none()
            && self.is_intact()
    }

    /// A solicitation or advertisement: the octet of flags, the address it is about, and the Ethernet address in an
    /// option of this type; `None` for what does not count.
    fn read_neighbour(&self, option_type: u8) -> Option<(u8, Ipv6Addr, Option<Mac>)> {
        let (target, mac) = read_neighbour(self.payload(), option_type)?;
        let flags = u8_at(self.payload(), 4)?;
        (self.is_of_this_link() && !target.is_multicast()).then_some((flags, target, mac))
    }
}

impl Reference {
    pub(crate) fn receive_icmp(&mut self, to_us: ToUs<'_>) -> Result<Outcome, DropReason> {
        let kind: [u8; 8] = octets(to_us.payload(), 0).ok_or(DropReason::IcmpMalformed)?;
        if !to_us.is_intact() {
            return Err(DropReason::IcmpMalformed);
        }
        match kind {
            [8, 0, ..] => self.send_back(to_us, to_us.echoed(0)),
            _ => Err(DropReason::IcmpNotEcho),
        }
    }

    pub(crate) fn receive_icmpv6(&mut self, to_us: ToUs<'_>) -> Result<Outcome, DropReason> {
        match u8_at(to_us.payload(), 0).ok_or(DropReason::IcmpMalformed)? {
            ECHO_REQUEST => self.receive_ping(to_us),
            NEIGHBOUR_SOLICITATION => self.receive_solicitation(to_us),
            NEIGHBOUR_ADVERTISEMENT => self.receive_advertisement(to_us),
            // Our routes are configured: we need none from routers, and advertise none. Their options are not looked at.
            ROUTER_SOLICITATION | ROUTER_ADVERTISEMENT if to_us.is_of_this_link() => {
                Err(DropReason::NdpNotForUs)
            }
            ROUTER_SOLICITATION | ROUTER_ADVERTISEMENT => Err(DropReason::NdpMalformed),
            REDIRECT if to_us.payload().len() < 4 => Err(DropReason::NdpMalformed),
            REDIRECT => Err(DropReason::NdpNotForUs),
            _ => Err(DropReason::IcmpNotEcho),
        }
    }

    /// RFC 4443 4.2. Nobody but one station gets an answer, and groups give none.
    fn receive_ping(&mut self, to_us: ToUs<'_>) -> Result<Outcome, DropReason> {
        if to_us.payload().len() < 8 || u8_at(to_us.payload(), 1) != Some(0) {
            return Err(DropReason::IcmpMalformed);
        }
        let Header { source, destination, .. } = to_us.header;
        if source.is_multicast() || source.is_unspecified() || destination.is_multicast() {
            return Err(DropReason::IcmpNotEcho);
        }
        if !to_us.is_intact() {
            return Err(DropReason::IcmpMalformed);
        }
        self.send_back(to_us, to_us.echoed(ECHO_REPLY))
    }

    /// Sends an answer to whom the question came from, on the side it came from; to a link-local address, on the link.
    pub(crate) fn send_back(&mut self, to_us: ToUs<'_>, answer: Vec<u8>) -> Result<Outcome, DropReason> {
        let ToUs { port, header: Header { source, .. }, .. } = to_us;
        let next_hop = match source {
            IpAddr::V6(asker) if asker.is_unicast_link_local() => Some(NextHop { port, address: source }),
            _ => self.setup.next_hop(self.port(port)?.network(), source),
        };
        self.transmit(next_hop.ok_or(DropReason::NoRoute)?, answer)
    }

    /// RFC 4861 7.1.1 and 7.2.4.
    fn receive_solicitation(&mut self, to_us: ToUs<'_>) -> Result<Outcome, DropReason> {
        let setup = self.port(to_us.port)?.clone();
        let malformed = DropReason::NdpMalformed;
        let (_, target, asker_mac) = to_us.read_neighbour(SOURCE_LINK_LAYER_ADDRESS).ok_or(malformed)?;
        let IpAddr::V6(asker) = to_us.header.source else { return Err(malformed) };
        // A probe for a double goes to the group, and its sender has no address yet.
        let to_group = to_us.header.destination == IpAddr::V6(solicited_node(target));
        if asker.is_unspecified() && (asker_mac.is_some() || !to_group) {
            return Err(malformed);
        }
        believe(&setup, asker, asker_mac)?;
        if !setup.has(target.into()) && setup.link_local() != Some(target) {
            return Err(DropReason::NdpNotForUs);
        }
        if asker.is_unspecified() {
            let answer = advertisement(target, setup.mac, None);
            let all_nodes = [0x33, 0x33, 0, 0, 0, 1];
            return Ok(Outcome::sent(to_us.port, frame(all_nodes, setup.mac, IPV6, &answer)));
        }
        let answer = advertisement(target, setup.mac, Some(asker));
        let asker = NextHop { port: to_us.port, address: asker.into() };
        // Who does not say where it is knows us, and asks whether we are still there.
        let Some(mac) = asker_mac else { return self.transmit(asker, answer) };
        let released = self.learn(asker, mac);
        let mut outcome = Outcome::sent(to_us.port, frame(mac, setup.mac, IPV6, &answer));
        outcome.sent.extend(released);
        Ok(outcome)
    }

    /// RFC 4861 7.1.2 and 7.2.5.
    fn receive_advertisement(&mut self, to_us: ToUs<'_>) -> Result<Outcome, DropReason> {
        let malformed = DropReason::NdpMalformed;
        let (flags, target, mac) = to_us.read_neighbour(TARGET_LINK_LAYER_ADDRESS).ok_or(malformed)?;
        if flags & SOLICITED != 0 && to_us.header.destination.is_multicast() {
            return Err(malformed);
        }
        believe(self.port(to_us.port)?, target, mac)?;
        let station = NextHop { port: to_us.port, address: target.into() };
        // Without the flag it may fill a gap, and not replace what is known.
        let heard =
            mac.filter(|mac| flags & OVERRIDE != 0 || self.mac_of(station).is_none_or(|known| known == *mac));
        let released = heard.map(|mac| self.learn(station, mac)).unwrap_or_default();
        Ok(Outcome { sent: released, ..Outcome::of(Fate::Consumed) })
    }
}

/// Whether a station may have an address, and say that it is here.
fn believe(setup: &PortSetup, address: Ipv6Addr, mac: Option<Mac>) -> Result<(), DropReason> {
    match mac {
        Some(mac) if !is_station(mac) => Err(DropReason::NdpMalformed),
        Some(mac) if mac == setup.mac => Err(DropReason::NdpNotForUs),
        _ if setup.has(address.into()) || setup.link_local() == Some(address) => {
            Err(DropReason::AddressConflict)
        }
        _ => Ok(()),
    }
}

/// The address a solicitation or advertisement is about, and the Ethernet address in the first option of this type;
/// `None` for anything unsound (RFC 4861 4.3, 4.4, 4.6).
fn read_neighbour(message: &[u8], option_type: u8) -> Option<(Ipv6Addr, Option<Mac>)> {
    let target = Ipv6Addr::from_octets(octets(message, 8)?);
    let (mut at, mut count, mut mac) = (24, 0, None);
    while at < message.len() {
        let (kind, length) = (u8_at(message, at)?, 8 * usize::from(u8_at(message, at + 1)?));
        let option = message.get(at..at + length).filter(|option| !option.is_empty())?;
        if kind == option_type && mac.is_none() {
            mac = Some(option.get(2..)?.try_into().ok()?);
        }
        at += length;
        count += 1;
    }
    (count <= OPTIONS_MAX).then_some((target, mac))
}

/// Asks all who might have `target` (RFC 4861 7.2.2); with the group's Ethernet address (RFC 2464 7).
pub(crate) fn solicitation(us: Ipv6Addr, mac: Mac, target: Ipv6Addr) -> (Mac, Vec<u8>) {
    let group = solicited_node(target);
    let [.., a, b, c, d] = group.octets();
    let message = neighbour_message(NEIGHBOUR_SOLICITATION, 0, target, (SOURCE_LINK_LAYER_ADDRESS, mac));
    ([0x33, 0x33, a, b, c, d], icmpv6_packet(us, group, message))
}

/// Tells `asker`, or all, that `target` is here.
fn advertisement(target: Ipv6Addr, mac: Mac, asker: Option<Ipv6Addr>) -> Vec<u8> {
    let destination = asker.unwrap_or(ALL_NODES);
    let flags = if asker.is_some() { FLAGS } else { FLAGS & !SOLICITED };
    let message = neighbour_message(NEIGHBOUR_ADVERTISEMENT, flags, target, (TARGET_LINK_LAYER_ADDRESS, mac));
    icmpv6_packet(target, destination, message)
}

/// A message about `target` with one option, an Ethernet address.
pub(crate) fn neighbour_message(kind: u8, flags: u8, target: Ipv6Addr, option: (u8, Mac)) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target.octets());
    message.extend([option.0, 1]);
    message.extend(option.1);
    message
}

/// A message of a type and code, with four octets that mean what the type says, about a packet. ICMP has no pseudo header.
pub(crate) fn icmp_message(pseudo_header: &[u8], kind: [u8; 2], value: u32, quoted: &[u8]) -> Vec<u8> {
    let mut message = [&kind[..], &[0, 0], &value.to_be_bytes(), quoted].concat();
    let checksum = checksum(&[pseudo_header, &message]);
    put(&mut message, 2, &checksum.to_be_bytes());
    message
}

/// With 255 hops, by which the receiver knows that no router forwarded it.
pub(crate) fn icmpv6_packet(source: Ipv6Addr, destination: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let pseudo = ip::pseudo_header(source, destination, ICMPV6, message.len());
    put(&mut message, 2, &[0, 0]);
    let checksum = checksum(&[&pseudo, &message]);
    put(&mut message, 2, &checksum.to_be_bytes());
    let new = ip::New { protocol: ICMPV6, traffic_class: 0, hops: 255 };
    ip::packet(source.into(), destination.into(), new, &message)
}
