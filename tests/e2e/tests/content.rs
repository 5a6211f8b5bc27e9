//! What flows are about decides what becomes of them: with real clients and servers, in the clear and encrypted.

use crate::Test;
use anyhow::{Context, Result, ensure};
use lab::address::{HTTP_PORT, SERVER};
use lab::anchorline::{Node, Ran};
use lab::http::FileServer;
use lab::measure::random_file;
use lab::{Core, Lab, Process, command, config, wait};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) const TESTS: &[Test] = &[
    ("services_are_told_apart_and_treated_as_their_rules_say", Core::Engine, services),
    ("users_are_sent_to_a_portal", Core::Engine, portal),
    ("what_is_free_by_its_name_is_reached_where_all_else_ends", Core::Engine, free),
    ("requests_get_a_field", Core::Engine, enrichment),
];

pub(crate) const TLS_PORT: u16 = 8443;
/// What a client gives a server to answer.
const PATIENCE: &str = "2";

const CONTENT: &str = "id=1 precedence=1 rating-group=1 application=ads host=.ads.example\n\
                       id=2 precedence=2 rating-group=2 application=video host=.video.example\n";
const RELAXED: &str = "id=2 precedence=2 rating-group=2 application=video host=.video.example\n";

const PREDEFINED: &str = r#"
[[n4.predefined_rule]]
name = "no-ads"
application = "ads"
precedence = 1
action = "drop"
[[n4.predefined_rule]]
name = "slow-video"
application = "video"
precedence = 2
mbr_kbps = { uplink = 40000, downlink = 40000 }
"#;

/// Bytes of the file that is asked for: a second and more at the video's rate.
const BYTES: u64 = 6_000_000;

/// Times it is asked for without a limit, until one of them is quicker than the limit allows.
const UNLIMITED_MAX: usize = 10;

fn services(lab: &Lab) -> Result<()> {
    let (rules, config) = config::write_upf_content(lab.dir.path(), CONTENT, PREDEFINED)?;
    let node = Node::start_by(lab, config)?;
    let ran = Ran::run(lab, &config::write_ran_predefined(lab.dir.path(), &["no-ads", "slow-video"])?)?;
    node.wait_sessions(ran.sessions)?;
    node.wait_content()?;
    let files = lab.scratch.path();
    random_file(&files.join("file"), BYTES)?;
    // The host's own may be BBR, which takes loss for no reason to be slower, and a rate tells by loss alone.
    lab.dn.sysctl("ipv4/tcp_congestion_control", "reno")?;
    let _server = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    let tls = tls_server(lab)?;

    for (scheme, port) in [("http", HTTP_PORT), ("https", TLS_PORT)] {
        ensure!(
            fetch(lab, (scheme, "www.other.example", port))?.is_some(),
            "{scheme}: what is not named passes"
        );
        ensure!(fetch(lab, (scheme, "www.ads.example", port))?.is_none(), "{scheme}: what is blocked passes");
    }
    let least = Duration::from_secs_f64(BYTES as f64 * 8.0 / 40e6 * 0.9);
    let held = fetch(lab, ("http", "cdn.video.example", HTTP_PORT))?.context("the video did not come")?;
    ensure!(held > least, "6 MB at 40 Mbit/s took {held:?}");
    // Under a limit none could be quicker; without one, a busy machine may be slow, but not every time.
    let mut free = vec![];
    while free.iter().all(|took| *took >= least) {
        ensure!(free.len() < UNLIMITED_MAX, "6 MB without a limit took {free:?}");
        free.push(fetch(lab, ("http", "www.other.example", HTTP_PORT))?.context("nothing came")?);
    }

    // Rules are loaded while it runs; who was blocked no longer is.
    let new = config::write(lab.dir.path(), "new.rules", RELAXED)?;
    node.ctl(&format!("rules load {}", new.display()))?;
    ensure!(fs::read_to_string(&rules)? == RELAXED, "the node's file is the old one");
    // The server of TLS still waits for the client that was blocked.
    ensure!(fetch(lab, ("http", "www.ads.example", HTTP_PORT))?.is_some(), "it is still blocked");
    let counts =
        node.status()?.workers.into_iter().map(|worker| worker.content).next().context("no worker")?;
    ensure!(counts.detected >= 3 && counts.undetected >= 4, "{counts:?}");
    drop(tls);
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

const PORTAL: &str = "http://portal.example/more";

/// As docs/content-rules.md has it; the file goes in the place of its name.
const CATEGORY: &str = r#"
[[content.category]]
name = "games"
file = "/etc/anchorline/games.hosts"

[[n4.predefined_rule]]
name = "no-games"
application = "games"
precedence = 20
redirect = "http://portal.example/more"
"#;
const GAMES: &str = "# games.hosts\n\
                     games.example          # this host and all below it\n\
                     =play.example          # this host alone\n";

/// Not all clients of a host: those that offer this as what they will speak.
const OFFERS: &str =
    "id=3 precedence=3 rating-group=1 application=ads host=www.offers.example alpn=http/1.1\n";

const REDIRECTING: &str = r#"
[[n4.predefined_rule]]
name = "portal-for-ads"
application = "ads"
precedence = 1
redirect = "http://portal.example/more"
# Of a server whose names nobody knows: its connections begin with the node.
[[n4.predefined_rule]]
name = "captive"
precedence = 2
filters = ["permit out ip from 10.50.0.99 to assigned"]
redirect = "http://portal.example/more"
"#;

/// Requests are answered with the portal's place, TLS ends at once, and all else is as it was.
fn portal(lab: &Lab) -> Result<()> {
    let games = config::write(lab.dir.path(), "games.hosts", GAMES)?;
    let category = CATEGORY.replace("/etc/anchorline/games.hosts", &games.display().to_string());
    let content = [CONTENT, OFFERS].concat();
    let (_, config) = config::write_upf_content(lab.dir.path(), &content, &(category + REDIRECTING))?;
    let node = Node::start_by(lab, config)?;
    let rules = ["portal-for-ads", "captive", "no-games"];
    let ran = Ran::run(lab, &config::write_ran_predefined(lab.dir.path(), &rules)?)?;
    node.wait_sessions(ran.sessions)?;
    node.wait_content()?;
    let files = lab.scratch.path();
    random_file(&files.join("file"), 1_000)?;
    let _server = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    let _tls = tls_server(lab)?;
    for _ in 0..3 {
        let told = ask(lab, ("http", "www.ads.example", HTTP_PORT), &SERVER.to_string())?;
        ensure!(told == Told { exit: 0, status: "302".to_owned(), to: PORTAL.to_owned() }, "{told:?}");
        let told = ask(lab, ("http", "www.other.example", HTTP_PORT), &SERVER.to_string())?;
        ensure!(told.exit == 0 && told.status == "200", "what is not named passes: {told:?}");
    }
    for (host, is_one) in [("www.games.example", true), ("play.example", true), ("www.play.example", false)] {
        let told = ask(lab, ("http", host, HTTP_PORT), &SERVER.to_string())?;
        ensure!(told.status == if is_one { "302" } else { "200" }, "{host}: {told:?}");
    }
    let begun = Instant::now();
    let told = ask(lab, ("https", "www.ads.example", TLS_PORT), &SERVER.to_string())?;
    ensure!(told.exit == RESET_IN_TLS && begun.elapsed() < Duration::from_secs(1), "{told:?}");
    let told = ask(lab, ("https", "www.other.example", TLS_PORT), &SERVER.to_string())?;
    ensure!(told.exit == 0, "what is not named passes: {told:?}");
    for (options, exit) in [(&[][..], RESET_IN_TLS), (&["--no-alpn"], 0)] {
        let told = ask_with(options, lab, ("https", "www.offers.example", TLS_PORT), &SERVER.to_string())?;
        ensure!(told.exit == exit, "{options:?}: {told:?}");
    }

    // Nobody is at this address: the node itself completes the handshake, or refuses it.
    let told = ask(lab, ("http", "anything.example", 80), NOBODY)?;
    ensure!(told == Told { exit: 0, status: "302".to_owned(), to: PORTAL.to_owned() }, "{told:?}");
    let told = ask(lab, ("https", "anything.example", 443), NOBODY)?;
    ensure!(told.exit == REFUSED, "{told:?}");
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

/// One host is reached whatever happens; all else is blocked, or sent to a portal.
const FREE: &str = r#"
[[n4.predefined_rule]]
name = "free-video"
application = "video"
precedence = 1
[[n4.predefined_rule]]
name = "blocked"
precedence = 2
filters = ["permit out ip from any to assigned"]
action = "drop"
[[n4.predefined_rule]]
name = "captive"
precedence = 2
filters = ["permit out ip from any to assigned"]
redirect = "http://portal.example/more"
"#;

/// Who a connection is with is said behind its handshake, which all the same passes: a name is enough to be free.
fn free(lab: &Lab) -> Result<()> {
    let (_, config) = config::write_upf_content(lab.dir.path(), CONTENT, FREE)?;
    let node = Node::start_by(lab, config)?;
    let files = lab.scratch.path();
    random_file(&files.join("file"), 1_000)?;
    let _server = FileServer::start(&lab.dn, (SERVER, HTTP_PORT), files)?;
    let _tls = tls_server(lab)?;
    for other in ["blocked", "captive"] {
        let ran = Ran::run(lab, &config::write_ran_predefined(lab.dir.path(), &["free-video", other])?)?;
        node.wait_sessions(ran.sessions)?;
        node.wait_content()?;
        for (scheme, port) in [("http", HTTP_PORT), ("https", TLS_PORT)] {
            let told = ask(lab, (scheme, "cdn.video.example", port), &SERVER.to_string())?;
            ensure!(told.exit == 0 && told.status == "200", "{other}, {scheme}: {told:?}");
        }
        let told = in_two_segments(lab)?;
        ensure!(told.contains(" 200 "), "{other}: the name is in the second segment: {told:?}");
        let told = ask(lab, ("http", "www.ads.example", HTTP_PORT), &SERVER.to_string())?;
        let is_stopped = if other == "captive" { told.to == PORTAL } else { told.exit == TIMED_OUT };
        ensure!(is_stopped, "{other}: {told:?}");
        ran.stop()?;
        node.wait_sessions(0)?;
    }
    node.wait_balance()?;
    node.stop()
}

/// What the server says to a request whose first segment names no host.
fn in_two_segments(lab: &Lab) -> Result<String> {
    let mut stream = lab.ran.inside(|| Ok(TcpStream::connect((SERVER, HTTP_PORT))?))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(b"GET /file HTTP/1.1\r\n")?;
    std::thread::sleep(Duration::from_millis(50));
    stream.write_all(b"Host: cdn.video.example\r\nConnection: close\r\n\r\n")?;
    let mut told = Vec::new();
    stream.read_to_end(&mut told)?;
    Ok(String::from_utf8_lossy(&told).into_owned())
}

const ENRICHING: &str = r#"
[[n4.predefined_rule]]
name = "known-here"
precedence = 1
header = { name = "X-Network", value = "example" }
"#;

/// Several requests of one connection, with and without a body, between real stacks.
fn enrichment(lab: &Lab) -> Result<()> {
    let (_, config) = config::write_upf_content(lab.dir.path(), CONTENT, ENRICHING)?;
    let node = Node::start_by(lab, config)?;
    let ran = Ran::run(lab, &config::write_ran_predefined(lab.dir.path(), &["known-here"])?)?;
    node.wait_sessions(ran.sessions)?;
    let listener = lab.dn.inside(|| Ok(TcpListener::bind((SERVER, HTTP_PORT))?))?;
    let server = std::thread::spawn(move || echo(&listener));
    let url = |path: &str| format!("http://{SERVER}:{HTTP_PORT}/{path}");
    let file = lab.scratch.path().join("body");
    random_file(&file, BODY as u64)?;
    let usual = ["--silent", "--noproxy", "*", "--max-time", "20", "-H", "Expect:"];
    let mut curl = lab.ran.command("curl");
    // Heads of more than one segment.
    let cookie = format!("Cookie: {}", "c".repeat(4_000));
    curl.args(usual).args(["-H", &cookie]).args([url("one"), url("two")]).arg("--next").args(usual);
    curl.args(["--data-binary", &format!("@{}", file.display()), &url("three"), "--next"]);
    curl.args(usual).arg(url("four"));
    let told = command::run(&mut curl, Duration::from_secs(30))?.success()?;
    let counts = node.status()?.workers.first().context("no worker")?.content;
    for (path, bytes) in [("one", 0), ("two", 0), ("three", BODY), ("four", 0)] {
        let method = if bytes > 0 { "POST" } else { "GET" };
        let expected = format!("{method} /{path} HTTP/1.1\r\nX-Network: example\r\n");
        ensure!(told.contains(&expected), "{path}, of {counts:?}: {told}");
    }
    let arrived = format!("[{BODY} octets, sum {}]", sum(&fs::read(&file)?));
    ensure!(told.contains(&arrived), "the body is not what was sent: {told}");
    let connections = server.join().map_err(|_| anyhow::anyhow!("the server panicked"))??;
    ensure!(connections == 1, "all of it on one connection, not {connections}");
    ensure!((counts.enriched, counts.unenriched) == (4, 0), "{counts:?}");
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance()?;
    node.stop()
}

/// More than a window takes.
const BODY: usize = 300_000;

pub(crate) fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum: u64, octet| sum.wrapping_mul(31).wrapping_add(u64::from(*octet)))
}

/// Answers each request with its head, and what its body was, until a client has asked for `/four`; on how many
/// connections.
pub(crate) fn echo(listener: &TcpListener) -> Result<usize> {
    for connections in 1.. {
        let mut client = listener.accept()?.0;
        client.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut bytes = vec![];
        while let Some(head) = read_until(&mut client, &mut bytes, end_of_head)? {
            let text = String::from_utf8(bytes.drain(..head).collect())?;
            let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.map_or(Ok(0), str::parse)?;
            read_until(&mut client, &mut bytes, |bytes| (bytes.len() >= length).then_some(length))?;
            let body: Vec<u8> = bytes.drain(..length).collect();
            let told = format!("{text}[{length} octets, sum {}]\n", sum(&body));
            write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{told}", told.len())?;
            if text.contains("/four ") {
                return Ok(connections);
            }
        }
    }
    Ok(0)
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|octets| octets == b"\r\n\r\n").map(|at| at + 4)
}

/// Reads on until something is found; `None` where the client has ended.
fn read_until(
    client: &mut TcpStream,
    bytes: &mut Vec<u8>,
    find: impl Fn(&[u8]) -> Option<usize>,
) -> Result<Option<usize>> {
    loop {
        if let Some(found) = find(bytes) {
            return Ok(Some(found));
        }
        let mut more = [0; 4096];
        match client.read(&mut more)? {
            0 => return Ok(None),
            count => bytes.extend(more.get(..count).unwrap_or_default()),
        }
    }
}

const NOBODY: &str = "10.50.0.99";
/// How curl says that a connection is refused, and that one of TLS ended before its time.
const REFUSED: i32 = 7;
const RESET_IN_TLS: i32 = 35;
/// That nothing came in time.
const TIMED_OUT: i32 = 28;

/// What a client made of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    exit: i32,
    status: String,
    to: String,
}

fn ask(lab: &Lab, whom: (&str, &str, u16), address: &str) -> Result<Told> {
    ask_with(&[], lab, whom, address)
}

fn ask_with(
    options: &[&str],
    lab: &Lab,
    (scheme, host, port): (&str, &str, u16),
    address: &str,
) -> Result<Told> {
    let path = if scheme == "http" { "file" } else { "" };
    let mut curl = lab.ran.command("curl");
    curl.args(options);
    curl.args(["--silent", "--insecure", "--noproxy", "*", "--max-time", "20", "--output", "/dev/null"]);
    curl.args([
        "--resolve",
        &format!("{host}:{port}:{address}"),
        "--write-out",
        "%{http_code} %{redirect_url}",
    ]);
    let done = command::run(curl.arg(format!("{scheme}://{host}:{port}/{path}")), Duration::from_secs(30))?;
    let (status, to) = done.stdout.split_once(' ').context("curl wrote nothing")?;
    let exit = done.status.code().context("curl was killed")?;
    Ok(Told { exit, status: status.to_owned(), to: to.to_owned() })
}

/// A web server that speaks TLS, with a certificate that nobody knows.
pub(crate) fn tls_server(lab: &Lab) -> Result<Process> {
    let (key, certificate) = (lab.scratch.path().join("key.pem"), lab.scratch.path().join("certificate.pem"));
    let mut make = Command::new("openssl");
    make.args([
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=anybody",
        "-keyout",
    ]);
    command::run(make.arg(&key).arg("-out").arg(&certificate), command::SHORT)?.success()?;
    let mut serve = lab.dn.command("openssl");
    serve.args(["s_server", "-quiet", "-www", "-accept", &format!("{SERVER}:{TLS_PORT}"), "-key"]);
    let mut process =
        Process::spawn("openssl", serve.arg(&key).arg("-cert").arg(&certificate), lab.dir.path())?;
    let begun = Instant::now();
    wait::until("a server of TLS", command::SHORT, || {
        ensure!(process.runs()?, "openssl ended after {:?}", begun.elapsed());
        let probe = lab.dn.inside(|| Ok(std::net::TcpStream::connect((SERVER, TLS_PORT)).is_ok()))?;
        Ok(probe.then_some(()))
    })?;
    Ok(process)
}

/// How long the user waited for all of it; `None` where nothing came.
fn fetch(lab: &Lab, (scheme, host, port): (&str, &str, u16)) -> Result<Option<Duration>> {
    let path = if scheme == "http" { "file" } else { "" };
    let mut curl = lab.ran.command("curl");
    curl.args(["--silent", "--insecure", "--noproxy", "*", "--max-time"]);
    curl.arg(if host.contains("ads") { PATIENCE } else { "60" });
    curl.args(["--resolve", &format!("{host}:{port}:{SERVER}"), "--output", "/dev/null"]);
    let begun = Instant::now();
    let done = command::run(curl.arg(format!("{scheme}://{host}:{port}/{path}")), Duration::from_secs(70))?;
    Ok(done.status.success().then(|| begun.elapsed()))
}
