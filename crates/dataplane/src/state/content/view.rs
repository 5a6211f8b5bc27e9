//! A user's packet as it is looked at.

use crate::frame::Meta;
use crate::state::Session;
use dpi::extract::dns::{Message, Name};
use dpi::extract::{Datagram, Inspection, Request, Verdict, later_request};
use dpi::learn::Asker;
use dpi::matching::Facts;
use packet::five_tuple::{Dissected, FiveTuple};
use packet::{protocol, tcp, udp};
use rules::{Direction, Seid};

/// The port of DNS.
const DNS: u16 = dpi::extract::dns::PORT;

/// How a connection of a user's begins (RFC 9293 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// The user asks for it.
    Syn,
    /// The server agrees, and acknowledges so much.
    SynAck(u32),
}

/// A user's packet as it is looked at.
pub(crate) struct View<'a> {
    /// As it goes up.
    pub(super) tuple: FiveTuple,
    pub(super) direction: Direction,
    /// The user's, by the digest of its name: names of servers are learned in each by itself.
    pub(super) network: u16,
    /// Whose it is, where that is asked for.
    pub(super) holder: Seid,
    /// From the header behind IP on.
    upper: &'a [u8],
    /// All of it, and where that header is.
    packet: (&'a [u8], usize),
}

impl<'a> View<'a> {
    /// `None` for a packet cut short.
    pub(crate) fn new(packet: &'a [u8], found: &Dissected, meta: &Meta) -> Option<Self> {
        let direction = meta.direction();
        let mut tuple = match direction {
            Direction::Uplink => found.tuple,
            Direction::Downlink => found.tuple.reversed(),
        };
        if let Some(ports) = meta.key.ports().filter(|_| tuple.fragment) {
            (tuple.source_port, tuple.destination_port) = ports;
        }
        let network = meta.key.network();
        let upper = packet.get(found.upper..found.total)?;
        let packet = (packet.get(..found.total)?, found.upper);
        Some(Self { tuple, direction, network, holder: Seid(0), upper, packet })
    }

    /// Of a packet that is only thought of, and carries nothing; of what network its user is, by the digest of that.
    pub(crate) const fn of_no_packet(tuple: FiveTuple, network: u16) -> Self {
        Self { tuple, direction: Direction::Uplink, network, holder: Seid(0), upper: &[], packet: (&[], 0) }
    }

    /// The same of a session's packet: what is learned of lookups is learned for that, and no other that has the address later.
    pub(crate) fn held_by(self, session: Option<&Session>) -> Self {
        Self { holder: session.map_or(Seid(0), |session| session.seid), ..self }
    }

    /// Whether later packets may say more than this one.
    pub(crate) fn may_wait(&self) -> bool {
        !self.tuple.fragment && matches!(self.tuple.protocol, protocol::TCP | protocol::UDP) && !self.is_dns()
    }

    /// Whether later packets may say more, as far as this one, the first of its flow, says by itself: of a connection they do.
    pub(super) fn may_be_followed(&self) -> bool {
        let mut inspection = Inspection::new();
        self.tuple.protocol == protocol::TCP || inspection.datagram(self.datagram()) == Verdict::More
    }

    /// Whether it may be a lookup or its answer: of those, every packet is looked at.
    pub(crate) fn is_dns(&self) -> bool {
        let tuple = &self.tuple;
        tuple.protocol == protocol::UDP && !tuple.fragment && tuple.destination_port == DNS
    }

    /// Whether it may be part of a connection with a resolver: lookups and answers are in any of its packets, and what it
    /// is about its first ones say, as of others.
    pub(crate) fn is_to_resolver(&self) -> bool {
        let tuple = &self.tuple;
        tuple.protocol == protocol::TCP && !tuple.fragment && tuple.destination_port == DNS
    }

    /// The segment it is; `None` for one cut short.
    pub(super) fn segment(&self) -> Option<tcp::Segment<'a>> {
        tcp::Segment::parse(self.upper).ok()
    }

    /// The user, in its network.
    pub(super) fn user(&self) -> (u16, Asker) {
        (self.network, Asker { address: self.tuple.source_address(), holder: self.holder.0 })
    }

    pub(super) const fn dscp(&self) -> u8 {
        self.tuple.tos >> 2
    }

    /// What addresses tell.
    pub(super) fn facts(&self) -> Facts<'a> {
        Facts {
            server: self.tuple.destination_address(),
            server_port: self.tuple.destination_port,
            protocol: self.tuple.protocol,
            dscp: self.dscp(),
            ..Facts::default()
        }
    }

    /// What may be a lookup or its answer, if it is one.
    pub(super) fn lookup(&self) -> Option<Message<'a>> {
        Message::parse(self.datagram().payload)
    }

    /// As [`View::facts`], of what [`View::lookup`] says; `None` of what is no lookup.
    pub(super) fn facts_of<'n>(&self, name: Option<&'n Name>) -> Facts<'n>
    where
        'a: 'n,
    {
        let layer = name.map(|_| dpi::matching::Layer::Dns);
        Facts { layer, host: name.map(Name::as_slice), ..self.facts() }
    }

    pub(super) fn datagram(&self) -> Datagram<'a> {
        // What is behind the datagram in its packet nobody reads.
        let end = udp::Header::parse(self.upper).map_or(self.upper.len(), udp::Header::length);
        let payload = self.upper.get(udp::LENGTH..end).unwrap_or_default();
        Datagram { server_port: self.tuple.destination_port, payload }
    }

    /// The request that a segment of the user begins with, on a connection that has had one before; `None` also of what the
    /// server would not take, as far as that is seen in the segment itself.
    pub(crate) fn later_request(&self) -> Option<Request<'a>> {
        let tuple = &self.tuple;
        if self.direction == Direction::Downlink || tuple.fragment || tuple.protocol != protocol::TCP {
            return None;
        }
        let segment = self.segment()?;
        let request = later_request(segment.payload())?;
        let is_taken = segment.has(tcp::flag::ACK) && !segment.has(tcp::flag::SYN | tcp::flag::RST);
        (is_taken && tcp::is_sealed(self.packet.0, self.packet.1)).then_some(request)
    }

    /// What it has to say of a connection of the user's that begins; `None` of most.
    pub(crate) fn handshake(&self) -> Option<Handshake> {
        if self.tuple.fragment || self.tuple.protocol != protocol::TCP {
            return None;
        }
        let segment = self.segment().filter(|segment| segment.has(tcp::flag::SYN))?;
        match (self.direction, segment.has(tcp::flag::ACK)) {
            (Direction::Uplink, false) => Some(Handshake::Syn),
            (Direction::Downlink, true) => Some(Handshake::SynAck(segment.acknowledgement())),
            _ => None,
        }
    }

    /// Of TCP, only what the user says is looked at: servers that speak first are rare, and say little. But what the server does
    /// not take is no word of the user: packets with a wrong checksum are passed over, as are segments that acknowledge nothing, or
    /// what the server has not said, or that have old timestamps, and that the user's side is over is not
    /// believed, as what says so may never arrive there, or have no number that counts. What a SYN carries is looked at once the
    /// server has acknowledged it. What says nothing more is left alone in time.
    pub(super) fn inspect<'i>(&self, inspection: &'i mut Inspection) -> Verdict<'i>
    where
        'a: 'i,
    {
        if self.tuple.protocol == protocol::UDP {
            let is_taken =
                self.direction == Direction::Downlink || udp::is_sealed(self.packet.0, self.packet.1);
            return if is_taken { inspection.datagram(self.datagram()) } else { Verdict::More };
        }
        let Ok(segment) = tcp::Segment::parse(self.upper) else { return Verdict::More };
        if self.is_to_resolver() {
            inspection.is_to_resolver();
        }
        let is_syn = segment.has(tcp::flag::SYN);
        if self.direction == Direction::Downlink {
            if is_syn && segment.has(tcp::flag::ACK) {
                inspection.renew(segment.acknowledgement());
            }
            inspection.answered(segment.sequence().wrapping_add(segment.sequence_length()), is_syn);
            let echo = segment.timestamps().filter(|_| segment.has(tcp::flag::ACK));
            echo.into_iter().for_each(|(_, echo)| inspection.echoes(echo));
            return match segment.has(tcp::flag::RST | tcp::flag::FIN) {
                true => Verdict::Unknown(dpi::extract::Unknown::Bounds),
                false if is_syn && segment.has(tcp::flag::ACK) => {
                    inspection.accepted(segment.acknowledgement())
                }
                false => Verdict::More,
            };
        }
        let urgent = segment.urgent_pointer();
        let is_bare = !is_syn && segment.payload().is_empty() && urgent.is_none();
        if is_bare || !tcp::is_sealed(self.packet.0, self.packet.1) {
            return Verdict::More;
        }
        let acknowledges = segment.has(tcp::flag::ACK);
        if is_syn && !acknowledges {
            // Its payload begins behind it.
            inspection.early(segment.sequence().wrapping_add(1), segment.payload());
        }
        let is_fresh = segment.timestamps().is_none_or(|(value, _)| inspection.is_fresh(value));
        let is_taken = acknowledges && is_fresh && inspection.is_acceptable(segment.acknowledgement());
        if !is_taken || segment.has(tcp::flag::SYN | tcp::flag::RST) {
            return Verdict::More;
        }
        urgent.into_iter().for_each(|pointer| inspection.urgent(segment.sequence(), pointer));
        inspection.segment(segment.sequence(), segment.payload())
    }
}
