//! The messages, and which of them count (RFC 4861 6.1 and 7.1).

use super::advertisement::RouterAdvertisement;
use super::option::{BadOption, Options, SOURCE_LINK_ADDRESS, TARGET_LINK_ADDRESS, Writer};
use crate::ethernet::MacAddress;
use crate::icmpv6::{is_intact, seal};
use crate::{ipv6, protocol};
use std::net::Ipv6Addr;

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// What a packet has that no router forwarded.
const HOPS: u8 = 255;

/// A message of neighbour discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Are there routers?
    RouterSolicitation {
        /// The asking station's Ethernet address.
        source_link: Option<MacAddress>,
    },
    /// I am a router.
    RouterAdvertisement(RouterAdvertisement<'a>),
    /// Who has this address?
    NeighbourSolicitation {
        /// The address.
        target: Ipv6Addr,
        /// The asking station's Ethernet address.
        source_link: Option<MacAddress>,
    },
    /// I have it.
    NeighbourAdvertisement(NeighbourAdvertisement),
}

/// Who has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourAdvertisement {
    /// The address.
    pub target: Ipv6Addr,
    /// It is a router's.
    pub router: bool,
    /// Somebody asked.
    pub solicited: bool,
    /// What was known of the address no longer counts.
    pub overrides: bool,
    /// The Ethernet address of who has it.
    pub target_link: Option<MacAddress>,
}

/// Why a packet is not a message that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not neighbour discovery at all.
    Kind,
    /// Shorter than its message.
    Truncated,
    /// The checksum does not match.
    Checksum,
    /// A router forwarded it: it is of another link.
    HopLimit,
    /// A code other than 0.
    Code,
    /// An option of a wrong length, or too many of them.
    Option,
    /// An address that may not be where it is.
    Address,
    /// A fragment (RFC 6980).
    Fragment,
}

impl From<BadOption> for Malformed {
    fn from(_: BadOption) -> Self {
        Self::Option
    }
}

impl<'a> Message<'a> {
    /// Reads the message of a packet, and checks all that RFC 4861 wants checked.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn parse(packet: &ipv6::Packet<'a>) -> Result<Self, Malformed> {
        let upper = packet.upper().map_err(|_| Malformed::Truncated)?;
        if upper.protocol != protocol::ICMPV6 {
            return Err(Malformed::Kind);
        }
        if upper.fragment.is_some() {
            return Err(Malformed::Fragment);
        }
        let message = packet.payload().get(upper.offset - ipv6::LENGTH..).unwrap_or_default();
        let Some(([kind, code, _, _], body)) = message.split_first_chunk::<4>() else {
            return Err(Malformed::Truncated);
        };
        if !matches!(*kind, ROUTER_SOLICITATION..=NEIGHBOUR_ADVERTISEMENT) {
            return Err(Malformed::Kind);
        }
        if packet.hop_limit() != HOPS {
            return Err(Malformed::HopLimit);
        }
        if !is_intact(packet, message) {
            return Err(Malformed::Checksum);
        }
        if *code != 0 {
            return Err(Malformed::Code);
        }
        let read = Self::read(*kind, body)?;
        if read.may_be_between(packet.source(), packet.destination()) {
            Ok(read)
        } else {
            Err(Malformed::Address)
        }
    }

    fn read(kind: u8, body: &'a [u8]) -> Result<Self, Malformed> {
        if kind == ROUTER_ADVERTISEMENT {
            return RouterAdvertisement::read(body).map(Self::RouterAdvertisement);
        }
        let (fixed, body) = body.split_first_chunk::<4>().ok_or(Malformed::Truncated)?;
        if kind == ROUTER_SOLICITATION {
            let source_link = Options::of(body).link_address(SOURCE_LINK_ADDRESS)?;
            return Ok(Self::RouterSolicitation { source_link });
        }
        let (target, options) = body.split_first_chunk::<16>().ok_or(Malformed::Truncated)?;
        let target = Ipv6Addr::from(*target);
        if kind == NEIGHBOUR_SOLICITATION {
            let source_link = Options::of(options).link_address(SOURCE_LINK_ADDRESS)?;
            return Ok(Self::NeighbourSolicitation { target, source_link });
        }
        let [flags, ..] = *fixed;
        Ok(Self::NeighbourAdvertisement(NeighbourAdvertisement {
            target,
            router: flags & ROUTER != 0,
            solicited: flags & SOLICITED != 0,
            overrides: flags & OVERRIDE != 0,
            target_link: Options::of(options).link_address(TARGET_LINK_ADDRESS)?,
        }))
    }

    fn may_be_between(&self, source: Ipv6Addr, destination: Ipv6Addr) -> bool {
        match self {
            Self::RouterSolicitation { source_link } => !source.is_unspecified() || source_link.is_none(),
            Self::RouterAdvertisement(_) => source.is_unicast_link_local(),
            // Without an address of its own a station asks for the one it wants to take.
            Self::NeighbourSolicitation { target, source_link } if source.is_unspecified() => {
                source_link.is_none() && destination == solicited_node(*target) && !target.is_multicast()
            }
            Self::NeighbourSolicitation { target, .. } => !target.is_multicast(),
            Self::NeighbourAdvertisement(advertised) => {
                let answers_a_group = advertised.solicited && destination.is_multicast();
                !advertised.target.is_multicast() && !answers_a_group
            }
        }
    }

    /// Writes the whole IPv6 packet with this message to the front of `bytes`; returns its length, `None` where they
    /// are too short.
    pub fn write(&self, source: Ipv6Addr, destination: Ipv6Addr, bytes: &mut [u8]) -> Option<usize> {
        let mut to = Writer::at(bytes, ipv6::LENGTH);
        match self {
            Self::RouterSolicitation { source_link } => {
                to.add(&[ROUTER_SOLICITATION, 0, 0, 0, 0, 0, 0, 0])?;
                to.add_link_address(SOURCE_LINK_ADDRESS, *source_link)?;
            }
            Self::RouterAdvertisement(advertised) => {
                to.add(&[ROUTER_ADVERTISEMENT, 0, 0, 0])?;
                advertised.write(&mut to)?;
            }
            Self::NeighbourSolicitation { target, source_link } => {
                to.add(&[NEIGHBOUR_SOLICITATION, 0, 0, 0, 0, 0, 0, 0])?;
                to.add(&target.octets())?;
                to.add_link_address(SOURCE_LINK_ADDRESS, *source_link)?;
            }
            Self::NeighbourAdvertisement(advertised) => {
                to.add(&[NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, advertised.flags(), 0, 0, 0])?;
                to.add(&advertised.target.octets())?;
                to.add_link_address(TARGET_LINK_ADDRESS, advertised.target_link)?;
            }
        }
        let length = to.end() - ipv6::LENGTH;
        seal(bytes, (source, destination), HOPS, length)
    }
}

impl NeighbourAdvertisement {
    const fn flags(&self) -> u8 {
        let router = if self.router { ROUTER } else { 0 };
        let solicited = if self.solicited { SOLICITED } else { 0 };
        let overrides = if self.overrides { OVERRIDE } else { 0 };
        router | solicited | overrides
    }
}

/// The group in which whoever has this address listens for solicitations (RFC 4291 2.7.1).
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    const GROUP: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
    Ipv6Addr::from_bits(GROUP | address.to_bits() & 0x00ff_ffff)
}

/// The Ethernet address of an IPv6 group (RFC 2464 7).
pub const fn multicast_mac(group: Ipv6Addr) -> MacAddress {
    let [.., a, b, c, d] = group.octets();
    MacAddress([0x33, 0x33, a, b, c, d])
}
