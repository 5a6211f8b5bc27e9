//! Ethernet, ARP (RFC 826), and packets that wait for an Ethernet address.

use crate::Reference;
use crate::billing::Bill;
use crate::bytes::{octets, u16_at};
use crate::fragments::split_own;
use crate::icmp::solicitation;
use crate::ip::UserPacket;
use crate::outcome::{Fate, Outcome};
use crate::reason::DropReason;
use crate::setup::{Mac, Neighbour, NextHop, PortSetup};
use rules::Seid;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const IPV6: u16 = 0x86dd;
/// The tag of IEEE 802.1Q.
pub(crate) const VLAN: u16 = 0x8100;

const BROADCAST: Mac = [0xff; 6];
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
/// Between two requests for one address; a packet waits no longer.
const SECOND_NS: u64 = 1_000_000_000;

/// Next hops for which packets of one session wait at once.
const HOPS_PER_SESSION: usize = 8;

/// A packet that waits for the Ethernet address of its next hop.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    next_hop: NextHop,
    since_ns: u64,
    pub(crate) packet: Vec<u8>,
    /// By whom it will be counted once it leaves.
    pub(crate) bill: Option<Bill>,
    /// Whose user chose the next hop.
    pub(crate) chosen_by: Option<Seid>,
}

/// A request for the Ethernet address of a next hop.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    next_hop: NextHop,
    at_ns: u64,
}

pub(crate) fn frame(destination: Mac, source: Mac, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = destination.to_vec();
    bytes.extend(source);
    bytes.extend(ethertype.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Request and reply for IPv4 over Ethernet.
pub(crate) fn arp(operation: u16, sender: (Mac, Ipv4Addr), target: (Mac, Ipv4Addr)) -> Vec<u8> {
    let mut bytes = vec![0, 1, 8, 0, 6, 4];
    bytes.extend(operation.to_be_bytes());
    bytes.extend(sender.0);
    bytes.extend(sender.1.octets());
    bytes.extend(target.0);
    bytes.extend(target.1.octets());
    bytes
}

/// Operation, sender and the address it is about.
fn read_arp(payload: &[u8]) -> Option<(u16, (Mac, Ipv4Addr), Ipv4Addr)> {
    // Hardware type Ethernet, protocol type IPv4, addresses of 6 and 4 octets.
    if octets(payload, 0)? != [0, 1, 8, 0, 6, 4] {
        return None;
    }
    let operation = u16_at(payload, 6).filter(|operation| [REQUEST, REPLY].contains(operation))?;
    let sender = (octets(payload, 8)?, Ipv4Addr::from_octets(octets(payload, 14)?));
    Some((operation, sender, Ipv4Addr::from_octets(octets(payload, 24)?)))
}

/// Whether it can be one station's (IEEE 802: the lowest bit of the first octet is that of groups).
pub(crate) fn is_station(mac: Mac) -> bool {
    mac != [0; 6] && mac.first().is_some_and(|first| first & 1 == 0)
}

impl Reference {
    pub(crate) fn receive_arp(&mut self, port: usize, payload: &[u8]) -> Result<Outcome, DropReason> {
        let setup = self.port(port)?.clone();
        let (operation, sender, target) = read_arp(payload).ok_or(DropReason::ArpMalformed)?;
        let for_us = target == setup.ipv4.addr();
        if !is_station(sender.0) {
            return Err(DropReason::ArpMalformed);
        }
        if sender.0 == setup.mac {
            return Err(DropReason::ArpNotForUs);
        }
        if sender.1 == setup.ipv4.addr() {
            return Err(DropReason::AddressConflict);
        }
        // A station that announces itself names itself on both sides.
        if !for_us && target != sender.1 {
            return Err(DropReason::ArpNotForUs);
        }
        let released = self.learn(NextHop { port, address: sender.1.into() }, sender.0);
        let mut outcome = if operation == REQUEST && for_us {
            let reply = arp(REPLY, (setup.mac, setup.ipv4.addr()), sender);
            Outcome::sent(port, frame(sender.0, setup.mac, ARP, &reply))
        } else {
            Outcome::of(Fate::Consumed)
        };
        outcome.sent.extend(released);
        Ok(outcome)
    }

    /// A station told its Ethernet address: the frames that waited for it. Stations nobody asked for are not
    /// remembered.
    pub(crate) fn learn(&mut self, station: NextHop, mac: Mac) -> Vec<(usize, Vec<u8>)> {
        let Some(setup) = self.setup.ports.get(station.port).cloned() else { return Vec::new() };
        let known = self.setup.neighbours.iter_mut().find(|neighbour| is(neighbour, station));
        let asked = self.asked.iter().any(|asked| asked.next_hop == station);
        match known {
            Some(neighbour) => neighbour.mac = mac,
            None if asked => {
                self.setup.neighbours.push(Neighbour { port: station.port, address: station.address, mac });
            }
            None => return Vec::new(),
        }
        self.asked.retain(|asked| asked.next_hop != station);
        let (released, waiting) = self.waiting.drain(..).partition(|waiting| waiting.next_hop == station);
        self.waiting = waiting;
        let released: Vec<Waiting> = released;
        released.iter().filter_map(|waiting| waiting.bill.as_ref()).for_each(|bill| self.count_again(bill));
        released.iter().map(|waiting| (station.port, ip_frame(mac, &setup, &waiting.packet))).collect()
    }

    /// The Ethernet address of a station, where it is known.
    pub(crate) fn mac_of(&self, station: NextHop) -> Option<Mac> {
        let known = self.setup.neighbours.iter().find(|neighbour| is(neighbour, station));
        known.map(|neighbour| neighbour.mac)
    }

    /// Sends a packet to its next hop, or keeps it until the next hop is known.
    pub(crate) fn transmit(&mut self, to: NextHop, packet: Vec<u8>) -> Result<Outcome, DropReason> {
        self.transmit_counted(to, packet, None)
    }

    /// The same of a packet that somebody has counted. A datagram of ours that is too long for its port is split: users'
    /// packets that come in a tunnel and go into another are not to be touched. Of its fragments, the last stands for it.
    pub(crate) fn transmit_counted(
        &mut self,
        to: NextHop,
        packet: Vec<u8>,
        bill: Option<Bill>,
    ) -> Result<Outcome, DropReason> {
        let setup = self.port(to.port)?.clone();
        if packet.len() <= usize::from(setup.mtu) {
            return Ok(self.transmit_piece(to, packet, bill));
        }
        let Some(mut pieces) = self.pieces(&packet, setup.mtu.into()) else {
            bill.iter().for_each(|bill| self.take_back(bill));
            return Err(DropReason::MtuExceeded);
        };
        let last = pieces.pop().ok_or(DropReason::MtuExceeded)?;
        let mut outcomes: Vec<Outcome> =
            pieces.into_iter().map(|piece| self.transmit_piece(to, piece, None)).collect();
        outcomes.push(self.transmit_piece(to, last, bill));
        let add = |mut first: Outcome, other: Outcome| {
            first.add_copy(other);
            first
        };
        outcomes.into_iter().reduce(add).ok_or(DropReason::MtuExceeded)
    }

    /// The fragments of a datagram of ours; `None` of others' packets.
    fn pieces(&self, packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
        let datagram = UserPacket::read(packet)?;
        let ours = self.setup.is_ours(datagram.header.source);
        ours.then(|| split_own(datagram, mtu)).flatten()
    }

    fn transmit_piece(&mut self, to: NextHop, packet: Vec<u8>, bill: Option<Bill>) -> Outcome {
        match (self.mac_of(to), self.setup.ports.get(to.port)) {
            (Some(mac), Some(setup)) => Outcome::sent(to.port, ip_frame(mac, setup, &packet)),
            _ => self.wait(to, packet, bill),
        }
    }

    fn wait(&mut self, to: NextHop, packet: Vec<u8>, bill: Option<Bill>) -> Outcome {
        bill.iter().for_each(|bill| self.suspend(bill));
        let now_ns = self.now_ns;
        let recent = |at_ns: u64| now_ns.saturating_sub(at_ns) < SECOND_NS;
        let already = self.waiting.iter().filter(|waiting| waiting.next_hop == to).count();
        let chosen_by = self.who_chose(&packet, bill.as_ref());
        let mut outcome = if already < self.setup.held_per_neighbour && self.may_wait(to, chosen_by) {
            self.waiting.push(Waiting { next_hop: to, since_ns: now_ns, packet, bill, chosen_by });
            Outcome::of(Fate::Held)
        } else {
            bill.iter().for_each(|bill| self.give_up(bill));
            Outcome::of(Fate::Dropped(DropReason::NeighbourUnresolved))
        };
        if !self.asked.iter().any(|asked| asked.next_hop == to && recent(asked.at_ns)) {
            self.asked.retain(|asked| asked.next_hop != to);
            self.asked.push(Asked { next_hop: to, at_ns: now_ns });
            match self.request(to) {
                Some(request) => outcome.sent.push(request),
                None => outcome.copies.push(Fate::Dropped(DropReason::NeighbourUnresolved)),
            }
        }
        outcome
    }

    /// On a plain network a user says where a packet goes; where a tunnel ends, rules say.
    fn who_chose(&self, packet: &[u8], bill: Option<&Bill>) -> Option<Seid> {
        let is_plain = UserPacket::read(packet).is_some_and(|read| !self.setup.is_ours(read.header.source));
        bill.filter(|_| is_plain).and_then(|bill| self.payer(bill))
    }

    /// Packets of one session wait for few next hops at once.
    fn may_wait(&self, to: NextHop, session: Option<Seid>) -> bool {
        let of_session = self.waiting.iter().filter(|waiting| waiting.chosen_by == session);
        let hops: HashSet<(usize, IpAddr)> =
            of_session.map(|waiting| (waiting.next_hop.port, waiting.next_hop.address)).collect();
        session.is_none() || hops.contains(&(to.port, to.address)) || hops.len() < HOPS_PER_SESSION
    }

    /// The frame that asks for a next hop.
    fn request(&self, to: NextHop) -> Option<(usize, Vec<u8>)> {
        let setup = self.setup.ports.get(to.port)?;
        let request = match to.address {
            IpAddr::V4(target) => {
                let request = arp(REQUEST, (setup.mac, setup.ipv4.addr()), ([0; 6], target));
                frame(BROADCAST, setup.mac, ARP, &request)
            }
            IpAddr::V6(target) => {
                let ours = setup.ipv6?.addr();
                let us = if target.is_unicast_link_local() { setup.link_local()? } else { ours };
                let (group, request) = solicitation(us, setup.mac, target);
                frame(group, setup.mac, IPV6, &request)
            }
        };
        Some((to.port, request))
    }

    /// Packets that waited too long are lost.
    pub(crate) fn expire(&mut self) {
        let now_ns = self.now_ns;
        self.waiting.retain(|waiting| now_ns.saturating_sub(waiting.since_ns) <= SECOND_NS);
    }
}

fn is(neighbour: &Neighbour, station: NextHop) -> bool {
    (neighbour.port, neighbour.address) == (station.port, station.address)
}

fn ip_frame(to: Mac, port: &PortSetup, packet: &[u8]) -> Vec<u8> {
    let version = packet.first().copied().unwrap_or(0) >> 4;
    frame(to, port.mac, if version == 6 { IPV6 } else { IPV4 }, packet)
}
