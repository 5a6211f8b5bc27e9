//! Where a report goes.

use crate::report::Report;
use anyhow::Context;
use std::io::Write;
use std::path::Path;

/// Says the result: as JSON where a file is named ("-" is standard output), as a table otherwise, and as a page in a
/// folder.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn give(report: &Report, json: Option<&Path>, folder: Option<&Path>) -> anyhow::Result<()> {
    match json {
        Some(path) if path == Path::new("-") => say(&format!("{}\n", serde_json::to_string_pretty(report)?))?,
        Some(path) => write(path, &format!("{}\n", serde_json::to_string_pretty(report)?))?,
        None => say(&report.text())?,
    }
    match folder {
        Some(folder) => into(folder, report),
        None => Ok(()),
    }
}

/// To standard output, which may have been closed.
fn say(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("standard output cannot be written")
}

/// The result joins those in a folder.
fn into(folder: &Path, report: &Report) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let file = folder.join(format!("{}.json", report.name()));
    write(&file, &format!("{}\n", serde_json::to_string_pretty(report)?))?;
    crate::page::write(folder, vec![])
}

/// Writes a file, and names it where that fails.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
