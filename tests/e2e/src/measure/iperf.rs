//! Throughput and loss.

use crate::{Namespace, Process, command};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// Which way the payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Direction {
    /// From the user.
    Uplink,
    /// To the user.
    Downlink,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uplink => "up",
            Self::Downlink => "down",
        })
    }
}

/// A TCP measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tcp {
    /// Payload that arrived.
    pub mbit_s: f64,
    /// Segments sent again.
    pub retransmits: u64,
}

/// A UDP measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Udp {
    /// Payload that arrived.
    pub mbit_s: f64,
    /// Datagrams sent.
    pub packets: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// The same in percent.
    pub lost_percent: f64,
}

/// An iperf3 server; it ends when dropped.
#[derive(Debug)]
pub struct IperfServer {
    address: Ipv4Addr,
    _process: Process,
}

impl IperfServer {
    /// Starts one in `namespace`; its log goes to `dir`.
    ///
    /// # Errors
    /// Where it does not come up.
    pub fn start(namespace: &Namespace, address: Ipv4Addr, dir: &Path) -> Result<Self> {
        let mut iperf = namespace.command("iperf3");
        iperf.args(["--server", "--forceflush", "--bind", &address.to_string()]);
        let mut process = Process::spawn("iperf3-server", &mut iperf, dir)?;
        process.wait_for_line("Server listening", command::SHORT)?;
        Ok(Self { address, _process: process })
    }

    /// Sends TCP for `seconds`.
    ///
    /// # Errors
    /// Where iperf3 fails.
    pub fn tcp(&self, client: &Namespace, direction: Direction, seconds: u32) -> Result<Tcp> {
        let end = self.measure(client, direction, &[("--time", seconds)])?;
        Ok(Tcp {
            mbit_s: number(&end, "/sum_received/bits_per_second")? * 1e-6,
            retransmits: number(&end, "/sum_sent/retransmits")? as u64,
        })
    }

    /// Sends so many kilobytes at once, by TCP.
    ///
    /// # Errors
    /// Where iperf3 fails.
    pub fn page(&self, client: &Namespace, direction: Direction, kilobytes: u32) -> Result<()> {
        let options = [("--length", 10_000), ("--bytes", 1_000 * kilobytes)];
        self.measure(client, direction, &options).map(drop)
    }

    /// Sends UDP at `mbit_s` for `seconds`.
    ///
    /// # Errors
    /// Where iperf3 fails.
    pub fn udp(
        &self,
        client: &Namespace,
        direction: Direction,
        (mbit_s, seconds): (u32, u32),
    ) -> Result<Udp> {
        let rate = mbit_s * 1_000_000;
        let end = self.measure(client, direction, &[("--time", seconds), ("--udp --bitrate", rate)])?;
        let lost_percent = number(&end, "/sum/lost_percent")?;
        Ok(Udp {
            mbit_s: number(&end, "/sum/bits_per_second")? * 1e-6 * (1.0 - lost_percent / 100.0),
            packets: number(&end, "/sum/packets")? as u64,
            lost: number(&end, "/sum/lost_packets")? as u64,
            lost_percent,
        })
    }

    /// The object `end` of iperf3's report.
    fn measure(&self, client: &Namespace, direction: Direction, options: &[(&str, u32)]) -> Result<Value> {
        let mut iperf = client.command("iperf3");
        iperf.args(["--json", "--connect-timeout", "5000", "--client", &self.address.to_string()]);
        if direction == Direction::Downlink {
            iperf.arg("--reverse");
        }
        for (names, value) in options {
            iperf.args(names.split(' ')).arg(value.to_string());
        }
        let seconds: u32 = options.iter().filter(|(name, _)| *name == "--time").map(|(_, time)| time).sum();
        let limit = Duration::from_secs(seconds.into()) + 2 * command::SHORT;
        parse(&command::run(&mut iperf, limit)?.stdout)
    }
}

fn parse(report: &str) -> Result<Value> {
    let mut report: Value = serde_json::from_str(report).context("iperf3 gave no report")?;
    if let Some(error) = report.get("error") {
        bail!("iperf3: {error}");
    }
    report.get_mut("end").map(Value::take).context("iperf3 reported no end")
}

fn number(end: &Value, pointer: &str) -> Result<f64> {
    end.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("iperf3 reported no {pointer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let end = parse(r#"{"end": {"sum_received": {"bits_per_second": 1e9}}}"#).unwrap();
        assert_eq!(number(&end, "/sum_received/bits_per_second").unwrap(), 1e9);
        assert!(number(&end, "/sum/packets").is_err());
    }

    #[test]
    fn an_error_is_passed_on() {
        let failure = parse(r#"{"start": {}, "end": {}, "error": "unable to connect"}"#).unwrap_err();
        assert_eq!(failure.to_string(), r#"iperf3: "unable to connect""#);
    }
}
