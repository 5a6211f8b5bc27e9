//! A vector of packets on its way through the graph.

use crate::counters::DropReason;
use crate::receipt::Receipt;
use crate::side::Side;
use crate::state::{Circumstances, FlowKey, FlowLine, Place, SessionIndex, StepIndex, Ticket};
use packet::gtpu::PduSession;
use rules::{Direction, Instance, Interface};
use std::net::IpAddr;

/// Most packets of a vector.
pub const VECTOR: usize = 256;

/// A port by its place in the configuration.
pub(crate) type PortIndex = u8;

/// The end of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Give it to a port.
    Send(PortIndex),
    /// Free it.
    Drop(DropReason),
    /// It was for us; free it.
    Consumed,
    /// Its bytes are kept until the others of its datagram come; free it.
    Gather,
    /// It is for the kernel; free it.
    Punt,
    /// Hold it until the next hop's Ethernet address is known.
    Hold,
    /// Keep it for its user, who sleeps.
    Keep,
    /// Let it wait for its session, which another worker is about to give.
    Await,
    /// Split it: its fragments go on from `far`.
    Split,
    /// Split the datagram of its tunnel: the fragments go on from `ethernet_output`.
    SplitTunnel,
    /// Copy it; then it goes on from `far` itself.
    Duplicate,
    /// Copy it; then it goes on from `redirect` for the user, and the copy for the server.
    Answer,
    /// No route leads on: its sender is told so, from `icmp_error` on.
    Unreachable,
    /// An Ethernet frame: it goes to the users it is for, by the rules of each, and where it is for many, into the network.
    Switch,
    /// Hand it to the worker that owns its session: it goes on from `flow` there.
    HandOff(u8),
    /// It is for an address of our own: let it come in at this port, as if from the wire.
    Loop(PortIndex),
}

impl Fate {
    /// Whether it goes on in parts, or as several packets.
    pub(crate) const fn parts(self) -> bool {
        use Fate::*;
        matches!(self, Split | SplitTunnel | Duplicate | Answer | Unreachable | Switch)
    }
}

/// For whom a packet is answered that a FAR redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// For everybody who has to hear of it.
    Whole,
    /// For the user alone.
    ForUser,
    /// For the server alone.
    ForServer,
}

/// What a tunnel's header says of a packet beside its QoS flow: of a downlink container (TS 38.415 5.5.2.1) whether it is reflective
/// (RQI), and its paging policy (PPI); and whether there are extension headers that go on with it, which stand in front of it still
/// ([`packet::gtpu::Relayed`]). The next user plane function is told the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowMarks(u8);

impl FlowMarks {
    pub(crate) const NONE: Self = Self(0);
    const HAS_POLICY: u8 = 1 << 7;
    const REFLECTIVE: u8 = 1 << 6;
    const RELAYS: u8 = 1 << 5;

    /// Of the octet with the QFI, in a downlink container without a paging policy.
    #[inline(always)]
    pub(crate) const fn of_flow(octet: u8) -> Self {
        Self(octet & Self::REFLECTIVE)
    }

    /// Of a container.
    pub(crate) fn of(container: &PduSession) -> Self {
        let reflective = if container.reflective { Self::REFLECTIVE } else { 0 };
        Self(reflective | container.paging_policy.map_or(0, |policy| Self::HAS_POLICY | policy))
    }

    /// The same where extension headers go on with the packet, or not.
    #[must_use]
    pub(crate) const fn relaying(self, relays: bool) -> Self {
        if relays { Self(self.0 | Self::RELAYS) } else { Self(self.0 & !Self::RELAYS) }
    }

    #[inline(always)]
    pub(crate) const fn relays(self) -> bool {
        self.0 & Self::RELAYS != 0
    }

    /// Whether the next tunnel's header is longer than most.
    #[inline(always)]
    pub(crate) const fn are_long(self) -> bool {
        self.0 & (Self::HAS_POLICY | Self::RELAYS) != 0
    }

    #[inline(always)]
    pub(crate) const fn is_reflective(self) -> bool {
        self.reflective() != 0
    }

    /// The bit of a container's octet with the QFI.
    #[inline(always)]
    pub(crate) const fn reflective(self) -> u8 {
        self.0 & Self::REFLECTIVE
    }

    /// Whether a paging policy is to be said, too.
    #[inline(always)]
    pub(crate) const fn has_policy(self) -> bool {
        self.0 & Self::HAS_POLICY != 0
    }

    #[inline(always)]
    pub(crate) const fn paging_policy(self) -> Option<u8> {
        if self.has_policy() { Some(self.0 & 7) } else { None }
    }
}

/// Where a packet goes next on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) port: PortIndex,
    pub(crate) address: IpAddr,
}

/// What the nodes have found out about a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    /// Where it came in.
    pub(crate) port: PortIndex,
    /// The side of that port.
    pub(crate) source: Interface,
    /// The network it came from, where that matters.
    pub(crate) instance: Instance,
    /// Bytes of the IP header at hand: the outer one, then the user's.
    pub(crate) header_length: u8,
    /// Bytes of the tunnel's headers that were taken off; 0 outside tunnels.
    pub(crate) outer: u8,
    /// The tunnel it came in; 0 outside tunnels.
    pub(crate) teid: u32,
    /// The QoS flow its tunnel header names, [`Meta::NO_QFI`] for none.
    pub(crate) qfi: u8,
    /// What that header says of it besides.
    pub(crate) marks: FlowMarks,
    /// Whose routes apply on its way out.
    pub(crate) towards: Side,
    /// Bytes of the user's packet. Set by `user_input`, as what follows.
    pub(crate) bytes: u16,
    pub(crate) key: FlowKey,
    pub(crate) hash: u64,
    /// Where its flow seems to be, and before that, what tells so. Set ahead of `flow`.
    pub(crate) line: FlowLine,
    pub(crate) traffic_class: u8,
    /// It is a fragment, the first one or another.
    pub(crate) fragment: bool,
    /// Set by `session`.
    pub(crate) session: SessionIndex,
    /// Set by `flow` or `classify`.
    pub(crate) step: StepIndex,
    /// Copies have been made of it.
    pub(crate) copied: bool,
    /// Set by the worker.
    pub(crate) part: Part,
    /// Its flow waits to be of an application. Set by `inspect`.
    pub(crate) waits: Ticket,
    /// What it was counted for. Set by whoever counts it.
    pub(crate) receipt: Receipt,
    /// How often one worker handed it to another, since it came in.
    pub(crate) handed: u8,
    /// How often a tunnel of this node led it back into this node.
    pub(crate) loops: u8,
    /// Set by `flow`: of the rules that step was found by. Nobody asks for it behind `verdict`, so there it is for [`Meta::watch`].
    pub(crate) generation: u32,
    /// Set by `far` and the nodes that answer.
    pub(crate) next_hop: NextHop,
    /// Set at the end of its way.
    pub(crate) fate: Fate,
}

impl Meta {
    /// No QFI.
    pub(crate) const NO_QFI: u8 = u8::MAX;

    /// What is known of a packet that just came in on a port of this side.
    pub(crate) const fn new(port: PortIndex, from: Side) -> Self {
        Self {
            port,
            source: from.interface(),
            instance: from.instance(),
            header_length: 0,
            outer: 0,
            teid: 0,
            qfi: Self::NO_QFI,
            marks: FlowMarks::NONE,
            towards: from,
            bytes: 0,
            key: FlowKey::NONE,
            hash: 0,
            line: FlowLine::NONE,
            traffic_class: 0,
            fragment: false,
            session: SessionIndex::NONE,
            step: StepIndex::NONE,
            copied: false,
            part: Part::Whole,
            waits: Ticket::NONE,
            receipt: Receipt::NONE,
            handed: 0,
            loops: 0,
            generation: 0,
            next_hop: NextHop { port: 0, address: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED) },
            fate: Fate::Drop(DropReason::Unfinished),
        }
    }

    /// The way the user's packet goes.
    pub(crate) const fn direction(&self) -> Direction {
        self.source.direction()
    }

    /// Where it came from.
    pub(crate) const fn side(&self) -> Side {
        Side::new(self.source, self.instance)
    }

    /// Whether it came in a tunnel.
    pub(crate) const fn tunnelled(&self) -> bool {
        self.outer != 0
    }

    /// Whether it came in here, and was neither handed over nor led back by a tunnel.
    pub(crate) const fn is_new(&self) -> bool {
        self.handed == 0 && self.loops == 0
    }

    /// Whether it is an End Marker: of a tunnel, and with nothing of a user in it.
    pub(crate) const fn is_end_marker(&self) -> bool {
        self.teid != 0 && !self.tunnelled()
    }

    /// Gives what will be made of it, as it goes on in parts, a number by which somebody knows these, from 1 on.
    pub(crate) const fn watch(&mut self, number: u32) {
        self.generation = number;
    }

    /// Sees to it that nobody takes what is made of it for another's; of what goes on from `flow`, that says anew what stood there.
    pub(crate) const fn unwatch(&mut self) {
        if self.fate.parts() {
            self.generation = 0;
        }
    }

    /// The number's place, counted from 0, if it has one.
    pub(crate) const fn watched_as(&self) -> Option<usize> {
        (self.generation as usize).checked_sub(1)
    }

    /// Where its flow is remembered.
    pub(crate) const fn flow(&self) -> Place<'_> {
        let arrival = (self.port as u16) << 8 | self.qfi as u16;
        let circumstances = Circumstances { arrival, class: self.traffic_class, bytes: self.bytes };
        Place {
            key: &self.key,
            hash: self.hash,
            likely: self.line,
            direction: self.direction(),
            circumstances,
        }
    }
}

/// What is known of how a user's packet came, to answer it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    port: PortIndex,
    outer: u8,
    from: Side,
    towards: Side,
}

impl Came {
    pub(crate) const fn of(meta: &Meta) -> Self {
        Self { port: meta.port, outer: meta.outer, from: meta.side(), towards: meta.towards }
    }

    /// Of a packet of this session.
    pub(crate) const fn meta(self, session: SessionIndex) -> Meta {
        let Self { port, outer, from, towards } = self;
        Meta { outer, towards, session, ..Meta::new(port, from) }
    }
}

/// One packet; its data starts at the layer the next node reads.
///
/// Its buffer stands last: where it stood first, the compiler copied what is known of a packet that comes in twice, as the first
/// eight bytes, once written, might have been the beginning of that.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Packet<B> {
    pub(crate) meta: Meta,
    pub(crate) buffer: B,
}
