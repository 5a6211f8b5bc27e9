//! Plans beside a data plane that runs, which has its huge pages beyond the kernel's pool: they are in the kernel's count all the same.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod made;

use anchorline_host::tune::{Options, Plan, Step, Write, apply, plan, undo};
use anchorline_host::{Node, State, examine};
use made::kernel::Fake;
use made::{Made, servers};

const FOLDER: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB";

/// A host of one node, where a process has so many pages of 2 MiB, all of them beyond the pool.
fn beside(name: &str, pages: u64, pool: u64) -> Made {
    let made = servers::cloud();
    made.huge_pages(0, 2048, [pool + pages, pool]);
    made.file(&format!("{FOLDER}/surplus_hugepages"), &pages.to_string());
    made.file("/proc/900/status", &format!("Name:\t{name}\nHugetlbPages:\t{:>8} kB\n", pages * 2048));
    made
}

fn node() -> Node {
    Node { memory_mb: 256, required: false, ..servers::node() }
}

fn planned(made: &Made, options: &Options) -> Plan {
    let node = Node { workers: Vec::new(), ..node() };
    plan(&made.root(), &made.facts(), Some(&node), options).unwrap()
}

fn pages(plan: &Plan) -> Option<&Write> {
    plan.steps.iter().find_map(|step| match step {
        Step::Write(write) if write.path.ends_with("/nr_hugepages") => Some(write),
        _ => None,
    })
}

#[test]
fn pages_of_a_data_plane_that_runs_are_not_missing() {
    let plan = planned(&beside("anchorline", 128, 0), &Options::default());
    assert_eq!(pages(&plan), None);
    let told = "0 MiB of huge pages are free, a data plane that runs has 256, 256 are wanted";
    assert!(plan.text().contains(told), "{}", plan.text());
    let some = planned(&beside("anchorline", 96, 16), &Options::default());
    assert_eq!(pages(&some).map(|write| (write.now.as_str(), write.then.as_str())), Some(("16\n", "128")));
    let of_another = planned(&beside("qemu", 128, 0), &Options::default());
    assert_eq!(
        pages(&of_another).map(|write| (write.now.as_str(), write.then.as_str())),
        Some(("0\n", "256"))
    );
}

#[test]
fn each_node_of_a_host_has_its_own() {
    let made = servers::xeon();
    let wanted = |made: &Made| {
        let facts = made.facts();
        [None, Some(0), Some(1)].map(|node| facts.memory.held_huge_mb(node))
    };
    made.file("/proc/900/status", "Name:\tanchorline\nHugetlbPages:\t  1089536 kB\n");
    assert_eq!(wanted(&made), [1_064, 0, 0], "where they are is not told");
    made.file(
        "/proc/900/numa_maps",
        "100200000 bind:0 file=/memfd:rtemap_0 huge dirty=32 N0=12 N1=20 kernelpagesize_kB=2048\n\
         140000000 bind:1 file=/memfd:rtemap_1 huge dirty=1 N1=1 kernelpagesize_kB=1048576\n\
         7f0000000 default anon=9 dirty=9 N0=9 kernelpagesize_kB=4\n",
    );
    assert_eq!(wanted(&made), [1_088, 24, 1_064]);
}

/// The kernel takes the pages that were beyond it into its pool; taken out of it again, they go with the process that has them.
#[test]
fn what_is_undone_leaves_no_pages_in_the_pool_that_were_beyond_it() {
    let made = beside("anchorline", 128, 0);
    let plan = planned(&made, &Options { huge_mb: 512, ..Options::default() });
    let write = pages(&plan).unwrap().clone();
    let mut fake = Fake::of(&made, &plan);
    let applied = apply(&plan, &mut fake, |_| Ok(())).unwrap();
    assert_eq!(fake.files[&write.path].trim(), "256");
    let undone = undo(&applied.undo, &mut fake);
    assert!(undone.left.is_empty() && undone.failed.is_empty(), "{undone:?}");
    assert_eq!(fake.files[&write.path], "0\n");
}

#[test]
fn the_doctor_does_not_ask_for_what_a_data_plane_has() {
    let found = |made: &Made, id: &str| {
        let findings = examine(&made.facts(), Some(&node()));
        findings.into_iter().find(|finding| finding.id == id).unwrap()
    };
    let (running, other) = (beside("anchorline", 128, 0), beside("qemu", 128, 0));
    for id in ["memory.huge-pages", "node.packet-memory"] {
        let [of_ours, of_another] = [&running, &other].map(|made| found(made, id));
        assert_eq!(of_ours.state, State::Good, "{of_ours:?}");
        assert!(of_ours.found.contains("a data plane that runs has 256"), "{of_ours:?}");
        assert_ne!(of_another.state, State::Good, "{of_another:?}");
    }
}
