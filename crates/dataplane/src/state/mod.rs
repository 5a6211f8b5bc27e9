//! What a worker knows: everything its nodes read and write besides the packets.

mod account;
mod active;
mod apart;
mod asked;
mod beyond;
mod blocks;
mod budget;
mod cells;
mod connections;
mod content;
mod cost;
mod ends;
mod exits;
mod flow_key;
mod flows;
mod fragments;
mod framed;
mod heads;
mod index;
mod inherited;
mod installation;
mod interim;
mod keys;
mod link;
mod lists;
mod losses;
pub(crate) mod memory;
mod meters;
mod moving;
mod neighbours;
mod path_mtus;
mod paths;
mod peers;
mod policies;
mod ports;
mod probing;
mod punting;
mod queues;
mod recent;
mod redirections;
mod renewal;
mod routes;
mod runs;
mod session;
mod sessions;
mod share;
mod start;
mod step;
mod switch;
mod table;
mod tags;
mod telling;
mod treatment;
mod usage;
mod waiting;
mod watches;

pub(crate) use account::{Account, Count, Moment, Pace, Rate, Tally};
pub(crate) use apart::Apart;
pub(crate) use beyond::Bearing;
pub(crate) use blocks::{Block as FlowBlock, FlowLine};
pub(crate) use budget::{Budget, IcmpErrors};
pub(crate) use cells::{Cell, Cells, Label, STEPS, told};
pub(crate) use connections::{
    Connection, Connections, Shift, Upcoming, begins_with_method, connection_places, request_line,
};
pub use content::ContentCounts;
pub(crate) use content::{Content, Handshake, Led, Loading, Memory, View, WAITING_PER_SESSION};
pub(crate) use exits::Exit;
pub(crate) use flow_key::{FlowKey, mix};
pub use flows::flow_table_bytes;
pub(crate) use flows::{
    Ages, Beginning, Circumstances, Flows, Place, Said, Verdict, blocks_for as flow_blocks,
};
pub(crate) use fragments::{DatagramName, Ended, Fragments, Part, Useless, Whole};
pub(crate) use framed::{Framed, Length, around, found_by, network, networks};
pub(crate) use installation::{Installation, Installed, Refusal, Removal, Unwanted};
pub(crate) use interim::Interim;
pub(crate) use link::{Reach, link_local};
pub(crate) use lists::WholeStep;
pub(crate) use memory::{NoMemory, prefetch, prefetch_write};
pub(crate) use moving::{Expected, Leaving, Parcel, Stay, is_of};
pub(crate) use neighbours::{Heard, Lookup, Neighbours};
pub use paths::PathCounts;
pub(crate) use peers::{Name, Peers, Way};
pub(crate) use policies::{Policies, PolicyIndex, Steered};
pub(crate) use ports::{FIRST_GROUP, Ports, Receiver};
pub(crate) use probing::{Entry, Probing, scatter};
pub(crate) use punting::{Punting, Urgency};
pub(crate) use redirections::{Control, Redirection, Redirections, redirection_places};
pub(crate) use routes::Routes;
pub(crate) use session::{Key, Rest, Session, SessionIndex};
pub(crate) use sessions::{Admitted, KEYS_PER_SESSION, Room, Sessions, cells};
pub(crate) use step::{HotStep, Kind, Patience, StepIndex};
pub(crate) use switch::{MACS_PER_SESSION, Switch, Vlans};
pub(crate) use table::Table;
pub(crate) use telling::{USED_MAX, Used};
pub(crate) use treatment::{Extra, Treatment};
pub(crate) use waiting::Ticket;

use crate::config::{Config, ConfigError, least_mtu, side_of_peer};
use crate::frame::{Meta, NextHop, PortIndex};
use crate::lasting::Section;
use crate::side::Side;
use crate::steering::{Note, Sight, Steering, sight};
use dplink::Event;
use heads::Heads;
use packet::gtpu::{Endpoints, OuterHeader, PORT, UdpChecksum};
use rules::{Instance, Interface};
use std::collections::VecDeque;
use std::net::IpAddr;
use telling::LATE_MAX;
use watches::Watches;

/// Most events noted between two turns of the control side; later ones are lost, unless they are noted again.
const EVENTS_MAX: usize = 64;

/// Routers tell of each packet that is too long; to listen to so many a second is enough to have heard of all peers soon.
const TOLD_TOO_LONG_PER_S: u32 = 256;

/// Owned by one worker alone.
pub(crate) struct State {
    /// When the vector was received.
    pub(crate) now_ns: u64,
    /// How far a packet may be ahead of its rate.
    pub(crate) burst_ns: u64,
    /// Both together.
    pub(crate) moment: Moment,
    /// What peers are told of when we began (TS 23.007 18A); `None` until a control side says so.
    pub(crate) recovery_time_stamp: Option<u32>,
    /// A control side is yet to say which sessions there are.
    pub(crate) awaits_sessions: bool,
    pub(crate) ports: Ports,
    pub(crate) routes: Routes,
    pub(crate) policies: Policies,
    pub(crate) neighbours: Neighbours,
    pub(crate) sessions: Sessions,
    pub(crate) flows: Flows,
    /// Error Indications that may still be sent, by the side they answer.
    pub(crate) error_indications: [Budget; 2],
    pub(crate) fragments: Fragments,
    heads: Heads,
    pub(crate) icmp_errors: IcmpErrors,
    /// Those about our own datagrams that may still be listened to.
    told_too_long: Budget,
    /// What the kernel may still have.
    pub(crate) punting: Punting,
    /// The other workers.
    pub(crate) steering: Steering,
    /// For the control side.
    pub(crate) events: Vec<Event>,
    /// For the control side.
    pub(crate) used: Vec<Used>,
    /// Of these, the first so many tell of nothing that could still be taken back.
    pub(crate) let_out: usize,
    /// Datagrams of ours that were split.
    split: u32,
    /// Accounts whose thresholds were crossed again too soon.
    late: VecDeque<(SessionIndex, u16)>,
    /// Accounts whose packets pass without a look for a time.
    watches: Watches,
    /// A session that another worker is about to give.
    expected: Option<Expected>,
    /// A session that is about to go to another worker, where it has rules for applications.
    leaving: Option<Box<Leaving>>,
    pub(crate) content: Content,
    /// Flows that are to ask the content rules anew.
    renewal: Option<renewal::Renewal>,
    /// Of users whose requests get a field.
    pub(crate) connections: Connections,
    /// Of users who are sent to other addresses.
    pub(crate) redirections: Redirections,
    /// Of users whose sessions carry Ethernet frames.
    pub(crate) switch: Switch,
}

/// Who has the user behind whom an address is.
pub(crate) enum Behind {
    /// This worker.
    Here(SessionIndex),
    /// Another one.
    At(u8),
}

impl State {
    /// Of an address that is no user's own, as far as anybody knows: behind whom it is, by the longest network of all workers.
    pub(crate) fn behind(&self, key: Key) -> Option<Behind> {
        let (framed, steering) = (&self.sessions.framed, &self.steering);
        around(key, framed.lengths() | steering.route_lengths()).find_map(|network| {
            let here = framed.get(network).map(|place| Behind::Here(SessionIndex(place)));
            let (bits, length, instance) = network;
            here.or_else(|| steering.owner_of_key(Key::Route(bits, length, instance)).map(Behind::At))
        })
    }

    /// With cells in a section of a file if there is one.
    pub(crate) fn new(
        config: &Config,
        section: Option<Section>,
        (steering, punting): (Steering, Punting),
    ) -> Result<Self, ConfigError> {
        let ports = Ports::new(&config.ports)?;
        let limits = &config.limits;
        let room = Room {
            sessions: limits.sessions,
            pdrs: limits.pdrs,
            peers: limits.peers,
            aparts: limits.meters_apart,
            framed_routes: limits.framed_routes,
            catch_up_ns: limits.catch_up_ns,
            has_instances: ports.has_instances(),
            echo: config.echo,
            section: section.clone(),
        };
        Ok(Self {
            now_ns: 0,
            burst_ns: limits.burst_ns,
            moment: Moment::default(),
            recovery_time_stamp: None,
            awaits_sessions: config.awaits_sessions,
            routes: Routes::new(&ports, &config.routes)?,
            policies: Policies::new(&ports, &config.policies)?,
            neighbours: Neighbours::new(limits.neighbours, steering.is_shared()),
            sessions: Sessions::new(room)?,
            flows: Flows::new(limits.flows, config.seed, section.as_ref())?,
            error_indications: [(); 2].map(|()| Budget::new(limits.error_indications_per_s)),
            fragments: Fragments::new(limits.reassembled, config.seed),
            heads: Heads::new(),
            icmp_errors: IcmpErrors::new(limits.icmp_errors_per_s),
            told_too_long: Budget::new(TOLD_TOO_LONG_PER_S),
            punting,
            events: Vec::with_capacity(EVENTS_MAX),
            used: Vec::with_capacity(USED_MAX),
            let_out: 0,
            split: 0,
            late: VecDeque::with_capacity(LATE_MAX),
            watches: Watches::new(limits.sessions),
            expected: None,
            leaving: None,
            content: Content::default(),
            renewal: None,
            connections: Connections::new(limits.connections, section.as_ref())?,
            redirections: Redirections::new(limits.redirections, section.as_ref())?,
            switch: Switch::new(limits),
            steering,
            ports,
        })
    }

    /// A vector was received.
    pub(crate) fn set_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.moment = Moment::new(now_ns, self.burst_ns);
    }

    /// The key of a packet's flow, given as of the default network, in that of its user. Of packets in tunnels it is the
    /// session behind the tunnel that says which.
    #[inline]
    pub(crate) fn in_network(&self, key: FlowKey, meta: &Meta) -> FlowKey {
        let is_plain = match meta.tunnelled() {
            true => !self.ports.has_instances(),
            false => self.ports.receiver(meta.port).is_plain,
        };
        if is_plain { key } else { key.within(self.network(meta)) }
    }

    /// Where packets come from that came in a tunnel by a port of the side `own`. The Source Interface of the tunnel's PDR
    /// says so, whichever port serves it: S5 of an SGW-U may come by the port of S1-U.
    #[inline]
    pub(crate) fn source_of_tunnel(&self, port: PortIndex, own: Interface, teid: u32) -> Interface {
        match self.has_turned_at(port) {
            false => own,
            true => self.source_behind(Ports::key(port, teid)),
        }
    }

    /// Whether packets in some tunnels that come in at a port go the other way than others of it.
    #[inline]
    pub(crate) fn has_turned_at(&self, port: PortIndex) -> bool {
        self.sessions.turns(port) || self.steering.has_turned()
    }

    /// Whose packet a frame carries that came in at a port, at first sight.
    pub(crate) fn sight(&self, frame: &[u8], port: PortIndex) -> Sight {
        let receiver = self.ports.receiver(port);
        let own = receiver.fresh.source;
        sight(frame, receiver, |teid| self.source_of_tunnel(port, own, teid).direction())
    }

    /// Whether packets in some tunnels, here or with other workers, go the other way than others of their port.
    #[inline]
    pub(crate) fn has_turned(&self) -> bool {
        self.steering.has_turned() || self.sessions.has_turned()
    }

    /// As [`State::source_of_tunnel`], of a tunnel by its key.
    #[inline(never)]
    pub(crate) fn source_behind(&self, tunnel: u64) -> Interface {
        let key = Key::turned(tunnel);
        let is_turned = self.sessions.has(key) || self.steering.has_heard_of(key);
        self.ports.source(Ports::tunnel(tunnel).0, is_turned)
    }

    #[inline(never)]
    fn network(&self, meta: &Meta) -> Instance {
        match meta.tunnelled() {
            true => self.sessions.instance_behind(self.ports.tunnel_key(meta)),
            false => meta.instance,
        }
    }

    /// Whether a peer on the side of a port may be told once more of a packet of no use. Each side has a share of its own, or who
    /// is on the one could silence us on the other. Nobody is told before it is known which sessions there are.
    pub(crate) fn may_indicate(&mut self, port: PortIndex) -> bool {
        if self.awaits_sessions {
            return false;
        }
        let side = self.ports.get(port).interface.direction();
        let budget = self.error_indications.get_mut(side as usize);
        budget.is_some_and(|budget| budget.take(self.now_ns))
    }

    /// Whether one more event may wait to be told.
    pub(crate) const fn may_note(&self) -> bool {
        self.events.len() < EVENTS_MAX
    }

    /// An event waits to be told, unless too many do: who must not be overheard says it again.
    pub(crate) fn note(&mut self, event: Event) -> bool {
        let room = self.may_note();
        if room {
            self.events.push(event);
        }
        room
    }

    /// The next event for the control side, the oldest first: a path may fail and be there again.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        (!self.events.is_empty()).then(|| self.events.remove(0))
    }

    /// A peer answered a question, ours or another worker's: its number, and when the peer says that it began.
    pub(crate) fn answered(&mut self, peer: Name, answer: (u16, Option<u32>)) {
        match self.steering.other_steward(peer) {
            Some(steward) => self.steering.post.tell(steward, Note::Answered(peer, answer)),
            None => self.sessions.peers.answered(peer, answer, self.now_ns),
        }
    }

    /// A peer says when it began.
    pub(crate) fn began(&mut self, peer: Name, stamp: u32) {
        match self.steering.other_steward(peer) {
            Some(steward) => self.steering.post.tell(steward, Note::Began(peer, stamp)),
            None => self.sessions.peers.began(peer, stamp, self.now_ns),
        }
    }

    /// A router says how much passes on the way to a peer: whichever worker's datagrams it was about.
    pub(crate) fn told_too_long(&mut self, peer: IpAddr, mtu: u16) {
        if self.told_too_long.take(self.now_ns) {
            self.sessions.peers.narrow(peer, mtu, self.now_ns);
            self.steering.post.tell_all(Note::Narrow(peer, mtu));
        }
    }

    /// Bytes of IP that pass on the way from a port to an address.
    pub(crate) fn passes(&self, port: PortIndex, to: IpAddr) -> u16 {
        let mtu = self.ports.get(port).mtu;
        self.sessions.peers.passes(to, self.now_ns).map_or(mtu, |passes| passes.min(mtu))
    }

    /// How packets get to an address on one of these sides, the first that leads there, in whichever network.
    pub(crate) fn any_way(&self, sides: &[Interface], address: IpAddr) -> Option<Way> {
        let mut sides = self.ports.sides(sides);
        sides.find_map(|side| Self::way(&self.ports, &self.routes, (side, address)))
    }

    /// Whether packets into tunnels to one of these sides, with this peer at the other end, leave by a port of the side that
    /// `port` is on.
    pub(crate) fn reaches(&self, peer: IpAddr, sides: &[Interface], port: PortIndex) -> bool {
        // What is between tunnels of our own passes no wire.
        if self.ports.is_ours(peer) {
            return false;
        }
        let direction = self.ports.get(port).interface.direction();
        let defaults = sides.iter().copied().map(Side::of);
        self.ports.sides(sides).chain(defaults).any(|side| {
            let side = side_of_peer(self.ports.all(), side, peer);
            let next_hop = self.routes.find(side, peer);
            next_hop.is_some_and(|hop| self.ports.get(hop.port).interface.direction() == direction)
        })
    }

    /// How packets get to a peer; `None` where no route leads there. To an address of our own no route has to lead.
    pub(crate) fn way(ports: &Ports, routes: &Routes, (side, peer): Name) -> Option<Way> {
        let own = ports.with_address(peer).map(|port| NextHop::new(port, peer));
        let next_hop = own.or_else(|| routes.find(side, peer))?;
        let port = ports.get(next_hop.port);
        let mtu = if own.is_some() { least_mtu(ports.all(), side) } else { port.mtu };
        let ours = match peer {
            IpAddr::V4(_) => IpAddr::V4(port.address.addr()),
            IpAddr::V6(_) => IpAddr::V6(port.address6?.addr()),
        };
        let endpoints = match peer {
            IpAddr::V4(destination) => Endpoints::V4 { source: port.address.addr(), destination },
            IpAddr::V6(destination) => Endpoints::V6 {
                source: port.address6?.addr(),
                destination,
                flow_label: 0,
                checksum: UdpChecksum::Computed,
            },
        };
        let header = OuterHeader { endpoints, tos: 0, source_port: PORT, teid: 0, pdu_session: None };
        Some(Way { next_hop, template: header.template(), ends: (ours, peer), mtu })
    }

    /// Tells fragments of one datagram from those of another. The 16 bits that IPv4 has of it differ between workers: all send
    /// from the same addresses.
    pub(crate) fn next_identification(&mut self) -> u32 {
        let (me, workers) = self.steering.place();
        let turns = (1 << 16) / u32::from(workers);
        self.split = self.split.wrapping_add(1);
        ((self.split / turns) << 16) | ((self.split % turns) * u32::from(workers) + u32::from(me))
    }
}

/// The key of a user's address: of IPv6, the prefix of 64 bits that each session has of its own. `None` for prefixes
/// that could be mistaken for an IPv4 address; none of them is in use.
pub(crate) const fn user_key(address: IpAddr) -> Option<u64> {
    match address {
        IpAddr::V4(address) => Some(address.to_bits() as u64),
        IpAddr::V6(address) => match (address.to_bits() >> 64) as u64 {
            prefix if prefix >> 32 == 0 => None,
            prefix => Some(prefix),
        },
    }
}
