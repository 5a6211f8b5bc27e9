//! What went over the wires, and a judge nobody here wrote: tshark.

mod arrivals;
mod audit;

pub use arrivals::Arrivals;
pub use audit::Audit;

use crate::{Namespace, Process, command};
use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use std::path::{Path, PathBuf};

/// Everything but bulk. Of the tunnelled packets (GTP-U messages of type 255) all ICMP, and of the rest those whose IP
/// identification ends in six zero bits: enough to judge, little enough to read in a second. The user's IP header begins
/// 44 bytes after ours: IP 20, UDP 8, GTP-U 8 + 4, PDU session container 4; without a container it is only another sample.
const N3_FILTER: &str = "not udp port 2152 or ip[29] != 255 or ip[53] = 1 or ip[49] & 63 = 0";

/// A capture under way.
#[derive(Debug)]
pub struct Capture {
    process: Process,
    file: PathBuf,
}

impl Capture {
    /// Captures N4 whole and N3 in samples, into `dir`/`run.pcapng`.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(namespace: &Namespace, dir: &Path) -> Result<Self> {
        Self::of(namespace, &["-i", "n3", "-f", N3_FILTER, "-i", "n4"], dir.join("run.pcapng"))
    }

    /// Captures the headers of TCP's packets of a port outside tunnels, into `dir`/`name`.pcapng.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn of_tcp(namespace: &Namespace, port: u16, (dir, name): (&Path, &str)) -> Result<Self> {
        let filter = format!("tcp port {port}");
        Self::of(namespace, &["-s", "96", "-i", "any", "-f", &filter], dir.join(format!("{name}.pcapng")))
    }

    fn of(namespace: &Namespace, what: &[&str], file: PathBuf) -> Result<Self> {
        let mut dumpcap = namespace.command("dumpcap");
        dumpcap.arg("-q").args(what).arg("-w").arg(&file);
        let dir = file.parent().unwrap_or(Path::new("."));
        let mut process = Process::spawn("dumpcap", &mut dumpcap, dir)?;
        process.wait_for_line("File: ", command::SHORT)?;
        Ok(Self { process, file })
    }

    /// Ends it; the file.
    ///
    /// # Errors
    /// Where dumpcap fails.
    pub fn finish(mut self) -> Result<PathBuf> {
        self.process.signal(Signal::SIGINT)?;
        let status = self.process.wait_exit(command::SHORT)?;
        ensure!(status.success(), "dumpcap ended with {status}");
        Ok(self.file)
    }
}
