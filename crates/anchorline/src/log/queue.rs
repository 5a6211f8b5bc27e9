//! Lines on their way to whoever reads them, written by a thread of its own: a reader that stops, or a disk that hangs, holds up nothing
//! else. What finds the queue full is dropped, and told of by its number once something can be written again.

use nix::sys::signal::SigSet;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Lines that wait at most: about a megabyte.
const LIMIT: usize = 8_192;
/// Between two lines about dropped ones, while others still wait.
const BETWEEN: Duration = Duration::from_secs(1);
/// Between two looks whether all is written.
const LOOK: Duration = Duration::from_millis(1);

/// The end that lines come in by; each is one call of `write`.
#[derive(Clone)]
pub(super) struct Queue {
    lines: NonBlocking,
    counts: Arc<Counts>,
    /// Dropped, it would wait and print. The process ends with the thread still there.
    _thread: Arc<OnceLock<WorkerGuard>>,
}

#[derive(Default)]
struct Counts {
    /// Lines that came.
    came: AtomicUsize,
    /// Those that were written, or refused by what is behind.
    written: AtomicUsize,
    /// Dropped ones that somebody was told of.
    told: AtomicUsize,
    dropped: OnceLock<ErrorCounter>,
}

impl Counts {
    fn dropped(&self) -> usize {
        self.dropped.get().map_or(0, ErrorCounter::dropped_lines)
    }

    fn is_all_told(&self) -> bool {
        let (dropped, told) = (self.dropped(), self.told.load(Ordering::Acquire));
        told == dropped && self.written.load(Ordering::Acquire) + dropped >= self.came.load(Ordering::Acquire)
    }
}

impl Queue {
    /// Starts the thread, which `words` about dropped lines are from.
    pub(super) fn start(output: impl Write + Send + Sync + 'static, words: fn(usize) -> String) -> Self {
        Self::with_limit(LIMIT, output, words)
    }

    fn with_limit(
        limit: usize,
        output: impl Write + Send + Sync + 'static,
        words: fn(usize) -> String,
    ) -> Self {
        let counts = Arc::new(Counts::default());
        let writer = Writer { output, words, counts: Arc::clone(&counts), last: None };
        // Signals are for those who wait for them: one that is held back elsewhere must not end the process here.
        let before = SigSet::thread_get_mask().and_then(|mask| SigSet::all().thread_block().map(|()| mask));
        let builder =
            NonBlockingBuilder::default().lossy(true).buffered_lines_limit(limit).thread_name("log");
        let (lines, thread) = builder.finish(writer);
        let _ = before.and_then(|mask| mask.thread_set_mask());
        let _ = counts.dropped.set(lines.error_counter());
        Self { lines, counts, _thread: Arc::new(OnceLock::from(thread)) }
    }

    /// Waits until all that came is written, or it is that late.
    pub(super) fn wait(&self, until: Instant) {
        while !self.counts.is_all_told() && Instant::now() < until {
            sleep(LOOK);
        }
    }
}

impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.counts.came.fetch_add(1, Ordering::AcqRel);
        self.lines.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The thread's end of it.
struct Writer<W> {
    output: W,
    words: fn(usize) -> String,
    counts: Arc<Counts>,
    /// When dropped lines were told of last.
    last: Option<Instant>,
}

impl<W: Write> Writer<W> {
    fn tell(&mut self) {
        let dropped = self.counts.dropped();
        let new = dropped.saturating_sub(self.counts.told.load(Ordering::Acquire));
        if new > 0 {
            let _ = self.output.write_all((self.words)(new).as_bytes());
            self.counts.told.store(dropped, Ordering::Release);
            self.last = Some(Instant::now());
        }
    }
}

impl<W: Write> Write for Writer<W> {
    /// Nobody can be told that a line cannot be written, and a closed terminal must not end a node.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.output.write_all(line);
        self.counts.written.fetch_add(1, Ordering::AcqRel);
        if self.last.is_none_or(|last| last.elapsed() >= BETWEEN) {
            self.tell();
        }
        Ok(line.len())
    }

    /// None waits any more.
    fn flush(&mut self) -> io::Result<()> {
        self.tell();
        let _ = self.output.flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Read, pipe};

    fn words(dropped: usize) -> String {
        format!("{dropped} dropped\n")
    }

    /// A queue of four lines before a pipe that has room for nothing.
    fn stuck() -> (Queue, PipeReader, usize) {
        let (reader, mut writer) = pipe().unwrap();
        let size = nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_GETPIPE_SZ).unwrap() as usize;
        writer.write_all(&vec![b'.'; size]).unwrap();
        (Queue::with_limit(4, writer, words), reader, size)
    }

    fn say(queue: &mut Queue, numbers: std::ops::Range<usize>) {
        numbers.for_each(|number| queue.write_all(format!("{number}\n").as_bytes()).unwrap());
    }

    #[test]
    fn who_says_something_waits_for_no_reader_and_hears_how_much_was_dropped() {
        let (mut queue, mut reader, size) = stuck();
        say(&mut queue, 0..1);
        // The thread has taken it, and waits for the reader.
        sleep(Duration::from_millis(200));
        say(&mut queue, 1..100);
        let before = Instant::now();
        queue.wait(before + Duration::from_millis(100));
        assert!(before.elapsed() >= Duration::from_millis(100) && !queue.counts.is_all_told());
        let read = std::thread::spawn(move || {
            let mut octets = vec![0; size];
            reader.read_exact(&mut octets).unwrap();
            let (mut text, mut octets) = (String::new(), [0; 64]);
            while !text.contains("end\n") {
                let length = reader.read(&mut octets).unwrap();
                text.push_str(std::str::from_utf8(&octets[..length]).unwrap());
            }
            text
        });
        queue.wait(Instant::now() + Duration::from_secs(60));
        assert!(queue.counts.is_all_told());
        queue.write_all(b"end\n").unwrap();
        let text = read.join().unwrap();
        let told: usize = text
            .lines()
            .filter_map(|line| line.strip_suffix(" dropped").map(|told| told.parse::<usize>().unwrap()))
            .sum();
        let lines = text.lines().filter(|line| line.parse::<usize>().is_ok()).count();
        assert_eq!((told, lines), (95, 5), "{text}");
    }

    #[test]
    fn a_reader_that_is_gone_is_nothing_to_wait_for() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut queue = Queue::with_limit(4, writer, words);
        say(&mut queue, 0..3);
        queue.wait(Instant::now() + Duration::from_secs(60));
        assert!(queue.counts.is_all_told());
    }
}
