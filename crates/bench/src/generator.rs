//! An open-loop generator: packets leave when they are due, whether earlier ones came back or not, and carry the time
//! they were *due*. So a user plane that stands still is charged for every packet it kept waiting, and none is omitted.

use crate::calm::Calm;
use crate::gaps::{Gaps, Seen, Watch};
use crate::interrupt;
use crate::link::End;
use crate::plan::Plan;
use crate::product::arp_reply;
use crate::sample::{ONE_IN, Sampler};
use crate::setup::{ENDPOINTS, N3, N6, user};
use anyhow::Context;
use dpdk::{Mbuf, Mempool};
use hdrhistogram::Histogram;
use packet::Buffer;
use std::time::Duration;
use traffic::Packets;

/// Frames that are made beforehand and sent in turns.
const TEMPLATES: usize = 65_536;
/// Bytes of a frame that are written anew each time: all headers, and the first of the payload.
const HEAD: usize = 128;
/// Number and time, at the end of each frame.
const TAIL: usize = 16;
/// Where a frame says what it carries, and what says ARP.
const ETHERTYPE: std::ops::Range<usize> = 12..14;
const ARP: [u8; 2] = [0x08, 0x06];
/// Packets sent at once at most.
const BURST: u64 = 32;
/// A trial takes so many times its length at most.
const OVERTIME: f64 = 4.0;
/// Packets received at once at most.
const RECEIVE: usize = 64;
/// How long to wait for the last packets.
const DRAIN: Duration = Duration::from_millis(20);
/// Packets kept for comparison in one trial at most.
const KEPT: usize = 4_096;
/// Latencies above this count as this.
const LONGEST: Duration = Duration::from_secs(10);
/// Digits of a histogram.
const DIGITS: u8 = 3;

/// A frame without its payload.
struct Template {
    head: [u8; HEAD],
    length: u16,
    port: u8,
}

/// The far ends of the worker's ports, and what comes out of them.
pub(crate) struct Generator {
    ends: [End; 2],
    pool: Mempool,
    templates: Vec<Template>,
    next: usize,
    /// Of the first packet of this trial: one that comes back from an earlier trial is not counted.
    first: u64,
    hz: u64,
    pub(crate) gaps: Gaps,
    pub(crate) sampler: Sampler,
    /// Frames go past [`Generator::sampler`]: what they come back from is no user plane.
    is_elsewhere: bool,
    /// Packets the worker's rings took, and packets that came out, ARP included, of all trials.
    pub(crate) given: u64,
    pub(crate) back: u64,
    /// Packets to be sent, by port.
    out: [Vec<Mbuf>; 2],
    received: Vec<Mbuf>,
    /// Frames that came out and will be compared after the trial.
    kept: Vec<(u64, usize, Vec<u8>)>,
}

/// What came of one trial.
pub(crate) struct Trial {
    pub(crate) offered: u64,
    /// Found no room in the worker's ring.
    pub(crate) refused: u64,
    pub(crate) received: u64,
    /// From due to received, in cycles.
    pub(crate) latency: Histogram<u64>,
    /// The same, of those that came back while both threads ran and packets were sent in time.
    pub(crate) calm: Histogram<u64>,
    /// From due to sent, in cycles.
    pub(crate) lateness: Histogram<u64>,
    /// How long sending took, over how long it should have.
    pub(crate) stretch: f64,
    pub(crate) gaps: Seen,
}

impl Trial {
    fn new(hz: u64) -> anyhow::Result<Self> {
        let histogram = || histogram(hz);
        Ok(Self {
            offered: 0,
            refused: 0,
            received: 0,
            latency: histogram()?,
            calm: histogram()?,
            lateness: histogram()?,
            stretch: 1.0,
            gaps: Seen::default(),
        })
    }

    /// Packets that did not come back.
    pub(crate) fn lost(&self) -> u64 {
        self.offered.saturating_sub(self.received)
    }
}

/// When packets are due, in cycles.
struct Schedule {
    start: u64,
    /// Nothing is sent later, whatever is due.
    end: u64,
    interval: f64,
    total: u64,
}

impl Schedule {
    /// Packets that should have left by `now`.
    fn due(&self, now: u64) -> u64 {
        self.total.min((now.saturating_sub(self.start) as f64 / self.interval) as u64 + 1)
    }

    /// When a packet is due.
    fn time_of(&self, number: u64) -> u64 {
        self.start + (number as f64 * self.interval) as u64
    }
}

impl Generator {
    /// At the far `ends` of the worker's ports, with frames of the plan's traffic.
    ///
    /// # Errors
    /// A frame that cannot be made.
    pub(crate) fn new(ends: [End; 2], pool: &Mempool, plan: &Plan, hz: u64) -> anyhow::Result<Self> {
        let sampler = Sampler::new(crate::expected::reference(plan.pdrs)?);
        Ok(Self {
            ends,
            pool: pool.clone(),
            templates: templates(plan).context("a frame cannot be made")?,
            next: 0,
            first: 0,
            hz,
            gaps: Gaps::default(),
            sampler,
            is_elsewhere: false,
            given: 0,
            back: 0,
            out: Default::default(),
            received: Vec::with_capacity(RECEIVE),
            kept: Vec::new(),
        })
    }

    /// Offers `pps` packets a second for `length`, then waits for the last of them. `worker` is where the other thread notes when it was
    /// not running.
    ///
    /// # Errors
    /// A packet that came out wrong, or a pool that is empty.
    pub(crate) fn trial(&mut self, pps: f64, length: Duration, worker: &Gaps) -> anyhow::Result<Trial> {
        let gaps = std::mem::take(&mut self.gaps);
        let mut trial = Trial::new(self.hz)?;
        let total = (pps * length.as_secs_f64()) as u64;
        let start = dpdk::tsc();
        let end = start + (self.hz as f64 * length.as_secs_f64() * OVERTIME) as u64;
        let schedule = Schedule { start, end, interval: self.hz as f64 / pps, total };
        let mut calm = Calm::new([&gaps, worker], histogram(self.hz)?, (start, self.hz));
        self.offer((&mut trial, &mut calm), &schedule, gaps.watch(self.hz))?;
        self.drain((&mut trial, &mut calm))?;
        trial.calm = calm.end(dpdk::tsc());
        trial.gaps = gaps.take();
        self.gaps = gaps;
        for (name, port, frame) in std::mem::take(&mut self.kept) {
            self.sampler.compare(name, port, &frame)?;
        }
        self.sampler.forget();
        self.first += trial.offered;
        Ok(trial)
    }

    /// A trial at other ends, behind which nobody changes frames: they are compared with nothing, and in no books.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn trial_elsewhere(
        &mut self,
        ends: &mut [End; 2],
        (pps, length): (f64, Duration),
        worker: &Gaps,
    ) -> anyhow::Result<Trial> {
        let books = (self.given, self.back);
        std::mem::swap(&mut self.ends, ends);
        self.is_elsewhere = true;
        let trial = self.trial(pps, length, worker);
        self.is_elsewhere = false;
        std::mem::swap(&mut self.ends, ends);
        (self.given, self.back) = books;
        trial
    }

    /// Whether a frame is one of those that are compared.
    fn is_compared(&self, number: u64) -> bool {
        !self.is_elsewhere && number.is_multiple_of(ONE_IN) && self.kept.len() < KEPT
    }

    fn offer(
        &mut self,
        (trial, calm): (&mut Trial, &mut Calm<'_>),
        schedule: &Schedule,
        mut watch: Watch<'_>,
    ) -> anyhow::Result<()> {
        while trial.offered < schedule.total && !interrupt::asked() {
            let now = dpdk::tsc();
            watch.running(now);
            calm.look(now);
            if now > schedule.end {
                break;
            }
            let burst = BURST.min(schedule.due(now).saturating_sub(trial.offered));
            if burst > 0 {
                let lateness = now.saturating_sub(schedule.time_of(trial.offered));
                trial.lateness.saturating_record(lateness);
                calm.sent_late(lateness);
                self.send(trial, burst, schedule)?;
            }
            self.receive(trial, |latency| calm.record(latency))?;
        }
        let should = schedule.time_of(trial.offered).saturating_sub(schedule.start).max(1);
        trial.stretch = (dpdk::tsc() - schedule.start) as f64 / should as f64;
        Ok(())
    }

    fn send(&mut self, trial: &mut Trial, burst: u64, schedule: &Schedule) -> anyhow::Result<()> {
        let mut fresh = std::mem::take(&mut self.received);
        let taken = self.pool.alloc_bulk(&mut fresh, burst as usize);
        taken.context("the generator's pool is empty: packets do not come back")?;
        for mut mbuf in fresh.drain(..) {
            let due = schedule.time_of(trial.offered);
            let port = self.write(&mut mbuf, self.first + trial.offered, due)?;
            self.out[port].push(mbuf);
            trial.offered += 1;
        }
        self.received = fresh;
        for (end, out) in self.ends.iter_mut().zip(&mut self.out) {
            self.given += end.tx.send(out) as u64;
            // A card drops what its ring has no room for.
            trial.refused += out.len() as u64;
            Buffer::free_all(out);
        }
        Ok(())
    }

    /// Writes the next frame, with its number and the time it is due; returns the port it goes to.
    fn write(&mut self, mbuf: &mut Mbuf, number: u64, due: u64) -> anyhow::Result<usize> {
        let template = self.templates.get(self.next).context("there are no frames")?;
        self.next = (self.next + 1) % self.templates.len();
        let (length, port) = (usize::from(template.length), usize::from(template.port));
        let frame = mbuf.append(length).context("a packet has no room")?;
        let head = length.min(HEAD);
        frame[..head].copy_from_slice(&template.head[..head]);
        let (count, time) = frame[length - TAIL..].split_at_mut(TAIL / 2);
        count.copy_from_slice(&number.to_le_bytes());
        time.copy_from_slice(&due.to_le_bytes());
        if self.is_compared(number) {
            self.sampler.keep(number, port, frame);
        }
        Ok(port)
    }

    /// Takes what has come out, and gives each packet's latency to `record`, too; returns how much.
    fn receive(&mut self, trial: &mut Trial, mut record: impl FnMut(u64)) -> anyhow::Result<usize> {
        let mut all = 0;
        for port in [N3, N6] {
            let mut packets = std::mem::take(&mut self.received);
            all += self.ends[port].rx.receive(&mut packets, RECEIVE);
            packets.iter().for_each(Buffer::prefetch_data);
            let now = dpdk::tsc();
            self.back += packets.len() as u64;
            for mbuf in &packets {
                let frame = mbuf.data();
                if frame.get(ETHERTYPE) == Some(&ARP) {
                    self.answer(port)?;
                } else if let Some(due) = self.due(port, frame)? {
                    trial.received += 1;
                    let latency = now.saturating_sub(due);
                    trial.latency.saturating_record(latency);
                    record(latency);
                }
            }
            Buffer::free_all(&mut packets);
            self.received = packets;
        }
        Ok(all)
    }

    /// When a packet of this trial was due; `None` where it is of an earlier one.
    fn due(&mut self, port: usize, frame: &[u8]) -> anyhow::Result<Option<u64>> {
        let tail = frame.last_chunk::<TAIL>().context("a packet came out cut short")?;
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (number, due) = (word(tail), word(&tail[TAIL / 2..]));
        if number < self.first {
            return Ok(None);
        }
        if self.is_compared(number) {
            self.kept.push((number, port, frame.to_vec()));
        }
        Ok(Some(due))
    }

    /// The worker asks for its neighbour again, as it does every half minute.
    fn answer(&mut self, port: usize) -> anyhow::Result<()> {
        let reply = arp_reply(port).and_then(|frame| self.pool.packet(&frame));
        let mut reply = vec![reply.context("the generator's pool is empty")?];
        self.given += self.ends[port].tx.send(&mut reply) as u64;
        Ok(())
    }

    /// Takes what is still to come of packets that nobody waits for any more.
    ///
    /// # Errors
    /// A packet that came out wrong.
    pub(crate) fn empty(&mut self) -> anyhow::Result<()> {
        let mut nothing = Trial::new(self.hz)?;
        while self.receive(&mut nothing, |_| {})? > 0 {}
        Ok(())
    }

    fn drain(&mut self, (trial, calm): (&mut Trial, &mut Calm<'_>)) -> anyhow::Result<()> {
        let patience = self.hz / 1_000 * DRAIN.as_millis() as u64;
        let mut last = dpdk::tsc();
        while dpdk::tsc() - last < patience && trial.received + trial.refused < trial.offered {
            if self.receive(trial, |latency| calm.record(latency))? > 0 {
                last = dpdk::tsc();
            }
        }
        Ok(())
    }
}

fn histogram(hz: u64) -> Result<Histogram<u64>, hdrhistogram::CreationError> {
    Histogram::new_with_bounds(1, hz * LONGEST.as_secs(), DIGITS)
}

fn templates(plan: &Plan) -> Option<Vec<Template>> {
    let mut packets = Packets::new(plan.profile, ENDPOINTS, plan.seed);
    let mut frame = vec![0; 2_048];
    let flows_per_user = (plan.profile.flows / plan.profile.active).max(1);
    let mut template = || {
        let number = packets.any(plan.profile.active);
        let flow = number.wrapping_mul(flows_per_user) + packets.any(flows_per_user);
        let (length, up) = packets.write(user(number), flow, &mut frame)?;
        let head = *frame.first_chunk()?;
        Some(Template { head, length: length as u16, port: if up { N3 } else { N6 } as u8 })
    };
    (0..TEMPLATES).map(|_| template()).collect()
}
