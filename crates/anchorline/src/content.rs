//! Content rules as a file, and in the parts in which they go to the data plane. docs/content-rules.md describes the file.

use anyhow::Context;
use dpi::matching::{Classifier, Rule};
use dpi::rule_file::{self, Category, Mistakes, RuleFile};
use dplink::ContentPart;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

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
        match self {
            Self::Lines => rule_file::check_lines(text),
            Self::Csv => rule_file::check_csv(text),
        }
    }
}

/// `[content]`: where rules come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sources {
    pub(crate) rules: PathBuf,
    pub(crate) categories: Vec<(Category, PathBuf)>,
    /// Whose answers to lookups name servers for all users.
    pub(crate) resolvers: Vec<IpAddr>,
    /// Flows of a worker looked at at once.
    pub(crate) inspections: usize,
    /// Seconds that silent connections of a known application are remembered.
    pub(crate) connection_s: u64,
    /// Connections of a worker whose requests have had a field.
    pub(crate) enriched_connections: usize,
}

impl Sources {
    /// All files there are.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.rules.as_path()).chain(self.categories.iter().map(|(_, file)| file.as_path()))
    }

    /// Reads all and finds what is wrong with it; `rules` stands for the file of rules.
    pub(crate) fn read_whole(&self, rules: &Path, format: Format) -> anyhow::Result<Whole> {
        let shown = rules.display();
        // Somebody may ask about a file that is not the configuration's.
        let text = match rules == self.rules {
            true => read(rules).context("content.rules")?,
            false => read(rules)?,
        };
        let (file, mut classifier) = format.read(&text).with_context(|| format!("{shown} is refused"))?;
        let mut all = file.rules().to_vec();
        for ((category, file), place) in self.categories.iter().zip(0..) {
            let refused = || format!("{} is refused", file.display());
            let key = || format!("the file of [[content.category]] {:?}", category.name);
            let text = read(file).with_context(key)?;
            all.extend(category.rules(place, &text).with_context(refused)?);
        }
        if !self.categories.is_empty() {
            let together =
                |_| anyhow::anyhow!("the rules and categories together are more than there may be");
            classifier = dpi::matching::compile(&all).map_err(together)?;
        }
        Ok(Whole { rules: all, lines: file.lines().to_vec(), classifier })
    }

    /// Reads all and finds what is wrong with it.
    pub(crate) fn read(&self) -> anyhow::Result<Whole> {
        self.read_whole(&self.rules, Format::of(&self.rules))
    }
}

/// What all files say, which is right.
pub(crate) struct Whole {
    /// Those of the file, then those of categories.
    pub(crate) rules: Vec<Rule>,
    /// Of each rule of the file, from 1.
    pub(crate) lines: Vec<u64>,
    pub(crate) classifier: Classifier,
}

impl Whole {
    pub(crate) fn text(&self) -> RuleText {
        RuleText::of(&self.rules)
    }
}

/// The text of a file. One without an octet is what many programs leave for a moment before they write: nobody means it.
fn read(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let octets = std::fs::read(file).with_context(|| format!("cannot read {shown}"))?;
    anyhow::ensure!(!octets.is_empty(), "{shown} is empty: write a comment into it if it is to have nothing");
    String::from_utf8(octets).map_err(|error| {
        let (before, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = before.iter().filter(|octet| **octet == b'\n').count() + 1;
        anyhow::anyhow!("{shown} is refused: line {line}: it is not UTF-8; save the file as UTF-8")
    })
}

/// Rules that are right, as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleText {
    /// The same for the same rules, and never 0: the upper half of those of the file, the lower half of those made of PFDs,
    /// 0 where there are none.
    pub(crate) revision: u64,
    /// Those that the file's rules lead to.
    applications: BTreeSet<Box<str>>,
    lines: String,
}

impl Default for RuleText {
    /// No rules.
    fn default() -> Self {
        Self { revision: 1 << 32, applications: BTreeSet::new(), lines: String::new() }
    }
}

impl RuleText {
    fn of(rules: &[Rule]) -> Self {
        let lines = lines(rules);
        // 1 is no rules at all.
        let applications = rules.iter().filter_map(|rule| rule.application.clone()).collect();
        Self { revision: u64::from(digest(&lines).max(2)) << 32, applications, lines }
    }

    /// These and others that are made of PFDs.
    pub(crate) fn with(&self, made: &[Rule]) -> Self {
        if made.is_empty() {
            return self.clone();
        }
        let made = lines(made);
        let revision = self.revision | u64::from(digest(&made).max(1));
        let applications = self.applications.clone();
        Self { revision, applications, lines: format!("{}{made}", self.lines) }
    }

    /// Applications that PDRs may name, beside those of PFDs.
    pub(crate) const fn applications(&self) -> &BTreeSet<Box<str>> {
        &self.applications
    }

    /// Whether the rules of a revision are those of this file, whatever PFDs add.
    pub(crate) const fn is_of_file(&self, revision: u64) -> bool {
        revision >> 32 == self.revision >> 32
    }

    /// Whether a data plane that has the rules of a revision has these.
    pub(crate) fn is_in_force(&self, revision: u64) -> bool {
        revision == self.revision || (revision == 0 && *self == Self::default())
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

fn lines(rules: &[Rule]) -> String {
    rules.iter().map(|rule| format!("{rule}\n")).collect()
}

fn digest(lines: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_none_is_too_long() {
        let path = "%C3".repeat(300);
        let line = |id: u32| format!("id={id} precedence=1 rating-group=1 path=/{path}\n");
        let text: String = (0..1_500).map(line).collect();
        let rules = RuleText::of(rule_file::read_lines(&text).unwrap().rules());
        let parts = rules.parts();
        assert!(parts.len() > 2 && parts.iter().all(|part| part.text.len() <= ContentPart::BYTES));
        assert!(
            parts.iter().zip(0..).all(|(part, at)| part.part == at && part.parts as usize == parts.len())
        );
        assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<String>(), text);
        assert_eq!(RuleText::of(&[]).parts().len(), 1, "no rules are told, too");
    }

    #[test]
    fn the_applications_of_the_file_are_known_by_name() {
        let text = "id=1 precedence=1 rating-group=1 application=video host=a.example\nid=2 precedence=2 rating-group=1 any\n";
        let rules = RuleText::of(rule_file::read_lines(text).unwrap().rules());
        assert_eq!(*rules.applications(), BTreeSet::from(["video".into()]));
        assert!(RuleText::default().applications().is_empty());
    }

    #[test]
    fn rules_of_pfds_come_behind_those_of_the_file_and_change_half_the_revision() {
        let read = |text: &str| RuleText::of(rule_file::read_lines(text).unwrap().rules());
        let made = |host: &str| {
            let line =
                format!("id=4000000000 precedence=4000000002 rating-group=0 application=a host={host}");
            rule_file::read_lines(&line).unwrap().rules().to_vec()
        };
        let file = read("id=1 precedence=1 rating-group=1 any\n");
        let (one, other) = (file.with(&made("a.example")), file.with(&made("b.example")));
        assert!(one.revision != other.revision && one.revision != file.revision);
        assert!(file.is_of_file(one.revision) && !RuleText::default().is_of_file(one.revision));
        assert_eq!(file.with(&[]), file);
        let whole: String = one.parts().into_iter().map(|part| part.text).collect();
        assert!(rule_file::read_lines(&whole).unwrap().compile().is_ok_and(|rules| rules.shape().rules == 2));
        // A data plane without rules needs not be told of none; one that has some does.
        assert!(RuleText::default().is_in_force(0) && !file.is_in_force(0));
        assert!(!RuleText::default().is_in_force(one.revision));
        assert!(!RuleText::default().with(&made("a.example")).is_in_force(0));
        // What is reserved for them is no file's.
        assert!(Format::Lines.read(&whole).unwrap_err().to_string().contains("line 2: id \"4000000000\""));
    }

    #[test]
    fn categories_stand_beside_the_rules_and_are_refused_by_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let category = Category { name: "games".to_owned(), precedence: 500, rating_group: 0 };
        let hosts = write("games.hosts", "games.example\nplay.example\n");
        let rules = write("content.rules", "id=1 precedence=1 rating-group=1 any\n");
        let sources = Sources { rules, categories: vec![(category, hosts)], ..Sources::default() };
        let read = sources.read().unwrap().text();
        let lines = read.lines.replace('"', "");
        let line = "id=4100000000 precedence=500 rating-group=0 application=games host=.games.example,.play.example\n";
        assert!(lines.ends_with(line), "{lines}");
        write("games.hosts", "games.example\nnot a host\n");
        let error = format!("{:#}", sources.read().err().unwrap());
        assert!(error.contains("games.hosts is refused: line 2: host \"not a host\""), "{error}");
        let error = || format!("{:#}", sources.read().err().unwrap());
        // As an editor leaves it for a moment.
        write("games.hosts", "");
        assert!(error().ends_with("games.hosts is empty: write a comment into it if it is to have nothing"));
        write("content.rules", "");
        assert!(error().contains("content.rules is empty: "), "{}", error());
        write("content.rules", "id=4100000000 precedence=1 rating-group=1 any\n");
        assert!(error().contains("content.rules is refused: line 1: id"), "{}", error());
    }

    #[test]
    fn a_line_that_is_not_utf_8_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("content.rules");
        let text =
            [&b"# Gl\xc3\xbcck\nid=1 precedence=1 rating-group=1 any\r\n# Gl"[..], b"\xfcck\n"].concat();
        std::fs::write(&rules, text).unwrap();
        let error = format!("{:#}", Sources { rules, ..Sources::default() }.read().err().unwrap());
        assert!(
            error.ends_with("content.rules is refused: line 3: it is not UTF-8; save the file as UTF-8"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let (rules, hosts) = (folder.path().join("content.rules"), folder.path().join("games.hosts"));
        let category = Category { name: "games".to_owned(), precedence: 500, rating_group: 0 };
        let categories = vec![(category, hosts.clone())];
        let sources = Sources { rules: rules.clone(), categories, ..Sources::default() };
        let said = |asked: &Path| format!("{:#}", sources.read_whole(asked, Format::Lines).err().unwrap());
        let absent = |file: &Path| format!("cannot read {}: No such file", file.display());
        assert!(said(&rules).starts_with(&format!("content.rules: {}", absent(&rules))), "{}", said(&rules));
        // Of one that is asked about no key tells.
        let other = folder.path().join("other.rules");
        assert!(said(&other).starts_with(&absent(&other)), "{}", said(&other));
        std::fs::write(&rules, "id=1 precedence=1 rating-group=1 any\n").unwrap();
        let expected = format!("the file of [[content.category]] \"games\": {}", absent(&hosts));
        assert!(said(&rules).starts_with(&expected), "{}", said(&rules));
    }
}
