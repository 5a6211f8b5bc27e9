//! A user's traffic through a session.

use crate::Test;
use anyhow::{Context, Result, anyhow, bail, ensure};
use dplink::Statistics;
use lab::address::{HTTP_PORT, SERVER, UE, UPF_N3};
use lab::anchorline::{Node, Ran};
use lab::capture::{Arrivals, Audit, Capture};
use lab::config::{self, Contract, Driver, FTeid};
use lab::http::FileServer;
use lab::measure::{Direction, Download, IperfServer, Ping, random_file};
use lab::{Core, Lab, command};
use std::env;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("traffic_flows_where_the_user_plane_chooses_the_f_teid", Core::Engine, |lab| {
        flows(lab, FTeid::Choose, 1)
    }),
    ("traffic_flows_where_the_smf_gives_the_f_teid", Core::Engine, |lab| flows(lab, FTeid::Explicit, 1)),
    ("traffic_flows_through_two_workers", Core::Engine, |lab| flows(lab, FTeid::Choose, 2)),
    ("traffic_flows_without_root", Core::Engine, flows_without_root),
    ("programs_hear_that_nobody_is_there", Core::Engine, hear_of_nobody),
    ("tcp_is_held_to_its_mbr_and_has_most_of_it", Core::Engine, held_by_tcp),
    ("tcp_without_an_mbr_is_held_to_the_nodes_own_limit", Core::Engine, held_by_the_node),
];

fn flows(lab: &Lab, f_teid: FTeid, workers: u32) -> Result<()> {
    let (dir, files) = (lab.dir.path(), lab.scratch.path());
    let capture = Capture::start(&lab.ran, dir)?;
    let node = Node::start_with(lab, Driver::AfPacket, workers)?;
    let ran = Ran::start(lab, f_teid)?;
    node.wait_sessions(ran.sessions)?;

    match workers {
        1 => drop(Ping::run(&lab.ran, SERVER, (20, Duration::from_millis(20)))?.expect_no_loss()?),
        _ => moves(lab, &node)?,
    }
    let hash = random_file(&files.join("payload"), 5 << 20)?;
    let _server = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    Download::start(lab, &format!("http://{SERVER}:{HTTP_PORT}/payload"))?.finish(&hash)?;

    ran.stop()?;
    node.wait_sessions(0)?;
    let status = node.wait_balance()?;
    let received: u64 = status.workers.iter().map(|worker| worker.books.received).sum();
    ensure!(status.workers.len() == workers as usize, "{} workers", status.workers.len());
    ensure!(received > 3000, "5 MiB came in {received} packets?");
    node.stop()?;
    Audit::read(&capture.finish()?)?.expect_clean()
}

/// How often the session moves.
const MOVES: usize = 6;

/// The session goes from worker to worker while the user's packets come, of which none is lost.
fn moves(lab: &Lab, node: &Node) -> Result<()> {
    let told = node.ctl(&format!("sessions where --ue {UE}"))?;
    let words: Vec<&str> = told.split_whitespace().collect();
    let ["session", session, "is", "at", "worker", first] = words[..] else { bail!("{told}") };
    let mut at: u8 = first.parse()?;
    let dry = node.ctl(&format!("balance --move {session} --to {} --dry-run", 1 - at))?;
    ensure!(dry == format!("session {session} at worker {at} can go to worker {}\n", 1 - at), "{dry}");
    thread::scope(|scope| {
        let ping = scope.spawn(|| Ping::run(&lab.ran, SERVER, (150, Duration::from_millis(20))));
        for _ in 0..MOVES {
            let moved = node.ctl(&format!("balance --move {session} --to {}", 1 - at))?;
            ensure!(moved.ends_with(&format!("moved from worker {at} to worker {}\n", 1 - at)), "{moved}");
            at = 1 - at;
        }
        ping.join().map_err(|_| anyhow!("the ping died"))??.expect_no_loss()
    })?;
    let told = node.ctl("balance")?;
    ensure!(told.contains(&format!("{MOVES} sessions moved, 0 were to and stayed, 0 are")), "{told}");
    ensure!(told.contains("by name"), "{told}");
    let even = node.ctl("balance --even --by sessions")?;
    ensure!(even.starts_with("nothing moves"), "{even}");
    let refused =
        node.ctl(&format!("balance --move {session} --to 2")).err().context("there is no worker 2")?;
    ensure!(refused.to_string().contains("worker 2 is not there"), "{refused}");
    ensure!(node.ctl("ports")?.contains("packets in memory of node "), "{}", node.ctl("ports")?);
    Ok(())
}

/// In the data network's subnet, and nobody's.
const NOBODY: &str = "10.50.0.77";
/// How curl ends where it gets no connection; 28 would be that time was up.
const NO_CONNECTION: i32 = 7;

/// They would wait for as long as they have patience else.
fn hear_of_nobody(lab: &Lab) -> Result<()> {
    let node = Node::start_with(lab, Driver::AfPacket, 1)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    let mut ping = lab.ran.command("ping");
    let ping = command::run(ping.args(["-c", "1", "-W", "8", NOBODY]), command::SHORT)?;
    let told = format!("From {UPF_N3} icmp_seq=1 Destination Host Unreachable");
    ensure!(ping.stdout.contains(&told), "{}", ping.stdout);
    let mut curl = lab.ran.command("curl");
    curl.args([
        "--silent",
        "--show-error",
        "--noproxy",
        "*",
        "--max-time",
        "8",
        &format!("http://{NOBODY}/"),
    ]);
    let curl = command::run(&mut curl, command::SHORT)?;
    ensure!(curl.status.code() == Some(NO_CONNECTION), "{}: {}", curl.status, curl.stderr);
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

/// What a user is held to here.
const CONTRACT: Contract =
    Contract { uplink_kbps: 20_000, downlink_kbps: 50_000, report_after_bytes: 5_000_000 };
/// How long TCP is measured each way.
const SECONDS: u32 = 5;
/// What TCP gets of the rate, of which at most 1,348 of 1,400 bytes are payload. What is above a rate is dropped and does not wait,
/// and the way in a laboratory takes TCP no time: it loses half of its window before it hears of the first loss, and is silent for
/// 200 ms. Of what it leaves, it may catch up on a second's: 74 to 83 % were seen beside other work, 7 % without.
const GOODPUT_PERCENT: [f64; 2] = [55.0, 97.0];
/// Most of the rate in any second: 10 ms of burst, a packet, and what stamps of time are off where the machine was away for 20 ms.
const SECOND_PERCENT: f64 = 103.0;
/// Where iperf3 listens.
const IPERF_PORT: u16 = 5201;

/// What a page has: several times what the rates let pass within their bursts, and less than within what users may catch up on.
const PAGE_KB: u32 = 150;
/// After which a user has a whole second to catch up on.
const SILENCE: Duration = Duration::from_millis(1_200);

/// What the node holds a user to here whose rules have no limit, each way.
const OWN_KBPS: u32 = 30_000;

fn held_by_tcp(lab: &Lab) -> Result<()> {
    let node = limited(lab, "")?;
    let ran = Ran::start_with(lab, CONTRACT)?;
    let rates = [CONTRACT.uplink_kbps, CONTRACT.downlink_kbps];
    held((lab, &node, ran), rates)?;
    node.stop()
}

/// The example's user has no QER; one with an MBR above the node's limit keeps that.
fn held_by_the_node(lab: &Lab) -> Result<()> {
    let node = limited(lab, &format!("session_mbr_kbps = {OWN_KBPS}"))?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    held((lab, &node, ran), [OWN_KBPS; 2])?;
    let ran = Ran::start_with(lab, CONTRACT)?;
    held((lab, &node, ran), [CONTRACT.uplink_kbps, CONTRACT.downlink_kbps])?;
    node.stop()
}

/// A node, and what is said of its limits.
fn limited(lab: &Lab, limit: &str) -> Result<Node> {
    let config = config::write_upf(lab.dir.path(), Driver::AfPacket)?;
    let text = fs::read_to_string(&config)?;
    fs::write(&config, format!("{text}\n[dpe.limits]\n{limit}\n"))?;
    Node::start_by(lab, config)
}

/// A page behind a pause loses nothing. TCP has most of these rates, uplink and downlink, and no more in any second, by packets that are dropped; then the user goes.
fn held((lab, node, ran): (&Lab, &Node, Ran), rates_kbps: [u32; 2]) -> Result<()> {
    node.wait_sessions(ran.sessions)?;
    let iperf = IperfServer::start(&lab.dn, SERVER, lab.dir.path())?;
    let before = refused(&node.wait_balance()?);
    for direction in [Direction::Uplink, Direction::Downlink] {
        iperf.page(&lab.ran, direction, PAGE_KB)?;
        thread::sleep(SILENCE);
        iperf.page(&lab.ran, direction, PAGE_KB)?;
    }
    let lost = refused(&node.wait_balance()?) - before;
    ensure!(lost == 0, "{lost} packets of a page were dropped, which nothing came before for a second");
    for (direction, kbps) in [Direction::Uplink, Direction::Downlink].into_iter().zip(rates_kbps) {
        let (receiver, to) = match direction {
            Direction::Uplink => (&lab.dn, SERVER),
            Direction::Downlink => (&lab.ran, UE),
        };
        let capture =
            Capture::of_tcp(receiver, IPERF_PORT, (lab.dir.path(), &format!("{direction}-{kbps}")))?;
        let tcp = iperf.tcp(&lab.ran, direction, SECONDS)?;
        let most = Arrivals::read(&capture.finish()?, to)?.most_in_a_second();
        let second = most as f64 * 0.8 / f64::from(kbps);
        ensure!(second <= SECOND_PERCENT, "TCP {direction} had {second:.1} % of its rate in a second");
        let percent = tcp.mbit_s * 1e5 / f64::from(kbps);
        let [least, most] = GOODPUT_PERCENT;
        ensure!((least..=most).contains(&percent), "TCP {direction} had {percent:.1} % of its rate: {tcp:?}");
        ensure!(tcp.retransmits > 0, "nothing held it: {tcp:?}");
    }
    ran.stop()?;
    node.wait_sessions(0)?;
    ensure!(refused(&node.wait_balance()?) > before, "no packet was above the rate");
    Ok(())
}

/// Packets that were above their rates.
fn refused(status: &Statistics) -> u64 {
    let drops = status.workers.iter().flat_map(|worker| &worker.drops);
    drops.filter(|(reason, _)| reason == "rate_exceeded").map(|(_, packets)| packets).sum()
}

/// The first test again, as the root of a user namespace only, which is what an ordinary user is in a laboratory.
fn flows_without_root(_: &Lab) -> Result<()> {
    let user = || {
        let mut command = Command::new("unshare");
        command.args(["-Ur", "--"]);
        command
    };
    if !command::run(user().arg("true"), command::SHORT)?.status.success() {
        println!("skipped: the kernel gives no user namespaces here");
        return Ok(());
    }
    let mut test = user();
    test.arg(env::current_exe()?).args(["--exact", "traffic_flows_where_the_user_plane_chooses_the_f_teid"]);
    test.env("ANCHORLINE_REQUIRE_E2E", "1");
    let done = command::run(&mut test, Duration::from_secs(60))?;
    ensure!(done.status.success(), "it said: {}", done.stdout);
    Ok(())
}
