//! Every scenario, one after the other, for the record. Each runs in a process of its own: memory of one is not
//! memory of the next.

use crate::{interrupt, output, page};
use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// One measurement: its file, and the words that ask for it.
struct Case {
    name: &'static str,
    words: &'static str,
}

const fn case(name: &'static str, words: &'static str) -> Case {
    Case { name, words }
}

/// Between two looks whether a measurement is done.
const TICK: Duration = Duration::from_millis(20);

/// What sessions must reach at any time: rates a second, no slowing down with their number, and bytes of the control process's.
const PFCP: &str = "pfcp --sessions 1000000 --require establishments=30000,modifications=60000,bytes=1536,last_to_first_cpu=0.9";

/// For the record: some nine minutes.
const RECORD: &[Case] = &[
    case("forward-zte", "forward --profile zte --duration 10"),
    case("forward-zte-up", "forward --profile zte --direction up --duration 5"),
    case("forward-zte-down", "forward --profile zte --direction down --duration 5"),
    case("forward-samsung", "forward --profile samsung --duration 5"),
    case("forward-cht-512", "forward --profile cht-512 --duration 5"),
    case("forward-cht-1280", "forward --profile cht-1280 --duration 5"),
    case("forward-epc-us", "forward --profile epc-us --duration 5"),
    case("forward-epc-us-stress", "forward --profile epc-us-stress --duration 5"),
    case("sessions", "sessions --duration 25"),
    case("flows", "flows --duration 15"),
    case("rules", "rules --duration 30"),
    case("latency", "latency --duration 30"),
    case("scaling", "scaling --duration 20"),
    case("steering", "steering --sessions 60000 --duration 30"),
    case("control", "control --duration 10"),
    case("services", "services --duration 20"),
    case("drops", "drops --duration 10"),
    case("pfcp", PFCP),
];

/// The same in less than a minute, rougher. The sweep over content rules is that of `services`.
const QUICK: &[Case] = &[
    case("forward-zte", "forward --profile zte --sessions 200000 --flows 400000 --duration 2 --trials 3"),
    case("sessions", "sessions --sessions 100000 --flows 100000 --duration 3 --trials 3"),
    case("flows", "flows --sessions 60000 --flows 400000 --duration 2 --trials 3"),
    case("rules", "rules --sessions 600 --flows 50000 --rules 0 --duration 3 --trials 3"),
    case("latency", "latency --sessions 60000 --duration 3 --trials 2"),
    case("scaling", "scaling --sessions 60000 --flows 100000 --duration 3 --trials 3"),
    case("steering", "steering --sessions 10000 --flows 50000 --duration 4 --trials 3"),
    case("control", "control --sessions 60000 --flows 100000 --duration 2 --trials 3"),
    case("services", "services --sessions 20000 --flows 50000 --duration 3 --trials 3"),
    case("drops", "drops --sessions 20000 --flows 50000 --duration 1 --trials 3"),
    case("pfcp", "pfcp --sessions 20000 --duration 2 --trials 3"),
];

/// Measures everything and writes results and page into `folder`.
///
/// # Errors
/// A folder that cannot be written; a figure that was required and missed. A measurement without a result is no error here: the page
/// says why.
pub(crate) fn all(folder: &Path, quick: bool, seed: u64) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let cases = if quick { QUICK } else { RECORD };
    let (mut refused, mut missed) = (Vec::new(), Vec::new());
    let bar = progress(cases.len());
    for case in cases {
        bar.set_message(case.words);
        let result = match interrupt::asked() {
            true => Err(anyhow!("interrupted before")),
            false => measure(case, folder, seed),
        };
        if let Err(error) = result {
            bar.suspend(|| eprintln!("{}: {error:#}", case.name));
            // Where there is a result, it is not what was required, and the page has it all the same.
            match file(folder, case).exists() {
                true => missed.push(format!("{}: {error:#}", case.name)),
                false => refused.push((case.name.to_owned(), format!("{error:#}"))),
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    page::write(folder, refused)?;
    output::say(&format!("the report is in {}\n", folder.join("index.md").display()))?;
    anyhow::ensure!(missed.is_empty(), "{}", missed.join("; "));
    Ok(())
}

fn progress(cases: usize) -> ProgressBar {
    let bar = ProgressBar::new(cases as u64);
    if let Ok(style) = ProgressStyle::with_template("{pos}/{len} {elapsed} [{bar:20}] {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Where its result goes.
fn file(folder: &Path, case: &Case) -> PathBuf {
    folder.join(format!("{}.json", case.name))
}

fn measure(case: &Case, folder: &Path, seed: u64) -> anyhow::Result<()> {
    let file = file(folder, case);
    // An older result must not pass for a new one.
    let _ = std::fs::remove_file(&file);
    child(case.words, &file, seed)
}

/// Runs one measurement in a process of its own.
///
/// # Errors
/// What it said.
pub(crate) fn child(words: &str, file: &Path, seed: u64) -> anyhow::Result<()> {
    let executable = std::env::current_exe().context("the executable cannot be found again")?;
    let mut command = Command::new(executable);
    command.arg("bench").args(words.split(' ')).args(["--seed", &seed.to_string()]).arg("--json").arg(file);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = wait(command.spawn().context("it cannot be started")?)?;
    let said = String::from_utf8_lossy(&child.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it ended without a word");
    anyhow::ensure!(child.status.success(), "{}", last.trim_start_matches("anchorline: "));
    Ok(())
}

/// Waits for it; where we are asked to stop, it is asked too, for what it has. It says little: its pipe never fills.
fn wait(mut child: Child) -> anyhow::Result<Output> {
    let mut told = false;
    while child.try_wait()?.is_none() {
        if interrupt::asked() && !told {
            told = true;
            i32::try_from(child.id()).map(|pid| kill(Pid::from_raw(pid), Signal::SIGINT))??;
        }
        std::thread::sleep(TICK);
    }
    Ok(child.wait_with_output()?)
}
