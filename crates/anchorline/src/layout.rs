//! Which CPUs and what memory a node runs on: what is not a worker leaves workers' CPUs to them, and what the host's layout
//! takes from packets is said at the start.

use crate::settings::DpeSettings;
use crate::{doctor, exit};
use anyhow::Context;
use host::{Facts, Finding, Root, State};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::path::Path;

/// Checks of `anchorline doctor` that are about where things are. Others are about what starting finds out itself.
const CHECKS: [&str; 4] = ["node.siblings", "node.placement", "node.tables", "node.idle"];

const UNKNOWN: &str = "which CPUs this process may use is not known";

/// The calling thread, and all that it starts from now on, runs beside the workers' CPUs. Workers bind themselves.
///
/// # Errors
/// Those of the kernel.
pub(crate) fn keep_off(workers: &[usize]) -> anyhow::Result<()> {
    let ourselves = Pid::from_raw(0);
    let allowed = sched_getaffinity(ourselves).context(UNKNOWN)?;
    match beside(&allowed, workers) {
        Some(rest) => Ok(sched_setaffinity(ourselves, &rest)?),
        None => {
            tracing::warn!(
                "dpe.cpus: workers have all CPUs this process may use, and share them with the rest of it"
            );
            Ok(())
        }
    }
}

/// Whether workers can be where they are told to: else they would end soon after the start, time and again.
///
/// # Errors
/// Workers' CPUs that are not there, or not for this process.
pub(crate) fn check_cpus(workers: &[usize]) -> anyhow::Result<()> {
    // By a thread of its own, which nobody misses where it was put last.
    let asked = std::thread::scope(|scope| scope.spawn(|| check(workers, takes)).join());
    asked.unwrap_or_else(|_| Err(anyhow::anyhow!(UNKNOWN))).map_err(exit::unusable)
}

/// Whether the calling thread may be on a CPU, and is from now on. Where it is before it asks tells nothing: CPUs that are isolated
/// (isolcpus) are nobody's who does not ask for them.
fn takes(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).is_ok()
}

fn check(workers: &[usize], is_usable: impl Fn(usize) -> bool) -> anyhow::Result<()> {
    let refused: host::CpuSet = workers.iter().copied().filter(|cpu| !is_usable(*cpu)).collect();
    if refused.is_empty() {
        return Ok(());
    }
    let usable: host::CpuSet = (0..CpuSet::count()).filter(|cpu| is_usable(*cpu)).collect();
    anyhow::bail!(
        "dpe.cpus: no worker can run on CPU {refused}; name CPUs this process may use, which are {usable}"
    )
}

/// Those that are no worker's; `None` where none is left.
fn beside(allowed: &CpuSet, workers: &[usize]) -> Option<CpuSet> {
    let mut rest = CpuSet::new();
    let is_left = |cpu: &usize| allowed.is_set(*cpu).unwrap_or(false) && !workers.contains(cpu);
    let left = (0..CpuSet::count()).filter(is_left).filter(|cpu| rest.set(*cpu).is_ok()).count();
    (left > 0).then_some(rest)
}

/// Says what of the host's layout costs throughput or latency, and what to do about it.
pub(crate) fn warn(dpe: &DpeSettings) {
    let facts = Facts::read(&Root::at(Path::new("/")));
    for Finding { found, act, id, .. } in costly(&facts, &doctor::node(dpe)) {
        tracing::warn!("{found}; {act} (anchorline doctor explain {id})");
    }
}

fn costly(facts: &Facts, node: &host::Node) -> Vec<Finding> {
    let findings = CHECKS.iter().filter_map(|id| host::explain(id, facts, Some(node))).flatten();
    findings.filter(|finding| matches!(finding.state, State::Warning | State::Problem)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu).unwrap());
        set
    }

    #[test]
    fn the_rest_is_beside_the_workers() {
        assert_eq!(beside(&set(&[0, 1, 2, 3]), &[1, 3]), Some(set(&[0, 2])));
        assert_eq!(beside(&set(&[0, 1]), &[]), Some(set(&[0, 1])));
        // A CPU that the process was not given stays that way.
        assert_eq!(beside(&set(&[1, 2]), &[2]), Some(set(&[1])));
        assert_eq!(beside(&set(&[1]), &[1]), None);
    }

    #[test]
    fn workers_on_cpus_that_are_not_ours_are_refused_with_those_that_are() {
        let ours = |cpu| [0, 1, 3].contains(&cpu);
        check(&[3, 1], ours).unwrap();
        let refused = check(&[1, 2, 70_000], ours).unwrap_err().to_string();
        let expected =
            "dpe.cpus: no worker can run on CPU 2,70000; name CPUs this process may use, which are 0-1,3";
        assert_eq!(refused, expected);
    }

    /// As after `taskset`, or where CPUs are isolated: a worker asks for its CPU, and gets it.
    #[test]
    fn workers_may_be_where_who_starts_them_is_not() {
        let before = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let ours: Vec<usize> = (0..CpuSet::count()).filter(|cpu| before.is_set(*cpu).unwrap()).collect();
        let of_thread = std::thread::spawn(move || {
            sched_setaffinity(Pid::from_raw(0), &set(&ours[..1])).unwrap();
            check_cpus(&ours).unwrap();
            assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), set(&ours[..1]));
        });
        of_thread.join().unwrap();
        assert_eq!(exit::code(check_cpus(&[70_000])), std::process::ExitCode::from(exit::UNUSABLE));
        check_cpus(&[]).unwrap();
    }

    #[test]
    fn what_is_started_later_is_beside_them_too() {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let first = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu).unwrap()).unwrap();
        let of_both = std::thread::spawn(move || {
            keep_off(&[first]).unwrap();
            let later = std::thread::spawn(|| sched_getaffinity(Pid::from_raw(0)).unwrap());
            (sched_getaffinity(Pid::from_raw(0)).unwrap(), later.join().unwrap())
        });
        let (own, later) = of_both.join().unwrap();
        // On a machine of one CPU nothing changes.
        let expected = beside(&allowed, &[first]).unwrap_or(allowed);
        assert_eq!((own, later), (expected, expected));
    }

    /// Two sockets, the card at the second, and a worker at each.
    #[test]
    fn a_worker_far_from_its_port_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/system/cpu/online", "0-1\n");
        for node in 0..2 {
            write(&format!("sys/devices/system/node/node{node}/cpulist"), &format!("{node}\n"));
            write(
                &format!("sys/devices/system/cpu/cpu{node}/topology/physical_package_id"),
                &format!("{node}\n"),
            );
            write(&format!("sys/devices/system/cpu/cpu{node}/topology/core_id"), "0\n");
        }
        let card = "sys/bus/pci/devices/0000:81:00.0/";
        write(&format!("{card}class"), "0x020000\n");
        write(&format!("{card}vendor"), "0x8086\n");
        write(&format!("{card}device"), "0x1592\n");
        write(&format!("{card}numa_node"), "1\n");
        let port = host::NodePort { name: "n3".to_owned(), device: "0000:81:00.0".to_owned() };
        let node =
            host::Node { workers: vec![0, 1], worker_count: 2, ports: vec![port], ..host::Node::default() };
        let findings = costly(&Facts::read(&Root::at(folder.path())), &node);
        let placed: Vec<&str> =
            findings.iter().filter(|one| one.id == "node.placement").map(|one| &*one.found).collect();
        assert_eq!(placed, ["port n3 is on node 1, the worker on CPU 0 on node 0"]);
    }
}
