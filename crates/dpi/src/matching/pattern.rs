//! Patterns of hosts and paths.

use super::limits::PATTERN_BYTES;
use crate::extract::NAME_MAX;
use memchr::memmem;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Which hosts. In lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// `a.example`: this host.
    Exact(Box<str>),
    /// `*.a.example`: all hosts below this domain.
    Below(Box<str>),
    /// `.a.example`: the host of this name, and all below it.
    Domain(Box<str>),
    /// `img*.a.example`: hosts of this form; `*` is any number of any characters, dots included.
    Glob(Box<str>),
}

/// Which paths, query included. Letters count as they stand, and `%41` is not `A`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// `/a`: this path.
    Exact(Box<str>),
    /// `/a*`: paths that begin so.
    Prefix(Box<str>),
    /// `/a*b`, `*.mp4`: paths of this form; `*` is any number of any characters.
    Glob(Box<str>),
}

/// Why a pattern is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing.
    #[error("it is empty")]
    Empty,
    /// Longer than [`PATTERN_BYTES`], or a name than [`NAME_MAX`].
    #[error("it is longer than {0} bytes")]
    Long(usize),
    /// Something that no host has.
    #[error("'{0}' is in no host name")]
    Character(char),
    /// A letter of other scripts, which names have in another form (RFC 5890 2.3.2.1).
    #[error(
        "'{0}' is in no host name as clients say it; names of other letters are written with xn-- (punycode)"
    )]
    Letter(char),
    /// A port, which is no part of what clients say is the host.
    #[error("a host stands without its port; say port=... beside it")]
    Port,
    /// Two dots.
    #[error("a label of the name is empty")]
    Label,
    /// The dot of the root, without which names are compared.
    #[error("a name stands without its last dot")]
    LastDot,
    /// Something no request has.
    #[error("a path begins with / or *, and is of printable ASCII without spaces")]
    Path,
}

impl HostPattern {
    /// Whether a host, in lower case, is one of these.
    pub fn matches(&self, host: &[u8]) -> bool {
        match self {
            Self::Exact(name) => host == name.as_bytes(),
            Self::Below(domain) => is_below(host, domain.as_bytes()),
            Self::Domain(domain) => host == domain.as_bytes() || is_below(host, domain.as_bytes()),
            Self::Glob(form) => has_form(host, form.as_bytes()),
        }
    }

    /// Whether IPv6 addresses can be of it, which alone have colons.
    fn is_of_addresses(&self) -> bool {
        match self {
            Self::Exact(name) | Self::Domain(name) => name.parse::<Ipv6Addr>().is_ok(),
            Self::Below(_) => false,
            Self::Glob(form) => form.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.*".contains(&byte)),
        }
    }
}

fn is_below(host: &[u8], domain: &[u8]) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with(b"."))
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let text = text.to_ascii_lowercase();
        if text.len() > NAME_MAX {
            return Err(PatternError::Long(NAME_MAX));
        }
        if has_port(&text) {
            return Err(PatternError::Port);
        }
        let text = in_brackets(&text).unwrap_or(&text);
        let (make, name): (fn(Box<str>) -> Self, &str) =
            match (text.strip_prefix("*."), text.strip_prefix('.')) {
                (Some(domain), _) if !domain.contains('*') => (Self::Below, domain),
                (_, Some(domain)) if !domain.contains('*') => (Self::Domain, domain),
                _ if text.contains('*') => (Self::Glob, text),
                _ => (Self::Exact, text),
            };
        check_name(name)?;
        let pattern = make(name.into());
        let is_possible = !name.contains(':') || pattern.is_of_addresses();
        is_possible.then_some(pattern).ok_or(PatternError::Character(':'))
    }
}

/// Whether a host says its port: `a.example:443`, `[2001:db8::1]:443`.
fn has_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        is_number && (host.ends_with(']') || !host.contains(':'))
    })
}

/// An address as URLs write it (RFC 3986 3.2.2). Of flows it is known without the brackets.
fn in_brackets(text: &str) -> Option<&str> {
    let address = text.strip_prefix('[')?.strip_suffix(']')?;
    address.parse::<Ipv6Addr>().is_ok().then_some(address)
}

/// What follows `http://` or `https://` in a URL, or all of it. Flows show no scheme, so none is looked for.
pub fn behind_scheme(url: &str) -> &str {
    let is_known = |scheme: &str| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    url.split_once("://").filter(|(scheme, _)| is_known(scheme)).map_or(url, |(_, rest)| rest)
}

fn check_name(name: &str) -> Result<(), PatternError> {
    if name.is_empty() {
        return Err(PatternError::Empty);
    }
    let allowed = |letter: &char| letter.is_ascii_alphanumeric() || "-_.*:".contains(*letter);
    if let Some(wrong) = name.chars().find(|letter| !allowed(letter)) {
        let why = if wrong.is_ascii() { PatternError::Character } else { PatternError::Letter };
        return Err(why(wrong));
    }
    let are_labels = |name: &str| name.split('.').all(|label| !label.is_empty());
    match name.strip_suffix('.') {
        Some(rest) if are_labels(rest) => Err(PatternError::LastDot),
        _ if are_labels(name) => Ok(()),
        _ => Err(PatternError::Label),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) | Self::Glob(name) => f.write_str(name),
            Self::Below(domain) => write!(f, "*.{domain}"),
            Self::Domain(domain) => write!(f, ".{domain}"),
        }
    }
}

impl PathPattern {
    /// Whether a path is one of these.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Exact(text) => path == text.as_bytes(),
            Self::Prefix(text) => path.starts_with(text.as_bytes()),
            Self::Glob(form) => has_form(path, form.as_bytes()),
        }
    }

    /// With what all of these paths begin.
    pub(super) fn prefix(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
            Self::Glob(form) => form.split('*').next().unwrap_or_default(),
        }
    }

    /// The longest run of characters that all of these paths have in them.
    pub(super) fn literal(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
            Self::Glob(form) => form.split('*').max_by_key(|piece| piece.len()).unwrap_or_default(),
        }
    }
}

impl FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > PATTERN_BYTES {
            return Err(PatternError::Long(PATTERN_BYTES));
        }
        if !text.starts_with(['/', '*']) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(PatternError::Path);
        }
        Ok(match text.strip_suffix('*') {
            Some(prefix) if !prefix.contains('*') => Self::Prefix(prefix.into()),
            None if !text.contains('*') => Self::Exact(text.into()),
            _ => Self::Glob(text.into()),
        })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) | Self::Glob(text) => f.write_str(text),
            Self::Prefix(text) => write!(f, "{text}*"),
        }
    }
}

/// Whether a text is of a form in which `*` is anything. Each piece between is taken where it stands first, which leaves
/// the most room for the others.
fn has_form(text: &[u8], form: &[u8]) -> bool {
    let mut pieces = form.split(|byte| *byte == b'*');
    let first = pieces.next().unwrap_or_default();
    let Some(last) = pieces.next_back() else { return text == form };
    let rest = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    let Some(mut rest) = rest else { return false };
    pieces.all(|piece| match memmem::find(rest, piece) {
        Some(at) => {
            rest = rest.get(at + piece.len()..).unwrap_or_default();
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow way: character by character.
    pub(crate) fn slow_form(text: &[u8], form: &[u8]) -> bool {
        match form.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|at| slow_form(&text[at..], rest)),
            Some((byte, rest)) => text.first() == Some(byte) && slow_form(&text[1..], rest),
        }
    }

    proptest! {
        #[test]
        fn forms_are_found_as_the_slow_way_finds_them(text in "[ab]{0,10}", form in "[ab*]{0,7}") {
            prop_assert_eq!(has_form(text.as_bytes(), form.as_bytes()), slow_form(text.as_bytes(), form.as_bytes()));
        }

        #[test]
        fn patterns_read_as_they_are_written(text in "[*./]?[ab*./-]{1,9}") {
            if let Ok(pattern) = text.parse::<HostPattern>() {
                prop_assert_eq!(pattern.to_string(), text.clone());
            }
            if let Ok(pattern) = text.parse::<PathPattern>() {
                prop_assert_eq!(pattern.to_string(), text);
            }
        }
    }

    #[test]
    fn hosts_match_by_label() {
        let matching = |pattern: &str| {
            let pattern: HostPattern = pattern.parse().unwrap();
            let hosts = ["a.example", "www.a.example", "xa.example", "b.example"];
            hosts.map(|host| u8::from(pattern.matches(host.as_bytes())))
        };
        assert_eq!(matching("A.example"), [1, 0, 0, 0]);
        assert_eq!(matching("*.a.example"), [0, 1, 0, 0]);
        assert_eq!(matching(".a.example"), [1, 1, 0, 0]);
        assert_eq!(matching("*a.example"), [1, 1, 1, 0]);
        assert_eq!(matching("*"), [1, 1, 1, 1]);
    }

    /// What clients say is the host has lost its port and its brackets when it is compared.
    #[test]
    fn colons_are_those_of_addresses() {
        let read = |text: &str| text.parse::<HostPattern>();
        for (text, host) in [
            ("2001:DB8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            (".2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
            ("2001:db8:*", "2001:db8:7::1"),
            ("2001:*", "2001:db8:7::1"),
        ] {
            assert!(read(text).unwrap().matches(host.as_bytes()), "{text}");
        }
        for text in
            ["a.example:443", "*.a.example:8080", "192.0.2.1:80", "[2001:db8::1]:80", "*:443", "dead:1"]
        {
            assert_eq!(read(text), Err(PatternError::Port), "{text}");
        }
        for text in ["a.example:", "a.example:*", "ftp:", "cdn*:a", "*.2001:db8::1", "1:2:3", "2001:db8::x"] {
            assert_eq!(read(text), Err(PatternError::Character(':')), "{text}");
        }
        assert_eq!(read("[a.example]"), Err(PatternError::Character('[')));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_the_reason() {
        let host = |text: &str| text.parse::<HostPattern>().unwrap_err();
        assert_eq!(host(""), PatternError::Empty);
        assert_eq!(host("."), PatternError::Empty);
        assert_eq!(host("a..b"), PatternError::Label);
        assert_eq!(host("a.example."), PatternError::LastDot);
        assert_eq!((host("a.."), host("..")), (PatternError::Label, PatternError::Label));
        assert_eq!(host("münchen.example"), PatternError::Letter('ü'));
        assert_eq!(host("a/b"), PatternError::Character('/'));
        assert_eq!(host(&"a".repeat(254)), PatternError::Long(253));
        let path = |text: &str| text.parse::<PathPattern>().unwrap_err();
        assert_eq!(
            (path(""), path("a"), path("/a b")),
            (PatternError::Empty, PatternError::Path, PatternError::Path)
        );
        assert_eq!(path(&"/".repeat(1_025)), PatternError::Long(1_024));
    }
}
