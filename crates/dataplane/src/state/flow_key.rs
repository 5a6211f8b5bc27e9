//! What tells one flow of a user from another, the same for both directions.

use super::session::SessionIndex;
use packet::checksum::is_intact_header;
use packet::five_tuple::FiveTuple;
use packet::{ipv4, ipv6, tcp};
use rules::{Direction, Instance};
use std::net::IpAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bits of the last word: protocol, version, later fragment, whether it is between tunnels, network instance.
const VERSION_SHIFT: u32 = 8;
const FRAGMENT_SHIFT: u32 = 12;
const FRAGMENT: u64 = 1 << FRAGMENT_SHIFT;
/// Of sessions between tunnels of this node.
const BETWEEN: u64 = 1 << 13;
const INSTANCE_SHIFT: u32 = 16;
const PORTS_SHIFT: u32 = 32;

/// Over IPv4 both addresses are one word, the user's first, and with the rest one more says all of the usual packet
/// ([`Form`]); over IPv6 each address is two. No key of a packet is all zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct FlowKey {
    words: [u64; 5],
}

impl FlowKey {
    /// The key of no flow.
    pub(crate) const NONE: Self = Self { words: [0; 5] };

    /// The key of a packet that goes one way.
    #[inline]
    pub(crate) fn new(tuple: &FiveTuple, direction: Direction) -> Self {
        let (user, remote, ports) = match direction {
            Direction::Uplink => {
                (&tuple.source, &tuple.destination, [tuple.source_port, tuple.destination_port])
            }
            Direction::Downlink => {
                (&tuple.destination, &tuple.source, [tuple.destination_port, tuple.source_port])
            }
        };
        // IPsec has no ports; its two directions have different SPIs, and so are two flows. Of a later fragment an authentication header
        // before that of the fragment, where none belongs, says nothing.
        let spi = if tuple.fragment { 0 } else { tuple.spi };
        let ports = (u64::from(ports[0]) << 16 | u64::from(ports[1])) ^ u64::from(spi);
        let kind = u64::from(tuple.protocol)
            | u64::from(tuple.version) << VERSION_SHIFT
            | u64::from(tuple.fragment) << FRAGMENT_SHIFT;
        let [user_high, user_low] = halves(*user);
        let [remote_high, remote_low] = halves(*remote);
        let rest = ports << PORTS_SHIFT | kind;
        if tuple.version == 4 {
            return Self { words: [user_high | remote_high >> 32, 0, 0, 0, rest] };
        }
        Self { words: [user_high, remote_high, user_low, remote_low, rest] }
    }

    /// The key, total length and type of service of the usual packet: IPv4 without options, whole, TCP or UDP, and
    /// sound. `None` for any other, which has to be looked at closely.
    #[inline]
    pub(crate) fn of_usual(packet: &[u8], direction: Direction) -> Option<(Self, u16, u8)> {
        let header = packet.first_chunk::<24>()?;
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let [first, fragment, protocol] = [word(0), word(4), word(8) >> 16 & 0xff];
        let usual = first >> 24 == 0x45 && fragment & 0x3fff == 0 && (protocol == TCP || protocol == UDP);
        let length = first as u16;
        if !usual
            || usize::from(length) > packet.len()
            || length < 24
            || !is_intact_header(header.first_chunk()?)
        {
            return None;
        }
        let (user, remote, ports) = match direction {
            Direction::Uplink => (word(12), word(16), word(20)),
            Direction::Downlink => (word(16), word(12), word(20).rotate_left(16)),
        };
        let kind = u64::from(protocol) | 4 << VERSION_SHIFT;
        let last = u64::from(ports) << PORTS_SHIFT | kind;
        let words = [u64::from(user) << 32 | u64::from(remote), 0, 0, 0, last];
        Some((Self { words }, length, (first >> 16) as u8))
    }

    /// The same of a network where users have addresses of their own; keys are made as of the default one.
    #[inline]
    pub(crate) fn within(mut self, instance: Instance) -> Self {
        self.words[4] |= u64::from(instance.digest()) << INSTANCE_SHIFT;
        self
    }

    /// The same, of a session that the packets of another session of this node pass, too: what is known of the flow there says
    /// nothing here.
    pub(crate) fn between(mut self, session: SessionIndex) -> Self {
        // Keys of one session differ where they did, and all others lack the bit.
        self.words[3] ^= u64::from(session.0);
        self.words[4] |= BETWEEN;
        self
    }

    /// What tells the flow from others of its session: nothing of where that is, or of what network, both of which may change.
    pub(crate) const fn of_session(mut self, session: SessionIndex) -> Self {
        if self.is_between() {
            self.words[3] ^= session.0 as u64;
        }
        self.words[4] &= !(BETWEEN | 0xffff << INSTANCE_SHIFT);
        self
    }

    /// Of a flow, given as of the default network, where another one of the same session's is.
    pub(crate) fn beside(self, other: &Self, session: SessionIndex) -> Self {
        let mut key = self;
        key.words[4] |= other.words[4] & 0xffff << INSTANCE_SHIFT;
        if other.is_between() { key.between(session) } else { key }
    }

    /// The same flow with another far end, of the same IP version.
    pub(crate) fn readdressed(mut self, from: IpAddr, to: IpAddr) -> Self {
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let [high, low] = halves(number(from) ^ number(to));
        if self.is_ipv6() {
            self.words[1] ^= high;
            self.words[3] ^= low;
        } else {
            self.words[0] ^= high >> 32;
        }
        self
    }

    /// The digest of that network's name; 0 of the default one.
    pub(crate) const fn network(&self) -> u16 {
        (self.words[4] >> INSTANCE_SHIFT) as u16
    }

    /// Whether it is the same key: without branches, because it mostly is.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        let ([a, b, c, d, e], [f, g, h, i, j]) = (self.words, other.words);
        (a ^ f) | (b ^ g) | (c ^ h) | (d ^ i) | (e ^ j) == 0
    }

    /// What all fragments of a packet have in common: later ones show no ports, and over IPv6 not what stands behind headers of the
    /// first one's.
    pub(crate) const fn of_packet(mut self) -> Self {
        let own = if self.is_ipv6() { FRAGMENT | 0xff } else { FRAGMENT };
        self.words[4] &= !own & ((1 << PORTS_SHIFT) - 1);
        self
    }

    /// What all of the user's have in common.
    pub(crate) const fn of_user(self) -> Self {
        Self { words: [self.user(), 0, 0, 0, 0] }
    }

    /// Whether nothing but the addresses is known: of a fragment whose packet's first one nobody has seen.
    pub(crate) const fn is_of_addresses(&self) -> bool {
        self.words[4] & FRAGMENT != 0
    }

    /// What the packet carries; of a later fragment of IPv6 perhaps the first of more headers.
    pub(crate) const fn protocol(&self) -> u8 {
        self.words[4] as u8
    }

    /// The user's port and the far end's, where they are known.
    pub(crate) fn ports(&self) -> Option<(u16, u16)> {
        let is_known = !self.is_of_addresses() && packet::protocol::has_ports(self.protocol());
        is_known.then_some(((self.words[4] >> 48) as u16, (self.words[4] >> PORTS_SHIFT) as u16))
    }

    /// The SPI of what has no ports, where it has one.
    pub(crate) fn spi(&self) -> Option<u32> {
        let spi = (self.words[4] >> PORTS_SHIFT) as u32;
        let is_known = !self.is_of_addresses() && !packet::protocol::has_ports(self.protocol());
        (is_known && spi != 0).then_some(spi)
    }

    /// Whether it is of a session between tunnels of this node, whose place is in the key.
    pub(super) const fn is_between(&self) -> bool {
        self.words[4] & BETWEEN != 0
    }

    /// Whether it is a connection over TCP.
    pub(super) const fn is_of_tcp(&self) -> bool {
        self.words[4] & 0xff == TCP as u64
    }

    /// Bytes of the shortest headers of IP and TCP that its packets can have.
    pub(super) const fn headers_min(&self) -> usize {
        match self.words[4] >> VERSION_SHIFT & 0xf {
            6 => ipv6::LENGTH + tcp::LENGTH,
            _ => ipv4::LENGTH + tcp::LENGTH,
        }
    }

    /// Whose flow it is: the user's IPv4 address, or its prefix of 64 bits.
    pub(crate) const fn user(&self) -> u64 {
        if self.is_ipv6() { self.words[0] } else { self.words[0] & !(u32::MAX as u64) }
    }

    /// The same, and whether it is of IPv6, which the number does not say.
    #[inline]
    pub(crate) const fn user_and_version(&self) -> (u64, bool) {
        (self.user(), self.is_ipv6())
    }

    pub(super) const fn is_ipv6(&self) -> bool {
        self.words[4] >> VERSION_SHIFT & 0xf == 6
    }

    /// Whether two words say all of it.
    #[inline(always)]
    pub(super) const fn form(&self) -> Form {
        match self.words[4] as u16 {
            TCP_OVER_IPV4 => Form::Tcp,
            UDP_OVER_IPV4 => Form::Udp,
            _ => Form::Other,
        }
    }

    /// What a flow of its form has of it in any case: the addresses, or the first part of the user's, and with the lower 16 bits left
    /// to others, ports and network.
    #[inline(always)]
    pub(super) const fn short(&self) -> [u64; 2] {
        [self.words[0], self.words[4] & !KIND]
    }

    /// What only one of [`Form::Other`] has besides.
    pub(super) const fn long(&self) -> ([u64; 3], u16) {
        let [_, a, b, c, kind] = self.words;
        ([a, b, c], kind as u16)
    }

    /// That of two words.
    pub(super) const fn of_short(form: Form, [addresses, rest]: [u64; 2]) -> Self {
        let kind = match form {
            Form::Tcp => TCP_OVER_IPV4,
            Form::Udp => UDP_OVER_IPV4,
            Form::None | Form::Other => 0,
        };
        Self { words: [addresses, 0, 0, 0, rest & !KIND | kind as u64] }
    }

    /// That of all words.
    pub(super) const fn of_long([first, rest]: [u64; 2], ([a, b, c], kind): ([u64; 3], u16)) -> Self {
        Self { words: [first, a, b, c, rest & !KIND | kind as u64] }
    }

    /// For tables; senders who do not know `seed` cannot aim at one place.
    #[inline]
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let [a, b, c, d, e] = self.words;
        let mut hash = mix(a ^ seed, b ^ 0x9e37_79b9_7f4a_7c15);
        if c | d != 0 {
            hash ^= mix(c ^ seed.rotate_left(32), d ^ 0xc2b2_ae3d_27d4_eb4f);
        }
        mix(hash ^ seed, e ^ 0x1656_67b1_9e37_79f9)
    }
}

/// How much there is to say of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Form {
    /// Nothing: there is no flow.
    None,
    /// Of TCP over IPv4, and nothing else: two words.
    Tcp,
    /// Of UDP over IPv4, and nothing else: two words.
    Udp,
    /// Of whatever else there is.
    Other,
}

/// The bits that say which, and so many.
const KIND: u64 = 0xffff;
const TCP_OVER_IPV4: u16 = TCP as u16 | 4 << VERSION_SHIFT;
const UDP_OVER_IPV4: u16 = UDP as u16 | 4 << VERSION_SHIFT;
pub(super) const KIND_BITS: u32 = KIND.count_ones();
/// Of the kind, bits that are never set.
pub(super) const KIND_UNUSED: u16 = 3 << 14;

const TCP: u32 = packet::protocol::TCP as u32;
const UDP: u32 = packet::protocol::UDP as u32;

/// Both halves of the product: every bit of either factor reaches the result.
#[inline]
pub(crate) const fn mix(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline]
const fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever stands before the header of the fragment: of the same addresses, it is of the same flow.
    #[test]
    fn a_later_fragment_shows_no_spi() {
        let (source, destination, version, protocol) = (1 << 96, 2 << 96, 6, packet::protocol::UDP);
        let none =
            FiveTuple { source, destination, version, protocol, fragment: true, ..FiveTuple::default() };
        let key = |tuple: FiveTuple| FlowKey::new(&tuple, Direction::Uplink);
        assert_eq!(key(FiveTuple { spi: 7, ..none }), key(none));
        let whole = FiveTuple { fragment: false, ..none };
        assert_ne!(key(FiveTuple { spi: 7, ..whole }), key(whole));
    }
}
