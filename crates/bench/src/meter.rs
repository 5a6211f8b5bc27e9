//! Rounds: packets are laid out, not timed; then they are run, timed; then they are counted.

use crate::args::Plan;
use crate::replay::Replay;
use crate::setup::{ENDPOINTS, Memory, user};
use anyhow::{Context, bail};
use dpdk::Mbuf;
use packet::{Buffer, HEADROOM};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use traffic::Packets;

/// Packets of a round: their headers together fit the last-level cache, as a network card would leave them there.
pub(crate) const ROUND: usize = 16_384;

/// Packets waiting to be used, shuffled, and the stream that fills them.
pub(crate) struct Rack {
    idle: Vec<Mbuf>,
    packets: Packets,
    active: u32,
    flows_per_user: u32,
}

impl Rack {
    pub(crate) fn new(memory: &Memory, plan: &Plan) -> anyhow::Result<Self> {
        let mut idle = Vec::new();
        // Some stay in the pool, for packets the worker makes itself.
        let count = memory.pool.capacity() as usize - 1_024;
        memory.pool.alloc_bulk(&mut idle, count).context("the pool is smaller than it should be")?;
        idle.shuffle(&mut Pcg64::seed_from_u64(plan.seed));
        let packets = Packets::new(plan.profile, ENDPOINTS, plan.seed);
        let active = plan.profile.active;
        Ok(Self { idle, packets, active, flows_per_user: (plan.profile.flows / active).max(1) })
    }

    /// Lays a round of packets before the two ports; returns their bytes on the users' side.
    pub(crate) fn lay(&mut self, n3: &Replay, n6: &Replay) -> anyhow::Result<u64> {
        let mut bytes = 0;
        for mut mbuf in self.idle.drain(..ROUND) {
            let number = self.packets.any(self.active);
            let flow = number.wrapping_mul(self.flows_per_user) + self.packets.any(self.flows_per_user);
            rewind(&mut mbuf).context("a packet has no room")?;
            let frame = mbuf.append(MAX_FRAME).context("a packet has no room")?;
            let written = self.packets.write(user(number), flow, frame);
            let (length, up) = written.context("a packet does not fit its buffer")?;
            mbuf.truncate(length).context("a packet is shorter than it is")?;
            bytes += user_bytes(length, up);
            let port = if up { n3 } else { n6 };
            port.wire.borrow_mut().inbox.push(mbuf);
        }
        Ok(bytes)
    }

    /// Takes the packets back.
    ///
    /// # Errors
    /// Fewer or more came out than went in.
    pub(crate) fn take_back(&mut self, n3: &Replay, n6: &Replay) -> anyhow::Result<()> {
        let before = self.idle.len();
        for port in [n3, n6] {
            self.idle.append(&mut port.wire.borrow_mut().outbox);
        }
        let back = self.idle.len() - before;
        if back != ROUND {
            bail!("the books do not balance: {ROUND} packets went in and {back} came out");
        }
        Ok(())
    }
}

/// Longest frame of any profile, and then some.
const MAX_FRAME: usize = 1_600;

/// Bytes of the user's own packet in a frame.
fn user_bytes(frame: usize, up: bool) -> u64 {
    let tunnel = packet::ipv4::LENGTH
        + packet::udp::LENGTH
        + packet::gtpu::encapsulated_length(Some(packet::gtpu::PduSession::uplink(0)));
    let headers = packet::ethernet::LENGTH + if up { tunnel } else { 0 };
    frame.saturating_sub(headers) as u64
}

/// Empties a packet and gives it the headroom that a port gives it.
fn rewind(mbuf: &mut Mbuf) -> Option<()> {
    mbuf.truncate(0)?;
    let headroom = mbuf.headroom_bytes();
    if headroom > HEADROOM {
        mbuf.prepend(headroom - HEADROOM)?;
    } else {
        mbuf.append(HEADROOM - headroom)?;
        mbuf.trim_front(HEADROOM - headroom)?;
    }
    mbuf.truncate(0)
}

/// Cycles a round took.
pub(crate) fn timed(mut run: impl FnMut()) -> u64 {
    let start = dpdk::tsc();
    run();
    dpdk::tsc().wrapping_sub(start)
}

/// Figures of many rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    cycles_per_packet: Vec<f64>,
}

impl Rounds {
    pub(crate) fn add(&mut self, cycles: u64) {
        self.cycles_per_packet.push(cycles as f64 / ROUND as f64);
    }

    /// Least, median and most.
    pub(crate) fn spread(&self) -> [f64; 3] {
        let mut sorted = self.cycles_per_packet.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
        [at(0), at(sorted.len() / 2), at(sorted.len().saturating_sub(1))]
    }
}
