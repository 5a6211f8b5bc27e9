//! What cannot work is refused in one clear sentence.

use crate::Test;
use anyhow::{Context, Result, ensure};
use lab::address::{PFCP_PORT, UPF_N4};
use lab::anchorline::{Node, Ran, call};
use lab::command::Finished;
use lab::config::{self, Driver, FTeid};
use lab::{Core, Lab, command, program};
use std::fs;
use std::net::UdpSocket;

pub(crate) const TESTS: &[Test] = &[
    ("a_wrong_value_is_named_with_its_key_and_line", Core::Engine, wrong_values),
    ("a_missing_configuration_file_is_named", Core::Engine, missing_file),
    ("a_missing_interface_is_named", Core::Engine, missing_interface),
    ("a_pfcp_port_in_use_is_named", Core::Engine, port_in_use),
    ("a_missing_privilege_is_named", Core::Engine, missing_privilege),
    ("a_node_that_has_sessions_stays_who_it_is", Core::Engine, renamed),
];

/// Which example, the line to spoil, what it becomes, and what the complaint must contain besides the line's number.
const SPOILED: [(&str, &str, &str, &[&str]); 7] = [
    ("upf.toml", "memory_mb = 256", "memory_mb = \"lots\"", &["memory_mb", "lots"]),
    ("upf.toml", "memory_mb = 256", "memory_mbyte = 256", &["memory_mbyte"]),
    ("upf.toml", "idle = \"poll\"", "idle = \"dance\"", &["idle", "dance"]),
    (
        "upf.toml",
        "listen = \"10.40.0.2:8805\"",
        "listen = \"10.40.0.2:88050\"",
        &["listen", "10.40.0.2:88050"],
    ),
    ("upf.toml", "address = \"10.30.0.2/24\"", "address = \"10.30.0.2/42\"", &["address", "10.30.0.2/42"]),
    ("upf.toml", "# punt = \"n3-host\"", "punt = \"sixteen-is-a-lot\"", &["punt", "1 to 15 letters"]),
    ("ran.toml", "f_teid = \"choose\"", "f_teid = \"guess\"", &["f_teid", "guess"]),
];

fn wrong_values(lab: &Lab) -> Result<()> {
    for (example, good, bad, said) in SPOILED {
        let text = config::example(example)?;
        let line = text.lines().position(|line| line == good);
        let number = line.with_context(|| format!("{example} has no line `{good}`"))? + 1;
        let spoiled = config::write(lab.dir.path(), example, &text.replacen(good, bad, 1))?;
        let role = if example == "ran.toml" { "ran" } else { "up" };
        let complaint = refusal(&call(lab, role, &spoiled)?)?;
        for word in said {
            ensure!(complaint.contains(word), "`{bad}`: `{word}` is not in `{complaint}`");
        }
        let places = [format!("line {number}"), format!("{example}:{number}:")];
        ensure!(
            places.iter().any(|place| complaint.contains(place)),
            "`{bad}`: no line {number} in `{complaint}`"
        );
    }
    Ok(())
}

fn missing_file(lab: &Lab) -> Result<()> {
    let complaint = refusal(&call(lab, "up", &lab.dir.path().join("absent.toml"))?)?;
    ensure!(complaint.contains("absent.toml"), "the file is not in `{complaint}`");
    Ok(())
}

fn missing_interface(lab: &Lab) -> Result<()> {
    let good = fs::read_to_string(config::write_upf(lab.dir.path(), Driver::AfPacket)?)?;
    let bad = config::write(lab.dir.path(), "upf.toml", &good.replace("iface=n6", "iface=n7"))?;
    let complaint = refusal(&call(lab, "up", &bad)?)?;
    ensure!(complaint.contains("n7"), "the interface is not in `{complaint}`");
    Ok(())
}

fn port_in_use(lab: &Lab) -> Result<()> {
    let _occupied = lab.upf.inside(|| Ok(UdpSocket::bind((UPF_N4, PFCP_PORT))?))?;
    let complaint = refusal(&call(lab, "up", &config::write_upf(lab.dir.path(), Driver::AfPacket)?)?)?;
    ensure!(
        complaint.contains("10.40.0.2:8805") && complaint.contains("another program"),
        "unclear: `{complaint}`"
    );
    Ok(())
}

fn missing_privilege(lab: &Lab) -> Result<()> {
    let config = config::write_upf(lab.dir.path(), Driver::AfPacket)?;
    let mut up = lab.upf.command("setpriv");
    up.args(["--bounding-set", "-all", "--no-new-privs", "--"]).arg(program("anchorline")?);
    let complaint = refusal(&command::run(up.args(["up", "--config"]).arg(config), command::SHORT * 2)?)?;
    ensure!(complaint.contains("CAP_NET_RAW"), "the privilege is not in `{complaint}`");
    Ok(())
}

/// Sessions are known to control planes by the Node ID they were made under, and wait for a node that starts by it again.
fn renamed(lab: &Lab) -> Result<()> {
    let config = config::write_upf(lab.dir.path(), Driver::AfPacket)?;
    let node = Node::start_by(lab, config.clone())?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    node.stop()?;

    let good = fs::read_to_string(&config)?;
    let named = |id: &str| format!("id = \"{id}\"");
    let bad = good.replacen(&named("10.40.0.2"), &named("upf.example.org"), 1);
    ensure!(bad != good, "{} names no Node ID", config.display());
    let complaint = refusal(&call(lab, "up", &config::write(lab.dir.path(), "renamed.toml", &bad)?)?)?;
    let sessions = format!("{} session(s) under node.id 10.40.0.2", ran.sessions);
    for said in [sessions.as_str(), "upf.example.org", "ctl release --wait"] {
        ensure!(complaint.contains(said), "`{said}` is not in `{complaint}`");
    }

    let node = Node::start_by(lab, config)?;
    node.wait_sessions(ran.sessions)?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.stop()
}

/// What the program says went wrong: one sentence, and at most one more by which `up` points to its engine's. No
/// panic, no success.
fn refusal(done: &Finished) -> Result<String> {
    let sentences: Vec<&str> = done.stderr.lines().filter(|line| line.starts_with("anchorline: ")).collect();
    let complaint = sentences.join("\n");
    ensure!(!done.status.success(), "`{}` succeeded: {}", done.call, done.stdout);
    ensure!(done.status.code().is_some(), "`{}` ended with {}", done.call, done.status);
    ensure!((1..=2).contains(&sentences.len()), "`{}` said {}", done.call, done.stderr);
    ensure!(!done.stderr.contains("panicked"), "`{}` panicked: {}", done.call, done.stderr);
    Ok(complaint)
}
