//! DPDK on huge pages, which are the kernel's again afterwards, however the process ends.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod common;

use anchorline_dpdk::{Eal, EalConfig, HugePages, Memory, Port};
use common::namespace::{in_namespace, quiet, veth};
use common::traffic::{close_memif, exchange};
use common::{MEMORY_MB, open, pool};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Says to [`child`] how it shall end.
const END: &str = "ANCHORLINE_TEST_END";

/// A figure of the kernel's about 2 MiB pages.
fn pages(figure: &str) -> u64 {
    let file = format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{figure}_hugepages");
    fs::read_to_string(file).unwrap_or_default().trim().parse().unwrap_or(0)
}

/// Free pages of 2 MiB on NUMA node 0.
fn free_on_first_node() -> u64 {
    let file = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages";
    fs::read_to_string(file).unwrap_or_default().trim().parse().unwrap_or(0)
}

/// Whether the figures are again what they were: the kernel lets go of what AF_XDP had pinned a little after the process.
fn come_back(before: (u64, u64)) -> bool {
    let start = Instant::now();
    while (pages("nr"), pages("free")) != before && start.elapsed() < Duration::from_secs(3) {
        thread::sleep(Duration::from_millis(10));
    }
    (pages("nr"), pages("free")) == before
}

/// Runs [`child`]; whether its huge pages are the kernel's again, or `None` without the right to them.
fn run(end: &str) -> Option<bool> {
    let before = (pages("nr"), pages("free"));
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", "child", "--nocapture"]).env(END, end).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("skipped:") {
        eprintln!("{said}");
        return None;
    }
    assert!(said.contains("all ports carried"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.success(), end == "cleanup");
    Some(come_back(before))
}

#[test]
fn ports_work_on_huge_pages_which_are_given_back() {
    for end in ["cleanup", "abort"] {
        // Others on the machine may take or return huge pages meanwhile: a leak would show every time.
        assert!((0..4).any(|_| run(end) != Some(false)), "not given back after {end}");
    }
}

/// Starts [`child`] and kills it so much later; whether its huge pages are the kernel's again.
fn kill_after(delay: Duration) -> bool {
    let before = (pages("nr"), pages("free"));
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", "child"]).env(END, "kill").stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    come_back(before)
}

#[test]
fn a_process_killed_as_it_starts_leaves_no_huge_pages() {
    let limit = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
    let limit_before = fs::read(limit).unwrap_or_default();
    for delay_ms in [50, 100, 150, 200, 250, 300] {
        let delay = Duration::from_millis(delay_ms);
        assert!((0..4).any(|_| kill_after(delay)), "not given back when killed after {delay:?}");
    }
    // The one trace that may stay; without the right to put it back there is none.
    _ = fs::write(limit, limit_before);
}

/// Not a test of its own: the process that the test above starts.
#[test]
fn child() {
    let Ok(end) = std::env::var(END) else { return };
    let nodes = vec![(0, MEMORY_MB)];
    let config =
        EalConfig { memory_mb: MEMORY_MB, huge_pages: HugePages::Require, nodes, ..EalConfig::default() };
    let is_free = free_on_first_node() >= u64::from(MEMORY_MB / 2);
    let eal = match Eal::init(&config) {
        Ok(eal) => eal,
        Err(error) => return println!("skipped: {error}"),
    };
    assert!(matches!(eal.memory(), Memory::HugePages { memory_mb: MEMORY_MB, .. }));
    // Pages beyond the kernel's pool are not asked for by node.
    assert_eq!(eal.has_nodes(), is_free);
    assert!(pages("nr") - pages("free") >= u64::from(MEMORY_MB / 2), "the memory is in huge pages");
    memory_ports(eal);
    in_namespace(kernel_ports);
    if end == "abort" {
        in_namespace(af_xdp_ports);
        println!("all ports carried");
        std::process::abort();
    }
    eal.cleanup().unwrap();
    println!("all ports carried");
}

fn memory_ports(eal: &Eal) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let pool = pool();
    let (mut a, mut b) = Port::loopback(eal, &pool, 1, 64).unwrap();
    exchange(&pool, &mut a, &mut b, 4);
    let memif = |n, role| format!("net_memif{n},role={role},socket={},socket-abstract=no", path("memif"));
    let (mut a, mut b) = (open(&memif(0, "server"), &pool), open(&memif(1, "client"), &pool));
    exchange(&pool, &mut a, &mut b, 4);
    close_memif(a, b);
    let mut a = open(&format!("net_vhost0,iface={}", path("vhost")), &pool);
    let mut b = open(&format!("net_virtio_user0,path={}", path("vhost")), &pool);
    exchange(&pool, &mut a, &mut b, 4);
}

fn kernel_ports() {
    veth("v0", "v1");
    let pool = pool();
    let (mut a, mut b) = (open("net_af_packet0,iface=v0", &pool), open("net_af_packet1,iface=v1", &pool));
    exchange(&pool, &mut a, &mut b, 4);
    let mut a = open("net_tap0,iface=t0", &pool);
    quiet("t0");
    let mut b = open("net_af_packet2,iface=t0", &pool);
    exchange(&pool, &mut a, &mut b, 4);
}

/// The driver keeps the packets it lent to the kernel when it closes: DPDK cannot be shut down after it.
fn af_xdp_ports() {
    veth("x0", "x1");
    let pool = pool();
    let (mut a, mut b) = (open("net_af_xdp0,iface=x0", &pool), open("net_af_xdp1,iface=x1", &pool));
    exchange(&pool, &mut a, &mut b, 64);
}
