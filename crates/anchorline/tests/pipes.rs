//! The executable before a reader that has had enough.

use std::error::Error;
use std::process::{Command, Output};

/// Runs it with its standard output going to a pipe nobody reads.
fn unread(words: &[&str]) -> Result<Output, Box<dyn Error>> {
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anchorline"));
    let child = command.args(words).stdout(writer).stderr(std::process::Stdio::piped()).spawn()?;
    Ok(child.wait_with_output()?)
}

#[test]
fn whoever_has_read_enough_ends_what_prints_in_silence() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().to_str().ok_or("the folder has no name")?;
    let rules = folder.path().join("ads.toml");
    let rule = "[[n4.predefined_rule]]\nname = \"ads\"\nfilters = [\"permit out ip from any to assigned\"]\n";
    std::fs::write(&rules, rule)?;
    let rules = rules.to_str().ok_or("the file has no name")?;
    let capture = folder.path().join("10.pcap");
    let capture = capture.to_str().ok_or("the capture has no name")?;
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/upf.toml");
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/report/steering.json");
    for words in [
        &["doctor", "explain", "memory.huge-pages", "--root", root][..],
        &["doctor", "explain", "memory.huge-pages", "--root", root, "--json"],
        &["tune", "--root", root],
        &["tune", "--root", root, "--json"],
        &["plan", "scaling", "--cores", "4", "--report", report],
        &["traffic", "profiles"],
        &["traffic", "pcap", capture, "--packets", "10"],
        &["ctl", "predefined", "put", "--check", rules, "--config", config],
    ] {
        let ended = unread(words)?;
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.is_empty(), "{words:?}: {}, {said}", ended.status);
    }
    Ok(())
}
