//! Downloads, checked byte by byte.

use crate::{Lab, Process, command};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A download by curl.
#[derive(Debug)]
pub struct Download {
    process: Process,
    to: PathBuf,
}

/// What it took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Downloaded {
    /// Bytes that arrived.
    pub bytes: u64,
    /// From the request to the last byte.
    pub seconds: f64,
}

impl Downloaded {
    /// Megabits in a second.
    pub fn mbit_s(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.seconds
    }
}

impl Download {
    /// The user of `lab` asks for `url`.
    ///
    /// # Errors
    /// Where curl cannot be started.
    pub fn start(lab: &Lab, url: &str) -> Result<Self> {
        let to = lab.scratch.path().join("download");
        let mut curl = lab.ran.command("curl");
        curl.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--connect-timeout", "5"]);
        curl.args(["--max-time", "60", "--write-out", "%{size_download} %{time_total}\n", "--output"])
            .arg(&to)
            .arg(url);
        Ok(Self { process: Process::spawn("curl", &mut curl, lab.dir.path())?, to })
    }

    /// Bytes that have arrived so far.
    pub fn progress_bytes(&self) -> u64 {
        fs::metadata(&self.to).map_or(0, |file| file.len())
    }

    /// Waits for the last byte, compares the SHA-256 of what came with `hash`, and removes it.
    ///
    /// # Errors
    /// Where curl fails or the bytes differ.
    pub fn finish(mut self, expected: &str) -> Result<Downloaded> {
        let status = self.process.wait_exit(Duration::from_secs(70))?;
        let said = self.process.output()?;
        ensure!(status.success(), "the download failed: {}", command::last_lines(&said, 2));
        let got = hash(&self.to)?;
        ensure!(got == expected, "the download is damaged: SHA-256 {got}, not {expected}");
        fs::remove_file(&self.to)?;
        parse(&said)
    }
}

fn parse(said: &str) -> Result<Downloaded> {
    let last = said.lines().last().and_then(|line| line.split_once(' '));
    let (bytes, seconds) = last.context("curl did not say what it downloaded")?;
    Ok(Downloaded { bytes: bytes.parse()?, seconds: seconds.parse()? })
}

/// The SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// Where it cannot be read.
pub fn hash(file: &Path) -> Result<String> {
    let said =
        command::run(Command::new("sha256sum").arg("--").arg(file), Duration::from_secs(30))?.success()?;
    said.split(' ').next().map(str::to_owned).context("sha256sum said nothing")
}

/// Makes a file of random bytes; its SHA-256.
///
/// # Errors
/// Where it cannot be written.
pub fn random_file(path: &Path, length_bytes: u64) -> Result<String> {
    let mut random = File::open("/dev/urandom")?.take(length_bytes);
    io::copy(&mut random, &mut File::create(path)?)?;
    hash(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_curl_writes_out_is_read() {
        let done = parse("curl: a warning\n104857600 0.5\n").unwrap();
        assert_eq!(done, Downloaded { bytes: 104_857_600, seconds: 0.5 });
        assert!((done.mbit_s() - 1677.72).abs() < 0.01);
    }

    #[test]
    fn the_hash_of_nothing_is_the_known_one() {
        let dir = tempfile::tempdir().unwrap();
        let nothing = random_file(&dir.path().join("nothing"), 0).unwrap();
        assert!(nothing.starts_with("e3b0c44298fc1c14"));
    }
}
