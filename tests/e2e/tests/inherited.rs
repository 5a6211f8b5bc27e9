//! A data plane that begins anew goes on with connections that the one before it has changed: whether that was killed or told to end.

use crate::Test;
use crate::content::{echo, sum};
use anyhow::{Result, ensure};
use lab::address::{HTTP_PORT, SERVER};
use lab::anchorline::{Node, Part, Ran};
use lab::http::FileServer;
use lab::measure::{hash, random_file};
use lab::{Core, Lab, Process, config};
use nix::sys::signal::{Signal, kill};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("an_upload_with_a_field_in_it_outlives_data_planes", Core::Engine, upload),
    ("a_download_from_elsewhere_outlives_data_planes", Core::Engine, download),
];

/// Of 8 seconds.
const BODY: u64 = 1_600_000;
const BYTES_S: u64 = 200_000;
/// The first data plane sees so much of it, and the second one after it.
const SHARE: Duration = Duration::from_millis(1_500);
/// TCP doubles its own with each data plane that is not there.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nobody has it.
const NOBODY: &str = "10.50.0.99";

/// The server would take octets of the user's for known, as many as the field had.
fn upload(lab: &Lab) -> Result<()> {
    let listener = lab.dn.inside(|| Ok(TcpListener::bind((SERVER, HTTP_PORT))?))?;
    let server = std::thread::spawn(move || echo(&listener));
    let body = lab.scratch.path().join("body");
    random_file(&body, BODY)?;
    let mut curl = lab.ran.command("curl");
    curl.args(["-H", "Expect:", "--limit-rate", &BYTES_S.to_string()]);
    curl.args(["--data-binary", &format!("@{}", body.display())]);
    curl.arg(format!("http://{SERVER}:{HTTP_PORT}/four"));
    let answer = go_on(lab, "header = { name = \"X-Network\", value = \"example\" }", curl)?;
    let told = String::from_utf8(fs::read(answer)?)?;
    let arrived = format!("[{BODY} octets, sum {}]", sum(&fs::read(&body)?));
    ensure!(told.starts_with("POST /four HTTP/1.1\r\nX-Network: example\r\n"), "{told}");
    ensure!(told.contains(&arrived), "the body is not what was sent: {told}");
    let connections = server.join().map_err(|_| anyhow::anyhow!("the server panicked"))??;
    ensure!(connections == 1, "all of it on one connection, not {connections}");
    Ok(())
}

/// The user would reset what comes from the server itself, as it asked another host.
fn download(lab: &Lab) -> Result<()> {
    let files = lab.scratch.path();
    let sent = random_file(&files.join("file"), BODY)?;
    let _server = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    let mut curl = lab.ran.command("curl");
    curl.arg(format!("http://{NOBODY}:{HTTP_PORT}/file?bytes_s={BYTES_S}"));
    let answer = go_on(lab, &format!("redirect = \"{SERVER}\""), curl)?;
    let arrived = hash(&answer)?;
    ensure!(arrived == sent, "what arrived is not what was sent");
    Ok(())
}

/// What a client wrote that goes on while data planes end.
fn go_on(lab: &Lab, rule: &str, mut curl: Command) -> Result<PathBuf> {
    let rule = format!("[[n4.predefined_rule]]\nname = \"known-here\"\nprecedence = 1\n{rule}\n");
    let (_, config) = config::write_upf_content(lab.dir.path(), "# none\n", &rule)?;
    let mut node = Node::start_by(lab, config)?;
    let ran = Ran::run(lab, &config::write_ran_predefined(lab.dir.path(), &["known-here"])?)?;
    node.wait_sessions(ran.sessions)?;
    let answer = lab.scratch.path().join("answer");
    curl.args(["--silent", "--show-error", "--noproxy", "*", "--max-time", &PATIENCE.as_secs().to_string()]);
    let mut curl = Process::spawn("curl", curl.arg("--output").arg(&answer), lab.dir.path())?;
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        std::thread::sleep(SHARE);
        ensure!(curl.runs()?, "the client ended before {signal}: {}", curl.output()?);
        let old = node.pid(Part::Dpe)?;
        kill(old, signal)?;
        node.wait_restart(Part::Dpe, old)?;
    }
    let exit = curl.wait_exit(PATIENCE)?;
    ensure!(exit.success(), "curl: {exit}: {}", curl.output()?);
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()?;
    Ok(answer)
}
