//! Whether many sessions are slower to make than few, told apart from how fast the machine is meanwhile.
//!
//! Rates by the clock tell of the machine as much as of the node: of one executable they swing by a factor of two within a
//! run where others use the same CPUs or caches. So the control process is held against itself by the CPU time it takes, in
//! which waiting for others is not, and that against a bare answer's of the same moments, which takes longer where the CPU is
//! slower. Both are needed: in five runs beside builds on the same two CPUs the ratio was 0.62 to 1.68 by the clock, 0.81 to
//! 1.14 by the clock over the bare answer's, 0.80 to 1.17 by CPU time, and 0.83 to 0.97 by CPU time over the bare answer's.
//! The data plane's is left out: it looks for work while there is none, and that is counted with what it does.

use crate::control::Turn;
use crate::report::PfcpGrowth;
use crate::spread::rounded;

/// Requests of one kind: how many, and what they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Taken {
    requests: f64,
    seconds: f64,
    cpu_us: f64,
}

impl Taken {
    fn add(&mut self, (requests, rate): (u32, f64), cpu_ns: u64) {
        if requests > 0 {
            self.requests += f64::from(requests);
            self.seconds += f64::from(requests) / rate;
        }
        self.cpu_us += cpu_ns as f64 / 1e3;
    }

    fn rate(&self) -> f64 {
        self.requests / self.seconds.max(f64::MIN_POSITIVE)
    }

    fn cpu_us_each(&self) -> f64 {
        self.cpu_us / self.requests.max(1.0)
    }
}

/// A step of growth: sessions that were established, and bare answers between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// Sessions that were there after it.
    sessions: u32,
    established: Taken,
    bare: Taken,
}

impl Step {
    /// So many more were established at a rate, up to `sessions`, for which the control process had CPUs for so long.
    pub(super) fn established(&mut self, sessions: u32, (more, rate): (u32, f64), cpu_ns: u64) {
        self.sessions = sessions;
        self.established.add((more, rate), cpu_ns);
    }

    pub(super) fn bare(&mut self, requests: u32, Turn { rate, cpu_ns }: Turn) {
        self.bare.add((requests, rate), cpu_ns);
    }

    /// Establishments a second.
    pub(super) fn rate(&self) -> f64 {
        rounded(self.established.rate())
    }

    pub(super) fn told(&self) -> PfcpGrowth {
        PfcpGrowth {
            sessions: self.sessions,
            establishments_per_s: self.rate(),
            cpe_us: Some(rounded(self.established.cpu_us_each())),
            bare_us: Some(rounded(self.bare.cpu_us_each())),
            bare_per_s: Some(rounded(self.bare.rate())),
        }
    }
}

/// The last third of the steps by the first: below 1, more sessions are slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LastToFirst {
    /// By CPU time, over the bare answer's.
    pub(super) cpu: f64,
    /// By the clock: what keeps a step waiting counts.
    pub(super) wall: f64,
}

impl LastToFirst {
    /// Nothing, of fewer than two steps, or where a third came to nothing.
    pub(super) fn of(steps: &[Step]) -> Option<Self> {
        let third = (steps.len() / 3).max(1);
        let behind = steps.len().checked_sub(third).filter(|before| *before > 0)?;
        let [first, last] = [steps.get(..third)?, steps.get(behind..)?].map(|steps| {
            let all = |which: fn(&Step) -> Taken| sum(steps.iter().map(which));
            (all(|step| step.established), all(|step| step.bare))
        });
        let cost = |(established, bare): (Taken, Taken)| established.cpu_us_each() / bare.cpu_us_each();
        let (cpu, wall) = (cost(first) / cost(last), last.0.rate() / first.0.rate());
        (cpu.is_finite() && wall.is_finite()).then(|| Self { cpu: rounded(cpu), wall: rounded(wall) })
    }
}

fn sum(all: impl Iterator<Item = Taken>) -> Taken {
    all.fold(Taken::default(), |sum, taken| Taken {
        requests: sum.requests + taken.requests,
        seconds: sum.seconds + taken.seconds,
        cpu_us: sum.cpu_us + taken.cpu_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand sessions more at a rate, the CPU time of one in microseconds, and that of a bare answer.
    fn step(sessions: u32, rate: f64, (cpu_us, bare_cpu_us): (u64, u64)) -> Step {
        let mut step = Step::default();
        step.established(sessions, (1_000, rate), cpu_us * 1_000_000);
        step.bare(500, Turn { rate: 100_000.0, cpu_ns: bare_cpu_us * 500_000 });
        step
    }

    fn by_clock(rates: &[f64]) -> Option<f64> {
        let steps: Vec<_> = (1..).zip(rates).map(|(at, rate)| step(at * 1_000, *rate, (10, 5))).collect();
        LastToFirst::of(&steps).map(|it| it.wall)
    }

    fn by_cpu(costs: &[(u64, u64)]) -> Option<f64> {
        let steps: Vec<_> = (1..).zip(costs).map(|(at, cost)| step(at * 1_000, 1e4, *cost)).collect();
        LastToFirst::of(&steps).map(|it| it.cpu)
    }

    #[test]
    fn a_step_tells_what_it_came_to() {
        let mut step = step(1_000, 10_000.0, (20, 5));
        // As many again, at a quarter of the rate and three times the cost.
        step.established(2_000, (1_000, 2_500.0), 60_000_000);
        let expected = PfcpGrowth {
            sessions: 2_000,
            establishments_per_s: 4_000.0,
            cpe_us: Some(40.0),
            bare_us: Some(5.0),
            bare_per_s: Some(100_000.0),
        };
        assert_eq!(step.told(), expected);
    }

    #[test]
    fn the_last_third_is_compared_with_the_first() {
        assert_eq!(by_clock(&[4.0, 3.0]), Some(0.75));
        // 2,000 in 375 s, and in 1,333 s.
        assert_eq!(by_clock(&[8.0, 4.0, 9.0, 9.0, 3.0, 1.0]), Some(0.281));
        // Of three steps, as of five, one is a third.
        assert_eq!(by_clock(&[2.0, 2.0, 1.0]), Some(0.5));
        assert_eq!(by_clock(&[2.0, 9.0, 9.0, 9.0, 1.0]), Some(0.5));
        assert_eq!((by_clock(&[4.0]), by_clock(&[])), (None, None));
        assert_eq!(LastToFirst::of(&[Step::default(), step(1_000, 4.0, (10, 5))]), None, "none was answered");
    }

    #[test]
    fn a_machine_that_becomes_slower_is_not_the_node() {
        // Everything takes twice as long, on the CPU as by the clock.
        let steps = [step(1_000, 8_000.0, (10, 5)), step(2_000, 4_000.0, (20, 10))];
        assert_eq!(LastToFirst::of(&steps), Some(LastToFirst { cpu: 1.0, wall: 0.5 }));
        // Others have the CPU for half of the time.
        let steps = [step(1_000, 8_000.0, (10, 5)), step(2_000, 4_000.0, (10, 5))];
        assert_eq!(LastToFirst::of(&steps), Some(LastToFirst { cpu: 1.0, wall: 0.5 }));
    }

    #[test]
    fn a_node_that_becomes_slower_is_told_whatever_the_machine_does() {
        assert_eq!(by_cpu(&[(10, 5), (20, 5)]), Some(0.5));
        // The machine is twice as fast meanwhile, and hides it from the clock.
        assert_eq!(by_cpu(&[(10, 10), (10, 5)]), Some(0.5));
        assert_eq!(by_cpu(&[(10, 5), (12, 5), (12, 5), (12, 5), (15, 5), (25, 5)]), Some(0.55));
    }
}
