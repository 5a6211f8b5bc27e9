//! The thread that writes files.

use super::Disk;
use super::problem::{Problem, Said, said};
use charging::Cdr;
use charging::spool::{Durable, Kept, Now, Settings, Spool};
use machine::Time;
use serde::{Deserialize, Serialize};
use session::LostCdrs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};

/// Where the writer says how it is: in the run folder.
pub(crate) const STATUS_FILE: &str = "charging.json";

/// Between two looks at what is due and how much room there is.
const LOOK: Duration = Duration::from_secs(1);
/// After a disk refused something.
const PAUSE: Duration = Duration::from_secs(5);

/// How the writer is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Records that wait for a file.
    pub(crate) waiting: u64,
    /// Records written since the process started.
    pub(crate) written: u64,
    /// Rounds of files written since then, one of each format.
    pub(crate) files: u64,
    /// Free on the disk.
    pub(crate) free_bytes: u64,
    /// What is wrong.
    pub(crate) problem: Option<String>,
    /// Records that there was no room for, if any.
    #[serde(default)]
    pub(crate) lost: Option<Lost>,
}

/// Records that there was no room for, since the session database was new.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lost {
    pub(crate) records: u64,
    /// Users' bytes in them, both ways.
    pub(crate) bytes: u64,
    /// When the first was lost, in UTC.
    pub(crate) since: String,
    /// When the last was lost, in UTC.
    pub(crate) last: String,
}

impl Lost {
    fn of(lost: LostCdrs) -> Option<Self> {
        let LostCdrs { records, bytes, first_ms, last_ms } = lost;
        let (since, last) = (charging::time::iso(first_ms), charging::time::iso(last_ms));
        (records > 0).then_some(Self { records, bytes, since, last })
    }
}

/// What the thread has.
pub(super) struct Writer {
    pub(super) settings: Settings,
    pub(super) disk: Disk,
    pub(super) min_free_bytes: u64,
    pub(super) cdrs: Receiver<Cdr>,
    pub(super) durable: mpsc::Sender<Durable>,
    pub(super) told: watch::Sender<Status>,
    /// Records without room.
    pub(super) losses: watch::Receiver<LostCdrs>,
    pub(super) status_file: PathBuf,
    /// Returns when the disk has all that the session database says.
    pub(super) sync: Box<dyn Fn() -> Result<(), String> + Send>,
    pub(super) now: Box<dyn Fn() -> Now + Send>,
    /// What is wrong, as the log has it.
    pub(super) problem: Option<Problem>,
}

impl Writer {
    /// Writes until nobody has records any more. How it was then stays to be read: who looks sees whether a process is there.
    pub(super) fn run(mut self, kept: Kept) {
        self.write(&kept);
        self.publish();
    }

    fn write(&mut self, kept: &Kept) {
        let Some(mut spool) = self.open(kept) else { return };
        let mut again = Some(Time::ZERO);
        loop {
            match self.cdrs.recv_timeout(LOOK) {
                Ok(cdr) => spool.add(cdr, (self.now)().time),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.cdrs.try_iter().for_each(|cdr| spool.add(cdr, (self.now)().time));
            if again.is_some_and(|again| again <= (self.now)().time) {
                again = self.rotate(&mut spool);
            }
            self.tell(|status| status.waiting = spool.len() as u64);
        }
    }

    /// A folder that cannot be put in order now may be later.
    fn open(&mut self, kept: &Kept) -> Option<Spool> {
        loop {
            match Spool::open(self.settings.clone(), &mut self.disk, kept.clone(), (self.now)().time) {
                Ok(spool) => return Some(spool),
                Err(error) => self.refused(format!("the folder cannot be put in order: {error}")),
            }
            self.tell(|status| status.waiting = kept.waiting.len() as u64);
            if self.durable.is_closed() {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Makes what files are due; says when to look again, if ever.
    fn rotate(&mut self, spool: &mut Spool) -> Option<Time> {
        loop {
            let now = (self.now)();
            // A crash of the machine must not take a record from the database that is in a file: its number would come
            // again, and what it charged would be charged again.
            if spool.is_due(now.time)
                && let Err(error) = (self.sync)()
            {
                self.refused(format!("the session database cannot be synced: {error}"));
                return Some(now.time + PAUSE);
            }
            match spool.rotate(&mut self.disk, false, now) {
                Ok(Some(durable)) => {
                    self.tell(|status| {
                        status.written += durable.cdrs as u64;
                        status.files += 1;
                    });
                    if self.durable.blocking_send(durable).is_err() {
                        return None;
                    }
                }
                Ok(None) => {
                    self.look_at_room();
                    return Some(now.time);
                }
                Err(error) => {
                    // As it is without what was begun, not as it was before the disk was full.
                    if let Ok(free_bytes) = self.disk.free_bytes() {
                        self.tell(|status| status.free_bytes = free_bytes);
                    }
                    self.refused(format!("a file cannot be written: {error}"));
                    return Some(now.time + PAUSE);
                }
            }
        }
    }

    /// A disk that will soon be full is told of before it is.
    fn look_at_room(&mut self) {
        let free = self.disk.free_bytes();
        let free_bytes = free.as_ref().copied().unwrap_or(0);
        let mib = free_bytes >> 20;
        let problem = match free {
            Err(error) => Some(format!("the folder cannot be looked at: {error}")),
            Ok(_) if free_bytes < self.min_free_bytes => Some(format!("only {mib} MiB are free for files")),
            Ok(_) => None,
        };
        self.tell(|status| status.free_bytes = free_bytes);
        self.note(problem.map(Problem::Ahead));
    }

    fn refused(&mut self, why: String) {
        self.note(Some(Problem::Here(why)));
    }

    fn note(&mut self, problem: Option<Problem>) {
        match said(self.problem.as_ref(), problem.as_ref()) {
            Some(Said::Error(text)) => tracing::error!("charging: {text}"),
            Some(Said::Warning(text)) => tracing::warn!("charging: {text}"),
            Some(Said::Info(text)) => tracing::info!("charging: {text}"),
            None => {}
        }
        let text = problem.as_ref().map(|problem| problem.text().to_owned());
        self.problem = problem;
        self.tell(|status| status.problem = text);
    }

    fn tell(&self, with: impl FnOnce(&mut Status)) {
        let before = self.told.borrow().clone();
        let lost = Lost::of(*self.losses.borrow());
        self.told.send_modify(|status| {
            with(status);
            status.lost = lost;
        });
        if *self.told.borrow() != before {
            self.publish();
        }
    }

    /// Who asks while it is written sees the one before.
    fn publish(&self) {
        let temporary = self.status_file.with_extension("tmp");
        let octets = serde_json::to_vec(&*self.told.borrow()).unwrap_or_default();
        let _ =
            std::fs::write(&temporary, octets).and_then(|()| std::fs::rename(temporary, &self.status_file));
    }
}

/// Reads both clocks; the one that never goes back begins with it.
pub(super) fn clocks() -> impl Fn() -> Now + Send {
    let zero = Instant::now();
    move || {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_ms = charging::time::UNIX_EPOCH_MS + since_1970.as_millis() as u64;
        Now { time: Time::from_zero(zero.elapsed()), wall_ms }
    }
}

#[cfg(test)]
pub(super) mod fixture {
    use super::*;
    use charging::{Account, Cause, Policy, Session, User};

    /// The last record of a session that used nothing.
    pub(in crate::cpe::charging) fn cdr(serial: u64) -> Cdr {
        let session = Session {
            seid: 1,
            owner: "smf.example".to_owned(),
            cp_seid: 7,
            cp_address: [10, 40, 0, 1].into(),
            serving_nodes: vec![],
            user: User::default(),
        };
        let mut account = Account::new(session, &Policy::default(), machine::Clock::at(1));
        Cdr { serial, ..account.end(&[], Cause::NormalRelease, 2).remove(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::cdr;
    use super::*;
    use charging::file::{self, Format};
    use charging::spool::Folder;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    fn settings() -> Settings {
        Settings {
            node: "upf".to_owned(),
            address: [10, 40, 0, 2].into(),
            zone: ::charging::Zone::default(),
            formats: vec![Format::Json],
            file_age: Duration::from_secs(60),
            file_cdrs: 2,
            file_bytes: 1 << 20,
            stream: 1,
        }
    }

    fn serials(folder: &Path) -> Vec<u64> {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|it| it == "jsonl"));
        let records = files.flat_map(|path| file::read(&std::fs::read(path).unwrap()).unwrap().records);
        let mut serials: Vec<u64> = records.map(|record| record.serial).collect();
        serials.sort_unstable();
        serials
    }

    /// The disk is full at first. `mount -t tmpfs -o size=1m tmpfs DIR` makes one for `TMPDIR=DIR`.
    #[test]
    #[ignore = "needs TMPDIR on a file system with less than 8 MiB"]
    fn records_wait_for_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(folder.path().to_owned());
        assert!(disk.free_bytes().unwrap() < 8 << 20, "TMPDIR is too large to be filled");
        let _ = disk.write("filler", &vec![0; 8 << 20]);
        let now = clocks()();
        let settings = Settings { formats: vec![Format::Json, Format::Chf], file_cdrs: 200, ..settings() };
        let kept = Kept { waiting: (1..=200).map(cdr).collect(), filed: None };
        let mut spool = Spool::open(settings, &mut disk, kept, Time::ZERO).unwrap();
        for _ in 0..3 {
            let error = spool.rotate(&mut disk, false, now).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
        }
        disk.remove("filler").unwrap();
        assert_eq!(
            spool.rotate(&mut disk, false, now).unwrap(),
            Some(Durable { first: 1, last: 200, cdrs: 200 })
        );
        assert_eq!(serials(folder.path()), (1..=200).collect::<Vec<_>>());
        assert_eq!(disk.list().unwrap().iter().filter(|name| name.ends_with(".cdr")).count(), 1);
    }

    /// A file is where the folder should be at first: records wait, and someone is told; then the folder is made, and all is written,
    /// though the time of day is set back whenever it is looked at.
    #[test]
    fn records_wait_for_a_folder_that_cannot_be_used() {
        let run = tempfile::tempdir().unwrap();
        let folder = run.path().join("cdr");
        std::fs::write(&folder, b"").unwrap();
        let (to_writer, cdrs) = channel();
        let (durable, mut heard) = mpsc::channel(8);
        let (told, mut status) = watch::channel(Status::default());
        let status_file = run.path().join(STATUS_FILE);
        let disk = Disk::new(folder.clone());
        let parts = (status_file.clone(), settings());
        let synced = Arc::new(AtomicUsize::new(0));
        let files = Arc::clone(&synced);
        let sync = Box::new(move || {
            files.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let (read, wall_ms) = (clocks(), AtomicU64::new(charging::time::DAY_MS));
        let now = Box::new(move || Now { wall_ms: wall_ms.fetch_sub(1_000, Ordering::Relaxed), ..read() });
        let writer = Writer {
            settings: parts.1,
            disk,
            min_free_bytes: 0,
            cdrs,
            durable,
            told,
            losses: watch::channel(LostCdrs::default().and(5, charging::time::UNIX_EPOCH_MS)).1,
            status_file: parts.0,
            sync,
            now,
            problem: None,
        };
        let thread =
            std::thread::spawn(move || writer.run(Kept { waiting: vec![cdr(1), cdr(2)], filed: None }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(status.wait_for(|status| status.problem.is_some())).unwrap();
        std::fs::remove_file(&folder).unwrap();
        to_writer.send(cdr(3)).unwrap();
        to_writer.send(cdr(4)).unwrap();
        assert_eq!(heard.blocking_recv(), Some(Durable { first: 1, last: 2, cdrs: 2 }));
        assert_eq!(heard.blocking_recv(), Some(Durable { first: 3, last: 4, cdrs: 2 }));
        runtime.block_on(status.wait_for(|status| status.problem.is_none() && status.waiting == 0)).unwrap();
        // The file comes a little after what is told within the process.
        let told = || serde_json::from_slice::<Status>(&std::fs::read(&status_file).ok()?).ok();
        let epoch = "1970-01-01T00:00:00.000Z".to_owned();
        let lost = Some(Lost { records: 1, bytes: 5, since: epoch.clone(), last: epoch });
        let is_told = || {
            told().is_some_and(|told| {
                (told.written, told.files, told.problem, told.lost) == (4, 2, None, lost.clone())
            })
        };
        assert!((0..100).any(|_| {
            std::thread::sleep(LOOK / 10);
            is_told()
        }));
        drop(to_writer);
        thread.join().unwrap();
        assert_eq!(serials(&folder), [1, 2, 3, 4]);
        assert_eq!(synced.load(Ordering::Relaxed), 2, "once before each file");
        assert!(is_told(), "what was known last stays to be read");
    }
}
