//! Sends users' packets on, plain or in a tunnel (TS 29.244 5.2.3, TS 29.281 5.1, TS 38.415 5.5.2).

use crate::Reference;
use crate::applications::Choice;
use crate::billing::{Bill, By};
use crate::detection::{Arrival, Tunnel};
use crate::enforcement::{Action, Chosen, Marks, Moment, Verdict, is_of_a_link};
use crate::errors::{LEAST_MTU_V6, Stopped};
use crate::fragments::split;
use crate::gtpu::{self, Container, Relayed};
use crate::ip::{self, UDP, UserPacket};
use crate::meters::Load;
use crate::outcome::{Fate, Outcome};
use crate::reason::DropReason;
use crate::setup::{Network, NextHop, Setup, network};
use rules::{Direction, ForwardingParameters, OuterHeader, OuterHeaderCreation};
use std::net::IpAddr;

const HOPS: u8 = 64;
/// Where datagrams come from that have no GTP-U in them: the first port that is nobody's (RFC 6335 6).
const UDP_SOURCE: u16 = 49_152;

impl Reference {
    /// A user's packet and its session.
    pub(crate) fn serve(&mut self, session: usize, arrival: &Arrival) -> Result<Outcome, DropReason> {
        #[cfg(test)]
        {
            self.seen = Some((session, arrival.clone()));
        }
        let Choice { pdr, waits } = self.choose(session, arrival)?;
        let by = By { session, pdr: &pdr, waits: waits.as_ref() };
        let verdict = self.decide(by, arrival, None)?;
        let copy = |to: &ForwardingParameters| self.copy(arrival, to, verdict.marks).into();
        let copies: Vec<Outcome> = verdict.copies.iter().map(copy).collect();
        let mut outcome = match &verdict.action {
            Action::Forward(to) => {
                let is_as_sent = verdict.readdressed.is_none();
                let leaving = readdressed(arrival, verdict.readdressed);
                let done = self.forward(Bill::of(by, arrival), (&leaving, to, verdict.marks));
                if is_as_sent { self.tell_of_no_route(session, (arrival, to), done) } else { done.into() }
            }
            Action::Buffer => Outcome::of(Fate::Kept),
            Action::Answer => self.answer((session, &pdr), verdict.far.0, arrival)?,
            Action::Drop(reason) => Outcome::of(Fate::Dropped(*reason)),
            Action::Stop(stopped, side) => match parts(arrival, *stopped) {
                Some(parts) => self.serve_parts(by, &parts, verdict.far),
                None => self.tell(session, arrival, (*stopped, *side)),
            },
        };
        copies.into_iter().for_each(|copy| outcome.add_copy(copy));
        Ok(outcome)
    }

    fn decide(
        &mut self,
        by: By<'_>,
        arrival: &Arrival,
        part_of: Option<Chosen>,
    ) -> Result<Verdict, DropReason> {
        let waits = by.waits.is_some();
        let moment = Moment { now_ns: self.now_ns, setup: &self.setup, part_of, waits };
        let deciding = self.sessions.get_mut(by.session).ok_or(DropReason::NoSession)?;
        let verdict = deciding.decide(by.pdr, arrival, moment);
        if let (Some(flow), Ok(Verdict { action: Action::Forward(_), .. })) = (by.waits, &verdict) {
            self.defer(flow, Load::of(arrival));
        }
        let deciding = self.sessions.get(by.session).ok_or(DropReason::NoSession)?;
        let shared = deciding.shared_meters();
        self.sessions.iter_mut().for_each(|other| other.adopt(&shared));
        verdict
    }

    /// Fragments go the way of their packet, which has been copied; each is held to rates and counted by itself.
    fn serve_parts(&mut self, by: By<'_>, parts: &[Arrival], chosen: Chosen) -> Outcome {
        let decided: Vec<_> = parts.iter().map(|part| (part, self.decide(by, part, Some(chosen)))).collect();
        let serve = |(part, verdict)| match verdict {
            Ok(Verdict { action: Action::Forward(to), marks, readdressed: packet, .. }) => {
                let is_as_sent = packet.is_none();
                let done = self.forward(Bill::of(by, part), (&readdressed(part, packet), &to, marks));
                match is_as_sent {
                    true => self.tell_of_no_route(by.session, (part, &to), done),
                    false => done.into(),
                }
            }
            Ok(Verdict { action: Action::Drop(reason), .. }) | Err(reason) => {
                Outcome::of(Fate::Dropped(reason))
            }
            // The FAR forwards, there is a hop left, and it fits.
            Ok(_) => Outcome::of(Fate::Dropped(DropReason::Unfinished)),
        };
        let outcomes: Vec<Outcome> = decided.into_iter().map(serve).collect();
        let add = |mut first: Outcome, other: Outcome| {
            first.add_copy(other);
            first
        };
        outcomes.into_iter().reduce(add).unwrap_or(Outcome::of(Fate::Dropped(DropReason::Unfinished)))
    }

    /// Sends a packet that has been counted on; what does not leave is taken back.
    fn forward(&mut self, bill: Bill, packet: Forwarded<'_>) -> Result<Outcome, DropReason> {
        match self.routed(packet) {
            Ok((next_hop, packet)) => self.transmit_counted(next_hop, packet, Some(bill)),
            Err(reason) => {
                self.take_back(&bill);
                Err(reason)
            }
        }
    }

    /// We are a user's router, and tell him that no route leads on (RFC 1812 4.3.3.1, RFC 4443 3.1), about the packet as it was to leave.
    fn tell_of_no_route(
        &mut self,
        session: usize,
        (arrival, to): (&Arrival, &ForwardingParameters),
        done: Result<Outcome, DropReason>,
    ) -> Outcome {
        let is_told = done == Err(DropReason::NoRoute)
            && arrival.tunnel.is_some()
            && to.outer_header_creation.is_none();
        let leaving = UserPacket::read(&self.leaving(&arrival.packet, to)).filter(|_| is_told);
        let Some(packet) = leaving else { return done.into() };
        let about = Arrival { packet, ..arrival.clone() };
        self.tell(session, &about, (Stopped::NoRoute, towards(to)))
    }

    fn routed(&self, (arrival, to, marks): Forwarded<'_>) -> Result<Routed, DropReason> {
        match to.outer_header_creation {
            None => {
                let (next_hop, _) = self.route(&arrival.packet, to)?;
                Ok((next_hop, self.leaving(&arrival.packet, to)))
            }
            Some(_) => {
                let mut bytes = arrival.packet.bytes.clone();
                let marks = arrival.tunnel.map_or(marks, |tunnel| marks.beside(&tunnel));
                if arrival.tunnel.is_none() {
                    ip::take_hop(&mut bytes, &arrival.packet.header);
                    self.setup.clamp(&mut bytes, &arrival.packet);
                }
                self.relay_into_tunnel(&bytes, to, (marks, &arrival.relayed))
            }
        }
    }

    /// A copy in a tunnel is of the packet as it came; a plain one is routed, or one that comes back would be copied for
    /// ever.
    fn copy(
        &mut self,
        arrival: &Arrival,
        to: &ForwardingParameters,
        marks: Marks,
    ) -> Result<Outcome, DropReason> {
        let (header, to_whom) = (&arrival.packet.header, arrival.packet.header.destination);
        let routed = match to.outer_header_creation {
            Some(_) => self.put_into_tunnel(&arrival.packet.bytes, to, marks),
            None if self.setup.is_ours(to_whom) || is_of_a_link(to_whom) || header.hops <= 1 => {
                Err(DropReason::NotCopied)
            }
            None => self.route(&arrival.packet, to),
        };
        let (next_hop, packet) = routed.map_err(|_| DropReason::NotCopied)?;
        self.transmit(next_hop, packet)
    }

    /// A packet as it leaves plainly.
    fn leaving(&self, packet: &UserPacket, to: &ForwardingParameters) -> Vec<u8> {
        let mut bytes = as_routed(packet, to);
        self.setup.clamp(&mut bytes, packet);
        bytes
    }

    fn route(&self, packet: &UserPacket, to: &ForwardingParameters) -> Result<Routed, DropReason> {
        let next_hop = self.setup.next_hop(towards(to), packet.header.destination);
        Ok((next_hop.ok_or(DropReason::NoRoute)?, as_routed(packet, to)))
    }

    pub(crate) fn put_into_tunnel(
        &self,
        packet: &[u8],
        to: &ForwardingParameters,
        marks: Marks,
    ) -> Result<Routed, DropReason> {
        self.relay_into_tunnel(packet, to, (marks, &vec![]))
    }

    /// The same with extension headers of the tunnel that the packet came in.
    pub(crate) fn relay_into_tunnel(
        &self,
        packet: &[u8],
        to: &ForwardingParameters,
        (marks, relayed): (Marks, &Relayed),
    ) -> Result<Routed, DropReason> {
        if let Some(OuterHeaderCreation { header: OuterHeader::Udp(port), address }) =
            to.outer_header_creation
        {
            return match self.setup.is_ours(address) {
                true => Err(DropReason::ToOurselves),
                false => self.put_behind(to, (address, port), (UDP_SOURCE, packet)),
            };
        }
        let side = to.destination_interface;
        // Towards the radio a packet is a downlink one, towards the next user plane function an uplink one.
        let container = marks.qfi.map(|qfi| Container {
            downlink: side.direction() == Direction::Uplink,
            qfi: qfi.value(),
            reflective: marks.reflective,
            paging_policy: marks.paging_policy,
        });
        self.put_message_into_tunnel(to, |teid| gtpu::g_pdu(teid, container, relayed, packet))
    }

    /// A message to the other end of a tunnel.
    pub(crate) fn put_message_into_tunnel(
        &self,
        to: &ForwardingParameters,
        message: impl Fn(u32) -> Vec<u8>,
    ) -> Result<Routed, DropReason> {
        let tunnel = to.outer_header_creation.ok_or(DropReason::NoRoute)?;
        let teid = tunnel.teid().ok_or(DropReason::NoRoute)?;
        self.put_behind(to, (tunnel.address, gtpu::PORT), (gtpu::PORT, &message(teid.0)))
    }

    /// A datagram of ours, of the port and the payload that are given, to a peer.
    fn put_behind(
        &self,
        to: &ForwardingParameters,
        peer: (IpAddr, u16),
        (port, payload): (u16, &[u8]),
    ) -> Result<Routed, DropReason> {
        let side = self.setup.side_of_peer(towards(to), peer.0);
        let next_hop = self.setup.next_hop(side, peer.0).ok_or(DropReason::NoRoute)?;
        let ours = self.port(next_hop.port)?.address_like(peer.0).ok_or(DropReason::NoRoute)?;
        let datagram = ip::datagram((ours, port), peer, payload);
        let traffic_class = to.dscp.unwrap_or(0) << 2;
        let new = ip::New { protocol: UDP, traffic_class, hops: HOPS };
        Ok((next_hop, ip::packet(ours, peer.0, new, &datagram)))
    }
}

impl Marks {
    /// From tunnel to tunnel a packet stays in its QoS flow, unless a QER names another, and what was said of it is said again.
    pub(crate) fn beside(self, tunnel: &Tunnel) -> Self {
        Self {
            qfi: self.qfi.or(tunnel.qfi),
            reflective: self.reflective || tunnel.reflective,
            paging_policy: tunnel.paging_policy,
        }
    }
}

/// A packet with a hop less, and marked.
fn as_routed(packet: &UserPacket, to: &ForwardingParameters) -> Vec<u8> {
    let mut bytes = packet.bytes.clone();
    ip::take_hop(&mut bytes, &packet.header);
    if let Some(dscp) = to.dscp {
        ip::set_dscp(&mut bytes, &packet.header, dscp);
    }
    bytes
}

/// What arrived, as it leaves.
fn readdressed(arrival: &Arrival, packet: Option<UserPacket>) -> Arrival {
    packet.map_or_else(|| arrival.clone(), |packet| Arrival { packet, ..arrival.clone() })
}

/// The network a FAR leads to.
pub(crate) fn towards(to: &ForwardingParameters) -> Network {
    network(to.destination_interface, to.instance)
}

/// A packet, where it goes, and with what marks.
type Forwarded<'a> = (&'a Arrival, &'a ForwardingParameters, Marks);

/// A packet and its next hop.
pub(crate) type Routed = (NextHop, Vec<u8>);

/// The fragments of a packet that is too long for its way, if it may be split.
fn parts(arrival: &Arrival, stopped: Stopped) -> Option<Vec<Arrival>> {
    let Stopped::TooLong(room) = stopped else { return None };
    let part = |packet| Arrival { packet, relayed: vec![], ..arrival.clone() };
    Some(split(&arrival.packet, room)?.into_iter().map(part).collect())
}

impl Setup {
    /// Octets of the longest user's packet that the way to a destination, or the tunnel, takes; `None` where there is no
    /// way.
    pub(crate) fn room(&self, destination: IpAddr, to: &ForwardingParameters, marks: Marks) -> Option<usize> {
        let header = to.outer_header_creation.map(|creation| creation.header);
        let tunnel = to.outer_header_creation.map(|tunnel| tunnel.address);
        let side = tunnel.map_or(towards(to), |peer| self.side_of_peer(towards(to), peer));
        let next_hop = self.next_hop(side, tunnel.unwrap_or(destination))?;
        let ip = tunnel.map(|peer| if peer.is_ipv4() { 20 } else { 40 });
        // UDP, and of a tunnel GTP-U, and its extension header with what announces it.
        let gtpu = match (header, marks.qfi) {
            (Some(OuterHeader::Udp(_)), _) => 0,
            (_, None) => 8,
            (_, Some(_)) => 16,
        };
        let headers = ip.map_or(0, |ip| ip + 8 + gtpu);
        let room = usize::from(self.ports.get(next_hop.port)?.mtu).checked_sub(headers)?;
        // A tunnel is a link of IPv6, whose datagrams are split where it takes less (RFC 8200 5, RFC 2473 7.1).
        Some(if tunnel.is_some() && destination.is_ipv6() { room.max(LEAST_MTU_V6) } else { room })
    }
}
