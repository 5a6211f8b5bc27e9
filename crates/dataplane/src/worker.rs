//! A worker: takes vectors from its ports, runs them through the graph, gives them to its ports. One thread, to
//! completion, sharing nothing.

mod announcing;
mod connect;
mod copies;
mod dropping;
mod frames;
mod handoff;
mod holding;
mod moving;
mod orders;
mod paths;
mod punt;
mod receive;
mod rest;
mod sleepers;
mod sort;
mod split;
mod split_tunnel;
mod tag;
mod thinning;
mod view;

use self::announcing::Announcing;
use self::split::SplitFlows;
use crate::counters::{Counters, DropReason};
use crate::fair_share::FairShare;
use crate::frame::{Fate, Packet, PortIndex, VECTOR};
use crate::graph::{Graph, Hop, NodeId, Run};
use crate::held::Held;
use crate::kept::{Kept, Unkept};
use crate::nodes;
use crate::port::Port;
use crate::punt::KernelSide;
use crate::receipt::Receipt;
use crate::state::{Ages, Parcel, State};
use crate::steering::{Handoff, Unread};
use crate::trace::Tracer;
pub use connect::{connect, connect_crew, connect_placed};
pub(crate) use moving::Leg;
pub(crate) use orders::{Busy, Order, Query, Report};
use packet::Buffer;
pub(crate) use paths::Listing;
#[cfg(test)]
pub(crate) use receive::BURST;
use rtrb::{Consumer, Producer};
use std::net::IpAddr;
use std::vec::Drain;

/// Orders, and reports, on their way at once.
const RING: usize = 1024;
/// Between two looks for packets that wait too long.
const EXPIRY_NS: u64 = 100_000_000;

/// Packets freed at once.
const TRASH_ROOM: usize = 2 * VECTOR;
/// Packets about to go out of a port at once: what stands there, a vector, requests for neighbours, and what waited for one.
const LANE_ROOM: usize = 4 * VECTOR;

/// Flows looked at for their age in one turn.
const SWEEP: usize = 4;

/// Reads a cycle counter; only differences matter.
pub type Clock = fn() -> u64;

/// One port and what is about to go out of it.
struct Lane<P: Port> {
    port: P,
    out: Vec<P::Buffer>,
    /// What each was counted for.
    receipts: Vec<Receipt>,
}

impl<P: Port> Lane<P> {
    #[inline(always)]
    fn push(&mut self, buffer: P::Buffer, receipt: Receipt) {
        self.out.push(buffer);
        self.receipts.push(receipt);
    }
}

/// One worker. It shares no cache line with another, wherever both lie: one that polls writes some lines all the time.
#[repr(align(128))]
pub struct Worker<P: Port> {
    lanes: Vec<Lane<P>>,
    /// Of the port that has the most.
    classes: usize,
    state: State,
    graph: Graph,
    counters: Counters,
    held: Held<P::Buffer>,
    kept: Kept<P::Buffer>,
    /// Of whose packets, which were not kept, the control plane has been told.
    unkept: Unkept,
    /// Of turns in which anything came, where there are other workers.
    busy_cycles: u64,
    awaited: moving::Awaited<P::Buffer>,
    /// A session that is to go, while its flows are looked at.
    looking: Option<Box<Parcel>>,
    received: Vec<P::Buffer>,
    vector: Vec<Packet<P::Buffer>>,
    /// Of the vector, the first so many were handed over by others.
    handed: usize,
    /// So many behind them were, unread.
    handed_unread: usize,
    /// Of this turn's, those that were handed over as they came in.
    passed_on: usize,
    /// The others have just come in at ports, and are to be counted there.
    are_new: bool,
    fair_share: FairShare,
    /// Where in the vector packets of no class begin.
    classless: usize,
    /// Nothing is taken from ports any more.
    is_ending: bool,
    trash: Vec<P::Buffer>,
    /// Packets whose session has changed, and that go their way now.
    resumed: Vec<Packet<P::Buffer>>,
    /// They run, and what comes of them.
    is_resuming: bool,
    handoff: Handoff<P::Buffer>,
    /// Packets that other workers had no room for; empty between vectors.
    unsent: Vec<Unread<P::Buffer>>,
    /// Made, but not to be told before the other workers have been.
    withheld: Option<Report>,
    rest: rest::Rest<P::Buffer>,
    /// Where ports give the kernel what is not spoken here.
    kernel: Option<Box<KernelSide>>,
    kept_per_session: u16,
    kept_ns: u64,
    ages: Ages,
    orders: Consumer<Order>,
    /// Orders of the last turn.
    obeyed: usize,
    reports: Producer<Report>,
    clock: Clock,
    expire_ns: u64,
    announcing: Announcing,
    /// While packets are traced.
    tracer: Option<Box<Tracer>>,
}

impl<P: Port> Worker<P> {
    /// One turn: obeys some orders, takes what other workers handed over, then one vector from the ports, to its end.
    /// Returns the packets received and taken.
    pub fn turn(&mut self, now_ns: u64) -> usize {
        self.turn_traced(now_ns, None)
    }

    pub(crate) fn turn_traced(&mut self, now_ns: u64, trace: Option<&mut Vec<Hop>>) -> usize {
        self.state.set_time(now_ns);
        self.state.end_watches();
        let is_shared = self.state.steering.is_shared();
        let is_watched = trace.is_some() || self.tracer.is_some();
        let began = if is_shared { (self.clock)() } else { 0 };
        self.obey();
        self.resume();
        if is_shared {
            self.hear_others();
        }
        if !self.is_ending {
            let is_full = self.receive(is_watched);
            self.fair_share.turn(is_full);
        }
        let received = self.vector.len() + self.rest.arrived.len() + std::mem::take(&mut self.passed_on);
        self.run_received(trace);
        self.state.flows.sweep(SWEEP, now_ns, self.ages);
        self.state.sweep_waiting();
        self.state.renew_flows();
        self.state.connections.sweep(now_ns);
        if now_ns >= self.expire_ns {
            self.expire_ns = now_ns + EXPIRY_NS;
            self.expire();
        }
        if self.kernel.is_some() {
            self.take_from_kernel();
        }
        self.send();
        if is_shared && received > 0 {
            self.busy_cycles += (self.clock)().wrapping_sub(began);
        }
        received
    }

    /// Runs what came in.
    fn run_received(&mut self, mut trace: Option<&mut Vec<Hop>>) {
        if self.fair_share.is_thinning() {
            self.thin_out();
        }
        if !self.vector.is_empty() {
            self.are_new = true;
            match self.tracer.take() {
                None => self.run(NodeId::UsualInput, trace.as_deref_mut()),
                Some(tracer) => self.run_watched(NodeId::UsualInput, tracer),
            }
        }
        if !self.rest.arrived.is_empty() {
            self.run_arrived(trace);
        }
    }

    /// Takes the vector from a node to its end, and what it leaves behind, too.
    fn run(&mut self, start: NodeId, trace: Option<&mut Vec<Hop>>) {
        self.run_vector(start, trace);
        self.run_rest();
    }

    fn run_vector(&mut self, start: NodeId, trace: Option<&mut Vec<Hop>>) {
        let sample = if self.are_new { self.fair_share.first_sample() } else { None };
        self.run_graph(start, trace);
        if let Some(first) = sample {
            self.look_at_shares(first);
        }
        self.finish();
    }

    fn run_graph(&mut self, start: NodeId, trace: Option<&mut Vec<Hop>>) {
        let Self { vector, state, counters, clock, .. } = self;
        let (handed, are_new) = (std::mem::take(&mut self.handed), std::mem::take(&mut self.are_new));
        self.graph
            .run(start, Run { packets: vector, handed, are_new, state, counters, clock: *clock, trace });
    }

    /// As [`Worker::run`], of packets that came in, for somebody who wants to see what becomes of some of them.
    #[cold]
    fn run_watched(&mut self, start: NodeId, tracer: Box<Tracer>) {
        self.run_vector_watched(start, tracer);
        self.run_rest();
        if let Some(tracer) = &mut self.tracer {
            tracer.follow_no_more();
        }
    }

    fn run_vector_watched(&mut self, start: NodeId, mut tracer: Box<Tracer>) {
        tracer.look_at(&mut self.vector);
        self.run_graph(start, Some(&mut tracer.hops));
        tracer.take_down(&mut self.vector, &self.state);
        self.tracer = Some(tracer);
        self.finish();
    }

    /// Packets that were kept go before newer ones, so that none overtakes another.
    fn resume(&mut self) {
        self.is_resuming = true;
        while !self.resumed.is_empty() {
            let count = self.resumed.len().min(VECTOR);
            self.vector.extend(self.resumed.drain(..count));
            self.run(NodeId::Flow, None);
        }
        if !self.rest.frames.is_empty() {
            self.run_rest();
        }
        self.is_resuming = false;
    }

    /// Gives every packet of the vector to its fate, and sees to the neighbours. What waited for one goes before what has found it known
    /// in this vector, so that none overtakes another: an End Marker is the last of its tunnel (TS 29.281 7.3.2).
    fn finish(&mut self) {
        self.make_room();
        if !self.state.neighbours.learnt.is_empty() {
            self.release_held();
        }
        let mut vector = std::mem::take(&mut self.vector);
        self.give_to_fates(vector.drain(..));
        self.vector = vector;
        self.count_gathered();
        if self.handoff.waits() {
            self.send_handed();
        }
        self.ask_neighbours();
        if !self.state.neighbours.heard.is_empty() {
            self.pass_on_stations();
        }
    }

    /// Gives packets to their fates; where one would overtake others of its flow that are split, it stays behind, with all that
    /// follow it.
    #[inline(always)]
    fn give_to_fates(&mut self, mut packets: Drain<'_, Packet<P::Buffer>>) {
        let mut split = SplitFlows::NONE;
        loop {
            if split.is_empty() {
                self.give_in_runs(&mut packets);
            }
            let Some(packet) = packets.next() else { break };
            if split.overtaken_by(&packet.meta) && self.rest.may_stay_behind() {
                self.rest.stay_behind(packet, packets);
                break;
            }
            split.note(&packet.meta);
            self.give_to_fate(packet);
        }
    }

    /// Gives those that leave or are handed over to their lanes and is rid of those that are dropped, up to the first of another
    /// fate: all at once that go the same way, and none by value through a function, where it would be copied whole.
    #[inline(always)]
    fn give_in_runs(&mut self, packets: &mut Drain<'_, Packet<P::Buffer>>) {
        while let Some(fate) = packets.as_slice().first().map(|packet| packet.meta.fate) {
            match fate {
                Fate::Send(port) => {
                    let count = run_of(fate, packets.as_slice());
                    let lane = &mut self.lanes[usize::from(port)];
                    let receipts = packets.as_slice().iter().take(count).map(|packet| packet.meta.receipt);
                    lane.receipts.extend(receipts);
                    lane.out.extend(packets.by_ref().take(count).map(|packet| packet.buffer));
                }
                Fate::HandOff(worker) => {
                    let count = run_of(fate, packets.as_slice());
                    if !self.handoff.put_all(worker, packets.by_ref().take(count)) {
                        return;
                    }
                }
                Fate::Drop(reason) => {
                    let count = run_of(fate, packets.as_slice());
                    self.lose_all(packets, count, reason);
                }
                // Others are taken one by one: to count them here would be to count the rest of a run for each.
                _ => return,
            }
        }
    }

    fn give_to_fate(&mut self, packet: Packet<P::Buffer>) {
        match packet.meta.fate {
            Fate::Send(port) => self.lanes[usize::from(port)].push(packet.buffer, packet.meta.receipt),
            Fate::Drop(reason) => self.lose(packet, reason),
            Fate::Consumed => {
                self.counters.consumed += 1;
                self.trash.push(packet.buffer);
            }
            Fate::Gather => self.trash.push(packet.buffer),
            Fate::Punt => self.punt(packet),
            Fate::Hold => self.hold(packet),
            Fate::Keep => self.keep(packet),
            Fate::Await => self.wait_for_session(packet),
            Fate::Split => self.split(packet),
            Fate::SplitTunnel => self.split_tunnel(packet),
            Fate::Duplicate => self.duplicate(packet),
            Fate::Answer => self.answer(packet),
            Fate::Unreachable => self.tell_unreachable(packet),
            Fate::Switch => self.switch(packet),
            Fate::HandOff(worker) => self.hand_off(worker, packet),
            Fate::Loop(port) => self.loop_back(port, packet),
        }
    }

    fn ask_neighbours(&mut self) {
        for next_hop in std::mem::take(&mut self.state.neighbours.requests) {
            let lane = &mut self.lanes[usize::from(next_hop.port)];
            let Some(mut buffer) = lane.port.allocate() else { continue };
            self.counters.created += 1;
            let port = self.state.ports.get(next_hop.port);
            let written = match next_hop.address {
                IpAddr::V4(address) => nodes::write_arp_request(&mut buffer, port, address),
                IpAddr::V6(address) => nodes::write_solicitation(&mut buffer, port, address),
            };
            match written {
                Some(()) => lane.push(buffer, Receipt::NONE),
                None => self.discard(buffer, DropReason::NoHeadroom),
            }
        }
    }

    fn expire(&mut self) {
        self.announce_if_due();
        self.expire_held();
        self.state.fragments.expire(self.state.now_ns);
        self.count_gathered();
        let before = self.resumed.len();
        self.kept.expire(self.state.now_ns, &mut self.resumed);
        self.discard_resumed(before, DropReason::BufferExpired);
        self.state.switch.expire(self.state.now_ns);
        self.look_after_paths();
    }

    fn send(&mut self) {
        self.send_lanes();
        self.state.has_let_out();
    }

    /// Lets out what stands in the lanes, while there may be more that is counted and is to leave.
    fn send_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            self.send_lane(index as PortIndex);
        }
        P::Buffer::free_all(&mut self.trash);
    }

    /// Sees to it that every lane has room for what a vector brings about.
    fn make_room(&mut self) {
        for index in 0..self.lanes.len() {
            if self.lanes[index].out.len() > VECTOR {
                self.send_lane(index as PortIndex);
            }
        }
    }

    fn send_lane(&mut self, index: PortIndex) {
        self.tag(index);
        let lane = &mut self.lanes[usize::from(index)];
        if lane.out.is_empty() {
            return;
        }
        let offered = bytes(&lane.out);
        let sent = lane.port.send(&mut lane.out);
        let counters = &mut self.counters.ports[usize::from(index)];
        counters.sent += sent as u64;
        counters.sent_bytes += offered - bytes(&lane.out);
        if !lane.out.is_empty() {
            // A full port drops: to wait for it would hold up every other.
            self.counters.count_drops(DropReason::PortFull, lane.out.len() as u64);
            lane.receipts.iter().skip(sent).for_each(|receipt| self.state.take_back(*receipt));
            self.trash.append(&mut lane.out);
        }
        lane.receipts.clear();
    }
}

fn bytes<B: Buffer>(buffers: &[B]) -> u64 {
    buffers.iter().map(|buffer| buffer.data().len() as u64).sum()
}

/// How many packets there are up to the first of another fate.
#[inline(always)]
fn run_of<B>(fate: Fate, packets: &[Packet<B>]) -> usize {
    packets.iter().take_while(|packet| packet.meta.fate == fate).count()
}
