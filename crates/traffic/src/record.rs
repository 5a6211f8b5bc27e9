//! Streams as files: a capture, and what each of its flows is about.

use crate::flows::{FRAME_MAX, Flows};
use crate::frame::Endpoints;
use crate::origin::{Label, Tuple};
use crate::profile::Profile;
use indicatif::ProgressBar;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, PcapError, TsResolution};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first packet's time: 2025-01-01. Captures do not tell when they were made, or the same seed would not give the
/// same file.
const START: Duration = Duration::from_secs(1_735_689_600);
/// From packet to packet: a million a second.
const STEP: Duration = Duration::from_micros(1);

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file could not be made or written.
    #[error("{0}: {1}", .path.display(), .cause)]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The profile cannot be.
    #[error(transparent)]
    Flows(#[from] crate::flows::Error),
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Frames.
    pub packets: u64,
    /// Those that went up.
    pub uplink: u64,
    /// Bytes of all frames.
    pub bytes: u64,
    /// Flows that began, lookups included.
    pub flows: u64,
}

/// One line of the labels.
#[derive(Serialize)]
struct Line {
    flow: u64,
    #[serde(flatten)]
    tuple: Tuple,
    #[serde(flatten)]
    label: Label,
}

/// Writes the first `packets` packets of a profile's stream as a capture: classic pcap, nanoseconds, Ethernet. Frames of
/// both sides of the user plane are in it, N3 with tunnels and N6 without, one a microsecond.
///
/// # Errors
/// A profile that cannot be, or a file that cannot be written.
pub fn write_pcap(path: &Path, profile: &Profile, packets: u64, seed: u64) -> Result<Recorded, RecordError> {
    let mut flows = Flows::new(profile, Endpoints::EXAMPLE, seed)?;
    record(&mut flows, packets, path, None)
}

/// The same from any stream, and, one JSON object a line in the order of their first packets, the addresses and the
/// label of each flow in it.
///
/// # Errors
/// A file that cannot be written.
pub fn record(
    flows: &mut Flows,
    packets: u64,
    capture: &Path,
    labels: Option<&Path>,
) -> Result<Recorded, RecordError> {
    let mut tape = Tape::new(capture, labels)?;
    let mut recorded = Recorded::default();
    let mut frame = vec![0; FRAME_MAX];
    let bar = ProgressBar::new(packets).with_message("packets");
    while recorded.packets < packets {
        let Some(written) = flows.next(&mut frame) else { break };
        let bytes = frame.get(..written.length).unwrap_or_default();
        tape.capture(bytes, recorded.packets)?;
        if written.position == 0 {
            tape.label(flows, written.flow)?;
            recorded.flows += 1;
        }
        recorded.packets += 1;
        recorded.uplink += u64::from(written.uplink);
        recorded.bytes += written.length as u64;
        if recorded.packets.is_multiple_of(4_096) {
            bar.set_position(recorded.packets);
        }
    }
    bar.finish_and_clear();
    tape.finish()?;
    Ok(recorded)
}

/// The open files.
struct Tape<'a> {
    capture: (&'a Path, PcapWriter<BufWriter<File>>),
    labels: Option<(&'a Path, BufWriter<File>)>,
}

impl<'a> Tape<'a> {
    fn new(capture: &'a Path, labels: Option<&'a Path>) -> Result<Self, RecordError> {
        let header = PcapHeader {
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(create(capture)?, header).map_err(pcap_failed(capture))?;
        let labels = labels.map(|path| create(path).map(|file| (path, file))).transpose()?;
        Ok(Self { capture: (capture, writer), labels })
    }

    fn capture(&mut self, frame: &[u8], number: u64) -> Result<(), RecordError> {
        let time = START + Duration::from_nanos(STEP.as_nanos() as u64 * number);
        let (path, writer) = &mut self.capture;
        let packet = PcapPacket::new(time, frame.len() as u32, frame);
        writer.write_packet(&packet).map_err(pcap_failed(path))?;
        Ok(())
    }

    fn label(&mut self, flows: &Flows, flow: u64) -> Result<(), RecordError> {
        let Some((path, file)) = &mut self.labels else { return Ok(()) };
        let line = Line { flow, tuple: flows.tuple(flow), label: flows.label(flow) };
        serde_json::to_writer(&mut *file, &line).map_err(io::Error::from).map_err(failed(path))?;
        file.write_all(b"\n").map_err(failed(path))
    }

    fn finish(self) -> Result<(), RecordError> {
        let (path, writer) = self.capture;
        writer.into_writer().flush().map_err(failed(path))?;
        match self.labels {
            Some((path, mut file)) => file.flush().map_err(failed(path)),
            None => Ok(()),
        }
    }
}

fn create(path: &Path) -> Result<BufWriter<File>, RecordError> {
    File::create(path).map(BufWriter::new).map_err(failed(path))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.to_owned();
    move |cause| RecordError::File { path, cause }
}

fn pcap_failed(path: &Path) -> impl FnOnce(PcapError) -> RecordError {
    let failed = failed(path);
    |error| match error {
        PcapError::IoError(cause) => failed(cause),
        other => failed(io::Error::other(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::profile;
    use pcap_file::pcap::PcapReader;

    #[test]
    fn the_same_seed_gives_the_same_file_and_it_holds_the_stream() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        let zte = profile("zte").unwrap();
        let recorded = write_pcap(&one, zte, 500, 3).unwrap();
        assert_eq!(write_pcap(&other, zte, 500, 3).unwrap(), recorded);
        let bytes = std::fs::read(&one).unwrap();
        assert!(bytes == std::fs::read(&other).unwrap());
        let mut reader = PcapReader::new(bytes.as_slice()).unwrap();
        let mut flows = Flows::new(zte, Endpoints::EXAMPLE, 3).unwrap();
        let mut frame = [0; FRAME_MAX];
        for number in 0..500 {
            let packet = reader.next_packet().unwrap().unwrap();
            let written = flows.next(&mut frame).unwrap();
            assert!(*packet.data == frame[..written.length]);
            assert_eq!(packet.timestamp, START + STEP * number);
        }
        assert!(reader.next_packet().is_none());
        assert_eq!(bytes.len() as u64, 24 + 500 * 16 + recorded.bytes);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = write_pcap(Path::new("/nowhere/at/all"), profile("zte").unwrap(), 1, 1).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/at/all: No such file"), "{error}");
        let full = write_pcap(Path::new("/dev/full"), profile("zte").unwrap(), 1_000, 1).unwrap_err();
        assert!(full.to_string().starts_with("/dev/full: No space"), "{full}");
    }
}
