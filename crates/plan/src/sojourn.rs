//! How long a packet is at a core that polls: from its arrival to the end of the turn it is served in.

/// Probabilities below this are nothing.
const NOTHING: f64 = 1e-9;
/// Longest turn that is looked at, in packets.
const PACKETS_MAX: usize = 4_096;
/// Points of a distribution.
const GRID: usize = 768;

/// A core that takes all that waits, works on it, sends it, and looks again. Times in any one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polled {
    /// Of a turn, beside its packets; above 0.
    pub turn: f64,
    /// Of each packet.
    pub cost: f64,
    /// Packets that come in a unit of time, as a Poisson process; `rate * cost` is below 1.
    pub rate: f64,
}

/// A distribution of times, on a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Sojourn {
    mean: f64,
    step: f64,
    /// The chance to be done by the end of each step.
    below: Vec<f64>,
}

impl Polled {
    /// The share of the time in which it works on packets.
    pub fn utilisation(&self) -> f64 {
        self.rate * self.cost
    }

    /// The mean of [`Polled::sojourn`], in closed form. A packet comes in a turn that is longer than others in proportion to
    /// its length, waits for its rest, and is served in the next with all that came in that turn.
    pub fn mean(&self) -> f64 {
        let (busy, [first, second]) = (self.utilisation(), self.moments());
        self.turn + self.cost + (0.5 + busy) * second / first
    }

    /// Of the length of turns: mean, and mean of the square. A turn's length is `turn` and `cost` times a Poisson number of
    /// the length before it.
    fn moments(&self) -> [f64; 2] {
        let busy = self.utilisation();
        let mean = self.turn / (1.0 - busy);
        let variance = self.cost * self.cost * self.rate * mean / (1.0 - busy * busy);
        [mean, mean * mean + variance]
    }

    /// Chances that a turn has 0, 1, 2... packets.
    fn turns(&self) -> Vec<f64> {
        let [mean, second] = self.moments();
        let variance = second - mean * mean;
        // Near the mean lengths are as normal ones, far beyond it they fall off as a gamma distribution's.
        let longest = mean + 12.0 * variance.sqrt() + 25.0 * variance / mean;
        let count = (((longest - self.turn) / self.cost) as usize + 8).min(PACKETS_MAX);
        let next: Vec<Vec<f64>> = (0..count).map(|packets| poisson(self.arrivals(packets), count)).collect();
        let mut chances = vec![0.0; count];
        chances.splice(..1, [1.0]);
        // What it began with is forgotten like the utilisation's powers.
        for _ in 0..10_000 {
            let mut after = vec![0.0; count];
            for (chance, next) in chances.iter().zip(&next).filter(|(chance, _)| **chance > NOTHING) {
                after.iter_mut().zip(next).for_each(|(after, step)| *after += chance * step);
            }
            let moved: f64 = after.iter().zip(&chances).map(|(one, other)| (one - other).abs()).sum();
            chances = after;
            if moved < 1e-10 {
                break;
            }
        }
        chances
    }

    fn length(&self, packets: usize) -> f64 {
        self.turn + self.cost * packets as f64
    }

    /// Packets that come, on average, in a turn of so many.
    fn arrivals(&self, packets: usize) -> f64 {
        self.rate * self.length(packets)
    }

    /// How long a packet is there.
    pub fn sojourn(&self) -> Sojourn {
        let [first, second] = self.moments();
        let variance = second - first * first;
        let longest = 3.0 * second / first + 12.0 * variance.sqrt() + 30.0 * variance / first + self.cost;
        let step = longest / GRID as f64;
        let mut below = vec![0.0; GRID];
        let turns = self.turns();
        for (packets, chance) in turns.iter().enumerate() {
            let (length, met) = (self.length(packets), chance * self.length(packets) / first);
            let others = poisson(self.arrivals(packets), turns.len());
            for (others, chance) in others.iter().enumerate() {
                let weight = met * chance;
                if weight > NOTHING {
                    // The rest of the turn is anything up to all of it, then comes a turn with the packet and the others.
                    let own = self.length(others + 1);
                    let done = |at: usize| (((at + 1) as f64 * step - own) / length).clamp(0.0, 1.0);
                    below.iter_mut().enumerate().for_each(|(at, below)| *below += weight * done(at));
                }
            }
        }
        Sojourn { mean: self.mean(), step, below }
    }
}

/// Chances of 0, 1, 2... below `count`.
fn poisson(mean: f64, count: usize) -> Vec<f64> {
    let ratio = |chance: &mut f64, number: usize| {
        let here = *chance;
        *chance *= mean / (number as f64 + 1.0);
        Some(here)
    };
    (0..count).scan((-mean).exp(), ratio).collect()
}

impl Sojourn {
    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The time by which this share of the packets is through.
    pub fn quantile(&self, share: f64) -> f64 {
        let at = self.below.partition_point(|below| *below < share);
        self.step * (at.min(GRID - 1) + 1) as f64
    }

    /// One after the other, independent of each other.
    pub fn then(&self, other: &Self) -> Self {
        const PARTS: usize = 200;
        let part = |part: usize| self.quantile((part as f64 + 0.5) / PARTS as f64);
        let firsts: Vec<f64> = (0..PARTS).map(part).collect();
        let span = |sojourn: &Self| sojourn.step * GRID as f64;
        let step = (span(self) + span(other)) / GRID as f64;
        let below = |at: usize| {
            let time = (at + 1) as f64 * step;
            firsts.iter().map(|first| other.below(time - first)).sum::<f64>() / PARTS as f64
        };
        Self { mean: self.mean + other.mean, step, below: (0..GRID).map(below).collect() }
    }

    /// So large a share of the packets as `share` goes this way, the rest the other.
    pub fn or(&self, share: f64, other: &Self) -> Self {
        let step = self.step.max(other.step);
        let below = |at: usize| {
            let time = (at + 1) as f64 * step;
            share * self.below(time) + (1.0 - share) * other.below(time)
        };
        let mean = share * self.mean + (1.0 - share) * other.mean;
        Self { mean, step, below: (0..GRID).map(below).collect() }
    }

    fn below(&self, time: f64) -> f64 {
        if time <= 0.0 {
            return 0.0;
        }
        // Between two points of the grid, in proportion.
        let place = time / self.step;
        let at = |place: usize| match place.checked_sub(1) {
            None => 0.0,
            Some(place) => self.below.get(place).copied().unwrap_or(1.0),
        };
        let (low, high) = (at(place as usize), at(place as usize + 1));
        low + (high - low) * place.fract()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, error: f64) {
        assert!((found / expected - 1.0).abs() < error, "{found}, not {expected}");
    }

    /// The mean sojourn of the M/D/1 queue.
    fn pollaczek_khinchine(cost: f64, busy: f64) -> f64 {
        cost + cost * busy / (2.0 * (1.0 - busy))
    }

    #[test]
    fn the_distribution_has_the_mean_of_the_closed_form() {
        for busy in [0.1, 0.5, 0.9] {
            for turn in [0.2, 1.0, 20.0] {
                let polled = Polled { turn, cost: 1.0, rate: busy };
                let sojourn = polled.sojourn();
                // The mean is the integral of the chance not to be done.
                let mean = sojourn.step * sojourn.below.iter().map(|below| 1.0 - below).sum::<f64>()
                    + sojourn.step / 2.0;
                near(mean, polled.mean(), 0.01);
            }
        }
    }

    #[test]
    fn turns_that_cost_nothing_leave_a_queue_that_sends_at_the_end_of_its_turn() {
        for busy in [0.1, 0.5, 0.9] {
            let polled = Polled { turn: 1e-9, cost: 1.0, rate: busy };
            let wait_for_the_others = busy * busy / (2.0 * (1.0 - busy * busy));
            near(polled.mean(), pollaczek_khinchine(1.0, busy) + wait_for_the_others, 1e-6);
        }
    }

    #[test]
    fn an_idle_core_takes_half_a_turn_and_one() {
        let polled = Polled { turn: 10.0, cost: 1.0, rate: 1e-9 };
        near(polled.mean(), 16.0, 1e-6);
        near(polled.sojourn().quantile(0.99), 11.0 + 9.9, 0.01);
    }

    #[test]
    fn one_after_the_other_takes_as_long_as_both() {
        let one = Polled { turn: 4.0, cost: 1.0, rate: 0.5 }.sojourn();
        let both = one.then(&one);
        near(both.mean(), 2.0 * one.mean(), 1e-9);
        assert!(both.quantile(0.99) < 2.0 * one.quantile(0.99), "two of the worst seldom meet");
        assert!(both.quantile(0.5) > one.quantile(0.5) * 1.8);
        near(one.or(1.0, &both).quantile(0.5), one.quantile(0.5), 0.02);
        near(one.or(0.5, &both).mean(), 1.5 * one.mean(), 1e-9);
    }
}
