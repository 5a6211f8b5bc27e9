//! What nothing can be faster than: loops with the memory traffic of a user plane and none of its logic, tuned as well
//! as we know how. A slow yardstick would flatter.

use crate::plan::Plan;
use crate::replay::Replay;
use dataplane::Port;
use dpdk::{Mbuf, prefetch_read};
use packet::Buffer;

/// Packets of a vector.
const VECTOR: usize = 64;
/// How far ahead a packet's line is asked for.
const AHEAD: usize = 4;

/// One cache line.
type Line = [u64; 8];

/// The loops, and the memory they touch.
pub(crate) struct Yardstick {
    sessions: Vec<Line>,
    flows: Vec<Line>,
    vector: Vec<Mbuf>,
    places: Vec<(usize, usize)>,
}

impl Yardstick {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            sessions: vec![[0; 8]; plan.profile.subscribers as usize],
            flows: vec![[0; 8]; plan.profile.flows as usize],
            vector: Vec::with_capacity(VECTOR),
            places: Vec::with_capacity(VECTOR),
        }
    }

    /// Receive, touch the headers, swap the Ethernet addresses, send: the port and the packets alone.
    pub(crate) fn floor(&mut self, ports: &mut [Replay; 2]) {
        let [n3, n6] = ports;
        while self.receive(n3) | self.receive(n6) {
            for at in 0..self.vector.len() {
                self.ask_ahead(at);
                swap_addresses(&mut self.vector[at]);
            }
            n6.send(&mut self.vector);
        }
    }

    /// The floor, and one line of a session and one of a flow read and written for each packet.
    pub(crate) fn bare(&mut self, ports: &mut [Replay; 2]) {
        let [n3, n6] = ports;
        while self.receive(n3) | self.receive(n6) {
            self.places.clear();
            for at in 0..self.vector.len() {
                self.ask_ahead(at);
                let (session, flow) = self.place(at);
                prefetch_line(&self.sessions[session]);
                prefetch_line(&self.flows[flow]);
                self.places.push((session, flow));
            }
            for at in 0..self.vector.len() {
                let (session, flow) = self.places[at];
                let bytes = self.vector[at].data().len() as u64;
                count(&mut self.sessions[session], bytes);
                count(&mut self.flows[flow], bytes);
                swap_addresses(&mut self.vector[at]);
            }
            n6.send(&mut self.vector);
        }
    }

    fn receive(&mut self, port: &mut Replay) -> bool {
        port.receive(&mut self.vector, VECTOR) > 0
    }

    fn ask_ahead(&self, at: usize) {
        if let Some(later) = self.vector.get(at + AHEAD) {
            later.prefetch_data();
        }
    }

    /// Which session and which flow, from bytes of the headers.
    fn place(&self, at: usize) -> (usize, usize) {
        let frame = self.vector[at].data();
        let word = |at: usize| {
            frame.get(at..at + 4).and_then(|w| w.first_chunk()).map_or(0, |w| u32::from_be_bytes(*w))
        };
        // A tunnel's TEID follows Ethernet, IPv4, UDP and four octets; a downlink packet has the user's address there.
        let (teid, user) = (word(46), word(30));
        let session =
            if user == u32::from(crate::setup::ENDPOINTS.n3.1) { teid.wrapping_sub(1) } else { user };
        let flow = hash(session ^ word(34).rotate_left(7) ^ word(70));
        (session as usize % self.sessions.len(), flow as usize % self.flows.len())
    }
}

fn hash(key: u32) -> u32 {
    (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

fn count(line: &mut Line, bytes: u64) {
    line[0] += 1;
    line[1] += bytes;
}

fn prefetch_line(line: &Line) {
    prefetch_read(zerocopy::IntoBytes::as_bytes(line));
}

fn swap_addresses(mbuf: &mut Mbuf) {
    if let Some(addresses) = mbuf.data_mut().first_chunk_mut::<12>() {
        let (destination, source) = addresses.split_at_mut(6);
        destination.swap_with_slice(source);
    }
}
