//! Captures and their labels, as tshark reads them: it decodes every layer, derives QUIC's keys itself, and puts
//! segments and CRYPTO frames together.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests speak plainly")]

use anchorline_traffic::{Endpoints, FRAME_MAX, Flows, Profile, profile, record};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKETS: u64 = 6_000;
/// A seed is as good as another.
const SEED: u64 = 7;
/// Media has no port of its own, and some of the users' ports are other protocols' for tshark.
const MEDIA: &str = "udp.port==30100-31600,rtp";
/// What tshark says of QUIC packets whose keys no handshake gave away: rightly.
const NO_SECRETS: &str = "Failed to create decryption context: Secrets are not available";

fn busy(name: &str) -> Profile {
    Profile { opening: 0.4, flows: 400, ..*profile(name).unwrap() }
}

/// A capture, its labels by user, port and protocol, and the flows that went on after their opening.
struct Taken {
    capture: PathBuf,
    labels: HashMap<[String; 3], Value>,
    opened: HashSet<u64>,
    _folder: tempfile::TempDir,
}

fn take(name: &str) -> Taken {
    let folder = tempfile::tempdir().unwrap();
    let (capture, lines) = (folder.path().join("capture.pcap"), folder.path().join("labels.jsonl"));
    let flows = || Flows::new(&busy(name), Endpoints::EXAMPLE, SEED).unwrap();
    let recorded = record(&mut flows(), PACKETS, &capture, Some(&lines)).unwrap();
    let lines: Vec<Value> = std::fs::read_to_string(&lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((recorded.packets, recorded.flows), (PACKETS, lines.len() as u64));
    let (mut again, mut frame) = (flows(), [0; FRAME_MAX]);
    let written = (0..PACKETS).map(|_| again.next(&mut frame).unwrap());
    let opened = written.filter(|written| !written.first_packets).map(|written| written.flow).collect();
    let key = |label: &Value| {
        let transport = if label["protocol"] == 6 { "tcp" } else { "udp" };
        // A lookup has the user's port of the flow that it is for.
        let transport = if label["transport"] == "dns" { "dns" } else { transport };
        [label["user"].as_str().unwrap().to_owned(), label["user_port"].to_string(), transport.to_owned()]
    };
    let labels = lines.into_iter().map(|label| (key(&label), label)).collect();
    Taken { capture, labels, opened, _folder: folder }
}

/// The fields of the packets that a filter lets through; of fields that occur more than once, the last: the user's.
fn tshark(capture: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(capture).args(["-Y", filter, "-d", MEDIA, "-T", "fields"]);
    command.args(["-E", "separator=/t", "-E", "occurrence=l", "-o", "http.desegment_body:FALSE"]);
    for layer in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{layer}.check_checksum:TRUE")]);
    }
    let output = command.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn is_there() -> bool {
    let there = Command::new("tshark").arg("--version").output().is_ok();
    if !there {
        assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
        eprintln!("skipped: tshark is not installed; scripts/setup.sh installs it");
    }
    there
}

/// The label of a packet that a user sent: `fields` are the address and the port.
fn label<'a>(taken: &'a Taken, fields: &[String], transport: &str) -> &'a Value {
    let key = [fields[0].clone(), fields[1].clone(), transport.to_owned()];
    taken.labels.get(&key).unwrap_or_else(|| panic!("no label for {key:?}"))
}

/// Flows of a transport that went on after their opening: their first packets must have been understood.
fn opened(taken: &Taken, transport: &str) -> HashSet<u64> {
    let labels = taken.labels.values().filter(|label| label["transport"] == transport);
    labels.filter_map(|label| label["flow"].as_u64()).filter(|flow| taken.opened.contains(flow)).collect()
}

#[test]
fn every_packet_of_every_profile_is_without_fault() {
    if !is_there() {
        return;
    }
    for model in anchorline_traffic::PROFILES {
        let taken = take(model.name);
        let right = "tcp.checksum.status == 1 or udp.checksum.status == 1";
        assert_eq!(tshark(&taken.capture, right, &["frame.number"]).len() as u64, PACKETS, "{}", model.name);
        let wrong = "_ws.malformed or _ws.expert.severity >= 0x600000 or tcp.analysis.flags or ip.checksum.status == 0 \
                     or tcp.checksum.status == 0 or udp.checksum.status == 0";
        let mut wrong = tshark(&taken.capture, wrong, &["frame.number", "_ws.expert.message"]);
        wrong.retain(|fields| fields[1] != NO_SECRETS);
        assert!(wrong.is_empty(), "{}: {wrong:?}", model.name);
    }
}

#[test]
fn tls_and_quic_name_the_hosts_of_their_labels() {
    if !is_there() {
        return;
    }
    let taken = take("epc-us");
    for (transport, layer, port, alpn) in
        [("tls", "tcp", "tcp.srcport", "http/1.1"), ("quic", "udp", "udp.srcport", "h3")]
    {
        let filter = format!("tls.handshake.type == 1 and {layer}.dstport == 443");
        let fields = [
            "ip.src",
            port,
            "tls.handshake.extensions_server_name",
            "tls.handshake.extensions_alpn_str",
            "tls.handshake.extensions.supported_version",
        ];
        let hellos = tshark(&taken.capture, &filter, &fields);
        let mut seen = HashSet::new();
        for hello in &hellos {
            let label = label(&taken, hello, layer);
            assert_eq!((&label["transport"], &label["host"]), (&transport.into(), &hello[2].as_str().into()));
            assert_eq!(hello[3], alpn);
            seen.extend(label["flow"].as_u64());
        }
        assert_eq!(seen.len(), hellos.len());
        let opened = opened(&taken, transport);
        assert!(opened.len() > 50 && opened.is_subset(&seen), "{transport}");
        // TLS 1.2 at most, and above.
        let old = hellos.iter().filter(|hello| hello[4].is_empty()).count();
        assert_eq!(old > 0, transport == "tls");
    }
    let answers = tshark(&taken.capture, "quic and tls.handshake.type == 2", &["frame.number"]);
    assert!(answers.len() > 50, "{} ServerHellos of QUIC", answers.len());
}

#[test]
fn hellos_are_also_put_together_from_two_packets() {
    if !is_there() {
        return;
    }
    let taken = take("epc-us");
    for second in ["tcp.segment.count == 2", "quic.packet_number == 1"] {
        let filter = format!("tls.handshake.extensions_key_share_group == 0x11ec and {second}");
        let hellos = tshark(&taken.capture, &filter, &["tls.handshake.extensions_server_name"]);
        assert!(hellos.len() > 5 && hellos.iter().all(|hello| hello[0].ends_with(".example")), "{second}");
    }
}

#[test]
fn requests_ask_for_the_hosts_and_paths_of_their_labels() {
    if !is_there() {
        return;
    }
    let taken = take("zte");
    let fields = ["ip.src", "tcp.srcport", "http.host", "http.request.uri", "http.user_agent"];
    let mut seen = HashSet::new();
    for request in tshark(&taken.capture, "http.request", &fields) {
        let label = label(&taken, &request, "tcp");
        assert_eq!(label["transport"], "http");
        assert_eq!(
            (&label["host"], &label["path"]),
            (&request[2].as_str().into(), &request[3].as_str().into())
        );
        assert!(!request[4].is_empty());
        seen.extend(label["flow"].as_u64());
    }
    let opened = opened(&taken, "http");
    assert!(opened.len() > 100 && opened.is_subset(&seen));
    assert!(tshark(&taken.capture, "http.response.code == 200", &["frame.number"]).len() >= opened.len());
}

#[test]
fn lookups_ask_for_the_hosts_of_later_flows_and_find_their_servers() {
    if !is_there() {
        return;
    }
    let taken = take("zte");
    let fields = ["ip.dst", "udp.dstport", "dns.qry.name", "dns.a", "dns.aaaa"];
    let answers = tshark(&taken.capture, "dns.flags.response == 1", &fields);
    assert!(answers.len() > 50);
    let flow = |label: &Value| label["flow"].as_u64().unwrap();
    let labels: HashMap<u64, &Value> = taken.labels.values().map(|label| (flow(label), label)).collect();
    let mut contacted = 0;
    for answer in &answers {
        let lookup = label(&taken, answer, "dns");
        assert_eq!(lookup["host"].as_str(), Some(answer[2].as_str()));
        // The flow that the lookup was for may not have begun when the capture ended.
        let Some(later) = labels.get(&(flow(lookup) - 1)) else { continue };
        assert_eq!((&later["host"], &later["user"]), (&lookup["host"], &lookup["user"]));
        let found = servers(answer);
        assert!(found.is_empty() || found.contains(later["server"].as_str().unwrap()), "{answer:?} {later}");
        contacted += usize::from(!found.is_empty());
    }
    assert!(contacted > answers.len() / 2, "{contacted} of {}", answers.len());
    assert!(answers.iter().any(|answer| !answer[4].is_empty()), "no answer with IPv6 addresses");
}

/// The IPv4 addresses of an answer: both servers of a host, of which the last is looked at, and none for IPv6.
fn servers(answer: &[String]) -> HashSet<String> {
    let Ok(last) = answer[3].parse::<std::net::Ipv4Addr>() else { return HashSet::new() };
    [last, (u32::from(last) - 1).into()].map(|server| server.to_string()).into()
}
