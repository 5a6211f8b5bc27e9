//! What passed and what was charged, by service: the wires, read by tshark, against the records.

use super::{OTHER, SERVICES};
use anyhow::{Context, Result, ensure};
use lab::address::UE;
use lab::{Namespace, Process, command};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes up and down, by rating group.
pub(super) type Ledger = BTreeMap<u32, (u64, u64)>;

/// A capture of all of a wire.
pub(super) struct Wire {
    process: Process,
    file: PathBuf,
}

impl Wire {
    /// Starts one of `interface`, into `dir`.
    pub(super) fn start(namespace: &Namespace, interface: &str, dir: &Path) -> Result<Self> {
        let file = dir.join(format!("{interface}.pcap"));
        let mut dumpcap = namespace.command("dumpcap");
        dumpcap.args(["-q", "-P", "-B", "32", "-i", interface, "-f", "ip", "-w"]).arg(&file);
        let mut process = Process::spawn(&format!("dumpcap-{interface}"), &mut dumpcap, dir)?;
        process.wait_for_line("File: ", command::SHORT)?;
        Ok(Self { process, file })
    }

    /// Ends it: the file, in which nothing is missing.
    pub(super) fn finish(mut self) -> Result<PathBuf> {
        // What came last is on its way through the kernel's ring.
        std::thread::sleep(Duration::from_millis(500));
        self.process.signal(Signal::SIGINT)?;
        ensure!(self.process.wait_exit(command::SHORT)?.success(), "dumpcap failed");
        let said = self.process.output()?;
        ensure!(said.contains("(100.0%)"), "packets are missing: {said}");
        Ok(self.file)
    }
}

/// A user's packet on a wire.
struct Packet {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    bytes: u64,
    protocol: u8,
}

/// What the node forwarded: towards the data network as its wire has it, and to the users as they are in tunnels on N3.
pub(super) fn forwarded(n3: &Path, n6: &Path) -> Result<Ledger> {
    let mut ledger = Ledger::new();
    for packet in packets(n6, 0)?.iter().filter(|packet| packet.source == UE) {
        ledger.entry(rating_group(packet, packet.destination)).or_default().0 += packet.bytes;
    }
    for packet in packets(n3, 1)?.iter().filter(|packet| packet.destination == UE) {
        ledger.entry(rating_group(packet, packet.source)).or_default().1 += packet.bytes;
    }
    Ok(ledger)
}

/// A packet is of the service at whose address the server is; messages of ICMP are of none.
fn rating_group(packet: &Packet, server: Ipv4Addr) -> u32 {
    const ICMP: u8 = 1;
    let service = SERVICES.iter().find(|service| service.address() == server && packet.protocol != ICMP);
    service.map_or(OTHER, |service| service.rating_group())
}

/// IP packets of a capture, in so many others.
fn packets(file: &Path, depth: usize) -> Result<Vec<Packet>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-n", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    tshark.args(["-e", "ip.src", "-e", "ip.dst", "-e", "ip.len", "-e", "ip.proto"]);
    let rows = command::run(&mut tshark, Duration::from_secs(60))?.success()?;
    Ok(rows.lines().filter_map(|row| packet(row, depth)).collect())
}

fn packet(row: &str, depth: usize) -> Option<Packet> {
    let mut columns = row.split('\t').map(|column| column.split(',').nth(depth));
    let mut next = || columns.next().flatten();
    Some(Packet {
        source: next()?.parse().ok()?,
        destination: next()?.parse().ok()?,
        bytes: next()?.parse().ok()?,
        protocol: next()?.parse().ok()?,
    })
}

/// What the records in a folder (JSON Lines) charge.
pub(super) fn charged(folder: &Path) -> Result<Ledger> {
    let mut ledger = Ledger::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).context("a name")?;
        if name.ends_with(".jsonl") && !name.starts_with('.') {
            for line in fs::read_to_string(&path)?.lines() {
                add(&mut ledger, &serde_json::from_str(line)?)?;
            }
        }
    }
    Ok(ledger)
}

fn add(ledger: &mut Ledger, record: &Value) -> Result<()> {
    for container in
        record.get("containers").and_then(Value::as_array).context("a record without containers")?
    {
        let number =
            |name: &str| container.get(name).and_then(Value::as_u64).context("a container lacks a number");
        let used = ledger.entry(number("rating_group")?.try_into()?).or_default();
        used.0 += number("uplink_bytes")?;
        used.1 += number("downlink_bytes")?;
    }
    Ok(())
}

/// Compares them.
///
/// # Errors
/// Where a rating group was charged anything else than passed, or one of those that were `used` nothing.
pub(super) fn compare(forwarded: &Ledger, charged: &Ledger, used: &[u32]) -> Result<()> {
    ensure!(
        forwarded == charged,
        "rating groups, with bytes up and down; forwarded:\n{forwarded:?}\ncharged:\n{charged:?}"
    );
    for group in used {
        let (up, down) = charged.get(group).copied().unwrap_or_default();
        ensure!(up > 0 && down > 0, "nothing is charged under {group}: {charged:?}");
    }
    Ok(())
}
