//! The page's words and tables.

use super::Results;
use super::published::{FORWARDING, LATENCY};
use crate::machine::Machine;
use crate::misses::UNKNOWN;
use crate::report::{Latency, PfcpCost, PfcpRates, Report};
use crate::spread::Spread;
use crate::text::{BUSY, busy};
use std::fmt::Write;

/// What every reader must know first.
const HOW_TO_READ: &str = "\
## How to read this

**These are memory-loop figures, not network-card figures.** Packets lie in memory in the buffers a card would have
left them in; the shipped worker takes them in vectors, runs its whole graph over them and hands them on. No card, no
cable, no PCIe. A node with cards is slower by what its driver costs (about 20 cycles a packet each way with good ones)
and by what its cards and its memory let through. Figures of others below that were made with cards are marked.

Every run measures three things in turns, in one process, over the same packets:

| | what it does |
|---|---|
| **floor** | receive, touch the headers, swap the addresses, send: the port and the packets alone |
| **bare** | the floor, and one random line of a session table and one of a flow table found, read and written: the memory no user plane can avoid; no rule, no policy |
| **product** | the shipped worker with all its rules |

The **ratio** is product over bare: 1 would be logic that costs nothing. Machines differ and are shared, so only ratios
of one run are compared between machines; packets a second are what this machine did. Cycles
are CPU time at the clock of the time stamp counter: time in which the kernel gave the CPU to others is not in them.
Figures are medians of trials, least and most in parentheses. Mpps is a million packets a second. Gb/s count the users' own IP packets.

One packet in 1,024 that came out was compared, byte by byte, with what a slow description of the path says must come
out, and every packet was accounted for; where one was wrong or missing, there is no figure. Packets lie ready before the
time runs, so no generator can be the bottleneck; where one sends meanwhile (latency, PFCP), it is said when it was.

";

/// The ratio to the bare loop that is asked of the usual way.
const ASKED_RATIO: f64 = 0.5;

/// Between the rate and the drawing.
const MACHINE_WAS_BUSY: &str = "\n\n**The machine was busy with other things: this rate and these latencies are its, \
    not the engine's.** How long each thread was away stands below.\n\n![";

impl Results {
    pub(super) fn text(&self) -> String {
        let mut text = "# Anchorline measured\n\n".to_owned();
        text += &self.machine();
        text += &self.summary();
        text += HOW_TO_READ;
        let parts = [
            self.asked(),
            self.forwarding(),
            self.published(),
            self.nodes(),
            self.sessions(),
            self.flows(),
            self.rules(),
            self.services(),
            self.control(),
            self.drops(),
            self.latency(),
            self.scaling(),
            self.of("steering").map(super::steering::section),
            self.pfcp(),
            self.gaps(),
        ];
        parts.into_iter().flatten().for_each(|part| text += &part);
        text
    }

    fn machine(&self) -> String {
        let Some(Machine { cpu, clock_mhz, cores, virtualized, in_small_pages, dpdk, build }) =
            self.reports.first().map(|report| &report.machine)
        else {
            return "There are no results.\n\n".to_owned();
        };
        let version = env!("CARGO_PKG_VERSION");
        let kind = if *virtualized {
            "a virtual machine, which may lose its CPUs at any time"
        } else {
            "a machine of its own"
        };
        let pages = match (in_small_pages, virtualized) {
            (Some(true), true) => {
                ". Its huge pages are translated as small ones: its host has that memory in such (`anchorline doctor`)"
            }
            (Some(false), _) => ". Huge pages are translated as such",
            // What a machine of its own is slow at is not said by this.
            (Some(true), false) | (None, _) => "",
        };
        format!(
            "Anchorline {version}, {build} build, DPDK {dpdk}, on {cpu} at {clock_mhz} MHz (time stamp counter), \
             {cores} CPUs of {kind}{pages}.\n\n"
        )
    }

    fn forwarding(&self) -> Option<String> {
        let mut text = "## Forwarding, one core\n\n| profile | way | packet | sessions (active) | flows | Mpps | Gb/s | bare Mpps | floor Mpps | ratio |\n|---|---|---|---|---|---|---|---|---|---|\n".to_owned();
        let mut rows = self.all_of("forward").peekable();
        rows.peek()?;
        for report in rows {
            let way = format!("{:?}", report.direction).to_lowercase();
            let _ = writeln!(
                text,
                "| {} | {way} | {:.0} B | {} ({}) | {} | **{}** | {} | {} | {} | {} |",
                report.profile,
                report.mean_bytes,
                report.sessions,
                report.active,
                report.flows,
                number(report.mpps_per_core, 2),
                number(report.gbps_per_core, 1),
                number(report.bare_mpps_per_core, 2),
                number(report.floor_mpps_per_core, 2),
                spread(report.spread.map(|spread| spread.ratio), 3),
            );
        }
        text += "\nAll of them: 2 PDRs, 2 FARs, a QER with a rate and a URR a session; no loss.";
        if let Some(bytes) = self.usual().and_then(|report| report.memory.bytes_per_session) {
            let _ = write!(text, " A session takes {bytes} bytes of the data plane's memory.");
        }
        text += "\n\n";
        Some(text + &notes(self.all_of("forward")))
    }

    fn published(&self) -> Option<String> {
        let ours = self.usual()?;
        let mut text = "## Beside what others published\n\n| system | Mpps per core | made with | hardware | packets | what differs |\n|---|---|---|---|---|---|\n".to_owned();
        let _ = writeln!(
            text,
            "| **Anchorline, forwarding only** | **{}** | memory loop | {} at {} MHz, one CPU | {}, mean {:.0} B | no card; a QER with a rate and a URR on every packet; no service awareness |",
            number(ours.mpps_per_core, 2),
            ours.machine.cpu,
            ours.machine.clock_mhz,
            ours.profile,
            ours.mean_bytes,
        );
        for row in FORWARDING {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                row.system,
                row.mpps_per_core,
                row.kind.name(),
                row.hardware,
                row.packets,
                row.differs
            );
        }
        text += "\nA memory loop is not a node: what this table shows is how many cycles are left for cards and services, not a race won.\n\n";
        Some(text)
    }

    fn nodes(&self) -> Option<String> {
        let report = self.usual()?;
        let mut text = "## Where the cycles go\n\n![Cycles per node](nodes.svg)\n\n| node | packets | vectors | packets per vector | cycles per packet |\n|---|---|---|---|---|\n".to_owned();
        for node in &report.nodes {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.1} | {:.1} |",
                node.name, node.packets, node.vectors, node.packets_per_vector, node.cycles_per_packet
            );
        }
        text += "\nA packet of a flow that is known goes `usual_input`, `flow`, `verdict`, and out; the first of a flow, and whatever is \
unusual, takes the long way through the other nodes. In the drawing each node's cycles are spread over all packets.\n";
        let _ = match report.cache_misses_per_packet {
            Some(misses) => writeln!(text, "\n{misses} misses of the last-level cache per packet."),
            None => writeln!(text, "\nNote: {UNKNOWN}."),
        };
        Some(text + &next_step(report) + "\n")
    }

    fn latency(&self) -> Option<String> {
        let report = self.of("latency")?;
        let load = report.load.as_ref()?;
        let rate = spread(load.zero_loss_mpps, 3);
        let text = format!(
            "## Latency\n\nOne worker between two rings, the generator on another CPU. Rate without loss: **{rate} Mpps**. \
             In the same process: bare loop {} Mpps, floor {} Mpps; ratio {}.\n\n\
             ![Latency over load](latency.svg)\n\n| load | Mpps | mean us | p50 us | p99 us | p99.9 us | most us | lost | away: worker, generator | both there | p50 us | p99.9 us | most us | stand-in, p99.9 us | both there | held up: worker, stand-in |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
            number(report.bare_mpps_per_core, 2),
            number(report.floor_mpps_per_core, 2),
            spread(report.spread.map(|spread| spread.ratio), 3),
        );
        let mut text = match load.is_of_the_machine() {
            true => text.replacen("\n\n![", MACHINE_WAS_BUSY, 1),
            false => text,
        };
        for point in &report.points {
            let (Some(latency), Some(load)) = (point.latency_us, point.load.as_ref()) else { continue };
            // Reports of one trial have no spread.
            let p999 = |of: Option<Spread>, one: String| of.map_or(one, |of| spread(Some(of), 1));
            let calm = |pick: fn(&Latency) -> f64| number(load.waits.calm_us.as_ref().map(pick), 1);
            let _ = writeln!(
                text,
                "| {:.0} % | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.4} % | {:.0} us, {:.0} us | {:.1} % | {} | {} | {} | {} | {} | {:.2} %, {:.2} % |",
                load.load * 100.0,
                number(point.mpps_per_core, 2),
                number(latency.mean, 1),
                latency.p50,
                latency.p99,
                latency.p999,
                latency.max,
                point.loss.unwrap_or_default() * 100.0,
                load.worker_gap_us,
                load.generator_gap_us,
                load.waits.calm_share * 100.0,
                calm(|calm| calm.p50),
                p999(load.waits.calm_p999_us, calm(|calm| calm.p999)),
                calm(|calm| calm.max),
                number(load.waits.stand_in_us.map(|us| us.p999), 1),
                p999(
                    load.waits.stand_in_calm_p999_us,
                    number(load.waits.stand_in_calm_us.map(|us| us.p999), 1)
                ),
                load.worker_held * 100.0,
                load.waits.stand_in_held * 100.0,
            );
        }
        text += "\n\"Away\" is the longest time a thread was not running at all, because the kernel or the hypervisor had given its CPU to another: no latency can be less than that for the packets it met. \"Both there\" is the share of the packets that came back in milliseconds in which neither thread was away for 100 us and the generator sent no packet that late, and which began when ten times as long as one was away had passed since, or a millisecond since the generator was late; the figures behind it are of these packets alone. The stand-in has the worker's CPU in turns with it, takes packets, does to them what the bare loop does, waits until as much time has passed as the worker takes for so many at the highest rate that a search found, and gives them back: so what a packet takes through it is what rings, generator, queueing, the memory no user plane can avoid and the machine take. \"Held up\" is the share of the time in turns of 20 to 100 us: timers and other interrupts of the kernel and of the hypervisor, which are no absence yet, and near the full rate vectors that are full, which take as long.\n\nPublished, one way:\n\n";
        LATENCY.iter().for_each(|(system, figure)| _ = writeln!(text, "* {system}: {figure}"));
        Some(text + "\n" + &notes([report]))
    }

    fn drops(&self) -> Option<String> {
        let report = self.of("drops")?;
        let drops = report.drops.as_ref()?;
        let mut text = "## Packets that are dropped\n\nAll packets of a round have one fault, or their users' rules refuse them; rounds of \
the same ones that are forwarded take turns with these. Below 1, it takes less to be rid of a packet than to forward it. What was sent was \
answered, or within its rate.\n\n\
| packets | dropped as | cycles per packet | forwarded alike | of that | sent |\n|---|---|---|---|---|---|\n"
            .to_owned();
        for dropped in &drops.dropped {
            let _ = writeln!(
                text,
                "| {} | `{}` | {} | {} | **{}** | {:.2} % |",
                dropped.what,
                dropped.reason,
                spread(Some(dropped.cycles_per_packet), 0),
                spread(Some(dropped.forwarded_cycles_per_packet), 0),
                spread(Some(dropped.of_forwarded), 3),
                dropped.answered_share * 100.0,
            );
        }
        Some(text + "\n" + &notes([report]))
    }

    fn pfcp(&self) -> Option<String> {
        let report = self.of("pfcp")?;
        let rates = report.pfcp.as_ref()?;
        let mut text = "## Control: sessions over PFCP\n\n| | a second | CPU of the control plane engine, us each | of the data plane engine | answered after, ms: half, 99 % |\n|---|---|---|---|---|\n".to_owned();
        for (name, rate, cost) in [
            ("establishments", rates.establishments_per_s, rates.cost.establishment),
            ("modifications", rates.modifications_per_s, rates.cost.modification),
            ("deletions", rates.deletions_per_s, rates.cost.deletion),
        ] {
            let PfcpCost { cpe_us, dpe_us, answer_us } = cost;
            let ms = |us: f64| format!("{:.1}", us / 1e3);
            let answer = answer_us.map_or("-".to_owned(), |us| format!("{}, {}", ms(us.p50), ms(us.p99)));
            let _ =
                writeln!(text, "| {name} | **{}** | {cpe_us:.1} | {dpe_us:.1} | {answer} |", spread(rate, 0));
        }
        if rates.bare_per_s.is_some() {
            let _ = writeln!(
                text,
                "| *bare UDP: answered at once, unread* | {} | | | |",
                spread(rates.bare_per_s, 0)
            );
        }
        let _ = writeln!(
            text,
            "\n{} sessions; {} requests under way at once, {} failures, {} sent again. A session takes {} bytes: {} in the control plane engine, {} in the data plane engine.\n",
            report.sessions,
            rates.window,
            rates.failures,
            rates.retransmissions,
            rates.bytes_per_session,
            rates.cpe_bytes_per_session,
            rates.dpe_bytes_per_session,
        );
        text += &growth(rates);
        Some(text + &notes([report]))
    }

    /// What there is no figure for.
    fn gaps(&self) -> Option<String> {
        let mut text = "## Not measured\n\n* Network cards: none was near this machine.\n* Charging: records are written by the control plane, of counts that are measured; more content than `services` has.\n".to_owned();
        for (what, why) in &self.refused {
            let _ = writeln!(text, "* `{what}`: {why}");
        }
        Some(text)
    }
}

/// How far the usual way is from what is asked of it, and what would bring it there.
fn next_step(report: &Report) -> String {
    let Some(spread) = &report.spread else { return String::new() };
    let (bare, product) = (spread.bare.median, spread.product.median);
    let asked = bare / ASKED_RATIO;
    if product <= asked {
        return String::new();
    }
    format!(
        "\nTwice the bare loop's {bare:.0} cycles would be {asked:.0} ({ASKED_RATIO:.2} of its rate); these are {product:.0}, {:.0} too \
many. The bare loop asks memory for two lines besides the packet; the usual way asks for three: the flow's tag, the flow, and the \
session's line of the packet's direction (PDR with FAR, rate and count resolved). ARCHITECTURE.md (*the data path*) has what was \
tried. The next step is fewer instructions, in `verdict` first; and where huge pages are translated as small ones, a host that has \
huge ones.\n",
        product - asked
    )
}

/// Whether many sessions are slower to establish than few.
fn growth(rates: &PfcpRates) -> String {
    if rates.growth.len() < 2 {
        return String::new();
    }
    let mut text = "| sessions up to | establishments a second | CPU of the control plane engine, us each | of a bare answer meanwhile |\n|---|---|---|---|\n"
        .to_owned();
    for step in &rates.growth {
        let (cpe_us, bare_us) = (number(step.cpe_us, 2), number(step.bare_us, 2));
        let _ =
            writeln!(text, "| {} | {:.0} | {cpe_us} | {bare_us} |", step.sessions, step.establishments_per_s);
    }
    text += "\n";
    if let Some(ratio) = rates.last_to_first_cpu {
        let _ = writeln!(
            text,
            "By CPU time over that of a bare answer, the last third went at **{ratio:.2}** of the first third's rate.\n"
        );
    }
    if let Some(ratio) = rates.last_to_first_wall {
        let _ = writeln!(
            text,
            "By the clock, whatever the machine did meanwhile, it went at {ratio:.2} of it.\n"
        );
    }
    text
}

/// What a reader must know of some results, each thing once.
pub(super) fn notes<'a>(reports: impl IntoIterator<Item = &'a Report>) -> String {
    let reports: Vec<&Report> = reports.into_iter().collect();
    let points = || reports.iter().flat_map(|report| report.points.iter().chain([*report]));
    let share = points().filter_map(|point| point.cpu_share).fold(1.0, f64::min);
    let mut notes: Vec<String> = Vec::new();
    for note in reports.iter().flat_map(|report| &report.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes.extend((share < BUSY).then(|| busy(share)));
    if reports.iter().any(|report| report.interrupted) {
        notes.push("interrupted: the figures are those of what was done until then".to_owned());
    }
    let lines: Vec<String> = notes.into_iter().map(|note| format!("* {}\n", capital(&note))).collect();
    if lines.is_empty() { String::new() } else { lines.concat() + "\n" }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

pub(super) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

pub(super) fn spread(spread: Option<Spread>, digits: usize) -> String {
    let Some(Spread { min, median, max }) = spread else { return "-".to_owned() };
    format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
}
