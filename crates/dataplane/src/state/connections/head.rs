//! Where requests of HTTP/1.x begin, of segments as they come: a head may go on in the next one, as with a long cookie.

use arrayvec::ArrayVec;

/// What fields follow (RFC 9110 9.3); not CONNECT, behind which there is no HTTP.
const METHODS: [&[u8]; 8] =
    [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"OPTIONS ", b"DELETE ", b"PATCH ", b"PROPFIND "];
/// Octets of a line that are kept: fields that matter are shorter.
const LINE: usize = 48;
/// Octets of the longest head that is followed: servers take less.
const HEAD_MAX: u32 = 1 << 18;
/// Octets of the longest body that is stepped over: less than half of the numbers there are.
const BODY_MAX: u32 = 1 << 30;

/// Whether octets begin like a request.
pub(crate) fn begins_with_method(octets: &[u8]) -> bool {
    METHODS.iter().any(|method| octets.starts_with(method))
}

/// Octets of the request line, line end included, if it is whole and one of HTTP/1.x.
pub(crate) fn request_line(octets: &[u8]) -> Option<u32> {
    let end = begins_with_method(octets).then(|| octets.windows(2).position(|two| two == b"\r\n"))??;
    let line = octets.get(..end)?;
    (line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0")).then_some(end as u32 + 2)
}

/// What comes next on a connection, and at which of the user's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Upcoming {
    /// The next request.
    Request(u32),
    /// More of a head.
    Head(u32, Head),
    /// Nobody knows where requests begin.
    #[default]
    Unknown,
}

impl Upcoming {
    /// Whether a request may begin there.
    pub(crate) fn may_be_request(&self, number: u32) -> bool {
        matches!(self, Self::Unknown) || *self == Self::Request(number)
    }

    /// Whether so many octets at this number have what comes next.
    pub(crate) fn is_in(&self, number: u32, octets: usize) -> bool {
        match self {
            Self::Request(at) => *at == number && octets > 0,
            Self::Head(at, _) => (at.wrapping_sub(number) as usize) < octets,
            Self::Unknown => false,
        }
    }

    /// What comes behind these octets, which are at this number. What is not what comes next changes nothing.
    pub(crate) fn follow(&mut self, number: u32, octets: &[u8]) {
        let read = |mut head: Head, from: usize| match head.read(octets.get(from..).unwrap_or_default()) {
            Read::More => Self::Head(number.wrapping_add(octets.len() as u32), head),
            Read::End(length, Some(body)) => {
                Self::Request(number.wrapping_add(from as u32).wrapping_add(length).wrapping_add(body))
            }
            Read::End(_, None) | Read::TooMuch => Self::Unknown,
        };
        if !self.is_in(number, octets.len()) {
            return;
        }
        *self = match std::mem::take(self) {
            Self::Head(at, head) => read(head, at.wrapping_sub(number) as usize),
            Self::Request(_) | Self::Unknown => match request_line(octets) {
                Some(line) => read(Head::default(), line as usize),
                None => Self::Unknown,
            },
        };
    }
}

/// What the fields of a head have said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Of the line that is not over: how it begins, its last octet, and all octets of the head so far.
    line: ArrayVec<u8, LINE>,
    last: u8,
    octets: u32,
    body: Body,
}

/// What is known of the octets behind the fields (RFC 9112 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Body {
    #[default]
    None,
    Of(u32),
    Unsure,
}

/// What reading on came to.
enum Read {
    /// It goes on.
    More,
    /// It ends behind so many octets, with a body of so many, where that is sure.
    End(u32, Option<u32>),
    TooMuch,
}

impl Head {
    fn read(&mut self, octets: &[u8]) -> Read {
        for (length, octet) in (1..).zip(octets) {
            self.octets += 1;
            if *octet != b'\n' {
                // What is beyond its room makes the line none that can be read.
                let _ = self.line.try_push(*octet);
                self.last = *octet;
                continue;
            }
            if self.line.as_slice() == b"\r" {
                return Read::End(length, self.body.length());
            }
            self.body = self.body.with(&self.line, self.last);
            self.line.clear();
        }
        if self.octets > HEAD_MAX { Read::TooMuch } else { Read::More }
    }
}

impl Body {
    const fn length(self) -> Option<u32> {
        match self {
            Self::None => Some(0),
            Self::Of(length) => Some(length),
            Self::Unsure => None,
        }
    }

    /// After one more line, of which `last` is the last octet.
    fn with(self, line: &[u8], last: u8) -> Self {
        if last != b'\r' {
            // Not all servers take that for the end of a line.
            return Self::Unsure;
        }
        let Some(colon) = line.iter().position(|octet| *octet == b':') else { return self };
        let (name, value) = line.split_at_checked(colon).unwrap_or_default();
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if is(b"transfer-encoding") || is(b"upgrade") {
            return Self::Unsure;
        }
        if !is(b"content-length") {
            return self;
        }
        let is_whole = line.len() < LINE;
        let digits = value.get(1..).map(<[u8]>::trim_ascii).filter(|_| is_whole && self == Self::None);
        let length = digits.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        length.filter(|length| *length <= BODY_MAX).map_or(Self::Unsure, Self::Of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn behind(head: &str) -> Upcoming {
        let mut upcoming = Upcoming::Request(7);
        upcoming.follow(7, head.as_bytes());
        upcoming
    }

    #[test]
    fn a_body_is_stepped_over_where_its_length_is_sure() {
        let with = |fields: &str| format!("POST / HTTP/1.1\r\n{fields}\r\n");
        for (fields, body) in [
            ("", Some(0)),
            ("A: b\r\n", Some(0)),
            ("Content-Length: 12\r\n", Some(12)),
            ("A:b\r\ncontent-length:12 \r\n", Some(12)),
            ("Content-Length: 12\r\nContent-Length: 12\r\n", None),
            ("Content-Length: -1\r\n", None),
            ("Content-Length: 4000000000\r\n", None),
            ("Content-Length:                                        12\r\n", None),
            ("Content-Length:\r\n 12\r\n", None),
            ("Transfer-Encoding: chunked\r\n", None),
            ("Upgrade: h2c\r\n", None),
            ("A: b\n", None),
        ] {
            let head = with(fields);
            let expected =
                body.map_or(Upcoming::Unknown, |body| Upcoming::Request(7 + head.len() as u32 + body));
            assert_eq!(behind(&head), expected, "{head:?}");
        }
    }

    #[test]
    fn what_is_no_request_has_none_behind_it() {
        for text in ["CONNECT a:1 HTTP/1.1\r\n\r\n", "GET / HTTP/2\r\n\r\n", "GET /", "\u{16}\u{3}\u{1}"] {
            assert_eq!(behind(text), Upcoming::Unknown, "{text:?}");
        }
        let endless = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(HEAD_MAX as usize));
        assert_eq!(behind(&endless), Upcoming::Unknown);
    }

    proptest! {
        /// Cut anywhere behind the request line, and sent again from anywhere: what comes next is the same.
        #[test]
        fn segments_make_no_difference(
            fields in proptest::collection::vec("(content-length|upgrade|a|cookie): ?[0-9a]{0,60}\r\n", 0..6),
            cuts in proptest::collection::vec(any::<u16>(), 0..6),
            number in prop_oneof![Just(7_u32), Just(u32::MAX - 30)],
        ) {
            let line = "GET / HTTP/1.1\r\n";
            let stream = format!("{line}{}\r\n", fields.concat()).into_bytes();
            let mut whole = Upcoming::Request(number);
            whole.follow(number, &stream);
            let mut cut = Upcoming::Request(number);
            let mut from = 0;
            for place in cuts {
                let to = (usize::from(place) % stream.len()).max(line.len());
                if to > from {
                    // Some of what has come is said again, but from the first octet on: a request begins there once only.
                    let again = from.saturating_sub(usize::from(place) % 5).max(usize::from(from > 0));
                    cut.follow(number.wrapping_add(again as u32), &stream[again..to]);
                    from = to;
                }
            }
            cut.follow(number.wrapping_add(from as u32), &stream[from..]);
            prop_assert_eq!(cut, whole);
        }
    }
}
