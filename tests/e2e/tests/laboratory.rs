//! The laboratory itself, with the kernel as the router: what fails here is not the packet core's fault.

use crate::Test;
use anyhow::{Result, ensure};
use lab::address::{HTTP_PORT, SERVER};
use lab::http::FileServer;
use lab::measure::{Direction, Download, IperfServer, Ping, random_file};
use lab::{Core, Lab, Process, command};
use nix::sys::signal::kill;
use std::fs;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("laboratory_carries_ping_curl_and_iperf3", Core::KernelRouter, carries_traffic),
    ("laboratory_is_private", Core::Engine, is_private),
    ("laboratory_ends_what_was_left_running", Core::Engine, ends_orphans),
];

fn carries_traffic(lab: &Lab) -> Result<()> {
    Ping::run(&lab.ran, SERVER, (10, Duration::from_millis(10)))?.expect_no_loss()?;

    let (dir, files) = (lab.dir.path(), lab.scratch.path());
    let hash = random_file(&files.join("payload"), 5 << 20)?;
    let _server = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    let url = format!("http://{SERVER}:{HTTP_PORT}/payload");
    Download::start(lab, &url)?.finish(&hash)?;
    let damaged = Download::start(lab, &url)?.finish("0000");
    ensure!(damaged.is_err(), "a wrong hash was not noticed");
    let absent = Download::start(lab, &format!("{url}2"))?.finish(&hash);
    ensure!(absent.is_err(), "a missing file was not noticed");

    let iperf = IperfServer::start(&lab.dn, SERVER, dir)?;
    let tcp = iperf.tcp(&lab.ran, Direction::Uplink, 1)?;
    let udp = iperf.udp(&lab.ran, Direction::Downlink, (20, 1))?;
    ensure!(tcp.mbit_s > 10.0 && udp.packets > 100, "iperf3 measured {tcp:?} and {udp:?}");
    Ok(())
}

fn is_private(lab: &Lab) -> Result<()> {
    let names = command::line("ip netns list")?;
    ensure!(names.lines().count() == 3, "namespaces besides ours: {names}");
    let outside = fs::read_dir("/run")?
        .flatten()
        .filter(|entry| !["netns", "scratch"].iter().any(|ours| entry.file_name() == *ours));
    ensure!(outside.count() == 0, "/run is shared");
    let neighbours = lab.dn.ip("-o link")?;
    ensure!(neighbours.lines().count() == 2, "interfaces besides lo and n6: {neighbours}");
    Ok(())
}

fn ends_orphans(lab: &Lab) -> Result<()> {
    let namespace = &lab.ran;
    let mut shell = namespace.command("sh");
    // The shell ends at once; its child stays behind, nobody's.
    let mut process = Process::spawn("orphan", shell.args(["-c", "sleep 60 & echo pid $!"]), lab.dir.path())?;
    let line = process.wait_for_line("pid ", command::SHORT)?;
    process.wait_exit(command::SHORT)?;
    let orphan = nix::unistd::Pid::from_raw(line.trim_start_matches("pid ").parse()?);
    ensure!(namespace.pids()?.contains(&orphan), "the orphan {orphan} is not in the namespace");
    namespace.kill_all();
    ensure!(kill(orphan, None).is_err() || namespace.pids()?.is_empty(), "the orphan {orphan} lives on");
    Ok(())
}
