//! What operators see of a running node.

use crate::Test;
use anyhow::{Context, Result, ensure};
use lab::address::{SERVER, UE};
use lab::anchorline::{Node, Part, Ran};
use lab::config::{Driver, FTeid, METRICS};
use lab::measure::Ping;
use lab::{Core, Lab, command, wait};
use nix::sys::signal::{Signal, kill};
use std::collections::HashSet;
use std::time::Duration;

pub(crate) const TESTS: &[Test] =
    &[("operators_see_what_happens_to_packets_and_by_which_rule", Core::Engine, observe)];

/// An address of the users' that is nobody's.
const NOBODY: &str = "10.60.0.99";

fn observe(lab: &Lab) -> Result<()> {
    let node = Node::start(lab, Driver::AfPacket)?;
    let ran = Ran::start(lab, FTeid::Choose)?;
    node.wait_sessions(ran.sessions)?;
    trace(lab, &node)?;
    explain(&node)?;
    drops(lab, &node)?;
    scrape(lab)?;
    associations(lab, &node)?;
    peers(lab, &node, &ran)?;
    scrape_without_data_plane(lab, &node)?;
    release(&node, &ran)?;
    // It has ended by itself, as the user plane asked.
    drop(ran);
    node.stop()
}

fn says(text: &str, words: &[&str]) -> Result<()> {
    words.iter().try_for_each(|word| {
        ensure!(text.contains(word), "`{word}` is not in\n{text}");
        Ok(())
    })
}

fn trace(lab: &Lab, node: &Node) -> Result<()> {
    let mut trace = node.start_ctl(lab, &format!("trace --packets 4 --seconds 8 --ue {UE}"))?;
    Ping::run(&lab.ran, SERVER, (50, Duration::from_millis(20)))?.expect_no_loss()?;
    let status = trace.wait_exit(command::SHORT)?;
    let told = trace.output()?;
    ensure!(status.success(), "ctl trace ended with {status}: {told}");
    says(&told, &["packet 4, ", "4 packets traced of", "in by n3", "GTP-U 10.30.0.1 > 10.30.0.2 TEID"])?;
    says(&told, &["ICMP 10.60.0.1 > 10.50.0.1", "PDR ", "usual_input ", "sent by n6: "])?;
    let absent = node.ctl("trace --port n9 --seconds 1");
    let complaint = absent.err().context("a port that is not there was traced")?.to_string();
    says(&complaint, &["there is no port n9, only n3, n6"])
}

fn explain(node: &Node) -> Result<()> {
    let up = node.ctl(&format!("explain --ue {UE} --to {SERVER}"))?;
    says(
        &up,
        &["ICMP 10.60.0.1 > 10.50.0.1", "from the user", "PDR ", "to the core side", "it would be sent"],
    )?;
    let down = node.ctl(&format!("explain --ue {UE} --to {SERVER}:53 --down --verbose"))?;
    says(&down, &["UDP 10.50.0.1:53 > 10.60.0.1:49152", "to the access side", "10.30.0.1 by port n3"])?;
    let nobody = node.ctl(&format!("explain --ue {NOBODY} --to {SERVER} --down --json"))?;
    says(&nobody, &["{\"session\":null", "\"reason\":\"no_session\""])
}

fn drops(lab: &Lab, node: &Node) -> Result<()> {
    // Nobody answers: that is what it is for.
    let mut ping = lab.dn.command("ping");
    command::run(ping.args(["-c", "2", "-i", "0.2", "-W", "1", NOBODY]), command::SHORT)?;
    let told = node.ctl("drops")?;
    says(&told, &["no_session", "A packet to or from a user at an address that no session has."])?;
    let told = node.ctl("runtime --seconds 1")?;
    says(&told, &["cycles/packet", "1 sessions"])
}

fn metrics(lab: &Lab) -> Result<String> {
    lab.upf.run(
        &format!("curl -sSf -H Accept:application/openmetrics-text http://{METRICS}/metrics"),
        command::SHORT,
    )
}

/// A data plane that does not answer is told as down; the rest is told all the same.
fn scrape_without_data_plane(lab: &Lab, node: &Node) -> Result<()> {
    let dpe = node.pid(Part::Dpe)?;
    ensure!(lab.upf.pids()?.contains(&dpe), "pid {dpe} does not run in namespace {}", lab.upf.name());
    kill(dpe, Signal::SIGSTOP)?;
    let told = metrics(lab);
    kill(dpe, Signal::SIGCONT)?;
    says(&told?, &["\nanchorline_dpe_up 0\n", "\nanchorline_pfcp_sessions 1\n"])?;
    says(&metrics(lab)?, &["\nanchorline_dpe_up 1\n"])
}

/// The SMF answers heartbeats, and has one session.
fn associations(lab: &Lab, node: &Node) -> Result<()> {
    let told = node.ctl("associations")?;
    let line = told.lines().find(|line| line.starts_with("10.40.0.1 "));
    let words: Vec<&str> = line.with_context(|| format!("no SMF in\n{told}"))?.split_whitespace().collect();
    ensure!(words.get(1..4) == Some(&["10.40.0.1:8805", "up", "1"][..]), "{told}");
    says(
        &node.ctl("associations --json")?,
        &["{\"associations\":[{\"node_id\":\"10.40.0.1\"", "\"state\":\"up\"", "\"sessions\":1,"],
    )?;
    says(
        &metrics(lab)?,
        &[
            "\nanchorline_pfcp_associations{state=\"up\"} 1\n",
            "\nanchorline_pfcp_associations{state=\"silent\"} 0\n",
            "\nanchorline_pfcp_association_sessions{node_id=\"10.40.0.1\"} 1\n",
        ],
    )?;
    let nobody = node.ctl("release --peer smf.example").err().context("nobody was released")?;
    says(&nobody.to_string(), &["no control plane is associated as smf.example"])
}

/// The SMF is asked while it cannot hear; when it hears it deletes its session and releases the association.
fn release(node: &Node, ran: &Ran) -> Result<()> {
    let pid = ran.pid()?;
    kill(pid, Signal::SIGSTOP)?;
    let unheard = release_unheard(node);
    kill(pid, Signal::SIGCONT)?;
    unheard?;
    wait::until("the SMF releases the association", Duration::from_secs(20), || {
        let told = node.ctl("associations")?;
        Ok((!told.contains("10.40.0.1 ")).then_some(()))
    })?;
    node.wait_sessions(0)
}

fn release_unheard(node: &Node) -> Result<()> {
    let order = node.ctl("release --grace 3600 --peer 10.40.0.1")?;
    ensure!(order == "asked to release within 3600 s: 10.40.0.1\n", "{order}");
    says(&node.ctl("associations")?, &[" leaving in 3"])?;
    ensure!(node.ctl("release --cancel --peer 10.40.0.1")? == "no leave is taken of 10.40.0.1\n");
    says(&node.ctl("associations")?, &[" up "])
}

/// The gNB answers echo requests until it is stopped, and again when it goes on.
fn peers(lab: &Lab, node: &Node, ran: &Ran) -> Result<()> {
    let is_seen = |path: &'static str| {
        wait::until(&format!("the gNB's path is {path}"), Duration::from_secs(20), || {
            let told = node.ctl("peers")?;
            Ok(told.lines().any(|line| line.starts_with("10.30.0.1 ") && line.contains(path)).then_some(()))
        })
    };
    is_seen(" up ")?;
    let pid = ran.pid()?;
    kill(pid, Signal::SIGSTOP)?;
    let failed = is_seen(" FAILED ").and_then(|()| metrics(lab));
    kill(pid, Signal::SIGCONT)?;
    let failed = failed?;
    says(&failed, &["\nanchorline_gtpu_failed_paths{worker=\"0\"} 1\n"])?;
    says(&failed, &["\nanchorline_gtpu_path_failures_total{worker=\"0\"} 1\n"])?;
    is_seen(" up ")?;
    says(
        &node.ctl("peers --json")?,
        &["{\"peers\":[{\"side\":\"access\",\"address\":\"10.30.0.1\"", "\"path\":\"up\""],
    )?;
    let told = wait::until("the node says that the gNB is there again", Duration::from_secs(5), || {
        Ok(Some(node.output()?).filter(|told| told.contains("the GTP-U peer 10.30.0.1 answers again")))
    })?;
    says(&told, &["the GTP-U peer 10.30.0.1 is silent"])
}

/// Every line of a scrape is a comment of a known kind or a sample of a family that has one type and one explanation.
fn scrape(lab: &Lab) -> Result<()> {
    let told = metrics(lab)?;
    let body = told.strip_suffix("# EOF\n").with_context(|| format!("no end in\n{told}"))?;
    let (mut typed, mut explained) = (HashSet::new(), HashSet::new());
    for line in body.lines() {
        if let Some((name, _)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            ensure!(typed.insert(name), "{name} is typed twice");
        } else if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
        {
            ensure!(explained.insert(name) && !help.is_empty(), "{name} is explained twice or not at all");
        } else {
            let (series, value) = line.rsplit_once(' ').with_context(|| format!("no value in `{line}`"))?;
            let name = series.split('{').next().unwrap_or_default();
            let family = name.strip_suffix("_total").unwrap_or(name);
            ensure!(typed.contains(family) && explained.contains(family), "`{line}` is of no family");
            value.parse::<f64>().with_context(|| format!("`{line}`"))?;
        }
    }
    says(&told, &["\nanchorline_dpe_up 1\n", "\nanchorline_sessions{worker=\"0\"} 1\n"])?;
    for positive in [
        "anchorline_port_received_packets_total{port=\"n3\"}",
        "anchorline_node_cycles_total{worker=\"0\",node=\"usual_input\"}",
        "anchorline_drops_total{worker=\"0\",reason=\"no_session\"}",
        "anchorline_pfcp_requests_total{outcome=\"accepted\"}",
    ] {
        let value = told.lines().find_map(|line| line.strip_prefix(positive)?.trim().parse::<u64>().ok());
        ensure!(value.is_some_and(|value| value > 0), "{positive} is {value:?}");
    }
    Ok(())
}
