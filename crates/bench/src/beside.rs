//! The yardsticks beside a measurement whose own rounds are of another kind: stretches of both between its trials, in
//! the same process, over packets of the same traffic.

use crate::contest::{Runner, Score};
use crate::interrupt;
use crate::meter::{Rack, timed};
use crate::plan::Plan;
use crate::replay::Replay;
use crate::spread::Spread;
use crate::yardstick::Yardstick;
use dpdk::Mempool;
use std::time::{Duration, Instant};

/// Rounds of each before any counts: their memory is touched then.
const WARM_UP: u32 = 8;

/// Both yardsticks, and what was found.
pub(crate) struct Beside {
    ports: [Replay; 2],
    yardstick: Yardstick,
    /// Nanoseconds of CPU time for each packet of floor and bare loop, one value for each stretch.
    times_ns: [Vec<f64>; 2],
}

impl Beside {
    /// With a line for each session and flow of the plan, warmed up with a rack's packets.
    ///
    /// # Errors
    /// There is no memory for the lines; packets are missing.
    pub(crate) fn new(plan: &Plan, pool: &Mempool, rack: &mut Rack) -> anyhow::Result<Self> {
        let ports = [Replay::new(pool), Replay::new(pool)];
        let mut beside = Self { ports, yardstick: Yardstick::new(plan)?, times_ns: Default::default() };
        for _ in 0..WARM_UP {
            beside.rounds(rack)?;
        }
        Ok(beside)
    }

    /// A stretch of this length, of one round of each at least; the median of its rounds is kept.
    ///
    /// # Errors
    /// Packets are missing.
    pub(crate) fn stretch(&mut self, rack: &mut Rack, length: Duration) -> anyhow::Result<()> {
        let (mut times, start): ([Vec<f64>; 2], _) = (Default::default(), Instant::now());
        loop {
            let found = self.rounds(rack)?;
            times.iter_mut().zip(found).for_each(|(times, time_ns)| times.push(time_ns));
            if start.elapsed() >= length || interrupt::asked() {
                break;
            }
        }
        for (all, one) in self.times_ns.iter_mut().zip(&times) {
            all.extend(Spread::of(one).map(|spread| spread.median));
        }
        Ok(())
    }

    /// What was found until now counts no more: packets of another kind come next.
    pub(crate) fn forget(&mut self) {
        self.times_ns = Default::default();
    }

    /// Beside them what the product took, in nanoseconds for each packet and core, a value for each stretch.
    pub(crate) fn score(&self, product_ns: &[f64]) -> Score {
        let [floor, bare] = self.times_ns.clone();
        Score { times_ns: [floor, bare, product_ns.to_vec()], ..Score::default() }
    }

    /// A round of each; nanoseconds for each packet.
    fn rounds(&mut self, rack: &mut Rack) -> anyhow::Result<[f64; 2]> {
        Ok([self.round(rack, Runner::Floor)?, self.round(rack, Runner::Bare)?])
    }

    fn round(&mut self, rack: &mut Rack, runner: Runner) -> anyhow::Result<f64> {
        let Self { ports, yardstick, .. } = self;
        let laid = rack.lay(ports, None)?;
        let took = timed(|| match runner {
            Runner::Floor => yardstick.floor(ports),
            _ => yardstick.bare(ports),
        });
        rack.take_back(ports, laid, None)?;
        Ok(took.cpu.as_nanos() as f64 / laid.packets.max(1) as f64)
    }
}
