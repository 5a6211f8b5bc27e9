//! Predefined rules that operators put while the node runs.

use crate::Test;
use anyhow::{Context, Result, ensure};
use lab::address::SERVER;
use lab::anchorline::{Node, Part, Ran};
use lab::config::{self, Driver};
use lab::measure::Ping;
use lab::{Core, Lab, command, wait};
use nix::sys::signal::Signal;
use std::fs;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("operators_put_predefined_rules_and_users_follow", Core::Engine, put_and_removed),
    ("users_follow_predefined_rules_of_a_changed_configuration", Core::Engine, configured_anew),
];

const BLOCKS: &str = r#"
[[n4.predefined_rule]]
name = "no-ping"
precedence = 1
filters = ["permit out 1 from any to assigned"]
action = "drop"
"#;
const WRONG: &str = r#"
[[n4.predefined_rule]]
name = "no-ping"
precedence = 1
filters = ["permit out from nowhere"]
"#;

fn put_and_removed(lab: &Lab) -> Result<()> {
    let dir = lab.dir.path();
    let put = |node: &Node, text: &str| {
        let file = config::write(dir, "rules.toml", text)?;
        node.ctl(&format!("predefined put {}", file.display()))
    };
    let mut node = Node::start(lab, Driver::AfPacket)?;
    put(&node, BLOCKS)?;
    let ran = Ran::run(lab, &config::write_ran_predefined(dir, &["no-ping"])?)?;
    node.wait_sessions(ran.sessions)?;
    ensure!(!is_answered(lab), "pings pass though a rule that was put drops them");

    let refused = put(&node, WRONG).err().context("a filter that is none was taken")?.to_string();
    ensure!(refused.contains("nowhere"), "{refused}");
    let old = node.kill(lab, Part::Cpe)?;
    node.wait_restart(Part::Cpe, old)?;
    node.wait_sessions(ran.sessions)?;
    let told = wait::until("the control plane to tell of its rules", command::SHORT, || {
        Ok(node.ctl("predefined list --json").ok())
    })?;
    ensure!(told.contains("no-ping") && told.contains("operator"), "not there after a restart: {told}");
    ensure!(!is_answered(lab), "pings pass after the restart");

    // Sessions that have activated it follow what it is now.
    put(&node, &BLOCKS.replace("action = \"drop\"\n", ""))?;
    follows(lab, "pings to pass", true)?;
    put(&node, BLOCKS)?;
    follows(lab, "pings to be dropped again", false)?;
    node.ctl("predefined remove no-ping")?;
    follows(lab, "pings to pass without the rule", true)?;
    ensure!(!node.ctl("predefined list")?.contains("no-ping"), "it is there yet");
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

/// The data plane stays as it is, and the session is not told of anything by its control plane.
fn configured_anew(lab: &Lab) -> Result<()> {
    let dir = lab.dir.path();
    let file = config::write_upf(dir, Driver::AfPacket)?;
    let plain = fs::read_to_string(&file)?;
    fs::write(&file, format!("{plain}{BLOCKS}"))?;
    let mut node = Node::start_by(lab, file.clone())?;
    let ran = Ran::run(lab, &config::write_ran_predefined(dir, &["no-ping"])?)?;
    node.wait_sessions(ran.sessions)?;
    ensure!(!is_answered(lab), "pings pass though a rule drops them");
    let passes = BLOCKS.replace("action = \"drop\"\n", "");
    for (rules, what, passes) in [(&*passes, "pings to pass", true), (BLOCKS, "pings to be dropped", false)] {
        let old = node.pid(Part::Cpe)?;
        fs::write(&file, format!("{plain}{rules}"))?;
        node.signal(Signal::SIGHUP)?;
        node.wait_restart(Part::Cpe, old)?;
        follows(lab, what, passes)?;
    }
    ensure!(node.starts(Part::Dpe)? == 1, "the data plane was started again");
    node.wait_sessions(ran.sessions)?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.stop()
}

fn is_answered(lab: &Lab) -> bool {
    Ping::run(&lab.ran, SERVER, (2, Duration::from_millis(50))).is_ok()
}

fn follows(lab: &Lab, what: &str, passes: bool) -> Result<()> {
    wait::until(what, command::SHORT, || Ok((is_answered(lab) == passes).then_some(())))
}
