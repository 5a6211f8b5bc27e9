//! The model's answer, for people.

use ::plan::{
    Costs, Latency, Modelled, Nearest, OfSeveral, PUBLISHED, PUBLISHED_CORES, Scaling, Way, scaling,
};
use std::fmt::Write;

/// Throughput, then latency, then what others published; and what it rests on.
pub(super) fn of(costs: &Costs, gnbs: &[u32], rows: &[Scaling]) -> String {
    let mut text = head(costs);
    let rate = |modelled: &Modelled| match modelled.way {
        Way::Distribution => format!("{:.1} ({})", modelled.mpps, modelled.distributors),
        _ => format!("{:.1}", modelled.mpps),
    };
    text += "\nmodelled Mpps of all cores (in brackets: cores that only distribute)\n";
    text += &columns(gnbs, rows, rate);
    let times = |modelled: &Modelled| format!("{:.2}", modelled.times_one);
    text += "\nmodelled: times what one core alone carries\n";
    text += &columns(gnbs, rows, times);
    let us =
        |modelled: &Modelled| format!("{:.1} / {:.1}", modelled.latency.mean_us, modelled.latency.p99_us);
    text += "\nmodelled us under way, mean / 99 of 100, at 70 % of what each way carries\n";
    text += &columns(gnbs, rows, us);
    text + &beside(costs)
}

fn head(costs: &Costs) -> String {
    let Costs { direct, distribute, owner, owner_among_equals, turn, users, uplink, .. } = costs;
    let several = |of: &OfSeveral| format!(", {:.0} where {} are at work at once", of.cycles, of.workers);
    let several: String = costs.direct_of_several.iter().map(several).collect();
    let most = costs.direct_of_several.last().map_or(1, |of| of.workers);
    format!(
        "MODELLED, not run: a queueing model, calibrated with measured costs.\n\
         measured cycles: {direct:.0} for a packet at its user's worker, where that is alone{several}; {distribute:.0} to distribute \
         one, {owner:.0} for one handed over by a distributor, {owner_among_equals:.0} by an equal; fitted: {turn:.0} for a turn. \
         {users:.0} users, {:.0} % up.\n\
         not modelled: what more than {most} workers take from each other of memory bandwidth and shared caches, frequency, the card \
         and its bus.\n",
        uplink * 100.0,
    )
}

fn columns(gnbs: &[u32], rows: &[Scaling], cell: impl Fn(&Modelled) -> String) -> String {
    let mut text = format!("{:>6} {:>15}", "cores", "inner hash");
    for gnbs in gnbs {
        let _ = write!(text, " {:>15}", format!("outer, {gnbs} gNB"));
    }
    let _ = writeln!(text, " {:>15}", "distribution");
    for Scaling { cores, ways } in rows {
        let _ = write!(text, "{cores:>6}");
        ways.iter().for_each(|modelled| _ = write!(text, " {:>15}", cell(modelled)));
        text.push('\n');
    }
    text
}

/// The papers' rows, each with what is nearest to it here.
fn beside(costs: &Costs) -> String {
    let mut text =
        "\npublished, measured by others on their systems; beside it the model of ours\n".to_owned();
    for published in PUBLISHED {
        let ours = match published.beside {
            Nearest::Scaling => times_of_cores(costs),
            Nearest::Gain => gains(costs),
            Nearest::Latency => latencies(costs),
            Nearest::Freed => freed(costs),
            Nearest::None => "not modelled".to_owned(),
        };
        let _ = writeln!(text, "  {}: {}\n    modelled: {ours}", published.what, published.figure);
    }
    text
}

fn way(costs: &Costs, cores: u32, way: Way) -> Option<Modelled> {
    let rows = scaling(costs, &[cores], &[1]);
    rows.first()?.ways.iter().find(|modelled| modelled.way == way).copied()
}

fn times_of_cores(costs: &Costs) -> String {
    let times =
        |cores| way(costs, cores, Way::InnerHash).map(|modelled| format!("{:.2}", modelled.times_one));
    let all: Vec<String> = [1].into_iter().chain(PUBLISHED_CORES).filter_map(times).collect();
    format!(
        "inner hash with 1, 4, 5, 6, 7 cores: {} times; theirs met limits that this model has not",
        all.join(", ")
    )
}

fn gains(costs: &Costs) -> String {
    let gain = |cores| {
        let inner = way(costs, cores, Way::InnerHash)?.mpps;
        Some(format!("{:.2} with {cores} cores", inner / way(costs, cores, Way::OuterHash(1))?.mpps))
    };
    let all: Vec<String> = [2, 4, 6, 8].into_iter().filter_map(gain).collect();
    format!("inner hash over outer hash of one gNB: {}; of packets of {:.0} B", all.join(", "), costs.bytes)
}

fn freed(costs: &Costs) -> String {
    let gain = |cores| {
        let inner = way(costs, cores, Way::InnerHash)?.mpps;
        Some(format!("{:.2} with {cores} cores", inner / way(costs, cores, Way::Distribution)?.mpps))
    };
    let all: Vec<String> = [2, 4, 6, 8].into_iter().filter_map(gain).collect();
    format!("inner hash over distribution: {}", all.join(", "))
}

fn latencies(costs: &Costs) -> String {
    let both = way(costs, 8, Way::Distribution).zip(way(costs, 8, Way::InnerHash));
    let same =
        both.and_then(|(distribution, inner)| Some((distribution.latency, inner.latency_at_distribution?)));
    same.map_or("not comparable".to_owned(), |(Latency { mean_us: before, .. }, Latency { mean_us: after, .. })| {
        let ratio = after / before;
        format!("8 cores, the same rate: {before:.1} us, then {after:.1} us, mean, without cards and wires: {ratio:.2}")
    })
}
