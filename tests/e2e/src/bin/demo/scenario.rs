//! The steps of the demo.

use crate::outcome::{BothWays, CpeKill, Outcome};
use crate::progress::Progress;
use crate::{Options, keep};
use anyhow::{Result, ensure};
use lab::address::{HTTP_PORT, SERVER};
use lab::anchorline::{Node, Part, Ran};
use lab::capture::{Audit, Capture};
use lab::config::{Contract, FTeid};
use lab::http::FileServer;
use lab::measure::{
    Direction, Download, Downloaded, IperfServer, Ping, PingInProgress, Tcp, Udp, random_file,
};
use lab::{Core, Lab, command, wait};
use std::time::{Duration, Instant};

/// The file that is downloaded.
const FILE_BYTES: u64 = 100 << 20;
/// The rate of the download during which the CPE dies: it takes four seconds.
const SLOW_BYTES_S: u64 = 25 << 20;
/// The pings meanwhile: four seconds, one every 10 ms, or a little longer where the kernel's clock is coarse.
const STEADY: (u32, Duration) = (400, Duration::from_millis(10));
/// The rate of the UDP measurements.
const UDP_MBIT_S: u32 = 50;
/// The loss they may show.
const UDP_LOSS_PERCENT: f64 = 1.0;
/// How often they are tried: iperf3 receives into a small socket buffer and shares the cores with everything else,
/// so a busy machine makes it miss some now and then. A data path that loses packets loses them every time.
const UDP_TRIES: u32 = 3;

/// What the second user is held to.
const CONTRACT: Contract =
    Contract { uplink_kbps: 10_000, downlink_kbps: 20_000, report_after_bytes: 5_000_000 };
/// How far its rate may be off: iperf3 counts payload, the user plane IP packets, 28 bytes longer.
const CONTRACT_PERCENT: [f64; 2] = [95.0, 101.0];

/// Everything that runs, in the order in which it ends.
struct Stage {
    ran: Ran,
    node: Node,
    capture: Capture,
    iperf: IperfServer,
    web: FileServer,
    hash: String,
    lab: Lab,
}

/// Runs the demo.
pub(crate) fn run(options: &Options, progress: &mut Progress) -> Result<()> {
    let mut stage = set_up(options, progress)?;
    let sessions = stage.ran.sessions;
    let (ping, download) = use_it(&stage, progress)?;
    let (tcp, udp) = (measure_tcp(&stage, options, progress)?, measure_udp(&stage, options, progress)?);
    let cpe_kill = progress.step("the control plane is killed in a download", || kill_cpe(&mut stage))?;
    let contract = measure_contract(&mut stage, options, progress)?;
    let Stage { ran, node, capture, iperf, web, lab, .. } = stage;
    let statistics = progress.step("the SMF deletes the session", || {
        ran.stop()?;
        node.wait_sessions(0)?;
        Ok((node.wait_balance()?, "0 sessions, the books balance".into()))
    })?;
    let capture = progress.step("tshark reads the capture", || judge(capture))?;
    let run_dir = lab.dir.path().to_owned();
    let outcome =
        Outcome { run_dir, sessions, ping, download, tcp, udp, contract, cpe_kill, capture, statistics };
    if options.keep {
        outcome.print(options.json)?;
        return keep::until_interrupted(&lab, node);
    }
    progress.step("everything ends", || {
        node.stop()?;
        drop((iperf, web));
        lab.close()?;
        Ok(((), "no process, interface or namespace is left".into()))
    })?;
    outcome.print(options.json)
}

fn set_up(options: &Options, progress: &mut Progress) -> Result<Stage> {
    let lab = progress.step("open the laboratory", || {
        let lab = Lab::open("demo", Core::Engine)?;
        Ok((lab, "namespaces ran, upf, dn".into()))
    })?;
    progress.logs = Some(lab.dir.path().to_owned());
    let (dir, files) = (lab.dir.path(), lab.scratch.path());
    let (hash, web, iperf, capture) = progress.step("start servers in dn, capture N3 and N4", || {
        let hash = random_file(&files.join("file"), FILE_BYTES)?;
        let web = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
        let iperf = IperfServer::start(&lab.dn, SERVER, dir)?;
        Ok(((hash, web, iperf, Capture::start(&lab.ran, dir)?), "web, iperf3, dumpcap".into()))
    })?;
    let node = progress.step("anchorline up: the user plane node", || {
        let node = Node::start(&lab, options.driver.into())?;
        let remark = format!("dpe pid {}, cpe pid {}", node.pid(Part::Dpe)?, node.pid(Part::Cpe)?);
        Ok((node, remark))
    })?;
    let ran = progress.step("anchorline ran: SMF, gNB and user", || {
        let ran = Ran::start(&lab, FTeid::Choose)?;
        ensure!(ran.sessions > 0, "no session came up");
        node.wait_sessions(ran.sessions)?;
        let remark = format!("{} session", ran.sessions);
        Ok((ran, remark))
    })?;
    Ok(Stage { ran, node, capture, iperf, web, hash, lab })
}

fn use_it(stage: &Stage, progress: &mut Progress) -> Result<(Ping, Downloaded)> {
    let ping = progress.step("the user pings the data network", || {
        let ping = Ping::run(&stage.lab.ran, SERVER, (20, Duration::from_millis(50)))?.expect_no_loss()?;
        Ok((ping, format!("{:.2} ms", ping.mean_ms)))
    })?;
    let download = progress.step("the user downloads 100 MiB", || {
        let done = download(stage, "")?.finish(&stage.hash)?;
        Ok((done, format!("{:.0} Mbit/s, SHA-256 equal", done.mbit_s())))
    })?;
    Ok((ping, download))
}

fn download(stage: &Stage, query: &str) -> Result<Download> {
    Download::start(&stage.lab, &format!("http://{SERVER}:{HTTP_PORT}/file{query}"))
}

fn measure_tcp(stage: &Stage, options: &Options, progress: &mut Progress) -> Result<BothWays<Tcp>> {
    BothWays::measure(|direction| {
        progress.step(&format!("iperf3: TCP {direction}"), || {
            let tcp = stage.iperf.tcp(&stage.lab.ran, direction, options.seconds)?;
            Ok((tcp, format!("{:.0} Mbit/s", tcp.mbit_s)))
        })
    })
}

fn measure_udp(stage: &Stage, options: &Options, progress: &mut Progress) -> Result<BothWays<Udp>> {
    BothWays::measure(|direction| {
        progress.step(&format!("iperf3: UDP {direction} at {UDP_MBIT_S} Mbit/s"), || {
            let (udp, tries) =
                best_of_few(|| stage.iperf.udp(&stage.lab.ran, direction, (UDP_MBIT_S, options.seconds)))?;
            let again = if tries > 1 { format!(", at try {tries}") } else { String::new() };
            Ok((udp, format!("{:.2} % lost{again}", udp.lost_percent)))
        })
    })
}

fn best_of_few(measure: impl Fn() -> Result<Udp>) -> Result<(Udp, u32)> {
    let mut tries = 0;
    loop {
        let udp = measure()?;
        tries += 1;
        if udp.packets > 0 && udp.lost_percent < UDP_LOSS_PERCENT {
            return Ok((udp, tries));
        }
        ensure!(tries < UDP_TRIES, "{} of {} packets were lost, at try {tries}", udp.lost, udp.packets);
    }
}

/// SIGKILL to the CPE while the user downloads and pings: neither may notice.
fn kill_cpe(stage: &mut Stage) -> Result<(CpeKill, String)> {
    let (sessions, uptime_ms) = stage.node.status().map(|before| (before.sessions, before.uptime_ms))?;
    let mut pings = PingInProgress::start(&stage.lab.ran, SERVER, STEADY, stage.lab.dir.path())?;
    let download = download(stage, &format!("?bytes_s={SLOW_BYTES_S}"))?;
    wait::until("a quarter of the download", command::SHORT, || {
        Ok((download.progress_bytes() > FILE_BYTES / 4).then_some(()))
    })?;
    let old = stage.node.kill(&stage.lab, Part::Cpe)?;
    let killed = Instant::now();
    let new = stage.node.wait_restart(Part::Cpe, old)?;
    let restart_ms = killed.elapsed().as_secs_f64() * 1e3;
    stage.node.wait_sessions(sessions)?;
    ensure!(download.progress_bytes() < FILE_BYTES, "the download was over before the CPE was back");
    ensure!(pings.runs()?, "the pings were over before the CPE was back");

    let download = download.finish(&stage.hash)?;
    let ping = pings.finish()?.expect_no_loss()?;
    let after = stage.node.status()?;
    ensure!(after.sessions == sessions, "{sessions} sessions before, {} after", after.sessions);
    ensure!(after.uptime_ms > uptime_ms, "the DPE started anew as well");
    let remark = format!("pid {old} -> {new}, {} pings without loss, SHA-256 equal", ping.sent);
    Ok((
        CpeKill { old_pid: old.as_raw(), new_pid: new.as_raw(), restart_ms, sessions, ping, download },
        remark,
    ))
}

/// A user held to its MBR, both ways, by UDP at twice the rate.
fn measure_contract(stage: &mut Stage, options: &Options, progress: &mut Progress) -> Result<BothWays<Udp>> {
    progress.step("the SMF has the user held to 10 Mbit/s up, 20 down", || {
        stage.ran.stop_here()?;
        stage.node.wait_sessions(0)?;
        stage.ran = Ran::start_with(&stage.lab, CONTRACT)?;
        stage.node.wait_sessions(stage.ran.sessions)?;
        Ok(((), "a new session, with QER and URR".into()))
    })?;
    BothWays::measure(|direction| {
        let kbps = match direction {
            Direction::Uplink => CONTRACT.uplink_kbps,
            Direction::Downlink => CONTRACT.downlink_kbps,
        };
        progress.step(&format!("iperf3: UDP {direction} at twice that"), || {
            let rate = (2 * kbps / 1_000, options.seconds);
            let udp = stage.iperf.udp(&stage.lab.ran, direction, rate)?;
            let percent = udp.mbit_s * 1e5 / f64::from(kbps);
            let [least, most] = CONTRACT_PERCENT;
            ensure!((least..=most).contains(&percent), "{:.2} Mbit/s passed, {percent:.1} %", udp.mbit_s);
            Ok((udp, format!("{:.2} Mbit/s passed", udp.mbit_s)))
        })
    })
}

fn judge(capture: Capture) -> Result<(Audit, String)> {
    let audit = Audit::read(&capture.finish()?)?;
    audit.expect_clean()?;
    let remark = format!("{} packets, none malformed", audit.packets);
    Ok((audit, remark))
}
