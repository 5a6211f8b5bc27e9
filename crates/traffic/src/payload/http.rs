//! HTTP/1.1 in the clear (RFC 9112).

/// What servers say a body is long; no flow gets to its end.
const CONTENT_LENGTH: u32 = 4_000_000_000;

#[rustfmt::skip]
const USER_AGENTS: &[&str] = &[
    "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Dalvik/2.1.0 (Linux; U; Android 13)",
    "okhttp/4.12.0",
];

/// Appends a request for `path` on `host`. Clients differ in what they say first.
pub(crate) fn request(out: &mut Vec<u8>, (host, path): (&str, &str), variant: u16) {
    let agent = USER_AGENTS.get(usize::from(variant >> 2 & 3)).copied().unwrap_or_default();
    let host = ["Host: ", host];
    let agent = ["User-Agent: ", agent];
    let [first, second] = if variant & 1 == 0 { [host, agent] } else { [agent, host] };
    for part in ["GET ", path, " HTTP/1.1"] {
        out.extend(part.as_bytes());
    }
    let rest = ["Accept: ", "*/*", "Accept-Encoding: ", "gzip, deflate", "Connection: ", "keep-alive"];
    for pair in first.chunks(2).chain(second.chunks(2)).chain(rest.chunks(2)) {
        out.extend(b"\r\n");
        pair.iter().for_each(|part| out.extend(part.as_bytes()));
    }
    out.extend(b"\r\n\r\n");
}

/// Appends the head of an answer; its body is in later packets.
pub(crate) fn response(out: &mut Vec<u8>) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {CONTENT_LENGTH}\r\nConnection: keep-alive\r\n\r\n"
    );
    out.extend(head.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_line_first_and_each_header_on_one() {
        for variant in 0..8 {
            let mut out = vec![];
            request(&mut out, ("a.example", "/b?c=1"), variant);
            let text = String::from_utf8(out).unwrap();
            let mut lines = text.strip_suffix("\r\n\r\n").unwrap().split("\r\n");
            assert_eq!(lines.next(), Some("GET /b?c=1 HTTP/1.1"));
            let headers: Vec<_> = lines.map(|line| line.split_once(": ").unwrap()).collect();
            assert!(headers.contains(&("Host", "a.example")), "{headers:?}");
            assert!(headers.iter().any(|(name, value)| *name == "User-Agent" && !value.is_empty()));
        }
    }
}
