//! What the roles say to people who watch them, on standard error; and the few lines others wait for, on standard output. A node waits
//! for no reader of either: its lines have queues.

mod pace;
mod queue;

use n4::{Level, Note};
use pace::Pace;
use queue::Queue;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, Stderr, Stdout, Write, stderr, stdout};
use std::panic::PanicHookInfo;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::current;
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::format;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::writer::EitherWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Without a choice: what concerns operators, and of the database only what is wrong with it.
const DEFAULT: &str = "info,fjall=warn,lsm_tree=warn";

/// How long the end waits for who reads the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Whether lines have queues: of whoever serves nobody else they come in the order in which they are said, and who reads them is waited for.
static IS_QUEUED: AtomicBool = AtomicBool::new(false);
static ERRORS: LazyLock<Queue> = LazyLock::new(|| Queue::start(stderr(), dropped_of_log));
static WORDS: LazyLock<Queue> = LazyLock::new(|| Queue::start(stdout(), dropped));

/// `ANCHORLINE_LOG` chooses (`debug`, `anchorline=trace`...). Lines of a node have queues.
pub(crate) fn start(is_node: bool) {
    IS_QUEUED.store(is_node, Ordering::Release);
    let filter = EnvFilter::try_from_env("ANCHORLINE_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let colours = stderr().is_terminal();
    let lines = fmt::layer()
        .with_writer(errors)
        .with_ansi(colours)
        .with_target(false)
        // They could be told to nobody but standard error, and a closed terminal must not end a node.
        .log_internal_errors(false)
        .with_filter(Pace::default());
    tracing_subscriber::registry().with(filter).with(lines).init();
}

/// Starts the queues' threads, if they have not been, where the calling thread may run. From now on what panics goes there, too.
pub(crate) fn settle() {
    if IS_QUEUED.load(Ordering::Acquire) {
        LazyLock::force(&ERRORS);
        LazyLock::force(&WORDS);
        std::panic::set_hook(Box::new(panicked));
    }
}

/// Waits for who reads the last lines, for a while.
pub(crate) fn end() {
    if IS_QUEUED.load(Ordering::Acquire) {
        let until = Instant::now() + LAST_LINES;
        WORDS.wait(until);
        ERRORS.wait(until);
    }
}

/// A line on standard output, if anybody is there: a closed terminal must not end a node.
pub(crate) fn say(line: &str) {
    let _ = words().write_all(format!("{line}\n").as_bytes());
}

/// A line on standard error, whatever `ANCHORLINE_LOG` chooses, if anybody is there.
pub(crate) fn complain(line: &str) {
    let _ = errors().write_all(format!("{line}\n").as_bytes());
}

/// What a library says, of one line or more, on standard error.
pub(crate) fn pass_on(lines: &[u8]) {
    let _ = errors().write_all(lines);
}

fn errors() -> EitherWriter<Queue, Stderr> {
    match IS_QUEUED.load(Ordering::Acquire) {
        true => EitherWriter::A(ERRORS.clone()),
        false => EitherWriter::B(stderr()),
    }
}

fn words() -> EitherWriter<Queue, Stdout> {
    match IS_QUEUED.load(Ordering::Acquire) {
        true => EitherWriter::A(WORDS.clone()),
        false => EitherWriter::B(stdout()),
    }
}

fn dropped(lines: usize) -> String {
    format!("{lines} lines were dropped, as nobody read them in time\n")
}

/// As a line of the log.
fn dropped_of_log(lines: usize) -> String {
    let mut text = String::new();
    let _ = SystemTime.format_time(&mut format::Writer::new(&mut text));
    format!("{text}  WARN {}", dropped(lines))
}

/// As who comes with the language says it, but to the queue: what it says may be the last there is.
fn panicked(panic: &PanicHookInfo<'_>) {
    let thread = current();
    let trace = Backtrace::capture();
    let trace =
        if trace.status() == BacktraceStatus::Captured { format!("\n{trace}") } else { String::new() };
    complain(&format!("thread '{}' {panic}{trace}", thread.name().unwrap_or("<unnamed>")));
    ERRORS.wait(Instant::now() + LAST_LINES);
}

/// What the PFCP node has to say.
pub(crate) fn note(note: Note) {
    match note.level {
        Level::Info => tracing::info!("{}", note.text),
        Level::Warning => tracing::warn!("{}", note.text),
    }
}
