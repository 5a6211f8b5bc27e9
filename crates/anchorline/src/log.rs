//! What the roles say to people who watch them, on standard error.

use n4::{Level, Note};
use std::io::{IsTerminal, stderr};
use tracing_subscriber::EnvFilter;

/// Without a choice: what concerns operators, and of the database only what is wrong with it.
const DEFAULT: &str = "info,fjall=warn,lsm_tree=warn";

/// `ANCHORLINE_LOG` chooses (`debug`, `anchorline=trace`...).
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env("ANCHORLINE_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let colours = stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(colours)
        .with_target(false)
        .init();
}

/// What the PFCP node has to say.
pub(crate) fn note(note: Note) {
    match note.level {
        Level::Info => tracing::info!("{}", note.text),
        Level::Warning => tracing::warn!("{}", note.text),
    }
}
