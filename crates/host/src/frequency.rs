//! The highest frequency a CPU may take, lowered while its worker has nothing to do, and given back.
//!
//! It is `scaling_max_freq`, which every cpufreq driver and governor obeys, and the one file that is changed. What it
//! said before is in a file beside it in a folder of the node's, so that a process that was killed can be made up for by
//! the next.

use crate::{Power, Root};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names of the records, with the CPU's number behind.
const RECORD: &str = "frequency-of-cpu-";

/// Where the highest frequency of a CPU is told.
fn place(cpu: usize) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq")
}

/// What lowers a frequency and lifts it again.
pub trait Throttle {
    /// The lowest from now on.
    ///
    /// # Errors
    /// Those of the kernel.
    fn lower(&mut self) -> io::Result<()>;

    /// As it was before it was first lowered.
    ///
    /// # Errors
    /// Those of the kernel.
    fn lift(&mut self) -> io::Result<()>;
}

/// The highest frequency of one CPU. It is as it was when this goes.
#[derive(Debug)]
pub struct Ceiling {
    file: File,
    low_khz: u64,
    high_khz: u64,
    record: PathBuf,
}

impl Ceiling {
    /// That of a CPU, if it can be moved; `records` is the folder to note down in what it was.
    ///
    /// # Errors
    /// Why it cannot: this goes on after "because".
    pub fn of(root: &Root, power: &Power, cpu: usize, records: &Path) -> Result<Self, String> {
        let room = power.room_of(cpu)?;
        let path = place(cpu);
        let unwritable = |error: io::Error| format!("{path} cannot be written: {error}");
        let file = OpenOptions::new().write(true).open(root.place(&path)).map_err(unwritable)?;
        let record = records.join(format!("{RECORD}{cpu}"));
        // Before the first change, or there would be times in which nobody knows.
        let noted = fs::create_dir_all(records).and_then(|()| fs::write(&record, room.high_khz.to_string()));
        noted.map_err(|error| format!("{} cannot be written: {error}", record.display()))?;
        Ok(Self { file, low_khz: room.low_khz, high_khz: room.high_khz, record })
    }

    /// In kHz, from the lowest to the highest.
    pub const fn range_khz(&self) -> (u64, u64) {
        (self.low_khz, self.high_khz)
    }

    fn set(&self, khz: u64) -> io::Result<()> {
        // In one piece, from the beginning: the kernel takes each write for a whole answer.
        self.file.write_all_at(format!("{khz}\n").as_bytes(), 0)
    }
}

impl Throttle for Ceiling {
    fn lower(&mut self) -> io::Result<()> {
        self.set(self.low_khz)
    }

    fn lift(&mut self) -> io::Result<()> {
        self.set(self.high_khz)
    }
}

impl Drop for Ceiling {
    fn drop(&mut self) {
        // Where it fails the record stays for the next start.
        if self.lift().is_ok() {
            let _ = fs::remove_file(&self.record);
        }
    }
}

/// Gives back what a process that was killed has left lowered; returns the CPUs.
pub fn give_back(root: &Root, records: &Path) -> Vec<usize> {
    let names = fs::read_dir(records).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut cpus: Vec<usize> =
        names.filter_map(|name| name.to_str()?.strip_prefix(RECORD)?.parse().ok()).collect();
    cpus.sort_unstable();
    cpus.retain(|cpu| give_back_of(root, *cpu, &records.join(format!("{RECORD}{cpu}"))).is_ok());
    cpus
}

fn give_back_of(root: &Root, cpu: usize, record: &Path) -> io::Result<()> {
    let text = fs::read_to_string(record)?;
    // What is no number was never written whole, so that nothing was lowered.
    if let Ok(khz) = text.trim().parse::<u64>() {
        let file = OpenOptions::new().write(true).open(root.place(&place(cpu)))?;
        file.write_all_at(format!("{khz}\n").as_bytes(), 0)?;
    }
    fs::remove_file(record)
}

/// When a worker's frequency goes down, and up again.
#[derive(Debug)]
pub struct Pace<T> {
    throttle: T,
    calm_ns: u64,
    /// When packets came last, or the frequency could not be changed.
    since_ns: u64,
    lowered: bool,
    /// Whether somebody has been told that it cannot be changed.
    told: bool,
}

impl<T: Throttle> Pace<T> {
    /// It goes down when nothing has come for `calm`.
    pub fn new(throttle: T, calm: Duration) -> Self {
        let calm_ns = u64::try_from(calm.as_nanos()).unwrap_or(u64::MAX);
        Self { throttle, calm_ns, since_ns: 0, lowered: false, told: false }
    }

    /// After each turn, at a time that does not go back: whether packets came in it.
    ///
    /// # Errors
    /// The first time that the frequency cannot be changed; it is tried again when as much time has passed as before it
    /// goes down.
    #[inline]
    pub fn turn(&mut self, now_ns: u64, busy: bool) -> io::Result<()> {
        match (self.lowered, busy) {
            (false, true) => self.since_ns = now_ns,
            (false, false) if self.is_calm(now_ns) => return self.change(now_ns, true),
            (true, true) if !self.told || self.is_calm(now_ns) => return self.change(now_ns, false),
            _ => {}
        }
        Ok(())
    }

    const fn is_calm(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.since_ns) >= self.calm_ns
    }

    #[cold]
    fn change(&mut self, now_ns: u64, down: bool) -> io::Result<()> {
        let changed = if down { self.throttle.lower() } else { self.throttle.lift() };
        self.since_ns = now_ns;
        match changed {
            Ok(()) => {
                (self.lowered, self.told) = (down, false);
                Ok(())
            }
            Err(_) if self.told => Ok(()),
            Err(error) => {
                self.told = true;
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU by itself, from 800 to 3500 MHz; one that shares its frequency with its neighbour; one that has one frequency.
    struct Made(tempfile::TempDir);

    impl Made {
        fn new() -> Self {
            let made = Self(tempfile::tempdir().unwrap());
            made.write("online", "0-3");
            made.cpu(0, ("0", "800000"));
            made.cpu(1, ("1 2", "800000"));
            made.cpu(2, ("1 2", "800000"));
            made.cpu(3, ("3", "3500000"));
            made
        }

        fn cpu(&self, cpu: usize, (together, low): (&str, &str)) {
            let file = |name: &str| format!("cpu{cpu}/cpufreq/{name}");
            self.write(&file("affected_cpus"), together);
            self.write(&file("scaling_min_freq"), low);
            self.write(&file("scaling_max_freq"), "3500000");
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.path().join("sys/devices/system/cpu").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        fn root(&self) -> Root {
            Root::at(self.0.path())
        }

        fn records(&self) -> PathBuf {
            self.0.path().join("run")
        }

        fn ceiling(&self, cpu: usize) -> Result<Ceiling, String> {
            let power = crate::Facts::read(&self.root()).power;
            Ceiling::of(&self.root(), &power, cpu, &self.records())
        }

        /// What the kernel would take: a write is a whole answer, and ends where its line does.
        fn highest(&self, cpu: usize) -> String {
            self.root().text(&place(cpu)).unwrap().lines().next().unwrap().to_owned()
        }

        fn noted(&self) -> usize {
            fs::read_dir(self.records()).map_or(0, Iterator::count)
        }
    }

    #[test]
    fn a_frequency_goes_down_and_up_and_is_given_back() {
        let made = Made::new();
        let mut ceiling = made.ceiling(0).unwrap();
        assert_eq!((ceiling.range_khz(), made.highest(0).as_str()), ((800_000, 3_500_000), "3500000"));
        ceiling.lower().unwrap();
        assert_eq!((made.highest(0).as_str(), made.noted()), ("800000", 1));
        ceiling.lift().unwrap();
        assert_eq!(made.highest(0), "3500000");
        ceiling.lower().unwrap();
        drop(ceiling);
        assert_eq!((made.highest(0).as_str(), made.noted()), ("3500000", 0));
    }

    /// As when a process is killed: what is never dropped is given back by the next.
    #[test]
    fn the_next_start_gives_back_what_was_left_lowered() {
        let made = Made::new();
        let mut ceiling = made.ceiling(0).unwrap();
        ceiling.lower().unwrap();
        std::mem::forget(ceiling);
        assert_eq!(made.highest(0), "800000");
        assert_eq!(give_back(&made.root(), &made.records()), [0]);
        assert_eq!((made.highest(0).as_str(), made.noted()), ("3500000", 0));
        assert_eq!(give_back(&made.root(), &made.records()), [] as [usize; 0], "it is done once");
        assert_eq!(made.ceiling(0).unwrap().range_khz(), (800_000, 3_500_000));
    }

    #[test]
    fn a_record_that_was_cut_short_changes_nothing_and_goes() {
        let made = Made::new();
        fs::create_dir(made.records()).unwrap();
        fs::write(made.records().join("frequency-of-cpu-0"), "").unwrap();
        fs::write(made.records().join("dpe.sock"), "").unwrap();
        assert_eq!(give_back(&made.root(), &made.records()), [0]);
        assert_eq!((made.highest(0).as_str(), made.noted()), ("3500000", 1));
    }

    #[test]
    fn what_cannot_be_moved_alone_is_not_moved() {
        let made = Made::new();
        for (cpu, why) in [
            (1, "CPU 1 has its frequency together with CPUs 2"),
            (3, "CPU 3 may take one frequency alone, 3500000 kHz"),
            (9, "the kernel does not scale the frequency of CPU 9 ("),
        ] {
            let error = made.ceiling(cpu).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
        // A file that cannot be opened for writing, whoever asks.
        let path = made.root().place(&place(0));
        let power = crate::Facts::read(&made.root()).power;
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = Ceiling::of(&made.root(), &power, 0, &made.records()).unwrap_err();
        assert!(
            error.starts_with("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq cannot be"),
            "{error}"
        );
        assert_eq!(made.noted(), 0, "nothing was changed, so nothing is noted");
    }

    /// Without the record nobody could give it back.
    #[test]
    fn where_nothing_can_be_noted_nothing_is_lowered() {
        let made = Made::new();
        fs::write(made.records(), "a file").unwrap();
        assert!(made.ceiling(0).unwrap_err().contains("run/frequency-of-cpu-0 cannot be written"));
    }

    /// Notes what is asked of it, and refuses as often as it is told to.
    #[derive(Default)]
    struct Noting {
        asked: Vec<&'static str>,
        refuses: usize,
    }

    impl Noting {
        fn note(&mut self, what: &'static str) -> io::Result<()> {
            self.asked.push(what);
            match self.refuses {
                0 => Ok(()),
                _ => {
                    self.refuses -= 1;
                    Err(io::Error::from(io::ErrorKind::PermissionDenied))
                }
            }
        }
    }

    impl Throttle for Noting {
        fn lower(&mut self) -> io::Result<()> {
            self.note("down")
        }

        fn lift(&mut self) -> io::Result<()> {
            self.note("up")
        }
    }

    fn pace(refuses: usize) -> Pace<Noting> {
        Pace::new(Noting { refuses, ..Noting::default() }, Duration::from_nanos(100))
    }

    #[test]
    fn it_goes_down_after_a_calm_and_up_with_the_first_packet() {
        let mut pace = pace(0);
        for (now_ns, busy) in [(50, true), (100, false), (149, false)] {
            pace.turn(now_ns, busy).unwrap();
        }
        assert_eq!(pace.throttle.asked, [] as [&str; 0], "it is not calm yet");
        for (now_ns, busy) in
            [(150, false), (151, false), (900, false), (901, true), (902, true), (1_000, false)]
        {
            pace.turn(now_ns, busy).unwrap();
        }
        assert_eq!(pace.throttle.asked, ["down", "up"], "each once");
        pace.turn(1_001, false).unwrap();
        pace.turn(1_002, false).unwrap();
        assert_eq!(pace.throttle.asked, ["down", "up", "down"], "a hundred after the last packet");
    }

    #[test]
    fn packets_now_and_then_keep_it_up() {
        let mut pace = pace(0);
        (0..50).for_each(|turn| pace.turn(turn * 30, turn % 3 == 0).unwrap());
        assert_eq!(pace.throttle.asked, [] as [&str; 0]);
    }

    #[test]
    fn what_cannot_be_changed_is_told_once_and_tried_again_after_a_while() {
        let mut pace = pace(2);
        assert!(pace.turn(100, false).is_err());
        (101..=250).for_each(|now_ns| pace.turn(now_ns, false).unwrap());
        assert_eq!(pace.throttle.asked, ["down", "down"], "not in every turn");
        pace.throttle.refuses = 0;
        pace.turn(300, false).unwrap();
        pace.throttle.refuses = 2;
        assert!(pace.turn(301, true).is_err(), "packets at a low frequency are worth a word again");
        (302..=500).for_each(|now_ns| pace.turn(now_ns, true).unwrap());
        assert_eq!(pace.throttle.asked, ["down", "down", "down", "up", "up"]);
        pace.turn(501, true).unwrap();
        assert_eq!(pace.throttle.asked.last(), Some(&"up"));
        assert!(!pace.lowered);
    }
}
