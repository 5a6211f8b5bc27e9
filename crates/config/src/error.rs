//! What is wrong with a configuration, in one line an operator can act on.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use toml::Spanned;

/// Where and what: `upf.toml, line 12: mtu = 9: an MTU is 576 to 9,600 bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    file: Option<PathBuf>,
    line: Option<usize>,
    /// The line itself: key and value.
    entry: String,
    message: String,
}

impl ConfigError {
    pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        let message = format!("cannot be read: {error}");
        Self { file: Some(path.to_owned()), line: None, entry: String::new(), message }
    }

    pub(crate) fn not_text(error: &FromUtf8Error) -> Self {
        // The same as the file up to there.
        let shown = String::from_utf8_lossy(error.as_bytes());
        let at = error.utf8_error().valid_up_to();
        Self::at(&shown, Some(at..at), "is not in UTF-8: save the file in it".to_owned())
    }

    /// About the entry that `span` of `text` lies in.
    pub(crate) fn at(text: &str, span: Option<Range<usize>>, message: String) -> Self {
        let line = span.map(|span| line_of(text, span.start));
        let entry = line.and_then(|line| text.lines().nth(line.saturating_sub(1)));
        Self { file: None, line, entry: entry.unwrap_or_default().trim().to_owned(), message }
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.file = Some(path.to_owned());
        self
    }

    /// The line it is about, counted from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display())?,
            None => write!(f, "configuration")?,
        }
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if !self.entry.is_empty() {
            write!(f, ": {}", self.entry)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Values that are fine alone but not together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    span: Option<Range<usize>>,
    message: String,
}

impl Refusal {
    /// Blames one value.
    pub fn of<T>(value: &Spanned<T>, message: impl Into<String>) -> Self {
        Self { span: Some(value.span()), message: message.into() }
    }

    /// Blames something that is not there.
    pub fn absent(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into() }
    }

    pub(crate) fn in_text(self, text: &str) -> ConfigError {
        ConfigError::at(text, self.span, self.message)
    }
}
