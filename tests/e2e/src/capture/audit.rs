//! A capture, read back by tshark.

use crate::command;
use anyhow::{Result, ensure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Wireshark's severity "error"; malformed packets and wrong checksums have it too.
const ERROR: u32 = 0x0080_0000;
/// So many faults are quoted.
const QUOTED: usize = 5;

const FIELDS: [&str; 6] = [
    "frame.number",
    "pfcp.msg_type",
    "gtp.message",
    "gtp.ext_hdr.pdu_ses_con.pdu_type",
    "_ws.expert.severity",
    "_ws.expert.message",
];

/// What a capture holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Packets captured.
    pub packets: u64,
    /// PFCP messages, by name.
    pub pfcp: BTreeMap<String, u64>,
    /// GTP-U messages, by name.
    pub gtp: BTreeMap<String, u64>,
    /// T-PDUs from the gNB with a PDU session container (TS 38.415 PDU type 1).
    pub uplink_containers: u64,
    /// T-PDUs to the gNB with a PDU session container (PDU type 0).
    pub downlink_containers: u64,
    /// Packets tshark calls malformed or wrong, checksums included.
    pub faults: u64,
    /// The first few of them.
    pub quoted: Vec<String>,
}

impl Audit {
    /// Reads a capture.
    ///
    /// # Errors
    /// Where tshark fails.
    pub fn read(file: &Path) -> Result<Self> {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(file).args(["-n", "-T", "fields", "-E", "separator=/t"]);
        for layer in ["ip", "udp", "tcp"] {
            tshark.args(["-o", &format!("{layer}.check_checksum:TRUE")]);
        }
        // The users' payload is random, and a sample of a stream is full of holes: there is nothing to guess.
        for port in ["tcp.port==8000", "tcp.port==5201", "udp.port==5201"] {
            tshark.args(["-d", &format!("{port},data")]);
        }
        tshark.args(["-o", "tcp.analyze_sequence_numbers:FALSE"]);
        tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
        Ok(Self::parse(&command::run(&mut tshark, Duration::from_secs(60))?.success()?))
    }

    /// # Errors
    /// Where a packet is at fault, or PFCP or a direction of the users' traffic is missing.
    pub fn expect_clean(&self) -> Result<()> {
        ensure!(self.faults == 0, "{} packets at fault: {}", self.faults, self.quoted.join("; "));
        ensure!(!self.pfcp.is_empty(), "no PFCP in the capture");
        ensure!(self.uplink_containers > 0, "no PDU session container from the gNB");
        ensure!(self.downlink_containers > 0, "no PDU session container to the gNB");
        Ok(())
    }

    fn parse(rows: &str) -> Self {
        let mut audit = Self::default();
        for row in rows.lines() {
            audit.add(&row.split('\t').collect::<Vec<_>>());
        }
        audit
    }

    fn add(&mut self, row: &[&str]) {
        let [number, pfcp, gtp, container, severity, said] = row else { return };
        self.packets += 1;
        if !pfcp.is_empty() {
            *self.pfcp.entry(pfcp_name(pfcp)).or_default() += 1;
        }
        if !gtp.is_empty() {
            *self.gtp.entry(gtp_name(gtp)).or_default() += 1;
        }
        self.uplink_containers += u64::from(*container == "1");
        self.downlink_containers += u64::from(*container == "0");
        if severity.split(',').any(|level| level.parse() == Ok(ERROR)) {
            self.faults += 1;
            let quote = format!("packet {number} ({})", if said.is_empty() { "malformed" } else { said });
            self.quoted.extend(Some(quote).filter(|_| self.quoted.len() < QUOTED));
        }
    }
}

/// TS 29.244 7.3.
fn pfcp_name(number: &str) -> String {
    let name = match number {
        "1" => "heartbeat request",
        "2" => "heartbeat response",
        "5" => "association setup request",
        "6" => "association setup response",
        "9" => "association release request",
        "10" => "association release response",
        "50" => "session establishment request",
        "51" => "session establishment response",
        "52" => "session modification request",
        "53" => "session modification response",
        "54" => "session deletion request",
        "55" => "session deletion response",
        "56" => "session report request",
        "57" => "session report response",
        other => return format!("message {other}"),
    };
    name.into()
}

/// TS 29.281 6.1.
fn gtp_name(number: &str) -> String {
    let name = match number {
        "0x01" => "echo request",
        "0x02" => "echo response",
        "0x1a" => "error indication",
        "0xfe" => "end marker",
        "0xff" => "T-PDU",
        other => return format!("message {other}"),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "1\t5\t\t\t\t\n2\t6\t\t\t2097152\tnote\n3\t\t0xff\t1\t\t\n4\t\t0xff\t0\t4194304,2097152\tx\n\
        5\t\t\t\t\t\n";

    #[test]
    fn rows_are_counted() {
        let audit = Audit::parse(ROWS);
        assert_eq!((audit.packets, audit.uplink_containers, audit.downlink_containers), (5, 1, 1));
        assert_eq!(audit.gtp.get("T-PDU"), Some(&2));
        assert_eq!(audit.pfcp.get("association setup request"), Some(&1));
        audit.expect_clean().unwrap();
    }

    #[test]
    fn one_fault_is_too_many() {
        let audit = Audit::parse("7\t50\t\t\t2097152,8388608\tMalformed Packet\n");
        let complaint = audit.expect_clean().unwrap_err().to_string();
        assert_eq!(complaint, "1 packets at fault: packet 7 (Malformed Packet)");
    }

    #[test]
    fn an_empty_capture_is_not_clean() {
        assert!(Audit::default().expect_clean().is_err());
    }
}
