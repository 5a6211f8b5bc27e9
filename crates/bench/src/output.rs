//! Where a report goes.

use crate::report::Report;
use anyhow::Context;
use std::io::{ErrorKind, Write};
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

/// To standard output. A reader that has enough, as `head` soon has, is no error: what was measured is written where else it belongs.
///
/// # Errors
/// What is behind it takes nothing, such as a full disk.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    say_to(&mut std::io::stdout().lock(), text)
}

fn say_to(output: &mut impl Write, text: &str) -> anyhow::Result<()> {
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("standard output cannot be written")
        }
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_enough_is_no_error_and_a_full_disk_is() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        drop(reader);
        say_to(&mut writer, "text\n").unwrap();
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert!(say_to(&mut full, "text\n").is_err());
    }
}
