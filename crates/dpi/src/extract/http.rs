//! HTTP/1.x requests in the clear (RFC 9112), and the preface of HTTP/2 without TLS (RFC 9113 3.4).

use super::name;
use super::{BYTES_MAX, Look, Seen, Unknown};
use memchr::memchr;

/// The field that names the host.
const HOST: &[u8] = b"host";

/// Sent first by clients that know before that a server speaks HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The longest method that is one, of any name: servers answer those they do not know, too (RFC 9110 9.1, 15.6.2).
const METHOD_MAX: usize = 24;

/// What a request says. Header fields are those that came before the host was known, or with it: enough is known then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The target as it stands in the request line.
    pub target: &'a [u8],
    /// The host without port: of the target where it has one, else of the Host field. `None` also where there are two
    /// that differ, which servers refuse (RFC 9112 3.2).
    pub host: Option<&'a [u8]>,
    /// User-Agent.
    pub user_agent: Option<&'a [u8]>,
    /// Referer.
    pub referer: Option<&'a [u8]>,
    /// Content-Type.
    pub content_type: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// Path and query: the target without scheme and host; `None` where a target is none, as that of CONNECT.
    pub fn path(&self) -> Option<&'a [u8]> {
        match authority(self.target) {
            Some((_, b"")) => Some(b"/"),
            Some((_, path)) => Some(path),
            None => Some(self.target).filter(|target| target.starts_with(b"/")),
        }
    }
}

/// Whether a stream that begins so can be HTTP, by its first bytes.
pub(super) fn can_begin(bytes: &[u8]) -> bool {
    let bytes = behind_empty_lines(bytes);
    has_method(bytes).unwrap_or(bytes.len() <= METHOD_MAX)
}

/// Whether a method stands at the beginning, with the space behind it; `None` where it has not ended yet, or is too long.
fn has_method(bytes: &[u8]) -> Option<bool> {
    let end = bytes.iter().take(METHOD_MAX + 1).position(|byte| !is_of_token(*byte))?;
    // Many a chunk of a body begins with its size, and a line end behind it (RFC 9112 7.1).
    let is_line = bytes.get(end..).is_some_and(|behind| behind.starts_with(b"\r\n"));
    Some(end > 0 && bytes.get(end).is_some_and(|byte| is_space(*byte)) && !is_line)
}

/// What servers may take for the space between the parts of a request's line (RFC 9112 3): vertical tabs and form feeds, too.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r')
}

/// Without spaces around it.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let begin = bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_space(*byte)).map_or(begin, |last| last + 1);
    bytes.get(begin..end).unwrap_or_default()
}

/// What a method is made of (RFC 9110 5.6.2).
const fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

/// Servers pass empty lines before a request over (RFC 9112 2.2).
fn behind_empty_lines(bytes: &[u8]) -> &[u8] {
    let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    bytes.get(begin..).unwrap_or_default()
}

/// Looks at the beginning of a stream; `last`: there will be no more of it.
pub(super) fn look(bytes: &[u8], last: bool) -> Look<'_> {
    let bytes = behind_empty_lines(bytes);
    if bytes.starts_with(PREFACE) {
        return Look::Seen(Seen::Http2);
    }
    if PREFACE.starts_with(bytes) {
        return Look::More;
    }
    let mut lines = Lines(bytes);
    let Some(line) = lines.next() else { return Look::More };
    let Some(mut request) = request_line(line) else { return Look::Unknown(Unknown::Malformed) };
    let ended = fields(&mut request, lines);
    if ended || last || request.host.is_some() { Look::Seen(Seen::Http(request)) } else { Look::More }
}

/// How far a stream was looked through, so that however small its segments are, none of its lines is read with each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Where the first line stands that was not whole.
    at: u16,
    /// The line of the request was.
    is_begun: bool,
    /// There was a line of the host, and it did not do.
    is_named: bool,
    /// The host may stand in the lines that go on with that.
    is_folded: bool,
}

impl Progress {
    pub(super) const fn new() -> Self {
        Self { at: 0, is_begun: false, is_named: false, is_folded: false }
    }

    /// Whether what came since the last time may be what is waited for: anything but a request, its line, its host, its end.
    pub(super) fn has_news(&mut self, bytes: &[u8]) -> bool {
        let unread = bytes.get(usize::from(self.at)..).unwrap_or_default();
        if self.is_begun {
            return self.has_line(unread);
        }
        let request = behind_empty_lines(unread);
        self.at += (unread.len() - request.len()) as u16;
        if !can_begin(request) || PREFACE.iter().zip(request).all(|(one, other)| one == other) {
            return true;
        }
        self.is_begun = memchr(b'\n', request).is_some();
        self.is_begun
    }

    fn has_line(&mut self, unread: &[u8]) -> bool {
        let mut lines = Lines(unread);
        let found = lines.by_ref().find(|line| line.is_empty() || self.names(line));
        self.at += (unread.len() - lines.0.len()) as u16;
        found.is_some()
    }

    /// Whether a line has the host that the first field of the host says.
    fn names(&mut self, line: &[u8]) -> bool {
        self.is_folded &= goes_on(line);
        let value = match self.is_folded {
            true => trimmed(line),
            false => match value_of(HOST, line).filter(|_| !self.is_named) {
                Some(value) => value,
                None => return false,
            },
        };
        self.is_named = true;
        self.is_folded = value.is_empty();
        !self.is_folded
    }
}

/// Bytes of the shortest later request: method, target and version of a character each but for `HTTP/1.`, and an empty line.
pub const REQUEST_MIN: usize = b"G * HTTP/1.\n\n".len();

/// Whether [`later_request`] need be asked of a segment, by its first bytes.
pub fn may_be_later_request(payload: &[u8]) -> bool {
    has_method(behind_empty_lines(payload)) == Some(true)
}

/// The request that a segment begins with, of a connection that has had requests before. Nothing is kept from one segment to
/// the next: `None` of one that begins otherwise, or ends before the host is known, or the head of the request ends.
pub fn later_request(payload: &[u8]) -> Option<Request<'_>> {
    let bytes = payload.get(..BYTES_MAX).unwrap_or(payload);
    match may_be_later_request(bytes).then(|| look(bytes, false))? {
        Look::Seen(Seen::Http(request)) => Some(request),
        _ => None,
    }
}

/// Method, target and version with a space between, or several (RFC 9112 3).
fn request_line(line: &[u8]) -> Option<Request<'_>> {
    let line = trimmed(line);
    let (method, rest) = line.split_at_checked(line.iter().position(|byte| is_space(*byte))?)?;
    let (target, version) = rest.split_at_checked(rest.iter().rposition(|byte| is_space(*byte))? + 1)?;
    let target = trimmed(target);
    let right = !target.is_empty() && version.starts_with(b"HTTP/1.");
    right.then_some(Request { method, target, ..Request::default() })
}

/// Reads header fields as far as there are whole lines; whether the header ended.
fn fields<'a>(request: &mut Request<'a>, mut lines: Lines<'a>) -> bool {
    let mut said: Option<&[u8]> = None;
    let mut differ = false;
    let mut ended = false;
    while let Some(line) = lines.next() {
        if line.is_empty() {
            ended = true;
            break;
        }
        if let Some(value) = value_of(HOST, line) {
            let value = unfolded(value, lines);
            differ |= said.replace(value).is_some_and(|before| before != value);
        } else if let Some(value) = value_of(b"user-agent", line) {
            request.user_agent = Some(value);
        } else if let Some(value) = value_of(b"referer", line) {
            request.referer = Some(value);
        } else if let Some(value) = value_of(b"content-type", line) {
            request.content_type = Some(value);
        }
    }
    request.host = match authority(request.target) {
        Some((host, _)) => name::host(host),
        None if request.method == b"CONNECT" => name::host(request.target),
        None => said.filter(|_| !differ).and_then(name::host),
    };
    ended
}

/// What a field says, if it is this one, whose name is in lower case. Some servers take spaces between it and its colon, for all that
/// RFC 9112 5.1 says.
fn value_of<'a>(name: &[u8], line: &'a [u8]) -> Option<&'a [u8]> {
    let (field, behind) = line.split_at_checked(name.len())?;
    let colon = |behind: &'a [u8]| behind.trim_ascii_start().strip_prefix(b":");
    field.eq_ignore_ascii_case(name).then(|| colon(behind))?.map(trimmed)
}

/// What a field says, or if that is nothing, what it says in the lines that go on with it: servers put a space in the place of the line
/// end (obs-fold, RFC 9112 5.2), and no host has one within. So none of them is waited for where something was said.
fn unfolded<'a>(value: &'a [u8], behind: Lines<'a>) -> &'a [u8] {
    let mut folded = behind.take_while(|line| value.is_empty() && goes_on(line)).map(trimmed);
    folded.find(|more| !more.is_empty()).unwrap_or(value)
}

/// Whether a line goes on with the field before it.
fn goes_on(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// Host and path of a target in absolute form, without the user before the host. Servers pass over the Host field for it (RFC 9112
/// 3.2.2), whatever its scheme.
fn authority(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let (scheme, rest) = split_at(target, b':')?;
    let rest = rest.strip_prefix(b"//").filter(|_| is_scheme(scheme))?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end)?;
    let host = split_at(host, b'@').map_or(host, |(_, host)| host);
    Some((host, path))
}

/// RFC 3986 3.1.
fn is_scheme(name: &[u8]) -> bool {
    let is_of_it = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(is_of_it)
}

fn split_at(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr(separator, bytes)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// Whole lines, without their ends: CR LF, or LF alone (RFC 9112 2.2).
#[derive(Clone, Copy)]
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (line, rest) = split_at(self.0, b'\n')?;
        self.0 = rest;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests;
