//! Throughput and latency over the number of cores.

use crate::{Costs, Polled, Sojourn, busiest_of_few, busiest_of_many};
use serde::Serialize;

/// Latency is told at this share of what a way carries.
pub const LOAD: f64 = 0.7;

/// How packets get to the workers that own their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The card hashes users' addresses.
    InnerHash,
    /// The card hashes outer headers, of tunnels from so many gNBs.
    OuterHash(u32),
    /// Some cores distribute, the others process.
    Distribution,
}

/// How long packets are under way, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The mean.
    pub mean_us: f64,
    /// 99 of 100 are not longer.
    pub p99_us: f64,
}

/// What is modelled of one way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Modelled {
    /// Which.
    pub way: Way,
    /// All cores together, in a million packets a second.
    pub mpps: f64,
    /// Of the same, in Gb/s of users' packets.
    pub gbps: f64,
    /// Times what one core alone carries that runs to completion.
    pub times_one: f64,
    /// Cores that only distribute.
    pub distributors: u32,
    /// At [`LOAD`] of `mpps`, through the busiest core.
    pub latency: Latency,
    /// At [`LOAD`] of what distribution carries with as many cores, where this way carries that.
    pub latency_at_distribution: Option<Latency>,
}

/// One number of cores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// Cores.
    pub cores: u32,
    /// Inner hash, outer hash with each number of gNBs, distribution (of two cores or more).
    pub ways: Vec<Modelled>,
}

/// What cores carry, for each number of them (1 to 128) and of gNBs (1 to 128).
pub fn scaling(costs: &Costs, cores: &[u32], gnbs: &[u32]) -> Vec<Scaling> {
    let of = |cores: &u32| {
        let cores = (*cores).clamp(1, 128);
        let distribution = (cores > 1).then_some(Way::Distribution);
        let outer = gnbs.iter().map(|gnbs| Way::OuterHash(*gnbs));
        let ways = std::iter::once(Way::InnerHash).chain(outer).chain(distribution);
        let models: Vec<Model> = ways.map(|way| Model::new(costs, cores, way)).collect();
        let distribution = models.iter().find(|model| model.way == Way::Distribution).map(Model::rate);
        Scaling { cores, ways: models.iter().map(|model| model.told(distribution)).collect() }
    };
    cores.iter().map(of).collect()
}

/// A core: cycles of its work for each packet of all cores together, and how many pieces of work that is.
#[derive(Clone, Copy, Debug)]
struct Core {
    cycles: f64,
    pieces: f64,
}

/// One way with so many cores.
struct Model<'a> {
    costs: &'a Costs,
    way: Way,
    distributors: u32,
    /// Where packets come in: the busiest.
    first: Core,
    /// Where those go that are handed over: the share of the packets, and the core.
    second: Option<(f64, Core)>,
}

impl<'a> Model<'a> {
    fn new(costs: &'a Costs, cores: u32, way: Way) -> Self {
        match way {
            Way::InnerHash => {
                let share = busiest_of_many(cores, costs.users);
                let first = Core { cycles: share * costs.direct_of(cores), pieces: share };
                Self { costs, way, distributors: 0, first, second: None }
            }
            Way::OuterHash(gnbs) => Self::outer(costs, cores, gnbs),
            Way::Distribution => Self::distribution(costs, cores),
        }
    }

    fn outer(costs: &'a Costs, cores: u32, gnbs: u32) -> Self {
        let one = 1.0 / f64::from(cores.max(1));
        let core = |comes_in: f64| {
            let is_given = (1.0 - comes_in) * one;
            let own = comes_in * (one * costs.direct_of(cores) + (1.0 - one) * costs.distribute);
            Core { cycles: own + is_given * costs.owner_among_equals, pieces: comes_in + is_given }
        };
        let busiest = costs.uplink * busiest_of_few(cores, gnbs) + (1.0 - costs.uplink) * one;
        // Where packets go there are all cores alike, but the busiest may be slower than the first where handing over is cheap.
        let (first, second) = (core(busiest), core(one));
        let way = Way::OuterHash(gnbs);
        let second = (cores > 1).then_some((1.0 - one, second));
        Self { costs, way, distributors: 0, first, second }
    }

    /// The number of distributors with which the slowest core is fastest.
    fn distribution(costs: &'a Costs, cores: u32) -> Self {
        let with = |distributors: u32| {
            let first = 1.0 / f64::from(distributors);
            let second = busiest_of_many(cores - distributors, costs.users);
            let first = Core { cycles: first * costs.distribute, pieces: first };
            let second = Some((1.0, Core { cycles: second * costs.owner, pieces: second }));
            Self { costs, way: Way::Distribution, distributors, first, second }
        };
        let fastest = (1..cores).map(with).max_by(|one, other| one.rate().total_cmp(&other.rate()));
        fastest.unwrap_or_else(|| with(1))
    }

    /// Packets in a cycle that the busiest core allows.
    fn rate(&self) -> f64 {
        let second = self.second.map_or(0.0, |(_, core)| core.cycles);
        1.0 / self.first.cycles.max(second)
    }

    /// With so many packets in a cycle.
    fn latency(&self, rate: f64) -> Latency {
        let at = |core: Core| Polled {
            turn: self.costs.turn,
            cost: core.cycles / core.pieces,
            rate: rate * core.pieces,
        };
        let first = at(self.first).sojourn();
        let all: Sojourn = match self.second {
            None => first,
            Some((share, core)) => first.then(&at(core).sojourn()).or(share, &first),
        };
        let us = |cycles: f64| cycles / self.costs.hz * 1e6;
        Latency { mean_us: us(all.mean()), p99_us: us(all.quantile(0.99)) }
    }

    fn told(&self, distribution: Option<f64>) -> Modelled {
        let Costs { hz, direct, bytes, .. } = self.costs;
        let mpps = self.rate() * hz / 1e6;
        let same = distribution.filter(|rate| LOAD * rate <= 0.9 * self.rate());
        Modelled {
            way: self.way,
            mpps,
            gbps: mpps * bytes * 8.0 / 1e3,
            times_one: self.rate() * direct,
            distributors: self.distributors,
            latency: self.latency(LOAD * self.rate()),
            latency_at_distribution: same.map(|rate| self.latency(LOAD * rate)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OfSeveral;

    /// Many users, so that cores have their part and no more.
    fn costs() -> Costs {
        Costs {
            hz: 2e9,
            direct: 160.0,
            direct_of_several: vec![],
            distribute: 60.0,
            owner: 140.0,
            owner_among_equals: 180.0,
            turn: 500.0,
            bytes: 690.0,
            users: 1e12,
            uplink: 0.5,
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-3, "{found}, not {expected}");
    }

    fn of(cores: u32, way: Way) -> Modelled {
        let scaling = scaling(&costs(), &[cores], &[1, 4, 64]);
        *scaling[0].ways.iter().find(|modelled| modelled.way == way).unwrap()
    }

    #[test]
    fn inner_hash_grows_with_the_cores_that_divide_the_table() {
        near(of(1, Way::InnerHash).mpps, 2e9 / 160.0 / 1e6);
        near(of(8, Way::InnerHash).times_one, 8.0);
        near(of(7, Way::InnerHash).times_one, 128.0 / 19.0);
        near(of(8, Way::InnerHash).gbps, 100.0 * 690.0 * 8.0 / 1e3);
    }

    #[test]
    fn several_cores_are_as_slow_as_they_were_measured_beside_one_alone() {
        let several = [(2, 200.0), (4, 320.0)].map(|(workers, cycles)| OfSeveral { workers, cycles });
        let costs = Costs { direct_of_several: several.to_vec(), ..costs() };
        let rows = scaling(&costs, &[1, 2, 4, 8], &[1]);
        let times = |at: usize, way: usize| rows[at].ways[way].times_one;
        near(rows[0].ways[0].mpps, 2e9 / 160.0 / 1e6);
        near(times(0, 0), 1.0);
        near(times(1, 0), 2.0 * 160.0 / 200.0);
        near(times(2, 0), 4.0 * 160.0 / 320.0);
        near(times(3, 0), 8.0 * 160.0 / 320.0);
        // Behind an outer hash, too: of what comes to the busiest of two cores, half is its own users'.
        near(times(1, 1), 160.0 / (0.75 * (100.0 + 30.0) + 0.125 * 180.0));
    }

    #[test]
    fn one_gnb_is_one_cores() {
        // On the way up all packets come to one of two cores, half of those down to each.
        let busiest = 0.75 * (80.0 + 30.0) + 0.125 * 180.0;
        near(of(2, Way::OuterHash(1)).times_one, 160.0 / busiest);
        // With very many cores that core hands over nearly all that goes up.
        assert!((5.0..160.0 / 30.0).contains(&of(128, Way::OuterHash(1)).times_one));
        assert!(of(16, Way::OuterHash(64)).mpps > 1.5 * of(16, Way::OuterHash(1)).mpps);
        assert!(of(16, Way::OuterHash(64)).mpps < of(16, Way::InnerHash).mpps);
        near(of(1, Way::OuterHash(4)).times_one, 1.0);
    }

    #[test]
    fn cores_are_shared_out_between_distribution_and_processing() {
        // 60 to 140: three of ten distribute.
        let ten = of(10, Way::Distribution);
        assert_eq!(ten.distributors, 3);
        near(ten.times_one, 160.0 / (140.0 * 19.0 / 128.0));
        near(of(2, Way::Distribution).times_one, 160.0 / 140.0);
        assert!(!scaling(&costs(), &[1], &[]).iter().any(|one| one.ways.len() > 1), "one core cannot");
    }

    #[test]
    fn a_packet_that_is_handed_over_takes_longer() {
        let (inner, distribution) = (of(8, Way::InnerHash), of(8, Way::Distribution));
        let same = inner.latency_at_distribution.unwrap();
        assert!(distribution.latency.mean_us > 1.5 * same.mean_us, "{inner:?} {distribution:?}");
        assert!(same.p99_us > same.mean_us && inner.latency.p99_us > same.p99_us);
    }
}
