//! Plans for known servers, and that a plan is applied whole or not at all and undone to the octet. Nothing here touches
//! this machine. `BLESS=1` writes the golden files anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod made;

use anchorline_host::tune::{Hands, Kernel, Options, Plan, Record, Step, Undo, Write, apply, plan, undo};
use anchorline_host::{CpuSet, Node, State, examine};
use made::kernel::{Fake, Flaky};
use made::{Made, servers};
use proptest::prelude::*;
use std::io;
use std::path::PathBuf;

fn planned(made: &Made, node: Option<&Node>, options: &Options) -> Plan {
    plan(&made.root(), &made.facts(), node, options).unwrap()
}

fn xeon() -> (Made, Plan) {
    let made = servers::xeon();
    let options = Options { base_frequency: true, ..Options::default() };
    let plan = planned(&made, Some(&servers::node()), &options);
    (made, plan)
}

fn compare(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(golden == text, "{name} differs from {}:\n{text}", path.display());
}

#[test]
fn plans_are_those_of_the_golden_files() {
    compare("tune-xeon", &xeon().1.text());
    compare(
        "tune-epyc",
        &planned(&servers::epyc(), None, &Options { huge_mb: 8192, ..Options::default() }).text(),
    );
    compare("tune-cloud", &planned(&servers::cloud(), None, &Options::default()).text());
    compare(
        "tune-container",
        &planned(&servers::container(), Some(&servers::node()), &Options::default()).text(),
    );
    let workers: CpuSet = "1".parse().unwrap();
    let options = Options { workers, huge_mb: 256, ..Options::default() };
    compare("tune-microvm", &planned(&Made::of_file("microvm.tree"), None, &options).text());
}

#[test]
fn a_node_that_wants_no_huge_pages_is_not_asked_for_a_configuration() {
    let node = Node { huge_pages: false, ..servers::node() };
    let first = |node, huge_mb| {
        let plan = planned(&servers::xeon(), node, &Options { huge_mb, ..Options::default() });
        plan.text().lines().next().unwrap().to_owned()
    };
    let none = "huge pages: not available here, because the configuration wants none (dpe.huge_pages is \"never\"): \
                change that, or name --huge-mb";
    assert_eq!(first(Some(&node), 0), none);
    assert!(first(None, 0).contains("how many is not said"));
    assert!(!first(Some(&node), 256).contains("not available here"));
}

/// Whoever names them; of CPUs that are isolated and offline nobody has said that workers are to be there.
#[test]
fn workers_have_cpus_that_are_there() {
    let made = Made::of_file("microvm.tree");
    let refused = |workers: &str, configured: Vec<usize>| {
        let options = Options { workers: workers.parse().unwrap(), ..Options::default() };
        let node = Node { workers: configured, ..servers::node() };
        plan(&made.root(), &made.facts(), Some(&node), &options).err()
    };
    let of_one = Some("CPU 7 is not there or not online: name workers' CPUs of 0-1".to_owned());
    assert_eq!((refused("7", vec![1]), refused("", vec![1, 7])), (of_one.clone(), of_one));
    assert_eq!((refused("1", vec![7]), refused("0-1", vec![])), (None, None));
    made.file("/sys/devices/system/cpu/isolated", "1,7");
    assert!(planned(&made, None, &Options::default()).text().contains("nohz_full=1 "));
}

/// The command line that a plan has for GRUB.
fn command_line(plan: &Plan) -> Vec<String> {
    let text = plan.text();
    let line = text.split_once("GRUB_CMDLINE_LINUX=\"").and_then(|(_, rest)| rest.split_once('"'));
    line.map(|(words, _)| words.split(' ').map(str::to_owned).collect()).unwrap_or_default()
}

#[test]
fn a_cpu_is_left_that_is_not_isolated() {
    let of = |workers: &str| {
        let options = Options { workers: workers.parse().unwrap(), huge_mb: 256, ..Options::default() };
        planned(&Made::of_file("microvm.tree"), None, &options)
    };
    let pages = ["hugepagesz=1G", "hugepages=1"];
    let all = of("0-1");
    assert_eq!(command_line(&all), pages);
    let sentence = "isolation: not available here, because all CPUs are the workers', and one must be left for the kernel \
                    and the control plane\n";
    assert!(all.text().contains(sentence), "{}", all.text());
    let some = of("1");
    assert_eq!(
        command_line(&some),
        [&["isolcpus=managed_irq,domain,1", "nohz_full=1", "rcu_nocbs=1"], &pages[..]].concat()
    );
    assert!(!some.text().contains("isolation: "));
}

/// What the doctor warns of, and what tune would have the kernel told, is the same.
#[test]
fn a_worker_s_sibling_is_isolated_as_the_worker_is() {
    let (made, plan) = xeon();
    let line = command_line(&plan);
    assert!(line.starts_with(&["isolcpus=managed_irq,domain,8,20,48,60".to_owned()]), "{line:?}");
    made.file("/proc/cmdline", &format!("{} intel_iommu=on iommu=pt", line.join(" ")));
    made.file("/sys/devices/system/cpu/isolated", "8,20,48,60");
    let findings = examine(&made.facts(), Some(&servers::node()));
    let siblings = findings.iter().filter(|finding| finding.id == "node.siblings");
    assert_eq!(siblings.map(|finding| finding.state).collect::<Vec<_>>(), [State::Good; 2]);
    let again = planned(&made, Some(&servers::node()), &Options::default()).text();
    assert!(again.ends_with("= the kernel's command line has all that is advised\n"), "{again}");
    // Where workers have a thread of every core, the other threads are what is left.
    let options = Options { workers: "0-1".parse().unwrap(), ..Options::default() };
    let line = command_line(&planned(&servers::cloud(), None, &options));
    assert_eq!(line, ["isolcpus=managed_irq,domain,0-1", "nohz_full=0-1", "rcu_nocbs=0-1"]);
}

/// Whatever is on a worker's sibling takes as much of its core, so irqbalance must not put there what was taken away.
#[test]
fn interrupts_are_kept_off_a_worker_s_sibling_too() {
    let (made, _) = xeon();
    // Of the card, on the sibling of the worker on CPU 8 alone.
    made.file("/proc/interrupts", "           CPU0\n  27:   1   PCI-MSI 1-edge   ens3f0-1")
        .interrupt(27, "48");
    for number in [24, 25, 26] {
        made.interrupt(number, "0-7");
    }
    let told = |made: &Made| {
        let findings = examine(&made.facts(), Some(&servers::node()));
        let found = findings.into_iter().find(|finding| finding.id == "system.interrupts").unwrap();
        (found.state, found.found)
    };
    let astray = "1 interrupt may go to CPUs 48,60, the siblings of the workers'".to_owned();
    assert_eq!(told(&made), (State::Advice, astray));
    let written = |plan: &Plan, path: &str| {
        let writes = plan.steps.iter().filter_map(|step| match step {
            Step::Write(write) if write.path == path => Some(write.then.clone()),
            _ => None,
        });
        writes.collect::<Vec<String>>()
    };
    let plan = planned(&made, Some(&servers::node()), &Options::default());
    assert_eq!(written(&plan, "/proc/irq/27/smp_affinity_list"), ["0-7,9-19,21-47,49-59,61-79"]);
    let file = written(&plan, "/etc/default/irqbalance").concat();
    assert!(file.ends_with("\nIRQBALANCE_BANNED_CPULIST=8,20,48,60\n"), "{file}");
    made.interrupt(27, "0");
    let good = "none may go to CPUs 8,20, nor to their siblings 48,60".to_owned();
    assert_eq!(told(&made), (State::Good, good));
    // Where nothing else is left, interrupts must go to the siblings.
    let cloud = servers::cloud();
    cloud.file("/proc/300/comm", "irqbalance").file("/etc/default/irqbalance", "").interrupt(5, "0-3");
    let options = Options { workers: "0-1".parse().unwrap(), ..Options::default() };
    let plan = planned(&cloud, None, &options);
    assert_eq!(written(&plan, "/proc/irq/5/smp_affinity_list"), ["2-3"]);
    assert!(written(&plan, "/etc/default/irqbalance").concat().ends_with("=0-1\n"));
}

#[test]
fn the_doctor_wants_as_many_pages_as_tune() {
    let made = servers::epyc();
    made.huge_pages(0, 2048, [0, 0]);
    for (memory_mb, pages) in [(256, "hugepages=1"), (1_025, "hugepages=2"), (8_192, "hugepages=8")] {
        let node = Node { memory_mb, workers: vec![1], ..servers::node() };
        let line = command_line(&planned(&made, Some(&node), &Options::default()));
        assert_eq!(line.last().map(String::as_str), Some(pages));
        let findings = examine(&made.facts(), Some(&node));
        for id in ["memory.huge-pages", "memory.huge-1g"] {
            let found = findings.iter().find(|finding| finding.id == id).unwrap();
            assert!(found.act.split(' ').any(|word| word == pages), "{found:?}");
        }
    }
}

#[test]
fn where_nothing_is_there_nothing_is_changed() {
    assert_eq!(planned(&servers::container(), Some(&servers::node()), &Options::default()).changes(), 0);
}

/// Nothing to undo is nothing to remember, whether nothing was to be changed or all was left alone.
#[test]
fn where_nothing_was_changed_nothing_is_on_record() {
    let made = Made::new();
    let (root, fixed) = (made.root(), "/proc/irq/24/smp_affinity_list");
    let record = Record(&root);
    let mut refused = write(fixed.to_owned(), "0-1\n".to_owned(), "0".to_owned());
    if let Step::Write(write) = &mut refused {
        write.refusal = Some("its driver has its way".to_owned());
    }
    let mut fake = Fake { stubborn: vec![fixed.to_owned()], ..Fake::default() };
    for (steps, left) in [(vec![Step::Done("turbo is on".to_owned())], 0), (vec![refused], 1)] {
        let mut was_there = false;
        let applied = apply(&Plan { steps }, &mut fake, |undo| {
            record.save(undo)?;
            was_there |= record.exists();
            Ok(())
        });
        assert_eq!(applied.unwrap().left.len(), left);
        assert!(was_there == (left > 0) && !record.exists());
    }
}

#[test]
fn a_plan_that_was_applied_has_nothing_left_to_do() {
    let (made, plan) = xeon();
    let mut fake = Fake::of(&made, &plan);
    apply(&plan, &mut fake, |_| Ok(())).unwrap();
    fake.files.iter().for_each(|(path, text)| std::fs::write(made.place(path), text).unwrap());
    // The pages that were made are free. On the other node there were enough.
    std::fs::write(
        made.place("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages"),
        "1365",
    )
    .unwrap();
    let again = planned(&made, Some(&servers::node()), &Options::default());
    let left: Vec<&Step> = again.steps.iter().filter(|step| matches!(step, Step::Write(_))).collect();
    assert!(left.is_empty(), "{left:?}");
    // Nor does the doctor ask it of CPUs that were left as they are.
    let findings = examine(&made.facts(), Some(&servers::node()));
    for (id, expected) in [
        ("power.governor", "performance on CPUs 8,20 (intel_pstate)"),
        ("power.sleep", "intel_idle of CPUs 8,20: POLL 0 us, C1 2 us, C1E 10 us"),
        ("power.bias", "EPP performance on CPUs 8,20, EPB 0 on CPUs 8,20"),
    ] {
        let found = findings.iter().find(|finding| finding.id == id).unwrap();
        assert_eq!((found.state, found.found.as_str()), (State::Good, expected));
    }
}

#[test]
fn a_file_that_may_be_refused_is_left_and_said() {
    let (made, plan) = xeon();
    let mut fake = Fake::of(&made, &plan);
    fake.stubborn.push("/proc/irq/25/smp_affinity_list".to_owned());
    fake.stubborn.push("/proc/irq/24/smp_affinity_list".to_owned());
    let before = fake.clone();
    let applied = apply(&plan, &mut fake, |_| Ok(())).unwrap();
    assert_eq!(applied.left.len(), 1);
    assert_eq!(applied.undo.len(), plan.changes() - 1);
    assert!(undo(&applied.undo, &mut fake).failed.is_empty());
    assert_eq!(fake.files, before.files);
}

/// Intel's driver says "no turbo" where there is none to be had, too, and takes nothing else then.
#[test]
fn turbo_that_the_bios_has_switched_off_is_left_and_all_else_is_done() {
    const TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    let (made, plan) = xeon();
    let mut fake = Fake::of(&made, &plan);
    fake.stubborn.push(TURBO.to_owned());
    let applied = apply(&plan, &mut fake, |_| Ok(())).unwrap();
    let why = "the kernel refuses: turbo is off in the BIOS, or this CPU has none";
    let [left] = &applied.left[..] else { panic!("{applied:?}") };
    assert!(left.starts_with(&format!("{TURBO}: {why}")), "{left}");
    assert_eq!(applied.undo.len(), plan.changes() - 1);
    assert_eq!(undo(&applied.undo, &mut fake).back, applied.undo.len());
}

/// Fewer pages than were asked for are a failure, and given back.
#[test]
fn a_kernel_that_takes_less_is_found_out() {
    struct Poor(Fake);
    impl Hands for Poor {
        fn read(&mut self, path: &str) -> io::Result<String> {
            self.0.read(path)
        }
        fn write(&mut self, path: &str, text: &str) -> io::Result<()> {
            let text = if path.ends_with("nr_hugepages") && text != "512\n" { "17\n" } else { text };
            self.0.write(path, text)
        }
        fn run(&mut self, words: &[String]) -> io::Result<()> {
            self.0.run(words)
        }
    }
    let (made, plan) = xeon();
    let mut poor = Poor(Fake::of(&made, &plan));
    let before = poor.0.files.clone();
    let failure = apply(&plan, &mut poor, |_| Ok(())).unwrap_err();
    assert!(failure.to_string().contains("nr_hugepages") && failure.not_undone.is_empty(), "{failure}");
    assert_eq!(poor.0.files, before);
}

/// In whatever order things depend on each other.
#[test]
fn a_server_is_as_it_was_after_all_is_undone_and_after_any_failure() {
    let (made, plan) = xeon();
    for fails_after in 0..plan.changes() {
        let mut flaky = Flaky(Fake { left: Some(fails_after), ..Fake::of(&made, &plan) });
        let before = flaky.0.files.clone();
        let not_undone = match apply(&plan, &mut flaky, |_| Ok(())) {
            Err(failure) => failure.not_undone,
            // An interrupt was left alone, and all went on.
            Ok(applied) => undo(&applied.undo, &mut flaky).failed,
        };
        assert_eq!(not_undone, Vec::<String>::new());
        assert_eq!(flaky.0.files, before);
    }
    let mut fake = Fake::of(&made, &plan);
    let before = fake.files.clone();
    let applied = apply(&plan, &mut fake, |_| Ok(())).unwrap();
    assert_eq!(fake.programs.len(), 4);
    let undone = undo(&applied.undo, &mut fake);
    assert!(undone.failed.is_empty() && undone.left.is_empty(), "{undone:?}");
    assert_eq!((fake.files, fake.programs.len()), (before, 8));
}

/// With real files below a made root, through the undo file.
#[test]
fn files_below_a_root_are_changed_and_undone() {
    let made = servers::epyc();
    made.file("/proc/sys/kernel/nmi_watchdog", "1");
    let plan = planned(&made, None, &Options { huge_mb: 8192, ..Options::default() });
    let (root, watchdog) = (made.root(), made.place("/proc/sys/kernel/nmi_watchdog"));
    let record = Record(&root);
    let applied = apply(&plan, &mut Kernel(root.clone()), |undo| record.save(undo)).unwrap();
    assert_eq!(applied.undo.len(), 10);
    assert_eq!(std::fs::read_to_string(&watchdog).unwrap(), "0");
    let undone = record.load().unwrap();
    assert_eq!(undone, applied.undo);
    assert_eq!(undo(&undone, &mut Kernel(root.clone())).back, 10);
    assert_eq!(std::fs::read_to_string(&watchdog).unwrap(), "1\n");
    record.remove().unwrap();
    assert!(!record.exists());
    let program = ["true".to_owned()];
    assert!(Kernel(root).run(&program).is_err(), "no program runs below another root");
}

/// What cannot be undone stays to be tried again, and nothing else does.
#[test]
fn an_undo_that_fails_says_what_is_left() {
    let (made, plan) = xeon();
    let mut fake = Fake::of(&made, &plan);
    let before = fake.files.clone();
    let applied = apply(&plan, &mut fake, |_| Ok(())).unwrap();
    let ksm = "/sys/kernel/mm/ksm/run";
    fake.stubborn.push(ksm.to_owned());
    let undone = undo(&applied.undo, &mut fake);
    let [failed] = &undone.failed[..] else { panic!("{undone:?}") };
    assert!(failed.starts_with(&format!("{ksm}: ")), "{failed}");
    assert_eq!((undone.back, undone.remaining.len()), (applied.undo.len() - 1, 1));
    // What somebody has changed by the next time is none of it.
    fake.stubborn.clear();
    fake.files.insert("/proc/sys/kernel/numa_balancing".to_owned(), "2\n".to_owned());
    let again = undo(&undone.remaining, &mut fake);
    assert!(again.back == 1 && again.remaining.is_empty() && again.left.is_empty(), "{again:?}");
    assert_eq!(fake.files[ksm], before[ksm]);
    assert_eq!(fake.files["/proc/sys/kernel/numa_balancing"], "2\n");
}

/// What another has by now, or changed, is left to him; what is gone needs no undoing.
#[test]
fn what_is_gone_or_another_s_is_not_undone() {
    const NVME: &str = "/proc/irq/24/smp_affinity_list";
    const FREE: &str = "  24:   1   PCI-MSI 1-edge\n";
    let table = |name: &str| format!("       CPU0\n  24:   1   PCI-MSI 1-edge   {name}\n");
    let gone = |fake: &mut Fake| drop(fake.files.remove(NVME));
    let other = |fake: &mut Fake| drop(fake.files.insert("/proc/interrupts".to_owned(), table("xhci_hcd")));
    let down = |fake: &mut Fake| {
        drop(fake.files.insert("/proc/interrupts".to_owned(), FREE.replace("  24", "  23")))
    };
    let moved = |fake: &mut Fake| drop(fake.files.insert(NVME.to_owned(), "5\n".to_owned()));
    let back = |fake: &mut Fake| drop(fake.files.insert(NVME.to_owned(), "0-79\n".to_owned()));
    let fixed = |fake: &mut Fake| fake.stubborn.push(NVME.to_owned());
    type Later<'a> = &'a dyn Fn(&mut Fake);
    let cases: [(Later<'_>, Option<&str>, Option<&str>); 6] = [
        (&gone, Some("it is gone"), None),
        (&other, Some("the interrupt is xhci_hcd's by now"), Some("0-7,9-19,21-47,49-59,61-79")),
        (&moved, Some("somebody has changed it since: \"0-7,9-19,21-47,49-59,61-79\" was"), Some("5\n")),
        (&fixed, Some("the kernel refuses"), Some("0-7,9-19,21-47,49-59,61-79")),
        (&down, None, Some("0-79\n")),
        (&back, None, Some("0-79\n")),
    ];
    let (made, plan) = xeon();
    for (later, left, now) in cases {
        let mut fake = Fake::of(&made, &plan);
        fake.files.insert("/proc/interrupts".to_owned(), table("nvme0q0"));
        let applied = apply(&plan, &mut fake, |_| Ok(())).unwrap();
        later(&mut fake);
        let undone = undo(&applied.undo, &mut fake);
        assert!(undone.failed.is_empty() && undone.remaining.is_empty(), "{undone:?}");
        let expected: Vec<String> = left.iter().map(|why| format!("{NVME}: {why}")).collect();
        assert_eq!(undone.left.len(), expected.len(), "{undone:?}");
        assert!(undone.left.iter().zip(&expected).all(|(left, why)| left.starts_with(why)), "{undone:?}");
        assert_eq!(undone.back + undone.left.len(), applied.undo.len());
        assert_eq!(fake.files.get(NVME).map(String::as_str), now);
    }
}

fn write(path: String, now: String, then: String) -> Step {
    Step::Write(Write { path, now, then, why: String::new(), refusal: None, owner: None })
}

prop_compose! {
    /// A file with some text, or a choice among words, and another value for it.
    fn change(number: usize)(
        kind in 0..3, text in "[ -~]{0,12}(\n[ -~]{0,12})?\n?", words in proptest::collection::hash_set("[a-z]{1,6}", 2..5),
        from: prop::sample::Index, to: prop::sample::Index,
    ) -> (String, String, String) {
        let words: Vec<String> = words.into_iter().collect();
        match kind {
            0 => (format!("/etc/{number}"), text, "other\n".to_owned()),
            1 => (format!("/sys/{number}"), text.replace(['[', ']'], ""), "1".to_owned()),
            _ => {
                let chosen = from.index(words.len());
                let bracket = |(at, word): (usize, &String)| if at == chosen { format!("[{word}]") } else { word.clone() };
                let now = words.iter().enumerate().map(bracket).collect::<Vec<_>>().join(" ") + "\n";
                (format!("/sys/{number}"), now, words[to.index(words.len())].clone())
            }
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<(String, String, String)>> {
    (0..12_usize).prop_flat_map(|count| (0..count).map(change).collect::<Vec<_>>())
}

proptest! {
    /// Applied and undone, or failed anywhere: every file is as it was, to the octet.
    #[test]
    fn what_is_undone_is_as_it_was(files in changes(), fails_after in proptest::option::of(0..20_usize)) {
        let mut fake = Fake { left: fails_after, ..Fake::default() };
        let mut steps = Vec::new();
        for (path, now, then) in files {
            fake.files.insert(path.clone(), now.clone());
            steps.push(write(path, now, then));
        }
        let before = fake.files.clone();
        let plan = Plan { steps };
        let mut recorded = Undo::default();
        // Undoing is not what fails here.
        let mut hands = Flaky(fake);
        let result = apply(&plan, &mut hands, |undo| {
            recorded = undo.clone();
            Ok(())
        });
        match result {
            Ok(applied) => {
                prop_assert_eq!(&applied.undo, &recorded);
                prop_assert_eq!(applied.undo.len(), plan.changes());
                hands.0.left = None;
                // What is read from the undo file is what was recorded.
                let read: Undo = serde_json::from_str(&serde_json::to_string(&recorded).unwrap()).unwrap();
                prop_assert_eq!(undo(&read, &mut hands).back, read.len());
            }
            Err(failure) => prop_assert!(failure.not_undone.is_empty(), "{failure}"),
        }
        prop_assert_eq!(hands.0.files, before);
    }

    /// A record that cannot be written stops everything before anything is changed.
    #[test]
    fn nothing_is_changed_without_a_record(files in changes()) {
        prop_assume!(!files.is_empty());
        let mut fake = Fake::default();
        let mut steps = Vec::new();
        for (path, now, then) in files {
            fake.files.insert(path.clone(), now.clone());
            steps.push(write(path, now, then));
        }
        let before = fake.files.clone();
        let failure = apply(&Plan { steps }, &mut fake, |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        prop_assert!(failure.not_undone.is_empty());
        prop_assert_eq!(fake.files, before);
    }
}

/// Whoever is killed while pages are reserved leaves some of them, and these are taken back, too.
#[test]
fn pages_of_a_write_that_was_cut_short_are_given_back() {
    const PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let made = servers::epyc();
    made.file(PAGES, "4");
    for (now, is_ours) in [("5", true), ("11", true), ("12", true), ("4", false), ("3", false), ("13", false)]
    {
        let mut plan = planned(&made, None, &Options::default());
        plan.steps = vec![write(PAGES.to_owned(), "4\n".to_owned(), "12".to_owned())];
        let mut fake = Fake::of(&made, &plan);
        let applied = apply(&plan, &mut fake, |_| Ok(())).unwrap();
        fake.files.insert(PAGES.to_owned(), format!("{now}\n"));
        let undone = undo(&applied.undo, &mut fake);
        assert_eq!(fake.files[PAGES] == "4\n", is_ours || now == "4", "{now}: {undone:?}");
        assert_eq!(undone.left.is_empty(), is_ours || now == "4", "{now}: {undone:?}");
    }
}

/// Where nothing can be written, nothing was changed, and nothing is left to be undone.
#[test]
fn what_could_not_be_written_need_not_be_undone() {
    const PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let made = servers::epyc();
    made.file(PAGES, "4");
    let mut plan = planned(&made, None, &Options::default());
    plan.steps = vec![write(PAGES.to_owned(), "4\n".to_owned(), "12".to_owned())];
    let mut fake = Fake::of(&made, &plan);
    fake.stubborn.push(PAGES.to_owned());
    let failure = apply(&plan, &mut fake, |_| Ok(())).unwrap_err();
    assert!(failure.remaining.is_empty() && failure.not_undone.is_empty(), "{failure:?}");
    assert!(failure.to_string().ends_with("; nothing else was changed"), "{failure}");
}
