//! Literals that a text must have for rules to match it, found all at once.

use super::lead::List;
use aho_corasick::{AhoCorasick, MatchKind};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassBytesRange, Hir, HirKind};

/// Shorter literals of regular expressions are in every other text.
const LITERAL_MIN: usize = 3;
/// Distinct literals of one text whose rules are tried. Usual texts have a few; this bounds what others cost.
const TRIES_MAX: u32 = 32;
const REMEMBERED: usize = 64;

/// Literals and the rules of each.
#[derive(Debug, Default)]
pub(super) struct Literals {
    /// `None`: there are none.
    found_by: Option<AhoCorasick>,
    rules: Vec<List>,
}

/// How many literals may still be tried in one look-up.
pub(super) struct Tries(u32);

impl Tries {
    pub(super) const fn new() -> Self {
        Self(TRIES_MAX)
    }
}

/// Literals that were tried: of those that share a place, the last. So one may be tried again, which costs time alone.
struct Tried([u32; REMEMBERED]);

impl Tried {
    /// Whether a literal is new.
    fn insert(&mut self, literal: u32) -> bool {
        let place = self.0.get_mut(literal as usize % REMEMBERED);
        place.is_some_and(|place| std::mem::replace(place, literal) != literal)
    }
}

impl Literals {
    /// Of literals, each once, none of them empty.
    ///
    /// # Errors
    /// The library's: too many.
    pub(super) fn new(literals: Vec<(Box<str>, List)>) -> Result<Self, String> {
        if literals.is_empty() {
            return Ok(Self::default());
        }
        let (texts, rules): (Vec<_>, Vec<_>) = literals.into_iter().unzip();
        let texts = texts.iter().map(|text| &**text);
        let found_by = AhoCorasick::builder().match_kind(MatchKind::Standard).build(texts);
        Ok(Self { found_by: Some(found_by.map_err(|error| error.to_string())?), rules })
    }

    /// Calls `found` with the rules of the literals of a text.
    pub(super) fn search(&self, text: &[u8], tries: &mut Tries, mut found: impl FnMut(List)) {
        let Some(found_by) = &self.found_by else { return };
        let Ok(matches) = found_by.try_find_overlapping_iter(text) else { return };
        let mut tried = Tried([u32::MAX; REMEMBERED]);
        for literal in matches.map(|one| one.pattern().as_u32()).filter(|literal| tried.insert(*literal)) {
            if tries.0 == 0 {
                return;
            }
            tries.0 -= 1;
            if let Some(rules) = self.rules.get(literal as usize) {
                found(*rules);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.found_by.as_ref().map_or(0, AhoCorasick::memory_usage)
            + self.rules.capacity() * size_of::<List>()
    }
}

/// The longest literal that every text has in which a regular expression is found, if that is of any use.
pub(super) fn of_regex(expression: &str) -> Option<String> {
    useful(longest(&parsed(expression)?))
}

/// A capital that every text has in which a regular expression is found. One that is given in both cases is none.
pub(super) fn capital_of_regex(expression: &str) -> Option<char> {
    capital(&parsed(expression)?).map(char::from)
}

fn parsed(expression: &str) -> Option<Hir> {
    ParserBuilder::new().unicode(false).utf8(false).build().parse(expression).ok()
}

/// The same of an expression that is found in host and path, written together: of a literal across both, what is in the
/// path, which begins with the first `/`.
pub(super) fn of_url_regex(expression: &str) -> Option<String> {
    let literal = of_regex(expression)?;
    match literal.find('/') {
        Some(at) => useful(literal.as_bytes().get(at..)?),
        None => Some(literal),
    }
}

fn useful(literal: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(literal).ok()?;
    (text.len() >= LITERAL_MIN).then(|| text.to_owned())
}

fn longest(hir: &Hir) -> &[u8] {
    match hir.kind() {
        HirKind::Literal(literal) => &literal.0,
        HirKind::Capture(capture) => longest(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => longest(&repetition.sub),
        HirKind::Concat(parts) => {
            parts.iter().map(longest).max_by_key(|literal| literal.len()).unwrap_or_default()
        }
        _ => &[],
    }
}

/// One of the capitals that are needed; none where an alternative needs none.
fn capital(hir: &Hir) -> Option<u8> {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().copied().find(u8::is_ascii_uppercase),
        HirKind::Class(Class::Bytes(class)) => {
            let are_capitals =
                |range: &ClassBytesRange| [range.start(), range.end()].iter().all(u8::is_ascii_uppercase);
            class
                .ranges()
                .iter()
                .all(are_capitals)
                .then(|| class.ranges().first())?
                .map(ClassBytesRange::start)
        }
        HirKind::Capture(capture) => capital(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => capital(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().find_map(capital),
        HirKind::Alternation(parts) => {
            let capitals: Option<Vec<u8>> = parts.iter().map(capital).collect();
            capitals?.first().copied()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_of_expressions_are_those_no_match_is_without() {
        for (expression, letter) in [
            (r"^Video\.example$", Some('V')),
            ("^(Aa|bB)c", Some('A')),
            ("[A-Z]{2}[0-9]", Some('A')),
            (r"(a\x42)+", Some('B')),
            ("(Aa|bb)c", None),
            ("(WWW)?a|[A-Za-z]b|[^A-Z]", None),
            (r"^\S\W\D[[:alpha:]]$", None),
            ("(?i)Abc", None),
            ("(A", None),
        ] {
            assert_eq!(capital_of_regex(expression), letter, "{expression}");
        }
    }

    #[test]
    fn literals_of_expressions_are_those_no_match_is_without() {
        for (expression, literal) in [
            (r"^cdn[0-9]+\.video\.example$", Some(".video.example")),
            ("(abc)+x?", Some("abc")),
            ("(abc)*x", None),
            ("abc|abd", None),
            ("(?i)abc", None),
            ("ab", None),
        ] {
            assert_eq!(of_regex(expression).as_deref(), literal, "{expression}");
        }
        assert_eq!(of_url_regex(r"^a\.example/path.*").as_deref(), Some("/path"));
        assert_eq!(of_url_regex(r"^a\.example/").as_deref(), None);
    }

    #[test]
    fn each_literal_is_tried_once_and_many_are_not() {
        let literal = |number: u32| (format!("x{number:03}").into(), List { from: number, count: 1 });
        let literals = Literals::new((0..200).map(literal).collect()).unwrap();
        let tried = |text: &str| {
            let mut found = vec![];
            literals.search(text.as_bytes(), &mut Tries::new(), |list| found.push(list.from));
            found
        };
        assert_eq!(tried(&"x007x008".repeat(100)), [7, 8]);
        let all: String = (0..200).map(|number| format!("x{number:03}")).collect();
        assert_eq!(tried(&all), (0..32).collect::<Vec<_>>());
    }
}
