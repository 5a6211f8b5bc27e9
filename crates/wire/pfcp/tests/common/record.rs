//! What is sent in tests, kept for decoders of others: `scripts/decoders.sh` lets them read it.

use super::pcap;
use pfcp::Message;
use std::collections::{HashMap, HashSet};
use std::fs::{File, create_dir_all, read_dir, remove_file};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Property tests say the same thing a million times.
const BY_SHAPE: usize = 6;
const IN_ALL: usize = 4_000;

/// Of one process; nothing closes it, so every datagram is written at once.
struct Recorder {
    file: File,
    kept: usize,
    /// How many of a shape: what is in a message, whatever the numbers.
    shapes: HashMap<String, usize>,
    /// Without sequence number, by which most would differ.
    contents: HashSet<String>,
}

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

/// Keeps a datagram if there are not enough like it.
pub fn sent(from: SocketAddr, to: SocketAddr, message: &Message, bytes: &[u8]) {
    let mut recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    let recorder = recorder.get_or_insert_with(Recorder::new);
    if recorder.is_wanted(message) {
        recorder.file.write_all(&pcap::record(&pcap::packet(v4(from), v4(to), bytes))).unwrap();
    }
}

impl Recorder {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pfcp");
        create_dir_all(&folder).unwrap();
        forget_former(&folder);
        let name = format!("{}-{}.pcap", env!("CARGO_CRATE_NAME"), std::process::id());
        let mut file = File::create(folder.join(name)).unwrap();
        file.write_all(&pcap::header()).unwrap();
        Self { file, kept: 0, shapes: HashMap::new(), contents: HashSet::new() }
    }

    fn is_wanted(&mut self, message: &Message) -> bool {
        let content = format!("{:?} {:?}", message.priority, message.body);
        let shape: String = content.chars().filter(|c| !c.is_ascii_digit()).collect();
        let alike = self.shapes.entry(shape).or_default();
        let is_wanted = self.kept < IN_ALL && *alike < BY_SHAPE && self.contents.insert(content);
        *alike += usize::from(is_wanted);
        self.kept += usize::from(is_wanted);
        is_wanted
    }
}

/// What this program wrote when it ran before.
fn forget_former(folder: &Path) {
    let is_former = |file: &PathBuf| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let of = stem.rsplit_once('-');
        of.is_some_and(|(name, pid)| {
            name == env!("CARGO_CRATE_NAME") && !Path::new("/proc").join(pid).exists()
        })
    };
    let files = read_dir(folder).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(is_former).for_each(|file| drop(remove_file(file)));
}

/// Decoders of PFCP do not care who says it.
fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, address.port()),
    }
}
