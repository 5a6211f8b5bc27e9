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
    for text in
        ["\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "\n\nBREW / HTTP/1.1\r\nHost: a.example\r\n\r\n"]
    {
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
}

/// RFC 9112 3, 5.1 and 5.2: what a sender may not say, and a server may take.
#[test]
fn spaces_of_any_kind_hide_no_host() {
    for text in [
        "GET\t/\tHTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET \x0b\x0c / \tHTTP/1.1 \r\nHost: a.example\r\n\r\n",
        "GET\r/\rHTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a.example\r\n\r\n",
        "GET / HTTP/1.1\r\nhOST \t:\ta.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n a.example\r\n\r\n",
        "GET / HTTP/1.1\nhost \t:  \n \t\n\t\r\n  a.example \n\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\n b.example\r\n\r\n",
    ] {
        let request = seen(text);
        assert_eq!((request.host, request.path()), (Some(&b"a.example"[..]), Some(&b"/"[..])), "{text:?}");
        assert_eq!(later_request(text.as_bytes()), Some(request));
        let known = (1..).find(|end| matches!(look(&text.as_bytes()[..*end], false), Look::Seen(_)));
        let (front, behind) = text.split_at(text.find("a.example").unwrap());
        assert_eq!(known, behind.find('\n').map(|end| front.len() + end + 1));
        assert!((1..text.len()).all(|end| can_begin(&text.as_bytes()[..end])), "{text:?}");
    }
    for text in [
        "Host:\r\nX: y\r\n a.example\r\n\r\n",
        "Host:\r\n b b\r\n a.example\r\n\r\n",
        " Host: a.example\r\n\r\n",
    ] {
        assert_eq!(seen(&format!("GET / HTTP/1.1\r\n{text}")).host, None, "{text:?}");
    }
    assert!(!may_be_later_request(b"1a0\r\nGET / HTTP/1.1\r\n") && !can_begin(b"1a0\r\nGET"));
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
    fn none_is_one_that_need_not_be_asked(parts in proptest::collection::vec(0..12_usize, 0..10)) {
        const PARTS: [&str; 12] = ["G", "\t", "GET", "*", "/", " ", "HTTP/1.", "1", "\r", "\n", ":", "Host:a"];
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
        parts in proptest::collection::vec(0..15_usize, 0..40),
        begin in 0..5_usize,
        steps in proptest::collection::vec(1..9_usize, 400),
    ) {
        const PARTS: [&str; 15] = [
            "\r\n", "\n", "a: b\n", "Host: a", ".x\n", "host: b b\n", "Host:\n", "x", " ", "GET / HTTP/1.1\r\n", "\r", ":",
            " c\n", "Host \t:\r\n", "\t\n",
        ];
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
