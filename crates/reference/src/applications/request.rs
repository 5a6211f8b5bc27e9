//! Requests of HTTP/1.x (RFC 9112) at the beginning of what a user says.

use super::content::{Layer, Said};

/// Methods are no longer.
const METHOD_MAX: usize = 24;
/// What servers may take for a space (RFC 9112 3).
const SPACES: [char; 5] = [' ', '\t', '\u{b}', '\u{c}', '\r'];

/// What the beginning of a stream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Said(Said),
    /// More may say it.
    More,
    /// Nothing that is known.
    Other,
}

impl Reading {
    /// What it tells of a flow: `None`, that more is needed; nothing said, where there is no more.
    pub(super) fn told(self, is_last: bool) -> Option<Said> {
        match self {
            Self::Said(said) => Some(said),
            Self::Other => Some(Said::default()),
            Self::More => is_last.then(Said::default),
        }
    }
}

/// Reads what there is; `is_last`: of no more. A request says what it asks for once the line of its host is whole, or its head.
pub(super) fn read(stream: &[u8], is_last: bool) -> Reading {
    let text = behind_empty_lines(stream);
    match method(text) {
        None if text.len() > METHOD_MAX => return Reading::Other,
        Some(false) => return Reading::Other,
        None | Some(true) => {}
    }
    let mut lines: Vec<&[u8]> = text.split(|octet| *octet == b'\n').collect();
    // Behind the last end there is no whole line.
    lines.pop();
    let mut lines = lines.into_iter().map(|line| String::from_utf8_lossy(without_return(line)).into_owned());
    let Some(first) = lines.next() else { return Reading::More };
    let Some((method, target)) = asked_for(&first) else { return Reading::Other };
    let all: Vec<String> = lines.collect();
    let fields: Vec<&String> = all.iter().take_while(|line| !line.is_empty()).collect();
    let is_whole = fields.len() < all.len();
    let (host, path) = named(&method, &target, &fields);
    match is_whole || is_last || host.is_some() {
        true => Reading::Said(Said { layer: Some(Layer::Http), host, path, is_encrypted: false }),
        false => Reading::More,
    }
}

/// Whether it begins with a method and a space; `None` where the method has not ended.
fn method(text: &[u8]) -> Option<bool> {
    let is_of_token = |octet: &u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(octet);
    let end = text.iter().take(METHOD_MAX + 1).position(|octet| !is_of_token(octet))?;
    let behind = text.get(end..).unwrap_or_default();
    let is_space = behind.first().is_some_and(|octet| SPACES.contains(&char::from(*octet)));
    Some(end > 0 && is_space && !behind.starts_with(b"\r\n"))
}

fn behind_empty_lines(text: &[u8]) -> &[u8] {
    let begin = text.iter().position(|octet| !b"\r\n".contains(octet)).unwrap_or(text.len());
    text.get(begin..).unwrap_or_default()
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Method and target (RFC 9112 3); `None` of what is no request of HTTP/1.x.
fn asked_for(line: &str) -> Option<(String, String)> {
    let (method, rest) = line.trim_matches(SPACES).split_once(SPACES)?;
    let (target, version) = rest.rsplit_once(SPACES)?;
    let target = target.trim_matches(SPACES);
    (!target.is_empty() && version.starts_with("HTTP/1.")).then(|| (method.into(), target.into()))
}

/// Host and path: of the target, where it has a host (RFC 9112 3.2.2). Of two Host fields that differ, neither.
fn named(method: &str, target: &str, fields: &[&String]) -> (Option<String>, Option<String>) {
    if let Some((_, rest)) = target.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let host = authority.split_once('@').map_or(authority, |(_, host)| host);
        return (name(host), Some(if path.is_empty() { "/".into() } else { path.into() }));
    }
    let path = target.starts_with('/').then(|| target.to_owned());
    if method == "CONNECT" {
        return (name(target), path);
    }
    let mut hosts: Vec<&str> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let Some((_, value)) = field.split_once(':').filter(|(name, _)| is_host(name)) else { continue };
        // Of a field in several lines, each of which may be empty, the host is one (RFC 9112 5.2).
        let lines = fields.iter().skip(at + 1).take_while(|line| line.starts_with([' ', '\t']));
        let mut values = std::iter::once(value).chain(lines.map(|line| line.as_str())).map(str::trim);
        hosts.push(values.find(|value| !value.is_empty()).unwrap_or_default());
    }
    hosts.dedup();
    match hosts.as_slice() {
        [host] => (name(host), path),
        _ => (None, path),
    }
}

/// Whether it is the name of the field, and perhaps spaces (RFC 9112 5.1).
fn is_host(name: &str) -> bool {
    name.trim_end().eq_ignore_ascii_case("host")
}

fn is_scheme(text: &str) -> bool {
    let is_of_it = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(is_of_it)
}

/// A host without its port and its last dot, in lower case; `None` of what is none.
pub(super) fn name(host: &str) -> Option<String> {
    let host = host.split(':').next()?;
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_of_label = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let is_label = |label: &str| !label.is_empty() && label.chars().all(is_of_label);
    let is_name = host.len() <= 253 && host.split('.').all(is_label);
    is_name.then(|| host.to_ascii_lowercase())
}

/// The request that a segment begins with which stands for itself.
pub(super) fn whole(payload: &[u8]) -> Option<Said> {
    match method(behind_empty_lines(payload)).map(|_| read(payload, false)) {
        Some(Reading::Said(said)) => Some(said),
        _ => None,
    }
}
