//! Several requests of one connection, and several connections between the same ports, by a real client: each is billed by what it
//! says itself.

use crate::Test;
use crate::charging::records;
use crate::content::{TLS_PORT, echo, tls_server};
use anyhow::{Context, Result, ensure};
use lab::address::{HTTP_PORT, SERVER};
use lab::anchorline::{Node, Part, Ran};
use lab::http::FileServer;
use lab::measure::{hash, random_file};
use lab::{Core, Lab, Process, command, config, wait};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use std::collections::HashMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("each_request_of_a_connection_is_charged_by_its_own_url", Core::Engine, charged_by_url),
    ("a_download_is_charged_by_its_name_in_the_next_data_plane", Core::Engine, charged_after_a_restart),
    ("each_connection_between_the_same_ports_is_charged_by_its_own_name", Core::Engine, charged_by_name),
];

const CONTENT: &str = "id=1 precedence=1 rating-group=10 application=one path=/one\n\
                       id=2 precedence=2 rating-group=20 application=two path=/two path=/three\n";

const HOSTS: &str = "id=1 precedence=1 rating-group=10 application=one host=one.example\n\
                     id=2 precedence=2 rating-group=20 application=two host=two.example\n";

const PREDEFINED: &str = r#"
[[n4.predefined_rule]]
name = "one"
application = "one"
precedence = 1
rating_group = 10
[[n4.predefined_rule]]
name = "two"
application = "two"
precedence = 2
rating_group = 20
"#;

/// More than a window takes; and what heads and acknowledgements of any request are fewer than.
const BODY: u64 = 300_000;
const LITTLE: u64 = 40_000;

fn charged_by_url(lab: &Lab) -> Result<()> {
    let charged = Charged::start(lab, CONTENT)?;
    let listener = lab.dn.inside(|| Ok(TcpListener::bind((SERVER, HTTP_PORT))?))?;
    let server = std::thread::spawn(move || echo(&listener));
    ask(lab)?;
    let connections = server.join().map_err(|_| anyhow::anyhow!("the server panicked"))??;
    ensure!(connections == 1, "all of it on one connection, not {connections}");
    let uplink = charged.end("uplink_bytes")?;
    let of = |group| uplink.get(&group).copied().unwrap_or(0);
    ensure!((1..LITTLE).contains(&of(10)), "the request without a body: {uplink:?}");
    ensure!((BODY..BODY + LITTLE).contains(&of(20)), "those of one body: {uplink:?}");
    ensure!((2 * BODY..2 * BODY + LITTLE).contains(&of(1)), "that of two bodies: {uplink:?}");
    Ok(())
}

/// Of 8 seconds, in the midst of which the data plane is killed, and the next one ends in order.
const DOWNLOAD: u64 = 1_600_000;
const BYTES_S: u64 = 200_000;

fn charged_after_a_restart(lab: &Lab) -> Result<()> {
    let mut charged = Charged::start(lab, HOSTS)?;
    let files = lab.scratch.path();
    let sent = random_file(&files.join("file"), DOWNLOAD)?;
    let _server = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    let answer = files.join("answer");
    let mut curl = lab.ran.command("curl");
    curl.args(["--silent", "--show-error", "--noproxy", "*", "--max-time", "60", "--resolve"]);
    curl.arg(format!("one.example:{HTTP_PORT}:{SERVER}")).arg("--output").arg(&answer);
    curl.arg(format!("http://one.example:{HTTP_PORT}/file?bytes_s={BYTES_S}"));
    let mut curl = Process::spawn("curl", &mut curl, lab.dir.path())?;
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        std::thread::sleep(Duration::from_millis(1_500));
        ensure!(curl.runs()?, "the client ended before {signal}: {}", curl.output()?);
        let old = charged.node.pid(Part::Dpe)?;
        kill(old, signal)?;
        charged.node.wait_restart(Part::Dpe, old)?;
    }
    let exit = curl.wait_exit(Duration::from_secs(60))?;
    ensure!(exit.success() && hash(&answer)? == sent, "curl: {exit}: {}", curl.output()?);
    let downlink = charged.end("downlink_bytes")?;
    ensure!(downlink.keys().eq(&[10]), "all of it is of one.example: {downlink:?}");
    ensure!(downlink.values().all(|bytes| *bytes > DOWNLOAD), "{downlink:?}");
    Ok(())
}

/// Where all connections to either host begin.
const USER_PORT: &str = "41000";

/// One connection after the other, of which all say about as much.
fn charged_by_name(lab: &Lab) -> Result<()> {
    let charged = Charged::start(lab, HOSTS)?;
    let _server = tls_server(lab)?;
    // The port is free again at once.
    lab.ran.sysctl("ipv4/tcp_max_tw_buckets", "0")?;
    for host in ["one.example", "two.example", "two.example", "one.example", "two.example", "two.example"] {
        let mut curl = lab.ran.command("curl");
        curl.args(["--silent", "--insecure", "--noproxy", "*", "--max-time", "20", "--output", "/dev/null"]);
        curl.args(["--local-port", USER_PORT, "--write-out", "%{local_port}", "--resolve"]);
        curl.arg(format!("{host}:{TLS_PORT}:{SERVER}")).arg(format!("https://{host}:{TLS_PORT}/"));
        let port = command::run(&mut curl, Duration::from_secs(30))?.success()?;
        ensure!(port == USER_PORT, "it began at {port}");
    }
    let uplink = charged.end("uplink_bytes")?;
    let of = |group| uplink.get(&group).copied().unwrap_or(0);
    ensure!(of(10) > 0 && (15..25).contains(&(of(20) * 10 / of(10))), "four to two: {uplink:?}");
    ensure!(of(1) == 0, "nothing is of neither: {uplink:?}");
    Ok(())
}

/// A node that charges by content, with a user on it.
struct Charged {
    node: Node,
    ran: Ran,
    folder: PathBuf,
}

impl Charged {
    fn start(lab: &Lab, content: &str) -> Result<Self> {
        let folder = lab.dir.path().join("cdr");
        let charging = format!(
            "\n[charging]\ndirectory = \"{}\"\nformats = [\"json\"]\ndefault_rating_group = 1\nfile_max_s = 1\n\
             min_free_mb = 0\n",
            folder.display()
        );
        let (_, config) =
            config::write_upf_content(lab.dir.path(), content, &(PREDEFINED.to_owned() + &charging))?;
        let node = Node::start_by(lab, config)?;
        let ran = Ran::run(lab, &config::write_ran_predefined(lab.dir.path(), &["one", "two"])?)?;
        node.wait_sessions(ran.sessions)?;
        node.wait_content()?;
        Ok(Self { node, ran, folder })
    }

    /// Ends the user's session, and the node; bytes of a direction by rating group.
    fn end(self, direction: &str) -> Result<HashMap<u64, u64>> {
        let Self { node, ran, folder } = self;
        ran.stop()?;
        node.wait_sessions(0)?;
        node.wait_balance()?;
        let found = || bytes(&node, &folder, direction);
        let bytes = wait::until("records", Duration::from_secs(20), found)?;
        node.stop()?;
        Ok(bytes)
    }
}

/// One request for the first URL, two for the second, one of them with a body, and one with two for another.
fn ask(lab: &Lab) -> Result<()> {
    let url = |path: &str| format!("http://{SERVER}:{HTTP_PORT}/{path}");
    let (file, long) = (lab.scratch.path().join("body"), lab.scratch.path().join("bodies"));
    random_file(&file, BODY)?;
    random_file(&long, 2 * BODY)?;
    let usual = ["--silent", "--noproxy", "*", "--max-time", "20", "-H", "Expect:"];
    let with = |file: &Path| ["--data-binary".to_owned(), format!("@{}", file.display())];
    let mut curl = lab.ran.command("curl");
    curl.args(usual).arg(url("one")).arg("--next").args(usual).args(with(&file)).arg(url("two"));
    curl.arg("--next")
        .args(usual)
        .arg(url("three"))
        .arg("--next")
        .args(usual)
        .args(with(&long))
        .arg(url("four"));
    command::run(&mut curl, Duration::from_secs(60))?.success().map(drop)
}

/// Bytes of a direction by rating group, once there are any.
fn bytes(node: &Node, folder: &Path, direction: &str) -> Result<Option<HashMap<u64, u64>>> {
    let mut bytes = HashMap::new();
    let records = records(node, folder, "_-_json.jsonl")?;
    for container in records.iter().filter_map(|record| record.get("containers")?.as_array()).flatten() {
        let number = |name: &str| container.get(name).and_then(Value::as_u64).context(name.to_owned());
        *bytes.entry(number("rating_group")?).or_default() += number(direction)?;
    }
    Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
}
