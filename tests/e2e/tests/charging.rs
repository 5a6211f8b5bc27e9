//! What users are charged.

use crate::Test;
use anyhow::{Context, Result, ensure};
use lab::address::SERVER;
use lab::anchorline::{Node, Part, Ran};
use lab::config::{self, Driver, FTeid};
use lab::measure::{Ping, PingInProgress};
use lab::{Core, Lab, command, wait};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("what_a_user_sent_is_charged_once_though_the_cpe_dies", Core::Engine, charged_once),
    ("what_a_user_sent_is_charged_though_the_node_is_restarted", Core::Engine, charged_over_a_restart),
    ("what_a_user_sent_is_charged_though_the_dpe_dies", Core::Engine, charged_though_the_dpe_dies),
];

const PINGS: u32 = 200;
/// Each way: headers of IPv4 and ICMP, and what `ping` sends by itself.
const PING_BYTES: u64 = 20 + 8 + 56;

/// The CPE dies twice, and a record waits in the database while it does; in the end the files of each format hold what
/// passed, to the byte.
fn charged_once(lab: &Lab) -> Result<()> {
    let (mut node, folder) = Node::start_charging(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    let pings = PingInProgress::start(&lab.ran, SERVER, (PINGS, Duration::from_millis(10)), lab.dir.path())?;
    let old = node.kill(lab, Part::Cpe)?;
    node.wait_restart(Part::Cpe, old)?;
    pings.finish()?.expect_no_loss()?;
    ensure!(node.ctl("status")?.contains("charging: 0 records wait"), "no word of charging");
    ran.stop()?;
    node.wait_sessions(0)?;
    // The last record may be in the database only, in files of some formats, or in all.
    let old = node.kill(lab, Part::Cpe)?;
    node.wait_restart(Part::Cpe, old)?;
    let bytes = u64::from(PINGS) * PING_BYTES;
    for ending in ["_-_pgw.cdr", "_-_chf.cdr", "_-_json.jsonl"] {
        let what = format!("a file of {ending}");
        let records = wait::until(&what, Duration::from_secs(20), || {
            Ok(Some(records(&node, &folder, ending)?).filter(|records| !records.is_empty()))
        })?;
        ensure!(records.len() == 1, "{} records of {ending}: {records:?}", records.len());
        ensure!(sum(&records) == (bytes, bytes), "{ending} tells {:?} of {bytes}", sum(&records));
    }
    wait::until("the records to leave the database", command::SHORT, || {
        Ok(node.ctl("cdr status")?.contains(" 0 records wait").then_some(()))
    })?;
    node.stop()
}

/// Nothing but the end of the node makes the data plane tell what passed before it.
fn charged_over_a_restart(lab: &Lab) -> Result<()> {
    let (node, folder) = Node::start_charging(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    let ping = || Ping::run(&lab.ran, SERVER, (PINGS, Duration::from_millis(10)))?.expect_no_loss();
    ping()?;
    let node = node.restart(lab)?;
    node.wait_sessions(ran.sessions)?;
    ping()?;
    ran.stop()?;
    node.wait_sessions(0)?;
    let records = first_records(&node, &folder)?;
    let bytes = 2 * u64::from(PINGS) * PING_BYTES;
    ensure!(sum(&records) == (bytes, bytes), "charged are {:?} of {bytes}", sum(&records));
    node.stop()
}

/// Nothing makes the data plane tell what passed before it dies; the next one finds it, and counts from zero.
fn charged_though_the_dpe_dies(lab: &Lab) -> Result<()> {
    let (folder, config) = config::write_upf_charging(lab.dir.path(), Driver::AfPacket)?;
    config::set_interim_usage(&config, 0)?;
    let mut node = Node::start_by(lab, config)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    let ping = || Ping::run(&lab.ran, SERVER, (PINGS, Duration::from_millis(10)))?.expect_no_loss();
    // Pings that are tried until traffic flows again: of some, the answer may have been lost.
    let mut tries = 0;
    for _ in 0..2 {
        ping()?;
        let old = node.kill(lab, Part::Dpe)?;
        node.wait_restart(Part::Dpe, old)?;
        node.wait_sessions(ran.sessions)?;
        wait::until("traffic to flow again", command::SHORT, || {
            tries += 1;
            Ok(Ping::run(&lab.ran, SERVER, (1, Duration::from_millis(10))).ok())
        })?;
    }
    ping()?;
    ran.stop()?;
    node.wait_sessions(0)?;
    let records = first_records(&node, &folder)?;
    let least = (3 * u64::from(PINGS) + 2) * PING_BYTES;
    let told = least..=least + (tries - 2) * PING_BYTES;
    let (uplink, downlink) = sum(&records);
    let is_whole = told.contains(&uplink) && told.contains(&downlink);
    ensure!(is_whole, "charged are {uplink} up and {downlink} down of {told:?}");
    node.stop()
}

/// All records, once there are any.
pub(crate) fn first_records(node: &Node, folder: &Path) -> Result<Vec<Value>> {
    wait::until("the file", Duration::from_secs(20), || {
        Ok(Some(records(node, folder, "_-_json.jsonl")?).filter(|records| !records.is_empty()))
    })
}

/// All records in files of that ending.
pub(crate) fn records(node: &Node, folder: &Path, ending: &str) -> Result<Vec<Value>> {
    let mut all = vec![];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).context("a name")?;
        if name.ends_with(ending) && !name.starts_with('.') {
            let shown: Value =
                serde_json::from_str(&node.ctl(&format!("cdr show --json {}", path.display()))?)?;
            let records =
                shown.pointer("/files/0/records").and_then(Value::as_array).context("no records")?;
            all.extend(records.iter().cloned());
        }
    }
    Ok(all)
}

/// Octets up and down that they tell of.
pub(crate) fn sum(records: &[Value]) -> (u64, u64) {
    let containers = records.iter().filter_map(|record| record.get("containers")?.as_array()).flatten();
    let bytes = |container: &Value, name: &str| container.get(name).and_then(Value::as_u64).unwrap_or(0);
    containers.fold((0, 0), |(uplink, downlink), it| {
        (uplink + bytes(it, "uplink_bytes"), downlink + bytes(it, "downlink_bytes"))
    })
}
