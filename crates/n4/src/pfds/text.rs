//! URLs and names of hosts as PFDs have them: as they stand, with `*` for anything, or as a regular expression
//! (TS 29.251 6.4.3.8 and 6.4.3.9 leave open which, so the letters tell).

use dpi::matching::{HostPattern, PathPattern, behind_scheme};

/// Which hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Pattern(HostPattern),
    Regex(String),
}

/// Which URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Url {
    /// A host, and how the path begins; not both are absent.
    Parts(Option<HostPattern>, Option<PathPattern>),
    /// Of host and path, written together.
    Regex(String),
}

/// Letters that no URL has as it stands, or that say `.*`, or a scheme or two.
fn is_regex(text: &str) -> bool {
    text.contains(['\\', '^', '$', '[', ']', '(', ')', '{', '}', '|', '+'])
        || text.contains(".*")
        || text.contains("s?://")
}

/// `None` for what is neither.
pub(super) fn host(text: &str) -> Option<Host> {
    if is_regex(text) {
        return Some(Host::Regex(lower_case(text)));
    }
    // A dot at the end is that of the root (RFC 1034 3.1).
    text.strip_suffix('.').unwrap_or(text).parse().ok().map(Host::Pattern)
}

/// `None` for what is neither. Ports that are not usual ones cannot be said.
pub(super) fn url(text: &str) -> Option<Url> {
    if is_regex(text) {
        let regex = without_scheme(text);
        return Some(Url::Regex(literally(text).map_or(regex.clone(), |plain| format!("{regex}|{plain}"))));
    }
    let text = behind_scheme(text);
    let at = text.find('/').unwrap_or(text.len());
    let (host, path) = text.split_at_checked(at)?;
    let host = match host.strip_suffix(":80").or(host.strip_suffix(":443")).unwrap_or(host) {
        "" => None,
        host => Some(host.parse().ok().filter(|_| !host.contains(':'))?),
    };
    let path = match path.trim_end_matches('*') {
        "" | "/" => None,
        begin => Some(format!("{begin}*").parse().ok()?),
    };
    (host.is_some() || path.is_some()).then_some(Url::Parts(host, path))
}

/// Some letters of expressions stand in paths as they are (RFC 3986 3.3): a text that has none but these may be meant either way.
fn literally(text: &str) -> Option<String> {
    let is_plain = !text.contains(['\\', '^', '[', ']', '{', '}', '|'])
        && !text.contains(".*")
        && !text.contains("?://");
    is_plain.then(|| format!("^{}", literal(behind_scheme(text))))
}

impl Url {
    /// The same as an expression, for where a host is asked for beside it.
    pub(super) fn regex(&self) -> String {
        match self {
            Self::Regex(regex) => regex.clone(),
            Self::Parts(host, path) => {
                let host = host.as_ref().map_or("[^/]*".to_owned(), host_regex);
                let path = path.as_ref().map_or("/".to_owned(), |path| literal(&path.to_string()));
                format!("^{host}{path}")
            }
        }
    }
}

fn host_regex(host: &HostPattern) -> String {
    let text = host.to_string();
    match text.strip_prefix('.').filter(|name| !name.contains('*')) {
        Some(domain) => format!("([^/]*\\.)?{}", literal(domain)),
        None => literal(&text),
    }
}

/// An expression for the text itself, but for `*`, which is anything.
fn literal(text: &str) -> String {
    let mut regex = String::new();
    for letter in text.chars() {
        match letter {
            '*' => regex.push_str(".*"),
            _ if letter.is_ascii_alphanumeric() || letter == '/' || letter == '_' => regex.push(letter),
            _ => regex.extend(['\\', letter]),
        }
    }
    regex
}

/// Hosts are compared in lower case; what stands behind a backslash is no letter.
fn lower_case(regex: &str) -> String {
    let mut escaped = false;
    let mut letter = |letter: char| {
        let stays = escaped;
        escaped = !escaped && letter == '\\';
        if stays { letter } else { letter.to_ascii_lowercase() }
    };
    regex.chars().map(&mut letter).collect()
}

/// Schemes as expressions say them. Flows show none, so none is looked for.
const SCHEMES: [&str; 7] =
    ["https?://", "http(s)?://", "(http|https)://", "(https|http)://", "http[s]?://", "https://", "http://"];

fn without_scheme(regex: &str) -> String {
    let regex = regex.replace("\\/", "/").replace("\\:", ":");
    let (anchor, rest) = regex.strip_prefix('^').map_or(("", regex.as_str()), |rest| ("^", rest));
    let rest = SCHEMES.iter().find_map(|scheme| rest.strip_prefix(scheme)).map(|rest| ("^", rest));
    let (anchor, rest) = rest.unwrap_or((anchor, regex.strip_prefix('^').unwrap_or(&regex)));
    format!("{anchor}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(host: Option<&str>, path: Option<&str>) -> Option<Url> {
        Some(Url::Parts(host.map(|host| host.parse().unwrap()), path.map(|path| path.parse().unwrap())))
    }

    #[test]
    fn the_letters_tell_a_name_from_an_expression() {
        let pattern = |text: &str| Some(Host::Pattern(text.parse().unwrap()));
        let regex = |text: &str| Some(Host::Regex(text.to_owned()));
        assert_eq!(host("WWW.a.example."), pattern("www.a.example"));
        assert_eq!(host("*.a.example"), pattern("*.a.example"));
        assert_eq!(host(r"^CDN\D\.A\.example$"), regex(r"^cdn\D\.a\.example$"));
        assert_eq!(host(".*a.example"), regex(".*a.example"));
        assert_eq!((host(""), host("a b"), host("a..b"), host("a.example:443")), (None, None, None, None));
    }

    #[test]
    fn a_url_is_a_host_and_how_its_path_begins() {
        assert_eq!(url("http://a.example/b?c=d"), parts(Some("a.example"), Some("/b?c=d*")));
        assert_eq!(url("HTTPS://a.example:443/"), parts(Some("a.example"), None));
        assert_eq!(url("a.example"), parts(Some("a.example"), None));
        assert_eq!(url("/video/*"), parts(None, Some("/video/*")));
        assert_eq!((url(""), url("http://"), url("a.example:8080/b")), (None, None, None));
        let regex = |text: &str| Some(Url::Regex(text.to_owned()));
        assert_eq!(url(r"^https?:\/\/([a-z]+\.)?a\.example/b"), regex(r"^([a-z]+\.)?a\.example/b"));
        assert_eq!(url(r"a\.example/b$"), regex(r"a\.example/b$"));
        assert_eq!(url("http://.*/b"), regex("^.*/b"));
    }

    #[test]
    fn a_url_with_letters_of_expressions_is_that_url_too() {
        let regex = |text: &str| Some(Url::Regex(text.to_owned()));
        assert_eq!(url("http://w.example/Foo_(bar)"), regex(r"^w.example/Foo_(bar)|^w\.example/Foo_\(bar\)"));
        assert_eq!(url("a.example/c++/x"), regex(r"a.example/c++/x|^a\.example/c\+\+/x"));
        assert_eq!(url("a.example/(b|c)"), regex("a.example/(b|c)"));
    }

    #[test]
    fn a_url_beside_a_host_is_an_expression() {
        let regex = |text: &str| url(text).unwrap().regex();
        assert_eq!(regex("http://a.example/b?c"), r"^a\.example/b\?c.*");
        assert_eq!(regex(".a.example"), r"^([^/]*\.)?a\.example/");
        assert_eq!(regex("/b"), "^[^/]*/b.*");
    }
}
