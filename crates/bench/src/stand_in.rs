//! A stand-in for the worker: it takes packets, does to them what the bare loop does, waits until as much time has passed as the worker
//! would need, and gives them back. It has no logic, and touches the memory that no user plane can avoid: so what a packet takes through
//! it is what rings, generator, queueing, that memory and the machine take. Interrupts take longer where it has driven the kernel's and
//! the hypervisor's own memory from the caches: 0.3 % of the time passed in turns of 20 to 100 us where the stand-in only waited.

use crate::gaps::{Gaps, Seen};
use crate::generator::{Generator, Trial};
use crate::link::{End, pair};
use crate::plan::Plan;
use crate::setup::{N3, N6};
use crate::station::{Station, Turn};
use crate::yardstick::Yardstick;
use dpdk::{Eal, Mbuf, Mempool};
use std::hint::spin_loop;
use std::time::Duration;

/// Packets taken from one port at once, as workers do.
const BURST: usize = 128;
/// How late the stand-in may begin with packets as if it had begun in time, in microseconds: longer than a turn's ends take, and
/// shorter than any time away, after which what has piled up takes its time.
const HURRY_US: u64 = 2;

/// On its thread, with the far ends of its ports.
pub(crate) struct StandIn {
    station: Station<Waiter>,
    far: [End; 2],
}

impl StandIn {
    /// On `cpu`, which its owner gives up while it works. It takes `cycles` a packet of the plan's traffic.
    ///
    /// # Errors
    /// There is no memory; no thread can be had.
    pub(crate) fn start(
        (eal, pool): (&'static Eal, &Mempool),
        cpu: usize,
        (plan, cycles): (&Plan, f64),
    ) -> anyhow::Result<Self> {
        let ((n3, far_n3), (n6, far_n6)) = (pair(eal, pool)?, pair(eal, pool)?);
        let hurry = eal.tsc_hz() / 1_000_000 * HURRY_US;
        let yardstick = Yardstick::new(plan)?;
        let waiter =
            Waiter { ends: [n3, n6], yardstick, cycles, hurry, free: 0, packets: Default::default() };
        let station = Station::start(eal, waiter, cpu)?;
        station.rest(true);
        Ok(Self { station, far: [far_n3, far_n6] })
    }

    /// A trial of the generator's through it, and what was seen of its thread.
    ///
    /// # Errors
    /// Those of the generator.
    pub(crate) fn trial(
        &mut self,
        generator: &mut Generator,
        pps: f64,
        length: Duration,
    ) -> anyhow::Result<(Trial, Seen)> {
        self.station.rest(false);
        self.station.gaps.take();
        let gaps: &Gaps = &self.station.gaps;
        let trial = generator.trial_elsewhere(&mut self.far, (pps, length), gaps);
        self.station.rest(true);
        Ok((trial?, self.station.gaps.take()))
    }

    /// Ends it.
    ///
    /// # Errors
    /// It broke.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.station.stop().map(drop)
    }
}

/// What runs on the thread.
struct Waiter {
    ends: [End; 2],
    yardstick: Yardstick,
    /// A packet.
    cycles: f64,
    hurry: u64,
    /// When it was done with all it had.
    free: u64,
    /// Of each port.
    packets: [Vec<Mbuf>; 2],
}

impl Turn for Waiter {
    fn turn(&mut self, _: u64) {
        let (mut taken, came) = (0, dpdk::tsc().saturating_sub(self.hurry));
        for (port, packets) in [N3, N6].into_iter().zip(&mut self.packets) {
            taken += self.ends[port].rx.receive(packets, BURST);
            self.yardstick.bare_vector(packets, port == N3);
        }
        if taken == 0 {
            return;
        }
        self.free = done(self.free, came, taken as f64 * self.cycles);
        while dpdk::tsc() < self.free {
            spin_loop();
        }
        let [n3, n6] = &mut self.ends;
        for (end, packets) in [n6, n3].into_iter().zip(&mut self.packets) {
            end.tx.send(packets);
            packets.clear();
        }
    }
}

/// When work of so many cycles is done that came at `came`, by one who was busy until `free`.
fn done(free: u64, came: u64, cycles: f64) -> u64 {
    free.max(came) + cycles as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_while_others_are_served_waits_for_them() {
        assert_eq!(done(100, 90, 50.0), 150, "in time");
        assert_eq!(done(100, 120, 50.0), 170, "it had nothing to do");
    }
}
