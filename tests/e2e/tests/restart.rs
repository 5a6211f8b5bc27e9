//! Either process of a node may die.

use crate::Test;
use anyhow::{Result, ensure};
use lab::address::{GNB_N3, HTTP_PORT, SERVER, UPF_N3};
use lab::anchorline::{Node, Part, Ran};
use lab::capture::{Audit, Capture};
use lab::config::{Driver, FTeid};
use lab::http::FileServer;
use lab::measure::{Download, Ping, PingInProgress, random_file};
use lab::{Core, Lab, command, wait};
use nix::sys::signal::{Signal, kill};
use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("killing_the_cpe_in_a_transfer_costs_no_packet", Core::Engine, cpe_dies),
    ("killing_the_dpe_heals_without_the_smf", Core::Engine, dpe_dies),
    ("no_ran_is_told_that_sessions_are_gone_while_the_dpe_comes_back", Core::Engine, dpe_is_silent),
    ("killing_the_supervisor_leaves_nothing", Core::Engine, supervisor_dies),
];

fn cpe_dies(lab: &Lab) -> Result<()> {
    let (dir, files) = (lab.dir.path(), lab.scratch.path());
    let mut node = Node::start(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    let hash = random_file(&files.join("payload"), 10 << 20)?;
    let _server = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    let url = format!("http://{SERVER}:{HTTP_PORT}/payload");

    let mut pings = PingInProgress::start(&lab.ran, SERVER, (300, Duration::from_millis(10)), dir)?;
    let download = Download::start(lab, &format!("{url}?bytes_s={}", 4 << 20))?;
    wait::until("a part of the download", command::SHORT, || {
        Ok((download.progress_bytes() > 1 << 20).then_some(()))
    })?;
    let old = node.kill(lab, Part::Cpe)?;
    node.wait_restart(Part::Cpe, old)?;
    ensure!(download.progress_bytes() < 10 << 20, "the download was over before the CPE was back");
    ensure!(pings.runs()?, "the pings were over before the CPE was back");

    download.finish(&hash)?;
    pings.finish()?.expect_no_loss()?;
    ensure!(node.starts(Part::Dpe)? == 1, "the DPE did not survive the CPE");
    node.wait_sessions(ran.sessions)?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

fn dpe_dies(lab: &Lab) -> Result<()> {
    let mut node = Node::start(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    Ping::run(&lab.ran, SERVER, (5, Duration::from_millis(20)))?.expect_no_loss()?;

    let old = node.kill(lab, Part::Dpe)?;
    node.wait_restart(Part::Dpe, old)?;
    node.wait_sessions(ran.sessions)?;
    ensure!(node.starts(Part::Cpe)? == 1, "the CPE did not survive the DPE");
    wait::until("traffic to flow again", command::SHORT, || {
        Ok(Ping::run(&lab.ran, SERVER, (1, Duration::from_millis(20))).ok())
    })?;
    Ping::run(&lab.ran, SERVER, (20, Duration::from_millis(20)))?.expect_no_loss()?;

    ran.stop()?;
    node.wait_sessions(0)?;
    node.stop()
}

/// UDP from 10.60.0.9 to 10.50.0.1, in nobody's tunnel.
pub(crate) const STRAY: [u8; 36] = [
    0x30, 255, 0, 28, 0xde, 0xad, 0xbe, 0xef, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x66, 0x5a, 10, 60, 0, 9,
    10, 50, 0, 1, 0, 53, 0, 53, 0, 8, 0, 0,
];
/// Packets of users whose sessions are not known yet: enough to see that nobody is told so.
const UNKNOWN: u64 = 20;

/// A data plane that comes back gets users' packets before it is told of their sessions, and sends no Error Indication (TS
/// 29.281 7.3.1): the base station would let the sessions go. Who knows them is halted, so that this lasts.
fn dpe_is_silent(lab: &Lab) -> Result<()> {
    let mut node = Node::start(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    let capture = Capture::start(&lab.ran, lab.dir.path())?;
    let series = (4_000, Duration::from_millis(5));
    let mut pings = PingInProgress::start(&lab.ran, SERVER, series, lab.dir.path())?;

    kill(node.pid(Part::Cpe)?, Signal::SIGSTOP)?;
    let old = node.kill(lab, Part::Dpe)?;
    let unknown = node.wait_restart(Part::Dpe, old).and_then(|_| wait_unknown(&node));
    kill(node.pid(Part::Cpe)?, Signal::SIGCONT)?;
    unknown?;
    node.wait_sessions(ran.sessions)?;
    wait::until("traffic to flow again", command::SHORT, || {
        Ok(Ping::run(&lab.ran, SERVER, (1, Duration::from_millis(20))).ok())
    })?;
    ensure!(pings.runs()?, "the pings were over before the sessions were back");

    // From now on whoever has no session is told so, and the capture has it.
    lab.ran.inside(|| Ok(UdpSocket::bind((GNB_N3, 0))?.send_to(&STRAY, (UPF_N3, 2152))?))?;
    Ping::run(&lab.ran, SERVER, (20, Duration::from_millis(20)))?.expect_no_loss()?;
    let audit = Audit::read(&capture.finish()?)?;
    let told = audit.gtp.get("error indication").copied().unwrap_or_default();
    ensure!(told == 1, "{told} Error Indications, of which one is of nobody's tunnel: {:?}", audit.gtp);
    ran.stop()?;
    node.wait_sessions(0)?;
    node.stop()
}

/// Waits until the data plane has dropped packets of users without a word.
fn wait_unknown(node: &Node) -> Result<()> {
    wait::until("packets of sessions that are not known", command::SHORT, || {
        let status = node.status()?;
        let drops = status.workers.iter().flat_map(|worker| &worker.drops);
        let unknown = drops.filter(|(reason, _)| reason == "no_tunnel").map(|(_, packets)| packets);
        Ok((unknown.sum::<u64>() >= UNKNOWN).then_some(()))
    })
}

fn supervisor_dies(lab: &Lab) -> Result<()> {
    let before = huge_pages();
    let node = Node::start(lab, Driver::AfPacket)?;
    node.signal(Signal::SIGKILL)?;
    wait::until("both engines to end", command::SHORT, || Ok(lab.upf.pids()?.is_empty().then_some(())))?;
    // Other runs on this machine may hold some meanwhile.
    wait::until("the huge pages to be given back", command::SHORT, || {
        Ok((huge_pages() <= before).then_some(()))
    })
}

/// 0 where the kernel has none.
fn huge_pages() -> u64 {
    let count = fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    count.ok().and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
