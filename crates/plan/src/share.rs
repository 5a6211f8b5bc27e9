//! The share of the busiest core.

/// Entries of the tables of cards and workers.
const TABLE: u32 = 128;
/// Most things that are counted one by one: their factorial is a number still.
const FEW_MAX: u32 = 128;
/// Steps of the integral, over so many standard deviations to each side.
const STEPS: u32 = 2_000;
const DEVIATIONS: f64 = 8.0;

/// The part of the table that each of so many cores has.
fn parts(cores: u32) -> Vec<f64> {
    let cores = cores.clamp(1, TABLE);
    let entries = |core: u32| TABLE / cores + u32::from(core < TABLE % cores);
    (0..cores).map(|core| f64::from(entries(core)) / f64::from(TABLE)).collect()
}

/// The expected share of the busiest of `cores` (1 to 128) when `users`, alike and many, are spread by a hash over the table: at
/// least 1 over the number of cores. Normal approximation of the multinomial distribution: what one core has more, others have
/// less, and the maximum of normal variates equally correlated by that is the one of independent variates of Poisson's variance.
pub fn busiest_of_many(cores: u32, users: f64) -> f64 {
    let parts = parts(cores);
    if parts.len() < 2 {
        return 1.0;
    }
    let normal = |part: f64| (part, (part / users.max(1.0)).sqrt());
    let normals: Vec<(f64, f64)> = parts.into_iter().map(normal).collect();
    let widest = normals.iter().map(|(_, deviation)| *deviation).fold(0.0, f64::max);
    let mean = normals.iter().map(|(mean, _)| *mean).fold(0.0, f64::max);
    let (from, to) = (mean - DEVIATIONS * widest, mean + DEVIATIONS * widest);
    // The mean of what is never below `from`: that, and the integral of the chance to be beyond.
    let step = (to - from) / f64::from(STEPS);
    let all_below =
        |x: f64| -> f64 { normals.iter().map(|(mean, deviation)| phi((x - mean) / deviation)).product() };
    let beyond = |at: u32| 1.0 - all_below(from + (f64::from(at) + 0.5) * step);
    (from + step * (0..STEPS).map(beyond).sum::<f64>()).min(1.0)
}

/// The expected share of the core with most of `count` things alike (gNBs, 1 to 128), each of which is one core's. Exact: the
/// chance that no core has more than `m` is `count!` times a coefficient of a product of truncated exponential series.
pub fn busiest_of_few(cores: u32, count: u32) -> f64 {
    let (parts, count) = (parts(cores), count.clamp(1, FEW_MAX));
    let beyond = |most: u32| 1.0 - none_beyond(&parts, count, most);
    (0..count).map(beyond).sum::<f64>() / f64::from(count)
}

fn none_beyond(parts: &[f64], count: u32, most: u32) -> f64 {
    let length = count as usize + 1;
    let mut product = vec![0.0; length];
    product.splice(..1, [1.0]);
    for part in parts {
        let mut next = vec![0.0; length];
        let mut term = 1.0;
        for size in 0..=most as usize {
            let shifted = next.iter_mut().skip(size).zip(&product);
            shifted.for_each(|(next, before)| *next += before * term);
            term *= part / (size as f64 + 1.0);
        }
        product = next;
    }
    let factorial: f64 = (1..=count).map(f64::from).product();
    (product.last().copied().unwrap_or(0.0) * factorial).clamp(0.0, 1.0)
}

/// The standard normal distribution function (Abramowitz and Stegun 26.2.17; wrong by less than 1e-7).
fn phi(x: f64) -> f64 {
    const B: [f64; 5] = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    let tail = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * series;
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, error: f64) {
        assert!((found / expected - 1.0).abs() < error, "{found}, not {expected}");
    }

    #[test]
    fn few_things_are_counted_exactly() {
        near(busiest_of_few(1, 7), 1.0, 1e-12);
        near(busiest_of_few(4, 1), 1.0, 1e-12);
        near(busiest_of_few(2, 2), 0.75, 1e-12);
        // Of four in two: 2 of 16 ways all in one, 8 three, 6 two.
        near(busiest_of_few(2, 4), (2.0 * 4.0 + 8.0 * 3.0 + 6.0 * 2.0) / 64.0, 1e-12);
        // Three cores have 43, 43 and 42 of 128 entries: two things meet in one with the sum of squares.
        let meet: f64 = [43.0, 43.0, 42.0].iter().map(|part: &f64| (part / 128.0).powi(2)).sum();
        near(busiest_of_few(3, 2), 0.5 * (1.0 - meet) + meet, 1e-12);
    }

    #[test]
    fn many_are_as_few_would_be() {
        for cores in [2, 3, 8] {
            near(busiest_of_many(cores, 128.0), busiest_of_few(cores, 128), 0.01);
        }
    }

    #[test]
    fn very_many_leave_what_the_table_does_not_divide() {
        near(busiest_of_many(8, 1e12), 0.125, 1e-4);
        near(busiest_of_many(7, 1e12), 19.0 / 128.0, 1e-4);
        assert!(busiest_of_many(16, 1e3) > busiest_of_many(16, 1e4));
        // Of two the larger is above the mean by the mean deviation of one.
        let deviation = (0.25_f64 / 10_000.0).sqrt();
        near(busiest_of_many(2, 10_000.0), 0.5 + deviation * (2.0 / std::f64::consts::PI).sqrt(), 1e-5);
    }

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        for (x, expected) in [(0.0, 0.5), (1.0, 0.841_345), (-1.96, 0.024_998), (3.0, 0.998_650)] {
            near(phi(x), expected, 1e-4);
        }
    }
}
