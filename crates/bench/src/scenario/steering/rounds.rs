//! Rounds of several workers at once, each on a thread and a CPU of its own; the first also lays out and takes back.

use super::formation::{Formation, Grounds, done};
use super::team::{Team, together};
use crate::dock::{Dock, Ledger};
use crate::machine::cpu_time;
use crate::meter::{ROUND, Rack, user_bytes};
use crate::product::NOW_NS;
use crate::sample::Sampler;
use crate::setup::N3;
use anyhow::ensure;
use dataplane::Worker;
use dplink::Books;
use packet::Buffer;
use std::time::{Duration, Instant};

/// A turn in which nothing came takes less; one that took longer was interrupted by other programs.
const IDLE_TURN_NS: u64 = 2_000;
/// Rounds before any is counted.
const WARM_UP: usize = 4;
/// A round takes no longer, or something is stuck.
const PATIENCE: Duration = Duration::from_secs(20);
/// Idle turns between two looks at the time.
const LOOKS: u32 = 1 << 20;

/// What one round took: nanoseconds of CPU time of each worker, without those in which it had nothing to do.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) packets: usize,
    pub(super) busy_ns: Vec<f64>,
}

/// Packets, and what they must become.
pub(super) struct Tools {
    pub(super) rack: Rack,
    pub(super) sampler: Sampler,
    /// Of the users' packets that were run, and how many those were.
    pub(super) bytes: u64,
    pub(super) packets: usize,
}

/// What the first worker does besides.
pub(super) struct Keeper<'a> {
    pub(super) grounds: &'a Grounds,
    pub(super) tools: &'a mut Tools,
    /// Whether packets come out as the product must make them.
    pub(super) is_sampled: bool,
}

/// Whoever works on packets, one vector after the other.
pub(super) trait Hand: Send {
    /// Packets received and taken.
    fn turn(&mut self) -> usize;

    /// Packets it is done with, ever: what it handed over is another's.
    fn done(&self) -> usize;
}

impl Hand for Worker<Dock> {
    fn turn(&mut self) -> usize {
        Self::turn(self, NOW_NS)
    }

    fn done(&self) -> usize {
        done(self)
    }
}

/// Runs rounds for so long; before the first time until every flow was met. Returns the rounds, and the share of packets
/// that was handed over.
///
/// # Errors
/// Packets that are missing or wrong; packets at a worker that does not own them.
pub(super) fn run(
    team: &Team<'_>,
    formation: &mut Formation,
    tools: &mut Tools,
    duration: Duration,
) -> anyhow::Result<(Vec<Round>, f64)> {
    let (before, packets) = (formation.books(), tools.packets);
    let meets = !std::mem::replace(&mut formation.has_met, true);
    let Formation { workers, grounds, .. } = formation;
    if meets {
        tools.rack.meet();
    }
    let rounds = stretch(team, workers, &mut Keeper { grounds, tools, is_sampled: true }, duration)?;
    let ran = tools.packets - packets;
    let share = audit(formation, &before, ran)?;
    Ok((rounds, share))
}

/// Rounds for so long, of which the first are not counted, nor those in which flows are met.
///
/// # Errors
/// Packets that are missing or wrong.
pub(super) fn stretch<H: Hand>(
    team: &Team<'_>,
    hands: &mut [H],
    keeper: &mut Keeper<'_>,
    duration: Duration,
) -> anyhow::Result<Vec<Round>> {
    let ledger = &keeper.grounds.ledger;
    let (mut rounds, mut rest) = (Vec::new(), WARM_UP);
    let mut start = Instant::now();
    together(
        team,
        hands,
        |at, hand| work(team.hz, (at, ledger), hand),
        |step| {
            let laid = keeper.lay()?;
            let busy_ns = step()?;
            keeper.take_back(laid)?;
            if keeper.tools.rack.is_meeting() || rest > 0 {
                (rest, start) = (rest.saturating_sub(1), Instant::now());
                return Ok(false);
            }
            rounds.push(Round { packets: laid, busy_ns });
            Ok(start.elapsed() >= duration)
        },
    )?;
    Ok(rounds)
}

/// Every packet was sent, by the worker that owns it, and none was dropped. Returns the share that was handed over.
fn audit(formation: &Formation, before: &[Books], packets: usize) -> anyhow::Result<f64> {
    let after = formation.books();
    let sum = |books: &[Books], pick: fn(&Books) -> u64| books.iter().map(pick).sum::<u64>();
    let grown = |pick: fn(&Books) -> u64| sum(&after, pick) - sum(before, pick);
    ensure!(after.iter().all(Books::balanced), "the books do not balance: {after:?}");
    ensure!(
        grown(|books| books.sent) == packets as u64 && grown(|books| books.dropped) == 0,
        "of {packets} packets some are missing: {after:?}, before {before:?}"
    );
    let handed = grown(|books| books.handed_in);
    ensure!(
        !formation.case.mode.leads() || handed == 0,
        "the card brought {handed} packets to workers that do not own them"
    );
    Ok(handed as f64 / packets.max(1) as f64)
}

/// One worker's part of a round: until all packets of all have gone out. Returns the nanoseconds it was busy.
fn work(hz: u64, (at, ledger): (usize, &Ledger), hand: &mut impl Hand) -> anyhow::Result<f64> {
    let most_idle = (hz as f64 / 1e9 * IDLE_TURN_NS as f64) as u64;
    let (start, patience) = (cpu_time(), Instant::now());
    let (mut idle, mut spent, mut looks) = (0, dpdk::tsc(), 0u32);
    loop {
        let taken = hand.turn();
        let now = dpdk::tsc();
        if taken > 0 {
            ledger.give(at, hand.done());
        } else {
            idle += now.wrapping_sub(spent).min(most_idle);
            looks = looks.wrapping_add(1);
            if ledger.sums().1 >= ledger.expected() {
                break;
            }
            ensure!(!looks.is_multiple_of(LOOKS) || patience.elapsed() < PATIENCE, "a round does not end");
        }
        spent = now;
    }
    let busy_ns = cpu_time().saturating_sub(start).as_nanos() as f64 - idle as f64 * 1e9 / hz as f64;
    Ok(busy_ns.max(0.0))
}

impl Keeper<'_> {
    fn lay(&mut self) -> anyhow::Result<usize> {
        let Tools { rack, sampler, bytes, .. } = &mut *self.tools;
        let count = (ROUND / 2 * self.grounds.docks.len()).min(ROUND * 2);
        let is_sampled = self.is_sampled;
        self.grounds.lay(rack, count, |port, mbuf| {
            if is_sampled {
                sampler.goes_in(port, mbuf);
                *bytes += user_bytes(mbuf.data().len(), port == N3);
            }
        })?;
        self.grounds.ledger.expect(count);
        Ok(count)
    }

    fn take_back(&mut self, laid: usize) -> anyhow::Result<()> {
        let mut back = 0;
        for (port, dock) in self.grounds.docks.iter().flat_map(|docks| docks.iter().enumerate()) {
            for mbuf in std::mem::take(&mut dock.quay().outbox) {
                if self.is_sampled {
                    self.tools.sampler.comes_out(port, &mbuf)?;
                }
                self.tools.rack.put(mbuf);
                back += 1;
            }
        }
        if self.is_sampled {
            self.tools.sampler.forget();
            self.tools.packets += laid;
        }
        ensure!(back == laid, "the books do not balance: {laid} packets went in and {back} came out");
        Ok(())
    }
}
