//! When packets of TCP arrived, and how long they were.

use crate::command;
use anyhow::{Context, Result, ensure};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Packets to one address, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals(Vec<(Duration, u64)>);

impl Arrivals {
    /// Reads those to `to` from a capture.
    ///
    /// # Errors
    /// Where tshark fails, or there is none.
    pub fn read(file: &Path, to: Ipv4Addr) -> Result<Self> {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(file).args(["-n", "-T", "fields", "-e", "frame.time_epoch", "-e", "ip.len"]);
        tshark.args(["-o", "tcp.analyze_sequence_numbers:FALSE", "-Y", &format!("tcp && ip.dst == {to}")]);
        let rows = command::run(&mut tshark, Duration::from_secs(60))?.success()?;
        let arrivals = Self(rows.lines().map(row).collect::<Result<_>>()?);
        ensure!(!arrivals.0.is_empty(), "no packet of TCP to {to} was captured");
        Ok(arrivals)
    }

    /// Most bytes of IP packets in any second, whenever it begins.
    pub fn most_in_a_second(&self) -> u64 {
        let in_second = |(at, (first, _)): (usize, &(Duration, u64))| {
            let from = self.0.iter().skip(at);
            from.take_while(|(time, _)| *time < *first + SECOND).map(|(_, bytes)| bytes).sum()
        };
        self.0.iter().enumerate().map(in_second).max().unwrap_or_default()
    }
}

fn row(line: &str) -> Result<(Duration, u64)> {
    let fields = line.split_once('\t').with_context(|| format!("tshark said {line:?}"))?;
    Ok((Duration::from_secs_f64(fields.0.parse()?), fields.1.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_may_begin_anywhere() {
        let rows = ["1.0\t10", "1.5\t20", "1.9\t30", "2.4\t40", "2.6\t5"];
        let arrivals = Arrivals(rows.into_iter().map(|line| row(line).unwrap()).collect());
        assert_eq!(arrivals.most_in_a_second(), 90);
        assert!(row("1.0").is_err() && row("x\t1").is_err());
    }
}
