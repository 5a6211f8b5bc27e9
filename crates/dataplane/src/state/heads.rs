//! What first fragments of users' packets say, and the others do not: the protocol and its ports, or the SPI. All fragments of
//! a packet are of one flow by it, and go by the rules for its ports. What comes before its first fragment shows none, and goes by the
//! rules that ask for none; so does what comes a second later than it. Nothing is kept back, nor put together.

use super::{FlowKey, State};
use crate::frame::Meta;
use packet::five_tuple::{Dissected, FiveTuple};
use packet::ipv6::Fragment;
use packet::protocol;
use rules::{Direction, Instance};

/// Users share these by the hashes of their addresses, so that who sends very many first fragments to one crowds out few.
const GROUPS: usize = 128;
/// First fragments of a group at once, of each direction; the oldest gives way.
const GROUP: usize = 32;
/// The others come soon or not at all, in nanoseconds; identifications of IPv4 come again.
const PATIENCE_NS: u64 = 1_000_000_000;

/// A first fragment: its flow, and what packet of it.
#[derive(Clone, Copy, Default)]
struct Head {
    /// As of the default network: the user's may change before the others come.
    key: FlowKey,
    /// That it came in; 0 outside tunnels.
    tunnel: u64,
    /// That it came from, where no tunnel says whose it is.
    network: Instance,
    identification: u32,
    since_ns: u64,
}

impl Head {
    /// Whether two fragments are of one packet (RFC 791 3.2, RFC 8200 4.5).
    fn is_of(&self, other: &Self) -> bool {
        (self.identification, self.tunnel, self.network)
            == (other.identification, other.tunnel, other.network)
            && self.key.of_packet() == other.key.of_packet()
    }
}

#[derive(Clone)]
struct Group {
    heads: [Head; GROUP],
    /// Which gives way next.
    oldest: usize,
}

/// First fragments of the packets that users send and receive, in memory of fixed size.
pub(crate) struct Heads {
    /// Uplink, then downlink.
    groups: Vec<Group>,
}

impl Heads {
    pub(crate) fn new() -> Self {
        let none = Group { heads: [Head::default(); GROUP], oldest: 0 };
        Self { groups: vec![none; 2 * GROUPS] }
    }

    fn group(&mut self, direction: Direction, hash: u64) -> Option<&mut Group> {
        self.groups.get_mut(direction as usize * GROUPS + hash as usize % GROUPS)
    }
}

impl Group {
    /// The first fragment of the packet that this is one of.
    fn find(&self, other: &Head) -> Option<&Head> {
        self.heads.iter().find(|head| head.is_of(other))
    }

    fn put(&mut self, new: Head) {
        let known = self.heads.iter().position(|head| head.is_of(&new));
        if let Some(place) = self.heads.get_mut(known.unwrap_or(self.oldest)) {
            *place = new;
        }
        if known.is_none() {
            self.oldest = (self.oldest + 1) % GROUP;
        }
    }
}

impl State {
    /// Notes of a user's packet the key of its flow, its class of service, and whether it is a fragment; its length in bytes, or
    /// `None` of one that is malformed.
    #[inline]
    pub(crate) fn read_flow(&mut self, packet: &[u8], meta: &mut Meta) -> Option<u16> {
        let Some((key, length, class)) = FlowKey::of_usual(packet, meta.direction()) else {
            return self.look_closely(packet, meta);
        };
        (meta.key, meta.traffic_class) = (self.in_network(key, meta), class);
        Some(length)
    }

    fn look_closely(&mut self, packet: &[u8], meta: &mut Meta) -> Option<u16> {
        let found = FiveTuple::parse(packet).ok()?;
        let length = u16::try_from(found.total).ok()?;
        let mut key = FlowKey::new(&found.tuple, meta.direction());
        if let Some(part) = found.part {
            meta.fragment = true;
            key = self.of_whole_packet(key, (&found, part), meta);
        }
        (meta.key, meta.traffic_class) = (self.in_network(key, meta), found.tuple.tos);
        Some(length)
    }

    /// The key of the flow that a fragment's whole packet is of, as far as that is known; both as of the default network.
    #[cold]
    fn of_whole_packet(
        &mut self,
        key: FlowKey,
        (found, part): (&Dissected, Fragment),
        meta: &Meta,
    ) -> FlowKey {
        let (tunnel, network) = match meta.tunnelled() {
            true => (self.ports.tunnel_key(meta), Instance::DEFAULT),
            false => (0, meta.instance),
        };
        let identification = part.identification;
        let head = Head { key, tunnel, network, identification, since_ns: self.now_ns };
        let hash = self.flows.hash(&key.of_user());
        let Some(group) = self.heads.group(meta.direction(), hash) else { return key };
        if found.tuple.fragment {
            let lately = |first: &&Head| head.since_ns.saturating_sub(first.since_ns) <= PATIENCE_NS;
            return group.find(&head).filter(lately).map_or(key, |first| first.key);
        }
        // Keys do not tell an SPI from ports, and behind an authentication header of IPv6 there may be both.
        if found.tuple.spi == 0 || !protocol::has_ports(found.tuple.protocol) {
            group.put(head);
        }
        key
    }
}
