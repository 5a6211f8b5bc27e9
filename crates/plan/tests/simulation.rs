//! The model beside a simulation of the same cores, packet by packet; what the model leaves out, the simulation does not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

use anchorline_plan::{Polled, busiest_of_many};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Packets of one run.
const PACKETS: usize = 1_000_000;

/// Times at which packets come.
fn poisson(rate: f64, random: &mut Pcg64) -> Vec<f64> {
    let mut now = 0.0;
    let mut next = || {
        now -= (1.0 - random.random::<f64>()).ln() / rate;
        now
    };
    (0..PACKETS).map(|_| next()).collect()
}

/// When a core that polls is done with each, in order of arrival.
fn serve(core: Polled, arrivals: &[f64]) -> Vec<f64> {
    let (mut now, mut done) = (0.0, Vec::new());
    while done.len() < arrivals.len() {
        let waiting = arrivals[done.len()..].iter().take_while(|arrival| **arrival <= now).count();
        now += core.turn + core.cost * waiting as f64;
        done.extend(std::iter::repeat_n(now, waiting));
    }
    done
}

fn stays(arrivals: &[f64], done: &[f64]) -> (f64, f64) {
    let mut stays: Vec<f64> = arrivals.iter().zip(done).map(|(arrival, done)| done - arrival).collect();
    stays.sort_by(f64::total_cmp);
    (stays.iter().sum::<f64>() / stays.len() as f64, stays[stays.len() * 99 / 100])
}

fn near(found: f64, expected: f64, error: f64) {
    assert!((found / expected - 1.0).abs() < error, "modelled {found}, simulated {expected}");
}

#[test]
fn a_core_that_polls_is_as_the_model_says() {
    for (turn, rate) in [(0.5, 0.3), (2.0, 0.7), (20.0, 0.5), (1.0, 0.8)] {
        let core = Polled { turn, cost: 1.0, rate };
        let arrivals = poisson(rate, &mut Pcg64::seed_from_u64(7));
        let (mean, p99) = stays(&arrivals, &serve(core, &arrivals));
        near(core.mean(), mean, 0.02);
        near(core.sojourn().mean(), mean, 0.02);
        near(core.sojourn().quantile(0.99), p99, 0.03);
    }
}

/// The second core gets what the first sends at the end of its turns, in batches; the model takes it as a Poisson process.
#[test]
fn two_cores_one_after_the_other_are_nearly_as_the_model_says() {
    for (first, second, rate) in [(0.4, 1.0, 0.3), (0.5, 1.0, 0.7), (0.9, 0.8, 0.6)] {
        let core = |cost| Polled { turn: 1.5, cost, rate };
        let arrivals = poisson(rate, &mut Pcg64::seed_from_u64(11));
        let between = serve(core(first), &arrivals);
        let (mean, p99) = stays(&arrivals, &serve(core(second), &between));
        let modelled = core(first).sojourn().then(&core(second).sojourn());
        near(modelled.mean(), mean, 0.12);
        near(modelled.quantile(0.99), p99, 0.15);
    }
}

#[test]
fn the_busiest_core_has_as_many_users_as_the_model_says() {
    let mut random = Pcg64::seed_from_u64(3);
    for (cores, users) in [(4, 1_000), (7, 6_000), (16, 6_000)] {
        let runs = 300;
        let busiest = |random: &mut Pcg64| {
            let mut counts = vec![0; cores];
            (0..users).for_each(|_| counts[random.random_range(0..128) % cores] += 1);
            f64::from(counts.into_iter().max().unwrap()) / f64::from(users)
        };
        let mean = (0..runs).map(|_| busiest(&mut random)).sum::<f64>() / f64::from(runs);
        near(busiest_of_many(cores as u32, f64::from(users)), mean, 0.01);
    }
}
