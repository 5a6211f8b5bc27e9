//! Makes this host better for a node while it runs: says what it would change, changes it, changes it back.

use crate::doctor::HostArgs;
use crate::exit::{say, unusable};
use anyhow::Context;
use clap::Parser;
use host::tune::{Kernel, Options, Record, UNDO_FILE, Undo, apply, plan, undo};
use host::{CpuSet, Facts, Root, count};

/// What to change, and whether.
#[derive(Parser)]
pub(crate) struct Args {
    #[command(flatten)]
    host: HostArgs,
    /// Change nothing; say what would be changed. So it is without --apply and --undo, too.
    #[arg(long)]
    dry_run: bool,
    /// Change it, all or nothing, and remember what was.
    #[arg(long, conflicts_with = "dry_run")]
    apply: bool,
    /// Change it back.
    #[arg(long, conflicts_with_all = ["dry_run", "apply"])]
    undo: bool,
    /// CPUs of the workers, such as 2-5; those of the configuration, else the isolated ones, unless named.
    #[arg(long, value_name = "CPUS", value_parser = workers)]
    workers: Option<CpuSet>,
    /// Huge pages wanted, in MiB; the configuration's memory_mb, unless named.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    huge_mb: u64,
    /// Switch Intel SST-BF on: some cores get a higher guaranteed frequency, the others a lower one.
    #[arg(long)]
    sst_bf: bool,
    /// Print the steps of the plan as one JSON array, and change nothing.
    #[arg(long, conflicts_with_all = ["apply", "undo"])]
    json: bool,
}

fn workers(text: &str) -> Result<CpuSet, String> {
    let cpus: CpuSet = text.parse()?;
    if cpus.is_empty() {
        Err("no CPU is named; leave it out for the configuration's".to_owned())
    } else {
        Ok(cpus)
    }
}

/// Plans, and does what it is told.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = args.host.root()?;
    if args.undo {
        return change_back(&root);
    }
    let node = args.host.node()?;
    let options = Options {
        workers: args.workers.clone().unwrap_or_default(),
        huge_mb: args.huge_mb,
        base_frequency: args.sst_bf,
    };
    let plan = plan(&root, &Facts::read(&root), node.as_ref(), &options)
        .map_err(|why| unusable(anyhow::anyhow!(why)))?;
    if args.json {
        return say(&(serde_json::to_string(&plan.steps)? + "\n"));
    }
    say(&plan.text())?;
    match args.apply {
        false => {
            let changes = count(plan.changes(), "change");
            say(&format!("\n{changes}; nothing was changed (--apply does it)\n"))
        }
        true => change(&root, &plan),
    }
}

fn change(root: &Root, plan: &host::tune::Plan) -> anyhow::Result<()> {
    let record = Record(root);
    if record.exists() {
        let message = "something was changed before and not changed back: anchorline tune --undo first";
        return Err(unusable(anyhow::anyhow!(message)));
    }
    let result = apply(plan, &mut Kernel(root.clone()), |undo| record.save(undo));
    match result {
        Ok(applied) => say(&format!("{}\n{}\n", left_alone(&applied.left), made(applied.undo.len()))),
        Err(failure) => {
            keep(&record, &failure.remaining).with_context(|| failure.to_string())?;
            Err(failure.into())
        }
    }
}

fn made(changes: usize) -> String {
    match changes {
        0 => "nothing was changed: there is nothing to take back".to_owned(),
        1 => "1 change made; anchorline tune --undo takes it back".to_owned(),
        _ => format!("{changes} changes made; anchorline tune --undo takes them back"),
    }
}

fn change_back(root: &Root) -> anyhow::Result<()> {
    let record = Record(root);
    if !record.exists() {
        return Err(unusable(anyhow::anyhow!("nothing was changed: there is no {UNDO_FILE}")));
    }
    let changes = record.load().with_context(|| UNDO_FILE.to_owned())?;
    let undone = undo(&changes, &mut Kernel(root.clone()));
    let kept = keep(&record, &undone.remaining);
    say(&format!("{}{} taken back\n", left_alone(&undone.left), count(undone.back, "change")))?;
    kept?;
    let failed = undone.failed.join("; ");
    anyhow::ensure!(undone.remaining.is_empty(), "not changed back, so it stays in {UNDO_FILE}: {failed}");
    Ok(())
}

fn left_alone(left: &[String]) -> String {
    left.iter().map(|left| format!("left alone: {left}\n")).collect()
}

/// What could not be undone stays on record, so that --undo can try again, and nothing besides.
fn keep(record: &Record<'_>, remaining: &Undo) -> anyhow::Result<()> {
    record.save(remaining).with_context(|| format!("{UNDO_FILE} cannot be kept in step"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::fs;
    use std::path::Path;
    use std::process::ExitCode;

    fn tune(root: &Path, words: &[&str]) -> anyhow::Result<()> {
        let place = root.to_str().unwrap();
        run(&Args::try_parse_from(["tune", "--root", place].iter().chain(words))?)
    }

    /// A machine of two CPUs with an interrupt and a governor.
    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("proc/irq/9/smp_affinity_list", "0-1\n"),
        ] {
            let place = folder.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_plan_is_applied_once_and_undone() {
        let folder = machine();
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
        let governor = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
        tune(folder.path(), &["--workers", "1", "--dry-run"]).unwrap();
        assert_eq!(read(governor), "powersave\n");
        tune(folder.path(), &["--workers", "1", "--apply"]).unwrap();
        assert_eq!(
            (read(governor).as_str(), read("proc/irq/9/smp_affinity_list").as_str()),
            ("performance", "0")
        );
        assert!(
            tune(folder.path(), &["--workers", "1", "--apply"])
                .unwrap_err()
                .to_string()
                .contains("--undo first")
        );
        tune(folder.path(), &["--undo"]).unwrap();
        assert_eq!(
            (read(governor).as_str(), read("proc/irq/9/smp_affinity_list").as_str()),
            ("powersave\n", "0-1\n")
        );
        assert!(tune(folder.path(), &["--undo"]).unwrap_err().to_string().contains("nothing was changed"));
    }

    #[test]
    fn what_json_is_printed_is_told() {
        let plan = plan(
            &Root::at(machine().path()),
            &Facts::read(&Root::at(machine().path())),
            None,
            &Options::default(),
        );
        assert!(serde_json::to_value(&plan.unwrap().steps).unwrap().is_array());
        assert!(Args::command().render_help().to_string().contains("the plan as one JSON array"));
    }

    /// Or the system removes the folder, and the record with it, whenever the service stops.
    #[test]
    fn the_service_leaves_what_was_changed_on_record() {
        let service = include_str!("../../../../deploy/systemd/anchorline.service");
        let says = |wanted: &str| service.lines().any(|line| line == wanted);
        assert!(UNDO_FILE.starts_with("/run/anchorline/") && says("RuntimeDirectory=anchorline"));
        assert!(says("RuntimeDirectoryPreserve=yes"));
    }

    #[test]
    fn one_change_is_one() {
        assert_eq!(made(1), "1 change made; anchorline tune --undo takes it back");
        assert_eq!(made(2), "2 changes made; anchorline tune --undo takes them back");
    }

    #[test]
    fn a_plan_without_changes_leaves_nothing_to_undo() {
        let folder = machine();
        for _ in 0..2 {
            tune(folder.path(), &["--apply"]).unwrap();
        }
        assert!(tune(folder.path(), &["--undo"]).unwrap_err().to_string().contains("nothing was changed"));
    }

    /// Gone for good, it would keep --undo from ever ending, and --apply from ever being taken again.
    #[test]
    fn an_undo_ends_although_an_interrupt_is_gone() {
        let folder = machine();
        let governor = folder.path().join("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor");
        tune(folder.path(), &["--workers", "1", "--apply"]).unwrap();
        fs::remove_dir_all(folder.path().join("proc/irq/9")).unwrap();
        tune(folder.path(), &["--undo"]).unwrap();
        assert_eq!(fs::read_to_string(&governor).unwrap(), "powersave\n");
        tune(folder.path(), &["--workers", "1", "--apply"]).unwrap();
        // What cannot be read cannot be undone; of the record it alone is kept.
        fs::remove_file(&governor).unwrap();
        fs::create_dir(&governor).unwrap();
        let error = tune(folder.path(), &["--undo"]).unwrap_err().to_string();
        assert!(error.starts_with("not changed back") && error.contains("scaling_governor: "), "{error}");
        assert_eq!(Record(&Root::at(folder.path())).load().unwrap().len(), 1);
    }

    /// It would be a plan for fewer workers than were asked for.
    #[test]
    fn workers_on_cpus_that_are_not_there_are_refused() {
        let folder = machine();
        for (workers, expected) in [
            ("7", "CPU 7 is not there or not online: name workers' CPUs of 0-1"),
            ("1,7-8", "CPUs 7-8 are not there or not online: name workers' CPUs of 0-1"),
        ] {
            let refused = tune(folder.path(), &["--workers", workers, "--apply"]).unwrap_err();
            assert_eq!(refused.to_string(), expected);
            assert_eq!(crate::exit::code(Err(refused)), ExitCode::from(crate::exit::UNUSABLE));
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let folder = machine();
        for words in [
            ["--apply", "--undo"],
            ["--apply", "--dry-run"],
            ["--apply", "--json"],
            ["--workers", "a-b"],
            ["--workers", "1-0"],
            ["--workers", ""],
            ["--workers", ","],
        ] {
            assert!(tune(folder.path(), &words).is_err(), "{words:?}");
        }
    }
}
