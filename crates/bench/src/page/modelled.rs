//! What more cores would carry: modelled of what was measured here, and said so.

use super::plots::{Chart, Series};
use crate::compared;
use crate::report::Report;
use ::plan::{Costs, OfSeveral, Scaling, Way, scaling};
use std::fmt::Write;

/// Numbers of cores.
const CORES: [u32; 8] = [1, 2, 4, 6, 8, 12, 16, 32];
/// Numbers of gNBs.
const GNBS: [u32; 3] = [1, 4, 64];

/// The drawing, beside the page.
pub(super) const FILE: &str = "steering-modelled.svg";

fn modelled(report: &Report) -> Option<(Costs, Vec<Scaling>)> {
    let costs = compared::costs(report)?;
    let rows = scaling(&costs, &CORES, &GNBS);
    Some((costs, rows))
}

/// A table; nothing, where the report has not what the model needs.
pub(super) fn table(report: &Report) -> String {
    let Some((costs, rows)) = modelled(report) else { return String::new() };
    let several = |of: &OfSeveral| format!(", {:.0} as measured of {} at once", of.cycles, of.workers);
    let several: String = costs.direct_of_several.iter().map(several).collect();
    let most = costs.direct_of_several.last().map_or(1, |of| of.workers);
    let mut text = format!(
        "\n**Modelled, not run:** what more cores would carry, by a queueing model (`anchorline plan scaling`; `crates/plan`) of \
         the costs above: {:.0} cycles where a packet comes to its user's worker and that is alone{several}; {:.0} to distribute \
         one, {:.0} for one that was handed over ({:.0} among workers that are all alike). What more than {most} workers take from \
         each other of memory bandwidth and shared caches, and the card, are not in it.\n\n\
         ![modelled]({FILE})\n\n| cores | inner hash, Mpps | outer, 1 gNB | 4 gNBs | 64 gNBs | distribution (cores for it) |\n\
         |---|---|---|---|---|---|\n",
        costs.direct, costs.distribute, costs.owner, costs.owner_among_equals,
    );
    for Scaling { cores, ways } in &rows {
        let _ = write!(text, "| {cores} |");
        for modelled in ways {
            let _ = match modelled.way {
                Way::Distribution => write!(text, " {:.1} ({}) |", modelled.mpps, modelled.distributors),
                _ => write!(text, " {:.1} |", modelled.mpps),
            };
        }
        text += if ways.len() < 5 { " - |\n" } else { "\n" };
    }
    text
}

/// Draws the same.
///
/// # Errors
/// The file cannot be written.
pub(super) fn draw(report: &Report, folder: &std::path::Path) -> anyhow::Result<()> {
    let Some((_, rows)) = modelled(report) else { return Ok(()) };
    let line = |name, way: Way| {
        let point = |row: &Scaling| {
            let modelled = row.ways.iter().find(|modelled| modelled.way == way)?;
            Some((f64::from(row.cores), modelled.mpps))
        };
        Series { name, points: rows.iter().filter_map(point).collect() }
    };
    let series = vec![
        line("inner hash", Way::InnerHash),
        line("outer hash, 64 gNBs", Way::OuterHash(64)),
        line("outer hash, 4 gNBs", Way::OuterHash(4)),
        line("outer hash, 1 gNB", Way::OuterHash(1)),
        line("distribution", Way::Distribution),
    ];
    let (title, x, y) = ("Modelled: throughput over cores", "cores", "Mpackets/s, all cores, modelled");
    Chart { title, x, y, log_x: true, log_y: true, series }.draw(&folder.join(FILE))
}
