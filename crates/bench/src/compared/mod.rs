//! What `steering` found beside what others published, and over the number of workers: of both, what was measured and what
//! is modelled beyond the machine stand apart, each under its name.

mod over_workers;

pub(crate) use over_workers::{Carried, over_workers};

use crate::report::{Report, Steering};
use ::plan::{Costs, Nearest, PUBLISHED, PUBLISHED_CORES, Published};
use serde::{Deserialize, Serialize};

/// A published result, and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    /// What was compared, by whom.
    pub(crate) what: String,
    /// Their figures, measured with cards.
    pub(crate) published: String,
    /// What this run measured nearest to it, packets in memory.
    pub(crate) measured: String,
    /// What the queueing model makes of this run beyond it; nothing of that was run.
    pub(crate) modelled: Option<String>,
}

/// Everything that others published about steering.
pub(crate) fn published(report: &Report) -> Vec<Compared> {
    let compared = |published: &Published| {
        let (measured, modelled) = match published.beside {
            Nearest::Scaling => (scaling(report), modelled_scaling(report)),
            Nearest::Gain => (gain(report, "outer", published.profile), None),
            Nearest::Freed => (gain(report, "distributor", None), None),
            Nearest::Latency => (latency(report), None),
            // Of nodes beside nodes there is nothing here.
            Nearest::None => return None,
        };
        let (what, figure) = (published.what.to_owned(), published.figure.to_owned());
        Some(Compared { what, published: figure, measured, modelled })
    };
    PUBLISHED.iter().filter_map(compared).collect()
}

/// What the model needs of a report; `None` of one that has not all of it.
pub(crate) fn costs(report: &Report) -> Option<Costs> {
    let mut costs = Costs::of_report(&serde_json::to_string(report).ok()?).ok()?;
    let profile = traffic::PROFILES.iter().find(|profile| profile.name == report.profile);
    costs.uplink = profile.map_or(costs.uplink, |profile| profile.uplink);
    Some(costs)
}

/// A mode's points of one traffic, behind one gNB: rates, or latencies.
fn points<'a>(
    report: &'a Report,
    (mode, profile): (&'a str, &'a str),
    is_timed: bool,
) -> impl Iterator<Item = (&'a Report, &'a Steering)> {
    let all = report.points.iter().filter_map(|point| Some((point, point.steering.as_ref()?)));
    all.filter(move |(point, steering)| {
        let is_meant = steering.mode == mode && steering.gnbs == 1 && point.profile == profile;
        is_meant && steering.offered_mpps.is_some() == is_timed
    })
}

fn scaling(report: &Report) -> String {
    let times = |carried: &Carried| {
        format!("{} workers carry {:.2} times as much as one", carried.workers, carried.times_one)
    };
    let all = over_workers(report);
    let measured = all.iter().filter(|carried| !carried.modelled && carried.workers > 1);
    or_not_measured(measured.map(times).collect())
}

fn modelled_scaling(report: &Report) -> Option<String> {
    let all = over_workers(report);
    let theirs = all.iter().filter(|one| one.modelled && PUBLISHED_CORES.contains(&one.workers));
    let (workers, times): (Vec<String>, Vec<String>) =
        theirs.map(|one| (one.workers.to_string(), format!("{:.2}", one.times_one))).unzip();
    (!workers.is_empty())
        .then(|| format!("{} workers: {} times as much as one", workers.join(", "), times.join(", ")))
}

/// Inner hash over a mode, of this traffic, or of the report's own.
fn gain(report: &Report, mode: &str, profile: Option<&str>) -> String {
    let of = |(point, steering): (&Report, &Steering)| {
        let ratio = steering.ratio_to_inner?;
        Some(format!(
            "{:.2} times ({:.2} to {:.2}), {} workers, packets of {:.0} B",
            1.0 / ratio.median,
            1.0 / ratio.max,
            1.0 / ratio.min,
            point.workers,
            point.mean_bytes,
        ))
    };
    let profile = profile.unwrap_or(&report.profile);
    or_not_measured(points(report, (mode, profile), false).find_map(of).into_iter().collect())
}

/// At the middle load, with a distributor and without: the mean, which is what they tell, and beside it how it is spread.
fn latency(report: &Report) -> String {
    let of = |mode: &str| {
        let timed: Vec<_> = points(report, (mode, &report.profile), true).collect();
        let (point, steering) = timed.get(timed.len() / 2)?;
        Some((point.latency_us?, steering.offered_mpps?))
    };
    let Some(((software, offered), (card, _))) = of("distributor").zip(of("inner")) else {
        return or_not_measured(vec![]);
    };
    let ratio = software.mean.zip(card.mean).map_or(String::new(), |(software, card)| {
        format!("mean {software:.1} us with a distributor, then {card:.1} us: {:.2}; ", card / software)
    });
    format!(
        "{ratio}p50 {:.1}, then {:.1} us; p99.9 {:.1}, then {:.1} us; at {offered:.2} Mpps",
        software.p50, card.p50, software.p999, card.p999
    )
}

fn or_not_measured(found: Vec<String>) -> String {
    if found.is_empty() { "not measured".to_owned() } else { found.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Latency;
    use crate::spread::Spread;

    /// Of a quiet hour of a machine with two cores, as it was measured before lengths had rows of their own, and before the mean was kept.
    fn recorded() -> Report {
        let text = include_str!("../../recordings/steering.json");
        let mut report: Report = serde_json::from_str(text).unwrap();
        report.points.retain(|point| point.profile == report.profile);
        report.points.iter_mut().filter_map(|point| point.latency_us.as_mut()).for_each(|us| us.mean = None);
        report
    }

    fn row(report: &Report, what: &str) -> Compared {
        published(report).into_iter().find(|row| row.what.contains(what)).unwrap()
    }

    #[test]
    fn one_length_does_not_stand_for_another() {
        let mut report = recorded();
        assert_eq!(row(&report, "512 B").measured, "not measured");
        let is_outer = |point: &&Report| {
            let steering = point.steering.as_ref().unwrap();
            steering.mode == "outer" && steering.gnbs == 1 && steering.offered_mpps.is_none()
        };
        let mut point = report.points.iter().find(is_outer).unwrap().clone();
        (point.profile, point.mean_bytes) = ("cht-512".to_owned(), 540.0);
        point.steering.as_mut().unwrap().ratio_to_inner = Some(Spread { min: 0.4, median: 0.5, max: 0.8 });
        report.points.push(point);
        let measured = "2.00 times (1.25 to 2.50), 2 workers, packets of 540 B";
        assert_eq!(row(&report, "512 B").measured, measured);
        assert_eq!(row(&report, "1,280 B").measured, "not measured");
    }

    #[test]
    fn the_mean_is_told_where_it_was_kept() {
        let mut report = recorded();
        let told = row(&report, "mean one-way").measured;
        assert!(told.starts_with("p50 ") && told.contains("; p99.9 "), "{told}");
        let (mut means, latency) = ([30.0, 20.0].into_iter().cycle(), |point: &Report| point.latency_us);
        report.points.retain(|point| {
            let mode = point.steering.as_ref().map(|steering| steering.mode.as_str());
            latency(point).is_none() || mode != Some("outer")
        });
        // Of inner hash and a distributor in turns, at each load.
        for us in report.points.iter_mut().filter_map(|point| point.latency_us.as_mut()) {
            *us = Latency { mean: means.next(), ..*us };
        }
        let told = row(&report, "mean one-way").measured;
        assert!(told.starts_with("mean 20.0 us with a distributor, then 30.0 us: 1.50; p50 "), "{told}");
    }

    #[test]
    fn what_is_beyond_the_machine_is_modelled_and_says_so() {
        let mut report = recorded();
        let all = over_workers(&report);
        assert_eq!(
            all.iter().filter(|one| !one.modelled).map(|one| one.workers).collect::<Vec<u32>>(),
            [1, 2]
        );
        assert!(all.iter().filter(|one| one.modelled).all(|one| one.workers > 2 && one.spread.is_none()));
        // What is modelled goes on from what was measured, and does not start from one worker's cost.
        let (two, four) = (&all[1], all.iter().find(|one| one.workers == 4).unwrap());
        assert!((four.mpps / (2.0 * two.mpps) - 1.0).abs() < 0.06, "{two:?} {four:?}");
        let compared = row(&report, "queues and cores");
        assert!(compared.measured.starts_with("2 workers carry "), "{compared:?}");
        assert!(compared.modelled.unwrap().starts_with("4, 5, 6, 7 workers: "));
        report.over_workers = all;
        report.published = published(&report);
        let text = report.text();
        for line in text.lines().filter(|line| line.trim_start().starts_with("4  ")) {
            assert!(line.contains("MODELLED, not run"), "{line}");
        }
        assert!(text.contains("1.00, 1.35, 1.60, 1.84, 2.08, 1.93 times"), "{text}");
        report.points.retain(|point| point.workers > 1);
        assert!(over_workers(&report).is_empty(), "without one worker there is nothing to compare with");
    }
}
