//! HTTP/1.x requests in the clear (RFC 9112), and the preface of HTTP/2 without TLS (RFC 9113 3.4).

use super::name;
use super::{BYTES_MAX, Look, Seen, Unknown};
use memchr::memchr;

/// The field that names the host, with what stands behind its name.
const HOST: &[u8] = b"host:";

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
    Some(end > 0 && bytes.get(end) == Some(&b' '))
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
}

impl Progress {
    pub(super) const fn new() -> Self {
        Self { at: 0, is_begun: false, is_named: false }
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
        let found = lines.by_ref().find(|line| {
            let is_host = !self.is_named && value_of(HOST, line).is_some();
            self.is_named |= is_host;
            is_host || line.is_empty()
        });
        self.at += (unread.len() - lines.0.len()) as u16;
        found.is_some()
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

/// Method, target and version with a space between (RFC 9112 3).
fn request_line(line: &[u8]) -> Option<Request<'_>> {
    let (method, rest) = split_at(line, b' ')?;
    let end = memchr::memrchr(b' ', rest)?;
    let (target, version) = (rest.get(..end)?, rest.get(end + 1..)?);
    let right = !target.is_empty() && version.starts_with(b"HTTP/1.");
    right.then_some(Request { method, target, ..Request::default() })
}

/// Reads header fields as far as there are whole lines; whether the header ended.
fn fields<'a>(request: &mut Request<'a>, lines: Lines<'a>) -> bool {
    let mut said: Option<&[u8]> = None;
    let mut differ = false;
    let mut ended = false;
    for line in lines {
        if line.is_empty() {
            ended = true;
            break;
        }
        if let Some(value) = value_of(HOST, line) {
            differ |= said.replace(value).is_some_and(|before| before != value);
        } else if let Some(value) = value_of(b"user-agent:", line) {
            request.user_agent = Some(value);
        } else if let Some(value) = value_of(b"referer:", line) {
            request.referer = Some(value);
        } else if let Some(value) = value_of(b"content-type:", line) {
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

/// What a field says, if it is this one, whose name is in lower case and has its colon behind it.
fn value_of<'a>(name: &[u8], line: &'a [u8]) -> Option<&'a [u8]> {
    let (field, value) = line.split_at_checked(name.len())?;
    field.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(text: &str) -> Request<'_> {
        match look(text.as_bytes(), false) {
            Look::Seen(Seen::Http(request)) => request,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn a_request_says_host_path_and_some_fields() {
        let request = seen(
            "POST /a?b=c HTTP/1.1\r\nuser-agent:  x y \r\nHOST: a.example:8080\r\nContent-Type: t/u\r\n\
             Referer: http://r.example/\r\n\r\n",
        );
        assert_eq!((request.method, request.path()), (&b"POST"[..], Some(&b"/a?b=c"[..])));
        assert_eq!(request.host, Some(&b"a.example"[..]));
        assert_eq!(request.user_agent, Some(&b"x y"[..]));
        assert_eq!(request.content_type, Some(&b"t/u"[..]));
        assert_eq!(request.referer, Some(&b"http://r.example/"[..]));
    }

    #[test]
    fn the_target_names_the_host_before_the_host_field_does() {
        let request = seen("GET http://u@a.example:80/b HTTP/1.1\nHost: other.example\n\n");
        assert_eq!((request.host, request.path()), (Some(&b"a.example"[..]), Some(&b"/b"[..])));
        assert_eq!(seen("GET http://a.example HTTP/1.0\r\n\r\n").path(), Some(&b"/"[..]));
        // Schemes are of either case (RFC 3986 3.1), and servers answer for whatever one is there.
        for target in ["HTTP://paid.example/b", "hTTps://paid.example/b", "ws+x://paid.example:80/b"] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: free.example\r\n\r\n");
            assert_eq!(seen(&text).host, Some(&b"paid.example"[..]), "{target}");
        }
        for target in ["/http://a.example/", "*", "?x=http://a.example/"] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: free.example\r\n\r\n");
            assert_eq!(seen(&text).host, Some(&b"free.example"[..]), "{target}");
        }
        let connect = seen("CONNECT a.example:443 HTTP/1.1\r\n\r\n");
        assert_eq!((connect.host, connect.path()), (Some(&b"a.example"[..]), None));
    }

    #[test]
    fn empty_lines_and_methods_of_any_name_hide_nothing() {
        for text in [
            "\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "\n\nBREW / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        ] {
            assert_eq!(seen(text).host, Some(&b"a.example"[..]));
            for end in 1..text.len() {
                assert!(can_begin(&text.as_bytes()[..end]), "{end}");
            }
        }
        assert!(matches!(look(b"\r\n", false), Look::More));
    }

    #[test]
    fn two_hosts_that_differ_are_none() {
        assert_eq!(seen("GET / HTTP/1.1\r\nHost: free.example\r\nHost: paid.example\r\n\r\n").host, None);
        let same = seen("GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n");
        assert_eq!(same.host, Some(&b"a.example"[..]));
        assert_eq!(seen("GET / HTTP/1.1\r\nHost : a.example\r\n\r\n").host, None);
    }

    #[test]
    fn a_request_is_known_once_the_line_of_its_host_is_whole() {
        let whole = "GET /index HTTP/1.1\r\nAccept: x\r\nHost: a.example\r\nCookie: long";
        let enough = whole.find("Cookie").unwrap();
        for end in 1..whole.len() {
            let known = matches!(look(&whole.as_bytes()[..end], false), Look::Seen(_));
            assert_eq!(known, end >= enough, "{end}");
            assert!(can_begin(&whole.as_bytes()[..end]));
        }
        assert!(matches!(look(b"GET / HTTP/1.1\r\nA: b\r\n", false), Look::More));
        assert!(matches!(look(b"GET / HTTP/1.1\r\nA: b\r\n", true), Look::Seen(Seen::Http(_))));
    }

    #[test]
    fn a_later_request_is_one_whose_segment_begins_with_it_and_holds_its_host() {
        let request = &b"GET /index HTTP/1.1\r\nHost: a.example\r\nCookie: long"[..];
        let found = later_request(request).unwrap();
        assert_eq!((found.host, found.path()), (Some(&b"a.example"[..]), Some(&b"/index"[..])));
        assert_eq!(later_request(b"GET / HTTP/1.0\r\n\r\n").unwrap().host, None);
        let cut = &request[..request.len() - b"\r\nCookie: long".len()];
        for none in [b"", cut, &[b" ", request].concat(), &[b"a=b&c ", request].concat()] {
            assert_eq!(later_request(none), None, "{}", String::from_utf8_lossy(none));
        }
        assert_eq!(later_request(PREFACE), None);
        // What stands far behind is not read.
        let far = format!("GET /{} HTTP/1.1\r\nHost: a.example\r\n", "a".repeat(BYTES_MAX));
        assert_eq!(later_request(far.as_bytes()), None);
    }

    #[test]
    fn the_shortest_later_request_is_one() {
        let request = b"G * HTTP/1.\n\n";
        assert!(later_request(request).is_some() && request.len() == REQUEST_MIN);
    }

    proptest! {
        /// Of what requests are made of, so that some are nearly one.
        #[test]
        fn nothing_shorter_is_one(parts in proptest::collection::vec(0..10_usize, 0..8)) {
            const PARTS: [&str; 10] = ["G", "*", "/", " ", "HTTP/1.", "1", "\r", "\n", ":", "Host:a"];
            let text: String = parts.into_iter().map(|part| PARTS[part]).collect();
            prop_assert!(text.len() >= REQUEST_MIN || later_request(text.as_bytes()).is_none(), "{text:?}");
        }

        /// Nothing is lost by the short look: what begins like HTTP and is read as a request passes it.
        #[test]
        fn none_is_one_that_need_not_be_asked(parts in proptest::collection::vec(0..11_usize, 0..10)) {
            const PARTS: [&str; 11] = ["G", "GET", "*", "/", " ", "HTTP/1.", "1", "\r", "\n", ":", "Host:a"];
            let text: String = parts.into_iter().map(|part| PARTS[part]).collect();
            let is_one = can_begin(text.as_bytes()) && matches!(look(text.as_bytes(), false), Look::Seen(Seen::Http(_)));
            prop_assert!(may_be_later_request(text.as_bytes()) || !is_one, "{text:?}");
        }
    }

    #[test]
    fn a_host_behind_many_fields_is_found() {
        for fields in [63, 64, 670] {
            let request = format!("GET / HTTP/1.1\r\n{}Host: a.example\r\n", "a:b\r\n".repeat(fields));
            assert_eq!(seen(&request).host, Some(&b"a.example"[..]), "{fields}");
        }
    }

    /// What a stream says when it has come so far, by those who read all of it each time.
    fn told(stream: &[u8], end: usize) -> Option<Option<String>> {
        match look(&stream[..end], false) {
            _ if !can_begin(&stream[..end]) => Some(None),
            Look::More => None,
            verdict => Some(Some(format!("{verdict:?}"))),
        }
    }

    proptest! {
        /// In whatever steps it comes, what is waited for is seen at once, and seldom is all of it read again.
        #[test]
        fn only_what_may_tell_is_read_again(
            parts in proptest::collection::vec(0..12_usize, 0..40),
            begin in 0..5_usize,
            steps in proptest::collection::vec(1..9_usize, 400),
        ) {
            const PARTS: [&str; 12] =
                ["\r\n", "\n", "a: b\n", "Host: a", ".x\n", "host: b b\n", "Host:\n", "x", " ", "GET / HTTP/1.1\r\n", "\r", ":"];
            let begin = ["GET / HTTP/1.1\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n", "\r\n\nCONNECT b HTTP/1.0\r\n", "GET ftp://a b HTTP/1.1\n", ""][begin];
            let stream = begin.to_owned() + &parts.into_iter().map(|part| PARTS[part]).collect::<String>();
            let stream = stream.as_bytes();
            let (mut progress, mut end, mut readings) = (Progress::new(), 0, 0);
            for step in steps {
                end = stream.len().min(end + step);
                let expected = told(stream, end);
                let is_read = end > 0 && progress.has_news(&stream[..end]);
                prop_assert!(is_read || expected.is_none(), "{:?}", expected);
                readings += u8::from(is_read && end > PREFACE.len() + 9);
                if expected.is_some() || end == stream.len() {
                    break;
                }
            }
            prop_assert!(readings <= 3, "{readings}");
        }
    }

    #[test]
    fn the_preface_of_http_2_is_known_and_other_streams_are_not() {
        for end in 1..PREFACE.len() {
            assert!(matches!(look(&PREFACE[..end], false), Look::More), "{end}");
        }
        assert!(matches!(look(PREFACE, false), Look::Seen(Seen::Http2)));
        assert!(!can_begin(b"SSH-2.0-x\r\n") && can_begin(b"GETX") && can_begin(b"G"));
        assert!(!can_begin(b"A-name-that-no-method-has") && !can_begin(b" GET /") && !can_begin(b"\x13Bit "));
        assert!(matches!(look(b"GET x\r\n", false), Look::Unknown(Unknown::Malformed)));
        assert!(matches!(look(b"GET / SIP/2.0\r\n", false), Look::Unknown(Unknown::Malformed)));
    }
}
