//! What befalls the control plane's process, or its configuration, costs users no packet; what befalls an interface, those that it
//! would have carried.

use crate::Test;
use anyhow::{Result, ensure};
use lab::address::SERVER;
use lab::anchorline::{Node, Part, Ran};
use lab::config::{self, Driver, FTeid};
use lab::measure::{Ping, PingInProgress};
use lab::{Core, Lab, Process, program};
use nix::sys::signal::Signal;
use std::fs;
use std::path::Path;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("a_cpe_that_cannot_start_again_leaves_the_dpe_alone", Core::Engine, cannot_start_again),
    ("a_new_configuration_costs_no_packet", Core::Engine, configured_anew),
    ("an_interface_that_is_made_anew_is_opened_anew", Core::Engine, made_anew),
    ("a_memif_comes_back_to_its_server", Core::Engine, served_again),
];

/// Of another data plane.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of a control plane that ended because its configuration is wrong.
const UNUSABLE: &str = "the cpe ended (exit status: 2); it starts again";

fn cannot_start_again(lab: &Lab) -> Result<()> {
    let mut node = Node::start(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    let (file, dpe) = (lab.dir.path().join("upf.toml"), node.pid(Part::Dpe)?);
    let good = fs::read_to_string(&file)?;
    fs::write(&file, good.replacen("idle", "idol", 1))?;
    let old = node.kill(lab, Part::Cpe)?;
    node.wait_said(UNUSABLE, 3)?;
    Ping::run(&lab.ran, SERVER, (20, Duration::from_millis(20)))?.expect_no_loss()?;
    fs::write(&file, good)?;
    node.wait_restart(Part::Cpe, old)?;
    ensure!(node.pid(Part::Dpe)? == dpe, "the data plane was started again");
    node.wait_sessions(ran.sessions)?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.end()
}

fn configured_anew(lab: &Lab) -> Result<()> {
    let mut node = Node::start(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    let file = lab.dir.path().join("upf.toml");
    let good = fs::read_to_string(&file)?;
    let mut pings =
        PingInProgress::start(&lab.ran, SERVER, (300, Duration::from_millis(10)), lab.dir.path())?;
    let refused = [
        (
            good.replacen("memory_mb = 256", "memory_mb = 257", 1),
            "dpe.memory_mb: another value takes a restart",
        ),
        (good.replacen("memory_mb", "memory", 1), "the configuration is wrong"),
        (
            format!("{good}\n[content]\nrules = \"/nowhere/rules\"\n"),
            "content.rules: cannot read /nowhere/rules",
        ),
    ];
    let old = node.pid(Part::Cpe)?;
    for (text, said) in refused {
        fs::write(&file, text)?;
        node.signal(Signal::SIGHUP)?;
        node.wait_said(said, 1)?;
    }
    ensure!(node.pid(Part::Cpe)? == old, "the control plane was started with a wrong configuration");
    fs::write(&file, good)?;
    node.signal(Signal::SIGHUP)?;
    node.wait_restart(Part::Cpe, old)?;
    ensure!(pings.runs()?, "the pings were over before the control plane was back");
    pings.finish()?.expect_no_loss()?;
    ensure!(node.starts(Part::Dpe)? == 1, "the data plane was started again");
    node.wait_sessions(ran.sessions)?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.stop()
}

/// As where a container's network is set up again under a node that runs.
fn made_anew(lab: &Lab) -> Result<()> {
    let mut node = Node::start(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    let dpe = node.pid(Part::Dpe)?;
    lab.upf.ip("link set n6 down")?;
    node.wait_said("port n6: its link is down", 1)?;
    ensure!(node.ctl("status")?.contains("DOWN"), "ctl status does not tell");
    lab.upf.ip("link set n6 up")?;
    node.wait_said("port n6: its link is up again", 1)?;
    ensure!(node.pid(Part::Dpe)? == dpe, "the data plane was started again for a link that was down");
    lab.upf.ip("link delete n6")?;
    node.wait_said("port n6: its interface is gone", 1)?;
    lab.wire_n6()?;
    node.wait_restart(Part::Dpe, dpe)?;
    node.wait_sessions(ran.sessions)?;
    Ping::run(&lab.ran, SERVER, (20, Duration::from_millis(20)))?.expect_no_loss()?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.end()
}

/// The other end of a port is another program, which is killed and started again.
fn served_again(lab: &Lab) -> Result<()> {
    let (file, other) = config::write_upf_memif(lab.dir.path())?;
    let server = start_server(lab, &other)?;
    let mut node = Node::start_by(lab, file)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    let dpe = node.pid(Part::Dpe)?;
    server.signal(Signal::SIGKILL)?;
    node.wait_said("port shared: its link is down", 1)?;
    Ping::run(&lab.ran, SERVER, (20, Duration::from_millis(20)))?.expect_no_loss()?;
    ensure!(node.pid(Part::Dpe)? == dpe, "the data plane was started again while there was no server");
    let mut server = start_server(lab, &other)?;
    node.wait_restart(Part::Dpe, dpe)?;
    node.wait_sessions(ran.sessions)?;
    server.wait_for("the client", PATIENCE, |output| {
        output.contains("port shared: its link is up again").then_some(())
    })?;
    Ping::run(&lab.ran, SERVER, (20, Duration::from_millis(20)))?.expect_no_loss()?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.end()?;
    server.stop(PATIENCE)
}

fn start_server(lab: &Lab, config: &Path) -> Result<Process> {
    let mut command = lab.upf.command(program("anchorline")?);
    command.args(["dpe", "--config"]).arg(config);
    let mut server = Process::spawn("server", &mut command, lab.dir.path())?;
    server.wait_for_line("dpe: ready", PATIENCE)?;
    Ok(server)
}
