//! What the roles say to people who watch them, on standard error; and the few lines others wait for, on standard output.

mod pace;

use n4::{Level, Note};
use pace::Pace;
use std::io::{IsTerminal, Write, stderr, stdout};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Without a choice: what concerns operators, and of the database only what is wrong with it.
const DEFAULT: &str = "info,fjall=warn,lsm_tree=warn";

/// `ANCHORLINE_LOG` chooses (`debug`, `anchorline=trace`...).
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env("ANCHORLINE_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let colours = stderr().is_terminal();
    let lines = fmt::layer()
        .with_writer(stderr)
        .with_ansi(colours)
        .with_target(false)
        // They could be told to nobody but standard error, and a closed terminal must not end a node.
        .log_internal_errors(false)
        .with_filter(Pace::default());
    tracing_subscriber::registry().with(filter).with(lines).init();
}

/// A line on standard output, if anybody is there: a closed terminal must not end a node.
pub(crate) fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

/// What the PFCP node has to say.
pub(crate) fn note(note: Note) {
    match note.level {
        Level::Info => tracing::info!("{}", note.text),
        Level::Warning => tracing::warn!("{}", note.text),
    }
}
