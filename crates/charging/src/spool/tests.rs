//! A folder in memory, whose process dies when it is told to.

use super::*;
use crate::record::{Cause, Conditions, Container, Key};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Dies, or is full, after so many operations.
#[derive(Clone, Debug, Default)]
struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    left: Option<usize>,
    /// Bytes that there is room for, where that is little. Names take none.
    room: Option<usize>,
    /// Nothing happens any more; a full one only fails.
    is_dead: bool,
    dies: bool,
    /// Taken away by whoever bills.
    taken: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    /// `Err(part)` where the process dies in the middle of it.
    fn step(&mut self) -> Result<(), String> {
        match &mut self.left {
            Some(0) => {
                // A full disk has room again some time.
                (self.is_dead, self.left) = (self.dies, Some(if self.dies { 0 } else { 7 }));
                Err("dead or full".to_owned())
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn take_away(&mut self) {
        let is_ready = |name: &String, _: &mut Vec<u8>| !name.starts_with('.');
        let ready = self.files.extract_if(.., is_ready);
        for (name, octets) in ready {
            assert!(self.taken.insert(name.clone(), octets).is_none(), "{name} is there twice");
        }
    }

    /// What all files say is lost.
    fn lost(&self) -> u64 {
        let all = self.files.iter().chain(&self.taken).filter(|(name, _)| name.ends_with(".cdr"));
        all.map(|(_, octets)| file::read(octets).unwrap().header.unwrap().lost).sum()
    }

    /// Serials of all records in files of a format, in order.
    fn serials(&self, format: Format) -> Vec<u64> {
        let ending = format!("_-_{}.", format.name());
        let all = self.files.iter().chain(&self.taken).filter(|(name, _)| name.contains(&ending));
        let read = all.flat_map(|(_, octets)| file::read(octets).unwrap().records);
        let mut serials: Vec<u64> = read.map(|record| record.serial).collect();
        serials.sort_unstable();
        serials
    }
}

impl Folder for Memory {
    type Error = String;

    fn list(&self) -> Result<Vec<String>, String> {
        Ok(self.files.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.files.get(name).cloned())
    }

    fn write(&mut self, name: &str, octets: &[u8]) -> Result<(), String> {
        if self.is_dead {
            return Err("dead".to_owned());
        }
        let part = octets.get(..octets.len() / 2).unwrap_or_default();
        self.files.insert(name.to_owned(), part.to_vec());
        let taken: usize = self.files.values().map(Vec::len).sum();
        if self.room.is_some_and(|room| taken - part.len() + octets.len() > room) {
            return Err("full".to_owned());
        }
        self.step()?;
        self.files.insert(name.to_owned(), octets.to_vec());
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        self.step()?;
        let octets = self.files.remove(from).ok_or("there is no such file")?;
        self.files.insert(to.to_owned(), octets);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), String> {
        self.step()?;
        self.files.remove(name);
        Ok(())
    }
}

fn settings() -> Settings {
    Settings {
        node: "upf.example".to_owned(),
        address: [10, 40, 0, 2].into(),
        zone: Zone::default(),
        formats: vec![Format::Pgw, Format::Chf, Format::Json],
        file_age: Duration::from_secs(60),
        file_cdrs: 3,
        file_bytes: 1 << 20,
        stream: 4_711,
    }
}

fn cdr(serial: u64) -> Cdr {
    let container = Container {
        key: Key { rating_group: 10, service_id: Some(3) },
        sequence: 1,
        uplink_bytes: serial,
        downlink_bytes: 2 * serial,
        duration_ms: 0,
        from_ms: 1,
        until_ms: 2,
        first_packet_ms: None,
        last_packet_ms: None,
        conditions: Conditions::SESSION_END,
        serving_nodes: vec![],
    };
    Cdr {
        serial,
        session: crate::account::tests::session(),
        started_ms: 1,
        opened_ms: 1,
        closed_ms: 2,
        sequence: 1,
        cause: Cause::NormalRelease,
        containers: vec![container],
    }
}

/// The same by both clocks.
const fn at(now_ms: u64) -> Now {
    Now { time: Time::from_millis(now_ms), wall_ms: now_ms }
}

fn kept(waiting: Vec<Cdr>) -> Kept {
    Kept { waiting, filed: None }
}

fn open(folder: &mut Memory, waiting: Vec<Cdr>) -> Spool {
    Spool::open(settings(), folder, kept(waiting), Time::ZERO).unwrap()
}

const CONTEXT: Context<'_> = Context { node: "upf.example", zone: &Zone::Fixed(0) };

/// Why the files of one format were closed.
fn closures(folder: &Memory) -> Vec<Closure> {
    let closure = |(_, octets): (&String, &Vec<u8>)| file::read(octets).unwrap().header.unwrap().closure;
    folder.files.iter().filter(|(name, _)| name.ends_with("_-_pgw.cdr")).map(closure).collect()
}

#[test]
fn a_file_is_closed_by_age_by_number_and_by_size() {
    let mut folder = Memory::default();
    let mut spool = open(&mut folder, vec![]);
    assert_eq!((spool.is_due(at(5).time), spool.rotate(&mut folder, true, at(5))), (false, Ok(None)));
    spool.add(cdr(1), at(1_000).time);
    assert_eq!(spool.rotate(&mut folder, false, at(60_999)), Ok(None));
    assert_eq!(
        spool.rotate(&mut folder, false, at(61_000)),
        Ok(Some(Durable { first: 1, last: 1, cdrs: 1 }))
    );
    (2..=5).for_each(|serial| spool.add(cdr(serial), at(70_000).time));
    assert!(spool.is_due(at(70_000).time));
    assert_eq!(
        spool.rotate(&mut folder, false, at(70_000)),
        Ok(Some(Durable { first: 2, last: 4, cdrs: 3 }))
    );
    assert_eq!(spool.rotate(&mut folder, false, at(70_000)), Ok(None));
    assert_eq!(spool.rotate(&mut folder, true, at(70_000)), Ok(Some(Durable { first: 5, last: 5, cdrs: 1 })));
    assert_eq!(closures(&folder), [Closure::Time, Closure::Count, Closure::Normal]);
    let names: Vec<_> = folder.files.keys().filter(|name| name.ends_with("jsonl")).collect();
    assert_eq!(names[0], "upf.example_-_1.19000101_-_0001+0000_-_json.jsonl");
    spool.settings.file_bytes = 900;
    (6..=7).for_each(|serial| spool.add(cdr(serial), at(80_000).time));
    assert_eq!(spool.rotate(&mut folder, true, at(80_000)), Ok(Some(Durable { first: 6, last: 6, cdrs: 1 })));
}

/// What one file leaves over has waited since it came, and fills the next at once where there is enough of it.
#[test]
fn a_backlog_is_written_on_as_long_as_it_fills_files() {
    let mut folder = Memory::default();
    let length = |serial| file::record(&cdr(serial), Format::Json, CONTEXT).len();
    let by_size = Settings { file_bytes: length(1) + length(2), file_cdrs: 100, ..settings() };
    let mut spool = Spool::open(by_size, &mut folder, Kept::default(), Time::ZERO).unwrap();
    spool.add(cdr(1), at(1_000).time);
    assert!(!spool.is_due(at(1_000).time));
    (2..=5).for_each(|serial| spool.add(cdr(serial), at(1_000).time));
    assert!(spool.is_due(at(1_000).time), "they are larger than a file");
    for first in [1, 3] {
        let two = Some(Durable { first, last: first + 1, cdrs: 2 });
        assert_eq!(spool.rotate(&mut folder, false, at(50_000)), Ok(two));
    }
    assert_eq!(spool.rotate(&mut folder, false, at(60_999)), Ok(None), "one is left, which fills none");
    let last = Some(Durable { first: 5, last: 5, cdrs: 1 });
    assert_eq!(spool.rotate(&mut folder, false, at(61_000)), Ok(last));
    assert_eq!(closures(&folder), [Closure::Size, Closure::Size, Closure::Time]);
    (6..=7).for_each(|serial| spool.add(cdr(serial), at(61_000).time));
    assert!(spool.is_due(at(61_000).time), "they fill it exactly");
    spool.waiting.drop_first(2);
    spool.add(cdr(8), at(61_000).time);
    assert!(!spool.is_due(at(61_000).time), "what is written counts no more");
}

/// Somebody sets the time of day an hour back, or a year ahead.
#[test]
fn files_are_closed_whatever_becomes_of_the_time_of_day() {
    const YEAR_MS: u64 = 365 * crate::time::DAY_MS;
    for wall_ms in [0, 4 * YEAR_MS] {
        let mut folder = Memory::default();
        let mut spool = open(&mut folder, vec![]);
        let now = |now_ms| Now { wall_ms, ..at(now_ms) };
        spool.add(cdr(1), at(1_000).time);
        assert_eq!(spool.rotate(&mut folder, false, now(60_999)), Ok(None), "not before it is old");
        let first = Some(Durable { first: 1, last: 1, cdrs: 1 });
        assert_eq!(spool.rotate(&mut folder, false, now(61_000)), Ok(first));
        (2..=4).for_each(|serial| spool.add(cdr(serial), at(62_000).time));
        let three = Some(Durable { first: 2, last: 4, cdrs: 3 });
        assert_eq!(spool.rotate(&mut folder, false, now(62_000)), Ok(three));
        let year = format!(".{}0101_", 1900 + wall_ms / YEAR_MS);
        assert!(folder.files.keys().filter(|name| !name.starts_with('.')).all(|name| name.contains(&year)));
    }
}

#[test]
fn records_of_another_database_are_not_taken_for_written_ones() {
    let mut folder = Memory::default();
    let mut spool = open(&mut folder, vec![cdr(1), cdr(2)]);
    spool.rotate(&mut folder, true, at(1)).unwrap();
    let other = Settings { stream: 4_712, ..settings() };
    let mut spool = Spool::open(other, &mut folder, kept(vec![cdr(1)]), Time::ZERO).unwrap();
    spool.rotate(&mut folder, true, at(1)).unwrap();
    assert_eq!(folder.serials(Format::Chf), [1, 1, 2]);
}

#[test]
fn the_last_number_in_files_is_that_of_the_stream() {
    let mut folder = Memory::default();
    let last = |folder: &Memory, stream| last_in_files(stream, folder).unwrap();
    assert_eq!(last(&folder, 4_711), 0);
    open(&mut folder, vec![cdr(1), cdr(9)]).rotate(&mut folder, true, at(1)).unwrap();
    assert_eq!((last(&folder, 4_711), last(&folder, 4_712)), (9, 0));
}

#[test]
fn records_that_are_missing_are_told() {
    let mut folder = Memory::default();
    let mut spool = open(&mut folder, vec![cdr(1), cdr(4), cdr(7)]);
    spool.rotate(&mut folder, true, at(1)).unwrap();
    let (_, octets) = folder.files.iter().find(|(name, _)| name.ends_with("_-_pgw.cdr")).unwrap();
    assert_eq!(file::read(octets).unwrap().header.unwrap().lost, 4);
}

/// What is in files of a folder is not lost to the one that comes after it, nor is that to the first when it is had again.
#[test]
fn a_folder_is_told_of_records_in_no_folder_and_not_of_those_in_others() {
    let (mut first, mut other) = (Memory::default(), Memory::default());
    let write = |folder: &mut Memory, serials: &[u64], filed| {
        let kept = Kept { waiting: serials.iter().map(|serial| cdr(*serial)).collect(), filed };
        let mut spool = Spool::open(settings(), folder, kept, Time::ZERO).unwrap();
        spool.rotate(folder, true, at(1)).unwrap();
        spool
    };
    write(&mut first, &[1, 2], None);
    // The third had no room, and the fifth.
    let mut spool = write(&mut other, &[4, 6], Some(2));
    assert_eq!((first.lost(), other.lost()), (0, 3 * 2 - 2), "in two formats that tell it");
    // Nor had the seventh, which the same process is told of.
    spool.add(cdr(8), Time::ZERO);
    spool.rotate(&mut other, true, at(1)).unwrap();
    assert_eq!(other.lost(), 2 * 3);
    write(&mut first, &[9], Some(8));
    assert_eq!((first.lost(), first.serials(Format::Json)), (0, vec![1, 2, 9]));
    // A database of a version that did not note what is in files.
    let mut third = Memory::default();
    write(&mut third, &[10, 12], None);
    assert_eq!(third.lost(), 2, "the eleventh");
}

/// What was written before a format came, or while it was away, is in files of others; what was dropped is lost to it, too.
#[test]
fn a_format_that_is_added_goes_on_where_the_others_are() {
    let mut folder = Memory::default();
    let open = |folder: &mut Memory, formats: &[Format], waiting| {
        let settings = Settings { formats: formats.to_vec(), ..settings() };
        Spool::open(settings, folder, kept(waiting), Time::ZERO).unwrap()
    };
    let (pgw, chf, json) = (Format::Pgw, Format::Chf, Format::Json);
    open(&mut folder, &[chf, json], vec![cdr(1), cdr(2)]).rotate(&mut folder, true, at(1)).unwrap();
    // So is a folder of an earlier version, which does not say which formats it was written with.
    folder.files.remove(".formats");
    // The third is closed and waits; the fourth had no room.
    let mut spool = open(&mut folder, &[pgw, chf], vec![cdr(3), cdr(5)]);
    spool.rotate(&mut folder, true, at(1)).unwrap();
    assert_eq!((folder.serials(pgw), folder.serials(chf)), (vec![3, 5], vec![1, 2, 3, 5]));
    assert_eq!(folder.lost(), 2, "the fourth, once in each format");
    // One that comes back, and one in the place of all others.
    open(&mut folder, &[chf, json], vec![cdr(6)]).rotate(&mut folder, true, at(1)).unwrap();
    open(&mut folder, &[pgw], vec![cdr(7)]).rotate(&mut folder, true, at(1)).unwrap();
    assert_eq!((folder.serials(json), folder.serials(pgw)), (vec![1, 2, 6], vec![3, 5, 7]));
    assert_eq!(folder.lost(), 2, "nothing but the fourth");
    assert_eq!(last_in_files(4_711, &folder), Ok(7), "of whatever format");
}

/// A format whose file is half made goes, and another comes: it has its file, and the records that the others have not.
#[test]
fn a_format_that_goes_amid_a_file_leaves_it_whole() {
    for steps in 0..15 {
        let mut folder = Memory::default();
        let open = |folder: &mut Memory, formats: Vec<Format>| {
            Spool::open(Settings { formats, ..settings() }, folder, kept(vec![cdr(1), cdr(2)]), Time::ZERO)
                .unwrap()
        };
        let mut spool = open(&mut folder, vec![Format::Chf, Format::Json]);
        (folder.left, folder.dies) = (Some(steps), true);
        let _ = spool.rotate(&mut folder, true, at(1));
        let is_marked = folder.files.contains_key(".mark-chf");
        (folder.left, folder.is_dead) = (None, false);
        open(&mut folder, vec![Format::Pgw, Format::Json]).rotate(&mut folder, true, at(1)).unwrap();
        let of_chf = if is_marked { vec![1, 2] } else { vec![] };
        assert_eq!((folder.serials(Format::Json), folder.serials(Format::Chf)), (vec![1, 2], of_chf));
        assert_eq!(folder.lost(), 0);
    }
}

/// A disk becomes full at any octet, and records go to another folder then: files of all formats are in the one, or in the other.
#[test]
fn a_folder_that_takes_no_more_has_files_of_all_formats_or_of_none() {
    let mut outcomes = [0, 0];
    for room in 0..4_000 {
        let (mut full, mut other) = (Memory { room: Some(room), ..Memory::default() }, Memory::default());
        let records = || vec![cdr(1), cdr(2)];
        let is_done = open(&mut full, records()).rotate(&mut full, true, at(1)).is_ok();
        let left = if is_done { vec![] } else { records() };
        open(&mut other, left).rotate(&mut other, true, at(1)).unwrap();
        outcomes[usize::from(is_done)] += 1;
        for format in Format::ALL {
            let serials = [full.serials(format), other.serials(format)].concat();
            assert_eq!(serials, [1, 2], "{format:?} with room for {room}");
        }
    }
    assert!(outcomes.iter().all(|count| *count > 500), "{outcomes:?}");
}

proptest! {
    /// The process dies or the disk is full at any step, again and again, and whoever bills takes files away at any time: in the end every
    /// record is in one file of each format. A format that comes and goes with processes has none twice; no file says that any is
    /// lost.
    #[test]
    fn each_record_is_written_once_whenever_the_process_dies(
        lives in prop::collection::vec((0usize..5, 0usize..30, any::<(bool, bool, bool)>()), 1..25),
    ) {
        let mut folder = Memory::default();
        let (mut database, mut filed) = (BTreeMap::<u64, Cdr>::new(), None);
        let mut serial = 0;
        for (now, (records, steps, (takes, dies, is_away))) in lives.into_iter().enumerate() {
            (folder.left, folder.is_dead, folder.dies) = (Some(steps), false, dies);
            let kept = Kept { waiting: database.values().cloned().collect(), filed };
            let formats = settings().formats.split_off(usize::from(is_away));
            let settings = Settings { formats, ..settings() };
            if let Ok(mut spool) = Spool::open(settings, &mut folder, kept, at(now as u64).time) {
                for _ in 0..records {
                    serial += 1;
                    database.insert(serial, cdr(serial));
                    spool.add(cdr(serial), at(now as u64).time);
                    // What is durable is forgotten, or the process dies before that.
                    if let Ok(Some(durable)) = spool.rotate(&mut folder, records % 2 == 0, at(now as u64))
                        && folder.step().is_ok()
                    {
                        database.retain(|serial, _| !(durable.first..=durable.last).contains(serial));
                        filed = Some(durable.last);
                    }
                }
            }
            if takes {
                folder.take_away();
            }
        }
        (folder.left, folder.is_dead) = (None, false);
        let mut spool = open(&mut folder, database.into_values().collect());
        while spool.rotate(&mut folder, true, at(1_000)).unwrap().is_some() {}
        for format in [Format::Chf, Format::Json] {
            prop_assert_eq!(folder.serials(format), (1..=serial).collect::<Vec<_>>());
        }
        prop_assert!(folder.serials(Format::Pgw).windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(folder.lost(), 0);
        prop_assert!(!folder.files.keys().any(|name| mark::is_temporary(name)));
    }
}

#[test]
fn half_a_file_that_there_is_no_room_for_holds_none() {
    let mut folder = Memory { room: Some(1_000), ..Memory::default() };
    let kept = Kept { waiting: (1..=3).map(cdr).collect(), filed: None };
    let mut spool = Spool::open(settings(), &mut folder, kept, Time::ZERO).unwrap();
    let now = Now { time: Time::ZERO, wall_ms: 0 };
    for _ in 0..2 {
        assert_eq!(spool.rotate(&mut folder, true, now), Err("full".to_owned()));
        let left = folder.files.keys().filter(|name| mark::is_temporary(name)).count();
        assert_eq!(left, 0, "{:?}", folder.files.keys());
    }
    folder.room = None;
    assert!(spool.rotate(&mut folder, true, now).unwrap().is_some());
    assert_eq!(folder.serials(Format::Json), [1, 2, 3]);
}
