//! The section about bringing packets to the workers that own their users.

use super::sections::{notes, number, spread};
use crate::compared::{self, Carried, Compared};
use crate::report::{Report, Steering};
use std::fmt::Write;

/// What the columns mean.
const HOW_TO_READ: &str = "\
Every user belongs to one worker. The same engine runs behind a model of a card that brings packets to it by the users'
own addresses (inner hash: nothing is handed over), by TEIDs that the node has chosen to lead to the same workers (up; down by
the users' addresses: nothing is handed over either), by the outermost addresses (all packets of one gNB to one worker), or
to one queue; a *distributor* is a worker that does nothing but receive and hand over, as systems did before cards could
hash inside tunnels. *Of inner hash* is the rate of the slowest worker, for each core, over that of inner hash in the same
turns. *Work* is what all workers together spend on a packet; *shared out* is what remains of inner hash's rate where
cores are given to distribution and processing as it is best: computed of the work, not run. *Hand-off* is what handing one
packet over adds to the work, in the quietest trial of both; its *floor* is the same of a loop that hands over a pointer and
touches nothing but headers: packets that cross from one core's cache to another's. The rest is our own.

";

/// The section of one report.
pub(super) fn section(report: &Report) -> String {
    let mut text = "## Steering: users' packets to users' workers\n\n".to_owned() + HOW_TO_READ;
    text += "| card | gNBs | workers | Mpps per core | ratio to bare | of inner hash | handed over | work, cycles | by worker | hand-off, cycles | floor of it | shared out |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    let points = || report.points.iter().filter_map(|point| Some((point, point.steering.as_ref()?)));
    for (point, steering) in points().filter(|(_, steering)| steering.offered_mpps.is_none()) {
        rate(&mut text, (report, point), steering);
    }
    let _ = writeln!(
        text,
        "\nIn the same process, on one core: bare loop {} Mpps, floor {} Mpps.",
        number(report.bare_mpps_per_core, 2),
        number(report.floor_mpps_per_core, 2),
    );
    text += "\n| card | gNBs | offered Mpps | mean us | p50 us | p99 us | p99.9 us | most us | |\n|---|---|---|---|---|---|---|---|---|\n";
    let is_timed = |steering: &Steering| steering.offered_mpps.is_some() && !is_overload(steering);
    for (point, steering) in points().filter(|(_, steering)| is_timed(steering)) {
        wait(&mut text, point, steering);
    }
    text += &overload(report);
    text += &over_workers(report);
    text += &super::modelled::table(report);
    text + &published(report) + "\n" + &notes([report])
}

fn is_overload(steering: &Steering) -> bool {
    !steering.by_class.is_empty() || steering.mode.ends_with("classes") || steering.mode == "one-user"
}

/// One worker offered more than it carries: what became of urgent packets, and of the others.
fn overload(report: &Report) -> String {
    let points = || report.points.iter().filter_map(|point| Some((point, point.steering.as_ref()?)));
    let mut rows = String::new();
    for (point, steering) in points().filter(|(_, steering)| is_overload(steering)) {
        let note = point.notes.first().map_or("", String::as_str);
        for fate in &steering.by_class {
            let crate::report::Latency { p50, p99, max, .. } = fate.latency_us;
            let (mode, offered) = (&steering.mode, number(steering.offered_mpps, 2));
            let _ = writeln!(
                rows,
                "| {mode} | {offered} | {} | {} | {:.1} % | {p50:.1} | {p99:.1} | {max:.1} | {note} |",
                fate.class,
                fate.packets,
                fate.loss * 100.0,
            );
        }
    }
    match rows.is_empty() {
        true => rows,
        false => format!(
            "\nOne worker that is offered half as much again as it carries; one user in ten is urgent (QFI 5 up, DSCP 46 down). \
             With *classes* the card has a queue for urgent packets, which the worker takes first; a queue holds 1,024 packets \
             and loses what comes then. With *one-user* there are no classes, and 60 % of the packets are one user's, of which the worker drops some \
             (`user_share`).\n\n| card | offered Mpps | packets | number | lost | p50 us | p99 us | most us | |\n\
             |---|---|---|---|---|---|---|---|---|\n{rows}"
        ),
    }
}

fn rate(text: &mut String, (report, point): (&Report, &Report), steering: &Steering) {
    let by_worker: Vec<String> = steering.worker_cycles.iter().map(|cycles| format!("{cycles:.0}")).collect();
    let _ = writeln!(
        text,
        "| {} | {} | {} | **{}** | {} | {} | {:.0} % | {} | {} | {} | {} | {} |",
        card(report, point, steering),
        steering.gnbs,
        point.workers,
        number(point.mpps_per_core, 2),
        number(point.ratio, 3),
        spread(steering.ratio_to_inner, 3),
        steering.handed_share * 100.0,
        spread(steering.work_cycles, 0),
        by_worker.join(" + "),
        number(steering.handoff_cycles, 0),
        number(steering.handoff_floor_cycles, 0),
        number(steering.ratio_shared_out, 3),
    );
}

fn wait(text: &mut String, point: &Report, steering: &Steering) {
    let us = |pick: fn(&crate::report::Latency) -> f64| number(point.latency_us.as_ref().map(pick), 1);
    let _ = writeln!(
        text,
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        steering.mode,
        steering.gnbs,
        number(steering.offered_mpps, 2),
        number(point.latency_us.and_then(|latency| latency.mean), 1),
        us(|latency| latency.p50),
        us(|latency| latency.p99),
        us(|latency| latency.p999),
        us(|latency| latency.max),
        point.notes.first().map_or("", String::as_str),
    );
}

/// The mode, and the traffic where it is not the report's.
fn card(report: &Report, point: &Report, steering: &Steering) -> String {
    match point.profile == report.profile {
        true => steering.mode.clone(),
        false => format!("{}, {} ({:.0} B)", steering.mode, point.profile, point.mean_bytes),
    }
}

/// Inner hash with one worker, two, and so on: what was run, and what was not.
fn over_workers(report: &Report) -> String {
    let mut text =
        "\nInner hash, a queue for each worker; rows that say so are modelled (below) and were not run:\n\n\
                    | workers | | Mpps, all workers | times one |\n|---|---|---|---|\n"
            .to_owned();
    for Carried { workers, mpps, times_one, spread: found, modelled } in compared::over_workers(report) {
        let how = if modelled { "*modelled*" } else { "measured" };
        let times = found.map_or_else(|| format!("{times_one:.2}"), |found| spread(Some(found), 2));
        let _ = writeln!(text, "| {workers} | {how} | {mpps:.1} | {times} |");
    }
    text
}

/// Others' figures, each with ours.
fn published(report: &Report) -> String {
    let mut text = "\nBeside what others published, with cards:\n\n| what | their figure | ours nearest to it | modelled, not run |\n\
                    |---|---|---|---|\n"
        .to_owned();
    for Compared { what, published, measured, modelled } in compared::published(report) {
        let _ = writeln!(text, "| {what} | {published} | {measured} | {} |", modelled.unwrap_or_default());
    }
    text
}
