//! A user's traffic through a session.

use crate::Test;
use anyhow::{Result, ensure};
use lab::address::{HTTP_PORT, SERVER};
use lab::anchorline::{Node, Ran};
use lab::capture::{Audit, Capture};
use lab::config::{Driver, FTeid};
use lab::http::FileServer;
use lab::measure::{Download, Ping, random_file};
use lab::{Core, Lab, command};
use std::env;
use std::process::Command;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("traffic_flows_where_the_user_plane_chooses_the_f_teid", Core::Engine, |lab| {
        flows(lab, FTeid::Choose, 1)
    }),
    ("traffic_flows_where_the_smf_gives_the_f_teid", Core::Engine, |lab| flows(lab, FTeid::Explicit, 1)),
    ("traffic_flows_through_two_workers", Core::Engine, |lab| flows(lab, FTeid::Choose, 2)),
    ("traffic_flows_without_root", Core::Engine, flows_without_root),
];

fn flows(lab: &Lab, f_teid: FTeid, workers: u32) -> Result<()> {
    let (dir, files) = (lab.dir.path(), lab.scratch.path());
    let capture = Capture::start(&lab.ran, dir)?;
    let node = Node::start_with(lab, Driver::AfPacket, workers)?;
    let ran = Ran::start(lab, f_teid)?;
    node.wait_sessions(ran.sessions)?;

    Ping::run(&lab.ran, SERVER, (20, Duration::from_millis(20)))?.expect_no_loss()?;
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
