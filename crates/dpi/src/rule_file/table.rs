//! A table of rules.

use super::Row;
use super::error::{Mistake, What};
use super::field::{Fields, KEYS, is_flag, is_list, needed};
use csv::{Position, Reader, StringRecord};

/// The rows behind the first, which names the columns; and what is wrong with that.
pub(super) fn rows(text: &str) -> (impl Iterator<Item = Row>, Vec<Mistake>) {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let (columns, mistakes) = columns(&mut reader);
    let mut lines = Lines { text: text.as_bytes(), at: 0, line: 1 };
    let mut empty = Fields::default();
    mistakes.iter().for_each(|mistake| empty.forgive(&mistake.what));
    // Of what has no columns, nothing more can be said.
    let records = reader.into_records().take(if columns.is_empty() { 0 } else { usize::MAX });
    let is_open =
        |record: &StringRecord| record.position().is_some_and(|at| ends_in_quotes(text, at.byte() as usize));
    let mut records = records.peekable();
    let rows = std::iter::from_fn(move || records.next().map(|record| (record, records.peek().is_none())));
    let rows = rows.map(move |(record, is_last)| match record {
        Ok(record) if is_last && is_open(&record) => {
            (lines.of(record.position()), Err(What::Table("a quote that is never closed".to_owned())))
        }
        Ok(record) => (lines.of(record.position()), Ok(fields((&columns, &empty), &record))),
        Err(error) => (lines.of(error.position()), Err(What::Table(reason(&error)))),
    });
    (rows, mistakes)
}

/// Whether the text behind `from`, where the last record begins, ends amid a cell in quotes, as where a file was cut off: they come in
/// pairs (RFC 4180 2), which the library does not mind.
fn ends_in_quotes(text: &str, from: usize) -> bool {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    !memchr::memchr_iter(b'"', rest).count().is_multiple_of(2)
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

/// The columns, of which some may mean nothing. What each row would lack is told once, of the first.
fn columns(reader: &mut Reader<&[u8]>) -> (Vec<Option<&'static str>>, Vec<Mistake>) {
    let names = match reader.headers() {
        Ok(names) => names,
        Err(error) => return (vec![], vec![Mistake { line: 1, what: What::Table(reason(&error)) }]),
    };
    if let Some(between) = other_separator(names) {
        let why = format!("columns are separated by commas, not by {between}");
        return (vec![], vec![Mistake { line: 1, what: What::Table(why) }]);
    }
    let known = |name: &str| {
        let plain = name.trim_start_matches('\u{feff}').to_ascii_lowercase().replace(['_', ' '], "-");
        KEYS.into_iter().find(|key| *key == plain)
    };
    let columns: Vec<_> = names.iter().map(known).collect();
    let unknown = names.iter().zip(&columns).filter(|(_, column)| column.is_none());
    let unknown = unknown.map(|(name, _)| What::Key(name.to_owned()));
    let missing =
        needed().filter(|key| !names.is_empty() && !columns.contains(&Some(key))).map(What::Missing);
    let mistakes = unknown.chain(missing).map(|what| Mistake { line: 1, what }).collect();
    (columns, mistakes)
}

/// What spreadsheets of some countries put between columns, where the first row has it and no commas.
fn other_separator(names: &StringRecord) -> Option<&'static str> {
    let only = names.get(0).filter(|_| names.len() == 1)?;
    [(';', "semicolons"), ('\t', "tabs")]
        .into_iter()
        .find_map(|(letter, between)| only.contains(letter).then_some(between))
}

/// `None` where all cells are empty, as spreadsheets leave rows.
fn fields((columns, empty): (&[Option<&'static str>], &Fields), record: &StringRecord) -> Option<Fields> {
    let mut fields = None;
    for (key, cell) in columns.iter().zip(record).filter(|(_, cell)| !cell.is_empty()) {
        let fields = fields.get_or_insert_with(|| empty.clone());
        match *key {
            None => {}
            Some(flag) if is_flag(flag) && (matches!(cell, "yes" | "1") || cell == flag) => {
                fields.take(flag, None)
            }
            // A path has no space in it, and two URLs are told to be two.
            Some(key) if is_list(key) || matches!(key, "path" | "url") => {
                cell.split_whitespace().for_each(|value| fields.take(key, Some(value)));
            }
            Some(key) => fields.take(key, Some(cell)),
        }
    }
    fields
}

fn reason(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells, and the first row has {expected_len}")
        }
        other => format!("{other:?}"),
    }
}
