//! What was counted is found in the file that a process left behind, whatever it was doing.

use super::applied;
use super::usage::{downlink, query, with_urr};
use crate::fixture::{Bench, METERED, N6, config, rules};
use crate::{Config, Former, Lasting, Limits};
use dplink::{Command, Notice, UsageCounts};
use rules::{Seid, Urr, UrrId};
use std::io;
use std::path::Path;
use std::sync::Arc;

const NODE: &str = "node";

fn urr(id: u32) -> Urr {
    Urr { id: UrrId(id), ..Urr::default() }
}

/// A folder in memory.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn lasting(folder: &Path, epoch: u64) -> Arc<Lasting> {
    Arc::new(Lasting::create(folder, NODE, epoch).unwrap())
}

fn bench(folder: &Path, epoch: u64) -> Bench {
    let mut bench = Bench::over(&Config { lasting: Some(lasting(folder, epoch)), epoch, ..config() });
    bench.put(METERED, 1, with_urr(urr(1)));
    assert_eq!(bench.settle(), [applied(METERED, 1)]);
    bench
}

fn formers(folder: &Path) -> Vec<Former> {
    Former::all(folder, NODE, |path, error| panic!("{}: {error}", path.display()))
}

/// What was left behind by the only life that is over.
fn left(folder: &Path) -> Vec<(Seid, UsageCounts)> {
    let [mut former] = <[Former; 1]>::try_from(formers(folder)).unwrap();
    let mut all = vec![];
    while let Some(some) = former.counts().unwrap() {
        all.extend(some);
    }
    former.rewind();
    assert_eq!(former.has_counted().unwrap(), !all.is_empty());
    let again = std::iter::from_fn(|| former.counts().unwrap()).flatten();
    assert_eq!(again.count(), all.len(), "it can be read as often as need be");
    all
}

fn send(bench: &mut Bench, packets: usize) {
    (0..packets).for_each(|_| bench.receive(N6, &downlink(100)));
    bench.settle();
}

/// Counts without times.
fn timeless(counts: UsageCounts) -> UsageCounts {
    UsageCounts { first_packet_age_ms: None, last_packet_age_ms: None, ..counts }
}

#[test]
fn what_was_counted_is_left_behind_as_it_was_last() {
    let folder = folder();
    let mut bench = bench(folder.path(), 7);
    send(&mut bench, 3);
    assert!(formers(folder.path()).is_empty(), "this life is not over");
    let last = query(&mut bench);
    assert_eq!(last.downlink_packets, 3);
    drop(bench);
    let left = left(folder.path());
    let found: Vec<_> = left.iter().map(|(seid, counts)| (*seid, timeless(*counts))).collect();
    assert_eq!(found, [(Seid(METERED), timeless(last))]);
    let [former] = <[Former; 1]>::try_from(formers(folder.path())).unwrap();
    assert_eq!(former.epoch(), 7);
    assert!(left[0].1.last_packet_age_ms.is_some_and(|age| age < 60_000), "{left:?}");
    former.forget().unwrap();
    assert_eq!(formers(folder.path()).len(), 0);
}

/// Of a URR that goes it is told at once, and so is a session that does: nothing of them is left for others to take for theirs.
#[test]
fn whose_a_count_is_follows_the_rules() {
    let folder = folder();
    let mut bench = bench(folder.path(), 7);
    send(&mut bench, 2);
    bench.put(METERED, 2, with_urr(urr(9)));
    bench.settle();
    send(&mut bench, 1);
    drop(bench);
    let found = left(folder.path());
    assert_eq!(
        found.iter().map(|(_, counts)| (counts.urr, counts.downlink_packets)).collect::<Vec<_>>(),
        [(UrrId(9), 1)]
    );

    formers(folder.path()).into_iter().for_each(|former| former.forget().unwrap());
    let mut bench = self::bench(folder.path(), 8);
    send(&mut bench, 2);
    bench.engine.handle(Command::Delete { session: Seid(METERED) }).unwrap();
    assert!(bench.settle().iter().any(|notice| matches!(notice, Notice::Removed { .. })));
    // Another one in its place has used nothing.
    assert!(bench.put(20, 1, rules(20)).is_none());
    assert_eq!(bench.settle(), [applied(20, 1)]);
    drop(bench);
    assert_eq!(left(folder.path()), []);
}

#[test]
fn several_lives_are_told_in_order_and_what_cannot_be_read_is_named() {
    let folder = folder();
    for epoch in [9, 3] {
        let mut bench = bench(folder.path(), epoch);
        send(&mut bench, 1);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let epochs = || formers(folder.path()).iter().map(Former::epoch).collect::<Vec<_>>();
    assert_eq!(epochs(), [9, 3]);
    for other in ["node.x.3.counts", "nodes.3.counts", "node.3.log"] {
        std::fs::write(folder.path().join(other), "another's").unwrap();
    }
    assert_eq!(epochs(), [9, 3], "files of others are left alone");
    for (name, content) in [
        ("node.4.counts", vec![1]),
        ("node.5.counts", vec![1; 4_096]),
        ("node.6.counts", vec![]),
        ("node.7.counts", vec![0; 4_096]),
    ] {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    std::os::unix::fs::symlink("node.5.counts", folder.path().join("node.8.counts")).unwrap();
    let others = folder.path().join("node.9.counts");
    std::fs::copy(folder.path().join(format!("{NODE}.{:016x}.counts", 9)), &others).unwrap();
    std::os::unix::fs::chown(&others, Some(65_534), None).unwrap();
    let mut unread = vec![];
    let read = Former::all(folder.path(), NODE, |path, _| unread.push(path.file_name().unwrap().to_owned()));
    unread.sort();
    assert_eq!(
        (read.len(), unread),
        (2, ["node.4.counts", "node.5.counts", "node.8.counts", "node.9.counts"].map(Into::into).to_vec())
    );
    for early in ["node.6.counts", "node.7.counts"] {
        assert!(!folder.path().join(early).exists(), "{early} had no time to count");
    }
}

#[test]
fn a_folder_without_room_is_refused() {
    let folder = folder();
    let limits = Limits { sessions: 1 << 27, ..Limits::default() };
    let refused = lasting(folder.path(), 1).lay_out(1 << 20, &limits).err();
    assert_eq!(refused.map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
    assert!(Lasting::create(Path::new("/nowhere"), NODE, 1).is_err());
}
