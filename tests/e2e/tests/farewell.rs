//! However a node ends, told to or killed, what users have used is reported and charged once, and no quota is given twice.

use crate::Test;
use crate::charging::{first_records, sum};
use anyhow::{Result, ensure};
use lab::address::SERVER;
use lab::anchorline::{Node, Part, Ran};
use lab::config::{self, Driver};
use lab::measure::Ping;
use lab::{Core, Lab};
use nix::sys::signal::{Signal, kill};
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("nothing_used_is_lost_where_both_engines_are_told_to_end_at_once", Core::Engine, |lab| {
        over(lab, engines)
    }),
    ("nothing_used_is_lost_where_all_processes_are_told_to_end_at_once", Core::Engine, |lab| over(lab, all)),
    ("nothing_used_is_lost_where_the_supervisor_is_killed", Core::Engine, |lab| over(lab, supervisor)),
    ("nothing_used_is_lost_where_the_data_plane_is_killed", Core::Engine, |lab| over(lab, data_plane_killed)),
    ("nothing_used_is_lost_where_both_engines_are_killed", Core::Engine, |lab| over(lab, engines_killed)),
    ("nothing_used_is_lost_where_all_processes_are_killed", Core::Engine, |lab| over(lab, all_killed)),
];

const PINGS: u32 = 200;
/// Each way: headers of IPv4 and ICMP, and what `ping` sends by itself.
const PING_BYTES: u64 = 20 + 8 + 56;
/// Answers that the quota has room for: more than come before the end, and fewer than in all.
const ANSWERS: u64 = 300;

/// The user has a quota for what comes down, of a control plane that gives no more. Nothing but the end of the node makes the data plane
/// tell what passed before it, if anything does: what it counted when it was killed its next life tells.
fn over(lab: &Lab, end: fn(&Lab, Node) -> Result<Node>) -> Result<()> {
    let (node, folder) = Node::start_charging(lab, Driver::AfPacket)?;
    let mut ran = Ran::run(lab, &config::write_ran_quota(lab.dir.path(), ANSWERS * PING_BYTES)?)?;
    node.wait_sessions(ran.sessions)?;
    let ping = || Ping::run(&lab.ran, SERVER, (PINGS, Duration::from_millis(10)));
    ping()?.expect_no_loss()?;
    let node = end(lab, node)?;
    node.wait_sessions(ran.sessions)?;
    let lost = u64::from(ping()?.lost());
    ran.stop_here()?;
    node.wait_sessions(0)?;
    let records = first_records(&node, &folder)?;
    let sent = 2 * u64::from(PINGS);
    let bytes = (sent * PING_BYTES, ANSWERS * PING_BYTES);
    ensure!(sum(&records) == bytes, "charged are {:?} of {bytes:?}", sum(&records));
    ensure!(sent - lost == ANSWERS, "{} answers passed by a quota for {ANSWERS}", sent - lost);
    let reported = ran.reported_downlink_bytes()?;
    ensure!(reported == bytes.1, "reported are {reported} bytes down of {}", bytes.1);
    node.stop()
}

/// As a runtime of containers does that knows of no order among them.
fn engines(_: &Lab, mut node: Node) -> Result<Node> {
    let old = [(Part::Cpe, node.pid(Part::Cpe)?), (Part::Dpe, node.pid(Part::Dpe)?)];
    old.iter().try_for_each(|(_, pid)| kill(*pid, Signal::SIGTERM))?;
    for (part, pid) in old {
        node.wait_restart(part, pid)?;
    }
    Ok(node)
}

/// As `killall` does. Whoever supervises them tells the engines once more.
fn all(lab: &Lab, node: Node) -> Result<Node> {
    let engines = [node.pid(Part::Dpe)?, node.pid(Part::Cpe)?];
    node.signal(Signal::SIGTERM)?;
    engines.into_iter().try_for_each(|pid| kill(pid, Signal::SIGTERM))?;
    node.start_once_gone(lab)
}

/// Its engines hear of it by the kernel, both at once. What was known of charging stays to be read.
fn supervisor(lab: &Lab, mut node: Node) -> Result<Node> {
    node.signal(Signal::SIGKILL)?;
    node.wait_gone(lab)?;
    let said = node.ctl("cdr status")?;
    ensure!(
        said.contains("charging: the node does not run; as of ") && said.contains(" records wait"),
        "{said}"
    );
    node.start_once_gone(lab)
}

fn data_plane_killed(lab: &Lab, mut node: Node) -> Result<Node> {
    let pid = node.kill(lab, Part::Dpe)?;
    node.wait_restart(Part::Dpe, pid)?;
    Ok(node)
}

/// Nobody is left who was told anything.
fn engines_killed(lab: &Lab, mut node: Node) -> Result<Node> {
    let old = [(Part::Cpe, node.kill(lab, Part::Cpe)?), (Part::Dpe, node.kill(lab, Part::Dpe)?)];
    for (part, pid) in old {
        node.wait_restart(part, pid)?;
    }
    Ok(node)
}

/// As `killall -9` does.
fn all_killed(lab: &Lab, mut node: Node) -> Result<Node> {
    let engines = [node.pid(Part::Dpe)?, node.pid(Part::Cpe)?];
    node.signal(Signal::SIGKILL)?;
    engines.into_iter().try_for_each(|pid| kill(pid, Signal::SIGKILL))?;
    node.wait_gone(lab)?;
    node.start_once_gone(lab)
}
