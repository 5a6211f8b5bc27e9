//! A table of rules.

use super::Row;
use super::error::{Mistake, Mistakes, What};
use super::field::{Fields, KEYS, is_flag};
use csv::{Position, Reader, StringRecord};

/// The rows behind the first, which names the columns.
pub(super) fn rows(text: &str) -> Result<impl Iterator<Item = Row>, Mistakes> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let columns = columns(&mut reader).map_err(|what| Mistakes::of([Mistake { line: 1, what }]))?;
    let mut lines = Lines { text: text.as_bytes(), at: 0, line: 1 };
    Ok(reader.into_records().map(move |record| match record {
        Ok(record) => (lines.of(record.position()), fields(&columns, &record)),
        Err(error) => (lines.of(error.position()), Err(What::Table(reason(&error)))),
    }))
}

/// Lines of records. The library's own are one too low behind line ends of two bytes, and behind empty lines.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    /// Records come in order, so all text is counted once.
    fn of(&mut self, position: Option<&Position>) -> u64 {
        let begin = position.map_or(self.at, |position| position.byte() as usize);
        let empty = self
            .text
            .get(begin..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let begin = begin + empty.count();
        let passed = self.text.get(self.at..begin).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.at = self.at.max(begin);
        self.line
    }
}

fn columns(reader: &mut Reader<&[u8]>) -> Result<Vec<&'static str>, What> {
    let names = reader.headers().map_err(|error| What::Table(reason(&error)))?;
    let known = |name: &str| {
        let plain = name.trim_start_matches('\u{feff}').to_ascii_lowercase().replace(['_', ' '], "-");
        KEYS.into_iter().find(|key| *key == plain).ok_or_else(|| What::Key(name.to_owned()))
    };
    names.iter().map(known).collect()
}

/// `None` where all cells are empty, as spreadsheets leave rows.
fn fields(columns: &[&'static str], record: &StringRecord) -> Result<Option<Fields>, What> {
    let mut fields = None;
    for (key, cell) in columns.iter().zip(record).filter(|(_, cell)| !cell.is_empty()) {
        let fields = fields.get_or_insert_with(Fields::default);
        match *key {
            "host-regex" | "url-regex" => fields.take(key, cell)?,
            flag if is_flag(flag) && !matches!(cell, "yes" | "1") && cell != flag => {
                return Err(What::Key(format!("{key}={cell}")));
            }
            _ => cell.split_whitespace().try_for_each(|value| fields.take(key, value))?,
        }
    }
    Ok(fields)
}

fn reason(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells, and the first row has {expected_len}")
        }
        other => format!("{other:?}"),
    }
}
