//! The graph: which nodes there are, the order they run in, and the one loop that runs them.

use crate::counters::{Counters, DropReason};
use crate::frame::{Fate, Packet, VECTOR};
use crate::nodes;
use crate::state::State;
use crate::trace::rule_of;
use arrayvec::ArrayVec;
use packet::Buffer;
use rules::{PdrId, Seid};

mod usual;

pub(crate) use usual::ChunkLength;

/// A node is a plain function from a packet to where it goes next. It reads no clock, allocates nothing, logs nothing
/// and never blocks; what it needs to know is in the state and in the packet's metadata.
pub(crate) trait Node<B: Buffer> {
    /// Its place in the graph.
    const ID: NodeId;

    /// Asks for memory that [`Node::ahead`] will need, for a whole chunk of packets before the chunk before it is handled.
    /// What is likely to miss the translation of addresses belongs here: in a loop this short, several misses overlap.
    #[inline]
    fn first(_: &State, _: &mut Packet<B>) {}

    /// Asks for memory that [`Node::process`] will need a few packets later; what it learns by that, the packet may note.
    #[inline]
    fn ahead(_: &State, _: &mut Packet<B>) {}

    /// Handles one packet.
    fn process(state: &mut State, packet: &mut Packet<B>) -> Next;

    /// Takes one packet through this node, and through those behind it whose work the next packet has to find done.
    #[inline(always)]
    fn pass(run: &mut Run<'_, B>, place: u8) -> Next
    where
        Self: Sized,
    {
        run.process::<Self>(place)
    }
}

/// Where a packet goes from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To another node, later in the order.
    To(NodeId),
    /// Nowhere further.
    End(Fate),
}

impl Next {
    pub(crate) const fn drop(reason: DropReason) -> Self {
        Self::End(Fate::Drop(reason))
    }
}

/// Lists the nodes in the order they run. Every edge leads forward, so one pass finishes every packet.
macro_rules! graph {
    ($($node:ident = $name:literal,)*) => {
        /// The nodes of the graph, in the order they run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum NodeId {
            $(#[doc = concat!("`", $name, "`.")] $node,)*
        }

        impl NodeId {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$node),*];

            /// Its name in counters, files and the documentation.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$node => $name,)*
                }
            }
        }

        impl Graph {
            fn run_all<B: Buffer>(&mut self, run: &mut Run<'_, B>) {
                $(self.run_node::<B, nodes::$node>(run);)*
            }
        }
    };
}

graph! {
    UsualInput = "usual_input",
    EthernetInput = "ethernet_input",
    Arp = "arp",
    Ip4Input = "ip4_input",
    Ip6Input = "ip6_input",
    Reassembly = "reassembly",
    Ndp = "ndp",
    IcmpEcho = "icmp_echo",
    Icmp6Echo = "icmp6_echo",
    GtpuInput = "gtpu_input",
    GtpuPath = "gtpu_path",
    Punt = "punt",
    FrameInput = "frame_input",
    UserInput = "user_input",
    Steer = "steer",
    Flow = "flow",
    Verdict = "verdict",
    Session = "session",
    FrameUser = "frame_user",
    FrameClassify = "frame_classify",
    FrameForward = "frame_forward",
    FrameOutput = "frame_output",
    Classify = "classify",
    Inspect = "inspect",
    RouterSolicitation = "router_solicitation",
    Far = "far",
    Redirect = "redirect",
    PathMtu = "path_mtu",
    IcmpError = "icmp_error",
    Readdress = "readdress",
    Enrich = "enrich",
    Qer = "qer",
    Urr = "urr",
    GtpuErrorIndication = "gtpu_error_indication",
    GtpuEncap = "gtpu_encap",
    UdpEncap = "udp_encap",
    IpOutput = "ip_output",
    EthernetOutput = "ethernet_output",
}

/// How many packets ahead memory is asked for.
const AHEAD: usize = 12;

/// Packets that memory is asked for at once: many enough for misses to overlap.
const CHUNK: usize = 32;

/// Packets by their place in the vector.
type Places = ArrayVec<u8, VECTOR>;

/// One step of a packet's way, for whoever wants to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) place: u8,
    pub(crate) node: NodeId,
    pub(crate) next: Next,
    /// Where it is to be answered: by whose rules, and by which of them. The answer takes its place.
    pub(crate) rule: Option<(Seid, PdrId)>,
}

impl Hop {
    /// From a node, which has handled the packet.
    #[cold]
    fn new<B: Buffer>(state: &State, packet: &Packet<B>, (place, node, next): (u8, NodeId, Next)) -> Self {
        let is_answered = next == Next::To(NodeId::IcmpError);
        Self { place, node, next, rule: if is_answered { rule_of(state, packet) } else { None } }
    }
}

/// One vector's run through the graph.
pub(crate) struct Run<'a, B> {
    pub(crate) packets: &'a mut [Packet<B>],
    /// Of them, the first so many were handed over: another worker has read them, and they go on from `flow`.
    pub(crate) handed: usize,
    /// The others have just come in at ports, and are not counted yet.
    pub(crate) are_new: bool,
    pub(crate) state: &'a mut State,
    pub(crate) counters: &'a mut Counters,
    /// Reads the cycle counter.
    pub(crate) clock: fn() -> u64,
    /// Filled with every hop, where there is one.
    pub(crate) trace: Option<&'a mut Vec<Hop>>,
}

impl<B: Buffer> Run<'_, B> {
    /// Where a packet goes from this node.
    #[inline(always)]
    pub(crate) fn process<N: Node<B>>(&mut self, place: u8) -> Next {
        let packet = &mut self.packets[usize::from(place)];
        let next = N::process(self.state, packet);
        if let Some(trace) = &mut self.trace {
            trace.push(Hop::new(self.state, packet, (place, N::ID, next)));
        }
        next
    }

    /// As a vector of its own, whose cycles are those of the node it is at.
    #[inline(always)]
    pub(crate) fn process_at_once<N: Node<B>>(&mut self, place: u8) -> Next {
        self.counters.count_vector(N::ID, 1);
        self.process::<N>(place)
    }
}

/// The places waiting at each node.
pub(crate) struct Graph {
    waiting: Box<[Places]>,
    /// In how long chunks packets go the usual way.
    chunk: ChunkLength,
    cycles: u64,
}

impl Graph {
    /// For a CPU of such an L1 cache.
    pub(crate) fn new(l1_bytes: usize) -> Self {
        let waiting = NodeId::ALL.iter().map(|_| Places::new()).collect();
        Self { waiting, chunk: ChunkLength::of(l1_bytes), cycles: 0 }
    }

    /// In how long chunks packets go the usual way.
    pub(crate) const fn chunk(&self) -> ChunkLength {
        self.chunk
    }

    /// Takes every packet from a node to its fate.
    pub(crate) fn run<B: Buffer>(&mut self, start: NodeId, mut run: Run<'_, B>) {
        debug_assert!(run.packets.len() <= VECTOR, "places are counted in a u8");
        self.cycles = (run.clock)();
        match start {
            NodeId::UsualInput => self.run_usual(&mut run),
            other => self.waiting[other as usize] = (0..run.packets.len()).map(|place| place as u8).collect(),
        }
        self.run_all(&mut run);
    }

    /// The vector loop: written once, compiled for each node.
    fn run_node<B: Buffer, N: Node<B>>(&mut self, run: &mut Run<'_, B>) {
        if self.waiting[N::ID as usize].is_empty() {
            return;
        }
        let places = std::mem::take(&mut self.waiting[N::ID as usize]);
        for &place in places.iter().take(CHUNK) {
            N::first(run.state, &mut run.packets[usize::from(place)]);
        }
        for &place in places.iter().take(AHEAD) {
            N::ahead(run.state, &mut run.packets[usize::from(place)]);
        }
        for (at, &place) in places.iter().enumerate() {
            if at.is_multiple_of(CHUNK) {
                for &later in places.iter().skip(at + CHUNK).take(CHUNK) {
                    N::first(run.state, &mut run.packets[usize::from(later)]);
                }
            }
            if let Some(&later) = places.get(at + AHEAD) {
                N::ahead(run.state, &mut run.packets[usize::from(later)]);
            }
            let next = N::pass(run, place);
            self.leave(run, place, next);
        }
        self.charge::<B, N>(run);
        run.counters.count_vector(N::ID, places.len());
    }

    /// Puts a packet where it goes.
    #[inline(always)]
    fn leave<B: Buffer>(&mut self, run: &mut Run<'_, B>, place: u8, next: Next) {
        self.leave_from(place, &mut run.packets[usize::from(place)], next);
    }

    /// Puts a packet, which is at this place, where it goes.
    #[inline(always)]
    fn leave_from<B>(&mut self, place: u8, packet: &mut Packet<B>, next: Next) {
        match next {
            Next::To(node) => self.waiting[node as usize].push(place),
            Next::End(fate) => packet.meta.fate = fate,
        }
    }

    /// Cycles since the last node was charged with some are this one's.
    #[inline(always)]
    fn charge<B: Buffer, N: Node<B>>(&mut self, run: &mut Run<'_, B>) {
        let now = (run.clock)();
        run.counters.nodes[N::ID as usize].cycles += now.wrapping_sub(self.cycles);
        self.cycles = now;
    }
}
