//! What fuzzing begins with (`fuzz/seeds`): our conversations, as the fuzz targets read them.
//!
//! `ANCHORLINE_WRITE_SEEDS=1 cargo test -p anchorline-n4 --test protocol fuzz_seeds` writes them anew.

use crate::common::{OTHER, SMF, US, at};
use crate::conversations::Stage;
use pfcp_mutate::{Line, Script};
use std::path::PathBuf;

fn folder(target: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds")).join(target)
}

/// Who speaks, in the bits of the mood that the target reads it from; the data plane obeys, and a second passes.
fn mood(from: std::net::SocketAddr) -> u8 {
    let who =
        [at(SMF), at(OTHER), at(crate::conversations::THIRD)].iter().position(|peer| *peer == from).unwrap();
    (who as u8) << 2 | 2 << 4
}

fn scripts() -> Vec<(String, Script)> {
    let script = |conversation: crate::conversations::Conversation| {
        let trace = Stage::play(&conversation, None).lab.trace;
        let theirs = trace.into_iter().filter(|(from, _, bytes)| *from != at(US) && bytes[1] != 2);
        let lines = theirs.map(|(from, _, bytes)| Line { mood: mood(from), bytes }).collect();
        (conversation.name.replace([' ', ','], "_"), Script { lines })
    };
    crate::conversations::with_refusals().into_iter().map(script).collect()
}

#[test]
fn the_seeds_are_conversations() {
    let is_written = std::env::var_os("ANCHORLINE_WRITE_SEEDS").is_some();
    for (name, script) in scripts() {
        let file = folder("n4_node").join(&name);
        if is_written {
            std::fs::create_dir_all(folder("n4_node")).unwrap();
            std::fs::write(&file, script.write()).unwrap();
        }
        let written = std::fs::read(&file).unwrap_or_else(|_| panic!("{name} is not there: see the head"));
        let read = Script::read(&written);
        assert!(read.lines.len() > 1, "{name}");
        for line in &read.lines {
            assert!(
                !matches!(pfcp::decode(&line.bytes), Err(error) if error.kind.cause().is_none()),
                "{name}"
            );
        }
    }
}

/// A record as `stored_records` reads it.
fn stored(kind: u8, octets: Vec<u8>) -> Vec<u8> {
    [&[kind][..], &(octets.len() as u16).to_be_bytes(), &octets].concat()
}

/// All that the database holds at the end of a conversation, which most do not end with nothing.
fn kept(lab: &crate::common::Lab) -> Vec<u8> {
    fn octets<T: serde::Serialize>(kind: u8, record: &T) -> Vec<u8> {
        stored(kind, postcard::to_stdvec(record).unwrap())
    }
    let sessions = lab.saved.values().chain(lab.over.values()).map(|record| octets(0, record));
    let associations = lab.associations.values().map(|record| octets(1, record));
    let pfds = lab.pfds.values().map(|record| octets(2, record));
    let paths = lab.paths.iter().map(|record| octets(3, record));
    let told = std::iter::once(octets(4, &lab.told_names));
    let cdrs = lab.cdrs.iter().map(|cdr| octets(6, cdr));
    sessions.chain(associations).chain(pfds).chain(paths).chain(told).chain(cdrs).flatten().collect()
}

#[test]
fn what_conversations_leave_in_the_database_are_seeds() {
    for conversation in crate::conversations::with_refusals() {
        let name = conversation.name.replace([' ', ','], "_");
        let lab = Stage::play(&conversation, None).lab;
        let (file, all) = (folder("stored_records").join(&name), kept(&lab));
        if std::env::var_os("ANCHORLINE_WRITE_SEEDS").is_some() {
            std::fs::create_dir_all(folder("stored_records")).unwrap();
            std::fs::write(&file, &all).unwrap();
        }
        // Another version of a record makes other seeds: these would not be read any more.
        let written = std::fs::read(&file).unwrap_or_else(|_| panic!("{name} is not there: see the head"));
        assert!(written == all, "{name} is stale: see the head");
    }
}

/// Of each kind of message the longest.
#[test]
fn messages_are_seeds_of_their_own() {
    let mut longest = std::collections::BTreeMap::<u8, Vec<u8>>::new();
    for line in scripts().into_iter().flat_map(|(_, script)| script.lines) {
        let known = longest.entry(line.bytes[1]).or_default();
        if line.bytes.len() > known.len() {
            *known = line.bytes;
        }
    }
    for (kind, bytes) in &longest {
        let file = folder("pfcp_decode").join(format!("type_{kind}"));
        if std::env::var_os("ANCHORLINE_WRITE_SEEDS").is_some() {
            std::fs::create_dir_all(folder("pfcp_decode")).unwrap();
            std::fs::write(&file, bytes).unwrap();
        }
        let written = std::fs::read(&file).unwrap_or_default();
        assert!(pfcp::decode(&written).is_ok(), "type {kind}");
    }
    assert!(longest.len() >= 12, "{:?}", longest.keys());
}
