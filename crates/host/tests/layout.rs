//! Which CPUs workers are proposed on known servers. `BLESS=1` writes the golden files anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod made;

use anchorline_host::{Asked, CpuSet, Finding, Layout, Node, NodePort, State, examine};
use made::{Made, compare, servers};

fn of<'a>(findings: &'a [Finding], id: &str) -> Vec<&'a Finding> {
    findings.iter().filter(|finding| finding.id == id).collect()
}

fn proposed(made: &Made, node: Option<&Node>) -> Layout {
    Layout::propose(&made.facts(), node, Asked::default()).unwrap()
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

/// On the node of most ports, of the cores that were isolated, and never on the core of the first CPU.
#[test]
fn a_layout_is_proposed_for_workers() {
    let xeon = servers::xeon();
    let two = proposed(&xeon, Some(&servers::node()));
    compare("layout-xeon", &two.toml());
    assert_eq!((two.cpus, two.idle), (vec![8, 9], set("48-49")));
    assert_eq!(two.housekeeping, set("0-7,10-47,50-79"));
    // Nobody said how many: as many as were isolated, where the card is that DPDK drives.
    let all = proposed(&xeon, None);
    assert_eq!((all.numa_node, all.cpus), (Some(0), (8..20).collect()));
    // The other card alone: nothing of its node is isolated, and CPU 0 is on the other.
    let port = |device: &str| NodePort { name: "n6".to_owned(), device: device.to_owned() };
    let far = Node { ports: vec![port("0000:af:00.0")], ..Node::default() };
    assert_eq!(proposed(&xeon, Some(&far)).cpus, (20..40).collect::<Vec<usize>>());
    compare("layout-epyc", &proposed(&servers::epyc(), None).toml());
    // Of two cores one is the kernel's.
    let cloud = proposed(&servers::cloud(), None);
    assert!(cloud.toml().contains("; CPU 3 is to have nothing to do beside them\n"), "{}", cloud.toml());
    assert_eq!((cloud.cpus, cloud.housekeeping, cloud.idle), (vec![1], set("0,2"), set("3")));
    let more = Asked { workers: Some(3), threads: true };
    let both = Layout::propose(&servers::cloud().facts(), None, more).unwrap();
    assert!(both.why.contains(&"3 workers are asked for, and there is room for 2".to_owned()), "{both:?}");
    assert_eq!(both.cpus, [1, 3]);
    let one = Made::new();
    one.cpus(1, 1);
    let because = Layout::propose(&one.facts(), None, Asked::default()).unwrap_err();
    assert_eq!(because, "all CPUs are of one core, and the kernel needs CPU 0");
}

/// What is proposed is good to the checks that would refuse or warn of it, once it is isolated as it says.
#[test]
fn what_is_proposed_is_accepted_by_the_checks() {
    for made in [servers::xeon(), servers::epyc(), servers::cloud()] {
        let node = |workers: Vec<usize>| {
            let port = NodePort { name: "n3".to_owned(), device: "0000:3b:00.0".to_owned() };
            Node { worker_count: workers.len(), workers, ports: vec![port], ..servers::node() }
        };
        let layout = proposed(&made, Some(&node(Vec::new())));
        let configured = node(layout.cpus.clone());
        assert_eq!(proposed(&made, Some(&configured)).cpus, layout.cpus, "it stays as it is");
        let apart: CpuSet = layout.cpus.iter().copied().chain(layout.idle.iter()).collect();
        made.file("/sys/devices/system/cpu/isolated", &apart.to_string());
        let findings = examine(&made.facts(), Some(&configured));
        for id in ["cpu.layout", "node.workers", "node.siblings", "node.placement"] {
            let found = of(&findings, id);
            assert!(!found.is_empty() && found.iter().all(|one| one.state == State::Good), "{found:?}");
        }
    }
}

#[test]
fn workers_that_are_elsewhere_are_told_apart() {
    let made = servers::xeon();
    let told = |workers: &[usize]| {
        let node = Node { workers: workers.to_vec(), worker_count: workers.len(), ..servers::node() };
        of(&examine(&made.facts(), Some(&node)), "cpu.layout")[0].found.clone()
    };
    assert_eq!(told(&[8, 40]), "the worker on CPU 40 is on the core that the kernel does its own work on");
    assert_eq!(told(&[8, 20]), "the worker on CPU 20 is not on node 0, as the ports are");
    assert_eq!(told(&[8, 48]), "the worker on CPU 8 shares its core, and there are free ones");
    assert!(told(&[3, 4]).starts_with("the workers' CPUs are on their ports' node"));
}
