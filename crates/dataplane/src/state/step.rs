//! A PDR and what it leads to, as every packet reads it: half a cache line, the other half of which is what limits and counts
//! these packets. What few sessions need, more than a rate and a count, is in [`super::lists`].

mod making;
mod patience;

pub(crate) use patience::Patience;

use super::lists::Lists;
use super::peers::PeerIndex;
use super::policies::PolicyIndex;
use crate::frame::FlowMarks;
use crate::side::Side;
use packet::gtpu::{self, PduType, ShortContainer};
use packet::{ipv4, ipv6, udp};
use rules::{Direction, Instance, Interface, PdrId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A step of a session by its place: cell and place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub(crate) struct StepIndex(u32);

impl StepIndex {
    /// No step.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) const fn new(cell: u32, place: u32) -> Self {
        Self(cell << 1 | place)
    }

    /// As one number.
    #[inline(always)]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Of [`StepIndex::bits`].
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) const fn cell(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) const fn place(self) -> usize {
        (self.0 & 1) as usize
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The FAR says DROP.
    Drop,
    /// It does, and the control plane is told.
    DropAndNotify,
    /// A gate is closed.
    GateClosed,
    /// It is kept.
    Keep,
    /// It is kept, and the control plane is told.
    KeepAndNotify,
    /// It goes out as it is.
    Plain,
    /// It goes out in a tunnel, of GTP-U or of UDP alone.
    Tunnel,
    /// The user is sent elsewhere.
    Redirect,
    /// Connections are reset.
    Reset,
    /// It goes out, in a tunnel or as it is; requests may get a field.
    Enrich,
}

/// One step, ready to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct HotStep {
    /// Of the rules it belongs to; 0 for no rules at all.
    pub(crate) generation: u32,
    /// The tunnel its packets come in; 0 for plain ones.
    pub(crate) arrives_in: u32,
    /// Of the tunnel to put packets into, or the peer's port, where it is of UDP alone; of plain ones, the digest of the network
    /// instance they leave for, and above it the forwarding policy that says how, if any; of those that are kept, a [`Patience`].
    pub(crate) teid: u32,
    /// The tunnel's other end.
    pub(crate) peer: PeerIndex,
    /// The first of its PDRs.
    pub(crate) pdr: PdrId,
    /// Cells between the session's first one and this step's.
    pub(crate) cell: u16,
    pub(crate) kind: Kind,
    qfi: u8,
    dscp: u8,
    /// [`REFLECTIVE`], [`DUPLICATES`] and [`SIMPLE`], and the side it leads to.
    flags: u8,
    /// [`METERED`], [`COUNTED`], [`BEFORE_QOS`] and [`LONG`]; and [`READDRESSED`] and [`UDP`].
    needs: u8,
    /// The account of its count, unless it is long.
    counted_at: u8,
    /// Bytes of the longest user's packet that fits its way for sure; where it keeps packets, how many at most.
    pub(crate) fits: u16,
}

const _: () = assert!(size_of::<HotStep>() == 28, "a step and one direction of an account in a cache line");

/// Its tunnel's packets ask for reflective QoS.
const REFLECTIVE: u8 = 64;
/// Copies are to be made.
const DUPLICATES: u8 = 2;
/// It forwards, with at most one rate, in its session's first account, and one count.
const SIMPLE: u8 = 4;
/// It leads to the access side, to an SGi-LAN; otherwise to the core.
const TO_ACCESS: u8 = 8;
const TO_LAN: u8 = 16;
/// Once a quota is used up, another step may stand in for it.
const YIELDS: u8 = 32;
/// It stands in for another step: the quotas of its URRs hold nothing up, but for those without a FAR.
const STANDS_IN: u8 = 1;
/// Somebody wants to hear of its packets that are dropped.
const MINDS_DROPS: u8 = 128;
/// Of what it needs: rates, counts...
const METERED: u8 = 1;
const COUNTED: u8 = 2;
/// ... a count of what QoS enforcement drops, too...
const BEFORE_QOS: u8 = 4;
/// ... and more than a rate in its session's first account and one count: its lists are in a place of their own.
const LONG: u8 = 8;
/// Its session has flows whose far end has another address than the user knows, or has had.
const READDRESSED: u8 = 16;
/// Its tunnel is of UDP alone.
const UDP: u8 = 32;
/// Bytes of a PDU session container, and of the optional part of a GTP-U header that comes with it (TS 38.415 5.5.2).
const CONTAINER: usize = 8;

/// Bytes of the longest headers of a tunnel over IPv6, or IPv4.
pub(super) const fn longest_tunnel(is_ipv6: bool) -> usize {
    let ip = if is_ipv6 { ipv6::LENGTH } else { ipv4::LENGTH };
    ip + udp::LENGTH + gtpu::encapsulated_length(None) + CONTAINER
}

/// Above the digest of a network instance stands the policy.
const POLICY_SHIFT: u32 = 16;

/// No QFI, no DSCP.
const NONE: u8 = u8::MAX;

impl HotStep {
    /// Of no session.
    pub(crate) const EMPTY: Self = Self {
        generation: 0,
        arrives_in: 0,
        teid: 0,
        peer: PeerIndex::NONE,
        pdr: PdrId(0),
        cell: 0,
        kind: Kind::Drop,
        qfi: NONE,
        dscp: NONE,
        flags: 0,
        needs: 0,
        counted_at: 0,
        fits: u16::MAX,
    };

    /// Whether addresses of its packets may have to be replaced.
    #[inline]
    pub(crate) const fn may_readdress(&self) -> bool {
        self.needs & READDRESSED != 0
    }

    /// Whether its packets are put into a tunnel, where it forwards.
    #[inline]
    pub(crate) const fn tunnels(&self) -> bool {
        self.peer.is_some()
    }

    /// Whether the tunnel its packets are put into, where it forwards, is of UDP alone.
    #[inline]
    pub(crate) const fn is_udp(&self) -> bool {
        self.needs & UDP != 0
    }

    /// Whether its packets are put into a tunnel of GTP-U, where it forwards.
    pub(crate) const fn tunnels_gtpu(&self) -> bool {
        self.tunnels() && !self.is_udp()
    }

    /// How its packets are kept, where that is for longer than others.
    pub(crate) const fn patience(&self) -> Option<Patience> {
        match self.kind {
            Kind::Keep | Kind::KeepAndNotify => Patience::from_bits(self.teid),
            _ => None,
        }
    }

    /// What says the way of its packets, which leave outside of tunnels, in the place of the routes.
    pub(crate) fn policy(&self) -> Option<PolicyIndex> {
        let is_plain = match self.kind {
            Kind::Plain => true,
            Kind::Enrich | Kind::Redirect | Kind::Reset => !self.tunnels(),
            _ => false,
        };
        PolicyIndex::from_bits((self.teid >> POLICY_SHIFT) as u16).filter(|_| is_plain)
    }

    /// Whether its packets go out.
    pub(crate) const fn forwards(&self) -> bool {
        matches!(self.kind, Kind::Plain | Kind::Tunnel | Kind::Enrich)
    }

    /// Whether packets that leave on this side do so in a tunnel; `None` where none leave there.
    pub(crate) fn leads_to(&self, side: Interface) -> Option<bool> {
        let leads = self.forwards() || matches!(self.kind, Kind::Redirect | Kind::Reset);
        (leads && self.to().interface() == side).then_some(self.tunnels())
    }

    /// What it says of its lists, where they are not in a place of their own.
    pub(super) fn lists(&self) -> Option<Lists> {
        let meters: &[u16] = if self.is_metered() { &[0] } else { &[] };
        let usages = [u16::from(self.counted_at)];
        let usages = &usages[..usize::from(self.is_counted())];
        (!self.is_long()).then(|| Lists::new(meters, usages, u8::from(self.needs & BEFORE_QOS != 0)))
    }

    /// Whether rates apply.
    #[inline]
    pub(crate) const fn is_metered(&self) -> bool {
        self.needs & METERED != 0
    }

    /// Whether its usage is counted.
    #[inline]
    pub(crate) const fn is_counted(&self) -> bool {
        self.needs & COUNTED != 0
    }

    /// Whether it needs more than a rate in its session's first account and one count.
    #[inline]
    pub(super) const fn is_long(&self) -> bool {
        self.needs & LONG != 0
    }

    /// Whether its rate and its count, as of a simple step, are of the account beside it.
    #[inline(always)]
    pub(super) const fn is_beside_account(&self) -> bool {
        self.cell as u32 | self.counted_at as u32 == 0
    }

    /// First cell of its session, where `at` is its own place.
    #[inline]
    pub(crate) const fn base(&self, at: StepIndex) -> u32 {
        at.cell() as u32 - self.cell as u32
    }

    /// Whether it forwards, with at most one rate, in its session's first account, and one count.
    #[inline]
    pub(crate) const fn is_simple(&self) -> bool {
        self.flags & SIMPLE != 0
    }

    /// The side its packets leave on, and of plain ones the network there.
    #[inline(always)]
    pub(crate) const fn to(&self) -> Side {
        match self.tunnels() {
            false => Side::new(self.interface(), Instance::of_digest(self.teid as u16)),
            true => Side::of(self.interface()),
        }
    }

    #[inline(always)]
    const fn interface(&self) -> Interface {
        match self.flags & (TO_ACCESS | TO_LAN) {
            0 => Interface::Core,
            TO_ACCESS => Interface::Access,
            _ => Interface::SgiLan,
        }
    }

    /// Whether its tunnel's packets ask for reflective QoS.
    #[inline]
    pub(crate) const fn is_reflective(&self) -> bool {
        self.flags & REFLECTIVE != 0
    }

    /// Whether copies are to be made.
    #[inline]
    pub(crate) const fn has_duplicates(&self) -> bool {
        self.flags & DUPLICATES != 0
    }

    /// Whether its packets are copied, if copies are asked for: not what a gate stops, nor what is answered here.
    pub(crate) const fn copies(&self) -> bool {
        !matches!(self.kind, Kind::GateClosed | Kind::Redirect | Kind::Reset)
    }

    /// Bytes of the PDU session container its packets get.
    pub(crate) const fn container_length(&self) -> usize {
        if self.qfi == NONE { 0 } else { CONTAINER }
    }

    /// Whether another step may stand in for it.
    #[inline]
    pub(crate) const fn may_yield(&self) -> bool {
        self.flags & YIELDS != 0
    }

    /// Whether another step may stand in for it, or it does for another.
    #[inline]
    pub(crate) const fn is_of_a_quota_far(&self) -> bool {
        self.flags & (YIELDS | STANDS_IN) != 0
    }

    /// Whether somebody wants to hear of its packets that are dropped.
    #[inline]
    pub(crate) const fn minds_drops(&self) -> bool {
        self.flags & MINDS_DROPS != 0
    }

    /// Whether it stands in for another step.
    #[inline]
    pub(crate) const fn stands_in(&self) -> bool {
        self.flags & STANDS_IN != 0
    }

    /// The container of a packet that came with this QFI, [`NONE`] for none, and these marks: as
    /// [`GtpuEncap`](crate::nodes::GtpuEncap) has it, without branches.
    #[inline(always)]
    pub(crate) const fn short_container(&self, qfi: u8, marks: FlowMarks) -> ShortContainer {
        let qfi = if self.qfi == NONE { qfi } else { self.qfi };
        if qfi == NONE {
            return ShortContainer::NONE;
        }
        let flow = qfi | self.flags & REFLECTIVE | marks.reflective();
        match self.interface().direction() {
            Direction::Uplink => ShortContainer::new(PduType::Downlink, flow),
            Direction::Downlink => ShortContainer::new(PduType::Uplink, flow),
        }
    }

    /// The QoS flow its packets are put into, or told to be of where they are not forwarded.
    #[inline]
    pub(crate) const fn qfi(&self) -> Option<u8> {
        if self.qfi == NONE { None } else { Some(self.qfi) }
    }

    /// DSCP of the outermost header.
    #[inline]
    pub(crate) const fn dscp(&self) -> Option<u8> {
        if self.dscp == NONE { None } else { Some(self.dscp) }
    }

    /// The account of a simple step's count, if it has one.
    #[inline]
    pub(crate) const fn counted_at(&self) -> u16 {
        self.counted_at as u16
    }
}
