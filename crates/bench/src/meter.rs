//! Rounds: packets are laid out, not timed; then they are run, timed; then they are counted.

use crate::machine::cpu_time;
use crate::nic::Nic;
use crate::plan::Plan;
use crate::replay::Replay;
use crate::sample::Sampler;
use crate::setup::{ENDPOINTS, N3, N6, TUNNEL_HEADERS, user};
use anyhow::{Context, bail};
use dpdk::{Mbuf, Mempool};
use packet::{Buffer, HEADROOM, ethernet, ipv4};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;
use traffic::{Flows, Packets, Profile};

/// Packets of a round: their headers together fit the last-level cache, as a network card would leave them there.
pub(crate) const ROUND: usize = 16_384;
/// Packets that stay in a pool, for those a worker makes itself.
const RESERVE: usize = 1_024;
/// Last octet of the first of several gNBs.
const FIRST_GNB: u8 = 100;
/// Longest frame of any profile, and then some.
const MAX_FRAME: usize = 1_600;

/// Packets waiting to be used, shuffled, and the stream that fills them.
pub(crate) struct Rack {
    idle: VecDeque<Mbuf>,
    stream: Stream,
    /// Twice the number of the flow whose packet comes next, and one more on the way down; while flows are met.
    meeting: Range<u64>,
    /// Where a card spreads the stream over several workers: how many, and which queue is ours.
    share: Option<(Nic, usize, usize)>,
    /// Users' tunnels come from so many gNBs.
    gnbs: u32,
    /// Of a hundred packets, so many are the first user's, whoever's turn it is.
    of_first: u32,
}

/// Where packets come from.
enum Stream {
    /// Packets of flows that never begin nor end, with nothing in them.
    Endless { packets: Packets, active: u32, flows_per_user: u32 },
    /// Flows that begin, say what they are about, and end.
    Living(Box<Flows>),
}

/// A round that was laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Laid {
    pub(crate) packets: usize,
    /// Bytes of the users' own packets.
    pub(crate) bytes: u64,
}

impl Laid {
    /// Of two rounds.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl Rack {
    /// All packets of a pool but a few.
    ///
    /// # Errors
    /// The pool is in use.
    pub(crate) fn new(pool: &Mempool, plan: &Plan) -> anyhow::Result<Self> {
        let mut idle = Vec::new();
        let count = (pool.capacity() as usize).saturating_sub(RESERVE);
        pool.alloc_bulk(&mut idle, count).context("the pool is smaller than it should be")?;
        idle.shuffle(&mut Pcg64::seed_from_u64(plan.seed));
        let stream = Stream::Endless {
            packets: Packets::new(plan.profile, ENDPOINTS, plan.seed),
            active: plan.profile.active,
            flows_per_user: (plan.profile.flows / plan.profile.active).max(1),
        };
        Ok(Self { idle: idle.into(), stream, meeting: 0..0, share: None, gnbs: 1, of_first: 0 })
    }

    /// With flows that begin and end, instead of endless ones.
    pub(crate) fn living(self, flows: Flows) -> Self {
        Self { stream: Stream::Living(Box::new(flows)), ..self }
    }

    /// The flows, where they begin and end.
    pub(crate) fn flows(&mut self) -> Option<&mut Flows> {
        match &mut self.stream {
            Stream::Living(flows) => Some(flows),
            Stream::Endless { .. } => None,
        }
    }

    /// The next packets are one of each flow each way; random ones follow again.
    pub(crate) fn meet(&mut self) {
        if let Stream::Endless { active, flows_per_user, .. } = self.stream {
            self.meeting = 0..2 * u64::from(active) * u64::from(flows_per_user);
        }
    }

    /// Whether there are still flows to meet.
    pub(crate) fn is_meeting(&self) -> bool {
        !self.meeting.is_empty()
    }

    /// Of a stream for several workers, only what a card brings to `queue`. All racks of one plan draw the same stream.
    pub(crate) fn behind(self, nic: Nic, queue: usize, queues: usize) -> Self {
        Self { share: Some((nic, queue, queues)), ..self }
    }

    /// Packets are as long from now on, and go up as often, as those of a profile; flows stay those they are.
    pub(crate) fn set_lengths(&mut self, profile: &Profile) {
        if let Stream::Endless { packets, .. } = &mut self.stream {
            packets.set_lengths(profile);
        }
    }

    /// Tunnels come from so many gNBs from now on, each with an address of its own.
    pub(crate) fn set_gnbs(&mut self, gnbs: u32) {
        self.gnbs = gnbs;
    }

    /// So many of a hundred packets are the first user's from now on, whoever's turn it is.
    pub(crate) fn set_share_of_first(&mut self, percent: u32) {
        self.of_first = percent;
    }

    /// Takes packets of its pool in the place of so many that were dropped.
    ///
    /// # Errors
    /// They are not back in the pool.
    pub(crate) fn replace(&mut self, pool: &Mempool, dropped: usize) -> anyhow::Result<()> {
        let mut fresh = Vec::new();
        pool.alloc_bulk(&mut fresh, dropped).context("what was dropped is not back in its pool")?;
        self.idle.extend(fresh);
        Ok(())
    }

    /// The next packet of the stream, and whether it goes up.
    ///
    /// # Errors
    /// It does not fit its buffer, or the pool is used up.
    pub(crate) fn next(&mut self) -> anyhow::Result<(Mbuf, bool)> {
        let mut mbuf = self.idle.pop_front().context("more packets are under way than the pool holds")?;
        let up = self.fill(&mut mbuf)?;
        Ok((mbuf, up))
    }

    /// Takes one back.
    pub(crate) fn put(&mut self, mbuf: Mbuf) {
        self.idle.push_back(mbuf);
    }

    /// Lays a round of packets before the two ports.
    ///
    /// # Errors
    /// Packets do not fit their buffers, or more come to this worker than its pool holds.
    pub(crate) fn lay(
        &mut self,
        ports: &[Replay; 2],
        mut sampler: Option<&mut Sampler>,
    ) -> anyhow::Result<Laid> {
        let mut laid = Laid::default();
        let queues = self.share.as_ref().map_or(1, |(_, _, queues)| *queues);
        for _ in 0..ROUND * queues {
            let mut mbuf =
                self.idle.pop_front().context("more packets come to one queue than its pool holds")?;
            let up = self.fill(&mut mbuf)?;
            if !self.is_ours(mbuf.data(), up) {
                self.idle.push_front(mbuf);
                continue;
            }
            let port = if up { N3 } else { N6 };
            if let Some(sampler) = &mut sampler {
                sampler.goes_in(port, &mbuf);
            }
            laid.packets += 1;
            laid.bytes += user_bytes(mbuf.data().len(), up);
            ports[port].wire.borrow_mut().inbox.push(mbuf);
        }
        Ok(laid)
    }

    /// Writes the next packet of the stream; whether it goes up.
    fn fill(&mut self, mbuf: &mut Mbuf) -> anyhow::Result<bool> {
        rewind(mbuf).context("a packet has no room")?;
        let frame = mbuf.append(MAX_FRAME).context("a packet has no room")?;
        let written = match &mut self.stream {
            Stream::Living(flows) => {
                flows.next(frame).map(|written| (written.user, (written.length, written.uplink)))
            }
            Stream::Endless { packets, active, flows_per_user } => {
                let next = self.meeting.next();
                // In turns: a user whose flows all came at once would have more than its share of a worker.
                let turn = |next: u64| {
                    let (turn, active) = (u32::try_from(next / 2).ok()?, *active);
                    Some((turn % active * *flows_per_user + turn / active, next.is_multiple_of(2)))
                };
                let met = next.and_then(turn);
                let drawn = |packets: &mut Packets| {
                    let is_of_first = self.of_first > 0 && packets.any(100) < self.of_first;
                    draw(packets, if is_of_first { 1 } else { *active }, *flows_per_user)
                };
                let flow = met.map_or_else(|| drawn(packets), |(flow, _)| flow);
                let number = flow / *flows_per_user;
                let written = match met {
                    Some((_, up)) => {
                        packets.write_way(user(number), (flow, up), frame).map(|length| (length, up))
                    }
                    None => packets.write(user(number), flow, frame),
                };
                written.map(|written| (number, written))
            }
        };
        let (user, (length, up)) = written.context("a packet does not fit its buffer")?;
        mbuf.truncate(length).context("a packet is shorter than it is")?;
        if up && self.gnbs > 1 {
            move_to_gnb(mbuf.data_mut(), user % self.gnbs).context("a frame without a tunnel")?;
        }
        Ok(up)
    }

    fn is_ours(&self, frame: &[u8], up: bool) -> bool {
        self.share.as_ref().is_none_or(|(nic, queue, _)| nic.queue(frame, up) == *queue)
    }

    /// Takes the packets back.
    ///
    /// # Errors
    /// Fewer or more came out than went in, or one came out wrong.
    pub(crate) fn take_back(
        &mut self,
        ports: &[Replay; 2],
        laid: Laid,
        mut sampler: Option<&mut Sampler>,
    ) -> anyhow::Result<()> {
        let before = self.idle.len();
        for (port, replay) in ports.iter().enumerate() {
            let mut outbox = std::mem::take(&mut replay.wire.borrow_mut().outbox);
            if let Some(sampler) = &mut sampler {
                outbox.iter().try_for_each(|mbuf| sampler.comes_out(port, mbuf))?;
            }
            self.idle.extend(outbox.drain(..));
            replay.wire.borrow_mut().outbox = outbox;
        }
        sampler.into_iter().for_each(Sampler::forget);
        let back = self.idle.len() - before;
        if back != laid.packets {
            bail!("the books do not balance: {} packets went in and {back} came out", laid.packets);
        }
        Ok(())
    }
}

/// Any flow of any active user.
fn draw(packets: &mut Packets, active: u32, flows_per_user: u32) -> u32 {
    let number = packets.any(active);
    number.wrapping_mul(flows_per_user) + packets.any(flows_per_user)
}

/// Users' frames of gNB 0 are as they are; those of others come from another address.
fn move_to_gnb(frame: &mut [u8], gnb: u32) -> Option<()> {
    let header = frame.get_mut(ethernet::LENGTH..)?;
    let gnbs = FIRST_GNB.wrapping_add(u8::try_from(gnb).ok()?);
    *header.get_mut(15)? = gnbs;
    seal(header)
}

/// Writes the checksum of an IPv4 header without options.
pub(crate) fn seal(header: &mut [u8]) -> Option<()> {
    // It covers the header, itself taken for zero (RFC 791 3.1).
    header.get_mut(10..12)?.fill(0);
    let words = header.get(..ipv4::LENGTH)?.chunks_exact(2);
    let sum: u32 = words.map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = ((sum & 0xffff) + (sum >> 16)) as u16;
    header.get_mut(10..12)?.copy_from_slice(&(!sum).to_be_bytes());
    Some(())
}

/// Bytes of the user's own packet in a frame.
pub(crate) fn user_bytes(frame: usize, up: bool) -> u64 {
    let headers = ethernet::LENGTH + if up { TUNNEL_HEADERS } else { 0 };
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

/// What a round took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Took {
    /// CPU time. Other programs may take the CPU away meanwhile: a long round would then look longer than it is, and
    /// a short one not.
    pub(crate) cpu: Duration,
    /// Cycles of the time stamp counter, which runs on meanwhile.
    pub(crate) cycles: u64,
}

impl Took {
    /// Of two rounds.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, cycles: self.cycles + other.cycles }
    }

    /// CPU time over all time, where `hz` cycles make a second.
    pub(crate) fn share(&self, hz: u64) -> f64 {
        (self.cpu.as_secs_f64() * hz as f64 / self.cycles.max(1) as f64).min(1.0)
    }
}

/// Runs a round.
pub(crate) fn timed(mut run: impl FnMut()) -> Took {
    let (start, cycles) = (cpu_time(), dpdk::tsc());
    run();
    Took { cpu: cpu_time().saturating_sub(start), cycles: dpdk::tsc().wrapping_sub(cycles) }
}
