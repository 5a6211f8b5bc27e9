//! Answers to pings (RFC 792, RFC 4443) and to Neighbour Solicitations (RFC 4861).

use crate::Reference;
use crate::bytes::{checksum, octets, put, u8_at};
use crate::ethernet::{IPV6, frame};
use crate::ip::{self, Header, ICMPV6, Upper};
use crate::outcome::{Fate, Outcome};
use crate::reason::DropReason;
use crate::setup::{Mac, NextHop};
use std::net::{IpAddr, Ipv6Addr};

const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
/// Router, solicited, override (RFC 4861 4.4).
const FLAGS: u8 = 0b1110_0000;
const SOLICITED: u8 = 0b0100_0000;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The group in which a station hears solicitations for one of its addresses (RFC 4291 2.7.1).
pub(crate) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// A packet addressed to us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToUs<'a> {
    pub(crate) port: usize,
    /// Who sent the frame.
    pub(crate) from: Mac,
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
        let kind: [u8; 8] = octets(to_us.payload(), 0).ok_or(DropReason::IcmpMalformed)?;
        if !to_us.is_intact() {
            return Err(DropReason::IcmpMalformed);
        }
        let ours = self.setup.is_ours(to_us.header.destination);
        match kind {
            [128, 0, ..] if ours => self.send_back(to_us, to_us.echoed(129)),
            [NEIGHBOUR_SOLICITATION, 0, ..] => self.receive_solicitation(to_us),
            [NEIGHBOUR_ADVERTISEMENT, 0, ..] => self.receive_advertisement(to_us),
            _ => Err(DropReason::IcmpNotEcho),
        }
    }

    /// Sends an answer to whom the question came from, on the side it came from.
    pub(crate) fn send_back(&mut self, to_us: ToUs<'_>, answer: Vec<u8>) -> Result<Outcome, DropReason> {
        let side = self.port(to_us.port)?.interface;
        let next_hop = self.setup.next_hop(side, to_us.header.source).ok_or(DropReason::NoRoute)?;
        self.transmit(next_hop, answer)
    }

    /// RFC 4861 7.1.1 and 7.2.4.
    fn receive_solicitation(&mut self, to_us: ToUs<'_>) -> Result<Outcome, DropReason> {
        let setup = self.port(to_us.port)?.clone();
        let malformed = DropReason::IcmpMalformed;
        let (target, asker) = read_neighbour(to_us.payload(), SOURCE_LINK_LAYER_ADDRESS).ok_or(malformed)?;
        let IpAddr::V6(source) = to_us.header.source else { return Err(malformed) };
        let probe = source.is_unspecified();
        // A probe for a double goes to the group, and its sender has no address yet.
        let to_group = to_us.header.destination != IpAddr::V6(target);
        if to_us.header.hops != 255 || target.is_multicast() || probe && (asker.is_some() || !to_group) {
            return Err(malformed);
        }
        if !setup.has(target.into()) {
            return Err(DropReason::NdNotForUs);
        }
        let released = match asker {
            Some(mac) => self.learn(NextHop { port: to_us.port, address: source.into() }, mac),
            None => Vec::new(),
        };
        let answer = advertisement(target, setup.mac, if probe { None } else { Some(source) });
        let group = [0x33, 0x33, 0, 0, 0, 1];
        let mac = if probe { group } else { asker.unwrap_or(to_us.from) };
        let mut outcome = Outcome::sent(to_us.port, frame(mac, setup.mac, IPV6, &answer));
        outcome.sent.extend(released);
        Ok(outcome)
    }

    /// RFC 4861 7.1.2 and 7.2.5.
    fn receive_advertisement(&mut self, to_us: ToUs<'_>) -> Result<Outcome, DropReason> {
        let malformed = DropReason::IcmpMalformed;
        let (target, mac) = read_neighbour(to_us.payload(), TARGET_LINK_LAYER_ADDRESS).ok_or(malformed)?;
        if to_us.header.hops != 255 || target.is_multicast() {
            return Err(malformed);
        }
        let station = NextHop { port: to_us.port, address: target.into() };
        let released = mac.map(|mac| self.learn(station, mac)).unwrap_or_default();
        Ok(Outcome { sent: released, ..Outcome::of(Fate::Consumed) })
    }
}

/// The address a solicitation or advertisement is about, and the Ethernet address in an option of this type; `None`
/// for anything unsound.
fn read_neighbour(message: &[u8], option_type: u8) -> Option<(Ipv6Addr, Option<Mac>)> {
    let target = Ipv6Addr::from_octets(octets(message, 8)?);
    let (mut at, mut mac) = (24, None);
    while at < message.len() {
        let (kind, length) = (u8_at(message, at)?, 8 * usize::from(u8_at(message, at + 1)?));
        let option = message.get(at..at + length).filter(|option| !option.is_empty())?;
        if kind == option_type {
            mac = octets(option, 2);
        }
        at += length;
    }
    Some((target, mac))
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

/// With 255 hops, by which the receiver knows that no router forwarded it.
pub(crate) fn icmpv6_packet(source: Ipv6Addr, destination: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let pseudo = ip::pseudo_header(source, destination, ICMPV6, message.len());
    put(&mut message, 2, &[0, 0]);
    let checksum = checksum(&[&pseudo, &message]);
    put(&mut message, 2, &checksum.to_be_bytes());
    let new = ip::New { protocol: ICMPV6, traffic_class: 0, hops: 255 };
    ip::packet(source.into(), destination.into(), new, &message)
}
