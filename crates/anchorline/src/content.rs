//! Content rules as a file, and in the parts in which they go to the data plane. docs/content-rules.md describes the file.

use anyhow::Context;
use dpi::matching::Classifier;
use dpi::rule_file::{self, Mistakes, RuleFile};
use dplink::ContentPart;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// How a file says its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Lines,
    Csv,
}

impl Format {
    /// A table where the file's name ends in `.csv`.
    pub(crate) fn of(file: &Path) -> Self {
        let is_csv = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        if is_csv { Self::Csv } else { Self::Lines }
    }

    /// Reads rules and builds what is searched, so that all mistakes are found.
    pub(crate) fn read(self, text: &str) -> Result<(RuleFile, Classifier), Mistakes> {
        let rules = match self {
            Self::Lines => rule_file::read_lines(text)?,
            Self::Csv => rule_file::read_csv(text)?,
        };
        let classifier = rules.compile()?;
        Ok((rules, classifier))
    }
}

/// Rules that are right, as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleText {
    /// The same for the same rules.
    pub(crate) revision: u64,
    lines: String,
}

impl RuleText {
    /// Reads a file and finds all that is wrong with it.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        let read = Format::of(file).read(&text).with_context(|| format!("{shown} is refused"))?;
        Ok(Self::of(&read.0))
    }

    fn of(rules: &RuleFile) -> Self {
        let lines: String = rules.rules().iter().map(|rule| format!("{rule}\n")).collect();
        let mut hasher = DefaultHasher::new();
        lines.hash(&mut hasher);
        Self { revision: hasher.finish().max(1), lines }
    }

    /// As the data plane is told.
    pub(crate) fn parts(&self) -> Vec<ContentPart> {
        let mut rest = self.lines.as_str();
        let mut texts = vec![];
        while !rest.is_empty() {
            let most = (0..=ContentPart::BYTES.min(rest.len())).rev();
            let at = most.into_iter().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
            let (text, behind) = rest.split_at_checked(at).unwrap_or((rest, ""));
            texts.push(text.to_owned());
            rest = behind;
        }
        if texts.is_empty() {
            texts.push(String::new());
        }
        let (revision, parts) = (self.revision, texts.len() as u32);
        (0..).zip(texts).map(|(part, text)| ContentPart { revision, part, parts, text }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_none_is_too_long() {
        let path = "%C3".repeat(300);
        let line = |id: u32| format!("id={id} precedence=1 rating-group=1 path=/{path}\n");
        let text: String = (0..1_500).map(line).collect();
        let rules = RuleText::of(&rule_file::read_lines(&text).unwrap());
        let parts = rules.parts();
        assert!(parts.len() > 2 && parts.iter().all(|part| part.text.len() <= ContentPart::BYTES));
        assert!(
            parts.iter().zip(0..).all(|(part, at)| part.part == at && part.parts as usize == parts.len())
        );
        assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<String>(), text);
        assert_eq!(RuleText::of(&RuleFile::default()).parts().len(), 1, "no rules are told, too");
    }
}
