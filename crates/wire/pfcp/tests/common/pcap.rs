//! Just enough of the pcap format to read what others said and to show what we say.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

const LINK_RAW_IP: u32 = 101;
const LINK_SLL: u32 = 113;
const LINK_SLL2: u32 = 276;

/// Captures of real programs: in `$ANCHORLINE_CAPTURES`, else in `shared/captures` beside the project, where there
/// is one.
pub fn captures() -> Vec<PathBuf> {
    let folder = std::env::var_os("ANCHORLINE_CAPTURES").map(PathBuf::from).or_else(captures_beside);
    let Some(Ok(entries)) = folder.map(std::fs::read_dir) else {
        println!("skipped: no captures here");
        return vec![];
    };
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "pcap"));
    files.sort();
    files
}

fn captures_beside() -> Option<PathBuf> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().ok()?;
    crate_folder.ancestors().map(|folder| folder.join("shared/captures")).find(|folder| folder.is_dir())
}

/// The payloads of all UDP datagrams over IPv4 from or to `port`.
pub fn udp_payloads(file: &Path, port: u16) -> Vec<Vec<u8>> {
    udp_datagrams(file, port).into_iter().map(|(.., payload)| payload).collect()
}

/// All UDP datagrams over IPv4 from or to `port`: from whom, to whom, what.
pub fn udp_datagrams(file: &Path, port: u16) -> Vec<(Ipv4Addr, Ipv4Addr, Vec<u8>)> {
    let of_port = udp(file).into_iter().filter(|(from, to, _)| from.port() == port || to.port() == port);
    of_port.map(|(from, to, payload)| (*from.ip(), *to.ip(), payload)).collect()
}

/// All UDP datagrams over IPv4, in their order. Of one in fragments, which no capture has, there would be none.
pub fn udp(file: &Path) -> Vec<(SocketAddrV4, SocketAddrV4, Vec<u8>)> {
    let bytes = std::fs::read(file).unwrap();
    let (header, mut rest) = bytes.split_at(24);
    let link = match u32::from_le_bytes(header[20..24].try_into().unwrap()) {
        LINK_RAW_IP => 0,
        LINK_SLL => 16,
        LINK_SLL2 => 20,
        other => panic!("link type {other}"),
    };
    let mut datagrams = Vec::new();
    while rest.len() > 16 {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        datagrams.extend(udp_datagram(&rest[16 + link..16 + length]));
        rest = &rest[16 + length..];
    }
    datagrams
}

fn udp_datagram(packet: &[u8]) -> Option<(SocketAddrV4, SocketAddrV4, Vec<u8>)> {
    let is_udp = packet.len() >= 28 && packet[0] >> 4 == 4 && packet[9] == 17;
    let is_whole = is_udp && packet[6] & 0x3F == 0 && packet[7] == 0;
    let udp = packet.get(usize::from(packet[0] & 0x0F) * 4..).filter(|_| is_whole)?;
    let port = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
    let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let (from, to) = (SocketAddrV4::new(address(12), port(0)), SocketAddrV4::new(address(16), port(2)));
    Some((from, to, udp.get(8..usize::from(port(4)))?.to_vec()))
}

/// Writes UDP datagrams as a capture of raw IP packets.
pub fn write(file: &Path, datagrams: &[(SocketAddrV4, SocketAddrV4, Vec<u8>)]) {
    let mut bytes = header();
    for (from, to, payload) in datagrams {
        bytes.extend(record(&packet(*from, *to, payload)));
    }
    std::fs::write(file, bytes).unwrap();
}

/// Of a capture of raw IP packets.
pub fn header() -> Vec<u8> {
    let mut bytes = 0xA1B2_C3D4u32.to_le_bytes().to_vec();
    bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    bytes.extend(LINK_RAW_IP.to_le_bytes());
    bytes
}

/// A packet as it stands in a capture; all were there at the same time.
pub fn record(packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    bytes.extend((packet.len() as u32).to_le_bytes());
    bytes.extend((packet.len() as u32).to_le_bytes());
    bytes.extend(packet);
    bytes
}

/// A UDP datagram over IPv4.
pub fn packet(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    let octets = |address: &Ipv4Addr| address.octets();
    let mut packet = vec![0x45, 0];
    packet.extend((length + 28).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend(octets(from.ip()));
    packet.extend(octets(to.ip()));
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum >> 16) + (sum & 0xFFFF);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet.extend(from.port().to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend((length + 8).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend_from_slice(payload);
    packet
}

/// How many PFCP messages tshark reads in `file`, or `None` where there is no tshark. Fails where it finds anything
/// malformed or worth an expert's remark.
pub fn count_by_tshark(file: &Path) -> Option<usize> {
    let Some(faults) = tshark(file, "_ws.malformed or _ws.expert") else {
        println!("skipped: no tshark");
        return None;
    };
    assert!(faults.is_empty(), "{faults}");
    Some(tshark(file, "pfcp")?.matches("Message Type: PFCP").count())
}

fn tshark(file: &Path, filter: &str) -> Option<String> {
    let output = Command::new("tshark").args(["-O", "pfcp", "-Y", filter, "-r"]).arg(file).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
